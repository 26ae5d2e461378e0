"""The benchmarks by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import (
    adversary,
    advise,
    against_gpboost,
    against_sklearn,
    convergence,
    coverage,
    distributed,
    evaluation,
    large,
    loop,
    memory,
    multiclass,
    one_structure,
    paper,
    passes,
    points,
    predict,
    quality,
    rivals,
    scale,
    sparse,
    structures,
    tables,
    verdicts,
)
from benchmarks.figures import Context, Figure

BENCHMARKS: dict[str, Callable[[Context], list[Figure]]] = {
    "evaluation": evaluation.run,
    "sklearn": against_sklearn.run,
    "gpboost": against_gpboost.run,
    "convergence": convergence.run,
    "coverage": coverage.run,
    "predict": predict.run,
    "tables": tables.run,
    "memory": memory.run,
    "distributed": distributed.run,
    "paper": paper.run,
    "quality": quality.run,
    "structures": structures.run,
    "multiclass": multiclass.run,
    "rivals": rivals.run,
    "one_structure": one_structure.run,
    "sparse": sparse.run,
    "passes": passes.run,
    "points": points.run,
    "vecchia": sparse.against_vecchia,
    "scale": scale.run,
    "large": large.run,
    "middle": large.middle,
    "svgp": scale.against_svgp,
    "verdicts": verdicts.run,
    "loop": loop.run,
    "adversary": adversary.run,
    "advise": advise.run,
}
