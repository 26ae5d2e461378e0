"""A live project over time: round after round, as annotations come in."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal

from polyfid.labelstudio.client import Server, ServerError
from polyfid.labelstudio.live import (
    LiveModel,
    LiveOptions,
    Rank,
    Task,
    TooFewLabelsError,
    is_current,
    learn,
    push,
    version_of,
)
from polyfid.suggest import rank
from polyfid.text import time_in_words

#: Longest pause, in seconds, while a server does not answer.
LONGEST = 300.0
#: What a project counts that changes with tasks and annotations.
COUNTS = (
    "task_number",
    "total_annotations_number",
    "skipped_annotations_number",
    "ground_truth_number",
    "maximum_annotations",
    "label_config",
)
#: How many of the next tasks a round names.
NEXT = 5

State = Literal["fitted", "current", "waiting", "unchanged", "failed"]


@dataclass(frozen=True)
class Round:
    """What a look at a project has led to.

    Attributes
    ----------
    state : str
        ``fitted``: a new model, whose predictions were written. ``current``: the server had
        those of these labels already. ``waiting``: there are too few labels. ``unchanged``:
        nothing is new. ``failed``: something went wrong, and there will be another try.
    message : str
        The same for people.
    version : str or None
        The model version that the project uses now.
    next : list
        Ids of the first tasks of the order.
    rows : dict
        Number of labelled rows of each level.

    Examples
    --------
    >>> from polyfid.labelstudio import Round
    >>> Round("fitted", "A new model", "polyfid live 0123", [7, 3], {"gold": 20}).to_dict()["next"]
    [7, 3]
    """

    state: State
    message: str
    version: str | None = None
    next: Sequence[int | str] = ()
    rows: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {**vars(self), "next": list(self.next), "rows": dict(self.rows)}


class LiveProject:
    """A project that learns from what its annotators do.

    Everything that must last is on the server, so that a second start goes on where the first one
    ended, whenever that was.

    Parameters
    ----------
    server : HttpServer, or another `Server`
    options : LiveOptions
    keep_model : bool
        Fit a model even if the server has its predictions already, to answer with it.
    rank : callable, optional
        Expected gains of labels; `polyfid.suggest.rank`.

    Attributes
    ----------
    latest : LiveModel or None
        The model of the last round that fitted one.

    Examples
    --------
    >>> from polyfid.labelstudio import HttpServer, LiveOptions, LiveProject
    >>> server = HttpServer("http://localhost:8080", 7, "a secret")
    >>> project = LiveProject(server, LiveOptions(["boss@example.org"]))
    >>> project.latest is None  # project.refresh() makes a round
    True
    """

    def __init__(
        self,
        server: Server,
        options: LiveOptions,
        *,
        keep_model: bool = False,
        rank: Rank = rank,
    ) -> None:
        self.server, self.options, self.keep_model, self._rank = server, options, keep_model, rank
        self.latest: LiveModel | None = None
        self._seen: object = None
        self._version: str | None = None

    def refresh(self) -> Round:
        """Look at the project once, and fit and write back if labels have changed."""
        about = self.server.about()
        seen = (self.server.newest(), *(about.get(name) for name in COUNTS))
        # Connecting a backend makes its title the model version of the project, for instance.
        if seen == self._seen and self._version in (None, about.get("model_version")):
            return Round("unchanged", "Nothing is new", self._version)
        tasks = self.server.tasks()
        try:
            made = self._round(about, tasks)
        except TooFewLabelsError as reason:
            made = Round("waiting", str(reason))
        self._seen, self._version = seen, made.version  # only now: what failed is tried again
        return made

    def _round(self, about: Mapping[str, Any], tasks: Sequence[Task]) -> Round:
        if not tasks:
            raise TooFewLabelsError("the project has no tasks yet")
        started = time.monotonic()
        version = version_of(tasks, self.options)
        current = is_current(about, self.server.versions(), version, tasks)
        fitted = self.latest
        if fitted is None or fitted.version != version:
            if current and not self.keep_model:
                return Round("current", "The server has the predictions of these labels", version)
            fitted = learn(tasks, about, self.server.users(), self.options, self._rank)
            self.latest = fitted
        elif current:
            return Round("unchanged", "Labels are the same", version)
        changed = not current and push(self.server, fitted, tasks, about)
        counts = ", ".join(f"{n:,} of {level}" for level, n in fitted.counts.items())
        message = (
            f"{version}: fitted to labelled rows: {counts}, in "
            f"{time_in_words(time.monotonic() - started)}; {len(fitted.order):,} tasks in order"
        )
        if fitted.order:
            message += f", the next one is {fitted.order[0]}"
        if changed:
            message += ". The project draws tasks by uncertainty sampling from now on"
        return Round("fitted", message, version, fitted.order[:NEXT], fitted.counts)

    def rounds(self, every: float, wake: Event | None = None) -> Iterator[Round]:
        """Rounds without end, with pauses of ``every`` seconds, or until ``wake`` is set.

        What is wrong with the options or the key at the first round is raised; later problems are
        reported as rounds that failed, but for a server that refuses.
        """
        wake, failures, good = wake or Event(), 0, False
        while True:
            wake.clear()
            try:
                made = self.refresh()
                failures, good = 0, True
            except ServerError as error:
                if not error.passing:
                    raise
                made, failures = Round("failed", str(error)), failures + 1
            except ValueError as error:  # what annotators have entered cannot be learnt from
                if not good:
                    raise
                made, failures = Round("failed", str(error)), failures + 1
            pause = min(every * 2.0 ** min(failures, 20), max(LONGEST, every))
            if made.state == "failed":
                note = f"{made.message}; trying again in {time_in_words(pause)}"
                made = Round("failed", note)
            yield made
            wake.wait(pause)
