"""What goes wrong with files of models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class ModelFileError(ValueError):
    r"""A file that is no model, or no longer one: truncated, altered, foreign, too new, hostile.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from polyfid.model_files import ModelFileError, inspect
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "table.csv")
    ...     _ = path.write_text("x,y\n" + "1,2\n" * 100)
    ...     try:
    ...         inspect(path)
    ...     except ModelFileError as error:
    ...         print(str(error).replace(str(path), path.name))
    table.csv is not a polyfid model: it does not begin like one
    """


@contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """A context for building what a file describes: what fails there is the file's fault.

    Lack of memory and errors of the system stay what they are.
    """
    try:
        yield
    except ModelFileError as error:
        if str(error).startswith(os.fspath(path)):
            raise
        raise ModelFileError(f"{os.fspath(path)} does not describe a model: {error}") from error
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelFileError(f"{os.fspath(path)} does not describe a model: {error}") from error
