"""Data frames of pandas, polars and other libraries, told apart and converted by narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
from narwhals.dependencies import is_into_dataframe, is_pandas_dataframe

if TYPE_CHECKING:
    import pandas as pd


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame, eager or lazy, of a library that narwhals supports."""
    return is_into_dataframe(value) or isinstance(
        nw.from_native(value, pass_through=True), nw.LazyFrame
    )


def to_pandas(frame: Any) -> pd.DataFrame:
    """A data frame of any library as one of pandas; pandas' own is returned as it is."""
    if is_pandas_dataframe(frame):
        return frame
    opened = nw.from_native(frame)
    return (opened.collect() if isinstance(opened, nw.LazyFrame) else opened).to_pandas()


def concat(frames: Sequence[Any]) -> Any:
    """Data frames of one library below each other, with rows counted from 0."""
    return nw.maybe_reset_index(nw.concat([nw.from_native(f) for f in frames])).to_native()
