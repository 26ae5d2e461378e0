"""A study: labels are asked for and told, batch after batch, and one file remembers all of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.constraints import read_numeric, read_whole
from polyfid.suggest.advice import Advice, Promise
from polyfid.suggest.budget import advise
from polyfid.suggest.history import Record, as_history, expected_loss, held_out_losses
from polyfid.suggest.ledger import Ledger, Suggestion, Told
from polyfid.suggest.named_rows import NamedRows
from polyfid.suggest.next_batch import NextBatch, Offer
from polyfid.suggest.study_file import SETTINGS, StudyFile, read_levels
from polyfid.suggest.study_rows import StudyRows
from polyfid.suggest.told_rows import OWN, AnswerReader

#: Rows at which the expected loss is computed; of more targets a sample.
_N_EXPECTED = 5000
#: What a batch delivered is not known better than this: another one would deliver something else.
LEAST_ERROR = 0.03


@dataclass(frozen=True)
class _Fit:
    """A fitted model, and how many answers and which labels it is of."""

    labels: tuple[Any, ...]
    model: MultiFidelityClassifier
    record: Record


class Study(StudyFile):
    """Asks which labels to buy next, takes answers, and refits: until more is not worth its price.

    Parameters
    ----------
    pool : array or data frame of shape (n_rows, n_features), optional
        Rows that may be labelled. Give it, or ``space``.
    levels : sequence, optional
        Names of the levels, least trusted first; by default those of ``costs``, in their order.
    costs : dict
        What a label of each level costs. Levels without a cost are not asked for, but labels of
        them may be told.
    target : array or data frame, optional
        Rows that predictions are wanted for; the pool, or all of the space, by default.
    space : dict, optional
        Instead of a pool, a box: a name and (low, high) for each feature. Suggestions are then
        points anywhere in it.
    path : path, optional
        A file that always holds the study as it is: `ask` and `tell` write it, all or nothing,
        before they return. It must not exist; `Study.load` goes on with one.
    model : MultiFidelityClassifier, optional
        What is fitted to the labels; its ``levels`` are set. By default one with default settings.
        Answers at its ``numeric_levels`` are numbers.
    encoder : transformer, optional
        Turns rows of a frame into numbers; it is fitted to the pool. By default a
        `polyfid.tables.TableEncoder` of all columns but id, label, fidelity, weight, worker,
        annotator and audit. A study in a file needs a TableEncoder.
    strategy, error_costs, threshold
        As in `polyfid.suggest`.
    audit : float
        Share of the trusted labels that are of random rows, which scores are from.
    random_state : int, optional
        Seed of everything random.

    Attributes
    ----------
    model_ : MultiFidelityClassifier
        Fitted to all labels told so far; fitted anew when it is asked for after new labels.
    history_ : list of dict
        One per batch, and one for the study as it is if labels came since: ``batch`` (None for the
        latter), labels ``asked`` and ``answered``, the batch's ``cost``, the money ``spent`` before
        it, ``labels`` per level, the ``expected`` log-loss at the targets, the ``held_out``
        log-loss (see Notes) from ``n_held_out`` rows, and what the batch ``promised`` (the gains of
        answered suggestions) and ``delivered``: how far held-out losses of the same rows fell
        until the next entry, with its standard error ``delivered_error``, and
        ``delivered_expected``, how far the expected one fell.

    Notes
    -----
    Held-out losses are those of audit rows (of all trusted rows, while fewer than 8 are audit
    rows): each is predicted without its own label, which goes out of the posterior in closed form,
    while hyper-parameters stay. So they cost no further fits.

    Until labels of two classes are told, `ask` spreads suggestions over the features, and as much
    money on each level. Fits with inducing points go on from the last one; exact fits begin anew.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.kernels import RBF
    >>> from polyfid.suggest import Study
    >>> pool = np.random.RandomState(0).uniform(-2, 2, (100, 1))
    >>> model = MultiFidelityClassifier(1.0 * RBF())
    >>> study = Study(pool, costs={"crowd": 1, "expert": 5}, model=model, random_state=0)
    >>> for _ in range(2):
    ...     batch = study.ask(budget=20)
    ...     told = study.tell(batch.assign(label=batch["x0"] > 0))
    >>> [record["spent"] for record in study.history_]
    [0.0, 20.0, 40.0]
    """

    def __init__(
        self,
        pool: Any = None,
        levels: Sequence[Any] | None = None,
        costs: Mapping[Any, float] | None = None,
        *,
        target: Any = None,
        space: Mapping[str, Any] | None = None,
        path: str | os.PathLike[str] | None = None,
        model: MultiFidelityClassifier | None = None,
        encoder: Any = None,
        strategy: str = "epig",
        audit: float = 0.2,
        error_costs: Any = None,
        threshold: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.levels, self.costs = read_levels(levels, costs)
        self.strategy, self.audit = strategy, audit
        self.error_costs, self.threshold = error_costs, threshold
        self.model = MultiFidelityClassifier(random_state=0) if model is None else model
        if not isinstance(self.model, MultiFidelityClassifier):
            raise ValueError(
                f"model must be a MultiFidelityClassifier, got {type(self.model).__name__}"
            )
        if random_state is None:
            random_state = int(np.random.SeedSequence().generate_state(1)[0])
        self.random_state = read_whole("random_state", random_state, 0)
        read_numeric(self.model.numeric_levels, self.levels)
        self._rows = StudyRows.of(pool, space, target, encoder)
        self._ledger = Ledger()
        self._records: list[Record] = []
        self._path: str | os.PathLike[str] | None = None
        self._revision = 0
        self._prepare()
        if path is not None:
            if os.path.exists(path):
                raise ValueError(
                    f"path: there is a file {os.fspath(path)} already; Study.load(path) goes on "
                    "with the study in it"
                )
            self.save(path)
            self._path = path

    def _prepare(self) -> None:
        """Set what is not stored."""
        self._fit: _Fit | None = None
        self._estimator = clone(self.model).set_params(levels=list(self.levels), warm_start=True)

    # ------------------------------------------------------------- ask and tell

    def ask(
        self, budget: float | None = None, *, n: int | None = None, repeat: bool = False
    ) -> Any:
        """The labels to buy next, as a table that is ready to be filled in.

        Parameters
        ----------
        budget : float, optional
            The money to spend; give it, or ``n``, or both.
        n : int, optional
            The most labels.
        repeat : bool
            Also ask for labels that are there already, as repetitions.

        Returns
        -------
        data frame
            Of the kind of the pool, else of pandas: ``suggestion`` (its number), ``row`` (its
            number in the study; positions in the pool come first), the columns of
            `polyfid.suggest`, those of the pool, and ``label``, which is empty. Rows that wait for
            an answer are not suggested again; see `forget`.
        """
        chosen = self._next(budget, n, repeat)
        batch, first = self._ledger.n_batches, len(self._ledger.suggestions)
        table = self._frame(chosen, first)
        if chosen.points is not None:
            self._rows.append(chosen.points)
        record = self._record_now(batch, len(chosen), float(chosen.cost.sum()))
        picks = zip(chosen.row, chosen.level, chosen.gain, chosen.audit, strict=True)
        self._ledger.suggestions += [
            Suggestion(int(row), int(level), batch, float(gain), bool(audit))
            for row, level, gain, audit in picks
        ]
        self._records.append(record)
        self._write()
        return table

    def preview(
        self, budget: float | None = None, *, n: int | None = None, repeat: bool = False
    ) -> Any:
        """What `ask` would ask now; the study does not remember it, and nothing is to be told."""
        chosen = self._next(budget, n, repeat)
        return self._rows.to_frame({**chosen.columns(), **self._own_columns(chosen)})

    def tell(self, rows: Any, labels: Any = None, level: Any = None, audit: Any = None) -> Told:
        """Take answers: late ones, repeated ones, and some that nobody asked for.

        Parameters
        ----------
        rows : data frame, or array-like
            A table that `ask` gave, with labels filled in; ``labels`` and ``level`` are then its
            columns. Rows without a label wait further, and a table may be told again when more
            labels are there. Or numbers of rows (n,), or features (n, d) of rows, which need not
            be in the pool.
        labels : array-like of shape (n,), optional
            None, NaN and "" are no labels. At numeric levels they are numbers.
        level : level, or array-like of shape (n,), optional
        audit : bool, or array-like of shape (n,), optional
            Marks of rows that were drawn at random, of answers that were not asked for.

        Returns
        -------
        Told
            What became of the answers; print it. An answer to a suggestion that has one already
            changes nothing if it is the same, and replaces it if it is not. Other labels of a row
            that has some of that level are repetitions, and are kept as such.
        """
        reader = AnswerReader(self._ledger, self.levels, self._numeric, self._rows)
        answers = reader.read(rows, labels, level, audit)
        if reader.new is not None:
            self._rows.append(reader.new)
        told = self._ledger.record(answers)
        self._write()
        return told

    def forget(self) -> int:
        """Withdraw all suggestions that wait for an answer; return how many there were.

        Their rows may be suggested again. Answers to them are still taken.
        """
        pending = self._ledger.pending
        self._ledger.withdrawn |= {*pending}
        self._write()
        return len(pending)

    def _next(self, budget: float | None, n: int | None, repeat: bool) -> NextBatch:
        """The next batch; nothing is remembered of it."""
        fit = self._current()
        key = [self.random_state, self._ledger.n_batches, len(self)]
        offer = Offer(
            levels=self.levels,
            costs=self.costs,
            budget=budget,
            n=n,
            repeat=repeat,
            how={name: getattr(self, name) for name in SETTINGS},
            seed=int(np.random.SeedSequence(key).generate_state(1)[0]),
        )
        labelled = np.zeros((len(self._rows), len(self.levels)), dtype=bool)
        for answer in self._ledger.answers:
            labelled[answer.row, answer.level] = True
        pending = np.zeros(len(self._rows), dtype=bool)
        pending[[row for row, _ in self._ledger.waiting_for()]] = True
        model = None if fit is None else fit.model
        return offer.next(self._rows, model, labelled, pending, self._targets)

    @property
    def _targets(self) -> Array:
        return self._rows.target_x(self.random_state)

    def _frame(self, chosen: NextBatch, first: int) -> Any:
        """A batch as a table to fill in."""
        numbers = list(range(first, first + len(chosen)))
        own = self._own_columns(chosen)
        columns = {"suggestion": numbers, **chosen.columns(), **own, "label": [None] * len(chosen)}
        return self._rows.to_frame(columns)

    def _own_columns(self, chosen: NextBatch) -> dict[str, list[Any]]:
        """The columns of the rows of a batch; names that a batch has itself get an end."""
        there = self._rows.named
        rows = there if chosen.points is None else there.below(chosen.points)
        return {
            f"{name}_given" if name in OWN else name: values[chosen.row].tolist()
            for name, values in rows.columns.items()
        }

    # ------------------------------------------------------------- what is learnt

    @property
    def model_(self) -> MultiFidelityClassifier:
        return self._needed().model

    def predict_proba(self, rows: Any) -> Array:
        """Probabilities of the classes of ``model_`` for rows like those of the pool."""
        x = self._rows.numbers(NamedRows.of("rows", rows, self._rows.features))
        return self._needed().model.predict_proba(self._rows.input(x))

    def labelled(self) -> Any:
        """All labels told as a table: the rows' columns, ``label``, ``fidelity`` and ``audit``.

        It is what `polyfid.tables.read_labelled`, and so ``polyfid fit`` and ``report``, take.
        Numbers of numeric levels have columns of their own, which ``value_columns`` names.
        """
        answers, labels = self._ledger.answers, self._ledger.labels()
        frame = self._rows.named.take(np.array([a.row for a in answers], dtype=np.intp)).to_pandas()
        for name, column in self.value_columns.items():
            own = np.array([self.levels[a.level] == name for a in answers], dtype=bool)
            labels = labels.astype(object)
            frame[column] = np.where(own, labels, np.nan).astype(float)
            labels[own] = None
        frame["label"] = labels
        frame["fidelity"] = [self.levels[a.level] for a in answers]
        frame["audit"] = [a.audit for a in answers]
        return frame

    def _needed(self) -> _Fit:
        fit = self._current()
        if fit is None:
            raise ValueError(
                f"there is no model before labels of two classes are told; {len(self)} labels are "
                "there"
            )
        return fit

    def __len__(self) -> int:
        """The number of labels that were told."""
        return len(self._ledger.answers)

    def _current(self) -> _Fit | None:
        """The fit to all labels; None before there are two classes."""
        label, answers = self._ledger.labels(), tuple(self._ledger.answers)
        level = np.array([a.level for a in answers], dtype=np.intp)
        if len({*label[~np.isin(level, self._numeric)].tolist()}) < 2:
            return None
        if self._fit is None or self._fit.labels != answers:
            row = np.array([a.row for a in answers], dtype=np.intp)
            x, named = self._rows.x[row], np.array(self.levels, dtype=object)[level]
            with warnings.catch_warnings():  # of what every study begins with
                for words in ("the top level .* has no row", "there are no rows at the top level"):
                    warnings.filterwarnings("ignore", words, UserWarning)
                model = self._estimator.fit(self._rows.input(x), label, fidelity=named)
            self._fit = _Fit(answers, model, self._record_of(model, x, label, level))
        return self._fit

    def _record_of(
        self, model: MultiFidelityClassifier, x: Array, label: NDArray[Any], level: Indices
    ) -> Record:
        """How the study does now."""
        audit = np.array([a.audit for a in self._ledger.answers], dtype=bool)
        targets = self._targets
        if len(targets) > _N_EXPECTED:
            rng = np.random.RandomState(self.random_state % 2**32)  # the same ones each time
            targets = targets[np.sort(rng.choice(len(targets), _N_EXPECTED, replace=False))]
        return Record(
            batch=-1,
            asked=0,
            cost=0.0,
            spent=self.spent,
            labels=self.counts,
            expected=expected_loss(model.predict_proba(self._rows.input(targets))),
            held_out=held_out_losses(model, x, label, level, audit),
        )

    def _record_now(self, batch: int, asked: int, cost: float) -> Record:
        fit = self._current()
        now = None if fit is None else fit.record
        return Record.before(batch, asked, cost, self.spent, self.counts, now)

    # ------------------------------------------------------------- progress

    @property
    def history_(self) -> list[dict[str, Any]]:
        records, fit = list(self._records), self._current()
        if fit is not None and (not records or records[-1].n_labels < len(self)):
            records.append(fit.record)
        return as_history(records, self._ledger)

    def should_stop(
        self,
        value: float,
        *,
        budget: float | None = None,
        n: int | None = None,
        n_targets: int | None = None,
    ) -> bool:
        """Whether the next batch is expected to gain less than its price.

        A batch is worth its expected gain (nats of log-loss per target row, as its suggestions
        have it) times the number of rows to be predicted times ``value``, and its price is the sum
        of its costs. Gains that are expected of other strategies than "epig" are in their units.

        Parameters
        ----------
        value : float
            What one nat of log-loss less on one row is worth, in the unit of the costs. To be sure
            of a label that was a toss-up is 0.69 nats.
        budget, n
            Of that batch; see `ask`.
        n_targets : int, optional
            How many rows are to be predicted; by default the number of target rows. A study of a
            space needs it.
        """
        if not (np.isfinite(value) and value > 0.0):
            raise ValueError(f"value must be a number above 0, got {value!r}")
        n_targets = self._rows.n_targets if n_targets is None else n_targets
        if n_targets is None:
            raise ValueError(
                "n_targets is needed, since the target is a space: give the number of points that "
                "are to be predicted"
            )
        n_targets = read_whole("n_targets", n_targets, 1)
        if self._current() is None:
            return False
        chosen = self._next(budget, n, repeat=False)
        return bool(chosen.gain.sum() * n_targets * value < chosen.cost.sum())

    def advise(self, budget: float, *, least_gain: float = 0.005) -> Advice:
        """How to split a budget between levels; see `polyfid.advise`.

        Gains are rescaled by what the study's batches promised and delivered.

        Parameters
        ----------
        budget : float
            The money that a plan may cost.
        least_gain : float
            A fall of the log-loss that is worth the budget.
        """
        model, targets = self._needed().model, self._rows.input(self._targets)
        pool = targets
        if self._rows.box is None:
            pool = self._rows.input(self._rows.x[: self._rows.n_pool])
        history = [
            Promise(
                record["cost"],
                record["promised"],
                record["delivered"],
                max(record["delivered_error"], LEAST_ERROR),
            )
            for record in self.history_
            if record["promised"] is not None and record["delivered"] is not None
        ]
        return advise(
            model,
            pool,
            self.costs,
            budget,
            targets=targets,
            history=history,
            least_gain=least_gain,
            random_state=self.random_state % 2**32,
        )

    def plot(self, ax: Any = None) -> Any:
        """Losses and gains over the money spent; see `polyfid.plots.StudyDisplay`."""
        return import_module("polyfid.plots.study_display").StudyDisplay.from_study(self, ax=ax)

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} of {name}" for name, n in self.counts.items())
        return f"<Study: labels {counts}; {self.spent:g} spent; {self.n_pending} pending>"
