"""Covariance functions with pullbacks: immutable values that add and multiply."""

from typing import TYPE_CHECKING, Any

from polyfid.kernels.categorical import Categorical
from polyfid.kernels.combine import Product, Sum
from polyfid.kernels.contract import Kernel
from polyfid.kernels.leaf import Constant, White
from polyfid.kernels.linear import Linear
from polyfid.kernels.pairs import Pairs
from polyfid.kernels.stationary import RBF, Matern, Matern12, Matern32, Matern52, RationalQuadratic

if TYPE_CHECKING:
    from polyfid.kernels.sklearn import from_sklearn

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


def __getattr__(name: str) -> Any:
    # Imported when it is asked for: scikit-learn's kernels bring its metrics and preprocessing.
    if name != "from_sklearn":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from polyfid.kernels.sklearn import from_sklearn

    return from_sklearn


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
