"""Model files taken apart, put together again and refused, and the ones that are kept.

``PYTHONPATH=src python tests/saved_models.py`` makes the kept files of the present schema in
``tests/models`` anew, and beside them what they predict. Once a version of polyfid is released,
files of its schema are never made again.
"""

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from polyfid import MultiFidelityClassifier, load
from polyfid.estimator.levels import FidelityArray
from polyfid.kernels import RBF
from polyfid.model_files import ModelFileError
from polyfid.model_files.container import SCHEMA

MODELS = Path(__file__).parent / "models"


def two_levels(n=60, d=2, seed=0):
    """Points, noisy labels of the first two thirds and right ones of the rest, and the level."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d))
    right = X[:, 0] + 0.5 * X[:, -1] ** 2 > 0.3
    cheap = np.arange(n) < 2 * n // 3
    y = right ^ (cheap & (rng.uniform(size=n) < 0.15))
    return X, y, FidelityArray(np.where(cheap, "crowd", "expert"), ("crowd", "expert"))


def split(data):
    """The header of a file, and the bytes of its ``.npy`` files."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        header, *arrays = (archive.read(member) for member in archive.infolist())
    return json.loads(header), arrays


def seal(header, arrays=()):
    """The file of a header, as a dict or as bytes, and ``.npy`` files, with the right checksums."""
    if isinstance(header, dict):
        digest = hashlib.sha256(b"".join(arrays)).hexdigest()
        header = json.dumps({**header, "sha256": digest}).encode()
    names = [f"{i:05d}.npy" for i in range(len(arrays))]
    return zipped([("header.json", header), *zip(names, arrays, strict=True)])


def zipped(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def refused(path, data, match=None, read=load):
    """Check that a file gives a ModelFileError that names it; its message."""
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=match) as caught:
        read(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def make_structures():
    """Structures that are averaged, categories, two levels, weights."""
    X, y, fidelity = two_levels(12)
    X = np.column_stack([np.exp(X[:, 0]), np.eye(3)[np.arange(12) % 3]])
    model = MultiFidelityClassifier(random_state=0)
    return model.fit(X, y, fidelity=fidelity, sample_weight=1.0 + np.arange(12) % 2), X


def make_sparse():
    """Inducing points and label noise."""
    X, y, fidelity = two_levels(40)
    model = MultiFidelityClassifier(
        1.0 * RBF(), n_inducing=5, label_noise="fidelity", random_state=0
    )
    return model.fit(X, y, fidelity=fidelity), X[::5]


def predictions(model, X):
    return {
        "X": X.tolist(),
        "levels": list(model.levels_),
        "predict_proba": [model.predict_proba(X, level).tolist() for level in model.levels_],
        "latent": [moment.tolist() for moment in model.latent_mean_and_variance(X)],
        "log_marginal_likelihood": model.log_marginal_likelihood(model.theta_),
    }


if __name__ == "__main__":
    for make in (make_structures, make_sparse):
        model, X = make()
        target = MODELS / f"schema-{SCHEMA}-{make.__name__.removeprefix('make_')}.polyfid"
        model.save(target)
        text = json.dumps(predictions(model, X))
        target.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
        print(target, target.stat().st_size, "bytes")
