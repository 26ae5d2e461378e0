"""``polyfid convert``: between the formats of tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from polyfid.cli.config import join, write_config
from polyfid.cli.options import Sources
from polyfid.cli.parameters import Talk
from polyfid.cli.talk import Speaker


def convert(
    context: typer.Context,
    sources: Sources,
    talk: Talk,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="By its ending: .csv, .csv.gz, .parquet, .json; or -.",
        ),
    ],
    to: Annotated[
        Literal["tidy", "levels", "table", "labelstudio"],
        typer.Option(
            help="One tidy table; one file a level (FILE-NAME.csv); the same rows in another "
            "format (of an export of Label Studio, its tasks); or, of a table that polyfid predict "
            "made, predictions for Label Studio.",
        ),
    ] = "tidy",
    seed: Annotated[int, typer.Option(min=0, help="Of draws between tied answers.")] = 0,
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="EXPORT.json",
            help="Label Studio: write these tasks with predictions, for import as new ones. "
            "Without it predictions alone, for tasks that a project has.",
        ),
    ] = None,
    to_name: Annotated[
        str | None, typer.Option(help="Label Studio: the object that choices are about.")
    ] = None,
) -> None:
    """Turn tables into another format: crowd tables or level files to tidy ones, CSV to Parquet."""
    from polyfid.cli.sources import ENDINGS, inputs_of, out_path

    speaker = Speaker(talk, taken=out == "-")
    if talk.json and out == "-":
        raise typer.BadParameter(
            "the table and JSON cannot both go to standard output", param_hint="--out"
        )
    inputs = [*inputs_of(sources), *([] if tasks is None else [tasks])]
    path = out_path(out, inputs, (".json",) if to == "labelstudio" else ENDINGS)
    if path is None and to in {"levels", "labelstudio"}:
        raise typer.BadParameter(f"--to {to} writes files; -o - will not do", param_hint="--out")
    if to == "labelstudio":
        _to_label_studio(sources, tasks, to_name, out)
        written = [out]
    elif to == "table":
        _to_table(sources, out)
        written = [out]
    else:
        written = _to_rows(sources, seed, out, to == "levels", speaker)
    config = None if path is None else write_config(context, Path(written[0]))
    speaker.say(f"Written: {', '.join(written)}")
    speaker.result({"written": written, "config": None if config is None else str(config)})


def _only_file(sources: Sources, to: str) -> str:
    files = sources.files or []
    if len(files) != 1:
        raise typer.BadParameter(f"--to {to} takes one file", param_hint="FILES")
    return files[0]


def _to_table(sources: Sources, out: str) -> None:
    from polyfid.cli.sources import csv_options, rows_of
    from polyfid.tables import iter_blocks, write_table

    csv = csv_options(sources.delimiter, sources.decimal, sources.encoding)
    write_table(iter_blocks(rows_of(_only_file(sources, "table")), **csv), out)


def _to_label_studio(sources: Sources, tasks: str | None, to_name: str | None, out: str) -> None:
    from polyfid.cli.sources import csv_options
    from polyfid.labelstudio import write_predictions
    from polyfid.tables import TableError, read_table
    from polyfid.tables.places import error_at

    file = _only_file(sources, "labelstudio")
    if sources.from_name is None or to_name is None:
        raise typer.BadParameter(
            "name the tags of the project's labelling interface: --from-name is that of its "
            "Choices and --to-name what they are about, as in "
            '<Choices name="genre" toName="song">'
        )
    csv = csv_options(sources.delimiter, sources.decimal, sources.encoding)
    frame = read_table(file, **csv)
    name = sources.id or "id"
    if name not in frame:
        raise TableError(f"there is no column {name!r} that names tasks; say --id", path=file)
    again = frame[name].duplicated().to_numpy()
    if again.any():
        row = int(again.argmax())
        problem = f"task {frame[name].iloc[row]!s} has an earlier row too; keep one row a task"
        raise error_at(frame, row, name, problem)
    write_predictions(
        frame[name] if tasks is None else tasks,
        frame,
        out,
        from_name=sources.from_name,
        to_name=to_name,
        item_id=name,
    )


def _to_rows(sources: Sources, seed: int, out: str, split: bool, speaker: Speaker) -> list[str]:
    """Write labelled rows to one file, or to one a level."""
    from polyfid.cli.sources import read_sources
    from polyfid.tables import write_table

    with speaker.warnings():
        table = read_sources(sources, seed)
    frame, column = table.to_frame(), table.roles.fidelity
    order = [str(level) for level in table.levels]
    if not split:
        write_table(frame, out)
        if order != sorted(order):
            speaker.say(f"When you read it, say which levels are trusted: --levels '{join(order)}'")
        return [out]
    files = _beside(Path(out), order)
    for level, file in files.items():
        write_table(frame[frame[column] == level].drop(columns=column), file)
    return [str(file) for file in files.values()]


def _beside(path: Path, names: Iterable[str]) -> dict[str, Path]:
    """tables.csv.gz and crowd: tables-crowd.csv.gz."""
    stem, dot, rest = path.name.partition(".")
    files: dict[str, Path] = {}
    for name in names:
        safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80]
        file = path.with_name(f"{stem}-{safe}{dot}{rest}")
        while file in files.values():
            safe += "_"
            file = path.with_name(f"{stem}-{safe}{dot}{rest}")
        files[name] = file
    return files
