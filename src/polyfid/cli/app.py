"""The command with all its verbs. A new verb is a function in its own module, and named here.

Verbs import numpy and the like when they run, so that ``polyfid --help`` is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from polyfid import __version__
from polyfid.cli.check import check
from polyfid.cli.console import verb
from polyfid.cli.convert import convert
from polyfid.cli.demo import demo
from polyfid.cli.evaluate import evaluate
from polyfid.cli.fit import fit
from polyfid.cli.inspect import inspect
from polyfid.cli.options import flat
from polyfid.cli.predict import predict
from polyfid.cli.report import report

app = typer.Typer(
    name="polyfid",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 a problem with the data, 2 a problem with the call, 130 stopped.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polyfid {__version__}")
        raise typer.Exit


@app.callback()
def polyfid(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Classifiers from labels of unequal trust."""


for _verb in (demo, check, fit, predict, evaluate, report, inspect, convert):
    app.command()(flat(verb(_verb)))
