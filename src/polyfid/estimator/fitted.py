"""A fit as it runs, and the predictions that are made from its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array, Indices, settled
from polyfid.atomic import set_attributes
from polyfid.estimator.constraints import read_numbers, read_whole
from polyfid.estimator.decisions import DecidesByCost
from polyfid.estimator.inputs import FidelityColumn, FitInfo, as_table, read_features, read_levels
from polyfid.estimator.levels import encode_levels
from polyfid.estimator.summary import FitReport, FittedModel, LearntStructure, rho_of
from polyfid.inference.linalg import NotPositiveDefinite, suitable_threads
from polyfid.learning.fit import fit_exact
from polyfid.learning.mixture import BinaryFit, Mixture, Prediction, coupled
from polyfid.learning.plan import Options, Plan, make_plan
from polyfid.learning.progress import Callback, Progress
from polyfid.learning.sparse import fit_sparse
from polyfid.model.features import FARTHEST
from polyfid.rows import Rows
from polyfid.rows.source import InMemory, Source

#: While a model is tuned it is not saved again before this many times what saving it took.
SAVE_EVERY = 20.0


@contextmanager
def posterior_needed() -> Iterator[None]:
    """Errors of arithmetic in terms of what the user gave."""
    try:
        yield
    except NotPositiveDefinite as error:
        raise ValueError(
            f"kernel and rows have no posterior that can be computed: {error}. Either kernel is "
            "not positive definite, or its scale, rho or sample_weight is too large for the "
            "digits that numbers have; use other bounds or smaller ones"
        ) from error


@dataclass
class FitRun:
    """One run of a fit, which is also the callback of its own steps.

    ``earlier`` is a fit to continue. ``latest`` has the models after the last step, of the first
    classes or of all; those are given to ``save`` after every pass, and while the last class is
    tuned whenever that takes little of the time.
    """

    info: FitInfo
    options: Options
    rng: np.random.RandomState
    earlier: FittedModel | None = None
    callback: Callback | None = None
    save: Callable[[FittedModel], None] | None = None
    verbose: int = 0
    latest: FittedModel | None = field(default=None, init=False)
    _next_save: float = field(default=-np.inf, init=False)

    def fit(self, rows: Rows) -> FittedModel:
        """Fit to rows in memory, exactly or with inducing points."""
        if self.options.standardize:
            rows = replace(rows, x=settled(rows.x))  # or rounding errors become a feature
        self._check_reach(rows)
        rows = rows.merged(self.options.tells_rows_apart(rows.x.shape[1]))
        n_levels = self.options.n_levels
        plan = self._plan(np.bincount(rows.level, minlength=n_levels), in_memory=True)
        if plan.n_inducing is None:
            return self._model(fit_exact(self.options, rows, self.rng, self))
        total = np.bincount(rows.level, rows.weight, n_levels).astype(float)
        return self._fit_sparse(InMemory(rows, total, rows, self.options.n_jobs), plan)

    def fit_source(self, source: Source) -> FittedModel:
        """Fit to rows that are not in memory."""
        self._check_reach(source.sample)
        return self._fit_sparse(source, self._plan(self.info.n_rows, in_memory=False))

    def _check_reach(self, rows: Rows) -> None:
        largest = float(np.abs(rows.x).max(initial=0.0))
        if largest > FARTHEST and not self.options.standardize:
            raise ValueError(
                f"X has values up to {largest:.3g}, and with standardize=False they are taken as "
                f"they are, but only up to {FARTHEST:g}; use standardize=True, or divide X by a "
                "number"
            )

    def _plan(self, counts: Indices, in_memory: bool) -> Plan:
        plan = make_plan(self.options, counts.tolist(), self.info.n_features, in_memory)
        self.info = replace(self.info, plan=str(plan))
        if self.verbose and not plan.is_small:
            print(f"polyfid: {plan}")
        return plan

    def _fit_sparse(self, source: Source, plan: Plan) -> FittedModel:
        options = replace(self.options, n_inducing=plan.n_inducing, n_boosted=plan.n_boosted)
        before = self._models_to_continue()
        return self._model(fit_sparse(options, source, self.rng, before, self))

    def _models_to_continue(self) -> tuple[Mixture, ...]:
        """Those of the earlier fit, if it was of the same kind; if not, a note says so."""
        if self.earlier is None:
            return ()
        info, before = self.info, self.earlier.info
        if (
            before.levels == info.levels
            and np.array_equal(before.classes, info.classes)
            and before.n_features == info.n_features
            and _may_be_same(before.feature_names, info.feature_names)
            and self.earlier.options.is_like(self.options)
        ):
            return self.earlier.mixtures
        note = (
            "warm_start: the earlier fit had other parameters, levels, classes or features, so "
            "that this fit began anew"
        )
        self.info = replace(info, notes=(*info.notes, note))
        return ()

    def _model(self, mixtures: Any) -> FittedModel:
        return FittedModel(self.info, self.options, tuple(mixtures))

    def __call__(self, progress: Progress) -> None:
        """A step was done."""
        done, value = progress.done, progress.value
        if progress.stage in ("tuning", "passes"):
            self._keep(progress)
        if progress.stage == "passes" and self.verbose and done:
            which = self.info.classes[progress.class_index]
            who = "" if progress.n_classes == 1 else f"class {which}, "
            print(f"polyfid: {who}pass {done}, bound {value:.4f}", flush=True)
        if self.callback is not None:
            self.callback(progress)

    def _keep(self, progress: Progress) -> None:
        """Keep the models so far, and save them if that is due."""
        before = () if self.latest is None else self.latest.mixtures
        self.latest = self._model(progress.checkpoint)
        if self.save is None or len(progress.checkpoint) < progress.n_classes:
            return
        started = time.monotonic()
        is_new = [*map(id, before)] != [*map(id, progress.checkpoint)]
        if progress.stage == "passes" or (is_new and started >= self._next_save):
            self.save(self.latest)
            now = time.monotonic()
            self._next_save = now + SAVE_EVERY * (now - started)


@contextmanager
def random_numbers(random_state: Any) -> Iterator[np.random.RandomState]:
    """The random numbers of a fit; if it raises, a generator of the user's is as it was."""
    rng = check_random_state(random_state)
    before = rng.get_state()
    try:
        yield rng
    except BaseException:
        if rng is random_state:
            rng.set_state(before)
        raise


class LatentClassifier(DecidesByCost, ClassifierMixin, BaseEstimator):
    """A classifier whose predictions come from a `FittedModel`."""

    random_state: Any
    _model: FittedModel

    @property
    def _fitted(self) -> FittedModel:
        check_is_fitted(self, "report_")
        return self._model

    @property
    def _mixtures(self) -> tuple[Mixture, ...]:
        return self._fitted.mixtures

    @property
    def _fits(self) -> list[BinaryFit]:
        return self._fitted.fits

    @property
    def _fidelity_column(self) -> FidelityColumn | None:
        return self._fitted.info.column

    def _publish(self, model: FittedModel, report: FitReport | None = None) -> None:
        """Set the fitted attributes, all at once; what an interrupted fit had come to goes."""
        report = report or FitReport.of(model)
        attributes = {"_model": model, **_attributes(model, report)}
        set_attributes(self, attributes, drop=("feature_names_in_", "_resume"))

    def _new_rows(self, X: Any, fidelity: Any) -> tuple[Array, Indices, Indices]:
        """Features and levels of new rows sorted by level, and where each input row went."""
        if self._fidelity_column is not None:
            X, column = self._fidelity_column.split_if_there(as_table(X), self.n_features_in_)
            fidelity = column if fidelity is None else fidelity
        x = read_features(self, X, reset=False)
        if fidelity is not None and np.ndim(fidelity) == 0:
            level = np.repeat(encode_levels([fidelity], self.levels_), len(x))
        else:
            _, level = read_levels(self.levels_, fidelity, len(x))
        order = np.argsort(level, kind="stable")
        return x[order], level[order], np.argsort(order)

    def _ask(
        self,
        method: Callable[..., Any],
        X: Any,
        fidelity: Any,
        *given: Any,
        classes: bool = False,
    ) -> tuple[list[Any], Indices]:
        """What a method of `Mixture` answers for each class, and where each row went.

        ``classes``: only levels that have classes can be asked.
        """
        x, level, back = self._new_rows(X, fidelity)
        numeric = self._fitted.info.numeric
        if classes and (wrong := np.intersect1d(level, numeric).tolist()):
            name = self.levels_[wrong[0]]
            raise ValueError(
                f"fidelity is {name!r}, a numeric level, which has no classes; use "
                f"predict_value(X, fidelity={name!r}), or the top level, {self.levels_[-1]!r}"
            )
        size = max(mixture.size for mixture in self._mixtures)
        # As in the fit, so that limits of other threads do not change the numbers.
        with posterior_needed(), suitable_threads(size):
            return [method(mixture, x, level, *given) for mixture in self._mixtures], back

    def predict(self, X: Any, fidelity: Any = None) -> NDArray[Any]:
        """Most probable classes (n,), at the top level or at ``fidelity``."""
        if self._fitted.is_binary:
            (positive,), back = self._ask(Mixture.positive, X, fidelity, classes=True)
            code = positive[back].astype(np.intp)
        else:
            code = np.argmax(self.predict_proba(X, fidelity), axis=1)
        return np.asarray(self.classes_[code])

    def predict_proba(self, X: Any, fidelity: Any = None) -> Array:
        """Class probabilities (n, n_classes), in the order of ``classes_``.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        fidelity : level name, or array-like of shape (n,), optional
            Which level's label to predict; the top level by default. With ``label_noise``, the
            label before it is flipped; flips that the learnt structure found are in it.
        """
        answers, back = self._ask(Mixture.predict, X, fidelity, classes=True)
        return class_probabilities(answers)[back]

    def predict_log_proba(self, X: Any, fidelity: Any = None) -> Array:
        """Logarithms of `predict_proba`, accurate where a probability is tiny."""
        answers, back = self._ask(Mixture.log_probabilities, X, fidelity, classes=True)
        if len(answers) == 1:
            return np.stack(answers[0][:2], axis=1)[back]
        return coupled(*map(_stacked, zip(*answers, strict=True)))[back]

    def predict_value(
        self, X: Any, fidelity: Any = None, with_noise: bool = True
    ) -> tuple[Array, Array]:
        """What a numeric level would say: means and standard deviations (n,), in its own units.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        fidelity : level name, or array-like of shape (n,), optional
            A numeric level; by default the most trusted one that is numeric.
        with_noise : bool
            Standard deviations are those of a new number. False: of the function beneath, without
            the error of the number.

        Examples
        --------
        >>> import numpy as np
        >>> from polyfid import MultiFidelityClassifier, stack_levels
        >>> from polyfid.kernels import RBF
        >>> X = np.linspace(-2, 2, 30)[:, None]
        >>> X, y, fidelity = stack_levels(
        ...     {"simulation": (X, 5.0 * X[:, 0]), "test": (X[::4], X[::4, 0] > 0.5)}
        ... )
        >>> model = MultiFidelityClassifier(1.0 * RBF(), numeric_levels=["simulation"])
        >>> mean, sd = model.fit(X, y, fidelity=fidelity).predict_value([[1.0]])
        >>> round(float(mean[0]), 1), bool(sd[0] < 0.5)
        (5.0, True)
        """
        numeric = self._fitted.info.numeric
        names = [self.levels_[t] for t in numeric]
        if not numeric:
            raise ValueError(
                "the model has no numeric level, so there are no values to predict; use "
                "predict_proba, or fit with numeric_levels="
            )
        if fidelity is None and self._fidelity_column is None:
            fidelity = names[-1]
        answers, back = self._ask(Mixture.values, X, fidelity, bool(with_noise), numeric)
        # With several classes each has a model of its own, and all of them say the same, nearly.
        mean, variance = (np.stack(of) for of in zip(*answers, strict=True))
        centre = mean.mean(axis=0)
        sd = np.sqrt((variance + np.square(mean - centre)).mean(axis=0))
        return centre[back], sd[back]

    def predict_all(self, X: Any, fidelity: Any = None) -> tuple[Array, Array, Array]:
        """What `predict_proba` and `latent_mean_and_variance` give, at the price of one.

        Examples
        --------
        >>> import numpy as np
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.kernels import RBF
        >>> X = np.linspace(-1, 1, 10)[:, None]
        >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, X[:, 0] > 0)
        >>> probability, mean, variance = model.predict_all(X)
        >>> bool((probability == model.predict_proba(X)).all())
        True
        """
        answers, back = self._ask(Mixture.predict, X, fidelity, classes=True)
        mean, variance = (
            _stacked([getattr(a, of) for a in answers]) for of in ("mean", "variance")
        )
        return class_probabilities(answers)[back], mean[back], variance[back]

    def latent_mean_and_variance(self, X: Any, fidelity: Any = None) -> tuple[Array, Array]:
        """Posterior mean and variance of the latent function, (n,) each.

        With more than two classes (n, n_classes), one latent function per class. Where structures
        are averaged, these are moments of the mixture of their posteriors.
        """
        answers, back = self._ask(Mixture.mean_and_variance, X, fidelity)
        mean, variance = map(_stacked, zip(*answers, strict=True))
        return mean[back], variance[back]

    def latent_interval(
        self, X: Any, coverage: float = 0.95, fidelity: Any = None
    ) -> tuple[Array, Array]:
        """Central interval of the posterior of the latent function: low and high, (n,) each.

        With more than two classes (n, n_classes) each. The posterior is the mixture over structures
        and over the scale of the function, which is not known; its moments are those of
        `latent_mean_and_variance`. Its tails are heavier than those of a normal distribution, so
        that 99 % intervals are wider than the mean ± 2.58 standard deviations, and 50 % intervals
        narrower than the mean ± 0.67.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        coverage : float
            The posterior probability of the interval, between 0 and 1.
        fidelity : level name, or array-like of shape (n,), optional

        Examples
        --------
        >>> import numpy as np
        >>> from polyfid import MultiFidelityClassifier
        >>> from polyfid.kernels import RBF
        >>> X = np.linspace(-1, 1, 10)[:, None]
        >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, X[:, 0] > 0)
        >>> low, high = model.latent_interval(X, coverage=0.8)
        >>> bool((low < high).all())
        True
        """
        if not (isinstance(coverage, float | np.floating) and 0.0 < coverage < 1.0):
            raise ValueError(f"coverage must be a number above 0 and below 1, got {coverage!r}")
        answers, back = self._ask(Mixture.interval, X, fidelity, float(coverage))
        low, high = map(_stacked, zip(*answers, strict=True))
        return low[back], high[back]

    def latent_mean_and_covariance(self, X: Any, fidelity: Any = None) -> tuple[Array, Array]:
        """Posterior mean (n,) and joint covariance (n, n) of the latent function.

        With more than two classes (n, n_classes) and (n, n, n_classes).
        """
        answers, back = self._ask(Mixture.mean_and_covariance, X, fidelity)
        mean, covariance = map(_stacked, zip(*answers, strict=True))
        return mean[back], covariance[np.ix_(back, back)]

    def sample_latent(
        self, X: Any, n_samples: int = 1, fidelity: Any = None, random_state: Any = None
    ) -> Array:
        """Joint posterior samples of the latent function, (n, n_samples).

        With more than two classes (n, n_samples, n_classes).

        Examples
        --------
        >>> import numpy as np
        >>> from polyfid import MultiFidelityClassifier
        >>> X = np.linspace(-1, 1, 10)[:, None]
        >>> model = MultiFidelityClassifier().fit(X, X[:, 0] > 0)
        >>> model.sample_latent(X, n_samples=3, random_state=0).shape
        (10, 3)
        """
        n_samples = read_whole("n_samples", n_samples, 1)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        answers, back = self._ask(Mixture.sample, X, fidelity, n_samples, rng)
        return _stacked(answers)[back]

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """The approximate log evidence of the training rows.

        Parameters
        ----------
        theta : array-like, optional
            In the order of ``theta_names_``; logarithms of kernel parameters. The fitted ones by
            default. One vector per class if the classes have different structures.
        eval_gradient : bool
            Also return the gradient.

        With inducing points, other hyper-parameters than the fitted ones are judged by a sample
        of the rows that was kept, each for as many as it stands for.

        Returns
        -------
        value, or (value, gradient)
            Means over classes if there are more than two; the gradient is a list, one vector per
            class, if the classes have different structures.
        """
        fits, alike = self._fits, isinstance(self.theta_names_, tuple)
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        thetas = [f.theta for f in fits] if theta is None else self._read_thetas(theta, alike)
        with posterior_needed():
            values = [f.evaluate(t, eval_gradient) for f, t in zip(fits, thetas, strict=True)]
        mean = float(np.mean([v.value for v in values]))
        if not eval_gradient:
            return mean
        gradients = [v.gradient / len(values) for v in values]
        return mean, np.sum(gradients, axis=0) if alike else gradients

    def _read_thetas(self, theta: Any, alike: bool) -> list[Array]:
        """Hyper-parameters of each class, from one vector for all or from one per class."""
        names = [f.theta_names for f in self._fits]
        given = [theta] * len(names) if alike else list(theta)
        if len(given) != len(names):
            raise ValueError(
                f"theta must hold one vector per class, {len(names)} in all; got {len(given)}"
            )
        return [
            np.array(read_numbers("theta", t, len(n), f"{len(n)} numbers, {', '.join(n)}"))
            for t, n in zip(given, names, strict=True)
        ]


def _attributes(model: FittedModel, report: FitReport) -> dict[str, Any]:
    """The fitted attributes that users see."""
    info, fits, mixtures = model.info, model.fits, model.mixtures
    theta_names = [f.theta_names for f in fits]
    named = info.feature_names is not None
    return {
        "n_features_in_": info.n_features,
        **({"feature_names_in_": info.feature_names} if named else {}),
        "classes_": info.classes,
        "levels_": info.levels,
        "annotators_": info.annotators,
        "rho_": _by_class([rho_of(fit) for fit in fits]),
        "kernels_": _by_class([list(f.prior.kernels) for f in fits]),
        "theta_": _by_class([f.theta for f in fits]),
        "theta_names_": theta_names[0] if len(set(theta_names)) == 1 else theta_names,
        "structures_": _by_class([LearntStructure.of(m) for m in mixtures]),
        "log_marginal_likelihood_value_": float(np.mean([f.log_evidence for f in fits])),
        "n_iter_": _by_class([_n_iter(m) for m in mixtures]),
        "report_": report,
        "converged_": report.converged,
    }


def _may_be_same(names: Any, others: Any) -> bool:
    """Whether columns of two fits may be the same ones: they are where they have no names."""
    return names is None or others is None or np.array_equal(names, others)


def _by_class(values: list[Any]) -> Any:
    """The one value of two classes, or those of all classes."""
    return values[0] if len(values) == 1 else values


def _n_iter(mixture: Mixture) -> int:
    optima = [m.fit.optimum for m in mixture.members]
    return max(1 if o is None else o.best.n_evaluations for o in optima)


def class_probabilities(answers: Sequence[Prediction]) -> Array:
    """Probabilities of all classes from those of each class against the rest."""
    if len(answers) == 1:
        return np.stack([answers[0].down, answers[0].up], axis=1)
    down, up, unsure, _, _ = map(_stacked, zip(*answers, strict=True))
    tiny = np.finfo(float).tiny
    return np.exp(coupled(np.log(np.maximum(down, tiny)), np.log(np.maximum(up, tiny)), unsure))


def _stacked(answers: Sequence[Array]) -> Array:
    """One array per class as one array, the classes last; two classes have one."""
    return np.asarray(answers[0] if len(answers) == 1 else np.stack(answers, axis=-1))
