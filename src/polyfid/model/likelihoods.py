"""Likelihoods of labels given the latent values at their rows.

Each offers derivatives at a point (for Laplace), expectations under a Gaussian (variational) and
log-moments of a Gaussian times one label (EP), all of them arrays over the rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

from polyfid.arrays import Array, Indices
from polyfid.kernels.parameters import HyperPrior, Parameters, Tunable
from polyfid.model.logistic import Tilted, sigmoid_moments, tilted_sigmoid


class Derivatives(NamedTuple):
    """l(f), l'(f), l''(f) and l'''(f) of every row's log-likelihood, weights included."""

    value: Array
    first: Array
    second: Array
    third: Array


class Expectations(NamedTuple):
    """E l, E l' and E l'' of every row under f ~ N(mean, variance), weights included."""

    value: Array
    first: Array
    second: Array


class Likelihood(Tunable):
    """Labels or numbers, and how probable they are given latent values."""

    #: Labels, -1 or 1 (0 where a row has a number), and multiplicity of every row, (n,).
    y: Array
    weight: Array
    #: Fields with one entry per row.
    _row_fields: ClassVar[tuple[str, ...]] = ("y", "weight")
    #: Whether log p(y | f) is concave in f: Laplace needs it.
    log_concave: bool

    @abstractmethod
    def derivatives(self, f: Array) -> Derivatives:
        """The log-likelihood and its derivatives at f."""

    @abstractmethod
    def expectations(self, mean: Array, variance: Array) -> Expectations:
        """Expectations of the log-likelihood and its derivatives."""

    @abstractmethod
    def tilted(self, mean: Array, variance: Array) -> Tilted:
        """Log-integral of N(f | mean, variance) p(y | f)^min(weight, 1), and derivatives."""

    def take(self, rows: Indices) -> Self:
        """The likelihood of some of the rows."""
        chosen = {name: getattr(self, name)[rows] for name in self._row_fields}
        return replace(self, **chosen)  # type: ignore[type-var]

    def times(self, factor: Array) -> Self:
        """The likelihood with weights so many times as large."""
        return replace(self, weight=self.weight * factor)  # type: ignore[type-var]

    @property
    def is_number(self) -> NDArray[np.bool_]:
        """Which rows have numbers in place of labels, (n,)."""
        return np.zeros(len(self.weight), dtype=bool)

    @property
    def is_exact(self) -> NDArray[np.bool_]:
        """Which rows have a likelihood that is a Gaussian site itself, (n,)."""
        return np.zeros(len(self.weight), dtype=bool)

    @property
    def labels(self) -> Likelihood | None:
        """The likelihood of the rows that have labels; None if there is none."""
        return self

    @property
    def numbers(self) -> dict[int, Any]:
        """The likelihoods of numbers, by level."""
        return {}

    @property
    def parameters(self) -> Parameters:
        return Parameters.join([])

    def with_theta(self, theta: Array) -> Self:
        return self

    def weak_prior(self) -> HyperPrior:
        """What is plausible for ``theta``."""
        return HyperPrior.flat(0)

    def derivatives_pullback(self, f: Array, value: Array, first: Array, second: Array) -> Array:
        """Derivative in ``theta`` of the sum of value l + first l' + second l''."""
        return np.empty(0)

    def expectations_pullback(self, mean: Array, variance: Array) -> Array:
        """Derivative in ``theta`` of the sum of E l."""
        return np.empty(0)

    def tilted_pullback(self, mean: Array, variance: Array, copies: Array) -> Array:
        """Derivative in ``theta`` of the sum of copies times log Z."""
        return np.empty(0)


@dataclass(frozen=True)
class Logit(Likelihood):
    """p(y | f) = sigmoid(y f)^weight for y in {-1, +1}."""

    y: Array
    weight: Array

    log_concave = True

    def derivatives(self, f: Array) -> Derivatives:
        p = expit(f)
        slope = self.weight * p * (1.0 - p)
        # 1 - sigmoid(y f) = sigmoid(-y f): no cancellation for labels that are well explained.
        return Derivatives(
            value=self.weight * log_expit(self.y * f),
            first=self.weight * self.y * expit(-self.y * f),
            second=-slope,
            third=slope * (2.0 * p - 1.0),
        )

    def expectations(self, mean: Array, variance: Array) -> Expectations:
        away = sigmoid_moments(-self.y * mean, variance)
        toward = self.y * mean + away.log_sigmoid  # log sigmoid(a) = a + log sigmoid(-a)
        return Expectations(
            value=self.weight * toward,
            first=self.weight * self.y * away.sigmoid,
            second=-self.weight * away.slope,
        )

    def tilted(self, mean: Array, variance: Array) -> Tilted:
        log_z, first, second = tilted_sigmoid(self.y * mean, variance, np.minimum(self.weight, 1.0))
        return Tilted(log_z, self.y * first, second)


@dataclass(frozen=True)
class NoisyLogit(Likelihood):
    """Labels that passed through a channel: p(y_i | f) = a_i sigmoid(f) + b_i (1 - sigmoid(f)).

    a_i and b_i are the probabilities of the given label when the true one is positive or negative.
    They come from rates of the group of the row, a level or an annotator: with sensitivity s and
    specificity c of the group, a = s and b = 1 - c for a positive label, a = 1 - s and b = c for
    a negative one. Not log-concave, so Laplace is not offered. ``truth`` has labels that are known
    to be true, of rows that repeat a trusted one.
    """

    y: Array
    weight: Array
    group: Indices  # of each row
    sensitivity: Array  # of each group, like specificity; 1 means that it never errs
    specificity: Array
    free: NDArray[np.bool_]  # whose rates are learnt
    symmetric: bool = False  # both rates of a group are one number, 1 - flip rate
    truth: Array | None = None  # the true label of each row, 0 where it is not known

    log_concave = False

    @property
    def _row_fields(self) -> tuple[str, ...]:  # type: ignore[override]
        fields = ("y", "weight", "group")
        return fields if self.truth is None else (*fields, "truth")

    @classmethod
    def from_flip_rates(
        cls,
        y: Array,
        weight: Array,
        group: Indices,
        flip_rate: object,
        free: object = False,
        truth: Array | None = None,
    ) -> NoisyLogit:
        """A channel that flips labels of group g with probability ``flip_rate[g]``."""
        keep = 1.0 - np.asarray(flip_rate, dtype=float)
        free = np.broadcast_to(np.asarray(free, dtype=bool), keep.shape)
        return cls(y, weight, group, keep, keep, free, symmetric=True, truth=truth)

    def __post_init__(self) -> None:
        for name in ("sensitivity", "specificity"):
            rate = np.asarray(getattr(self, name), dtype=float)
            if not ((rate >= 0.0) & (rate <= 1.0)).all():
                raise ValueError(f"{name} must be probabilities, got {rate.tolist()}")

    @property
    def rates(self) -> tuple[Array, Array]:
        """a_i and b_i, (n,) each."""
        s, c = self.sensitivity[self.group], self.specificity[self.group]
        positive = self.y > 0
        a, b = np.where(positive, s, 1.0 - s), np.where(positive, 1.0 - c, c)
        if self.truth is None:
            return a, b
        # A label whose true one is known tells of the channel, and nothing of f.
        return np.where(self.truth < 0.0, b, a), np.where(self.truth > 0.0, a, b)

    @property
    def _log_rates(self) -> tuple[Array, Array]:
        """Logarithms of a_i and b_i, of the least positive number in the place of zero."""
        a, b = (np.log(np.maximum(rate, np.finfo(float).tiny)) for rate in self.rates)
        return a, b

    def derivatives(self, f: Array) -> Derivatives:
        raise ValueError(
            "label noise makes the likelihood non-concave, which Laplace does not support; "
            'use inference="ep" or inference="variational"'
        )

    def expectations(self, mean: Array, variance: Array) -> Expectations:
        # b + (a - b) sigmoid(f) = (b + a e^f) / (1 + e^f), and both logarithms are softplus:
        # l = log b + softplus(f + log(a/b)) - softplus(f); with b = 0, l = log a + log sigmoid(f).
        a, _ = self.rates
        log_a, log_b = self._log_rates
        plain = sigmoid_moments(mean, variance)
        shifted = sigmoid_moments(mean + log_a - log_b, variance)
        # softplus(f) = f - log sigmoid(f)
        value = log_a + plain.log_sigmoid - shifted.log_sigmoid
        value = np.where(a <= 0.0, log_b + plain.log_sigmoid - mean, value)
        return Expectations(
            value=self.weight * value,
            first=self.weight * (shifted.sigmoid - plain.sigmoid),
            second=self.weight * (shifted.slope - plain.slope),
        )

    def tilted(self, mean: Array, variance: Array) -> Tilted:
        if (self.weight < 1.0).any():
            raise ValueError(
                "sample_weight below 1 cannot be combined with label noise under EP; "
                'use inference="variational"'
            )
        a, b = self.rates
        up = mean > 0.0
        less, more = np.where(up, b, a), np.where(up, a, b)
        small = tilted_sigmoid(-np.abs(mean), variance)
        log_z, _ = self._log_z(mean, small.log_z)
        share = (less - more) * np.exp(small.log_z - log_z)
        first = np.where(up, -1.0, 1.0) * share * small.first
        return Tilted(log_z, first, share * (small.second + small.first**2) - first**2)

    def _log_z(self, mean: Array, log_smaller: Array) -> tuple[Array, Array]:
        """The logarithms of Z = a E sigmoid(f) + b E sigmoid(-f), (n,), and of both E, (2, n).

        That of the smaller E, which has its digits, is given; the other E is 1 minus it.
        """
        a, b = self.rates
        log_larger = np.log1p(-np.exp(log_smaller))
        both = np.where(mean > 0.0, [log_larger, log_smaller], [log_smaller, log_larger])
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log(a) + both[0], np.log(b) + both[1]), both

    @property
    def parameters(self) -> Parameters:
        rates, kinds, low = self.sensitivity[self.free], ["sensitivity", "specificity"], -5.0
        if self.symmetric:
            # They stay above one half: a channel that flips most labels mirrors the model.
            kinds, low = ["reliability"], 0.0
        else:
            rates = np.append(rates, self.specificity[self.free])
        names = [f"{kind}[{g}]" for kind in kinds for g in np.flatnonzero(self.free)]
        return Parameters.of(names, logit(np.clip(rates, 1e-6, 1.0 - 1e-6)), (low, 7.0))

    def weak_prior(self) -> HyperPrior:
        n = len(self.theta)
        return HyperPrior.independent([1.5] * n, [1.0] * n)

    def with_theta(self, theta: Array) -> Self:
        if not self.free.any():
            return self
        n = int(self.free.sum())
        sensitivity, specificity = self.sensitivity.copy(), self.specificity.copy()
        sensitivity[self.free] = expit(theta[:n])
        specificity[self.free] = expit(theta[:n] if self.symmetric else theta[n:])
        return replace(self, sensitivity=sensitivity, specificity=specificity)

    def expectations_pullback(self, mean: Array, variance: Array) -> Array:
        # dl/da = sigmoid(f + log(a/b)) / a and dl/db = (1 - the same) / b.
        a, b = self.rates
        log_a, log_b = self._log_rates
        up = sigmoid_moments(mean + log_a - log_b, variance).sigmoid
        with np.errstate(divide="ignore", invalid="ignore"):
            a_bar = np.where(a > 0, up / a, 0.0)
            b_bar = np.where(b > 0, (1.0 - up) / b, 0.0)
        return self._rates_pullback(self.weight * a_bar, self.weight * b_bar)

    def tilted_pullback(self, mean: Array, variance: Array, copies: Array) -> Array:
        log_z, both = self._log_z(mean, tilted_sigmoid(-np.abs(mean), variance).log_z)
        # Capped where a label is impossible under one of the classes: that rate is not free.
        a_bar, b_bar = copies * np.exp(np.minimum(both - log_z, 500.0))
        return self._rates_pullback(a_bar, b_bar)

    def _rates_pullback(self, a_bar: Array, b_bar: Array) -> Array:
        if self.truth is not None:  # both rates are that of the true label
            total = a_bar + b_bar
            a_bar = np.select([self.truth > 0.0, self.truth < 0.0], [total, 0.0], a_bar)
            b_bar = np.select([self.truth > 0.0, self.truth < 0.0], [0.0, total], b_bar)
        sign = np.where(self.y > 0, 1.0, -1.0)
        s, c, n = self.sensitivity, self.specificity, len(self.sensitivity)
        s_bar = (np.bincount(self.group, sign * a_bar, minlength=n) * s * (1.0 - s))[self.free]
        c_bar = (np.bincount(self.group, -sign * b_bar, minlength=n) * c * (1.0 - c))[self.free]
        return s_bar + c_bar if self.symmetric else np.append(s_bar, c_bar)


@dataclass(frozen=True)
class Parts(Likelihood):
    """Rows of several kinds, such as labels and numbers: ``part`` says which part has a row.

    The rows of a part are in the order in which they are here.
    """

    parts: tuple[Likelihood, ...]
    part: Indices

    def __post_init__(self) -> None:
        sizes = np.bincount(self.part, minlength=len(self.parts)).tolist()
        if sizes != [len(part.weight) for part in self.parts]:
            raise ValueError("part must name each part as often as it has rows")

    @cached_property
    def _rows(self) -> list[Indices]:
        """The rows of each part."""
        return [np.flatnonzero(self.part == k) for k in range(len(self.parts))]

    def _gathered(self, name: str) -> NDArray[Any]:
        """A field of all rows."""
        return self._together([getattr(part, name) for part in self.parts])

    def _together(self, each: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Values of the rows of each part as values of all rows."""
        whole = np.empty(len(self.part), dtype=each[0].dtype)
        for rows, values in zip(self._rows, each, strict=True):
            whole[rows] = values
        return whole

    def _ask(self, method: str, *given: Array) -> list[Any]:
        """What a method of each part says of its rows, given arrays over all rows."""
        return [
            getattr(part, method)(*(values[rows] for values in given))
            for part, rows in zip(self.parts, self._rows, strict=True)
        ]

    @property
    def y(self) -> Array:  # type: ignore[override]
        return self._gathered("y")

    @property
    def weight(self) -> Array:  # type: ignore[override]
        return self._gathered("weight")

    @property
    def is_number(self) -> NDArray[np.bool_]:
        return self._gathered("is_number")

    @property
    def is_exact(self) -> NDArray[np.bool_]:
        return self._gathered("is_exact")

    @property
    def labels(self) -> Likelihood | None:
        return next((part for part in self.parts if part.labels is not None), None)

    @property
    def numbers(self) -> dict[int, Any]:
        return {level: own for part in self.parts for level, own in part.numbers.items()}

    @property
    def log_concave(self) -> bool:  # type: ignore[override]
        return all(part.log_concave for part in self.parts)

    def take(self, rows: Indices) -> Self:
        place = self._together([np.arange(len(rows)) for rows in self._rows])
        part = self.part[rows]
        parts = (own.take(place[rows[part == k]]) for k, own in enumerate(self.parts))
        return replace(self, parts=tuple(parts), part=part)

    def times(self, factor: Array) -> Self:
        pairs = zip(self.parts, self._rows, strict=True)
        return replace(self, parts=tuple(part.times(factor[rows]) for part, rows in pairs))

    def derivatives(self, f: Array) -> Derivatives:
        each = zip(*self._ask("derivatives", f), strict=True)
        return Derivatives(*map(self._together, each))

    def expectations(self, mean: Array, variance: Array) -> Expectations:
        each = zip(*self._ask("expectations", mean, variance), strict=True)
        return Expectations(*map(self._together, each))

    def tilted(self, mean: Array, variance: Array) -> Tilted:
        return Tilted(*map(self._together, zip(*self._ask("tilted", mean, variance), strict=True)))

    @cached_property
    def parameters(self) -> Parameters:
        return Parameters.join([part.parameters for part in self.parts])

    def with_theta(self, theta: Array) -> Self:
        cuts = np.cumsum([len(part.theta) for part in self.parts])[:-1]
        pairs = zip(self.parts, np.split(theta, cuts), strict=True)
        return replace(self, parts=tuple(part.with_theta(own) for part, own in pairs))

    def weak_prior(self) -> HyperPrior:
        return HyperPrior.join([part.weak_prior() for part in self.parts])

    def derivatives_pullback(self, f: Array, value: Array, first: Array, second: Array) -> Array:
        return np.concatenate(self._ask("derivatives_pullback", f, value, first, second))

    def expectations_pullback(self, mean: Array, variance: Array) -> Array:
        return np.concatenate(self._ask("expectations_pullback", mean, variance))

    def tilted_pullback(self, mean: Array, variance: Array, copies: Array) -> Array:
        return np.concatenate(self._ask("tilted_pullback", mean, variance, copies))
