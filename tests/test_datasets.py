"""Made data: samples from the model, and the tables of the demonstration."""

import numpy as np
import pytest

from polyfid import datasets
from polyfid.datasets import make_cokriging, make_welding


def test_made_rows():
    made = make_cokriging(30, 10, 3, levels=3, n_test=7, random_state=0)
    assert made.data.shape == (70, 3)
    assert made.fidelity.tolist() == [0] * 30 + [1] * 30 + [2] * 10
    assert made.latent.shape == (70, 3)
    np.testing.assert_array_equal(made.target, made.latent[np.arange(70), made.fidelity] > 0)
    assert made.test_data.shape == (7, 3)
    np.testing.assert_array_equal(made.test_target, made.test_latent[:, -1] > 0)
    assert 0 < made.data.min() < made.data.max() < 1
    np.testing.assert_allclose(made.length_scale, 0.12 * 3**0.6)
    np.testing.assert_array_equal(made.scale, [4.0, 4.0, 4.0])
    one_level = make_cokriging(30, 10, levels=1, random_state=0)
    assert "test_data" not in one_level
    assert one_level.latent.shape == (10, 1)
    assert np.isnan(one_level.rho)
    assert one_level.noise == 0.0


def test_made_rows_repeat_and_do_not_change_the_functions():
    one, two = (make_cokriging(20, 10, n_test=5, random_state=3) for _ in range(2))
    for key in one:
        np.testing.assert_array_equal(one[key], two[key])
    assert not np.allclose(one.data, make_cokriging(20, 10, random_state=4).data)
    many = make_cokriging(3 * datasets.BLOCK, 10, labels="sigmoid", random_state=3)
    assert one.rho == many.rho
    np.testing.assert_array_equal(one.data, many.data[:30])
    np.testing.assert_allclose(one.latent, many.latent[:30], atol=1e-4)


@pytest.mark.parametrize("levels", [2, 3, 4])
@pytest.mark.parametrize("noise", [0.05, 0.2, 0.4])
def test_noise_is_as_wanted(levels, noise):
    made = make_cokriging(8000, 8000, 5, noise=noise, levels=levels, random_state=1)
    first, last = made.latent[:, 0] > 0, made.latent[:, -1] > 0
    assert made.noise == np.mean(first != last)
    assert made.noise == pytest.approx(noise, abs=0.015)
    assert made.rho > 0


def test_extremes_of_noise():
    made = make_cokriging(5000, 5000, noise=0.0, random_state=0)
    assert made.noise < 0.01
    assert made.rho == datasets.MAX_RHO
    # So long a length-scale that the functions hardly change sign: here both are of one sign.
    far = {"length_scale": 20.0, "noise": 0.4, "random_state": 3}
    assert make_cokriging(levels=2, **far).rho < 0
    with pytest.warns(UserWarning, match=r"noise=0\.4 cannot be reached .* only 0\.\d+ at rho = 0"):
        made = make_cokriging(levels=3, **far)
    assert made.rho == 0.0


def test_made_sets_have_the_covariance_of_the_model(monkeypatch):
    monkeypatch.setattr(datasets, "N_ADJUST", 200)  # time, only ρ depends on it
    # Through the public function: f_0 and δ over many draws, at points that differ each time.
    length, products = 0.3, []
    for seed in range(300):
        made = make_cokriging(40, 0, length_scale=length, scale=[2.0, 0.5], random_state=seed)
        g = np.column_stack([made.latent[:, 0], made.latent[:, 1] - made.rho * made.latent[:, 0]])
        i, j = np.triu_indices(40)
        k = np.exp(-np.sum((made.data[i] - made.data[j]) ** 2, axis=1) / (2 * length**2))
        # Projections on k: the covariance is s·k exactly if these are s, 0 and s'.
        products.append([k @ (g[i, a] * g[j, b]) / (k @ k) for a, b in ((0, 0), (0, 1), (1, 1))])
    products = np.array(products)
    error = products.std(axis=0) / np.sqrt(len(products))
    assert np.all(np.abs(products.mean(axis=0) - [2.0, 0.0, 0.5]) < 4 * error)


def test_sigmoid_labels():
    made = make_cokriging(20_000, 20_000, labels="sigmoid", n_test=20_000, random_state=0)
    for f, y in (
        (made.latent[np.arange(40_000), made.fidelity], made.target),
        (made.test_latent[:, -1], made.test_target),
    ):
        p = 1 / (1 + np.exp(-f))
        for low in np.arange(0, 1, 0.2):
            rows = (p >= low) & (p < low + 0.2)
            assert y[rows].mean() == pytest.approx(p[rows].mean(), abs=2.5 / np.sqrt(rows.sum()))


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"n_low": -1}, "n_low == -1, must be >= 0"),
        ({"n_high": 1.5}, "n_high must be an instance of int"),
        ({"levels": 0}, "levels == 0, must be >= 1"),
        ({"noise": 0.6}, r"noise == 0\.6, must be <= 0\.5"),
        ({"labels": "probit"}, "labels must be"),
        ({"length_scale": 0.0}, "length_scale must be a positive number or one .* 2 levels"),
        ({"scale": [1.0, 2.0, 3.0]}, "scale must be a positive number or one .* 2 levels"),
    ],
)
def test_wrong_arguments(wrong, match):
    with pytest.raises((ValueError, TypeError), match=match):
        make_cokriging(**wrong)


def test_the_simulator_of_the_demonstration_errs_and_experiments_do_not():
    simulation, experiment, new, truth = make_welding(seed=3)
    assert [len(table) for table in (simulation, experiment, new, truth)] == [300, 40, 500, 500]
    assert "label" not in new
    assert set(simulation.label) == set(experiment.label) == set(truth) == {"sound", "defect"}
    assert make_welding(seed=3).simulation.equals(simulation)
    assert not make_welding(seed=4).simulation.equals(simulation)
    for table, fewest, most in ((experiment, 0.0, 0.0), (simulation, 0.05, 0.35)):
        reached = 1.6 * table.power / np.sqrt(table.speed) / table.thickness
        sound = reached.between(0.9, 2.0) & (table.gap < 0.3)
        assert fewest <= ((table.label == "sound") != sound).mean() <= most
