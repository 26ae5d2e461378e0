"""From new rows of a table to a table of predictions, at once or in blocks."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.decisions import Costs, DecisionRule
from polyfid.rows.source import one_blas_thread
from polyfid.tables.embeddings import Embeddings
from polyfid.tables.encoder import TableEncoder, Unknown, warn_of_unknown
from polyfid.tables.places import (
    columns_of_file,
    file_of,
    no_column,
    raise_all,
    row_numbers,
    with_row_numbers,
)
from polyfid.tables.read import check_rows, open_table, read_table
from polyfid.tables.roles import Roles, match_columns
from polyfid.values import significant

if TYPE_CHECKING:
    from polyfid.suggest import Advice


class TablePredictor:
    """The methods of `TableModel` that predict."""

    encoder: TableEncoder
    classifier: MultiFidelityClassifier
    roles: Roles
    rule: DecisionRule | None

    def with_costs(self, costs: Costs, cost_abstain: float | None = None) -> Self:
        """The same model, which decides by these costs; see `decide`."""
        rule = DecisionRule.of(costs, self.classifier.classes_, cost_abstain)
        return cast(Self, replace(cast(Any, self), rule=rule))

    def predict(
        self,
        frame: Any,
        fidelity: str | None = None,
        id: str | None = None,
        keep: Sequence[str] = (),
    ) -> pd.DataFrame:
        """Predictions of rows of a data frame or file; other columns do not matter.

        Parameters
        ----------
        frame : data frame of pandas or polars, or path
        fidelity : str, optional
            Level to predict; the most trusted one by default.
        id : str, optional
            Column that names the rows; as at fit, or ``id``, if there is such a column.
        keep : sequence of str
            Columns to copy, by name or pattern (see `Roles`). One whose name a column of
            predictions has gets ``_given`` after it.

        Returns
        -------
        DataFrame
            The id, or else ``row``, the number of the row as messages have it; the columns to keep;
            ``label``, ``p_<class>`` for each class, ``latent_mean`` and ``latent_sd``
            (``latent_mean_<class>`` and so on if there are more than two classes), the mean and
            standard deviation of the posterior of the latent function. If the model has costs,
            ``label`` is the decision by them, missing where the model abstains. For each level that
            has numbers, ``value_<level>`` is what it would say, with standard deviation
            ``value_<level>_sd``; of such a ``fidelity`` these two only.
        """
        # Columns to keep are copied as they are written.
        texts = {*self.text_columns(id), *({*keep} - {*self.encoder.kinds_})}
        made, unknown = self._predict(read_table(frame, text=texts), fidelity, id, keep)
        warn_of_unknown(unknown)
        return made

    def decide(
        self,
        frame: Any,
        costs: Costs | None = None,
        cost_abstain: float | None = None,
        fidelity: str | None = None,
        id: str | None = None,
        keep: Sequence[str] = (),
    ) -> pd.DataFrame:
        """`predict` with the decisions of least expected cost as labels.

        ``costs`` and ``cost_abstain`` are those of `MultiFidelityClassifier.decide`; by default
        those of the model.

        Examples
        --------
        >>> import pandas as pd
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.tables import TableModel, read_labelled
        >>> rows = pd.DataFrame({"x": range(20), "label": ["leak"] * 10 + ["ok"] * 10})
        >>> table = read_labelled([], level_files={"expert": rows})
        >>> model = TableModel.fit(table, MultiFidelityClassifier("rbf"))
        >>> new = pd.DataFrame({"x": [0, 10, 19]})
        >>> model.predict(new)["label"].tolist()
        ['leak', 'ok', 'ok']
        >>> model.decide(new, {"fp": 3, "fn": 1})["label"].tolist()
        ['leak', 'leak', 'ok']
        """
        model = self if costs is None else self.with_costs(costs, cost_abstain)
        if model.rule is None:
            raise ValueError("the model has no costs; give costs={'fp': ..., 'fn': ...}")
        if fidelity in self.numeric_levels:
            raise ValueError(
                f"fidelity is {fidelity!r}, a level of numbers, about which nothing is decided; "
                "use predict"
            )
        return model.predict(frame, fidelity, id, keep)

    def suggest(
        self, pool: Any, costs: Mapping[Any, float], *, targets: Any = None, **options: Any
    ) -> pd.DataFrame:
        """The labels to buy next: rows of a table, each at a level, in order of their worth.

        Parameters
        ----------
        pool : data frame of pandas or polars, or path
            Rows that may be labelled; other columns than those of the model do not matter.
        costs : dict
            What a label of each level costs; levels that are not named are not offered.
        targets : data frame or path, optional
            Rows that predictions are wanted for; by default the pool.
        **options
            ``budget``, ``n``, ``strategy``, ``audit`` and others of `polyfid.suggest`. With
            ``strategy="error"`` and ``"boundary"`` the model's own costs of mistakes count unless
            ``error_costs`` are given.

        Returns
        -------
        DataFrame
            The columns of `polyfid.suggest`; ``row`` counts the rows of the table from 0.

        Examples
        --------
        >>> import pandas as pd
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.tables import TableModel, read_labelled
        >>> rows = pd.DataFrame({"x": range(20), "label": ["leak"] * 10 + ["ok"] * 10})
        >>> table = read_labelled([], level_files={"expert": rows})
        >>> model = TableModel.fit(table, MultiFidelityClassifier("rbf"))
        >>> new = pd.DataFrame({"x": [0.5, 9.5, 18.5]})
        >>> model.suggest(new, {"expert": 3}, budget=6)[["level", "total"]]
            level  total
        0  expert    3.0
        1  expert    6.0
        """
        if self.rule is not None and options.get("strategy") in ("error", "boundary"):
            options.setdefault("error_costs", self.rule.pairs(self.classifier.classes_))
        frames = (None if f is None else self._read(f) for f in (pool, targets))
        rows, wanted = (None if f is None else self.to_numbers(f) for f in frames)
        from polyfid.suggest.suggestion import suggest  # which fits and predictions do without

        return suggest(self.classifier, rows, costs, targets=wanted, **options)

    def advise(
        self,
        pool: Any,
        costs: Mapping[Any, float],
        budget: float,
        *,
        targets: Any = None,
        **options: Any,
    ) -> Advice:
        """How to split a budget between levels, and whether to spend it.

        Parameters
        ----------
        pool : data frame of pandas or polars, or path
            Rows that may be labelled; other columns than those of the model do not matter.
        costs, budget
            What a label of each level costs, and what a plan may cost.
        targets : data frame or path, optional
            Rows that predictions are wanted for; by default the pool.
        **options
            ``history``, ``least_gain`` and ``random_state`` of `polyfid.advise`.

        Examples
        --------
        >>> import pandas as pd
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.tables import TableModel, read_labelled
        >>> rows = pd.DataFrame({"x": range(20), "label": ["leak"] * 10 + ["ok"] * 10})
        >>> table = read_labelled([], level_files={"expert": rows})
        >>> model = TableModel.fit(table, MultiFidelityClassifier("rbf"))
        >>> new = pd.DataFrame({"x": [0.5, 9.5, 18.5]})
        >>> model.advise(new, {"expert": 3}, 6).best.labels
        {'expert': 2}
        """
        frames = (None if f is None else self._read(f) for f in (pool, targets))
        rows, wanted = (None if f is None else self.to_numbers(f) for f in frames)
        from polyfid.suggest.budget import advise

        return advise(self.classifier, rows, costs, budget, targets=wanted, **options)

    def _read(self, frame: Any) -> pd.DataFrame:
        return read_table(frame, text={*self.text_columns()})

    def predict_blocks(
        self,
        blocks: Iterable[pd.DataFrame],
        fidelity: str | None = None,
        id: str | None = None,
        n_jobs: int | None = None,
        client: Any = None,
        keep: Sequence[str] = (),
        digits: int | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Predictions of blocks, as of `read_blocks`, one after the other; see `predict`.

        They are made by ``n_jobs`` threads, each of which holds one block (as many as there are
        cores by default), or by the workers of a cluster, if its ``client`` is given. ``digits``
        is the number of significant digits of probabilities and latent values, all by default. In
        the end one warning names all unknown categories.
        """
        unknown: Unknown = Counter()
        with _workers(self, n_jobs, client) as (submit, ahead):
            futures = (submit(block, fidelity, id, keep, digits) for block in blocks)
            waiting = deque(islice(futures, ahead))
            while waiting:
                waiting.extend(islice(futures, 1))
                made, new = waiting.popleft().result()
                unknown.update(new)
                yield made
        warn_of_unknown(unknown)

    def read_blocks(
        self,
        source: Any,
        *,
        id: str | None = None,
        keep: Sequence[str] = (),
        rows: int = 50_000,
        embeddings: Embeddings | None = None,
        **csv: Any,
    ) -> Iterator[pd.DataFrame]:
        """The columns of a table that the model needs or keeps, in blocks; see `iter_blocks`.

        ``embeddings`` of its rows are added, if they are given.
        """
        check_rows(rows)
        with open_table(source, **csv) as table:
            types = dict.fromkeys(_kept(keep, table.head), "str")
            types |= dict.fromkeys(self.encoder.kinds_, "float64")
            types |= dict.fromkeys(self.text_columns(id), "str")
            blocks = table.blocks(types, rows)
            if embeddings is not None:
                blocks = embeddings.add_to_blocks(blocks, self.id_names(id))
            blocks = self._checked(blocks, id)
            named = any(name in table.head.columns for name in self.id_names(id))
            yield from blocks if named else with_row_numbers(blocks)

    def _checked(self, blocks: Iterator[pd.DataFrame], id: str | None) -> Iterator[pd.DataFrame]:
        """The same blocks; an error names columns that they lack."""
        for place, block in enumerate(blocks):
            if not place:  # while the file is open, which standard input is not for long
                self._check_columns(block, id)
            yield block

    def _check_columns(self, frame: pd.DataFrame, id: str | None) -> None:
        """Refuse rows that lack columns, before anything is done with them."""
        if id is not None and id not in frame.columns:
            raise no_column(id, columns_of_file(frame), file_of(frame), " of ids")
        self.encoder.check(frame)

    @property
    def numeric_levels(self) -> list[str]:
        """The levels that have numbers and no classes, least trusted first."""
        return [str(level) for level in self.classifier.levels_ if level in self.roles.value]

    def text_columns(self, id: str | None = None) -> list[str]:
        """Columns that are read as text, whatever they look like."""
        kinds = self.encoder.kinds_
        texts = [name for name, kind in kinds.items() if kind != "number"]
        return [*texts, *(name for name in self.id_names(id) if name not in kinds)]

    def id_names(self, id: str | None = None) -> list[str]:
        """Columns that may name the rows, the preferred one first."""
        if id is not None:
            return [id]
        return [name for name in (self.roles.id, "id") if name and name not in self.encoder.kinds_]

    def _predict(
        self,
        frame: pd.DataFrame,
        fidelity: str | None,
        id: str | None,
        keep: Sequence[str] = (),
        digits: int | None = None,
    ) -> tuple[pd.DataFrame, Unknown]:
        self._check_columns(frame, id)
        x, unknown = self.encoder.encode(frame)
        numeric, columns = self.numeric_levels, dict[str, Any]()
        if fidelity in numeric:
            numeric = [fidelity]
        else:
            columns = self._classes(x, fidelity)
        for level in numeric:
            mean = sd = x[:0, 0]
            if len(frame):
                mean, sd = self.classifier.predict_value(self._named(x), level)
            columns |= {f"value_{level}": mean, f"value_{level}_sd": sd}
        if digits is not None:
            floats = (name for name in columns if name != "label")
            columns |= {name: significant(columns[name], digits) for name in floats}
        made = pd.DataFrame(columns)
        key = next((name for name in self.id_names(id) if name in frame.columns), None)
        if key is None:
            made.insert(0, "row", row_numbers(frame))
        else:
            made.insert(0, "id" if key in made.columns else key, frame[key].to_numpy())
        kept = [name for name in _kept(keep, frame) if name != key]
        for place, name in enumerate(kept, 1):
            given = frame[name].reset_index(drop=True)
            while name in made.columns:
                name += "_given"
            made.insert(place, name, given)
        return made, unknown

    def _classes(self, x: NDArray[np.float64], fidelity: str | None) -> dict[str, Any]:
        """Columns of labels, probabilities, and moments of the latent functions."""
        classes = [str(c) for c in self.classifier.classes_]
        p = np.empty((0, len(classes)))
        mean = variance = p if len(classes) > 2 else p[:, 0]
        if len(x):
            p, mean, variance = self.classifier.predict_all(self._named(x), fidelity)
        columns: dict[str, Any] = {"label": self._labels(p)}
        for name, values in (("p", p), ("latent_mean", mean), ("latent_sd", np.sqrt(variance))):
            if values.ndim == 1:
                columns[name] = values
            else:
                columns |= {f"{name}_{c}": values[:, k] for k, c in enumerate(classes)}
        return columns

    def _labels(self, p: NDArray[np.float64]) -> Any:
        """The most probable classes, or decisions by the model's costs."""
        classes = self.classifier.classes_
        if self.rule is None:
            return classes[np.argmax(p, axis=1)]
        labels = self.rule.labels(self.rule.decide(p), classes)
        # Numbers stay numbers where some are missing.
        return pd.array(labels, "Int64") if np.issubdtype(classes.dtype, np.integer) else labels

    def to_numbers(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Rows of a table as the classifier takes them."""
        self.encoder.check(frame)
        return self._named(self.encoder.transform(frame))

    def _named(self, x: NDArray[np.float64]) -> pd.DataFrame:
        return pd.DataFrame(x, columns=list(self.encoder.names_), copy=False)


def _kept(keep: Sequence[str], frame: pd.DataFrame) -> list[str]:
    """The columns of new rows to copy."""
    columns, role = list(frame.columns), " to keep"
    names = match_columns(keep, columns, file_of(frame), role)
    absent = [name for name in names if name not in columns]
    raise_all([no_column(name, columns, file_of(frame), role) for name in absent])
    return names


@contextmanager
def _workers(
    model: TablePredictor, n_jobs: int | None, client: Any
) -> Iterator[tuple[Callable[..., Any], int]]:
    """What has a thread or a cluster predict a block, and how many blocks may be under way."""
    if client is None:
        jobs = (os.cpu_count() or 1) if n_jobs is None else max(1, n_jobs)
        pool = ThreadPoolExecutor(jobs)
        try:
            with one_blas_thread():  # or threads would start threads
                yield partial(cast(Any, pool.submit), model._predict), jobs
        finally:
            pool.shutdown(cancel_futures=True)
        return
    import dask

    # Blocks travel inside the tasks, so that one that was on a lost worker can be sent again.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
        sent = client.submit(replace, replace(cast(Any, model), table=None), pure=False)
        work = partial(client.submit, TablePredictor._predict, sent, pure=False)
        yield work, 2 * max(sum(client.nthreads().values()), 1)
