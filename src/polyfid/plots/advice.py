"""What plans of equal cost are expected to bring, by the part that goes to trusted labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from polyfid.arrays import Array
from polyfid.plots import style
from polyfid.suggest import Advice

_HEIGHT = 2.2  # inches


@dataclass(kw_only=True, eq=False, repr=False)
class AdviceDisplay(style.Display):
    """The expected log-loss of plans, over the part of the money that goes to the top level.

    ``shares`` (n,) are those parts, ``log_loss``, ``low`` and ``high`` (n,) what is expected and
    its 95 % interval; ``now`` is the log-loss that is expected without further labels, ``best`` the
    number of the best plan, None without a verdict. With three levels or more several plans have
    the same share, and the best of each is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, advise, stack_levels
    >>> from polyfid.kernels import RBF
    >>> from polyfid.plots import AdviceDisplay
    >>> X = np.random.RandomState(0).uniform(-2, 2, (90, 1))
    >>> right = X[:, 0] > 0
    >>> X, y, fidelity = stack_levels({"crowd": (X, right), "expert": (X[:30], right[:30])})
    >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, y, fidelity=fidelity)
    >>> pool = np.linspace(-2, 2, 200)[:, None]
    >>> advice = advise(model, pool, {"crowd": 1, "expert": 5}, budget=50, random_state=0)
    >>> display = AdviceDisplay.from_advice(advice)
    >>> display.shares.shape, display.ax_.get_ylabel()
    ((9,), 'expected log-loss')
    """

    shares: Array
    log_loss: Array
    low: Array
    high: Array
    now: float
    best: int | None
    level: Any

    @classmethod
    def from_advice(cls, advice: Advice, *, ax: Axes | None = None) -> Self:
        """Draw an advice.

        Parameters
        ----------
        advice : Advice
            From `polyfid.advise`.
        ax : Axes, optional
            By default those of a new figure, 3.4 inches wide.
        """
        plans: dict[float, Any] = {}
        for share, plan in zip(advice.shares, advice.plans, strict=True):
            known = plans.get(share)
            if known is None or plan.log_loss.value < known.log_loss.value:
                plans[share] = plan
        shares = sorted(plans)
        losses = [plans[share].log_loss for share in shares]
        chosen = [k for k, share in enumerate(shares) if plans[share] is advice.best]
        display = cls(
            shares=np.array(shares),
            log_loss=np.array([e.value for e in losses]),
            low=np.array([e.low for e in losses]),
            high=np.array([e.high for e in losses]),
            now=advice.now.log_loss.value,
            best=chosen[0] if chosen else None,
            level=advice.levels[-1],
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, on axes given or in a new figure."""
        with matplotlib.rc_context(style.RC):
            whole = ax is None
            (ax,) = self._take_axes(ax, 1, _HEIGHT)
            band: dict[str, Any] = {"color": style.LEVEL, "alpha": style.BAND_ALPHA, "lw": 0}
            entries = [
                ax.axhline(self.now, color=style.MUTED, lw=0.8, ls=":", label="as it is"),
                *ax.plot(self.shares, self.log_loss, "o-", ms=3, color=style.LEVEL, label="plans"),
                ax.fill_between(self.shares, self.low, self.high, **band, label="95 %"),
            ]
            if self.best is not None:
                at = self.shares[self.best], self.log_loss[self.best]
                how: dict[str, Any] = {"ls": "none", "ms": 6, "color": style.INK}
                entries += ax.plot(*at, marker="D", **how, label="best plan")
            ax.set(xlim=(-0.03, 1.03), ylabel="expected log-loss")
            ax.set_xlabel(f"part of the money on {style.label(self.level)}")
            ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "25", "50", "75", "100 %"])
            ax.grid(axis="y", lw=0.4, color=style.GRID)
            style.small_text(ax)
            style.legend_above(ax, entries, whole, ncols=4)
        return self
