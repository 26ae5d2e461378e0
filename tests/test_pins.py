"""Predictions, the command and the report are as they were when `pins/*.json` were made.

See `pins/make.py` for what is pinned and for how to make the files anew.
"""

import json
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("crowdkit")

from pins import make

#: How far a number may be from the one in the file. "*" is for all that are not named; None: may be
#: anything. In the first three rows relative to numbers above 1, else absolute.
TOLERANCES = {
    # Hyper-parameters are given. Newton's steps of Laplace end at rounding errors.
    "exact": {"*": 1e-8},
    # EP and variational steps end within 1e-6 standard deviations of the fixed point; figures were
    # then seen to be within 6e-8 of it, gradients within 2e-7.
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
    return json.loads((Path(make.__file__).parent / f"{file}.json").read_text())


def differences(got, want, how, path=()):
    """What is not as pinned, a line each."""
    where = " / ".join(map(str, path)) or "all"
    if isinstance(want, dict) and isinstance(got, dict):
        if set(got) != set(want):
            return [f"{where}: keys {list(got)}, pinned {list(want)}"]
        steps = [(k, got[k], want[k]) for k in want]
    elif isinstance(want, list) and isinstance(got, list):
        if len(got) != len(want):
            return [f"{where}: {len(got)} entries, pinned {len(want)}: {got}"]
        steps = [(i, *pair) for i, pair in enumerate(zip(got, want, strict=True))]
    else:
        same = _are_close(got, want, how, path) if _is_number(want) else got == want
        return [] if same else [f"{where}: {got!r}, pinned {want!r}"]
    return [line for k, a, b in steps for line in differences(a, b, how, (*path, k))]


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_close(got, want, how, path):
    if not _is_number(got):
        return False
    table = TOLERANCES[how]
    named = [table[step] for step in path if step in table]
    tolerance = named[-1] if named else table["*"]
    if tolerance is None:
        return True
    if isinstance(want, int):
        return got == want
    return abs(got - want) <= tolerance * (max(1.0, abs(want)) if how in RELATIVE else 1.0)


def check(got, want, how):
    lines = differences(make.plain(got), want, how)
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
    made = {}
    with make.working_folder():
        for name in make.COMMANDS:
            try:
                made[name] = make.command(name)
            except Exception as error:  # told where it belongs
                made[name] = repr(error)
    return made


@pytest.mark.xdist_group("pins")
@pytest.mark.parametrize("name", make.COMMANDS)
def test_command(said, name):
    check(said[name], pinned("command")[name], "command")
    assert said[name]["code"] == make.COMMANDS[name][0]


def test_report():
    check(make.report(), pinned("report"), "report")


def test_nothing_is_pinned_that_is_not_made():
    for file, made in (
        ("models", make.MODELS),
        ("tables", make.TABLES),
        ("command", make.COMMANDS),
    ):
        assert list(pinned(file)) == list(made)


@pytest.mark.parametrize(
    ("got", "how"),
    [
        ({"evidence": -20.0 + 1e-6, "names": ["a"], "n": 3}, "exact"),
        ({"evidence": -20.03, "names": ["a"], "n": 3}, "tuned"),
        ({"evidence": -20.0, "names": ["b"], "n": 3}, "learnt"),
        ({"evidence": -20.0, "names": ["a", "b"], "n": 3}, "learnt"),
        ({"evidence": -20.0, "names": ["a"], "n": 4}, "command"),
        ({"evidence": None, "names": ["a"], "n": 3}, "command"),
        ({"evidence": -20.0, "names": ["a"]}, "command"),
    ],
)
def test_differences_are_seen(got, how):
    want = {"evidence": -20.0, "names": ["a"], "n": 3}
    assert differences(want, want, how) == []
    assert len(differences(got, want, how)) == 1
