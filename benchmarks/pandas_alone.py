"""What pandas needs to read new rows and write predictions; imports nothing else.

``python -m benchmarks.pandas_alone NEW ANSWERS OUT``: the answers come from a pickled data frame,
which costs next to nothing.
"""

from __future__ import annotations

import sys

import pandas as pd


def main(new: str, answers: str, out: str) -> None:
    pd.read_csv(new)
    pd.read_pickle(answers).to_csv(out, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
