"""Options of fits to many rows, and of clusters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from polyfid.cli.config import split

MANY = "Many rows"
#: Seconds that a cluster has to answer.
PATIENCE = 10

DASK_HELP = "Work on a Dask cluster: the address of its scheduler."


@dataclass(frozen=True)
class Scale:
    """How to fit to many rows."""

    inducing: Annotated[
        str | None,
        typer.Option(
            help="Inducing points of each latent process: auto, none (exact inference), a number, "
            "or one a process.",
            show_default="auto",
            metavar="N[,N…]",
            rich_help_panel=MANY,
        ),
    ] = None
    refine: Annotated[
        bool,
        typer.Option(
            "--refine/--no-refine",
            help="Move inducing points to where they say most, or keep them at rows.",
            rich_help_panel=MANY,
        ),
    ] = True
    tuning: Annotated[
        str | None,
        typer.Option(
            help="Rows that hyper-parameters are tuned on, or how many of each level: "
            "crowd=10000,expert=5000.",
            show_default="3000, or 20000 with inducing points",
            metavar="N or LEVEL=N,…",
            rich_help_panel=MANY,
        ),
    ] = None
    in_blocks: Annotated[
        bool | None,
        typer.Option(
            "--in-blocks/--in-memory",
            help="Read the tables in blocks, or all at once.",
            show_default="by their size",
            rich_help_panel=MANY,
        ),
    ] = None
    block: Annotated[int, typer.Option(min=1, help="Rows of a block.", rich_help_panel=MANY)] = (
        50_000
    )
    spool: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Where rows in blocks are kept as numbers while the fit lasts.",
            show_default="the folder for temporary files",
            rich_help_panel=MANY,
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Kept after every pass; the same command goes on from there. Removed in the end.",
            rich_help_panel=MANY,
        ),
    ] = None
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help=DASK_HELP, rich_help_panel=MANY)
    ] = None

    @property
    def n_inducing(self) -> str | int | tuple[int, ...] | None:
        """Inducing points, as the estimator takes them."""
        words = split(self.inducing or "auto")
        if words in (("auto",), ("none",)):
            return "auto" if words == ("auto",) else None
        try:
            numbers = tuple(int(word) for word in words)
        except ValueError:
            numbers = ()
        if not numbers or min(numbers) < 1:
            raise typer.BadParameter(
                f"must be auto, none, a whole number from 1, or one a process; got "
                f"{self.inducing!r}",
                param_hint="--inducing",
            )
        return numbers[0] if len(numbers) == 1 else numbers

    @property
    def n_tuning(self) -> str | int | dict[str, int]:
        """Rows to tune on, as the estimator takes them."""
        if self.tuning is None:
            return "auto"
        words = [word.rpartition("=") for word in split(self.tuning)]
        counts = {level.strip(): number.strip() for level, _, number in words}
        alone = counts.get("", "1")
        good = all(map(str.isdecimal, counts.values())) and len(counts) == len(words)
        if not good or ("" in counts and (len(words) > 1 or int(alone) == 0)):
            raise typer.BadParameter(
                f"must be a whole number from 1, or LEVEL=N for some levels; got {self.tuning!r}",
                param_hint="--tuning",
            )
        return int(alone) if "" in counts else {k: int(v) for k, v in counts.items()}


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """The client of a cluster, None without an address."""
    if address is None:
        yield None
        return
    from distributed import Client

    def refuse(problem: str) -> typer.BadParameter:
        return typer.BadParameter(problem, param_hint="--dask")

    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError):
        raise refuse(
            f"no Dask scheduler answers at {address} within {PATIENCE} s; is the address right, "
            "and does `dask scheduler` run there?"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise refuse(
                f"the Dask scheduler at {address} has no workers; start some: dask worker {address}"
            ) from None
        yield client
