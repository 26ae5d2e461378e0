"""How large tables are, roughly, before they are read, and whether that is too much for memory."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

import pyarrow.parquet as pq
import typer

from polyfid.cli.options import Sources
from polyfid.cli.scale import Scale
from polyfid.cli.sources import inputs_of, is_export
from polyfid.tables.csv_files import DAMAGE, TableFile, find_dialect, find_kind

#: Cells of tables that are read into memory, where they take about a gigabyte. A number of the
#: tables, not of the machine: the same command does the same everywhere.
MOST_CELLS = 10_000_000
#: Bytes of the beginning of a file whose lines are counted.
SAMPLE = 1 << 20


def decide(given: Sources, scale: Scale, csv: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether to read tables in blocks, and why if so."""
    files = inputs_of(given)
    crowd = bool(given.items or given.answers or given.gold) or any(map(is_export, files))
    asked = {"--in-blocks": scale.in_blocks, "--checkpoint": scale.checkpoint, "--dask": scale.dask}
    wish = next((name for name, value in asked.items() if value), None)
    if crowd and wish:
        raise typer.BadParameter(
            f"{wish} is for tables; polyfid convert makes one of answers of a crowd or of an export"
        )
    if scale.in_blocks is False and wish:
        raise typer.BadParameter(f"{wish} is of fits in blocks; leave --in-memory out")
    if wish:
        return True, f"as {wish} says"
    if crowd or scale.in_blocks is False or "-" in files:
        return False, ""
    sizes = [estimate(file, csv) for file in files]
    rows, cells = sum(n for n, _ in sizes), sum(n * columns for n, columns in sizes)
    return cells > MOST_CELLS, f"about {rows:,} rows; --in-memory for all at once"


def estimate(path: str, csv: Mapping[str, Any]) -> tuple[int, int]:
    r"""Rows and columns of a file: those of Parquet are known, lines of text are extrapolated.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from polyfid.cli.sizes import estimate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "t.csv")
    ...     _ = path.write_text("x,label\n" + "0.5,good\n" * 300)
    ...     estimate(str(path), {})
    (300, 2)
    """
    file = find_kind(path, path)
    if file.kind == "parquet":
        known = pq.read_metadata(file.path)
        return known.num_rows, known.num_columns
    names = ("delimiter", "decimal", "encoding")
    dialect = find_dialect(file, **{name: csv.get(name) for name in names})
    return _lines(file) - 1, len(dialect.names)


def _lines(file: TableFile) -> int:
    with open(file.path, "rb") as raw:
        size = raw.seek(0, 2)
        raw.seek(0)
        try:
            start = gzip.GzipFile(fileobj=raw).read(SAMPLE) if file.zipped else raw.read(SAMPLE)
        except DAMAGE:  # it is said when the file is read
            return 1
        lines = start.count(b"\n")
        if len(start) < SAMPLE:
            return max(lines, 1)
        used = raw.tell()
    return round(lines * size / used)
