"""Rows of results, those in the documentation and single ones, and where the data sets are."""

import functools
import gzip
import json
import os
from pathlib import Path

import pytest

from experiments.cells import key_of
from experiments.run import RowFile

DATA = os.environ.get("POLYFID_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="POLYFID_DATA names no directory with data sets")

REPRODUCTION = Path(__file__).parents[1] / "docs" / "reproduction"


@functools.cache
def documented_rows():
    """All rows of the full run that the documentation describes."""
    with gzip.open(REPRODUCTION / "rows.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(map(json.loads, lines))


def row(**changes):
    """A row of the PMLB group."""
    given = {"experiment": "pmlb", "column": "splice", "problem": "splice", "noise": 0.2}
    given |= {"method": "gpc", "mode": "trusted", "seed": 0, "roc_auc": 0.9}
    return given | changes


def write_rows(folder, rows):
    """Make a directory hold these rows and no others."""
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    assert len(RowFile(folder).rows) == len({key_of(one) for one in rows})
