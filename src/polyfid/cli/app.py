"""The verbs put together. A new one is a function in a module of its own and a line here."""

from __future__ import annotations

from typing import Annotated

import typer

from polyfid import __version__
from polyfid.cli.reproduce import reproduce

app = typer.Typer(
    name="polyfid",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polyfid {__version__}")
        raise typer.Exit


@app.callback()
def polyfid(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Classifiers from labels of unequal trust."""


app.command()(reproduce)
