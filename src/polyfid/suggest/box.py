"""A box of features with bounds: points spread over it, and points of a higher score nearby."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc

from polyfid.arrays import Array
from polyfid.suggest.named_rows import NamedRows

#: Steps uphill, and the step of finite differences as a share of the box.
_STEPS, _DIFFERENCE = 4, 1e-3
#: By what the length of a step is multiplied after one that did not lead uphill.
_SHORTER = 0.4


@dataclass(frozen=True)
class Box:
    """Features by name, each from a lower bound to an upper one.

    Examples
    --------
    >>> from polyfid.suggest.box import Box
    >>> box = Box.of({"speed": (10, 60), "load": (0, 5)})
    >>> box.spread_out(4, seed=0).matrix().shape
    (4, 2)
    """

    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, space: Mapping[str, Any]) -> Box:
        """The box that a mapping of names to pairs of bounds describes."""
        if not isinstance(space, Mapping) or not space:
            raise ValueError(
                f"space must be a mapping such as {{'speed': (10, 60)}}; got {space!r}"
            )
        bounds = []
        for name, pair in space.items():
            ends = np.asarray(pair, dtype=float)
            if ends.shape != (2,) or not np.isfinite(ends).all() or ends[0] >= ends[1]:
                raise ValueError(
                    f"space[{name!r}] must be (low, high) with low < high; got {pair!r}"
                )
            bounds.append((float(ends[0]), float(ends[1])))
        low, high = zip(*bounds, strict=True)
        return cls(tuple(map(str, space)), low, high)

    def spread_out(self, n: int, seed: int) -> NamedRows:
        """Scrambled Sobol points: random, and more even than independent ones."""
        with warnings.catch_warnings():  # numbers of points that are no powers of two will do
            warnings.simplefilter("ignore", UserWarning)
            unit = qmc.Sobol(len(self.names), seed=np.random.default_rng(seed)).random(n)
        return self.named(self._placed(unit))

    def named(self, x: Array) -> NamedRows:
        """Points (n, d) as rows with names."""
        return NamedRows(dict(zip(self.names, np.ascontiguousarray(x.T), strict=True)))

    def check(self, x: Array) -> None:
        """Refuse points that are no numbers; those outside of the box are let in."""
        if not np.isfinite(x).all():
            raise ValueError(
                f"rows must have a finite number for each of {', '.join(self.names)}; got others"
            )

    def _placed(self, unit: Array) -> Array:
        low, high = np.array(self.low), np.array(self.high)
        return np.clip(low + unit * (high - low), low, high)

    def uphill(self, x: Array, score: Callable[[Array], Array], reach: float) -> Array:
        """Points (n, d) of at least the score of those given, none of which goes far.

        The gradient is by finite differences, all of them in one call of ``score`` per step;
        ``reach`` is the longest way, as a share of the box.
        """
        low, high = np.array(self.low), np.array(self.high)
        start = (x - low) / (high - low)
        unit, (n, d) = start.copy(), start.shape
        best, length = score(x), np.full(n, 0.5 * reach)
        moves = _DIFFERENCE * np.concatenate([np.eye(d), -np.eye(d)])
        for _ in range(_STEPS):
            probes = np.clip(unit[:, None] + moves, 0.0, 1.0)
            values = score(self._placed(probes.reshape(-1, d))).reshape(n, 2, d)
            apart = np.abs(probes - unit[:, None]).sum(axis=2).reshape(n, 2, d).sum(axis=1)
            slope = (values[:, 0] - values[:, 1]) / np.maximum(apart, np.finfo(float).tiny)
            slope[((unit <= 0.0) & (slope < 0.0)) | ((unit >= 1.0) & (slope > 0.0))] = 0.0
            trial = unit + length[:, None] * _of_length_one(slope)
            way = trial - start
            far = np.maximum(np.linalg.norm(way, axis=1, keepdims=True) / reach, 1.0)
            trial = np.clip(start + way / far, 0.0, 1.0)
            reached = score(self._placed(trial))
            better = reached > best
            unit[better], best[better] = trial[better], reached[better]
            length *= np.where(better, 1.0, _SHORTER)
        return self._placed(unit)


def _of_length_one(slope: Array) -> Array:
    """Directions of slopes (n, d); zero where there is none."""
    steep = np.linalg.norm(slope, axis=1, keepdims=True)
    return np.divide(slope, steep, out=np.zeros_like(slope), where=steep > 0.0)
