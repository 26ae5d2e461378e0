"""Tables of labelled rows and of new ones: read, checked, turned into numbers, written."""

from polyfid.tables.errors import TableError
from polyfid.tables.findings import Findings, diagnose
from polyfid.tables.labelled import LabelledTable, read_labelled
from polyfid.tables.origin import Origin
from polyfid.tables.read import iter_blocks, read_table
from polyfid.tables.recipe import Recipe
from polyfid.tables.roles import Roles
from polyfid.tables.write import write_table

__all__ = [
    "Findings",
    "LabelledTable",
    "Origin",
    "Recipe",
    "Roles",
    "TableError",
    "diagnose",
    "iter_blocks",
    "read_labelled",
    "read_table",
    "write_table",
]
