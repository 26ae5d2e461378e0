"""Studies in which a level says numbers."""

import numpy as np
import pandas as pd
import pytest

from polyfid import MultiFidelityClassifier, Study
from polyfid.kernels import RBF

COSTS = {"simulation": 1, "experiment": 6}
MODEL = MultiFidelityClassifier(
    [9.0 * RBF(1.0), RBF(1.0)],
    optimizer=None,
    numeric_levels=["simulation"],
    noise={"simulation": 0.1},
)
POOL = np.random.RandomState(0).uniform(-2.0, 2.0, (120, 2))


def make(**settings):
    return Study(**{"costs": COSTS, "model": MODEL, "random_state": 0, **settings})


def answers(batch):
    """A margin from the simulation, and whether it broke from the experiment."""
    margin = 10.0 + batch["x0"] + 0.5 * batch["x1"]
    broke = np.where(margin > 10.0, "broke", "held")
    label = [
        float(m) if level == "simulation" else str(b)
        for m, level, b in zip(margin, batch["level"], broke, strict=True)
    ]
    return batch.assign(label=label)


@pytest.mark.parametrize("where", [{"pool": POOL}, {"space": {"x0": (-2, 2), "x1": (-2, 2)}}])
def test_batches_of_numbers_and_labels(tmp_path, where):
    path = tmp_path / "study.polyfid"
    study = make(path=path, **where)
    for k in range(4):
        batch = answers(study.ask(budget=48))
        if k == 1:  # as programs write them
            batch.to_csv(tmp_path / "batch.csv", index=False)
            batch = pd.read_csv(tmp_path / "batch.csv", dtype={"label": str})
        assert study.tell(batch).new == len(batch)
        study = Study.load(path)
    assert min(study.counts.values()) >= 2
    assert study.model_.classes_.tolist() == ["broke", "held"]
    point = pd.DataFrame({"x0": [1.0], "x1": [0.0]})
    point = point if "space" in where else point.to_numpy()
    mean, _ = study.model_.predict_value(point, "simulation")
    assert mean[0] == pytest.approx(11.0, abs=0.5)
    assert study.history_[2]["promised"] > 0.0
    assert study.history_[-1]["held_out"] is not None
    assert study.advise(30).plans[0].labels == {"simulation": 30, "experiment": 0}
    assert study.should_stop(1e-9, n=2, n_targets=100)


def test_numbers_alone_make_no_model():
    study = make(pool=POOL)
    study.tell([0, 1, 2], [1, 2.5, "-3e0"], "simulation")
    assert study.history_ == []
    study.tell([3, 4], ["broke", "held"], "experiment")
    assert study.model_.classes_.tolist() == ["broke", "held"]
    assert study.tell([0], [1.0], "simulation").repeated == 1


@pytest.mark.parametrize("cell", ["broke", "1,5", True, np.inf, "inf"])
def test_answers_of_a_numeric_level_must_be_numbers(cell):
    study = make(pool=POOL)
    with pytest.raises(ValueError, match="'simulation', which is numeric, must be finite numbers"):
        study.tell([0, 1], [0.5, cell], "simulation")
    assert len(study) == 0
    with pytest.raises(ValueError, match=r"got 0\.5\. If 'experiment' is to say numbers"):
        study.tell([0], [0.5], "experiment")


def test_levels_are_checked_at_once():
    for level in ("experiment", "simulator"):
        model = MultiFidelityClassifier(numeric_levels=[level])
        with pytest.raises(ValueError, match="numeric_levels"):
            make(pool=POOL, model=model)


def test_labelled_rows_have_a_column_of_numbers():
    study = make(pool=POOL)
    study.tell([0, 1, 2], [1.5, "broke", "held"], ["simulation", "experiment", "experiment"])
    frame = study.labelled()
    assert study.value_columns == {"simulation": "value_simulation"}
    assert frame["value_simulation"].tolist() == pytest.approx([1.5, np.nan, np.nan], nan_ok=True)
    assert frame["label"].isna().tolist() == [True, False, False]
    taken = make(pool=pd.DataFrame(POOL, columns=["x0", "value_simulation"]))
    assert taken.value_columns == {"simulation": "value_simulation_told"}
