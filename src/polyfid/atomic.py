"""Files and attributes that appear complete or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A context that gives a file to write, which replaces ``path`` once it is complete.

    Where the block raises, ``path`` stays as it was. Pipes and devices are written to directly.
    """
    target = Path(os.path.realpath(path))  # a symbolic link stays, its target is replaced
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", str(path))
    if target.exists() and not target.is_file():
        with open(target, "wb") as file:
            yield file
        return
    beside = target.with_name(f".polyfid-{secrets.token_hex(8)}.tmp")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):  # a new file gets the permissions of the old one
            os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # not every file system can sync a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def set_attributes(owner: Any, attributes: Mapping[str, Any], drop: Collection[str] = ()) -> None:
    """Set many attributes of an object in one step, and drop others.

    An interrupt comes before the step or after it, and leaves no mixture of old and new.

    >>> class Owner:
    ...     def __init__(self):
    ...         self.a, self.b = 1, 2
    >>> owner = Owner()
    >>> set_attributes(owner, {"b": 3}, drop=["a"])
    >>> vars(owner)
    {'b': 3}
    """
    kept = {name: value for name, value in vars(owner).items() if name not in drop}
    owner.__dict__ = {**kept, **attributes}
