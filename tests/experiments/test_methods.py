import dataclasses
import warnings

import numpy as np
import pytest
from result_rows import DATA, documented_rows, needs_data
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.catalogue import cells_of, split_cells
from experiments.cells import key_of
from experiments.methods import RUNNERS, SplitCell
from experiments.paper import Column
from experiments.problems import Answers, Labelled, Problem, artificial_set


@pytest.fixture(scope="module")
def split():
    """Sixty cheap rows, a fifth of them wrong, and thirty trusted ones."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(400, 2))
    true = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    cheap = (true + (rng.uniform(size=400) < 0.2)) % 2
    drawn = Labelled(X, cheap, true, true).draw(0, 200, 60, 30)
    who = rng.randint(4, size=30)
    return dataclasses.replace(drawn, answers=Answers(*drawn.level(1), who))


@pytest.mark.parametrize("key", RUNNERS, ids="-".join)
def test_every_method_gives_probabilities(split, key):
    pytest.importorskip("xgboost")
    proba, facts = RUNNERS[key](split, 0)
    assert proba.shape == split.y_test.shape
    assert ((proba >= 0.0) & (proba <= 1.0)).all()
    assert min(facts["fit_seconds"], facts["predict_seconds"]) >= 0.0
    auc = roc_auc_score(split.y_test, proba)
    assert auc == 0.5 if key[0] == "majority" else auc > 0.7
    assert ("rho" in facts) == (key[0] in {"mfgpc", "polyfid"})
    is_gp = key[0] in {"mfgpc", "polyfid", "gpc", "hetmogp", "gp-ma"}
    assert ("evidence" in facts) == ("converged" in facts) == is_gp


def test_stacking_is_the_papers(split):
    model = make_pipeline(StandardScaler(), LogisticRegression(solver="liblinear"))
    model.fit(*split.level(0))
    X, y = split.level(1)
    trusted = np.hstack([X, model.predict_proba(X)])
    test = np.hstack([split.X_test, model.predict_proba(split.X_test)])
    wanted = model.fit(trusted, y).predict_proba(test)[:, 1]
    proba, _ = RUNNERS["logit", "stacked"](split, 0)
    np.testing.assert_allclose(proba, wanted, rtol=1e-10)


def test_the_gaussian_process_is_scikit_learns(split):
    kernel = ConstantKernel(1.0, (0.1, 10.0)) * RBF(1.0, (0.01, 10.0))
    theirs = make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the scale is at its bound
        theirs.fit(*split.level(1))
    proba, facts = RUNNERS["gpc", "trusted"](split, 0)
    wanted = theirs[-1].log_marginal_likelihood_value_
    assert facts["evidence"] == pytest.approx(wanted, abs=1e-3)
    np.testing.assert_allclose(proba, theirs.predict_proba(split.X_test)[:, 1], atol=0.01)


def test_the_published_setting_is_constant_in_many_dimensions():
    split = artificial_set(30, 0.2, stem="made").split(0)
    proba, _ = RUNNERS["hetmogp", "published"](split, 0)
    assert np.ptp(proba) < 1e-9


def test_annotators_need_answers(split):
    without = dataclasses.replace(split, answers=None)
    with pytest.raises(ValueError, match="split must have single answers"):
        RUNNERS["gp-ma", "answers"](without, 0)


def test_cells_go_split_by_split():
    sources = [artificial_set(n, c, stem="made") for n, c in ((0, 0.2), (10, 0.4))]
    cells = split_cells(sources, runs=2)
    n = len(RUNNERS) - 1  # no answers here
    assert len(cells) == 4 * n
    wanted = [("made_0", 0), ("made_10", 0), ("made_0", 2), ("made_10", 2)]
    assert [(c.problem, c.seed) for c in cells[::n]] == wanted
    assert len({key_of(cell.row()) for cell in cells}) == len(cells)


@needs_data
@pytest.mark.parametrize(
    "source",
    [artificial_set(0, 0.4, DATA), Problem(Column("pmlb", "diabetes", 0.4), "diabetes", DATA)],
    ids=lambda source: source.name,
)
def test_cells_give_the_documented_rows(source):
    wanted = {key_of(row): row for row in documented_rows()}
    for method in [("logit", "stacked"), ("gpc", "trusted"), ("mfgpc", "multi")]:
        cell = SplitCell.of(source, method=method[0], mode=method[1], seed=2)
        row = cell.row(**cell.compute())
        assert row["roc_auc"] == pytest.approx(wanted[key_of(row)]["roc_auc"], abs=0.001)
        assert (row["n_trusted"], row["n_cheap"]) == (75, 225)
        assert ("rho" in row) == (method == ("mfgpc", "multi"))


def test_quick_is_one_split_of_few_problems(tmp_path):
    cells = cells_of(["artificial"], str(tmp_path), quick=True)
    assert {cell.seed for cell in cells} == {0}
    assert {(c.column, c.noise) for c in cells} == {
        (column, noise) for column in ("2D", "5D", "10D", "20D") for noise in (0.2, 0.4)
    }
    assert {(c.method, c.mode) for c in cells} == set(RUNNERS) - {("gp-ma", "answers")}
    assert {c.seed for c in cells_of(["artificial"], str(tmp_path), quick=True, runs=2)} == {0, 2}
