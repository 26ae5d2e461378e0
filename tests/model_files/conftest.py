"""Models and files of them, made once."""

import os

import numpy as np
import pandas as pd
import pytest
from model_makers import MAKERS
from saved_models import two_levels

from polyfid import MultiFidelityClassifier, load
from polyfid.kernels import RBF
from polyfid.tables import Roles, TableModel, read_labelled


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Waiting for the disk takes most of the time of a small file, and matters to one test."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="session")
def models():
    """The models by name, each fitted when first asked for."""
    made = {}
    return lambda name: made[name] if name in made else made.setdefault(name, MAKERS[name]())


@pytest.fixture
def reloaded(tmp_path):
    """The function that gives a model as it is after saving and loading."""

    def save_and_load(model):
        model.save(tmp_path / "model.polyfid")
        return load(tmp_path / "model.polyfid")

    return save_and_load


@pytest.fixture(scope="session")
def table_model():
    X, y, fidelity = two_levels()
    colour = np.array(["red", "green", None])[np.arange(60) % 3]
    frame = pd.DataFrame({"id": np.arange(60), "x1": X[:, 0], "x2": X[:, 1], "colour": colour})
    frame = frame.assign(label=np.where(y, "good", "bad"), fidelity=fidelity)
    table = read_labelled([frame], Roles(levels=("crowd", "expert")))
    return TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF()), missing="indicator")


def bytes_of(model, folder):
    model.save(folder / "model.polyfid")
    return (folder / "model.polyfid").read_bytes()


@pytest.fixture(scope="session")
def file_bytes(models, tmp_path_factory):
    return bytes_of(models("plain"), tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="session")
def table_bytes(table_model, tmp_path_factory):
    return bytes_of(table_model, tmp_path_factory.mktemp("table"))
