"""The rows of a study: a pool or points of a box, in numbers, and those that came later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import clone

from polyfid.arrays import Array
from polyfid.suggest.box import Box
from polyfid.suggest.named_rows import NamedRows
from polyfid.values import is_frame

#: Columns of a frame that are no features unless an encoder takes them.
NO_FEATURES = ("id", "label", "fidelity", "weight", "worker", "annotator", "audit")
#: Points of a box that stand for all of it.
N_TARGETS = 256


class StudyRows:
    """Rows that may be labelled, with those that were told besides them below.

    ``named`` are all rows, of which the first ``n_pool`` are the pool, and ``x`` their features in
    numbers; ``box`` is None for a pool. ``target`` are the rows that predictions are wanted for, if
    they were given, and ``target_x`` those that stand for them, in numbers.
    """

    def __init__(
        self, named: NamedRows, n_pool: int, box: Box | None, encoder: Any, target: NamedRows | None
    ) -> None:
        self.named, self.n_pool, self.box, self.encoder = named, n_pool, box, encoder
        self.target = target
        self.backend: Any = nw.Implementation.PANDAS
        kinds = getattr(encoder, "kinds_", None)
        #: Columns of the rows that are features.
        self.features = list(named.columns if kinds is None else kinds)
        self.x = self.numbers(named)
        self._target_x = None if target is None else self.numbers(target)

    @classmethod
    def of(cls, pool: Any, space: Any, target: Any, encoder: Any) -> StudyRows:
        """The rows that a user gave."""
        if (pool is None) == (space is None):
            raise ValueError(
                "give pool=, the rows that may be labelled, or space=, a box; not both"
            )
        if encoder is not None and not is_frame(pool):
            raise ValueError("encoder goes with a pool that is a data frame")
        if pool is None:
            box = Box.of(space)
            if target is not None:
                target = NamedRows.of("target", target, box.names)
            return cls(box.named(np.empty((0, len(box.names)))), 0, box, None, target)
        target = None if target is None else NamedRows.of("target", target)
        named = NamedRows.of("pool", pool)
        if not len(named):
            raise ValueError("pool has no rows; give the rows that may be labelled")
        if not is_frame(pool):
            return cls(named, len(named), None, None, target)
        frame = named.to_pandas()
        if encoder is None:
            features = [name for name in frame.columns if name not in NO_FEATURES]
            encoder = _table_encoder()(features=features)
        rows = cls(named, len(named), None, clone(encoder).fit(frame), target)
        rows.backend = nw.from_native(pool).implementation
        return rows

    def __len__(self) -> int:
        return len(self.named)

    def numbers(self, rows: NamedRows) -> Array:
        """The features of rows in numbers."""
        if self.encoder is not None:
            return np.asarray(self.encoder.transform(rows.to_pandas()), dtype=float)
        x = rows.only("rows", self.features).matrix()
        if not np.isfinite(x).all():
            raise ValueError("rows have cells that are missing or infinite; fill them in")
        return x

    def input(self, x: Array) -> Any:
        """Features in numbers as the model takes them: with names, where they have some."""
        names = self.box.names if self.box is not None else getattr(self.encoder, "names_", None)
        if names is None:
            return x
        import pandas as pd

        return pd.DataFrame(x, columns=list(names))

    def append(self, rows: NamedRows) -> None:
        """Put rows below those that are there."""
        self.x = np.concatenate([self.x, self.numbers(rows)])
        self.named = self.named.below(rows)

    def target_x(self, seed: int) -> Array:
        """Rows that predictions are wanted for; of a box evenly spread points."""
        if self._target_x is not None:
            return self._target_x
        if self.box is not None:
            self._target_x = self.box.spread_out(N_TARGETS, seed).matrix()
            return self._target_x
        return self.x[: self.n_pool]

    @property
    def n_targets(self) -> int | None:
        """How many rows predictions are wanted for; None for all of a box."""
        if self.target is not None:
            return len(self.target)
        return None if self.box is not None else self.n_pool

    def to_frame(self, columns: Mapping[str, list[Any]]) -> Any:
        """Columns as a data frame of the kind that the pool was."""
        return nw.from_dict(dict(columns), backend=self.backend).to_native()

    def state(self) -> dict[str, Any]:
        """What a file holds of it."""
        encoder = None
        if self.encoder is not None:
            if not hasattr(self.encoder, "columns_"):
                raise TypeError(
                    "a study in a file needs a TableEncoder as its encoder, got "
                    f"{type(self.encoder).__name__}"
                )
            encoder = {"columns": self.encoder.columns_, "missing": self.encoder.missing}
        return {
            "named": list(self.named.columns.items()),
            "n_pool": self.n_pool,
            "box": None if self.box is None else asdict(self.box),
            "encoder": encoder,
            "target": None if self.target is None else list(self.target.columns.items()),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> StudyRows:
        """The rows of what a file holds."""
        box, encoder, target = state["box"], state["encoder"], state["target"]
        if encoder is not None:
            encoder = _table_encoder().of(encoder["columns"], encoder["missing"])
        named = NamedRows(dict(state["named"]))
        if len({len(values) for values in named.columns.values()}) != 1:
            raise ValueError("columns of its rows differ in length")
        return cls(
            named,
            int(state["n_pool"]),
            None if box is None else Box(**box),
            encoder,
            None if target is None else NamedRows(dict(target)),
        )


def _table_encoder() -> Any:
    # By name: tables are made of more than studies of numbers need.
    return import_module("polyfid.tables.encoder").TableEncoder
