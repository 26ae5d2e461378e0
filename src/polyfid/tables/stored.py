"""Labelled rows as part of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.tables.labelled import LabelledTable
from polyfid.tables.origin import Origin, Part
from polyfid.tables.roles import Roles


def table_state(table: LabelledTable) -> dict[str, Any]:
    """What is stored of the rows; of files their names, and not their folders."""
    return {
        "features": {name: _plain(values) for name, values in table.features.items()},
        "label": table.label,
        "fidelity": table.fidelity,
        "levels": table.levels,
        "weight": table.weight,
        "ids": table.ids,
        "origin": [asdict(replace(part, path="")) for part in table.origin.parts],
        "left_out": table.left_out,
    }


def _plain(values: pd.Series) -> NDArray[Any]:
    if values.dtype.kind in "biuf" and isinstance(values.dtype, np.dtype):
        return values.to_numpy()
    cells = values.astype(object)
    return cells.where(cells.notna(), None).to_numpy(dtype=object)


def restored_table(state: Mapping[str, Any], roles: Roles) -> LabelledTable:
    """The rows of what was stored."""
    origin = Origin(tuple(Part(**part) for part in state["origin"]))
    features = origin.carried_by(pd.DataFrame(state["features"]))
    made = LabelledTable(
        features,
        state["label"],
        state["fidelity"],
        state["levels"],
        state["weight"],
        state["ids"],
        origin,
        roles,
        state["left_out"],
    )
    columns = (made.label, made.fidelity, made.weight, made.ids)
    if any(c is not None and np.shape(c) != (len(features),) for c in columns):
        raise ValueError("columns of the training table differ in length")
    return made
