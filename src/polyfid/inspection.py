"""What a fitted model has learnt: how levels are linked, where they differ, which labels are wrong.

These functions compute and do not draw; `polyfid.plots` and `polyfid.report` show what they return.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, owens_t
from scipy.stats import qmc
from sklearn.utils.validation import check_is_fitted

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.estimator.fitted import class_probabilities
from polyfid.estimator.inputs import (
    as_table,
    point_ids,
    read_features,
    read_labels,
    read_levels,
    read_targets,
    read_weights,
    split_fidelity,
)
from polyfid.estimator.levels import encode_levels
from polyfid.inference.posterior import prior_pair
from polyfid.learning.left_out import predict_without
from polyfid.learning.links import Link as Link
from polyfid.learning.links import typical_rows
from polyfid.learning.mixture import Member, Mixture
from polyfid.rows import Points, Rows

__all__ = [
    "LevelDifference",
    "LikelyWrong",
    "Link",
    "feature_relevance",
    "level_contributions",
    "level_difference",
    "level_links",
    "likely_wrong",
    "without_own_labels",
]

#: Elements of the largest temporary array.
_BATCH_ELEMENTS = 1 << 20
#: Draws per point with more than two classes, the same for all points so that maps are smooth.
_CLASS_DRAWS = 1024
#: Relevance: rows that are predicted, permutations per column, and the most predictions in all.
_RELEVANCE_ROWS, _PERMUTATIONS, _PREDICTIONS = (20, 200), 4, 100_000
#: Bootstrap samples of its interval.
_RELEVANCE_SAMPLES = 500


def check_levels(model: MultiFidelityClassifier) -> None:
    """Raise an error unless the model is fitted and has two levels or more."""
    check_is_fitted(model, "report_")
    if len(model.levels_) < 2:
        raise ValueError(
            f"model has one level only, {model.levels_[0]!r}, and there are no levels to compare; "
            "fit it to labels of two levels or more"
        )


def find_levels(model: MultiFidelityClassifier, lower: Any, upper: Any) -> tuple[int, int]:
    """Indices of two levels given by name; by default the top level and the one below it."""
    check_levels(model)
    names = model.levels_
    up = len(names) - 1 if upper is None else int(encode_levels([upper], names, "upper")[0])
    low = max(up - 1, 0) if lower is None else int(encode_levels([lower], names, "lower")[0])
    if low >= up:
        raise ValueError(
            f"lower must be a level below upper; got {names[low]!r} and {names[up]!r}, and the "
            f"levels, least trusted first, are {list(names)}"
        )
    return low, up


def find_class(model: Any, target: Any) -> int:
    """Index of a class given by its label; by default the last, the positive one of two."""
    classes = list(model.classes_)
    if target is None:
        return len(classes) - 1
    if target not in classes:
        raise ValueError(f"target must be one of the classes {classes}, got {target!r}")
    return classes.index(target)


def class_codes(model: Any, y: Any, level: Indices | None = None) -> Indices:
    """Indices of the classes of labels; -1 where a label is none of the classes.

    So it is with rows of numeric levels, if the ``level`` of each row is given.
    """
    places = {label: k for k, label in enumerate(np.asarray(model.classes_).tolist())}
    code = np.array([places.get(label, -1) for label in np.asarray(y).tolist()], dtype=np.intp)
    if level is not None and isinstance(model, MultiFidelityClassifier):
        code[np.isin(level, model._fitted.info.numeric)] = -1
    return code


def level_links(model: MultiFidelityClassifier) -> list[list[Link]]:
    """The links between neighbouring levels, from the lowest: one list per binary model.

    Two classes have one binary model, more classes have one per class. Intervals cover the spread
    over structures and the uncertainty of hyper-parameters; where the latter would take more than
    some ten seconds, it is left out of the structures of least weight. They are computed once, and
    are those that ``model.report_`` shows.
    """
    check_levels(model)
    return model.report_.links


def level_contributions(model: MultiFidelityClassifier, x: Array | None = None) -> Array:
    """How much of the top latent function the labels of each level explain.

    These are shares of its prior variance, (n_models, n_levels + 1): by how much the posterior
    variance, averaged over the rows ``x`` (by default those of the fit), falls when the labels of
    a level are added to those of all more trusted levels. The last entry is the variance that is
    left; rows sum to one.
    """
    check_levels(model)
    top = len(model.levels_) - 1
    shares = np.zeros((len(model._mixtures), top + 2))
    for row, mixture in zip(shares, model._mixtures, strict=True):
        for member in mixture.members:
            posterior = member.fit.posterior
            at = typical_rows(posterior.points.x if x is None else mixture.points(member, x))
            new = Points(at, np.full(len(at), top, dtype=np.intp))
            before = prior = float(posterior.prior.diagonal(new).mean())
            for t in range(top, -1, -1):
                variance = posterior.variance_from(t, new, member.fit.likelihood)
                after = min(float(variance.mean()), before)
                row[t] += member.weight * (before - after) / prior
                before = after
            row[-1] += member.weight * before / prior
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


class LevelDifference(NamedTuple):
    """How two levels differ at points, (n,) each: P(different classes), f_upper - rho f_lower.

    The probability is NaN where one of the levels is numeric.
    """

    probability: Array
    delta_mean: Array
    delta_sd: Array


class _Joint(NamedTuple):
    """Latent values of two levels at points under one structure: its weight, and (n,) each."""

    weight: float
    below: Array
    above: Array
    sd_below: Array
    sd_above: Array
    correlation: Array
    delta_mean: Array
    delta_variance: Array


def level_difference(
    model: MultiFidelityClassifier, x: Array, lower: int, upper: int, target: int
) -> LevelDifference:
    """How two levels (from `find_levels`) differ at rows (n, d), averaged over structures.

    ``target``, from `find_class`, is the index of the class that delta is about.
    """
    mixtures = model._mixtures
    binary = len(mixtures) == 1
    n = max(len(mixture.best.fit.posterior.points) for mixture in mixtures)
    size = max(1, _BATCH_ELEMENTS // max(_CLASS_DRAWS, n))
    batches = []
    for start in range(0, len(x), size):
        rows = x[start : start + size]
        joints = [
            [_joint(mixture, member, rows, lower, upper) for member in mixture.members]
            for mixture in mixtures
        ]
        probability = np.full(len(rows), np.nan)
        if not {lower, upper} & {*model._fitted.info.numeric}:
            probability = _signs_differ(joints[0]) if binary else _classes_differ(joints)
        weights, means, variances = (
            np.array([getattr(j, name) for j in joints[0 if binary else target]])
            for name in ("weight", "delta_mean", "delta_variance")
        )
        mean = weights @ means
        sd = np.sqrt(weights @ (variances + np.square(means - mean)))
        # The latent function of two classes is that of the second one.
        batches.append((probability, -mean if binary and target == 0 else mean, sd))
    return LevelDifference(*(np.concatenate(b) for b in zip(*batches, strict=True)))


def _joint(mixture: Mixture, member: Member, x: Array, lower: int, upper: int) -> _Joint:
    spread = mixture.spread
    posterior, tiny, limit = member.fit.posterior, np.finfo(float).tiny, 1.0 - 1e-12
    x = mixture.points(member, x)
    pair = posterior.pair(x, lower, upper)
    pair = pair if spread is None else spread.pair(pair, lower, upper)
    below, above = (np.sqrt(np.maximum(v, tiny)) for v in (pair.var_below, pair.var_above))
    correlation = np.clip(pair.covariance / (below * above), -limit, limit)
    (own, _), shared = prior_pair(posterior.prior, x, lower, upper)
    rho = shared / np.maximum(own, tiny)
    scaled = rho * below
    variance = above**2 + scaled**2 - 2.0 * correlation * scaled * above
    moments = pair.above - rho * pair.below, np.maximum(variance, 0.0)
    return _Joint(member.weight, pair.below, pair.above, below, above, correlation, *moments)


def _signs_differ(joints: list[_Joint]) -> Array:
    """Probability that the latent values have different signs, over structures."""
    total: Any = 0.0
    for j in joints:
        a, b = j.below / j.sd_below, j.above / j.sd_above
        total += j.weight * (ndtr(a) + ndtr(b) - 2.0 * _both_positive(a, b, j.correlation))
    return np.clip(total, 0.0, 1.0)


def _both_positive(a: Array, b: Array, correlation: Array) -> Array:
    """P(u > 0 and v > 0) of two normal variables with means a, b and variances 1 (Owen, 1956)."""
    a, b = (np.where(np.abs(z) < 1e-12, 1e-12, z) for z in (a, b))
    other = np.sqrt((1.0 - correlation) * (1.0 + correlation))
    tails = owens_t(a, (b / a - correlation) / other) + owens_t(b, (a / b - correlation) / other)
    return np.asarray(0.5 * (ndtr(a) + ndtr(b)) - tails - 0.5 * (a * b < 0.0))


def _classes_differ(joints: list[list[_Joint]]) -> Array:
    """Probability that the largest latent values of the two levels are of different classes."""
    n_classes, n = len(joints), len(joints[0][0].below)
    uniform = qmc.Sobol(3 * n_classes, scramble=True, seed=0).random(_CLASS_DRAWS)
    lower, upper = (np.empty((n_classes, n, _CLASS_DRAWS)) for _ in range(2))
    for k, members in enumerate(joints):
        u = uniform[:, 3 * k : 3 * k + 3]
        edges = np.cumsum([j.weight for j in members])
        which = np.searchsorted(edges[:-1], u[:, 2] * edges[-1])
        z = ndtri(np.clip(u[:, :2], 1e-9, 1.0 - 1e-9))
        for i, j in enumerate(members):
            chosen, r = which == i, j.correlation[:, None]
            first, second = z[chosen].T
            mixed = r * first + np.sqrt((1.0 - r) * (1.0 + r)) * second
            lower[k][:, chosen] = j.below[:, None] + j.sd_below[:, None] * first
            upper[k][:, chosen] = j.above[:, None] + j.sd_above[:, None] * mixed
    return np.asarray((lower.argmax(axis=0) != upper.argmax(axis=0)).mean(axis=1))


class LikelyWrong(NamedTuple):
    """Labels below the top level, those that are most likely wrong first, (n,) each.

    ``rows`` are their places in X; ``probability`` is that of the trusted label being another one,
    and ``expected`` the most probable trusted label.
    """

    rows: Indices
    probability: Array
    expected: NDArray[Any]


def likely_wrong(
    model: MultiFidelityClassifier,
    X: Any,
    y: ArrayLike,
    fidelity: Any = None,
    sample_weight: Any = None,
) -> LikelyWrong:
    """Cheap labels, ranked by the probability that the most trusted level would say otherwise.

    Numbers of numeric levels are not ranked.
    Each probability leaves out what the label itself told the model about its point; all other
    labels count, and so do those of others at the same point.

    Parameters
    ----------
    model : fitted MultiFidelityClassifier
        With two levels or more.
    X, y, fidelity, sample_weight
        The rows that it was fitted to.

    Notes
    -----
    Labels of whom a model with ``label_noise="annotator"`` learns rates, and the trees of a model
    of many rows, are not left out: there a wrong label makes itself look a little better.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.inspection import likely_wrong
    >>> from polyfid.kernels import RBF
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> y, fidelity = X[:, 0] > 0, np.arange(30) % 3 == 0
    >>> y[4] = True
    >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, y, fidelity=fidelity)
    >>> wrong = likely_wrong(model, X, y, fidelity)
    >>> int(wrong.rows[0]), bool(wrong.probability[0] > 0.5), bool(wrong.expected[0])
    (4, True, False)
    """
    check_levels(model)
    X, fidelity, _ = split_fidelity(as_table(X), fidelity, model.fidelity_feature)
    x = read_features(model, X, reset=False)
    weight = read_weights(sample_weight, len(x))
    _, level = read_levels(model.levels_, fidelity, len(x))
    numeric = model._fitted.info.numeric
    labels = (
        read_targets(y, level, model.levels_, numeric)[0] if numeric else read_labels(y, len(x))
    )
    top, code = len(model.levels_) - 1, class_codes(model, labels, level)
    rows = np.flatnonzero((level < top) & (code >= 0) & (weight > 0.0))
    if model.label_noise == "annotator":
        weight = np.zeros(len(x))
    points = point_ids(x)
    repeats = np.isin(points, points[level == top])[rows]
    cheap = Rows.of(x[rows], level[rows], code[rows], weight[rows])
    by_level = np.argsort(level[rows], kind="stable")
    proba = np.empty((len(rows), len(model.classes_)))
    proba[by_level] = without_own_labels(model, cheap, repeats[by_level])
    wrong = 1.0 - proba[np.arange(len(rows)), code[rows]]
    order = np.argsort(-wrong, kind="stable")
    expected = np.asarray(model.classes_)[proba.argmax(axis=1)]
    return LikelyWrong(rows[order], wrong[order], expected[order])


def without_own_labels(
    model: MultiFidelityClassifier, rows: Rows, repeats: NDArray[np.bool_]
) -> Array:
    """Class probabilities at the top level of fitted rows, (n, n_classes), each without its own."""
    mixtures, top = model._mixtures, len(model.levels_) - 1
    positive = [1] if len(mixtures) == 1 else range(len(mixtures))
    size = max(1, _BATCH_ELEMENTS // max(mixture.size for mixture in mixtures))
    batches = [np.empty((0, len(model.classes_)))]
    for start in range(0, len(rows), size):
        at = np.arange(start, min(start + size, len(rows)))
        part = rows.take(at)
        answers = [
            predict_without(mixture, part, np.where(part.y == k, 1.0, -1.0), repeats[at], top)
            for mixture, k in zip(mixtures, positive, strict=True)
        ]
        batches.append(class_probabilities(answers))
    return np.concatenate(batches)


def feature_relevance(model: Any, X: Any, groups: Sequence[slice], seed: int = 0) -> Array:
    """How far predictions move, on average, when the values of a feature are permuted.

    Each row of the result, (n_groups, 3), is the measure with the ends of its 95 % interval: a
    bootstrap over rows and permutations.

    The measure is the mean total variation distance between the class probabilities (of the most
    trusted level) before and after, from 0 to 1: for two classes the mean change of a
    probability. It needs no labels. ``groups`` are the columns of each feature in the data frame
    ``X``; those of one feature are permuted together.
    """
    rng = np.random.RandomState(seed)
    n_rows = int(np.clip(_PREDICTIONS // len(groups), *_RELEVANCE_ROWS))
    x = X.iloc[np.sort(rng.permutation(len(X))[:n_rows])]
    repeats = _PERMUTATIONS if len(groups) * _PERMUTATIONS * n_rows <= _PREDICTIONS else 1
    before, results = model.predict_proba(x), []
    for columns in groups:
        moved = np.empty((repeats, len(x)))
        for r in range(repeats):
            permuted = x.copy()
            permuted.iloc[:, columns] = x.iloc[rng.permutation(len(x)), columns].to_numpy()
            moved[r] = 0.5 * np.abs(model.predict_proba(permuted) - before).sum(axis=1)
        share = np.full(len(x), 1.0 / len(x))
        drawn = rng.multinomial(len(x), share, _RELEVANCE_SAMPLES) / len(x)
        each = rng.multinomial(repeats, np.full(repeats, 1.0 / repeats), len(drawn)) / repeats
        samples = np.einsum("bn,rn,br->b", drawn, moved, each, optimize=True)
        low, high = np.percentile(samples, [2.5, 97.5])
        results.append((moved.mean(), low, high))
    return np.array(results)
