"""Joint moments of candidates and targets, against dense covariances of the same model."""

import numpy as np
import pytest
from tolerances import IDENTITY

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF
from polyfid.learning.draws import draw_posteriors
from polyfid.rows import Points
from polyfid.suggest.beliefs import ClassBelief
from polyfid.suggest.scores import expected_slope, probability

RNG = np.random.RandomState(3)
X = RNG.uniform(-2.0, 2.0, (90, 2))
Y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
LEVEL = np.repeat([0, 1], [60, 30])
NOISY = np.where((LEVEL == 0) & (RNG.uniform(size=90) < 0.2), 1 - Y, Y)
NEW, TARGETS = RNG.uniform(-2.5, 2.5, (14, 2)), RNG.uniform(-2.5, 2.5, (9, 2))
NEW_LEVEL = np.repeat([0, 1], 7)

MODELS = {
    "laplace": {},
    "ep": {"inference": "ep"},
    "label noise": {"label_noise": "fidelity", "inference": "ep"},
    "annotator-like rates": {"label_noise": (0.2, 0.0), "inference": "variational"},
    "sparse": {"n_inducing": 15},
    "coregional": {"coupling": "coregional", "kernel": [1.0 * RBF(), 1.0 * RBF()]},
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    given = {"kernel": 1.0 * RBF(), "random_state": 0, **MODELS[request.param]}
    return MultiFidelityClassifier(**given).fit(X, NOISY, fidelity=LEVEL)


def made(model):
    (mixture,) = model._mixtures
    at = mixture.placed(TARGETS, np.ones(len(TARGETS), dtype=np.intp))
    return ClassBelief(mixture, mixture.placed(NEW, NEW_LEVEL), at)


def dense(model):
    """Mean and covariance of candidates and targets, in that order."""
    (mixture,) = model._mixtures
    x, level = np.vstack([NEW, TARGETS]), np.append(NEW_LEVEL, np.ones(len(TARGETS), np.intp))
    (points,) = mixture.placed(x, level)
    return mixture.best.fit.posterior.mean_and_covariance(points)


def test_moments_are_blocks_of_the_joint_covariance(model):
    mean, K = dense(model)
    (at,), n = made(model).members, len(NEW)
    assert np.allclose(at.mean, mean[:n], atol=IDENTITY)
    assert np.allclose(at.target_mean, mean[n:], atol=IDENTITY)
    assert np.allclose(at.variance, np.diagonal(K)[:n], atol=IDENTITY)
    assert np.allclose(at.target_variance, np.diagonal(K)[n:], atol=IDENTITY)
    assert np.allclose(at.covariance, K[:n, n:], atol=IDENTITY)


def test_picks_condition_the_covariance_on_their_sites(model):
    belief, (mean, K), n = made(model), dense(model), len(NEW)
    (at,) = belief.members
    for i in (3, 10, 3):
        w = belief._precision(0, i)
        assert 0.0 < w <= expected_slope(at.mean[i], at.variance[i]) + IDENTITY
        K = K - np.outer(K[i], K[i]) / (K[i, i] + 1.0 / w)
        belief.pick(i)
        assert np.allclose(at.variance, np.diagonal(K)[:n], atol=1e-9)
        assert np.allclose(at.target_variance, np.diagonal(K)[n:], atol=1e-9)
        assert np.allclose(at.with_targets(slice(None)), K[:n, n:], atol=1e-9)
    assert np.allclose(at.mean, mean[:n], atol=IDENTITY)


def test_probabilities_are_those_of_the_model(model):
    belief = made(model)
    table = belief.table(np.arange(len(NEW)))
    assert np.allclose(table.q, model.predict_proba(TARGETS)[:, 1], atol=0.02)
    true = np.concatenate(
        [model.predict_proba(NEW[LEVEL_ROWS], t)[:, 1] for t, LEVEL_ROWS in enumerate(HALVES)]
    )
    rates = belief.channels[0]
    assert np.allclose(table.p, rates.observed(true, NEW_LEVEL), atol=0.02)


HALVES = (slice(0, 7), slice(7, 14))


def test_labels_of_flipped_levels_say_less():
    given = {"kernel": 1.0 * RBF(), "inference": "ep", "optimizer": None}
    tables = [
        made(
            MultiFidelityClassifier(label_noise=(rate, 0.0), **given).fit(X, NOISY, fidelity=LEVEL)
        )
        for rate in (0.0, 0.3)
    ]
    for belief, share in zip(tables, (1.0, 0.4), strict=True):
        assert belief.channels[0].slope(np.array([0, 1])) == pytest.approx([share, 1.0])
    certain, noisy = (belief.table(np.arange(7)) for belief in tables)
    assert np.abs(noisy.c).mean() < np.abs(certain.c).mean()


def test_structures_are_averaged_as_tables():
    model = MultiFidelityClassifier(random_state=0).fit(X, NOISY, fidelity=LEVEL)
    (mixture,) = model._mixtures
    assert len(mixture.members) > 1
    rows = np.arange(len(NEW))
    whole = ClassBelief(
        mixture,
        mixture.placed(NEW, NEW_LEVEL),
        mixture.placed(TARGETS, np.ones(len(TARGETS), dtype=np.intp)),
    ).table(rows)
    joint, p = 0.0, 0.0
    for member in mixture.members:
        alone = type(mixture)((member,))
        own = ClassBelief(
            alone,
            alone.placed(NEW, NEW_LEVEL),
            alone.placed(TARGETS, np.ones(len(TARGETS), dtype=np.intp)),
        ).table(rows)
        joint = joint + member.weight * (own.c + np.outer(own.p, own.q))
        p = p + member.weight * own.p
    assert np.allclose(whole.p, p)
    assert np.allclose(whole.c + np.outer(whole.p, whole.q), joint)


def test_rough_tables_are_near_exact_ones_for_small_correlations():
    model = MultiFidelityClassifier(1.0 * RBF(), random_state=0).fit(X, NOISY, fidelity=LEVEL)
    belief = made(model)
    rough, exact = belief.rough_table(slice(0, len(NEW))), belief.table(np.arange(len(NEW)))
    small = np.abs(exact.c) < 0.005
    assert small.sum() > 20
    assert np.allclose(rough.c[small], exact.c[small], atol=1e-3)
    assert np.corrcoef(rough.c.ravel(), exact.c.ravel())[0, 1] > 0.95


def test_points_of_another_order_have_the_same_columns(model):
    (mixture,) = model._mixtures
    posterior = mixture.best.fit.posterior
    (points,) = mixture.placed(NEW, NEW_LEVEL)
    _, K = posterior.mean_and_covariance(points)
    joint = posterior.joint(points)
    for i in (0, 8):
        others = np.arange(len(NEW)) != i
        assert np.allclose(joint.column(i)[others], K[others, i], atol=IDENTITY)
    assert isinstance(points, Points)


def test_drawn_posteriors_are_averaged_and_the_mode_is_among_them():
    model = MultiFidelityClassifier(1.0 * RBF(), random_state=0).fit(X, NOISY, fidelity=LEVEL)
    (mixture,) = model._mixtures
    drawn = draw_posteriors(mixture, 12, True, np.random.RandomState(0))
    assert len(drawn) > 6
    assert drawn[0].posterior is mixture.best.fit.posterior
    assert sum(one.weight for one in drawn) == pytest.approx(1.0)
    assert max(one.weight for one in drawn) < 0.5
    thetas = np.array([one.posterior.prior.theta for one in drawn])
    assert (thetas.std(axis=0) > 0.1).all()


def test_given_hyper_parameters_are_not_drawn():
    model = MultiFidelityClassifier(1.0 * RBF(), optimizer=None).fit(X, NOISY, fidelity=LEVEL)
    drawn = draw_posteriors(model._mixtures[0], 12, True, np.random.RandomState(0))
    assert [one.weight for one in drawn] == [1.0]


def test_a_label_tells_which_posterior_is_right():
    model = MultiFidelityClassifier(1.0 * RBF(), random_state=0).fit(X, NOISY, fidelity=LEVEL)
    (mixture,) = model._mixtures
    drawn = draw_posteriors(mixture, 12, True, np.random.RandomState(0))
    at = mixture.placed(TARGETS, np.ones(len(TARGETS), dtype=np.intp))
    belief = ClassBelief(mixture, mixture.placed(NEW, NEW_LEVEL), at, drawn)
    before = belief._doubt.copy()
    w = belief.weights
    assert np.allclose(before, np.diag(w) - np.outer(w, w))
    own = np.array(
        [
            c.observed(probability(m.mean[2], m.variance[2]), NEW_LEVEL[2])
            for m, c in zip(belief.members, belief.channels, strict=True)
        ]
    )
    # Bayes' rule for either label, on average over both.
    p = w @ own
    after = [w * own / p, w * (1.0 - own) / (1.0 - p)]
    means = np.stack(after)
    told = np.einsum("j,ja,jb->ab", [p, 1.0 - p], means - w, means - w)
    belief.pick(2)
    assert np.allclose(before - belief._doubt, told)
