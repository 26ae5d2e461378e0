"""The order of examples and tutorials, and what each of them begins with."""

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
#: From two kinds of labels to what polyfid is not made for.
TUTORIALS = (
    "crowd_and_gold",
    "simulator",
    "llm_and_people",
    "what_to_buy",
    "million_labels",
    "wrong_tool",
)


def by_reading(filename: str) -> tuple[int, str]:
    """Sort key of a file of the gallery or of the tutorials; their names differ."""
    name, places = filename.removesuffix(".py"), (*ORDER, *TUTORIALS)
    return (places.index(name) if name in places else len(places), name)


def reset(_: Any, __: Any) -> None:
    """Start an example with matplotlib's defaults, and the size that pages have room for."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    plt.close("all")
    mpl.rcdefaults()
    mpl.use("Agg")
    mpl.rcParams.update({"figure.dpi": 100, "figure.constrained_layout.use": True})
