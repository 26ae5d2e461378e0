"""Learning the structure: what wins on data made for it, and what must hold on any."""

import math
import re
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from tolerances import IDENTITY

from polyfid import MultiFidelityClassifier
from polyfid.inference.linalg import Diverged, NotPositiveDefinite
from polyfid.kernels import RBF, Additive
from polyfid.learning import candidates, columns, search, structures
from polyfid.learning.candidates import ROUGH, Comparison
from polyfid.learning.climb import make_hyperprior
from polyfid.learning.mixture import infer
from polyfid.learning.plan import Options, Target
from polyfid.learning.search import NEGLIGIBLE, TEMPERATURE
from polyfid.learning.structures import STRUCTURES, Structure
from polyfid.model.features import AsGiven, Coded, Ranked, SharedUnit, Standardised, UnitRows
from polyfid.rows import Rows

SAME, APART = "one function at all levels", "levels unrelated"
FLIPS, DEVIATING = "cheaper labels flipped at random", "cheaper levels with deviations"

OPTIONS = Options(2, 2, rho=(1.0,), inference="laplace", may_choose=False)


def fit(X, y, fidelity=None, **how):
    return MultiFidelityClassifier(**{"random_state": 0, **how}).fit(X, y, fidelity=fidelity)


def share(model, words):
    """The weight of all structures that have these words in their names."""
    return sum(s.weight for s in model.structures_ if words in s.name)


def by_name(model):
    return {s.name: s.weight for s in model.structures_}


def two_levels(n_cheap=45, n_trusted=20, flip=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n_cheap + n_trusted, 2))
    fidelity = np.repeat(["web", "lab"], [n_cheap, n_trusted])
    y = X[:, 0] + np.sin(2.0 * X[:, 1]) > 0.2
    y ^= (fidelity == "web") & (rng.uniform(size=len(X)) < flip)
    return X, y, fidelity


LEVELS = ["web", "lab"]
NEW = np.random.default_rng(9).uniform(-2.0, 2.0, (30, 2))


@pytest.fixture(scope="module")
def model():
    return fit(*two_levels(), levels=LEVELS)


@pytest.fixture
def three_structures(monkeypatch):
    monkeypatch.setattr(structures, "STRUCTURES", STRUCTURES[:3])


# What wins where


def skewed(rng):
    """Log-normal features; the label depends on their logarithms."""
    G = rng.normal(size=(100, 3))
    return np.exp(2.0 * G), G.sum(axis=1) + 0.3 * rng.normal(size=100) > 0.0


def irrelevant_columns(rng):
    X = rng.normal(size=(100, 8))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=100) > 0.0


def one_unit(rng):
    """Two strong directions among columns of small noise, which standardising would blow up."""
    X = rng.normal(size=(100, 10)) * np.repeat([5.0, 0.1], [2, 8])
    return X, np.sin(X[:, 0] / 3.0) + X[:, 1] / 10.0 > 0.0


def indicators(rng):
    """Categories, of which no indicator says anything alone."""
    codes = rng.integers(0, 4, (110, 5))
    y = (codes[:, 0] >= 2) ^ (codes[:, 1] >= 2)
    return np.concatenate([np.eye(4)[c] for c in codes.T], axis=1), y


def directions(rng):
    G = rng.normal(size=(100, 4))
    y = np.abs(G[:, 0]) > np.abs(G[:, 1])
    return G * np.exp(2.0 * rng.normal(size=(100, 1))), y


@pytest.mark.parametrize(
    ("make", "seed", "words", "least"),
    [
        (skewed, 0, Ranked.words, 0.9),
        (irrelevant_columns, 0, "1 column singled out", 0.9),
        (one_unit, 0, SharedUnit.words, 0.8),
        (indicators, 1, Coded.words, 0.8),
        (directions, 0, UnitRows.words, 0.6),
    ],
)
def test_data_get_the_structure_that_they_were_made_for(make, seed, words, least):
    model = fit(*make(np.random.default_rng(seed)))
    assert share(model, words) > least
    new = np.random.default_rng(1).normal(size=(500, 3))
    if make is skewed:
        # The warp undoes it: what is learnt is nearly what the logarithms would have taught.
        assert model.score(np.exp(2.0 * new), new.sum(axis=1) > 0.0) > 0.85
    if make is irrelevant_columns:
        assert "on 0, length-scale" in str(model.report_)
    if make is indicators:
        assert "categorical" in str(model.report_)


def test_flipped_cheap_labels_are_one_function():
    X, y, fidelity = two_levels(60, 20, flip=0.0)
    model = fit(X, np.where(fidelity == "web", ~y, y), fidelity, levels=LEVELS)
    weight = by_name(model)
    assert SAME in model.structures_[0].name
    assert model.rho_[0] < -0.2
    assert share(model, SAME) > 2.0 * share(model, APART)
    for name in weight:
        if SAME in name:  # simpler than the general one
            assert weight[name] > weight[name.removesuffix(f", {SAME}")]
    right = fit(X, y, fidelity, levels=LEVELS)
    np.testing.assert_array_equal(model.predict(NEW), right.predict(NEW))


def test_labels_that_are_flipped_at_random():
    X, y, fidelity = two_levels(150, 40, flip=0.25, seed=3)
    model = fit(X, y, fidelity, levels=LEVELS)
    best = model._mixtures[0].best
    assert share(model, FLIPS) > 0.5
    assert FLIPS in best.name
    assert all(m.fit.inference.distance < 1e-6 for m in model._mixtures[0].members)
    assert best.flips == pytest.approx((0.25, 0.0), abs=0.1)
    assert "labels flipped: web 2" in str(model.report_)
    assert model.rho_ == pytest.approx([1.0])
    # What the level would say has the errors in it; what is true has not.
    truth = NEW[:, 0] + np.sin(2.0 * NEW[:, 1]) > 0.2
    top, web = model.predict_proba(NEW)[:, 1], model.predict_proba(NEW, "web")[:, 1]
    assert np.mean((top > 0.5) == truth) > 0.9
    assert 0.1 < web.min() < web.max() < 0.9
    assert max(top.max(), 1.0 - top.min()) > 0.95
    np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW, "web"))[:, 1], web, rtol=1e-6)


def test_flips_of_a_level_without_rows(three_structures):
    X, y, fidelity = two_levels(60, 20, flip=0.25, seed=3)
    model = fit(X, y, fidelity, levels=["web", "none", "lab"])
    probability = model.predict_proba(NEW, "none")
    assert np.isfinite(probability).all()
    assert len(model._mixtures[0].best.flips) in (0, 3)


def test_true_labels_of_repeated_rows():
    x = np.array([[0.0], [0.0], [1.0], [2.0], [2.0], [2.0], [3.0], [0.0], [2.0], [2.0], [3.0]])
    level = np.repeat([0, 1], [7, 4])
    y = np.array([0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0])
    rows = Rows.of(x, level, y, np.ones(11))
    target = Structure(Standardised, "isotropic", "flips").target(Target(1, 2, 2, None))
    # At 2 the trusted labels contradict each other, and 1 has none.
    expected = [1, 1, 0, 0, 0, 0, -1, 0, 0, 0, 0]
    np.testing.assert_array_equal(target(rows).truth, expected)
    assert target(rows).take(np.arange(3)).truth.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("weight", "how"),
    [(0.5, {}), (1.0, {"inference": "laplace"}), (1.0, {"rho_bounds": (-1.0, 0.5)})],
)
def test_flips_are_left_out_where_they_cannot_be(weight, how, three_structures):
    X, y, fidelity = two_levels(60, 20, flip=0.25, seed=3)
    model = MultiFidelityClassifier(levels=LEVELS, **how)
    model.fit(X, y, fidelity=fidelity, sample_weight=np.full(len(X), weight))
    assert share(model, FLIPS) == 0.0


def test_cheap_labels_with_deviations_of_their_own():
    rng = np.random.default_rng(2)
    X = rng.uniform(-2.0, 2.0, (260, 2))
    fidelity = np.repeat(["web", "lab"], [200, 60])
    f, quirk = 3.0 * np.sin(2.0 * X[:, 0]), 3.0 * np.cos(2.5 * X[:, 1])
    y = rng.uniform(size=260) < expit(f + np.where(fidelity == "web", quirk, f))
    model = fit(X, y, fidelity, levels=LEVELS)
    assert share(model, DEVIATING) > share(model, SAME) + share(model, FLIPS)
    best = next(s for s in model.structures_ if DEVIATING in s.name)
    text = str(model.report_)
    if best is model.structures_[0]:
        assert "lab on web: rho +" in text
        assert "deviation of web" in text
    # Rho is the slope of the trusted level by the cheap one, deviations included.
    share_of = model._mixtures[0].members[model.structures_.index(best)].fit.prior
    assert 0.0 < best.rho[0] < share_of.rho[0]


@pytest.mark.parametrize("noise", [True, False])
def test_cheap_labels_of_something_else_are_unrelated(noise):
    rng = np.random.default_rng(0 if noise else 1)
    X = rng.uniform(-2.0, 2.0, (110, 2))
    fidelity = np.repeat([0, 1], [60, 50])
    other = rng.uniform(size=110) < 0.5 if noise else np.sin(2.5 * X[:, 1]) > 0.0
    y = np.where(fidelity == 0, other, np.sin(2.5 * X[:, 0]) > 0.0)
    model = fit(X, y, fidelity)
    # Co-kriging either way may say so too, with rho of nearly zero, and flips of half the labels.
    assert share(model, APART) > max(0.2 if noise else 0.35, 4.0 * share(model, SAME))
    assert {s.rho for s in model.structures_ if APART in s.name} == {(0.0,)}
    # They do the trusted labels no harm.
    new = np.random.default_rng(9).uniform(-2.0, 2.0, (300, 2))
    assert model.score(new, np.sin(2.5 * new[:, 0]) > 0.0) > 0.9
    # What the levels say apart, the model says too.
    for level in (1,) if noise else (0, 1):
        alone = fit(X[fidelity == level], y[fidelity == level]).predict(NEW)
        assert np.mean(model.predict(NEW, fidelity=level) == alone) > 0.85


# What holds on any data


def test_weights(model):
    weights, evidences = np.array([(s.weight, s.log_evidence) for s in model.structures_]).T
    assert len(by_name(model)) == len(weights) > 3
    assert weights.sum() == pytest.approx(1.0, abs=IDENTITY)
    assert (np.diff(weights) <= 0.0).all()
    assert weights.min() > 0.5 * NEGLIGIBLE
    np.testing.assert_allclose(
        np.log(weights / weights[0]), (evidences - evidences[0]) / TEMPERATURE, atol=IDENTITY
    )
    text = str(model.report_)
    assert "(what follows is of the first)" in text
    assert "expectation propagation, converged" in text
    for structure in model.structures_:
        assert f"{structure.weight:4.0%}  {structure.name}" in text
        assert structure.name in model.report_.to_html()


def test_attributes_describe_the_heaviest(model):
    first = model.structures_[0]
    assert tuple(model.rho_) == first.rho
    assert tuple(model.kernels_) == first.kernels
    value = first.log_marginal_likelihood
    assert model.log_marginal_likelihood_value_ == model.log_marginal_likelihood() == value
    assert model.log_marginal_likelihood(model.theta_) == pytest.approx(value, abs=1e-5)
    logs = np.concatenate([k.theta for k in model.kernels_])
    np.testing.assert_allclose(model.theta_[-len(logs) :], logs)
    assert len(model.theta_names_) == len(model.theta_)


def log_priors(member):
    """Log priors of the hyper-parameters and of the structure of a member."""
    fitted, points = member.fit, member.fit.posterior.points
    hyperprior = make_hyperprior(fitted.prior, fitted.likelihood, points, weak=True)
    chosen = re.search(r"(\d) columns? singled out", member.name)
    choices = math.comb(points.x.shape[1], int(chosen[1])) if chosen else 1
    return hyperprior(fitted.theta)[0] - np.log(choices)


def test_refining_adds_evidence(model, monkeypatch):
    monkeypatch.setattr(search, "N_REFINING", 0)
    rough = {s.name: s for s in fit(*two_levels(), levels=LEVELS).structures_}
    gains = [s.log_evidence - rough[s.name].log_evidence for s in model.structures_]
    # Without refining, evidences are those of inference that ends early.
    assert min(gains) > -len(two_levels()[0]) * ROUGH**2
    assert max(gains) > 1e-2


def test_the_evidence_includes_the_priors_of_parameters_and_structure(monkeypatch):
    monkeypatch.setattr(search, "N_REFINING", 0)
    model = fit(*two_levels(), levels=LEVELS)
    for member in model._mixtures[0].members:
        assert member.fit.scheme == "ep"
        expected = member.fit.log_evidence + log_priors(member)
        assert member.log_evidence == pytest.approx(expected, abs=1e-3)


def test_convergence_is_that_of_all_structures_averaged(model):
    fits = [m.fit for m in model._mixtures[0].members]
    assert model.n_iter_ == max(f.optimum.best.n_evaluations for f in fits)
    assert model.converged_
    *first, last = model._mixtures[0].members
    report = replace(last.fit.inference, outcome="stalled")
    members = (*first, replace(last, fit=replace(last.fit, inference=report)))
    mixture = replace(model._mixtures[0], members=members)
    other = MultiFidelityClassifier()
    other._publish(replace(model._model, mixtures=(mixture,)))
    assert not other.converged_
    assert f"for 1 of {len(fits)} structures" in str(other.report_)


def test_tol_has_an_effect():
    X, y, fidelity = two_levels(25, 12)
    rough, fine = (fit(X, y, fidelity, levels=LEVELS, tol=tol) for tol in (1e-3, 1e-7))
    assert fine.n_iter_ > rough.n_iter_


def test_the_unit_and_the_names_of_classes_do_not_matter(model):
    X, y, fidelity = two_levels()
    other = fit(1000.0 * X, np.where(y, "a", "b"), fidelity, levels=LEVELS)
    assert by_name(other) == pytest.approx(by_name(model), abs=1e-3)
    np.testing.assert_allclose(
        other.predict_proba(1000.0 * NEW), model.predict_proba(NEW)[:, ::-1], atol=1e-3
    )


def test_random_state(monkeypatch, three_structures):
    monkeypatch.setattr(search, "N_COMPARED", 30)
    data = two_levels()
    one, same, other = (fit(*data, levels=LEVELS, random_state=s) for s in (0, 0, 1))
    assert by_name(one) == by_name(same)
    np.testing.assert_array_equal(one.predict_proba(NEW), same.predict_proba(NEW))
    assert not np.array_equal(one.predict_proba(NEW), other.predict_proba(NEW))


def test_columns_that_do_not_vary_change_little():
    X, y, _ = two_levels(20, 20)
    jitter = np.where(np.arange(40) % 3, 0.3, 0.1 + 0.2)
    plain = by_name(fit(X, y))
    for column in (np.full(40, 0.3), jitter):
        other = by_name(fit(np.column_stack([X, column]), y))
        other = {n: w for n, w in other.items() if UnitRows.words not in n}
        total = sum(other.values())
        assert {n: w / total for n, w in other.items()} == pytest.approx(plain, abs=0.05)


# Which structures are tried


def tried(monkeypatch, *data, **how):
    """The structures that a fit tries, with the number of rows each time."""
    climbs = []

    def watch(on, structure, *rest, climb=search.climb):
        climbs.append((structure, len(on.rows)))
        return climb(on, structure, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(search, "climb", watch)
        patched.setattr(columns, "climb", watch)
        return fit(*data, **how), climbs


def test_one_level_has_no_link(monkeypatch):
    X, y, _ = two_levels(20, 15)
    # Nor has a level without rows.
    for how in ({}, {"fidelity": np.full(len(X), "lab"), "levels": LEVELS}):
        model, climbs = tried(monkeypatch, X, y, **how)
        assert {s.link for s, _ in climbs} == {"linked"}
        assert not share(model, SAME) + share(model, APART)


@pytest.mark.parametrize(
    ("how", "links", "rho"),
    [
        ({}, set(structures.LINKS), (-10.0, 10.0)),
        ({"rho_bounds": (0.5, 2.0)}, set(structures.LINKS) - {"apart"}, (0.5, 2.0)),
        ({"rho_bounds": (1.5, 2.0)}, {"linked", "same", "deviating"}, (1.5, 2.0)),
        ({"rho_bounds": "fixed", "rho": 0.9}, {"linked"}, (0.9, 0.9)),
        ({"coupling": "coregional"}, {"linked"}, ()),
    ],
)
def test_special_links(monkeypatch, three_structures, how, links, rho):
    model, climbs = tried(monkeypatch, *two_levels(30, 15), levels=LEVELS, **how)
    assert {s.link for s, _ in climbs} == links
    for member in model._mixtures[0].members:
        values = getattr(member.fit.prior, "rho", ())
        np.testing.assert_array_equal(values, np.clip(values, *rho or (0.0, 0.0)))


def test_features_as_given(monkeypatch):
    X, y, _ = two_levels(20, 15)
    model, climbs = tried(monkeypatch, X, y, standardize=False)
    assert {s.features for s, _ in climbs} == {AsGiven}
    assert {s.form for s, _ in climbs} == set(structures.FORMS)
    assert share(model, AsGiven.words) == pytest.approx(1.0)
    np.testing.assert_array_equal(model._fits[0].posterior.points.x.max(axis=0), X.max(axis=0))


MIXED = np.column_stack([np.eye(3)[np.arange(12) % 3], np.arange(12.0) ** 2])


@pytest.mark.parametrize(
    ("X", "kinds"),
    [
        (NEW[:, :1], {Standardised, Ranked}),
        (NEW, {Standardised, Ranked}),
        (NEW * [1, 9], {Standardised, Ranked, SharedUnit}),
        (np.column_stack([NEW, 9 * NEW[::-1]]), {Standardised, Ranked, SharedUnit, UnitRows}),
        ([[0, 1], [1, 1], [1, 0], [0, 0]], {Standardised}),
        (MIXED, {Standardised, Ranked, SharedUnit, UnitRows, Coded}),
    ],
    ids=["one column", "one unit", "two units", "four", "flags", "indicators"],
)
def test_features_that_make_no_sense_are_not_tried(X, kinds):
    rows = Rows.of(X, np.zeros(len(X)), np.zeros(len(X)))
    chosen = list(structures.candidates(rows, standardize=True))
    assert {s.features for s in chosen} == kinds
    assert chosen[0] == STRUCTURES[0]
    # Categories take the place of one length-scale per indicator.
    forms = {s.form for s in chosen if s.features is Standardised}
    assert forms == {
        "isotropic",
        "linear",
        *({"soft"} if Coded not in kinds and np.shape(X)[1] > 1 else ()),
    }


def test_names_tell_structures_apart():
    every = [replace(s, link=link) for s in STRUCTURES for link in structures.LINKS]
    assert len({str(s) for s in every}) == len(every)
    assert str(Structure(Ranked, "steps", "apart", (3, 5))) == (
        "features ranked, steps of one length-scale, 2 columns singled out, levels unrelated"
    )
    assert str(STRUCTURES[0]) == "features standardised, one length-scale"


@pytest.mark.parametrize("columns", [(), (0, 1)], ids=["all columns", "two singled out"])
@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_kernels_of_structures(structure, columns):
    X = np.column_stack(
        [np.eye(3)[np.arange(12) % 3], np.linspace(0.0, 1.0, 12) ** 2, np.arange(12.0)]
    )
    features = structure.features.of(X, np.ones(12))
    points = features(X)
    n = points.shape[1]
    kernel = replace(structure, columns=columns).kernel(features, n).for_features(n)
    n_lengths = sum("length_scale" in name for name in kernel.theta_names)
    each = {"soft": n, "linear": 1}.get(structure.form, 1 + (structure.features is Coded))
    if not columns:
        assert n_lengths == each + (structure.form == "linear")
    assert ("linear.length_scale" in kernel.theta_names) == (structure.form == "linear")
    assert "intercept.variance" in kernel.theta_names
    assert np.linalg.eigvalsh(kernel(points)).min() > -1e-10


# When there is nothing to learn


@pytest.mark.parametrize(
    ("how", "scheme"),
    [
        ({"kernel": 2.0 * RBF()}, "laplace"),
        ({"kernel": [2.0 * RBF(), 0.5 * RBF()]}, "laplace"),
        ({"prior": None}, "ep"),
        ({"optimizer": None}, "ep"),
        ({"label_noise": [0.1, 0.0]}, "ep"),
    ],
)
def test_one_structure(how, scheme):
    model = fit(*two_levels(25, 12), levels=LEVELS, **how)
    (only,) = model.structures_
    assert only.weight == 1.0
    assert np.isnan(only.log_evidence)
    assert only.log_marginal_likelihood == model.log_marginal_likelihood_value_
    assert only.kernels == tuple(model.kernels_)
    assert "structures" not in str(model.report_)
    assert model._fits[0].scheme == scheme


# Many rows


def test_many_rows_are_compared_on_a_sample(monkeypatch):
    monkeypatch.setattr(search, "N_COMPARED", 40)
    model, climbs = tried(monkeypatch, *two_levels(80, 25), levels=LEVELS)
    compared, tuned = ([s for s, n in climbs if n == size] for size in (40, 105))
    assert len(compared) + len(tuned) == len(climbs)
    assert {Structure(Ranked, "steps"), *STRUCTURES[:3]} <= set(compared)
    assert 1 <= len(tuned) <= search.N_LEADERS
    assert set(by_name(model)) <= {str(s) for s in tuned}
    assert "of 105 rows" not in str(model.report_)
    for member in model._mixtures[0].members:
        # The evidence is that of all rows, and comparable.
        expected = member.fit.log_evidence + log_priors(member)
        assert member.log_evidence == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("n_compared", "sizes"), [(600, {60}), (40, {40, 60})])
def test_tuning_on_a_sample(monkeypatch, three_structures, n_compared, sizes):
    monkeypatch.setattr(search, "N_COMPARED", n_compared)
    model, climbs = tried(monkeypatch, *two_levels(80, 25), levels=LEVELS, n_tuning=60)
    assert {n for _, n in climbs} == sizes
    assert "on 60 of 105 rows" in str(model.report_)
    fits = [member.fit for member in model._mixtures[0].members]
    assert {(len(f.posterior.points), f.tuned_on) for f in fits} == {(105, 60)}


def test_nothing_is_tuned_twice(monkeypatch):
    X = np.random.default_rng(0).normal(size=(100, 4))
    _, climbs = tried(monkeypatch, X, np.sin(2.0 * X[:, :2]).sum(axis=1) > 0.0)
    assert len(climbs) == len(set(climbs))


def test_other_links_are_left_out_where_labels_are_clearly_flipped(monkeypatch):
    rng = np.random.default_rng(0)
    X, fidelity = rng.uniform(-2.0, 2.0, (260, 2)), np.repeat([0, 1], [180, 80])
    right = np.sin(2.0 * X[:, 0]) + X[:, 1] > 0.0
    wrong = (fidelity == 0) & (rng.uniform(size=260) < 0.3)
    model, climbs = tried(monkeypatch, X, right ^ wrong, fidelity=fidelity)
    assert {structure.link for structure, _ in climbs} == {"linked", "flips"}
    assert share(model, structures.LINKS["flips"]) > 0.9


def test_giving_up_early_changes_little(monkeypatch):
    data = skewed(np.random.default_rng(0))
    short, few = tried(monkeypatch, *data)
    monkeypatch.setattr(search, "REACH", np.inf)
    full, all_of_them = tried(monkeypatch, *data)
    assert len(few) < len(all_of_them)
    np.testing.assert_allclose(full.predict_proba(data[0]), short.predict_proba(data[0]), atol=0.02)


# Schemes that do not settle


def unsettled(evidence, optimum):
    """Inference in which EP never converges."""
    fitted = infer(evidence, optimum)
    if evidence.scheme.name != "ep":
        return fitted
    return replace(fitted, inference=replace(fitted.inference, outcome="stalled"))


def impossible(evidence, optimum):
    """Inference in which EP finds labels more than certain."""
    if evidence.scheme.name == "ep":
        raise Diverged("log evidence above zero")
    return infer(evidence, optimum)


@pytest.mark.parametrize("how_it_fails", [unsettled, impossible])
def test_ep_falls_back_to_laplace(monkeypatch, three_structures, how_it_fails):
    data = two_levels(30, 15)
    laplace = fit(*data, levels=LEVELS, inference="laplace")
    monkeypatch.setattr(search, "infer", how_it_fails)
    model = fit(*data, levels=LEVELS)
    assert {m.fit.scheme for m in model._mixtures[0].members} == {"laplace"}
    assert "Laplace, converged" in str(model.report_)
    assert model.converged_
    assert by_name(model) == pytest.approx(by_name(laplace), abs=1e-4)
    np.testing.assert_allclose(model.predict_proba(NEW), laplace.predict_proba(NEW), atol=1e-6)


def test_a_scheme_that_is_asked_for_stays(monkeypatch, three_structures):
    data = two_levels(30, 15)
    laplace = fit(*data, levels=LEVELS, inference="laplace")
    monkeypatch.setattr(search, "infer", unsettled)
    with pytest.warns(ConvergenceWarning, match="inference did not converge"):
        model = fit(*data, levels=LEVELS, inference="ep")
    assert {m.fit.scheme for m in model._mixtures[0].members} == {"ep"}
    assert not model.converged_
    # Its evidence means nothing, and Laplace's is taken.
    assert by_name(model) == pytest.approx(by_name(laplace), abs=1e-4)


@pytest.mark.parametrize("inference", ["laplace", "variational"])
def test_other_schemes(three_structures, inference):
    model = fit(*two_levels(30, 15), levels=LEVELS, inference=inference)
    assert {m.fit.scheme for m in model._mixtures[0].members} == {inference}
    assert sum(by_name(model).values()) == pytest.approx(1.0)


def refuses_tied_lengths(evidence, optimum):
    if sum("length_scale" in name for name in evidence.theta_names) == 2:
        raise NotPositiveDefinite("told so")
    return infer(evidence, optimum)


def refuses_ep(evidence, optimum):
    if evidence.scheme.name == "ep":
        raise NotPositiveDefinite("told so")
    return infer(evidence, optimum)


@pytest.mark.parametrize(
    ("function", "left_out"),
    [(refuses_tied_lengths, {str(STRUCTURES[1])}), (refuses_ep, set())],
    ids=["of one", "of all"],
)
def test_structures_without_an_evidence(monkeypatch, three_structures, function, left_out):
    X, y, _ = two_levels(25, 15)
    plain = by_name(fit(X, y))
    monkeypatch.setattr(search, "infer", function)
    model = fit(X, y)
    # They are left out; where there is no other, objectives count.
    assert not left_out & set(by_name(model))
    assert left_out <= set(plain)
    assert sum(by_name(model).values()) == pytest.approx(1.0)
    assert model.score(X, y) > 0.8


# Parts


def test_negligible_structures_are_left_out():
    def shares(*evidences):
        weighed = [SimpleNamespace(log_evidence=e) for e in evidences]
        return [(weighed.index(c), share) for c, share in search.shares(weighed)]

    behind = -TEMPERATURE * np.log(NEGLIGIBLE)
    assert shares(-7.0 - 1.1 * behind, -7.0, -np.inf) == [(1, 1.0)]
    assert [i for i, _ in shares(-7.0 - 0.9 * behind, -7.0)] == [1, 0]
    # Many alike are all kept, however small the share of each.
    assert len(shares(*[-5.0] * 200)) == 200


@pytest.fixture(scope="module")
def compared():
    rng = np.random.default_rng(1)
    X = np.exp(rng.normal(size=(70, 3)))
    level = np.repeat([0, 1], [50, 20])
    y = np.log(X[:, 0]) + np.sin(2.0 * X[:, 1]) > 0.2
    y ^= (level == 0) & (rng.uniform(size=70) < 0.15)
    rows = Rows.of(X, level, y)
    return Comparison(OPTIONS, rows, Target.of(OPTIONS, rows, 1), seed=0)


def climb(on, structure, start=None):
    features = structure.features.of(on.rows.x, on.rows.weight)
    return search.weigh(on, search.climb(on, structure, features, start), start and start.fit)


@pytest.fixture(scope="module")
def lead(compared):
    return climb(compared, STRUCTURES[0])


@pytest.mark.parametrize("structure", STRUCTURES[1:7], ids=str)
def test_where_the_leader_ended_is_a_good_start(monkeypatch, compared, lead, structure):
    # Climbs to the end: where the search stops them they are some tenths of a nat apart.
    monkeypatch.setattr(candidates, "TOLERANCE", 30.0)
    alone = climb(compared, structure)
    led = climb(compared, structure, lead)
    assert len(led.optimum.climbs) < len(alone.optimum.climbs)
    assert led.optimum.n_evaluations < alone.optimum.n_evaluations
    assert led.optimum.objective > alone.optimum.objective - 0.1
    assert led.log_evidence == pytest.approx(alone.log_evidence, abs=0.1)


def test_a_structure_refines_a_simpler_one():
    simpler = partial(structures.simpler, others=STRUCTURES)
    assert simpler(Structure(UnitRows, "linear")) == Structure(UnitRows, "isotropic")
    assert simpler(Structure(Standardised, "soft")) == STRUCTURES[0]
    assert simpler(Structure(Ranked, "additive")) is None


def test_what_refines_a_hopeless_structure_is_not_tried(monkeypatch):
    monkeypatch.setattr(search, "REACH", 1e-9)
    _, climbs = tried(monkeypatch, *skewed(np.random.default_rng(0)))
    assert {s.features for s, _ in climbs if s.columns or s.form == "linear"} <= {Ranked}


def test_far_from_the_data_the_share_of_classes_remains():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 20 == 0
    near, far = fit(X, y).predict_proba([[0.0, 0.0], [100.0, -100.0]])[:, 1]
    assert near == pytest.approx(0.05, abs=0.03)
    assert far < 0.13  # 0.2 and more without an intercept


def test_functions_made_of_steps_are_recognised():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.7, 1.7, (300, 3))
    f = np.linalg.cholesky(60.0 * Additive(0.5)(X) + 1e-8 * np.eye(300)) @ rng.normal(size=300)
    assert share(fit(X, f > np.median(f)), "steps") > 0.5


def test_a_callback_learns_how_many_structures_are_tuned():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    steps = []
    MultiFidelityClassifier(random_state=0).fit(X, X[:, 0] > 0, callback=steps.append)
    *tuned, last = steps
    assert {step.stage for step in tuned} == {"structures"}
    assert [step.done for step in tuned] == list(range(1, len(tuned) + 1))
    assert all(step.done <= step.total <= after.total for step, after in pairwise(tuned))
    assert (last.stage, last.done) == ("classes", 1)
