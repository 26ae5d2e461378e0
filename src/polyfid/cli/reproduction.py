"""What ``polyfid reproduce`` does; apart from its options, because it takes a while to import."""

from __future__ import annotations

import importlib.util
from contextlib import nullcontext
from pathlib import Path

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


def run_and_draw(
    names: list[str],
    data: Path | None,
    out: Path,
    *,
    jobs: int | None,
    runs: int | None,
    quick: bool,
    retry_failed: bool,
) -> None:
    """Run the cells that are not there yet, then write the page."""
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
