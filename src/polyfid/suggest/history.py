"""How a study goes: what was promised, and what labels that were left out say was delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.inputs import hash_pairs
from polyfid.inspection import without_own_labels
from polyfid.rows import Rows
from polyfid.suggest.ledger import Ledger

#: Fewer rows than this that are left out say nothing.
LEAST_HELD_OUT = 8
AUDITED, TRUSTED = "audit rows", "all trusted rows"


@dataclass(frozen=True)
class HeldOut:
    """Log-losses of trusted labels that were left out, by the places of their answers."""

    place: Indices
    loss: Array
    audit: NDArray[np.bool_]

    @classmethod
    def nothing(cls) -> HeldOut:
        """No losses, where there is no model."""
        return cls(np.empty(0, np.intp), np.empty(0), np.empty(0, bool))

    @property
    def by(self) -> str | None:
        """Which rows are scored; None where there are too few."""
        if self.audit.sum() >= LEAST_HELD_OUT:
            return AUDITED
        return TRUSTED if len(self.loss) >= LEAST_HELD_OUT else None

    @property
    def scored(self) -> Array:
        """The losses of the rows that are scored."""
        if self.by is None:
            return np.empty(0)
        return self.loss[self.audit] if self.by == AUDITED else self.loss

    @property
    def mean(self) -> float:
        return float(self.scored.mean()) if self.by else float("nan")

    def fall_to(self, later: HeldOut) -> tuple[float, float]:
        """How much smaller later losses of the same labels are, and the standard error of that.

        NaN where there are too few.
        """
        _, here, there = np.intersect1d(self.place, later.place, return_indices=True)
        same = HeldOut(self.place[here], self.loss[here] - later.loss[there], self.audit[here])
        if same.by is None:
            return float("nan"), float("nan")
        falls = same.scored
        return float(falls.mean()), float(falls.std(ddof=1) / np.sqrt(len(falls)))


def held_out_losses(
    model: MultiFidelityClassifier,
    x: Array,
    label: NDArray[Any],
    level: Indices,
    audit: NDArray[np.bool_],
) -> HeldOut:
    """Losses of all trusted labels, each predicted without itself.

    What a label says goes out of the posterior; what it said of hyper-parameters stays. All labels
    of one row that say the same go out together.
    """
    place = np.flatnonzero(level == len(model.levels_) - 1)
    if not len(place):
        return HeldOut.nothing()
    x, code = x[place], np.searchsorted(model.classes_, np.array(label[place].tolist()))
    _, group, counts = np.unique(hash_pairs(x, code), return_inverse=True, return_counts=True)
    rows = Rows.of(x, level[place], code, counts[group])
    proba = without_own_labels(model, rows, np.zeros(len(place), dtype=bool))
    own = proba[np.arange(len(place)), code]
    loss = -np.log(np.maximum(own, np.finfo(float).tiny))
    return HeldOut(place, loss, audit[place])


def expected_loss(proba: Array) -> float:
    """The log-loss that probabilities expect of themselves."""
    return float(entr(proba).sum(axis=1).mean())


@dataclass(frozen=True)
class Record:
    """A study when it asked for a batch, or as it is now (then ``batch`` is -1)."""

    batch: int
    asked: int
    cost: float
    spent: float
    labels: dict[str, int]
    expected: float
    held_out: HeldOut

    @classmethod
    def before(
        cls,
        batch: int,
        asked: int,
        cost: float,
        spent: float,
        labels: dict[str, int],
        now: Record | None,
    ) -> Record:
        """The record of a batch that is asked for; ``now`` is that of the model, or None."""
        expected = float("nan") if now is None else now.expected
        held_out = HeldOut.nothing() if now is None else now.held_out
        return cls(batch, asked, cost, spent, labels, expected, held_out)

    @property
    def n_labels(self) -> int:
        """How many labels had been told."""
        return sum(self.labels.values())

    def state(self) -> dict[str, Any]:
        """What a file holds of it."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return own | {"held_out": dict(vars(self.held_out))}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """The record of what a file holds."""
        held_out = HeldOut(
            np.asarray(state["held_out"]["place"], dtype=np.intp),
            np.asarray(state["held_out"]["loss"], dtype=float),
            np.asarray(state["held_out"]["audit"], dtype=bool),
        )
        return cls(**{**state, "held_out": held_out})


def as_history(records: Sequence[Record], ledger: Ledger) -> list[dict[str, Any]]:
    """Records as dictionaries, with what batches promised and what they delivered."""
    answered = ledger.answered
    history = []
    for record, later in zip_longest(records, records[1:]):
        own = [k for k, s in enumerate(ledger.suggestions) if s.batch == record.batch]
        told = [k for k in own if k in answered]
        gains = [ledger.suggestions[k].gain for k in told]
        known = later is not None and bool(gains) and not np.isnan(gains).any()
        nothing = float("nan"), float("nan")
        fall, error = nothing if later is None else record.held_out.fall_to(later.held_out)
        history.append(
            {
                "batch": None if record.batch < 0 else record.batch,
                "asked": record.asked,
                "answered": len(told),
                "cost": record.cost,
                "spent": record.spent,
                "labels": record.labels,
                "expected": _or_none(record.expected),
                "held_out": _or_none(record.held_out.mean),
                "n_held_out": len(record.held_out.scored),
                "held_out_by": record.held_out.by,
                "promised": float(np.sum(gains)) if known else None,
                "delivered": _or_none(fall),
                "delivered_error": _or_none(error),
                "delivered_expected": None
                if later is None
                else _or_none(record.expected - later.expected),
            }
        )
    return history


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
