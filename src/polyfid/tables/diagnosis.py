"""What a labelled table holds, and what is wrong or odd about it."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from polyfid.tables.column import Missing, to_numbers
from polyfid.tables.encoder import TableEncoder
from polyfid.tables.labelled import (
    LabelledTable,
    NumberSummary,
    are_measured,
    name_value,
    one_class_error,
)
from polyfid.tables.places import TableError
from polyfid.text import aligned, join_names, name_few
from polyfid.values import to_json, to_text

#: Fewer trusted rows of a class than this are little to learn or to evaluate from.
FEW = 5
#: Columns with at most so many whole numbers, each in so many rows on average, may be categories.
#: Of two numbers it does not matter.
MOST_NUMBERED, ROWS_PER_NUMBER = 10, 3
#: Features that are printed.
MOST_FEATURES = 40


@dataclass(frozen=True)
class FeatureSummary:
    """A column to learn from; ``low`` and ``high`` are for numbers."""

    name: str
    kind: str
    missing: int
    distinct: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class LevelOverlap:
    """Points that two levels have labelled, and on how many their most frequent labels differ."""

    lower: str
    upper: str
    points: int
    differ: int


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` reports of a table.

    Attributes
    ----------
    problems : tuple of str
        What keeps a model from being fitted, with file, row and column.
    notes : tuple of str
        What is unusual.
    levels : tuple of str
        Least trusted first.
    classes : tuple
    counts : tuple of tuple of int
        Rows of a level (outer) and class (inner); none of a level that has numbers.
    features : tuple of FeatureSummary
    duplicates : int
        Rows that repeat another one, label and level included.
    shared : tuple of LevelOverlap
        For each pair of levels with labelled points in common.
    numbers : tuple of NumberSummary
        For each level that has numbers.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    levels: tuple[str, ...]
    classes: tuple[Any, ...]
    counts: tuple[tuple[int, ...], ...]
    features: tuple[FeatureSummary, ...]
    duplicates: int
    shared: tuple[LevelOverlap, ...]
    numbers: tuple[NumberSummary, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        made: dict[str, Any] = to_json(asdict(self))
        return {**made, "trusted_level": self.levels[-1]}

    def describe(self, width: int = 80) -> str:
        """All of it as lines of text for people."""
        count = len(self.features)
        cells: list[list[object]] = [["feature", "kind", "missing", "distinct", "from", "to"]]
        for f in self.features[:MOST_FEATURES]:
            ends = ["" if end is None else f"{end:.6g}" for end in (f.low, f.high)]
            cells.append([f.name, f.kind, f.missing, f.distinct, *ends])
        lines = ["Levels, least trusted first, and rows of each class:", *self._counted(width)]
        lines += self._numbers()
        lines += [f"Most trusted: {self.levels[-1]}", ""]
        lines += [f"{_several(count, 'feature', 'features')}:", *aligned(cells, words=(0, 1))]
        if count > MOST_FEATURES:
            lines.append(f"  and {count - MOST_FEATURES} more")
        for title, texts in (("Problems", self.problems), ("Notes", self.notes)):
            lines += ["", f"{title}:", *(f"  - {text}" for text in texts)] if texts else []
        return "\n".join(lines if self.problems else [*lines, "", "No problems found."])

    def __str__(self) -> str:
        return self.describe()

    def _numbers(self) -> list[str]:
        """The numbers of each level that has some."""
        if not self.numbers:
            return []
        cells: list[list[object]] = [["numbers of", "rows", "mean", "sd", "from", "to"]]
        for own in self.numbers:
            figures = (f"{v:.6g}" for v in (own.mean, own.sd, own.low, own.high))
            cells.append([own.level, own.rows, *figures])
        return ["", *aligned(cells)]

    def _counted(self, width: int) -> list[str]:
        """Rows by level and class; many classes go below each other."""
        rows: list[list[object]] = [["level", *self.classes, "rows"]]
        numeric = {own.level for own in self.numbers}
        for level, counts in zip(self.levels, self.counts, strict=True):
            if level not in numeric:
                rows.append([level, *counts, sum(counts)])
        lines = aligned(rows)
        if max(map(len, lines)) <= width:
            return lines
        turned = [list(column) for column in zip(*rows, strict=True)]
        turned[0][0] = "class"
        return aligned(turned)


def diagnose(table: LabelledTable, *, missing: Missing = "error") -> Diagnosis:
    """Check a labelled table without fitting a model.

    ``missing`` is what a fit would do about missing values; see `TableEncoder`.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import diagnose, read_labelled
    >>> crowd = pd.DataFrame({"x": [1.0, 2.0, None], "label": ["no", "yes", "yes"]})
    >>> expert = pd.DataFrame({"x": [1.0, 2.0], "label": ["yes", "yes"]})
    >>> table = read_labelled([], level_files={"crowd": crowd, "expert": expert})
    >>> diagnosis = diagnose(table)
    >>> print(diagnosis.problems[0].partition(";")[0])
    table 1, row 3, column 'x': the cell is empty
    >>> diagnosis.shared[0].points, diagnosis.shared[0].differ
    (2, 1)
    """
    problems: list[str] = []
    kinds: dict[str, str] = {}
    try:
        encoder = TableEncoder(**table.roles.of_features, missing=missing)
        kinds = encoder.fit(table.features).kinds_
    except TableError as error:
        problems += error.problems
    counts = table.counts()
    classes = tuple(counts.columns.tolist())
    if len(classes) < 2:
        problems += one_class_error(classes, table.places.file, table.roles).problems
    features = tuple(_feature(table.features[n], kinds.get(n)) for n in table.features.columns)
    rows = pd.DataFrame(
        {"point": _point_ids(table.features), "level": table.fidelity, "label": table.label}
    )
    labelled = rows[~table.is_number]
    shared = _shared(labelled, table.levels)
    numbers = table.numbers()
    notes = [*_level_notes(table, counts, numbers), *_row_notes(table, rows, labelled)]
    constant = [f.name for f in features if f.distinct == 1 and not f.missing]
    if constant:
        one, many = (
            "a feature with one value only, which tells",
            "features with one value only, which tell",
        )
        notes.append(f"{one if len(constant) == 1 else many} nothing: {name_few(constant)}")
    if table.roles.worker is not None:
        notes.append(f"column {table.roles.worker!r} says who gave each label, and is no feature")
    if table.audit is not None:
        trusted = table.fidelity == table.levels[-1]
        notes.append(
            f"column {table.roles.audit!r} marks {int(table.audit.sum())} rows as drawn at random, "
            f"{int((table.audit & trusted).sum())} of them trusted; of trusted rows those alone "
            "are scored, if there are any"
        )
    notes += [*_number_hints(table), *_category_hints(table, features)]
    if table.left_out:
        plural = "s" * (len(table.left_out) > 1)
        notes.append(f"column{plural} left out: {name_few(table.left_out)}")
    for pair in shared:
        points = _several(pair.points, "point", "points")
        notes.append(
            f"{pair.lower!r} and {pair.upper!r} have labelled {points} in common, and disagree on "
            f"{pair.differ} of them ({pair.differ / pair.points:.0%})"
        )
    by_level = tuple(tuple(row) for row in counts.to_numpy().tolist())
    duplicates = int(rows.duplicated().sum())
    return Diagnosis(
        tuple(problems),
        tuple(notes),
        table.levels,
        classes,
        by_level,
        features,
        duplicates,
        shared,
        numbers,
    )


def _several(n: int | str, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _point_ids(features: pd.DataFrame) -> pd.Series:
    """The same number for rows with the same features, missing ones included."""
    codes = pd.DataFrame({name: pd.factorize(values)[0] for name, values in features.items()})
    return codes.groupby(list(codes.columns), sort=False).ngroup()


def _feature(values: pd.Series, kind: str | None) -> FeatureSummary:
    present = values.dropna()
    kind = kind or ("number" if values.dtype.kind in "fiu" else "category")
    ends: tuple[float, ...] = ()
    if kind == "number" and values.dtype.kind in "fiu" and len(present):
        ends = float(present.min()), float(present.max())
    missing, distinct = len(values) - len(present), int(present.nunique())
    return FeatureSummary(str(values.name), kind, missing, distinct, *ends)


def _shared(rows: pd.DataFrame, levels: tuple[str, ...]) -> tuple[LevelOverlap, ...]:
    counts = rows.value_counts(["level", "point", "label"], sort=False).reset_index(name="n")
    counts = counts.sort_values(["n", "label"], ascending=[False, True])
    usual = counts.drop_duplicates(["level", "point"]).pivot(
        index="point", columns="level", values="label"
    )
    overlaps = []
    for lower, upper in combinations([level for level in levels if level in usual], 2):
        both = usual[[lower, upper]].dropna()
        if len(both):
            differ = int((both[lower] != both[upper]).sum())
            overlaps.append(LevelOverlap(lower, upper, len(both), differ))
    return tuple(overlaps)


def _number_hints(table: LabelledTable) -> list[str]:
    """A note on levels whose labels may be measured numbers."""
    hints = []
    for level in table.levels[:-1]:
        own = pd.unique(pd.Series(table.label[table.fidelity == level], dtype=object))
        texts = [to_text(label) for label in own]
        if level not in table.roles.value and len(texts) > 2 and are_measured(texts):
            hints.append(
                f"labels of level {level!r} are numbers with decimals, such as "
                f"{name_few(texts[:3])}; if they were measured, and name no classes, add "
                f"{name_value(level, table.roles.target)}"
            )
    return hints


def _category_hints(table: LabelledTable, features: tuple[FeatureSummary, ...]) -> list[str]:
    """A note on columns of numbers that may be numbered categories."""
    numbered = []
    for feature in features:
        if feature.kind == "number" and 3 <= feature.distinct <= MOST_NUMBERED:
            numbers, wrong = to_numbers(table.features[feature.name].dropna())
            # Few values of many rows; those of a few rows are few anyway.
            repeated = len(numbers) >= ROWS_PER_NUMBER * feature.distinct
            if repeated and not wrong.any() and (numbers == np.round(numbers)).all():
                numbered.append(feature.name)
    if not numbered:
        return []
    if len(numbered) == 1:
        words = f"column {numbered[0]!r} has few different whole numbers; if they are names"
    else:
        words = f"columns of few different whole numbers: {name_few(numbered)}; if these are names"
    option = f"--categorical {shlex.quote(join_names(numbered))}"
    return [f"{words} of categories rather than amounts, add {option}"]


def _level_notes(
    table: LabelledTable, counts: pd.DataFrame, numbers: tuple[NumberSummary, ...]
) -> list[str]:
    totals = counts.sum(axis=1)
    for own in numbers:
        totals[own.level] = own.rows
    low, top = table.levels[0], table.levels[-1]
    notes = [f"level {level!r} has no rows" for level in totals.index[totals == 0]]
    if low == top:
        notes.insert(0, f"all rows are of one level, {top!r}: it is plain classification")
    elif totals[top] > totals[low] > 0:
        notes.append(
            f"{top!r} is taken to be the most trusted level and has more rows than {low!r}, the "
            "least trusted; if it is the other way round, name the levels, least trusted first "
            "(--levels)"
        )
    if totals[top]:
        notes += [
            f"the most trusted level, {top!r}, has {_several(n or 'no', 'row', 'rows')} of class "
            f"{name!r}"
            for name, n in counts.loc[top].items()
            if n < FEW
        ]
    return notes


def _row_notes(table: LabelledTable, rows: pd.DataFrame, labelled: pd.DataFrame) -> list[str]:
    notes = []
    repeated = rows.duplicated().to_numpy()
    if repeated.any():
        what = _several(repeated.sum(), "row repeats", "rows repeat")
        notes.append(f"{what} another one, first {table.places[int(np.argmax(repeated))]}")
    differ = int((labelled.groupby(["point", "level"])["label"].nunique() > 1).sum())
    if differ:
        what = _several(differ, "point has", "points have")
        notes.append(f"{what} different labels within one level")
    if table.ids is not None:
        ids = pd.DataFrame({"id": table.ids, "level": table.fidelity})
        again = (ids.duplicated() & (ids["id"] != "")).to_numpy()
        if again.any():
            row, what = int(np.argmax(again)), _several(again.sum(), "id comes", "ids come")
            notes.append(
                f"{what} more than once within a level, first {str(table.ids[row])!r} in "
                f"{table.places[row]}"
            )
    empty = 0 if table.weight is None else int((table.weight == 0.0).sum())
    if empty:
        what = _several(empty, "row has weight 0 and does", "rows have weight 0 and do")
        notes.append(f"{what} not count")
    return notes
