"""Data made on the spot: samples from the model itself, and the tables of ``polyfid demo``."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state, check_scalar

from polyfid.arrays import Array

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["make_cokriging", "make_rough", "make_welding"]

Waves = NDArray[np.float32]

WAVES = 1024  # cosines that add up to a sample of a Gaussian process
ROUGH_WAVES = 300  # the same of a rough problem
BLOCK = 2048  # rows at a time
N_ADJUST = 20_000  # points on which ρ is adjusted
MAX_RHO = 100.0  # leaves 0.3 % of disagreement

N_EXPERIMENTS, N_SIMULATIONS, N_NEW = 40, 300, 500
SIMULATOR_ERROR = 1.0 / 7.0  # share of simulations that are wrong whatever the settings


def make_cokriging(
    n_low: int = 225,
    n_high: int = 75,
    n_features: int = 2,
    *,
    noise: float = 0.2,
    levels: int = 2,
    n_test: int = 0,
    length_scale: ArrayLike | None = None,
    scale: ArrayLike = 4.0,
    labels: Literal["sign", "sigmoid"] = "sign",
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Sample from the co-kriging model: latent Gaussian processes and labels of several levels.

    The latent function of level t is f_t = ρ f_{t−1} + δ_t, where f_0 and all δ_t are independent
    Gaussian processes with RBF kernels and ρ is chosen so that the labels of the least trusted
    level are wrong in a given share of points. Features are uniform in (0, 1). The artificial sets
    of Klyuchnikov and Burnaev were made in this way.

    Parameters
    ----------
    n_low, n_high : int
        Rows of each level but the most trusted one, and rows of that one.
    n_features : int
    noise : float
        Share of points, up to 0.5, where the signs of the least and the most trusted latent
        function differ.
    levels : int
    n_test : int
        Further rows, labelled at the most trusted level.
    length_scale : float or one per level, optional
        Length-scales of f_0, δ_1, …. Default: ``0.12 * n_features**0.6``, which makes sets about as
        hard as the published ones of 2 to 20 features.
    scale : float or one per level
        Variances of f_0, δ_1, ….
    labels : "sign" or "sigmoid"
        Whether a label is 1 where the latent value is above 0, as in the published sets, or 1
        with probability sigmoid(latent value), as in the model.
    random_state : int, RandomState instance or None
        Seed. The latent functions depend neither on the numbers of rows nor on ``labels``.

    Returns
    -------
    Bunch
        ``data`` (n, n_features), ``target`` (n,) 0/1, ``fidelity`` (n,) levels from 0, the least
        trusted, in increasing order, ``latent`` (n, levels) all latent functions at all rows,
        ``rho``, ``noise`` the share of rows, those for testing included, where the signs
        differ, ``length_scale`` and ``scale`` (levels,); with ``n_test`` also ``test_data``,
        ``test_target`` and ``test_latent``.

    Notes
    -----
    A process is a sum of `WAVES` cosine waves of random frequency, phase and amplitude (Rahimi and
    Recht, "Random features for large-scale kernel machines", 2007). ρ is negative where even
    independent functions agree too often. With an even number of steps between levels that does
    not help, and a warning gives the share that was reached.

    Examples
    --------
    >>> from polyfid.datasets import make_cokriging
    >>> made = make_cokriging(2000, 100, n_features=5, noise=0.3, random_state=0)
    >>> made.data.shape, made.latent.shape, round(made.noise, 1)
    ((2100, 5), (2100, 2), 0.3)
    """
    sizes = {"n_low": n_low, "n_high": n_high, "n_test": n_test}
    for name, number in (sizes | {"n_features": n_features, "levels": levels}).items():
        check_scalar(number, name, Integral, min_val=0 if name in sizes else 1)
    check_scalar(noise, "noise", Real, min_val=0.0, max_val=0.5)
    if labels not in ("sign", "sigmoid"):
        raise ValueError(f'labels must be "sign" or "sigmoid", got {labels!r}')
    length_scale = 0.12 * n_features**0.6 if length_scale is None else length_scale
    lengths = _one_per_level(length_scale, levels, "length_scale")
    scales = _one_per_level(scale, levels, "scale")
    rng = check_random_state(random_state)
    processes = [_draw_waves(rng, n_features, *of) for of in zip(lengths, scales, strict=True)]

    def values(x: Array) -> Array:
        return np.column_stack([_add_waves(x, *waves) for waves in processes])

    rho = _find_rho(values(rng.uniform(size=(N_ADJUST, n_features))), noise)
    level = np.repeat(np.arange(levels), [n_low] * (levels - 1) + [n_high])
    x, x_test = (rng.uniform(size=(n, n_features)) for n in (len(level), n_test))
    latent, latent_test = (_cokrige(values(rows), rho) for rows in (x, x_test))

    def label(f: Array) -> NDArray[np.intp]:
        positive = f > 0.0 if labels == "sign" else rng.uniform(size=len(f)) < expit(f)
        return positive.astype(np.intp)

    made = Bunch(
        data=x,
        target=label(latent[np.arange(len(x)), level]),
        fidelity=level,
        latent=latent,
        rho=rho,
        noise=_disagreement(np.concatenate([latent, latent_test])),
        length_scale=lengths,
        scale=scales,
    )
    if n_test:
        target = label(latent_test[:, -1])
        made.update(test_data=x_test, test_target=target, test_latent=latent_test)
    return made


def make_rough(
    n_low: int = 20_000,
    n_high: int = 1_000,
    n_features: int = 5,
    *,
    length_scale: float = 1.0,
    scale: ArrayLike = (9.0, 2.25),
    n_test: int = 0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Many labels of a function so rough that a few hundred points cannot hold it.

    Latent functions f_low and f_high = f_low + δ are sums of 300 random cosines each, at points
    from a standard normal distribution, and labels come through a sigmoid.

    Parameters
    ----------
    n_low, n_high : int
        Rows of the cheap and of the trusted level.
    n_features : int
    length_scale : float
        Of both functions, in standard deviations of the features.
    scale : float or one per function
        Variances of f_low and δ.
    n_test : int
        Further rows, labelled at the trusted level.
    random_state : int, RandomState instance or None
        Seed. The latent functions do not depend on the numbers of rows.

    Returns
    -------
    Bunch
        ``data`` (n, n_features), ``target`` (n,) 0/1, ``fidelity`` (n,) 0 and 1 in increasing
        order, and ``probability`` (n,), that of label 1: no classifier can know more. With
        ``n_test`` also ``test_data``, ``test_target`` and ``test_probability``.

    Examples
    --------
    >>> from polyfid.datasets import make_rough
    >>> made = make_rough(2000, 100, n_test=50, random_state=0)
    >>> made.data.shape, int(made.fidelity.sum()), made.test_probability.shape
    ((2100, 5), 100, (50,))
    """
    sizes = {"n_low": n_low, "n_high": n_high, "n_test": n_test}
    for name, number in (sizes | {"n_features": n_features}).items():
        check_scalar(number, name, Integral, min_val=0 if name in sizes else 1)
    lengths = _one_per_level(length_scale, 2, "length_scale")
    scales = _one_per_level(scale, 2, "scale")
    rng = check_random_state(random_state)
    low, delta = (
        _draw_waves(rng, n_features, *of, ROUGH_WAVES) for of in zip(lengths, scales, strict=True)
    )
    level = np.repeat([0, 1, 1], [n_low, n_high, n_test])
    x = rng.standard_normal((len(level), n_features))
    latent = _add_waves(x, *low)
    top = np.flatnonzero(level == 1)
    latent[top] += _add_waves(x[top], *delta)
    probability = expit(latent)
    target = (rng.uniform(size=len(x)) < probability).astype(np.intp)
    n = n_low + n_high
    made = Bunch(data=x[:n], target=target[:n], fidelity=level[:n], probability=probability[:n])
    if n_test:
        made.update(test_data=x[n:], test_target=target[n:], test_probability=probability[n:])
    return made


def _draw_waves(
    rng: np.random.RandomState, d: int, length: float, scale: float, n_waves: int = WAVES
) -> list[Waves]:
    """Frequencies, phases and amplitudes of a sample of a process with kernel scale·RBF(length)."""
    # a cos + b sin with Gaussian a and b, at half the cosines: the amplitude is Rayleigh.
    waves = (
        rng.normal(scale=1.0 / length, size=(d, n_waves)),
        rng.uniform(0.0, 2.0 * np.pi, n_waves),
        rng.rayleigh(np.sqrt(scale / n_waves), n_waves),
    )
    return [numbers.astype(np.float32) for numbers in waves]


def _add_waves(x: Array, frequency: Waves, phase: Waves, amplitude: Waves) -> Array:
    """The values of a process at points (n, d)."""
    f = np.empty(len(x))
    # Cosines take nearly all of the time, and in single precision a tenth of it.
    for start in range(0, len(x), BLOCK):
        block = slice(start, start + BLOCK)
        angle = x[block].astype(np.float32) @ frequency
        angle += phase
        f[block] = np.cos(angle, out=angle) @ amplitude
    return f


def _one_per_level(value: ArrayLike, levels: int, what: str) -> Array:
    """Positive numbers (levels,)."""
    numbers = np.asarray(value, dtype=float)
    if numbers.shape not in ((), (levels,)) or not (np.isfinite(numbers) & (numbers > 0.0)).all():
        raise ValueError(
            f"{what} must be a positive number or one for each of {levels} levels, got {value!r}"
        )
    return np.array(np.broadcast_to(numbers, levels))


def _cokrige(processes: Array, rho: float) -> Array:
    """Latent functions f_t = ρ f_{t−1} + δ_t of all levels (n, levels) from f_0, δ_1, …."""
    f = processes.copy()
    for t in range(1, f.shape[1]):
        f[:, t] += rho * f[:, t - 1]
    return f


def _disagreement(latent: Array) -> float:
    """Share of rows where the first and the last level have different labels."""
    differ = (latent[:, 0] > 0.0) != (latent[:, -1] > 0.0)
    return float(differ.mean()) if len(differ) else 0.0


def _find_rho(processes: Array, noise: float) -> float:
    """The ρ, the same for every step, at which first and last level differ in that share."""
    steps = processes.shape[1] - 1
    if steps == 0:
        return np.nan

    def excess(rho: float) -> float:
        return _disagreement(_cokrige(processes, rho)) - noise

    # The share falls with ρ, from 1 if ρ to the power of steps can be negative, else from about ½.
    low, high = (-MAX_RHO if steps % 2 else 0.0), MAX_RHO
    if excess(low) > 0.0 > excess(high):
        rho = brentq(excess, low, high, xtol=1e-6)
    else:
        rho = high if excess(high) >= 0.0 else low
    if abs(excess(rho)) > 0.005:
        warnings.warn(
            f"noise={noise:g} cannot be reached with these latent functions, only "
            f"{noise + excess(rho):.3f} at rho = {rho:g}; use another random_state, a shorter "
            "length_scale or less noise",
            stacklevel=3,
        )
    return rho


class Welding(NamedTuple):
    """Tables of a made-up welding process: two labelled ones, new rows, and their true labels."""

    simulation: pd.DataFrame
    experiment: pd.DataFrame
    new: pd.DataFrame
    truth: pd.Series


def make_welding(seed: int = 0) -> Welding:
    """Tables of a made-up welding process: a few experiments and many simulations.

    A seam is sound if the beam melts through the sheet without cutting it and the gap between the
    sheets is small. The simulator misjudges the depth in thick sheets, and for one setting in seven
    it does not converge and gives a wrong answer. Needs pandas.

    Returns
    -------
    Welding
        Data frames ``simulation``, ``experiment``, ``new``, and ``truth``, the labels of the last.

    Examples
    --------
    >>> from polyfid.datasets import make_welding
    >>> simulation, experiment, new, truth = make_welding()
    >>> len(simulation), len(experiment), len(new)
    (300, 40, 500)
    >>> list(experiment.columns)
    ['id', 'power', 'speed', 'thickness', 'gap', 'label']
    """
    import pandas as pd

    rng = np.random.RandomState(seed)

    def settings(n: int, prefix: str) -> pd.DataFrame:
        """Power in kW, speed in m/min, thickness and gap in mm."""
        ranges = {"power": (1.0, 4.0), "speed": (1.0, 6.0), "thickness": (1.0, 3.0)}
        columns = {name: rng.uniform(*ends, n).round(2) for name, ends in ranges.items()}
        columns["gap"] = rng.uniform(0.0, 0.4, n).round(3)
        return pd.DataFrame({"id": [f"{prefix}-{i:03d}" for i in range(n)], **columns})

    simulation = settings(N_SIMULATIONS, "sim")
    wrong = rng.uniform(size=N_SIMULATIONS) < SIMULATOR_ERROR
    experiment, new = settings(N_EXPERIMENTS, "exp"), settings(N_NEW, "new")
    depth = 1.0 + 0.1 * (simulation.thickness - 2.0)
    simulation["label"] = _labels(simulation, depth, wrong)
    experiment["label"] = _labels(experiment)
    return Welding(simulation, experiment, new, _labels(new))


def _labels(
    rows: pd.DataFrame, depth: float | pd.Series = 1.0, wrong: bool | NDArray[np.bool_] = False
) -> pd.Series:
    """Whether the melt is about as deep as the sheet is thick, and the gap small."""
    reached = depth * 1.6 * rows.power / np.sqrt(rows.speed) / rows.thickness
    sound = (reached > 0.9) & (reached < 2.0) & (rows.gap < 0.3)
    return (sound ^ wrong).map({True: "sound", False: "defect"})
