"""The page as plain values, and how it becomes one HTML file.

What is shown is decided elsewhere; this module knows how it looks. Text is text: the template
escapes all of it, and only drawings, which escape what they write themselves, go in as they are.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from polyfid.text import abbreviate

__all__ = [
    "Block",
    "Cell",
    "Code",
    "Facts",
    "Figure",
    "Figures",
    "Head",
    "Lines",
    "Page",
    "Points",
    "Section",
    "Table",
    "Text",
    "Verdict",
    "clean",
    "shorten",
    "shorten_all",
    "to_html",
]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Points:
    """A list of short texts."""

    points: tuple[str, ...]
    kind: str = "points"


@dataclass(frozen=True)
class Facts:
    """Figures that stand out, each with words."""

    facts: tuple[tuple[str, str], ...]
    kind: str = "facts"


@dataclass(frozen=True)
class Lines:
    """Headings with their texts, which may have several lines."""

    lines: tuple[tuple[str, str], ...]
    kind: str = "lines"


@dataclass(frozen=True)
class Code:
    """Something to be typed."""

    text: str
    kind: str = "code"


@dataclass(frozen=True)
class Head:
    """The head of a column; ``words`` for text, on the left, ``whole`` what it is short for."""

    label: str
    note: str = ""
    words: bool = False
    whole: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell; ``key`` is what it is sorted by (its text without one), ``spread`` an interval."""

    text: str
    key: float | None = None
    spread: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells under heads; a click on a head sorts by it. The first cell names the row."""

    name: str
    title: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    text: str = ""
    kind: str = "table"


@dataclass(frozen=True)
class Figure:
    """A drawing with a title, a note beside the title, and words."""

    title: str
    drawing: Markup
    note: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Figures:
    """Drawings side by side where there is room, below each other where there is not."""

    figures: tuple[Figure, ...]
    kind: str = "figures"


Block = Text | Points | Facts | Lines | Code | Table | Figures


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading; ``short`` leads there."""

    name: str
    short: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Verdict:
    """The answer. ``effect`` is "help", "none", "harm" or "unknown", ``badge`` that in words."""

    effect: str
    badge: str
    sentence: str
    figure: str = ""
    words: str = ""
    drawing: Markup | None = None


@dataclass(frozen=True)
class Page:
    """All that the page shows.

    Examples
    --------
    >>> from polyfid.report.page import Page, Section, Text, Verdict, to_html
    >>> verdict = Verdict("unknown", "Not measured", "Nobody has looked.")
    >>> page = Page("Moons", "Two classes.", verdict, (Section("a", "A", "Data", (Text("<b>"),)),))
    >>> "<p>&lt;b&gt;</p>" in to_html(page)
    True
    """

    title: str
    lead: str
    verdict: Verdict
    sections: tuple[Section, ...]
    warnings: tuple[str, ...] = ()
    footer: str = ""


def to_html(page: Page) -> str:
    """The page as one HTML file that needs nothing else, not even a network."""
    script, style = _read("page.js"), _read("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template().render(
        page=page, script=Markup(script), style=Markup(style), script_hash=f"sha256-{digest}"
    )


#: Characters that would break a file or turn text around: controls, lone surrogates, bidi marks.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def clean(text: object) -> str:
    r"""Any value as text that can be shown.

    Examples
    --------
    >>> from polyfid.report.page import clean
    >>> clean("a\x07b") == "a\ufffdb", clean(3)
    (True, '3')
    """
    return _UNFIT.sub("\ufffd", str(text))


def shorten(text: object, length: int = 60) -> str:
    """The same, with the middle left out where it is long.

    Examples
    --------
    >>> from polyfid.report.page import shorten
    >>> shorten("a" * 50 + "b" * 50, 11)
    'aaaaa…bbbbb'
    """
    (shown,) = shorten_all([text], length)
    return shown


def shorten_all(texts: Iterable[object], length: int = 60) -> list[str]:
    """Texts that are shown together, cleaned and shortened so that they still differ."""
    return abbreviate(map(clean, texts), length)


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_read("page.html.j2"))
