"""Loading of saved models, of whichever kind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from polyfid import model_files as persistence
from polyfid.estimator.classifier import MultiFidelityClassifier
from polyfid.model_files import ModelFileError

if TYPE_CHECKING:
    from polyfid.tabular import TableModel


def _classifier() -> type[Any]:
    return MultiFidelityClassifier


def _table() -> type[Any]:
    from polyfid.tabular import TableModel

    return TableModel


#: For every kind of file what finds the class whose ``_restore`` rebuilds it.
KINDS = {"classifier": _classifier, "table": _table}


def load(path: str | os.PathLike[str]) -> MultiFidelityClassifier | TableModel:
    """The model that a ``save`` wrote to a file: it predicts the same, to the last bit.

    A file is data. Nothing in it is run, whoever made it; one that is no whole, unaltered model is
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
        If the file is truncated, altered, no model, or written by a later version.
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
    # The kind first: its module puts the classes of the file on the list of those that are known.
    kind = persistence.inspect(path)["kind"]
    if kind not in KINDS:
        raise ModelFileError(
            f"{os.fspath(path)} holds a {kind[:60]!r}, and this version of polyfid knows "
            f"{', '.join(KINDS)}; update polyfid"
        )
    cls = KINDS[kind]()
    found, state = persistence.read(path)
    if found != kind:
        raise ModelFileError(f"{os.fspath(path)} was replaced while it was read; load it again")
    with persistence.refusing(path):
        model: MultiFidelityClassifier | TableModel = cls._restore(state)
    return model
