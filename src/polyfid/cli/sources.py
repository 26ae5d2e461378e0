"""From the options of the command line to labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from polyfid.cli.parameters import Fitting, Sources
from polyfid.crowd import to_rows
from polyfid.labelstudio import read_export
from polyfid.tables import LabelledTable, Roles, read_labelled, read_table


def read_sources(given: Sources, seed: int = 0) -> LabelledTable:
    """The rows that files, level files or crowd tables hold."""
    csv = {
        name: getattr(given, name)
        for name in ("delimiter", "decimal", "encoding")
        if getattr(given, name) is not None
    }
    kinds = [bool(given.files), bool(given.level), bool(given.items or given.answers)]
    if sum(kinds) != 1:
        raise typer.BadParameter(
            "give labelled rows in one way: FILES, or --level NAME=FILE (once a level), or --items "
            "and --answers (and --gold)"
        )
    if given.level:
        return read_labelled([], roles(given), level_files=_level_files(given.level), **csv)
    if given.files:
        exports = [f for f in given.files if f.endswith(".json")]
        if not exports:
            return read_labelled(given.files, roles(given), **csv)
        if len(given.files) > 1:
            raise typer.BadParameter("a JSON export of Label Studio must be the only file")
        export = read_export(exports[0])
        items, answers, gold = export.items, export.answers, export.gold
    else:
        if given.items is None or given.answers is None:
            raise typer.BadParameter("--items and --answers go together; --gold is optional")
        items, answers = read_table(given.items, **csv), read_table(given.answers, **csv)
        gold = None if given.gold is None else read_table(given.gold, **csv)
    names: dict[str, Any] = {"level": given.crowd, "ties": given.ties, "random_state": seed}
    if given.id is not None:
        names["item_id"] = given.id
    if given.target is not None:
        names["label"] = given.target
    return read_labelled([to_rows(items, answers, gold, **names)], roles(given))


def roles(given: Sources) -> Roles:
    """What columns mean, as far as it was said."""
    said: dict[str, Any] = {
        name: value
        for name in ("target", "fidelity", "id", "weight")
        if (value := getattr(given, name)) is not None
    }
    for name in ("features", "categorical", "levels"):
        value = getattr(given, name)
        if value is not None:
            said[name] = tuple(part.strip() for part in value.split(","))
    return Roles(**said)


def _level_files(pairs: list[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not (name and equals and file):
            raise typer.BadParameter(
                f"--level wants NAME=FILE, as in --level crowd=crowd.csv; got {pair!r}"
            )
        if name in files:
            raise typer.BadParameter(f"--level names {name} twice; levels are one file each")
        files[name] = file
    return files


def classifier(fitting: Fitting) -> Any:
    """The estimator that the options describe."""
    from polyfid.classifier import MultiFidelityClassifier
    from polyfid.kernels import RBF, Constant, Matern52

    kernels: dict[str, Any] = {
        "auto": "auto",
        "rbf": Constant() * RBF(),
        "ard": Constant() * RBF(ard=True),
        "matern": Constant() * Matern52(),
    }
    return MultiFidelityClassifier(
        kernels[fitting.kernel],
        inference=fitting.inference,
        random_state=fitting.seed,
        n_jobs=fitting.jobs or -1,
    )


def out_path(out: str) -> Path | None:
    """Where to write, None for standard output; the folder must be there."""
    if out == "-":
        return None
    path = Path(out)
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent} to write {path.name} to")
    return path
