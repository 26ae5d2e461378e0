"""``polyfid predict``: from a model and new rows, as many as there are, to predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from polyfid.cli.config import write_config
from polyfid.cli.console import Console
from polyfid.cli.options import Blocks, Output, TextFormat
from polyfid.cli.sources import cluster, load_table_model, rows_of, table_path


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
    output: Output,
    text: TextFormat,
    many: Blocks,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The table of predictions to write, or -."
        ),
    ] = "-",
    fidelity: Annotated[
        str | None,
        typer.Option(
            help="Predict the labels that this level would give.", show_default="the most trusted"
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option("--id", help="Column with names of the rows.", show_default="as in the fit"),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of threads.", show_default="all cores")
    ] = None,
) -> None:
    """Predict the labels of new rows, block by block: the file may be larger than memory."""
    from polyfid.tables import iter_blocks, write_table

    console = Console(output, taken=out == "-")
    path = table_path(out, output, [model, new])
    csv = text.csv
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
            bar.count(done, None)
            yield frame

    with (
        cluster(many.dask) as client,
        console.warnings() as notes,
        console.progress("Predicting") as bar,
    ):
        source = rows_of(new)
        if source is new:
            blocks = loaded.read_blocks(new, id=id, rows=many.block, **csv)
        else:
            blocks = iter_blocks(source, rows=many.block)
        write_table(counted(loaded.predict_blocks(blocks, fidelity, id, jobs, client)), out)
    if path is not None:
        config = write_config(context, path)
        console.say(f"{done:,} rows predicted, written to {path}")
        console.result(
            {
                "rows": done,
                "out": str(path),
                "config": None if config is None else str(config),
                "warnings": notes,
            }
        )
