"""Suggestions in the shape of scikit-activeml's query strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_array, check_random_state

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.constraints import read_numeric, read_whole
from polyfid.estimator.fitted import posterior_needed
from polyfid.inference.linalg import suitable_threads
from polyfid.suggest.candidates import cautious
from polyfid.suggest.designs import farthest_first
from polyfid.suggest.suggestion import N_TARGETS, Question


class QueryStrategy(BaseEstimator):
    """Which samples to label next, for code that is written for scikit-activeml.

    Parameters
    ----------
    model : MultiFidelityClassifier, optional
        What is fitted to the labels at each query; one with default settings by default. Columns of
        a matrix ``y`` that are its ``numeric_levels`` hold numbers.
    strategy : str
        As in `polyfid.suggest`.
    levels : sequence, optional
        Names of the levels, least trusted first, which the columns of a matrix ``y`` are.
    costs : dict, optional
        What a label of each level costs; all cost the same by default. Utilities are per cost.
    missing_label : scalar
        Stands for a label that is not there; NaN and None always do.
    random_state : int, RandomState or None

    Notes
    -----
    Besides the shapes there is nothing of scikit-activeml in it, and nothing of it is needed.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.kernels import RBF
    >>> from polyfid.suggest import QueryStrategy
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> y = np.full(9, np.nan)
    >>> y[[0, 8]] = 0, 1
    >>> strategy = QueryStrategy(MultiFidelityClassifier(1.0 * RBF()), random_state=0)
    >>> indices, utilities = strategy.query(X, y, batch_size=2, return_utilities=True)
    >>> indices.shape, utilities.shape, bool(np.isnan(utilities[0, 0]))
    ((2,), (2, 9), True)
    """

    def __init__(
        self,
        model: MultiFidelityClassifier | None = None,
        *,
        strategy: str = "epig",
        levels: Sequence[Any] | None = None,
        costs: Mapping[Any, float] | None = None,
        missing_label: Any = np.nan,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.strategy = strategy
        self.levels = levels
        self.costs = costs
        self.missing_label = missing_label
        self.random_state = random_state

    def query(
        self,
        X: ArrayLike,
        y: ArrayLike,
        candidates: ArrayLike | None = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """The candidates to label next.

        Parameters
        ----------
        X : array-like of shape (n, d)
            All samples, labelled or not.
        y : array-like of shape (n,) or (n, n_levels)
            Their labels, or those of each level in a column of its own.
        candidates : array-like of shape (n_candidates,) or (n_candidates, d), optional
            Indices of samples, or samples that need not be in X. By default samples without a
            label.
        batch_size : int
        return_utilities : bool

        Returns
        -------
        query_indices : array of shape (batch_size,) or (batch_size, 2)
            Indices of samples in X, or in ``candidates`` if those are samples; with a matrix ``y``
            pairs of a sample and a level.
        utilities : array of shape (batch_size, n) or (batch_size, n, n_levels)
            If they are asked for: the utility of each sample before each pick, NaN for those that
            are no candidates. n is that of X, or of ``candidates`` if those are samples.
        """
        x: Array = check_array(X)
        labels = np.asarray(y, dtype=object)
        n_levels = 1 if labels.ndim == 1 else labels.shape[1]
        if labels.ndim not in (1, 2) or len(labels) != len(x):
            raise ValueError(
                f"y must have shape ({len(x)},) or ({len(x)}, n_levels), got {labels.shape}"
            )
        there = ~self._missing(labels)
        batch_size = read_whole("batch_size", batch_size, 1)
        rng = check_random_state(self.random_state)
        rows, allowed = _candidates(x, there.reshape(len(x), n_levels), candidates)
        batch_size = min(batch_size, int(allowed.sum()))
        names = [*range(n_levels)] if self.levels is None else list(self.levels)
        if len(names) != n_levels:
            raise ValueError(f"levels names {len(names)} levels, and y has {n_levels}")
        sample, level = np.nonzero(there.reshape(len(x), n_levels))
        told = labels.reshape(len(x), n_levels)[sample, level]
        model = MultiFidelityClassifier(random_state=0) if self.model is None else self.model
        numeric = read_numeric(model.numeric_levels, tuple(names))
        if not numeric:
            told = np.array(told.tolist())
        if len({*told[~np.isin(level, numeric)].tolist()}) < 2:
            known = np.asarray(there.reshape(len(x), n_levels).any(axis=1))
            worth = _spread(x, known, rows, allowed, rng)
            chosen, utilities = _picked(worth, allowed, batch_size)
        else:
            model = clone(model).set_params(levels=names)
            model.fit(x[sample], told, fidelity=np.array(names, dtype=object)[level])
            chosen, utilities = self._chosen(model, x, rows, allowed, batch_size, rng)
        indices = chosen[:, 0] if labels.ndim == 1 else chosen
        if labels.ndim == 1:
            utilities = utilities[:, :, 0]
        return (indices, utilities) if return_utilities else indices

    def _missing(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        flat = [
            v is None or v != v or (isinstance(v, type(self.missing_label)) and self._is_missing(v))
            for v in labels.ravel().tolist()
        ]
        return np.array(flat, dtype=bool).reshape(labels.shape)

    def _is_missing(self, value: Any) -> bool:
        return bool(value == self.missing_label)

    def _chosen(
        self,
        model: MultiFidelityClassifier,
        X: Array,
        rows: Array,
        allowed: NDArray[np.bool_],
        batch_size: int,
        rng: np.random.RandomState,
    ) -> tuple[Indices, Array]:
        """Pairs of rows and levels, chosen greedily, and all utilities before each pick."""
        row, level = np.nonzero(allowed)
        order = np.argsort(level, kind="stable")
        row, level = row[order], level[order]
        targets = X
        if len(X) > N_TARGETS:
            targets = X[rng.choice(len(X), N_TARGETS, replace=False)]
        prices = np.array([float((self.costs or {}).get(name, 1.0)) for name in model.levels_])
        prices = cautious(model, prices, np.arange(len(prices)))
        question = Question.of(model, self.strategy, None, None)
        free, chosen, utilities = np.ones(len(row), dtype=bool), [], []
        with posterior_needed(), suitable_threads(max(m.size for m in model._mixtures)):
            beliefs = question.beliefs(rows[row], level, targets, question.draws(rng))
            for _ in range(batch_size):
                worth = question.strategy.score(beliefs, np.arange(len(row))) / prices[level]
                if self.strategy == "random":
                    worth = rng.uniform(size=len(row))
                worth[~free] = np.nan
                utilities.append(np.full(allowed.shape, np.nan))
                utilities[-1][row, level] = worth
                best = int(np.nanargmax(worth))
                free[best] = False
                chosen.append((row[best], level[best]))
                for belief in beliefs:
                    belief.pick(best)
        return np.array(chosen, dtype=np.intp).reshape(-1, 2), np.array(utilities)


def _candidates(
    X: Array, there: NDArray[np.bool_], candidates: Any
) -> tuple[Array, NDArray[np.bool_]]:
    """Rows, and which of them may be chosen at which level."""
    if candidates is None:
        return X, ~there
    given = np.asarray(candidates)
    if given.ndim == 1:
        index = given.astype(np.intp)
        if not np.array_equal(index, given) or not ((index >= 0) & (index < len(X))).all():
            raise ValueError(f"candidates must be indices from 0 to {len(X) - 1}; got {given}")
        allowed = np.zeros_like(there)
        allowed[index] = True
        return X, allowed
    rows = check_array(candidates)
    if rows.shape[1] != X.shape[1]:
        raise ValueError(f"candidates have {rows.shape[1]} features, and X has {X.shape[1]}")
    return rows, np.ones((len(rows), there.shape[1]), dtype=bool)


def _spread(
    X: Array,
    labelled: NDArray[np.bool_],
    rows: Array,
    allowed: NDArray[np.bool_],
    rng: np.random.RandomState,
) -> Array:
    """Utilities without a model: the farther from what is labelled and chosen, the better."""
    both = np.concatenate([rows, X[labelled]])
    before = np.arange(len(both)) >= len(rows)
    before[: len(rows)] = ~allowed.any(axis=1)
    order = farthest_first(both, before, len(rows), rng)
    worth = np.zeros(allowed.shape)
    worth[order] = np.linspace(1.0, 0.0, len(order), endpoint=False)[:, None]
    return worth


def _picked(worth: Array, allowed: NDArray[np.bool_], batch_size: int) -> tuple[Indices, Array]:
    """The best pairs of rows and levels, and what was worth how much before each pick."""
    worth, chosen, utilities = np.where(allowed, worth, np.nan), [], []
    for _ in range(batch_size):
        utilities.append(worth.copy())
        best = np.unravel_index(int(np.nanargmax(worth)), worth.shape)
        chosen.append(best)
        worth[best] = np.nan
    return np.array(chosen, dtype=np.intp).reshape(-1, 2), np.array(utilities)
