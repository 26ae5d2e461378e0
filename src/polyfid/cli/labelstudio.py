"""The verbs on a running Label Studio: ``polyfid labelstudio connect`` and ``serve``."""

# ruff: noqa: RUF009  (the calls in the dataclass make fields)

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polyfid.cli.config import split
from polyfid.cli.console import Console, complain
from polyfid.cli.models import make_classifier
from polyfid.cli.options import Fitting, Text, _option

if TYPE_CHECKING:
    from polyfid.labelstudio import HttpServer, LiveOptions, Round

_live = partial(_option, "Project")


@dataclass(frozen=True)
class Project:
    """A project on a server, and what is learnt from it."""

    url: Text = _live("Address of Label Studio: http://host:port.", metavar="URL")
    project: int | None = _live("Number of the project, as in its address.", min=1, metavar="N")
    trusted: list[str] | None = _live(
        "Annotators whose labels are trusted, by e-mail address or id, besides ground truth. Can "
        "be repeated.",
        metavar="USER,…",
    )
    key_env: str = _live(
        "Environment variable that holds the access token.", default="LABEL_STUDIO_API_KEY"
    )
    from_name: Text = _live("Name of the Choices tag.", shown="the only one")
    crowd: Literal["answer", "majority", "skill"] = _live(
        "How answers of those who are not trusted become rows; see polyfid fit.",
        default="majority",
    )
    costs: Text = _live(
        "What a label costs at each level; the trusted level is called gold. Tasks are ordered by "
        "expected gain per cost.",
        shown="all the same",
        metavar="crowd=1,gold=8",
    )
    features: Text = _live(
        "Fields of the tasks to learn from. * stands for any letters.",
        shown="all",
        metavar="A,B,…",
    )
    exclude: Text = _live("Fields to leave out; * as above.", shown="none", metavar="A,B,…")
    categorical: Text = _live(
        "Fields of numbers that are categories; * as above.", shown="none", metavar="A,B,…"
    )
    text: list[str] | None = _live(
        "Fields of free text; * as above. Can be repeated.",
        shown="those that are shown as text",
        metavar="A,B,…",
    )
    missing: Literal["error", "median", "indicator"] = _live(
        "Missing values. error: refuse them. median: replace them. indicator: also mark them.",
        default="error",
    )
    every: float = _live("Seconds between two looks at the project.", default=20.0, min=1.0)


def connect(
    project: Project,
    fitting: Fitting,
    console: Console,
    once: Annotated[
        bool, typer.Option("--once", help="Look once and end, for cron and the like.")
    ] = False,
) -> None:
    """Learn from a project in Label Studio while people label, and order its tasks.

    It looks for new annotations, fits again, writes predictions, and makes the project give out
    first the tasks whose labels are expected to teach most. Nothing has to be opened on the server.
    The access token comes from the environment variable LABEL_STUDIO_API_KEY. Stop it by Ctrl-C;
    a second start goes on, since everything is kept on the server.
    """
    from polyfid.labelstudio import LiveProject

    live = LiveProject(_server(project, console), _options(project, fitting))
    if once:
        with console.warnings() as notes:
            made = live.refresh()
        console.wrap(made.message)
        console.result({**made.to_dict(), "warnings": notes})
        return
    _watch(live.rounds(project.every), console)


def serve(
    project: Project,
    fitting: Fitting,
    console: Console,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 9090,
    auth_env: Annotated[
        str,
        typer.Option(
            help="Environment variable that holds user:password, which Label Studio must give."
        ),
    ] = "POLYFID_BASIC_AUTH",
    max_request: Annotated[
        int, typer.Option(min=1, max=1000, help="Largest request, in megabytes.")
    ] = 16,
) -> None:
    """Do what connect does, and answer Label Studio as a machine learning backend.

    Label Studio must be able to reach this machine; it refuses backends on its own machine unless
    it runs with ML_BLOCK_LOCAL_IP=False and USE_DEFAULT_BANNED_SUBNETS=False. Without a password
    only this machine is listened to.
    """
    from polyfid.labelstudio import Backend, LiveProject

    server = _server(project, console)
    live = LiveProject(server, _options(project, fitting), keep_model=True)
    login = os.environ.get(auth_env) or None
    try:
        backend = Backend(
            live,
            server.project,
            host,
            port,
            login=login,
            largest=max_request << 20,
            say=partial(console.say, err=True),
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    except OSError as error:
        problem = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise typer.BadParameter(problem, param_hint="--port") from None
    with backend:
        console.say(f"Listening on http://{host}:{backend.port}, project {server.project}")
        _watch(live.rounds(project.every, backend.wake), console)


def _watch(rounds: Iterator[Round], console: Console) -> None:
    """Print rounds as they come, until a signal stops them."""
    told = ""
    while True:
        with console.warnings():
            made = next(rounds)
        if made.state != "unchanged" and made.message != told:
            told = made.message
            if made.state == "failed":
                complain(made.message)
            else:
                console.wrap(made.message)
                console.result(made.to_dict())


def _server(given: Project, console: Console) -> HttpServer:
    """The server that the options name."""
    from polyfid.labelstudio import HttpServer

    if given.url is None or given.project is None:
        raise typer.BadParameter("give the address by --url and the project by --project")
    key = os.environ.get(given.key_env, "").strip()
    if not key:
        raise typer.BadParameter(
            f"the environment variable {given.key_env} must hold the access token, from the page "
            "Account & Settings in Label Studio",
            param_hint="--key-env",
        )
    try:
        server = HttpServer(given.url, given.project, key)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if server.is_open:
        console.say(
            "Note: http without encryption: others on the way can read the access token; https "
            "would not let them",
            err=True,
        )
    return server


def _options(given: Project, fitting: Fitting) -> LiveOptions:
    """What is learnt, and how."""
    from polyfid.labelstudio import LiveOptions
    from polyfid.tables import Roles

    names = ("features", "exclude", "categorical")
    lists: dict[str, Any] = {name: split(getattr(given, name) or "") for name in names}
    lists["text"] = [column for text in given.text or () for column in split(text)]
    chosen = {name: columns for name, columns in lists.items() if any(columns)}
    try:
        return LiveOptions(
            [who for text in given.trusted or () for who in split(text)],
            given.from_name,
            Roles(**chosen),
            given.crowd,
            given.missing,
            _costs(given.costs),
            make_classifier(fitting).set_params(n_jobs=fitting.jobs),
            fitting.seed,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _costs(text: str | None) -> dict[str, float] | None:
    """Costs of labels by level."""
    if text is None:
        return None
    costs = {}
    for pair in split(text):
        level, _, number = pair.rpartition("=")
        try:
            costs[level.strip()] = float(number)
        except ValueError:
            costs[""] = 0.0
    if "" in costs:
        raise typer.BadParameter(
            f"must be LEVEL=COST,… as in crowd=1,gold=8; got {text!r}", param_hint="--costs"
        )
    return costs
