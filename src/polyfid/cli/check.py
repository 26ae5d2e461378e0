"""``polyfid check``: what is understood of tables, and what is wrong with them."""

from __future__ import annotations

import typer

from polyfid.cli.parameters import Sources, Talk


def check(sources: Sources, talk: Talk) -> None:
    """Read tables, say what was understood and what is wrong; nothing is fitted."""
    from polyfid.cli.sources import read_sources
    from polyfid.cli.talk import DATA, Speaker
    from polyfid.tables import diagnose

    speaker = Speaker(talk)
    table = read_sources(sources)
    findings = diagnose(table, missing=sources.missing)
    speaker.result(findings.to_dict())
    speaker.say(str(findings))
    if findings.problems:
        raise typer.Exit(DATA)
