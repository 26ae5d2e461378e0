"""A classifier together with how tables become its input and its output becomes a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from polyfid import model_files as persistence
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.learning.progress import Callback
from polyfid.tables import LabelledTable, Origin, Recipe, Roles, iter_blocks, read_table
from polyfid.tables.column import Missing
from polyfid.tables.errors import no_column
from polyfid.tables.files import one_class
from polyfid.tables.origin import columns_behind
from polyfid.tables.recipe import Unseen
from polyfid.tables.stored import restored_table, table_state
from polyfid.tabular.files import Step, fit_files, own_copy
from polyfid.tabular.ordered import in_order


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted model that takes tables and gives tables.

    Attributes
    ----------
    recipe : Recipe
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
    >>> from polyfid.tables import read_labelled
    >>> from polyfid.tabular import TableModel
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

    recipe: Recipe
    classifier: MultiFidelityClassifier
    roles: Roles
    table: LabelledTable | None = None

    @classmethod
    def fit(
        cls,
        table: LabelledTable,
        classifier: MultiFidelityClassifier | None = None,
        missing: Missing = "error",
        callback: Callback | None = None,
    ) -> TableModel:
        """The model of labelled rows.

        Parameters
        ----------
        table : LabelledTable
        classifier : MultiFidelityClassifier, optional
            A copy is fitted; one with ``random_state=0`` by default.
        missing : {"error", "median", "indicator"}
            What to do about missing values; see `Recipe.learn`.
        callback : callable, optional
            As in `MultiFidelityClassifier.fit`.
        """
        recipe = Recipe.learn(table.features, categorical=table.roles.categorical, missing=missing)
        model = own_copy(classifier, table.levels)
        _check_classes(table)
        x = _named(recipe(table.features), recipe)
        given = {"fidelity": table.fidelity, "sample_weight": table.weight}
        model.fit(x, table.label, **given, callback=callback)
        return cls(recipe, model, table.roles, table)

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
        step: Step | None = None,
        callback: Callback | None = None,
        **csv: Any,
    ) -> TableModel:
        """The model of labelled rows in files, which may be larger than memory.

        The files are looked at block after block, text files twice, and read once more to write
        all rows as numbers into a temporary folder. From there passes of inference read them, by
        `MultiFidelityClassifier.fit_blocks`. The model keeps no rows (``table`` is None).

        Parameters
        ----------
        files, roles, level_files, **csv
            As in `read_labelled`. Errors are the same, too.
        classifier, missing
            As in `fit`. Medians are exact for up to 4 million numbers in all columns together,
            beyond that those of a sample.
        rows : int
            Of a block.
        checkpoint : path, optional
            After every pass the classifier as it is then is saved here. If the file is there when
            the fit begins, and of the same fit, it goes on from there. In the end it is removed.
        spool : path, optional
            The folder in which to make the temporary one; that for temporary files by default. It
            takes 8 bytes a number and 8 to 16 a row, which is said (``say``) before.
        client : distributed.Client, optional
            Of a cluster whose workers make the passes; they must see the folder.
        say : callable, optional
            Takes sentences about what is done.
        step : callable, optional
            Takes the stage of the work, the rows done, and how many there are if that is known.
        callback : callable, optional
            As in `MultiFidelityClassifier.fit_blocks`.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import numpy as np
        >>> import pandas as pd
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.kernels import RBF
        >>> from polyfid.tabular import TableModel
        >>> x = np.random.RandomState(0).uniform(-1, 1, 400)
        >>> label, level = np.where(x > 0, "good", "bad"), np.where(x % 0.1 > 0.05, "low", "top")
        >>> rows = pd.DataFrame({"x": x, "label": label, "fidelity": level})
        >>> model = MultiFidelityClassifier(1.0 * RBF(), n_inducing=10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "rows.csv")
        ...     rows.to_csv(path, index=False)
        ...     fitted = TableModel.fit_files([path], classifier=model, rows=100)
        >>> fitted.predict(pd.DataFrame({"x": [-0.5, 0.5]}))["label"].tolist()
        ['bad', 'good']
        """
        found, model = fit_files(
            files,
            roles,
            level_files,
            classifier,
            missing,
            rows=rows,
            checkpoint=checkpoint,
            spool=spool,
            client=client,
            say=say,
            step=step,
            callback=callback,
            **csv,
        )
        return cls(found.recipe, model, found.roles)

    # --------------------------------------------------------------- predicting

    def predict(
        self, frame: Any, fidelity: str | None = None, id: str | None = None
    ) -> pd.DataFrame:
        """Predictions of rows.

        Parameters
        ----------
        frame : data frame of pandas or polars, or path
            With the features; other columns and another order do not matter.
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
        made, unseen = self._predict(read_table(frame, text=self._texts(id)), fidelity, id)
        unseen.warn()
        return made

    def predict_blocks(
        self,
        blocks: Iterable[pd.DataFrame],
        fidelity: str | None = None,
        id: str | None = None,
        n_jobs: int | None = None,
        client: Any = None,
    ) -> Iterator[pd.DataFrame]:
        """Predictions of block after block; see `predict`.

        Parameters
        ----------
        blocks : iterable of DataFrame
            As of `read_blocks`.
        fidelity, id
            As in `predict`.
        n_jobs : int, optional
            Threads, each of which holds one block; as many as there are cores by default.
        client : distributed.Client, optional
            Of a cluster whose workers predict, instead of threads here.

        Yields
        ------
        DataFrame
            In the order of the blocks. In the end there is one warning of unknown categories.
        """
        jobs = (os.cpu_count() or 1) if n_jobs is None else max(1, n_jobs)
        unseen = Unseen({})
        predicting = Predicting(fidelity, id)
        if client is None:
            parts = in_order(partial(predicting, self), blocks, jobs)
        else:
            from polyfid.tabular import cluster

            bare = replace(self, table=None)
            parts = cluster.in_order(client, predicting, bare, blocks)
        for made, new in parts:
            unseen = Unseen.total([unseen, new])
            yield made
        unseen.warn()

    def read_blocks(
        self, source: Any, *, id: str | None = None, rows: int = 50_000, **csv: Any
    ) -> Iterator[pd.DataFrame]:
        """The columns of a table that the model needs, in blocks; see `iter_blocks`.

        Parameters
        ----------
        source : path, "-", or data frame
        id : str, optional
            As in `predict`.
        rows : int
            Of a block.
        **csv
            ``delimiter``, ``decimal`` and ``encoding`` of `read_table`.
        """
        types = {**self.recipe.types, **dict.fromkeys(self._texts(id), "str")}
        for place, block in enumerate(iter_blocks(source, types, rows=rows, **csv)):
            if not place:  # while the file is open, which standard input is not for long
                self._check_columns(block, id)
            yield block

    def _check_columns(self, frame: pd.DataFrame, id: str | None) -> None:
        """Refuse rows that lack columns, before anything is done with them."""
        if id is not None and id not in frame.columns:
            raise no_column(id, columns_behind(frame), Origin.of(frame).name, " of ids")
        self.recipe.check(frame)

    def _texts(self, id: str | None) -> list[str]:
        """Columns that are read as text, whatever they look like."""
        types = self.recipe.types
        features = [name for name, kind in types.items() if kind == "str"]
        return [*features, *(name for name in self._id_names(id) if name not in types)]

    def _id_names(self, id: str | None) -> list[str]:
        """Columns that may name the rows, the preferred one first."""
        if id is not None:
            return [id]
        features = {column.name for column in self.recipe.columns}
        return [
            name for name in dict.fromkeys([self.roles.id, "id"]) if name and name not in features
        ]

    def _predict(
        self, frame: pd.DataFrame, fidelity: str | None, id: str | None
    ) -> tuple[pd.DataFrame, Unseen]:
        self._check_columns(frame, id)
        model, classes = self.classifier, [str(c) for c in self.classifier.classes_]
        x, unseen = self.recipe.encode(frame)
        if len(frame):
            rows = _named(x, self.recipe)
            p, mean, variance = model.predict_all(rows, fidelity)
        else:
            p = np.empty((0, len(classes)))
            mean = variance = np.empty(0 if len(classes) == 2 else (0, len(classes)))
        columns: dict[str, Any] = {"label": model.classes_[np.argmax(p, axis=1)]}
        columns |= {f"p_{c}": p[:, k] for k, c in enumerate(classes)}
        for name, values in (("latent_mean", mean), ("latent_sd", np.sqrt(variance))):
            parts = [values] if values.ndim == 1 else list(values.T)
            names = [name] if values.ndim == 1 else [f"{name}_{c}" for c in classes]
            columns |= dict(zip(names, parts, strict=True))
        made = pd.DataFrame(columns)
        key = next((name for name in self._id_names(id) if name in frame.columns), None)
        if key is not None:
            made.insert(0, "id" if key in made.columns else key, frame[key].to_numpy())
        return made, unseen

    # ------------------------------------------------------------------ looking

    def training(self) -> tuple[pd.DataFrame, NDArray[Any], NDArray[np.str_]]:
        """The training rows as the classifier saw them: X, y and fidelity."""
        table = self._table()
        return _named(self.recipe(table.features), self.recipe), table.label, table.fidelity

    def unfitted(self) -> MultiFidelityClassifier:
        """A classifier with the same parameters."""
        return clone(self.classifier)

    def summary(self) -> dict[str, Any]:
        """What the model is, ready for JSON."""
        return {
            **persistence.plain(self.classifier._about()),
            "target": self.roles.target,
            "inputs": {
                c.name: "number" if c.categories is None else "category"
                for c in self.recipe.columns
            },
            "missing": self.recipe.missing,
        }

    def _table(self) -> LabelledTable:
        if self.table is None:
            raise ValueError(
                "the model has no rows: it was fitted in blocks, or saved without them; give the "
                "tables instead"
            )
        return self.table

    # ------------------------------------------------------------------- saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `polyfid.load` reads; by custom ``*.polyfid``.

        The file holds the training rows, so that a report can be made of it, and names of the
        files they came from, without their folders.
        """
        persistence.write(path, "table", self._state(), self.summary())

    def _state(self) -> dict[str, Any]:
        table = None if self.table is None else table_state(self.table)
        classifier = self.classifier._state()
        return {
            "recipe": self.recipe,
            "roles": self.roles,
            "classifier": classifier,
            "table": table,
        }

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> TableModel:
        recipe, roles = state["recipe"], state["roles"]
        if not isinstance(recipe, Recipe) or not isinstance(roles, Roles):
            raise TypeError("the file has no recipe or no roles of columns")
        classifier = MultiFidelityClassifier._restore(state["classifier"])
        if len(recipe.names) != classifier.n_features_in_:
            raise ValueError(
                f"the recipe makes {len(recipe.names)} columns, and the classifier takes "
                f"{classifier.n_features_in_}"
            )
        table = None if state["table"] is None else restored_table(state["table"], roles)
        return cls(recipe, classifier, roles, table)


def _named(x: NDArray[np.float64], recipe: Recipe) -> pd.DataFrame:
    return pd.DataFrame(x, columns=list(recipe.names), copy=False)


@dataclass(frozen=True)
class Predicting:
    """What is done to every block; can be sent to another process."""

    fidelity: str | None
    id: str | None

    def __call__(self, model: TableModel, block: pd.DataFrame) -> tuple[pd.DataFrame, Unseen]:
        return model._predict(block, self.fidelity, self.id)


def _check_classes(table: LabelledTable) -> None:
    counted = table.label if table.weight is None else table.label[table.weight > 0.0]
    classes = np.unique(counted).tolist()
    if len(classes) < 2:
        raise one_class(classes, table.origin.name, table.roles)
