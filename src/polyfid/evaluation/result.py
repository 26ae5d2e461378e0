"""The result of a comparison: scores with intervals, a verdict and its text.

A bootstrap sample is a weighting of the rows: how often each was drawn. All scores here are
weighted sums over ranks or bins that do not depend on the weights, so that a thousand samples cost
one matrix product.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyfid.arrays import Array, Indices
from polyfid.evaluation.verdict import PRIMARY, Agreement, Estimate, Losses, Verdict, judge
from polyfid.model.calibration import calibration_error
from polyfid.text import aligned, by_trust, percent
from polyfid.values import to_json

#: The method that is judged, and the one that it is compared with.
OURS, ALONE = "polyfid", "trusted only"

#: Columns of the text of an evaluation. A table of confusion that is wider is left out.
_WIDTH = 60
#: Upper bound on the elements of one array of bootstrap weights.
_BATCH_ELEMENTS = 1 << 21


class Score(NamedTuple):
    """The name of a score as people write it, and whether higher values are better."""

    words: str
    more_is_better: bool

    @property
    def short(self) -> str:
        """The name where there is little room: no wider than an interval."""
        return self.words.removesuffix(" error").removesuffix(" score")


SCORES: dict[str, Score] = {
    "roc_auc": Score("ROC AUC", True),
    "log_loss": Score("log-loss", False),
    "brier": Score("Brier score", False),
    "calibration_error": Score("calibration error", False),
}


def score(proba: Array, code: Indices, weights: Array) -> Array:
    """All of `SCORES` under each row of ``weights``, (n_weightings, n_scores).

    ``code`` is the class of each row, as the place of its column in ``proba``. In each weighting
    every class in ``code`` must have a weight above zero.
    """
    total = weights.sum(axis=1)
    rows = np.arange(len(code))
    hit = np.zeros_like(proba)
    hit[rows, code] = 1.0
    loss = -np.log(np.maximum(proba[rows, code], np.finfo(float).eps))
    square = np.square(proba - hit).sum(axis=1)
    # As in scikit-learn: at most 1 for two classes, at most 2 for more.
    square *= 0.5 if proba.shape[1] == 2 else 1.0
    # Two classes: that of the second one. More: the mean over each class against the others.
    columns = [1] if proba.shape[1] == 2 else np.unique(code).tolist()
    auc, calibration = (
        np.mean([one_class(proba[:, k], hit[:, k], weights) for k in columns], axis=0)
        for one_class in (_auc, calibration_error)
    )
    return np.stack([auc, weights @ loss / total, weights @ square / total, calibration], axis=1)


def _auc(p: Array, hit: Array, weights: Array) -> Array:
    """Probability that a row of the class ranks above a row of another; ties count half."""
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(p[order]) > 0.0])
    weights, hit = weights[:, order], hit[order]
    up = np.add.reduceat(weights * hit, starts, axis=1)
    down = np.add.reduceat(weights * (1.0 - hit), starts, axis=1)
    below = np.cumsum(down, axis=1) - 0.5 * down
    return np.asarray((up * below).sum(axis=1) / (up.sum(axis=1) * down.sum(axis=1)))


def bootstrap(
    probas: Mapping[str, Array], code: Indices, weight: Array, n_samples: int, rng: Any
) -> dict[str, Array]:
    """Scores per method (n_samples, n_scores); all methods get the same bootstrap samples.

    Rows are drawn within their class, so that the number of rows per class stays the same.
    """
    scores: dict[str, list[Array]] = {name: [] for name in probas}
    for counts in resamples(code, n_samples, rng):
        for name, proba in probas.items():
            scores[name].append(score(proba, code, counts * weight))
    return {name: np.concatenate(batches) for name, batches in scores.items()}


def resamples(code: Indices, n_samples: int, rng: Any) -> Iterator[Array]:
    """How often each row is drawn in each bootstrap sample, in batches (n_batch, n)."""
    size = max(1, _BATCH_ELEMENTS // len(code))
    for start in range(0, n_samples, size):
        counts = np.empty((min(size, n_samples - start), len(code)))
        for k in np.unique(code):
            members = np.flatnonzero(code == k)
            share = np.full(len(members), 1.0 / len(members))
            counts[:, members] = rng.multinomial(len(members), share, size=len(counts))
        yield counts


@dataclass(frozen=True)
class Evaluation:
    """How well each method predicts held-out trusted labels; ``print`` shows it.

    Attributes
    ----------
    levels, classes : tuple
        Levels are in order of trust, the least trusted first.
    rows : array of shape (n_trusted,)
        Indices in X of the trusted rows that were scored.
    labels : array of shape (n_trusted,)
        Their labels.
    codes : array of shape (n_trusted,)
        Their labels as places in ``classes``, and so as columns of the probabilities.
    fold : array of shape (n_trusted,)
        The fold in which each of them was held out.
    out_of_fold : dict of str to array of shape (n_trusted, n_classes)
        Per method, the probabilities of each trusted row by the model that was fitted without it;
        columns in the order of ``classes``.
    scores : dict of str to dict of str to Estimate
        Per method and score; the scores are those in `polyfid.evaluation.SCORES`.
    differences : dict of str to dict of str to Estimate
        Per method and score, "polyfid" minus that method on the same rows. Intervals are wider
        than those of the test rows alone: other training rows would give other models too.
    n_splits, n_bootstrap : int
        The number of folds, which may be lower than asked for, and of bootstrap samples.
    agreement : tuple of Agreement
        Per lower level with points that the top level has labelled too, how often they agree.
    n_audit : int
        How many audit rows the scores are from; 0 where none are marked, and all trusted rows are
        scored.
    notes, caveats : tuple of str
        What is unusual (fewer folds, warnings of fits), and what weighs against the verdict.

    Notes
    -----
    Intervals of scores are percentiles of a bootstrap over trusted rows, drawn within their class:
    they say how much the figure would change with other test rows. Those of differences are wider
    by the root of 1 + k / (k - 1) for k folds, since other training rows would give other models,
    and those of folds are largely the same (Nadeau & Bengio, 2003).
    """

    levels: tuple[Any, ...]
    classes: tuple[Any, ...]
    rows: NDArray[np.intp]
    labels: NDArray[Any]
    codes: Indices
    fold: NDArray[np.intp]
    out_of_fold: Mapping[str, Array]
    scores: Mapping[str, Mapping[str, Estimate]]
    differences: Mapping[str, Mapping[str, Estimate]]
    n_splits: int
    n_bootstrap: int
    notes: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    n_audit: int = 0

    @cached_property
    def accuracy(self) -> dict[str, Estimate]:
        """Per method, the share of held-out trusted rows whose class it predicts."""
        code = self.codes
        hits = {name: (p.argmax(axis=1) == code).sum() for name, p in self.out_of_fold.items()}
        return {name: Estimate.of_share(int(n), len(code)) for name, n in hits.items()}

    @cached_property
    def confusion(self) -> NDArray[np.intp]:
        """Trusted rows by class (rows) and by the class that "polyfid" predicts (columns)."""
        counts = np.zeros((len(self.classes),) * 2, dtype=np.intp)
        np.add.at(counts, (self.codes, self.out_of_fold[OURS].argmax(axis=1)), 1)
        return counts

    @cached_property
    def judgement(self) -> Verdict:
        """What the comparison means: effect, sentences, caveats and advice."""
        loss = {name: scores[PRIMARY].value for name, scores in self.scores.items()}
        gap = {name: differences[PRIMARY] for name, differences in self.differences.items()}
        counts = np.bincount(self.codes, minlength=len(self.classes))
        shares = counts[counts > 0] / counts.sum()
        chance = -float(shares @ np.log(shares))
        losses = Losses(
            ours=loss[OURS],
            alone=loss[ALONE],
            pooled=loss.get("pooled"),
            stacked=loss["stacked"],
            minus_alone=gap[ALONE],
            minus_pooled=gap.get("pooled"),
            minus_stacked=gap["stacked"],
            chance=chance,
        )
        judged = judge(losses, counts[counts > 0].tolist(), self.levels)
        return replace(judged, caveats=(*judged.caveats, *self.caveats))

    @property
    def verdict(self) -> str:
        """Whether the cheaper labels "help", "hurt", make "no clear difference", or none can tell.

        Log-loss decides. They help or hurt if it differs from that of "trusted only" by a tenth
        at least, and the 95 % interval of the difference lies wholly on one side of zero. If it
        does not, and is wide, there are "too few trusted rows to tell".
        """
        return self.judgement.effect

    @property
    def sentence(self) -> str:
        """The verdict as a sentence, with the figures that it rests on."""
        return self.judgement.sentence

    def to_dict(self, out_of_fold: bool = True) -> dict[str, Any]:
        """The result as plain values for JSON, with or without the probabilities of the rows."""
        fields = asdict(self)
        predictions = {name: fields.pop(name) for name in ("rows", "labels", "fold")}
        predictions["probabilities"] = fields.pop("out_of_fold")
        del fields["codes"]
        judged = self.judgement
        result = {
            "trusted_level": self.levels[-1],
            "verdict": judged.effect,
            "sentence": judged.sentence,
            "beside_others": judged.rivals,
            "next_step": judged.advice,
            "caveats": judged.caveats,
            "n_more_trusted": judged.n_more,
            "n_trusted": len(self.rows),
            "accuracy": {name: asdict(e) for name, e in self.accuracy.items()},
            "confusion": self.confusion,
        }
        del fields["caveats"]
        result |= fields
        if out_of_fold:
            result["out_of_fold"] = predictions
        return dict(to_json(result))

    def __str__(self) -> str:
        judged = self.judgement
        texts = [judged.sentence, judged.rivals, judged.advice]
        texts += [f"Caution: {text}" for text in judged.caveats]
        lines = list(map(_filled, texts))
        lines += ["", *_score_table(self), "", *self._about_rows()]
        lines += [_filled(f"Note: {note}") for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        judged = self.judgement
        texts = [f"<b>{escape(judged.sentence)}</b>", *map(escape, (judged.rivals, judged.advice))]
        texts += [f"Caution: {escape(text)}" for text in judged.caveats]
        heads, *rows = _score_rows(self, "<br>")
        table = "".join(
            "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in row) + "</tr>"
            for tag, row in (("th", heads), *(("td", row) for row in rows))
        )
        paragraphs = "".join(f"<p>{text}</p>" for text in texts)
        return f"<div class='polyfid-evaluation'>{paragraphs}<table>{table}</table></div>"

    def __repr__(self) -> str:
        loss = self.scores[OURS][PRIMARY].value
        return f"<Evaluation: {self.verdict}; log-loss {loss:.3f} on {len(self.rows)} trusted rows>"

    def _about_rows(self) -> list[str]:
        """Accuracy, confusion and agreement between levels, in lines."""
        counts = [["truth \\ predicted", *self.classes]]
        for name, row in zip(self.classes, self.confusion.tolist(), strict=True):
            counts.append([name, *map(str, row)])
        lines = [_filled(f"Levels: {by_trust(self.levels)}."), ""]
        lines += [f"Accuracy on the {len(self.rows)} held-out trusted rows:"]
        lines += [f"  {method:<13}{_with_ends(e, 2)}" for method, e in self.accuracy.items()]
        table = aligned(counts)
        if max(map(len, table)) <= _WIDTH:
            lines += ["", f"How {OURS} answers for held-out trusted rows:", *table]
        for one in self.agreement:
            text = (
                f"On {one.points} points that both labelled, {one.level} and {self.levels[-1]} "
                f"agree in {percent(one.share.value)} (95 % interval {percent(one.share.low)} to "
                f"{percent(one.share.high)})."
            )
            lines += ["", _filled(text)]
        return lines


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False)


def _with_ends(e: Estimate, digits: int) -> str:
    return f"{e.value:.{digits}f} ({e.low:.{digits}f} to {e.high:.{digits}f})"


def _score_rows(evaluation: Evaluation, between: str) -> list[list[str]]:
    """Scores of all methods with their intervals, the deciding score first."""
    names = sorted(SCORES, key=lambda name: name != PRIMARY)
    rows = [["", *(SCORES[name].short for name in names)]]
    for method, row in evaluation.scores.items():
        cells = (row[name] for name in names)
        rows.append([method, *(f"{e.value:.3f}{between}{e.low:.2f}–{e.high:.2f}" for e in cells)])
    return rows


def _score_table(evaluation: Evaluation) -> list[str]:
    """Lines of a table with one column per score; below each figure is its interval."""
    rows: list[list[str]] = []
    for row in _score_rows(evaluation, "|"):
        split = [cell.partition("|") for cell in row]
        rows.append([above for above, _, _ in split])
        if any(below for _, _, below in split):
            rows.append([below for _, _, below in split])
    note = "95 % intervals are below the figures. ROC AUC: higher is better; others: lower."
    return [*aligned(rows, indent=0), *textwrap.wrap(note, _WIDTH)]
