"""Options in a TOML file: read before the command line is, and written beside what was made."""

from __future__ import annotations

import csv
import difflib
import io
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from polyfid._version import __version__

#: What says how a command talks, not what it does.
NOT_KEPT = {"config", "json", "quiet"}
#: What a file that was written says of itself.
ABOUT = {"command", "version"}


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options of a file as defaults of the command; for the option ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    try:
        with path.open("rb") as file:
            given = _own(context, tomllib.load(file))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} is not TOML: {error}") from None
    options = {p.name: p for p in context.command.params if p.name} | {}
    known = {*options} - {"config", "help"}
    if given.get("command", context.info_name) != context.info_name:
        # The tables and settings of another command will do, but not what it wrote.
        given = {k: v for k, v in given.items() if k in known - {"out"}}
    unknown = sorted({*given} - known - ABOUT)
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        raise typer.BadParameter(
            f"{path} has {', '.join(unknown)}, which polyfid {context.info_name} does not know; "
            + (f"did you mean {near[0]}? " if near else "")
            + f"It knows {', '.join(sorted(known))}"
        )
    defaults = {
        name: _as_given(name, value, options[name].multiple or options[name].nargs == -1)
        for name, value in given.items()
        if name in known
    }
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def _own(context: typer.Context, given: dict[str, Any]) -> dict[str, Any]:
    """The options for this command: those for all, and those of its own table."""
    verbs = set() if context.parent is None else {*context.parent.command.commands}  # type: ignore[attr-defined]
    mine = given.get(context.info_name or "", {})
    shared = {k: v for k, v in given.items() if not (k in verbs and isinstance(v, Mapping))}
    every = {**shared, **mine} if isinstance(mine, Mapping) else shared
    return {name.replace("-", "_"): value for name, value in every.items()}


def _as_given(name: str, value: Any, several: bool) -> Any:
    """A value of the file as it would stand on the command line."""
    if isinstance(value, Mapping):
        if not several:
            raise typer.BadParameter(f"{name} must be one value, got the table {dict(value)}")
        return [f"{k}={v}" for k, v in value.items()]
    if isinstance(value, list):
        return [str(v) for v in value] if several else join(map(str, value))
    return [str(value)] if several else value


def split(text: str) -> tuple[str, ...]:
    """Names between commas; those with a comma of their own are in quotes.

    Examples
    --------
    >>> from polyfid.cli.config import join, split
    >>> split('low, "nearly, but not quite", high')
    ('low', 'nearly, but not quite', 'high')
    >>> split(join(["a,b", "c"]))
    ('a,b', 'c')
    """
    (row,) = csv.reader([text.replace("\n", " ")], skipinitialspace=True)
    return tuple(part.strip() for part in row)


def join(names: Iterable[str]) -> str:
    """Names as `split` reads them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def write_config(context: typer.Context, out: Path) -> Path | None:
    """Write the options in force beside an output; with ``--config`` they do the same again."""
    from polyfid.atomic import replacing

    if not out.is_file():  # a device or a pipe has nothing beside it
        return None
    path = out.with_name(out.name + ".toml")
    lines = [
        f"# polyfid {context.info_name} --config {path.name} does the same again, in the same "
        "folder: paths are as they were given.",
        f"command = {_toml(context.info_name)}",
        f"version = {_toml(__version__)}",
    ]
    # In the order of the command, whatever was given first.
    values = {p.name: context.params.get(p.name) for p in context.command.params if p.name}
    for name, value in values.items():
        if name not in NOT_KEPT and value is not None and value not in ([], ()):
            lines.append(f"{name} = {_toml(value)}")
    with replacing(path) as file:
        file.write("\n".join([*lines, ""]).encode("utf-8", "backslashreplace"))
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
