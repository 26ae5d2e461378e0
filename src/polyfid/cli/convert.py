"""``polyfid convert``: tables in another format."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from polyfid.cli.config import join, write_config
from polyfid.cli.console import Console
from polyfid.cli.options import Output, Seed, Sources
from polyfid.cli.sources import ENDINGS, inputs_of, read_sources, rows_of, table_path


def convert(
    context: typer.Context,
    sources: Sources,
    output: Output,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file to write, or -. Its ending says the format: .csv, .csv.gz, .parquet, "
            ".json.",
        ),
    ],
    to: Annotated[
        Literal["tidy", "levels", "table", "labelstudio"],
        typer.Option(
            help="tidy: one table of all labelled rows. levels: one file per level, "
            "FILE-NAME.csv. table: the same table in another format; for an export of Label "
            "Studio, its tasks. labelstudio: predictions to import there, from a table that "
            "polyfid predict wrote.",
        ),
    ] = "tidy",
    seed: Seed = 0,
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="EXPORT.json",
            help="Label Studio: write these tasks with their predictions, to import as new tasks. "
            "Without it predictions only, for tasks that are in a project already.",
        ),
    ] = None,
    to_name: Annotated[
        str | None,
        typer.Option(help="Label Studio: name of the tag that the Choices are about."),
    ] = None,
) -> None:
    """Convert tables, for instance crowd tables to a tidy table, or CSV to Parquet."""
    console = Console(output, taken=out == "-")
    inputs = [*inputs_of(sources), *([] if tasks is None else [tasks])]
    path = table_path(out, output, inputs, (".json",) if to == "labelstudio" else ENDINGS)
    if path is None and to in {"levels", "labelstudio"}:
        raise typer.BadParameter(f"--to {to} writes files, not to -", param_hint="--out")
    written = [out]
    if to == "labelstudio":
        _to_label_studio(sources, tasks, to_name, out)
    elif to == "table":
        _to_table(sources, out)
    else:
        written = _to_rows(sources, seed, out, to == "levels", console)
    config = None if path is None else write_config(context, Path(written[0]))
    console.say(f"Written: {', '.join(written)}")
    console.result({"written": written, "config": None if config is None else str(config)})


def _only_file(sources: Sources, to: str) -> str:
    files = sources.files or []
    if len(files) != 1:
        raise typer.BadParameter(f"--to {to} takes one file", param_hint="FILES")
    return files[0]


def _to_table(sources: Sources, out: str) -> None:
    from polyfid.tables import iter_blocks, write_table

    write_table(iter_blocks(rows_of(_only_file(sources, "table")), **sources.csv), out)


def _to_label_studio(sources: Sources, tasks: str | None, to_name: str | None, out: str) -> None:
    from polyfid.labelstudio import write_predictions
    from polyfid.tables import TableError, read_table
    from polyfid.tables.places import error_at

    file = _only_file(sources, "labelstudio")
    if sources.from_name is None or to_name is None:
        raise typer.BadParameter(
            "give the names in the project's labelling interface: --from-name is the name of the "
            "Choices tag and --to-name its toName, as in "
            '<Choices name="genre" toName="song">'
        )
    frame = read_table(file, **sources.csv)
    name = sources.id or "id"
    if name not in frame:
        raise TableError(
            f"there is no column {name!r} with ids of tasks; name it by --id", path=file
        )
    repeated = frame[name].duplicated().to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        problem = f"task {frame[name].iloc[row]!s} has an earlier row too; keep one row per task"
        raise error_at(frame, row, name, problem)
    write_predictions(
        frame[name] if tasks is None else tasks,
        frame,
        out,
        from_name=sources.from_name,
        to_name=to_name,
        item_id=name,
    )


def _to_rows(sources: Sources, seed: int, out: str, per_level: bool, console: Console) -> list[str]:
    """Write labelled rows to one file, or to one per level."""
    from polyfid.tables import write_table

    with console.warnings():
        table = read_sources(sources, seed)
    frame, column = table.to_frame(), table.roles.fidelity
    levels = [str(level) for level in table.levels]
    if not per_level:
        write_table(frame, out)
        if levels != sorted(levels):
            console.say(f"To read it with the same order of trust, add --levels '{join(levels)}'")
        return [out]
    files = _file_per_name(Path(out), levels)
    for level, file in files.items():
        write_table(frame[frame[column] == level].drop(columns=column), file)
    return [str(file) for file in files.values()]


def _file_per_name(path: Path, names: Iterable[str]) -> dict[str, Path]:
    """tables.csv.gz and crowd: tables-crowd.csv.gz."""
    stem, dot, ending = path.name.partition(".")
    files: dict[str, Path] = {}
    for name in names:
        safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80]
        file = path.with_name(f"{stem}-{safe}{dot}{ending}")
        while file in files.values():
            safe += "_"
            file = path.with_name(f"{stem}-{safe}{dot}{ending}")
        files[name] = file
    return files
