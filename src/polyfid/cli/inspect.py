"""``polyfid inspect``: the contents of a model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from polyfid.cli.console import Console
from polyfid.cli.options import Output
from polyfid.text import first_few

#: Upper bound on the names that are printed of a list.
MAX_NAMES = 40


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")],
    output: Output,
) -> None:
    """Show what a model file holds. Only its header is read, and no code in it is run."""
    from polyfid.model_files import inspect as read_header

    console = Console(output)
    header = read_header(model)
    console.result(header)
    arrays = header.get("arrays", [])
    size = sum(array["nbytes"] for array in arrays)
    shown = {**header, "arrays": f"{len(arrays)} arrays, {size:,} bytes"}
    console.say("\n".join(_lines(shown)))


def _lines(values: Mapping[str, Any], indent: str = "") -> list[str]:
    lines = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{name}:", *_lines(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name}: {_text(value)}")
    return lines


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return first_few(value, MAX_NAMES) if isinstance(value, list) else str(value)
