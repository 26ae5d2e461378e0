"""Signals that stop the command: Ctrl-C, SIGTERM and SIGHUP all end it in good order.

Only the command sets handlers; those of a program that imports polyfid are its own.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

STOPPED = "stopped; no file is left half written"
#: Seconds after a signal in which further ones are repeats of it: files are being removed.
PATIENCE = 5.0
#: Seconds until a signal is looked at again that came at a bad moment.
RETRY = 0.02
_SIGNALS = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]


class Stopped(KeyboardInterrupt):
    """A signal asked the command to stop: whoever handles Ctrl-C handles it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self.exit_code = number, 128 + number


class _Stopper:
    """Handles the signals of a command, each according to how far the command has come."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.in_verb = False
        self.stopped_at = -PATIENCE
        self.waiting = 0

    def install(self) -> None:
        """Handle the signals, but for those that whoever started the process chose to ignore."""
        for number in filter(None, _SIGNALS):
            with suppress(ValueError, OSError):  # this is not the main thread
                if signal.getsignal(number) != signal.SIG_IGN:
                    signal.signal(number, self.handle)
                    self.numbers.append(number)
        if self.numbers and hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, lambda _, frame: self.handle(self.waiting, frame))
            sys.unraisablehook = self.raise_again

    def handle(self, number: int, frame: FrameType | None) -> None:
        if not self.in_verb:  # nothing has been written, and half a program is imported
            with suppress(OSError):
                os.write(2, f"polyfid: {STOPPED}\n".encode())
            os._exit(128 + number)
        if time.monotonic() < self.stopped_at + PATIENCE:
            return
        if hasattr(signal, "setitimer") and _is_importing(frame):
            self.wait(number)
            return
        self.stopped_at = time.monotonic()
        raise Stopped(number)

    def wait(self, number: int) -> None:
        """Look at a signal again soon."""
        self.waiting = number
        signal.setitimer(signal.ITIMER_REAL, RETRY)

    def raise_again(self, lost: Any) -> None:
        """Stop later where nothing can be raised, as in ``__del__`` or a function that C calls."""
        if isinstance(lost.exc_value, Stopped):
            self.stopped_at = -PATIENCE
            self.wait(lost.exc_value.number)
        else:
            sys.__unraisablehook__(lost)

    def ignore(self) -> None:
        """The work is done, or given up: what is left takes no time, and must not be disturbed."""
        for number in self.numbers:
            signal.signal(number, signal.SIG_IGN)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: those in C turn any exception into an ImportError."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return not sys.is_finalizing()
        frame = frame.f_back
    return False


_stopper = _Stopper()
install = _stopper.install


@contextmanager
def stoppable() -> Iterator[None]:
    """A block that signals stop by raising `Stopped`; after it they are ignored."""
    _stopper.in_verb = True
    try:
        yield
    finally:
        _stopper.ignore()
