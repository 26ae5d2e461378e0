"""What to label next, at which level, for which money.

The module can be called like its function.

>>> import numpy as np
>>> from polyfid import MultiFidelityClassifier, suggest
>>> from polyfid.kernels import RBF
>>> X = np.linspace(-2, 2, 20)[:, None]
>>> model = MultiFidelityClassifier(1.0 * RBF(), levels=["expert"]).fit(X, X[:, 0] > 0)
>>> len(suggest(model, X + 0.05, {"expert": 5}, budget=15))
3
"""

import sys
from types import ModuleType
from typing import Any

from polyfid.suggest.advice import Advice, BudgetPlan, Promise
from polyfid.suggest.budget import advise
from polyfid.suggest.ledger import Told
from polyfid.suggest.query import QueryStrategy
from polyfid.suggest.study import Study
from polyfid.suggest.suggestion import rank, suggest

__all__ = [
    "Advice",
    "BudgetPlan",
    "Promise",
    "QueryStrategy",
    "Study",
    "Told",
    "advise",
    "rank",
    "suggest",
]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return suggest(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
