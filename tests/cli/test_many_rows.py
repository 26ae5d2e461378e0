"""``polyfid fit`` of tables of any size: in memory or in blocks, interrupted and gone on with."""

import gzip
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import polyfid as library
from polyfid.cli import sizes

FAST = ("--kernel", "rbf", "--inducing", "15", "--tuning", "60")


@pytest.fixture
def small_memory(monkeypatch):
    monkeypatch.setattr(sizes, "MOST_CELLS", 100)


def test_few_rows_are_read_into_memory(polyfid, folder):
    made = polyfid("fit", "tidy.csv", *FAST, "-o", "m.polyfid")
    assert "60 rows were read into memory" in made.stdout
    assert library.load("m.polyfid").table is not None


def test_many_rows_are_read_in_blocks(polyfid, folder, small_memory):
    made = polyfid("fit", "tidy.csv", *FAST, "--block", "25", "-o", "m.polyfid")
    assert "Tables are read in blocks (about 60 rows; --in-memory for all at once)" in made.stdout
    assert "60 rows are read in blocks of 25; as numbers they take 1 MB in " in made.stdout
    assert "15 + 15 inducing points" in made.stdout
    model = library.load("m.polyfid")
    assert model.table is None
    assert model.classifier.n_jobs is None
    assert model.classifier.n_tuning == 60
    said = polyfid("report", "m.polyfid", code=1).stderr
    assert "has no rows (it was fitted in blocks" in said
    polyfid("predict", "m.polyfid", "new.csv", "-o", "out.csv")
    assert len(pd.read_csv("out.csv")) == 12


def test_the_choice_can_be_made(polyfid, folder, small_memory):
    assert polyfid.json("fit", "tidy.csv", *FAST, "--in-memory")["in_blocks"] is False
    assert polyfid.json("fit", "tidy.csv", *FAST)["in_blocks"] is True


def test_blocks_of_level_files_as_asked(polyfid, folder):
    levels = ("--level", "crowd=crowd.csv", "--level", "expert=expert.csv")
    found = polyfid.json("fit", *levels, *FAST, "--in-blocks")
    assert found["in_blocks"] is True
    assert found["summary"]["levels"] == ["crowd", "expert"]


def test_rows_to_tune_on_by_level(polyfid, folder):
    given = ("--kernel", "rbf", "--inducing", "15", "--tuning", "crowd=30, expert=10")
    polyfid("fit", "tidy.csv", *given, "-o", "m.polyfid")
    model = library.load("m.polyfid").classifier
    assert model.n_tuning == {"crowd": 30, "expert": 10}
    assert "on 40 of 60 rows" in str(model.report_)


@pytest.mark.parametrize(
    "tuning", ["0", "few", "-5", "3,4", "crowd=", "crowd=2,crowd=3", "5,crowd=2"]
)
def test_rows_to_tune_on_that_make_no_sense(polyfid, folder, tuning):
    said = polyfid("fit", "tidy.csv", "--tuning", tuning, code=2).stderr
    assert "--tuning" in said
    assert "must be a whole number from 1, or LEVEL=N" in said


def test_options_in_a_file(polyfid, folder):
    (folder / "run.toml").write_text(
        'files = ["tidy.csv"]\nkernel = "rbf"\nin_blocks = true\ninducing = [12, 6]\ntuning = 50\n'
        f'refine = false\nblock = 20\nspool = "{folder}"\n'
    )
    polyfid("fit", "--config", "run.toml", "-o", "m.polyfid")
    model = library.load("m.polyfid").classifier
    assert (model.n_inducing, model.n_tuning) == ((12, 6), 50)
    assert model.refine_inducing is False
    written = (folder / "m.polyfid.toml").read_text()
    lines = (
        'inducing = "12,6"',
        "refine = false",
        'tuning = "50"',
        "in_blocks = true",
        "block = 20",
    )
    assert "\n".join(lines) in written
    again = polyfid.json("fit", "--config", "m.polyfid.toml", "-o", "n.polyfid")
    assert again["in_blocks"] is True
    assert not list(folder.glob("polyfid-*"))  # the spool was here


@pytest.mark.parametrize(
    ("given", "meant"), [("auto", "auto"), ("none", None), ("7", 7), ("7,5", (7, 5))]
)
def test_inducing_points(polyfid, folder, given, meant):
    polyfid("fit", "tidy.csv", "--kernel", "rbf", "--inducing", given, "-o", "m.polyfid", "-q")
    assert library.load("m.polyfid").classifier.n_inducing == meant


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--inducing", "many"), "--inducing"),
        (("--inducing", "0"), "whole number from 1"),
        (("--inducing", "none", "--in-blocks"), "n_inducing=None asks for exact"),
        (("--in-memory", "--checkpoint", "c.polyfid"), "leave --in-memory out"),
        (("--in-memory", "--dask", "localhost:1"), "leave --in-memory out"),
        (("--in-blocks", "--spool", "nowhere"), "spool must be a folder that is there"),
        (("--in-blocks", "--checkpoint", "model.polyfid"), "is a model, and not a checkpoint"),
        (("--in-blocks", "--checkpoint", "new.csv"), "not a polyfid model"),
    ],
)
def test_calls_that_make_no_sense(polyfid, folder, options, words):
    code = 1 if "n_inducing=" in words or "spool" in words or "model" in words else 2
    said = polyfid("fit", "tidy.csv", *options, "-o", "m.polyfid", code=code).stderr
    assert words in " ".join(said.replace("│", " ").split())
    assert not (folder / "m.polyfid").exists()


def test_crowd_tables_are_for_memory(polyfid, folder):
    tables = ("--items", "new.csv", "--answers", "crowd.csv", "--in-blocks")
    said = polyfid("fit", *tables, "-o", "m.polyfid", code=2).stderr
    assert "polyfid convert" in " ".join(said.replace("│", " ").split())


def test_estimates_of_sizes(tmp_path):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.uniform(size=(30_000, 4)), columns=list("abcd"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=1) as file:
        file.write((tmp_path / "t.csv").read_bytes())
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        rows, columns = sizes.estimate(str(tmp_path / name), {})
        assert rows == pytest.approx(30_000, rel=0.0 if name == "t.parquet" else 0.1)
        assert columns == 4
    (tmp_path / "small.csv").write_text("x\n1\n2\n")
    assert sizes.estimate(str(tmp_path / "small.csv"), {}) == (2, 1)


# ------------------------------------------------------------------------- interruption


@pytest.fixture
def long_table(folder):
    """Rows enough for a pass to last."""
    rng = np.random.RandomState(0)
    x = rng.uniform(-1, 1, (30_000, 3))
    label = np.where(x[:, 0] * x[:, 1] > 0, "good", "bad")
    level = np.where(rng.uniform(size=len(x)) < 0.1, "expert", "crowd")
    columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "label": label, "fidelity": level}
    pd.DataFrame(columns).to_parquet(folder / "long.parquet")
    return "long.parquet"


def test_ctrl_c_leaves_the_checkpoint_and_nothing_else(polyfid, folder, process, long_table):
    scratch = folder / "scratch"
    scratch.mkdir()
    options = ("--kernel", "rbf", "--inducing", "100,50", "--tuning", "100", "--in-blocks")
    options += ("--spool", scratch, "--checkpoint", "c.polyfid", "-o", "m.polyfid")
    before = {*folder.iterdir()}
    run = process("fit", long_table, *options)
    deadline = time.monotonic() + 60
    while not (folder / "c.polyfid").exists() and time.monotonic() < deadline:
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    _, stderr = run.communicate(timeout=60)
    assert run.returncode == 130
    assert b"c.polyfid has what was done; the same command goes on from there" in stderr
    assert {*folder.iterdir()} - before == {folder / "c.polyfid"}
    assert list(scratch.iterdir()) == []

    polyfid("fit", long_table, *options)
    assert library.load("m.polyfid").classifier.converged_
    assert not (folder / "c.polyfid").exists()
    assert list(scratch.iterdir()) == []


def test_passes_are_shown_in_a_terminal(polyfid, folder, monkeypatch):
    shown = []

    class Bar:
        def __init__(self, *columns, **options):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def add_task(self, words, **fields):
            shown.append(words)

        def update(self, task, description=None, **fields):
            shown.append(description)

    monkeypatch.setattr("rich.progress.Progress", Bar)
    monkeypatch.setattr("polyfid.cli.talk._error_is_terminal", lambda: True)
    polyfid("fit", "tidy.csv", *FAST, "--in-blocks")
    stages = [words.partition(",")[0] for words in dict.fromkeys(shown)]
    assert stages[:3] == ["Reading", "Writing numbers", "Tuning on a sample: pass 1"]
    assert "Fitting: pass 0" in stages
    assert any(words.startswith("Fitting: pass 2, bound -") for words in shown)
    shown.clear()
    polyfid("fit", "tidy.csv", *FAST)
    assert shown[0] == "Fitting"
    assert any(words.startswith("Fitting: pass 2, bound -") for words in shown)


# ------------------------------------------------------------------------------- dask


@pytest.mark.slow
@pytest.mark.xdist_group("cluster")
def test_fit_and_predict_on_a_cluster(polyfid, folder, cluster):
    address = cluster.scheduler_address
    found = polyfid.json("fit", "tidy.csv", *FAST, "--block", "25", "--dask", address)
    assert found["in_blocks"] is True
    polyfid("fit", "tidy.csv", *FAST, "--block", "25", "--in-blocks", "-o", "here.polyfid")
    new = pd.read_csv("new.csv")
    np.testing.assert_allclose(
        library.load("model.polyfid").predict(new)["p_good"],
        library.load("here.polyfid").predict(new)["p_good"],
        atol=1e-8,
    )
    call = ("predict", "model.polyfid", "tidy.csv", "--block", "7")
    polyfid(*call, "-o", "there.csv", "--dask", address)
    polyfid(*call, "-o", "here.csv")
    pd.testing.assert_frame_equal(pd.read_csv("there.csv"), pd.read_csv("here.csv"), rtol=1e-10)


@pytest.mark.parametrize("verb", ["fit", "predict"])
def test_a_cluster_that_does_not_answer(polyfid, folder, monkeypatch, verb):
    pytest.importorskip("distributed")
    monkeypatch.setattr("polyfid.cli.scale.PATIENCE", 0.3)
    files = {"fit": ["tidy.csv", "-o", "m.polyfid"], "predict": ["model.polyfid", "new.csv"]}
    said = polyfid(verb, *files[verb], "--dask", "tcp://127.0.0.1:9", code=2).stderr
    words = " ".join(said.replace("│", " ").split())
    assert "no Dask scheduler answers at tcp://127.0.0.1:9 within 0.3 s" in words
    assert not (folder / "m.polyfid").exists()


def test_without_dask_it_says_what_to_install(folder):
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['dask', 'distributed']))\n"
        "try:\n    import polyfid.distributed\nexcept ImportError as error:\n    print(error)\n"
        "sys.argv = ['polyfid', 'fit', 'tidy.csv', '--dask', 'localhost:8786']\n"
        "from polyfid.cli import main\nmain()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    advice = 'install it with: pip install "polyfid[dask]"\n'
    assert run.stdout.startswith(f"polyfid.distributed needs dask; {advice}")
    assert (run.returncode, run.stderr) == (2, f"polyfid: this needs distributed; {advice}")
