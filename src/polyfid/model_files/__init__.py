"""Models in files, without pickle: loading one runs no code of the file."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from polyfid._version import __version__
from polyfid.model_files import container
from polyfid.model_files.codec import KINDS, Decoder, Encoder, find, register
from polyfid.model_files.container import ModelFileError, PathLike, is_model, refusing
from polyfid.values import to_json

__all__ = ["ModelFileError", "inspect", "is_model", "load", "read", "refusing", "register", "write"]


def write(path: PathLike, kind: str, state: Any, about: Mapping[str, Any] | None = None) -> None:
    """Write a state, of which `load` makes a model of that kind, and what `inspect` tells of it."""
    encoder = Encoder()
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    header = {
        "kind": kind,
        "created_by": f"polyfid {__version__}",
        "versions": {"polyfid": __version__, "python": platform.python_version(), **libraries},
        **to_json(about or {}),
        "state": encoder.encode(state),
    }
    container.write_file(path, header, encoder.arrays)


def read(path: PathLike) -> tuple[str, Any]:
    """The kind and the state that `write` wrote to a file."""
    header, arrays = container.read_file(path)
    with refusing(path):
        return header["kind"], Decoder(arrays).decode(header["state"])


def inspect(path: PathLike) -> dict[str, Any]:
    """What the header of a file tells, ready for JSON; arrays are not read.

    Besides what was said about the model these are ``kind``, ``schema``, ``created_by``,
    ``versions``, ``arrays`` (name, dtype, shape, order, nbytes) and the ``sha256`` of the arrays.
    """
    with container.opened(path) as (_, header, _):
        return {key: value for key, value in header.items() if key != "state"}


def load(path: PathLike) -> Any:
    """The model that a ``save`` wrote to a file: its predictions are the same to the last bit.

    No code in the file is run, whoever made it. A file that is not a complete, unaltered model is
    refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    MultiFidelityClassifier or TableModel
        Whichever was saved.

    Raises
    ------
    polyfid.model_files.ModelFileError
        If the file is truncated, altered, not a model, or of another schema.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from polyfid import MultiFidelityClassifier, load
    >>> from polyfid.kernels import RBF
    >>> X = np.linspace(-1, 1, 12)[:, None]
    >>> model = MultiFidelityClassifier(1.0 * RBF()).fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.polyfid")
    ...     model.save(path)
    ...     again = load(path)
    >>> np.array_equal(again.predict_proba(X), model.predict_proba(X))
    True
    """
    kind, state = read(path)
    if kind not in KINDS:
        raise ModelFileError(
            f"{os.fspath(path)} holds a {kind[:60]!r}, and this version of polyfid has "
            f"{', '.join(KINDS)}; update polyfid"
        )
    with refusing(path):
        return find(KINDS[kind])._restore(state)
