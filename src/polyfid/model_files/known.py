"""The classes of the library that a saved model is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyfid.arrays import Array, Scale
from polyfid.estimator.inputs import FidelityColumn
from polyfid.inference import Report
from polyfid.inference.inducing import Inducing
from polyfid.inference.linalg import Cholesky, Indefinite
from polyfid.inference.posterior import Posterior
from polyfid.inference.sites import Sites
from polyfid.inference.sparse_belief import SparseBelief
from polyfid.inference.sparse_posterior import SparsePosterior
from polyfid.kernels import (
    RBF,
    Categorical,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Product,
    RationalQuadratic,
    Sum,
    White,
)
from polyfid.learning.climb import Climb, Optimum
from polyfid.learning.mixture import Member, Mixture
from polyfid.learning.model import BinaryFit
from polyfid.model.features import AsGiven, Coded, Ranked, SharedUnit, Standardised, UnitRows
from polyfid.model.likelihoods import Logit, NoisyLogit
from polyfid.model.prior import Autoregressive, Coregional
from polyfid.model_files.registry import Entry, Fields, enter, enter_late, register
from polyfid.rows import Points

_KERNELS = (
    RBF,
    Categorical,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Product,
    RationalQuadratic,
    Sum,
    White,
)
_FEATURE_MAPS = (AsGiven, Coded, Ranked, SharedUnit, Standardised, UnitRows)
_PARTS = (
    Autoregressive,
    BinaryFit,
    Climb,
    Coregional,
    FidelityColumn,
    Inducing,
    Logit,
    Member,
    Mixture,
    NoisyLogit,
    Optimum,
    Points,
    Posterior,
    Report,
    Scale,
    Sites,
    SparseBelief,
    SparsePosterior,
)
_LATE_HOME = "polyfid.model_files.sklearn_kernels"
SKLEARN_KERNELS = (
    "ConstantKernel",
    "DotProduct",
    "ExpSineSquared",
    "Exponentiation",
    "Matern",
    "PairwiseKernel",
    "Product",
    "RBF",
    "RationalQuadratic",
    "Sum",
    "WhiteKernel",
)


def _pack(factor: Cholesky) -> Fields:
    """The triangle that counts, column by column; the other one was never written to."""
    upper = factor._factor.T
    n = len(upper)
    packed = np.empty(n * (n + 1) // 2)
    start = 0
    for i in range(n):
        packed[start : start + n - i] = upper[i, i:]
        start += n - i
    return {"size": n, "packed": packed}


def _unpack(given: Fields) -> Cholesky:
    packed = _matrix(given["packed"], 1)
    n = given["size"]
    if type(n) is not int or n < 0 or len(packed) != n * (n + 1) // 2:
        raise ValueError(f"a triangle of size {n!r} does not have {len(packed)} entries")
    upper = np.zeros((n, n))
    start = 0
    for i in range(n):
        upper[i, i:] = packed[start : start + n - i]
        start += n - i
    factor = Cholesky.__new__(Cholesky)  # it is factorised already
    factor._factor = upper.T
    return factor


def _take_spectrum(factor: Indefinite) -> Fields:
    return {"values": factor._values, "vectors": factor._vectors}


def _make_spectrum(given: Fields) -> Indefinite:
    values, vectors = _matrix(given["values"], 1), _matrix(given["vectors"], 2)
    if vectors.shape != (len(values), len(values)):
        raise ValueError(f"{len(values)} eigenvalues have vectors of shape {vectors.shape}")
    factor = Indefinite.__new__(Indefinite)
    factor._values, factor._vectors = values, vectors
    return factor


def _matrix(value: Any, ndim: int) -> Array:
    good = isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == ndim
    if not good:
        raise TypeError("a factor of a matrix is no array of floats of the right dimension")
    return np.asarray(value)


for _cls in (*_KERNELS, *_FEATURE_MAPS, *_PARTS):
    register(_cls)
for _name in SKLEARN_KERNELS:
    enter_late(f"sklearn.{_name}", f"sklearn.gaussian_process.kernels.{_name}", _LATE_HOME)
enter_late("SklearnKernel", "polyfid.kernels.sklearn.SklearnKernel", _LATE_HOME)
enter("Cholesky", Entry(Cholesky, _pack, _unpack))
enter("Indefinite", Entry(Indefinite, _take_spectrum, _make_spectrum))
