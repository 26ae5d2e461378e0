import numpy as np
import pytest

from experiments import sensitivity
from experiments.problems import artificial_set
from experiments.run import RowFile, run
from experiments.sensitivity import Hyper, SensitivityCell, grid
from polyfid import MultiFidelityClassifier

FITTED = Hyper(0.5, 1.0, 2.0, -1.0, 3.0)


def test_each_panel_varies_its_own_parameters_only():
    points = list(grid(FITTED))
    varied = {"rho": {"rho"}}
    varied |= {p: {f"log_scale_{p}", f"length_scale_{p}"} for p in ("low", "delta")}
    for panel, names in varied.items():
        own = [hyper for at, hyper in points if at["panel"] == panel]
        assert len(set(own)) == len(own)
        for name in Hyper._fields:
            values = {getattr(hyper, name) for hyper in own}
            assert (len(values) > 1) == (name in names), (panel, name)
            assert name in names or values == {getattr(FITTED, name)}
    assert {-1.0, 0.0, 1.0} <= {at["rho"] for at, _ in points if at["panel"] == "rho"}


def test_a_cell_has_the_tuned_model_and_every_point(monkeypatch, tmp_path):
    monkeypatch.setattr(sensitivity, "RHOS", np.array([-1.0, 0.0]))
    monkeypatch.setattr(sensitivity, "LOG_SCALES", np.array([0.0, 2.0]))
    monkeypatch.setattr(sensitivity, "LENGTH_SCALES", np.array([1.0]))
    what = {"experiment": "sensitivity", "method": "mfgpc", "mode": "multi"}
    source = artificial_set(0, 0.2, stem="made")
    cell = SensitivityCell.of(source, **what, n_cheap=60, n_trusted=30)
    assert run([cell], tmp_path) == (1, 0, 0)
    (row,) = RowFile(tmp_path).rows.values()
    points = row["points"]
    assert [p["panel"] for p in points] == ["rho", "rho", *["low"] * 2, *["delta"] * 2]
    assert [p["rho"] for p in points[:2]] == [-1.0, 0.0]
    assert [p["log_scale"] for p in points[2:]] == [0.0, 2.0] * 2
    assert all(0.3 < p["roc_auc"] < 1.0 for p in points)
    split = source.split(0, 60, 30)
    tuned = MultiFidelityClassifier.paper(n_restarts=10, random_state=0)
    tuned.fit(split.X, split.y, fidelity=split.fidelity)
    assert row["evidence"] == pytest.approx(tuned.log_marginal_likelihood_value_)
    assert row["fitted"] == pytest.approx(Hyper.of(tuned)._asdict(), rel=1e-6)


def test_one_set_of_five_features_with_little_and_with_much_noise(tmp_path):
    cells = sensitivity.cells(str(tmp_path), 5, False)
    assert [(c.problem, c.column, c.noise) for c in cells] == [
        ("made_10", "5D", noise) for noise in (0.2, 0.4)
    ]
