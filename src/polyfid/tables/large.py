"""Labelled rows of files that may be larger than memory: surveyed, encoded, fitted in blocks."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid import model_files
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.frames import is_frame
from polyfid.learning.progress import Callback, Progress
from polyfid.tables.column import Missing
from polyfid.tables.encoder import TableEncoder
from polyfid.tables.errors import TableError, raise_all
from polyfid.tables.labelled import (
    LabelReader,
    as_classes,
    check_sources,
    declared_order,
    measurement_errors,
    named,
    no_rows_error,
    one_class_error,
    sorted_levels,
)
from polyfid.tables.places import RowPlaces
from polyfid.tables.read import CsvTable, FrameTable, ParquetTable, open_table, read_table
from polyfid.tables.roles import Roles, TypeConflict, find_columns, find_features
from polyfid.text import name_few

#: More different labels than this are no classes.
MOST_CLASSES = 1000

#: Parameters that are a matter of a run, not of what is fitted.
_OF_A_RUN = {"n_jobs", "verbose", "warm_start"}


@dataclass(frozen=True)
class FilesSummary:
    """What labelled files hold.

    Attributes
    ----------
    encoder : TableEncoder
        Fitted.
    roles : Roles
        With the columns of ids and weights that were detected.
    levels : tuple of str
        Least trusted first.
    classes : array of int or str
        Sorted.
    counts : array of int (n_levels, n_classes)
        Rows that have a weight.
    n_rows : int
        All rows.
    labels : mapping of str to int
        From labels as the files have them to their classes.
    """

    encoder: TableEncoder
    roles: Roles
    levels: tuple[str, ...]
    classes: NDArray[Any]
    counts: NDArray[np.intp]
    n_rows: int
    labels: Mapping[str, int]

    @property
    def row_type(self) -> np.dtype[Any]:
        """A row in numbers: all features, the places of its level and class, and its weight."""
        fields: list[tuple[Any, ...]] = [
            ("x", "<f8", (len(self.encoder.names_),)),
            ("level", "<i4"),
            ("code", "<i4"),
        ]
        return np.dtype(fields if self.roles.weight is None else [*fields, ("weight", "<f8")])


class LabelledFiles:
    """Labelled tables that are read in blocks, as often as it takes; a context manager.

    Parameters
    ----------
    files, roles, level_files, **csv
        As in `read_labelled`.
    rows : int
        Rows per block.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables.large import LabelledFiles
    >>> crowd = pd.DataFrame({"x": [0.1, 0.9, 0.8], "label": ["no", "yes", "no"]})
    >>> expert = pd.DataFrame({"x": [0.2, 0.7], "label": ["no", "yes"]})
    >>> with LabelledFiles([], level_files={"crowd": crowd, "expert": expert}, rows=2) as files:
    ...     summary = files.survey()
    ...     sizes = [len(block) for block in files.encoded(summary)]
    >>> summary.levels, summary.counts.tolist(), sizes
    (('crowd', 'expert'), [[2, 1], [1, 1]], [2, 1, 2])
    """

    def __init__(
        self,
        files: Sequence[Any],
        roles: Roles | None = None,
        level_files: Mapping[str, Any] | None = None,
        *,
        rows: int = 50_000,
        **csv: Any,
    ) -> None:
        self._sources, self._names = check_sources(files, level_files)
        self._roles, self._tidy = roles or Roles(), not level_files
        self._rows, self._csv = rows, csv
        self._stack = ExitStack()
        self._tables: list[FrameTable | ParquetTable | CsvTable] = []
        self._needed: list[list[str]] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for place, source in enumerate(self._sources):
                if is_frame(source):
                    source = named(read_table(source), place)
                table = stack.enter_context(open_table(source, **self._csv))
                if not table.has_rows:
                    raise no_rows_error(table.head)
                self._tables.append(table)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def survey(self, missing: Missing = "error", callback: Callback | None = None) -> FilesSummary:
        """Read all rows once; an error lists everything that is wrong with them.

        Types of columns of text files are found in the same reading. Only if later rows show that
        the first ones misled, everything is read once more.

        Parameters
        ----------
        missing : {"error", "median", "indicator"}
            See `TableEncoder`. Medians of very many numbers are those of a random sample.
        callback : callable, optional
            Receives a `Progress` for each block.
        """
        heads = [table.head for table in self._tables]
        roles = find_columns(heads, self._roles, self._tidy)
        features, _ = find_features(heads, roles)
        order = declared_order(heads, roles, self._names)
        text = {roles.target, roles.fidelity, *roles.categorical}
        needed = text | {*features, *filter(None, [roles.weight])}
        self._needed = [[n for n in head.columns if n in needed] for head in heads]
        before = self._text_columns(text)
        while True:
            survey = _Survey(roles, features, frozenset().union(*before), missing, order)
            for table, names, level in zip(self._tables, self._needed, self._names, strict=True):
                reader = survey.new_reader(level)
                for block in table.scan(names, self._rows):
                    survey.add(block, reader)
                    if callback is not None:
                        callback(Progress("reading", survey.n_rows, None, math.nan))
            after = self._text_columns(text)
            if after == before:
                return survey.summary()
            before = after

    def _text_columns(self, text: set[str]) -> list[frozenset[str]]:
        tables = zip(self._tables, self._needed, strict=True)
        return [table.text_columns(names, text) for table, names in tables]

    def encoded(
        self, summary: FilesSummary, callback: Callback | None = None
    ) -> Iterator[NDArray[Any]]:
        """Arrays of `FilesSummary.row_type`, block after block, from the first row again."""
        places = {name: t for t, name in enumerate(summary.levels)}
        done = 0
        for table, names, level in zip(self._tables, self._needed, self._names, strict=True):
            reader = LabelReader(summary.roles, level, None)
            for block in table.final(names, self._rows):
                label, fidelity, weight = reader.read(block)
                rows = np.empty(len(block), summary.row_type)
                rows["x"], unknown = summary.encoder.encode(block)
                rows["level"] = _codes(fidelity, places)
                rows["code"] = _codes(label, summary.labels)
                if summary.roles.weight is not None:
                    rows["weight"] = weight
                done += len(block)
                lost = min(rows["level"].min(), rows["code"].min()) < 0
                if unknown or lost or done > summary.n_rows:
                    raise _changed(block)
                if callback is not None:
                    callback(Progress("encoding", done, summary.n_rows, math.nan))
                yield rows
        if done < summary.n_rows:
            raise _changed(block)


def _codes(names: NDArray[Any], index: Mapping[str, int]) -> NDArray[np.intp]:
    """Numbers of names, -1 of those that are not in the index."""
    codes, present = pd.factorize(names)
    return np.array([*(index.get(name, -1) for name in present), -1], dtype=np.intp)[codes]


def _changed(block: pd.DataFrame) -> TableError:
    return TableError("the file changed while it was read", path=RowPlaces.of(block).file)


class _Survey:
    """Adds up what blocks of labelled rows hold."""

    def __init__(
        self,
        roles: Roles,
        features: Sequence[str],
        text: frozenset[str],
        missing: Missing,
        order: tuple[str, ...] | None,
    ) -> None:
        self._roles, self._order = roles, order
        text = text & {*features}
        self._encoder = TableEncoder(categorical=roles.categorical, missing=missing)
        self._encoder._start(features, text)
        # Where all tables have text, or all have numbers, there is nothing to compare.
        self._conflicts = [TypeConflict(name) for name in sorted(text - {*roles.categorical})]
        self._readers: list[LabelReader] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._labels: dict[str, None] = {}
        self._levels: dict[str, None] = {}
        self._files: dict[str | None, None] = {}
        self.n_rows = 0

    def new_reader(self, level: str | None) -> LabelReader:
        """What reads the labels of one table."""
        self._readers.append(LabelReader(self._roles, level, self._order))
        return self._readers[-1]

    def add(self, block: pd.DataFrame, reader: LabelReader) -> None:
        """Take some rows into account."""
        file = RowPlaces.of(block).file
        self._files[file] = None
        self._count(*reader.read(block))
        if len(self._labels) > MOST_CLASSES:
            raise TableError(
                f"there are more than {MOST_CLASSES} different labels, such as "
                f"{name_few([*self._labels][:3])}: measurements or names, not classes; put classes "
                "in",
                path=file,
                column=self._roles.target,
            )
        for conflict in self._conflicts:
            conflict.add(block)
        self._encoder._add(block)
        self.n_rows += len(block)

    def _count(
        self, label: NDArray[Any], fidelity: NDArray[Any], weight: NDArray[np.float64]
    ) -> None:
        codes, labels = pd.factorize(label)
        places, levels = pd.factorize(fidelity)
        self._labels |= dict.fromkeys(labels.tolist())
        self._levels |= dict.fromkeys(levels.tolist())
        there = (codes >= 0) & (places >= 0) & (weight > 0.0)
        counts = np.zeros((len(levels), len(labels)), dtype=np.intp)
        np.add.at(counts, (places[there], codes[there]), 1)
        for t, k in zip(*np.nonzero(counts), strict=True):
            pair = levels[t], labels[k]
            self._counts[pair] = self._counts.get(pair, 0) + int(counts[t, k])

    def summary(self) -> FilesSummary:
        """All of it; an error lists what is wrong."""
        roles, texts = self._roles, [*self._labels]
        first, *others = self._files
        values = as_classes(np.array(texts, dtype=object))
        errors = [error for reader in self._readers for error in reader.errors()]
        raise_all(errors or measurement_errors(values, first, roles))
        for conflict in self._conflicts:
            conflict.check()
        levels = self._order or sorted_levels(np.array([*self._levels], dtype=object))
        encoder = TableEncoder.of(self._encoder.columns_, self._encoder.missing)
        classes = np.unique(values)
        labels = dict(zip(texts, np.searchsorted(classes, values).tolist(), strict=True))
        counts = np.zeros((len(levels), len(classes)), dtype=np.intp)
        for (level, text), count in self._counts.items():
            counts[levels.index(level), labels[text]] += count
        there = classes[counts.any(axis=0)].tolist()
        if len(there) < 2:
            raise one_class_error(there, None if others else first, roles)
        roles = replace(roles, levels=self._order)
        return FilesSummary(encoder, roles, levels, classes, counts, self.n_rows, labels)


# ------------------------------------------------------------------------ checkpoints


def resumed(
    model: MultiFidelityClassifier,
    summary: FilesSummary,
    checkpoint: str | os.PathLike[str] | None,
) -> MultiFidelityClassifier:
    """The model as a checkpoint has it, if there is one; it must be of the same fit."""
    if checkpoint is None or not Path(checkpoint).exists():
        return model
    name = os.fspath(checkpoint)
    advice = "name another file as checkpoint, or remove this one"
    if model_files.inspect(checkpoint)["kind"] != "classifier":
        raise ValueError(f"{name} is a model, and not a checkpoint of a fit; {advice}")
    _, state = model_files.read(checkpoint)
    with model_files.refusing(checkpoint):
        saved = MultiFidelityClassifier._restore(state)
    other = _difference(saved, model, summary)
    if other is not None:
        raise ValueError(f"{name} is the checkpoint of another fit, with other {other}; {advice}")
    return saved.set_params(**{name: getattr(model, name) for name in _OF_A_RUN})


def _difference(
    saved: MultiFidelityClassifier, model: MultiFidelityClassifier, summary: FilesSummary
) -> str | None:
    """What a checkpoint and the fit that is to continue it do not have in common."""
    if not np.array_equal(saved.classes_, summary.classes):
        return "classes"
    if saved.levels_ != summary.levels:
        return "levels"
    if tuple(getattr(saved, "feature_names_in_", ())) != summary.encoder.names_:
        return "columns"
    if not np.array_equal(saved.report_.counts, summary.counts):
        return "numbers of rows"
    ours, theirs = model.get_params(deep=False), saved.get_params(deep=False)
    return next(
        (
            f"{name} ({theirs[name]!r})"
            for name, value in ours.items()
            if name not in _OF_A_RUN and _comparable(value) != _comparable(theirs[name])
        ),
        None,
    )


def _comparable(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)
