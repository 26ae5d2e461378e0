"""Models and files of them, made once."""

import os

import numpy as np
import pandas as pd
import pytest
from model_makers import MAKERS
from saved_models import two_levels

from polyfid import MultiFidelityClassifier
from polyfid.kernels import RBF
from polyfid.tables import Roles, read_labelled
from polyfid.tabular import TableModel


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Waiting for the disk takes most of the time of a small file, and matters to one test."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="session")
def models():
    """The models by name, each fitted when first asked for."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = MAKERS[name]()
        return made[name]

    return get


@pytest.fixture(scope="session")
def file_bytes(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "plain.polyfid"
    models("plain").save(path)
    return path.read_bytes()


@pytest.fixture(scope="session")
def table_model():
    X, y, fidelity = two_levels()
    colour = np.array(["red", "green", None])[np.arange(60) % 3]
    frame = pd.DataFrame({"id": np.arange(60), "x1": X[:, 0], "x2": X[:, 1], "colour": colour})
    frame = frame.assign(label=np.where(y, "good", "bad"), fidelity=fidelity)
    table = read_labelled([frame], Roles(levels=("crowd", "expert")))
    return TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF()), missing="indicator")


@pytest.fixture(scope="session")
def table_bytes(table_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "table.polyfid"
    table_model.save(path)
    return path.read_bytes()
