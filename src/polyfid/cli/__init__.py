"""The command ``polyfid``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of the process."""
    from polyfid.cli.signals import install

    install()
    try:
        from polyfid.cli.app import app

        app(prog_name="polyfid")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "rich", "click"}:
            raise
        advice = f'The command needs {error.name}. Install it with: pip install "polyfid[cli]"'
        print(advice, file=sys.stderr)
        sys.exit(2)
