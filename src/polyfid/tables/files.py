"""Labelled rows of files that may be larger than memory: looked at, then turned into numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.column import Missing
from polyfid.tables.errors import TableError, listed, raise_all
from polyfid.tables.joining import TypeCheck, find_columns, find_features
from polyfid.tables.labelled import check_sources
from polyfid.tables.labels import (
    PartReader,
    as_classes,
    check_classes,
    declared_order,
    sorted_levels,
)
from polyfid.tables.learning import RecipeLook, texts_among
from polyfid.tables.origin import Origin
from polyfid.tables.recipe import Recipe, check_missing
from polyfid.tables.rereadable import Rereadable
from polyfid.tables.roles import Roles

#: More different labels than this are no classes.
MOST_CLASSES = 1000

#: Told how many rows were read, and how many there are, if that is known.
Step = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Found:
    """What labelled files hold.

    Attributes
    ----------
    recipe : Recipe
    roles : Roles
        With the columns that were found for id and weight.
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

    recipe: Recipe
    roles: Roles
    levels: tuple[str, ...]
    classes: NDArray[Any]
    counts: NDArray[np.intp]
    n_rows: int
    labels: Mapping[str, int]


@dataclass(frozen=True)
class Numbers:
    """Some rows in numbers: features (n, d), level, class and weight (n,)."""

    x: NDArray[np.float64]
    level: NDArray[np.intp]
    code: NDArray[np.intp]
    weight: NDArray[np.float64]


class LabelledFiles:
    """Labelled tables that are read in blocks, as often as it takes; a context.

    Parameters
    ----------
    files, roles, level_files, **csv
        As in `read_labelled`.
    rows : int
        Of a block.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables.files import LabelledFiles
    >>> crowd = pd.DataFrame({"x": [0.1, 0.9, 0.8], "label": ["no", "yes", "no"]})
    >>> expert = pd.DataFrame({"x": [0.2, 0.7], "label": ["no", "yes"]})
    >>> with LabelledFiles([], level_files={"crowd": crowd, "expert": expert}, rows=2) as files:
    ...     found = files.look()
    ...     sizes = [len(block.x) for block in files.numbers(found)]
    >>> found.levels, found.counts.tolist(), sizes
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
        self._given, self._names = check_sources(files, level_files)
        self._roles, self._tidy = roles or Roles(), not level_files
        self._rows, self._csv = rows, csv
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._tables = [
                Rereadable.of(source, k, level, stack, self._csv)
                for k, (source, level) in enumerate(zip(self._given, self._names, strict=True))
            ]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # ------------------------------------------------------------------ looking

    def look(self, missing: Missing = "error", step: Step | None = None) -> Found:
        """Read all rows once, text files twice; complains of all that is wrong with them.

        Parameters
        ----------
        missing : {"error", "median", "indicator"}
            See `Recipe.learn`. Medians of more numbers than `learning.MEDIAN_CELLS`, in all
            columns together, are those of a sample.
        step : callable, optional
            Told of the rows read.
        """
        check_missing(missing)
        heads = [table.head for table in self._tables]
        roles = find_columns(heads, self._roles, self._tidy)
        features, _ = find_features(heads, roles, [])
        order = declared_order(heads, roles, self._names)
        self._tables = [table.typed(roles, features) for table in self._tables]
        heads = [next(iter(table.blocks(1))) for table in self._tables]
        look = _Look(roles, features, texts_among(heads, features), missing, order)
        for table in self._tables:
            look.table(table, self._rows, step)
        return look.found(Origin.of(heads[0]).name)

    # ------------------------------------------------------------------ reading

    def numbers(self, found: Found, step: Step | None = None) -> Iterator[Numbers]:
        """The rows in numbers, block after block, from the first again whenever it is called."""
        places = {name: t for t, name in enumerate(found.levels)}
        done = 0
        for table in self._tables:
            reader = PartReader(found.roles, table.level)
            for block in table.blocks(self._rows):
                label, fidelity, weight = reader(block)
                x, unseen = found.recipe.encode(block)
                done += len(block)
                level, code = _codes(fidelity, places), _codes(label, found.labels)
                if unseen or done > found.n_rows or min(level.min(), code.min()) < 0:
                    raise _changed(block)
                if step is not None:
                    step(done, found.n_rows)
                yield Numbers(x, level, code, weight)
        if done < found.n_rows:
            raise _changed(block)


def _codes(names: NDArray[Any], known: Mapping[str, int]) -> NDArray[np.intp]:
    """Numbers of names, -1 of those that are not known."""
    codes, present = pd.factorize(names)
    return np.array([*(known.get(name, -1) for name in present), -1], dtype=np.intp)[codes]


def _changed(block: pd.DataFrame) -> TableError:
    return TableError("the file changed while it was read", path=Origin.of(block).name)


class _Look:
    """What is found out about all tables, block after block."""

    def __init__(
        self,
        roles: Roles,
        features: Sequence[str],
        text: set[str],
        missing: Missing,
        order: tuple[str, ...] | None,
    ) -> None:
        self._roles, self._order, self._missing = roles, order, missing
        self._recipe = RecipeLook(features, text, roles.categorical, missing)
        # Where all tables have text, or all have numbers, there is nothing to compare.
        self._types = [TypeCheck(name) for name in sorted(text - {*roles.categorical})]
        self._readers: list[PartReader] = []
        self._counts: dict[tuple[str, str], int] = {}
        self._labels: dict[str, None] = {}
        self._levels: dict[str, None] = {}
        self._n_rows = 0
        self._paths: list[str | None] = []

    def table(self, table: Rereadable, rows: int, step: Step | None) -> None:
        """Look at all of a table."""
        reader = PartReader(self._roles, table.level)
        self._readers.append(reader)
        self._paths.append(Origin.of(table.head).name)
        for block in table.blocks(rows):
            label, fidelity, weight = reader(block)
            self._count(block, label, fidelity, weight)
            if self._order is not None:
                reader.check_levels(block, fidelity, self._order)
            for check in self._types:
                check.see(block)
            self._recipe.see(block)
            self._n_rows += len(block)
            if step is not None:
                step(self._n_rows, None)

    def _count(
        self,
        block: pd.DataFrame,
        label: NDArray[Any],
        fidelity: NDArray[Any],
        weight: NDArray[np.float64],
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
        if len(self._labels) > MOST_CLASSES:
            some = listed([*self._labels][:3])
            raise TableError(
                f"there are more than {MOST_CLASSES} different labels, such as {some}: "
                "measurements or names, not classes; put classes in",
                path=Origin.of(block).name,
                column=self._roles.target,
            )

    def found(self, first: str | None) -> Found:
        """All of it; complains of what is wrong."""
        roles, errors = self._roles, [e for reader in self._readers for e in reader.errors()]
        raise_all(errors)
        for check in self._types:
            check.check()
        levels = self._order or sorted_levels(np.array([*self._levels], dtype=object))
        errors += [e for reader in self._readers for e in reader.level_errors(levels)]
        texts = [*self._labels]
        values = as_classes(np.array(texts, dtype=object))
        distinct = pd.unique(pd.Series(values)).tolist()
        check_classes(distinct, first, roles, errors)
        raise_all(errors)
        path = self._paths[0] if len(self._paths) == 1 else None
        recipe = Recipe(self._recipe.columns(path), self._missing)
        classes = np.unique(values)
        labels = dict(zip(texts, np.searchsorted(classes, values).tolist(), strict=True))
        counts = np.zeros((len(levels), len(classes)), dtype=np.intp)
        for (level, text), count in self._counts.items():
            counts[levels.index(level), labels[text]] += count
        self._check_two_classes(classes, counts, path)
        return Found(
            recipe,
            replace(roles, levels=self._order),
            levels,
            classes,
            counts,
            self._n_rows,
            labels,
        )

    def _check_two_classes(
        self, classes: NDArray[Any], counts: NDArray[np.intp], path: str | None
    ) -> None:
        there = classes[counts.any(axis=0)].tolist()
        if len(there) < 2:
            raise one_class(there, path, self._roles)


def one_class(classes: Sequence[Any], path: str | None, roles: Roles) -> TableError:
    """The error of rows that have one class only, or no weight."""
    what = f"all labels are {classes[0]!r}" if classes else "all rows have weight 0"
    return TableError(
        f"{what}, and there must be two classes at least", path=path, column=roles.target
    )
