"""``polyfid check``: what tables hold, and what is wrong with them."""

from __future__ import annotations

import typer

from polyfid.cli.console import DATA, Console, complain, problems_of, width
from polyfid.cli.options import Output, Seed, Sources
from polyfid.cli.sources import read_sources


def check(sources: Sources, output: Output, seed: Seed = 0) -> None:
    """Read tables and report what they hold and what is wrong; nothing is fitted."""
    from polyfid.tables import diagnose

    console = Console(output)
    try:
        with console.warnings() as notes:
            table = read_sources(sources, seed)
    except ValueError as error:  # tables that cannot be read are a result too
        problems = problems_of(error)
        console.result({"problems": problems})
        complain(*problems)
        raise typer.Exit(DATA) from None
    findings = diagnose(table, missing=sources.missing)
    console.result({**findings.to_dict(), "warnings": notes})
    console.say(findings.describe(width()))
    if findings.problems:
        if output.quiet:
            complain(*findings.problems)
        raise typer.Exit(DATA)
