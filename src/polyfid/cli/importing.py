"""Imports without the pauses in which Python looks for garbage that imports do not make."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """A context for imports that take long: a quarter of their time goes into collecting garbage.

    They make objects by the hundred thousand, nearly all of which stay until the end; these are
    not looked at again. Where NumPy is there already, the process is someone else's or the imports
    are done, and nothing changes.

    Examples
    --------
    >>> from polyfid.cli.importing import importing
    >>> with importing():
    ...     import decimal
    """
    if not gc.isenabled() or "numpy" in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
