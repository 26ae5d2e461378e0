"""``polyfid reproduce``: the paper's experiments, run and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NAMES = ("artificial", "pmlb", "crowd", "mcmc", "profiles", "budget", "sensitivity", "all")


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help=f"Of {', '.join(NAMES)}.")],
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="POLYFID_DATA",
            exists=True,
            file_okay=False,
            help="Directory with data sets. What it lacks is fetched if it has a public address.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Directory for rows, page and figures.")
    ] = Path("polyfid-results"),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes.", show_default="all cores")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(min=1, help="Splits a problem.", show_default="each experiment's own"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Every table and figure at small size.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run again what failed before.")
    ] = False,
) -> None:
    """Run experiments of the paper and write a page of tables and figures.

    Each finished cell is a line in OUT/rows.csv. Stopped, the same command goes on where it was;
    finished, it draws the page again.
    """
    from polyfid.cli.reproduction import run_and_draw

    run_and_draw(names, data, out, jobs=jobs, runs=runs, quick=quick, retry_failed=retry_failed)
