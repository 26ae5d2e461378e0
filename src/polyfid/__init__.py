"""Classifiers from labels of unequal trust: a few reliable ones and many cheap ones.

>>> from polyfid import MultiFidelityClassifier, stack_levels
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polyfid._version import __version__

if TYPE_CHECKING:
    from polyfid import suggest as suggest
    from polyfid.estimator.baselines import Pooled, Stacked, TrustedOnly
    from polyfid.estimator.blocks import ArrayBlocks
    from polyfid.estimator.classifier import MultiFidelityClassifier
    from polyfid.estimator.levels import stack_levels
    from polyfid.estimator.model_selection import TrustedKFold, TrustedShuffleSplit
    from polyfid.evaluation import evaluate
    from polyfid.model_files import load
    from polyfid.suggest.budget import advise
    from polyfid.suggest.study import Study

__all__ = [
    "ArrayBlocks",
    "MultiFidelityClassifier",
    "Pooled",
    "Stacked",
    "Study",
    "TrustedKFold",
    "TrustedOnly",
    "TrustedShuffleSplit",
    "__version__",
    "advise",
    "evaluate",
    "load",
    "stack_levels",
    "suggest",
]

# Imported when they are asked for: `polyfid --help` need not wait for scikit-learn.
_HOMES = {
    "ArrayBlocks": "estimator.blocks",
    "MultiFidelityClassifier": "estimator.classifier",
    "Pooled": "estimator.baselines",
    "Stacked": "estimator.baselines",
    "Study": "suggest.study",
    "TrustedKFold": "estimator.model_selection",
    "TrustedOnly": "estimator.baselines",
    "TrustedShuffleSplit": "estimator.model_selection",
    "advise": "suggest.budget",
    "evaluate": "evaluation",
    "load": "model_files",
    "stack_levels": "estimator.levels",
    "suggest": "",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    # A package of that name has the function of that name too, and can be called like it.
    at = import_module(f"{__name__}.{home or name}")
    value = getattr(at, name) if home else at
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
