"""``polyfid predict``: a model and new rows, of any number, to a table of predictions."""

from __future__ import annotations

from typing import Annotated

import typer

from polyfid.cli.parameters import Talk


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file that polyfid fit wrote.")],
    new: Annotated[
        str, typer.Argument(metavar="FILE", help="New rows: CSV, gzip CSV, Parquet or -.")
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
    decimal: Annotated[str | None, typer.Option(help="Decimal mark of FILE, . or ,")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of FILE.", show_default="UTF-8")] = None,
) -> None:
    """Predict labels of new rows, in blocks: the file may be larger than memory."""
    from polyfid.cli.sources import out_path
    from polyfid.cli.talk import Speaker
    from polyfid.saved import load
    from polyfid.tables import write_table
    from polyfid.tabular import TableModel

    speaker = Speaker(talk, taken=out == "-")
    path = out_path(out)
    loaded = load(model)
    if not isinstance(loaded, TableModel):
        raise ValueError(
            f"{model} holds a classifier that was saved from Python and knows no columns; "
            "use polyfid.load there, or fit with polyfid fit"
        )
    with speaker.progress("Predicting") as step, speaker.warnings() as notes:
        blocks = loaded.read_blocks(
            new, id=id, rows=block, delimiter=delimiter, decimal=decimal, encoding=encoding
        )
        done = 0

        def count(frames):  # type: ignore[no-untyped-def]
            nonlocal done
            for frame in frames:
                done += len(frame)
                step(done, None)
                yield frame

        write_table(count(loaded.predict_blocks(blocks, fidelity, id, jobs)), out)
    if path is not None:
        speaker.say(f"{done:,} rows predicted, written to {path}")
        speaker.result({"rows": done, "out": str(path), "warnings": notes})
