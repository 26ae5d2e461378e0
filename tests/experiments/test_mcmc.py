import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from experiments import mcmc
from experiments.mcmc import Draws, McmcCell, covariance, diagnose, predict, sample
from experiments.paper import Column
from experiments.problems import Labelled, Problem
from experiments.run import RowFile, run
from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF, Constant

# A problem with 34 rows, sampled for 6 million steps by another method.
EXACT = json.loads((Path(__file__).parents[1] / "references" / "mcmc.json").read_text())


def small_rows(name, noise, data_home):
    """Two features, a straight boundary, a fifth of the cheap labels wrong."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(120, 2))
    y = (X.sum(axis=1) > 0).astype(np.intp)
    return Labelled(X, (y + (rng.uniform(size=120) < 0.2)) % 2, y, y)


def small(noise):
    return Problem(Column("artificial", "2D", noise), "small")


def test_probabilities_agree_with_another_sampler():
    pytest.importorskip("numpyro")
    h = EXACT["hyper_parameters"]
    kernels = [Constant(h["s_0"]) * RBF(h["l_0"]), Constant(h["s_d"]) * RBF(h["l_d"])]
    x, level, y = (np.array(v) for v in (EXACT["x"], EXACT["level"], EXACT["clean"]["y"]))
    laplace = MultiFidelityClassifier(
        kernels, rho=h["rho"], prior=None, optimizer=None, standardize=False
    ).fit(x, y, fidelity=level)
    mode, _ = laplace.latent_mean_and_variance(x, level)
    K = covariance(kernels, h["rho"], (x, level), (x, level))
    draws = sample(K, y.astype(float), mode, n_draws=2000, seed=1)
    assert draws.white.dtype == np.float64
    assert draws.latent.shape == (4, 2000, 34)
    assert diagnose(draws)["converged"], diagnose(draws)
    for t in (0, 1):
        new = np.array(EXACT["x_test"]), np.full(8, t)
        K_cross = covariance(kernels, h["rho"], new, (x, level))
        p, error = predict(draws, K_cross, np.diag(covariance(kernels, h["rho"], new, new)))
        wanted = np.array(EXACT["clean"][f"test_p_level_{t}"])
        their_error = np.array(EXACT["clean"][f"test_p_level_{t}_se"])
        assert error.max() < 0.01
        assert (np.abs(p - wanted) < 5.0 * np.hypot(error, their_error)).all()
    sd = draws.latent.std(axis=(0, 1))
    np.testing.assert_allclose(sd, EXACT["clean"]["sd"], rtol=0.1)


def test_a_cell_compares_all_schemes_with_sampling(tmp_path, monkeypatch):
    pytest.importorskip("numpyro")
    monkeypatch.setattr(mcmc.problems, "load", small_rows)
    sizes = {"n_cheap": 14, "n_trusted": 6, "n_draws": 1500}
    cell = McmcCell.of(small(0.2), experiment="mcmc", method="mfgpc", mode="multi", **sizes)
    assert run([cell], tmp_path) == (1, 0, 0)
    (row,) = RowFile(tmp_path).rows.values()
    schemes = row["schemes"]
    assert list(schemes) == ["laplace", "ep", "variational", "mcmc"]
    assert row["roc_auc"] == schemes["laplace"]["roc_auc"]
    assert all(len(facts["probabilities"]) == 60 for facts in schemes.values())
    assert schemes["mcmc"]["r_hat_max"] < 1.01
    assert schemes["mcmc"]["ess_min"] > 400
    assert "max_difference" not in schemes["mcmc"]
    for scheme in ("ep", "variational"):
        assert schemes[scheme]["mean_difference"] < 0.005
        assert schemes[scheme]["max_difference"] < 0.02


def independent(n_draws=4000):
    """Draws of three latent values without correlation."""
    rng = np.random.RandomState(0)
    root = np.diag([1.0, 2.0, 0.5])
    return Draws(0.3 + rng.normal(size=(4, n_draws, 3)), root, 0)


def test_probabilities_at_rows_far_away_and_between():
    draws = independent()
    K = draws.root @ draws.root.T
    p, error = predict(draws, K, np.diag(K))  # at rows: the mean sigmoid of their latent values
    np.testing.assert_allclose(p, expit(draws.latent).mean(axis=(0, 1)), atol=1e-4)
    spread = expit(draws.latent).std(axis=(0, 1)) / np.sqrt(16000)
    np.testing.assert_allclose(error, spread, rtol=0.6)
    p, error = predict(independent(10), np.zeros((2, 3)), np.array([1.0, 4.0]))  # the prior
    np.testing.assert_allclose(p, 0.5)
    np.testing.assert_allclose(error, 0.0, atol=1e-15)
    draws = Draws(np.full((1, 10, 1), 2.0), np.eye(1), 0)
    p, _ = predict(draws, np.array([[0.6]]), np.array([1.0]))  # the conditional variance counts
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    wanted = expit(1.2 + 0.8 * nodes) @ weights / weights.sum()
    np.testing.assert_allclose(p, wanted, rtol=1e-6)


def test_chains_that_disagree_are_not_called_converged():
    pytest.importorskip("numpyro")
    draws = independent(200)
    assert diagnose(draws)["converged"]
    draws.white[0] += 1.0
    assert diagnose(draws)["r_hat_max"] > 1.05
    assert not diagnose(draws)["converged"]


def test_a_single_run_of_each_task(monkeypatch):
    sources = [small(noise) for noise in (0.2, 0.4) * 3]
    monkeypatch.setattr(mcmc.problems, "pmlb", lambda data_home, quick: sources)
    monkeypatch.setattr(mcmc, "usable_seeds", lambda problems, runs: [4, 6][:runs])
    cells = mcmc.cells("data", 5, False)
    assert [(cell.noise, cell.seed) for cell in cells] == [(0.2, 4)] * 3
    assert len(mcmc.cells("data", None, True)) == 2
