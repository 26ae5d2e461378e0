"""What a fitted classifier knows, and what it says of new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array
from polyfid.estimator.inputs import (
    FidelityColumn,
    as_table,
    check_rows,
    look_at_levels,
    read_features,
)
from polyfid.estimator.levels import Levels, encode_levels
from polyfid.estimator.parameters import check_count, read_numbers
from polyfid.estimator.summary import FitReport, LearntStructure
from polyfid.learning.mixture import Mixture
from polyfid.learning.model import BinaryFit, evaluate


@dataclass(frozen=True)
class Known:
    """What a fit knows of its rows, besides the models of them."""

    classes: NDArray[Any]
    levels: Levels
    annotators: NDArray[Any] | None
    column: FidelityColumn | None
    counts: NDArray[np.intp]
    n_features: int
    plan: str

    @property
    def notes(self) -> list[str]:
        """What is unusual about them."""
        return look_at_levels(self.counts, self.levels, self.classes)


class Fitted:
    """The side of the estimator that needs a fit: attributes, predictions, evidence."""

    random_state: Any
    n_features_in_: int
    _known: Known
    _mixtures: list[Mixture]

    @property
    def _fidelity_column(self) -> FidelityColumn | None:
        return self._known.column

    @property
    def _fits(self) -> list[BinaryFit]:
        """The heaviest model of each class, or the one model of two classes."""
        return [m.best.fit for m in self._mixtures]

    def _publish(self, known: Known, mixtures: list[Mixture]) -> None:
        """Set the fitted attributes."""
        self._known, self._mixtures = known, list(mixtures)
        self.classes_, self.levels_, self.annotators_ = (
            known.classes,
            known.levels,
            known.annotators,
        )
        fits = self._fits
        rho = [np.array(getattr(f.prior, "rho", ()), dtype=float) for f in fits]
        single = len(fits) == 1
        self.rho_ = rho[0] if single else rho
        kernels = [list(f.prior.kernels) for f in fits]
        self.kernels_ = kernels[0] if single else kernels
        self.theta_ = fits[0].theta if single else [f.theta for f in fits]
        names = [f.theta_names for f in fits]
        self.theta_names_ = names[0] if len(set(names)) == 1 else names
        structures = [LearntStructure.of(m) for m in self._mixtures]
        self.structures_ = structures[0] if single else structures
        self.log_marginal_likelihood_value_ = float(np.mean([f.log_evidence for f in fits]))
        n_iter = [1 if f.optimum is None else f.optimum.best.n_evaluations for f in fits]
        self.n_iter_ = n_iter[0] if single else n_iter
        self.report_ = FitReport.of(
            self._mixtures,
            self.levels_,
            self.classes_,
            known.counts,
            known.notes,
            getattr(self, "feature_names_in_", None),
            known.plan,
        )
        self.converged_ = self.report_.converged

    def _new_rows(self, X: Any, fidelity: Any) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
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
        check_is_fitted(self, "report_")
        if len(self.classes_) > 2:
            return np.asarray(self.classes_[np.argmax(self.predict_proba(X, fidelity), axis=1)])
        x, level, back = self._new_rows(X, fidelity)
        return np.asarray(self.classes_[self._mixtures[0].positive(x, level)[back].astype(int)])

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
        return self._joined([m.probabilities(x, level) for m in self._mixtures])[back]

    def _joined(self, parts: list[tuple[Array, Array]]) -> Array:
        """Probabilities of all classes from those of each class against the rest."""
        if len(parts) == 1:
            return np.stack(parts[0], axis=1)
        p = np.maximum(np.stack([up for _, up in parts], axis=1), np.finfo(float).tiny)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any, fidelity: Any = None) -> Array:
        """Logarithms of `predict_proba`, accurate where a probability is tiny."""
        check_is_fitted(self, "report_")
        if len(self.classes_) > 2:
            return np.log(self.predict_proba(X, fidelity))
        x, level, back = self._new_rows(X, fidelity)
        return np.stack(self._mixtures[0].log_probabilities(x, level), axis=1)[back]

    def latent_mean_and_variance(self, X: Any, fidelity: Any = None) -> tuple[Array, Array]:
        """Posterior mean and variance of the latent function, (n,) each.

        With more than two classes (n, n_classes), one latent function a class. Where structures
        are averaged, these are moments of the mixture of their posteriors.
        """
        x, level, back = self._new_rows(X, fidelity)
        return self._stacked([m.mean_and_variance(x, level) for m in self._mixtures], back)

    @staticmethod
    def _stacked(parts: list[tuple[Array, Array]], back: NDArray[np.intp]) -> tuple[Array, Array]:
        means, variances = (np.stack([p[i][back] for p in parts], axis=-1) for i in (0, 1))
        return (means[:, 0], variances[:, 0]) if len(parts) == 1 else (means, variances)

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
        parts = [m.probabilities_and_moments(x, level) for m in self._mixtures]
        p = self._joined([(down, up) for down, up, _, _ in parts])[back]
        return p, *self._stacked([(mean, variance) for _, _, mean, variance in parts], back)

    def latent_mean_and_covariance(self, X: Any, fidelity: Any = None) -> tuple[Array, Array]:
        """Posterior mean (n,) and joint covariance (n, n) of the latent function.

        With more than two classes (n, n_classes) and (n, n, n_classes).
        """
        x, level, back = self._new_rows(X, fidelity)
        parts = [m.mean_and_covariance(x, level) for m in self._mixtures]
        means = np.stack([m[back] for m, _ in parts], axis=-1)
        covariances = np.stack([c[np.ix_(back, back)] for _, c in parts], axis=-1)
        return (means[:, 0], covariances[..., 0]) if len(parts) == 1 else (means, covariances)

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
        check_count("n_samples", n_samples, 1)
        x, level, back = self._new_rows(X, fidelity)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        parts = [m.sample(x, level, n_samples, rng)[back] for m in self._mixtures]
        return parts[0] if len(parts) == 1 else np.stack(parts, axis=-1)

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> float | tuple[float, Array | list[Array]]:
        """Approximate log evidence of hyper-parameters on the training rows.

        Parameters
        ----------
        theta : array-like, optional
            In the order of ``theta_names_``; logarithms of kernel parameters. The fitted ones by
            default. One vector a class if the classes have different structures.
        eval_gradient : bool
            Also return the gradient.

        With inducing points, other hyper-parameters than the fitted ones are judged by a sample
        of the rows that was kept, each for as many as it stands for.

        Returns
        -------
        value, or (value, gradient)
            Means over classes if there are more than two; the gradient is a list, one vector a
            class, if the classes have different structures.
        """
        check_is_fitted(self, "report_")
        if theta is None:
            if not eval_gradient:
                return self.log_marginal_likelihood_value_
            thetas = [f.theta for f in self._fits]
        else:
            # With several classes one vector for all, or one a class where structures differ.
            names = [f.theta_names for f in self._fits]
            alike = isinstance(self.theta_names_, tuple)
            given = [theta] * len(names) if alike else list(theta)  # type: ignore[arg-type]
            if len(given) != len(names):
                raise ValueError(
                    f"theta must hold one vector a class, {len(names)} in all; got {len(given)}"
                )
            thetas = [
                np.array(read_numbers("theta", t, len(n), f"{len(n)} numbers, {', '.join(n)}"))
                for t, n in zip(given, names, strict=True)
            ]
        parts = [evaluate(f, t, eval_gradient) for f, t in zip(self._fits, thetas, strict=True)]
        value = float(np.mean([p.value for p in parts]))
        if not eval_gradient:
            return value
        slopes = [p.gradient / len(parts) for p in parts]
        return value, np.sum(slopes, axis=0) if isinstance(self.theta_names_, tuple) else slopes
