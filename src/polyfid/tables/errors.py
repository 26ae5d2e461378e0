"""Errors of tables: what is wrong, in which file, row and column."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from polyfid.text import name_few


class TableError(ValueError):
    """A table that cannot be used; the message says which file, row and column, and what to do.

    Parameters
    ----------
    problem : str
        What is wrong there and what to do.
    path : str, optional
        Name of the file.
    row : int, optional
        Line of the file, counted from 1, which is the header's; in tables without lines (Parquet,
        data frames) the row, counted from 1.
    column : str, optional
        Name of the column.
    others : sequence of TableError
        Other errors of the same tables.

    Attributes
    ----------
    problems : tuple of str
        The message of this error and of the others.

    Examples
    --------
    >>> from polyfid.tables import TableError
    >>> print(TableError("'abc' is not a number", path="gold.csv", row=3, column="x1"))
    gold.csv, row 3, column 'x1': 'abc' is not a number
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | None = None,
        row: int | None = None,
        column: str | None = None,
        others: Sequence[TableError] = (),
    ) -> None:
        self.problem, self.path, self.row, self.column = problem, path, row, column
        where = [
            path,
            None if row is None else f"row {row}",
            None if column is None else f"column {column!r}",
        ]
        place = ", ".join(filter(None, where))
        message = f"{place}: {problem}" if place else problem
        self.problems: tuple[str, ...] = (message, *(p for other in others for p in other.problems))
        more = len(self.problems) - 1
        if more:
            message += f" (and {more} more problem{'s' * (more > 1)})"
        super().__init__(message)


def raise_all(errors: Sequence[TableError]) -> None:
    """Raise the first error, if any; it lists the others."""
    if errors:
        first, *others = errors
        raise TableError(
            first.problem, path=first.path, row=first.row, column=first.column, others=others
        )


def no_column(
    wanted: str,
    there: Iterable[str],
    path: str | None,
    role: str = "",
    advice: str = "",
    taken: Collection[str] = (),
) -> TableError:
    """The error of a column that is not there: it names the most similar column and all others.

    Columns that are ``taken`` for something else are not proposed.
    """
    names = [str(name) for name in there]
    lower = {name.strip().lower(): name for name in reversed(names) if name not in taken}
    close = get_close_matches(wanted.strip().lower(), list(lower), n=1, cutoff=0.6)
    text = f"there is no column {wanted!r}{role}"
    if close:
        text += f"; did you mean {lower[close[0]]!r}?"
    text += f"{'' if close else ';'} the columns are {name_few(names)}"
    if len(names) > 1 and all(_is_number(name) for name in names):
        text += " (row 1 looks like data: it must hold the names of the columns)"
    return TableError(text + (f"; {advice}" if advice else ""), path=path)


def shown(cell: object) -> str:
    """A cell in quotes, shortened if it is long."""
    text = str(cell)
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
