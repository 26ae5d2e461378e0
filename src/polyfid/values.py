"""Values and data frames of the user's, brought to one form: JSON, text, pandas."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe, is_pandas_dataframe

if TYPE_CHECKING:
    import pandas as pd


def to_json(value: Any) -> Any:
    """A value that JSON can hold: numpy's numbers as Python's, NaN as None, other things as text.

    >>> to_json({"a": (np.float64(0.5), float("nan")), 2: np.array(["x"])})
    {'a': [0.5, None], '2': ['x']}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def significant(values: Any, digits: int) -> Any:
    """An array of numbers rounded to so many significant digits.

    >>> significant(np.array([0.123456789, -1234.5678, 0.0]), 3).tolist()
    [0.123, -1230.0, 0.0]
    """
    with np.errstate(divide="ignore"):
        exponent = np.where(values == 0.0, 0.0, np.floor(np.log10(np.abs(values))))
    power = np.clip(digits - 1.0 - exponent, -300.0, 300.0)
    scale = 10.0 ** np.abs(power)  # a product with 0.1 would not be exact, a quotient by 10 is
    up, down = np.round(values * scale) / scale, np.round(values / scale) * scale
    return np.where(power >= 0.0, up, down)


def to_python(value: Any) -> Any:
    """A scalar of numpy as Python's; whole numbers are integers, so that 7 and 7.0 are one value.

    >>> to_python(np.float64(7.0)), to_python(0.5), to_python(np.str_("a"))
    (7, 0.5, 'a')
    """
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_text(value: Any) -> str:
    """A value as text without blanks around it; text keeps its digits, as they may be a name.

    >>> to_text(7.0), to_text(" 7"), to_text("7.0"), to_text("007"), to_text(0.5)
    ('7', '7', '7.0', '007', '0.5')
    """
    return str(to_python(value)).strip()


def whole_numbers(texts: Iterable[str]) -> list[int] | None:
    """The whole numbers that texts stand for, None if one stands for none, as "01" does.

    >>> whole_numbers(["-1", "7.0"]), whole_numbers(["01", "2"])
    ([-1, 7], None)
    """
    numbers = []
    for text in texts:
        match = re.fullmatch(r"(-?(?:0|[1-9][0-9]{0,17}))(?:\.0)?", text)
        if match is None:
            return None
        numbers.append(int(match[1]))
    return numbers


def order_of_trust(
    counts: Mapping[Any, int], remedy: Callable[[list[Any]], str], what: str = "fidelity"
) -> tuple[Any, ...]:
    """Levels, least trusted first, if they are numbers or there is only one.

    Which of several names is trusted cannot be known: they raise a ValueError with ``remedy``, what
    to write so that names have a given order. It proposes that frequent levels are cheap.

    >>> order_of_trust({"10": 5, "9": 80}, str), order_of_trust({True: 5, False: 5}, str)
    (('9', '10'), (False, True))
    >>> order_of_trust({"expert": 2, "llm": 30}, str)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: fidelity names levels without saying which is trusted: 'llm' (30 rows), ...
    """
    with suppress(TypeError, ValueError):
        numbers = {name: float(name) for name in counts}
        if all(map(math.isfinite, numbers.values())):
            return tuple(sorted(counts, key=numbers.__getitem__))
    if len(counts) < 2:
        return tuple(counts)
    names = sorted(counts, key=lambda name: (-counts[name], str(name)))
    shown = ", ".join(f"{n!r} ({counts[n]:,} row{'s' * (counts[n] != 1)})" for n in names[:6])
    more = f" and {len(names) - 6} more" * (len(names) > 6)
    raise ValueError(
        f"{what} names levels without saying which is trusted: {shown}{more}. Name them from the "
        f"least to the most trusted, such as {remedy(names)} if {names[-1]!r} is the most trusted "
        "level"
    )


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame, eager or lazy, of a library that narwhals supports."""
    return is_into_dataframe(value) or isinstance(
        nw.from_native(value, pass_through=True), nw.LazyFrame
    )


def collected(frame: Any) -> Any:
    """A data frame of the same library that is not lazy."""
    opened = nw.from_native(frame)
    return opened.collect().to_native() if isinstance(opened, nw.LazyFrame) else frame


def to_pandas(frame: Any) -> pd.DataFrame:
    """A data frame of any library as one of pandas; pandas' own is returned as it is."""
    if is_pandas_dataframe(frame):
        return frame
    return nw.from_native(collected(frame)).to_pandas()


def concat(frames: Sequence[Any]) -> Any:
    """Data frames of one library below each other, with rows counted from 0."""
    return nw.maybe_reset_index(nw.concat([nw.from_native(f) for f in frames])).to_native()
