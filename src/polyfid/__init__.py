"""Classifiers from labels of unequal trust: a few reliable ones and many cheap ones.

>>> from polyfid import MultiFidelityClassifier, stack_levels
"""

from polyfid._version import __version__
from polyfid.baselines import Pooled, Stacked, TrustedOnly
from polyfid.classifier import MultiFidelityClassifier
from polyfid.data import stack_levels
from polyfid.model_selection import TrustedKFold, TrustedShuffleSplit

__all__ = [
    "MultiFidelityClassifier",
    "Pooled",
    "Stacked",
    "TrustedKFold",
    "TrustedOnly",
    "TrustedShuffleSplit",
    "__version__",
    "stack_levels",
]
