"""Table models on a cluster of two worker processes: as in one process."""

from pathlib import Path

import numpy as np
import pytest
from made_tables import MEASURED, fit_files, make_measured, make_rows

from polyfid.tables import TableError

dask_distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
large = pytest.importorskip("polyfid.tables.large")

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.slow]


@pytest.fixture(scope="module")
def client(cluster):
    with dask_distributed.Client(cluster, set_as_default=False) as client:
        yield client


TIDY = make_rows()


@pytest.fixture(scope="module")
def model():
    return fit_files([TIDY], rows=60)


def test_a_fit_is_that_of_one_process(client, model):
    there = fit_files([TIDY], rows=60, client=client)
    assert list(there.classifier.feature_names_in_) == list(there.encoder.names_)
    np.testing.assert_allclose(
        there.predict(TIDY).filter(like="p_"), model.predict(TIDY).filter(like="p_"), atol=1e-8
    )


def test_numbers_are_fitted_there_too(client):
    rows = make_measured()
    here = fit_files([rows], MEASURED, rows=40).predict(rows)
    there = fit_files([rows], MEASURED, rows=40, client=client).predict(rows)
    names = ["p_good", "value_simulation", "value_simulation_sd"]
    np.testing.assert_allclose(there[names], here[names], atol=1e-8)


def test_predictions_come_in_order(client, model):
    blocks = [TIDY[start : start + 9] for start in range(0, 300, 9)]
    here = list(model.predict_blocks(blocks))
    there = list(model.predict_blocks(iter(blocks), client=client))
    pd.testing.assert_frame_equal(pd.concat(there), pd.concat(here), rtol=1e-12)


def test_errors_and_warnings_come_from_workers(client, model, tmp_path):
    new = TIDY.assign(kind="brand-new")
    with pytest.warns(UserWarning, match=r"300 rows are in no category.*brand-new"):
        list(model.predict_blocks([new[:100], new[100:]], client=client))
    path = tmp_path / "new.csv"
    TIDY.assign(heat=[*TIDY["heat"][:-1], None]).to_csv(path, index=False)
    with pytest.raises(TableError, match=r"new.csv, row 301, column 'heat': the cell is empty"):
        list(model.predict_blocks(model.read_blocks(path, rows=50), client=client))


def test_a_folder_that_workers_do_not_see(client, monkeypatch):
    monkeypatch.setattr(large, "_is_there", lambda folder: Path(folder) is None)
    with pytest.raises(ValueError, match=r"worker tcp.* does not see the folder .*--spool"):
        fit_files([TIDY], client=client)
