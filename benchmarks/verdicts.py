"""How often the verdict of `evaluate` is wrong where cheap labels are pure noise, and its power.

Trusted labels are drawn from the model with random numbers of features. Cheap ones are coin flips
(noise), or come from a level that is wrong in a few points (help).
What was measured is kept in ``benchmarks/out/verdicts``: a run that was stopped goes on.
"""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.figures import Context, Figure, Table, at_most, info
from experiments.run import RowFile
from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.evaluation import evaluate

FOLDER = Path(__file__).parent / "out" / "verdicts"
#: Sets of pure noise, and of either helpful kind. Constants were chosen on other seeds.
N_NOISE, N_HELP, FIRST_SEED = 200, 30, 20_000
N_CHEAP, N_HELPFUL, N_TRUSTED = 150, 300, (30, 60, 120)
KINDS = {"noise": None, "wrong in 15 %": 0.15, "wrong in 5 %": 0.05}
#: Share of wrong verdicts on noise.
WRONG = 0.05


def run(context: Context) -> list[Figure]:
    n_noise, n_help = (12, 6) if context.quick else (N_NOISE, N_HELP)
    done = RowFile(FOLDER)
    wanted = [(kind, i) for kind in KINDS for i in range(n_noise if kind == "noise" else n_help)]
    kept = {(row["problem"], row["seed"]): row for row in done.rows.values()}
    left = [job for job in wanted if job not in kept]
    found = Parallel(n_jobs=-1, return_as="generator_unordered")(delayed(judged)(*j) for j in left)
    for k, row in enumerate(found, 1):
        done.append(row)
        kept[row["problem"], row["seed"]] = row
        if k % 20 == 0:
            context.progress(f"verdicts: {k} of {len(left)}")
    counts = {
        kind: Counter(kept[job]["verdict"] for job in wanted if job[0] == kind) for kind in KINDS
    }
    verdicts = sorted({verdict for count in counts.values() for verdict in count})
    lines = [[kind, *(str(count[v]) for v in verdicts)] for kind, count in counts.items()]
    context.tables.append(Table("verdicts", ["cheap labels", *verdicts], lines))
    noise = counts.pop("noise")
    wrong = (noise["help"] + noise["hurt"]) / noise.total()
    figures = [at_most("noise: verdicts of help or hurt", wrong, WRONG)]
    figures.append(info("noise: verdicts of help", noise["help"] / noise.total()))
    for kind, count in counts.items():
        figures.append(info(f"{kind}: verdicts of help", count["help"] / count.total()))
        figures.append(info(f"{kind}: verdicts of hurt", count["hurt"] / count.total()))
    return figures


def judged(kind: str, i: int, first: int = FIRST_SEED, **options: Any) -> dict[str, Any]:
    """The verdict on a problem, and the figures that it rests on."""
    rng = np.random.RandomState(first + i)
    n_trusted = N_TRUSTED[i % len(N_TRUSTED)]
    flips = KINDS[kind]
    made = make_cokriging(
        N_CHEAP if flips is None else N_HELPFUL,
        n_trusted,
        int(rng.randint(1, 5)),
        noise=0.1 if flips is None else flips,
        labels=("sign", "sigmoid")[rng.randint(2)],
        random_state=first + i,
    )
    y, cheap = made.target.copy(), made.fidelity == 0
    if flips is None:
        y[cheap] = rng.uniform(size=cheap.sum()) < rng.uniform(0.3, 0.7)
    row: dict[str, Any] = {"experiment": "verdicts", "problem": kind, "seed": i, "n": n_trusted}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = MultiFidelityClassifier(random_state=0, n_jobs=1, **options)
            found = evaluate(made.data, y, made.fidelity, model=model)
        except ValueError:  # one class at the trusted level
            return row | {"verdict": "none"}
    gap = found.differences["trusted only"]["log_loss"]
    losses = {name: scores["log_loss"].value for name, scores in found.scores.items()}
    return row | {"verdict": found.verdict, **vars(gap), **losses}
