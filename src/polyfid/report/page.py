"""Values that the page's template shows, and how they become one HTML file.

Text is text: the template escapes all of it. Only drawings, whose text is escaped already, go in
as they are.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from polyfid.evaluation import Estimate
from polyfid.tables import to_csv
from polyfid.text import abbreviate, percent

#: Characters that would break a file or turn text around: controls, lone surrogates, bidi marks.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


@dataclass(frozen=True)
class Head:
    """The head of a column, a note below it, and the whole label where it is shortened."""

    label: str
    note: str = ""
    whole: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell: ``key`` is what it is sorted by (its text by default), ``spread`` an interval."""

    text: str
    key: float | None = None
    spread: str = ""
    strong: bool = False

    @classmethod
    def word(cls, value: object) -> Cell:
        """Any value as text."""
        return cls(shorten(value, 40))

    @classmethod
    def count(cls, n: int) -> Cell:
        return cls(f"{n:,}", float(n))

    @classmethod
    def share(cls, e: Estimate) -> Cell:
        """A share with its interval, in per cent."""
        return cls(percent(e.value), e.value, f"{percent(e.low)} to {percent(e.high)}")


@dataclass(frozen=True)
class Download:
    """A file that is inside the page, as the words of its link, its name and its data URI."""

    words: str
    name: str
    uri: str

    @classmethod
    def of(cls, frame: pd.DataFrame, name: str) -> Download:
        """A table as a CSV file."""
        words = f"Download {'this row' if len(frame) == 1 else f'all {len(frame):,} rows'} as CSV"
        data = base64.b64encode(to_csv(frame)).decode()
        return cls(words, name, f"data:text/csv;charset=utf-8;base64,{data}")


@dataclass(frozen=True)
class Table:
    """Rows of cells; a click on the head of a column sorts by it. The first cell names the row."""

    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    download: Download | None = None

    @property
    def words(self) -> list[bool]:
        """Whether each column holds text, not numbers."""
        columns = zip(*self.rows, strict=True)
        return [all(cell.key is None for cell in column) for column in columns]


@dataclass(frozen=True)
class Figure:
    """A drawing with a title, a note beside the title, and a caption."""

    title: str
    drawing: Markup
    note: str = ""
    caption: str = ""


def to_html(contents: Mapping[str, Any]) -> str:
    """The page as one HTML file that needs nothing else, not even a network."""
    files = resources.files(__package__)
    template, script, style = (
        files.joinpath(f"page.{end}").read_text(encoding="utf-8")
        for end in ("html.j2", "js", "css")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = {"script": Markup(script), "style": Markup(style), "script_hash": f"sha256-{digest}"}
    return environment.from_string(template).render(contents, **own)


def clean(text: object) -> str:
    """Any value as text that can be shown."""
    return _UNFIT.sub("\ufffd", str(text))


def shorten_all(texts: Iterable[object], length: int = 60) -> list[str]:
    """Texts that are shown together, cleaned and shortened so that they still differ."""
    return abbreviate(map(clean, texts), length)


def shorten(text: object, length: int = 60) -> str:
    """One text, cleaned, with the middle left out where it is long."""
    return shorten_all([text], length)[0]


def typeset(text: object) -> str:
    """A cleaned sentence with typographic minus signs, and per cents kept with their number."""
    minus = re.sub(r"(?<![^\s(\[])-(?=\d)", "−", clean(text))
    return re.sub(r"(?<=\d) %", "\u00a0%", minus)


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign and a typographic minus."""
    return f"{value:+.{digits}f}".replace("-", "−")
