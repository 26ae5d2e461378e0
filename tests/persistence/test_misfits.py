"""Parts that are sound and do not belong together."""

import pytest
from saved_models import refused, seal, split


def at(tree, *keys):
    """A place in a tree of a state, through the fields of instances."""
    for key in keys:
        if isinstance(tree, dict) and "fields" in tree:
            tree = tree["fields"]
        if isinstance(tree, dict) and "$tuple" in tree:
            tree = tree["$tuple"]
        tree = tree[key]
    return tree["fields"] if isinstance(tree, dict) and "fields" in tree else tree


def edit_n_features(state):
    at(state)["n_features"] = 10**15


def edit_features(state):
    at(state)["n_features"] = 3


def edit_classes(state):
    at(state)["classes"] = {"$items": [1, 2, 3], "shape": [3]}


def edit_levels(state):
    at(state)["levels"]["$tuple"].append("more")


def edit_same_levels(state):
    at(state)["levels"]["$tuple"][:] = ["same", "same"]


def edit_members(state):
    at(state, "mixtures", 0)["members"] = {"$tuple": []}


def edit_mixtures(state):
    at(state)["mixtures"] *= 2


def edit_scheme(state):
    at(state, "mixtures", 0, "members", 0, "fit")["scheme"] = "magic"


def edit_climbs(state):
    at(state, "mixtures", 0, "members", 0, "fit", "optimum")["climbs"] = {"$tuple": []}


def edit_alpha(state):
    posterior = at(state, "mixtures", 0, "members", 0, "fit", "posterior")
    posterior["alpha"] = posterior["factor"]["fields"]["packed"]


def edit_points(state):
    posterior = at(state, "mixtures", 0, "members", 0, "fit", "posterior")
    posterior["points"]["fields"]["x"] = posterior["alpha"]


def edit_factor(state):
    factor = at(state, "mixtures", 0, "members", 0, "fit", "posterior", "factor")
    factor["size"] = 1


def edit_kernels(state):
    prior = at(state, "mixtures", 0, "members", 0, "fit", "posterior", "prior")
    prior["kernels"]["$tuple"] *= 501
    prior["rho"] = {"$tuple": [1.0] * (len(prior["kernels"]["$tuple"]) - 1)}


def edit_columns(state):
    prior = at(state, "mixtures", 0, "members", 0, "fit", "posterior", "prior")
    rbf = at(prior["kernels"], 0, "right")
    rbf["columns"] = {"$tuple": [10**12]}


def edit_parameter(state):
    at(state)["parameters"]["colour"] = "green"


def edit_names(state):
    at(state)["feature_names"] = {"$items": [1, 2], "shape": [2]}


def edit_notes(state):
    at(state)["notes"] = [5]


def edit_counts(state):
    at(state)["counts"] = at(state, "mixtures", 0, "members", 0, "fit", "posterior", "points")[
        "level"
    ]


@pytest.mark.parametrize(
    "edit",
    [value for name, value in sorted(globals().items()) if name.startswith("edit_")],
    ids=lambda edit: edit.__name__,
)
def test_parts_that_do_not_belong_together_are_refused(tmp_path, file_bytes, edit):
    header, rest = split(file_bytes)
    edit(header["state"])
    refused(tmp_path / "m.polyfid", seal(header, rest), "does not describe a model")
