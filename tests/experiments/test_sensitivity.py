import json
from dataclasses import dataclass

import numpy as np
import pytest
from polyfid.experiments import sensitivity
from polyfid.experiments.problems import Made
from polyfid.experiments.rows import Rows
from polyfid.experiments.run import run
from polyfid.experiments.sensitivity import Hyper, SensitivityCell, places

from polyfid import MultiFidelityClassifier

FITTED = Hyper(0.5, 1.0, 2.0, -1.0, 3.0)


@dataclass(frozen=True, kw_only=True)
class Small(Made):
    def split(self, seed):
        return super().split(seed, 60, 30)


def test_each_panel_varies_its_own_parameters_only():
    grid = list(places(FITTED))
    assert grid[0].hyper == FITTED
    varied = {"rho": {"rho"}}
    varied |= {p: {f"log_scale_{p}", f"length_scale_{p}"} for p in ("low", "delta")}
    for panel, names in varied.items():
        points = [place for place in grid if place.panel == panel]
        assert len({place.hyper for place in points}) == len(points)
        for name in Hyper._fields:
            values = {getattr(place.hyper, name) for place in points}
            assert (len(values) > 1) == (name in names), (panel, name)
            assert name in names or values == {getattr(FITTED, name)}


def test_grids_hold_the_ranges_of_the_paper():
    grid = list(places(FITTED))
    rho = [place.at["rho"] for place in grid if place.panel == "rho"]
    assert min(rho) <= -1.0
    assert max(rho) >= 1.0
    assert 0.0 in rho
    assert {-1.0, 1.0} <= set(rho)


def test_a_quick_grid_is_part_of_the_full_one():
    full, quick = ([(p.panel, p.at) for p in places(FITTED, q)] for q in (False, True))
    assert len(quick) < len(full) / 3
    assert all(place in full for place in quick)


def test_hyper_parameters_of_a_model():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(20, 2))
    model = MultiFidelityClassifier(FITTED.kernels, rho=FITTED.rho, optimizer=None, prior=None)
    model.fit(X, X[:, 0] > 0, fidelity=np.arange(20) % 2)
    np.testing.assert_allclose(Hyper.of(model), FITTED)


def test_a_cell_gives_a_row_for_every_point(monkeypatch, tmp_path):
    monkeypatch.setattr(sensitivity, "RHOS", np.array([-1.0, -0.5, 0.0]))
    monkeypatch.setattr(sensitivity, "LOG_SCALES", np.array([0.0, 1.0, 2.0]))
    monkeypatch.setattr(sensitivity, "LENGTH_SCALES", np.array([1.0, 1.5, 2.0]))
    what = {"experiment": "sensitivity", "problem": "made_0", "method": "mfgpc", "mode": "multi"}
    cell = SensitivityCell(**what, noise=0.2, source=Small(number=0, noise=0.2), quick=True)
    assert cell.n_rows == 1 + 2 + 2 * 2 * 1
    assert run([cell], tmp_path) == (1, 0, 0)
    assert run([cell], tmp_path) == (0, 1, 0)
    rows = list(Rows(tmp_path))
    assert len(rows) == cell.n_rows
    settings = [json.loads(row["setting"]) for row in rows]
    assert [s["panel"] for s in settings] == ["fitted", "rho", "rho", *["low"] * 2, *["delta"] * 2]
    assert set(settings[0]) == {"panel", *Hyper._fields}
    assert [s["rho"] for s in settings[1:3]] == [-1.0, 0.0]
    assert [float(row["rho"]) for row in rows[1:3]] == [-1.0, 0.0]

    # The fitted point is what the fitted model itself predicts.
    split = cell.source.split(0)
    tuned = MultiFidelityClassifier.paper(n_restarts=10, random_state=0)
    tuned.fit(split.X, split.y, fidelity=split.fidelity)
    assert float(rows[0]["evidence"]) == pytest.approx(tuned.log_marginal_likelihood_value_)


def test_one_set_of_five_features_with_little_and_with_much_noise(tmp_path):
    found = sensitivity.cells(str(tmp_path), 5, False)
    assert [(c.problem, c.column, c.noise) for c in found] == [
        ("made_10", "5D", 0.2),
        ("made_10", "5D", 0.4),
    ]
