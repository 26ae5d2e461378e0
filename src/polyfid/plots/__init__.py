"""Figures of a fitted model: where a class is feasible, what cheap labels add, where levels differ.

Displays follow scikit-learn's convention: ``from_estimator`` computes and draws, ``plot`` draws
again, and what was computed are attributes, like ``figure_``, ``axes_`` and the first of them,
``ax_``. They need matplotlib (``pip install "polyfid[plot]"``).

>>> from polyfid.plots import (
...     AdviceDisplay,
...     ComparisonDisplay,
...     DiscrepancyDisplay,
...     FeasibilityDisplay,
...     StudyDisplay,
...     TrustDisplay,
... )
"""

from polyfid.plots.advice import AdviceDisplay
from polyfid.plots.comparison import ComparisonDisplay
from polyfid.plots.discrepancy import DiscrepancyDisplay
from polyfid.plots.feasibility import FeasibilityDisplay
from polyfid.plots.study_display import StudyDisplay
from polyfid.plots.trust import TrustDisplay

__all__ = [
    "AdviceDisplay",
    "ComparisonDisplay",
    "DiscrepancyDisplay",
    "FeasibilityDisplay",
    "StudyDisplay",
    "TrustDisplay",
]
