"""Tables of labelled rows and of new ones: read, checked, turned into numbers, fitted, written.

Names are imported when they are first used: reading a table needs neither scikit-learn nor any
part of a model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyfid.tables.diagnosis import Diagnosis, diagnose
    from polyfid.tables.embeddings import Embeddings
    from polyfid.tables.encoder import TableEncoder
    from polyfid.tables.held_out import HeldOutRows, read_held_out
    from polyfid.tables.labelled import LabelledTable, read_labelled
    from polyfid.tables.model import TableModel
    from polyfid.tables.places import RowPlaces, TableError
    from polyfid.tables.read import iter_blocks, read_table
    from polyfid.tables.roles import Roles
    from polyfid.tables.write import to_csv, write_table

__all__ = [
    "Diagnosis",
    "Embeddings",
    "HeldOutRows",
    "LabelledTable",
    "Roles",
    "RowPlaces",
    "TableEncoder",
    "TableError",
    "TableModel",
    "diagnose",
    "iter_blocks",
    "read_held_out",
    "read_labelled",
    "read_table",
    "to_csv",
    "write_table",
]

_NAMES = {
    "diagnosis": ("Diagnosis", "diagnose"),
    "embeddings": ("Embeddings",),
    "encoder": ("TableEncoder",),
    "held_out": ("HeldOutRows", "read_held_out"),
    "labelled": ("LabelledTable", "read_labelled"),
    "model": ("TableModel",),
    "places": ("RowPlaces", "TableError"),
    "read": ("iter_blocks", "read_table"),
    "roles": ("Roles",),
    "write": ("to_csv", "write_table"),
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
