"""Batches: candidates one after the other, each after what the earlier ones will have taught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.suggest.beliefs import ClassBelief
from polyfid.suggest.strategies import RandomRows, Strategy

#: Candidates whose gains are brought up to date at a time, and random ones of each level.
_REFRESHED, _TYPICAL = 32, 16
#: Money counts as spent to this share of a price.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Pick:
    """A chosen candidate: its place, the gain expected of it, and whether it is an audit row.

    ``typical`` is the gain of random rows of its level at that moment.
    """

    candidate: int
    gain: float
    typical: float
    audit: bool


@dataclass(frozen=True)
class Terms:
    """What may be bought: prices per candidate, the money, the most rows and the audit's share.

    Candidates are compared by gain per ``compared``, which are costs too. ``choices`` is the number
    of random candidates per level of which each pick is the best; None picks the best of all.
    """

    cost: Array
    compared: Array
    budget: float
    n: int
    audit: float
    repeat: bool
    choices: int | None


class Batch:
    """Chooses candidates greedily by gain per cost; every pick makes the others worth less.

    Where the best of all is picked, gains of candidates that were not looked at since the last pick
    count as upper bounds: labels rarely make each other worth more.
    """

    def __init__(
        self,
        beliefs: Sequence[ClassBelief],
        strategy: Strategy,
        terms: Terms,
        rng: np.random.RandomState,
        random: NDArray[np.bool_],
        is_top: NDArray[np.bool_],
    ) -> None:
        self.beliefs, self.strategy, self.terms, self.rng = beliefs, strategy, terms, rng
        self.level = beliefs[0].level
        self.gain = np.zeros(len(self.level))
        if terms.choices is None:
            self._refresh(np.arange(len(self.level)))
        self.open = np.ones(len(self.level), dtype=bool)
        # Of very many candidates only some are a random sample, and audit rows must be random.
        self.random, self.is_top = random, is_top
        self.spent = 0.0
        self._money: dict[int, float] = dict.fromkeys(np.unique(self.level).tolist(), 0.0)
        self._typical = {
            t: rng.permutation(np.flatnonzero(random & (self.level == t)))[:_TYPICAL]
            for t in self._money
        }
        # Audits are every so many purchases at the top level, from a random start.
        self._credit = rng.uniform()

    def choose(self) -> list[Pick]:
        """The whole batch."""
        picks: list[Pick] = []
        while len(picks) < self.terms.n and (pick := self._next()) is not None:
            picks.append(pick)
            i = pick.candidate
            self.spent += self.terms.cost[i]
            self._money[int(self.level[i])] += self.terms.cost[i]
            if not self.terms.repeat:
                self.open[i] = False
            for belief in self.beliefs:
                belief.pick(i)
        return picks

    def _next(self) -> Pick | None:
        left = self.terms.budget - self.spent
        allowed = self.open & (self.terms.cost <= left * (1.0 + _ROUNDING))
        if isinstance(self.strategy, RandomRows):
            allowed &= self.random
        if self.strategy.shares_money and allowed.any():
            # The level that got least so far, and that has something left.
            levels = np.unique(self.level[allowed]).tolist()
            allowed &= self.level == min(levels, key=self._money.__getitem__)
        if not allowed.any():
            return None
        best = self._best(np.flatnonzero(allowed))
        audit = bool(self.is_top[best]) and isinstance(self.strategy, RandomRows)
        if self.is_top[best] and not audit:
            self._credit += self.terms.audit
            drawable = np.flatnonzero(allowed & self.is_top & self.random)
            if self._credit >= 1.0 and len(drawable):
                self._credit -= 1.0
                best, audit = int(self.rng.choice(drawable)), True
                self._refresh(np.array([best]))
        typical = self._typical[int(self.level[best])]
        self._refresh(typical)
        return Pick(best, float(self.gain[best]), float(self.gain[typical].mean()), audit)

    def _best(self, allowed: Indices) -> int:
        if isinstance(self.strategy, RandomRows):
            best = int(self.rng.choice(allowed))
            self._refresh(np.array([best]))
            return best
        if self.terms.choices is not None:
            return self._best_of(self._drawn(allowed[self.random[allowed]], self.terms.choices))
        worth = self.gain[allowed] / self.terms.compared[allowed]
        order = allowed[np.argsort(-worth, kind="stable")]
        best, most = -1, -np.inf
        for start in range(0, len(order), _REFRESHED):
            chunk = order[start : start + _REFRESHED]
            if most >= self.gain[chunk[0]] / self.terms.compared[chunk[0]]:
                break
            self._refresh(chunk)
            worth = self.gain[chunk] / self.terms.compared[chunk]
            k = int(np.argmax(worth))
            if worth[k] > most:
                best, most = int(chunk[k]), float(worth[k])
        return best

    def _drawn(self, allowed: Indices, n: int) -> Indices:
        """Random candidates, so many of each level."""
        levels = self.level[allowed]
        of_level = [allowed[levels == t] for t in np.unique(levels)]
        drawn = [self.rng.choice(own, min(n, len(own)), replace=False) for own in of_level]
        return np.concatenate(drawn)

    def _best_of(self, candidates: Indices) -> int:
        self._refresh(candidates)
        return int(candidates[np.argmax(self.gain[candidates] / self.terms.compared[candidates])])

    def _refresh(self, candidates: Indices) -> None:
        self.gain[candidates] = self.strategy.score(self.beliefs, candidates)
