"""One fit of many rows in a process of its own: ``python -m benchmarks.many_rows FILE OPTIONS``.

The file holds a problem, as `save` writes it; options are JSON. Prints figures as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import peak_bytes
from polyfid import MultiFidelityClassifier
from polyfid.datasets import make_cokriging
from polyfid.evaluation.result import score
from polyfid.kernels import RBF
from polyfid.learning.progress import Progress


def save(path: Path, n_low: int, n_high: int, seed: int = 0) -> None:
    """A problem of two levels and five features in which the model is true."""
    made = make_cokriging(
        n_low, n_high, 5, labels="sigmoid", n_test=10_000, random_state=1001 + seed
    )
    np.savez(
        path,
        x=made.data,
        y=made.target,
        level=made.fidelity,
        x_test=made.test_data,
        y_test=made.test_target,
    )


def main(path: str, options: dict[str, Any]) -> dict[str, Any]:
    data = np.load(path)
    x, y, level = data["x"], data["y"], data["level"]
    kernel = 4.0 * RBF(2.0, ard=True) if options["kernel"] == "ard" else "auto"
    n_inducing = options["n_inducing"]
    model = MultiFidelityClassifier(kernel, n_inducing=n_inducing, random_state=0)
    before, started, ends = peak_bytes(), time.perf_counter(), []
    cpu = time.process_time()

    def on_step(step: Progress) -> None:
        if step.stage == "passes":
            ends.append(time.perf_counter())
            print(f"    {ends[-1] - started:.1f} s: {step.value}", file=sys.stderr, flush=True)

    model.fit(x, y, fidelity=level, callback=on_step)
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    start = time.perf_counter()
    p = model.predict_proba(data["x_test"])
    predict = time.perf_counter() - start
    auc, loss, _, calibration = score(p, data["y_test"], np.ones((1, len(p))))[0].tolist()
    return {
        "wall": wall,
        "cpu": cpu,
        "a_pass": float(np.median(np.diff(ends))),
        "passes": len(ends) - 1,
        "peak": peak_bytes(),
        "before": before,
        "predict": predict,
        "log_loss": loss,
        "auc": auc,
        "calibration": calibration,
        "report": str(model.report_),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.loads(sys.argv[2]))))
