"""Rows with named columns of any kind, as a study keeps and stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Indices
from polyfid.values import collected, is_frame, to_python

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Columns of the same length, by name: numbers, truth values, dates, or objects.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.suggest.named_rows import NamedRows
    >>> rows = NamedRows.of("pool", np.eye(2))
    >>> list(rows.columns), len(rows)
    (['x0', 'x1'], 2)
    """

    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, name: str, rows: Any, names: Sequence[str] | None = None) -> NamedRows:
        """Rows of a data frame, or a matrix whose columns have these names; else x0, x1, ..."""
        if isinstance(rows, NamedRows):
            return rows
        if is_frame(rows):
            frame = nw.from_native(collected(rows), eager_only=True)
            return cls({str(column.name): _cells(column) for column in frame.iter_columns()})
        x = np.asarray(rows)
        if x.ndim != 2 or x.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} must be a data frame, or an array of numbers of shape (n, d); got "
                f"{type(rows).__name__} of shape {x.shape} and type {x.dtype}"
            )
        if names is None:
            names = [f"x{j}" for j in range(x.shape[1])]
        if len(names) != x.shape[1]:
            raise ValueError(
                f"{name} must have {len(names)} columns, {', '.join(names)}; got {x.shape[1]}"
            )
        return cls(dict(zip(names, np.ascontiguousarray(x.T), strict=True)))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def take(self, rows: Indices) -> NamedRows:
        """Some of the rows."""
        return NamedRows({name: values[rows] for name, values in self.columns.items()})

    def only(self, name: str, columns: Sequence[str]) -> NamedRows:
        """Some of the columns; an error names those that are not there."""
        absent = [column for column in columns if column not in self.columns]
        if absent:
            raise ValueError(
                f"{name} lack the column{'s' * (len(absent) > 1)} {', '.join(map(repr, absent))}; "
                f"they have {', '.join(map(repr, self.columns))}"
            )
        return NamedRows({column: self.columns[column] for column in columns})

    def below(self, others: NamedRows) -> NamedRows:
        """These rows with others of the same columns below them."""
        return NamedRows(
            {name: _joined(one, others.columns[name]) for name, one in self.columns.items()}
        )

    def matrix(self) -> NDArray[np.float64]:
        """The numbers (n, d) that all columns hold."""
        if not self.columns:
            return np.empty((0, 0))
        return np.column_stack([np.asarray(c, dtype=float) for c in self.columns.values()])

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))


def _cells(column: Any) -> NDArray[Any]:
    """The cells of a column of a data frame."""
    kind = column.dtype
    if kind.is_temporal() or ((kind.is_numeric() or kind == nw.Boolean) and not _has_gaps(column)):
        values = np.asarray(column.to_numpy())
        if values.dtype.kind != "O":
            return values
    cells = [_plain(cell) for cell in column.to_list()]
    if kind.is_numeric():
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=float)
    made = np.empty(len(cells), dtype=object)
    made[:] = cells
    return made


def _has_gaps(column: Any) -> bool:
    return bool(column.is_null().any())


def _plain(cell: Any) -> Any:
    """A cell as a value that a file can hold."""
    cell = to_python(cell)
    if cell is None or cell != cell:
        return None
    return cell if isinstance(cell, str | int | float | bool) else str(cell)


def _joined(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    if one.dtype.kind != other.dtype.kind and "O" in (one.dtype.kind, other.dtype.kind):
        one, other = one.astype(object), other.astype(object)
    return np.concatenate([one, other])
