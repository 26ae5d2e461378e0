"""Likelihoods of numbers: what a level says that does not speak in classes.

A number is a latent value plus an error. Numbers are centred and brought to the spread that latent
functions have by default, so that the same priors suit both kinds of levels; they may also be
warped (Yeo and Johnson, 2000). Densities are those of the numbers before the warp, on that scale:
they include the derivative of the warp, and do not depend on the unit of the numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from polyfid.arrays import Array
from polyfid.kernels.parameters import HyperPrior, Parameters
from polyfid.model.likelihoods import Derivatives, Expectations, Likelihood
from polyfid.model.logistic import Tilted

#: The standard deviation that numbers are brought to: the one that the weak prior on amplitudes
#: expects of a latent function.
TYPICAL = float(np.exp(0.75))
#: Standard deviations of errors, as shares of that of the numbers: bounds, what is plausible, and
#: the standard deviation of its logarithm.
NOISE_BOUNDS, PLAUSIBLE_NOISE, NOISE_SD = (1e-3, 3.0), 0.1, 1.5
#: Powers of the warp: within these bounds it has an inverse everywhere. One is no warp.
WARP_BOUNDS, WARP_PRIOR = (0.0, 2.0), (1.0, 0.5)
#: Degrees of freedom of errors with outliers.
DEGREES = 4.0
_LOG_2PI = float(np.log(2.0 * np.pi))
#: Standard normal nodes over which numbers that were warped are averaged.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
_NODE_WEIGHTS /= _NODE_WEIGHTS.sum()


@dataclass(frozen=True)
class NumberScale:
    """From numbers to the scale of latent values, and back: shift, divide, warp, multiply.

    ``power`` is that of the warp, 1 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.model.numbers import NumberScale
    >>> scale = NumberScale(centre=3.0, spread=2.0, power=0.5)
    >>> bool(np.isclose(scale.back(scale(np.array([7.0]))), 7.0)[0])
    True
    """

    centre: float
    spread: float
    power: float = 1.0

    @classmethod
    def of(cls, value: Array, weight: Array) -> NumberScale:
        """The scale of some numbers; weights count as repetitions."""
        if not len(value):
            return cls(0.0, 1.0)
        centre = float(np.average(value, weights=weight))
        spread = float(np.sqrt(np.average(np.square(value - centre), weights=weight)))
        # Numbers that are all the same have no spread.
        return cls(centre, spread if spread > 1e-12 * max(abs(centre), 1e-280) else 1.0)

    def __call__(self, value: Array) -> Array:
        """Numbers on the scale of latent values."""
        return TYPICAL * self._warped(value)[0]

    def log_slope(self, value: Array) -> Array:
        """Logarithm of the derivative of the warp."""
        _, _, log, up = self._warped(value)
        power = np.where(up, self.power, 2.0 - self.power)
        return np.asarray((power - 1.0) * log)

    def by_power(self, value: Array) -> tuple[Array, Array]:
        """Derivatives of the map and of `log_slope` in the power."""
        _, slope, log, up = self._warped(value)
        return TYPICAL * slope, np.where(up, log, -log)

    def _warped(self, value: Array) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        """Warped numbers of spread 1, their derivative in the power, log(1 + |u|), and u >= 0."""
        u = (value - self.centre) / self.spread
        up, log = u >= 0.0, np.log1p(np.abs(u))
        power = np.where(up, self.power, 2.0 - self.power)
        warped = log * _phi(power * log)
        slope = np.square(log) * _phi_slope(power * log)  # both signs cancel where u < 0
        return np.where(up, warped, -warped), slope, log, up

    def back(self, z: Array) -> Array:
        """Numbers from the scale of latent values."""
        z = z / TYPICAL
        if self.power == 1.0:
            return self.centre + self.spread * z
        up = z >= 0.0
        power = np.where(up, self.power, 2.0 - self.power)
        flat = power < 1e-12
        log = np.where(flat, np.abs(z), np.log1p(power * np.abs(z)) / np.where(flat, 1.0, power))
        return np.asarray(self.centre + self.spread * np.where(up, 1.0, -1.0) * np.expm1(log))

    def moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Means and variances of numbers from those of normal variables on the latent scale."""
        if self.power == 1.0:
            factor = self.spread / TYPICAL
            return self.centre + factor * mean, np.square(factor) * variance
        values = self.back(mean[:, None] + np.sqrt(variance)[:, None] * _NODES)
        centre = values @ _NODE_WEIGHTS
        return centre, np.square(values - centre[:, None]) @ _NODE_WEIGHTS


def _phi(q: Array) -> Array:
    """(e^q - 1) / q."""
    small = np.abs(q) < 1e-5
    return np.where(small, 1.0 + 0.5 * q, np.expm1(q) / np.where(small, 1.0, q))


def _phi_slope(q: Array) -> Array:
    """The derivative of `_phi`."""
    small = np.abs(q) < 1e-3
    safe = np.where(small, 1.0, q)
    exact = (safe * np.exp(safe) - np.expm1(safe)) / np.square(safe)
    return np.where(small, 0.5 + q / 3.0 + np.square(q) / 8.0 + q**3 / 30.0, exact)


@dataclass(frozen=True)
class Numbers(Likelihood):
    """Numbers of one level: latent values on their scale plus errors of scale ``noise``.

    ``free``: the error's scale is learnt; ``warps``: so is the power of the warp.
    """

    value: Array
    weight: Array
    level: int
    scale: NumberScale
    noise: float
    free: bool = True
    warps: bool = False

    _row_fields: ClassVar[tuple[str, ...]] = ("value", "weight")

    @property
    def y(self) -> Array:  # type: ignore[override]
        return np.zeros(len(self.value))

    @property
    def is_number(self) -> NDArray[np.bool_]:
        return np.ones(len(self.value), dtype=bool)

    @property
    def labels(self) -> None:
        return None

    @property
    def numbers(self) -> dict[int, Any]:
        return {self.level: self}

    @cached_property
    def _z(self) -> Array:
        return self.scale(self.value)

    @cached_property
    def _log_slope(self) -> Array:
        return self.scale.log_slope(self.value)

    @property
    @abstractmethod
    def error_variance(self) -> float:
        """The variance of errors, on the latent scale."""

    @property
    @abstractmethod
    def precision(self) -> float:
        """The precision that a number is expected to have as a Gaussian site."""

    @property
    def noise_variance(self) -> float:
        """The variance of errors in squared units of the numbers; of warped ones, at their mean."""
        return self.error_variance * (self.scale.spread / TYPICAL) ** 2

    @cached_property
    def parameters(self) -> Parameters:
        groups = []
        if self.free:
            low, high = NOISE_BOUNDS
            bounds = TYPICAL * low, TYPICAL * high
            groups.append(Parameters.positive(f"noise[{self.level}]", self.noise, bounds))
        if self.warps:
            power = np.array([self.scale.power])
            groups.append(Parameters.of([f"warp[{self.level}]"], power, WARP_BOUNDS))
        return Parameters.join(groups)

    def with_theta(self, theta: Array) -> Self:
        noise = float(np.exp(theta[0])) if self.free else self.noise
        power = float(theta[-1]) if self.warps else self.scale.power
        return replace(self, noise=noise, scale=replace(self.scale, power=power))

    def weak_prior(self) -> HyperPrior:
        groups = []
        if self.free:
            groups.append(
                HyperPrior.independent([float(np.log(TYPICAL * PLAUSIBLE_NOISE))], [NOISE_SD])
            )
        if self.warps:
            groups.append(HyperPrior.independent(*([v] for v in WARP_PRIOR)))
        return HyperPrior.join(groups)

    def _pulled(self, noise_bar: Array, value_bar: Array, slope_bar: Array) -> Array:
        """The adjoint of theta from those of log(noise), of the scaled numbers and log slopes."""
        theta_bar = [noise_bar.sum()] if self.free else []
        if self.warps:
            of_value, of_slope = self.scale.by_power(self.value)
            theta_bar.append(value_bar @ of_value + slope_bar @ of_slope)
        return np.array(theta_bar)


@dataclass(frozen=True)
class Gaussian(Numbers):
    """Numbers with normal errors: p(z | f) = N(z | f, noise^2)^weight."""

    log_concave = True

    @property
    def is_exact(self) -> NDArray[np.bool_]:
        return self.is_number

    @property
    def error_variance(self) -> float:
        return self.noise**2

    @property
    def precision(self) -> float:
        return 1.0 / self.noise**2

    def derivatives(self, f: Array) -> Derivatives:
        precision, gap = self.weight / self.noise**2, self._z - f
        none = np.zeros_like(f)
        return Derivatives(self._log_density(np.square(gap)), precision * gap, -precision, none)

    def _log_density(self, squares: Array) -> Array:
        constant = self._log_slope - 0.5 * _LOG_2PI - np.log(self.noise)
        return np.asarray(self.weight * (constant - 0.5 * squares / self.noise**2))

    def derivatives_pullback(self, f: Array, value: Array, first: Array, second: Array) -> Array:
        precision, gap = self.weight / self.noise**2, self._z - f
        noise_bar = value * (precision * np.square(gap) - self.weight)
        noise_bar = noise_bar + 2.0 * precision * (second - first * gap)
        value_bar = precision * (first - value * gap)
        return self._pulled(noise_bar, value_bar, value * self.weight)

    def expectations(self, mean: Array, variance: Array) -> Expectations:
        precision, gap = self.weight / self.noise**2, self._z - mean
        return Expectations(
            self._log_density(np.square(gap) + variance), precision * gap, -precision
        )

    def expectations_pullback(self, mean: Array, variance: Array) -> Array:
        precision, gap = self.weight / self.noise**2, self._z - mean
        noise_bar = precision * (np.square(gap) + variance) - self.weight
        return self._pulled(noise_bar, -precision * gap, self.weight)

    def tilted(self, mean: Array, variance: Array) -> Tilted:
        share = np.minimum(self.weight, 1.0)
        total, gap = variance + self.noise**2 / share, self._z - mean
        log_z = -0.5 * (_LOG_2PI + np.log(total) + np.square(gap) / total)
        # The density to a power below one is a wider density times this.
        wider = 0.5 * ((1.0 - share) * (_LOG_2PI + 2.0 * np.log(self.noise)) - np.log(share))
        return Tilted(log_z + wider + share * self._log_slope, gap / total, -1.0 / total)

    def tilted_pullback(self, mean: Array, variance: Array, copies: Array) -> Array:
        share = np.minimum(self.weight, 1.0)
        wide = self.noise**2 / share
        total, gap = variance + wide, self._z - mean
        noise_bar = (np.square(gap) / total - 1.0) * wide / total + 1.0 - share
        return self._pulled(copies * noise_bar, -copies * gap / total, copies * share)


#: Integrals over the logarithm of a precision, or of what stands for one, by equidistant nodes.
#: They converge exponentially; with this step errors are about 1e-11.
_STEP = 0.3
_LOG_PRECISIONS = np.arange(-34.0, 3.4, _STEP)
_LOG_TIMES = np.arange(-48.0, 4.2, _STEP)


@dataclass(frozen=True)
class Student(Numbers):
    """Numbers with errors of Student's t, 4 degrees of freedom: outliers pull little.

    Such an error is normal with a precision that is gamma distributed. Not log-concave, so Laplace
    is not offered.
    """

    log_concave = False

    @property
    def error_variance(self) -> float:
        return self.noise**2 * DEGREES / (DEGREES - 2.0)

    @property
    def precision(self) -> float:
        return (DEGREES + 1.0) / (DEGREES + 3.0) / self.noise**2

    def derivatives(self, f: Array) -> Derivatives:
        raise ValueError(
            "numbers with outliers have a likelihood that is not log-concave, which Laplace does "
            'not support; use inference="ep" or inference="variational"'
        )

    @property
    def _constant(self) -> Array:
        gammas = gammaln(0.5 * (DEGREES + 1.0)) - gammaln(0.5 * DEGREES)
        return np.asarray(
            gammas - 0.5 * np.log(DEGREES * np.pi) - np.log(self.noise) + self._log_slope
        )

    def expectations(self, mean: Array, variance: Array) -> Expectations:
        # log(1 + x) is the integral of (1 - exp(-t x)) exp(-t) / t over t > 0, and under a normal
        # distribution the mean of exp(-a gap^2) has a closed form.
        rate, shrink, kept = self._spread_out(mean, variance)
        gap = self._z - mean
        weight = 0.5 * (DEGREES + 1.0) * self.weight * _STEP
        fade = np.exp(-np.exp(_LOG_TIMES))
        slope = 2.0 * rate / shrink  # minus the derivative of the exponent in gap, by gap
        lost = 1.0 - kept
        first, second = kept * slope, kept * slope * (slope * np.square(gap)[:, None] - 1.0)
        return Expectations(
            self.weight * self._constant - weight * (lost @ fade),
            weight * gap * (first @ fade),
            weight * (second @ fade),
        )

    def _spread_out(self, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Rates a (nodes,), 1 + 2 a v and E exp(-a gap^2), (n, nodes) each."""
        rate = np.exp(_LOG_TIMES) / (DEGREES * self.noise**2)
        shrink = 1.0 + 2.0 * rate * variance[:, None]
        squares = np.square(self._z - mean)[:, None]
        return rate, shrink, np.exp(-rate * squares / shrink) / np.sqrt(shrink)

    def expectations_pullback(self, mean: Array, variance: Array) -> Array:
        # The expectation depends on the noise as on the scale of gap and variance.
        rate, shrink, kept = self._spread_out(mean, variance)
        gap = self._z - mean
        fade = np.exp(-np.exp(_LOG_TIMES))
        inner = 2.0 * rate * (variance[:, None] + np.square(gap)[:, None] / shrink) / shrink
        weight = 0.5 * (DEGREES + 1.0) * self.weight * _STEP
        noise_bar = weight * ((kept * inner) @ fade) - self.weight
        first = weight * gap * ((kept * 2.0 * rate / shrink) @ fade)
        return self._pulled(noise_bar, -first, self.weight)

    def tilted(self, mean: Array, variance: Array) -> Tilted:
        if (self.weight < 1.0).any():
            raise ValueError(
                "sample_weight below 1 cannot be combined with outliers under EP; use "
                'inference="variational"'
            )
        log_z, share, wide = self._mixed(mean, variance)
        total, gap = variance[:, None] + wide, (self._z - mean)[:, None]
        pull = gap / total
        first = np.einsum("ij,ij->i", share, pull)
        second = np.einsum("ij,ij->i", share, np.square(pull) - 1.0 / total)
        return Tilted(log_z + self._log_slope, first, second - np.square(first))

    def _mixed(self, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Log-integrals (n,), shares of precisions in them (n, nodes), error variances (nodes,)."""
        half = 0.5 * DEGREES
        log_weight = half * (_LOG_PRECISIONS + np.log(half) - np.exp(_LOG_PRECISIONS))
        log_weight += np.log(_STEP) - gammaln(half)
        wide = self.noise**2 * np.exp(-_LOG_PRECISIONS)
        total = variance[:, None] + wide
        squares = np.square(self._z - mean)[:, None]
        each = log_weight - 0.5 * (_LOG_2PI + np.log(total) + squares / total)
        log_z = logsumexp(each, axis=1)
        return log_z, np.exp(each - log_z[:, None]), wide

    def tilted_pullback(self, mean: Array, variance: Array, copies: Array) -> Array:
        _, share, wide = self._mixed(mean, variance)
        total, gap = variance[:, None] + wide, (self._z - mean)[:, None]
        noise_bar = np.einsum("ij,ij->i", share, (np.square(gap) / total - 1.0) * wide / total)
        first = np.einsum("ij,ij->i", share, gap / total)
        return self._pulled(copies * noise_bar, -copies * first, copies)
