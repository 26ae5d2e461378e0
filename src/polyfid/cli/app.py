"""The command with all its verbs. A new verb is a function that is named here.

Verbs import numpy and the like when they run, so that ``polyfid --help`` is quick.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, getdoc, signature
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from polyfid import __version__
from polyfid.cli import studies
from polyfid.cli.advise import advise
from polyfid.cli.annotators import annotators
from polyfid.cli.buying import suggest
from polyfid.cli.console import INTERRUPTED, complain, exit_codes
from polyfid.cli.convert import check, convert
from polyfid.cli.labelstudio import connect, serve
from polyfid.cli.models import fit, inspect, predict
from polyfid.cli.report import demo, evaluate, report
from polyfid.cli.score import score


class _WithoutTypesOfFlags:
    """A command whose help does not say that a flag is true or false."""

    def get_params(self, context: Any) -> list[Any]:
        params: list[Any] = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class _Command(_WithoutTypesOfFlags, TyperCommand):
    """One verb."""


class _Group(_WithoutTypesOfFlags, TyperGroup):
    """Verbs that belong together."""


class _Verbs(_WithoutTypesOfFlags, TyperGroup):
    """All verbs; a call that makes no sense is reported like any other error."""

    def main(self, *args: Any, **more: Any) -> Any:
        standalone_mode = more.get("standalone_mode", True)
        try:
            code = super().main(*args, **{**more, "standalone_mode": False})
        except typer.Abort:
            code = INTERRUPTED
        except _UsageError.__bases__[0] as error:
            if not standalone_mode:
                raise
            context = getattr(error, "ctx", None)
            if not error.format_message() or type(error).__name__ == "NoArgsIsHelpError":
                error.show()
            else:
                help = f" ({context.command_path} --help lists the options)" if context else ""
                complain(_sentence(error.format_message()) + help)
            code = error.exit_code
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


#: The error of a call, which belongs to Typer or to Click depending on the version of Typer.
_UsageError: Any = typer.BadParameter.__bases__[0]


def _sentence(message: str) -> str:
    """A message of the library that reads arguments in the style of all others."""
    named = re.match(r"Invalid value(?: for '?(.+?)'?)?: ", message)
    place = f"{named[1]}: " if named and named[1] else ""
    problem = message[named.end() :] if named else message
    problem = problem.removeprefix("Value error, ").strip().rstrip(".")
    return f"{place}{problem[:1].lower()}{problem[1:]}"


app = typer.Typer(
    name="polyfid",
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 a problem with the data, 2 a problem with the call, 130 stopped "
    "by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polyfid {__version__}")
        raise typer.Exit


@app.callback()
def polyfid(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Classifiers from labels of unequal trust."""


def _as_command(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb with one option per field in place of each dataclass that it takes."""
    keyword = Parameter.KEYWORD_ONLY
    groups: dict[str, Any] = {}
    options: list[Parameter] = []
    for parameter in signature(verb, eval_str=True).parameters.values():
        kind = parameter.annotation
        if not is_dataclass(kind):
            options.append(parameter.replace(kind=keyword))
            continue
        groups[parameter.name] = kind
        types = get_type_hints(kind)
        for f in fields(kind):
            meaning: Any = Annotated[types[f.name], f.metadata["option"]]
            options.append(Parameter(f.name, keyword, default=f.default, annotation=meaning))

    @wraps(verb)
    def command(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
        with exit_codes():
            verb(**values)

    # The help keeps line breaks, and breaks lines again where the terminal ends.
    command.__doc__ = "\n\n".join(" ".join(p.split()) for p in (getdoc(verb) or "").split("\n\n"))
    command.__signature__ = Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in options}
    return command


_VERBS = (
    *(demo, check, fit, predict, score, evaluate, report, suggest),
    *(advise, inspect, annotators, convert),
)
for _verb in _VERBS:
    app.command(cls=_Command)(_as_command(_verb))

#: Verbs that belong together: ``polyfid labelstudio connect``.
_GROUPS: dict[str, tuple[str, tuple[Callable[..., Any], ...]]] = {
    "study": (
        "Buy labels batch after batch.",
        (studies.init, studies.ask, studies.tell, studies.status, studies.advise),
    ),
    "labelstudio": ("Work with a running Label Studio.", (connect, serve)),
}
for _name, (_help, _verbs) in _GROUPS.items():
    _group = typer.Typer(cls=_Group, no_args_is_help=True, rich_markup_mode="rich")
    for _verb in _verbs:
        _group.command(cls=_Command)(_as_command(_verb))
    app.add_typer(_group, name=_name, help=_help)
