"""Side-by-side figures: speed, memory and accuracy against peers and references, in one run.

    python -m benchmarks [NAME ...] [--quick | --full] [--data DIR] [--golden FILE]

One module per benchmark, each with a ``run(context)`` that returns figures. Times are CPU seconds
of one thread; every ratio comes from one run, its two sides taking turns.
"""

import os

# BLAS and OpenMP read these once, when numpy and the peers load them, which is after this. A
# benchmark whose methods may use all cores starts processes with another number (`run_python`).
for _name in ("OPENBLAS", "OMP", "MKL", "BLIS", "VECLIB_MAXIMUM"):
    os.environ[f"{_name}_NUM_THREADS"] = os.environ.get("POLYFID_BENCHMARK_THREADS", "1")
