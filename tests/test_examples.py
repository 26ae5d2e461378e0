"""The examples run, and what they assert holds."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

FOLDER = Path(__file__).parents[1] / "examples"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "steps.py")


@pytest.mark.parametrize("script", SCRIPTS)
def test_example(script, tmp_path, monkeypatch):
    for name, value in ONE_THREAD.items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, str(FOLDER / script), str(tmp_path / "here")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    assert "Decision: " in done.stdout
    assert "predictions.csv" in {path.name for path in (tmp_path / "here").iterdir()}


def test_every_example_is_in_the_list():
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) == 4
    assert all(f"`{script}`" in listed for script in SCRIPTS)
