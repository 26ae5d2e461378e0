"""Labelled rows of files that may be larger than memory: surveyed, encoded, fitted in blocks."""

from __future__ import annotations

import math
import os
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid import model_files
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.learning.progress import Callback, Progress
from polyfid.tables.column import Missing, as_classes
from polyfid.tables.encoder import TableEncoder
from polyfid.tables.labelled import (
    LabelScan,
    check_sources,
    name_value,
    one_class_error,
    open_tables,
    order_levels,
)
from polyfid.tables.places import TableError, file_of
from polyfid.tables.read import CsvTable, TypedTable
from polyfid.tables.roles import Roles, find_columns
from polyfid.text import bytes_in_words, name_few
from polyfid.values import to_json

#: More different labels than this are no classes.
MOST_CLASSES = 1000
#: Parameters that are a matter of a run, not of what is fitted.
_OF_A_RUN = {"n_jobs", "verbose", "warm_start"}
#: Columns of a block as one data frame, besides the features.
_OTHERS = ("(label)", "(fidelity)", "(weight)")


@dataclass(frozen=True)
class FilesSummary:
    """What labelled files hold.

    ``types`` are those of the columns of each table, ``counts`` (n_levels, n_classes) are of rows
    that have a weight, and so are ``numbers``, as in `FitInfo`; ``n_rows`` is of all, and
    ``labels`` leads from labels as the files have them to places in ``classes``.
    """

    encoder: TableEncoder
    roles: Roles
    types: Sequence[Mapping[str, str]]
    levels: tuple[str, ...]
    classes: NDArray[Any]
    counts: NDArray[np.intp]
    numbers: tuple[int | None, ...]
    n_rows: int
    labels: Mapping[str, int]

    @property
    def row_type(self) -> np.dtype[Any]:
        """A row in numbers: features, the places of its level and class, weight, and number."""
        fields: list[tuple[Any, ...]] = [
            ("x", "<f8", (len(self.encoder.names_),)),
            ("level", "<i4"),
            ("code", "<i4"),
        ]
        fields += [("weight", "<f8")] * (self.roles.weight is not None)
        return np.dtype([*fields, *[("value", "<f8")] * bool(self.roles.value)])


@dataclass(frozen=True)
class LabelledFiles:
    """Labelled tables that are read in blocks; ``names`` are the levels of those of one level."""

    tables: Sequence[TypedTable | CsvTable]
    names: Sequence[str | None]
    roles: Roles
    rows: int

    def survey(self, missing: Missing = "error", callback: Callback | None = None) -> FilesSummary:
        """Learn what all rows hold; an error lists everything that is wrong with them."""
        heads = [table.head for table in self.tables]
        roles, features, _ = find_columns(heads, self.roles, self.names)
        needed = {roles.target, roles.fidelity, *features, *roles.value.values()}
        needed |= {*filter(None, [roles.weight])}
        types = [
            table.infer([n for n in table.head.columns if n in needed], roles.text_columns(name))
            for table, name in zip(self.tables, self.names, strict=True)
        ]
        strings = {name for kinds in types for name, kind in kinds.items() if kind == "str"}
        text_features = strings & {*features}
        encoder = TableEncoder(**roles.of_features, missing=missing)
        learner = encoder.learner(features, text_features)
        # Where all tables have text, or all have numbers, there is nothing to compare.
        scan = LabelScan(roles, self.names, text_features - {*roles.categorical, *roles.text})
        files: dict[str | None, None] = {}
        counts: Counter[Any] = Counter()  # rows with a weight, by level and label
        with_numbers: Counter[Any] = Counter()  # the same, by level
        n_rows = 0
        for number, block in self._blocks(types):
            label, value, fidelity, weight = scan.read(block, number)
            files[file_of(block)] = None
            pairs = pd.DataFrame({"level": fidelity, "label": label, "counts": weight > 0.0})
            counts.update(pairs.groupby(["level", "label"], sort=False)["counts"].sum().to_dict())
            with_numbers.update(fidelity[~np.isnan(value) & (weight > 0.0)].tolist())
            labels = [*dict.fromkeys(name for _, name in counts)]
            if len(labels) > MOST_CLASSES:
                problem = (
                    f"there are more than {MOST_CLASSES} different labels, such as "
                    f"{name_few(labels[:3])}: measurements or names, not classes; put classes in"
                )
                if len(names := dict.fromkeys(str(level) for level, _ in counts)) > 1:
                    remedy = name_value(next(iter(names)), roles.target)
                    problem += f", or say which level has numbers, such as {remedy}"
                raise TableError(problem, path=file_of(block), column=roles.target)
            learner.add(block)
            n_rows += len(block)
            if callback is not None:
                callback(Progress("reading", n_rows, None, math.nan))
        values = as_classes(np.array(labels, dtype=object))
        path = next(iter(files))
        by_level: Counter[str] = Counter(with_numbers)
        texts: dict[str, list[str]] = {}
        for (level, name), count in counts.items():
            by_level[level] += int(count)
            texts.setdefault(level, []).append(name)
        scan.check(texts, path)
        levels = order_levels(by_level, roles, path)
        classes = np.unique(values)
        codes = dict(zip(labels, np.searchsorted(classes, values).tolist(), strict=True))
        table = np.zeros((len(levels), len(classes)), dtype=np.intp)
        for (level, name), count in counts.items():
            table[levels.index(level), codes[name]] += count
        fitted = TableEncoder.of(learner.columns(), missing)
        there = classes[table.any(axis=0)].tolist()
        if len(there) < 2:
            raise one_class_error(there, path if len(files) == 1 else None, roles)
        numbers = tuple(with_numbers[t] if t in roles.value else None for t in levels)
        numbers = numbers if roles.value else ()
        return FilesSummary(fitted, roles, types, levels, classes, table, numbers, n_rows, codes)

    def _blocks(self, types: Sequence[Mapping[str, str]]) -> Iterator[tuple[int, pd.DataFrame]]:
        """All blocks, each with the number of its table."""
        for number, (table, kinds) in enumerate(zip(self.tables, types, strict=True)):
            for block in table.blocks(kinds, self.rows):
                yield number, block

    def encoded(
        self, summary: FilesSummary, callback: Callback | None = None
    ) -> Iterator[NDArray[Any]]:
        """Arrays of `FilesSummary.row_type`, block after block, from the first row again."""
        places = {name: t for t, name in enumerate(summary.levels)}
        done = 0
        scan = LabelScan(summary.roles, self.names)
        for number, block in self._blocks(summary.types):
            label, value, fidelity, weight = scan.read(block, number)
            rows = np.empty(len(block), summary.row_type)
            rows["x"], unknown = summary.encoder.encode(block)
            rows["level"] = pd.Series(fidelity).map(places).fillna(-1)
            rows["code"] = pd.Series(label).map(summary.labels).fillna(-1)
            if summary.roles.weight is not None:
                rows["weight"] = weight
            if summary.roles.value:
                rows["value"] = value
            done += len(block)
            lost = rows["level"].min() < 0 or (np.isnan(value) & (rows["code"] < 0)).any()
            if unknown or lost or done > summary.n_rows:
                raise _changed(block)
            if callback is not None:
                callback(Progress("encoding", done, summary.n_rows, math.nan))
            yield rows
        if done < summary.n_rows:
            raise _changed(block)


@contextmanager
def open_labelled(
    files: Sequence[Any],
    roles: Roles | None = None,
    level_files: Mapping[str, Any] | None = None,
    *,
    rows: int = 50_000,
    **csv: Any,
) -> Iterator[LabelledFiles]:
    """Labelled tables, as of `read_labelled`, to be read in blocks."""
    sources, names = check_sources(files, level_files)
    with open_tables(sources, **csv) as tables:
        yield LabelledFiles(tables, names, roles or Roles(), rows)


def _changed(block: pd.DataFrame) -> TableError:
    return TableError("the file changed while it was read", path=file_of(block))


@contextmanager
def temporary_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A folder for this user alone that is removed, with all that is in it, after the block."""
    # Named before it is there, so that nothing can come between making and removing it.
    folder = Path(parent or tempfile.gettempdir(), f"polyfid-{secrets.token_hex(8)}")
    try:
        folder.mkdir(0o700)
        yield folder
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


@dataclass(frozen=True)
class Spool:
    """Rows in numbers, on disk while a fit lasts, which iterating over it reads in blocks.

    Text is parsed once; from then on a block is a slice of a file that is mapped into memory.
    """

    folder: Path
    summary: FilesSummary
    rows: int

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.summary.n_rows * self.summary.row_type.itemsize

    def write(self, files: LabelledFiles, callback: Callback | None) -> None:
        """Write all rows; not through a memory map, whose pages would stay in memory."""
        free = shutil.disk_usage(self.folder).free
        if self.size > free:
            raise ValueError(
                f"{self.summary.n_rows:,} rows take {bytes_in_words(self.size)} as numbers, and "
                f"{self.folder.parent} has {bytes_in_words(free)} free; name a folder on a larger "
                "disk (spool=..., --spool)"
            )
        with (self.folder / "rows").open("wb") as file:
            for block in files.encoded(self.summary, callback):
                file.write(block.data)

    def block(self, number: int) -> tuple[Any, ...]:
        """X, y, fidelity and, where rows have weights, sample_weight of one block."""
        every = np.memmap(self.folder / "rows", self.summary.row_type, mode="r")
        rows = every[number * self.rows : (number + 1) * self.rows]
        X = pd.DataFrame(rows["x"], columns=list(self.summary.encoder.names_), copy=False)
        y = self.summary.classes[rows["code"]]
        if self.summary.roles.value:
            is_number = ~np.isnan(rows["value"])
            y = y.astype(object)
            y[is_number] = rows["value"][is_number]
        fidelity = np.array(self.summary.levels)[rows["level"]]
        if self.summary.roles.weight is None:
            return X, y, fidelity
        return X, y, fidelity, np.array(rows["weight"])

    def frame(self, number: int) -> pd.DataFrame:
        """One block as a data frame."""
        X, *others = self.block(number)
        return X.assign(**dict(zip(_OTHERS, others, strict=False)))

    def __len__(self) -> int:
        return -(-self.summary.n_rows // self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return map(self.block, range(len(self)))

    def fit(
        self,
        model: MultiFidelityClassifier,
        client: Any,
        checkpoint: str | os.PathLike[str] | None,
        callback: Callback | None,
    ) -> None:
        """Fit a model to the rows, here or on a cluster whose workers read the blocks."""
        if client is None:
            model.fit_blocks(self, checkpoint=checkpoint, callback=callback)
            return
        import dask.dataframe as dd

        from polyfid import distributed

        blind = [who for who, sees in client.run(_is_there, str(self.folder)).items() if not sees]
        if blind:
            raise ValueError(
                f"worker {blind[0]} does not see the folder {self.folder}; name one on a file "
                "system that all workers share (spool=..., --spool)"
            )
        X = dd.from_map(self.frame, range(len(self)), meta=self.frame(0)[:0])
        others = _OTHERS[: len(self.block(0)) - 1]
        distributed.fit(model, X, *others, client=client, checkpoint=checkpoint, callback=callback)


def _is_there(folder: str) -> bool:
    return Path(folder).is_dir()


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
    pairs: list[tuple[str, Any, Any]] = [
        ("classes", saved.classes_, summary.classes),
        ("levels", saved.levels_, summary.levels),
        ("columns", getattr(saved, "feature_names_in_", ()), summary.encoder.names_),
        ("numbers of rows", saved.report_.counts, summary.counts),
        ("numbers of rows", saved._fitted.info.numbers, summary.numbers),
    ]
    before, now = saved.get_params(deep=False), model.get_params(deep=False)
    pairs += [(f"{n} ({before[n]!r})", before[n], now[n]) for n in now if n not in _OF_A_RUN]
    return next((name for name, a, b in pairs if repr(to_json(a)) != repr(to_json(b))), None)
