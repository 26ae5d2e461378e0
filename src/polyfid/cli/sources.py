"""The files that a command reads and writes, as its options name them."""

from __future__ import annotations

import gzip
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from polyfid.cli.config import split
from polyfid.cli.console import Console
from polyfid.cli.options import ManyRows, Sources
from polyfid.text import first_few

if TYPE_CHECKING:
    import pandas as pd

    from polyfid.suggest import Study
    from polyfid.tables import Embeddings, LabelledTable, Roles, TableModel

#: Endings of the tables that can be written.
ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet", ".pq")
#: Tables with more cells are read in blocks; as many take about a gigabyte of memory. The limit
#: does not depend on the machine: the same command does the same everywhere.
MAX_CELLS = 10_000_000
#: Bytes at the beginning of a text file from which its number of rows is estimated.
SAMPLE = 1 << 20
#: Seconds within which a cluster must answer.
TIMEOUT = 10


def read_sources(given: Sources, seed: int = 0) -> LabelledTable:
    """The rows of tables, of one table per level, or of the answers of a crowd."""
    from polyfid.tables import read_labelled

    inputs_of(given)
    if is_crowd(given):
        return _read_crowd(given, seed)
    files, roles, levels = tables_of(given)
    more = read_embeddings(given.embeddings, given.id, given.csv)
    return read_labelled(files, roles, level_files=levels, embeddings=more, **given.csv)


def read_embeddings(file: str | None, id: str | None, csv: Mapping[str, Any]) -> Embeddings | None:
    """The embeddings in a file, if one is named."""
    from polyfid.tables import Embeddings

    return None if file is None else Embeddings.read(file, id, **csv)


def inputs_of(given: Sources) -> list[str]:
    """All files that are read, if labelled rows are given in one way."""
    levels = _level_files(given.level or [])
    crowd = [file for file in (given.items, given.answers, given.gold) if file is not None]
    if sum(map(bool, (given.files, levels, crowd))) != 1:
        raise typer.BadParameter(
            "give labelled rows in one way: FILES, or --level NAME=FILE (once per level), or "
            "--items and --answers (and --gold)"
        )
    more = [] if given.embeddings is None else [given.embeddings]
    files = [*(given.files or []), *levels.values(), *crowd, *more]
    if files.count("-") > 1:
        raise typer.BadParameter("- is standard input, which can be read only once")
    return files


def tables_of(given: Sources) -> tuple[list[str], Roles, dict[str, str] | None]:
    """Tables of rows of all levels, the roles of columns, and tables of one level each."""
    roles = _roles(given)
    if not given.level:
        return given.files or [], roles, None
    levels = _level_files(given.level)
    if roles.levels is not None and {*roles.levels} != {*levels}:
        raise typer.BadParameter(
            f"--levels names {', '.join(roles.levels)}, but --level {', '.join(levels)}"
        )
    return [], roles, levels


def _roles(given: Sources, **fixed: str | None) -> Roles:
    """The roles of columns, as far as options say."""
    from polyfid.tables import Roles

    simple = ("target", "fidelity", "id", "weight", "worker", "audit")
    names: dict[str, Any] = {name: getattr(given, name) for name in simple}
    for name in ("features", "exclude", "categorical", "levels"):
        text = getattr(given, name)
        names[name] = None if text is None else split(text)
    pairs = [pair.partition("=") for pair in given.value or ()]
    if wrong := [f"{a}{b}{c}" for a, b, c in pairs if not (a and c)]:
        raise typer.BadParameter(
            f"must be LEVEL=COLUMN, as in --value simulation=deflection; got {wrong[0]!r}",
            param_hint="--value",
        )
    names["value"] = {level.strip(): column.strip() for level, _, column in pairs}
    if len(names["value"]) < len(pairs):
        raise typer.BadParameter("names a level twice", param_hint="--value")
    names["text"] = [column for text in given.text or () for column in split(text)]
    chosen = {name: value for name, value in names.items() if value is not None}
    try:
        return Roles(**{**chosen, **fixed})
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _level_files(pairs: Iterable[str]) -> dict[str, str]:
    """The files of --level NAME=FILE, by name."""
    files: dict[str, str] = {}
    for pair in pairs:
        # Split at the first equals sign that a file follows, as names can have one too.
        words = pair.split("=")
        splits = [("=".join(words[:k]), "=".join(words[k:])) for k in range(1, len(words))]
        existing = [(n, file) for n, file in splits if file == "-" or Path(file).is_file()]
        name, file = (*existing, *splits, ("", ""))[0]
        if not (name and file):
            raise typer.BadParameter(
                f"--level must be NAME=FILE, as in --level crowd=crowd.csv; got {pair!r}"
            )
        if name in files:
            raise typer.BadParameter(f"--level names {name} twice; each level has one file")
        files[name] = file
    return files


def is_export(file: str) -> bool:
    """Whether a file is an export of Label Studio, judging by its name."""
    return file.lower().endswith(".json")


def is_crowd(given: Sources) -> bool:
    """Whether rows are to be made of answers: crowd tables, or an export of Label Studio."""
    return any((given.items, given.answers, given.gold, *map(is_export, given.files or [])))


def _read_crowd(given: Sources, seed: int) -> LabelledTable:
    """The rows of crowd tables or of an export of Label Studio."""
    from polyfid.crowd import to_rows
    from polyfid.tables import read_labelled
    from polyfid.tables.column import read_ids

    for name in ("fidelity", "weight", "audit", "value"):
        if getattr(given, name):
            raise typer.BadParameter(
                f"--{name} is a column of tidy tables; answers of a crowd have none"
            )
    if given.crowd == "majority" and given.aggregate not in {None, "majority"}:
        raise typer.BadParameter(
            f"--crowd majority and --aggregate {given.aggregate} are two ways to aggregate answers;"
            " leave one out"
        )
    how: dict[str, Any] = {
        "level": given.crowd or ("answer" if given.aggregate else "majority"),
        "ties": given.ties,
        "n_groups": given.groups,
        "aggregate": given.aggregate,
        "random_state": seed,
    }
    answers, gold, items, columns = crowd_tables(given)
    if items is None:
        raise typer.BadParameter("--items and --answers go together; --gold is optional")
    rows = to_rows(items, answers, gold, **how, **columns)
    if groups := rows.attrs.get("groups"):
        listed = "; ".join(f"{name}: {first_few(who, 12)}" for name, who in groups.items())
        warnings.warn(f"annotators by skill, the least first: {listed}", UserWarning, stacklevel=2)
    item = str(rows.columns[0])
    more = read_embeddings(given.embeddings, item, given.csv)
    if more is not None:
        more = more.with_ids(read_ids(items, item))
    # The rows have these columns whatever those of the answers are called.
    roles = _roles(given, target="label", id=item, worker=None)
    return read_labelled([rows], roles, embeddings=more)


def crowd_tables(
    given: Sources,
) -> tuple[pd.DataFrame, pd.DataFrame | None, pd.DataFrame | None, dict[str, Any]]:
    """Answers, trusted labels and items, and which of their columns is what.

    They are those of crowd tables or of an export of Label Studio.
    """
    from polyfid.labelstudio import read_export
    from polyfid.tables import RowPlaces, read_table

    if given.files:
        if len(given.files) > 1:
            raise typer.BadParameter("a JSON export of Label Studio must be the only file")
        (file,) = given.files
        trusted = None if given.trusted is None else split(given.trusted)
        export = read_export(file, from_name=given.from_name, trusted=trusted)
        for frame in export:
            if frame is not None:
                RowPlaces.of_file(Path(file).name, len(frame)).attached_to(frame)
        return export.answers, export.gold, export.items, {}
    if given.answers is None:
        raise typer.BadParameter("--items and --answers go together; --gold is optional")
    answers = read_table(given.answers, **given.csv)
    gold = None if given.gold is None else read_table(given.gold, **given.csv)
    texts = {column for text in given.text or () for column in split(text)}
    items = None if given.items is None else read_table(given.items, text=texts, **given.csv)
    columns = {"task": given.task, "worker": given.worker, "label": given.target}
    return answers, gold, items, {**columns, "form": given.form, "item_id": given.id}


def rows_of(file: str) -> Any:
    """The table to read: the file itself, or the tasks of an export of Label Studio."""
    if not is_export(file):
        return file
    from polyfid.labelstudio import read_items
    from polyfid.tables import RowPlaces

    frame = read_items(file)
    return RowPlaces.of_file(Path(file).name, len(frame)).attached_to(frame)


def load_table_model(path: str) -> TableModel:
    """The model of tables in a file."""
    from polyfid.model_files import load
    from polyfid.suggest import Study
    from polyfid.tables import TableModel

    model = load(path)
    if isinstance(model, Study):
        raise ValueError(
            f"{path} holds a study, which the verbs of polyfid study take; polyfid study status "
            "--labelled writes its labels as a table that polyfid fit reads"
        )
    if not isinstance(model, TableModel):
        raise ValueError(
            f"{path} holds a classifier that was saved from Python and has no columns of tables; "
            "use polyfid.load in Python, or fit with polyfid fit"
        )
    return model


def load_study(path: str) -> Study:
    """The study in a file, which it then keeps up to date."""
    from polyfid.suggest import Study

    return Study.load(path)


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """The client of a Dask cluster; None without an address."""
    if address is None:
        yield None
        return
    from distributed import Client

    try:
        client = Client(address, timeout=TIMEOUT, set_as_default=False)
        client.wait_for_workers(1, timeout=TIMEOUT)
    except (OSError, ValueError):
        raise typer.BadParameter(
            f"no Dask scheduler with workers answers at {address} within {TIMEOUT} s; is the "
            f"address right, and do `dask scheduler` and `dask worker {address}` run?",
            param_hint="--dask",
        ) from None
    with client:
        yield client


def choose_blocks(given: Sources, many: ManyRows) -> tuple[bool, str]:
    """Whether to read the tables in blocks, and the reason."""
    crowd = is_crowd(given)
    if many.in_blocks and given.embeddings is not None:
        raise typer.BadParameter("--embeddings are for tables that are read at once; leave one out")
    options = {"--in-blocks": many.in_blocks, "--checkpoint": many.checkpoint, "--dask": many.dask}
    asked = next((name for name, value in options.items() if value), None)
    if asked and crowd:
        raise typer.BadParameter(
            f"{asked} is for tables of rows; polyfid convert makes one from answers of a crowd or "
            "an export"
        )
    if asked and many.in_blocks is False:
        raise typer.BadParameter(f"{asked} is for fits in blocks; leave --in-memory out")
    if asked:
        return True, f"because of {asked}"
    files = inputs_of(given)
    if crowd or many.in_blocks is False or "-" in files or given.embeddings is not None:
        return False, ""
    sizes = [estimate_size(file, given.csv.get("delimiter")) for file in files]
    rows, cells = sum(n for n, _ in sizes), sum(n * columns for n, columns in sizes)
    return cells > MAX_CELLS, f"about {rows:,} rows; --in-memory reads them all at once"


def estimate_size(path: str, delimiter: str | None = None) -> tuple[int, int]:
    """Rows and columns of a file: exact for Parquet, an estimate for text, 0 for neither."""
    if not os.path.isfile(path):  # a pipe can be read only once; reading reports a missing file
        return 0, 0
    # Reading a damaged file reports what is wrong with it.
    with suppress(OSError, ValueError, EOFError, zlib.error), open(path, "rb") as file:
        magic = file.read(4)
        if magic == b"PAR1":
            import pyarrow.parquet as pq

            metadata = pq.read_metadata(path)
            return metadata.num_rows, metadata.num_columns
        file.seek(0)
        zipped = magic.startswith(b"\x1f\x8b")
        start = gzip.GzipFile(fileobj=file).read(SAMPLE) if zipped else file.read(SAMPLE)
        share = 1.0 if len(start) < SAMPLE else file.tell() / os.path.getsize(path)
        header = start.partition(b"\n")[0]
        columns = 1 + max(header.count(mark.encode()) for mark in (delimiter or ",;\t|"))
        return max(round(start.count(b"\n") / share) - 1, 0), columns
    return 0, 0


def check_out(
    out: str, inputs: Iterable[str], endings: tuple[str, ...] = (), piped: Console | None = None
) -> None:
    """Refuse an output that cannot be written; tables with ``piped`` may go to standard output."""
    path = Path(out)
    problem = None
    if out == "-" and piped is None:
        problem = "name a file; this cannot go to standard output"
    elif out == "-" and piped is not None:
        both = "the table and JSON cannot both go to standard output; name a file for the table"
        problem = both if piped.json else None
    elif not path.parent.is_dir():
        problem = f"there is no folder {path.parent} for {path.name}"
    elif path.is_dir():
        problem = f"{out} is a folder; name a file"
    elif any(os.path.exists(i) and path.exists() and path.samefile(i) for i in inputs):
        problem = f"{out} is an input and would be replaced"
    elif endings and (path.is_file() or not path.exists()) and not out.lower().endswith(endings):
        problem = f"{out} must end in {', '.join(endings)}, which says its format"
    if problem is not None:
        raise typer.BadParameter(problem, param_hint="--out")
