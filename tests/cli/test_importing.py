"""Imports of the tool leave the garbage collector as they found it."""

import subprocess
import sys


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_collection_rests_while_importing_and_goes_on_afterwards():
    run(
        "import gc\n"
        "from polyfid.cli.importing import importing\n"
        "with importing():\n"
        "    assert not gc.isenabled()\n"
        "assert gc.isenabled() and gc.get_freeze_count()\n"
    )


def test_collection_goes_on_after_an_import_that_fails():
    run(
        "import gc\n"
        "from polyfid.cli.importing import importing\n"
        "try:\n"
        "    with importing():\n"
        "        import no_such_module\n"
        "except ImportError:\n"
        "    assert gc.isenabled()\n"
        "else:\n"
        "    raise AssertionError\n"
    )


def test_a_process_that_has_numpy_already_is_left_alone():
    run(
        "import gc, numpy\n"
        "from polyfid.cli.importing import importing\n"
        "with importing():\n"
        "    assert gc.isenabled()\n"
        "assert not gc.get_freeze_count()\n"
    )
