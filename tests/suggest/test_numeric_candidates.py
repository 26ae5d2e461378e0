"""Candidates that say numbers: what they are worth, beside candidates that have labels."""

import numpy as np
import pytest
from scipy.special import entr, ndtr
from tolerances import IDENTITY

from polyfid import MultiFidelityClassifier, advise, stack_levels, suggest
from polyfid.kernels import RBF
from polyfid.rows import Points
from polyfid.suggest import QueryStrategy, rank
from polyfid.suggest.beliefs import ClassBelief
from polyfid.suggest.scores import KAPPA, NORMAL_WEIGHTS, entropy, least_cost, spread_of_label
from polyfid.suggest.strategies import STRATEGIES, Bald, ExpectedGain, Margin, make_strategy

RNG = np.random.RandomState(5)
X_SIM, X_EXP = RNG.uniform(-2.0, 2.0, (14, 2)), RNG.uniform(-2.0, 2.0, (16, 2))
POOL, TARGETS = RNG.uniform(-2.5, 2.5, (40, 2)), RNG.uniform(-2.5, 2.5, (9, 2))
ALL = np.arange(len(POOL))


def margin(x):
    return 40.0 + 5.0 * (x[:, 0] + 0.5 * x[:, 1])


def rows(n_classes=2):
    broke = np.digitize(margin(X_EXP), [40.0] if n_classes == 2 else [37.0, 43.0])
    numbers = margin(X_SIM) + RNG.normal(0.0, 0.5, len(X_SIM))
    return stack_levels({"simulation": (X_SIM, numbers), "experiment": (X_EXP, broke)})


TWO, THREE = rows(), rows(3)
KNOWN = {"kernel": [9.0 * RBF(0.8), 0.3 * RBF(1.5)], "optimizer": None}


def fitted(noise=0.3, data=TWO, **given):
    X, y, fidelity = data
    own = {"numeric_levels": ["simulation"], "random_state": 0}
    own["noise"] = None if noise is None else {"simulation": noise}
    model = MultiFidelityClassifier(**{**KNOWN, **own, **given})
    return model.fit(X, y, fidelity=fidelity)


@pytest.fixture(scope="module")
def known():
    return fitted()


def believed(model, level=0, targets=TARGETS):
    (mixture,) = model._mixtures
    at = mixture.placed(targets, np.ones(len(targets), dtype=np.intp))
    new = mixture.placed(POOL, np.full(len(POOL), level, dtype=np.intp))
    return ClassBelief(mixture, new, at)


# One posterior


@pytest.mark.parametrize(
    ("uncertainty", "of_two", "within"),
    [
        (entropy, lambda p: entr(p) + entr(1.0 - p), 5e-5),
        (spread_of_label, lambda p: p * (1.0 - p), 5e-5),
        (least_cost(1.0 - np.eye(2)), lambda p: np.minimum(p, 1.0 - p), 1e-3),
    ],
)
def test_a_gain_is_an_average_over_numbers(known, uncertainty, of_two, within):
    belief = believed(known)
    (at,), s2 = belief.members, 1.0 / belief.channels[0].numbers[0].precision
    gain = ExpectedGain(uncertainty).score([belief], ALL)
    total = (at.variance + s2)[:, None]
    slope = at.covariance / total
    left = KAPPA + at.target_variance - slope * at.covariance
    before = ndtr(at.target_mean / np.sqrt(KAPPA + at.target_variance))
    brute, u = of_two(before), np.linspace(-8.0, 8.0, 2001)
    for z, weight in zip(u, np.exp(-0.5 * u**2) / np.exp(-0.5 * u**2).sum(), strict=True):
        after = ndtr((at.target_mean + slope * np.sqrt(total) * z) / np.sqrt(left))
        brute = brute - weight * of_two(after)
    brute = brute.mean(axis=1)
    assert gain == pytest.approx(brute, abs=within)
    assert gain.max() > 10.0 * within


def test_a_gain_is_that_of_sampled_numbers_that_were_added(known):
    """Posteriors with one more Gaussian site, by dense linear algebra; numbers from their law."""
    (mixture,) = known._mixtures
    x, level = np.vstack([POOL[:1], TARGETS]), np.append(0, np.ones(len(TARGETS), dtype=np.intp))
    (points,) = mixture.placed(x, level)
    mean, K = mixture.best.fit.posterior.mean_and_covariance(points)
    s2 = mixture.best.fit.likelihood.numbers[0].error_variance
    z = mean[0] + np.sqrt(K[0, 0] + s2) * np.random.RandomState(0).standard_normal(200_000)
    shift = np.multiply.outer(z - mean[0], K[0] / (K[0, 0] + s2))
    left = np.diagonal(K - np.outer(K[0], K[0]) / (K[0, 0] + s2))

    def of_labels(m, v):
        p = ndtr(m / np.sqrt(KAPPA + v))
        return (entr(p) + entr(1.0 - p))[..., 1:]

    brute = of_labels(mean, np.diagonal(K)) - of_labels(mean + shift, left)
    error = brute.mean(axis=1).std() / np.sqrt(len(z))
    gain = rank(known, POOL[:1], "simulation", targets=TARGETS)
    assert gain[0] == pytest.approx(brute.mean(), abs=4.0 * error)


def test_a_number_that_is_all_error_is_worth_nothing_and_errors_make_it_worth_less(known):
    belief = believed(known)
    strategies = [make_strategy(name, None, None) for name in STRATEGIES]
    gains = []
    for noise in (1e-3, 0.1, 1.0, 10.0, 1e12):
        own = belief.channels[0].numbers[0]
        belief.channels[0] = type(belief.channels[0])(
            *np.ones((2, 2)), {0: type(own)(own.value, own.weight, 0, own.scale, noise)}
        )
        gains.append([one.score([belief], ALL) for one in strategies])
    by_noise = np.array(gains)
    assert (np.diff(by_noise, axis=0) <= 1e-6).all()
    assert (by_noise[0].max(axis=-1) > 0.01).all()
    assert np.abs(by_noise[-1]).max() < 1e-9


def test_margin_and_bald_have_closed_forms(known):
    belief = believed(known)
    ratio = belief.members[0].variance * belief.channels[0].numbers[0].precision
    assert np.allclose(Bald().score([belief], ALL), 0.5 * np.log(1.0 + ratio), atol=IDENTITY)
    assert np.allclose(Margin().score([belief], ALL), ratio / (1.0 + ratio), atol=IDENTITY)


def test_numbers_leave_probabilities_as_they_are_on_average(known):
    belief = believed(known)
    after = belief.numbers_table(ALL)
    q = belief.table(ALL).q
    assert np.allclose(np.tensordot(NORMAL_WEIGHTS, after, axes=1), q, atol=1e-5)


def test_the_rough_score_is_the_gain_to_second_order(known):
    belief, strategy = believed(known), ExpectedGain(entropy)
    exact = strategy.score([belief], ALL)
    rough = strategy.rough_score([belief], slice(0, len(POOL)))
    assert np.corrcoef(exact, rough)[0, 1] > 0.95
    few = np.argsort(exact)[:5]
    assert rough[few] == pytest.approx(exact[few], rel=0.3)


def test_a_pick_is_one_more_number_of_the_fit(known):
    belief, i = believed(known), 7
    belief.pick(i)
    (mixture,) = known._mixtures
    fit = mixture.best.fit
    (new,) = mixture.placed(POOL[[i]], np.zeros(1, dtype=np.intp))
    (at,) = mixture.placed(TARGETS, np.ones(len(TARGETS), dtype=np.intp))
    old = fit.posterior.points
    order = np.argsort(np.append(old.level, 0), kind="stable")
    both = Points(np.vstack([old.x, new.x])[order], np.append(old.level, 0)[order])
    s2 = fit.likelihood.numbers[0].error_variance
    root = np.sqrt(np.append(fit.posterior.sites.w, 1.0 / s2)[order])
    inner = np.eye(len(both)) + root[:, None] * fit.prior.joint_covariance(both) * root
    towards = root[:, None] * fit.prior.cross_covariance(both, at)
    left = fit.prior.diagonal(at) - np.sum(towards * np.linalg.solve(inner, towards), axis=0)
    assert belief.members[0].target_variance == pytest.approx(left, abs=IDENTITY)


# Several posteriors


@pytest.fixture(scope="module", params=[{}, {"warp": True}, {"outliers": True}], ids=str)
def learnt(request):
    return fitted(kernel="auto", optimizer="lbfgs", noise=None, **request.param)


def gain_of_the_mixture(belief, i):
    """The expected information of a number, which also says which posterior is right."""
    pairs = [*zip(belief.members, belief.channels, strict=True)]
    place = np.array([i])
    said = np.array([c.said(at.mean[place], at.variance[place], place * 0) for at, c in pairs])
    (mean,), (variance,) = (said[:, j].T for j in range(2))
    centre = belief.weights @ mean
    sd = np.sqrt(belief.weights @ (variance + (mean - centre) ** 2))
    z = centre + sd * np.linspace(-9.0, 9.0, 801)
    density = np.exp(-0.5 * (z - mean[:, None]) ** 2 / variance[:, None])
    density *= (belief.weights / np.sqrt(variance))[:, None]
    right = density / np.maximum(density.sum(axis=0), np.finfo(float).tiny)
    before = after = 0.0
    for (at, channel), share, weight in zip(pairs, right, belief.weights, strict=True):
        own = channel.numbers[0]
        total = at.variance[i] + 1.0 / own.precision
        u = ((own.scale(z) - at.mean[i]) / np.sqrt(total))[:, None]
        pull = at.covariance[i] / np.sqrt(total)
        left = np.sqrt(KAPPA + at.target_variance - pull**2)
        after = after + share[:, None] * ndtr((at.target_mean + u * pull) / left)
        before = before + weight * ndtr(at.target_mean / np.sqrt(KAPPA + at.target_variance))
    weight = density.sum(axis=0) / density.sum()

    def uncertainty(p):
        p = np.clip(p, 0.0, 1.0)
        return entr(p) + entr(1.0 - p)

    return (uncertainty(before) - weight @ uncertainty(after)).mean()


def test_structures_are_averaged_to_first_order(learnt):
    belief = believed(learnt)
    exact = np.array([gain_of_the_mixture(belief, i) for i in ALL])
    gain = ExpectedGain(entropy).score([belief], ALL)
    assert gain.mean() == pytest.approx(exact.mean(), rel=0.2)
    assert np.corrcoef(gain, exact)[0, 1] > 0.95


def test_picks_tell_which_posterior_is_right(learnt):
    belief = believed(learnt)
    doubt = np.trace(belief._doubt)
    gain = ExpectedGain(entropy).score([belief], ALL)
    best = int(np.argmax(gain))
    belief.pick(best)
    assert np.trace(belief._doubt) <= doubt
    assert np.linalg.eigvalsh(belief._doubt).min() > -IDENTITY
    assert ExpectedGain(entropy).score([belief], ALL)[best] < gain[best]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_makes_a_mixed_batch(learnt, strategy):
    costs = {"simulation": 1, "experiment": 4}
    batch = suggest(learnt, POOL, costs, budget=16, strategy=strategy, random_state=0)
    assert (batch["gain"] >= 0).all()
    assert batch["total"].iloc[-1] <= 16
    assert not batch.loc[batch["level"] == "simulation", "audit"].any()
    if strategy in ("margin", "bald", "random"):
        assert batch.groupby("level")["cost"].sum().to_dict() == {"experiment": 8, "simulation": 8}


def test_the_price_decides_between_numbers_and_labels(known):
    def share(price):
        costs = {"simulation": price, "experiment": 1}
        batch = suggest(known, POOL, costs, n=10, random_state=0, audit=0)
        return (batch["level"] == "simulation").mean()

    assert share(1e-3) == 1.0
    assert share(1.0) < 0.5  # caution
    assert share(1e3) == 0.0


def test_of_very_many_numbers_the_best_ones_are_found(known, monkeypatch):
    how = {"costs": {"simulation": 1}, "n": 2, "choices": None, "random_state": 0}
    every = suggest(known, POOL, **how)
    monkeypatch.setattr("polyfid.suggest.suggestion.N_EXACT", 30)
    monkeypatch.setattr("polyfid.suggest.suggestion.N_BEST", 10)
    monkeypatch.setattr("polyfid.suggest.suggestion.N_RANDOM", 2)
    thinned = suggest(known, POOL, **how)
    assert thinned["row"].tolist() == every["row"].tolist()


def test_three_classes_share_the_number():
    model = fitted(data=THREE)
    for strategy in ("epig", "brier", "error", "margin", "bald"):
        gain = rank(model, POOL, "simulation", targets=TARGETS, strategy=strategy)
        assert (gain >= 0.0).all()
        assert gain.max() > 0.0
    silent = fitted(1e12, data=THREE)
    assert np.abs(rank(silent, POOL, "simulation", targets=TARGETS)).max() < 1e-9
    assert len(model.suggest(POOL, {"simulation": 1, "experiment": 4}, budget=12)) >= 3


def test_a_level_without_numbers_so_far():
    X, y, fidelity = TWO
    top = fidelity == "experiment"
    given = {"levels": ["simulation", "experiment"], "numeric_levels": ["simulation"]}
    model = MultiFidelityClassifier(1.0 * RBF(), **given)
    model.fit(X[top], y[top], fidelity=fidelity[top])
    assert rank(model, POOL, "simulation", targets=TARGETS).max() > 0.0


# Advice and queries


def test_plans_count_numbers_by_their_precision():
    def gains(noise):
        advice = advise(fitted(noise), POOL, {"simulation": 1, "experiment": 4}, 24, random_state=0)
        assert advice.plans[0].labels == {"simulation": 24, "experiment": 0}
        return [advice.plans[k].gain.value for k in (0, -1)]

    precise, rough, silent = gains(0.3), gains(30.0), gains(1e12)
    assert precise[0] > rough[0] > silent[0]
    assert silent[0] == pytest.approx(0.0, abs=1e-9)
    assert silent[1] > 0.0


def test_queries_of_a_matrix_with_a_column_of_numbers():
    y = np.full((len(POOL), 2), np.nan)
    y[:12, 0] = margin(POOL[:12])
    model = MultiFidelityClassifier(1.0 * RBF(), numeric_levels=["simulation"])
    query = QueryStrategy(model, levels=["simulation", "experiment"], random_state=0)
    assert query.query(POOL, y).shape == (1, 2)  # without a class there is no model yet
    y[8:20, 1] = margin(POOL[8:20]) > 40.0
    indices, utilities = query.query(POOL, y, batch_size=3, return_utilities=True)
    assert indices.shape == (3, 2)
    assert np.isnan(utilities[0][:12, 0]).all()
    assert (utilities[0][20:] >= 0.0).all()
