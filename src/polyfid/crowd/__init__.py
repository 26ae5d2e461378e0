"""Answers of a crowd as labelled rows: one level for everybody, or one per group of annotators.

`to_rows` joins items, answers and trusted labels into one table, `workers` estimates how reliable
each annotator is. Aggregation other than by majority needs crowd-kit.
"""

from polyfid.crowd.answers import to_long
from polyfid.crowd.consensus import workers
from polyfid.crowd.join import to_rows

__all__ = ["to_long", "to_rows", "workers"]
