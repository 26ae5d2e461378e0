"""A table that is read again and again, in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from polyfid.tables.dialect import find_dialect
from polyfid.tables.labelled import with_name
from polyfid.tables.read import find_types, iter_blocks, read_table
from polyfid.tables.roles import Roles
from polyfid.tables.sources import File, is_frame, opened


@dataclass(frozen=True)
class Rereadable:
    """A table that can be read again.

    ``head`` is its first row with all columns, ``csv`` how a text file is written, and ``types``
    are those of the columns that are needed, once they are known.
    """

    source: Any
    level: str | None
    head: pd.DataFrame
    csv: Mapping[str, Any]
    sure: bool
    types: Mapping[str, str] | None = None

    @classmethod
    def of(
        cls, source: Any, place: int, level: str | None, stack: ExitStack, csv: Mapping[str, Any]
    ) -> Rereadable:
        """The table of a source, at some place among others; files stay open with the stack."""
        sure = csv.get("decimal") is not None
        if is_frame(source):
            frame = with_name(read_table(source), place)
            return cls(frame, level, frame.iloc[:1], {}, sure)
        file = stack.enter_context(opened(source))
        types = None
        if file.kind == "csv":
            said = {name: csv.get(name) for name in ("delimiter", "decimal", "encoding")}
            dialect = find_dialect(file, **said)
            csv = {name: getattr(dialect, name) for name in said}
            types = dict.fromkeys(dialect.names, "str")
        table = cls(file, level, pd.DataFrame(), csv, sure, types)
        return replace(table, head=with_name(next(iter(table.blocks(1))), place))

    def typed(self, roles: Roles, features: Sequence[str]) -> Rereadable:
        """With the types of the columns that are needed; reads a text file once to find them."""
        text = {roles.target, roles.fidelity, *roles.categorical}
        others = {*features, *filter(None, [roles.weight])} - text
        types = dict.fromkeys(text & {*self.head.columns}, "str")
        csv = self.csv
        if isinstance(self.source, File) and self.source.kind == "csv":
            dialect = find_dialect(self.source, **csv)
            found, mark = find_types(self.source, dialect, others, self.sure)
            types, csv = {**types, **found}, {**csv, "decimal": mark}
        else:
            types |= dict.fromkeys(others, "float64")  # they keep the types that they have
        return replace(self, csv=csv, types=types)

    def blocks(self, rows: int) -> Iterator[pd.DataFrame]:
        """The columns that are needed, from the first row again."""
        return iter_blocks(self.source, self.types, rows=rows, **self.csv)
