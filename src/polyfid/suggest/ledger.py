"""The book of a study: which labels were suggested, and which were told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polyfid.values import to_text


@dataclass(frozen=True)
class Suggestion:
    """A label that was asked for: of a row, at a level (a number), in a batch, for a gain."""

    row: int
    level: int
    batch: int
    gain: float
    audit: bool


@dataclass(frozen=True)
class Answer:
    """A label that was told, of a row at a level; ``suggestion`` is -1 where none asked for it.

    At levels that say numbers it is a float, and nowhere else.
    """

    row: int
    level: int
    label: Any
    suggestion: int
    audit: bool


@dataclass(frozen=True)
class Told:
    """What became of answers.

    Attributes
    ----------
    new : int
        Labels that are new, among them ``unasked`` ones and ``repeated`` ones, of a row that has a
        label of that level already.
    empty : int
        Answers without a label, which wait further.
    same, replaced : int
        Answers to suggestions that had one: the same label, or another one in its place.

    Examples
    --------
    >>> from polyfid.suggest import Told
    >>> print(Told(new=58, empty=2))
    58 new labels, 2 without a label yet
    """

    new: int = 0
    unasked: int = 0
    repeated: int = 0
    empty: int = 0
    same: int = 0
    replaced: int = 0

    def __str__(self) -> str:
        words = {
            "unasked": "of them not asked for",
            "repeated": "of them of rows that have a label of that level already",
            "empty": "without a label yet",
            "same": "told before",
            "replaced": "in place of another label",
        }
        more = [f"{getattr(self, n)} {text}" for n, text in words.items() if getattr(self, n)]
        return ", ".join([f"{self.new} new label{'s' * (self.new != 1)}", *more])


@dataclass
class Ledger:
    """Suggestions by number, and answers in the order in which they came."""

    suggestions: list[Suggestion] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    withdrawn: set[int] = field(default_factory=set)

    @property
    def answered(self) -> dict[int, int]:
        """The place of the answer to each suggestion that has one."""
        return {a.suggestion: k for k, a in enumerate(self.answers) if a.suggestion >= 0}

    @property
    def pending(self) -> list[int]:
        """Suggestions that wait for an answer."""
        done = {*self.answered} | self.withdrawn
        return [k for k in range(len(self.suggestions)) if k not in done]

    @property
    def n_batches(self) -> int:
        """The number of batches that were asked."""
        return max((s.batch for s in self.suggestions), default=-1) + 1

    def waiting_for(self) -> dict[tuple[int, int], int]:
        """The first pending suggestion of each row and level."""
        waiting: dict[tuple[int, int], int] = {}
        for k in self.pending:
            waiting.setdefault((self.suggestions[k].row, self.suggestions[k].level), k)
        return waiting

    def record(self, answers: Iterable[Answer]) -> Told:
        """Take answers in; those without a label (None) and those told before change nothing."""
        counts = dict.fromkeys((f.name for f in fields(Told)), 0)
        places = self.answered
        labelled = {(a.row, a.level) for a in self.answers}
        for answer in answers:
            if answer.label is None:
                counts["empty"] += 1
                continue
            place = places.get(answer.suggestion) if answer.suggestion >= 0 else None
            if place is not None:
                same = to_text(self.answers[place].label) == to_text(answer.label)
                counts["same" if same else "replaced"] += 1
                self.answers[place] = self.answers[place] if same else answer
                continue
            if answer.suggestion >= 0:
                places[answer.suggestion] = len(self.answers)
            counts["new"] += 1
            counts["unasked"] += answer.suggestion < 0
            counts["repeated"] += (answer.row, answer.level) in labelled
            labelled.add((answer.row, answer.level))
            self.answers.append(answer)
        return Told(**counts)

    def labels(self) -> NDArray[Any]:
        """The labels told: as they are if they are of one kind, else all as text.

        Where there are numbers too, these are floats in an array of objects.
        """
        told = [a.label for a in self.answers]
        place = [k for k, v in enumerate(told) if not isinstance(v, float)]
        classes = [told[k] for k in place]
        kinds = {
            str if isinstance(v, str) else bool if isinstance(v, bool) else int for v in classes
        }
        if len(kinds) > 1:
            classes = [to_text(v) for v in classes]
        if len(place) == len(told):
            return np.array(classes)
        labels = np.array(told, dtype=object)
        labels[place] = classes
        return labels

    def state(self) -> dict[str, Any]:
        """What a file holds of it."""
        return {
            "suggestions": _columns(self.suggestions, Suggestion),
            "answers": _columns(self.answers, Answer),
            "withdrawn": sorted(self.withdrawn),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], n_rows: int, n_levels: int) -> Self:
        """The ledger of what a file holds, if its numbers are those of rows and levels."""
        suggestions = _entries(state["suggestions"], Suggestion)
        answers = _entries(state["answers"], Answer)
        for entry in (*suggestions, *answers):
            if not (0 <= entry.row < n_rows and 0 <= entry.level < n_levels):
                raise ValueError("it refers to rows or levels that it does not have")
        if any(not -1 <= a.suggestion < len(suggestions) for a in answers):
            raise ValueError("it has answers to suggestions that it does not have")
        return cls(suggestions, answers, {int(k) for k in state["withdrawn"]})


_KINDS: dict[str, Any] = {"label": object, "gain": float, "audit": bool}


def _columns(entries: Iterable[Any], kind: type[Any]) -> dict[str, NDArray[Any]]:
    listed, columns = list(entries), {}
    for f in fields(kind):
        values = np.empty(len(listed), dtype=_KINDS.get(f.name, np.int64))
        values[:] = [getattr(entry, f.name) for entry in listed]
        columns[f.name] = values
    return columns


def _entries(columns: Mapping[str, Any], kind: type[Any]) -> list[Any]:
    values = [columns[f.name].tolist() for f in fields(kind)]
    return [kind(*row) for row in zip(*values, strict=True)]
