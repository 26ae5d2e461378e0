"""Options in a TOML file: read before those of the command line, and written beside an output."""

from __future__ import annotations

import csv
import difflib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from polyfid._version import __version__
from polyfid.atomic import replacing
from polyfid.text import join_names

#: Options that do not change the result, and are not written.
NOT_WRITTEN = {"config", "json", "quiet"}
#: Entries of a written file that are no options.
ABOUT = {"command", "version"}


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Use the options of a file as defaults of the command; the callback of ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{path} is not TOML: {error}") from None
    verb = context.info_name or ""
    verbs = set() if context.parent is None else {*context.parent.command.commands}  # type: ignore[attr-defined]
    # Options outside of tables are for all verbs; those in the verb's own table override them.
    tables = {k: v for k, v in content.items() if k in verbs and isinstance(v, Mapping)}
    shared = {k: v for k, v in content.items() if k not in tables}
    given = {k.replace("-", "_"): v for k, v in {**shared, **tables.get(verb, {})}.items()}
    options = {p.name: p for p in context.command.params if p.name not in {"config", "help", None}}
    if given.get("command", verb) != verb:
        # Tables and settings of another command are of use, its output is not.
        given = {k: v for k, v in given.items() if k in options and k != "out"}
    unknown = sorted({*given} - {*options} - ABOUT)
    if unknown:
        names = sorted(map(str, options))
        near = difflib.get_close_matches(unknown[0], names, n=1)
        raise typer.BadParameter(
            f"{path} has {', '.join(unknown)}, which polyfid {verb} does not have; "
            + (f"did you mean {near[0]}? " if near else "")
            + f"Its options are {', '.join(names)}"
        )
    context.default_map = {
        name: _as_given(name, given[name], options[name].multiple or options[name].nargs == -1)
        for name in {*given} - ABOUT
    }
    return path


def _as_given(name: str, value: Any, several: bool) -> Any:
    """A value of the file as the command line would have it."""
    if isinstance(value, Mapping):
        if not several:
            raise typer.BadParameter(f"{name} must be one value, got the table {dict(value)}")
        return [f"{k}={v}" for k, v in value.items()]
    if isinstance(value, list):
        return [str(v) for v in value] if several else join_names(map(str, value))
    return [str(value)] if several else value


def split(text: str) -> tuple[str, ...]:
    """Names between commas; a name that has a comma is in quotes."""
    (names,) = csv.reader([text.replace("\n", " ")], skipinitialspace=True)
    return tuple(name.strip() for name in names)


def write_config(context: typer.Context, out: Path) -> Path | None:
    """Write the effective options beside an output, for ``--config`` to do the same again."""
    if not out.is_file():  # there is no place beside a device or a pipe
        return None
    path = out.with_name(out.name + ".toml")
    verb = context.info_name
    comment = f"# polyfid {verb} --config {path.name} does the same again in the same folder."
    # In the order of the command, not in that of the call.
    options = {p.name: context.params.get(p.name) for p in context.command.params if p.name}
    values = {"command": verb, "version": __version__, **options}
    lines = [
        f"{name} = {_toml(value)}\n"
        for name, value in values.items()
        if name not in NOT_WRITTEN and value is not None and value not in ([], ())
    ]
    with replacing(path) as file:
        file.write("".join([f"{comment}\n", *lines]).encode("utf-8", "backslashreplace"))
    return path


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if not isinstance(value, bool | int | float):
        value = str(value)
    # JSON is TOML for these values, except that TOML wants the character DEL escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
