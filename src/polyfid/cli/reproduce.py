"""``polyfid reproduce``: the paper's experiments, run and drawn."""

from __future__ import annotations

import importlib.util
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import joblib
import typer
from rich.console import Console

from polyfid.cli.progress import Progress
from polyfid.experiments.catalogue import EXPERIMENTS, cells_of
from polyfid.experiments.rows import Rows
from polyfid.experiments.run import run

ALL = "all"


def _names() -> str:
    return ", ".join([*EXPERIMENTS, ALL])


def reproduce(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help=f"Of {_names()}.")],
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
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    chosen = _choose(names, console)
    try:
        Rows(out)
    except (OSError, ValueError) as error:
        console.print(str(error), markup=False)
        raise typer.Exit(1) from None
    try:
        with console.status("Reading data sets") if console.is_terminal else nullcontext():
            home = None if data is None else str(data)
            cells = cells_of(chosen, home, runs=runs, quick=quick)
        with Progress(console) as progress:
            finished = run(
                cells,
                out,
                jobs=jobs or joblib.cpu_count(),
                retry_failed=retry_failed,
                progress=progress,
            )
    except KeyboardInterrupt:
        console.print(
            f"Stopped. {len(Rows(out))} rows are in {out / 'rows.csv'}; "
            "the same command goes on from there."
        )
        raise typer.Exit(130) from None
    console.print(f"{finished.computed} cells computed, {finished.kept} were there already.")
    if finished.failed:
        console.print(
            f"{finished.failed} of them failed and are listed on the page; "
            "--retry-failed runs them again."
        )
    write_page(out, chosen)
    console.print(f"Written: {out / 'results.md'}, {out / 'results.html'}, {out / 'figures'}")


def write_page(out: Path, names: list[str]) -> None:
    """Tables and figures from the rows; what they need takes a while to import."""
    from polyfid.experiments import page

    page.write(out, names)


def _choose(names: list[str], console: Console) -> list[str]:
    """The experiments asked for, if they are known and what they need is installed."""
    unknown = [name for name in names if name not in EXPERIMENTS and name != ALL]
    if unknown:
        raise typer.BadParameter(
            f"{', '.join(unknown)}: no such experiment; take some of {_names()}", param_hint="NAME"
        )
    chosen = list(EXPERIMENTS) if ALL in names else list(dict.fromkeys(names))
    for name in list(chosen):
        experiment = EXPERIMENTS[name]
        missing = [part for part in experiment.needs if importlib.util.find_spec(part) is None]
        if missing:
            sentence = (
                f"{name} needs {', '.join(missing)}. Install with: "
                f'pip install "polyfid[{experiment.extra}]"'
            )
            # Of everything, what cannot run is left out if it has an extra of its own.
            if ALL not in names or experiment.extra == "experiments":
                console.print(sentence, markup=False)
                raise typer.Exit(1)
            console.print(f"Left out: {sentence}", markup=False)
            chosen.remove(name)
    return chosen
