"""Files of models: taken apart, sealed again and refused, and one of schema 1, kept for good.

``python tests/saved_models.py`` with the sources on the path makes the file of the present schema,
and what it predicts; a file of an older schema is never made again.
"""

import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyfid import MultiFidelityClassifier, load
from polyfid.learning.mixture import Mixture
from polyfid.model_files import SCHEMA, ModelFileError

MODELS = Path(__file__).parent / "models"
PRELUDE = struct.Struct("<8sQ32s")


def two_levels(n=60, d=2, seed=0):
    """Points, noisy labels of the first two thirds and right ones of the rest, and the level."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, d))
    right = X[:, 0] + 0.5 * X[:, -1] ** 2 > 0.3
    cheap = np.arange(n) < 2 * n // 3
    y = right ^ (cheap & (rng.uniform(size=n) < 0.15))
    return X, y, np.where(cheap, "crowd", "expert")


def split(data):
    """Header and array bytes of a file."""
    _, length, _ = PRELUDE.unpack(data[: PRELUDE.size])
    start = PRELUDE.size
    return json.loads(data[start : start + length]), data[start + length :]


def seal(header, rest, honest=True):
    """The file of a header, as a dict or as text, and array bytes, with the right checksums."""
    if honest and isinstance(header, dict):
        header = {**header, "sha256": hashlib.sha256(rest).hexdigest()}
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return PRELUDE.pack(b"\x89polyfid", len(text), hashlib.sha256(text).digest()) + text + rest


def refused(path, data, match=None):
    """That a file is refused by all that read files, and by nothing but ModelFileError."""
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def make():
    """The model that is kept: several structures, categories, two levels, weights."""
    rng = np.random.RandomState(5)
    n = 14
    number, kind = rng.uniform(-1, 1, n), rng.randint(3, size=n)
    X = np.column_stack([np.exp(number), np.eye(3)[kind]])
    y = np.where(number + 0.6 * (kind == 1) > 0.2, "yes", "no")
    fidelity = np.where(np.arange(n) < 8, "guess", "expert")
    model = MultiFidelityClassifier(levels=["guess", "expert"], random_state=0)
    model.fit(X, y, fidelity=fidelity, sample_weight=1.0 + rng.randint(2, size=n))
    # One structure a feature map keeps the file small.
    first = {type(m.features): m for m in reversed(model._mixtures[0].members)}.values()
    total = sum(m.weight for m in first)
    kept = sorted((replace(m, weight=m.weight / total) for m in first), key=lambda m: -m.weight)
    model._mixtures = [Mixture(tuple(kept))]
    model._publish(model.report_.counts, [])
    return model, X


if __name__ == "__main__":
    model, X = make()
    target = MODELS / f"schema-{SCHEMA}.polyfid"
    model.save(target)
    found = {
        "X": X.tolist(),
        "levels": list(model.levels_),
        "predict_proba": [model.predict_proba(X, level).tolist() for level in model.levels_],
        "latent": [part.tolist() for part in model.latent_mean_and_variance(X)],
        "log_marginal_likelihood": model.log_marginal_likelihood(model.theta_),
        "report": str(model.report_),
    }
    target.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(target, target.stat().st_size, "bytes")
