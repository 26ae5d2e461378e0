"""Tables as users have them, and the command as they call it."""

import json
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from polyfid.cli.app import app

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def make_rows(n, wrong, seed, prefix):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-2, 2, (n, 2)).round(3)
    right = x[:, 0] + 0.3 * x[:, 1] > 0
    label = np.where(right ^ (rng.uniform(size=n) < wrong), "good", "bad")
    ids = [f"{prefix}{i:02d}" for i in range(n)]
    return pd.DataFrame({"id": ids, "heat": x[:, 0], "flow": x[:, 1], "label": label})


class Command:
    """Calls of ``polyfid`` in this process; arguments are strings of words or single words."""

    def __call__(self, call, *args, code=0, **options):
        words = [*call.split(), *map(str, args)]
        result = CliRunner().invoke(app, words, **options)
        crash = result.exception
        if crash is not None and not isinstance(crash, SystemExit):
            traceback.print_exception(crash)
        assert result.exit_code == code, (result.stdout, result.stderr)
        return result

    def json(self, *args, **options):
        """The JSON of a call, which must be all that it prints."""
        return json.loads(self(*args, "--json", **options).stdout)

    def refusal(self, *args, code=2, **options):
        """The message of a call that fails, in one line."""
        return " ".join(self(*args, code=code, **options).stderr.replace("│", " ").split())


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """A folder with tables and a model, made once."""
    folder = tmp_path_factory.mktemp("store")
    crowd, expert = make_rows(40, 0.2, 0, "c"), make_rows(20, 0.0, 1, "e")
    crowd.to_csv(folder / "crowd.csv", index=False)
    expert.to_csv(folder / "expert.csv", index=False)
    tidy = pd.concat([crowd.assign(fidelity="crowd"), expert.assign(fidelity="expert")])
    tidy.to_csv(folder / "tidy.csv", index=False)
    new = make_rows(12, 0.0, 2, "n").drop(columns="label")
    new[["flow", "heat", "id"]].to_csv(folder / "new.csv", index=False)
    Command()(
        "fit --kernel rbf --levels crowd,expert -q",
        f"{folder}/tidy.csv",
        "-o",
        f"{folder}/model.polyfid",
    )
    (folder / "model.polyfid.toml").unlink()
    return folder


@pytest.fixture
def folder(store, tmp_path, monkeypatch):
    """The working folder: a copy of the tables and the model."""
    here = tmp_path / "here"
    shutil.copytree(store, here)
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def some_rows():
    return make_rows


@pytest.fixture
def not_drawn(monkeypatch):
    """Reports are not drawn, which takes seconds; a list of what they were asked with."""
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    asked = []

    def write(path, **contents):
        Path(path).write_text("a page")
        asked.append(contents)

    monkeypatch.setattr("polyfid.report.write_report", write)
    return asked


@pytest.fixture
def polyfid():
    return Command()


@pytest.fixture
def process():
    """Start ``polyfid`` as a process of its own."""
    running = []

    def start(*args, env=(), **options):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, "-m", "polyfid.cli", *map(str, args)]
        env = {**os.environ, **ONE_THREAD, **dict(env)}
        running.append(subprocess.Popen(command, env=env, **{**pipes, **options}))
        return running[-1]

    yield start
    for one in running:
        if one.poll() is None:
            one.kill()
        one.communicate()


@pytest.fixture
def python(folder):
    """Run Python code that may call ``polyfid``, in a process of its own."""

    def run(code):
        command = [sys.executable, "-c", code]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    return run
