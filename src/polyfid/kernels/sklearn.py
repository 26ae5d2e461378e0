"""Kernels of scikit-learn: translated where there is a native one, wrapped where there is none."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import kernels as sk

from polyfid.arrays import Array
from polyfid.kernels.columnwise import RBF, Linear, Matern, RationalQuadratic
from polyfid.kernels.contract import Adjoints, Kernel, Linearised, Product, Sum, as_kernel
from polyfid.kernels.leaf import Constant, White
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.parameters import Parameters

_MIN_BLOCK = 64  # rows; below it calls cost more than arithmetic
_STEP = 6e-6  # of differences, relative to coordinates: rounding and curvature err alike


def translate(kernel: Any) -> Kernel:
    """The native kernel where there is one, else a wrapped one with a warning."""
    if not isinstance(kernel, sk.Kernel):
        raise TypeError(
            f"expected a kernel (of polyfid or scikit-learn) or a number, got {kernel!r}"
        )
    # By exact type: a subclass may mean something else, as scikit-learn's Matern, an RBF, does.
    kind = type(kernel)
    if kind is sk.Sum or kind is sk.Product:
        pair = Sum if kind is sk.Sum else Product
        return pair(as_kernel(kernel.k1), as_kernel(kernel.k2))
    if kind in _TRANSLATIONS:
        try:
            native = _TRANSLATIONS[kind](kernel)
        except ValueError as error:
            raise ValueError(f"cannot translate scikit-learn's {kind.__name__}: {error}") from error
        if native is not None:
            return native
    wrapped = SklearnKernel(kernel)
    if p := len(wrapped.theta):
        warnings.warn(
            f"{kernel!r} has no native counterpart, so scikit-learn computes its gradient, an "
            f"array of shape (n, n, {p}) for n rows: expect much memory and time. The kernels of "
            "polyfid.kernels need neither.",
            UserWarning,
            stacklevel=3,
        )
    return wrapped


@dataclass(frozen=True, repr=False)
class SklearnKernel(Kernel):
    """A copy of a kernel of scikit-learn behind polyfid's contract; `translate` makes it."""

    kernel: Any

    def __post_init__(self) -> None:
        inside = [self.kernel, *self.kernel.get_params().values()]
        if any(isinstance(value, sk.CompoundKernel) for value in inside):
            raise ValueError(
                "CompoundKernel is several kernels, not one; "
                "give a list of kernels, one per level, where several are meant"
            )
        object.__setattr__(self, "kernel", clone(self.kernel))
        with np.errstate(divide="ignore"):
            finite = np.isfinite(self.theta).all() and np.isfinite(self.bounds).all()
        if not finite:
            raise ValueError(
                f"hyper-parameters of {self.kernel!r} and their bounds must be positive and "
                'finite, or the bounds "fixed"'
            )

    @property
    def parameters(self) -> Parameters:
        names: list[str] = []
        for parameter in self.kernel.hyperparameters:
            name = f"{type(self.kernel).__name__.lower()}.{parameter.name.replace('__', '.')}"
            n = 0 if parameter.fixed else parameter.n_elements
            names += [f"{name}[{j}]" for j in range(n)] if n > 1 else [name] * n
        bounds = np.asarray(self.kernel.bounds, dtype=float).reshape(-1, 2)
        return Parameters(tuple(names), np.array(self.kernel.theta, dtype=float), bounds)

    def with_theta(self, theta: Array) -> Self:
        return type(self)(self.kernel.clone_with_theta(theta))

    def _pull(self, at: Linearised, K_bar: Array, places: bool) -> Adjoints:
        pairs = at.pairs
        bars = Adjoints.of_theta(np.zeros(len(self.theta)), pairs, places)
        # Square blocks: joining rows and columns of a long one would cost the square of its length.
        size = max(_MIN_BLOCK, min(pairs.shape))
        for i, j in product(*(range(0, n, size) for n in pairs.shape)):
            rows, columns = slice(i, i + size), slice(j, j + size)
            offset = None if pairs.offset is None else pairs.offset + i - j
            block = Pairs(pairs.x[rows], pairs.z[columns], offset)
            bars.theta[:] += np.einsum("ij,ijp->p", K_bar[rows, columns], self._gradient(block))
        if places:
            self._fill_places(pairs, K_bar, bars.places)
        return bars

    def _fill_places(self, pairs: Pairs, K_bar: Array, z_bar: Array) -> None:
        """The adjoint of the second points by differences: scikit-learn has no derivatives."""
        for c, column in enumerate(pairs.z.T):
            step = _STEP * (1.0 + np.abs(column))
            for sign in (1.0, -1.0):
                moved = pairs.z.copy()
                moved[:, c] += sign * step
                K = self.evaluate(Pairs(pairs.x, moved))
                z_bar[:, c] += sign * np.einsum("ij,ij->j", K_bar, K) / (2.0 * step)

    def evaluate(self, pairs: Pairs) -> Array:
        # Between two sets of points scikit-learn's WhiteKernel is zero; the noise of rows
        # that are the same row of data is in the diagonal only.
        K = np.array(self.kernel(pairs.x, pairs.z), dtype=float)
        i, j = pairs.same_rows()
        if len(i):
            K[i, j] = self.kernel.diag(pairs.x[i])
        return K

    def _gradient(self, pairs: Pairs) -> Array:
        """Derivatives of the covariance by theta, (n, m, p)."""
        # scikit-learn has them for one set of points only, so x and z are joined, each row of
        # data once: then the same row meets itself on the diagonal, where the noise is.
        n, m = pairs.shape
        i, j = pairs.same_rows()
        only_z = np.setdiff1d(np.arange(m), j)
        position = np.empty(m, dtype=np.intp)
        position[j], position[only_z] = i, n + np.arange(len(only_z))
        joined = np.concatenate([pairs.x, pairs.z[only_z]])
        return np.asarray(self.kernel(joined, eval_gradient=True)[1][:n, position])

    def diagonal(self, x: Array) -> Array:
        return np.array(self.kernel.diag(x), dtype=float)

    def pull_diagonal(self, x: Array, k_bar: Array) -> Array:
        theta_bar = np.zeros(len(self.theta))
        for start in range(0, len(x), _MIN_BLOCK):
            rows = slice(start, start + _MIN_BLOCK)
            gradient = self.kernel(x[rows], eval_gradient=True)[1]
            theta_bar += np.einsum("i,iip->p", k_bar[rows], gradient)
        return theta_bar

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        return f"{self.kernel!r} of scikit-learn"

    def __repr__(self) -> str:
        return f"SklearnKernel({self.kernel!r})"


def _constant(kernel: Any) -> Kernel:
    # scikit-learn's `its_kernel + ours` stores ours as the value of a ConstantKernel.
    if isinstance(kernel.constant_value, Kernel):
        return kernel.constant_value
    return Constant(kernel.constant_value, kernel.constant_value_bounds)


def _matern(kernel: Any) -> Kernel | None:
    if kernel.nu not in (0.5, 1.5, 2.5, np.inf):
        return None
    lengths = np.squeeze(kernel.length_scale)  # a list of one number is shared by all columns
    return Matern(lengths, kernel.nu, length_scale_bounds=kernel.length_scale_bounds)


def _dot_product(kernel: Any) -> Kernel:
    """sigma_0^2 + x . z; theta is log sigma_0 in scikit-learn, twice that here."""
    linear = Linear(1.0, "fixed")
    fixed = isinstance(kernel.sigma_0_bounds, str)
    if fixed and kernel.sigma_0 == 0:
        return linear
    bounds = kernel.sigma_0_bounds if fixed else np.square(kernel.sigma_0_bounds)
    return Sum(Constant(np.square(kernel.sigma_0), bounds), linear)


_TRANSLATIONS: dict[type, Callable[[Any], Kernel | None]] = {
    sk.ConstantKernel: _constant,
    sk.WhiteKernel: lambda k: White(k.noise_level, k.noise_level_bounds),
    sk.RBF: lambda k: RBF(np.squeeze(k.length_scale), k.length_scale_bounds),
    sk.Matern: _matern,
    sk.RationalQuadratic: lambda k: RationalQuadratic(
        k.length_scale, k.length_scale_bounds, alpha=k.alpha, alpha_bounds=k.alpha_bounds
    ),
    sk.DotProduct: _dot_product,
}
