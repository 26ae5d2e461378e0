"""The file of a study: written whole or not at all, and read without running code of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from polyfid import model_files
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.constraints import read_numeric, read_whole
from polyfid.suggest.history import Record
from polyfid.suggest.ledger import Ledger
from polyfid.suggest.study_rows import StudyRows
from polyfid.values import to_python

#: Settings that are arguments of `polyfid.suggest`.
SETTINGS = ("strategy", "audit", "error_costs", "threshold")


class StudyFile:
    """The methods of `Study` that read and write its file."""

    levels: tuple[Any, ...]
    costs: dict[Any, float]
    strategy: str
    audit: float
    error_costs: Any
    threshold: float | None
    random_state: int
    model: MultiFidelityClassifier
    _rows: StudyRows
    _ledger: Ledger
    _records: list[Record]
    _path: str | os.PathLike[str] | None
    _revision: int

    @property
    def spent(self) -> float:
        """What the labels told so far cost; those of levels without a cost are free."""
        prices = [self.costs.get(name, 0.0) for name in self.levels]
        return float(sum(prices[a.level] for a in self._ledger.answers))

    @property
    def counts(self) -> dict[str, int]:
        """Labels told, by level."""
        levels = [a.level for a in self._ledger.answers]
        return {str(name): levels.count(t) for t, name in enumerate(self.levels)}

    @property
    def _numeric(self) -> tuple[int, ...]:
        """The levels whose answers are numbers."""
        return read_numeric(self.model.numeric_levels, self.levels)

    @property
    def value_columns(self) -> dict[Any, str]:
        """The columns of `Study.labelled` that hold the numbers of numeric levels."""
        taken, names = self._rows.named.columns, [self.levels[t] for t in self._numeric]
        return {k: f"value_{k}_told" if f"value_{k}" in taken else f"value_{k}" for k in names}

    @property
    def n_pending(self) -> int:
        """Suggestions that wait for an answer."""
        return len(self._ledger.pending)

    @property
    def features(self) -> list[str]:
        """Columns of the rows that are learnt from."""
        return list(self._rows.features)

    @property
    def kinds(self) -> dict[str, str]:
        """Whether a feature of a frame is a "number", a "category" or a "text"."""
        return dict(getattr(self._rows.encoder, "kinds_", {}))

    @property
    def missing(self) -> str:
        """What missing values become; see `polyfid.tables.TableEncoder`."""
        return str(getattr(self._rows.encoder, "missing", "error"))

    def _prepare(self) -> None:
        """Set what is not stored."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the study to a file, all of it or nothing; `Study.load` reads it."""
        about = {
            "levels": self.levels,
            "n_labels": self.counts,
            "spent": self.spent,
            "pending": self.n_pending,
            "revision": self._revision,
        }
        model_files.write(path, "study", self._state(), about)

    def _write(self) -> None:
        """Bring the file up to date, unless something else did."""
        if self._path is None:
            return
        try:
            there = model_files.inspect(self._path).get("revision")
        except FileNotFoundError:
            there = self._revision  # someone moved it: it is written again
        if there != self._revision:
            raise ValueError(
                f"{os.fspath(self._path)} was changed by something else since this study read it; "
                "load it again, and tell what is not in it (telling twice does no harm)"
            )
        self._revision += 1
        try:
            self.save(self._path)
        except BaseException:
            self._revision -= 1
            raise

    def _state(self) -> dict[str, Any]:
        parameters = self.model.get_params(deep=False)
        seed = parameters["random_state"]
        if not (seed is None or isinstance(seed, int | np.integer)):
            parameters["random_state"] = None
        return {
            "levels": list(self.levels),
            "costs": list(self.costs.items()),
            **{name: getattr(self, name) for name in SETTINGS},
            "random_state": self.random_state,
            "model": parameters,
            "rows": self._rows.state(),
            "ledger": self._ledger.state(),
            "records": [record.state() for record in self._records],
            "revision": self._revision,
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The study in a file, which `ask` and `tell` then keep up to date.

        The same answers lead to the same suggestions as without the way through the file. Frames
        are of pandas from then on.
        """
        study = model_files.load(path)
        if not isinstance(study, cls):
            raise model_files.ModelFileError(
                f"{os.fspath(path)} holds a {type(study).__name__}, not a study; make one with "
                "Study(..., path=...) or polyfid study init"
            )
        study._path = path
        return study

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> Self:
        made = cls.__new__(cls)
        made.levels, made.costs = read_levels(state["levels"], dict(state["costs"]))
        for name in SETTINGS:
            setattr(made, name, state[name])
        made.random_state = read_whole("random_state", state["random_state"], 0)
        made.model = MultiFidelityClassifier(**state["model"])
        made._rows = StudyRows.restored(state["rows"])
        made._ledger = Ledger.restored(state["ledger"], len(made._rows), len(made.levels))
        made._records = [Record.restored(record) for record in state["records"]]
        made._path, made._revision = None, int(state["revision"])
        made._prepare()
        return made


def read_levels(levels: Any, costs: Any) -> tuple[tuple[Any, ...], dict[Any, float]]:
    """Names of the levels, and costs by level."""
    if not isinstance(costs, Mapping) or not costs:
        raise ValueError(
            "costs must be a dictionary of prices by level, such as {'crowd': 1, 'expert': 8}; "
            f"got {costs!r}"
        )
    names = [to_python(name) for name in (costs if levels is None else levels)]
    if len({*names}) < len(names) or isinstance(levels, str):
        raise ValueError(f"levels must be different names, least trusted first; got {levels!r}")
    prices = {to_python(name): cost for name, cost in costs.items()}
    for name, cost in prices.items():
        if name not in names:
            raise ValueError(f"costs name the level {name!r}, and levels are {names}")
        if isinstance(cost, bool) or not isinstance(cost, int | float | np.number):
            raise ValueError(f"the cost of {name!r} must be a number above 0, got {cost!r}")
        if not 0.0 < float(cost) < np.inf:
            raise ValueError(f"the cost of {name!r} must be a number above 0, got {cost!r}")
    return tuple(names), {name: float(prices[name]) for name in names if name in prices}
