"""Covariance functions with pullbacks: immutable values that add and multiply."""

from polyfid.kernels.columnwise import (
    RBF,
    Additive,
    Categorical,
    Laplacian,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
)
from polyfid.kernels.contract import Kernel, Product, Sum, from_sklearn
from polyfid.kernels.leaf import Constant, Intercept, White
from polyfid.kernels.named import NAMED
from polyfid.kernels.pairs import Pairs

__all__ = [
    "NAMED",
    "RBF",
    "Additive",
    "Categorical",
    "Constant",
    "Intercept",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Matern12",
    "Matern32",
    "Matern52",
    "Pairs",
    "Product",
    "RationalQuadratic",
    "Sum",
    "White",
    "from_sklearn",
]
