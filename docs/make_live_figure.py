"""Computes the live figure of "The model in pictures": `python docs/make_live_figure.py`.

It fits a model for each position of the sliders, some minutes on one core, and writes
docs/_static/live/data.js and the picture for readers without JavaScript (needs the extra `plot`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.inspection import level_difference

FOLDER = Path(__file__).parent / "_static" / "live"
#: Percent of the cheap labels that are wrong, where they are, and numbers of trusted labels.
SHARES, PLACES, COUNTS = (0, 10, 20, 30, 40, 50), ("anywhere", "right"), (5, 10, 20, 40, 80)
#: What the page shows first.
START = ("anywhere", 20, 10)
SIDE, REACH, N_CHEAP = 36, 2.4, 200
#: Probabilities in 64 steps: one letter for each point of a grid.
LETTERS = np.array([*"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"])

LINE = np.linspace(-REACH, REACH, SIDE)
#: Row by row from the bottom, as a picture of x upwards.
GRID = np.stack(np.meshgrid(LINE, LINE), axis=-1).reshape(-1, 2)


def boundary(x: np.ndarray) -> np.ndarray:
    """The truth: below this curve is the second class."""
    return 1.1 * np.sin(2.1 * x) + 0.3


def truth(X: np.ndarray) -> np.ndarray:
    """The class of points."""
    return X[:, 1] < boundary(X[:, 0])


def points() -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The cheap and the trusted points, and in which order cheap labels go wrong, by place."""
    rng = np.random.RandomState(3)
    cheap, trusted = (rng.uniform(-REACH, REACH, (n, 2)) for n in (N_CHEAP, max(COUNTS)))
    order = {"anywhere": rng.uniform(size=N_CHEAP), "right": -cheap[:, 0]}
    ranks = {place: np.argsort(np.argsort(score)) for place, score in order.items()}
    return cheap.round(2), trusted.round(2), ranks


def letters(probability: np.ndarray) -> str:
    """One letter for each probability."""
    return "".join(LETTERS[np.rint(probability * (len(LETTERS) - 1)).astype(int)])


def numbers(text: str) -> np.ndarray:
    """The probabilities that `letters` wrote."""
    places = {letter: k for k, letter in enumerate(LETTERS)}
    return np.array([places[letter] for letter in text]) / (len(LETTERS) - 1)


def fit(levels: dict[str, tuple[np.ndarray, np.ndarray]]) -> MultiFidelityClassifier:
    """A model with all parameters at their defaults."""
    X, y, fidelity = stack_levels(levels)
    return MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity)


def right(probability: np.ndarray) -> int:
    """Percent of the points of the grid that are classified right."""
    return round(100 * float(np.mean((probability > 0.5) == truth(GRID))))


def alone(count: int) -> dict[str, Any]:
    """What the first trusted labels say alone."""
    _, trusted, _ = points()
    model = fit({"trusted": (trusted[:count], truth(trusted[:count]))})
    p = model.predict_proba(GRID)[:, 1]
    return {"right": right(p), "trusted": letters(p)}


def together(place: str, share: int, count: int) -> dict[str, Any]:
    """What they say with the cheap labels, of which a share in percent is wrong."""
    cheap, trusted, ranks = points()
    wrong = ranks[place] < N_CHEAP * share // 100
    model = fit(
        {
            "cheap": (cheap, truth(cheap) ^ wrong),
            "trusted": (trusted[:count], truth(trusted[:count])),
        }
    )
    p = model.predict_proba(GRID)[:, 1]
    return {
        "right": right(p),
        "trusted": letters(p),
        "cheap": letters(model.predict_proba(GRID, fidelity="cheap")[:, 1]),
        "differ": letters(level_difference(model, GRID, 0, 1, 1).probability),
    }


def compute() -> dict[str, Any]:
    """All that the page draws."""
    cheap, trusted, ranks = points()
    curve = np.linspace(-REACH, REACH, 97)
    return {
        "shares": SHARES,
        "counts": COUNTS,
        "start": START,
        "side": SIDE,
        "reach": REACH,
        "letters": "".join(LETTERS),
        "curve": np.stack([curve, boundary(curve)], axis=1).round(3).tolist(),
        "points": {"cheap": cheap.tolist(), "trusted": trusted.tolist()},
        "classes": {"cheap": truth(cheap).tolist(), "trusted": truth(trusted).tolist()},
        "ranks": {place: rank.tolist() for place, rank in ranks.items()},
        "alone": {str(count): alone(count) for count in COUNTS},
        "together": {
            f"{place} {share} {count}": together(place, share, count)
            for place in PLACES
            for share in SHARES
            for count in COUNTS
        },
    }


def read() -> dict[str, Any]:
    """What was written."""
    text = (FOLDER / "data.js").read_text(encoding="utf-8")
    return json.loads(text.partition("=")[2].rstrip().rstrip(";"))


def draw_start(data: dict[str, Any]) -> None:
    """Draw the first position of the sliders, for readers without JavaScript."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from polyfid.plots.style import CLASS_COLOURS, INK, PAPER, diverging

    place, share, count = data["start"]
    both = data["together"][f"{place} {share} {count}"]
    one = data["alone"][str(count)]
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.9), layout="constrained")
    colours = np.array(CLASS_COLOURS[:2])
    wrong = np.array(data["ranks"][place]) < N_CHEAP * share // 100
    titles = ("cheap and trusted labels", "trusted labels alone")
    for ax, cell, title in zip(axes, (both, one), titles, strict=True):
        p = numbers(cell["trusted"]).reshape(SIDE, SIDE)
        ax.contourf(LINE, LINE, p, np.linspace(0, 1, 21), cmap=diverging(*colours))
        ax.contour(LINE, LINE, p, [0.5], colors=INK, linewidths=1.5)
        ax.plot(*np.array(data["curve"]).T, color=INK, ls="--", lw=1)
        ax.set(xticks=[], yticks=[], aspect="equal", title=f"{title}: {cell['right']} % right")
        x, y = np.array(data["points"]["trusted"][:count]).T
        shown = np.array(data["classes"]["trusted"][:count]).astype(int)
        ax.scatter(x, y, s=60, c=colours[shown], edgecolor=INK, lw=1.5, zorder=3)
        ax.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH))
    x, y = np.array(data["points"]["cheap"]).T
    shown = np.array(data["classes"]["cheap"]) ^ wrong
    for marker, rows in (("o", ~wrong), ("X", wrong)):
        c = colours[shown[rows].astype(int)]
        axes[0].scatter(x[rows], y[rows], s=18, c=c, marker=marker, edgecolor=PAPER, lw=0.5)
    fig.savefig(FOLDER / "start.png", dpi=110)


def main() -> None:
    """Write both files."""
    FOLDER.mkdir(exist_ok=True)
    data = compute()
    text = json.dumps(data, separators=(",", ":"))
    (FOLDER / "data.js").write_text(f"window.polyfidLive={text};\n", encoding="utf-8")
    draw_start(read())


if __name__ == "__main__":
    main()
