"""What a label is worth: how the labels of targets depend on one that could be bought.

Latent values of a candidate (mean m, variance v) and of a target (m*, v*) have covariance k. With
KAPPA = 8 / pi, sigmoids are close to normal distribution functions, E sigmoid(f) to Phi(a) with
a = m / sqrt(KAPPA + v), and the two labels agree as two normal variables of correlation

    r = k / sqrt((KAPPA + v) (KAPPA + v*))

do in their signs. All scores are read from that one table of probabilities: they say how much less
uncertain, wrong or costly the target's label is on average once the candidate's is known.

A candidate may say a number instead, its latent value with an error of variance s2. If it is u
standard deviations from what is expected, the target's label has the probability

    Phi((m* + u k / sqrt(v + s2)) / sqrt(KAPPA + v* - k^2 / (v + s2))),

and scores are averages over standard normal u.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtr

from polyfid.arrays import Array

#: sigmoid(f) is about Phi(f / sqrt(KAPPA)).
KAPPA = 8.0 / np.pi
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
#: Standard normal nodes that stand for the outcomes of a number, and their probabilities.
NORMAL_NODES, NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
NORMAL_WEIGHTS /= NORMAL_WEIGHTS.sum()
#: Up to this correlation the power series has five digits after so many terms.
_SMALL, _TERMS = 0.4, 10
#: Probabilities are kept away from 0 and 1 by this, where divisions would lose all digits.
_LEAST = 1e-12

#: A concave function of class probabilities, which are along the first axis.
Uncertainty = Callable[[Array], Array]


def sign_covariance(a: Array, b: Array, r: Array) -> Array:
    """P(x < a, y < b) - Phi(a) Phi(b) of standard normal x and y with correlation r.

    It is the integral of the density at (a, b) over correlations from 0 to r (Plackett, 1954):
    eight Gauss-Legendre nodes with the arc sine of the correlation as the variable, and for small
    correlations its power series, which needs no exponential per pair. Arguments are broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid.suggest.scores import sign_covariance
    >>> c = sign_covariance(np.zeros(1), np.zeros(1), np.array([0.5]))
    >>> round(float(c[0]), 6)  # arcsin(0.5) / (2 pi)
    0.083333
    """
    result = _series(a, b, r)
    large = np.abs(r) > _SMALL
    if large.any():
        own = (np.broadcast_to(z, result.shape)[large] for z in (a, b, r))
        result[large] = _quadrature(*own)
    return result


def _series(a: Array, b: Array, r: Array) -> Array:
    """phi(a) phi(b) sum_k He_{k-1}(a) He_{k-1}(b) r^k / k!, by Horner's rule."""
    terms = zip(_hermite(a), _hermite(b), strict=True)
    total = np.zeros(np.broadcast_shapes(a.shape, b.shape, r.shape))
    for k, (left, right) in reversed(list(enumerate(terms, 1))):
        total += left * right
        total *= r
        total /= k
    return total


def _hermite(z: Array) -> list[Array]:
    """Hermite polynomials times the normal density, of degrees 0 to the last one of the series."""
    density = np.exp(-0.5 * np.square(z)) / np.sqrt(2.0 * np.pi)
    values = [density, z * density]
    for k in range(1, _TERMS - 1):
        values.append(z * values[k] - k * values[k - 1])
    return values


def _quadrature(a: Array, b: Array, r: Array) -> Array:
    angle = np.arcsin(np.clip(r, -1.0 + _LEAST, 1.0 - _LEAST))
    squares, product = np.square(a) + np.square(b), 2.0 * a * b
    total = np.zeros_like(angle)
    for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
        sine = np.sin(0.5 * (node + 1.0) * angle)
        exponent = squares - product * sine
        exponent /= -2.0 * (1.0 - sine) * (1.0 + sine)
        total += weight * np.exp(exponent, out=exponent)
    return np.asarray(total * angle / (4.0 * np.pi))


def conditional(p: Array, q: Array, c: Array) -> tuple[Array, Array]:
    """Probabilities of a target's label after a candidate's label was positive, and negative.

    p and q are those of the candidate and of the target before, c is the labels' covariance.
    """
    p = np.clip(p, _LEAST, 1.0 - _LEAST)
    return np.clip(q + c / p, 0.0, 1.0), np.clip(q - c / (1.0 - p), 0.0, 1.0)


def expected_gain(uncertainty: Uncertainty, outcomes: Array, after: NDArray[np.float64]) -> Array:
    """By how much a label lowers the uncertainty, on average over its outcomes.

    Parameters
    ----------
    uncertainty : function of probabilities of classes, which are along the first axis
    outcomes : array of shape (n_outcomes, ...)
        Probabilities of the label's outcomes.
    after : array of shape (n_outcomes, n_classes, ...)
        Class probabilities of the target after each outcome.
    """
    before = np.einsum("j...,jk...->k...", outcomes, after)
    left = sum(p * uncertainty(each) for p, each in zip(outcomes, after, strict=True))
    return np.asarray(np.maximum(uncertainty(before) - left, 0.0))


def entropy(p: Array) -> Array:
    """Entropy in nats."""
    return np.asarray(entr(p).sum(axis=0))


def spread_of_label(p: Array) -> Array:
    """Expected Brier score of p itself, halved: p (1 - p) of two classes."""
    return np.asarray(0.5 * (1.0 - np.square(p).sum(axis=0)))


def least_cost(costs: Array) -> Uncertainty:
    """Expected cost of the best decision; costs have a row per true class."""

    def expected(p: Array) -> Array:
        return np.asarray(np.tensordot(costs, p, axes=(0, 0)).min(axis=0))

    return expected


def expected_slope(mean: Array, variance: Array) -> Array:
    """E sigmoid'(f), the precision that a label is expected to have as a Gaussian site."""
    total = KAPPA + variance
    density = np.exp(-0.5 * np.square(mean) / total) / np.sqrt(2.0 * np.pi)
    return np.asarray(density / np.sqrt(total))


def probability(mean: Array, variance: Array) -> Array:
    """E sigmoid(f) to about two digits, as all scores have it."""
    return np.asarray(ndtr(mean / np.sqrt(KAPPA + variance)))
