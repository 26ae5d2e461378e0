"""Models to files and back: `write`, `read`, `inspect` and `load`."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from polyfid._version import __version__
from polyfid.model_files.codec import Decoder, Encoder
from polyfid.model_files.container import (
    ModelFileError,
    PathLike,
    read_file,
    read_header,
    refusing,
    write_file,
)
from polyfid.model_files.registry import KINDS, find
from polyfid.values import to_json

_OWN_KEYS = {"format", "schema", "kind", "created_by", "versions", "arrays", "sha256", "state"}


def write(path: PathLike, kind: str, state: Any, about: Mapping[str, Any] | None = None) -> None:
    """Write a state to a file, which appears complete or not at all.

    Parameters
    ----------
    path : str or path
        An existing file is replaced.
    kind : str
        What `load` is to make of the state.
    state : object
        None, booleans, numbers, strings, bytes, arrays and instances of registered classes, and
        lists, tuples and dicts of these.
    about : mapping, optional
        What `inspect` tells besides the kind and the versions; made ready for JSON.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from polyfid.model_files import read, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "thing.polyfid")
    ...     write(path, "thing", {"x": np.arange(3), "pair": (1, None)})
    ...     read(path)
    ('thing', {'x': array([0, 1, 2]), 'pair': (1, None)})
    """
    about = dict(about or {})
    if taken := sorted(set(about) & _OWN_KEYS):
        raise ValueError(f"about must not have the key {taken[0]!r}, as every header has it")
    libraries = ("numpy", "scipy", "scikit-learn")
    versions = {"polyfid": __version__, "python": platform.python_version()}
    encoder = Encoder()
    header = {
        "kind": kind,
        "created_by": f"polyfid {__version__}",
        "versions": {**versions, **{name: version(name) for name in libraries}},
        **to_json(about),
        "state": encoder.encode(state),
    }
    write_file(path, header, encoder.arrays)


def read(path: PathLike) -> tuple[str, Any]:
    """The kind and the state in a file; see `write`.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or has another schema.
    OSError
        If the file cannot be read.
    """
    header, arrays = read_file(path)
    with refusing(path):
        return header["kind"], Decoder(arrays).decode(header["state"])


def inspect(path: PathLike) -> dict[str, Any]:
    """What the header of a file tells, ready for JSON; arrays are not read.

    Returns
    -------
    dict
        ``kind``, ``schema``, ``created_by``, ``versions``, ``arrays`` (name, dtype, shape, order,
        nbytes), ``sha256`` of the arrays and what was said about the model.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from polyfid.model_files import inspect, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "thing.polyfid")
    ...     write(path, "thing", [1, 2], about={"colour": "green"})
    ...     header = inspect(path)
    >>> header["kind"], header["schema"], header["colour"]
    ('thing', 2, 'green')
    """
    return {key: value for key, value in read_header(path).items() if key != "state"}


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
