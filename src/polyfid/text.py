"""Names and cells of the user's as text: harmless, short enough, in columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

#: Longest cell that a table of text shows in full.
LONGEST = 30


def visible(text: str) -> str:
    r"""Text without characters that steer a terminal: they come from tables as well.

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
    rows: Sequence[Sequence[object]], indent: int = 2, words: Collection[int] = (0,)
) -> list[str]:
    r"""Lines of a table, its heads first: columns of ``words`` to the left, others to the right.

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
    """Names of at most so many letters, which still differ where the names do.

    Parameters
    ----------
    names : iterable of object
        Shown together, such as those of the rows of a table.
    longest : int
        Letters, the sign of omission included.

    Returns
    -------
    list of str
        The middle of a long name is left out. Where two names would look the same, both their ends
        are left out instead, and what tells them apart stays.

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
    return _told_apart([shown[text] for text in texts], texts)


def _without_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[-half:]}"


def _around_difference(text: str, alike: list[str], longest: int) -> str:
    """The part of a text that the others do not share, with some of what is around it."""
    start = _shared(alike)
    ends = [other[start:][::-1] for other in alike]
    stop = len(text) - _shared(ends)
    room = longest - 2 - (stop - start)
    if room < 0:
        return f"…{_without_middle(text[start:stop], longest - 2)}…"
    # More of what comes before, which says what it is a number of.
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


def _told_apart(shown: list[str], texts: list[str]) -> list[str]:
    """The same, with numbers where different texts look the same after all."""
    seen: dict[str, dict[str, int]] = {}
    for short, text in zip(shown, texts, strict=True):
        seen.setdefault(short, {}).setdefault(text, len(seen[short]) + 1)
    return [
        short if len(seen[short]) == 1 else f"{short} ({seen[short][text]})"
        for short, text in zip(shown, texts, strict=True)
    ]


def name_few(names: Iterable[object], most: int = 12) -> str:
    """The first names in quotes, and how many there are besides.

    Examples
    --------
    >>> from polyfid.text import name_few
    >>> name_few(["a", "b"]), name_few(range(9), most=3)
    ("'a', 'b'", '0, 1, 2 and 6 more')
    """
    every = [name.item() if hasattr(name, "item") else name for name in names]  # of numpy
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(map(repr, every[:most])) + more


def bytes_in_words(count: float) -> str:
    """A size on disk or in memory.

    Examples
    --------
    >>> from polyfid.text import bytes_in_words
    >>> bytes_in_words(3_400_000), bytes_in_words(2.5e9)
    ('3 MB', '2.5 GB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(count / 1e6, 1.0):.0f} MB"
