"""``polyfid fit`` of tables of any size: in memory or in blocks, interrupted and resumed."""

import gzip
import signal
import time
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import polyfid as library
from polyfid.cli import sources

FIT = "fit tidy.csv --levels crowd,expert --kernel rbf --inducing 15 --tuning 60"


@pytest.fixture
def small_memory(monkeypatch):
    monkeypatch.setattr(sources, "MAX_CELLS", 100)


def test_many_rows_are_read_in_blocks(polyfid, folder, small_memory):
    said = polyfid(f"{FIT} --block 25 -o m.polyfid").stdout
    assert "read in blocks (about 60 rows; --in-memory reads them all at once)" in said
    assert "60 rows are read in blocks of 25; as numbers they take 1 MB in " in said
    assert "15 + 15 inducing points" in said
    model = library.load("m.polyfid")
    assert model.table is None
    assert (model.classifier.n_jobs, model.classifier.n_tuning) == (None, 60)
    assert "has no rows (it was fitted in blocks" in polyfid("report m.polyfid", code=1).stderr


def test_the_choice_can_be_made(polyfid, folder, small_memory):
    assert polyfid.json(f"{FIT} --in-memory")["in_blocks"] is False
    said = polyfid.refusal(
        "fit tidy.csv --levels crowd,expert --inducing none -o m.polyfid", code=1
    )
    assert "n_inducing=None asks for exact" in said
    assert not (folder / "m.polyfid").exists()
    levels = "--level zebra=crowd.csv --level ant=expert.csv --in-blocks"
    found = polyfid.json(FIT.replace("tidy.csv --levels crowd,expert", levels))
    assert found["summary"]["levels"] == ["zebra", "ant"]


def test_few_rows_are_read_into_memory(polyfid, folder):
    given = "fit tidy.csv --levels crowd,expert --kernel rbf --inducing 15 -o m.polyfid --tuning"
    assert "60 rows were read into memory" in polyfid(given, "crowd=30, expert=10").stdout
    model = library.load("m.polyfid").classifier
    assert model.n_tuning == {"crowd": 30, "expert": 10}
    assert "on 40 of 60 rows" in str(model.report_)


def test_options_in_a_file(polyfid, folder):
    (folder / "run.toml").write_text(
        'files = ["tidy.csv"]\nlevels = "crowd,expert"\nkernel = "rbf"\nin_blocks = true\n'
        "inducing = [12, 6]\ntuning = 50\n"
        f'refine = false\nblock = 20\nspool = "{folder}"\n'
    )
    polyfid("fit --config run.toml -o m.polyfid")
    model = library.load("m.polyfid").classifier
    assert (model.n_inducing, model.n_tuning) == ((12, 6), 50)
    assert model.refine_inducing is False
    assert 'inducing = "12,6"' in (folder / "m.polyfid.toml").read_text().splitlines()
    assert not list(folder.glob("polyfid-*"))  # the spool was here


def test_estimates_of_sizes(tmp_path):
    frame = pd.DataFrame(np.random.RandomState(0).uniform(size=(30_000, 4)), columns=list("abcd"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=1) as file:
        file.write((tmp_path / "t.csv").read_bytes())
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        rows, columns = sources.estimate_size(str(tmp_path / name))
        assert rows == pytest.approx(30_000, rel=0.0 if name == "t.parquet" else 0.1)
        assert columns == 4
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "t.csv.gz").read_bytes()[:99])
    assert sources.estimate_size(str(tmp_path / "cut.csv.gz")) == (0, 0)


@pytest.fixture
def long_table(folder):
    """So many rows that a pass takes some time."""
    rng = np.random.RandomState(0)
    x = rng.uniform(-1, 1, (30_000, 3))
    label = np.where(x[:, 0] * x[:, 1] > 0, "good", "bad")
    level = np.where(rng.uniform(size=len(x)) < 0.1, "expert", "crowd")
    columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "label": label, "fidelity": level}
    pd.DataFrame(columns).to_parquet(folder / "long.parquet")


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)],
)
def test_a_signal_leaves_the_checkpoint_and_nothing_else(
    polyfid, folder, process, long_table, monkeypatch, number, code
):
    scratch = folder / "scratch"
    scratch.mkdir()
    call = (
        "fit long.parquet --levels crowd,expert --kernel rbf --inducing 100,50 --tuning 2000 "
        f"--in-blocks --spool {scratch} --checkpoint c.polyfid -o m.polyfid"
    )
    before = {*folder.iterdir()}
    run = process(*call.split())
    deadline = time.monotonic() + 60
    while not (folder / "c.polyfid").exists() and time.monotonic() < deadline:
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)
    run.send_signal(number)
    _, stderr = run.communicate(timeout=60)
    assert run.returncode == code
    assert b"c.polyfid has the state so far; the same command resumes from it" in stderr
    assert {*folder.iterdir()} - before == {folder / "c.polyfid"}
    assert list(scratch.iterdir()) == []

    state = library.load("c.polyfid")._fits[0].inference.outcome
    assert state in ("moving points", "tuning")  # the first checkpoint is that of the start
    again = Mock(side_effect=AssertionError("started again"))
    monkeypatch.setattr("polyfid.learning.sparse.tune", again)
    polyfid(call)
    assert library.load("m.polyfid").classifier.converged_
    assert not (folder / "c.polyfid").exists()


@pytest.mark.slow
@pytest.mark.xdist_group("cluster")
def test_fit_and_predict_on_a_cluster(polyfid, folder, cluster):
    there = f"--dask {cluster.scheduler_address}"
    assert polyfid.json(f"{FIT} --block 25 {there}")["in_blocks"] is True
    call = "predict model.polyfid tidy.csv --block 7"
    polyfid(f"{call} -o there.csv {there}")
    polyfid(f"{call} -o here.csv")
    pd.testing.assert_frame_equal(pd.read_csv("there.csv"), pd.read_csv("here.csv"), rtol=1e-10)


def test_without_dask_it_says_what_to_install(python):
    run = python(
        "import sys; sys.modules.update(dict.fromkeys(['dask', 'distributed']))\n"
        "try:\n    import polyfid.distributed\nexcept ImportError as error:\n    print(error)\n"
        "sys.argv = ['polyfid', 'fit', 'tidy.csv', '--dask', 'localhost:8786']\n"
        "from polyfid.cli import main\nmain()\n"
    )
    advice = 'install it with: pip install "polyfid[dask]"\n'
    assert run.stdout.startswith(f"polyfid.distributed needs dask; {advice}")
    assert (run.returncode, run.stderr) == (2, f"polyfid: this needs distributed; {advice}")
