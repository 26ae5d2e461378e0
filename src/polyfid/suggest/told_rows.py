"""Answers as users have them: filled-in tables, numbers of rows, or rows that are new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Indices, hash_rows
from polyfid.suggest.ledger import Answer, Ledger
from polyfid.suggest.named_rows import NamedRows
from polyfid.suggest.study_rows import StudyRows
from polyfid.values import is_frame, to_python, to_text

#: Columns that a batch has besides those of the pool.
OWN = (
    *("suggestion", "row", "level", "gain", "gain_per_cost", "relative_gain", "cost", "total"),
    *("audit", "label"),
)
#: Features that differ by less are those that were asked for: programs round what they write.
_CLOSE = 1e-9


class AnswerReader:
    """Reads answers to a study; ``new`` are rows that it did not have, in the end."""

    def __init__(
        self, ledger: Ledger, levels: tuple[Any, ...], numeric: Sequence[int], rows: StudyRows
    ) -> None:
        self._ledger, self._levels, self._numeric, self._rows = ledger, levels, numeric, rows
        self.new: NamedRows | None = None

    def read(self, rows: Any, labels: Any, level: Any, audit: Any) -> list[Answer]:
        """The answers; an error names what is wrong with them, and nothing is changed."""
        table = None
        if is_frame(rows) or np.ndim(rows) == 2:
            table = NamedRows.of("rows", rows, self._rows.features)
        if labels is None:
            if table is None or "label" not in table.columns:
                raise ValueError("labels are missing: give them, or a table with a column label")
            labels = table.columns["label"]
        labels = [_cell(value) for value in np.asarray(labels, dtype=object).tolist()]
        n = len(labels)
        if table is not None and level is None:
            # Unless it is one of the pool's own columns.
            ours = "suggestion" in table.columns or "level" not in self._rows.named.columns
            level = table.columns.get("level") if ours else None
        codes = self._levels_of(level, labels)
        labels = [
            cell if cell is None else self._read(cell, code)
            for cell, code in zip(labels, codes, strict=True)
        ]
        if table is not None and audit is None and "audit" in table.columns:
            audit = [str(mark).lower() in ("1", "true", "1.0") for mark in table.columns["audit"]]
        marks = np.broadcast_to(np.asarray(False if audit is None else audit, dtype=bool), (n,))
        asked = self._suggestions(table, n)
        row = self._row_numbers(rows, table, asked, labels)
        waiting = self._ledger.waiting_for()
        answers = []
        for k, label in enumerate(labels):
            if label is None:
                answers.append(Answer(0, 0, None, -1, False))
                continue
            number, at = int(asked[k]), (int(row[k]), int(codes[k]))
            if number < 0:
                number = waiting.pop(at, -1)
            elif self._ledger.suggestions[number].level != at[1]:
                number = -1  # someone of another level answered
            mark = bool(marks[k]) if number < 0 else self._ledger.suggestions[number].audit
            answers.append(Answer(*at, label, number, mark))
        return answers

    def _levels_of(self, level: Any, labels: list[Any]) -> list[int]:
        if level is None:
            if len(self._levels) > 1:
                raise ValueError(
                    f"level is missing: give one of {list(self._levels)}, one per label, or a "
                    "table with a column level"
                )
            level = self._levels[0]
        names = {to_text(name): t for t, name in enumerate(self._levels)}
        given = [level] * len(labels) if np.ndim(level) == 0 else list(level)
        if len(given) != len(labels):
            raise ValueError(f"there are {len(labels)} labels, and {len(given)} levels")
        codes = []
        for name, label in zip(given, labels, strict=True):
            code = names.get(to_text(to_python(name)))
            if code is None and label is not None:
                raise ValueError(f"level must be one of {list(self._levels)}, got {name!r}")
            codes.append(-1 if code is None else code)
        return codes

    def _read(self, cell: Any, level: int) -> Any:
        """What a cell says at a level, as a file can hold it: a label, or a float."""
        if level in self._numeric:
            try:
                number = np.nan if isinstance(cell, bool) else float(cell)
            except (TypeError, ValueError, OverflowError):
                number = np.nan
            if not np.isfinite(number):
                raise ValueError(
                    f"labels of the level {self._levels[level]!r}, which is numeric, must be "
                    f"finite numbers; got {cell!r}. Correct it, or leave it empty"
                )
            return number
        if not isinstance(cell, str | int | bool):
            remedy = ""
            if isinstance(cell, float):
                remedy = (
                    f". If {self._levels[level]!r} is to say numbers, name it in the model's "
                    "numeric_levels"
                )
            raise ValueError(
                f"labels must be whole numbers, text or truth values; got {cell!r}{remedy}"
            )
        return cell

    def _suggestions(self, table: NamedRows | None, n: int) -> Indices:
        """The number of the suggestion that each answer is to; -1 where it is to none."""
        none = np.full(n, -1, dtype=np.intp)
        if table is None or "suggestion" not in table.columns:
            return none
        cells = table.columns["suggestion"].tolist()
        count = len(self._ledger.suggestions)
        for k, cell in enumerate(cells):
            text = "" if cell is None or cell != cell else to_text(cell)
            if not text:
                continue
            if not text.isdecimal() or int(text) >= count:
                raise ValueError(
                    f"suggestion must be a number from 0 to {count - 1}, or empty; got {text!r}. "
                    "Is the table of another study?"
                )
            none[k] = int(text)
        return none

    def _has_features(self, table: NamedRows) -> bool:
        return all(_place(table, name) is not None for name in self._rows.features)

    def _row_numbers(
        self, rows: Any, table: NamedRows | None, asked: Indices, labels: list[Any]
    ) -> Indices:
        """The number of the row of each answer."""
        if table is not None and self._has_features(table):
            return self._by_features(table, asked, labels)
        numbers: Any = rows if table is None else table.columns.get("row")
        if numbers is None:
            if (asked >= 0).all():
                return np.array([self._ledger.suggestions[k].row for k in asked], dtype=np.intp)
            raise ValueError(
                "rows must have the columns suggestion or row, or all features: "
                f"{', '.join(self._rows.features)}"
            )
        return self._whole(numbers, asked, labels)

    def _whole(self, numbers: Any, asked: Indices, labels: list[Any]) -> Indices:
        given = np.asarray(numbers, dtype=object).ravel().tolist()
        if len(given) != len(labels):
            raise ValueError(f"there are {len(given)} rows, and {len(labels)} labels")
        found = []
        for k, (cell, label) in enumerate(zip(given, labels, strict=True)):
            if asked[k] >= 0:
                found.append(self._ledger.suggestions[asked[k]].row)
                continue
            text = to_text(cell).removesuffix(".0")
            if label is None:
                found.append(0)
            elif text.isdecimal() and int(text) < len(self._rows):
                found.append(int(text))
            else:
                raise ValueError(
                    f"rows must be numbers from 0 to {len(self._rows) - 1}, or features of shape "
                    f"(n, {len(self._rows.features)}); got {cell!r}"
                )
        return np.array(found, dtype=np.intp)

    def _by_features(self, table: NamedRows, asked: Indices, labels: list[Any]) -> Indices:
        """Rows by their features; those that the study does not have become new ones."""
        study = self._rows
        told = np.array([label is not None for label in labels], dtype=bool)
        row = np.zeros(len(labels), dtype=np.intp)
        place = np.flatnonzero(told)
        if not len(place):
            return row
        columns = {}
        for name in study.named.columns:
            there = _place(table, name)
            columns[name] = (
                _empty_like(study.named.columns[name], len(labels))
                if there is None
                else table.columns[there]
            )
        given = NamedRows(columns).take(place)
        x = study.numbers(given)
        known = {int(h): k for k, h in reversed([*enumerate(hash_rows(study.x).tolist())])}
        for suggestion in self._ledger.pending:  # they come first among equal rows
            at = self._ledger.suggestions[suggestion].row
            known[int(hash_rows(study.x[[at]])[0])] = at
        added: list[int] = []
        for k, (i, code) in enumerate(zip(place, hash_rows(x).tolist(), strict=True)):
            if asked[i] >= 0:
                at = self._ledger.suggestions[asked[i]].row
                # A row of a pool is what it is; a point may have been set a little differently.
                if study.box is None or np.allclose(study.x[at], x[k], rtol=_CLOSE, atol=0.0):
                    row[i] = at
                    continue
            if code not in known:
                known[code] = len(study) + len(added)
                added.append(k)
            row[i] = known[code]
        if added:
            self.new = given.take(np.array(added, dtype=np.intp))
        return row


def _place(table: NamedRows, name: str) -> str | None:
    """The column of a table that has a column of the pool; a name of ours has an end."""
    names = [f"{name}_given"] if name in OWN else []
    names += [name] if name not in OWN or "suggestion" not in table.columns else []
    return next((one for one in names if one in table.columns), None)


def _empty_like(values: NDArray[Any], n: int) -> NDArray[Any]:
    """A column of cells that are not known."""
    if values.dtype.kind == "M":
        return np.full(n, np.datetime64("NaT"), dtype=values.dtype)
    return np.full(n, np.nan) if values.dtype.kind in "biuf" else np.full(n, None, dtype=object)


def _cell(value: Any) -> Any:
    """A cell as a value of Python, text without blanks around it; None if it is empty."""
    value = to_python(value)
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        return None
    return value.strip() if isinstance(value, str) else value
