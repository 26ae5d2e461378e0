"""``polyfid inspect``: what a model file holds."""

from __future__ import annotations

from typing import Annotated

import typer

from polyfid.cli.parameters import Talk


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")],
    talk: Talk,
) -> None:
    """Say what a model file holds; its header is read, nothing in it is run."""
    from polyfid.cli.talk import Speaker
    from polyfid.persistence import inspect as read_header

    speaker = Speaker(talk)
    header = read_header(model)
    speaker.result(header)
    for name, value in header.items():
        if name == "arrays":
            value = f"{len(value)} arrays, {sum(a['nbytes'] for a in value):,} bytes"
        speaker.say(f"{name}: {_words(value)}")


def _words(value: object) -> str:
    if isinstance(value, dict):
        return "".join(f"\n  {k}: {_words(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
