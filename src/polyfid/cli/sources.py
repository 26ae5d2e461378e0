"""From the options of the command line to labelled rows."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from polyfid.cli.config import split
from polyfid.cli.options import Sources

if TYPE_CHECKING:
    from polyfid.tables import LabelledTable, Roles

#: How tables end that can be written.
ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet", ".pq")


def read_sources(given: Sources, seed: int = 0) -> LabelledTable:
    """The rows that files, level files or crowd tables hold."""
    from polyfid.tables import read_labelled

    check_sources(given)
    csv = csv_options(given.delimiter, given.decimal, given.encoding)
    exports = [f for f in given.files or [] if is_export(f)]
    if given.level or (given.files and not exports):
        files, meant, levels = tables_of(given)
        return read_labelled(files, meant, level_files=levels, **csv)
    return _read_crowd(given, exports, seed, csv)


def check_sources(given: Sources) -> None:
    """Complain if rows are given in several ways, or in none."""
    kinds = [bool(given.files), bool(given.level), bool(given.items or given.answers or given.gold)]
    if sum(kinds) != 1:
        raise typer.BadParameter(
            "give labelled rows in one way: FILES, or --level NAME=FILE (once a level), or --items "
            "and --answers (and --gold)"
        )
    inputs = inputs_of(given)
    if inputs.count("-") > 1:
        raise typer.BadParameter("- is standard input, which can be read once only")


def tables_of(given: Sources) -> tuple[list[str], Roles, dict[str, str] | None]:
    """Tidy tables, what their columns mean, and tables of one level instead."""
    meant = roles(given)
    if not given.level:
        return given.files or [], meant, None
    levels = level_files(given.level)
    if meant.levels is not None and {*meant.levels} != {*levels}:
        raise typer.BadParameter(
            f"--levels names {', '.join(meant.levels)}, and --level {', '.join(levels)}"
        )
    return [], meant, levels


def _read_crowd(
    given: Sources, exports: list[str], seed: int, csv: dict[str, Any]
) -> LabelledTable:
    """The rows of crowd tables or of an export of Label Studio."""
    from polyfid.crowd import to_rows
    from polyfid.labelstudio import read_export
    from polyfid.tables import read_labelled, read_table

    for name in ("fidelity", "weight"):
        if getattr(given, name) is not None:
            raise typer.BadParameter(
                f"--{name} is a column of tidy tables; answers of a crowd have none"
            )
    said: dict[str, Any] = {
        "level": _crowd_level(given),
        "ties": given.ties,
        "n_groups": given.groups,
        "aggregate": given.aggregate,
        "random_state": seed,
    }
    item: str | None = None
    if exports:
        if len(given.files or []) > 1:
            raise typer.BadParameter("a JSON export of Label Studio must be the only file")
        trusted = None if given.trusted is None else split(given.trusted)
        with naming(exports[0]):
            export = read_export(exports[0], from_name=given.from_name, trusted=trusted)
        items, answers, gold = export
    else:
        if given.items is None or given.answers is None:
            raise typer.BadParameter("--items and --answers go together; --gold is optional")
        items, answers = read_table(given.items, **csv), read_table(given.answers, **csv)
        gold = None if given.gold is None else read_table(given.gold, **csv)
        columns = {"task": given.task, "worker": given.worker, "label": given.target}
        said |= {k: v for k, v in columns.items() if v is not None} | {"form": given.form}
        item = given.id
    if item is not None:
        said["item_id"] = item
    rows = to_rows(items, answers, gold, **said)
    # Whatever the columns of the answers are called, these are those of the rows.
    return read_labelled([rows], roles(given, target="label", id=item or "id"))


def is_export(file: str) -> bool:
    """Whether a file is an export of Label Studio, by its name."""
    return file.lower().endswith(".json")


def rows_of(file: str) -> Any:
    """What a table is read from: the file itself, or the tasks of an export of Label Studio."""
    if not is_export(file):
        return file
    from polyfid.labelstudio import read_items
    from polyfid.tables import RowPlaces

    with naming(file):
        frame = read_items(file)
    return RowPlaces.of_file(Path(file).name, len(frame)).attached_to(frame)


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Errors about an export begin with its name."""
    from polyfid.labelstudio import LabelStudioError

    try:
        yield
    except LabelStudioError as error:
        words = str(error)
        raise LabelStudioError(words if words.startswith(file) else f"{file}: {words}") from None


def _crowd_level(given: Sources) -> str:
    aggregated = given.aggregate not in (None, "majority")
    if given.crowd == "majority" and aggregated:
        raise typer.BadParameter(
            f"--crowd majority is one way to aggregate and --aggregate {given.aggregate} another; "
            "leave one out"
        )
    return given.crowd or ("answer" if aggregated else "majority")


def roles(given: Sources, **known: str) -> Roles:
    """What columns mean, as far as it was said."""
    from polyfid.tables import Roles

    said: dict[str, Any] = {
        name: value
        for name in ("target", "fidelity", "id", "weight")
        if (value := getattr(given, name)) is not None
    }
    for name in ("features", "categorical", "levels"):
        value = getattr(given, name)
        if value is not None:
            said[name] = split(value)
    try:
        return Roles(**{**said, **known})
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def csv_options(delimiter: str | None, decimal: str | None, encoding: str | None) -> dict[str, Any]:
    """How text files are written, as far as it was said."""
    said: dict[str, Any] = {}
    if delimiter is not None:
        said["delimiter"] = "\t" if delimiter in {"tab", "\\t"} else delimiter
        if len(said["delimiter"]) != 1:
            raise typer.BadParameter(
                f"must be one character, or tab; got {delimiter!r}", param_hint="--delimiter"
            )
    if decimal is not None:
        said["decimal"] = decimal
    if encoding is not None:
        try:
            said["encoding"] = codecs.lookup(encoding).name
        except LookupError:
            raise typer.BadParameter(
                f"nobody knows {encoding!r}; common ones are utf-8, cp1252, utf-16",
                param_hint="--encoding",
            ) from None
    return said


def level_files(pairs: Iterable[str]) -> dict[str, str]:
    """The files of --level NAME=FILE, by name."""
    files: dict[str, str] = {}
    for pair in pairs:
        name, file = _name_and_file(pair)
        if not (name and file):
            raise typer.BadParameter(
                f"--level wants NAME=FILE, as in --level crowd=crowd.csv; got {pair!r}"
            )
        if name in files:
            raise typer.BadParameter(f"--level names {name} twice; levels are one file each")
        files[name] = file
    return files


def _name_and_file(pair: str) -> tuple[str, str]:
    """Cut at the first equals sign after which there is a file, as names may have one too."""
    parts = pair.split("=")
    cuts = [("=".join(parts[:k]), "=".join(parts[k:])) for k in range(1, len(parts))]
    found = [cut for cut in cuts if cut[1] == "-" or Path(cut[1]).is_file()]
    return (*found, *cuts, (pair, ""))[0]


def inputs_of(given: Sources) -> list[str]:
    """All files that are read."""
    levels = level_files(given.level).values() if given.level else ()
    single = (given.items, given.answers, given.gold)
    return [*(given.files or ()), *levels, *(file for file in single if file is not None)]


def out_path(out: str, inputs: Iterable[str] = (), endings: tuple[str, ...] = ()) -> Path | None:
    """Where to write, None for standard output; its folder must be there, and it be no input."""
    if out == "-":
        return None
    path = Path(out)
    if not path.parent.is_dir():
        raise typer.BadParameter(
            f"there is no folder {path.parent} to write {path.name} to", param_hint="--out"
        )
    if path.is_dir():
        raise typer.BadParameter(f"{out} is a folder; name a file", param_hint="--out")
    if any(os.path.exists(i) and path.exists() and path.samefile(i) for i in inputs):
        raise typer.BadParameter(f"{out} is an input and would be replaced", param_hint="--out")
    if endings and (path.is_file() or not path.exists()) and not out.lower().endswith(endings):
        raise typer.BadParameter(
            f"{out} must end in {', '.join(endings)}, which says its format", param_hint="--out"
        )
    return path


def file_path(out: str, what: str, inputs: Iterable[str] = ()) -> Path:
    """Where to write what cannot go to standard output."""
    path = out_path(out, inputs)
    if path is None:
        raise typer.BadParameter(f"{what} is a file; -o - will not do", param_hint="--out")
    return path
