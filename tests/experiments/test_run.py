import csv
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from polyfid.experiments.rows import COLUMNS, Rows, Scores, as_setting, versions
from polyfid.experiments.run import interleave, run
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from small_cells import FirstTimeUnlucky, Grid, Killed, Small, Threads


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "traces").mkdir()
    return str(tmp_path / "traces")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def cells(folder, n=5, kind=Small, **changes):
    return [kind(folder=folder, seed=seed, **changes) for seed in range(n)]


def lines(out, name="rows.csv"):
    with (out / name).open(newline="") as file:
        return list(csv.DictReader(file))


def traces(folder):
    return len(os.listdir(folder))


def test_every_cell_becomes_a_row_and_a_second_run_computes_nothing(folder, out):
    todo = cells(folder)
    assert run(todo, out) == (5, 0, 0)
    rows = lines(out)
    assert sorted(row["seed"] for row in rows) == list("01234")
    assert list(rows[0]) == list(COLUMNS)
    assert rows[0]["roc_auc"] == "0.75"
    assert rows[0]["noise"] == rows[0]["rho"] == rows[0]["error"] == ""
    assert "numpy" in rows[0]["versions"]
    before = (out / "rows.csv").read_bytes()
    assert run(todo, out) == (0, 5, 0)
    assert (out / "rows.csv").read_bytes() == before
    assert traces(folder) == 5


def test_processes_give_the_same_rows(folder, out):
    todo = [*cells(folder, 3), *cells(folder, 1, FirstTimeUnlucky, problem="unlucky")]
    todo += cells(folder, 2, Threads, problem="threads")
    assert run(todo, out, jobs=2) == (6, 0, 1)
    rows = {(row["problem"], row["seed"]): row for row in lines(out)}
    assert len(rows) == 6
    assert rows["coin", "2"]["roc_auc"] == "0.75"
    assert "out of luck" in rows["unlucky", "0"]["error"]
    assert rows["threads", "0"]["n_cheap"] == rows["threads", "1"]["n_cheap"] == "1"
    assert run(todo, out, jobs=2) == (0, 6, 0)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_resumes(folder, out, jobs):
    def stop(step):
        if step.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cells(folder, 8), out, jobs=jobs, progress=stop)
    assert len(lines(out)) == 2
    assert run(cells(folder, 8), out) == (6, 2, 0)
    assert sorted(row["seed"] for row in lines(out)) == list("01234567")


@pytest.mark.parametrize("lost", [1, 5, 150])
def test_a_line_cut_short_is_dropped_and_run_again(folder, out, lost):
    run(cells(folder), out)
    whole = (out / "rows.csv").read_bytes()
    (out / "rows.csv").write_bytes(whole[:-lost])
    assert len(Rows(out)) == 4
    assert run(cells(folder), out) == (1, 4, 0)
    assert (out / "rows.csv").read_bytes() == whole


def test_a_file_with_half_a_header_starts_anew(folder, out):
    out.mkdir()
    (out / "rows.csv").write_text("experiment,colu")
    assert run(cells(folder, 1), out) == (1, 0, 0)
    assert len(lines(out)) == 1


def test_rows_of_something_else_are_left_alone(out):
    out.mkdir()
    (out / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"has the columns \['a', 'b'\].*--out"):
        Rows(out)
    assert (out / "rows.csv").read_text() == "a,b\n1,2\n"


def test_a_cell_that_fails_is_a_row(folder, out):
    todo = [*cells(folder, 2), *cells(folder, 1, FirstTimeUnlucky, problem="unlucky")]
    assert run(todo, out) == (3, 0, 1)
    (row,) = [row for row in lines(out) if row["problem"] == "unlucky"]
    assert row["error"] == "RuntimeError: out of luck, as they say"
    assert row["roc_auc"] == ""
    assert run(todo, out) == (0, 3, 0)
    assert run(todo, out, retry_failed=True) == (1, 2, 0)
    (row,) = [row for row in lines(out) if row["problem"] == "unlucky"]
    assert (row["error"], row["roc_auc"]) == ("", "1")
    assert run(todo, out, retry_failed=True) == (0, 3, 0)


@pytest.mark.slow
def test_a_killed_process_costs_its_cell_only(folder, out):
    todo = [*cells(folder, 3), *cells(folder, 1, Killed, problem="killed")]
    todo += cells(folder, 3, problem="later")
    assert run(todo, out, jobs=2) == (7, 0, 1)
    rows = lines(out)
    assert len(rows) == 7
    (row,) = [row for row in rows if row["error"]]
    assert row["problem"] == "killed"
    assert "memory" in row["error"]


def test_one_cell_may_give_several_rows_and_lines_of_side_files(folder, out):
    todo = [*cells(folder, 1, Grid, problem="a"), *cells(folder, 1, Grid, problem="b")]
    assert run(todo, out) == (2, 0, 0)
    assert len(lines(out)) == len(lines(out, "side.csv")) == 6
    assert run(todo, out) == (0, 2, 0)

    # Half of it lost: the cell runs again, and nothing is there twice.
    kept = (out / "rows.csv").read_text().splitlines(keepends=True)[:-1]
    (out / "rows.csv").write_text("".join(kept))
    assert run(todo, out) == (1, 1, 0)
    assert len(lines(out)) == len(lines(out, "side.csv")) == 6
    assert {(line["problem"], line["x"]) for line in lines(out, "side.csv")} == {
        (problem, x) for problem in "ab" for x in "012"
    }


def test_the_error_of_several_rows_goes_when_they_come(folder, out):
    todo = cells(folder, 1, Grid, problem="unlucky")
    assert run(todo, out) == (1, 0, 1)
    assert run(todo, out) == (0, 1, 0)
    assert run(todo, out, retry_failed=True) == (1, 0, 0)
    assert [row["error"] for row in lines(out)] == ["", "", ""]
    assert run(todo, out, retry_failed=True) == (0, 1, 0)


def test_a_side_file_cut_short_is_mended(folder, out):
    run(cells(folder, 1, Grid, problem="a"), out)
    text = (out / "side.csv").read_text()
    (out / "side.csv").write_text(text + "b,")
    run(cells(folder, 1, Grid, problem="c"), out)
    assert [line["problem"] for line in lines(out, "side.csv")] == list("aaaccc")


def test_linear_algebra_has_one_thread(folder, out):
    run(cells(folder, 1, Threads), out)
    assert [row["n_cheap"] for row in lines(out)] == ["1"]


def test_cells_with_one_key_run_once(folder, out):
    assert run(cells(folder, 2) * 2, out) == (2, 0, 0)


def test_progress_tells_how_far_it_is(folder, out):
    steps = []
    run(cells(folder, 3), out, progress=steps.append)
    assert [(step.done, step.total) for step in steps] == [(1, 3), (2, 3), (3, 3)]
    assert steps[0].seconds_left > 0.0
    assert steps[-1].seconds_left == 0.0
    assert steps[0].cell.seed == 0


def test_jobs_are_checked(out):
    with pytest.raises(ValueError, match="jobs must be a number of processes from 1; got 0"):
        run([], out, jobs=0)


def test_cells_can_be_sent_to_processes(folder):
    (cell,) = cells(folder, 1)
    assert pickle.loads(pickle.dumps(cell)) == cell


def test_interleaved_parts_keep_their_order_and_pace():
    mixed = interleave([range(100), range(1000, 1010)])
    assert [item for item in mixed if item < 1000] == list(range(100))
    assert sum(item >= 1000 for item in mixed[:55]) == 5


def test_scores_are_those_of_scikit_learn():
    rng = np.random.RandomState(0)
    y, p = rng.randint(2, size=50), rng.uniform(size=50)
    assert Scores.of(y, p) == pytest.approx(
        (
            roc_auc_score(y, p),
            log_loss(y, p),
            brier_score_loss(y, p),
            np.mean((p > 0.5) == y),
        )
    )


def test_log_loss_is_finite_for_the_sure_and_wrong():
    assert Scores.of([0, 1], [0.0, 0.0]).log_loss == pytest.approx(-0.5 * np.log(1e-15))


@pytest.mark.parametrize("p", [[0.1, np.nan], [0.1, 1.1]])
def test_scores_need_probabilities(p):
    with pytest.raises(ValueError, match=r"proba must lie in \[0, 1\]; 1 of 2"):
        Scores.of([0, 1], p)


def test_scores_need_labels_0_and_1():
    with pytest.raises(ValueError, match=r"y must hold labels 0 and 1.*\[-1.0, 1.0\]"):
        Scores.of([-1, 1], [0.1, 0.2])


def test_settings_are_the_same_whatever_their_order():
    assert as_setting(b=1, a=0.5) == as_setting(a=0.5, b=1) == '{"a":0.5,"b":1}'


def test_versions_name_each_package_once():
    names = [part.split()[0] for part in versions().split("; ")]
    assert len(names) == len(set(names))
    assert {"polyfid", "numpy", "scipy", "scikit-learn", "python"} <= set(names)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="asks for processes the POSIX way")
def test_processes_do_not_outlive_a_killed_parent(folder, out):
    code = (
        f"import sys; sys.path = {sys.path!r}\n"
        "from small_cells import Slow\nfrom polyfid.experiments.run import run\n"
        f"run([Slow(folder={folder!r}, seed=s) for s in (0, 1)], {str(out)!r}, jobs=2)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    wait_until(lambda: traces(folder) == 2, 120)
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
