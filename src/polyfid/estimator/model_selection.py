"""Cross-validation that tests on trusted rows only and trains on all cheap ones in every split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import _safe_indexing, check_random_state

from polyfid.arrays import Indices
from polyfid.estimator.constraints import read_whole
from polyfid.estimator.inputs import check_rows, point_ids, read_labels, read_levels
from polyfid.estimator.unknown_trust import TrainingRows

__all__ = ["TrustedKFold", "TrustedShuffleSplit"]


class _TrustedSplitter(BaseCrossValidator):
    """Splits the rows of the top level; a subclass says how."""

    # As in scikit-learn's GroupsConsumerMixin: split takes these without a request.
    __metadata_request__split = {"groups": True, "fidelity": True, "audit": True}  # noqa: RUF012

    n_splits: int
    fidelity: ArrayLike | None
    levels: Iterable[Any] | None
    audit: ArrayLike | None
    stratify: bool
    drop_repeats: bool
    _least_rows = 2  # at the top level

    def _split_trusted(self, n: int, classes: Indices | None) -> Iterable[tuple[Indices, Indices]]:
        """Training and test rows among ``n`` trusted ones, whose classes are given to stratify."""
        raise NotImplementedError

    def split(
        self,
        X: Any,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        fidelity: ArrayLike | None = None,
        audit: ArrayLike | None = None,
    ) -> Iterator[tuple[Indices, Indices]]:
        """Yield the indices of training and test rows.

        Parameters
        ----------
        X : array-like of n rows
            Its values matter with ``drop_repeats`` only.
        y : array-like of shape (n,), optional
            Classes, to stratify by.
        groups, fidelity : array-like of shape (n,), optional
            The level of each row, under either name; overrides that of the constructor.
        audit : array-like of bool of shape (n,), optional
            Marks of the rows to test on; overrides that of the constructor.

        Yields
        ------
        train, test : arrays of indices
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        names, level = read_levels(self.levels, self._chosen_fidelity(groups, fidelity), n)
        at_top = level == len(names) - 1
        cheap, trusted = np.flatnonzero(~at_top), np.flatnonzero(at_top)
        marked = at_top & read_marks(self.audit if audit is None else audit, n)
        always = cheap
        if marked.any():
            always, trusted = np.flatnonzero(~marked), np.flatnonzero(marked)
        if len(trusted) < self._least_rows:
            rows, advice = "rows", "label more rows, or correct the order with levels="
            if marked.any():
                rows, advice = "audit rows", "mark more of them, or pass no audit to test on all"
            raise ValueError(
                f"{type(self).__name__} with n_splits={self.n_splits} needs at least "
                f"{self._least_rows} {rows} at the top level {names[-1]!r}, got {len(trusted)} "
                f"(levels: {list(names)}); {advice}"
            )
        classes = _read_classes(y, n, trusted) if self.stratify and y is not None else None
        points = point_ids(X) if self.drop_repeats else None
        for keep, test in self._split_trusted(len(trusted), classes):
            train, test = np.union1d(always, trusted[keep]), trusted[test]
            if points is not None:
                train = train[~np.isin(points[train], points[test])]
            yield TrainingRows.remembered(train) if np.isin(cheap, train).any() else train, test

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, fidelity: Any = None
    ) -> int:
        """The number of splits; the arguments are those of `split` and not used."""
        return self.n_splits

    def _chosen_fidelity(self, groups: Any, fidelity: Any) -> Any:
        given = [f for f in (groups, fidelity) if f is not None] or [self.fidelity]
        if len(given) > 1:
            raise ValueError(
                "groups and fidelity were both passed, and each is the level of the rows; pass one"
            )
        if given[0] is None:
            raise ValueError(
                f"{type(self).__name__} needs the level of each row: pass it to the constructor as "
                "fidelity=, or to split as groups= (cross_validate and searches: groups=, or "
                'params={"fidelity": ...} with metadata routing)'
            )
        return given[0]


def read_marks(audit: Any, n: int) -> NDArray[np.bool_]:
    """Which of n rows are marked; none without marks.

    >>> read_marks([0, 1], 2), read_marks(None, 2)
    (array([False,  True]), array([False, False]))
    """
    if audit is None:
        return np.zeros(n, dtype=bool)
    marks = np.asarray(audit)
    if marks.shape != (n,) or not np.isin(marks, [0, 1]).all():
        got = f"shape {marks.shape}"
        if marks.shape == (n,):
            got = f"{marks[~np.isin(marks, [0, 1])][0]}"
        raise ValueError(
            f"audit must hold True or False for each of the {n} rows; got {got}. Mark the rows "
            "that were drawn at random, and leave the others False"
        )
    return marks.astype(bool)


def _read_classes(y: ArrayLike, n: int, rows: Indices) -> Indices:
    """The classes of some of n rows; others may have numbers."""
    check_rows("y", y, n)
    try:
        labels = read_labels(_safe_indexing(y, rows), len(rows))
    except ValueError as error:
        raise ValueError(f"{error}. To split without regard to y, pass stratify=False") from error
    return np.unique(labels, return_inverse=True)[1]


class TrustedKFold(_TrustedSplitter):
    """K folds of the rows of the top level; all other rows are in every training set.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    fidelity : array-like of shape (n,), optional
        The level of each row. It can be passed to `split` instead, as ``groups`` or ``fidelity``.
    levels : sequence, optional
        Names of the levels, least trusted first; needed where they are text, unless ``fidelity``
        carries their order as that of `polyfid.stack_levels` does. Numbers are sorted.
    stratify : bool, default=True
        Spread each class over the folds as evenly as its number of trusted rows allows.
    shuffle : bool, default=False
        Shuffle the trusted rows first.
    drop_repeats : bool, default=False
        Leave out of the training set, at every level, the rows with the features of a test row,
        for the score of points without cheap labels. X must not hold the fidelity as a column.
    random_state : int, RandomState or None, default=None
        For ``shuffle=True``.
    audit : array-like of bool of shape (n,), optional
        Marks of trusted rows that were drawn at random. If there are any, they alone are tested,
        and all other trusted rows are in every training set: scores on rows that were chosen
        because they were hard, or easy, are not those of new rows. It can be passed to `split`
        instead.

    Notes
    -----
    ``cross_validate(model, X, y, cv=TrustedKFold(fidelity=f), params={"fidelity": f})``; with
    scikit-learn's metadata routing the constructor's argument can be left out. Models of this
    package warn if their fits get such training rows without their fidelity.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import TrustedKFold
    >>> X, y = np.zeros((6, 1)), [0, 1, 0, 1, 0, 1]
    >>> for train, test in TrustedKFold(2).split(X, y, fidelity=[0, 0, 1, 1, 1, 1]):
    ...     print(train, test)
    [0 1 4 5] [2 3]
    [0 1 2 3] [4 5]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        fidelity: ArrayLike | None = None,
        levels: Iterable[Any] | None = None,
        stratify: bool = True,
        shuffle: bool = False,
        drop_repeats: bool = False,
        random_state: Any = None,
        audit: ArrayLike | None = None,
    ) -> None:
        self.n_splits = self._least_rows = read_whole("n_splits", n_splits, 2)
        self.shuffle, self.random_state = shuffle, random_state
        self.fidelity, self.levels, self.audit = fidelity, levels, audit
        self.stratify, self.drop_repeats = stratify, drop_repeats
        if random_state is not None and not shuffle:
            raise ValueError(f"random_state={random_state!r} has no effect with shuffle=False")

    def _split_trusted(self, n: int, classes: Indices | None) -> Iterable[tuple[Indices, Indices]]:
        order = np.arange(n)
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(n)
        if classes is None:
            folds = np.array_split(order, self.n_splits)
        else:
            # Sorted by class and dealt like cards. So does scikit-learn's StratifiedKFold, but it
            # warns of a class rarer than the folds, and fails if all are.
            order = order[np.argsort(classes[order], kind="stable")]
            folds = [order[k :: self.n_splits] for k in range(self.n_splits)]
        for test in folds:
            yield np.setdiff1d(order, test), np.sort(test)


class TrustedShuffleSplit(_TrustedSplitter):
    """Random test sets from the rows of the top level; all other rows are in every training set.

    Parameters
    ----------
    n_splits : int, default=10
        Number of test sets.
    test_size, train_size : float or int, optional
        Fraction or number of the trusted rows to test on, by default 0.2, and to train on, by
        default the others.
    fidelity, levels, drop_repeats, audit
        As in `TrustedKFold`; so is how fidelity and audit marks are passed.
    stratify : bool, default=True
        Keep the proportions of the classes, if there are enough rows of each.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import TrustedShuffleSplit
    >>> splitter = TrustedShuffleSplit(1, fidelity=[0] * 14 + [1] * 10, random_state=0)
    >>> train, test = next(splitter.split(np.zeros((24, 1)), [0, 1] * 12))
    >>> len(train), len(test), bool(test.min() >= 14)
    (22, 2, True)
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float | None = 0.2,
        train_size: float | None = None,
        fidelity: ArrayLike | None = None,
        levels: Iterable[Any] | None = None,
        stratify: bool = True,
        drop_repeats: bool = False,
        random_state: Any = None,
        audit: ArrayLike | None = None,
    ) -> None:
        self.n_splits, self.random_state = read_whole("n_splits", n_splits, 1), random_state
        self.test_size, self.train_size = test_size, train_size
        self.fidelity, self.levels, self.audit = fidelity, levels, audit
        self.stratify, self.drop_repeats = stratify, drop_repeats

    def _split_trusted(self, n: int, classes: Indices | None) -> Iterable[tuple[Indices, Indices]]:
        names = ("n_splits", "test_size", "train_size", "random_state")
        options = {name: getattr(self, name) for name in names}
        rows = np.zeros((n, 1))
        if classes is not None:
            with suppress(ValueError):  # of few rows per class; wrong sizes fail below again
                return list(StratifiedShuffleSplit(**options).split(rows, classes))
        return ShuffleSplit(**options).split(rows)
