"""Names and cells as text: without control characters, short enough, in columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

#: Longest cell that a table of text shows in full.
LONGEST = 30


def first_few(names: Iterable[object], limit: int) -> str:
    """The first ``limit`` names with commas between them, and how many more there are.

    Examples
    --------
    >>> from polyfid.text import first_few
    >>> first_few("abcdefg", 3), first_few("abc", 3)
    ('a, b, c and 4 more', 'a, b, c')
    """
    every = [str(name) for name in names]
    more = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def name_few(names: Iterable[object], most: int = 12) -> str:
    """`first_few` of names in quotes.

    Examples
    --------
    >>> from polyfid.text import name_few
    >>> name_few(["a", "b"]), name_few(range(9), most=3)
    ("'a', 'b'", '0, 1, 2 and 6 more')
    """
    # Scalars of numpy would be shown with their type.
    return first_few((repr(n.item() if hasattr(n, "item") else n) for n in names), most)


def visible(text: str) -> str:
    r"""Text whose control characters are written out, as they could steer the terminal.

    Examples
    --------
    >>> from polyfid.text import visible
    >>> print(visible("red: \x1b[31m"))
    red: \x1b[31m
    """
    return "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def aligned(
    rows: Iterable[Iterable[object]], indent: int = 2, words: Collection[int] = (0,)
) -> list[str]:
    r"""Lines of a table whose first row is its header.

    Columns whose places are in ``words`` are aligned to the left, the others to the right.

    Examples
    --------
    >>> from polyfid.text import aligned
    >>> print("\n".join(aligned([["level", "rows"], ["crowd", 120], ["gold", 7]])))
      level  rows
      crowd   120
      gold      7
    """
    heads, *cells = ([visible(str(c)).replace("\n", "\\n") for c in row] for row in rows)
    columns = zip(abbreviate(heads, LONGEST), *cells, strict=True)
    shown = [abbreviate(column, LONGEST) for column in columns]
    sides = [
        [(str.ljust if k in words else str.rjust)(cell, max(map(len, column))) for cell in column]
        for k, column in enumerate(shown)
    ]
    return [(" " * indent + "  ".join(line)).rstrip() for line in zip(*sides, strict=True)]


def abbreviate(names: Iterable[object], longest: int) -> list[str]:
    """Names of at most ``longest`` letters, such that different names stay different.

    The middle of a long name is left out. Where two names would then be the same, their beginning
    and end are left out instead, and the letters in which they differ stay.

    Examples
    --------
    >>> from polyfid.text import abbreviate
    >>> abbreviate(["speed", "temperature_of_the_inlet"], 16)
    ['speed', 'temperat…e_inlet']
    >>> abbreviate([f"temperature_at_sensor_{i}_in_celsius" for i in (1, 2)], 16)
    ['…t_sensor_1_in_…', '…t_sensor_2_in_…']
    """
    texts = [str(name) for name in names]
    shown = {text: _without_middle(text, longest) for text in texts}
    often = Counter(shown.values())
    alike = [text for text, short in shown.items() if often[short] > 1]
    if alike:
        shown |= {text: _around_difference(text, alike, longest) for text in alike}
    return _numbered([shown[text] for text in texts], texts)


def _without_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[-half:]}"


def _around_difference(text: str, alike: list[str], longest: int) -> str:
    """The letters in which a text differs from the others, with some of those around them."""
    start = _shared(alike)
    ends = [other[start:][::-1] for other in alike]
    stop = len(text) - _shared(ends)
    room = longest - 2 - (stop - start)
    if room < 0:
        return f"…{_without_middle(text[start:stop], longest - 2)}…"
    # More of the letters before than of those after: they often say what is numbered.
    after = min(room // 3, len(text) - stop)
    before = min(room - after, start)
    after = min(room - before, len(text) - stop)
    first, last = start - before, stop + after
    return f"{'…' * (first > 0)}{text[first:last]}{'…' * (last < len(text))}"


def _shared(texts: list[str]) -> int:
    """How many letters all texts begin with."""
    columns = zip(*texts, strict=False)
    return next(
        (place for place, letters in enumerate(columns) if len(set(letters)) > 1),
        min(map(len, texts)),
    )


def _numbered(shown: list[str], texts: list[str]) -> list[str]:
    """The short names, numbered where different texts have the same short name after all."""
    numbers: dict[str, dict[str, int]] = {}
    for short, text in zip(shown, texts, strict=True):
        numbers.setdefault(short, {}).setdefault(text, len(numbers[short]) + 1)
    return [
        short if len(numbers[short]) == 1 else f"{short} ({numbers[short][text]})"
        for short, text in zip(shown, texts, strict=True)
    ]


def bytes_in_words(count: float) -> str:
    """A size on disk or in memory, in MB or GB.

    Examples
    --------
    >>> from polyfid.text import bytes_in_words
    >>> bytes_in_words(3_400_000), bytes_in_words(2.5e9)
    ('3 MB', '2.5 GB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(count / 1e6, 1.0):.0f} MB"
