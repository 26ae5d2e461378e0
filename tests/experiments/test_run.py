"""Running cells: rows, processes, interruptions, failures."""

import json
import os
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest
from result_rows import row
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from small_cells import FailsOnce, Killed, Small, Threads

from experiments.cells import scores
from experiments.run import RowFile, run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "traces").mkdir()
    return str(tmp_path / "traces")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def cells(folder, n=5, kind=Small, **changes):
    return [kind(folder=folder, seed=seed, **changes) for seed in range(n)]


def lines(out):
    return [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]


def test_every_cell_becomes_a_row_and_a_second_run_computes_nothing(folder, out):
    todo = cells(folder)
    assert run(todo, out) == (5, 0, 0)
    rows = lines(out)
    assert [row["seed"] for row in rows] == list(range(5))
    assert rows[0] | {"versions": "", "log_loss": 0, "brier": 0, "accuracy": 0} == {
        "experiment": "small", "column": "", "problem": "coin", "method": "guess",
        "mode": "trusted", "seed": 0, "n_trusted": 3, "roc_auc": 0.75, "fit_seconds": 0.1,
        "versions": "", "log_loss": 0, "brier": 0, "accuracy": 0,
    }  # fmt: skip
    assert "numpy" in rows[0]["versions"]
    before = (out / "rows.jsonl").read_bytes()
    assert run(todo, out) == (0, 5, 0)
    assert (out / "rows.jsonl").read_bytes() == before
    assert len(os.listdir(folder)) == 5


@pytest.mark.parametrize("jobs", [1, 2])
def test_processes_give_the_same_rows(folder, out, jobs):
    todo = [*cells(folder, 3), *cells(folder, 1, FailsOnce, problem="unlucky")]
    todo += cells(folder, 2, Threads, problem="threads")
    assert run(todo, out, jobs=jobs) == (6, 0, 1)
    rows = {(row["problem"], row["seed"]): row for row in lines(out)}
    assert rows["coin", 2]["roc_auc"] == 0.75
    assert "out of luck" in rows["unlucky", 0]["error"]
    assert rows["threads", 0]["n_cheap"] == rows["threads", 1]["n_cheap"] == 1
    assert run(todo, out, jobs=jobs) == (0, 6, 0)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_resumes(folder, out, jobs):
    def stop(row, done, total, seconds_left):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cells(folder, 8), out, jobs=jobs, progress=stop)
    assert len(lines(out)) == 2
    assert run(cells(folder, 8), out) == (6, 2, 0)
    assert sorted(row["seed"] for row in lines(out)) == list(range(8))


@pytest.mark.parametrize("lost", [1, 150])
def test_a_line_cut_short_is_dropped_and_run_again(folder, out, lost):
    run(cells(folder), out)
    whole = (out / "rows.jsonl").read_bytes()
    (out / "rows.jsonl").write_bytes(whole[:-lost])
    assert len(RowFile(out).rows) == 4
    assert run(cells(folder), out) == (1, 4, 0)
    assert (out / "rows.jsonl").read_bytes() == whole


@pytest.mark.parametrize("lost", [1, 2, 150])
def test_a_line_cut_short_before_others_is_dropped_and_run_again(folder, out, lost):
    """Another process went on behind the cut: its first row is glued to the line, and lost too."""
    run(cells(folder), out)
    rows = (out / "rows.jsonl").read_bytes().splitlines(keepends=True)
    rows[1] = rows[1][:-lost]
    (out / "rows.jsonl").write_bytes(b"".join(rows))
    assert [row["seed"] for row in RowFile(out).rows.values()] == [0, 3, 4]
    assert run(cells(folder), out) == (2, 3, 0)
    assert run(cells(folder), out) == (0, 5, 0)


@pytest.mark.parametrize("kept", [0, 1, 10, 40])
def test_a_first_line_cut_short_is_no_other_file(folder, out, kept):
    run(cells(folder, 1), out)
    whole = (out / "rows.jsonl").read_bytes()
    (out / "rows.jsonl").write_bytes(whole[:kept])
    assert RowFile(out).rows == {}
    assert (out / "rows.jsonl").read_bytes() == whole[:kept]  # reading changes nothing
    assert run(cells(folder, 1), out) == (1, 0, 0)
    assert (out / "rows.jsonl").read_bytes() == whole


def test_rows_after_a_kill_in_the_middle_of_writing(folder, out):
    """Killed at any byte, and gone on with, whether or not the end was mended: nothing is lost."""
    run(cells(folder, 3), out)
    whole = (out / "rows.jsonl").read_bytes()
    for cut in range(len(whole)):
        (out / "rows.jsonl").write_bytes(whole[:cut])
        file = RowFile(out)
        assert len(file.rows) == whole[:cut].count(b"\n")
        file.append(row(seed=99))
        assert [r["seed"] for r in RowFile(out).rows.values()] == [*range(len(file.rows) - 1), 99]


@pytest.mark.parametrize("text", ['{"a": 1}\n', "a,b\n", "[1]\n", "a note", '{"experiment": 1}\n'])
def test_rows_of_something_else_are_left_alone(out, text):
    out.mkdir()
    (out / "rows.jsonl").write_text(text)
    with pytest.raises(ValueError, match=r"line 1 of .*rows.jsonl is not a row.*--out"):
        RowFile(out)
    assert (out / "rows.jsonl").read_text() == text


def test_a_cell_that_fails_is_a_row_and_is_retried_on_demand(folder, out):
    todo = [*cells(folder, 2), *cells(folder, 1, FailsOnce, problem="unlucky")]
    assert run(todo, out) == (3, 0, 1)
    assert lines(out)[-1]["error"] == "RuntimeError: out of luck, as they say"
    assert "roc_auc" not in lines(out)[-1]
    assert run(todo, out) == (0, 3, 0)
    assert run(todo, out, retry_failed=True) == (1, 2, 0)
    rows = list(RowFile(out).rows.values())
    assert len(rows) == 3
    assert "error" not in rows[-1]
    assert run(todo, out, retry_failed=True) == (0, 3, 0)


@pytest.mark.slow
def test_a_killed_process_costs_its_cell_only(folder, out):
    todo = [*cells(folder, 3), *cells(folder, 1, Killed, problem="killed")]
    todo += cells(folder, 3, problem="later")
    assert run(todo, out, jobs=2) == (7, 0, 1)
    (row,) = [row for row in lines(out) if "error" in row]
    assert row["problem"] == "killed"
    assert "memory" in row["error"]


def test_progress_counts_cells_and_time(folder, out):
    steps = []
    # Cells with the same key run once.
    run(cells(folder, 3) * 2, out, progress=lambda row, *step: steps.append(step))
    assert [step[:2] for step in steps] == [(1, 3), (2, 3), (3, 3)]
    assert steps[0][2] > 0.0
    assert steps[-1][2] == 0.0
    with pytest.raises(ValueError, match="jobs must be a number of processes from 1; got 0"):
        run([], out, jobs=0)


def test_values_that_json_lacks_are_written(out):
    values = {"a": np.float64(1 / 3), "b": np.arange(2), "c": np.nan, "d": np.bool_(True)}
    RowFile(out).append(row(**values))
    (read,) = RowFile(out).rows.values()
    assert [read[name] for name in "abcd"] == [0.33333333, [0, 1], None, True]


def test_scores_are_those_of_scikit_learn():
    rng = np.random.RandomState(0)
    y, p = rng.randint(2, size=50), rng.uniform(size=50)
    accuracy = np.mean((p > 0.5) == y)
    wanted = [roc_auc_score(y, p), log_loss(y, p), brier_score_loss(y, p), accuracy]
    assert list(scores(y, p).values()) == pytest.approx(wanted)
    assert scores([0, 1], [0.0, 0.0])["log_loss"] == pytest.approx(-0.5 * np.log(1e-15))


@pytest.mark.slow
@pytest.mark.xdist_group("cluster")
def test_cells_run_on_a_cluster(cluster, folder, out):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as client, joblib.parallel_config(backend="dask"):
        client.run(sys.path.extend, sys.path)  # workers must find the cells, too
        assert run(cells(folder, kind=Threads), out) == (5, 0, 0)
    assert sorted(row["seed"] for row in lines(out)) == list(range(5))
    assert os.getpid() not in {row["process"] for row in lines(out)}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="asks for processes the POSIX way")
def test_processes_do_not_outlive_a_killed_parent(folder, out):
    code = (
        f"import sys; sys.path = {sys.path!r}\n"
        "from small_cells import Slow\nfrom experiments.run import run\n"
        f"run([Slow(folder={folder!r}, seed=s) for s in (0, 1)], {str(out)!r}, jobs=2)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    wait_until(lambda: len(os.listdir(folder)) == 2, 120)
    parent.kill()
    parent.wait()
    pids = [int(name.removeprefix("pid-")) for name in os.listdir(folder)]
    wait_until(lambda: not any(map(is_alive, pids)), 30)


def wait_until(reached, seconds):
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.1)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
