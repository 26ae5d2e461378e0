"""Many rows behind the estimator: inducing points, rows in blocks, plans, warm starts."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

import polyfid
from polyfid import ArrayBlocks, MultiFidelityClassifier, model_files
from polyfid.datasets import make_cokriging
from polyfid.estimator import fitted as estimator_fitted
from polyfid.estimator.levels import FidelityArray
from polyfid.kernels import RBF, Categorical, Linear
from polyfid.learning import sparse as learning_sparse
from polyfid.learning import structures
from polyfid.learning.plan import EXACT_ROWS, Options, make_plan
from polyfid.rows.source import one_blas_thread


@pytest.fixture(scope="module")
def data():
    return make_cokriging(400, 80, 2, n_test=400, labels="sigmoid", random_state=3)


def sparse(**changes):
    given = {"kernel": 3.0 * RBF(0.8), "n_inducing": (60, 30), "random_state": 0}
    return MultiFidelityClassifier(**{**given, **changes})


def fitted(data, **changes):
    return sparse(**changes).fit(data.data, data.target, fidelity=data.fidelity)


def log_loss(model, data):
    p = model.predict_proba(data.test_data)[:, 1]
    return -np.mean(np.log(np.where(data.test_target == 1, p, 1.0 - p)))


def assert_same(a, b, data, atol=0.0):
    """Two models predict the same."""
    found, expected = (m.predict_proba(data.test_data[:, : m.n_features_in_]) for m in (a, b))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=atol)


def test_as_many_inducing_points_as_rows_are_exact(data):
    rows = slice(320, 480)
    X, y, fidelity = data.data[rows], data.target[rows], data.fidelity[rows]
    given = {"kernel": 3.0 * RBF(0.8), "inference": "variational", "optimizer": None}
    exact = MultiFidelityClassifier(**given, n_inducing=None).fit(X, y, fidelity=fidelity)
    many = MultiFidelityClassifier(**given, n_inducing=160).fit(X, y, fidelity=fidelity)
    assert_same(many, exact, data, 1e-6)
    value = exact.log_marginal_likelihood_value_
    assert many.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-6)


def test_inducing_points_come_near_exact_inference(data):
    model = fitted(data)
    exact = fitted(data, n_inducing=None, inference="variational")
    assert log_loss(model, data) < log_loss(exact, data) + 0.01
    assert model.converged_
    assert "60 + 30 inducing points" in str(model.report_)
    bounds = model._fits[0].inference.bounds
    assert len(bounds) >= 2
    assert bounds[-1] == pytest.approx(model.log_marginal_likelihood_value_)


def test_points_that_may_move_say_more(data):
    given = {"n_inducing": (8, 4), "standardize": False}
    still, moved = (fitted(data, refine_inducing=refine, **given) for refine in (False, True))
    gain = moved.log_marginal_likelihood_value_ - still.log_marginal_likelihood_value_
    assert gain > 10.0
    rows = set(map(tuple, data.data.tolist()))
    for model, at_rows in ((still, 12), (moved, 0)):
        points = np.concatenate(model._fits[0].sparse.inducing.z).tolist()
        assert sum(tuple(point) in rows for point in points) == at_rows
    assert moved.converged_
    # A fit that goes on does so with the points that it has.
    before = moved._fits[0].sparse.inducing
    moved.set_params(warm_start=True).fit(data.data, data.target, fidelity=data.fidelity)
    for a, b in zip(before.z, moved._fits[0].sparse.inducing.z, strict=True):
        np.testing.assert_array_equal(a, b)


def test_points_stay_among_the_categories():
    rng = np.random.RandomState(0)
    X = np.column_stack([rng.normal(size=300), rng.randint(0, 4, 300)])
    y = (np.sin(2.0 * X[:, 0]) + (X[:, 1] == 2) + 0.3 * rng.normal(size=300) > 0.3).astype(int)
    kernel = 2.0 * RBF(columns=(0,)) * Categorical(columns=(1,))
    model = MultiFidelityClassifier(kernel, n_inducing=12, standardize=False).fit(X, y)
    (z,) = model._fits[0].sparse.inducing.z
    assert not set(z[:, 0]) & set(X[:, 0])
    assert set(z[:, 1]) <= {0.0, 1.0, 2.0, 3.0}


def test_order_repeats_and_threads_do_not_matter(data):
    X, y, fidelity = data.data, data.target, data.fidelity

    def fit(rows, **given):
        model = sparse(optimizer=None, n_jobs=given.pop("n_jobs", None))
        return model.fit(X[rows], y[rows], fidelity=fidelity[rows], **given)

    order = np.arange(len(X))
    one = fit(order)
    assert_same(one, fit(np.random.RandomState(0).permutation(order)), data, 1e-10)
    twice, weighted = fit(np.tile(order, 2)), fit(order, sample_weight=np.full(len(X), 2.0))
    assert_same(twice, weighted, data, 1e-10)
    assert_same(fit(order, n_jobs=2), fit(order, n_jobs=1), data)


def test_a_warm_start_goes_on_from_the_same_columns_only(data):
    frame = pd.DataFrame(data.data, columns=["a", "b"])
    model = sparse(warm_start=True, optimizer=None)
    model.fit(frame, data.target, fidelity=data.fidelity)
    with pytest.warns(UserWarning, match="began anew"):
        model.fit(frame[["b", "a"]], data.target, fidelity=data.fidelity)


@pytest.mark.parametrize("n_inducing", [None, (60, 30)])
def test_threads_of_blas_change_no_bit(data, n_inducing):
    X = np.random.RandomState(0).uniform(size=(6000, data.data.shape[1]))
    rows = slice(7, None)  # sums of 473 terms come in unequal halves

    def answers(n_threads):
        with threadpool_limits(n_threads, "blas"):
            model = sparse(n_inducing=n_inducing, max_iter=2, n_jobs=1)
            model.fit(data.data[rows], data.target[rows], fidelity=data.fidelity[rows])
            return model.predict_proba(X)

    with pytest.warns(ConvergenceWarning):
        one, two = answers(1), answers(2)
    assert np.array_equal(one, two)


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_blas_has_one_thread_wherever_it_is_limited_and_the_last_one_out_lifts_the_limit():
    def limited():
        with one_blas_thread():
            return blas_threads()

    with threadpool_limits(2, "blas"):
        assert in_thread(limited) == {1}
        assert blas_threads() == {2}
        with ThreadPoolExecutor(1) as pool:
            other = one_blas_thread()
            with one_blas_thread():
                pool.submit(other.__enter__).result()
            assert blas_threads() == {1}
            pool.submit(other.__exit__, None, None, None).result()
        assert blas_threads() == {2}


def test_an_interrupt_just_before_the_end_of_a_limit_does_not_make_it_permanent():
    with threadpool_limits(2, "blas"):
        cut = one_blas_thread()
        cut.__enter__()
        assert blas_threads() == {1}
        del cut
        assert blas_threads() == {2}


@pytest.mark.parametrize("n_rows", [100, 480])
def test_blocks_say_what_rows_in_memory_say(data, n_rows):
    blocks = ArrayBlocks(data.data, data.target, data.fidelity, rows=n_rows)
    streamed = sparse().fit_blocks(blocks)
    model = fitted(data)
    assert streamed.levels_ == model.levels_
    np.testing.assert_array_equal(streamed.report_.counts, model.report_.counts)
    # The sample to tune on is all rows in both cases, the inducing points are not the same.
    assert log_loss(streamed, data) == pytest.approx(log_loss(model, data), abs=0.02)


def test_blocks_from_memory_maps_and_functions(data, tmp_path):
    arrays = (data.data, data.target, data.fidelity)
    for i, values in enumerate(arrays):
        np.save(tmp_path / f"{i}.npy", values)
    maps = [np.load(tmp_path / f"{i}.npy", mmap_mode="r") for i in range(3)]

    def read():
        for rows in (slice(300), slice(300, 480)):
            yield tuple(values[rows] for values in arrays)

    mapped = sparse(optimizer=None).fit_blocks(ArrayBlocks(*maps, rows=300))
    assert_same(mapped, sparse(optimizer=None).fit_blocks(read), data)


def test_levels_and_classes_may_be_missing_from_blocks(data):
    names = np.array(["crowd", "expert"])[data.fidelity]
    labels = np.array(["no", "yes"])[data.target]
    order = np.argsort(data.target, kind="stable")
    blocks = [(data.data[rows], labels[rows], names[rows]) for rows in np.array_split(order, 4)]
    model = sparse(optimizer=None, levels=["crowd", "expert"]).fit_blocks(
        [*blocks, (np.empty((0, 2)), [], [])]
    )
    assert model.levels_ == ("crowd", "expert")
    assert model.classes_.tolist() == ["no", "yes"]
    assert log_loss(model, data) < 0.6


def test_blocks_whose_levels_have_no_order_are_refused_with_the_counts_of_all(data):
    names = np.array(["crowd", "expert"])[data.fidelity]
    n_crowd, n_expert = np.bincount(data.fidelity)
    for order in (np.arange(len(names)), np.argsort(names)):  # levels mixed, or one after the other
        rows = np.array_split(order, 4)
        blocks = [(data.data[r], data.target[r], names[r]) for r in rows]
        words = rf"'crowd' \({n_crowd} rows\), 'expert' \({n_expert} rows\)"
        with pytest.raises(ValueError, match=rf"{words}.* levels=\['crowd', 'expert'\]"):
            sparse(optimizer=None).fit_blocks(blocks)
    ordered = [(X, y, FidelityArray(f, ("crowd", "expert"))) for X, y, f in blocks]
    assert sparse(optimizer=None).fit_blocks(ordered).levels_ == ("crowd", "expert")


def test_weights_in_blocks(data):
    X, y, fidelity = data.data, data.target, data.fidelity
    half = np.arange(len(X)) % 2 == 0
    blocks = ArrayBlocks(X, y, fidelity, half.astype(float), rows=200)
    weighted = sparse(optimizer=None).fit_blocks(blocks)
    alone = sparse(optimizer=None).fit_blocks([(X[half], y[half], fidelity[half])])
    assert weighted.report_.counts.sum() == half.sum()
    assert log_loss(weighted, data) == pytest.approx(log_loss(alone, data), abs=0.02)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ((b for b in []), "several times"),
        (3, "several times"),
        ([], "no rows"),
        ([np.zeros((3, 2))], "block 0 must be"),
        ([(np.zeros((3, 2)), [0, 1])], "equal length"),
        ([(np.zeros((3, 2)), [0, 0, 0])], "one class only"),
        ([(np.zeros((2, 2)), [0, 1]), (np.zeros((2, 3)), [0, 1])], "features"),
        ([(np.full((2, 2), np.nan), [0, 1])], "NaN"),
    ],
)
def test_blocks_that_cannot_be_used(blocks, words):
    with pytest.raises(ValueError, match=words):
        sparse().fit_blocks(blocks)


def test_blocks_that_change_are_noticed(data):
    labels = [["a", "b"], ["a", "c"]]

    def read():
        yield data.data[:2], labels[0]
        labels.reverse()

    with pytest.raises(ValueError, match="whenever they are read"):
        sparse(optimizer=None, n_inducing=2).fit_blocks(read)


def test_blocks_that_lose_rows_are_noticed(data):
    X, y, fidelity = data.data, data.target, data.fidelity
    readings = []

    def blocks():
        readings.append(0)
        rows = slice(0 if len(readings) == 1 else 50, 480)
        return iter([(X[rows], y[rows], fidelity[rows])])

    with pytest.raises(ValueError, match="block 0 has 430 rows, and had 480 when it was first"):
        sparse(optimizer=None).fit_blocks(blocks)


def test_blocks_of_text_and_of_numbers_are_refused(data):
    X, y, fidelity = data.data, data.target, data.fidelity
    blocks = [(X[:200], y[:200].astype(int), fidelity[:200])]
    blocks += [(X[200:], y[200:].astype(int).astype(str), fidelity[200:])]
    with pytest.raises(ValueError, match="y holds text in some blocks and numbers in others"):
        sparse(optimizer=None).fit_blocks(blocks)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fidelity_feature": 0}, "beside X"),
        ({"label_noise": "annotator"}, "in memory"),
        ({"n_tuning": None}, "all rows"),
        ({"inference": "laplace"}, "variational"),
        ({"n_inducing": None}, "n_inducing=None"),
    ],
)
def test_parameters_that_blocks_cannot_have(data, changes, words):
    with pytest.raises(ValueError, match=words):
        sparse(**changes).fit_blocks(ArrayBlocks(data.data, data.target, data.fidelity))


@pytest.mark.parametrize("n_inducing", [0, -1, 2.5, "many", (10,), (10, 0), [10, 10, 10]])
def test_numbers_of_inducing_points_that_make_no_sense(data, n_inducing):
    with pytest.raises(ValueError, match="n_inducing must be"):
        fitted(data, n_inducing=n_inducing)


def test_rows_to_tune_on_by_level(data):
    model = fitted(data, n_tuning={0: 200, 1: 50})
    assert model._fits[0].tuned_on == 250
    assert "on 250 of 480 rows" in str(model.report_)
    with pytest.raises(ValueError, match="unknown level 'x'"):
        fitted(data, n_tuning={"x": 3})


def test_the_default_learns_a_structure_for_many_rows(data):
    model = MultiFidelityClassifier(n_inducing=(40, 20), n_tuning=300, random_state=0)
    model.fit(data.data, data.target, fidelity=data.fidelity)
    assert len(model.structures_) == 1
    assert "only the leading one is kept" in str(model.report_)
    assert log_loss(model, data) < 0.55


@pytest.mark.slow
def test_noisy_labels_and_sources_without_order(data):
    for changes in ({"label_noise": "fidelity"}, {"coupling": "coregional"}):
        model = fitted(data, **changes, n_tuning=300)
        assert log_loss(model, data) < 0.65


def test_an_interrupted_fit_goes_on(data, tmp_path):
    blocks = ArrayBlocks(data.data, data.target, data.fidelity, rows=200)
    whole = sparse(optimizer=None).fit_blocks(blocks)
    first, steps = sparse(optimizer=None, warm_start=True), []

    def stop(step):
        steps.append(step)
        if step.done == 2:
            raise KeyboardInterrupt

    path = tmp_path / "first.polyfid"
    with pytest.raises(KeyboardInterrupt):
        first.fit_blocks(blocks, checkpoint=path, callback=stop)
    assert [step.done for step in steps] == [0, 1, 2]
    assert {step.stage for step in steps} == {"passes"}
    assert steps[1].value < steps[2].value <= whole.log_marginal_likelihood_value_ + 1e-6
    assert not hasattr(first, "report_")
    saved = polyfid.load(path)
    assert not saved.converged_
    assert log_loss(saved, data) == pytest.approx(log_loss(whole, data), abs=0.05)
    for model in (first, saved.set_params(warm_start=True)):
        model.fit_blocks(blocks)
        assert model.converged_
        assert len(model._fits[0].inference.bounds) < len(whole._fits[0].inference.bounds)
        assert_same(model, whole, data, 2e-3)


def count_tuning(model, blocks, **given):
    """Fit, and return the number of passes over the tuning sample."""
    stages = []
    model.fit_blocks(blocks, callback=lambda step: stages.append(step.stage), **given)
    return stages.count("tuning")


def stop_tuning_at(share, passes):
    """A callback that interrupts a fit when it has done a share of its tuning passes."""

    def stop(step):
        assert step.stage == "tuning"
        if step.done >= share * passes:
            raise KeyboardInterrupt

    return stop


@pytest.mark.parametrize(
    "share",
    [pytest.param(0.0, marks=pytest.mark.slow), 0.5, pytest.param(0.9, marks=pytest.mark.slow)],
)
def test_a_fit_that_is_interrupted_while_it_is_tuned_goes_on(data, tmp_path, monkeypatch, share):
    blocks = ArrayBlocks(data.data, data.target, data.fidelity, rows=200)
    monkeypatch.setattr(estimator_fitted, "SAVE_EVERY", 0.0)
    whole, path = sparse(kernel="auto"), tmp_path / "first.polyfid"
    passes = count_tuning(whole, blocks)
    first = sparse(kernel="auto", warm_start=True)
    with pytest.raises(KeyboardInterrupt):
        first.fit_blocks(blocks, checkpoint=path, callback=stop_tuning_at(share, passes))
    assert not hasattr(first, "report_")
    monkeypatch.setattr(learning_sparse, "lead", Mock(side_effect=AssertionError("searched again")))
    for model in (first, polyfid.load(path).set_params(warm_start=True)):
        assert count_tuning(model, blocks) <= (1.0 - share) * passes + 12
        assert model.converged_
        assert [s.name for s in model.structures_] == [s.name for s in whole.structures_]
        gain = model.log_marginal_likelihood_value_ - whole.log_marginal_likelihood_value_
        assert gain > -0.5
        assert_same(model, whole, data, 0.05)


def test_few_rows_do_not_say_that_levels_are_the_same():
    x = np.random.RandomState(0).uniform(-2.0, 2.0, (460, 1))
    y, fidelity = (x[:, 0] > 0.0).astype(int), np.repeat([0, 1], [400, 60])
    whole = MultiFidelityClassifier(random_state=0).fit(x, y, fidelity=fidelity)
    assert any(structures.LINKS["same"] in s.name for s in whole.structures_)
    model = MultiFidelityClassifier(n_inducing=20, random_state=0).fit(x, y, fidelity=fidelity)
    links = [words for link, words in structures.LINKS.items() if link != "linked"]
    assert not any(link in model.structures_[0].name for link in links)


def test_tuning_is_saved_when_that_takes_little_of_the_time(data, tmp_path, monkeypatch):
    blocks = ArrayBlocks(data.data, data.target, data.fidelity, rows=200)
    written, write = [], model_files.write

    def count(*given):
        written.append(given)
        write(*given)

    monkeypatch.setattr(model_files, "write", count)
    monkeypatch.setattr(estimator_fitted, "SAVE_EVERY", np.inf)
    steps = []
    model = sparse().fit_blocks(blocks, checkpoint=tmp_path / "c", callback=steps.append)
    assert model.converged_
    assert len(written) == 1 + sum(step.stage == "passes" for step in steps)
    assert steps[0].stage == "tuning"
    assert steps[0].done == 0
    assert all(len(step.checkpoint) == 1 for step in steps)


@pytest.mark.slow
def test_an_interrupt_while_a_later_class_is_tuned(data):
    y = data.target + (data.data[:, 0] > 0.5)
    blocks = ArrayBlocks(data.data, y, data.fidelity, rows=200)
    model, begun = sparse(warm_start=True, max_iter=20), []

    def stop(step):
        begun.append(step.class_index)
        if step.class_index == 1 and step.stage == "tuning" and step.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit_blocks(blocks, callback=stop)
    before = begun.count(0)
    begun.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of few iterations
        model.fit_blocks(blocks, callback=lambda step: begun.append(step.class_index))
    assert begun.count(0) < before
    assert len(model._mixtures) == 3


@pytest.mark.parametrize(
    ("changes", "n_columns", "goes_on"),
    [
        ({"kernel": 1.0 * Linear(), "n_inducing": 5, "standardize": False}, 2, False),
        ({"inference": "variational"}, 2, False),
        ({"n_jobs": 1, "max_iter": 10, "tol": 1e-4}, 2, True),
        ({}, 1, False),
    ],
)
def test_a_warm_start_goes_on_from_a_fit_that_is_alike(data, changes, n_columns, goes_on):
    model = fitted(data, optimizer=None, warm_start=True)
    model.set_params(**changes)
    X = data.data[:, :n_columns]
    if goes_on:
        model.fit(X, data.target, fidelity=data.fidelity)
        assert len(model._fits[0].inference.bounds) == 1
        assert not model.report_.notes
        return
    with pytest.warns(UserWarning, match="warm_start: .*began anew"):
        model.fit(X, data.target, fidelity=data.fidelity)
    assert "began anew" in str(model.report_)
    anew = clone(model).set_params(warm_start=False).fit(X, data.target, fidelity=data.fidelity)
    assert [repr(k) for k in model.kernels_] == [repr(k) for k in anew.kernels_]
    assert_same(model, anew, data, 1e-9)


def test_verbose_tells_plan_and_passes(data, capsys):
    fitted(data, optimizer=None, verbose=1)
    told = capsys.readouterr().out
    assert "inducing points, about" in told
    assert "pass 1, bound" in told


def plan(counts, in_memory=True, **options):
    given = Options(len(counts), 2, rho=(1.0,) * (len(counts) - 1), **options)
    return make_plan(given, counts, 5, in_memory)


def test_plans():
    assert plan([225, 75]).n_inducing is None
    assert plan([10**6, 10**4], n_inducing=None).n_inducing is None
    assert plan([225, 75], n_inducing=100).n_inducing == (100, 75)
    assert plan([225, 75], n_inducing=(7, 8)).n_inducing == (7, 8)
    assert plan([10**6, 10**4], mean=None).n_inducing == (500, 500)
    large = plan([10**6, 10**4])  # trees carry the bulk of the first level
    assert large.n_inducing == (500, 500)
    assert large.n_boosted == (100, 500)
    assert large.exact.memory > 1e12
    assert large.sparse.memory < 1e9
    assert "inducing points" in str(large)
    assert plan([10**5, 100], inference="laplace", may_choose=False).n_inducing is None
    assert plan([225, 75], in_memory=False).n_inducing is not None
    # The cost depends on the rows to tune on.
    costs = [plan([9000], n_tuning=n) for n in (100, 3000, None)]
    assert costs[0].exact.operations < costs[1].exact.operations < costs[2].exact.operations
    assert costs[0].sparse.operations < costs[2].sparse.operations
    assert plan([9000, 100], n_tuning=(50, None)).exact.operations < 1e12 * 20


@pytest.mark.parametrize("n_levels", [1, 2, 5])
@pytest.mark.parametrize("n_tuning", ["auto", 100, None])
def test_the_plan_depends_on_the_number_of_rows_alone(n_levels, n_tuning):
    for n in range(500, 12_000, 500):
        planned = plan([n // n_levels] * n_levels, n_tuning=n_tuning)
        assert (planned.n_inducing is None) == (n <= EXACT_ROWS)


def test_blocks_of_arrays_are_checked():
    with pytest.raises(ValueError, match="y has 2 entries"):
        ArrayBlocks(np.zeros((3, 1)), [0, 1])
    with pytest.raises(ValueError, match="rows must be"):
        ArrayBlocks(np.zeros((3, 1)), [0, 1, 1], rows=0)
    assert len(ArrayBlocks(np.zeros((3, 1)), [0, 1, 1], rows=2)) == 2


def test_rows_that_are_kept_stand_for_all(data, monkeypatch):
    model = fitted(data, optimizer=None)
    # All rows were few enough to be kept.
    value = model.log_marginal_likelihood(model.theta_)
    assert value == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-6)
    monkeypatch.setattr("polyfid.learning.sparse.N_KEPT", 100)
    fit = fitted(data, optimizer=None, n_tuning=200)._fits[0]
    assert len(fit.posterior.points) == 100
    weights = np.bincount(fit.posterior.points.level, fit.likelihood.weight)
    np.testing.assert_allclose(weights, [400, 80])


def test_displays_of_many_rows(data):
    pytest.importorskip("matplotlib")
    from polyfid.plots import DiscrepancyDisplay, TrustDisplay

    few = {"optimizer": None, "inference": "variational"}
    models = [fitted(data, **few, n_inducing=None), fitted(data, **few)]
    exact, sparse = (TrustDisplay.from_estimator(m).contributions for m in models)
    np.testing.assert_allclose(sparse, exact, atol=0.03)
    exact, sparse = (
        DiscrepancyDisplay.from_estimator(m, data.data[:50], grid_resolution=5) for m in models
    )
    np.testing.assert_allclose(sparse.probability, exact.probability, atol=0.05)
