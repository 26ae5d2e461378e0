"""Single values of the user's: as plain JSON, and as text that is the same for 7, 7.0 and "7"."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


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
        whole = text.removesuffix(".0")
        digits = whole.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
            return None
        if digits != str(int(digits)):
            return None
        numbers.append(int(whole))
    return numbers
