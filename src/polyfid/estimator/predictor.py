"""What a fitted classifier answers: classes, probabilities, latent functions, evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array, Indices
from polyfid.estimator.fitted import FittedModel
from polyfid.estimator.inputs import FidelityColumn, as_table, check_rows, read_features
from polyfid.estimator.levels import encode_levels
from polyfid.estimator.parameters import read_numbers, whole_number
from polyfid.estimator.summary import FitReport, LearntStructure
from polyfid.learning.mixture import BinaryFit, Mixture


class LatentClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose predictions come from a `FittedModel`."""

    random_state: Any
    _model: FittedModel

    @property
    def _mixtures(self) -> tuple[Mixture, ...]:
        return self._model.mixtures

    @property
    def _fits(self) -> list[BinaryFit]:
        return self._model.fits

    @property
    def _fidelity_column(self) -> FidelityColumn | None:
        return self._model.info.column

    def _publish(self, model: FittedModel) -> None:
        """Set the fitted attributes."""
        info, fits = model.info, model.fits
        self._model = model
        self.n_features_in_ = info.n_features
        if info.feature_names is not None:
            self.feature_names_in_ = info.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.classes_, self.levels_, self.annotators_ = info.classes, info.levels, info.annotators
        n_iter = [
            max(1 if m.fit.optimum is None else m.fit.optimum.best.n_evaluations for m in x.members)
            for x in model.mixtures
        ]
        self.rho_ = self._by_class([np.array(getattr(f.prior, "rho", ()), float) for f in fits])
        self.kernels_ = self._by_class([list(f.prior.kernels) for f in fits])
        self.theta_ = self._by_class([f.theta for f in fits])
        names = [f.theta_names for f in fits]
        self.theta_names_ = names[0] if len(set(names)) == 1 else names
        self.structures_ = self._by_class([LearntStructure.of(m) for m in model.mixtures])
        self.log_marginal_likelihood_value_ = float(np.mean([f.log_evidence for f in fits]))
        self.n_iter_ = self._by_class(n_iter)
        self.report_ = FitReport.of(info, model.mixtures)
        self.converged_ = self.report_.converged

    @staticmethod
    def _by_class(values: list[Any]) -> Any:
        """The one value of two classes, or those of all classes."""
        return values[0] if len(values) == 1 else values

    def _new_rows(self, X: Any, fidelity: Any) -> tuple[Array, Indices, Indices]:
        """Features and levels of new rows sorted by level, and where each input row went."""
        check_is_fitted(self, "report_")
        if self._fidelity_column is not None:
            X, column = self._fidelity_column.split_if_there(as_table(X), self.n_features_in_)
            fidelity = column if fidelity is None else fidelity
        x = read_features(self, X, reset=False)
        if fidelity is None:
            level = np.full(len(x), len(self.levels_) - 1, dtype=np.intp)
        elif np.ndim(fidelity) == 0:
            level = np.repeat(encode_levels([fidelity], self.levels_), len(x))
        else:
            level = encode_levels(fidelity, self.levels_)
            check_rows("fidelity", level, len(x))
        order = np.argsort(level, kind="stable")
        return x[order], level[order], np.argsort(order)

    def predict(self, X: Any, fidelity: Any = None) -> NDArray[Any]:
        """Most probable classes (n,), at the top level or at ``fidelity``."""
        x, level, back = self._new_rows(X, fidelity)
        return np.asarray(self.classes_[self._model.classes(x, level)[back]])

    def predict_proba(self, X: Any, fidelity: Any = None) -> Array:
        """Class probabilities (n, n_classes), in the order of ``classes_``.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        fidelity : level name, or array-like of shape (n,), optional
            Which level's label to predict; the top level by default. With ``label_noise``, the
            label before it is flipped.
        """
        x, level, back = self._new_rows(X, fidelity)
        return self._model.probabilities(x, level)[back]

    def predict_log_proba(self, X: Any, fidelity: Any = None) -> Array:
        """Logarithms of `predict_proba`, accurate where a probability is tiny."""
        x, level, back = self._new_rows(X, fidelity)
        return self._model.log_probabilities(x, level)[back]

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
        x, level, back = self._new_rows(X, fidelity)
        p, mean, variance = self._model.probabilities_and_moments(x, level)
        return p[back], mean[back], variance[back]

    def latent_mean_and_variance(self, X: Any, fidelity: Any = None) -> tuple[Array, Array]:
        """Posterior mean and variance of the latent function, (n,) each.

        With more than two classes (n, n_classes), one latent function per class. Where structures
        are averaged, these are moments of the mixture of their posteriors.
        """
        x, level, back = self._new_rows(X, fidelity)
        mean, variance = self._model.mean_and_variance(x, level)
        return mean[back], variance[back]

    def latent_mean_and_covariance(self, X: Any, fidelity: Any = None) -> tuple[Array, Array]:
        """Posterior mean (n,) and joint covariance (n, n) of the latent function.

        With more than two classes (n, n_classes) and (n, n, n_classes).
        """
        x, level, back = self._new_rows(X, fidelity)
        mean, covariance = self._model.mean_and_covariance(x, level)
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
        whole_number(1).check("n_samples", n_samples)
        x, level, back = self._new_rows(X, fidelity)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        return self._model.sample(x, level, n_samples, rng)[back]

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
        check_is_fitted(self, "report_")
        alike = isinstance(self.theta_names_, tuple)
        if theta is None:
            if not eval_gradient:
                return self.log_marginal_likelihood_value_
            thetas = [f.theta for f in self._fits]
        else:
            thetas = self._read_thetas(theta, alike)
        value, gradients = self._model.evidence(thetas, eval_gradient)
        if not eval_gradient:
            return value
        return value, np.sum(gradients, axis=0) if alike else gradients

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
