"""Answers of a crowd as rows of levels: one level for all, or one a group of annotators.

`to_rows` joins items, answers and trusted labels into one tidy table, `workers` says how far each
annotator can be relied on. Aggregation other than by majority needs crowd-kit.
"""

from polyfid.crowd.forms import read_long, read_wide, to_long
from polyfid.crowd.rows import to_rows
from polyfid.crowd.skill import workers

__all__ = ["read_long", "read_wide", "to_long", "to_rows", "workers"]
