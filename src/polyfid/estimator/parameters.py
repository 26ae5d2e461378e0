"""The estimator's parameters: checked, and turned into settings and a likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.estimator.levels import Levels
from polyfid.inference import SCHEMES
from polyfid.kernels import Kernel
from polyfid.kernels.contract import as_kernel
from polyfid.learning.model import Settings
from polyfid.model.likelihoods import Likelihood, Logit, NoisyLogit


def read_settings(given: Any, levels: Levels) -> Settings:
    """What the parameters of an estimator come to, for these levels."""
    check_choice("inference", given.inference, ("auto", *SCHEMES))
    check_choice("prior", given.prior, ("weak", None))
    check_choice("optimizer", given.optimizer, ("lbfgs", None))
    check_choice("coupling", given.coupling, ("autoregressive", "coregional"))
    check_choice("standardize", given.standardize, (True, False))
    if given.label_noise is not None and given.inference == "laplace":
        raise ValueError(
            "label_noise makes a likelihood that is not log-concave, as Laplace needs it; use "
            'inference="ep" or inference="variational" with it'
        )
    check_count("n_restarts", given.n_restarts, 0)
    check_count("max_iter", given.max_iter, 1)
    read_n_tuning(given.n_tuning, levels, 1)
    check_choice("warm_start", given.warm_start, (True, False))
    check_choice("refine_inducing", given.refine_inducing, (True, False))
    kernels = _read_kernels(given.kernel, given.coupling, levels)
    inference: str = given.inference
    if inference == "auto":
        inference = "ep" if kernels is None or given.label_noise is not None else "laplace"
    (tol,) = read_numbers("tol", given.tol, 1, "one number from 0")
    if tol < 0.0:
        raise ValueError(f"tol must be one number from 0, got {given.tol!r}")
    return Settings(
        kernels=kernels,
        rho=_read_rho(given.rho, given.coupling, len(levels)),
        rho_bounds=_read_rho_bounds(given.rho_bounds),
        coupling=given.coupling,
        inference=inference,
        may_fall_back=given.inference == "auto",
        weak_prior=given.prior == "weak",
        optimise=given.optimizer is not None,
        n_restarts=int(given.n_restarts),
        max_iter=int(given.max_iter),
        tol=tol,
        n_jobs=given.n_jobs,
        refine_inducing=bool(given.refine_inducing),
    )


def read_n_inducing(
    given: Any, inference: str, n_processes: int
) -> str | int | tuple[int, ...] | None:
    """As given, if that makes sense."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return given
    numbers = list(given) if isinstance(given, Sequence | np.ndarray) else [given]
    whole = all(isinstance(m, int | np.integer) and m >= 1 for m in numbers)
    several = isinstance(given, Sequence | np.ndarray)
    if isinstance(given, str) or not whole or (several and len(numbers) != n_processes):
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


def read_n_tuning(given: Any, levels: Levels, default: int) -> int | tuple[int, ...] | None:
    """Rows to tune on, in all or of each level; None for all there are."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        if unknown := [name for name in given if name not in levels]:
            raise ValueError(
                f"n_tuning has unknown level {unknown[0]!r}; the levels are {list(levels)}"
            )
        return tuple(n_tuning_of(name, given, default) for name in levels)
    return n_tuning_of(None, given, default)


def n_tuning_of(name: Any, given: Any, default: int) -> int:
    """Rows of a level to tune on, at most."""
    if isinstance(given, Mapping):
        count = given.get(name, default)
        check_count(f"n_tuning[{name!r}]", count, 0)
        return int(count)
    if isinstance(given, str) and given == "auto":
        return default
    check_count("n_tuning", given, 1, ', "auto", None or a dictionary of levels')
    return int(given)


def _read_rho(given: Any, coupling: str, n_levels: int) -> tuple[float, ...]:
    steps = n_levels - 1
    wanted = f"one number, or one a step between levels, {steps} for {n_levels} levels"
    rho = read_numbers("rho", given, None, wanted)
    if len(rho) == 1:
        return rho * steps
    if len(rho) != steps and coupling == "autoregressive":
        raise ValueError(f"rho must be {wanted}; got {given!r}")
    return rho


def _read_rho_bounds(given: Any) -> tuple[float, float] | str:
    wanted = '(low, high) with low <= high, or "fixed"'
    if isinstance(given, str) and given == "fixed":
        return given
    low, high = read_numbers("rho_bounds", given, 2, wanted)
    if low > high:
        raise ValueError(f"rho_bounds must be {wanted}; got {given!r}")
    return low, high


def _read_kernels(given: Any, coupling: str, levels: Levels) -> tuple[Kernel, ...] | None:
    """One kernel a latent process, or None where they are to be learnt."""
    if isinstance(given, str):
        if given == "auto":
            return None
        raise ValueError(f'kernel must be "auto", a kernel or a list of kernels; got {given!r}')
    several = isinstance(given, Sequence | np.ndarray)
    try:
        kernels = tuple(as_kernel(k) for k in (given if several else [given]))
    except TypeError as error:
        raise ValueError(
            f'kernel must be "auto", a kernel or a list of kernels: {error}'
        ) from error
    if not several:
        return kernels * len(levels)
    if not kernels or (coupling == "autoregressive" and len(kernels) != len(levels)):
        raise ValueError(
            f"kernel is a list of {len(kernels)}, but there are {len(levels)} levels "
            f"{list(levels)}; give one kernel a level, or a single kernel"
        )
    return kernels


def make_likelihood(
    label_noise: Any,
    y: Array,
    weight: Array,
    level: NDArray[np.intp],
    group: NDArray[np.intp],
    n_levels: int,
) -> Likelihood:
    """The likelihood of labels -1 and +1 with the noise that is assumed.

    ``group`` says who gave each label, -1 where that is not known.
    """
    if label_noise is None:
        return Logit(y, weight)
    if isinstance(label_noise, str):
        check_choice("label_noise", label_noise, ("fidelity", "annotator", None))
        if label_noise == "fidelity":
            rate = np.full(n_levels, 0.2)
            rate[-1] = 0.0
            return NoisyLogit.from_flip_rates(y, weight, level, rate, rate > 0.0)
        if group.min() < 0:
            raise ValueError(
                'label_noise="annotator" needs to know who gave each label; '
                "pass fit(..., annotator=...)"
            )
        # Annotators of the top level form a group of their own that never errs.
        trusted = (level == n_levels - 1) & (n_levels > 1)
        rates = np.append(np.full(group.max() + 1, 0.8), 1.0)
        index = np.where(trusted, len(rates) - 1, group)
        free = (rates < 1.0) & np.isin(np.arange(len(rates)), index)
        return NoisyLogit(y, weight, index, rates, rates.copy(), free)
    wanted = f"one flip rate a level, each from 0 to below 0.5: {n_levels} numbers"
    rate = np.array(read_numbers("label_noise", label_noise, n_levels, wanted))
    if not ((rate >= 0.0) & (rate < 0.5)).all():
        raise ValueError(f"label_noise must be {wanted}; got {label_noise!r}")
    return NoisyLogit.from_flip_rates(y, weight, level, rate)


def check_choice(name: str, value: object, allowed: tuple[Any, ...]) -> None:
    """Complain about a value that is none of those allowed."""
    if not any(value is a or (isinstance(value, str) and value == a) for a in allowed):
        raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")


def check_count(name: str, value: object, least: int, otherwise: str = "") -> None:
    """Complain about what is not a whole number from ``least``."""
    if not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number from {least}{otherwise}, got {value!r}")


def read_numbers(name: str, value: object, size: int | None, wanted: str) -> tuple[float, ...]:
    """Finite numbers, as many as asked for."""
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    right = numbers.ndim == 1 and (size is None or len(numbers) == size)
    if not right or not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be {wanted}; got {value!r}")
    return tuple(numbers.tolist())
