"""Make mcmc.json: exact answers (up to Monte-Carlo error) for two small classification problems.

Run from the root of the repository (about nine minutes on one core, plain numpy, no polyfid):

    OPENBLAS_NUM_THREADS=1 python tests/references/make_mcmc.py

The model has two levels, f_0 ~ GP(0, s_0 RBF(l_0)) and f_1 = rho f_0 + delta with
delta ~ GP(0, s_d RBF(l_d)), RBF = exp(-|x - x'|^2 / (2 l^2)), and the logistic likelihood
p(y | f) = sigmoid(y f), y in {-1, +1}. There are 24 rows at level 0 and 10 at level 1; z holds the
latent value of each row at the row's own level. The hyper-parameters are fixed.

Two cases share the inputs: "clean", and "noisy", where the labels of level 0 have passed through a
known channel, p(y = +1 | f) = a sigmoid(f) + b (1 - sigmoid(f)), and those of level 1 have not.
Each case stores

- mean and sd of every z_i under the posterior with their standard errors, from elliptical slice
  sampling with many parallel chains, the largest split R-hat and the smallest effective sample size
  (both for the means of the z_i; standard errors come from the spread of the chains' averages);
- log_evidence, by importance sampling from a Student-t proposal, with its standard error, and two
  estimates of it by other methods: annealed importance sampling, and plain averaging of the
  likelihood over prior draws (unbiased but coarse);
- p(true label = +1) at the test points for both levels (given z the latent is Gaussian, and the
  sigmoid is integrated by 64-node Gauss-Hermite quadrature). The noisy case adds
  p(observed label = +1) at level 0, which is a p + b (1 - p).

Every run first checks the samplers and estimators where the answer is known (a flat likelihood, a
channel without information, one row, two rows by quadrature), then the figures of each case by one
method against those by another. It stops with an AssertionError if a pair differs by more than five
standard errors; the largest differences, in standard errors, are stored as "checks". Random numbers
are seeded; another BLAS may still change the figures within their standard errors.
"""

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

OUT = Path(__file__).with_name("mcmc.json")
SEED = 20240611
N_LOW, N_HIGH = 24, 10
HYPER = {"s_0": 4.0, "l_0": 1.0, "s_d": 1.5, "l_d": 0.8, "rho": 0.8}
CLEAN = (1.0, 0.0)  # P(observed = +1 | true = +1), P(observed = +1 | true = -1)
NOISY = (0.85, 0.25)
CHAINS, BURN, STEPS, THIN = 200, 1_000, 30_000, 10
T_DRAWS, T_DOF = 1_000_000, 12.0
AIS_PARTICLES, AIS_STEPS, AIS_STEPS_CHECK = 25_000, 500, 50
PRIOR_DRAWS = 20_000_000
BLOCK = 50_000
LIMIT = 5.0  # largest tolerated |difference| in standard errors


# ---------------------------------------------------------------------------------------- model


def rbf(x: Array, other: Array, length: float) -> Array:
    """The RBF kernel of unit variance between the rows of x and of other."""
    square = ((x[:, None, :] - other[None, :, :]) ** 2).sum(axis=-1)
    return np.asarray(np.exp(-0.5 * square / length**2))


def covariance(x: Array, level: Ints, other: Array, other_level: Ints) -> Array:
    """Prior covariance of latent values, each at its own level (0 or 1)."""
    load, other_load = HYPER["rho"] ** level, HYPER["rho"] ** other_level
    shared = HYPER["s_0"] * rbf(x, other, HYPER["l_0"]) * np.outer(load, other_load)
    own = HYPER["s_d"] * rbf(x, other, HYPER["l_d"]) * np.outer(level, other_level)
    return np.asarray(shared + own)


@dataclass(frozen=True)
class Problem:
    """Labelled rows with p(y_i = +1 | z_i) = up_i sigmoid(z_i) + down_i (1 - sigmoid(z_i))."""

    x: Array
    level: Ints
    y: Ints
    up: Array
    down: Array

    @property
    def size(self) -> int:
        return int(self.y.size)

    @property
    def prior(self) -> Array:
        return covariance(self.x, self.level, self.x, self.level)

    @property
    def root(self) -> Array:
        """Cholesky factor of the prior covariance, without jitter."""
        return np.asarray(np.linalg.cholesky(self.prior), dtype=np.float64)

    def log_likelihood(self, z: Array) -> Array:
        """log p(y | z) for each row of z, shape (draws, rows)."""
        # P(observed = y | true = +1) and P(observed = y | true = -1)
        if_plus = np.where(self.y > 0, self.up, 1.0 - self.up)
        if_minus = np.where(self.y > 0, self.down, 1.0 - self.down)
        # (if_plus e^z + if_minus) / (1 + e^z), both parts divided by e^max(z, 0)
        small = np.exp(-np.abs(z))
        positive = z > 0
        top = np.where(positive, if_plus + if_minus * small, if_plus * small + if_minus)
        with np.errstate(divide="ignore"):
            logs = np.log(top) - np.log1p(small)
        # where the numerator underflows (a clean label, |z| > 700) its logarithm is -|z|
        return np.asarray(np.where(top > 0, logs, -np.abs(z)).sum(axis=1))

    def select(self, rows: list[int]) -> "Problem":
        return Problem(self.x[rows], self.level[rows], self.y[rows], self.up[rows], self.down[rows])


def channel(level: Ints, y: Ints, x: Array, noise: tuple[float, float]) -> Problem:
    """A problem whose level-0 labels carry the given noise and whose level-1 labels carry none."""
    up = np.where(level == 0, noise[0], CLEAN[0])
    down = np.where(level == 0, noise[1], CLEAN[1])
    return Problem(x, level, y, up, down)


def sigmoid(f: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * f)))


def make_problems(rng: np.random.Generator) -> tuple[Problem, Problem, Array]:
    """The clean problem, the noisy problem and the test inputs."""
    level = np.repeat(np.array([0, 1], dtype=np.int64), [N_LOW, N_HIGH])
    x = np.round(rng.uniform(0.0, 3.0, (level.size, 2)), 3)
    test = np.round(rng.uniform(0.0, 3.0, (8, 2)), 3)
    test[-1] = [4.0, 3.5]  # one point outside the square
    root = np.linalg.cholesky(covariance(x, level, x, level))
    while True:
        truth = sigmoid(root @ rng.standard_normal(level.size))
        problems = []
        for noise in (CLEAN, NOISY):
            p = channel(level, np.ones_like(level), x, noise)
            plus = rng.uniform(size=level.size) < p.up * truth + p.down * (1.0 - truth)
            problems.append(channel(level, np.where(plus, 1, -1).astype(np.int64), x, noise))
        shares = [np.mean(p.y[level == t] > 0) for p in problems for t in (0, 1)]
        if min(shares) >= 0.2 and max(shares) <= 0.8:
            return problems[0], problems[1], test


# ------------------------------------------------------------------------------------- samplers


def slice_step(
    z: Array, value: Array, problem: Problem, root: Array, power: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """One elliptical slice step of every chain for the target prior * likelihood ** power.

    value holds log p(y | z) of the chains; the new z and value are returned.
    """
    count = len(z)
    partner = rng.standard_normal(z.shape) @ root.T
    height = power * value - rng.exponential(size=count)
    angle = rng.uniform(0.0, 2.0 * math.pi, count)
    low, high = angle - 2.0 * math.pi, angle.copy()
    new_z, new_value = z.copy(), value.copy()
    active = np.arange(count)
    while active.size:
        turn = angle[active, None]
        trial = z[active] * np.cos(turn) + partner[active] * np.sin(turn)
        trial_value = problem.log_likelihood(trial)
        done = power * trial_value > height[active]
        new_z[active[done]], new_value[active[done]] = trial[done], trial_value[done]
        active = active[~done]
        left = angle[active] < 0
        low[active[left]], high[active[~left]] = angle[active[left]], angle[active[~left]]
        angle[active] = rng.uniform(low[active], high[active])
    return new_z, new_value


def sample(problem: Problem, rng: np.random.Generator, steps: int, power: float = 1.0) -> Array:
    """Posterior draws, shape (chains, kept steps, rows); every chain starts at a prior draw."""
    root = problem.root
    z = rng.standard_normal((CHAINS, problem.size)) @ root.T
    value = problem.log_likelihood(z)
    kept = np.empty((steps // THIN, CHAINS, problem.size))
    for step in range(-BURN, steps // THIN * THIN):
        z, value = slice_step(z, value, problem, root, power, rng)
        if step >= 0 and step % THIN == THIN - 1:
            kept[step // THIN] = z
    return np.ascontiguousarray(kept.transpose(1, 0, 2))


def split_r_hat(draws: Array) -> Array:
    """Split R-hat of each column of draws, shape (chains, steps, columns)."""
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = parts.mean(axis=1).var(axis=0, ddof=1)
    return np.asarray(np.sqrt((half - 1) / half + between / within))


def chain_mean(values: Array) -> tuple[Array, Array]:
    """Mean over chains and steps, and its standard error from the spread over the chains."""
    means = values.mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / math.sqrt(len(means))


@dataclass(frozen=True)
class Marginals:
    """Means and standard deviations of the columns of draws, with standard errors."""

    mean: Array
    mean_se: Array
    sd: Array
    sd_se: Array

    @classmethod
    def of(cls, draws: Array) -> "Marginals":
        mean, mean_se = chain_mean(draws)
        variance, variance_se = chain_mean((draws - mean) ** 2)
        sd = np.sqrt(variance)
        return cls(mean, mean_se, sd, variance_se / (2.0 * sd))

    @property
    def effective_size(self) -> Array:
        return np.asarray((self.sd / self.mean_se) ** 2)


# ------------------------------------------------------------------------------------ prediction


@dataclass(frozen=True)
class Predictor:
    """Given z, the latents at the queries are Gaussian: mean z @ weights, sd deviation."""

    weights: Array
    deviation: Array

    @classmethod
    def at(cls, problem: Problem, test: Array, level: int) -> "Predictor":
        levels = np.full(len(test), level, dtype=np.int64)
        cross = covariance(problem.x, problem.level, test, levels)
        weights = np.asarray(np.linalg.solve(problem.prior, cross), dtype=np.float64)
        own = np.diag(covariance(test, levels, test, levels))
        variance = own - (cross * weights).sum(axis=0)
        return cls(weights, np.sqrt(np.maximum(variance, 0.0)))

    def probability(self, z: Array) -> Array:
        """p(true label = +1 | z) for each draw (leading axes of z) and query (last axis)."""
        mean = z @ self.weights
        total = np.zeros_like(mean)
        nodes, weights = hermite(64)
        for node, weight in zip(nodes, weights, strict=True):
            if weight > 1e-18:
                total += weight * sigmoid(mean + node * self.deviation)
        return total


def hermite(count: int) -> tuple[Array, Array]:
    """Nodes and weights of the expectation under the standard normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


# ------------------------------------------------------------------------------------- evidence


@dataclass(frozen=True)
class Evidence:
    """An estimate of log p(y), its standard error and the effective number of weights."""

    value: float
    se: float
    effective_size: float

    @classmethod
    def of(cls, log_weights: Array) -> "Evidence":
        top = log_weights.max()
        weights = np.exp(log_weights - top)
        mean = float(weights.mean())
        se = float(weights.std(ddof=1)) / mean / math.sqrt(weights.size)
        size = float(weights.sum() ** 2 / (weights**2).sum())
        return cls(float(top) + math.log(mean), se, size)


def blocks(total: int) -> Iterator[int]:
    for start in range(0, total, BLOCK):
        yield min(BLOCK, total - start)


def student(
    problem: Problem,
    draws: Array,
    rng: np.random.Generator,
    statistic: Callable[[Array], Array],
) -> tuple[Evidence, Array, Array]:
    """Importance sampling; also the posterior mean of statistic(z) and its standard error.

    The proposal is a Student-t in the whitened coordinates u (z = root u, prior N(0, I)), with the
    mean and the covariance of posterior draws. Its tails are heavier than the prior's and the
    likelihood is at most one, so the weights are bounded.
    """
    n, root = problem.size, problem.root
    white = np.linalg.solve(root, draws.reshape(-1, n).T)
    centre = white.mean(axis=1)
    scale = np.linalg.cholesky(np.cov(white))
    constant = (
        math.lgamma(0.5 * (T_DOF + n))
        - math.lgamma(0.5 * T_DOF)
        - 0.5 * n * math.log(T_DOF * math.pi)
        - float(np.log(np.diag(scale)).sum())
    )
    logs, values = [], []
    for count in blocks(T_DRAWS):
        normal = rng.standard_normal((count, n))
        t = normal / np.sqrt(rng.chisquare(T_DOF, count) / T_DOF)[:, None]
        u = centre + t @ scale.T
        z = u @ root.T
        proposal = constant - 0.5 * (T_DOF + n) * np.log1p((t**2).sum(axis=1) / T_DOF)
        prior = -0.5 * (u**2).sum(axis=1) - 0.5 * n * math.log(2.0 * math.pi)
        logs.append(prior + problem.log_likelihood(z) - proposal)
        values.append(statistic(z))
    log_weights, value = np.concatenate(logs), np.concatenate(values)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ value
    se = np.sqrt((weights**2) @ (value - mean) ** 2)
    return Evidence.of(log_weights), mean, se


def annealed(problem: Problem, rng: np.random.Generator, steps: int) -> Evidence:
    """Annealed importance sampling: likelihood ** power with power rising from 0 to 1."""
    root = problem.root
    powers = np.linspace(0.0, 1.0, steps + 1) ** 2
    z = rng.standard_normal((AIS_PARTICLES, problem.size)) @ root.T
    value = problem.log_likelihood(z)
    log_weights = np.zeros(AIS_PARTICLES)
    for before, after in pairwise(powers):
        log_weights += (after - before) * value
        if after < 1.0:
            z, value = slice_step(z, value, problem, root, float(after), rng)
    return Evidence.of(log_weights)


def prior_average(
    problem: Problem, test: Array, rng: np.random.Generator
) -> tuple[Evidence, Array, Array]:
    """The average of the likelihood over prior draws.

    Also p(true label = +1) at the test points, level 0 then level 1, and its standard error: the
    latents there are drawn jointly with z, so that no conditional distribution is used.
    """
    n, m = problem.size, len(test)
    x = np.concatenate([problem.x, test, test])
    ends = np.repeat(np.array([0, 1], dtype=np.int64), m)
    level = np.concatenate([problem.level, ends])
    eigenvalue, vector = np.linalg.eigh(covariance(x, level, x, level))
    root = vector * np.sqrt(np.maximum(eigenvalue, 0.0))
    # only sums of w p and w^2 p^k are kept, with w = likelihood / 2^-n
    logs, total, square = [], np.zeros(2 * m), np.zeros((3, 2 * m))
    for count in blocks(PRIOR_DRAWS):
        f = rng.standard_normal((count, n + 2 * m)) @ root.T
        logs.append(problem.log_likelihood(f[:, :n]))
        weight = np.exp(logs[-1] + n * math.log(2.0))
        p = sigmoid(f[:, n:])
        total += weight @ p
        square += np.stack([weight**2 @ p**k for k in range(3)])
    log_weights = np.concatenate(logs)
    sum_weight = np.exp(log_weights + n * math.log(2.0)).sum()
    mean = total / sum_weight
    se = np.sqrt(square[2] - 2.0 * mean * square[1] + mean**2 * square[0]) / sum_weight
    return Evidence.of(log_weights), mean, se


# --------------------------------------------------------------------------------------- checks


def distance(value: Array | float, truth: Array | float, *errors: Array | float) -> float:
    """The largest |value - truth| in standard errors; fails beyond LIMIT."""
    # 1e-9 allows for rounding where the estimate has no Monte-Carlo error at all
    se = np.sqrt(sum(np.square(e) for e in errors)) + 1e-9
    worst = float(np.max(np.abs(np.asarray(value) - truth) / se))
    assert worst < LIMIT, f"{worst:.1f} standard errors apart"
    return worst


def quadrature(problem: Problem) -> tuple[float, Array, Array]:
    """log p(y), posterior means and sds of a problem with two rows, by a 100 x 100 product rule."""
    nodes, weights = hermite(100)
    u = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    z = u @ problem.root.T
    mass = np.outer(weights, weights).ravel() * np.exp(problem.log_likelihood(z))
    total = mass.sum()
    mean = mass @ z / total
    return math.log(total), mean, np.sqrt(mass @ (z - mean) ** 2 / total)


def known_answers(clean: Problem, noisy: Problem, rng: np.random.Generator) -> dict[str, float]:
    """Run the methods where the answer is known; distances are in standard errors."""
    result = {}
    prior_sd = np.sqrt(np.diag(clean.prior))
    steps = STEPS // 10

    # likelihood ** 0: the sampler must return the prior
    draws = sample(clean, rng, steps, power=0.0)
    m = Marginals.of(draws)
    result["flat_likelihood_mean"] = distance(m.mean, 0.0, m.mean_se)
    result["flat_likelihood_sd"] = distance(m.sd, prior_sd, m.sd_se)
    products, products_se = chain_mean(draws[..., :1] * draws)
    result["flat_likelihood_covariance"] = distance(products, clean.prior[0], products_se)

    # labels that say nothing: posterior = prior, evidence = n log 1/2
    half = np.full(clean.size, 0.5)
    empty = Problem(clean.x, clean.level, clean.y, half, half)
    draws = sample(empty, rng, steps)
    m = Marginals.of(draws)
    result["empty_channel_mean"] = distance(m.mean, 0.0, m.mean_se)
    result["empty_channel_sd"] = distance(m.sd, prior_sd, m.sd_se)
    truth = clean.size * math.log(0.5)
    e, _, _ = student(empty, draws, rng, lambda z: z[:, :1])
    result["empty_channel_student"] = distance(e.value, truth, e.se)
    e = annealed(empty, rng, AIS_STEPS_CHECK)
    result["empty_channel_annealed"] = distance(e.value, truth, e.se)

    # one clean row: evidence = 1/2 by symmetry
    one = clean.select([0])
    e = annealed(one, rng, AIS_STEPS_CHECK)
    result["one_row_annealed"] = distance(e.value, math.log(0.5), e.se)

    # two rows, one of each level: quadrature; the closest low row to the first high one
    gap = ((clean.x[:N_LOW] - clean.x[N_LOW]) ** 2).sum(axis=1)
    rows = [int(gap.argmin()), N_LOW]
    for name, problem in (("clean", clean), ("noisy", noisy)):
        two = problem.select(rows)
        truth, mean, sd = quadrature(two)
        draws = sample(two, rng, steps)
        m = Marginals.of(draws)
        result[f"two_rows_{name}_mean"] = distance(m.mean, mean, m.mean_se)
        result[f"two_rows_{name}_sd"] = distance(m.sd, sd, m.sd_se)
        e, _, _ = student(two, draws, rng, lambda z: z[:, :1])
        result[f"two_rows_{name}_student"] = distance(e.value, truth, e.se)
        e = annealed(two, rng, AIS_STEPS_CHECK)
        result[f"two_rows_{name}_annealed"] = distance(e.value, truth, e.se)

    # a query far from all rows has p = 1/2, a query at a row has p = sigmoid(z) of that row
    z = rng.standard_normal((100, clean.size)) @ clean.root.T
    far = Predictor.at(clean, np.array([[50.0, 50.0]]), 1).probability(z)
    assert np.abs(far - 0.5).max() < 1e-9
    row = Predictor.at(clean, clean.x[N_LOW:], 1).probability(z)
    assert np.abs(row - sigmoid(z[:, N_LOW:])).max() < 1e-5
    return result


# ------------------------------------------------------------------------------------ the cases


def solve(problem: Problem, test: Array, rng: np.random.Generator) -> dict[str, Any]:
    """Everything that is stored of one case."""
    draws = sample(problem, rng, STEPS)
    m = Marginals.of(draws)
    predictors = [Predictor.at(problem, test, level) for level in (0, 1)]

    def probability(z: Array) -> Array:
        return np.concatenate([p.probability(z) for p in predictors], axis=-1)

    def statistic(z: Array) -> Array:
        return np.concatenate([z, (z - m.mean) ** 2, probability(z)], axis=1)

    p, p_se = chain_mean(probability(draws))
    main, value, se = student(problem, draws, rng, statistic)
    mean, variance, p_main = np.split(value, [problem.size, 2 * problem.size])
    mean_se, variance_se, p_main_se = np.split(se, [problem.size, 2 * problem.size])
    by_annealing = annealed(problem, rng, AIS_STEPS)
    by_prior, p_prior, p_prior_se = prior_average(problem, test, rng)
    checks = {
        "mean_vs_student": distance(m.mean, mean, m.mean_se, mean_se),
        "variance_vs_student": distance(m.sd**2, variance, 2.0 * m.sd * m.sd_se, variance_se),
        "test_p_vs_student": distance(p, p_main, p_se, p_main_se),
        "test_p_vs_prior": distance(p, p_prior, p_se, p_prior_se),
        "evidence_vs_annealed": distance(main.value, by_annealing.value, main.se, by_annealing.se),
        "evidence_vs_prior": distance(main.value, by_prior.value, main.se, by_prior.se),
    }
    p0, p1 = np.split(p, 2)
    p0_se, p1_se = np.split(p_se, 2)
    a, b = float(problem.up[0]), float(problem.down[0])
    result: dict[str, Any] = {
        "y": problem.y,
        "noise": {"plus_given_plus": [a, CLEAN[0]], "plus_given_minus": [b, CLEAN[1]]},
        "mean": m.mean,
        "mean_se": m.mean_se,
        "sd": m.sd,
        "sd_se": m.sd_se,
        "r_hat_max": split_r_hat(draws).max(),
        "effective_size_min": round(float(m.effective_size.min())),
        "log_evidence": main.value,
        "log_evidence_se": main.se,
        "log_evidence_effective_size": round(main.effective_size),
        "log_evidence_annealed": by_annealing.value,
        "log_evidence_annealed_se": by_annealing.se,
        "log_evidence_prior": by_prior.value,
        "log_evidence_prior_se": by_prior.se,
        "test_p_level_0": p0,
        "test_p_level_0_se": p0_se,
        "test_p_level_1": p1,
        "test_p_level_1_se": p1_se,
    }
    if (a, b) != CLEAN:
        result["test_p_observed_level_0"] = a * p0 + b * (1.0 - p0)
        result["test_p_observed_level_0_se"] = abs(a - b) * p0_se
    return result | {"checks": checks}


def plain(value: Any) -> Any:
    """Numbers rounded to six decimals, arrays as lists."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, float | np.floating):
        return round(float(value), 6)
    return value


def dump(value: Any, indent: int = 0) -> str:
    """JSON with one line for each entry of a dictionary and arrays on one line."""
    if not isinstance(value, dict):
        return json.dumps(plain(value))
    pad = "  " * (indent + 1)
    lines = [f"{pad}{json.dumps(k)}: {dump(v, indent + 1)}" for k, v in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + "  " * indent + "}"


def main() -> None:
    start = time.perf_counter()
    rng = np.random.default_rng(SEED)
    clean, noisy, test = make_problems(rng)
    checks = known_answers(clean, noisy, rng)
    print(f"checks: largest distance {max(checks.values()):.2f} s.e.")
    cases = {}
    for name, problem in (("clean", clean), ("noisy", noisy)):
        cases[name] = solve(problem, test, rng)
        print(f"{name}: log p(y) = {cases[name]['log_evidence']:.4f}")
    content = {
        "made_by": "tests/references/make_mcmc.py",
        "seed": SEED,
        "draws_per_case": CHAINS * STEPS,
        "chains": CHAINS,
        "hyper_parameters": HYPER,
        "x": clean.x,
        "level": clean.level,
        "x_test": test,
        "clean": cases["clean"],
        "noisy": cases["noisy"],
        "checks": checks,
    }
    OUT.write_text(dump(content) + "\n")
    print(f"{OUT} written after {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
