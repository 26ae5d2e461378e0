"""How the command starts: its version, and what it says when its packages are missing."""

import subprocess
import sys

from polyfid import __version__


def python(*args):
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False)


def test_as_a_module():
    assert python("-m", "polyfid.cli", "--version").stdout == f"polyfid {__version__}\n"


def test_without_the_extra():
    code = "import sys; sys.modules['typer'] = None; import polyfid.cli as c; c.main()"
    bare = python("-c", code)
    assert bare.returncode == 2
    assert 'pip install "polyfid[cli]"' in bare.stderr
