"""Answers of a crowd as labelled rows: one level for everybody, or one per group of annotators.

`to_rows` joins items, answers and trusted labels into one table, `annotators` reports on each
annotator, `workers` estimates how reliable each of them is. Aggregation other than by majority
needs crowd-kit.
"""

from polyfid.crowd.answers import to_long
from polyfid.crowd.consensus import workers
from polyfid.crowd.join import to_rows
from polyfid.crowd.quality import annotators, answers_of

__all__ = ["annotators", "answers_of", "to_long", "to_rows", "workers"]
