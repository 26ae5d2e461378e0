"""Time and memory of suggestions: large pools, and the next batch of a study after a refit.

Each case runs in a process of its own, ``python -m benchmarks.suggesting CASE``, which prints
seconds of the clock and of the processor, and the peak of its memory in bytes.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np

from benchmarks.figures import Context, Figure, at_most
from benchmarks.memory import peak_bytes
from benchmarks.timing import run_python, timed
from polyfid import MultiFidelityClassifier, Study
from polyfid.datasets import make_cokriging

#: Rows of a large pool, labels in a batch, and the goals: seconds and bytes.
N_POOL, N_BATCH, SECONDS, MEMORY = 100_000, 100, 20.0, 1e9
#: Seconds of a refit and the next batch in a study of so many labels.
REFIT, N_CHEAP, N_TRUSTED = 10.0, 400, 100
COSTS = {"crowd": 1.0, "expert": 8.0}
NAMES = np.array(list(COSTS))
#: Cheap and trusted rows of the models that rank a large pool, and whether any row may be chosen.
POOLS = {
    "300 rows": (225, 75, False),
    "2000 rows": (1500, 500, False),
    "best of all": (225, 75, True),
}


def run(context: Context) -> list[Figure]:
    figures = []
    for case in (*POOLS, "study"):
        context.progress(f"suggesting: {case}")
        wall, cpu, peak = json.loads(run_python("-m", "benchmarks.suggesting", case))
        if case == "study":
            name = f"study of {N_CHEAP + N_TRUSTED} labels: refit and next batch"
            figures.append(at_most(name, wall, REFIT, "s", f"{cpu:.1f} s of CPU"))
            continue
        name = f"pool of {N_POOL:,}, {N_BATCH} labels, {case}"
        figures.append(at_most(name, wall, SECONDS, "s", f"{cpu:.1f} s of CPU"))
        figures.append(at_most(f"{name}: memory of all", peak, MEMORY, "bytes"))
    return figures


def _large_pool(n_cheap: int, n_trusted: int, of_all: bool) -> tuple[float, float]:
    made = make_cokriging(n_cheap, n_trusted, 5, labels="sigmoid", n_test=N_POOL, random_state=1)
    model = MultiFidelityClassifier(levels=[*COSTS], random_state=0)
    model.fit(made.data, made.target, fidelity=NAMES[made.fidelity])
    given = {"n": N_BATCH, "random_state": 0, **({"choices": None} if of_all else {})}
    taken = timed(lambda: model.suggest(made.test_data, COSTS, **given))
    return taken.wall, taken.cpu


def _study() -> tuple[float, float]:
    made = make_cokriging(N_CHEAP, N_TRUSTED, 4, labels="sigmoid", n_test=3600, random_state=1)
    study = Study(made.test_data, costs=COSTS, random_state=0)
    study.tell(made.data, made.target, level=NAMES[made.fidelity])
    taken = timed(lambda: study.ask(budget=80.0))
    return taken.wall, taken.cpu


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    case = sys.argv[1]
    wall, cpu = _study() if case == "study" else _large_pool(*POOLS[case])
    print(json.dumps([wall, cpu, peak_bytes()]))
