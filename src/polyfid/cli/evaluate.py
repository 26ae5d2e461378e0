"""``polyfid evaluate``: whether the cheap labels help."""

from __future__ import annotations

from typing import Annotated

import typer

from polyfid.cli.parameters import Fitting, Sources, Talk


def evaluate(
    sources: Sources,
    fitting: Fitting,
    talk: Talk,
    folds: Annotated[int, typer.Option(min=2, help="Parts that trusted rows are cut into.")] = 5,
) -> None:
    """Cross-validate on trusted rows only, beside baselines, and say whether cheap labels help."""
    from polyfid.cli.sources import classifier, read_sources
    from polyfid.cli.talk import Speaker

    speaker = Speaker(talk)
    model = classifier(fitting)
    table = read_sources(sources, fitting.seed)
    with speaker.progress("Evaluating") as step, speaker.warnings() as notes:
        found = evaluated(table, model, sources, fitting, folds, step)
    speaker.say(str(found))
    speaker.result({**found.to_dict(), "warnings": notes})


def evaluated(table, model, sources: Sources, fitting: Fitting, folds: int, step):  # type: ignore[no-untyped-def]
    """The evaluation of a table's rows, after the recipe that a fit would use."""
    from polyfid.evaluation import evaluate
    from polyfid.tables import Recipe

    roles = table.roles
    recipe = Recipe.learn(table.features, categorical=roles.categorical, missing=sources.missing)
    return evaluate(
        recipe(table.features),
        table.label,
        table.fidelity,
        levels=table.levels,
        sample_weight=table.weight,
        model=model,
        n_splits=folds,
        random_state=fitting.seed,
        n_jobs=fitting.jobs or -1,
        progress=step,
    )
