"""The command as a process of its own: what it imports, signals and pipes."""

import os
import signal
import subprocess
import sys
import time

import pytest


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['polyfid', '--help']\n"
        "from polyfid.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'sklearn', 'numpy', 'pandas', 'scipy', 'pyarrow', 'joblib'} & {*sys.modules}\n"
        "assert not heavy, heavy\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for verb in ("demo", "check", "fit", "predict", "evaluate", "report", "inspect", "convert"):
        assert verb in run.stdout
    assert "Exit codes" in run.stdout


def test_fit_imports_no_more_of_scikit_learn_than_an_estimator_needs(folder):
    code = (
        "import sys; sys.argv = ['polyfid', 'fit', 'tidy.csv', '-o', 'lean.polyfid', '-q']\n"
        "sys.argv += ['--kernel', 'rbf']\n"
        "from polyfid.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "needless = {'sklearn.metrics', 'sklearn.preprocessing', 'sklearn.gaussian_process',\n"
        "    'sklearn.linear_model', 'sklearn.model_selection', 'matplotlib', 'jinja2'}\n"
        "assert not needless & {*sys.modules}, needless & {*sys.modules}\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_ctrl_c_while_reading(folder, process, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = {p: p.read_bytes() for p in folder.iterdir()}
    run = process("fit", "-", "-o", "model.polyfid", env={"TMPDIR": str(scratch)})
    run.stdin.write(b"x,label,fidelity\n")
    run.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(scratch.glob("*.stdin")) and time.monotonic() < deadline:
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=60)
    assert run.returncode == 130
    assert stdout == b""
    assert stderr == b"polyfid: stopped; no file is left half written\n"
    assert {p: p.read_bytes() for p in folder.iterdir()} == before
    assert not list(scratch.iterdir())


def test_a_reader_that_has_seen_enough(folder, process):
    line = (folder / "new.csv").read_text().splitlines()
    (folder / "long.csv").write_text("\n".join([line[0], *(line[1:] * 2000)]))
    run = process("predict", "model.polyfid", "long.csv", "--block", 500)
    assert run.stdout.readline().startswith(b"id,label,p_bad")
    run.stdout.close()
    stderr = run.stderr.read()
    assert run.wait(timeout=60) == 0
    assert stderr == b""


def test_a_terminal_of_few_characters_and_no_bar_in_a_pipe(folder, process):
    (folder / "t.csv").write_text("größe,label,fidelity\n1,ä,low\n2,b,low\n3,ä,top\n4,b,top\n")
    run = process("check", "t.csv", env={"PYTHONIOENCODING": "ascii"})
    stdout, stderr = run.communicate(timeout=60)
    assert run.returncode == 0, stderr
    assert rb"gr\xf6\xdfe" in stdout
    assert stderr == b""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals")
def test_a_terminal_sees_that_a_fit_goes_on(folder, process):
    ours, theirs = os.openpty()
    run = process(
        *("fit", "tidy.csv", "--kernel", "rbf"),
        stderr=theirs,
        env={"TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    stdout, _ = run.communicate(timeout=60)
    assert run.returncode == 0
    assert b"Fitting" in seen
    assert b"Fitting" not in stdout
