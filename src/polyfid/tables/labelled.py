"""Labelled rows of several levels of trust."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.cells import to_numbers
from polyfid.tables.errors import TableError, listed, no_column, raise_all, shown
from polyfid.tables.origin import Origin, error_at
from polyfid.tables.read import read_table
from polyfid.tables.roles import Roles
from polyfid.tables.sources import is_frame

#: Columns of these names say who gave a label; nothing is learnt from them unless asked for.
WHO = ("worker", "annotator")
#: More different labels than this, if they have decimals, are measurements and not classes.
MOST_FRACTIONS = 20


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
    if isinstance(files, str | os.PathLike) or is_frame(files):
        raise ValueError("files must be a list of tables; put the one into a list")
    if bool(files) == bool(level_files):
        raise ValueError("give either files or level_files, and at least one table")
    names: list[str | None]
    if level_files:
        sources, names = list(level_files.values()), [str(name) for name in level_files]
    else:
        sources, names = list(files), [None] * len(files)
    text = {roles.target, roles.fidelity, roles.id or "id", *roles.categorical}
    frames = [_named(read_table(s, text=text, **csv), k) for k, s in enumerate(sources)]
    roles = _find_columns(frames, roles, tidy=not level_files)
    errors: list[TableError] = []
    order = _declared_order(frames, roles, names)
    parts = [
        _read_part(frame, roles, level, errors) for frame, level in zip(frames, names, strict=True)
    ]
    features, left_out = _join_features(frames, roles, errors)
    fidelity = _as_names(np.concatenate([part[1] for part in parts]))
    label = _as_classes(np.concatenate([part[0] for part in parts]))
    levels = order or _sorted_levels(fidelity)
    _check_levels(frames, fidelity, levels, roles, errors)
    _check_classes(frames, label, roles, errors)
    raise_all(errors)
    return LabelledTable(
        features,
        label,
        fidelity.astype(str),
        levels,
        None if roles.weight is None else np.concatenate([part[2] for part in parts]),
        None if roles.id is None else np.concatenate([part[3] for part in parts]),
        Origin.of(features),
        replace(roles, levels=order),
        left_out,
    )


def _named(frame: pd.DataFrame, place: int) -> pd.DataFrame:
    """The frame with its origin and an index of its own."""
    origin = Origin.of(frame)
    if not origin.parts[0].name:
        origin = replace(origin, parts=(replace(origin.parts[0], name=f"table {place + 1}"),))
        frame = frame.reset_index(drop=True)
    if not len(frame):
        raise TableError("there are no rows below the header", path=origin.name)
    return origin.carried_by(frame)


# ---------------------------------------------------------------------------- columns


def _find_columns(frames: Sequence[pd.DataFrame], roles: Roles, tidy: bool) -> Roles:
    """The roles, with id and weight where such columns are; complains of those that are not."""
    features = {*(roles.features or ()), *roles.categorical}
    taken = {roles.target, roles.fidelity, *features}
    for role in ("id", "weight"):
        everywhere = all(role in frame.columns for frame in frames)
        if getattr(roles, role) is None and everywhere and role not in taken:
            roles = replace(roles, **{role: role})  # type: ignore[arg-type]
    errors = []
    for frame in frames:
        path = Origin.of(frame).name
        wanted = {roles.target: (" of labels", "name another one as target (--target)")}
        if tidy:
            wanted[roles.fidelity] = (
                " of levels of trust",
                "name another one as fidelity (--fidelity), or give one table a level "
                "(--level NAME=FILE)",
            )
        if roles.id:
            wanted[roles.id] = (" of ids", "")
        if roles.weight:
            wanted[roles.weight] = (" of weights", "")
        for name in sorted(features):
            wanted[name] = (", which is to be a feature", "")
        errors += [
            no_column(name, frame.columns, path, *words)
            for name, words in wanted.items()
            if name not in frame.columns
        ]
    raise_all(errors)
    return roles


def _join_features(
    frames: Sequence[pd.DataFrame], roles: Roles, errors: list[TableError]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Features of all tables one below the other, and the columns that are nothing."""
    others = {roles.target, roles.fidelity, roles.id, roles.weight}
    if roles.features is not None:
        names = list(roles.features)
    else:
        every = list(dict.fromkeys(name for frame in frames for name in frame.columns))
        # An id or a weight that only some of the tables have is no feature either.
        others |= {name for name in ("id", "weight") if name not in roles.categorical}
        spare = {n for n in every if n.startswith("unnamed_") or n in WHO} - set(roles.categorical)
        names = [n for n in every if n not in others and n not in spare]
        for frame in frames:
            errors += [
                no_column(
                    name,
                    frame.columns,
                    Origin.of(frame).name,
                    f", which {_holder(frames, name)} has",
                    "name the features that all tables have (--features)",
                )
                for name in names
                if name not in frame.columns
            ]
    raise_all(errors)
    if not names:
        raise TableError(
            f"there is no column to learn from, only {listed(frames[0].columns)}",
            path=Origin.of(frames[0]).name,
        )
    _check_types(frames, names, roles)
    joined = pd.concat([frame[names] for frame in frames], ignore_index=True)
    joined.attrs = {}
    origin = Origin.joined([Origin.of(frame) for frame in frames])
    seen = {name: None for frame in frames for name in frame.columns}
    left_out = tuple(n for n in seen if n not in others and n not in names)
    return origin.carried_by(joined), left_out


def _holder(frames: Sequence[pd.DataFrame], name: str) -> str | None:
    return next(Origin.of(frame).name for frame in frames if name in frame.columns)


def _check_types(frames: Sequence[pd.DataFrame], names: Sequence[str], roles: Roles) -> None:
    """Refuse a column of numbers in one table and of text in another."""
    for name in names:
        if name in roles.categorical:
            continue
        numeric = [f for f in frames if f[name].dtype.kind in "fiu" and f[name].notna().any()]
        for frame in frames:
            wrong = to_numbers(frame[name])[1] if numeric else np.zeros(1, dtype=bool)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise error_at(
                    frame,
                    row,
                    name,
                    f"{shown(frame[name].iloc[row])} is not a number, and in "
                    f"{Origin.of(numeric[0]).name} the column is of numbers; correct it, or name "
                    "the column as categorical (--categorical)",
                )


# ------------------------------------------------------------------------------- rows


def _read_part(
    frame: pd.DataFrame, roles: Roles, level: str | None, errors: list[TableError]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], NDArray[np.str_]]:
    """Labels, levels, weights and ids of one table, as text."""
    label = _filled(frame, roles.target, "no label", errors)
    if level is None:
        fidelity = _filled(frame, roles.fidelity, "no level of trust", errors)
    else:
        fidelity = np.full(len(frame), level, dtype=object)
        if roles.fidelity in frame.columns:
            said = _as_names(_texts(frame[roles.fidelity]))
            other = np.array([s is not None and s != level for s in said], dtype=bool)
            if other.any():
                row = int(np.argmax(other))
                text = f"the level is {shown(said[row])}, and the table is that of level {level!r}"
                errors.append(error_at(frame, row, roles.fidelity, text))
    weight = np.ones(len(frame))
    if roles.weight is not None:
        weight = _read_weight(frame, roles.weight, errors)
    ids = np.full(len(frame), "")
    if roles.id is not None:
        ids = np.array(["" if t is None else t for t in _texts(frame[roles.id])], dtype=str)
    return label, fidelity, weight, ids


def _texts(values: pd.Series) -> NDArray[Any]:
    """Cells as text without blanks around it, None where they are missing."""
    codes, uniques = pd.factorize(values)
    texts = [_plain(u) for u in uniques.tolist()]
    return np.array([*(t or None for t in texts), None], dtype=object)[codes]


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _filled(frame: pd.DataFrame, name: str, what: str, errors: list[TableError]) -> NDArray[Any]:
    texts = _texts(frame[name])
    empty = np.array([t is None for t in texts], dtype=bool)
    if empty.any():
        more = int(empty.sum()) - 1
        others = f", nor have {more} rows after it" if more > 1 else ", nor has one after it" * more
        text = f"the row has {what}{others}; fill it in, or leave the row out"
        errors.append(error_at(frame, int(np.argmax(empty)), name, text))
    return texts


def _read_weight(frame: pd.DataFrame, name: str, errors: list[TableError]) -> NDArray[np.float64]:
    weight, _ = to_numbers(frame[name])
    with np.errstate(invalid="ignore"):
        wrong = ~(np.isfinite(weight) & (weight >= 0.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        cell = frame[name].iloc[row]
        text = "the row has no weight" if pd.isna(cell) else f"{shown(cell)} is not a weight"
        text += "; weights are numbers from 0, which leaves a row out"
        errors.append(error_at(frame, row, name, text))
    return weight


def _whole(texts: NDArray[Any]) -> list[int] | None:
    """Whole numbers, if all texts are, written as numbers are."""
    numbers = []
    for text in texts:
        digits = text.removesuffix(".0").removeprefix("-") if text is not None else ""
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
            return None
        if digits != str(int(digits)):  # a leading zero: a name
            return None
        numbers.append(int(text.removesuffix(".0")))
    return numbers


def _as_names(texts: NDArray[Any]) -> NDArray[Any]:
    """Names of levels: 1 and 1.0 are one."""
    present = {t for t in texts if t is not None}
    plain = {t: t.removesuffix(".0") if _whole(np.array([t], dtype=object)) else t for t in present}
    return np.array([None if t is None else plain[t] for t in texts], dtype=object)


def _as_classes(texts: NDArray[Any]) -> NDArray[Any]:
    """Labels as whole numbers if all are, else as text."""
    distinct = np.array([t for t in dict.fromkeys(texts) if t is not None], dtype=object)
    numbers = _whole(distinct)
    if numbers is None or not len(distinct):
        return np.array(["" if t is None else t for t in texts], dtype=str)
    value = {None: 0, **dict(zip(distinct, numbers, strict=True))}
    return np.array([value[t] for t in texts], dtype=np.int64)


# ----------------------------------------------------------------------------- levels


def _declared_order(
    frames: Sequence[pd.DataFrame], roles: Roles, names: Sequence[str | None]
) -> tuple[str, ...] | None:
    """Levels, least trusted first, as they were given or as an ordered column says."""
    given = [name for name in names if name is not None]
    if roles.levels is not None:
        if given and set(given) != set(roles.levels):
            raise ValueError(
                f"levels and level_files name different levels: {list(roles.levels)} and {given}"
            )
        return roles.levels
    if given:
        return tuple(given)
    dtypes = [frame[roles.fidelity].dtype for frame in frames]
    orders = {
        tuple(map(_plain, t.categories)) if getattr(t, "ordered", False) else None  # type: ignore[union-attr]
        for t in dtypes
    }
    return orders.pop() if len(orders) == 1 else None


def _sorted_levels(fidelity: NDArray[Any]) -> tuple[str, ...]:
    """By number if all are numbers, else by name."""
    names = sorted({name for name in fidelity if name is not None})
    try:
        return tuple(sorted(names, key=float))
    except ValueError:
        return tuple(names)


def _check_levels(
    frames: Sequence[pd.DataFrame],
    fidelity: NDArray[Any],
    levels: tuple[str, ...],
    roles: Roles,
    errors: list[TableError],
) -> None:
    unknown = ~pd.Series(fidelity).isin([*levels, None]).to_numpy()
    for start, frame in _starts(frames):
        wrong = unknown[start : start + len(frame)]
        if wrong.any():
            row = int(np.argmax(wrong))
            text = f"the level {shown(fidelity[start + row])} is not among {listed(levels)}"
            text += "; correct it, or name all levels, least trusted first (--levels)"
            errors.append(error_at(frame, row, roles.fidelity, text))


def _check_classes(
    frames: Sequence[pd.DataFrame], label: NDArray[Any], roles: Roles, errors: list[TableError]
) -> None:
    distinct = pd.unique(pd.Series(label)).tolist()
    if label.dtype.kind == "U" and len(distinct) > MOST_FRACTIONS:
        numbers, wrong = to_numbers(pd.Series(distinct))
        if not wrong.any() and (numbers != np.round(numbers)).any():
            errors.append(
                TableError(
                    f"there are {len(distinct)} different labels, such as {listed(distinct[:3])}: "
                    "measurements, not classes; put classes in, such as above and below a limit",
                    path=Origin.of(frames[0]).name,
                    column=roles.target,
                )
            )


def _starts(frames: Sequence[pd.DataFrame]) -> list[tuple[int, pd.DataFrame]]:
    starts = np.cumsum([0, *(len(frame) for frame in frames[:-1])])
    return list(zip(starts.tolist(), frames, strict=True))
