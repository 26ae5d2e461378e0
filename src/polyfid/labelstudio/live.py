"""A live project: labels are learnt, predictions written back, and tasks put in order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from polyfid._version import __version__
from polyfid.crowd import to_rows
from polyfid.crowd.join import GOLD
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.labelstudio.client import Json, Server
from polyfid.labelstudio.export import Export, LabelStudioError, read_export, read_items
from polyfid.labelstudio.predictions import read_probabilities, result_of
from polyfid.suggest import rank
from polyfid.tables import Roles, TableModel, read_labelled
from polyfid.tables.column import Missing
from polyfid.text import name_few

#: Names of the versions of live models begin with this; other predictions are left alone.
PREFIX = "polyfid live "
#: Label Studio's name for "the lowest score of the current model version comes first".
SAMPLING = "Uncertainty sampling"
#: Relative differences of gains that may come from rounding.
SAME = 1e-9
#: Tags of an interface that show text.
TEXTS = {"Text", "HyperText"}

Crowd = Literal["answer", "majority", "skill"]
Task = Mapping[str, Any]
Rank = Callable[..., NDArray[np.float64]]


class TooFewLabelsError(LabelStudioError):
    """There are too few labels to learn from; more may come.

    Examples
    --------
    >>> from polyfid.labelstudio import LabelStudioError, TooFewLabelsError
    >>> issubclass(TooFewLabelsError, LabelStudioError)
    True
    """


@dataclass(frozen=True)
class LiveOptions:
    """What a live model learns from, and how.

    Attributes
    ----------
    trusted : sequence of str
        E-mail addresses or ids of annotators whose labels are trusted, like ground truth.
    from_name : str, optional
        Name of the ``Choices`` control; needed if the interface has several.
    roles : Roles, optional
        Features, free texts and so on among the fields of the tasks, and nothing else. By default
        all fields are features, and those that the interface shows as text are free text.
    crowd : {"majority", "answer", "skill"}
        How answers of the others become rows, as in `polyfid.crowd.to_rows`.
    missing : {"error", "median", "indicator"}
        What is done about missing values, as in `polyfid.tables.TableEncoder`.
    costs : mapping of level to number, optional
        What a label costs: ``{"crowd": 1, "gold": 8}``, where gold is what the trusted give.
        Levels that are not named are not asked for. By default all cost the same.
    classifier : MultiFidelityClassifier, optional
        Its parameters are used.
    seed : int
        Of all random numbers.

    Examples
    --------
    >>> from polyfid.labelstudio import LiveOptions
    >>> LiveOptions(["boss@example.org"], costs={"crowd": 1, "gold": 8}).costs
    {'crowd': 1, 'gold': 8}
    """

    trusted: Sequence[str] = ()
    from_name: str | None = None
    roles: Roles = field(default_factory=Roles)
    crowd: Crowd = "majority"
    missing: Missing = "error"
    costs: Mapping[str, float] | None = None
    classifier: MultiFidelityClassifier | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.trusted, str):
            raise ValueError("trusted must be a list of annotators, got text; put it in a list")
        for level, cost in (self.costs or {}).items():
            if not np.isfinite(cost) or cost <= 0.0:
                raise ValueError(f"costs: {level!r} must cost more than nothing, got {cost!r}")


@dataclass(frozen=True)
class Interface:
    """The control whose choices are the labels, and the fields that are shown as text."""

    from_name: str
    to_name: str
    texts: tuple[str, ...]

    @classmethod
    def of(cls, about: Mapping[str, Any], from_name: str | None = None) -> Interface:
        """That of a project."""
        controls = about.get("parsed_label_config")
        controls = controls if isinstance(controls, Mapping) else {}
        choices = [name for name, c in controls.items() if c.get("type") == "Choices"]
        name = choices[0] if from_name is None and len(choices) == 1 else from_name
        if name is None or name not in choices:
            raise LabelStudioError(
                "from_name (--from-name) must be a Choices control of the project, "
                f"{name_few(choices) or 'of which there is none'}; got {from_name!r}"
            )
        shown = [thing for c in controls.values() for thing in c.get("inputs") or ()]
        texts = [str(s.get("value")).lstrip("$") for s in shown if s.get("type") in TEXTS]
        return cls(name, str(controls[name]["to_name"][0]), tuple(dict.fromkeys(texts)))


@dataclass(frozen=True, eq=False)
class LiveModel:
    """A model of a project's labels at one time.

    Attributes
    ----------
    version : str
        Depends on the labels, the tasks and the options alone, so that what a server has already
        is not made again.
    model : TableModel
    interface : Interface
    order : list of int or str
        Ids of the tasks that still want labels, the one worth most first.
    counts : dict
        Number of labelled rows of each level.

    Examples
    --------
    Those of `learn`.
    """

    version: str
    model: TableModel
    interface: Interface
    order: list[int | str]
    counts: dict[str, int]
    _worths: NDArray[np.float64]  # in that order
    _worth_of: Callable[[pd.DataFrame], NDArray[np.float64]]

    def predict(self, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """Predictions of tasks as Label Studio takes them, each with one result.

        The score is the place in the order, from 0 for the task to label next to 1; the result
        has the label and its probability.
        """
        items = read_items(tasks)
        ids = items["id"].tolist()
        predicted = self.model.predict(items, id="id")
        labels, values, decided = read_probabilities(predicted, ids, "id")
        places = self._places(tasks, items)
        control = self.interface
        return [
            {
                "task": i,
                "model_version": self.version,
                "score": place,
                "result": [
                    {
                        **result_of(control.from_name, control.to_name, labels[k]),
                        "score": float(row[k]),
                    }
                ],
            }
            for i, place, row, k in zip(ids, places, values, decided.tolist(), strict=True)
        ]

    def _places(self, tasks: Sequence[Task], items: pd.DataFrame) -> list[float]:
        """Scores: 0 for the first task of the order, 1 for those that need no label."""
        last = max(len(self.order) - 1, 1)
        known = {i: k / last for k, i in enumerate(self.order)}
        open_tasks = np.array([wants_label(task) for task in tasks])
        new = open_tasks & ~items["id"].isin([*known]).to_numpy()
        scores = [known.get(i, 1.0) for i in items["id"]]
        if new.any():  # tasks that came after the fit
            worths = self._worth_of(items[new].reset_index(drop=True))
            before = np.searchsorted(-self._worths, -worths * (1.0 + SAME))
            for row, k in zip(np.flatnonzero(new), before, strict=True):
                scores[row] = min(float(k) / last, 1.0)
        return scores


def wants_label(task: Task) -> bool:
    """Whether Label Studio still gives a task to annotators."""
    labelled = task.get("is_labeled")
    return not (bool(task.get("annotations")) if labelled is None else labelled)


def version_of(tasks: Iterable[Task], options: LiveOptions) -> str:
    """The version of the model of these labels: the same labels and options have the same one.

    Examples
    --------
    >>> from polyfid.labelstudio import LiveOptions, version_of
    >>> version_of([{"id": 7, "data": {"tempo": 120.0}}], LiveOptions())[:13]
    'polyfid live '
    """
    names = ("completed_by", "result", "was_cancelled", "ground_truth", "updated_at")
    seen = [
        [
            task.get("id"),
            task.get("data"),
            wants_label(task),
            [[a.get(name) for name in names] for a in task.get("annotations") or ()],
        ]
        for task in tasks
    ]
    about = [__version__, repr(options), sorted(seen, key=lambda one: str(one[0]))]
    text = json.dumps(about, sort_keys=True, default=str)
    return PREFIX + hashlib.sha256(text.encode()).hexdigest()[:12]


def learn(
    tasks: Sequence[Task],
    about: Mapping[str, Any],
    users: Sequence[Mapping[str, Any]],
    options: LiveOptions,
    rank: Rank = rank,
) -> LiveModel:
    """Fit a model to a project's labels, and put its tasks in order.

    Parameters
    ----------
    tasks : sequence of tasks
        All of the project, with their annotations.
    about : mapping
        The project, with its ``parsed_label_config``.
    users : sequence of mappings
        Ids and e-mail addresses of those who may annotate.
    options : LiveOptions
    rank : callable, optional
        Expected gains of labels; `polyfid.suggest.rank`.

    Raises
    ------
    TooFewLabelsError
        If there are no labels of two classes yet.

    Examples
    --------
    >>> from polyfid.labelstudio import LiveOptions, learn
    >>> control = {"type": "Choices", "to_name": ["song"], "inputs": [{"type": "Audio"}]}
    >>> def annotation(label):
    ...     chosen = {"type": "choices", "from_name": "genre", "value": {"choices": [label]}}
    ...     return {"completed_by": 1, "result": [chosen]}
    >>> tasks = [{"id": i, "data": {"tempo": 80.0 + 5 * i}, "annotations": []} for i in range(20)]
    >>> for i in (2, 4, 17, 19):
    ...     tasks[i]["annotations"] = [annotation("waltz" if i < 9 else "polka")]
    >>> about = {"parsed_label_config": {"genre": control}}
    >>> model = learn(tasks, about, [{"id": 1, "email": "boss@example.org"}], LiveOptions(["1"]))
    >>> len(model.order), model.counts
    (16, {'gold': 4})
    >>> first = model.predict(tasks)[0]
    >>> first["result"][0]["value"], 0.0 <= first["score"] <= 1.0
    ({'choices': ['waltz']}, True)
    """
    interface = Interface.of(about, options.from_name)
    export = _read(tasks, interface, users, options)
    table = _rows(export, interface, options)
    classifier = options.classifier or MultiFidelityClassifier(random_state=options.seed)
    model = TableModel.fit(
        table, clone(classifier).set_params(levels=table.levels), options.missing
    )
    items, levels = export.items, [str(level) for level in table.levels]
    costs = _costs(options, levels)
    aim = model.to_numbers(items)  # whose predictions are to become better

    def worth_of(some: pd.DataFrame) -> NDArray[np.float64]:
        """The largest expected gain per cost of a label of each item."""
        pool, best = model.to_numbers(some), np.full(len(some), -np.inf)
        for level, cost in costs.items():
            gain = rank(model.classifier, pool, level, targets=aim, random_state=options.seed)
            # What a level has said already is not worth asking again.
            repeated = some["id"].astype(str).isin(_labelled(export, level)).to_numpy()
            best = np.maximum(best, np.where(repeated, -np.inf, np.asarray(gain) / cost))
        return best

    left = np.array([wants_label(task) for task in tasks])
    candidates = items[left].reset_index(drop=True)
    worths = worth_of(candidates) if len(candidates) else np.empty(0)
    best_first = np.argsort(-worths, kind="stable")
    counts = {level: int(np.sum(table.fidelity == level)) for level in levels}
    order = candidates["id"].to_numpy(dtype=object)[best_first].tolist()
    version = version_of(tasks, options)
    return LiveModel(version, model, interface, order, counts, worths[best_first], worth_of)


def _read(
    tasks: Sequence[Task],
    interface: Interface,
    users: Sequence[Mapping[str, Any]],
    options: LiveOptions,
) -> Export:
    """Items, answers and trusted labels."""
    made = [a for task in tasks for a in task.get("annotations") or ()]
    chosen = [a for a in made if not a.get("was_cancelled") and _labels_of(a, interface)]
    if len({label for a in chosen for label in _labels_of(a, interface)}) < 2:
        raise TooFewLabelsError(
            f"{len(chosen)} annotations so far, not of two different labels; waiting for more"
        )
    present = {str(_id_of(a.get("completed_by"))) for a in chosen}
    trusted = [who for who in _ids(options.trusted, users) if who in present]
    by_id = [
        {
            **task,
            "annotations": [
                {**a, "completed_by": _id_of(a.get("completed_by"))}
                for a in task.get("annotations") or ()
            ],
        }
        for task in tasks
    ]
    return read_export(by_id, from_name=interface.from_name, trusted=trusted)


def _labels_of(annotation: Mapping[str, Any], interface: Interface) -> list[str]:
    """The choices of an annotation for the control."""
    return [
        str(choice)
        for entry in annotation.get("result") or ()
        if entry.get("from_name") == interface.from_name
        for choice in (entry.get("value") or {}).get("choices") or ()
    ]


def _id_of(who: Any) -> Any:
    return who.get("id") if isinstance(who, Mapping) else who


def _ids(trusted: Sequence[str], users: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ids of people who are named by id or e-mail address; they need not have annotated yet."""
    ids = {str(user.get("email", "")).lower(): str(user.get("id")) for user in users}
    known = [str(who).strip().lower() for who in trusted]
    if absent := [who for who in known if who not in ids and who not in ids.values()]:
        raise LabelStudioError(
            f"trusted (--trusted): the server knows nobody called {name_few(absent)}; there is "
            f"{name_few(sorted(ids))}"
        )
    return [ids.get(who, who) for who in known]


def _rows(export: Export, interface: Interface, options: LiveOptions) -> Any:
    """Labelled rows of the export."""
    if export.answers.empty and export.gold is not None:  # the others have not answered yet
        rows = to_rows(export.items, export.gold.assign(worker=GOLD)).drop(columns="worker")
        rows["fidelity"] = rows["fidelity"].cat.rename_categories([GOLD])
    else:
        how: Any = {"level": options.crowd, "random_state": options.seed}
        rows = to_rows(export.items, export.answers, export.gold, **how)
    given = options.roles
    shown = [name for name in interface.texts if name in export.items]
    if given.features is not None:
        shown = [name for name in shown if name in given.features]
    text = given.text or tuple(n for n in shown if n not in {*given.exclude, *given.categorical})
    return read_labelled([rows], replace(given, id="id", weight="weight", text=text))


def _costs(options: LiveOptions, levels: Sequence[str]) -> dict[str, float]:
    """The cost of a label at each level that is asked for."""
    if options.costs is None:
        return dict.fromkeys(levels, 1.0)
    everything = {*levels, GOLD, *(["crowd"] if options.crowd != "skill" else [])}
    if unknown := {*options.costs} - everything:
        raise LabelStudioError(
            f"costs (--costs): there is no level {name_few(sorted(unknown))}; levels are "
            f"{name_few(sorted(everything))}"
        )
    # A level that nobody has given labels of yet cannot be judged.
    costs = {level: float(c) for level, c in options.costs.items() if level in levels}
    return costs or dict.fromkeys(levels, 1.0)


def _labelled(export: Export, level: str) -> set[str]:
    """Ids of the items that have a label at a level."""
    frame = export.gold if level == GOLD else export.answers
    return set() if frame is None else {*frame["task"].astype(str)}


def push(server: Server, made: LiveModel, tasks: Sequence[Task], about: Mapping[str, Any]) -> bool:
    """Write predictions and order; whether the project drew its tasks in another way before."""
    server.delete_predictions(made.version)  # what a try that was stopped has left
    server.add_predictions(made.predict(tasks))
    # Label Studio looks at predictions of the project's version only, so that the new order holds
    # as a whole or not at all. It accepts a version that has predictions.
    other = about.get("sampling") != SAMPLING
    server.change(model_version=made.version, **({"sampling": SAMPLING} if other else {}))
    for version in server.versions():
        if str(version).startswith(PREFIX) and version != made.version:
            server.delete_predictions(version)
    return other


def is_current(about: Mapping[str, Any], versions: Json, version: str, tasks: Any) -> bool:
    """Whether a server has the predictions of a version already, and uses them."""
    used = about.get("model_version") == version and about.get("sampling") == SAMPLING
    return used and versions.get(version) == len(tasks)
