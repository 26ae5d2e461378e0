"""Pages as Markdown and as HTML: the same blocks, written twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

from polyfid.experiments.figures import Picture
from polyfid.experiments.tables import HIGHER, LOWER, Entry, Table

__all__ = ["Block", "Facts", "Fold", "Points", "Section", "Text", "to_html", "to_markdown"]


@dataclass(frozen=True)
class Text:
    """A paragraph; ``**strong**``, ``*stressed*`` and ```code``` are understood."""

    text: str


@dataclass(frozen=True)
class Points:
    """A list of such texts."""

    points: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """A few figures that stand out, each with words."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Fold:
    """Blocks that not everyone wants to see."""

    title: str
    blocks: tuple[Block, ...]


Block = Text | Points | Facts | Fold | Table | Picture


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading of its own; ``short`` leads there."""

    name: str
    short: str
    title: str
    blocks: tuple[Block, ...]


# Markdown


def to_markdown(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The page in Markdown, with figures from the folder ``figures`` beside it.

    Examples
    --------
    >>> from polyfid.experiments.markup import Section, Text, to_markdown
    >>> print(to_markdown("Results", "All of them.", [Section("a", "1", "One", (Text("Words."),))]))
    # Results
    <BLANKLINE>
    All of them.
    <BLANKLINE>
    ## One
    <BLANKLINE>
    Words.
    <BLANKLINE>
    """
    parts = [f"# {title}", lead]
    for section in sections:
        parts += [f"## {section.title}", *map(_md_block, section.blocks)]
    return "\n\n".join(parts) + "\n"


def _md_block(block: Block) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Points):
        return "\n".join(f"- {point}" for point in block.points)
    if isinstance(block, Facts):
        return "\n".join(f"- **{figure}** {words}" for figure, words in block.facts)
    if isinstance(block, Fold):
        return "\n\n".join(map(_md_block, block.blocks))
    if isinstance(block, Picture):
        return f"![{block.title}](figures/{block.name}.png)\n\n*{block.title}.* {block.caption}"
    return _md_table(block)


def _md_table(table: Table) -> str:
    above = [name for name, width in table.spans for _ in range(width)]
    heads = [_md_cell(table.corner)]
    for i, head in enumerate(table.heads):
        label = f"{above[i]}: {head.label}" if above else head.label
        heads.append(_md_cell(label) + (f"<br>{head.note}" if head.note else ""))
    lines = [heads, ["---", *("---" if head.words else "---:" for head in table.heads)]]
    lines += [[_md_cell(line.label), *map(_md_entry, line.entries)] for line in table.lines]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"### {table.title}\n\n{table.text}\n\n{body}"


def _md_entry(entry: Entry) -> str:
    text = f"**{entry.text}**" if entry.bold else _md_cell(entry.text)
    paper = f"**{entry.paper}**" if entry.paper_bold else entry.paper
    parts = [text, entry.spread, f"({paper})" if paper else "", entry.mark]
    note = f"<br>{entry.note}" if entry.note else ""
    return " ".join(part for part in parts if part) + note


def _md_cell(text: str) -> str:
    return text.replace("|", "\\|")


# HTML


def to_html(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The page in HTML, complete in itself."""
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    links = " ".join(f'<a href="#{s.name}">{escape(s.short)}</a>' for s in sections)
    body = "\n".join(_html_section(section) for section in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="lead">{_html_text(lead)}</p>
</header>
<nav aria-label="Sections">{links}</nav>
<main>
{body}
</main>
</body>
</html>
"""


def _html_section(section: Section) -> str:
    blocks = "\n".join(map(_html_block, section.blocks))
    return f'<section id="{section.name}">\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>'


def _html_block(block: Block) -> str:
    if isinstance(block, Text):
        return f"<p>{_html_text(block.text)}</p>"
    if isinstance(block, Points):
        return "<ul>" + "".join(f"<li>{_html_text(p)}</li>" for p in block.points) + "</ul>"
    if isinstance(block, Facts):
        items = "".join(
            f"<div><dt>{_html_text(words)}</dt><dd>{escape(figure)}</dd></div>"
            for figure, words in block.facts
        )
        return f'<dl class="facts">{items}</dl>'
    if isinstance(block, Fold):
        inside = "\n".join(map(_html_block, block.blocks))
        return f"<details>\n<summary>{escape(block.title)}</summary>\n{inside}\n</details>"
    if isinstance(block, Picture):
        caption = f"<b>{escape(block.title)}.</b> {_html_text(block.caption)}"
        # A wide figure on a narrow screen scrolls; with the keyboard too.
        return (
            f'<figure id="figure-{block.name}"><div class="scroll" tabindex="0" role="region" '
            f'aria-label="{escape(block.title)}">{block.svg}</div>'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    return _html_table(block)


def _html_table(table: Table) -> str:
    starts = {sum(width for _, width in table.spans[:i]) for i in range(len(table.spans))}
    kinds = [
        " ".join(kind for kind, on in (("first", i in starts), ("words", head.words)) if on)
        for i, head in enumerate(table.heads)
    ]
    corner = f'<th rowspan="{2 if table.spans else 1}" scope="col">{escape(table.corner)}</th>'
    heads = "".join(
        f'<th scope="col"{_class(kind)}>{escape(head.label)}{_small(head.note)}</th>'
        for head, kind in zip(table.heads, kinds, strict=True)
    )
    above = "".join(
        f'<th colspan="{width}" scope="colgroup" class="first span">{escape(name)}</th>'
        for name, width in table.spans
    )
    head = f"<tr>{corner}{above}</tr>\n<tr>{heads}</tr>" if above else f"<tr>{corner}{heads}</tr>"
    lines = "\n".join(
        f'<tr{_class("opens" if line.opens else "")}><th scope="row">{escape(line.label)}</th>'
        + "".join(map(_html_entry, line.entries, kinds))
        + "</tr>"
        for line in table.lines
    )
    n = len(table.heads)
    size = "wide" if n > 9 else "narrow" if n < 5 else ""
    label = escape(table.title)
    return (
        f'<h3 id="{table.name}">{label}</h3>\n<p>{_html_text(table.text)}</p>\n'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
        f"<table{_class(size)}>\n<thead>\n{head}\n</thead>\n<tbody>\n{lines}\n</tbody>\n"
        "</table></div>"
    )


_MARKS = {
    HIGHER: "ours is higher than the paper's by more than our interval",
    LOWER: "ours is lower than the paper's by more than our interval",
}


def _html_entry(entry: Entry, kind: str) -> str:
    text = f"<b>{escape(entry.text)}</b>" if entry.bold else escape(entry.text)
    spread = f" <i>{entry.spread}</i>" if entry.spread else ""
    paper = f"<b>{entry.paper}</b>" if entry.paper_bold else entry.paper
    mark = f' <abbr title="{_MARKS[entry.mark]}">{entry.mark}</abbr>' if entry.mark else ""
    below = f'<span class="paper">{paper}{mark}</span>' if paper else ""
    long = len(entry.text) > 24  # a sentence may wrap
    names = " ".join(filter(None, (kind, "best" if entry.bold else "", "long" if long else "")))
    return f"<td{_class(names)}>{text}{spread}{below}{_small(entry.note)}</td>"


def _small(text: str) -> str:
    return f"<small>{escape(text)}</small>" if text else ""


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _html_text(text: str) -> str:
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text, quote=False))
    text = re.sub(r"\*(.+?)\*", r"<em>\1</em>", text)
    text = re.sub(r"(\d) %", r"\1&nbsp;%", text)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)
