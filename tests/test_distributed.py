"""Fits on a cluster of two worker processes: the same numbers as here, whatever happens to it."""

import os
import signal

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from polyfid import MultiFidelityClassifier, load
from polyfid.arrays import hash_rows
from polyfid.datasets import make_rough
from polyfid.kernels import RBF
from polyfid.learning.boosted import Cut, fold_of
from polyfid.model.trees import Turn
from polyfid.rows import Rows
from polyfid.rows.survey import Block

dask_distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("polyfid.distributed")
cluster_module = pytest.importorskip("polyfid.distributed.cluster")
Forest = pytest.importorskip("polyfid.distributed.forest").Forest

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.slow]

SAME = 1e-8
LEVELS = ["crowd", "expert"]
#: Uneven, with empty ones: first, between and last.
SIZES = (0, 150, 7, 0, 243, 200, 0)


@pytest.fixture(autouse=True)
def time_limit():
    """Waiting ends with an error: Dask waits forever for workers that it could not restart."""

    def stop(*_):
        raise TimeoutError("the cluster has not answered for 300 s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def client(cluster):
    with dask_distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def rows():
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, (600, 2))
    trusted = rng.uniform(size=600) < 0.2
    y = np.where((X[:, 0] > 0) ^ ((rng.uniform(size=600) < 0.2) & ~trusted), "yes", "no")
    fidelity = np.where(trusted, "expert", "crowd")
    return X, y, fidelity, rng.randint(0, 3, size=600).astype(float)


def make_model(**changes):
    given = {"n_inducing": (15, 8), "optimizer": None, "n_tuning": 300, "random_state": 3}
    given["levels"] = LEVELS
    return MultiFidelityClassifier(2.0 * RBF(0.7), **{**given, **changes})


def cut(rows, sizes=SIZES):
    """The rows in blocks of these sizes."""
    stops = np.cumsum(sizes)
    parts = zip(stops - sizes, stops, strict=True)
    return [tuple(part[a:b] for part in rows) for a, b in parts]


def as_arrays(rows, sizes=SIZES):
    return [da.from_array(part, chunks=(sizes, *part.shape[1:])) for part in rows]


def as_frame(rows, sizes=SIZES):
    X, y, fidelity, weight = rows
    columns = {"a": X[:, 0], "label": y, "b": X[:, 1], "level": fidelity, "w": weight}
    frame, stops = pd.DataFrame(columns), np.cumsum(sizes)
    parts = [frame.iloc[b - n : b] for n, b in zip(sizes, stops, strict=True)]
    return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


def assert_same(one, other, X):
    assert one.levels_ == other.levels_
    assert (one.classes_ == other.classes_).all()
    assert (one.report_.counts == other.report_.counts).all()
    for a, b in zip(one._fits, other._fits, strict=True):
        assert a.inference.n_iter == b.inference.n_iter
        np.testing.assert_allclose(a.theta, b.theta, rtol=0, atol=SAME)
    bound = one.log_marginal_likelihood_value_
    assert other.log_marginal_likelihood_value_ == pytest.approx(bound, rel=SAME)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=0, atol=SAME)


@pytest.mark.parametrize(
    ("n_classes", "changes"),
    [
        (2, {"optimizer": "lbfgs", "n_tuning": 120, "tol": 1e-3}),
        (3, {"label_noise": "fidelity", "levels": LEVELS}),
    ],
)
def test_a_fit_of_arrays_is_that_of_their_blocks(client, rows, n_classes, changes):
    X, y, fidelity, weight = rows
    y = np.where(X[:, 1] > 0.4, "perhaps", y) if n_classes == 3 else y
    given = (X, y, fidelity, weight)
    here = make_model(**changes).fit_blocks(cut(given))
    there = distributed.fit(make_model(**changes), *as_arrays(given), client=client)
    assert_same(here, there, X)


@pytest.mark.parametrize("as_objects", [False, True])
def test_numbers_of_a_level_are_fitted_too(client, rows, as_objects):
    X, y, fidelity, weight = rows
    number = 20.0 * X[:, 0] + X[:, 1]
    classes = y.astype(object) if as_objects else (y == "yes").astype(float)
    given = (X, np.where(fidelity == "crowd", number, classes), fidelity, weight)
    here = make_model(numeric_levels=["crowd"]).fit_blocks(cut(given))
    there = distributed.fit(make_model(numeric_levels=["crowd"]), *as_arrays(given), client=client)
    assert_same(here, there, X)
    assert np.corrcoef(here.predict_value(X)[0], number)[0, 1] > 0.95
    np.testing.assert_allclose(there.predict_value(X), here.predict_value(X), rtol=0, atol=SAME)


def test_a_fit_of_data_frames_is_that_of_their_blocks(client, rows):
    frame, here = as_frame(rows), make_model().fit_blocks(cut(rows))
    X = pd.DataFrame(rows[0], columns=["a", "b"])
    for given in (
        (frame, "label", "level", "w"),
        (frame[["a", "b"]], frame["label"], frame["level"], frame["w"].to_dask_array()),
    ):
        there = distributed.fit(make_model(), *given, client=client)
        assert list(there.feature_names_in_) == ["a", "b"]
        proba = here.predict_proba(rows[0])
        np.testing.assert_allclose(there.predict_proba(X), proba, rtol=0, atol=SAME)


def test_arrays_of_unknown_sizes_or_cut_elsewhere(client, rows):
    X, y, fidelity, _ = as_arrays(rows)
    every = X[:, 0] > -2.0
    unknown = [part[every] for part in (X, y, fidelity)]
    assert np.isnan(unknown[0].chunks[0]).all()
    there = distributed.fit(make_model(), *unknown, client=client)
    assert_same(make_model().fit_blocks(cut(rows[:3])), there, rows[0])
    given = X.rechunk(((300, 300), (1, 1))), y.rechunk(100), fidelity.rechunk(600)
    there = distributed.fit(make_model(), *given, client=client)
    assert_same(make_model().fit_blocks(cut(rows[:3], (300, 300))), there, rows[0])


def deadly(function, victims):
    """A function that kills the process it is called in, if that is one of the victims."""

    def call(block):
        if os.getpid() in victims:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(block)

    return call


@pytest.mark.parametrize("deaths", [1, 2])
def test_workers_killed_in_a_pass_change_nothing(client, rows, monkeypatch, deaths):
    client.wait_for_workers(2, timeout=120)
    victims = {*sorted(client.run(os.getpid).values())[:deaths]}
    passes = []

    class Attacked(cluster_module.ClusterSource):
        def reduce(self, function):
            passes.append(function)
            return super().reduce(deadly(function, victims) if len(passes) == 2 else function)

    monkeypatch.setattr(cluster_module, "ClusterSource", Attacked)
    sizes = (40,) * 15  # so many that each worker gets some
    there = distributed.fit(make_model(), *as_arrays(rows, sizes), client=client)
    assert len(passes) > 2
    client.wait_for_workers(2, timeout=120)
    assert not victims & set(client.run(os.getpid).values())
    assert_same(make_model().fit_blocks(cut(rows, sizes)), there, rows[0])


@pytest.fixture(scope="module")
def many():
    """Rows enough for trees, some of them twice at both levels."""
    made = make_rough(2400, 400, 2, n_test=2000, random_state=1)
    X, y, fidelity = made.data.copy(), made.target, made.fidelity
    X[-50:] = X[:50]
    return (X, y, fidelity), made


BOOSTED = {"mean": "boosted", "max_iter": 3, "n_tuning": 300, "n_inducing": 20, "random_state": 0}


@pytest.mark.filterwarnings("ignore:.*tuning stopped early")
def test_trees_of_a_sample_that_holds_all_rows_are_those_of_blocks(client, many):
    given, _ = many
    sizes = (900, 0, 1000, 900)
    there = MultiFidelityClassifier(**BOOSTED)
    distributed.fit(there, *as_arrays(given, sizes), client=client)
    here = MultiFidelityClassifier(**BOOSTED).fit_blocks(cut(given, sizes))
    assert here._mixtures[0].best.boosted
    assert_same(here, there, given[0])


@pytest.mark.filterwarnings("ignore:.*tuning stopped early")
def test_xgboost_grows_trees_of_rows_that_the_sample_has_not(client, many, monkeypatch):
    pytest.importorskip("xgboost")
    (X, y, fidelity), made = many
    monkeypatch.setattr("polyfid.estimator.blocks.N_ROWS_TREES", 1500)
    monkeypatch.setattr("polyfid.learning.boosted.FEWEST_LEAVES", 4)
    fitted = {}
    for trees in ("auto", "sample"):
        model = MultiFidelityClassifier(**BOOSTED)
        arrays = as_arrays((X, y, fidelity), (900, 0, 1000, 900))
        fitted[trees] = distributed.fit(model, *arrays, client=client, trees=trees)
    (margin,) = fitted["auto"]._mixtures[0].mean.margins
    assert (margin.level, margin.parts, len(margin.folds)) == (0, 5, 5)
    # XGBoost splits at numbers of single precision, and those between: no bin of scikit-learn is.
    assert fitted["sample"]._mixtures[0].mean.margins[0].folds[0].sizes.sum() > 0
    fold = fold_of(X, 5)
    sign = np.where(y == 1, 1.0, -1.0)[fidelity == 0]
    rows, fold = X[fidelity == 0], fold[fidelity == 0]

    def loss(margins):
        return float(np.logaddexp(0.0, -sign * margins).mean())

    own = margin(rows, fold)
    others = margin(rows, (fold + 1) % 5)
    assert loss(others) < loss(own) < np.log(2.0)  # those have learnt from the rows
    q = made.test_probability
    for model in fitted.values():
        p = model.predict_proba(made.test_data)[:, 1]
        assert -np.mean(q * np.log(p) + (1.0 - q) * np.log1p(-p)) < 0.58


def test_repeats_of_rows_that_are_elsewhere_have_a_fold(client, many):
    pytest.importorskip("xgboost")
    (X, y, fidelity), _ = many
    rows = Rows.of(X, fidelity, y)
    blocks = client.scatter([rows.take(slice(0, 1500)), rows.take(slice(1500, 2800)), None])
    forest = Forest(client, blocks, [2400, 400])
    hashes = np.unique(hash_rows(X[fidelity == 1]))
    repeated = np.isin(hashes, hash_rows(X[:50]))
    np.testing.assert_array_equal(forest.occur(hashes, 0), repeated)
    cut_ = Cut(np.inf, 3, 3, 8, 0.3)
    trees = forest.grow(0, 1, cut_, 1, Turn.none(2))
    learn = (fold_of(X, 3) != 1) & (fidelity == 0)
    stop = (fold_of(X, 3) == 1) & (fidelity == 0)
    import xgboost

    one = xgboost.XGBClassifier(
        n_estimators=1000,
        max_leaves=8,
        max_depth=0,
        grow_policy="lossguide",
        learning_rate=0.3,
        reg_lambda=50.0,
        colsample_bynode=0.6,
        early_stopping_rounds=10,
        random_state=1,
        base_score=y[learn].mean(),
    ).fit(X[learn], y[learn], eval_set=[(X[stop], y[stop])], verbose=False)
    expected = one.predict(X, output_margin=True)
    assert np.corrcoef(trees(X), expected)[0, 1] > 0.98


def test_trees_are_named_as_they_may_be(client, rows):
    with pytest.raises(ValueError, match='trees must be "auto"'):
        distributed.fit(make_model(), *as_arrays(rows), client=client, trees="catboost")


def test_a_checkpoint_is_the_model_so_far(client, rows, tmp_path):
    path = tmp_path / "model.polyfid"
    model = distributed.fit(make_model(), *as_arrays(rows), client=client, checkpoint=path)
    saved = load(path)
    # One step on from where the last pass was made, and that was as near as asked for.
    np.testing.assert_allclose(
        saved.predict_proba(rows[0]), model.predict_proba(rows[0]), rtol=0, atol=1e-5
    )
    saved.set_params(warm_start=True)
    again = distributed.fit(saved, *as_arrays(rows), client=client)
    assert again._fits[0].inference.n_iter == 0


def test_an_order_that_categories_carry(client, rows):
    trust = pd.CategoricalDtype(["expert", "crowd"], ordered=True)  # not as they sort
    level = as_frame(rows)["level"].astype(trust)
    there = distributed.fit(make_model(levels=None), *as_arrays(rows[:2]), level, client=client)
    assert there.levels_ == ("expert", "crowd")


def test_predictions_of_arrays(client, rows):
    X, _, fidelity, _ = as_arrays(rows)
    model = make_model().fit_blocks(cut(rows))
    for method in ("predict", "predict_proba"):
        lazily, here = getattr(distributed, method), getattr(model, method)
        for one, other in [
            (lazily(model, X), here(rows[0])),
            (lazily(model, X, "crowd"), here(rows[0], "crowd")),
            (lazily(model, X, fidelity), here(rows[0], rows[2])),
            (lazily(model, X.rechunk((100, 1))), here(rows[0])),
        ]:
            assert isinstance(one, da.Array)
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            computed = client.compute(one).result()
            assert computed.dtype == other.dtype
            if method == "predict":
                np.testing.assert_array_equal(computed, other)
            else:
                np.testing.assert_allclose(computed, other, rtol=0, atol=1e-14)


def test_predictions_of_data_frames(client, rows):
    frame = as_frame(rows)
    model = make_model().fit(pd.DataFrame(rows[0], columns=["a", "b"]), *rows[1:3])
    X = frame[["a", "b"]]
    whole = X.compute()
    proba = distributed.predict_proba(model, X, frame["level"])
    assert list(proba.columns) == ["p_no", "p_yes"]
    computed = client.compute(proba).result()
    assert (computed.index == whole.index).all()
    np.testing.assert_allclose(computed, model.predict_proba(whole, rows[2]), rtol=0, atol=1e-14)
    classes = client.compute(distributed.predict(model, X, "crowd")).result()
    assert classes.name == "class"
    np.testing.assert_array_equal(classes, model.predict(whole, "crowd"))
    lazily, before = distributed.predict_proba(model, X), model.predict_proba(whole)
    model.fit(whole, rows[1][::-1], rows[2])  # a prediction is that of the model it was made with
    computed = lazily.compute(scheduler="synchronous")
    np.testing.assert_allclose(computed, before, rtol=0, atol=1e-14)


def test_structures_and_classes_in_processes_of_the_cluster(client, rows):
    X, y = rows[0][:60], rows[1][:60]
    three = np.where(X[:, 1] > 0.4, "perhaps", y)
    for kernel, labels in [("auto", y), (1.0 * RBF(), three)]:
        model = MultiFidelityClassifier(kernel, max_iter=5, tol=1e-2, random_state=0)
        with joblib.parallel_config(backend="dask"):
            there = model.set_params(n_jobs=-1).fit(X, labels).predict_proba(X)
        here = model.set_params(n_jobs=None).fit(X, labels).predict_proba(X)
        np.testing.assert_allclose(there, here, rtol=0, atol=SAME)


def test_what_cannot_be_fitted_is_told(client, rows):
    X, y, fidelity, weight = as_arrays(rows)
    frame = as_frame(rows)
    label = frame["label"]

    for match, *given in [
        ("X must be a dask .* got ndarray", rows[0], y),
        ("y must be a dask array .* got ndarray", X, rows[1]),
        ("y must be given", X, None),
        ("'kind', and X has columns", frame, "kind"),
        ("y has 599 entries and X has 600", X, y[:-1]),
        ("fidelity has 2 partitions and X has 7", frame[["a"]], label, fidelity.rechunk(300)),
        ("not numeric: level", frame, "label"),
        ("two dimensions.* got Array of shape", X[:, 0], y),
        ("no rows", X[:0], y[:0]),
        ("one class only", X, y, fidelity, weight * 0 + (y == "no")),
        ("contains NaN", da.where(X > 0.9, np.nan, X), y),
    ]:
        with pytest.raises((TypeError, ValueError), match=match):
            distributed.fit(make_model(), *given, client=client)
    for name, value in (("n_tuning", None), ("fidelity_feature", 0)):
        with pytest.raises(ValueError, match=name):
            distributed.fit(make_model(**{name: value}), X, y, client=client)


def changed(rows, change):
    """A data frame whose partition 2 is changed."""
    frame = as_frame(rows, (100,) * 6)
    parts = [frame.get_partition(k).compute() for k in range(6)]
    parts[2] = change(parts[2])
    return dd.from_map(lambda part: part, parts, meta=frame._meta)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda part: part[["b", "a", "label", "level", "w"]], "partition 2: .*same order"),
        (lambda part: part.drop(columns="b"), "partition 2: .*missing"),
        (lambda part: part.assign(c=1.0), "partition 2: .*unseen"),
        (lambda part: part.assign(a="x"), "partition 2: .*not numeric: a"),
        (lambda part: part.drop(columns="label"), "partition 2 lacks the column 'label'"),
        (lambda part: part.assign(label=1), "y holds text in some blocks and numbers"),
        (lambda part: part.assign(label=None), "partition 2: y has missing"),
    ],
)
def test_a_partition_that_is_unlike_the_others(client, rows, change, match):
    with pytest.raises(ValueError, match=f"(?s){match}"):
        distributed.fit(make_model(), changed(rows, change), "label", "level", "w", client=client)


def test_a_partition_of_another_size_when_it_is_read_again():
    block = Block(2, np.zeros((5, 1)), np.zeros(5), np.zeros(5, int), (0,), np.ones(5))
    with pytest.raises(ValueError, match="partition 2 has 5 rows, and had 6 when it was first"):
        cluster_module._encode(len, block, 6)


def test_a_cluster_without_workers_or_a_client_that_is_closed(rows, monkeypatch):
    monkeypatch.setattr("polyfid.distributed.sums.PATIENCE", 3)
    none = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
    with dask_distributed.LocalCluster(**none) as empty:
        client = dask_distributed.Client(empty)
        with pytest.raises(RuntimeError, match="no workers for 3 s; start some"):
            distributed.fit(make_model(), *as_arrays(rows), client=client)
        client.close()
        with pytest.raises(RuntimeError, match="client or the cluster of the fit is closed"):
            distributed.fit(make_model(), *as_arrays(rows), client=client)


def test_workers_that_die_of_a_partition_are_told():
    with pytest.raises(RuntimeError, match="smaller partitions"), cluster_module._in_plain_words():
        raise dask_distributed.KilledWorker("task", None, 4)


def blas_threads(_=None):
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="BLAS has one thread anyway")
def test_workers_in_this_process_have_one_thread_of_blas_in_a_pass():
    here = {"processes": False, "dashboard_address": ":0"}
    with threadpool_limits(2, "blas"), dask_distributed.Client(**here) as client:
        source = cluster_module.ClusterSource(None, 0.0, client, client.scatter([1, 2]))
        assert set(source.reduce(blas_threads)) == {1}
        assert set(blas_threads()) == {2}
