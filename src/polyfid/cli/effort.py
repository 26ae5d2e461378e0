"""How many processes are worth starting."""

from __future__ import annotations

#: Seconds of work below which one process is done before others have started.
SMALL = 5.0
#: Of one kernel tuned on so many rows, and how many such fits learning the structure takes.
SECONDS, ROWS, STRUCTURES = 0.1, 300, 17


def processes(asked: int | None, rows: int, classes: int, kernel: str, fits: int = 1) -> int:
    """Those asked for; else one for small work, which starting others would delay, or all cores.

    Examples
    --------
    >>> from polyfid.cli.effort import processes
    >>> processes(None, rows=300, classes=2, kernel="auto")
    1
    >>> processes(None, rows=3000, classes=2, kernel="auto")
    -1
    >>> processes(3, rows=10, classes=2, kernel="rbf")
    3
    """
    if asked is not None:
        return asked
    each = SECONDS * max((rows / ROWS) ** 3, rows / ROWS)
    work = each * (STRUCTURES if kernel == "auto" else 1) * (classes if classes > 2 else 1) * fits
    return 1 if work < SMALL else -1
