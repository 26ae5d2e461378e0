"""Options in a TOML file: read before the command line is, and written beside what was made."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from polyfid._version import __version__

#: What says how a command talks, not what it does.
NOT_KEPT = {"config", "json", "quiet", "out"}


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options of a file as defaults of the command; for the option ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    try:
        with path.open("rb") as file:
            given = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} is not TOML: {error}") from None
    known = {p.name for p in context.command.params if p.name} - {"config", "help"}
    unknown = sorted(set(given) - known - {"command", "version"})
    if unknown:
        raise typer.BadParameter(
            f"{path} has {', '.join(unknown)}, which polyfid {context.info_name} does not know; "
            f"it knows {', '.join(sorted(known))}"
        )
    several = {p.name for p in context.command.params if p.name and (p.multiple or p.nargs == -1)}
    defaults = {k: _as_given(k, v, k in several) for k, v in given.items() if k in known}
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def _as_given(name: str, value: Any, several: bool) -> Any:
    """A value of the file as it would stand on the command line."""
    if isinstance(value, Mapping):
        return [f"{k}={v}" for k, v in value.items()]
    if isinstance(value, list):
        return [str(v) for v in value] if several else ",".join(map(str, value))
    return [value] if several else value


def write_config(context: typer.Context, out: Path) -> Path:
    """Write the options in force beside an output; with ``--config`` they do the same again."""
    lines = [f"command = {_toml(context.info_name)}", f"version = {_toml(__version__)}"]
    for name, value in context.params.items():
        if name not in NOT_KEPT and value is not None:
            lines.append(f"{name} = {_toml(value)}")
    path = out.with_name(out.name + ".toml")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_toml, value))}]"
    # A string of JSON is one of TOML but for DEL, which TOML wants escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007F")
