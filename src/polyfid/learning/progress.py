"""How far a fit has come: one value per step of the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from polyfid.learning.mixture import Mixture


@dataclass(frozen=True)
class Progress:
    """A step of a fit, as a ``callback`` receives it.

    Attributes
    ----------
    stage : str
        In exact fits "structures" (a step is a structure that was tuned), if the structure is
        learnt and classes are not fitted by several processes, then "classes" (a step is the model
        of one class); with inducing points "trees" (a
        step is the trees of one fold), if a level is large, "tuning" (step 0 is the start, from a
        few rows; another one is a pass over the tuning sample), then "passes" (a step is a pass
        over all rows that Gaussian processes see).
        Fits to files begin with "reading" and "encoding" (a step is a row).
    done : int
        Steps of the stage so far.
    total : int or None
        How many there will be at most; None where that is unknown. More structures may turn out
        to be worth tuning.
    value : float
        The log evidence, or the lower bound on it, after the step; NaN before the first one.
    checkpoint : tuple
        The models so far, one per class; a fit with ``warm_start`` goes on from them. That of a
        class whose tuning is under way has the best hyper-parameters so far.
    class_index, n_classes : int
        Whose model it is, from 0, and how many models there are; one for two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier
    >>> from polyfid.kernels import RBF
    >>> X = np.linspace(-1, 1, 12)[:, None]
    >>> model = MultiFidelityClassifier(1.0 * RBF())
    >>> model = model.fit(X, X[:, 0] > 0, callback=lambda step: print(step.stage, step.done))
    classes 1
    """

    stage: str
    done: int
    total: int | None
    value: float
    checkpoint: tuple[Mixture, ...] = ()
    class_index: int = 0
    n_classes: int = 1


Callback = Callable[[Progress], None]
