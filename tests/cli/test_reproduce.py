"""The command as a user runs it."""

import csv
import os
import subprocess
import sys

import pytest

pytest.importorskip("typer")

from polyfid.experiments import catalogue
from polyfid.experiments.catalogue import EXPERIMENTS, Experiment, cells_of
from small_cells import FirstTimeUnlucky, Small
from typer.testing import CliRunner

from polyfid import __version__
from polyfid.cli import reproduction as verb
from polyfid.cli.app import app

DATA = os.environ.get("POLYFID_DATA")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Two small experiments in place of the paper's, and a page that says what it was given."""
    traces = tmp_path / "traces"
    traces.mkdir()

    def coins(data_home, runs, quick):
        return [Small(folder=str(traces), seed=seed) for seed in range(runs or (1 if quick else 4))]

    def unlucky(data_home, runs, quick):
        return [FirstTimeUnlucky(folder=str(traces), problem="unlucky")]

    made = {
        "coins": Experiment("coins", "", coins),
        "unlucky": Experiment("unlucky", "", unlucky),
        "far": Experiment("far", "", coins, ("no_such_package",), "far"),
    }
    monkeypatch.setattr(catalogue, "EXPERIMENTS", made)
    monkeypatch.setattr(verb, "EXPERIMENTS", made)
    pages = []
    monkeypatch.setattr(verb, "write_page", lambda out, names: pages.append((out, names)))
    return pages


def polyfid(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def rows(out):
    with (out / "rows.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_writes_rows_and_the_page(small, tmp_path):
    out = tmp_path / "out"
    result = polyfid("reproduce", "coins", "--out", out, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert len(rows(out)) == 4
    assert small == [(out, ["coins"])]
    assert "4 of 4 cells, 0:00:00 left" in result.stderr
    assert "4 cells computed, 0 were there already" in result.stderr
    again = polyfid("reproduce", "coins", "--out", out, "--jobs", 1)
    assert "0 cells computed, 4 were there already" in again.stderr
    assert len(small) == 2


def test_two_processes(small, tmp_path):
    out = tmp_path / "out"
    assert polyfid("reproduce", "coins", "--out", out, "--jobs", 2).exit_code == 0
    assert len(rows(out)) == 4


def test_names_are_checked(small, tmp_path):
    result = polyfid("reproduce", "coins", "dice", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "dice" in result.stderr
    for name in ("coins", "unlucky", "all"):
        assert name in result.stderr
    assert not (tmp_path / "out").exists()


def test_runs_and_quick_reach_the_experiment(small, tmp_path):
    polyfid("reproduce", "coins", "--out", tmp_path / "a", "--jobs", 1, "--runs", 2)
    assert len(rows(tmp_path / "a")) == 2
    polyfid("reproduce", "coins", "--out", tmp_path / "b", "--jobs", 1, "--quick")
    assert len(rows(tmp_path / "b")) == 1


def test_failures_are_told_and_retried_on_demand(small, tmp_path):
    command = ("reproduce", "unlucky", "coins", "--out", tmp_path / "out", "--jobs", 1)
    result = polyfid(*command)
    assert result.exit_code == 0
    assert "1 of them failed" in result.stderr
    assert "0 cells computed" in polyfid(*command).stderr
    assert "1 cells computed" in polyfid(*command, "--retry-failed").stderr
    assert not any(row["error"] for row in rows(tmp_path / "out"))


def test_ctrl_c_keeps_what_is_finished(small, tmp_path, monkeypatch):
    def stop(self, step):
        if step.done == 2:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(verb.Progress, "__call__", stop)
        result = polyfid("reproduce", "coins", "--out", out, "--jobs", 1)
    assert result.exit_code == 130
    assert "2 rows are in" in result.stderr
    assert "the same command goes on" in " ".join(result.stderr.split())
    assert small == []
    result = polyfid("reproduce", "coins", "--out", out, "--jobs", 1)
    assert "2 cells computed, 2 were there already" in result.stderr


def test_a_missing_extra_is_named(small, tmp_path):
    result = polyfid("reproduce", "far", "--out", tmp_path)
    assert result.exit_code == 1
    assert 'far needs no_such_package. Install with: pip install "polyfid[far]"' in " ".join(
        result.stderr.split()
    )


def test_everything_leaves_out_what_has_an_extra_of_its_own(small, tmp_path):
    result = polyfid("reproduce", "all", "--out", tmp_path, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "Left out: far needs" in result.stderr
    assert small == [(tmp_path, ["coins", "unlucky"])]


def test_a_directory_with_other_rows_is_refused(small, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n")
    result = polyfid("reproduce", "coins", "--out", tmp_path)
    assert result.exit_code == 1
    assert "--out" in result.stderr


def test_data_must_be_a_directory(small, tmp_path):
    result = polyfid("reproduce", "coins", "--data", tmp_path / "nowhere")
    assert result.exit_code == 2


def test_version_and_help():
    assert polyfid("--version").stdout.split() == ["polyfid", __version__]
    shown = polyfid("reproduce", "--help").stdout
    assert "--retry-failed" in shown
    assert "sensitivity" in shown


def test_as_a_module_and_without_the_extra():
    def python(*args):
        return subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False)

    assert python("-m", "polyfid.cli", "--version").stdout == f"polyfid {__version__}\n"
    bare = python(
        "-c", "import sys; sys.modules['typer'] = None; import polyfid.cli as c; c.main()"
    )
    assert bare.returncode == 2
    assert 'pip install "polyfid[cli]"' in bare.stderr


def test_the_experiments_of_the_paper():
    names = "artificial pmlb crowd mcmc profiles budget sensitivity"
    assert list(EXPERIMENTS) == names.split()


@pytest.mark.skipif(not DATA, reason="POLYFID_DATA names no directory with data sets")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_has_cells_of_every_experiment(name):
    quick = cells_of([name], DATA, quick=True)
    whole = cells_of([name], DATA)
    assert quick
    assert len(quick) <= len(whole)
    assert len({cell.key for cell in whole}) == len(whole)


@pytest.mark.skipif(not DATA, reason="POLYFID_DATA names no directory with data sets")
def test_profiles_need_no_cells_of_their_own():
    groups = cells_of(["artificial", "pmlb", "crowd"], DATA, quick=True)
    more = cells_of(["artificial", "pmlb", "crowd", "profiles"], DATA, quick=True)
    alone = cells_of(["profiles"], DATA, quick=True)
    assert {c.key for c in groups} == {c.key for c in more} == {c.key for c in alone}
