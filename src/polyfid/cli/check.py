"""``polyfid check``: what is understood of tables, and what is wrong with them."""

from __future__ import annotations

from typing import Annotated

import typer

from polyfid.cli.importing import importing
from polyfid.cli.options import Sources
from polyfid.cli.parameters import Talk


def check(
    sources: Sources,
    talk: Talk,
    seed: Annotated[int, typer.Option(min=0, help="Of draws between tied answers.")] = 0,
) -> None:
    """Read tables, say what was understood and what is wrong; nothing is fitted."""
    with importing():
        from polyfid.cli.sources import read_sources
        from polyfid.cli.talk import DATA, Speaker, complain, problems_of, width
        from polyfid.tables import diagnose

    speaker = Speaker(talk)
    try:
        with speaker.warnings() as warned:
            table = read_sources(sources, seed)
    except ValueError as error:  # the tables are not read, which is a finding too
        problems = problems_of(error)
        speaker.result({"problems": problems})
        complain(*problems)
        raise typer.Exit(DATA) from None
    findings = diagnose(table, missing=sources.missing)
    speaker.result({**findings.to_dict(), "warnings": warned})
    speaker.say(findings.describe(width()))
    if findings.problems:
        if talk.quiet:
            complain(*findings.problems)
        raise typer.Exit(DATA)
