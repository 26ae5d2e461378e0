"""``python -m experiments`` as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from result_rows import DATA, needs_data
from small_cells import FailsOnce, Small

import experiments.__main__ as command
from experiments import catalogue, page
from experiments.catalogue import EXPERIMENTS, Experiment, cells_of
from experiments.cells import key_of


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Small experiments in place of the paper's; gives the pages that were written."""
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
    written = []
    monkeypatch.setattr(page, "write", lambda out, names: written.append((out, names)))
    return written


@pytest.fixture
def run(pages, capsys, tmp_path):
    """Run the command in this process; its exit code and what it says."""

    def call(*args, out=tmp_path / "out", jobs=1):
        try:
            code = command.main([*map(str, args), "--out", str(out), "--jobs", str(jobs)])
        except SystemExit as exit:
            if isinstance(exit.code, str):
                return 1, exit.code
            code = exit.code
        return code, " ".join(capsys.readouterr().err.split())

    return call


def rows(out):
    return [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]


def test_a_run_writes_rows_and_the_page(pages, run, tmp_path):
    assert "There are no rows in" in run()[1]
    out = tmp_path / "out"
    code, said = run("coins")
    assert code == 0
    assert len(rows(out)) == 4
    assert "4 of 4 cells, 0:00:00 left" in said
    assert "4 cells computed, 0 had a row already" in said
    assert "0 cells computed, 4 had a row already" in run("coins")[1]
    code, said = run()  # without a name only the page is drawn
    assert (code, "cells" in said) == (0, False)
    assert pages == [(out, ["coins"]), (out, ["coins"]), (out, [])]


def test_runs_and_quick_reach_the_experiment(run, tmp_path):
    run("coins", "--runs", 2, out=tmp_path / "a")
    assert len(rows(tmp_path / "a")) == 2
    run("coins", "--quick", out=tmp_path / "b", jobs=2)
    assert len(rows(tmp_path / "b")) == 1


def test_failures_are_told_and_retried_on_demand(run):
    code, said = run("unlucky", "coins")
    assert code == 0
    assert "1 failed and are listed" in said
    assert "0 cells computed" in run("unlucky", "coins")[1]
    assert "1 cells computed" in run("unlucky", "coins", "--retry-failed")[1]


def test_ctrl_c_keeps_what_is_finished(pages, run, monkeypatch):
    def stop(self, row, done, total, seconds_left):
        if done == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command.Progress, "__call__", stop)
        code, said = run("coins")
    assert (code, pages) == (130, [])
    assert "2 rows are in" in said
    assert "the same command continues" in said
    assert "2 cells computed, 2 had a row" in run("coins")[1]


def test_a_missing_package_is_named(pages, run, tmp_path):
    sentence = 'far needs no_such_package. Install with: pip install -e ".[far]"'
    assert run("far") == (1, sentence)
    code, said = run("all")
    assert code == 0
    assert f"Left out: {sentence}" in said
    assert pages == [(tmp_path / "out", ["coins", "unlucky"])]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("coins", "dice"), "no experiment dice; there are coins, unlucky, far, all"),
        (("coins", "--data", "nowhere"), "'nowhere' is not a directory"),
        (("coins", "--runs", "0"), "must be a whole number from 1, got '0'"),
    ],
)
def test_wrong_arguments_are_named(run, tmp_path, args, message):
    code, said = run(*args)
    assert code == 2
    assert message in said
    assert not (tmp_path / "out").exists()


def test_as_a_module():
    call = [sys.executable, "-m", "experiments", "--help"]
    root = Path(__file__).parents[2]
    shown = subprocess.run(call, capture_output=True, text=True, check=True, cwd=root).stdout
    for name in (*EXPERIMENTS, "--data", "--out", "--jobs", "--runs", "--quick", "--retry-failed"):
        assert name in shown


@needs_data
def test_every_experiment_has_quick_cells_and_profiles_none_of_their_own():
    def keys(names, **how):
        cells = cells_of(names, DATA, **how)
        assert len({key_of(cell.row()) for cell in cells}) == len(cells)
        return {key_of(cell.row()) for cell in cells}

    for name in EXPERIMENTS:
        assert 0 < len(keys([name], quick=True)) <= len(keys([name]))
    groups = {"artificial", "pmlb", "crowd"}
    assert keys(groups, quick=True) == keys(groups | {"profiles"}, quick=True)
    assert keys(groups, quick=True) == keys({"profiles"}, quick=True)
