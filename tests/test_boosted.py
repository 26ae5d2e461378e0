"""A boosted mean: trees as arrays, margins out of fold, and fits that go on from them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, roc_auc_score
from tolerances import IDENTITY

from polyfid import MultiFidelityClassifier, load
from polyfid.arrays import hash_rows
from polyfid.datasets import make_rough
from polyfid.inference.inducing import SparseBelief
from polyfid.kernels import RBF
from polyfid.learning.boosted import Boosting, boost
from polyfid.learning.evidence import SparseEvidence
from polyfid.learning.left_out import Part, average_parts, expected_labels
from polyfid.learning.plan import Options, Target
from polyfid.learning.search import leave_one_out
from polyfid.model.trees import BLOCK, BoostedMean, Margin, Trees, Turn
from polyfid.rows import Rows
from polyfid.rows.source import LabelledPoints

CLASSES = Target(1, 2, 2, None)
#: A fit that is over soon, and short of steps.
QUICK = {"random_state": 0, "max_iter": 4, "n_tuning": 300, "n_inducing": 20}
pytestmark = [
    pytest.mark.xdist_group("boosted"),  # fixtures are dear
    pytest.mark.filterwarnings("ignore:.*tuning stopped early"),
]


@pytest.fixture(scope="module")
def made():
    return make_rough(2600, 300, 2, n_test=2000, random_state=0)


@pytest.fixture(scope="module")
def rows(made):
    return Rows.of(made.data, made.fidelity, made.target)


@pytest.fixture(scope="module")
def boosting(rows):
    return boost(rows, (0,), CLASSES)


@pytest.fixture(scope="module")
def model(made):
    model = MultiFidelityClassifier(**{**QUICK, "n_inducing": 100, "max_iter": 10}, mean="boosted")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(made.data, made.target, fidelity=made.fidelity)


def test_trees_are_those_of_scikit_learn_to_the_bit():
    rng = np.random.RandomState(0)
    x = rng.standard_normal((2 * BLOCK + 7, 3)).round(1)
    booster = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=9)
    booster.fit(x[:600], x[:600, 0] * x[:600, 1] > 0.1)
    trees = Trees.of(booster)
    trees.check(3)
    np.testing.assert_array_equal(trees(x), booster.decision_function(x))
    np.testing.assert_array_equal(trees(x[5:8]), booster.decision_function(x)[5:8])


def broken(trees, **changes):
    columns = {}
    for name, (place, value) in changes.items():
        columns[name] = getattr(trees, name).copy()
        columns[name][place] = value
    return replace(trees, **columns)


def test_arrays_that_are_no_trees_are_refused(boosting):
    trees = boosting.mean.margins[0].folds[0]
    inner = int(np.flatnonzero(trees.feature >= 0)[3])
    wrong = [
        broken(trees, left=(inner, 0)),  # a cycle
        broken(trees, right=(inner, 10**6)),
        broken(trees, left=(inner, -1)),
        broken(trees, feature=(inner, 2)),
        broken(trees, threshold=(inner, np.nan)),
        broken(trees, value=(0, np.inf)),
        broken(trees, sizes=(0, trees.sizes[0] + 1)),
        broken(trees, sizes=(0, 0)),
        replace(trees, value=trees.value[:-1]),
        replace(trees, baseline=np.nan),
        replace(trees, turn=Turn(np.zeros(2), np.full((2, 1), np.nan))),
        replace(trees, turn=Turn(np.zeros(3), np.zeros((3, 1)))),
    ]
    for other in wrong:
        with pytest.raises(ValueError, match="trees"):
            other.check(2)
    wrong = (Margin(2, (trees,), 5), Margin(0, (), 5), Margin(0, (trees, trees), 1))
    for margins in ((), *((margin,) for margin in wrong), (Margin(0, (trees,), 5),) * 2):
        with pytest.raises(ValueError, match="margin"):
            BoostedMean(margins).check(2, 2)


def test_rows_get_the_margin_of_trees_that_have_not_learnt_from_them(rows, boosting):
    (margin,) = boosting.mean.margins
    low = rows.x[rows.level == 0]
    fold = (hash_rows(low) % np.uint64(len(margin.folds))).astype(int)
    for k, trees in enumerate(margin.folds):
        np.testing.assert_array_equal(boosting.margins(low)[fold == k, 0], trees(low[fold == k]))
    high = rows.x[rows.level == 1]
    average = np.mean([trees(high) for trees in margin.folds], axis=0)
    np.testing.assert_allclose(boosting.margins(high)[:, 0], average, rtol=IDENTITY)
    np.testing.assert_array_equal(boosting.mean(high), boosting.margins(high))
    # A trusted row that repeats a cheap one was learnt from, by its cheap label.
    np.testing.assert_array_equal(boosting.margins(low[:5]), boosting.margins(low)[:5])


def test_margins_of_tossed_labels_say_nothing_of_them():
    rng = np.random.RandomState(0)
    tossed = Rows.of(rng.standard_normal((4000, 2)), np.zeros(4000, int), rng.randint(2, size=4000))
    margin = boost(tossed, (0,), CLASSES).margins(tossed.x)[:, 0]
    assert abs(roc_auc_score(tossed.y, margin) - 0.5) < 0.04
    assert np.abs(margin).mean() < 0.3


def step_like(n_low=3000, n_high=1200, seed=0):
    """Rows whose trusted labels differ from the cheap ones beyond a step of the second column."""
    rng = np.random.RandomState(seed)
    x, level = rng.uniform(size=(n_low + n_high, 3)), np.repeat([0, 1], [n_low, n_high])
    f = 6.0 * (x[:, 0] - 0.5) + np.where((level == 1) & (x[:, 1] > 0.7), 4.0, 0.0)
    return Rows.of(x, level, (rng.uniform(size=len(x)) < expit(f)).astype(int)), expit(f)


def test_trees_of_a_level_correct_those_below_it():
    rows, _ = step_like()
    boosting = boost(rows, (0, 1), CLASSES)
    low, high = boosting.mean.margins
    assert (low.corrects, high.corrects) == (False, True)
    boosting.mean.check(2, 3)
    with pytest.raises(ValueError, match="none below"):
        BoostedMean((high,)).check(2, 3)
    # Out of fold: the trees of a row's fold, at the log-odds by the trees of the level below.
    x = rows.x[rows.level == 1]
    margins = boosting.margins(x)
    fold = (hash_rows(x) % np.uint64(len(high.folds))).astype(int)
    for k, trees in enumerate(high.folds):
        here = fold == k
        seen = np.column_stack([x[here], margins[here, 0]])
        expected = trees(seen) - margins[here, 0]
        np.testing.assert_array_equal(margins[here, 1], expected)
    np.testing.assert_array_equal(boosting.log_odds(x), margins.sum(axis=1))
    step = x[:, 1] > 0.7
    assert margins[step, 1].mean() > margins[~step, 1].mean() + 1.0
    new, truth = step_like(100, 3000, seed=1)
    new, truth = new.x[new.level == 1], truth[new.level == 1]
    alone, both = boosting.mean(new)[:, 0], boosting.mean.log_odds(new)
    assert expected_loss(expit(both), truth) < expected_loss(expit(alone), truth) - 0.1
    np.testing.assert_array_equal(boosting.mean.log_odds(new), boosting.mean(new).sum(axis=1))


def test_corrections_of_tossed_labels_say_nothing_of_them():
    rng = np.random.RandomState(1)
    tossed = Rows.of(
        rng.standard_normal((4000, 2)), np.repeat([0, 1], [2000, 2000]), rng.randint(2, size=4000)
    )
    boosting, high = boost(tossed, (0, 1), CLASSES), tossed.level == 1
    correction = boosting.margins(tossed.x[high])[:, 1]
    assert abs(roc_auc_score(tossed.y[high], correction) - 0.5) < 0.05


def test_a_top_level_of_many_rows_has_trees_above_those_of_another_level():
    options = Options(2, 2)
    assert options.large_levels((5000, 999)) == (0,)
    assert options.large_levels((5000, 1000)) == (0, 1)
    assert options.large_levels((900, 1500)) == ()
    assert options.large_levels((900, 30_000)) == (1,)


def test_the_same_trees_again_give_the_same_margins(rows, boosting):
    again = Boosting.of(boosting.mean, rows)
    np.testing.assert_array_equal(again.extend(rows).margin, boosting.margins(rows.x))


def test_trees_do_not_depend_on_the_threads(rows, boosting, monkeypatch):
    monkeypatch.setattr("polyfid.learning.boosted.joblib.cpu_count", lambda: 3)
    np.testing.assert_array_equal(boost(rows, (0,), CLASSES).mean(rows.x), boosting.mean(rows.x))


def test_levels_without_enough_rows_of_both_classes_get_no_trees(rows):
    one_class = replace(rows, y=np.zeros_like(rows.y))
    assert boost(one_class, (0,), CLASSES) is None
    assert boost(rows, (), CLASSES) is None
    # Of two different points there are five folds, most of them empty.
    few = replace(rows, x=(rows.x[:, :1] > 0.0).astype(float))
    assert boost(few, (0,), CLASSES) is None


def test_a_fit_of_many_rows_has_a_boosted_mean(made, model):
    (mixture,), report = model._mixtures, str(model.report_)
    assert mixture.mean.levels == (0,)
    assert mixture.best.boosted
    assert model.structures_[0].name.startswith("boosted trees")
    assert "boosted trees carry the bulk of 0" in report
    assert "linear on the trees of 0" in report
    assert model.rho_[0] > 0.5
    q = made.test_probability
    assert expected_loss(model.predict_proba(made.test_data)[:, 1], q) < expected_loss(q, q) + 0.1


@pytest.mark.slow
def test_with_and_without_trees_are_averaged_where_rows_are_few(made):
    losses, q = [], made.test_probability
    for mean in ("auto", "boosted", None):
        model = MultiFidelityClassifier(random_state=0, mean=mean)
        model.fit(made.data, made.target, fidelity=made.fidelity)
        assert sum(s.weight for s in model.structures_) == pytest.approx(1.0)
        losses.append(expected_loss(model.predict_proba(made.test_data)[:, 1], q))
    assert losses[0] < min(losses[1:]) + 0.003


def test_weights_are_those_under_which_labels_left_out_are_most_probable(model):
    (mixture,) = model._mixtures
    better, worse = np.array([0.9, 0.8, 0.9, 0.7]), np.full(4, 0.4)
    plain = replace(
        mixture, members=(replace(mixture.best, boosted=False, name="plain"),), mean=None
    )

    def part(of, p):
        return Part(of, np.log(p), np.array([0, 0, 1, 1]), np.ones(4), np.ones(4))

    both = [part(mixture, better), part(plain, worse)]
    assert average_parts(*both) is mixture
    assert average_parts(*both[::-1]) is mixture
    alike = average_parts(part(mixture, better[[0, 3, 0, 3]]), part(plain, better[[3, 0, 3, 0]]))
    np.testing.assert_allclose(alike.weights, 0.5, atol=1e-3)
    assert alike.mean is mixture.mean
    mostly = average_parts(part(mixture, [0.2, 0.9, 0.9, 0.9]), part(plain, [0.9, 0.2, 0.2, 0.2]))
    assert mostly.best.boosted
    assert 0.5 < mostly.best.weight < 1.0


def expected_loss(p, q):
    return -float(np.mean(q * np.log(p) + (1.0 - q) * np.log1p(-p)))


def test_a_boosted_model_is_kept_in_a_file(made, model, tmp_path):
    model.save(tmp_path / "model.polyfid")
    again = load(tmp_path / "model.polyfid")
    for method in ("predict_proba", "latent_mean_and_variance", "predict_log_proba"):
        ours, theirs = (getattr(m, method)(made.test_data) for m in (model, again))
        np.testing.assert_array_equal(ours, theirs)
    mean, covariance = model.latent_mean_and_covariance(made.test_data[:5])
    np.testing.assert_allclose(mean, model.latent_mean_and_variance(made.test_data[:5])[0])
    assert covariance.shape == (5, 5)
    assert model.sample_latent(made.test_data[:4], 3, random_state=0).shape == (4, 3)


def test_a_given_kernel_leaves_trees_out(made):
    model = MultiFidelityClassifier(1.0 * RBF(), **QUICK)
    model.fit(made.data, made.target, fidelity=made.fidelity)
    assert model._mixtures[0].mean is None
    with pytest.raises(ValueError, match='kernel="auto"'):
        model.set_params(mean="boosted").fit(made.data, made.target, fidelity=made.fidelity)
    with pytest.raises(ValueError, match="mean must be one of"):
        model.set_params(mean="trees").fit(made.data, made.target, fidelity=made.fidelity)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gain", "weight"), [(None, None), (100.0, 1.0), (-100.0, 0.0), (0.0, 0.5)]
)
def test_small_fits_are_boosted_where_labels_expect_it(monkeypatch, gain, weight):
    rng = np.random.RandomState(0)
    X, Z = rng.uniform(0, 6, (1300, 2)), rng.uniform(0, 6, (2000, 2))
    fidelity = (np.arange(len(X)) >= 1200).astype(int)
    y = rng.uniform(size=len(X)) < expit(X[:, 0] - 3.0)
    given = {"random_state": 0, "max_iter": 10, "inference": "laplace"}
    expected = iter([0.0, gain])
    if gain is not None:
        monkeypatch.setattr("polyfid.learning.search.leave_one_out", lambda fit: next(expected))
    model = MultiFidelityClassifier(**given).fit(X, y, fidelity=fidelity)
    assert sum(s.weight for s in model.structures_) == pytest.approx(1.0)
    if weight is not None:
        boosted = sum(s.weight for s in model.structures_ if "boosted" in s.name)
        assert boosted == pytest.approx(weight)
        assert (model._mixtures[0].mean is None) == (weight == 0.0)
        return
    plain = MultiFidelityClassifier(**given, mean=None).fit(X, y, fidelity=fidelity)
    q = expit(Z[:, 0] - 3.0)
    ours, theirs = (expected_loss(m.predict_proba(Z)[:, 1], q) for m in (model, plain))
    assert ours < theirs + 0.005


def test_labels_are_expected_from_all_others():
    """By its site a label is taken out of the posterior; a fit without the row agrees."""
    rng = np.random.RandomState(1)
    X = rng.standard_normal((40, 1))
    y = rng.uniform(size=40) < expit(2.0 * X[:, 0])
    given = {"inference": "ep", "optimizer": None, "standardize": False}
    fit = MultiFidelityClassifier(4.0 * RBF(), **given).fit(X, y)._fits[0]
    log_p = 0.0
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        model = MultiFidelityClassifier(4.0 * RBF(), **given).fit(X[others], y[others])
        log_p += model.predict_log_proba(X[i : i + 1])[0, int(y[i])]
    assert leave_one_out(fit) == pytest.approx(log_p, abs=0.02)


@pytest.mark.parametrize("n_inducing", [3, 8, 40])
def test_labels_of_sparse_fits_are_expected_from_all_others(n_inducing):
    """Without a label's site the posterior is that expected; one of the other rows is near it."""
    rng = np.random.RandomState(2)
    X, fidelity = rng.standard_normal((40, 1)), np.repeat([0, 1], 20)
    y = rng.uniform(size=40) < expit(2.0 * X[:, 0])
    given = {"optimizer": None, "standardize": False, "n_inducing": n_inducing}
    model = MultiFidelityClassifier(RBF() * 4.0, **given).fit(X, y, fidelity=fidelity)
    posterior, likelihood = model._fits[0].posterior, model._fits[0].likelihood
    points, belief = posterior.points, posterior.belief
    expected, Phi = expected_labels(posterior, points, likelihood), posterior.basis.features(points)
    mean, variance = posterior.mean_and_variance(points)
    _, first, second = likelihood.expectations(mean, variance)
    for i, phi in enumerate(Phi):
        own, label = points.take(slice(i, i + 1)), likelihood.take([i])

        def log_p(belief, own=own, label=label):
            return label.tilted(*replace(posterior, belief=belief).mean_and_variance(own)).log_z[0]

        w, nu = -second[i], first[i] - second[i] * (Phi[i] @ belief.mean)
        without = SparseBelief(belief.gram - w * np.outer(phi, phi), belief.linear - nu * phi)
        assert expected[i] == pytest.approx(log_p(without), rel=IDENTITY)
        others = np.delete(np.arange(len(points)), i)
        rows = LabelledPoints(points.take(others), likelihood.take(others))
        evidence = SparseEvidence(posterior.prior, rows, posterior.inducing, 1e-8)
        # Other sites are as they were: 40 rows are few, and each of them moves the others a little.
        again = log_p(evidence.fixed(evidence.theta)[1].belief)
        assert expected[i] == pytest.approx(again, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"label_noise": "fidelity"}, {"coupling": "coregional"}])
def test_trees_go_with_noise_and_other_couplings(made, changes):
    model = MultiFidelityClassifier(mean="boosted", **QUICK, **changes)
    model.fit(made.data, made.target, fidelity=made.fidelity)
    assert model._mixtures[0].best.boosted
    assert roc_auc_score(made.test_target, model.predict_proba(made.test_data)[:, 1]) > 0.6


@pytest.mark.slow
def test_three_classes_with_weights_have_trees_each(made):
    code = made.target + (made.data[:, 0] > 1.0)
    weight = np.random.RandomState(0).randint(1, 3, len(code))
    model = MultiFidelityClassifier(mean="boosted", **QUICK)
    model.fit(made.data, code, fidelity=made.fidelity, sample_weight=weight)
    assert [m.mean.levels for m in model._mixtures] == [(0,)] * 3
    p = model.predict_proba(made.test_data)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_blocks_give_what_rows_in_memory_give(made):
    """Where the sample holds all rows trees are alike but for the order of the rows."""
    blocks = [
        (made.data[i : i + 500], made.target[i : i + 500], made.fidelity[i : i + 500])
        for i in range(0, len(made.data), 500)
    ]
    model = MultiFidelityClassifier(**QUICK).fit_blocks(blocks)
    assert {member.boosted for member in model._mixtures[0].members} == {False, True}
    p = model.predict_proba(made.test_data)[:, 1]
    assert expected_loss(p, made.test_probability) < 0.55


def test_calibration_is_checked_on_rows_that_are_held_out_in_turn():
    made = make_rough(1500, 1400, 1, n_test=2000, random_state=0)
    model = MultiFidelityClassifier(**QUICK, mean="boosted")
    model.fit(made.data, made.target, fidelity=made.fidelity)
    checked = model._mixtures[0].calibration
    assert checked.n_rows == 1400
    assert f"probabilities are off by {checked.error:.3f}" in str(model.report_)
    p = model.predict_proba(made.test_data)[:, 1]
    assert checked.log_loss == pytest.approx(log_loss(made.test_target, p), abs=0.08)


def test_an_interrupted_fit_goes_on_from_its_trees(made, monkeypatch):
    model = MultiFidelityClassifier(**QUICK, mean="boosted", warm_start=True)

    def stop(step):
        if step.stage == "tuning" and step.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(made.data, made.target, fidelity=made.fidelity, callback=stop)
    monkeypatch.setattr("polyfid.learning.sparse.boost", None)  # it is not called again
    model.fit(made.data, made.target, fidelity=made.fidelity)
    assert model._mixtures[0].best.boosted


@pytest.mark.slow
def test_both_models_of_few_rows_go_on(made, monkeypatch):
    monkeypatch.setattr("polyfid.learning.left_out.NEGLIGIBLE", 0.0)
    model = MultiFidelityClassifier(**QUICK, warm_start=True)
    parts = []
    for _ in range(2):
        model.fit(made.data, made.target, fidelity=made.fidelity)
        parts.append(sorted(member.boosted for member in model._mixtures[0].members))
    assert parts == [[False, True]] * 2
    p = model.predict_proba(made.test_data)[:, 1]
    assert expected_loss(p, made.test_probability) < 0.55


def test_hashes_find_repeats_in_any_order(monkeypatch):
    rng = np.random.RandomState(0)
    x = rng.randint(3, size=(400, 3)) * np.array([1.0, -0.0, 2.5])
    given = x, rng.randint(2, size=400), rng.randint(2, size=400), rng.randint(1, 4, 400)
    by_columns = Rows.of(*given).merged()
    monkeypatch.setattr("polyfid.rows.rows.N_HASHED", 0)
    order = rng.permutation(400)
    by_hashes, again = Rows.of(*given).merged(), Rows.of(*(a[order] for a in given)).merged()
    assert len(by_hashes) == len(by_columns)
    for name in ("x", "level", "y", "weight"):
        np.testing.assert_array_equal(getattr(by_hashes, name), getattr(again, name))
    assert by_hashes.weight.sum() == by_columns.weight.sum()
