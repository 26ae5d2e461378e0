"""Names and cells as text: without control characters, short enough, in columns."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from os.path import commonprefix

#: Longest cell that a table of text shows in full.
LONGEST = 30


def first_few(names: Iterable[object], limit: int) -> str:
    """The first ``limit`` names with commas between them, and how many more there are."""
    every = [str(name) for name in names]
    more = f" and {len(every) - limit:,} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def name_few(names: Iterable[object], most: int = 12) -> str:
    """`first_few` of names in quotes.

    >>> name_few(["a", "b"]), name_few(range(9), most=3)
    ("'a', 'b'", '0, 1, 2 and 6 more')
    """
    # Scalars of numpy would be shown with their type.
    return first_few((repr(n.item() if hasattr(n, "item") else n) for n in names), most)


def join_names(names: Iterable[str]) -> str:
    """Names with commas between them; one that has a comma itself is in quotes.

    >>> join_names(["crowd", "p=0.7, rough"])
    'crowd,"p=0.7, rough"'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def nearest(wanted: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The names that are most similar to one that does not exist, the closest first.

    >>> nearest("heat", ["heart", "feat", "id"]), nearest("heat", ["heat", "feat"])
    (['heart', 'feat'], ['heat'])
    """
    every = list(names)
    return [wanted] if wanted in every else get_close_matches(wanted, every, n=most, cutoff=0.6)


def visible(text: str) -> str:
    """Text whose control characters are written out, as they could steer the terminal."""
    escaped = {c: c.encode("unicode_escape").decode() for c in {*text} if not c.isprintable()}
    return text.translate(str.maketrans({**escaped, "\n": "\n"}))


def aligned(
    rows: Iterable[Iterable[object]], indent: int = 2, words: Collection[int] = (0,)
) -> list[str]:
    """Lines of a table whose first row is its header.

    Columns whose places are in ``words`` are aligned to the left, the others to the right.
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
    """
    texts = [str(name) for name in names]
    shown = {text: _without_middle(text, longest) for text in texts}
    often = Counter(shown.values())
    alike = [text for text, short in shown.items() if often[short] > 1]
    shown |= {text: _around_difference(text, alike, longest) for text in alike}
    often, numbers = Counter(shown.values()), Counter[str]()
    for text, short in shown.items():
        if often[short] > 1:  # after all
            numbers[short] += 1
            shown[text] = f"{short} ({numbers[short]})"
    return [shown[text] for text in texts]


def _without_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[-half:]}"


def _around_difference(text: str, alike: list[str], longest: int) -> str:
    """The letters in which a text differs from the others, with some of those around them."""
    start = len(commonprefix(alike))  # noqa: RUF071 (letters are meant, not folders)
    stop = len(text) - len(commonprefix([other[start:][::-1] for other in alike]))  # noqa: RUF071
    room = longest - 2 - (stop - start)
    if room < 0:
        return f"…{_without_middle(text[start:stop], longest - 2)}…"
    # More of the letters before than of those after: they often say what is numbered.
    after = min(room // 3, len(text) - stop)
    before = min(room - after, start)
    after = min(room - before, len(text) - stop)
    first, last = start - before, stop + after
    return f"{'…' * (first > 0)}{text[first:last]}{'…' * (last < len(text))}"


def by_trust(levels: Sequence[object]) -> str:
    """Levels in order of trust, as a person reads them.

    >>> by_trust(["crowd", "expert"]), by_trust(["expert"])
    ('crowd, expert (least trusted first; most trusted: expert)', 'expert (the only level)')
    """
    *lower, top = map(str, levels)
    if not lower:
        return f"{top} (the only level)"
    return f"{', '.join([*lower, top])} (least trusted first; most trusted: {top})"


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.324)
    '32 %'
    """
    return f"{100.0 * share:.0f} %"


def bytes_in_words(count: float) -> str:
    """A size on disk or in memory, in MB or GB.

    >>> bytes_in_words(3_400_000), bytes_in_words(2.5e9)
    ('3 MB', '2.5 GB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(count / 1e6, 1.0):.0f} MB"


def time_in_words(seconds: float) -> str:
    """A time in seconds, minutes or hours.

    >>> time_in_words(0.3), time_in_words(125), time_in_words(7300)
    ('1 s', '2 min', '2 h')
    """
    if seconds < 100.0:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.0f} h"
