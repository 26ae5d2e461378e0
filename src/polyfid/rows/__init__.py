"""Rows of data and where they are."""

from polyfid.rows.rows import Points

__all__ = ["Points"]
