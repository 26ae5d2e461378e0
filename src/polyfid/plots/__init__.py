"""Figures of a fitted model: where a class is feasible, where levels differ, how far to trust them.

Displays follow scikit-learn's convention: ``from_estimator`` computes and draws, ``plot`` draws
again, and what was computed are attributes, like ``figure_``, ``axes_`` and the first of them,
``ax_``. They need matplotlib (``pip install "polyfid[plot]"``).

>>> from polyfid.plots import FeasibilityDisplay, DiscrepancyDisplay, TrustDisplay
"""

from polyfid.plots.discrepancy import DiscrepancyDisplay
from polyfid.plots.feasibility import FeasibilityDisplay
from polyfid.plots.trust import TrustDisplay

__all__ = ["DiscrepancyDisplay", "FeasibilityDisplay", "TrustDisplay"]
