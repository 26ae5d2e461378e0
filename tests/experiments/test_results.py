"""Rows averaged: means, intervals, who is best, what the paper's figure is compared with."""

import math

import numpy as np
import pytest
from result_rows import row, write_rows
from scipy import stats

from experiments.paper import COLUMNS, METRICS
from experiments.results import Mean, Results, close_to_best, mean_of

SPLICE = next(column for column in COLUMNS if column.name == "splice")
TWO_D = COLUMNS[0]
MUSIC = COLUMNS[-2]


GPC, XGB = ("gpc", "trusted"), ("xgb", "trusted")


def read(folder, rows):
    write_rows(folder, rows)
    return Results.read(folder)


# Means and intervals


def test_several_strata_give_the_interval_of_welch():
    a, b = [0.5, 0.7, 0.6], [0.9, 0.8, 0.95, 0.85]
    low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    mean, half = mean_of([a, b], [1.0, -1.0])
    assert (mean - half, mean + half) == pytest.approx((low, high))
    # One stratum gives the interval of Student.
    mean, half = mean_of([b])
    low, high = stats.t.interval(0.95, 3, np.mean(b), stats.sem(b))
    assert (mean - half, mean + half) == pytest.approx((low, high))
    # It is about the values within strata alone.
    assert mean_of([[0.5, 0.5], [0.9, 0.9]]) == (pytest.approx(0.7), 0.0)
    assert math.isnan(mean_of([[0.5, 0.6], [0.9]]).half)


def test_where_all_sets_went_in_the_interval_is_over_draws():
    values = {name: [0.8 + 0.01 * i, 0.82 + 0.01 * i] for i, name in enumerate(MUSIC.problems)}
    mean = Mean.of(values, MUSIC)
    assert mean.half == pytest.approx(mean_of(list(values.values())).half)
    assert mean.n == 20
    assert mean.reach > mean.half  # the paper's own splits scatter too


def test_where_sets_are_missing_the_interval_is_over_sets():
    values = {"df_0": [0.9, 0.9, 0.9], "df_1": [0.8, 0.8, 0.8], "df_2": [0.7, 0.7, 0.7]}
    mean = Mean.of(values, TWO_D)
    assert mean.half == pytest.approx(mean_of([[0.9, 0.8, 0.7]]).half)
    assert math.isnan(Mean.of({"df_0": [0.9, 0.8]}, TWO_D).half)
    # Every set has the same weight, and made ones are not the paper's.
    assert Mean.of({"df_0": [0.9], "df_1": [0.7, 0.7, 0.7]}, TWO_D).mean == pytest.approx(0.8)
    values = {f"made_{i}": [0.9 - 0.01 * i] * 2 for i in range(10)}
    assert Mean.of(values, TWO_D).half > 0.0


def test_the_paper_s_figure_is_within_near_or_off():
    mean = Mean.of({"splice": [0.89, 0.91, 0.90, 0.90]}, SPLICE)
    assert mean.half == pytest.approx(0.013, abs=1e-3)
    verdicts = [mean.compare(0.9 + gap) for gap in (0.01, 0.0133, 0.016, 0.03, -0.03)]
    assert verdicts == ["within", "within", "near", "off", "off"]
    assert Mean.of({"splice": [0.9]}, SPLICE).compare(0.5) == ""  # there is no interval
    # As many first splits as the paper has.
    assert Mean.of({"splice": [0.9, 0.8, 0.7, 0.1, 0.1]}, SPLICE).first == pytest.approx(0.8)
    # Rounding of the paper's figure is no difference.
    mean = Mean.of({"splice": [0.50041] * 3}, SPLICE)
    assert mean.half == pytest.approx(0.0, abs=1e-12)
    assert (mean.compare(0.5), mean.compare(0.499)) == ("within", "off")


def test_close_to_best_counts_ties_and_direction():
    values = {"a": 0.300, "b": 0.310, "c": 0.311, "d": math.nan}
    assert close_to_best(values, sign=-1) == {"a", "b"}
    assert close_to_best(values, sign=1) == {"b", "c"}
    assert close_to_best({"a": math.nan}, sign=1) == set()


# Reading


def test_no_rows_are_no_results(tmp_path):
    results = Results.read(tmp_path)
    assert (len(results.rows), results.columns, results.methods) == (0, [], [])
    assert (results.means("roc_auc"), results.compare()) == ({}, [])


def test_a_method_that_failed_everywhere_has_no_mean(tmp_path):
    results = read(tmp_path, [row(roc_auc=None, error="ValueError: no"), row(method="xgb")])
    mean = results.means("roc_auc")[SPLICE][GPC]
    assert math.isnan(mean.mean)
    assert mean.n == 0
    assert results.best(METRICS[0])[SPLICE] == {XGB}
    # Methods that the list does not have come last.
    results = read(tmp_path, [row(method="new", mode="odd"), row()])
    assert results.methods == [GPC, ("new", "odd")]


# Two methods


def test_differences_are_taken_split_by_split(tmp_path):
    rows = [row(seed=s, roc_auc=0.7 + 0.01 * s) for s in range(4)]
    rows += [row(seed=s, roc_auc=0.6 + 0.01 * s, method="xgb") for s in range(1, 5)]
    (mean, half), n = read(tmp_path, rows).difference("roc_auc", COLUMNS, GPC, XGB)
    assert (mean, n) == (pytest.approx(0.1), 3)
    assert half == pytest.approx(0.0, abs=1e-12)
    # There is no difference without common splits.
    results = read(tmp_path, [row(), row(method="xgb", seed=2)])
    assert results.difference("roc_auc", COLUMNS, GPC, XGB) is None


def test_in_a_difference_columns_have_the_same_weight(tmp_path):
    rows = []
    for column, gap, n in (("splice", 0.1, 4), ("german", 0.3, 2)):
        for seed in range(n):
            what = {"column": column, "problem": column, "seed": seed}
            rows += [row(**what, roc_auc=0.5 + gap), row(**what, method="xgb", roc_auc=0.5)]
    mean, _ = read(tmp_path, rows).difference("roc_auc", COLUMNS, GPC, XGB)
    assert mean.mean == pytest.approx(0.2)
