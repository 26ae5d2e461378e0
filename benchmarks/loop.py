"""Which strategy of buying labels learns most for the money: held-out log-loss, batch by batch.

All strategies start from the same random labels, spend the same money in six batches, and refit
the default model after each. What was measured is kept in ``benchmarks/out/loop``: a run that was
stopped goes on. Remove the folder to measure another version of polyfid.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from benchmarks.figures import Context, Figure, Skip, Table, at_least, at_most, info
from benchmarks.loop_problems import LEVELS, NOISE, PROBLEMS, Array, Game
from experiments.run import RowFile
from polyfid import MultiFidelityClassifier, suggest

FOLDER = Path(__file__).parent / "out" / "loop"
N_BATCHES = 6
#: Strategies by name: options of `suggest`, and the levels that it may buy at. Margin and BALD take
#: the best rows of all and none at random, as they are known.
PLAIN: dict[str, Any] = {"audit": 0.0, "choices": None}
STRATEGIES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "epig": ({}, LEVELS),
    "brier": ({"strategy": "brier"}, LEVELS),
    "error": ({"strategy": "error"}, LEVELS),
    "bald": ({"strategy": "bald", **PLAIN}, LEVELS),
    "margin": ({"strategy": "margin", **PLAIN}, LEVELS),
    "random, half each": ({"strategy": "random"}, LEVELS),
    "random, trusted only": ({"strategy": "random"}, LEVELS[1:]),
    "trusted only, epig": ({}, LEVELS[1:]),
}
RANDOM = ("random, half each", "random, trusted only")
#: Draws of the toy problems and of all others. Constants were chosen on seeds from 1000 on.
N_TOY, N_OTHERS, FIRST_SEED = 20, 5, 0


def play(
    game: Game,
    strategy: str,
    seed: int,
    make: Callable[..., MultiFidelityClassifier] = MultiFidelityClassifier,
    **options: Any,
) -> dict[str, Any]:
    """Losses after the start and each batch, and what was bought."""
    how, offered = STRATEGIES[strategy]
    prices = {level: game.costs[LEVELS.index(level)] for level in offered}
    alone = strategy == "trusted only, epig"
    bought = [_start(game, seed, t) for t in (0, 1)]
    losses, counts, seconds = [], [], 0.0
    for batch in range(N_BATCHES + 1):
        used = [np.empty(0, dtype=np.intp), bought[1]] if alone else bought
        rows = np.concatenate(used)
        y = np.concatenate([game.answers[t][used[t]] for t in (0, 1)])
        level = np.repeat(LEVELS, [len(own) for own in used])
        started = time.process_time()
        model = make(levels=LEVELS[1:] if alone else LEVELS, random_state=0)
        model.fit(game.X[rows], y, fidelity=level)
        loss = log_loss(game.y_test, model.predict_proba(game.X_test), labels=[0, 1])
        losses.append(float(loss))
        counts.append([len(own) for own in bought])
        if batch < N_BATCHES:
            given = {"random_state": 100 * seed + batch, **how, **options}
            chosen = suggest(model, game.X, prices, budget=game.batch, **given)
            for t, own in enumerate(LEVELS):
                new = chosen["row"][chosen["level"] == own].to_numpy()
                bought[t] = np.concatenate([bought[t], new])
        seconds = max(seconds, time.process_time() - started)
    return {"losses": losses, "counts": counts, "seconds": seconds}


def _start(game: Game, seed: int, level: int) -> NDArray[np.intp]:
    """Random rows with a label at a level, of both classes at least two."""
    rng = np.random.RandomState(1000 * level + seed)
    y, n = game.answers[level], game.start[level]
    while True:
        rows = rng.permutation(len(y))[:n]
        if np.bincount(y[rows], minlength=2).min() >= 2:
            return rows


def one(problem: str, strategy: str, seed: int, data: Path | None) -> dict[str, Any]:
    """A strategy on a draw of a problem."""
    row: dict[str, Any] = {"experiment": "loop", "problem": problem, "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return row | {"method": strategy} | play(PROBLEMS[problem](seed, data), strategy, seed)


def run(context: Context) -> list[Figure]:
    done = RowFile(FOLDER)
    kept = {(r["problem"], r["method"], r["seed"]): r for r in done.rows.values()}
    wanted = _wanted(context)
    left = [job for job in wanted if job not in kept]
    found = Parallel(n_jobs=-1, return_as="generator_unordered")(
        delayed(one)(*job, context.data) for job in left
    )
    for k, row in enumerate(found, 1):
        done.append(row)
        kept[row["problem"], row["method"], row["seed"]] = row
        if k % 20 == 0:
            context.progress(f"loop: {k} of {len(left)}")
    return summarise(context, [kept[job] for job in wanted])


def _wanted(context: Context) -> list[tuple[str, str, int]]:
    """Problems, strategies and seeds; draws come first, so that a run cut short has all sets."""
    names = list(PROBLEMS)[:2] if context.quick else list(PROBLEMS)
    jobs = []
    for k in range(2 if context.quick else N_TOY):
        for problem in names:
            if k < N_OTHERS or problem.startswith("toy"):
                try:
                    PROBLEMS[problem](FIRST_SEED + k, context.data)
                except Skip:
                    continue
                jobs += [(problem, strategy, FIRST_SEED + k) for strategy in STRATEGIES]
    return jobs


def summarise(context: Context, rows: Sequence[dict[str, Any]]) -> list[Figure]:
    """Tables and figures of paired differences, of draws that all strategies have played."""
    played = pd.DataFrame(rows).set_index(["problem", "seed", "method"])
    played["mean"] = [np.mean(losses[1:]) for losses in played["losses"]]
    means = played["mean"].unstack("method")[[*STRATEGIES]].dropna()
    by_problem = means.groupby(level="problem", sort=False)
    gaps = means.sub(means["epig"], axis=0)
    cells = by_problem.mean().map("{:.4f}".format)
    cells.insert(0, "n", by_problem.size().astype(str))
    context.tables += [
        Table(
            "loop: mean log-loss after six batches",
            ["problem", *cells.columns],
            [[str(name), *row] for name, row in zip(cells.index, cells.to_numpy(), strict=True)],
        ),
        Table(
            "loop: mean log-loss less that of epig, all draws of all problems",
            ["strategy", "difference", "standard error"],
            [[s, f"{gaps[s].mean():+.4f}", f"{gaps[s].sem():.4f}"] for s in STRATEGIES],
        ),
    ]
    figures = [
        at_least(f"epig better than {s}, standard errors", gaps[s].mean() / gaps[s].sem(), 2.0)
        for s in (*RANDOM, "margin")
    ]
    curves = (
        pd.DataFrame(played["losses"].tolist(), index=played.index)
        .groupby(level=["problem", "method"], sort=False)
        .mean()
    )
    shares = [
        share_of_cost(
            curves.loc[problem, "epig"].to_numpy(),
            min((curves.loc[problem, s].to_numpy() for s in RANDOM), key=lambda c: c[1:].mean()),
        )
        for problem in by_problem.groups
    ]
    median = float(np.median(shares))
    figures.append(at_most("share of the best random strategy's cost, median", median, 0.6))
    lost = -by_problem.apply(lambda own: _in_errors(own[RANDOM[0]] - own["epig"]))
    names = [str(problem) for problem in lost.index[lost > 2.0]]
    figures.append(
        at_most("problems where epig is worse than random", len(names), 0, note=", ".join(names))
    )
    noise = [row for row in rows if row["problem"] == NOISE and row["method"] == "epig"]
    if noise:
        cheap = np.mean([row["counts"][2][0] - row["counts"][0][0] for row in noise])
        figures.append(info("cheap labels that are noise, bought in two batches", cheap))
    seconds = played.xs("epig", level="method")["seconds"].max()
    figures.append(info("slowest refit and suggestion", seconds, "s of CPU"))
    return figures


def _in_errors(gaps: Any) -> float:
    """A mean difference in standard errors."""
    return float(gaps.mean() / max(gaps.sem(), 1e-12))


def share_of_cost(ours: Array, theirs: Array) -> float:
    """At which share of the money our losses reach the last one of theirs."""
    best = np.minimum.accumulate(ours)
    below = np.flatnonzero(best <= theirs[-1])
    if not len(below):
        return float("inf")
    k = int(below[0])
    if k == 0:
        return 0.0
    part = (best[k - 1] - theirs[-1]) / (best[k - 1] - best[k])
    return float((k - 1 + part) / N_BATCHES)
