"""Fits on a cluster of two worker processes: the same numbers as here, whatever happens to it."""

import os
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from deadly import Deadly
from threadpoolctl import threadpool_info, threadpool_limits

from polyfid import MultiFidelityClassifier, load
from polyfid.kernels import RBF

dask_distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("polyfid.distributed")
cluster_module = pytest.importorskip("polyfid.distributed.cluster")

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.slow]

SAME = 1e-8
LEVELS = ["crowd", "expert"]
#: Uneven, with empty ones: first, between and last.
SIZES = (0, 150, 7, 0, 243, 200, 0)


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


def assert_equal(one, other):
    """The same classes, or probabilities that are the same but for rounding."""
    if other.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)
    else:
        np.testing.assert_array_equal(one, other)


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


def test_arrays_of_unknown_sizes(client, rows):
    X, y, fidelity, _ = as_arrays(rows)
    every = X[:, 0] > -2.0
    X, y, fidelity = X[every], y[every], fidelity[every]
    assert np.isnan(X.chunks[0]).all()
    there = distributed.fit(make_model(), X, y, fidelity, client=client)
    assert_same(make_model().fit_blocks(cut(rows[:3])), there, rows[0])


def test_arrays_cut_between_columns_or_elsewhere(client, rows):
    chunks = ((300, 300), (1, 1)), 100, 600
    given = [da.from_array(part, c) for part, c in zip(rows, chunks, strict=False)]
    there = distributed.fit(make_model(), *given, client=client)
    assert_same(make_model().fit_blocks(cut(rows[:3], (300, 300))), there, rows[0])


@pytest.mark.parametrize("deaths", [1, 2])
def test_workers_killed_in_a_pass_change_nothing(client, rows, monkeypatch, deaths):
    client.wait_for_workers(2)
    victims = frozenset(sorted(client.run(os.getpid).values())[:deaths])
    passes = []

    class Attacked(cluster_module.ClusterSource):
        def reduce(self, function):
            passes.append(function)
            if len(passes) == 2:
                function = Deadly(function, victims)
            return super().reduce(function)

    monkeypatch.setattr(cluster_module, "ClusterSource", Attacked)
    sizes = (40,) * 15  # so many that each worker gets some
    there = distributed.fit(make_model(), *as_arrays(rows, sizes), client=client)
    assert len(passes) > 2
    client.wait_for_workers(2)
    assert not victims & set(client.run(os.getpid).values())
    assert_same(make_model().fit_blocks(cut(rows, sizes)), there, rows[0])


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
    X, y, fidelity, _ = rows
    trust = pd.CategoricalDtype(["expert", "crowd"], ordered=True)  # not as they sort
    parts = [(x, t, pd.Series(f).astype(trust)) for x, t, f in cut((X, y, fidelity))]
    assert make_model().fit_blocks(parts).levels_ == ("expert", "crowd")
    level = as_frame(rows)["level"].astype(trust)
    there = distributed.fit(make_model(), *as_arrays((X, y)), level, client=client)
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
            assert_equal(computed, other)


def test_predictions_of_data_frames(client, rows):
    frame = as_frame(rows)
    model = make_model().fit(pd.DataFrame(rows[0], columns=["a", "b"]), *rows[1:3])
    X = frame[["a", "b"]]
    whole = X.compute()
    proba = distributed.predict_proba(model, X, frame["level"])
    assert list(proba.columns) == ["p_no", "p_yes"]
    computed = client.compute(proba).result()
    assert (computed.index == whole.index).all()
    assert_equal(computed.to_numpy(), model.predict_proba(whole, rows[2]))
    classes = client.compute(distributed.predict(model, X, "crowd")).result()
    assert classes.name == "class"
    np.testing.assert_array_equal(classes, model.predict(whole, "crowd"))
    assert np.isnan(distributed.predict_proba(model, X.to_dask_array()).shape[0])


def test_a_prediction_is_that_of_the_model_it_was_made_with(rows):
    X, y, fidelity, _ = rows
    model = make_model().fit(X, y, fidelity)
    proba, before = distributed.predict_proba(model, da.from_array(X, 200)), model.predict_proba(X)
    model.fit(X, y[::-1], fidelity)
    np.testing.assert_array_equal(proba.compute(scheduler="synchronous"), before)


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

    def fails(match, *given, error=ValueError, model=None):
        with pytest.raises(error, match=match):
            distributed.fit(model or make_model(), *given, client=client)

    fails("X must be a dask .* got ndarray", rows[0], y, error=TypeError)
    fails("y must be a dask array .* got ndarray", X, rows[1], error=TypeError)
    fails("y must be given", X, None)
    fails("'kind', and X has columns", frame, "kind")
    fails("'label', and X has columns \\[\\]", X, "label")
    fails("y has 599 entries and X has 600", X, y[:-1])
    fails("fidelity has 2 partitions and X has 7", frame[["a"]], label, fidelity.rechunk(300))
    fails("not numeric: level", frame, "label")
    fails("two dimensions.* got Array of shape", X[:, 0], y, error=TypeError)
    fails("no rows", X[:0], y[:0])
    fails("one class only", X, y, fidelity, weight * 0 + (y == "no"))
    fails("contains NaN", da.where(X > 0.9, np.nan, X), y)
    fails("n_tuning=None", X, y, model=make_model(n_tuning=None))
    fails("fidelity_feature", X, y, model=make_model(fidelity_feature=0))


def test_without_a_client_the_error_says_how_to_get_one(rows, monkeypatch):
    monkeypatch.setattr(
        cluster_module, "default_client", lambda: (_ for _ in ()).throw(ValueError())
    )
    with pytest.raises(ValueError, match=r"distributed\.Client\("):
        distributed.fit(make_model(), *as_arrays(rows))


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def in_thread(function, *args):
    """Call in a thread that ends: a limit of threads is ruled by the one that set it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="BLAS has one thread anyway")
def test_threads_of_blas_are_one_while_any_task_is_at_work():
    before = max(blas_threads())
    in_thread(threadpool_limits, 2, "blas")
    limit = cluster_module.BlasLimit()
    try:
        limit.__enter__()
        in_thread(limit.__enter__)
        limit.__exit__()
        assert blas_threads() == {1}
        in_thread(limit.__exit__)
        assert blas_threads() == {2}
    finally:
        in_thread(threadpool_limits, before, "blas")
