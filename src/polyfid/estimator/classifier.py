"""The scikit-learn estimator: its parameters, how it is fitted, saved and shown."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED

from polyfid import model_files
from polyfid.estimator.blocks import Blocks, given_levels, make_surveyor
from polyfid.estimator.constraints import read_numeric, read_options
from polyfid.estimator.fitted import (
    FitRun,
    LatentClassifier,
    posterior_needed,
    random_numbers,
)
from polyfid.estimator.inputs import Columns, FitInfo, numbers_by_level, read_rows
from polyfid.estimator.summary import (
    ClassifierState,
    FitReport,
    FittedModel,
    about,
    restore,
    state_of,
)
from polyfid.kernels import RBF, Constant, Kernel
from polyfid.learning.progress import Callback
from polyfid.rows.source import InBlocks, Source
from polyfid.rows.survey import Contents, Survey


class MultiFidelityClassifier(LatentClassifier):
    """Gaussian process classifier for labels of unequal trust.

    Latent functions of the levels are tied by co-kriging, f_t = rho_t f_{t-1} + delta_t, labels
    come through a sigmoid, inference is approximate (`inference`), and hyper-parameters maximise
    the approximate evidence times a weak prior on them (`prior`). More than two classes are
    modelled one against the rest; their probabilities are divided by their sum where the latent
    functions are known, and sharpened where they are not, since exactly one class is right (see
    Prediction in docs/understanding/notation.md).

    Parameters
    ----------
    kernel : {"auto", "rbf", "ard", "matern"}, kernel, or list of kernels
        "auto": learn the structure. A handful of them is fitted (features standardised, ranked, in
        a common unit, as directions, indicator columns as categories; one length-scale, softly tied
        or free ones, a linear part; levels linked, the same, or unrelated) and averaged by
        evidence; see ``structures_``. With inducing points only the leading one is kept. (Structure
        needs ``prior="weak"``, an optimizer and no label noise; without, it is a scaled RBF with
        length-scales softly tied.) One kernel: for every latent process. A list: one per level, for
        f_0 first, then for the corrections. Kernels of `polyfid.kernels` or scikit-learn. A kernel
        is taken as it is: write ``1.0 * RBF()`` for one whose scale is learnt too. That is "rbf";
        "ard" has a length-scale per feature, and "matern" is ``1.0 * Matern52()``.
    mean : {"auto", "boosted", None}
        "boosted": boosted trees learn first from each level of 1000 rows or more (from the top one
        of several if it has more than 20 000), and the latent functions are linear in their
        log-odds, besides what Gaussian processes add. "auto": so it is beyond 2000 rows, and below
        where held-out labels are more probable under it, if the structure is learnt. None: Gaussian
        processes alone. See docs/howto/many_rows.md.
    rho : float or sequence of float
        Start value, one or one per step between levels; kept when ``optimizer=None``.
    levels : sequence, optional
        Names of the levels, least trusted first; needed where they are text, unless the fidelity
        carries an order, as that of `stack_levels` and ordered categories do. Numbers are sorted.
    inference : {"auto", "laplace", "ep", "variational"}
        Laplace is fastest; the other two give better probabilities. "auto" is Laplace for kernels
        that are given, and EP where structure or label noise is learnt (for a structure: up to 2000
        rows and where EP converges, else Laplace; for label noise: variational where weights are
        below 1). Structures are tuned with Laplace, the leading one further with the scheme, which
        then finds the posterior of each.
    n_inducing : "auto", None, int, or sequence of int
        Inducing points of each latent process (variational inference): the work then grows with
        the number of rows, not with its cube. "auto": none up to 2000 rows; None: never; a number,
        or one per process. The choice and its expected cost are in ``report_``.
    refine_inducing : bool
        Let inducing points, which begin as rows, move to better places while hyper-parameters are
        tuned. False keeps them at rows.
    prior : {"weak", None}
        Prior on the hyper-parameters. "weak" depends on the number of features and the spread of
        the data; None is type-II maximum likelihood within the bounds.
    optimizer : {"lbfgs", None}
        None keeps the hyper-parameters as given.
    n_restarts : int
        Quasi-random starts besides those made from the values given, from typical ones and from
        both signs of rho.
    max_iter : int
        Optimiser iterations per start.
    tol : float from 0 to below 1
        Tolerance of tuning: smaller is more exact and slower. Tuning ends, and has converged, where
        no hyper-parameter has a slope of the objective above 200 ``tol`` nats per unit (of its
        logarithm, for those of kernels); ``report_`` has the largest one. The limit is wider for
        structures (``kernel="auto"``: 1500 times, shared by their hyper-parameters) and with
        inducing points (25 times, and growing with the root of the number of rows beyond 100).
        Slopes of 0.05 always count as converged: they leave less than 0.01 nats.
    standardize : bool
        Bring every feature to mean 0 and standard deviation 1 first. Length-scales are then in
        standard deviations. With ``kernel="auto"``, False also keeps features from being warped.
        With False, X may hold values up to 1e100.
    fidelity_feature : int or str, optional
        The column of X that holds the fidelity, instead of the argument of `fit`. New rows may
        come with it (then they are predicted at that level) or without.
    rho_bounds : (low, high) or "fixed"
        Bounds of rho; "fixed" keeps it as given while kernels are tuned.
    coupling : {"autoregressive", "coregional"}
        "coregional": no order of trust; every level mixes the latent processes (one per kernel)
        with learnt loadings.
    label_noise : {None, "fidelity", "annotator"}, or sequence of float
        Labels flip on their way from the latent class: with one rate per level ("fidelity", learnt;
        the top level is taken to be right; or a sequence of flip rates that are given, one per
        level; of more than two classes, a flipped label is any of the others with the same
        probability), or with one sensitivity and specificity per annotator ("annotator", learnt;
        see `fit`). Needs ``inference="ep"`` or ``"variational"``.
    numeric_levels : sequence, optional
        Levels whose y holds numbers, such as what a simulator computes, and not classes; any but
        the top one. y is then an array of objects, or of numbers where classes are numbers too.
        Numbers are centred and scaled inside, and rho may have either sign. See `predict_value`.
    noise : dict, optional
        Error variances of numeric levels, in squared units of their numbers, such as
        ``{"simulation": 0.1}``; of levels that are not named they are learnt. A row of
        ``sample_weight`` w has an error variance of 1 / w of it.
    warp : bool
        Numbers may be warped (Yeo and Johnson, 2000), for skewed ones; the power is learnt, with
        the derivative of the warp in the evidence. One that is not needed comes out as none.
    outliers : bool
        Errors of numbers may be far larger than usual (Student's t with 4 degrees of freedom).
        Needs ``inference="ep"`` or ``"variational"``; the structure is then not learnt.
    n_tuning : "auto", int, dict or None
        Hyper-parameters are tuned on a sample of the rows if there are more than this, small levels
        whole; the posterior uses all rows. "auto": 1000 rows if the structure is learnt, else 3000,
        or 20 000 with inducing points; a dictionary has a number per level; None: always all.
    warm_start : bool
        Go on from the last fit, whole or interrupted, if inducing points are used: hyper-parameters
        and belief begin where it ended. If it had other parameters (but for ``n_jobs``,
        ``n_tuning``, ``n_restarts``, ``max_iter`` and ``tol``), levels, classes or features, the
        fit begins anew, and a note in ``report_`` says so. An exact fit always begins anew.
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
        How each level's latent function follows the one below it; ``report_`` has the average over
        structures, with 95 % intervals.
    kernels_ : list of kernels
        Of the latent processes, tuned.
    theta_, theta_names_ : array and tuple
        All hyper-parameters as tuned, and their names.
    log_marginal_likelihood_value_ : float
        Approximate log evidence; the mean over classes if there are more than two.
    n_iter_ : int
        Evaluations of the evidence in the best climb, the most among the structures averaged.
    converged_ : bool
        Inference and tuning both did, of all structures averaged.
    annotators_ : array or None
        Names of the annotators, in the order of their rates, with ``label_noise="annotator"``.
    report_ : FitReport
        What happened; print it.
    n_features_in_, feature_names_in_
        With more than two classes ``rho_``, ``kernels_``, ``theta_``, ``n_iter_`` and
        ``structures_`` are lists, one entry per class; so is ``theta_names_`` where they differ.

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
    >>> model.predict([[-1.5], [1.5]])
    array([False,  True])
    >>> model.levels_, bool(model.rho_[0] > 0)
    (('crowd', 'expert'), True)
    """

    # In force where metadata routing is enabled: fidelity reaches `fit` without being asked for.
    __metadata_request__fit = {  # noqa: RUF012
        "fidelity": True,
        "sample_weight": True,
        "annotator": True,
        "callback": UNUSED,
    }
    __metadata_request__predict = {"fidelity": False}  # noqa: RUF012
    __metadata_request__predict_proba = {"fidelity": False}  # noqa: RUF012
    __metadata_request__predict_log_proba = {"fidelity": False}  # noqa: RUF012

    #: What an interrupted fit had come to, with ``warm_start``.
    _resume: FittedModel | None = None

    def __init__(
        self,
        kernel: str | Kernel | Sequence[Kernel] = "auto",
        *,
        mean: Literal["auto", "boosted"] | None = "auto",
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
        numeric_levels: Iterable[Any] | None = None,
        noise: Mapping[Any, float] | None = None,
        warp: bool = False,
        outliers: bool = False,
        n_tuning: str | int | Mapping[Any, int] | None = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
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
        self.numeric_levels = numeric_levels
        self.noise = noise
        self.warp = warp
        self.outliers = outliers
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

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        fidelity: Any = None,
        sample_weight: ArrayLike | None = None,
        annotator: ArrayLike | None = None,
        *,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from labels of several levels.

        A fit that raises or is interrupted leaves the estimator as it was. Entries of the
        arguments belong together by position; the indexes of pandas do not matter.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        y : array-like of shape (n,)
            Two or more classes; numbers, booleans or strings. At ``numeric_levels`` numbers.
        fidelity : array-like of shape (n,), optional
            The level of each row; without it all rows are at the top level, and there is a warning
            if ``levels`` has others or rows come from `polyfid.TrustedKFold` and some are cheap.
        sample_weight : array-like of shape (n,), optional
            w counts as w repetitions of the row, 0 as its absence; at most 1e15. (Under a White
            kernel repetitions have noise of their own, a weighted row has one.)
        annotator : array-like of shape (n,), optional
            Who gave the label; for ``label_noise="annotator"``. Rows of the top level are taken to
            be right whoever labelled them, if there is more than one level.
        callback : callable, optional
            Receives a `polyfid.learning.progress.Progress` after every step of the fit.
        """
        rows, info = read_rows(
            X,
            y,
            fidelity,
            sample_weight,
            annotator if self.label_noise == "annotator" else None,
            levels=self.levels,
            fidelity_feature=self.fidelity_feature,
            numeric_levels=self.numeric_levels,
        )
        with random_numbers(self.random_state) as rng:
            run = self._run(info, rng, callback)
            return self._take_over(run, run.fit, rows)

    def suggest(self, pool: Any, costs: Mapping[Any, float], **options: Any) -> Any:
        """The labels to buy next: rows of a pool, each at a level, in order of their worth.

        Parameters
        ----------
        pool : array or data frame of shape (n_rows, n_features)
            Rows that may be labelled.
        costs : dict
            What a label of each level costs; levels that are not named are not offered.
        **options
            ``budget``, ``n``, ``targets``, ``strategy``, ``audit`` and others of `polyfid.suggest`,
            which also says what comes back.

        Examples
        --------
        >>> import numpy as np
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.kernels import RBF
        >>> X = np.linspace(-2, 2, 20)[:, None]
        >>> model = MultiFidelityClassifier(1.0 * RBF(), levels=["expert"]).fit(X, X[:, 0] > 0)
        >>> batch = model.suggest([[-1.9], [0.0], [1.8]], {"expert": 5}, budget=10)
        >>> batch[["level", "total"]].to_numpy().tolist()
        [['expert', 5.0], ['expert', 10.0]]
        """
        # By name, since suggestions are made from fitted models: estimators do without them.
        return import_module("polyfid.suggest.suggestion").suggest(self, pool, costs, **options)

    def fit_blocks(
        self,
        blocks: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from rows that come in blocks, more of them than memory holds.

        Blocks are read once to count rows and to draw a sample, on which hyper-parameters are
        tuned (``n_tuning`` is its size), and once more in every pass of inference. Repeats of rows
        are not merged. Which rows are in the sample depends on ``random_state`` and on the cuts
        between the blocks. A fit that raises or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        blocks : iterable of tuples, or function that returns an iterator of them
            Each is (X, y), (X, y, fidelity) or (X, y, fidelity, sample_weight), as for `fit`. They
            are read several times and must be the same every time: a list, an object that can be
            iterated over again, such as `polyfid.ArrayBlocks`, or a function; not a generator.
        checkpoint : path, optional
            After every pass, and now and then while hyper-parameters are tuned, the model as it is
            then is saved here; see `save`. A model that was read from such a file goes on from
            there, with ``warm_start=True``.
        callback : callable, optional
            Receives a `polyfid.learning.progress.Progress` after every pass.

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
        columns, levels = Columns(), given_levels(self)
        readable = Blocks(blocks, columns, levels, self.numeric_levels)
        with random_numbers(self.random_state) as rng:
            survey = sum(map(make_surveyor(self, rng), readable), Contents()).survey(levels)
            source = InBlocks(survey.sample, survey.weight, readable, survey.coding, self.n_jobs)
            return self._fit_source(columns, survey, source, rng, checkpoint, callback)

    def _fit_source(
        self,
        columns: Columns,
        survey: Survey,
        source: Source,
        rng: np.random.RandomState,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from rows that are not in memory, after their survey."""
        coding, numeric = survey.coding, read_numeric(self.numeric_levels, survey.coding.levels)
        numbers = numbers_by_level(survey.numbers, numeric)
        info = FitInfo.of(columns, coding.classes, coding.levels, survey.counts, numbers=numbers)
        run = self._run(info, rng, callback)
        if checkpoint is not None:
            run.save = lambda model: self._write(checkpoint, model)
        return self._take_over(run, run.fit_source, source)

    def _run(self, info: FitInfo, rng: np.random.RandomState, callback: Callback | None) -> FitRun:
        options = read_options(self, info.levels, len(info.classes))
        earlier = None
        if self.warm_start:
            earlier = getattr(self, "_model", None) if self._resume is None else self._resume
        return FitRun(info, options, rng, earlier, callback, verbose=self.verbose)

    def _take_over(self, run: FitRun, fit: Callable[[Any], FittedModel], data: Any) -> Self:
        """Fit, print the report if asked to, warn of what went wrong, and publish the result.

        In this order: where warnings are errors, the model stays as it was.
        """
        try:
            with posterior_needed():
                model = fit(data)
            report = FitReport.of(model)
            if self.verbose:
                print(report)
            for note in report.notes:
                warnings.warn(note, UserWarning, stacklevel=3)
            for problem in report.problems:
                warnings.warn(problem, ConvergenceWarning, stacklevel=3)
        except BaseException:
            # Ctrl-C, or rows that cannot be read: with warm_start the next fit goes on from here.
            if self.warm_start and run.latest is not None and run.latest.mixtures:
                self._resume = run.latest
            raise
        self._publish(model, report)
        return self

    # ------------------------------------------------------------------- saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `polyfid.load` reads; by custom ``*.polyfid``.

        The file is data, not code, so that files of others are safe to load, and it stays readable
        for later versions. It appears complete or not at all; an existing file is replaced.
        Metadata requests and a ``random_state`` that is no whole number are not kept.

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
        self._write(path, self._fitted)

    def _write(self, path: str | os.PathLike[str], model: FittedModel) -> None:
        model_files.write(path, "classifier", self._state(model), self._about(model))

    def _state(self, model: FittedModel | None = None) -> ClassifierState:
        if type(self) is not MultiFidelityClassifier:
            raise TypeError(
                f"a model file holds a MultiFidelityClassifier, and {type(self).__name__} may be "
                "more than that; use joblib.dump"
            )
        return state_of(self, model or self._fitted)

    def _about(self, model: FittedModel | None = None) -> dict[str, Any]:
        return about(self, model or self._fitted)

    @classmethod
    def _restore(cls, state: Any) -> Self:
        """The model of a state, if the values of that belong together."""
        estimator, model = restore(cls, state)
        with np.errstate(all="ignore"):  # fitting has warned already
            estimator._publish(model)
        return estimator

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
