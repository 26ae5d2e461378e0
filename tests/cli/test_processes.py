"""The command as a process: what it imports, signals, pipes, and text that could do harm."""

import os
import signal
import time

import pytest

from polyfid import __version__

RUN = (
    "import sys; sys.argv = ['polyfid', *{args!r}.split()]\n"
    "from polyfid.cli import main\n"
    "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
    "imported = {modules!r} & {{*sys.modules}}\n"
    "assert not imported, imported\n"
)


def test_version_and_missing_packages(polyfid, python):
    assert polyfid("--version").stdout == f"polyfid {__version__}\n"
    bare = python("import sys; sys.modules['typer'] = None; import polyfid.cli as c; c.main()")
    assert bare.returncode == 2
    assert 'pip install "polyfid[cli]"' in bare.stderr


def test_help_imports_nothing_heavy(python):
    heavy = {"sklearn", "numpy", "pandas", "scipy", "pyarrow", "joblib"}
    run = python(RUN.format(args="--help", modules=heavy))
    assert run.returncode == 0, run.stderr
    for verb in ("demo", "check", "fit", "predict", "evaluate", "report", "inspect", "convert"):
        assert verb in run.stdout
    assert "Exit codes" in run.stdout


def test_fit_imports_no_more_of_scikit_learn_than_an_estimator_needs(python):
    parts = ("metrics", "preprocessing", "gaussian_process", "linear_model", "model_selection")
    needless = {"matplotlib", "jinja2", *(f"sklearn.{part}" for part in parts)}
    run = python(
        RUN.format(
            args="fit tidy.csv --levels crowd,expert --kernel rbf -o lean.polyfid -q",
            modules=needless,
        )
    )
    assert run.returncode == 0, run.stderr


#: The signals that stop a command, and its exit codes.
STOPS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
STOPPED = b"polyfid: stopped; no file is left half written\n"


@pytest.mark.parametrize(("number", "code"), STOPS)
def test_a_signal_while_reading(folder, process, tmp_path, number, code):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = {p: p.read_bytes() for p in folder.iterdir()}
    run = process("fit", "-", "-o", "model.polyfid", env={"TMPDIR": str(scratch)})
    run.stdin.write(b"x,label,fidelity\n")
    run.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(scratch.glob("*.stdin")) and time.monotonic() < deadline:
        time.sleep(0.05)
    run.send_signal(number)
    stdout, stderr = run.communicate(timeout=60)
    assert run.returncode == code
    assert stdout == b""
    assert stderr == STOPPED
    assert {p: p.read_bytes() for p in folder.iterdir()} == before
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(("number", "code"), STOPS)
def test_a_signal_before_the_verb_begins(python, number, code):
    run = python(
        "import os, sys, importlib.abc\n"
        "class Finder(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'typer': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['polyfid', 'inspect', 'model.polyfid']\n"
        "from polyfid.cli import main\nmain()\n"
    )
    assert (run.returncode, run.stdout, run.stderr) == (code, "", STOPPED.decode())


IN_A_VERB = (
    "import os, signal, sys, time\n"
    "from polyfid import model_files\n"
    "def inspect(path):\n"
    "    {code}\n"
    "    return {{}}\n"
    "model_files.inspect = inspect\n"
    "sys.argv = ['polyfid', 'inspect', 'model.polyfid']\n"
    "from polyfid.cli import main\nmain()\n"
)
TERMINATE = "os.kill(os.getpid(), signal.SIGTERM)"


def test_a_signal_during_an_import_waits_for_its_end(python, folder):
    """Or modules in C would turn it into an ImportError."""
    (folder / "slow.py").write_text(
        f"import os, signal, time\n{TERMINATE}\ntime.sleep(0.1)\nprint('whole', flush=True)\n"
    )
    run = python(IN_A_VERB.format(code="import slow; time.sleep(60)"))
    assert (run.returncode, run.stdout, run.stderr) == (143, "whole\n", STOPPED.decode())


@pytest.mark.parametrize(
    "code",
    [
        f"type('A', (), {{'__del__': lambda self: {TERMINATE} or time.sleep(0.1)}})()",
        f"import ctypes; ctypes.CFUNCTYPE(None)(lambda: {TERMINATE} or time.sleep(0.1))()",
    ],
    ids=["__del__", "called by C"],
)
def test_a_signal_where_nothing_can_be_raised_stops_all_the_same(python, code):
    run = python(IN_A_VERB.format(code=f"{code}; time.sleep(60)"))
    assert (run.returncode, run.stdout, run.stderr) == (143, "", STOPPED.decode())


def test_further_signals_do_not_disturb_the_removal_of_files(python):
    code = (
        f"try: {TERMINATE}; time.sleep(60)\n    finally: {TERMINATE}; print('removed', flush=True)"
    )
    run = python(IN_A_VERB.format(code=code))
    assert (run.returncode, run.stdout, run.stderr) == (143, "removed\n", STOPPED.decode())


def test_a_signal_that_is_ignored_stays_so(python):
    """As by nohup."""
    code = "os.kill(os.getpid(), signal.SIGHUP)"
    run = python(
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        + IN_A_VERB.format(code=code)
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_the_library_leaves_signals_alone(python):
    run = python(
        "import signal\n"
        "numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]\n"
        "before = [*map(signal.getsignal, numbers)]\n"
        "import polyfid, polyfid.cli.app\n"
        "assert [*map(signal.getsignal, numbers)] == before\n"
    )
    assert run.returncode == 0, run.stderr


def test_a_reader_that_closes_the_output(folder, process):
    head, *rows = (folder / "new.csv").read_text().splitlines()
    (folder / "long.csv").write_text("\n".join([head, *(rows * 2000)]))
    run = process("predict", "model.polyfid", "long.csv", "--block", 500)
    assert run.stdout.readline().startswith(b"id,label,p_bad")
    run.stdout.close()
    stderr = run.stderr.read()
    assert run.wait(timeout=60) == 0
    assert stderr == b""


def test_a_terminal_of_few_characters_and_no_bar_in_a_pipe(folder, process):
    (folder / "t.csv").write_text("größe,label,fidelity\n1,ä,low\n2,b,low\n3,ä,top\n4,b,top\n")
    run = process("check", "t.csv", "--levels", "low,top", env={"PYTHONIOENCODING": "ascii"})
    stdout, stderr = run.communicate(timeout=60)
    assert run.returncode == 0, stderr
    assert rb"gr\xf6\xdfe" in stdout
    assert stderr == b""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals")
def test_a_terminal_shows_that_a_fit_goes_on(folder, process):
    ours, theirs = os.openpty()
    call = ("fit", "tidy.csv", "--levels", "crowd,expert", "--kernel", "rbf")
    run = process(*call, stderr=theirs, env={"TERM": "xterm", "COLUMNS": "80"})
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    stdout, _ = run.communicate(timeout=60)
    assert run.returncode == 0
    assert b"Fitting" in shown
    assert b"Fitting" not in stdout


EVIL = ["<script>alert(1)</script>", "\x1b[31mred\x07", "[red]x[/red]", "[/bold]", "ü\u202e"]
LEVELS = ("--levels", '[bold]low,"to,p="')


def write_table(path, labels):
    rows = ["x,[link]y,label,fidelity"]
    for level in ("[bold]low", "to,p="):
        rows += [f'{i}.5,{(i * 7) % 11},"{labels[i % len(labels)]}","{level}"' for i in range(24)]
    path.write_text("\n".join(rows))


def harmless(result):
    text = result.stdout + result.stderr
    return not any(ord(c) < 32 and c != "\n" for c in text) and "\u202e" not in text


def test_evil_cells_from_check_to_report(polyfid, folder):
    write_table(folder / "evil.csv", EVIL)
    checked = polyfid("check evil.csv", *LEVELS)
    assert harmless(checked)
    for text in ("[red]x[/red]", "\\x1b[31mred", "[bold]low"):
        assert text in checked.stdout
    write_table(folder / "evil.csv", EVIL[:2])
    assert harmless(polyfid("fit evil.csv --kernel rbf -o evil.polyfid", *LEVELS))
    assert harmless(polyfid("inspect evil.polyfid"))
    polyfid("predict evil.polyfid evil.csv -o out.csv")
    assert f"p_{EVIL[0]}" in (folder / "out.csv").read_text().splitlines()[0]
    assert harmless(polyfid("report evil.polyfid -o evil.html --folds 0"))
    page = (folder / "evil.html").read_text()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert polyfid("fit --config evil.polyfid.toml -q -o again.polyfid").stdout == ""
    held = polyfid.json("inspect again.polyfid")
    assert (held["levels"], set(held["classes"])) == (["[bold]low", "to,p="], set(EVIL[:2]))


def test_evil_cells_in_errors(polyfid, folder):
    (folder / "worse.csv").write_text("x,label,fidelity\n\x1b[31m[/red],a,low\n2,b,top\n3,b,top\n")
    assert harmless(polyfid("check worse.csv", code=1))
    assert "[/red]" in polyfid("check --level [/red]", code=2).stderr
    assert harmless(polyfid("check \x1b[31m.csv", code=2))
