"""A classifier together with how tables become its input and its output becomes a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from polyfid import model_files
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.decisions import Costs, DecisionRule
from polyfid.learning.progress import Callback
from polyfid.tables.column import Missing
from polyfid.tables.encoder import Encoding, TableEncoder
from polyfid.tables.labelled import LabelledTable, one_class_error
from polyfid.tables.large import Spool, open_labelled, resumed, temporary_folder
from polyfid.tables.predictor import TablePredictor
from polyfid.tables.roles import Roles
from polyfid.text import bytes_in_words, first_few, name_few
from polyfid.values import to_json


@dataclass(frozen=True, eq=False)
class TableModel(TablePredictor):
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
    rule : DecisionRule or None
        How costs turn probabilities into decisions, which are then what `predict` gives as labels.

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
    rule: DecisionRule | None = None

    @classmethod
    def fit(
        cls,
        table: LabelledTable,
        classifier: MultiFidelityClassifier | None = None,
        missing: Missing = "error",
        *,
        costs: Costs | None = None,
        cost_abstain: float | None = None,
        callback: Callback | None = None,
    ) -> TableModel:
        """The model of labelled rows.

        A copy of the classifier is fitted; one with ``random_state=0`` by default. `TableEncoder`
        has the choices for ``missing``. With ``costs``, the model decides by them; see `decide`.
        ``callback`` receives a `Progress` for each step.
        """
        encoder = TableEncoder(**table.roles.of_features, missing=missing)
        x = encoder.fit(table.features).transform(table.features)
        counted = ~table.is_number
        if table.weight is not None:
            counted &= table.weight > 0.0
        classes = np.unique(table.label[counted]).tolist()
        if len(classes) < 2:
            raise one_class_error(classes, table.places.file, table.roles)
        rule = _rule(costs, classes, cost_abstain)
        own = _own_copy(classifier, table.levels, table.roles)
        made = cls(encoder, own, table.roles, table, rule)
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
        costs: Costs | None = None,
        cost_abstain: float | None = None,
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
            As in `fit`. Medians of more than 4 million numbers are those of a sample, and so are
            the words of more than 20 000 different texts.
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
        costs, cost_abstain
            As in `fit`.
        say, callback : callable, optional
            Receive sentences about what is done, and a `Progress` for each block that is read
            ("reading") or written as numbers ("encoding") and for each pass of inference.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.kernels import RBF
        >>> from polyfid.tables import Roles, TableModel
        >>> x = np.random.RandomState(0).uniform(-1, 1, 400)
        >>> label, level = np.where(x > 0, "good", "bad"), np.where(x % 0.1 > 0.05, "low", "top")
        >>> rows = pd.DataFrame({"x": x, "label": label, "fidelity": level})  # or a path
        >>> model = MultiFidelityClassifier(1.0 * RBF(), n_inducing=10)
        >>> roles = Roles(levels=["low", "top"])
        >>> fitted = TableModel.fit_files([rows], roles, classifier=model, rows=100)
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
            classes = summary.classes[summary.counts.any(axis=0)].tolist()
            rule = _rule(costs, classes, cost_abstain)
            own = _own_copy(classifier, summary.levels, summary.roles)
            model = resumed(own, summary, checkpoint)
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
        return cls(summary.encoder, model, summary.roles, rule=rule)

    def training(self) -> tuple[pd.DataFrame, NDArray[Any], NDArray[np.str_]]:
        """The training rows as the classifier got them: X, y and fidelity.

        At levels that have numbers, y holds them.
        """
        table = self._training_table()
        x = self._named(self.encoder.transform(table.features))
        return x, table.label, table.fidelity

    def _training_table(self) -> LabelledTable:
        if self.table is None:
            raise ValueError(
                "the model has no rows: it was fitted in blocks, or saved without them; give the "
                "tables instead"
            )
        return self.table

    def report(self, *, folds: int = 5, evaluation: Any = None, **page: Any) -> Any:
        """A page about the model and its training rows, which a notebook shows.

        It is the page of ``polyfid report``; needs the extra ``report``.

        Parameters
        ----------
        folds : int
            Of the evaluation, which fits some models to each; 0 leaves it out. So does a model of
            one level.
        evaluation : Evaluation, optional
            Of the same rows, if there is one already.
        **page
            ``title``, ``warnings``, ``annotators``, ``advice``, ``command`` and ``seed`` of
            `polyfid.report.render`.

        Returns
        -------
        Page
            A notebook shows it; ``page.save("report.html")`` writes it to a file.

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
        >>> page = model.report(folds=0, title="Is it good?")
        >>> "<h1>Is it good?</h1>" in page.html
        True
        """
        # By name, since pages are made of tables: this package must work without that one.
        notebook = import_module("polyfid.report.notebook")
        return notebook.report_of(self, self._training_table(), folds, evaluation, **page)

    def unfitted(self) -> MultiFidelityClassifier:
        """A classifier with the same parameters."""
        return clone(self.classifier)

    def summary(self) -> dict[str, Any]:
        """What the model is, ready for JSON."""
        return {
            **to_json(self.classifier._about()),
            "target": self.roles.target,
            "inputs": self.encoder.kinds_,
            "missing": self.encoder.missing,
            **({"value": self.roles.value} if self.roles.value else {}),
            **({} if self.rule is None else self.rule.to_dict(self.classifier.classes_)),
        }

    def __repr__(self) -> str:
        about, columns = self.summary(), list(self.encoder.kinds_)
        n_rows = self.classifier._fitted.info.n_rows.sum()
        return (
            f"<TableModel: {self.roles.target} ({first_few(about['classes'], 4)}) from "
            f"{len(columns)} columns ({first_few(columns, 4)}); {n_rows:,} rows of "
            f"{first_few(about['levels'], 4)}>"
        )

    def _repr_html_(self) -> str:
        report = getattr(self.classifier, "report_", None)
        shown = f"<p><code>{escape(repr(self))}</code></p>"
        return shown if report is None else shown + report.to_html()

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
            "rule": self.rule,
        }

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> TableModel:
        columns, roles, table = state["columns"], state["roles"], state["table"]
        if not isinstance(roles, Roles) or not all(isinstance(c, Encoding) for c in columns):
            raise TypeError("the file lacks the roles or the encodings of columns")
        encoder = TableEncoder.of(columns, state["missing"])
        classifier = MultiFidelityClassifier._restore(state["classifier"])
        if len(encoder.names_) != classifier.n_features_in_:
            raise ValueError(
                f"the columns become {len(encoder.names_)} numbers per row, and the classifier "
                f"takes {classifier.n_features_in_}"
            )
        table = None if table is None else LabelledTable._restore(table, roles)
        rule = state.get("rule")  # which models of earlier versions do not have
        if not isinstance(rule, DecisionRule | None):
            raise TypeError("the rule of decisions is something else")
        if rule is not None:
            rule.check(len(classifier.classes_))
        return cls(encoder, classifier, roles, table, rule)


def _rule(costs: Costs | None, classes: Any, cost_abstain: float | None) -> DecisionRule | None:
    """The rule of costs, if there are any."""
    if costs is None and cost_abstain is not None:
        raise ValueError("cost_abstain (--cost-abstain) goes with costs (--costs); give both")
    return None if costs is None else DecisionRule.of(costs, classes, cost_abstain)


def _own_copy(
    classifier: MultiFidelityClassifier | None, levels: tuple[str, ...], roles: Roles
) -> MultiFidelityClassifier:
    """A classifier to fit that has the parameters of the user's, for these levels."""
    numeric = [level for level in levels if level in roles.value]
    own = MultiFidelityClassifier(random_state=0) if classifier is None else clone(classifier)
    named = [("numeric_levels", t) for t in own.numeric_levels or ()]
    named += [("noise", t) for t in own.noise or ()]
    unknown = [f"{name} of {level!r}" for name, level in named if level not in numeric]
    flags = [name for name in ("warp", "outliers") if getattr(own, name) and not numeric]
    if unknown or flags:
        raise ValueError(
            f"{(unknown or flags)[0]} is for levels that have numbers, and these levels are "
            f"{name_few(numeric) or 'none'}; name the column of a level's numbers by --value "
            "LEVEL=COLUMN (in Python Roles(value={level: column}))"
        )
    return own.set_params(levels=levels, numeric_levels=numeric or None)
