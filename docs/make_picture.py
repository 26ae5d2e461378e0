"""Draws docs/picture.png: `python docs/make_picture.py` (needs the extra `plot`)."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from polyfid import MultiFidelityClassifier, TrustedOnly, stack_levels

SIDE = np.linspace(-2.4, 2.4, 121)
BLUE, RED, GREY = "#2166ac", "#b2182b", "#333333"


def boundary(x: np.ndarray) -> np.ndarray:
    """The truth: points below this curve are feasible."""
    return 1.1 * np.sin(2.1 * x) + 0.3


def simulated_boundary(x: np.ndarray) -> np.ndarray:
    """What a cheap simulator says: the boundary is shifted and bent."""
    return 1.0 * np.sin(2.1 * x + 0.4) - 0.1


def main() -> None:
    """Fit both models on the same toy problem and draw their maps."""
    rng = np.random.RandomState(3)
    X_cheap, X_trusted = rng.uniform(-2.4, 2.4, (220, 2)), rng.uniform(-2.4, 2.4, (16, 2))
    flips = rng.uniform(size=len(X_cheap)) < 0.08
    simulated = X_cheap[:, 1] < simulated_boundary(X_cheap[:, 0])
    trusted = X_trusted[:, 1] < boundary(X_trusted[:, 0])
    X, y, fidelity = stack_levels(
        {"simulation": (X_cheap, simulated ^ flips), "experiment": (X_trusted, trusted)}
    )
    grid = np.stack(np.meshgrid(SIDE, SIDE), axis=-1).reshape(-1, 2)
    truth = grid[:, 1] < boundary(grid[:, 0])

    plt.rcParams.update({"font.size": 9, "axes.titlesize": 9.5})
    figure, axes = plt.subplots(1, 3, figsize=(9.2, 3.35), sharey=True, layout="constrained")
    axes[0].set_title("220 cheap labels, 16 trusted ones")
    for value, colour, name in ((True, BLUE, "feasible"), (False, RED, "not")):
        chosen = X[(fidelity == "simulation") & (y == value)]
        axes[0].scatter(*chosen.T, s=9, c=colour, alpha=0.45, lw=0, label=f"simulated {name}")
    for ax, title, model in (
        (axes[1], "GP on the trusted labels alone", TrustedOnly(MultiFidelityClassifier())),
        (axes[2], "polyfid, both together", MultiFidelityClassifier()),
    ):
        p = model.fit(X, y, fidelity=fidelity).predict_proba(grid)[:, 1]
        ax.set_title(f"{title}: {np.mean((p > 0.5) == truth):.0%} right")
        p = p.reshape(len(SIDE), -1)
        colours = {"cmap": "RdBu", "vmin": 0, "vmax": 1, "shading": "gouraud"}
        image = ax.pcolormesh(SIDE, SIDE, p, **colours)
        ax.contour(SIDE, SIDE, p, levels=[0.5], colors="black", linewidths=1.6)
    for ax in axes:
        for value, marker, colour, name in (
            (True, "o", BLUE, "feasible"),
            (False, "X", RED, "not"),
        ):
            look = {"s": 46, "marker": marker, "c": colour, "ec": "white", "lw": 1}
            ax.scatter(*X_trusted[trusted == value].T, **look, label=f"experiment {name}", zorder=3)
        ax.plot(SIDE, boundary(SIDE), color=GREY, ls="--", lw=1, label="true boundary")
        ax.set(xticks=[], yticks=[], aspect="equal", xlim=(-2.4, 2.4), ylim=(-2.4, 2.4))
    handles, _ = axes[0].get_legend_handles_labels()
    handles.append(plt.Line2D([], [], color="black", lw=1.6, label="predicted boundary"))
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    figure.colorbar(image, ax=axes, shrink=0.8, pad=0.01, label="P(feasible)")
    figure.savefig(Path(__file__).with_name("picture.png"), dpi=130)


if __name__ == "__main__":
    main()
