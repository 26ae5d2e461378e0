"""``polyfid evaluate``: whether the cheap labels help."""

from __future__ import annotations

from typing import Annotated

import typer

from polyfid.cli.importing import importing
from polyfid.cli.options import Sources
from polyfid.cli.parameters import Fitting, Talk


def evaluate(
    sources: Sources,
    fitting: Fitting,
    talk: Talk,
    folds: Annotated[int, typer.Option(min=2, help="Parts that trusted rows are cut into.")] = 5,
) -> None:
    """Cross-validate on trusted rows only, beside baselines, and say whether cheap labels help."""
    with importing():
        from polyfid.cli.fitting import classifier
        from polyfid.cli.judging import judge
        from polyfid.cli.layout import compare
        from polyfid.cli.sources import read_sources
        from polyfid.cli.talk import Speaker
        from polyfid.tables import TableEncoder

    speaker = Speaker(talk)
    with speaker.warnings() as notes:
        table = read_sources(sources, fitting.seed)
        encoder = TableEncoder(categorical=table.roles.categorical, missing=sources.missing)
        encoder.fit(table.features)
        with speaker.progress("Evaluating") as step:
            found = judge(table, encoder, classifier(fitting), fitting, folds, step)
    speaker.wrapped(found.sentence)
    speaker.say()
    speaker.say(compare(found))
    for note in found.notes:
        speaker.wrapped(f"Note: {note}")
    speaker.result({**found.to_dict(), "warnings": notes})
