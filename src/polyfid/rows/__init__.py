"""Rows of data and where they are."""

from polyfid.rows.rows import Points, Rows

__all__ = ["Points", "Rows"]
