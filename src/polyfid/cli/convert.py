"""``polyfid convert``: between the formats of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from polyfid.cli.parameters import Sources, Talk


def convert(
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
            "format; or predictions for import into Label Studio.",
        ),
    ] = "tidy",
    seed: Annotated[int, typer.Option(help="Of draws between tied answers.")] = 0,
    from_name: Annotated[str, typer.Option(help="Label Studio: the control tag.")] = "label",
    to_name: Annotated[str, typer.Option(help="Label Studio: the object tag.")] = "item",
) -> None:
    """Turn tables into another format: crowd tables or level files to tidy ones, CSV to Parquet."""
    from polyfid.cli.sources import out_path, read_sources
    from polyfid.cli.talk import Speaker
    from polyfid.labelstudio import write_predictions
    from polyfid.tables import iter_blocks, read_table, write_table

    speaker = Speaker(talk, taken=out == "-")
    path = out_path(out)
    written: list[str] = [out]
    if to in {"table", "labelstudio"}:
        files = sources.files or []
        if len(files) != 1:
            raise typer.BadParameter(f"--to {to} takes one file", param_hint="FILES")
        csv = {k: getattr(sources, k) for k in ("delimiter", "decimal", "encoding")}
        if to == "table":
            write_table(iter_blocks(files[0], **csv), out)
        else:
            if path is None:
                raise typer.BadParameter("--to labelstudio writes a file", param_hint="--out")
            frame = read_table(files[0], **csv)
            name = sources.id or "id"
            if name not in frame:
                raise ValueError(f"{files[0]} has no column {name!r} that names tasks; say --id")
            tags: dict[str, Any] = {"from_name": from_name, "to_name": to_name, "item_id": name}
            write_predictions(frame[name], frame, path, **tags)
    else:
        table = read_sources(sources, seed)
        frame = table.to_frame()
        if to == "tidy":
            write_table(frame, out)
        else:
            if path is None:
                raise typer.BadParameter("--to levels writes files", param_hint="--out")
            written = []
            for name in table.levels:
                file = _beside(path, str(name))
                rows = frame[frame[table.roles.fidelity] == name]
                write_table(rows.drop(columns=table.roles.fidelity), str(file))
                written.append(str(file))
    speaker.say(f"Written: {', '.join(written)}")
    if out != "-":
        speaker.result({"written": written})


def _beside(path: Path, name: str) -> Path:
    """tables.csv.gz and crowd: tables-crowd.csv.gz."""
    stem, dot, rest = path.name.partition(".")
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
    return path.with_name(f"{stem}-{safe}{dot}{rest}")
