"""Fits to files of any size: looked at, turned into numbers on disk, and fitted block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from polyfid import model_files as persistence
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.learning.progress import Callback
from polyfid.tables.column import Missing
from polyfid.tables.files import Found, LabelledFiles
from polyfid.tables.roles import Roles
from polyfid.tabular.spool import Spool, spool_folder
from polyfid.text import bytes_in_words

#: Told of a stage of the work, how many rows are done, and of how many.
Step = Callable[[str, int, int | None], None]

#: Parameters that are a matter of a run, not of what is fitted.
_OF_A_RUN = {"n_jobs", "verbose", "warm_start"}


def own_copy(
    classifier: MultiFidelityClassifier | None, levels: tuple[str, ...]
) -> MultiFidelityClassifier:
    """A classifier to fit that is as the user's."""
    if classifier is None:
        return MultiFidelityClassifier(random_state=0, levels=levels)
    model: MultiFidelityClassifier = clone(classifier).set_params(levels=levels)
    return model


def fit_files(
    files: Sequence[Any],
    roles: Roles | None,
    level_files: Mapping[str, Any] | None,
    classifier: MultiFidelityClassifier | None,
    missing: Missing,
    *,
    rows: int,
    checkpoint: str | os.PathLike[str] | None,
    spool: str | os.PathLike[str] | None,
    client: Any,
    say: Callable[[str], None] | None,
    step: Step | None,
    callback: Callback | None,
    **csv: Any,
) -> tuple[Found, MultiFidelityClassifier]:
    """What the files hold, and the classifier fitted to them; see `TableModel.fit_files`."""
    if checkpoint is not None and not Path(checkpoint).parent.is_dir():
        # Now, rather than after the first pass.
        raise ValueError(f"there is no folder for checkpoint {os.fspath(checkpoint)!r}")
    with (
        LabelledFiles(files, roles, level_files, rows=rows, **csv) as labelled,
        spool_folder(spool) as folder,
    ):
        found = labelled.look(missing, _named(step, "Reading"))
        model = resumed(own_copy(classifier, found.levels), found, checkpoint)
        numbers = Spool(folder, found, rows)
        if say is not None:
            say(
                f"{found.n_rows:,} rows are read in blocks of {rows:,}; as numbers they take "
                f"{bytes_in_words(numbers.size)} in {folder} while the fit lasts"
            )
        numbers.check_room()
        numbers.write(labelled.numbers(found, _named(step, "Writing numbers")))
        with _warm(model):
            if client is None:
                model.fit_blocks(numbers.blocks(), checkpoint=checkpoint, callback=callback)
            else:
                from polyfid.tabular.cluster import fit_on_cluster

                fit_on_cluster(model, numbers, client, checkpoint, callback)
    if checkpoint is not None:
        Path(checkpoint).unlink(missing_ok=True)
    return found, model


def _named(step: Step | None, stage: str) -> Callable[[int, int | None], None] | None:
    if step is None:
        return None
    return lambda done, total: step(stage, done, total)


@contextmanager
def _warm(model: MultiFidelityClassifier) -> Any:
    """Go on from where the model is, if it is somewhere, and leave its parameters as they were."""
    before = model.warm_start
    model.set_params(warm_start=before or hasattr(model, "report_"))
    try:
        yield
    finally:
        model.set_params(warm_start=before)


def resumed(
    model: MultiFidelityClassifier, found: Found, checkpoint: str | os.PathLike[str] | None
) -> MultiFidelityClassifier:
    """The model as a checkpoint has it, if there is one; it must be of the same fit."""
    if checkpoint is None or not Path(checkpoint).exists():
        return model
    name = os.fspath(checkpoint)
    advice = "name another file as checkpoint, or remove this one"
    if persistence.inspect(checkpoint)["kind"] != "classifier":
        raise ValueError(f"{name} is a model, and not a checkpoint of a fit; {advice}")
    _, state = persistence.read(checkpoint)
    with persistence.refusing(checkpoint):
        saved = MultiFidelityClassifier._restore(state)
    other = _difference(saved, model, found)
    if other is not None:
        raise ValueError(f"{name} is the checkpoint of another fit, with other {other}; {advice}")
    saved.set_params(**{name: getattr(model, name) for name in _OF_A_RUN})
    return saved


def _difference(
    saved: MultiFidelityClassifier, model: MultiFidelityClassifier, found: Found
) -> str | None:
    """What tells a checkpoint from the fit that it is to be gone on from."""
    if not np.array_equal(saved.classes_, found.classes):
        return "classes"
    if saved.levels_ != found.levels:
        return "levels"
    if list(getattr(saved, "feature_names_in_", ())) != list(found.recipe.names):
        return "columns"
    if not np.array_equal(saved.report_.counts, found.counts):
        return "numbers of rows"
    ours, theirs = model.get_params(deep=False), saved.get_params(deep=False)
    return next(
        (
            f"{name} ({theirs[name]!r})"
            for name, value in ours.items()
            if name not in _OF_A_RUN and _plain(value) != _plain(theirs[name])
        ),
        None,
    )


def _plain(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)
