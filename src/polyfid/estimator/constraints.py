"""The estimator's parameters, checked against constraints that are data, as one `Options` value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from polyfid.inference import SCHEMES
from polyfid.kernels import NAMED, Kernel
from polyfid.kernels.contract import as_kernel
from polyfid.learning.plan import Options
from polyfid.rows.survey import Levels

#: What parameters may be that have a few values only.
CHOICES = {
    "inference": ("auto", *SCHEMES),
    "mean": ("auto", "boosted", None),
    "prior": ("weak", None),
    "optimizer": ("lbfgs", None),
    "coupling": ("autoregressive", "coregional"),
    "standardize": (True, False),
    "warm_start": (True, False),
    "refine_inducing": (True, False),
    "warp": (True, False),
    "outliers": (True, False),
}
#: Products of squares of larger ones, over several levels, would overflow.
MAX_RHO = 1e20


def read_options(given: Any, levels: Levels, n_classes: int) -> Options:
    """The parameters of an estimator as options, for these levels and so many classes."""
    for name, allowed in CHOICES.items():
        _check_choice(name, getattr(given, name), allowed)
    if given.label_noise is not None and given.inference == "laplace":
        raise ValueError(
            "label_noise makes a likelihood that is not log-concave, as Laplace needs it; use "
            'inference="ep" or inference="variational" with it'
        )
    numeric = read_numeric(given.numeric_levels, levels)
    if given.outliers and not numeric:
        raise ValueError("outliers=True is for numeric levels; name them with numeric_levels=")
    if given.outliers and given.inference == "laplace":
        raise ValueError(
            "outliers=True makes a likelihood that is not log-concave, as Laplace needs it; use "
            'inference="ep" or inference="variational" with it'
        )
    kernels = _read_kernels(given.kernel, given.coupling, levels)
    if kernels is not None and given.mean == "boosted":
        raise ValueError(
            'mean="boosted" comes with kernels of its own; use kernel="auto" with it, or mean=None '
            "for the kernel alone"
        )
    (tol,) = read_numbers("tol", given.tol, 1, "one number from 0 to below 1", low=0.0, high=1.0)
    inference: str = given.inference
    if inference == "auto":
        plain = kernels is not None and given.label_noise is None and not given.outliers
        inference = "laplace" if plain else "ep"
    n_processes = len(levels) if kernels is None else len(kernels)
    return Options(
        n_levels=len(levels),
        n_classes=n_classes,
        kernels=kernels,
        rho=_read_rho(given.rho, given.coupling, len(levels)),
        rho_bounds=_read_rho_bounds(given.rho_bounds),
        coupling=given.coupling,
        inference=inference,
        may_choose=given.inference == "auto",
        weak_prior=given.prior == "weak",
        optimise=given.optimizer is not None,
        standardize=bool(given.standardize),
        refine_inducing=bool(given.refine_inducing),
        label_noise=_read_label_noise(given.label_noise, len(levels)),
        numeric=numeric,
        noise=_read_noise(given.noise, levels, numeric),
        warp=bool(given.warp),
        outliers=bool(given.outliers),
        mean=given.mean,
        n_inducing=_read_n_inducing(given.n_inducing, given.inference, n_processes),
        n_tuning=_read_n_tuning(given.n_tuning, levels),
        n_restarts=read_whole("n_restarts", given.n_restarts, 0),
        max_iter=read_whole("max_iter", given.max_iter, 1),
        tol=tol,
        n_jobs=given.n_jobs,
    )


def _check_choice(name: str, value: object, allowed: tuple[Any, ...]) -> None:
    if not any(value is a or (isinstance(value, str) and value == a) for a in allowed):
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")


def is_whole(value: object, least: int) -> bool:
    """Whether a value is a whole number, not less than ``least``."""
    return isinstance(value, int | np.integer) and bool(value >= least)


def read_whole(name: str, value: Any, least: int, otherwise: str = "") -> int:
    """A whole number, not less than ``least``."""
    if not is_whole(value, least):
        raise ValueError(f"{name} must be a whole number from {least}{otherwise}, got {value!r}")
    return int(value)


def read_numbers(
    name: str,
    value: object,
    size: int | None,
    wanted: str,
    low: float = -np.inf,
    high: float = np.inf,
) -> tuple[float, ...]:
    """Finite numbers from ``low`` to below ``high``, as many as asked for."""
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    right = np.isfinite(numbers) & (low <= numbers) & (numbers < high)
    if numbers.ndim != 1 or size not in (None, len(numbers)) or not right.all():
        raise ValueError(f"{name} must be {wanted}; got {value!r}")
    return tuple(numbers.tolist())


def _is_automatic(value: object) -> bool:
    return value is None or (isinstance(value, str) and value == "auto")


def _read_n_inducing(given: Any, inference: str, n_processes: int) -> Any:
    if _is_automatic(given):
        return given
    several = isinstance(given, Sequence | np.ndarray)
    numbers = list(given) if several else [given]
    whole = not isinstance(given, str) and all(is_whole(number, 1) for number in numbers)
    if not whole or (several and len(numbers) != n_processes):
        raise ValueError(
            'n_inducing must be "auto", None, a whole number from 1, or one for each of '
            f"{n_processes} latent processes; got {given!r}"
        )
    if inference not in ("auto", "variational"):
        raise ValueError(
            f"n_inducing={given!r} goes with variational inference only; use inference="
            f'"variational" or "auto" instead of {inference!r}, or n_inducing=None'
        )
    return tuple(int(m) for m in numbers) if several else int(given)


def _read_n_tuning(given: Any, levels: Levels) -> Any:
    if _is_automatic(given):
        return given
    if not isinstance(given, Mapping):
        return read_whole("n_tuning", given, 1, ', "auto", None or a dictionary of levels')
    if unknown := [name for name in given if name not in levels]:
        raise ValueError(
            f"n_tuning has unknown level {unknown[0]!r}; the levels are {list(levels)}"
        )
    counts = {name: read_whole(f"n_tuning[{name!r}]", n, 0) for name, n in given.items()}
    if len(counts) == len(levels) and not any(counts.values()):
        raise ValueError(f"n_tuning leaves no rows to tune on, got {given!r}; give a level some")
    return tuple(counts.get(name) for name in levels)


def _read_label_noise(given: Any, n_levels: int) -> str | tuple[float, ...] | None:
    if given is None or isinstance(given, str):
        _check_choice("label_noise", given, ("fidelity", "annotator", None))
        return given
    wanted = f"one flip rate per level, each from 0 to below 0.5: {n_levels} numbers"
    return read_numbers("label_noise", given, n_levels, wanted, low=0.0, high=0.5)


def read_numeric(given: Any, levels: Levels) -> tuple[int, ...]:
    """Numbers of the levels that hold numbers in place of classes, from their names."""
    if given is None:
        return ()
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ValueError(
            f'numeric_levels must be a list of levels, such as ["simulation"]; got {given!r}'
        )
    names = list(given)
    if unknown := [name for name in names if name not in levels]:
        raise ValueError(
            f"numeric_levels has unknown level {unknown[0]!r}; the levels are {list(levels)}"
        )
    if levels[-1] in names:
        raise ValueError(
            f"numeric_levels names {levels[-1]!r}, the most trusted level, which must have "
            f"classes; the levels are {list(levels)}, least trusted first: if another one is to be "
            "trusted most, pass levels= in that order"
        )
    return tuple(sorted({levels.index(name) for name in names}))


def _read_noise(given: Any, levels: Levels, numeric: tuple[int, ...]) -> tuple[float | None, ...]:
    """The error variance of each level where it is given; none where no level is numeric."""
    if given is None:
        return (None,) * len(levels) if numeric else ()
    wanted = 'a dictionary of numeric levels and error variances, such as {"simulation": 0.1}'
    if not isinstance(given, Mapping):
        raise ValueError(f"noise must be {wanted}; got {given!r}")
    names = [levels[t] for t in numeric]
    if unknown := [name for name in given if name not in names]:
        raise ValueError(
            f"noise has {unknown[0]!r}, which is not among the numeric levels {names}; name them "
            "with numeric_levels="
        )
    least = np.finfo(float).tiny
    values = {
        name: read_numbers(f"noise[{name!r}]", v, 1, "one variance above 0", least)[0]
        for name, v in given.items()
    }
    return tuple(values.get(name) for name in levels)


def _read_rho(given: Any, coupling: str, n_levels: int) -> tuple[float, ...]:
    steps = n_levels - 1
    wanted = f"one number, or one per step between levels, {steps} for {n_levels} levels"
    wanted += f", between -{MAX_RHO:g} and {MAX_RHO:g}"
    rho = read_numbers("rho", given, None, wanted, -MAX_RHO, MAX_RHO)
    if len(rho) == 1:
        return rho * steps
    if len(rho) != steps and coupling == "autoregressive":
        raise ValueError(f"rho must be {wanted}; got {given!r}")
    return rho


def _read_rho_bounds(given: Any) -> tuple[float, float] | str:
    if isinstance(given, str) and given == "fixed":
        return given
    wanted = f'(low, high) with low <= high, between -{MAX_RHO:g} and {MAX_RHO:g}, or "fixed"'
    low, high = read_numbers("rho_bounds", given, 2, wanted, -MAX_RHO, MAX_RHO)
    if low > high:
        raise ValueError(f"rho_bounds must be {wanted}; got {given!r}")
    return low, high


def _read_kernels(given: Any, coupling: str, levels: Levels) -> tuple[Kernel, ...] | None:
    """One kernel per latent process, or None where they are to be learnt."""
    if isinstance(given, str) and given == "auto":
        return None
    names = ", ".join(f'"{name}"' for name in ("auto", *NAMED))
    if isinstance(given, str) and given not in NAMED:
        raise ValueError(f"kernel must be {names}, a kernel or a list of kernels; got {given!r}")
    if isinstance(given, str):
        given = NAMED[given]
    several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    try:
        kernels = tuple(as_kernel(k) for k in (given if several else [given]))
    except TypeError as error:
        raise ValueError(
            f"kernel must be {names}, a kernel or a list of kernels: {error}"
        ) from error
    if not several:
        return kernels * len(levels)
    if not kernels or (coupling == "autoregressive" and len(kernels) != len(levels)):
        raise ValueError(
            f"kernel is a list of {len(kernels)}, but there are {len(levels)} levels "
            f"{list(levels)}; give one kernel per level, or a single kernel"
        )
    return kernels
