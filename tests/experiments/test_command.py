"""``python -m experiments`` as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_cells import FailsOnce, Small

import experiments.__main__ as command
from experiments import catalogue
from experiments.catalogue import EXPERIMENTS, Experiment, cells_of
from experiments.cells import key_of

DATA = os.environ.get("POLYFID_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="POLYFID_DATA names no directory with data sets")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Small experiments in place of the paper's, and the pages that were asked for."""
    traces = tmp_path / "traces"
    traces.mkdir()

    def coins(data_home, runs, quick):
        return [Small(folder=str(traces), seed=seed) for seed in range(runs or (1 if quick else 4))]

    def unlucky(data_home, runs, quick):
        return [FailsOnce(folder=str(traces), problem="unlucky")]

    made = {
        "coins": Experiment(coins),
        "unlucky": Experiment(unlucky),
        "far": Experiment(coins, ("no_such_package",), "far"),
    }
    monkeypatch.setattr(catalogue, "EXPERIMENTS", made)
    monkeypatch.setattr(command, "EXPERIMENTS", made)
    pages = []
    monkeypatch.setattr(command, "write_page", lambda out, names: pages.append((out, names)))
    return pages


@pytest.fixture
def run(capsys):
    """Run the command; its exit code and what it says."""

    def call(*args):
        try:
            code = command.main([str(arg) for arg in args])
        except SystemExit as exit:
            if isinstance(exit.code, str):
                return 1, exit.code
            code = exit.code
        return code, " ".join(capsys.readouterr().err.split())

    return call


def rows(out):
    return [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]


def test_a_run_writes_rows_and_the_page(small, run, tmp_path):
    out = tmp_path / "out"
    code, said = run("coins", "--out", out, "--jobs", 1)
    assert code == 0
    assert len(rows(out)) == 4
    assert small == [(out, ["coins"])]
    assert "4 of 4 cells, 0:00:00 left" in said
    assert "4 cells computed, 0 had a row already" in said
    assert "0 cells computed, 4 had a row already" in run("coins", "--out", out, "--jobs", 1)[1]


def test_without_a_name_only_the_page_is_drawn(small, run, tmp_path):
    out = tmp_path / "out"
    assert "There are no rows in" in run("--out", out)[1]
    run("coins", "--out", out, "--jobs", 1)
    code, said = run("--out", out)
    assert (code, small[1:]) == (0, [(out, [])])
    assert "cells" not in said


def test_runs_and_quick_reach_the_experiment(small, run, tmp_path):
    run("coins", "--out", tmp_path / "a", "--jobs", 1, "--runs", 2)
    assert len(rows(tmp_path / "a")) == 2
    run("coins", "--out", tmp_path / "b", "--jobs", 2, "--quick")
    assert len(rows(tmp_path / "b")) == 1


def test_failures_are_told_and_retried_on_demand(small, run, tmp_path):
    call = ("unlucky", "coins", "--out", tmp_path / "out", "--jobs", 1)
    code, said = run(*call)
    assert code == 0
    assert "1 failed and are listed" in said
    assert "0 cells computed" in run(*call)[1]
    assert "1 cells computed" in run(*call, "--retry-failed")[1]


def test_ctrl_c_keeps_what_is_finished(small, run, tmp_path, monkeypatch):
    def stop(self, step):
        if step.done == 2:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(command.Progress, "__call__", stop)
        code, said = run("coins", "--out", out, "--jobs", 1)
    assert code == 130
    assert "2 rows are in" in said
    assert "the same command continues" in said
    assert small == []
    assert "2 cells computed, 2 had a row" in run("coins", "--out", out, "--jobs", 1)[1]


def test_a_missing_package_is_named(small, run, tmp_path):
    code, said = run("far", "--out", tmp_path)
    assert (code, said) == (
        1,
        'far needs no_such_package. Install with: pip install -e ".[far]"',
    )
    code, said = run("all", "--out", tmp_path, "--jobs", 1)
    assert code == 0
    assert "Left out: far needs" in said
    assert small == [(tmp_path, ["coins", "unlucky"])]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("coins", "dice"), "no experiment dice; there are coins, unlucky, far, all"),
        (("coins", "--data", "nowhere"), "'nowhere' is not a directory"),
        (("coins", "--jobs", "0"), "must be a whole number from 1, got '0'"),
    ],
)
def test_wrong_arguments_are_named(small, run, tmp_path, args, message):
    code, said = run(*args, "--out", tmp_path / "out")
    assert code == 2
    assert message in said
    assert not (tmp_path / "out").exists()


def test_a_directory_with_other_rows_is_refused(small, run, tmp_path):
    (tmp_path / "rows.jsonl").write_text("a,b\n")
    code, said = run("coins", "--out", tmp_path)
    assert code == 1
    assert "--out" in said


def test_as_a_module():
    call = [sys.executable, "-m", "experiments", "--help"]
    root = Path(__file__).parents[2]
    shown = subprocess.run(call, capture_output=True, text=True, check=True, cwd=root).stdout
    for name in (*EXPERIMENTS, "--data", "--out", "--jobs", "--runs", "--quick", "--retry-failed"):
        assert name in shown


@needs_data
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_has_cells_of_every_experiment(name):
    quick, whole = cells_of([name], DATA, quick=True), cells_of([name], DATA)
    assert 0 < len(quick) <= len(whole)
    assert len({key_of(cell.row()) for cell in whole}) == len(whole)


@needs_data
def test_profiles_need_no_cells_of_their_own():
    groups = ["artificial", "pmlb", "crowd"]
    lists = [cells_of(names, DATA, quick=True) for names in (groups, [*groups, "profiles"])]
    lists.append(cells_of(["profiles"], DATA, quick=True))
    assert len({frozenset(key_of(cell.row()) for cell in cells) for cells in lists}) == 1
