"""Predictions, the command and the report are as they were when `pins/*.json` were made.

See `pins/make.py` for what is pinned and for how to make the files anew.
"""

import json

import pytest

for _package in ("typer", "pyarrow", "jinja2", "matplotlib", "crowdkit"):
    pytest.importorskip(_package)

from pins import make  # noqa: E402

#: How far a number may be from the one in the file. "*" is for all that are not named; None: may be
#: anything. In the first three rows relative to numbers above 1, else absolute.
TOLERANCES = {
    # Hyper-parameters are given. Newton's steps of Laplace end at rounding errors.
    "exact": {"*": 1e-8},
    # EP and variational steps end within 1e-6 standard deviations of the fixed point; figures were
    # then within 6e-8 of it, gradients within 2e-7.
    "iterated": {"*": 1e-6},
    # Sparse steps end earlier: figures within 2e-6, gradients within 2e-5, the bound much closer.
    "sparse": {"*": 1e-5, "gradient": 1e-4, "evidence": 1e-6},
    # Hyper-parameters are climbed to: the last steps differ with rounding errors.
    "tuned": {"*": 2e-3, "mean": 2e-2, "variance": 5e-2, "evidence": 2e-2},
    # Structures are averaged, points move a few steps: only what is predicted counts.
    "learnt": {"*": 2e-2, "mean": None, "variance": None, "evidence": None},
    # Tuned models again. Errors of calibration jump where a probability goes to another bin.
    "command": {"*": 2e-2, "calibration_error": 5e-2},
    # Figures on the page are rounded to two or three digits.
    "report": {"*": 3e-2, "calibration_error": 5e-2},
}
RELATIVE = {"exact", "iterated", "sparse"}


def pinned(file):
    return json.loads((make.HERE / f"{file}.json").read_text())


def leaves(value, path=()):
    """Numbers, texts and empty lists by the keys that lead to them."""
    if not isinstance(value, dict | list) or not value:
        return {path: value}
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    return {where: x for key, v in steps for where, x in leaves(v, (*path, key)).items()}


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_close(got, want, how, path):
    if not (is_number(got) and is_number(want)):
        return got == want
    table = TOLERANCES[how]
    tolerance = [table["*"], *(table[key] for key in path if key in table)][-1]
    if tolerance is None or isinstance(want, int):
        return tolerance is None or got == want
    return abs(got - want) <= tolerance * (max(1.0, abs(want)) if how in RELATIVE else 1.0)


def differences(got, want, how):
    """What is not as pinned, one line each."""
    got, want = leaves(make.plain(got)), leaves(want)
    lines = [f"{path}: {got[path]!r}, which is not pinned" for path in got.keys() - want.keys()]
    lines += [f"{path}: pinned {want[path]!r} is missing" for path in want.keys() - got.keys()]
    return lines + [
        f"{path}: {got[path]!r}, pinned {x!r}"
        for path, x in want.items()
        if path in got and not is_close(got[path], x, how, path)
    ]


def check(got, want, how):
    lines = differences(got, want, how)
    assert not lines, "\n".join([f"{len(lines)} differences", *lines[:20]])


@pytest.mark.parametrize("name", make.MODELS)
def test_model(name):
    check(make.MODELS[name].figures(), pinned("models")[name], make.MODELS[name].how)


@pytest.mark.parametrize("name", make.TABLES)
def test_table(name):
    how, figures = make.TABLES[name]
    check(figures(), pinned("tables")[name], how)


@pytest.fixture(scope="module")
def said():
    """What each call says; later ones read what earlier ones wrote."""
    return make.commands()


@pytest.mark.xdist_group("pins")
@pytest.mark.parametrize("name", make.COMMANDS)
def test_command(said, name):
    check(said[name], pinned("command")[name], "command")
    assert said[name]["code"] == make.COMMANDS[name][0]


def test_report():
    check(make.report(), pinned("report"), "report")


def test_nothing_is_pinned_that_is_not_made():
    made = {"models": make.MODELS, "tables": make.TABLES, "command": make.COMMANDS}
    assert all(list(pinned(file)) == list(names) for file, names in made.items())


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ({"evidence": -20.0 + 1e-6}, "exact"),
        ({"evidence": -20.03}, "tuned"),
        ({"names": ["b"]}, "learnt"),
        ({"names": ["a", "b"]}, "learnt"),
        ({"n": 4}, "command"),
        ({"evidence": None}, "command"),
        ({"more": 1}, "command"),
    ],
)
def test_differences_are_listed(change, how):
    want = {"evidence": -20.0, "names": ["a"], "n": 3}
    assert differences(want, want, how) == []
    assert len(differences(want | change, want, how)) == 1
