"""What to label next, at which level, for which money.

The module can be called like its function: ``polyfid.suggest(model, pool, costs, budget=100)``.
"""

import sys
from types import ModuleType
from typing import Any

from polyfid.suggest.suggestion import rank, suggest

__all__ = ["rank", "suggest"]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return suggest(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
