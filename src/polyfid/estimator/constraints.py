"""The estimator's parameters, checked against constraints that are data, as one `Options` value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyfid.inference import SCHEMES
from polyfid.kernels import Kernel
from polyfid.kernels.contract import as_kernel
from polyfid.learning.plan import Options
from polyfid.rows.survey import Levels


@dataclass(frozen=True)
class Constraint:
    """What a parameter may be, in words and as a test."""

    wanted: str
    allows: Callable[[Any], bool]

    def check(self, name: str, value: object) -> None:
        """Raise ValueError if the value is not allowed."""
        if not self.allows(value):
            raise ValueError(f"{name} must be {self.wanted}, got {value!r}")


def _one_of(*allowed: Any) -> Constraint:
    def allows(value: object) -> bool:
        return any(value is a or (isinstance(value, str) and value == a) for a in allowed)

    return Constraint(f"one of {list(allowed)}", allows)


def whole_number(least: int, otherwise: str = "") -> Constraint:
    """A whole number, not less than ``least``."""

    def allows(value: object) -> bool:
        return isinstance(value, int | np.integer) and bool(value >= least)

    return Constraint(f"a whole number from {least}{otherwise}", allows)


#: Constraints of the parameters that need no other one to be checked.
CONSTRAINTS = {
    "inference": _one_of("auto", *SCHEMES),
    "prior": _one_of("weak", None),
    "optimizer": _one_of("lbfgs", None),
    "coupling": _one_of("autoregressive", "coregional"),
    "standardize": _one_of(True, False),
    "warm_start": _one_of(True, False),
    "refine_inducing": _one_of(True, False),
    "n_restarts": whole_number(0),
    "max_iter": whole_number(1),
}


def read_options(given: Any, levels: Levels, n_classes: int) -> Options:
    """The parameters of an estimator as options, for these levels and so many classes."""
    for name, constraint in CONSTRAINTS.items():
        constraint.check(name, getattr(given, name))
    if given.label_noise is not None and given.inference == "laplace":
        raise ValueError(
            "label_noise makes a likelihood that is not log-concave, as Laplace needs it; use "
            'inference="ep" or inference="variational" with it'
        )
    kernels = _read_kernels(given.kernel, given.coupling, levels)
    (tol,) = read_numbers("tol", given.tol, 1, "one number from 0")
    if tol < 0.0:
        raise ValueError(f"tol must be one number from 0, got {given.tol!r}")
    inference: str = given.inference
    if inference == "auto":
        inference = "ep" if kernels is None or given.label_noise is not None else "laplace"
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
        n_inducing=_read_n_inducing(given.n_inducing, given.inference, n_processes),
        n_tuning=_read_n_tuning(given.n_tuning, levels),
        n_restarts=int(given.n_restarts),
        max_iter=int(given.max_iter),
        tol=tol,
        n_jobs=given.n_jobs,
    )


def _read_n_inducing(given: Any, inference: str, n_processes: int) -> Any:
    if given is None or (isinstance(given, str) and given == "auto"):
        return given
    several = isinstance(given, Sequence | np.ndarray)
    numbers = list(given) if several else [given]
    whole = not isinstance(given, str) and all(map(whole_number(1).allows, numbers))
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
    if given is None or (isinstance(given, str) and given == "auto"):
        return given
    if not isinstance(given, Mapping):
        whole_number(1, ', "auto", None or a dictionary of levels').check("n_tuning", given)
        return int(given)
    if unknown := [name for name in given if name not in levels]:
        raise ValueError(
            f"n_tuning has unknown level {unknown[0]!r}; the levels are {list(levels)}"
        )
    for name, count in given.items():
        whole_number(0).check(f"n_tuning[{name!r}]", count)
    return tuple(int(given[name]) if name in given else None for name in levels)


def _read_label_noise(given: Any, n_levels: int) -> str | tuple[float, ...] | None:
    if given is None:
        return None
    if isinstance(given, str):
        _one_of("fidelity", "annotator", None).check("label_noise", given)
        return given
    wanted = f"one flip rate per level, each from 0 to below 0.5: {n_levels} numbers"
    rates = read_numbers("label_noise", given, n_levels, wanted)
    if not all(0.0 <= rate < 0.5 for rate in rates):
        raise ValueError(f"label_noise must be {wanted}; got {given!r}")
    return rates


def _read_rho(given: Any, coupling: str, n_levels: int) -> tuple[float, ...]:
    steps = n_levels - 1
    wanted = f"one number, or one per step between levels, {steps} for {n_levels} levels"
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
    """One kernel per latent process, or None where they are to be learnt."""
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
            f"{list(levels)}; give one kernel per level, or a single kernel"
        )
    return kernels


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
