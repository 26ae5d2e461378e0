"""Draws docs/picture.png: `python docs/make_picture.py` (needs the extra `plot`)."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.plots import ComparisonDisplay


def boundary(x: np.ndarray) -> np.ndarray:
    """The truth: settings below this curve work."""
    return 1.1 * np.sin(2.1 * x) + 0.3


def simulated_boundary(x: np.ndarray) -> np.ndarray:
    """What a cheap simulator says: the boundary is shifted and bent."""
    return 1.0 * np.sin(2.1 * x + 0.4) - 0.1


def main() -> None:
    """Fit both models on the same toy problem and draw their maps beside the labels."""
    rng = np.random.RandomState(3)
    X_cheap, X_trusted = rng.uniform(-2.4, 2.4, (220, 2)), rng.uniform(-2.4, 2.4, (16, 2))
    flips = rng.uniform(size=len(X_cheap)) < 0.08
    simulated = X_cheap[:, 1] < simulated_boundary(X_cheap[:, 0])
    trusted = X_trusted[:, 1] < boundary(X_trusted[:, 0])
    X, y, fidelity = stack_levels(
        {"simulation": (X_cheap, simulated ^ flips), "experiment": (X_trusted, trusted)}
    )
    y = np.where(y, "works", "fails")
    model = MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity)
    display = ComparisonDisplay.from_estimator(model, X, y, fidelity, grid_resolution=120)
    x0, x1 = np.meshgrid(*display.values)
    truth = x1 < boundary(x0)
    titles = ["220 cheap labels, 16 trusted ones"]
    for name, p in (("GP, trusted labels alone", display.alone), ("polyfid", display.together)):
        titles.append(f"{name}: {np.mean((p > 0.5) == truth):.0%} right")
    for ax, title in zip(display.axes_, titles, strict=True):
        ax.plot(display.values[0], boundary(display.values[0]), color="#1b1b1f", ls="--", lw=1)
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
        ax.title.set_text(title)
    display.axes_[0].set_xlabel("dashed: the truth, which no model is told")
    display.figure_.savefig(Path(__file__).with_name("picture.png"), dpi=130)


if __name__ == "__main__":
    main()
