"""What the columns of a table mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Roles:
    """Which column is what.

    Parameters
    ----------
    target : str
        The labels.
    fidelity : str
        The level of trust of each row.
    id : str, optional
        Names of the rows; ``id`` if there is such a column.
    weight : str, optional
        A row of weight 2 counts as two rows; ``weight`` if there is such a column.
    features : sequence of str, optional
        What to learn from; all columns that are nothing else. Columns without a name (an index that
        was saved with the table) and those that say who gave a label (``worker``, ``annotator``)
        are features only if they are named here.
    categorical : sequence of str
        Features to be taken as categories though they look like numbers.
    levels : sequence of str, optional
        Names of the levels, least trusted first.

    Examples
    --------
    >>> from polyfid.tables import Roles
    >>> Roles(target="feasible", levels=["simulation", "experiment"]).levels
    ('simulation', 'experiment')
    """

    target: str = "label"
    fidelity: str = "fidelity"
    id: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("features", "categorical", "levels"):
            value: Any = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, str):
                raise ValueError(
                    f"{name} must be a list of names, such as [{value!r}]; got a string"
                )
            names = tuple(str(v) for v in value)
            if len(set(names)) < len(names):
                raise ValueError(f"{name} must be distinct names; got {list(names)}")
            object.__setattr__(self, name, names)
        if self.features is not None and not self.features:
            raise ValueError("features must be at least one name, or None for all columns; got []")
        single = {n: getattr(self, n) for n in ("target", "fidelity", "id", "weight")}
        taken: dict[str, str] = {}
        for role, column in single.items():
            if column is None:
                continue
            if column in taken:
                raise ValueError(f"{role} and {taken[column]} are both column {column!r}")
            taken[column] = role
        for column in (*(self.features or ()), *self.categorical):
            if column in taken:
                raise ValueError(
                    f"column {column!r} is the {taken[column]}; it cannot be a feature"
                )
        if self.features is not None:
            beside = [c for c in self.categorical if c not in self.features]
            if beside:
                raise ValueError(f"categorical names {beside[0]!r}, which is not among features")
