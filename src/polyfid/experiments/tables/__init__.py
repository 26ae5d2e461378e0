"""The tables, without a format: what stands in each cell and what the reader is told about it."""

from polyfid.experiments.tables.base import (
    HIGHER,
    LOG_LOSS,
    LOWER,
    OURS,
    ROC_AUC,
    THEIRS,
    Entry,
    Head,
    Line,
    Table,
)
from polyfid.experiments.tables.groups import group_tables
from polyfid.experiments.tables.studies import budget_table, mcmc_tables
from polyfid.experiments.tables.summary import count_table, duel_table, failure_table, outside_table

__all__ = [
    "HIGHER",
    "LOG_LOSS",
    "LOWER",
    "OURS",
    "ROC_AUC",
    "THEIRS",
    "Entry",
    "Head",
    "Line",
    "Table",
    "budget_table",
    "count_table",
    "duel_table",
    "failure_table",
    "group_tables",
    "mcmc_tables",
    "outside_table",
]
