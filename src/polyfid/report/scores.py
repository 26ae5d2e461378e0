"""What an evaluation says: the verdict, the comparison with baselines, and calibration."""

from __future__ import annotations

import re

import numpy as np

from polyfid.arrays import Array
from polyfid.evaluation import METHODS, SCORES, Estimate, Evaluation
from polyfid.report.drawing import Curve, difference, dot_plot, reliability
from polyfid.report.page import (
    Block,
    Cell,
    Figure,
    Figures,
    Head,
    Points,
    Section,
    Table,
    Text,
    Verdict,
    clean,
    shorten,
)

__all__ = ["calibration", "comparison", "verdict"]

OURS, ALONE = METHODS[:2]
#: Each with what it makes of the labels.
WORDS = {
    "polyfid": "all labels, each level trusted as far as it deserves",
    "trusted only": "the trusted labels alone",
    "pooled": "all labels, trusted alike",
    "stacked": "trusted labels, with predictions from the level below as features",
}
_EFFECTS = {
    "help": ("help", "The cheaper labels help"),
    "harm": ("harm", "The cheaper labels do harm"),
    "no clear difference": ("none", "No clear difference"),
}
#: Bins of a reliability curve: at most so many, each with at least so many rows.
MOST_BINS, ROWS_A_BIN = 10, 10
#: Classes whose reliability is drawn, the most frequent ones.
MOST_CLASSES = 6


def verdict(evaluation: Evaluation) -> Verdict:
    """Whether the cheaper labels help, with the difference that decides it."""
    effect, badge = _EFFECTS[evaluation.verdict]
    name = _deciding(evaluation)
    found = evaluation.differences[ALONE][name]
    score = SCORES[name]
    sides = ("worse", "better") if score.more_is_better else ("better", "worse")
    words = (
        f"{score.words}, {OURS} less {ALONE}; 95\u00a0% interval "
        f"{_signed(found.low)} to {_signed(found.high)}"
    )
    label = f"{_signed(found.value)} {words}"
    drawing = difference(found, label, *sides)
    sentence = typeset(clean(evaluation.sentence))
    return Verdict(effect, badge, sentence, _signed(found.value), words, drawing)


def _deciding(evaluation: Evaluation) -> str:
    """The score that the verdict rests on: the first that is clear, else the log-loss."""
    for name in ("log_loss", "roc_auc"):
        found = evaluation.differences[ALONE][name]
        if evaluation.verdict != "no clear difference" and found.low * found.high > 0.0:
            return name
    return "log_loss"


def comparison(evaluation: Evaluation) -> Section:
    """Scores of all methods and paired differences, as tables and as dots."""
    heads = [Head(_capital(s.words), _direction(s.more_is_better)) for s in SCORES.values()]
    best = {name: _best(evaluation, name) for name in SCORES}
    rows = tuple(
        (
            Cell(method),
            *(_cell(found[name], strong=method == best[name]) for name in SCORES),
            Cell(WORDS[method]),
        )
        for method, found in evaluation.scores.items()
    )
    paired = tuple(
        (Cell(f"{OURS} − {method}"), *(_gap(found[name]) for name in SCORES))
        for method, found in evaluation.differences.items()
    )
    figures = tuple(
        Figure(
            _capital(score.words),
            dot_plot(
                [(m, s[name]) for m, s in evaluation.scores.items()], _label(evaluation, name)
            ),
            note=_direction(score.more_is_better),
        )
        for name, score in SCORES.items()
    )
    text = (
        f"Every trusted row was predicted by models that had not seen its label "
        f"({evaluation.n_splits} folds of the {len(evaluation.rows)} rows at the level "
        f"“{shorten(evaluation.levels[-1])}”). The same classifier learns in four ways."
    )
    blocks: list[Block] = [
        Text(text),
        Table(
            "scores",
            "Scores on held-out trusted rows",
            (Head("Method", words=True), *heads, Head("Learns from", words=True)),
            rows,
            f"With 95\u00a0% intervals ({evaluation.n_bootstrap} bootstrap samples of the rows); "
            "the best of a column is bold.",
        ),
        Figures(figures),
        Table(
            "differences",
            "Differences on the same rows",
            (Head("Difference", words=True), *heads),
            paired,
            "Scores of two methods rise and fall together over rows, so their difference is known "
            "better than either. Bold where the interval does not hold zero.",
        ),
    ]
    if evaluation.notes:
        blocks.append(Points(tuple(typeset(clean(note)) for note in evaluation.notes)))
    return Section("comparison", "Comparison", "Compared with simpler ways", tuple(blocks))


def calibration(evaluation: Evaluation) -> Section:
    """Reliability curves of the out-of-fold probabilities."""
    code = np.array([evaluation.classes.index(v) for v in evaluation.labels.tolist()])
    counts = np.bincount(code, minlength=len(evaluation.classes))
    shown = [1] if len(counts) == 2 else np.argsort(-counts, kind="stable")[:MOST_CLASSES].tolist()
    figures = []
    for k in sorted(shown):
        hit = (code == k).astype(float)
        curves = [
            _reliability(name, evaluation.out_of_fold[name][:, k], hit) for name in (OURS, ALONE)
        ]
        label = f"Reliability curve of class {shorten(evaluation.classes[k])}"
        drawing = reliability(curves, evaluation.out_of_fold[OURS][:, k], label)
        title = f"Probability of “{shorten(evaluation.classes[k], 40)}”"
        figures.append((title, drawing))
    errors = [f"{evaluation.scores[m]['calibration_error'].value:.3f} ({m})" for m in (OURS, ALONE)]
    text = (
        "Of rows that are predicted with probability 0.8, about eight in ten should turn out so: "
        "the curve should follow the diagonal. Points are groups of equally many rows with "
        "95\u00a0% intervals; the bars below show where the predictions lie. "
        f"Mean distance from the diagonal: {' and '.join(errors)}."
    )
    if len(shown) < len(counts) and len(counts) > 2:
        text += f" The {len(shown)} most frequent of {len(counts)} classes are shown."
    if len(figures) == 1:
        blocks: tuple[Block, ...] = (Figures((Figure(*figures[0], caption=text),)),)
    else:
        blocks = (Text(text), Figures(tuple(Figure(*each) for each in figures)))
    return Section("calibration", "Calibration", "Whether probabilities mean what they say", blocks)


def _reliability(name: str, p: Array, hit: Array) -> Curve:
    """Mean prediction and observed frequency, with Wilson's interval, in bins of equal mass."""
    n_bins = int(np.clip(len(p) // ROWS_A_BIN, 1, MOST_BINS))
    edges = np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1])
    bin_of = np.searchsorted(edges, p, side="right")
    n = np.bincount(bin_of, minlength=n_bins)
    there = n > 0  # equal predictions share a bin
    n = n[there]
    predicted = np.bincount(bin_of, p, n_bins)[there] / n
    observed = np.bincount(bin_of, hit, n_bins)[there] / n
    z = 1.96
    centre = (observed + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(observed * (1 - observed) / n + z**2 / (4 * n**2))
    low, high = np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
    return Curve(name, predicted, observed, low, high)


def _best(evaluation: Evaluation, name: str) -> str:
    sign = 1.0 if SCORES[name].more_is_better else -1.0
    return max(evaluation.scores, key=lambda m: sign * evaluation.scores[m][name].value)


def _label(evaluation: Evaluation, name: str) -> str:
    values = (f"{m} {s[name].value:.3f}" for m, s in evaluation.scores.items())
    return f"{_capital(SCORES[name].words)}: {', '.join(values)}"


def _cell(found: Estimate, *, strong: bool) -> Cell:
    return Cell(f"{found.value:.3f}", found.value, f"{found.low:.2f}–{found.high:.2f}", strong)


def _gap(found: Estimate) -> Cell:
    spread = f"{_signed(found.low)} to {_signed(found.high)}"
    return Cell(_signed(found.value), found.value, spread, found.low * found.high > 0.0)


def typeset(text: str) -> str:
    """A sentence with signs of minus, and per cents that stay with their number."""
    return re.sub(r"(?<=\d) %", "\u00a0%", re.sub(r"(?<![^\s(\[])-(?=\d)", "−", text))


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _direction(more_is_better: bool) -> str:
    return "higher is better" if more_is_better else "lower is better"
