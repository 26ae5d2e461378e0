"""Files of every schema keep loading."""

import json
from dataclasses import fields

import numpy as np
import pytest
from saved_models import MODELS

from polyfid import load
from polyfid import model_files as persistence
from polyfid.model_files import inspect


@pytest.mark.parametrize("schema", range(1, persistence.SCHEMA + 1))
def test_files_of_every_schema_load_and_predict_as_they_did(schema):
    path = MODELS / f"schema-{schema}.polyfid"
    assert path.stat().st_size < 50_000
    assert inspect(path)["schema"] == schema
    model = load(path)
    then = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    X = np.array(then["X"])
    assert list(model.levels_) == then["levels"]
    for level, proba in zip(then["levels"], then["predict_proba"], strict=True):
        np.testing.assert_allclose(model.predict_proba(X, level), proba, rtol=1e-9, atol=1e-12)
    for now, before in zip(model.latent_mean_and_variance(X), then["latent"], strict=True):
        np.testing.assert_allclose(now, before, rtol=1e-8)
    evidence = model.log_marginal_likelihood(model.theta_)
    assert evidence == pytest.approx(then["log_marginal_likelihood"], rel=1e-6)
    assert str(model.report_).splitlines()[0] == then["report"].splitlines()[0]


def test_what_schema_1_consists_of_has_not_changed(models):
    # A field that goes, or comes without a default, needs a new schema that reads the old one.
    from polyfid.inference.posterior import Posterior
    from polyfid.learning.mixture import Member
    from polyfid.learning.model import BinaryFit
    from polyfid.model_files import ClassifierState

    found = {c.__name__: [f.name for f in fields(c)] for c in (Member, BinaryFit, Posterior)}
    assert found == {
        "Member": ["name", "features", "fit", "weight", "log_evidence"],
        "BinaryFit": [
            "posterior",
            "likelihood",
            "log_evidence",
            "inference",
            "optimum",
            "theta_names",
            "tuned_on",
            "scheme",
        ],
        "Posterior": ["prior", "points", "sites", "alpha", "factor"],
    }
    assert isinstance(models("plain")._state(), ClassifierState)
