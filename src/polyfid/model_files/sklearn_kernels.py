"""Kernels of scikit-learn in saved models; imported where there is one, as they take a while."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.gaussian_process import kernels as sk

from polyfid.kernels.sklearn import SklearnKernel
from polyfid.model_files.known import SKLEARN_KERNELS
from polyfid.model_files.registry import Entry, Fields, enter, register


def _enter(cls: type) -> None:
    names = set(inspect.signature(cls).parameters)

    def take(kernel: Any) -> Fields:
        return dict(kernel.get_params(deep=False))

    def make(given: Fields) -> Any:
        # A metric that is no string would be a function, and no function is ever read.
        if not set(given) <= names or not isinstance(given.get("metric", ""), str):
            raise ValueError(f"scikit-learn's {cls.__name__} has other parameters")
        return cls(**given)

    enter(f"sklearn.{cls.__name__}", Entry(cls, take, make))


register(SklearnKernel)
for _name in SKLEARN_KERNELS:
    _enter(getattr(sk, _name))
