"""Draws docs/picture.png: `python docs/make_picture.py` (needs the extra `plot`)."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from polyfid import MultiFidelityClassifier, TrustedOnly, stack_levels


def feasible(X: np.ndarray) -> np.ndarray:
    """The truth: a curved region."""
    return X[:, 1] < 1.1 * np.sin(2.1 * X[:, 0]) + 0.3


def simulated(X: np.ndarray) -> np.ndarray:
    """What a cheap simulator says: the boundary is shifted and bent."""
    return X[:, 1] < 1.0 * np.sin(2.1 * X[:, 0] + 0.4) - 0.1


def main() -> None:
    """Fit both models on the same toy problem and draw their maps."""
    rng = np.random.RandomState(3)
    X_cheap, X_trusted = rng.uniform(-2.4, 2.4, (220, 2)), rng.uniform(-2.4, 2.4, (16, 2))
    flips = rng.uniform(size=len(X_cheap)) < 0.08
    X, y, fidelity = stack_levels(
        {
            "simulation": (X_cheap, simulated(X_cheap) ^ flips),
            "experiment": (X_trusted, feasible(X_trusted)),
        }
    )
    both = MultiFidelityClassifier().fit(X, y, fidelity=fidelity)
    alone = TrustedOnly(MultiFidelityClassifier()).fit(X, y, fidelity=fidelity)

    side = np.linspace(-2.4, 2.4, 121)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    truth = feasible(grid)
    plt.rcParams.update({"font.size": 9, "axes.titlesize": 9.5, "font.family": "DejaVu Sans"})
    figure, axes = plt.subplots(1, 3, figsize=(9.2, 3.35), sharey=True, layout="constrained")
    panels = [
        ("220 cheap labels, 16 trusted ones", None),
        ("GP on the trusted labels alone", alone),
        ("polyfid, both together", both),
    ]
    image = None
    for ax, (title, model) in zip(axes, panels, strict=True):
        if model is None:
            for value, colour, name in ((True, "#2166ac", "feasible"), (False, "#b2182b", "not")):
                chosen = (fidelity == "simulation") & (y == value)
                ax.scatter(*X[chosen].T, s=9, c=colour, alpha=0.45, lw=0, label=f"simulated {name}")
        else:
            p = model.predict_proba(grid)[:, 1].reshape(len(side), -1)
            right = np.mean((p.ravel() > 0.5) == truth)
            image = ax.imshow(
                p, origin="lower", extent=(-2.4, 2.4, -2.4, 2.4), cmap="RdBu", vmin=0, vmax=1
            )
            ax.contour(side, side, p, levels=[0.5], colors="black", linewidths=1.6)
            title = f"{title}: {right:.0%} right"
        for value, marker, name in ((True, "o", "feasible"), (False, "X", "not")):
            chosen = (fidelity == "experiment") & (y == value)
            face = "#2166ac" if value else "#b2182b"
            style = {"s": 46, "marker": marker, "c": face, "ec": "white", "lw": 1}
            ax.scatter(*X[chosen].T, **style, label=f"experiment {name}")
        shown = truth.reshape(len(side), -1).astype(float)
        ax.contour(side, side, shown, levels=[0.5], colors="#333333", linestyles="--", linewidths=1)
        ax.set(title=title, xticks=[], yticks=[], aspect="equal")
        ax.set(xlim=(-2.4, 2.4), ylim=(-2.4, 2.4))
    handles, names = axes[0].get_legend_handles_labels()
    handles.append(plt.Line2D([], [], color="#333333", ls="--", lw=1))
    handles.append(plt.Line2D([], [], color="black", lw=1.6))
    figure.legend(
        handles,
        [*names, "true boundary", "predicted boundary"],
        loc="outside lower center",
        ncols=6,
        frameon=False,
        fontsize=8,
        handletextpad=0.4,
    )
    figure.colorbar(image, ax=axes, shrink=0.8, pad=0.01, label="P(feasible)")
    figure.savefig(Path(__file__).with_name("picture.png"), dpi=130)


if __name__ == "__main__":
    main()
