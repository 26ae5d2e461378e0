"""Approximate inference against sampling: how far its probabilities are from the exact ones.

Hyper-parameters are tuned once and kept. With them the posterior of the latent values z at the
rows, N(z | 0, K) prod_i sigmoid(y_i z_i), is sampled by NUTS (Hoffman and Gelman, 2014), and the
probabilities that follow are set against those of Laplace, EP and variational inference.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from polyfid import MultiFidelityClassifier
from polyfid.arrays import Array, Scale
from polyfid.experiments import problems
from polyfid.experiments.methods import RESTARTS
from polyfid.experiments.problems import Problem, Split
from polyfid.experiments.rows import versions
from polyfid.experiments.run import Cell, Files, Row, Scores, as_setting
from polyfid.inference.linalg import jittered_root
from polyfid.model.logistic import expected_sigmoid
from polyfid.model.prior import Autoregressive
from polyfid.rows import Points

SCHEMES = ("laplace", "ep", "variational")
NOISE = 0.2
N_SHOWN = 400  # test rows of a task whose probabilities are kept

N_CHAINS, N_WARMUP, N_DRAWS = 4, 300, 5000
#: Transitions of at most 2^3 - 1 steps: in the coordinates below half an orbit is about so long.
MAX_TREE_DEPTH = 3
TARGET_ACCEPTANCE = 0.65

R_HAT_LIMIT, ESS_LIMIT = 1.01, 400.0  # what is asked of a converged run
N_BATCHES = 5  # of a chain, whose means tell the Monte-Carlo error
N_NODES = 256  # of the table of E sigmoid; interpolation is off by less than 1e-4
BLOCK = 256  # test rows at a time


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from the posterior of the latent values at the rows, and how the sampling went.

    Attributes
    ----------
    white : array of shape (n_chains, n_draws, n)
        Whitened latent values: z = root white.
    root : array of shape (n, n)
        Lower triangular, K = root root^T.
    n_divergent : int
        Transitions that left the region where the numerical trajectory follows the exact one.
    """

    white: Array
    root: Array
    n_divergent: int

    @property
    def latent(self) -> Array:
        """Latent values at the rows, (n_chains, n_draws, n)."""
        return np.asarray(self.white @ self.root.T)


class Diagnosis(NamedTuple):
    """Whether chains agree: worst split R-hat and effective sample size of the latent values."""

    r_hat_max: float
    ess_min: float
    n_divergent: int

    @property
    def converged(self) -> bool:
        """Whether the chains can be trusted."""
        return self.r_hat_max < R_HAT_LIMIT and self.ess_min > ESS_LIMIT and self.n_divergent == 0


def sample(
    K: Array,
    y: Array,
    mode: Array,
    *,
    n_chains: int = N_CHAINS,
    n_warmup: int = N_WARMUP,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Draws:
    """Sample the posterior N(z | 0, K) prod_i sigmoid(y_i z_i) by NUTS, in double precision.

    With z = L e, K = L L^T, the prior of e is N(0, I). NUTS moves in coordinates u,
    e = e_0 + Q (1 + lambda)^(-1/2) u, where e_0 is the mode, L^T W L = Q lambda Q^T and W holds
    the curvatures of the log-likelihood there. The posterior of u is nearly N(0, I), whatever K,
    which saves tuning a mass matrix; a change of variables alters nothing else.

    Parameters
    ----------
    K : array of shape (n, n)
        Prior covariance of the latent values.
    y : array of shape (n,)
        Labels -1 and +1.
    mode : array of shape (n,)
        Where the posterior is largest, as Laplace's method finds it. It need not be exact.
    n_chains, n_warmup, n_draws : int
        Chains, and transitions of each before and while draws are kept.
    seed : int
        Of the sampler.

    Returns
    -------
    Draws

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.experiments.mcmc import sample
    >>> draws = sample(np.eye(2), np.array([1.0, -1.0]), np.zeros(2))  # doctest: +SKIP
    >>> draws.latent.mean(axis=(0, 1)).round(1)  # doctest: +SKIP
    array([ 0.4, -0.4])
    """
    import jax
    from jax import numpy as jnp
    from numpyro.infer import MCMC, NUTS

    L = jittered_root(K)
    curvature = expit(mode) * expit(-mode)
    eigenvalues, Q = np.linalg.eigh(L.T @ (curvature[:, None] * L))
    spread = 1.0 / np.sqrt(1.0 + np.maximum(eigenvalues, 0.0))
    centre = Q.T @ (L.T @ (y * expit(-y * mode)))  # L^-1 mode, as the mode is K times the slope
    start = np.random.RandomState(seed).standard_normal((n_chains, len(y)))

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
            num_warmup=n_warmup,
            num_samples=n_draws,
            num_chains=n_chains,
            chain_method=lambda run: partial(jax.lax.map, run),  # compiled once for all chains
            progress_bar=False,
        )
        # Twice as spread out as the posterior: R-hat shows whether chains forget where they began.
        first = jnp.asarray(2.0 * start if n_chains > 1 else 2.0 * start[0])
        sampler.run(jax.random.PRNGKey(seed), init_params=first, extra_fields=("diverging",))
        u = np.asarray(sampler.get_samples(group_by_chain=True))
        n_divergent = int(np.sum(sampler.get_extra_fields()["diverging"]))
    return Draws((centre + spread * u) @ Q.T, L, n_divergent)


def diagnose(draws: Draws) -> Diagnosis:
    """R-hat, effective sample size and divergences of some draws.

    Examples
    --------
    >>> from polyfid.experiments.mcmc import diagnose
    >>> diagnose(draws).converged  # doctest: +SKIP
    True
    """
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    latent = draws.latent
    return Diagnosis(
        float(np.max(split_gelman_rubin(latent))),
        float(np.min(effective_sample_size(latent))),
        draws.n_divergent,
    )


def predict(draws: Draws, K_cross: Array, variance: Array) -> tuple[Array, Array]:
    """Probabilities of the positive class at other points, and their Monte-Carlo errors.

    Given the latent values at the rows the one at a point is Gaussian, and E sigmoid is integrated
    over that; what remains is averaged over the draws. The error comes from means of batches.

    Parameters
    ----------
    draws : Draws
    K_cross : array of shape (m, n)
        Prior covariance of the latent values at the points and at the rows.
    variance : array of shape (m,)
        Prior variance at the points.

    Returns
    -------
    probability, error : arrays of shape (m,)

    Examples
    --------
    Two draws of one latent value, and a point where the latent value is the same:

    >>> import numpy as np
    >>> from polyfid.experiments.mcmc import Draws, predict
    >>> draws = Draws(np.array([[[-1.0], [2.0]]]), np.eye(1), 0)
    >>> predict(draws, np.eye(1), np.ones(1))[0].round(4)
    array([0.5749])
    """
    n_chains, n_draws, n = draws.white.shape
    n_batches = min(N_BATCHES, n_draws)
    length = n_draws // n_batches
    white = draws.white[:, : n_batches * length].reshape(-1, n)
    probability, error = np.empty(len(variance)), np.empty(len(variance))
    for begin in range(0, len(variance), BLOCK):
        part = slice(begin, begin + BLOCK)
        weights = solve_triangular(draws.root, K_cross[part].T, lower=True)
        rest = np.maximum(variance[part] - np.einsum("ij,ij->j", weights, weights), 0.0)
        for i, (mean, own) in enumerate(zip(weights.T @ white.T, rest, strict=True), begin):
            batches = (
                _expected_sigmoid(mean, own).reshape(n_chains * n_batches, length).mean(axis=1)
            )
            probability[i] = batches.mean()
            error[i] = batches.std(ddof=1) / np.sqrt(len(batches)) if len(batches) > 1 else np.nan
    return probability, error


def _expected_sigmoid(mean: Array, variance: float) -> Array:
    """E sigmoid of Gaussians with one variance, read off a table: they are many."""
    low = mean.min()
    step = max(mean.max() - low, 1e-6) / (N_NODES - 1)
    table = expected_sigmoid(low + step * np.arange(N_NODES), variance)
    place = (mean - low) / step
    node = np.minimum(place.astype(np.intp), N_NODES - 2)
    return np.asarray(table[node] + (place - node) * np.diff(table)[node])


class Comparison(NamedTuple):
    """Probabilities of a scheme against those of sampling.

    Examples
    --------
    >>> from polyfid.experiments.mcmc import Comparison
    >>> Comparison.of([0.25, 0.5], [0.5, 0.5])
    Comparison(max_difference=0.25, mean_difference=0.125)
    """

    max_difference: float
    mean_difference: float

    @classmethod
    def of(cls, proba: Sequence[float] | Array, exact: Sequence[float] | Array) -> Comparison:
        """Largest and mean absolute difference."""
        gap = np.abs(np.subtract(proba, exact))
        return cls(float(gap.max()), float(gap.mean()))


class _Answer(NamedTuple):
    """Probabilities of one scheme on the test rows, and how it came to them."""

    proba: Array
    fit_seconds: float
    predict_seconds: float
    converged: bool
    evidence: float | None = None
    diagnosis: Diagnosis | None = None
    error: float | None = None  # of Monte Carlo, the largest


@dataclass(frozen=True, kw_only=True)
class McmcCell(Cell):
    """All schemes on one split of a task, a row each, with the hyper-parameters of the first."""

    source: Problem
    n_draws: int = N_DRAWS

    @property
    def n_rows(self) -> int:
        return 1 + len(SCHEMES)

    @property
    def cost(self) -> float:
        return 25.0

    def compute(self) -> tuple[list[Row], Files]:
        split = self.source.split(self.seed)
        tuned = MultiFidelityClassifier.paper(n_restarts=RESTARTS, random_state=self.seed).fit(
            split.X, split.y, fidelity=split.fidelity
        )
        kept: dict[str, Any] = {"kernel": list(tuned.kernels_), "rho": tuple(tuned.rho_)}
        kept |= {"prior": None, "optimizer": None}
        models = {s: MultiFidelityClassifier(**kept | {"inference": s}) for s in SCHEMES}
        answers = {scheme: _approximate(model, split) for scheme, model in models.items()}
        exact = _sampled(models["laplace"], split, self.n_draws, self.seed)
        return self._rows({"mcmc": exact, **answers}, split, float(tuned.rho_[0]))

    def _rows(
        self, answers: dict[str, _Answer], split: Split, rho: float
    ) -> tuple[list[Row], Files]:
        rows, merits, shown = [], [], []
        exact = answers["mcmc"].proba
        for scheme, answer in answers.items():
            rows.append(
                self.scored(
                    split.y_test,
                    answer.proba,
                    setting=as_setting(scheme=scheme),
                    n_trusted=len(split.y_trusted),
                    n_cheap=len(split.y_cheap),
                    fit_seconds=answer.fit_seconds,
                    predict_seconds=answer.predict_seconds,
                    rho=rho,
                    evidence=answer.evidence,
                    converged=answer.converged,
                    versions=_versions() if scheme == "mcmc" else versions(),
                )
            )
            gap = None if scheme == "mcmc" else Comparison.of(answer.proba, exact)
            seen = answer.diagnosis
            merits.append(
                {
                    "problem": self.problem,
                    "scheme": scheme,
                    "roc_auc": Scores.of(split.y_test, answer.proba).roc_auc,
                    "max_difference": None if gap is None else gap.max_difference,
                    "mean_difference": None if gap is None else gap.mean_difference,
                    "r_hat_max": None if seen is None else seen.r_hat_max,
                    "ess_min": None if seen is None else seen.ess_min,
                    "divergences": None if seen is None else seen.n_divergent,
                    "monte_carlo_error": answer.error,
                    "seconds": answer.fit_seconds + answer.predict_seconds,
                }
            )
            # The order of test rows is random already.
            shown += [
                {"problem": self.problem, "row": i, "scheme": scheme, "probability": float(p)}
                for i, p in enumerate(answer.proba[:N_SHOWN])
            ]
        return rows, {"mcmc.csv": merits, "mcmc_probabilities.csv": shown}


def _versions() -> str:
    return "; ".join([versions(), *(f"{name} {version(name)}" for name in ("numpyro", "jax"))])


def _approximate(model: MultiFidelityClassifier, split: Split) -> _Answer:
    started = time.process_time()
    model.fit(split.X, split.y, fidelity=split.fidelity)
    fitted = time.process_time()
    proba = model.predict_proba(split.X_test)[:, 1]
    return _Answer(
        proba,
        fitted - started,
        time.process_time() - fitted,
        model.converged_,
        model.log_marginal_likelihood_value_,
    )


def _sampled(laplace: MultiFidelityClassifier, split: Split, n_draws: int, seed: int) -> _Answer:
    """The same model by sampling; of the fitted one only the hyper-parameters and the mode."""
    started = time.process_time()
    kernels: Any = laplace.kernels_
    prior = Autoregressive(tuple(kernels), tuple(np.ravel(laplace.rho_)))
    scale = Scale.of(split.X, np.ones(len(split.X)))
    rows = Points(scale(split.X), split.fidelity)
    new = Points(scale(split.X_test), np.ones(len(split.X_test), dtype=np.intp))
    mode, _ = laplace.latent_mean_and_variance(split.X, split.fidelity)
    K = prior.cross_covariance(rows, rows)
    signs = np.where(split.y == 1, 1.0, -1.0)
    draws = sample(K, signs, mode, n_draws=n_draws, seed=seed)
    diagnosis = diagnose(draws)
    sampled = time.process_time()
    proba, error = predict(draws, prior.cross_covariance(new, rows), prior.diagonal(new))
    return _Answer(
        proba,
        sampled - started,
        time.process_time() - sampled,
        diagnosis.converged,
        diagnosis=diagnosis,
        error=float(error.max()),
    )


def cells(data_home: str | None, runs: int | None, quick: bool) -> list[Cell]:
    """One cell for each PMLB task that can be read; the first two of them if it is to be quick.

    As in the paper there is a single run a task, whatever ``runs``.

    Examples
    --------
    >>> from polyfid.experiments.mcmc import cells
    >>> cells("data", None, False)[0].key.problem  # doctest: +SKIP
    'diabetes'
    """
    del runs
    sources = [s for s in problems.pmlb(data_home, quick=quick) if s.noise == NOISE]
    return [
        McmcCell(
            experiment="mcmc",
            column=source.column,
            problem=source.name,
            method="mfgpc",
            mode="multi",
            noise=source.noise,
            seed=source.seeds(1)[0],
            source=source,
        )
        for source in sources[: 2 if quick else None]
    ]
