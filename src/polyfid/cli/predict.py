"""``polyfid predict``: a model and new rows, of any number, to a table of predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polyfid.cli.config import write_config
from polyfid.cli.importing import importing
from polyfid.cli.parameters import Talk
from polyfid.cli.scale import DASK_HELP, cluster

if TYPE_CHECKING:
    from polyfid.tables import TableModel


def predict(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that polyfid fit wrote.")],
    new: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="New rows: CSV (also .gz), Parquet, a JSON export of Label Studio, or -.",
        ),
    ],
    talk: Talk,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The table of predictions, or -.")
    ] = "-",
    fidelity: Annotated[
        str | None,
        typer.Option(help="Predict what this level would say.", show_default="the most trusted"),
    ] = None,
    id: Annotated[
        str | None, typer.Option("--id", help="Column that names rows.", show_default="as at fit")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Threads.", show_default="all cores")
    ] = None,
    block: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = 50_000,
    delimiter: Annotated[str | None, typer.Option(help="Between cells of FILE.")] = None,
    decimal: Annotated[Literal[".", ","] | None, typer.Option(help="Mark of FILE.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of FILE.", show_default="UTF-8")] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help=DASK_HELP)] = None,
) -> None:
    """Predict labels of new rows, in blocks: the file may be larger than memory."""
    with importing():
        from polyfid.cli.sources import ENDINGS, csv_options, out_path, rows_of
        from polyfid.cli.talk import Speaker
        from polyfid.tables import iter_blocks, write_table

    speaker = Speaker(talk, taken=out == "-")
    path = out_path(out, [model, new], ENDINGS)
    if talk.json and path is None:
        raise typer.BadParameter(
            "predictions and JSON cannot both go to standard output; say where predictions go",
            param_hint="--out",
        )
    csv = csv_options(delimiter, decimal, encoding)
    loaded = load_table_model(model)
    levels = [str(level) for level in loaded.classifier.levels_]
    if fidelity is not None and fidelity not in levels:
        raise typer.BadParameter(
            f"the model has levels {', '.join(levels)}; got {fidelity!r}", param_hint="--fidelity"
        )
    done = 0

    def counted(frames: Iterator[Any]) -> Iterator[Any]:
        nonlocal done
        for frame in frames:
            done += len(frame)
            step(done, None)
            yield frame

    with (
        cluster(dask) as client,
        speaker.warnings() as notes,
        speaker.progress("Predicting") as step,
    ):
        source = rows_of(new)
        if source is new:
            blocks = loaded.read_blocks(new, id=id, rows=block, **csv)
        else:
            blocks = iter_blocks(source, rows=block)
        write_table(counted(loaded.predict_blocks(blocks, fidelity, id, jobs, client)), out)
    if path is not None:
        written = write_config(context, path)
        speaker.say(f"{done:,} rows predicted, written to {path}")
        speaker.result(
            {
                "rows": done,
                "out": str(path),
                "config": None if written is None else str(written),
                "warnings": notes,
            }
        )


def load_table_model(path: str) -> TableModel:
    """A model that knows its columns."""
    from polyfid.model_files.load import load
    from polyfid.tables import TableModel

    loaded = load(path)
    if not isinstance(loaded, TableModel):
        raise ValueError(
            f"{path} holds a classifier that was saved from Python and knows no columns; "
            "use polyfid.load there, or fit with polyfid fit"
        )
    return loaded
