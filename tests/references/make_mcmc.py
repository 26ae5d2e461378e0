"""Make mcmc.json: exact answers (up to Monte-Carlo error) for two small classification problems.

Run from the root of the repository (some ten minutes on one core, no polyfid):

    OPENBLAS_NUM_THREADS=1 python tests/references/make_mcmc.py

The model has two levels, f_0 ~ GP(0, s_0 RBF(l_0)) and f_1 = rho f_0 + delta with
delta ~ GP(0, s_d RBF(l_d)), RBF = exp(-|x - x'|^2 / (2 l^2)), and the logistic likelihood
p(y | f) = sigmoid(y f), y in {-1, +1}. There are 24 rows at level 0 and 10 at level 1; z holds the
latent value of each row at the row's own level. The hyper-parameters are fixed.

Two cases share the inputs: "clean", and "noisy", where the labels of level 0 have passed through a
channel, p(y = +1 | f) = a sigmoid(f) + b (1 - sigmoid(f)), and those of level 1 have not. Stored:

- mean and sd of every z_i under the posterior with their standard errors, from elliptical slice
  sampling with many parallel chains, and the smallest effective sample size;
- log_evidence, by importance sampling from a Student-t proposal, and two estimates of it by other
  methods: annealed importance sampling, and averaging the likelihood over draws of the prior;
- p(true label = +1) at the test points for both levels.

Every run first checks the methods where the answer is available otherwise (a flat likelihood, a
channel without information, one row, two rows by quadrature), then the figures of each case by one
method against those by another, and stops if a pair differs by more than five standard errors. The
largest differences, in standard errors, are stored as "checks".
"""

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.stats import multivariate_t

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


def covariance(x, level, other, other_level):
    """Prior covariance of latent values, each at its own level (0 or 1)."""
    square = ((x[:, None, :] - other[None, :, :]) ** 2).sum(axis=-1)
    low = HYPER["s_0"] * np.exp(-0.5 * square / HYPER["l_0"] ** 2)
    delta = HYPER["s_d"] * np.exp(-0.5 * square / HYPER["l_d"] ** 2)
    load, other_load = HYPER["rho"] ** level, HYPER["rho"] ** other_level
    return low * np.outer(load, other_load) + delta * np.outer(level, other_level)


def sigmoid(f):
    return 0.5 * (1.0 + np.tanh(0.5 * f))


@dataclass(frozen=True)
class Problem:
    """Labelled rows with p(y_i = +1 | z_i) = up_i sigmoid(z_i) + down_i (1 - sigmoid(z_i))."""

    x: np.ndarray
    level: np.ndarray
    y: np.ndarray
    up: np.ndarray
    down: np.ndarray

    @property
    def size(self):
        return len(self.y)

    @property
    def prior(self):
        return covariance(self.x, self.level, self.x, self.level)

    @property
    def root(self):
        return np.linalg.cholesky(self.prior)

    def log_likelihood(self, z):
        """log p(y | z) for each row of z, shape (draws, rows)."""
        # P(observed = y | true = +1) and P(observed = y | true = -1)
        if_plus = np.where(self.y > 0, self.up, 1.0 - self.up)
        if_minus = np.where(self.y > 0, self.down, 1.0 - self.down)
        # (if_plus e^z + if_minus) / (1 + e^z), both terms divided by e^max(z, 0)
        small = np.exp(-np.abs(z))
        top = np.where(z > 0, if_plus + if_minus * small, if_plus * small + if_minus)
        with np.errstate(divide="ignore"):
            logs = np.log(top) - np.log1p(small)
        # where the numerator underflows (a clean label, |z| > 700) its logarithm is -|z|
        return np.where(top > 0, logs, -np.abs(z)).sum(axis=1)

    def select(self, rows):
        return Problem(self.x[rows], self.level[rows], self.y[rows], self.up[rows], self.down[rows])


def make_problems(rng):
    """The clean problem, the noisy problem and the test inputs."""
    level = np.repeat([0, 1], [N_LOW, N_HIGH])
    x = np.round(rng.uniform(0.0, 3.0, (level.size, 2)), 3)
    test = np.round(rng.uniform(0.0, 3.0, (8, 2)), 3)
    test[-1] = [4.0, 3.5]  # one point outside the square
    root = np.linalg.cholesky(covariance(x, level, x, level))
    while True:
        truth = sigmoid(root @ rng.standard_normal(level.size))
        problems = []
        for noise in (CLEAN, NOISY):
            up, down = (np.where(level == 0, noise[k], CLEAN[k]) for k in (0, 1))
            plus = rng.uniform(size=level.size) < up * truth + down * (1.0 - truth)
            problems.append(Problem(x, level, np.where(plus, 1, -1), up, down))
        shares = [np.mean(p.y[level == t] > 0) for p in problems for t in (0, 1)]
        if min(shares) >= 0.2 and max(shares) <= 0.8:
            return *problems, test


# ------------------------------------------------------------------------------------- sampling


def slice_step(z, value, problem, root, power, rng):
    """One elliptical slice step of every chain for the target prior * likelihood ** power.

    ``value`` holds log p(y | z) of the chains; the new z and value are returned.
    """
    partner = rng.standard_normal(z.shape) @ root.T
    height = power * value - rng.exponential(size=len(z))
    angle = rng.uniform(0.0, 2.0 * math.pi, len(z))
    low, high = angle - 2.0 * math.pi, angle.copy()
    new_z, new_value = z.copy(), value.copy()
    active = np.arange(len(z))
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


def sample(problem, rng, steps, power=1.0):
    """Posterior draws, shape (chains, kept steps, rows); every chain starts at a prior draw."""
    root = problem.root
    z = rng.standard_normal((CHAINS, problem.size)) @ root.T
    value = problem.log_likelihood(z)
    kept = np.empty((CHAINS, steps // THIN, problem.size))
    for step in range(-BURN, steps // THIN * THIN):
        z, value = slice_step(z, value, problem, root, power, rng)
        if step >= 0 and step % THIN == THIN - 1:
            kept[:, step // THIN] = z
    return kept


def chain_mean(values):
    """Mean over chains and steps, and its standard error from the spread over the chains."""
    means = values.mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / math.sqrt(len(means))


def marginals(draws):
    """Mean and standard deviation of the columns of draws, each with its standard error."""
    mean, mean_se = chain_mean(draws)
    variance, variance_se = chain_mean((draws - mean) ** 2)
    sd = np.sqrt(variance)
    return mean, mean_se, sd, variance_se / (2.0 * sd)


def hermite(count):
    """Nodes and weights of the expectation under the standard normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def probability(problem, test, level, z):
    """p(true label = +1 | z) at test points, where the latent value given z is Gaussian."""
    levels = np.full(len(test), level)
    cross = covariance(problem.x, problem.level, test, levels)
    weights = np.linalg.solve(problem.prior, cross)
    own = np.diag(covariance(test, levels, test, levels))
    deviation = np.sqrt(np.maximum(own - (cross * weights).sum(axis=0), 0.0))
    mean = z @ weights
    total = np.zeros_like(mean)
    for node, weight in zip(*hermite(64), strict=True):
        if weight > 1e-18:
            total += weight * sigmoid(mean + node * deviation)
    return total


# ------------------------------------------------------------------------------------- evidence


def log_mean(log_weights):
    """The logarithm of the mean weight, its standard error and the effective number of weights."""
    top = log_weights.max()
    weights = np.exp(log_weights - top)
    mean = weights.mean()
    se = weights.std(ddof=1) / mean / math.sqrt(weights.size)
    return top + math.log(mean), se, weights.sum() ** 2 / (weights**2).sum()


def student(problem, draws, rng, statistic):
    """Importance sampling; also the posterior mean of statistic(z) and its standard error.

    The proposal is a Student-t in the whitened coordinates u (z = root u, prior N(0, I)), with the
    mean and the covariance of posterior draws. Its tails are heavier than the prior's and the
    likelihood is at most one, so the weights are bounded.
    """
    n, root = problem.size, problem.root
    white = np.linalg.solve(root, draws.reshape(-1, n).T)
    centre, scale = white.mean(axis=1), np.linalg.cholesky(np.cov(white))
    proposal = multivariate_t(centre, np.cov(white), T_DOF)
    logs, values = [], []
    for _ in range(T_DRAWS // BLOCK):
        normal = rng.standard_normal((BLOCK, n))
        t = normal / np.sqrt(rng.chisquare(T_DOF, BLOCK) / T_DOF)[:, None]
        u = centre + t @ scale.T
        z = u @ root.T
        prior = -0.5 * (u**2).sum(axis=1) - 0.5 * n * math.log(2.0 * math.pi)
        logs.append(prior + problem.log_likelihood(z) - proposal.logpdf(u))
        values.append(statistic(z))
    log_weights, value = np.concatenate(logs), np.concatenate(values)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ value
    return log_mean(log_weights), mean, np.sqrt((weights**2) @ (value - mean) ** 2)


def annealed(problem, rng, steps):
    """Annealed importance sampling: likelihood ** power with power rising from 0 to 1."""
    root = problem.root
    z = rng.standard_normal((AIS_PARTICLES, problem.size)) @ root.T
    value = problem.log_likelihood(z)
    log_weights = np.zeros(AIS_PARTICLES)
    for before, after in pairwise(np.linspace(0.0, 1.0, steps + 1) ** 2):
        log_weights += (after - before) * value
        if after < 1.0:
            z, value = slice_step(z, value, problem, root, after, rng)
    return log_mean(log_weights)


def prior_average(problem, test, rng):
    """The average of the likelihood over prior draws.

    Also p(true label = +1) at the test points, level 0 then level 1, and its standard error: the
    latents there are drawn jointly with z, so that no conditional distribution is used.
    """
    n, m = problem.size, len(test)
    x = np.concatenate([problem.x, test, test])
    level = np.concatenate([problem.level, np.repeat([0, 1], m)])
    eigenvalue, vector = np.linalg.eigh(covariance(x, level, x, level))
    root = vector * np.sqrt(np.maximum(eigenvalue, 0.0))
    # only sums of w p and w^2 p^k are kept, with w = likelihood / 2^-n
    logs, total, square = [], np.zeros(2 * m), np.zeros((3, 2 * m))
    for _ in range(PRIOR_DRAWS // BLOCK):
        f = rng.standard_normal((BLOCK, n + 2 * m)) @ root.T
        logs.append(problem.log_likelihood(f[:, :n]))
        weight = np.exp(logs[-1] + n * math.log(2.0))
        p = sigmoid(f[:, n:])
        total += weight @ p
        square += np.stack([weight**2 @ p**k for k in range(3)])
    log_weights = np.concatenate(logs)
    sum_weight = np.exp(log_weights + n * math.log(2.0)).sum()
    mean = total / sum_weight
    se = np.sqrt(square[2] - 2.0 * mean * square[1] + mean**2 * square[0]) / sum_weight
    return log_mean(log_weights), mean, se


# --------------------------------------------------------------------------------------- checks


def distance(value, truth, *errors):
    """The largest |value - truth| in standard errors; fails beyond LIMIT."""
    # 1e-9 allows for rounding where the estimate has no Monte-Carlo error at all
    se = np.sqrt(sum(np.square(e) for e in errors)) + 1e-9
    worst = float(np.max(np.abs(np.asarray(value) - truth) / se))
    assert worst < LIMIT, f"{worst:.1f} standard errors apart"
    return worst


def quadrature(problem):
    """log p(y), posterior means and sds of a problem with two rows, by a 100 x 100 product rule."""
    nodes, weights = hermite(100)
    u = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    z = u @ problem.root.T
    mass = np.outer(weights, weights).ravel() * np.exp(problem.log_likelihood(z))
    mean = mass @ z / mass.sum()
    return math.log(mass.sum()), mean, np.sqrt(mass @ (z - mean) ** 2 / mass.sum())


def check_all(problem, truth, mean, sd, rng):
    """Sampler and estimators of the evidence against a problem's exact answers."""
    draws = sample(problem, rng, STEPS // 10)
    got_mean, mean_se, got_sd, sd_se = marginals(draws)
    value, se, _ = student(problem, draws, rng, lambda z: z[:, :1])[0]
    by_annealing, annealing_se, _ = annealed(problem, rng, AIS_STEPS_CHECK)
    return {
        "mean": distance(got_mean, mean, mean_se),
        "sd": distance(got_sd, sd, sd_se),
        "student": distance(value, truth, se),
        "annealed": distance(by_annealing, truth, annealing_se),
    }


def exact_checks(clean, noisy, test, rng):
    """Run the methods where exact answers are available; distances are in standard errors."""
    prior_sd = np.sqrt(np.diag(clean.prior))
    # likelihood ** 0: the sampler must return the prior
    draws = sample(clean, rng, STEPS // 10, power=0.0)
    mean, mean_se, sd, sd_se = marginals(draws)
    products, products_se = chain_mean(draws[..., :1] * draws)
    checks = {
        "flat_likelihood_mean": distance(mean, 0.0, mean_se),
        "flat_likelihood_sd": distance(sd, prior_sd, sd_se),
        "flat_likelihood_covariance": distance(products, clean.prior[0], products_se),
    }
    # labels that say nothing: posterior = prior, evidence = n log 1/2
    half = np.full(clean.size, 0.5)
    empty = Problem(clean.x, clean.level, clean.y, half, half)
    found = check_all(empty, clean.size * math.log(0.5), 0.0, prior_sd, rng)
    checks |= {f"empty_channel_{name}": value for name, value in found.items()}
    # one clean row: evidence = 1/2 by symmetry
    value, se, _ = annealed(clean.select([0]), rng, AIS_STEPS_CHECK)
    checks["one_row_annealed"] = distance(value, math.log(0.5), se)
    # two rows, one of each level: the first high one, and the low one that is closest to it
    gap = ((clean.x[:N_LOW] - clean.x[N_LOW]) ** 2).sum(axis=1)
    for name, problem in (("clean", clean), ("noisy", noisy)):
        two = problem.select([int(gap.argmin()), N_LOW])
        found = check_all(two, *quadrature(two), rng)
        checks |= {f"two_rows_{name}_{key}": value for key, value in found.items()}
    # a query far from all rows has p = 1/2, a query at a row has p = sigmoid(z) of that row
    z = rng.standard_normal((100, clean.size)) @ clean.root.T
    assert np.abs(probability(clean, np.array([[50.0, 50.0]]), 1, z) - 0.5).max() < 1e-9
    at_rows = probability(clean, clean.x[N_LOW:], 1, z)
    assert np.abs(at_rows - sigmoid(z[:, N_LOW:])).max() < 1e-5
    return checks


# ------------------------------------------------------------------------------------ the cases


def solve(problem, test, rng):
    """Everything that is stored of one case."""
    n = problem.size
    draws = sample(problem, rng, STEPS)
    mean, mean_se, sd, sd_se = marginals(draws)

    def at_test(z):
        return np.concatenate([probability(problem, test, t, z) for t in (0, 1)], axis=-1)

    def statistic(z):
        return np.concatenate([z, (z - mean) ** 2, at_test(z)], axis=1)

    p, p_se = chain_mean(at_test(draws))
    (log_z, log_z_se, log_z_size), value, se = student(problem, draws, rng, statistic)
    by_annealing, annealing_se, _ = annealed(problem, rng, AIS_STEPS)
    (by_prior, prior_se, _), p_prior, p_prior_se = prior_average(problem, test, rng)
    checks = {
        "mean_vs_student": distance(mean, value[:n], mean_se, se[:n]),
        "variance_vs_student": distance(sd**2, value[n : 2 * n], 2.0 * sd * sd_se, se[n : 2 * n]),
        "test_p_vs_student": distance(p, value[2 * n :], p_se, se[2 * n :]),
        "test_p_vs_prior": distance(p, p_prior, p_se, p_prior_se),
        "evidence_vs_annealed": distance(log_z, by_annealing, log_z_se, annealing_se),
        "evidence_vs_prior": distance(log_z, by_prior, log_z_se, prior_se),
    }
    (p0, p1), (p0_se, p1_se) = np.split(p, 2), np.split(p_se, 2)
    a, b = float(problem.up[0]), float(problem.down[0])
    return {
        "y": problem.y,
        "noise": {"plus_given_plus": [a, CLEAN[0]], "plus_given_minus": [b, CLEAN[1]]},
        "mean": mean,
        "mean_se": mean_se,
        "sd": sd,
        "sd_se": sd_se,
        "effective_size_min": round(float(((sd / mean_se) ** 2).min())),
        "log_evidence": log_z,
        "log_evidence_se": log_z_se,
        "log_evidence_effective_size": round(log_z_size),
        "log_evidence_annealed": by_annealing,
        "log_evidence_annealed_se": annealing_se,
        "log_evidence_prior": by_prior,
        "log_evidence_prior_se": prior_se,
        "test_p_level_0": p0,
        "test_p_level_0_se": p0_se,
        "test_p_level_1": p1,
        "test_p_level_1_se": p1_se,
        "checks": checks,
    }


def dump(value, indent=0):
    """JSON with one line for each entry of a dictionary, and numbers of six decimals."""
    if not isinstance(value, dict):
        value = np.asarray(value)
        return json.dumps((value.round(6) if value.dtype == float else value).tolist())
    pad = "  " * (indent + 1)
    lines = [f"{pad}{json.dumps(k)}: {dump(v, indent + 1)}" for k, v in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + "  " * indent + "}"


def main():
    rng = np.random.default_rng(SEED)
    clean, noisy, test = make_problems(rng)
    checks = exact_checks(clean, noisy, test, rng)
    content = {
        "made_by": "tests/references/make_mcmc.py",
        "seed": SEED,
        "draws_per_case": CHAINS * STEPS,
        "chains": CHAINS,
        "hyper_parameters": HYPER,
        "x": clean.x,
        "level": clean.level,
        "x_test": test,
        "clean": solve(clean, test, rng),
        "noisy": solve(noisy, test, rng),
        "checks": checks,
    }
    OUT.write_text(dump(content) + "\n")


if __name__ == "__main__":
    main()
