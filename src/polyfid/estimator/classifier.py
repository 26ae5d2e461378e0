"""The scikit-learn estimator: arguments in, `polyfid.model` at work, predictions out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyfid import model_files
from polyfid.arrays import Array, settled
from polyfid.estimator.fitted import Fitted, Known
from polyfid.estimator.inputs import (
    FidelityColumn,
    as_table,
    read_annotators,
    read_features,
    read_labels,
    read_levels,
    read_weights,
)
from polyfid.estimator.levels import Levels, order_levels
from polyfid.estimator.parameters import n_tuning_of, read_n_inducing, read_n_tuning, read_settings
from polyfid.estimator.state import ClassifierState
from polyfid.estimator.surveying import Blocks, Look, Survey, survey
from polyfid.kernels import RBF, Constant, Kernel
from polyfid.learning.fitting import Encoded, Task, fit_exactly, fit_sparsely, stands_for
from polyfid.learning.large import RowsFor
from polyfid.learning.mixture import Mixture
from polyfid.learning.model import make_prior, tuning_subset
from polyfid.learning.plan import N_TUNING_EXACT, N_TUNING_SPARSE, Plan, make_plan
from polyfid.learning.sources import BlockSource, MemorySource, Source


class MultiFidelityClassifier(Fitted, ClassifierMixin, BaseEstimator):
    """Gaussian process classifier for labels of unequal trust.

    Latent functions of the levels are tied by co-kriging, f_t = rho_t f_{t-1} + delta_t, labels
    come through a sigmoid, inference is approximate (`inference`), and hyper-parameters maximise
    the approximate evidence times a weak prior on them (`prior`).

    Parameters
    ----------
    kernel : "auto", kernel, or list of kernels
        "auto": learn the structure. A handful of them is fitted (features standardised, ranked, in
        a common unit, as directions, indicator columns as categories; one length-scale, softly tied
        or free ones, a linear part; levels linked, the same, or unrelated) and averaged by
        evidence; see ``structures_``. (Structure needs ``prior="weak"``, an optimizer and no label
        noise; without, it is a scaled RBF with length-scales softly tied.) One kernel: for
        every latent process. A list: one a level, for f_0 first, then for the corrections. Kernels
        of `polyfid.kernels` or scikit-learn. A kernel is taken as it is: write
        ``1.0 * RBF()`` for one whose scale is learnt too.
    rho : float or sequence of float
        Start value, one or one a step between levels; kept when ``optimizer=None``.
    levels : sequence, optional
        Names of the levels, least trusted first; needed when they do not sort that way and the
        fidelity does not carry an order, as that of `stack_levels` and ordered categories do.
    inference : {"auto", "laplace", "ep", "variational"}
        Laplace is fastest; the other two give better probabilities. "auto" is Laplace for kernels
        that are given, and EP where structure or label noise is learnt (for a structure: up to 2000
        rows and where EP converges, else Laplace). Structures are tuned with Laplace, and the
        posterior of each is then found by the scheme.
    n_inducing : "auto", None, int, or sequence of int
        Inducing points of each latent process, through which all rows see it (variational
        inference): the work then grows with the number of rows, not with its cube. "auto": none
        while exact inference is cheaper and fits in memory; None: never; a number, or one a
        process. What was chosen, and what it was thought to cost, is said in ``report_``.
    refine_inducing : bool
        Let inducing points, which begin as rows, move to where they say most while
        hyper-parameters are tuned. False keeps them at rows.
    prior : {"weak", None}
        Prior on the hyper-parameters. "weak" knows the number of features and the spread of
        the data; None is type-II maximum likelihood within the bounds.
    optimizer : {"lbfgs", None}
        None keeps the hyper-parameters as given.
    n_restarts : int
        Quasi-random starts besides those made from the values given, from typical ones and from
        both signs of rho.
    max_iter : int
        Optimiser iterations a start.
    tol : float
        Relative tolerance of the optimiser.
    standardize : bool
        Bring every feature to mean 0 and standard deviation 1 first. Length-scales are then in
        standard deviations. With ``kernel="auto"``, False also keeps features from being warped.
    fidelity_feature : int or str, optional
        The column of X that holds the fidelity, instead of the argument of `fit`. New rows may
        come with it (then they are predicted at that level) or without.
    rho_bounds : (low, high) or "fixed"
        Where rho is looked for; "fixed" keeps it as given while kernels are tuned.
    coupling : {"autoregressive", "coregional"}
        "coregional": no order of trust; every level mixes the latent processes (one a kernel)
        with learnt loadings.
    label_noise : {None, "fidelity", "annotator"}, or sequence of float
        Labels flip on their way from the latent class: with a rate a level ("fidelity", learnt;
        the top level is taken to be right; or a sequence of known flip rates, one a level), or with
        a sensitivity and a specificity an annotator ("annotator", learnt; see `fit`). Needs
        ``inference="ep"`` or ``"variational"``.
    n_tuning : "auto", int, dict or None
        Hyper-parameters are tuned on a sample of the rows if there are more than this, small levels
        whole; the posterior uses all rows. "auto": 3000 rows, or 20 000 with inducing points; a
        dictionary says how many of each level; None: always all.
    warm_start : bool
        Go on from the last fit, whole or interrupted, if it was of the same levels, classes and
        number of features, and if inducing points are used: hyper-parameters and belief begin
        where it ended. An exact fit always begins anew.
    n_jobs : int, optional
        Processes for structures or starts, or for classes if there are more than two.
    random_state : int, RandomState or None
        For restarts, the tuning sample and posterior samples.
    verbose : int
        Print how the fit goes.

    Attributes
    ----------
    classes_ : array
    levels_ : tuple
        Names of the levels, least trusted first.
    structures_ : list of LearntStructure
        The structures that were averaged, heaviest first, with their weights. ``rho_``,
        ``kernels_``, ``theta_`` and the evidence are those of the heaviest.
    rho_ : array of shape (n_levels - 1,)
        How each level's latent function follows the one below it.
    kernels_ : list of kernels
        Of the latent processes, tuned.
    theta_, theta_names_ : array and tuple
        All hyper-parameters as tuned, and their names.
    log_marginal_likelihood_value_ : float
        Approximate log evidence; the mean over classes if there are more than two.
    n_iter_ : int
        Evaluations of the evidence in the best climb.
    converged_ : bool
        Inference and tuning both did.
    annotators_ : array or None
        Names of the annotators, in the order of their rates, with ``label_noise="annotator"``.
    report_ : FitReport
        What happened; print it.
    n_features_in_, feature_names_in_
        With more than two classes ``rho_``, ``kernels_``, ``theta_``, ``n_iter_`` and
        ``structures_`` are lists, an entry a class; so is ``theta_names_`` where they differ.

    References
    ----------
    N. Klyuchnikov and E. Burnaev, Gaussian process classification for variable fidelity data,
    Neurocomputing, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, stack_levels
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-2, 2, (120, 1))
    >>> right = X[:, 0] > 0
    >>> crowd = right ^ (rng.uniform(size=120) < 0.2)
    >>> X, y, fidelity = stack_levels({"crowd": (X, crowd), "expert": (X[:8], right[:8])})
    >>> model = MultiFidelityClassifier().fit(X, y, fidelity=fidelity)
    >>> model.predict([[-1.0], [1.0]])
    array([False,  True])
    >>> model.levels_, bool(model.rho_[0] > 0)
    (('crowd', 'expert'), True)
    """

    # In force where metadata routing is enabled: fidelity reaches `fit` without being asked for.
    __metadata_request__fit = {"fidelity": True, "sample_weight": True, "annotator": True}  # noqa: RUF012
    __metadata_request__predict = {"fidelity": False}  # noqa: RUF012
    __metadata_request__predict_proba = {"fidelity": False}  # noqa: RUF012
    __metadata_request__predict_log_proba = {"fidelity": False}  # noqa: RUF012

    #: Told of every pass: stage ("tuning" on the sample, "passes" over all rows), class, number of
    #: classes, and the bounds of the stage so far.
    _on_step: Callable[[str, int, int, Sequence[float]], None] | None = None
    #: A fit that was interrupted.
    _resume: tuple[Known, list[Mixture]] | None = None

    def __init__(
        self,
        kernel: str | Kernel | Sequence[Kernel] = "auto",
        *,
        rho: float | Sequence[float] = 1.0,
        levels: Iterable[Any] | None = None,
        inference: Literal["auto", "laplace", "ep", "variational"] = "auto",
        n_inducing: str | int | Sequence[int] | None = "auto",
        refine_inducing: bool = True,
        prior: Literal["weak"] | None = "weak",
        optimizer: Literal["lbfgs"] | None = "lbfgs",
        n_restarts: int = 0,
        max_iter: int = 200,
        tol: float = 1e-5,
        standardize: bool = True,
        fidelity_feature: int | str | None = None,
        rho_bounds: tuple[float, float] | str = (-10.0, 10.0),
        coupling: Literal["autoregressive", "coregional"] = "autoregressive",
        label_noise: str | Sequence[float] | None = None,
        n_tuning: str | int | Mapping[Any, int] | None = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.rho = rho
        self.levels = levels
        self.inference = inference
        self.n_inducing = n_inducing
        self.refine_inducing = refine_inducing
        self.prior = prior
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.standardize = standardize
        self.fidelity_feature = fidelity_feature
        self.rho_bounds = rho_bounds
        self.coupling = coupling
        self.label_noise = label_noise
        self.n_tuning = n_tuning
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The model of Klyuchnikov and Burnaev's experiments.

        Isotropic RBF kernels with scale in [0.1, 10] and length-scale in [0.01, 10], rho in
        [-1, 1], Laplace, type-II maximum likelihood.

        Examples
        --------
        >>> from polyfid import MultiFidelityClassifier
        >>> MultiFidelityClassifier.paper(n_restarts=10).prior is None
        True
        """
        kernel = Constant(1.0, (0.1, 10.0)) * RBF(1.0, (0.01, 10.0))
        given = {"kernel": kernel, "rho": 0.7, "rho_bounds": (-1.0, 1.0), "prior": None}
        return cls(**{**given, **changes})

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        fidelity: Any = None,
        sample_weight: ArrayLike | None = None,
        annotator: ArrayLike | None = None,
    ) -> Self:
        """Learn from labels of several levels.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        y : array-like of shape (n,)
            Two or more classes; numbers, booleans or strings.
        fidelity : array-like of shape (n,), optional
            The level of each row; without it all rows are at the top level.
        sample_weight : array-like of shape (n,), optional
            w counts as w repetitions of the row, 0 as its absence. (Under a White kernel
            repetitions have noise of their own, a weighted row has one.)
        annotator : array-like of shape (n,), optional
            Who gave the label; for ``label_noise="annotator"``. Rows of the top level are taken to
            be right whoever labelled them, if there is more than one level.

        Returns
        -------
        self
        """
        X, fidelity, column = self._set_fidelity_apart(X, fidelity)
        x = read_features(self, X, reset=True)
        n = len(x)
        labels = read_labels(y, n)
        levels, level = read_levels(self.levels, fidelity, n)
        weight = read_weights(sample_weight, n)
        asked = annotator if self.label_noise == "annotator" else None
        annotators, group = read_annotators(asked, n)
        there = weight > 0.0
        x, weight, level, group = x[there], weight[there], level[there], group[there]
        if self.standardize:
            x = settled(x)  # or rounding errors become a feature
        classes, code = np.unique(labels[there], return_inverse=True)
        _check_classes(classes)
        counts = np.zeros((len(levels), len(classes)), dtype=np.intp)
        np.add.at(counts, (level, code), 1)
        task = self._task(levels, classes)
        rng = check_random_state(self.random_state)
        rows = Encoded(x, level, code, group, weight).merged(task.settings.tells_rows_apart(x))
        plan = self._plan(task, np.bincount(rows.level, minlength=len(levels)), x.shape[1])
        known = Known(classes, levels, annotators, column, counts, x.shape[1], str(plan))
        if plan.n_inducing is None:
            size = read_n_tuning(self.n_tuning, levels, N_TUNING_EXACT)
            subset = tuning_subset(rows.level, size, rng) if task.settings.optimise else None
            self._publish(known, fit_exactly(task, rows, subset, rng))
        else:
            size = read_n_tuning(self.n_tuning, levels, N_TUNING_SPARSE)
            sample = rows.take(tuning_subset(rows.level, size, rng))
            source = MemorySource(rows, self._n_threads)
            total = np.bincount(rows.level, rows.weight, len(levels)).astype(float)
            self._fit_sparsely(known, task, plan, sample, total, source, rng)
        self._announce()
        return self

    def fit_blocks(
        self,
        blocks: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from rows that come in blocks, more of them than memory holds.

        Blocks are read once to see what there is and to draw a sample, on which hyper-parameters
        are tuned (``n_tuning`` says how large it is), and once more in every pass of inference.
        Repeats of rows are not merged. Which rows are in the sample depends on ``random_state``
        and on the cuts between the blocks.

        Parameters
        ----------
        blocks : iterable of tuples, or function that returns an iterator of them
            Each is (X, y), (X, y, fidelity) or (X, y, fidelity, sample_weight), as for `fit`. They
            are read several times and must be the same every time: a list, an object that can be
            iterated over again, such as `polyfid.ArrayBlocks`, or a function; not a generator.
        checkpoint : path, optional
            After every pass the model as it is then is saved here; see `save`. A model that was
            read from such a file goes on from there, with ``warm_start=True``.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.kernels import RBF
        >>> X = np.random.RandomState(0).uniform(-1, 1, (600, 2))
        >>> blocks = [(X[i : i + 200], X[i : i + 200, 0] > 0) for i in (0, 200, 400)]
        >>> model = MultiFidelityClassifier(1.0 * RBF(), n_inducing=20).fit_blocks(blocks)
        >>> model.predict([[-0.5, 0.0], [0.5, 0.0]])
        array([False,  True])
        """
        rng = check_random_state(self.random_state)
        readable = Blocks(blocks, self)
        found = survey(readable, self._first_look(rng))
        source = BlockSource(lambda: map(found.coding, readable.read()), self._n_threads)
        self._fit_from(found, source, rng, checkpoint)
        self._announce()
        return self

    def _first_look(self, rng: np.random.RandomState) -> Look:
        """What is to be found out about rows that are not in memory."""
        if self.fidelity_feature is not None:
            raise ValueError(
                "fidelity_feature is for fit only; leave it None and hand the fidelity over beside "
                f"X, got {self.fidelity_feature!r}"
            )
        if self.label_noise == "annotator":
            raise ValueError(
                'label_noise="annotator" needs all rows in memory; use fit, or '
                'label_noise="fidelity"'
            )
        if self.n_tuning is None:
            raise ValueError(
                "n_tuning=None asks to tune on all rows, and not all of them are in memory; give a "
                "number of rows"
            )
        levels = None if self.levels is None else order_levels((), self.levels)
        n_sample = partial(n_tuning_of, given=self.n_tuning, default=N_TUNING_SPARSE)
        return Look(levels, n_sample, int(rng.randint(2**31 - 1)))

    def _fit_from(
        self,
        found: Survey,
        source: Source,
        rng: np.random.RandomState,
        checkpoint: str | os.PathLike[str] | None,
    ) -> None:
        """Learn from rows that are not in memory, of which a survey is known."""
        _check_classes(found.classes)
        task = self._task(found.levels, found.classes)
        plan = self._plan(task, found.counts.sum(axis=1), self.n_features_in_, in_memory=False)
        known = Known(
            found.classes, found.levels, None, None, found.counts, self.n_features_in_, str(plan)
        )
        size = read_n_tuning(self.n_tuning, found.levels, N_TUNING_SPARSE)
        sample = found.sample.take(tuning_subset(found.sample.level, size, rng))
        self._fit_sparsely(known, task, plan, sample, found.weight, source, rng, checkpoint)

    @property
    def _n_threads(self) -> int | None:
        return None if self.n_jobs is None else int(effective_n_jobs(self.n_jobs))

    def _task(self, levels: Levels, classes: NDArray[Any]) -> Task:
        settings = read_settings(self, levels)
        return Task(settings, self.label_noise, self.standardize, len(levels), len(classes))

    def _plan(
        self, task: Task, rows: NDArray[np.intp], n_features: int, in_memory: bool = True
    ) -> Plan:
        """Exact or sparse; said before the work begins, if asked to."""
        if self.n_inducing is None and not in_memory:
            raise ValueError(
                "n_inducing=None asks for exact inference, and rows in blocks are not in memory; "
                'use n_inducing="auto" or a number'
            )
        if self.inference not in ("auto", "variational") and not in_memory:
            raise ValueError(
                f"rows in blocks go with variational inference only; use inference="
                f'"variational" or "auto" instead of {self.inference!r}'
            )
        support = make_prior(task.settings, n_features, task.n_levels).support
        plan = make_plan(
            read_n_inducing(self.n_inducing, self.inference, support.shape[1]),
            rows,
            support,
            n_features,
            may_be_sparse=self.inference in ("auto", "variational"),
            in_memory=in_memory,
        )
        if self.verbose and not plan.is_small:
            print(f"polyfid: {plan}")
        return plan

    def _fit_sparsely(
        self,
        known: Known,
        task: Task,
        plan: Plan,
        sample: Encoded,
        total: Array,
        source: Source,
        rng: np.random.RandomState,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        """Fit with inducing points, and keep what there is when that is interrupted."""
        before = self._before(known) if self.warm_start else None
        self._resume = None
        latest: list[Mixture] = []

        def watch(mixtures: list[Mixture], turn: int, bounds: Sequence[float]) -> None:
            latest[:] = mixtures
            if self.verbose and bounds:
                who = "" if len(task.targets) == 1 else f"class {known.classes[turn]}, "
                print(f"polyfid: {who}pass {len(bounds)}, bound {bounds[-1]:.4f}", flush=True)
            if self._on_step is not None:
                self._on_step("passes", turn, len(task.targets), bounds)
            if checkpoint is not None and len(mixtures) == len(task.targets):
                self._publish(known, mixtures)
                self.save(checkpoint)

        def tuning(turn: int, bounds: Sequence[float]) -> None:
            if self._on_step is not None:
                self._on_step("tuning", turn, len(task.targets), bounds)

        def rows_for(positive: int) -> RowsFor:
            return source.rows_for(task, positive, sample)

        share = stands_for(total, sample)
        try:
            latest[:] = fit_sparsely(
                task, plan, sample, share, rows_for, rng, before, watch, tuning
            )
        except BaseException:
            # Ctrl-C, or rows that cannot be read: with warm_start the next fit goes on from here.
            self._resume = known, latest
            raise
        finally:
            if len(latest) == len(task.targets):
                self._publish(known, latest)

    def _before(self, known: Known) -> list[Mixture] | None:
        """The models of the last fit, whole or interrupted, if they are of such rows."""
        if self._resume is not None:
            other, mixtures = self._resume
        elif hasattr(self, "report_"):
            other, mixtures = self._known, self._mixtures
        else:
            return None
        alike = other.levels == known.levels and np.array_equal(other.classes, known.classes)
        return mixtures if alike and other.n_features == known.n_features else None

    def _announce(self) -> None:
        """Print the report if asked to, and warn of what went wrong."""
        if self.verbose:
            print(self.report_)
        for note in self.report_.notes:
            warnings.warn(note, UserWarning, stacklevel=3)
        for problem in self.report_.problems:
            warnings.warn(problem, ConvergenceWarning, stacklevel=3)

    # ------------------------------------------------------------------ reading

    def _set_fidelity_apart(self, X: Any, fidelity: Any) -> tuple[Any, Any, FidelityColumn | None]:
        if self.fidelity_feature is None:
            return X, fidelity, None
        if fidelity is not None:
            raise ValueError(
                f"fidelity was passed although fidelity_feature={self.fidelity_feature!r} "
                "says that a column of X holds it; use one of the two"
            )
        X = as_table(X)
        column = FidelityColumn.find(X, self.fidelity_feature)
        return *column.split(X), column

    # ------------------------------------------------------------------- saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `polyfid.load` reads; by custom ``*.polyfid``.

        The file is data, not code, so that files of others are safe to load, and it stays readable
        for later versions. It appears complete or not at all. Metadata requests and a
        ``random_state`` that is no whole number are not kept.

        Parameters
        ----------
        path : str or path
            An existing file is replaced.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import numpy as np
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.kernels import RBF
        >>> from polyfid.model_files import inspect
        >>> X = np.linspace(-1, 1, 12)[:, None]
        >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, X[:, 0] > 0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "model.polyfid")
        ...     model.save(path)
        ...     inspect(path)["classes"]
        [False, True]
        """
        model_files.write(path, "classifier", self._state(), self._about())

    def _state(self) -> ClassifierState:
        """All that a file has to hold."""
        check_is_fitted(self, "report_")
        if type(self) is not MultiFidelityClassifier:
            raise TypeError(
                f"a model file holds a MultiFidelityClassifier, and {type(self).__name__} may be "
                "more than that; use joblib.dump"
            )
        parameters = self.get_params(deep=False)
        if not self._keeps_random_state():
            parameters["random_state"] = None
        if not isinstance(self.levels, list | tuple | None):
            parameters["levels"] = self.levels_  # what it held in the end
        return ClassifierState(
            parameters,
            self.classes_,
            self.levels_,
            self.annotators_,
            self._mixtures,
            self._known.column,
            self.n_features_in_,
            getattr(self, "feature_names_in_", None),
            self.report_.counts,
            list(self.report_.notes),
            self._known.plan,
        )

    def _keeps_random_state(self) -> bool:
        return self.random_state is None or isinstance(self.random_state, int | np.integer)

    def _about(self) -> dict[str, Any]:
        """What the header of a file tells about the model."""
        about = self._state().about()
        if not self._keeps_random_state():
            kind = type(self.random_state).__name__
            about["note"] = f"random_state was a {kind}, and is None in the file"
        return about

    @classmethod
    def _restore(cls, state: Any) -> Self:
        """The model of a state, if its parts belong together."""
        if not isinstance(state, ClassifierState):
            raise TypeError(f"a classifier cannot be made of a {type(state).__name__}")
        state.check()
        model = cls(**state.parameters)
        model.n_features_in_ = state.n_features
        if state.feature_names is not None:
            model.feature_names_in_ = state.feature_names
        known = Known(
            state.classes,
            state.levels,
            state.annotators,
            state.column,
            state.counts,
            state.n_features,
            state.plan,
        )
        with np.errstate(all="ignore"):  # fitting has warned already
            model._publish(known, state.mixtures)
        return model

    # ------------------------------------------------------------------ showing

    def __str__(self) -> str:
        return f"{self!r}\n{self.report_}" if hasattr(self, "report_") else repr(self)

    def _repr_html_inner(self) -> str:
        inner = super()._repr_html_inner()
        return self.report_.to_html() + inner if hasattr(self, "report_") else inner

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": str(self)}
        if html := getattr(self, "_repr_html_", None):
            bundle["text/html"] = html()
        return bundle


def _check_classes(classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {classes.tolist()[0]!r}, and a classifier needs at least "
            "two classes; add rows of another class"
        )
