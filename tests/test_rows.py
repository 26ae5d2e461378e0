"""Samples of rows: every level and every class has some, and weights undo what that changes."""

import numpy as np
import pytest

from polyfid.rows import Rows
from polyfid.rows.rows import RARE, keep_rare_classes
from polyfid.rows.survey import Block, Contents, Surveyor

N = 40_000


def make_rows(n_rare, n=N):
    rng = np.random.default_rng(0)
    y = np.zeros(n, dtype=int)
    y[rng.choice(n, n_rare, replace=False)] = 1
    return Rows.of(rng.normal(size=(n, 2)), np.arange(n) % 4 == 0, y)


def shares(rows, level):
    own = rows.level == level
    return np.bincount(rows.y[own], rows.weight[own], 2) / rows.weight[own].sum()


@pytest.mark.parametrize("n_rare", [3, 40, 400])
@pytest.mark.parametrize("size", [400, 1000, (300, 100)])
def test_rare_classes_are_in_every_sample(n_rare, size):
    rows = make_rows(n_rare)
    sample = rows.sample(size, np.random.RandomState(0))
    total = sum(size) if isinstance(size, tuple) else size
    assert len(sample) == total
    assert sample.weight.min() >= 1.0
    for level in (0, 1):
        there = int(((rows.level == level) & (rows.y == 1)).sum())
        found = int(((sample.level == level) & (sample.y == 1)).sum())
        n_level = int((sample.level == level).sum())
        assert found == min(there, RARE, n_level // 4)
        np.testing.assert_allclose(shares(sample, level), shares(rows, level), rtol=1e-12)


def test_classes_that_are_not_rare_are_sampled_as_they_come():
    rows = make_rows(N // 3)
    sample = rows.sample(1000, np.random.RandomState(0))
    assert (sample.weight == 1.0).all()
    assert abs(shares(sample, 0)[1] - 1 / 3) < 0.1


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_samples_of_few_rows_hold_what_they_can(size):
    kept, factor = keep_rare_classes(np.repeat([0, 1, 2], [90, 9, 1]), size)
    assert len(kept) == len(factor) == size
    assert (np.diff(kept) > 0).all()


@pytest.mark.parametrize("n_blocks", [1, 7])
def test_blocks_keep_rare_classes_too(n_blocks):
    rows, surveyor = make_rows(20), Surveyor(400, {}, seed=0)
    blocks = [
        Block(k, rows.x[i], rows.y[i], rows.level[i], (0, 1), rows.weight[i])
        for k, i in enumerate(np.array_split(np.arange(N), n_blocks))
    ]
    survey = sum(map(surveyor, blocks), Contents()).survey(None)
    assert len(survey.sample) == 800
    for level in (0, 1):
        there = int(((rows.level == level) & (rows.y == 1)).sum())
        found = int(((survey.sample.level == level) & (survey.sample.y == 1)).sum())
        assert found == there
        np.testing.assert_allclose(shares(survey.sample, level), shares(rows, level), rtol=1e-12)
