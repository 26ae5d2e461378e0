"""What tests of several folders share."""

import logging

import pytest


@pytest.fixture(scope="session")
def cluster():
    """A Dask cluster of two worker processes.

    Starting one takes seconds: tests that use it have the mark ``xdist_group("cluster")``, so that
    one process of pytest-xdist starts it and no other.
    """
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",  # any port that is free
        silence_logs=logging.CRITICAL,
    ) as made:
        yield made
