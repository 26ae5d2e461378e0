"""What the examples share: a folder to work in, and calls of the command polyfid."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def working_folder() -> Iterator[Path]:
    """The folder of the first argument, or a temporary one; it is the current one in the block."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def polyfid(call: str) -> str:
    """Run the command with these words, show them and what it says, and return that."""
    print(f"\n$ polyfid {call}", flush=True)
    said = _run(call)
    print(said, end="", flush=True)
    return said


def polyfid_json(call: str) -> dict[str, Any]:
    """Run the command with these words and ``--json``, and return what it says."""
    print(f"\n$ polyfid {call} --json", flush=True)
    result: dict[str, Any] = json.loads(_run(f"{call} --json"))
    return result


def _run(call: str) -> str:
    command = [sys.executable, "-m", "polyfid.cli", *shlex.split(call)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stderr, end="", file=sys.stderr, flush=True)
    if done.returncode:
        sys.exit(f"polyfid stopped with exit code {done.returncode}")
    return done.stdout
