"""``polyfid inspect``: what a model file holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from polyfid.cli.parameters import Talk

#: Names that are listed of a list.
MOST = 40


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")],
    talk: Talk,
) -> None:
    """Say what a model file holds; its header is read, nothing in it is run."""
    from polyfid.cli.talk import Speaker
    from polyfid.model_files import inspect as read_header

    speaker = Speaker(talk)
    header = read_header(model)
    speaker.result(header)
    arrays = header.get("arrays", [])
    size = sum(array["nbytes"] for array in arrays)
    shown = {**header, "arrays": f"{len(arrays)} arrays, {size:,} bytes"}
    speaker.say("\n".join(_lines(shown)))


def _lines(values: Mapping[str, Any], indent: str = "") -> list[str]:
    lines = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{name}:", *_lines(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name}: {_words(value)}")
    return lines


def _words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, list):
        return str(value)
    more = f" and {len(value) - MOST} more" if len(value) > MOST else ""
    return ", ".join(map(str, value[:MOST])) + more
