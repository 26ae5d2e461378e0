"""Extreme numbers, odd sizes, other orders of the same data: a part of ``adversary``."""

import numpy as np
import pytest

from benchmarks.attacks import numerics
from benchmarks.figures import Context
from polyfid import MultiFidelityClassifier
from polyfid.inference.inducing import choose
from polyfid.kernels import RBF, Linear, White
from polyfid.model.features import FARTHEST, AsGiven, Ranked, Standardised
from polyfid.model.logistic import tilted_sigmoid
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

GIVEN = numerics.GIVEN
Case, make_data = numerics.Case, numerics.make_data


def sound(settings, **data):
    assert numerics.unsound(Case("", make_data(**data), settings)) is None


@pytest.mark.parametrize("scheme", numerics.SCHEMES)
@pytest.mark.parametrize("amplitude", [1e-6, 1e6])
def test_amplitudes(scheme, amplitude):
    sound({"kernel": amplitude * RBF(), "optimizer": None, "inference": scheme})


@pytest.mark.parametrize("scheme", numerics.SCHEMES)
@pytest.mark.parametrize("weight", [1e-12, 1e12])
def test_weights(scheme, weight):
    weights = np.where(np.arange(40) % 7 == 0, weight, 1.0)
    sound({**GIVEN, "inference": scheme}, weight=weights)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("kernel", [1.0 * RBF(), Linear(), 1.0 * RBF() + White(0.3)])
@pytest.mark.parametrize("scale", [1e-300, 1e300, 8e307, [1e300, 1.0], [1.0, 5e-324], [1.0, 0.0]])
def test_sizes_of_features(scale, kernel, standardize):
    settings = {"kernel": kernel, "optimizer": None, "standardize": standardize}
    for n_inducing in (None, 5):
        sound({**settings, "n_inducing": n_inducing}, scale=np.array(scale))


def test_features_too_large_to_be_taken_as_they_are():
    data = make_data(scale=1e300)
    with pytest.raises(ValueError, match=r"X has values up to 1\.95e\+300.*use standardize=True"):
        data.fit(**GIVEN, standardize=False)
    blocks = [(data.X, data.y)]
    with pytest.raises(ValueError, match=r"X has values up to 1\.95e\+300"):
        MultiFidelityClassifier(**GIVEN, n_inducing=5, standardize=False).fit_blocks(blocks)


@pytest.mark.parametrize("kernel", [1.0 * RBF(), 1.0 * RBF(ard=True)])
def test_rows_at_the_end_of_the_world_are_predicted_as_far_away(kernel):
    data = make_data()
    model = data.fit(kernel=kernel)
    far = model.predict_proba(np.array([[1e50, -1e50], [1e308, -1e308]]))
    np.testing.assert_allclose(far[0], far[1], rtol=1e-12)


@pytest.mark.parametrize("kind", [AsGiven, Standardised, Ranked])
def test_points_have_squares(kind):
    x = np.random.RandomState(0).standard_normal((9, 2))
    points = kind.of(x, np.ones(9))(np.array([[1.7e308, -1.7e308], [0.0, 1e-300]]))
    assert points[0].tolist() == [FARTHEST, -FARTHEST]
    assert np.isfinite(np.square(points)).all()


def test_the_largest_numbers_are_standardised():
    x = np.array([[-1.7e308], [1.7e308], [1.7e308]])
    z = Standardised.of(x, np.ones(3))(x)[:, 0]
    np.testing.assert_allclose([z.mean(), z.std()], [0.0, 1.0], atol=1e-12)


def test_the_smallest_numbers_are_standardised():
    x = np.array([[0.0], [5e-324], [0.0], [0.0]])
    assert np.isfinite(Standardised.of(x, np.ones(4))(x)).all()


def test_tails_of_wide_gaussians():
    # For very wide Gaussians the sigmoid is a step: log Phi, whose slope is |z| / s for z << 0.
    z, s = -1e9, 1e11
    log_z, first, _ = tilted_sigmoid([z * s], [s * s])
    np.testing.assert_allclose([log_z[0], first[0] * s], [-0.5 * z * z, -z], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:inference did not converge")
def test_kernels_that_are_none():
    periodic = numerics.KERNELS["periodic"]  # of distances in a plane it is not positive definite
    data = make_data(n=30)
    model = data.fit(kernel=periodic, optimizer=None)
    with pytest.raises(ValueError, match=r"kernel and rows have no posterior.*positive"):
        model.sample_latent(np.random.RandomState(0).uniform(-9, 9, (60, 2)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_tuning": {0: 0, 1: 0}}, "n_tuning leaves no rows to tune on"),
        ({"n_tuning": {0: 0}, "levels": [0, 1, 2]}, None),
        ({"n_tuning": {0: 0, 1: 0, 2: 5}, "levels": [0, 1, 2]}, "n_tuning leaves no rows"),
        ({"rho": 1e300}, "rho must be one number.*between -1e.20 and 1e.20"),
        ({"rho_bounds": (-1e300, 1e300)}, "rho_bounds must be"),
        ({"tol": 1e300}, "tol must be one number from 0 to below 1"),
        ({"kernel": White(), "n_inducing": 5}, "n_inducing goes with kernels"),
    ],
)
@pytest.mark.filterwarnings("ignore:there are no rows at the top level")
def test_settings_that_leave_nothing(settings, message):
    data = make_data()
    model = MultiFidelityClassifier(**{"kernel": 1.0 * RBF(), **settings})
    if message is None:
        model.fit(data.X, data.y, data.fidelity)
        return
    with pytest.raises(ValueError, match=message):
        model.fit(data.X, data.y, data.fidelity)


def test_weights_beyond_counting():
    with pytest.raises(ValueError, match=r"sample_weight must be at most 1e\+15.*1e\+300 in row 0"):
        make_data(weight=np.full(40, 1e300)).fit(**GIVEN)


@pytest.mark.parametrize("rho_bounds", [(-1e-300, 1e-300), (-1e12, -1e11)])
def test_bounds_of_rho(rho_bounds):
    sound({"kernel": 1.0 * RBF(), "rho_bounds": rho_bounds})


@pytest.mark.slow
def test_a_default_fit_whose_evidence_is_refused_everywhere():
    sound({"rho_bounds": (-1e12, -1e11)})


def test_tuning_that_stops_early_says_after_how_much():
    sound({"kernel": 1.0 * RBF(), "max_iter": 1})


@pytest.mark.parametrize("scale", [1.0, 1e-140, 1e90])
def test_inducing_points_of_columns_in_any_order_and_unit(scale):
    x = np.random.RandomState(0).standard_normal((60, 3)) * [1.0, 2.0, 1e-30] * scale
    level, prior = np.zeros(60, int), Autoregressive((RBF(scale),))
    (z,) = choose(Points(x, level), prior, 7, 0).z
    (turned,) = choose(Points(np.ascontiguousarray(x[:, [2, 0, 1]]), level), prior, 7, 0).z
    assert z.shape == (7, 3)
    np.testing.assert_array_equal(turned, z[:, [2, 0, 1]])


@pytest.mark.parametrize("way", ["given, ep", "sparse", "sparse tuned", "tuned"])
def test_orders_and_units(way):
    (case,) = (c for c in numerics._orders(True) if c.name == f"{way}, seed 0")
    assert numerics.differing(case) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_the_default_does_not_depend_on_the_order_of_columns(seed):
    assert numerics.differing(Case("", make_data(n=60, n_features=3, seed=seed))) is None


@pytest.mark.parametrize("case", list(numerics._repetitions(True)), ids=str)
def test_weights_are_repetitions(case):
    assert numerics.unequal_to_repetitions(case) is None


@pytest.mark.slow
def test_threads_do_not_disturb_each_other():
    assert numerics.disturbed(0) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_quick_part_of_the_attack():
    for trial in numerics.trials(Context(quick=True)):
        assert trial.held == trial.tried > 0, (trial.what, trial.failures)


def test_the_attack_can_fail():
    broken = make_data()
    assert "converged_" in numerics._noisy([], type("Model", (), {"converged_": False}))
    assert numerics.unequal_to_repetitions(
        Case("", numerics.replace(broken, weight=np.arange(40) % 3 + 0.5), GIVEN)
    )
