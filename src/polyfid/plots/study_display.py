"""How a study goes: losses over the money spent, and what batches promised and delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from polyfid.arrays import Array
from polyfid.plots import style
from polyfid.plots.style import CLASS_COLOURS, GRID, MUTED, PAPER
from polyfid.suggest.study import Study

_HEIGHT = 2.0  # inches, of each of the two axes


@dataclass(kw_only=True, eq=False, repr=False)
class StudyDisplay(style.Display):
    """The progress of a study.

    Above, the log-loss that is expected at the targets, and that of labels that were left out (of
    audit rows, filled; hollow where they are all trusted rows), over the money spent. Below, for
    each batch, by how much its answered suggestions promised to lower the loss, and by how much the
    losses of the rows that were left out before and after it fell.

    All are arrays of the length of ``study.history_``; numbers that are not known are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, Study
    >>> from polyfid.kernels import RBF
    >>> from polyfid.plots import StudyDisplay
    >>> pool = np.random.RandomState(0).uniform(-2, 2, (100, 1))
    >>> study = Study(
    ...     pool, costs={"expert": 1}, model=MultiFidelityClassifier(1.0 * RBF()), random_state=0
    ... )
    >>> for _ in range(2):
    ...     batch = study.ask(n=10)
    ...     told = study.tell(batch.assign(label=batch["x0"] > 0))
    >>> StudyDisplay.from_study(study).spent
    array([ 0., 10., 20.])
    """

    spent: Array
    expected: Array
    held_out: Array
    audited: NDArray[np.bool_]
    promised: Array
    delivered: Array

    @classmethod
    def from_study(cls, study: Study, *, ax: Sequence[Axes] | None = None) -> Self:
        """Draw a study; ``ax`` are two axes, or None for a new figure."""
        return cls.of_history(study.history_).plot(ax)

    @classmethod
    def of_history(cls, history: Sequence[Mapping[str, Any]]) -> Self:
        """What there is to draw of a history, not drawn yet."""

        def column(name: str) -> Array:
            return np.array([np.nan if h[name] is None else h[name] for h in history], dtype=float)

        return cls(
            spent=column("spent"),
            expected=column("expected"),
            held_out=column("held_out"),
            audited=np.array([h["held_out_by"] == "audit rows" for h in history], dtype=bool),
            promised=column("promised"),
            delivered=column("delivered"),
        )

    def plot(self, ax: Sequence[Axes] | None = None) -> Self:
        """Draw it, on two axes given or in a new figure."""
        with matplotlib.rc_context(style.RC):
            above, below = self._take_axes(ax, 2, _HEIGHT)
            blue = CLASS_COLOURS[1]
            lines = above.plot(
                self.spent, self.expected, "--", color=MUTED, label="expected", zorder=2
            )
            known = np.isfinite(self.held_out)
            lines += above.plot(
                self.spent[known], self.held_out[known], "-", color=blue, label="held out"
            )
            for marked, fill in ((known & self.audited, blue), (known & ~self.audited, PAPER)):
                above.plot(
                    self.spent[marked], self.held_out[marked], "o", ms=4, color=blue, mfc=fill
                )
            above.set(xlabel="money spent", ylabel="log-loss")
            above.set_ylim(bottom=0.0)
            style.legend_above(above, lines)
            places = np.arange(1, len(self.spent) + 1)
            for shift, gains, colour in ((-0.2, self.promised, MUTED), (0.2, self.delivered, blue)):
                below.bar(places + shift, gains, 0.36, color=colour)
            below.axhline(0.0, color=GRID, lw=0.8)
            below.set(xlabel="batch", ylabel="fall of log-loss")
            below.set_xlim(0.4, max(len(self.spent) - 1, 1) + 0.6)
            below.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            entries = [Patch(fc=MUTED, label="promised"), Patch(fc=blue, label="delivered")]
            style.legend_above(below, entries)
            for one in (above, below):
                one.grid(axis="y", color=GRID, lw=0.6)
                style.small_text(one)
        return self
