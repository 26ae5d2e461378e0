import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from polyfid.experiments import mcmc
from polyfid.experiments.mcmc import Draws, McmcCell, diagnose, predict, sample
from polyfid.experiments.problems import Labelled, Problem
from polyfid.experiments.run import run
from scipy.special import expit

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF, Constant
from polyfid.model.logistic import expected_sigmoid
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

# A problem with 34 rows, sampled for 6 million steps by another method.
EXACT = json.loads((Path(__file__).parents[1] / "references" / "mcmc.json").read_text())


@dataclass(frozen=True, kw_only=True)
class Small(Problem):
    """Two features, a straight boundary, a fifth of the cheap labels wrong."""

    @property
    def name(self):
        return "small"

    def load(self):
        rng = np.random.RandomState(0)
        X = rng.normal(size=(90, 2))
        y = (X.sum(axis=1) > 0).astype(np.intp)
        return Labelled(X, (y + (rng.uniform(size=90) < 0.2)) % 2, y, y)

    def split(self, seed):
        return self.load().draw(seed, 60, 14, 6)


def test_probabilities_agree_with_another_sampler():
    pytest.importorskip("numpyro")
    h = EXACT["hyper_parameters"]
    kernels = [Constant(h["s_0"]) * RBF(h["l_0"]), Constant(h["s_d"]) * RBF(h["l_d"])]
    x, level, y = (np.array(v) for v in (EXACT["x"], EXACT["level"], EXACT["clean"]["y"]))
    laplace = MultiFidelityClassifier(
        kernels, rho=h["rho"], prior=None, optimizer=None, standardize=False
    ).fit(x, y, fidelity=level)
    prior = Autoregressive(tuple(kernels), (h["rho"],))
    rows = Points(x, level)
    mode, _ = laplace.latent_mean_and_variance(x, level)
    K = prior.cross_covariance(rows, rows)
    draws = sample(K, y.astype(float), mode, n_draws=2000, seed=1)
    assert draws.white.dtype == np.float64
    assert draws.latent.shape == (4, 2000, 34)
    diagnosis = diagnose(draws)
    assert diagnosis.converged, diagnosis
    for t in (0, 1):
        new = Points(np.array(EXACT["x_test"]), np.full(8, t))
        p, error = predict(draws, prior.cross_covariance(new, rows), prior.diagonal(new))
        wanted = np.array(EXACT["clean"][f"test_p_level_{t}"])
        known = np.array(EXACT["clean"][f"test_p_level_{t}_se"])
        assert error.max() < 0.01
        assert (np.abs(p - wanted) < 5.0 * np.hypot(error, known)).all()
    sd = draws.latent.std(axis=(0, 1))
    np.testing.assert_allclose(sd, EXACT["clean"]["sd"], rtol=0.1)


def test_a_cell_sets_all_schemes_against_sampling(tmp_path):
    pytest.importorskip("numpyro")
    cell = McmcCell(
        experiment="mcmc",
        problem="small",
        method="mfgpc",
        mode="multi",
        noise=0.2,
        source=Small(),
        n_draws=1500,
    )
    assert run([cell], tmp_path) == (1, 0, 0)
    rows = (tmp_path / "rows.csv").read_text().splitlines()
    assert len(rows) == 1 + cell.n_rows
    assert not any("Error" in row for row in rows)
    names, *lines = [x.split(",") for x in (tmp_path / "mcmc.csv").read_text().splitlines()]
    merits = {line[1]: dict(zip(names, line, strict=True)) for line in lines}
    assert list(merits) == ["mcmc", "laplace", "ep", "variational"]
    assert merits["mcmc"]["max_difference"] == merits["ep"]["r_hat_max"] == ""
    assert float(merits["mcmc"]["r_hat_max"]) < 1.01
    assert float(merits["mcmc"]["ess_min"]) > 400
    for scheme in ("ep", "variational"):
        assert float(merits[scheme]["mean_difference"]) < 0.005
        assert float(merits[scheme]["max_difference"]) < 0.02
    shown = (tmp_path / "mcmc_probabilities.csv").read_text().splitlines()
    assert shown[0] == "problem,row,scheme,probability"
    assert len(shown) == 1 + 4 * 60
    assert run([cell], tmp_path) == (0, 1, 0)  # all of its rows are there


def independent(n_draws=4000):
    """Draws of three latent values without correlation."""
    rng = np.random.RandomState(0)
    root = np.diag([1.0, 2.0, 0.5])
    return Draws(0.3 + rng.normal(size=(4, n_draws, 3)), root, 0)


def test_a_point_at_a_row_has_the_mean_sigmoid_of_its_latent_value():
    draws = independent()
    K = draws.root @ draws.root.T
    p, error = predict(draws, K, np.diag(K))
    np.testing.assert_allclose(p, expit(draws.latent).mean(axis=(0, 1)), atol=1e-4)
    spread = expit(draws.latent).std(axis=(0, 1)) / np.sqrt(16000)
    np.testing.assert_allclose(error, spread, rtol=0.6)


def test_a_point_far_from_all_rows_has_its_prior_probability():
    p, error = predict(independent(10), np.zeros((2, 3)), np.array([1.0, 4.0]))
    np.testing.assert_allclose(p, 0.5)
    np.testing.assert_allclose(error, 0.0)


def test_the_conditional_variance_counts():
    draws = Draws(np.full((1, 10, 1), 2.0), np.eye(1), 0)
    p, _ = predict(draws, np.array([[0.6]]), np.array([1.0]))
    np.testing.assert_allclose(p, expected_sigmoid([1.2], [0.64]), rtol=1e-6)


def test_more_points_than_fit_in_a_block():
    draws = independent(50)
    K_cross = np.random.RandomState(1).uniform(-0.2, 0.2, (mcmc.BLOCK + 3, 3))
    p, error = predict(draws, K_cross, np.ones(len(K_cross)))
    again, _ = predict(draws, K_cross[-5:], np.ones(5))
    np.testing.assert_allclose(p[-5:], again, rtol=1e-12)
    assert error.shape == p.shape


def test_chains_that_disagree_are_not_called_converged():
    pytest.importorskip("numpyro")
    draws = independent(200)
    assert diagnose(draws).converged
    draws.white[0] += 1.0
    assert diagnose(draws).r_hat_max > 1.05
    assert not diagnose(draws).converged


def test_a_single_run_of_each_task(monkeypatch):
    sources = [Small(noise=noise) for noise in (0.2, 0.4, 0.2, 0.4, 0.2, 0.4)]
    monkeypatch.setattr(mcmc.problems, "pmlb", lambda data_home, quick: sources)
    monkeypatch.setattr(Small, "seeds", lambda self, runs: [4, 6][:runs])
    found = mcmc.cells("data", 5, False)
    assert [(cell.noise, cell.seed) for cell in found] == [(0.2, 4)] * 3
    assert len(mcmc.cells("data", None, True)) == 2
