"""The gallery's order, and what each of its examples begins with."""

from __future__ import annotations

from typing import Any

#: From the idea to the decision. Examples that are not in the list come last, by name.
ORDER = (
    "levels_in_one_picture",
    "opposed_labels",
    "where_levels_differ",
    "three_levels",
    "three_classes",
    "numeric_level",
    "calibration_of_inference",
    "structures",
    "categorical_columns",
    "inducing_points",
    "label_noise",
    "annotators",
    "sample_weights",
    "label_studio",
    "thresholds_with_costs",
    "suggestions_in_a_batch",
    "study_progress",
    "budget_advice",
)


def by_reading(filename: str) -> tuple[int, str]:
    """Sort key of a file of the gallery."""
    name = filename.removesuffix(".py")
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def reset(_: Any, __: Any) -> None:
    """Start an example with matplotlib's defaults, and the size that pages have room for."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    plt.close("all")
    mpl.rcdefaults()
    mpl.use("Agg")
    mpl.rcParams.update({"figure.dpi": 100, "figure.constrained_layout.use": True})
