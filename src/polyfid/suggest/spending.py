"""Ways to spend money, the rows that stand for their labels, and what is expected of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyfid.arrays import Array, Indices
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.evaluation import Estimate
from polyfid.suggest.advice import UNSCALED, Scale
from polyfid.suggest.outlook import Labels

#: Rows that stand for those to predict, and the most rows per level that are taken to stand for
#: further labels: of more labels each row stands for several.
N_TARGETS, MOST_ROWS = 128, 160
#: Labelled rows that stand for those to label again.
N_OLD = 80
#: Standard deviation of the log-loss beyond what is expected, in units of it. With this and what is
#: not known of the scale, intervals held what they should in nine of ten development problems.
_UNKNOWN_EXCESS = 2.0
_Z = 1.96


@dataclass(frozen=True)
class Spending:
    """Numbers of labels per offered level: of new rows, and of rows that have a label already."""

    new: tuple[int, ...]
    again: tuple[int, ...]


@dataclass(frozen=True)
class Expected:
    """Scores per order and case, (n_orders, n_cases) each, and the weights of cases."""

    log_loss: Array
    accuracy: Array
    roc_auc: Array
    weights: Array
    excess: float

    def estimate(
        self, name: str, scale: Scale = UNSCALED, since: Expected | None = None
    ) -> Estimate:
        """The mean over orders and cases; the interval is that of one order of one case.

        With ``since`` of the fall since then.
        """
        values, excess = getattr(self, name), self.excess if name == "log_loss" else 0.0
        if since is not None:
            values, excess = getattr(since, name) - values, since.excess - excess
        mean = float(np.mean(values @ self.weights))
        of_cases = self.weights @ np.square(values.mean(axis=0) - mean)
        of_orders = float(np.var(values @ self.weights, ddof=1)) if len(values) > 1 else 0.0
        factor, unknown = (
            (1.0, _UNKNOWN_EXCESS * excess)
            if since is None
            else (scale.factor, scale.sd * (mean + excess))
        )
        value = factor * (mean + excess)
        sd = np.sqrt(np.square(factor) * (of_cases + of_orders) + np.square(unknown))
        low, high = value - _Z * sd, value + _Z * sd
        if name != "log_loss":
            return Estimate(value, max(low, 0.0), min(high, 1.0))
        return Estimate(value, low if since is not None else max(low, 0.0), high)


@dataclass(frozen=True)
class Design:
    """Targets, then rows to label at each offered level; then old rows, at each of them too.

    ``places`` and ``old_places`` have the numbers of those rows, by offered level.
    """

    x: Array
    level: Indices
    n_targets: int
    old: Indices
    old_level: Indices
    places: tuple[Indices, ...]
    old_places: tuple[Indices, ...]

    @classmethod
    def draw(
        cls,
        model: MultiFidelityClassifier,
        levels: Sequence[int],
        spendings: Sequence[Spending],
        x: Array,
        targets: Array,
        rng: np.random.RandomState,
    ) -> Design:
        n_targets = min(N_TARGETS, len(targets))
        parts = [targets[rng.permutation(len(targets))[:n_targets]]]
        level = [np.full(n_targets, len(model.levels_) - 1)]
        places, total = [], n_targets
        for k, t in enumerate(levels):
            n = min(max(s.new[k] for s in spendings), MOST_ROWS, len(x))
            parts.append(x[rng.permutation(len(x))[:n]])
            level.append(np.full(n, t))
            places.append(np.arange(total, total + n))
            total += n
        n_kept = min(len(m.fit.posterior.points) for mix in model._mixtures for m in mix.members)
        old = rng.permutation(n_kept)[:N_OLD]
        old_places = [np.arange(len(old)) + total + k * len(old) for k in range(len(levels))]
        return cls(
            np.vstack(parts),
            np.concatenate(level).astype(np.intp),
            n_targets,
            np.tile(old, len(levels)),
            np.repeat(levels, len(old)).astype(np.intp),
            tuple(places),
            tuple(old_places),
        )

    def labels(self, spending: Spending) -> Labels:
        """The rows that stand for the labels of a plan: the first ones, so that plans nest."""
        rows, copies = [np.empty(0, dtype=np.intp)], [np.empty(0)]
        for counts, places in ((spending.new, self.places), (spending.again, self.old_places)):
            for n, own in zip(counts, places, strict=True):
                if n and len(own):
                    rows.append(own[:n])
                    copies.append(np.full(len(rows[-1]), max(n / len(own), 1.0)))
        return Labels(np.concatenate(rows), np.concatenate(copies))
