"""Labelled rows of several levels of trust."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.errors import TableError, raise_all
from polyfid.tables.joining import find_columns, find_features, join_features
from polyfid.tables.labels import (
    PartReader,
    as_classes,
    check_classes,
    declared_order,
    read_ids,
    sorted_levels,
)
from polyfid.tables.origin import Origin
from polyfid.tables.read import read_table
from polyfid.tables.roles import Roles
from polyfid.tables.sources import is_frame


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows with labels, and how far each is trusted.

    Attributes
    ----------
    features : DataFrame
    label : array of int or str
    fidelity : array of str
        The level of each row.
    levels : tuple of str
        Least trusted first.
    weight : array of float, or None
    ids : array of str, or None
    origin : Origin
        File and row number of each row.
    roles : Roles
        With the columns that were found for id and weight.
    left_out : tuple of str
        Columns that are nothing.
    """

    features: pd.DataFrame
    label: NDArray[Any]
    fidelity: NDArray[np.str_]
    levels: tuple[str, ...]
    weight: NDArray[np.float64] | None
    ids: NDArray[np.str_] | None
    origin: Origin
    roles: Roles
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.label)

    def counts(self) -> pd.DataFrame:
        """Rows by level (least trusted first) and class."""
        found = pd.crosstab(pd.Series(self.fidelity), pd.Series(self.label))
        found = found.reindex(list(self.levels), fill_value=0)
        found.index.name, found.columns.name = "level", "class"
        return found

    def to_frame(self) -> pd.DataFrame:
        """A tidy table of all of it; the levels are ordered categories."""
        roles, columns = self.roles, dict(self.features.items())
        if self.ids is not None:
            columns = {roles.id or "id": pd.Series(self.ids), **columns}
        columns[roles.target] = pd.Series(self.label)
        levels = pd.Categorical(self.fidelity, categories=list(self.levels), ordered=True)
        columns[roles.fidelity] = pd.Series(levels)
        if self.weight is not None:
            columns[roles.weight or "weight"] = pd.Series(self.weight)
        return pd.DataFrame(columns)


def read_labelled(
    files: Sequence[Any],
    roles: Roles | None = None,
    level_files: Mapping[str, Any] | None = None,
    **csv: Any,
) -> LabelledTable:
    """Labelled rows from tidy tables, or from one table a level.

    Parameters
    ----------
    files : sequence of sources
        Tables with features, label and fidelity, which are put one below the other; paths, "-" or
        data frames, as in `read_table`.
    roles : Roles, optional
        What the columns mean.
    level_files : mapping of level to source, optional
        Instead of ``files``: a table a level, least trusted first.
    **csv
        ``delimiter``, ``decimal`` and ``encoding`` of `read_table`.

    Returns
    -------
    LabelledTable

    Raises
    ------
    TableError
        If the tables do not make sense; ``problems`` lists all that is wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid.tables import read_labelled
    >>> crowd = pd.DataFrame({"x": [0.1, 0.9, 0.8], "label": ["no", "yes", "no"]})
    >>> expert = pd.DataFrame({"x": [0.2, 0.7], "label": ["no", "yes"]})
    >>> table = read_labelled([], level_files={"crowd": crowd, "expert": expert})
    >>> table.levels, len(table)
    (('crowd', 'expert'), 5)
    """
    roles = roles or Roles()
    sources, names = check_sources(files, level_files)
    text = {roles.target, roles.fidelity, roles.id or "id", *roles.categorical}
    frames = [with_name(read_table(s, text=text, **csv), k) for k, s in enumerate(sources)]
    roles = find_columns(frames, roles, tidy=not level_files)
    errors: list[TableError] = []
    order = declared_order(frames, roles, names)
    readers = [PartReader(roles, level) for level in names]
    parts = [reader(frame) for reader, frame in zip(readers, frames, strict=True)]
    errors += [error for reader in readers for error in reader.errors()]
    features, left_out = find_features(frames, roles, errors)
    joined = join_features(frames, features, roles)
    fidelity = np.concatenate([part[1] for part in parts])
    label = as_classes(np.concatenate([part[0] for part in parts]))
    levels = order or sorted_levels(fidelity)
    for reader, frame, part in zip(readers, frames, parts, strict=True):
        reader.check_levels(frame, part[1], levels)
        errors += reader.level_errors(levels)
    check_classes(pd.unique(pd.Series(label)).tolist(), Origin.of(frames[0]).name, roles, errors)
    raise_all(errors)
    return LabelledTable(
        joined,
        label,
        fidelity.astype(str),
        levels,
        None if roles.weight is None else np.concatenate([part[2] for part in parts]),
        None if roles.id is None else np.concatenate([read_ids(f, roles.id) for f in frames]),
        Origin.of(joined),
        replace(roles, levels=order),
        left_out,
    )


def check_sources(
    files: Sequence[Any], level_files: Mapping[str, Any] | None
) -> tuple[list[Any], list[str | None]]:
    """The tables, and the level of each if it is that of one."""
    if isinstance(files, str | os.PathLike) or is_frame(files):
        raise ValueError("files must be a list of tables; put the one into a list")
    if bool(files) == bool(level_files):
        raise ValueError("give either files or level_files, and at least one table")
    if level_files:
        return list(level_files.values()), [str(name) for name in level_files]
    return list(files), [None] * len(files)


def with_name(frame: pd.DataFrame, place: int) -> pd.DataFrame:
    """The frame with its origin and an index of its own."""
    origin = Origin.of(frame)
    if not origin.parts[0].name:
        origin = replace(origin, parts=(replace(origin.parts[0], name=f"table {place + 1}"),))
        frame = frame.reset_index(drop=True)
    if not len(frame):
        raise TableError("there are no rows below the header", path=origin.name)
    return origin.carried_by(frame)
