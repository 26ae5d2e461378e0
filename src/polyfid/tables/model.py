"""A classifier together with how tables become its input and its output becomes a table."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from polyfid import model_files
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.learning.progress import Callback
from polyfid.rows.source import one_blas_thread
from polyfid.tables.column import ColumnEncoding, Missing
from polyfid.tables.encoder import TableEncoder, Unknown, warn_of_unknown
from polyfid.tables.labelled import LabelledTable, one_class_error
from polyfid.tables.large import Spool, open_labelled, resumed, temporary_folder
from polyfid.tables.places import columns_of_file, file_of, no_column
from polyfid.tables.read import iter_blocks, read_table
from polyfid.tables.roles import Roles
from polyfid.text import bytes_in_words
from polyfid.values import to_json


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted model that takes tables and gives tables.

    Attributes
    ----------
    encoder : TableEncoder
        How columns become numbers.
    classifier : MultiFidelityClassifier
        Fitted.
    roles : Roles
        What the columns of the training tables meant.
    table : LabelledTable or None
        The training rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.kernels import RBF
    >>> from polyfid.tables import TableModel, read_labelled
    >>> crowd = pd.DataFrame({"x": range(10), "label": ["bad"] * 4 + ["good"] * 6})
    >>> expert = pd.DataFrame({"x": [1, 3, 5, 8], "label": ["bad", "bad", "good", "good"]})
    >>> table = read_labelled([], level_files={"crowd": crowd, "expert": expert})
    >>> model = TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF()))
    >>> new = pd.DataFrame({"id": ["a", "b"], "x": [0, 9]})
    >>> model.predict(new)[["id", "label"]]
      id label
    0  a   bad
    1  b  good
    """

    encoder: TableEncoder
    classifier: MultiFidelityClassifier
    roles: Roles
    table: LabelledTable | None = None

    @classmethod
    def fit(
        cls,
        table: LabelledTable,
        classifier: MultiFidelityClassifier | None = None,
        missing: Missing = "error",
        *,
        callback: Callback | None = None,
    ) -> TableModel:
        """The model of labelled rows.

        A copy of the classifier is fitted; one with ``random_state=0`` by default. `TableEncoder`
        has the choices for ``missing``. ``callback`` receives a `Progress` for each step.
        """
        encoder = TableEncoder(categorical=table.roles.categorical, missing=missing)
        x = encoder.fit(table.features).transform(table.features)
        counted = table.label if table.weight is None else table.label[table.weight > 0.0]
        classes = np.unique(counted).tolist()
        if len(classes) < 2:
            raise one_class_error(classes, table.places.file, table.roles)
        made = cls(encoder, _own_copy(classifier, table.levels), table.roles, table)
        made.classifier.fit(
            made._named(x),
            table.label,
            fidelity=table.fidelity,
            sample_weight=table.weight,
            callback=callback,
        )
        return made

    @classmethod
    def fit_files(
        cls,
        files: Sequence[Any],
        roles: Roles | None = None,
        level_files: Mapping[str, Any] | None = None,
        classifier: MultiFidelityClassifier | None = None,
        missing: Missing = "error",
        *,
        rows: int = 50_000,
        checkpoint: str | os.PathLike[str] | None = None,
        spool: str | os.PathLike[str] | None = None,
        client: Any = None,
        say: Callable[[str], None] | None = None,
        callback: Callback | None = None,
        **csv: Any,
    ) -> TableModel:
        """The model of labelled rows in files, which may be larger than memory.

        The files are read in blocks: text files once for the types of their columns, then all to
        learn what they hold, and again to write all rows as numbers into a temporary folder. From
        there passes of inference read them, by `MultiFidelityClassifier.fit_blocks`. The model
        keeps no rows (``table`` is None).

        Parameters
        ----------
        files, roles, level_files, **csv
            As in `read_labelled`. Errors are the same, too.
        classifier, missing
            As in `fit`. Medians of more than 4 million numbers are those of a sample.
        rows : int
            Rows per block.
        checkpoint : path, optional
            The classifier is saved here after every pass, and now and then while it is tuned. If
            the file exists when the fit begins, and is of the same fit, the fit continues from it.
            In the end it is removed.
        spool : path, optional
            The folder in which to make the temporary one; that for temporary files by default. It
            takes 8 bytes per number and 8 to 16 per row; ``say`` is told how much before.
        client : distributed.Client, optional
            Of a cluster whose workers compute the passes; they must have access to the folder.
        say, callback : callable, optional
            Receive sentences about what is done, and a `Progress` for each block that is read
            ("reading") or written as numbers ("encoding") and for each pass of inference.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.kernels import RBF
        >>> from polyfid.tables import TableModel
        >>> x = np.random.RandomState(0).uniform(-1, 1, 400)
        >>> label, level = np.where(x > 0, "good", "bad"), np.where(x % 0.1 > 0.05, "low", "top")
        >>> rows = pd.DataFrame({"x": x, "label": label, "fidelity": level})  # or a path
        >>> model = MultiFidelityClassifier(1.0 * RBF(), n_inducing=10)
        >>> fitted = TableModel.fit_files([rows], classifier=model, rows=100)
        >>> fitted.predict(pd.DataFrame({"x": [-0.5, 0.5]}))["label"].tolist()
        ['bad', 'good']
        """
        if checkpoint is not None and not Path(checkpoint).parent.is_dir():
            # Now, rather than after the first pass.
            raise ValueError(f"there is no folder for checkpoint {os.fspath(checkpoint)!r}")
        if spool is not None and not Path(spool).is_dir():
            raise ValueError(f"spool must be a folder that is there; got {os.fspath(spool)!r}")
        with (
            open_labelled(files, roles, level_files, rows=rows, **csv) as labelled,
            temporary_folder(spool) as folder,
        ):
            summary = labelled.survey(missing, callback)
            model = resumed(_own_copy(classifier, summary.levels), summary, checkpoint)
            numbers = Spool(folder, summary, rows)
            if say is not None:
                say(
                    f"{summary.n_rows:,} rows are read in blocks of {rows:,}; as numbers they take "
                    f"{bytes_in_words(numbers.size)} in {folder} while the fit lasts"
                )
            numbers.write(labelled, callback)
            before = model.warm_start
            model.set_params(warm_start=before or hasattr(model, "report_"))
            numbers.fit(model, client, checkpoint, callback)
            model.set_params(warm_start=before)
        if checkpoint is not None:
            Path(checkpoint).unlink(missing_ok=True)
        return cls(summary.encoder, model, summary.roles)

    def predict(
        self, frame: Any, fidelity: str | None = None, id: str | None = None
    ) -> pd.DataFrame:
        """Predictions of rows of a data frame or file; other columns do not matter.

        Parameters
        ----------
        frame : data frame of pandas or polars, or path
        fidelity : str, optional
            Level to predict; the most trusted one by default.
        id : str, optional
            Column that names the rows; as at fit, or ``id``, if there is such a column.

        Returns
        -------
        DataFrame
            The id, ``label``, ``p_<class>`` for each class, ``latent_mean`` and ``latent_sd``
            (``latent_mean_<class>`` and so on if there are more than two classes).
        """
        made, unknown = self._predict(read_table(frame, text=self._texts(id)), fidelity, id)
        warn_of_unknown(unknown)
        return made

    def predict_blocks(
        self,
        blocks: Iterable[pd.DataFrame],
        fidelity: str | None = None,
        id: str | None = None,
        n_jobs: int | None = None,
        client: Any = None,
    ) -> Iterator[pd.DataFrame]:
        """Predictions of blocks, as of `read_blocks`, one after the other; see `predict`.

        They are made by ``n_jobs`` threads, each of which holds one block (as many as there are
        cores by default), or by the workers of a cluster, if its ``client`` is given. In the end
        one warning names all unknown categories.
        """
        unknown: Unknown = Counter()
        with _workers(self, n_jobs, client) as (submit, ahead):
            futures = (submit(block, fidelity, id) for block in blocks)
            waiting = deque(islice(futures, ahead))
            while waiting:
                waiting.extend(islice(futures, 1))
                made, new = waiting.popleft().result()
                unknown.update(new)
                yield made
        warn_of_unknown(unknown)

    def read_blocks(
        self, source: Any, *, id: str | None = None, rows: int = 50_000, **csv: Any
    ) -> Iterator[pd.DataFrame]:
        """The columns of a table that the model needs, in blocks; see `iter_blocks`."""
        types = dict.fromkeys(self.encoder.kinds_, "float64")
        types |= dict.fromkeys(self._texts(id), "str")
        for place, block in enumerate(iter_blocks(source, types, rows=rows, **csv)):
            if not place:  # while the file is open, which standard input is not for long
                self._check_columns(block, id)
            yield block

    def _check_columns(self, frame: pd.DataFrame, id: str | None) -> None:
        """Refuse rows that lack columns, before anything is done with them."""
        if id is not None and id not in frame.columns:
            raise no_column(id, columns_of_file(frame), file_of(frame), " of ids")
        self.encoder.check(frame)

    def _texts(self, id: str | None) -> list[str]:
        """Columns that are read as text, whatever they look like."""
        kinds = self.encoder.kinds_
        categories = [name for name, kind in kinds.items() if kind == "category"]
        return [*categories, *(name for name in self._id_names(id) if name not in kinds)]

    def _id_names(self, id: str | None) -> list[str]:
        """Columns that may name the rows, the preferred one first."""
        if id is not None:
            return [id]
        return [name for name in (self.roles.id, "id") if name and name not in self.encoder.kinds_]

    def _predict(
        self, frame: pd.DataFrame, fidelity: str | None, id: str | None
    ) -> tuple[pd.DataFrame, Unknown]:
        self._check_columns(frame, id)
        model, classes = self.classifier, [str(c) for c in self.classifier.classes_]
        x, unknown = self.encoder.encode(frame)
        p = np.empty((0, len(classes)))
        mean = variance = p if len(classes) > 2 else p[:, 0]
        if len(frame):
            p, mean, variance = model.predict_all(self._named(x), fidelity)
        columns: dict[str, Any] = {"label": model.classes_[np.argmax(p, axis=1)]}
        for name, values in (("p", p), ("latent_mean", mean), ("latent_sd", np.sqrt(variance))):
            if values.ndim == 1:
                columns[name] = values
            else:
                columns |= {f"{name}_{c}": values[:, k] for k, c in enumerate(classes)}
        made = pd.DataFrame(columns)
        key = next((name for name in self._id_names(id) if name in frame.columns), None)
        if key is not None:
            made.insert(0, "id" if key in made.columns else key, frame[key].to_numpy())
        return made, unknown

    def training(self) -> tuple[pd.DataFrame, NDArray[Any], NDArray[np.str_]]:
        """The training rows as the classifier got them: X, y and fidelity."""
        if self.table is None:
            raise ValueError(
                "the model has no rows: it was fitted in blocks, or saved without them; give the "
                "tables instead"
            )
        x = self._named(self.encoder.transform(self.table.features))
        return x, self.table.label, self.table.fidelity

    def unfitted(self) -> MultiFidelityClassifier:
        """A classifier with the same parameters."""
        return clone(self.classifier)

    def _named(self, x: NDArray[np.float64]) -> pd.DataFrame:
        return pd.DataFrame(x, columns=list(self.encoder.names_), copy=False)

    def summary(self) -> dict[str, Any]:
        """What the model is, ready for JSON."""
        return {
            **to_json(self.classifier._about()),
            "target": self.roles.target,
            "inputs": self.encoder.kinds_,
            "missing": self.encoder.missing,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `polyfid.load` reads; by custom ``*.polyfid``.

        The file holds the training rows and names of their files, without folders.
        """
        model_files.write(path, "table", self._state(), self.summary())

    def _state(self) -> dict[str, Any]:
        return {
            "columns": self.encoder.columns_,
            "missing": self.encoder.missing,
            "roles": self.roles,
            "classifier": self.classifier._state(),
            "table": None if self.table is None else self.table._state(),
        }

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> TableModel:
        columns, roles, table = state["columns"], state["roles"], state["table"]
        if not isinstance(roles, Roles) or not all(isinstance(c, ColumnEncoding) for c in columns):
            raise TypeError("the file lacks the roles or the encodings of columns")
        encoder = TableEncoder.of(columns, state["missing"])
        classifier = MultiFidelityClassifier._restore(state["classifier"])
        if len(encoder.names_) != classifier.n_features_in_:
            raise ValueError(
                f"the columns become {len(encoder.names_)} numbers per row, and the classifier "
                f"takes {classifier.n_features_in_}"
            )
        table = None if table is None else LabelledTable._restore(table, roles)
        return cls(encoder, classifier, roles, table)


def _own_copy(
    classifier: MultiFidelityClassifier | None, levels: tuple[str, ...]
) -> MultiFidelityClassifier:
    """A classifier to fit that has the parameters of the user's."""
    if classifier is None:
        return MultiFidelityClassifier(random_state=0, levels=levels)
    return clone(classifier).set_params(levels=levels)


@contextmanager
def _workers(
    model: TableModel, n_jobs: int | None, client: Any
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
        sent = client.submit(replace, replace(model, table=None), pure=False)
        work = partial(client.submit, TableModel._predict, sent, pure=False)
        yield work, 2 * max(sum(client.nthreads().values()), 1)
