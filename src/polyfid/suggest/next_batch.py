"""The next batch of a study, from its model or, before there is one, from a design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.suggest.candidates import read_limits
from polyfid.suggest.designs import first_labels
from polyfid.suggest.named_rows import NamedRows
from polyfid.suggest.study_rows import StudyRows
from polyfid.suggest.suggestion import rank, suggest

#: Points of a box among which labels are chosen.
N_CANDIDATES = 1024


@dataclass(frozen=True)
class NextBatch:
    """Labels to buy, in order: arrays of the same length.

    ``points`` are the rows themselves if they are new ones; ``row`` then counts from 0.
    """

    row: Indices
    level: Indices
    names: NDArray[Any]
    gain: Array
    relative: Array
    cost: Array
    audit: NDArray[np.bool_]
    points: NamedRows | None = None

    def __len__(self) -> int:
        return len(self.row)

    def columns(self) -> dict[str, list[Any]]:
        """The batch as columns of a table, those of `polyfid.suggest`."""
        return {
            "row": self.row.tolist(),
            "level": self.names.tolist(),
            "gain": self.gain.tolist(),
            "gain_per_cost": (self.gain / self.cost).tolist(),
            "relative_gain": self.relative.tolist(),
            "cost": self.cost.tolist(),
            "total": np.cumsum(self.cost).tolist(),
            "audit": self.audit.tolist(),
        }


@dataclass(frozen=True)
class Offer:
    """What may be bought, and how it is chosen; ``how`` are further arguments of `suggest`."""

    levels: tuple[Any, ...]
    costs: Mapping[Any, float]
    budget: float | None
    n: int | None
    repeat: bool
    how: Mapping[str, Any]
    seed: int

    def next(
        self,
        rows: StudyRows,
        model: MultiFidelityClassifier | None,
        labelled: NDArray[np.bool_],
        pending: NDArray[np.bool_],
        targets: Array,
    ) -> NextBatch:
        """The next batch; ``labelled`` (n_rows, n_levels) and ``pending`` (n_rows,) rows are known.

        Without a model, it is a design.
        """
        money, most = read_limits(self.budget, self.n, min(self.costs.values()))
        rng = np.random.RandomState(self.seed)
        if rows.box is not None:
            return self._of_box(rows, model, targets, money, most, rng)
        x = rows.x[: rows.n_pool]
        free = np.flatnonzero(~pending[: rows.n_pool])
        if not len(free):
            raise ValueError(
                "all rows of the pool wait for answers; tell them, or withdraw the suggestions "
                "(forget, polyfid study ask --forget)"
            )
        if model is None:
            known = labelled[: rows.n_pool] | pending[: rows.n_pool, None]
            return self._design(x, known, money, most, rng)
        batch = self._suggested(model, rows, x[free], targets, rng)
        return replace(batch, row=free[batch.row])

    def _design(
        self,
        x: Array,
        known: NDArray[np.bool_],
        money: float,
        most: int,
        rng: np.random.RandomState,
    ) -> NextBatch:
        costs = {t: self.costs[name] for t, name in enumerate(self.levels) if name in self.costs}
        if known[:, list(costs)].all():
            raise ValueError(
                "every row of the pool has a label, or waits for one, at each level that has a "
                "cost, and all labels are of one class; add rows to the pool"
            )
        bought = first_labels(x, known, costs, money, most, float(self.how["audit"]), rng)
        unknown = np.full(len(bought), np.nan)
        level = np.array([one.level for one in bought], dtype=np.intp)
        return NextBatch(
            row=np.array([one.row for one in bought], dtype=np.intp),
            level=level,
            names=self._names(level),
            gain=unknown,
            relative=unknown,
            cost=np.array([costs[one.level] for one in bought]),
            audit=np.array([one.audit for one in bought], dtype=bool),
        )

    def _names(self, level: Indices) -> NDArray[Any]:
        names = np.empty(len(self.levels), dtype=object)
        names[:] = self.levels
        return np.asarray(names[level])

    def _suggested(
        self,
        model: MultiFidelityClassifier,
        rows: StudyRows,
        x: Array,
        targets: Array,
        rng: np.random.RandomState,
    ) -> NextBatch:
        """What `suggest` would buy of these rows."""
        frame = suggest(
            model,
            rows.input(x),
            self.costs,
            budget=self.budget,
            n=self.n,
            targets=rows.input(targets),
            repeat=self.repeat,
            random_state=rng,
            **self.how,
        )
        level = np.array([self.levels.index(name) for name in frame["level"]], dtype=np.intp)
        return NextBatch(
            row=np.asarray(frame["row"], dtype=np.intp),
            level=level,
            names=self._names(level),
            gain=np.asarray(frame["gain"], dtype=float),
            relative=np.asarray(frame["relative_gain"], dtype=float),
            cost=np.asarray(frame["cost"], dtype=float),
            audit=np.asarray(frame["audit"], dtype=bool),
        )

    def _of_box(
        self,
        rows: StudyRows,
        model: MultiFidelityClassifier | None,
        targets: Array,
        money: float,
        most: int,
        rng: np.random.RandomState,
    ) -> NextBatch:
        """Points of a box: quasi-random ones, of which the chosen ones go uphill."""
        assert rows.box is not None
        even = rows.box.spread_out(N_CANDIDATES, self.seed).matrix()
        if model is None:
            # Those that were labelled or asked for keep their distance, and are not offered.
            x = np.concatenate([even, rows.x])
            known = np.zeros((len(x), len(self.levels)), dtype=bool)
            known[len(even) :] = True
            batch = self._design(x, known, money, most, rng)
            return _of_points(batch, rows, even)
        batch = self._suggested(model, rows, even, targets, rng)
        if self.how["strategy"] == "random":
            return _of_points(batch, rows, even)
        # Each point goes uphill on its own, and no farther than the points are from each other, so
        # that the batch stays diverse. Audit rows stay random points of the box.
        x, spacing = even.copy(), N_CANDIDATES ** (-1.0 / even.shape[1])
        for t in np.unique(batch.level[~batch.audit]):
            chosen = np.unique(batch.row[(batch.level == t) & ~batch.audit])
            x[chosen] = rows.box.uphill(
                even[chosen],
                partial(self._worth, model, rows, t, targets),
                reach=spacing,
            )
        return _of_points(batch, rows, x)

    def _worth(
        self,
        model: MultiFidelityClassifier,
        rows: StudyRows,
        level: int,
        targets: Array,
        x: Array,
    ) -> Array:
        """What labels of points are worth at a level."""
        how = {name: value for name, value in self.how.items() if name != "audit"}
        at = rows.input(targets)
        return rank(model, rows.input(x), self.levels[level], targets=at, random_state=0, **how)


def _of_points(batch: NextBatch, rows: StudyRows, x: Array) -> NextBatch:
    """A batch of new points, which count from the end of the rows that are there."""
    assert rows.box is not None
    points, place = np.unique(batch.row, return_inverse=True)
    return replace(batch, row=len(rows) + place, points=rows.box.named(x[points]))
