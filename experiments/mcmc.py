"""Approximate inference against sampling: how far its probabilities are from the exact ones.

Hyper-parameters are tuned once and kept. With them the posterior of the latent values z at the
rows, N(z | 0, K) prod_i sigmoid(y_i z_i), is sampled by NUTS (Hoffman and Gelman, 2014), and the
resulting probabilities are compared with those of Laplace, EP and variational inference.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit
from sklearn.preprocessing import StandardScaler

from experiments import problems
from experiments.cells import Cell, Row, scores
from experiments.methods import SplitCell, fit_and_predict, paper_model
from experiments.problems import Split, usable_seeds
from polyfid import MultiFidelityClassifier

Array = NDArray[np.float64]

SCHEMES = ("laplace", "ep", "variational")
NOISE = 0.2
N_SHOWN = 400  # test rows of a task whose probabilities are kept for the figure

N_CHAINS, N_WARMUP, N_DRAWS = 4, 300, 5000
#: At most 2^3 - 1 steps per transition: about half an orbit in the coordinates used.
MAX_TREE_DEPTH = 3
TARGET_ACCEPTANCE = 0.65

R_HAT_LIMIT, ESS_LIMIT = 1.01, 400.0  # limits of a converged run
N_BATCHES = 5  # per chain; their means give the Monte-Carlo error
N_NODES = 256  # of the table of E sigmoid; interpolation is off by less than 1e-4
BLOCK = 256  # test rows at a time
JITTER = 1e-9  # relative to the mean prior variance; keeps the Cholesky factor of K finite


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from the posterior of the latent values at the rows, z = root white."""

    white: Array  # (n_chains, n_draws, n)
    root: Array  # (n, n), lower triangular, K = root root^T
    n_divergent: int  # transitions whose numerical trajectory diverged from the exact one

    @property
    def latent(self) -> Array:
        """Latent values at the rows, (n_chains, n_draws, n)."""
        return np.asarray(self.white @ self.root.T)


def sample(K: Array, y: Array, mode: Array, *, n_draws: int = N_DRAWS, seed: int = 0) -> Draws:
    """Sample the posterior N(z | 0, K) prod_i sigmoid(y_i z_i) by NUTS; labels y are -1 and +1.

    With z = L e, K = L L^T, the prior of e is N(0, I). NUTS moves in coordinates u,
    e = e_0 + Q (1 + lambda)^(-1/2) u, where e_0 is the mode, which need not be exact,
    L^T W L = Q lambda Q^T and W holds the curvatures of the log-likelihood there. The posterior of
    u is nearly N(0, I) for any K, so that no mass matrix has to be tuned.
    """
    import jax
    from jax import numpy as jnp
    from numpyro.infer import MCMC, NUTS

    L = cholesky(K + JITTER * np.mean(np.diag(K)) * np.eye(len(K)), lower=True)
    curvature = expit(mode) * expit(-mode)
    eigenvalues, Q = np.linalg.eigh(L.T @ (curvature[:, None] * L))
    spread = 1.0 / np.sqrt(1.0 + np.maximum(eigenvalues, 0.0))
    # L^-1 mode, because the mode is K times the gradient of the log-likelihood.
    centre = Q.T @ (L.T @ (y * expit(-y * mode)))
    start = np.random.RandomState(seed).standard_normal((N_CHAINS, len(y)))

    with jax.enable_x64(True):
        slope, offset = jnp.asarray(L @ (Q * spread)), jnp.asarray(L @ (Q @ centre))

        def potential(u: Any) -> Any:
            prior = 0.5 * jnp.sum((centre + spread * u) ** 2)
            return prior + jnp.sum(jax.nn.softplus(-y * (offset + slope @ u)))

        kernel = NUTS(
            potential_fn=potential,
            adapt_mass_matrix=False,
            max_tree_depth=MAX_TREE_DEPTH,
            target_accept_prob=TARGET_ACCEPTANCE,
        )
        sampler = MCMC(
            kernel,
            num_warmup=N_WARMUP,
            num_samples=n_draws,
            num_chains=N_CHAINS,
            chain_method=lambda run: partial(jax.lax.map, run),  # compiled once for all chains
            progress_bar=False,
        )
        # Starts are twice as spread out as the posterior, so that R-hat detects slow mixing.
        key, first = jax.random.PRNGKey(seed), jnp.asarray(2.0 * start)
        sampler.run(key, init_params=first, extra_fields=("diverging",))
        u = np.asarray(sampler.get_samples(group_by_chain=True))
        n_divergent = int(np.sum(sampler.get_extra_fields()["diverging"]))
    return Draws((centre + spread * u) @ Q.T, L, n_divergent)


def diagnose(draws: Draws) -> Row:
    """Worst split R-hat and effective sample size of the latent values; whether chains agree."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    r_hat = float(np.max(split_gelman_rubin(draws.latent)))
    ess = float(np.min(effective_sample_size(draws.latent)))
    converged = r_hat < R_HAT_LIMIT and ess > ESS_LIMIT and draws.n_divergent == 0
    facts = {"r_hat_max": r_hat, "ess_min": ess, "divergences": draws.n_divergent}
    return facts | {"converged": converged}


def predict(draws: Draws, K_cross: Array, variance: Array) -> tuple[Array, Array]:
    """Probabilities at other points, and their Monte-Carlo errors from means of batches.

    Given the latent values at the rows, the value at a point is Gaussian: the sigmoid is integrated
    over this Gaussian and then averaged over the draws. ``K_cross`` is (m, n).
    """
    n_chains, n_draws, n = draws.white.shape
    n_batches = min(N_BATCHES, n_draws)
    length = n_draws // n_batches
    white = draws.white[:, : n_batches * length].reshape(-1, n)
    probability, error = np.empty(len(variance)), np.empty(len(variance))
    for begin in range(0, len(variance), BLOCK):
        block = slice(begin, begin + BLOCK)
        weights = solve_triangular(draws.root, K_cross[block].T, lower=True)
        rest = np.maximum(variance[block] - np.einsum("ij,ij->j", weights, weights), 0.0)
        for i, (mean, own) in enumerate(zip(weights.T @ white.T, rest, strict=True), begin):
            p = expected_sigmoid(mean, own).reshape(n_chains * n_batches, length).mean(axis=1)
            probability[i] = p.mean()
            error[i] = p.std(ddof=1) / np.sqrt(len(p)) if len(p) > 1 else np.nan
    return probability, error


_Z = np.linspace(-8.0, 8.0, 161)  # so fine that the sum below is exact to 1e-8
_WEIGHTS = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()


def expected_sigmoid(mean: Array, variance: float) -> Array:
    """E sigmoid of many Gaussians with the same variance, interpolated in a table."""
    nodes = np.linspace(mean.min(), max(mean.max(), mean.min() + 1e-6), N_NODES)
    table = expit(nodes[:, None] + np.sqrt(variance) * _Z) @ _WEIGHTS
    return np.interp(mean, nodes, table)


#: Features and levels (0 cheap, 1 trusted) of some points.
Points = tuple[Array, NDArray[np.intp]]


def covariance(kernels: Sequence[Any], rho: float, a: Points, b: Points) -> Array:
    """Prior covariance of the paper's model between two sets of points."""
    (x, s), (z, t) = a, b
    scale = np.outer(np.where(s == 1, rho, 1.0), np.where(t == 1, rho, 1.0))
    return np.asarray(scale * kernels[0](x, z) + np.outer(s, t) * kernels[1](x, z))


@dataclass(frozen=True, kw_only=True)
class McmcCell(SplitCell):
    """All schemes on one split of a task, with the hyper-parameters tuned by the paper's model."""

    n_draws: int = N_DRAWS

    def compute(self) -> Row:
        """The figures of Laplace's method, and below ``schemes`` those of every scheme."""
        split = self.split
        tuned = paper_model(self.seed).fit(split.X, split.y, fidelity=split.fidelity)
        kept: dict[str, Any] = {"kernel": list(tuned.kernels_), "rho": tuple(tuned.rho_)}
        kept |= {"prior": None, "optimizer": None}
        models = {s: MultiFidelityClassifier(**kept | {"inference": s}) for s in SCHEMES}
        rows = split.X, split.y, split.X_test
        results = {
            scheme: fit_and_predict(model, *rows, fidelity=split.fidelity)
            for scheme, model in models.items()
        }
        for _, facts in results.values():
            facts["seconds"] = facts.pop("fit_seconds") + facts.pop("predict_seconds")
        exact, sampling = _sampled(models["laplace"], split, self.n_draws, self.seed)
        schemes = {}
        for scheme, (proba, facts) in (results | {"mcmc": (exact, sampling)}).items():
            # The first of the test rows, whose order is random.
            facts |= scores(split.y_test, proba) | {"probabilities": proba[:N_SHOWN].round(5)}
            if scheme != "mcmc":
                gap = np.abs(proba - exact)
                facts |= {"max_difference": gap.max(), "mean_difference": gap.mean()}
            schemes[scheme] = facts
        return {
            **scores(split.y_test, results["laplace"][0]),
            **split.sizes,
            "fit_seconds": sum(facts["seconds"] for facts in schemes.values()),
            "rho": float(tuned.rho_[0]),
            "converged": all(facts["converged"] for facts in schemes.values()),
            "schemes": schemes,
        }


def _sampled(
    laplace: MultiFidelityClassifier, split: Split, n_draws: int, seed: int
) -> tuple[Array, Row]:
    """Probabilities of the same model by sampling, and facts about the chains.

    Of the fitted model only the hyper-parameters and the mode are used.
    """
    started = time.process_time()
    kernels, rho = list(laplace.kernels_), float(laplace.rho_[0])
    scaler = StandardScaler().fit(split.X)
    rows = scaler.transform(split.X), split.fidelity
    new = scaler.transform(split.X_test), np.ones(len(split.X_test), dtype=np.intp)
    mode, _ = laplace.latent_mean_and_variance(split.X, split.fidelity)
    signs = np.where(split.y == 1, 1.0, -1.0)
    draws = sample(covariance(kernels, rho, rows, rows), signs, mode, n_draws=n_draws, seed=seed)
    first = new[0][:1], new[1][:1]  # kernels are stationary: the prior variance is the same at all
    variance = np.full(len(new[0]), covariance(kernels, rho, first, first)[0, 0])
    proba, error = predict(draws, covariance(kernels, rho, new, rows), variance)
    facts = diagnose(draws) | {"monte_carlo_error": float(error.max())}
    return proba, facts | {"seconds": time.process_time() - started}


def cells(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
    """One cell for each PMLB task that can be read; the first two of them for a quick run.

    As in the paper there is a single run per task, whatever ``runs``.
    """
    del runs
    sources = [s for s in problems.pmlb(data_home, quick=quick) if s.column.noise == NOISE]
    about = {"experiment": "mcmc", "method": "mfgpc", "mode": "multi"}
    return [
        McmcCell.of(source, **about, seed=usable_seeds([source], 1)[0])
        for source in sources[: 2 if quick else None]
    ]
