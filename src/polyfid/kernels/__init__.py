"""Covariance functions with pullbacks: immutable values that add and multiply."""

from polyfid.kernels.base import Constant, Kernel, Product, Sum, White
from polyfid.kernels.categorical import Categorical
from polyfid.kernels.linear import Linear
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.sklearn import from_sklearn
from polyfid.kernels.stationary import RBF, Matern, Matern12, Matern32, Matern52, RationalQuadratic

__all__ = [
    "RBF",
    "Categorical",
    "Constant",
    "Kernel",
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
