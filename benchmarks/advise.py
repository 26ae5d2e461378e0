"""Whether budgets bring what the adviser promises, and whether it knows which plan is best.

From a start of 40 trusted and 120 cheap rows it is asked about three plans of the same cost: all
money on trusted rows, all on cheap ones, half on each. Then random rows are really bought and the
model is fitted anew; what counts is the fall of the log-loss on held-out rows with true labels.
Sets are those of the paper's budget experiment that are there, other artificial ones, tables of
PMLB with flipped labels, and made ones. Constants were chosen on other problems.
What was measured is kept in ``benchmarks/out/advise``: a run that was stopped goes on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks.figures import Context, Figure, Skip, Table, at_least, info
from experiments import problems
from experiments.cells import scores
from experiments.run import RowFile
from polyfid import MultiFidelityClassifier, advise
from polyfid.datasets import make_cokriging, make_rough
from polyfid.suggest.budget import expected_gains

FOLDER = Path(__file__).parent / "out" / "advise"
N_TRUSTED, N_CHEAP, N_POOL, N_TEST, N_ORDERS = 40, 120, 1000, 3000, 3
#: Rows that are left to label where a set is small, and the share of them with trusted labels.
LEAST_LEFT, SHARE_TRUSTED = 900, 0.3
PLANS = ("trusted", "mix", "cheap")
PROMISES = "adviser", "fixed"
#: What plans are compared by, if it is not what they promise.
COMPARED = {"adviser": "cautious"}
SCORES = "log_loss", "accuracy", "roc_auc"
#: Draws per set, the first seed, and draws of the bootstrap.
N_SEEDS, FIRST_SEED, N_BOOTSTRAP = 3, 50_000, 400
#: The goals: slope of what is delivered by what is promised, and how often the best is picked.
SLOPE, PICKED = (0.7, 1.4), 0.6

Array = NDArray[np.float64]


class Case(NamedTuple):
    """A set, the noise of its cheap labels, and how many of them cost what a trusted one does."""

    name: str
    noise: float
    ratio: int

    def __str__(self) -> str:
        return f"{self.name}, noise {self.noise:g}, 1:{self.ratio}"


#: Of the paper's budget experiment; a trusted row costs 8 there, a cheap one 1, 2 or 4.
PAPER = (
    *(Case("df_1", 0.2, 8), Case("df_1", 0.4, 4), Case("df_11", 0.2, 4), Case("df_11", 0.4, 8)),
    *(Case("df_21", 0.2, 4), Case("df_31", 0.2, 8), Case("df_31", 0.4, 4)),
)
OTHERS = (
    *(Case("df_3", 0.3, 8), Case("df_13", 0.3, 8), Case("df_23", 0.3, 4)),
    *(Case("satimage", 0.3, 8), Case("waveform-40", 0.2, 4), Case("spambase", 0.3, 8)),
    *(Case("mushroom", 0.4, 8), Case("hypothyroid", 0.2, 4)),
    *(Case("rough", 0.0, 8), Case("made", 0.2, 8), Case("coins", 0.5, 8)),
)
QUICK = (PAPER[0], OTHERS[-3])


class Rows(NamedTuple):
    """Rows of each level and their labels, in random order, and rows to test on."""

    X_cheap: Array
    X_trusted: Array
    cheap: Array
    trusted: Array
    X_test: Array
    y_test: Array


def run(context: Context) -> list[Figure]:
    cases = QUICK if context.quick else (*PAPER, *OTHERS)
    if context.data is None:
        cases = tuple(case for case in cases if case.name in MADE)
    if not cases:
        raise Skip("needs the sets of the experiments: --data DIR or POLYFID_DATA")
    data = None if context.data is None else str(context.data)
    done = RowFile(FOLDER)
    seeds = range(2 if context.quick else N_SEEDS)
    wanted = [(str(case), seed) for seed in seeds for case in cases]
    kept = {(row["problem"], row["seed"]): row for row in done.rows.values()}
    by_name = {str(case): case for case in cases}
    left = [job for job in wanted if job not in kept]
    jobs = (delayed(measure)(by_name[name], seed, data) for name, seed in left)
    for k, row in enumerate(Parallel(n_jobs=-1, return_as="generator_unordered")(jobs), 1):
        done.append(row)
        kept[row["problem"], row["seed"]] = row
        context.progress(f"advise: {k} of {len(left)}, {row['problem']}")
    rows = [kept[job] for job in wanted if "delivered" in kept[job]]
    context.tables.append(_table(rows))
    return [figure for promise in PROMISES for figure in _figures(rows, promise)]


def measure(case: Case, seed: int, data: str | None, first: int = FIRST_SEED) -> dict[str, Any]:
    """What three plans promise and deliver, as falls of the log-loss."""
    rng = np.random.RandomState(first + seed)
    row: dict[str, Any] = {"experiment": "advise", "problem": str(case), "seed": seed}
    rows, ratio = load(case, rng, data), case.ratio
    if len(np.unique(rows.trusted[:N_TRUSTED])) < 2:
        return row | {"error": "one class"}
    costs, budget = {0: 1.0, 1: float(ratio)}, float(N_TRUSTED * ratio)
    counts = [(0, N_TRUSTED), (N_TRUSTED * ratio // 2, N_TRUSTED // 2), (N_TRUSTED * ratio, 0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = np.arange(N_CHEAP), np.arange(N_TRUSTED)
        model = fitted(rows, *start)
        now = tested(model, rows)
        pool = np.vstack([rows.X_trusted[N_TRUSTED:], rows.X_cheap[N_CHEAP:]])
        pool = pool[rng.permutation(len(pool))[:N_POOL]]
        advice = advise(model, pool, costs, budget, random_state=seed)
        plans = [next(p for p in advice.plans if (*p.labels.values(),) == n) for n in counts]
        fixed = expected_gains(model, pool, costs, counts, moved=False, random_state=seed)
        delivered = []
        for n_cheap, n_trusted in counts:
            after = []
            for _ in range(N_ORDERS):
                cheap = N_CHEAP + rng.permutation(len(rows.X_cheap) - N_CHEAP)[:n_cheap]
                trusted = N_TRUSTED + rng.permutation(len(rows.X_trusted) - N_TRUSTED)[:n_trusted]
                chosen = np.append(start[0], cheap), np.append(start[1], trusted)
                after.append(tested(fitted(rows, *chosen), rows))
            delivered.append(np.mean(after, axis=0))
    return row | {
        "start": now.tolist(),
        "expected": [getattr(advice.now, name).value for name in SCORES],
        "adviser": [plan.gain.value for plan in plans],
        "cautious": [plan.cautious_gain for plan in plans],
        "low": [plan.gain.low for plan in plans],
        "high": [plan.gain.high for plan in plans],
        "fixed": fixed,
        "delivered": [float(now[0] - after[0]) for after in delivered],
        "accuracy": [float(after[1] - now[1]) for after in delivered],
        "roc_auc": [float(after[2] - now[2]) for after in delivered],
        "promised_accuracy": [p.accuracy.value - advice.now.accuracy.value for p in plans],
        "promised_roc_auc": [p.roc_auc.value - advice.now.roc_auc.value for p in plans],
    }


def fitted(rows: Rows, cheap: Array, trusted: Array) -> MultiFidelityClassifier:
    """The default model of some cheap and some trusted rows."""
    X = np.vstack([rows.X_cheap[cheap], rows.X_trusted[trusted]])
    y = np.append(rows.cheap[cheap], rows.trusted[trusted])
    level = np.repeat([0, 1], [len(cheap), len(trusted)])
    return MultiFidelityClassifier(random_state=0, n_jobs=1).fit(X, y, level)


def tested(model: MultiFidelityClassifier, rows: Rows) -> Array:
    """Log-loss, accuracy and ROC AUC on the test rows."""
    found = scores(rows.y_test, model.predict_proba(rows.X_test)[:, 1])
    return np.array([found[name] for name in SCORES])


def load(case: Case, rng: np.random.RandomState, data: str | None) -> Rows:
    """The rows of a set in random order; no row has labels of both levels."""
    if case.name in MADE:
        made = MADE[case.name](rng, case.noise)
        own = [rng.permutation(np.flatnonzero(made.fidelity == t)) for t in (0, 1)]
        X, y = [made.data[rows] for rows in own], [made.target[rows] for rows in own]
        return Rows(*X, *y, made.test_data, made.test_target)
    whole = problems.load(case.name, case.noise, data)
    order = rng.permutation(len(whole.X))
    n = max(len(order) - N_TEST, LEAST_LEFT)
    rest, test = order[:n], order[n:][:N_TEST]
    trusted, cheap = np.split(rest, [int(SHARE_TRUSTED * n)])
    return Rows(
        whole.X[cheap],
        whole.X[trusted],
        whole.cheap[cheap],
        whole.trusted[trusted],
        whole.X[test],
        whole.true[test],
    )


def _made(rng: np.random.RandomState, noise: float) -> Any:
    seed, d = rng.randint(2**31 - 1), int(rng.choice([2, 5]))
    how: dict[str, Any] = {"labels": "sigmoid", "n_test": N_TEST, "random_state": seed}
    return make_cokriging(1000, 500, d, noise=noise, **how)


def _rough(rng: np.random.RandomState, noise: float) -> Any:
    how: dict[str, Any] = {"length_scale": [2.0, 1.5], "scale": [6.0, 1.0], "n_test": N_TEST}
    return make_rough(1000, 500, 3, random_state=rng.randint(2**31 - 1), **how)


def _coins(rng: np.random.RandomState, noise: float) -> Any:
    made = _made(rng, 0.2)
    cheap = made.fidelity == 0
    made.target[cheap] = rng.uniform(size=cheap.sum()) < noise
    return made


#: Sets that are made on the spot: by co-kriging, the same with coin flips as cheap labels, rough.
MADE: dict[str, Callable[[np.random.RandomState, float], Any]] = {
    "made": _made,
    "coins": _coins,
    "rough": _rough,
}


def _figures(rows: Sequence[dict[str, Any]], promise: str) -> list[Figure]:
    """How promises of one kind were kept, with 95 % intervals from a bootstrap of the sets."""
    value = _kept(rows, promise)
    rng, sets = np.random.RandomState(0), sorted({row["problem"] for row in rows})
    by_set = {name: [row for row in rows if row["problem"] == name] for name in sets}
    drawn = [
        _kept([row for name in rng.choice(sets, len(sets)) for row in by_set[name]], promise)
        for _ in range(N_BOOTSTRAP)
    ]
    low, high = np.nanpercentile(drawn, [2.5, 97.5], axis=0)
    notes = [f"95 % interval {a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True)]
    slope, overall, within, picked, regret = value
    met = bool(SLOPE[0] <= slope <= SLOPE[1])
    goal = f"{SLOPE[0]:g} to {SLOPE[1]:g}"
    figures = [
        Figure(f"{promise}: slope, delivered by promised", slope, "", goal, met, notes[0]),
        info(f"{promise}: rank correlation, all plans", overall, note=notes[1]),
        info(f"{promise}: rank correlation within a draw", within, note=notes[2]),
        at_least(f"{promise}: best of three plans picked", picked, PICKED, note=notes[3]),
        info(f"{promise}: log-loss given away by the pick", regret, note=notes[4]),
    ]
    if promise != "fixed":
        gains = _values(rows, "delivered")
        inside = (gains >= _values(rows, "low")) & (gains <= _values(rows, "high"))
        figures.append(info("adviser: gains inside their 95 % intervals", float(inside.mean())))
        for name in SCORES[1:]:
            x, y = _values(rows, f"promised_{name}").ravel(), _values(rows, name).ravel()
            figures.append(info(f"adviser: slope of the {name}", float(x @ y / (x @ x))))
        for k, plan in enumerate(PLANS):
            best = gains.argmax(axis=1) == k
            figures.append(info(f"plan {plan} is the best one", float(best.mean())))
            lost = float(np.mean(gains.max(axis=1) - gains[:, k]))
            figures.append(info(f"plan {plan} always: log-loss given away", lost))
    return figures


def _values(rows: Sequence[dict[str, Any]], name: str) -> Array:
    return np.array([row[name] for row in rows], dtype=float)


def _kept(rows: Sequence[dict[str, Any]], promise: str) -> Array:
    """Slope, rank correlations over all plans and within draws, share picked, what picks lose."""
    x, y = _values(rows, promise), _values(rows, "delivered")
    slope = float(np.vdot(x, y) / np.vdot(x, x))
    within = np.nanmean([spearmanr(a, b)[0] for a, b in zip(x, y, strict=True)])
    pick = _values(rows, COMPARED.get(promise, promise)).argmax(axis=1)
    lost = y.max(axis=1) - y[np.arange(len(y)), pick]
    overall = spearmanr(x.ravel(), y.ravel())[0]
    return np.array([slope, overall, within, np.mean(pick == y.argmax(axis=1)), np.mean(lost)])


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    """Means per set: promised and delivered falls of the log-loss."""
    lines = []
    for name in dict.fromkeys(row["problem"] for row in rows):
        own = [row for row in rows if row["problem"] == name]
        start = np.mean([row["start"][0] for row in own])
        cells = [
            " / ".join(f"{value:+.3f}" for value in _values(own, kind).mean(axis=0))
            for kind in (*PROMISES, "delivered")
        ]
        lines.append([name, str(len(own)), f"{start:.3f}", *cells])
    header = ["set", "draws", "log-loss", "adviser", "fixed hyper-parameters", "delivered"]
    return Table("falls of the log-loss: all trusted / half / all cheap", header, lines)
