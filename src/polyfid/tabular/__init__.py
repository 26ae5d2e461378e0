"""Models that take tables and give tables, fitted to tables in memory or to files of any size."""

from polyfid.tabular.model import TableModel

__all__ = ["TableModel"]
