"""Answers of a crowd as labelled rows."""

import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from polyfid.crowd import annotators, answers_of, to_long, to_rows, workers
from polyfid.tables import diagnose, read_labelled

ITEMS = pd.DataFrame({"id": [3, 1, 2], "x": [0.3, 0.1, 0.2], "kind": ["c", "a", "b"]})
WIDE = pd.DataFrame(
    [[1, "yes", "yes", "no"], [2, "no", "yes", ""], [3, None, None, "no"]],
    columns=["song", "ann", "bob", "cy"],
)
LONG = pd.DataFrame(
    {
        "task": [1, 1, 1, 2, 2, 3],
        "worker": ["ann", "bob", "cy", "ann", "bob", "cy"],
        "label": ["yes", "yes", "no", "no", "yes", "no"],
    }
)
GOLD = pd.DataFrame({"task": [2], "label": ["yes"]})


def simulated(n_tasks=60, seed=0, classes=("a", "b", "c")):
    """Items, answers of six annotators, the first ones mostly wrong, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(classes, n_tasks)
    rows = []
    for w, skill in enumerate([0.35, 0.4, 0.45, 0.85, 0.9, 0.95]):
        for t in rng.choice(n_tasks, 3 * n_tasks // 4, replace=False):
            wrong = rng.choice([c for c in classes if c != truth[t]])
            rows.append((t, f"w{w}", truth[t] if rng.uniform() < skill else wrong))
    answers = pd.DataFrame(rows, columns=["task", "worker", "label"])
    items = pd.DataFrame({"id": np.arange(n_tasks), "x": rng.uniform(size=n_tasks)})
    return items, answers, pd.DataFrame({"task": np.arange(n_tasks), "label": truth})


def is_right(table, gold, task="id"):
    return table["label"] == gold.set_index("task")["label"].loc[table[task]].to_numpy()


def share_right(rows, gold):
    """How often labels are right, by level."""
    return is_right(rows, gold).groupby(rows["fidelity"], observed=True).mean()


# Forms of tables


def test_wide_and_long_tables_and_files_give_the_same(tmp_path):
    long = to_long(WIDE).sort_values(["task", "worker"], ignore_index=True)
    assert_frame_equal(long, LONG, check_dtype=False)
    expected = to_rows(ITEMS, LONG, GOLD)
    assert_frame_equal(to_rows(ITEMS, WIDE, GOLD), expected)
    files = [tmp_path / f"{name}.csv" for name in ("items", "wide", "gold")]
    for table, file in zip((ITEMS, WIDE, GOLD), files, strict=True):
        table.to_csv(file, index=False)
    assert_frame_equal(to_rows(*files), expected, check_dtype=False)


def test_form_overrides_detection():
    wide = WIDE.rename(columns={"bob": "label"})
    for table in (wide, LONG.set_axis(["song", "by", "genre"], axis=1)):
        with pytest.raises(ValueError, match=r"must be long, with columns 'task'.*worker="):
            to_long(table)
    twice = pd.concat([wide, wide.assign(song=[4, 5, 1])])  # tasks may have several rows
    long = to_long(twice, form="wide")
    assert set(long["worker"]) == {"ann", "label", "cy"}
    assert long["task"].tolist() == [1, 1, 1, 2, 2, 3, 4, 4, 4, 5, 5, 1]


def test_polars_comes_in_and_pandas_comes_out():
    rows = to_rows(pl.from_pandas(ITEMS), pl.from_pandas(WIDE), pl.from_pandas(GOLD))
    assert_frame_equal(rows, to_rows(ITEMS, LONG, GOLD), check_dtype=False)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (LONG.head(2), "answers: 2 rows repeat another one"),
        (LONG.head(2).assign(worker="dan", label=[None, " "]), "2 of 8 rows have no label"),
    ],
)
def test_rows_that_are_left_out_are_counted(more, message):
    with pytest.warns(UserWarning, match=message):
        rows = to_rows(ITEMS, pd.concat([LONG, more]))
    assert_frame_equal(rows, to_rows(ITEMS, LONG))


def test_ids_match_whatever_their_type():
    for dtype in (str, float, "Int64", "category"):
        rows = to_rows(ITEMS, LONG.astype({"task": dtype}), GOLD)
        assert_frame_equal(rows, to_rows(ITEMS, LONG, GOLD))


@pytest.mark.parametrize(
    ("ids", "tasks", "labels", "expected"),
    [
        (["07", "7"], ["07", "7"], ["a", "b"], [["07", "a"], ["7", "b"]]),
        (["10", "9", "-1"], [9, 10, -1], [True, False, True], [["-1", 1], ["9", 1], ["10", 0]]),
        ([1, 2], [1.0, 2.0], [1.0, 0.0], [[1, 1], [2, 0]]),
    ],
)
def test_ids_and_labels_keep_their_kind(ids, tasks, labels, expected):
    wide = pd.DataFrame({"song": tasks, "ann": labels, "bob": None})
    rows = to_rows(pd.DataFrame({"id": ids, "x": 0.0}), wide)
    assert rows[["id", "label"]].to_numpy().tolist() == expected
    kind = "b" if labels[0] is True else "i" if labels[0] == 1.0 else "O"
    assert rows["label"].to_numpy().dtype.kind == kind


# Levels


def test_each_answer_is_a_row():
    unlabelled = pd.DataFrame({"id": [9], "x": [9.0], "kind": ["z"]})
    rows = to_rows(pd.concat([ITEMS, unlabelled]), LONG, GOLD)
    assert list(rows.columns) == ["id", "x", "kind", "label", "fidelity", "weight", "worker"]
    assert rows["id"].tolist() == [1, 1, 1, 2, 2, 3, 2]
    assert "".join(rows["kind"]) == "aaabbcb"
    assert rows["label"].tolist() == ["yes", "yes", "no", "no", "yes", "no", "yes"]
    assert rows["worker"].tolist() == ["ann", "bob", "cy", "ann", "bob", "cy", "gold"]
    assert rows["fidelity"].dtype == pd.CategoricalDtype(["crowd", "gold"], ordered=True)


def test_ties_are_drawn_evenly_and_by_seed():
    n = 400
    items = pd.DataFrame({"id": range(n), "x": 0.0})
    answers = pd.DataFrame({"id": range(n), "ann": ["a"] * n, "bob": ["b"] * n})
    one, same, other = (
        to_rows(items, answers, level="majority", random_state=s) for s in (0, 0, 1)
    )
    assert_frame_equal(one, same)
    assert 150 < one["label"].eq("a").sum() < 250
    assert not one["label"].equals(other["label"])
    split = to_rows(items, answers.assign(cy="c"), level="majority", ties="split")
    assert split["label"].tolist() == ["a", "b", "c"] * n
    assert split["weight"].eq(1 / 3).all()


def test_groups_by_skill_separate_the_good_from_the_bad():
    items, answers, gold = simulated()
    rows = to_rows(items, answers, gold.head(10), level="skill")
    assert list(rows["fidelity"].cat.categories) == ["crowd-1", "crowd-2", "gold"]
    share = share_right(rows, gold)
    assert share["crowd-1"] < 0.55
    assert share["crowd-2"] > 0.8
    assert share["gold"] == 1.0
    for n_groups in (1, 3, 6):
        rows = to_rows(items, answers, level="skill", n_groups=n_groups)
        assert list(rows["fidelity"].cat.categories) == [f"crowd-{g + 1}" for g in range(n_groups)]
        assert (rows["fidelity"].value_counts() == len(answers) / n_groups).all()


@pytest.mark.parametrize("method", ["dawid-skene", "one-coin-dawid-skene", "glad", "mace", "m-msr"])
def test_aggregation_by_crowd_kit_beats_single_answers(method):
    pytest.importorskip("crowdkit")
    items, answers, gold = simulated(24)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    rows = to_rows(items, answers, aggregate=method)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert rows["id"].tolist() == sorted(set(answers["task"]))
    assert share_right(rows, gold).item() > is_right(answers, gold, "task").mean() + 0.1
    same = to_rows(ITEMS, LONG.assign(label="yes"), aggregate=method)
    assert same["label"].tolist() == ["yes"] * 3


@settings(max_examples=12, deadline=None)
@given(
    order=st.permutations(range(len(LONG))),
    items=st.permutations(range(3)),
    options=st.sampled_from(
        [{}, {"level": "majority"}, {"level": "majority", "ties": "split"}, {"level": "skill"}]
    ),
)
def test_the_order_of_tables_does_not_matter(order, items, options):
    expected = to_rows(ITEMS, LONG, GOLD, **options)
    assert_frame_equal(to_rows(ITEMS.iloc[items], LONG.iloc[order], GOLD, **options), expected)


# Annotators


def test_workers_are_ranked_by_skill():
    _, answers, gold = simulated()
    table = workers(answers)
    assert set(table["worker"][:3]) == {"w0", "w1", "w2"}
    assert table["skill"].is_monotonic_increasing
    true = is_right(answers, gold, "task").groupby(answers["worker"]).mean().loc[table["worker"]]
    assert np.abs(table["skill"].to_numpy() - true.to_numpy()).max() < 0.12


def test_the_majority_is_that_of_the_others():
    table = workers(LONG).set_index("worker")
    # ann: on task 1 "yes" ties among the others; on task 2 the only other answer differs.
    assert table.loc["ann", "agreement_majority"] == pytest.approx(0.25)
    # Nobody else answered task 3, which does not count.
    assert table.loc["cy", "agreement_majority"] == 0.0


def test_trusted_labels_correct_the_skill():
    _, answers, gold = simulated()
    by_others = workers(answers).set_index("worker")["skill"]
    table = workers(answers, gold.head(20)).set_index("worker")
    n, share = table["n_gold"], table["agreement_gold"]
    expected = (n * share + 10 * by_others.loc[table.index]) / (n + 10)
    assert np.allclose(table["skill"], expected)
    assert set(table["skill_from"]) == {"dawid-skene and gold"}


@pytest.mark.parametrize(("n_gold", "skill"), [(4, np.nan), (5, 0.4)])
def test_those_who_answer_alone_are_judged_by_enough_gold(n_gold, skill):
    answers = pd.DataFrame({"id": range(6), "ann": list("aaabbb"), "bob": [None] * 6})
    gold = pd.DataFrame({"task": range(6), "label": list("aabaaa")}).head(n_gold)
    (only,) = workers(answers, gold).to_dict("records")
    assert only["n_gold"] == n_gold
    assert only["skill"] == pytest.approx(skill, nan_ok=True)
    assert only["skill_from"] == ("gold" if n_gold == 5 else None)


def test_those_of_unknown_skill_count_as_average():
    items, answers, _ = simulated()
    alone = pd.DataFrame({"task": [999], "worker": ["new"], "label": ["a"]})
    items = pd.concat([items, pd.DataFrame({"id": [999], "x": 0.0})])
    rows = to_rows(items, pd.concat([answers, alone]), level="skill", n_groups=3)
    assert rows.set_index("id").loc[999, "fidelity"] == "crowd-2"


def test_without_crowd_kit_skill_is_the_agreement_with_the_majority(monkeypatch):
    for module in ("crowdkit", "crowdkit.aggregation"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.warns(UserWarning, match="crowd-kit is not installed"):
        table = workers(simulated()[1])
    assert np.allclose(table["skill"], table["agreement_majority"])


# Mistakes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item_id": "ids"}, "items: there is no column 'ids'; did you mean 'id'.*item_id= .--id"),
        ({"items": ITEMS.head(0)}, "items: there must be at least one row"),
        ({"items": ITEMS.assign(id=1)}, "items, row 2, column 'id': '1' occurred before"),
        ({"items": ITEMS.assign(weight=1)}, "items: columns 'weight' have names"),
        ({"items": ITEMS.set_axis(["id", "x", "x"], axis=1)}, "items: .*both called 'x'"),
        ({"items": ITEMS.head(1)}, "answers, row 1: 2 of 3 tasks are no items: '1', '2'"),
        ({"answers": LONG.assign(label=None)}, "answers: there are no answers"),
        ({"answers": LONG.assign(worker=None)}, "'worker': the cell is empty .6 in all"),
        ({"answers": pd.concat([LONG, LONG.replace("yes", "no")])}, "several labels that differ"),
        ({"answers": LONG.assign(label=["a", 1, 2, 3, 4, 5])}, "they are int and str"),
        ({"answers": LONG.assign(label=np.inf)}, "finite numbers.*they are float"),
        ({"gold": GOLD.head(0)}, "gold: there must be .*leave gold out"),
        ({"gold": GOLD.assign(label=None)}, "gold, row 1, column 'label': the cell is empty"),
        ({"gold": GOLD.assign(label=1)}, "nobody in answers gave: 1; answers have 'no', 'yes'"),
        ({"level": "worker"}, "level must be one of 'answer', 'majority', 'skill'"),
        ({"level": "majority", "aggregate": "glad"}, "pass level='answer', aggregate='glad'"),
        ({"n_groups": True}, "n_groups must be an integer from 1"),
        ({"level": "skill", "n_groups": 4}, "n_groups must be at most"),
        ({"level": "skill", "answers": LONG[2:5:2]}, "tasks that several annotators answered"),
        ({"gold": 7}, r"gold: a table must be a path.* got int"),
        ({"form": "tidy"}, "form must be"),
        ({"task": "label"}, "task, worker and label different columns"),
    ],
)
def test_mistakes_are_named(changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        to_rows(**{"items": ITEMS, "answers": LONG, "gold": GOLD, **changes})


def test_a_label_of_gold_that_nobody_gave_is_pointed_out():
    gold = pd.DataFrame({"task": [1, 2], "label": ["yes", "maybe"]})
    with pytest.warns(UserWarning, match="nobody in answers gave: 'maybe'"):
        to_rows(ITEMS, LONG, gold)


WORKERS, LABELS = st.sampled_from(["ann", "bob", ""]), st.sampled_from(["a", "b", None])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), WORKERS, LABELS), max_size=12))
def test_any_answers_give_rows_or_a_value_error(rows):
    items = pd.DataFrame({"id": range(4), "x": 0.0})
    answers = pd.DataFrame(rows, columns=["task", "worker", "label"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for level in ("answer", "majority", "skill"):
            try:
                made = to_rows(items, answers, level=level)
            except ValueError:
                continue
            assert made["label"].notna().all()
            assert (made["weight"] > 0).all()


# Common names, places, annotators


@pytest.mark.parametrize(
    "names",
    [
        ("id", "annotator", "answer"),
        ("Item_ID", "user", "rating"),
        ("question", "worker id", "Response"),
        ("task_id", "labeler", "label"),
    ],
)
def test_columns_are_recognised_by_common_names(names):
    named = LONG.set_axis(list(names), axis=1)
    assert_frame_equal(to_long(named), to_long(LONG))
    gold = GOLD.set_axis(["item", "answer"], axis=1)
    items = ITEMS.rename(columns={"id": "item_id"})
    rows = to_rows(items, named, gold)
    expected = to_rows(ITEMS, LONG, GOLD).rename(columns={"id": "item_id"})
    assert_frame_equal(rows, expected)


def test_exact_names_win_and_two_others_are_an_error():
    both = LONG.assign(id=range(6), annotator="x", rating="y")
    assert_frame_equal(to_long(both), to_long(LONG))
    with pytest.raises(ValueError, match=r"'item', 'question' could each be the task.*--task"):
        to_long(LONG.rename(columns={"task": "item"}).assign(question=1))
    with pytest.raises(ValueError, match=r"items: columns 'item', 'task_id' could.*--id"):
        to_rows(ITEMS.rename(columns={"id": "item"}).assign(task_id=1), LONG)
    chosen = to_long(LONG.rename(columns={"task": "item"}).assign(question=1), task="item")
    assert chosen.columns.tolist() == ["item", "worker", "label"]


def test_messages_about_rows_name_the_file_of_items(tmp_path):
    ITEMS.assign(x=[0.1, None, 0.2]).to_csv(tmp_path / "items.csv", index=False)
    table = read_labelled([to_rows(tmp_path / "items.csv", LONG, GOLD)])
    assert diagnose(table).problems[0].startswith("items.csv, row 3, column 'x': the cell is empty")
    LONG.to_csv(tmp_path / "said.csv", index=False)
    with pytest.raises(ValueError, match=r"gold has labels that nobody in answers \(said.csv\)"):
        to_rows(ITEMS, tmp_path / "said.csv", GOLD.assign(label="perhaps"))


def test_groups_of_skill_are_listed():
    items, answers, gold = simulated()
    rows = to_rows(items, answers, gold, level="skill", n_groups=2)
    groups = rows.attrs["groups"]
    assert list(groups) == ["crowd-1", "crowd-2"]
    assert {*groups["crowd-1"]} == {"w0", "w1", "w2"}
    assert groups["crowd-2"][-1] in {"w4", "w5"}


def test_annotators_are_reported():
    items, answers, gold = simulated(400, classes=("no", "yes"))
    table = annotators(answers, gold.head(300), items)
    assert set(table["worker"]) == {f"w{k}" for k in range(6)}
    assert {*table["worker"][:3]} == {"w0", "w1", "w2"}  # the least right first
    right = is_right(answers, gold, "task")
    for _, row in table.iterrows():
        own = answers["worker"] == row["worker"]
        judged = own & (answers["task"] < 300)
        assert row["n"] == own.sum()
        assert row["n_gold"] == judged.sum()
        assert row["agreement_gold"] == pytest.approx(right[judged].mean())
        assert row["agreement_gold_low"] < row["agreement_gold"] < row["agreement_gold_high"]
        truth = gold.set_index("task")["label"].loc[answers["task"]].to_numpy()
        for name, label in (("sensitivity", "yes"), ("specificity", "no")):
            assert row[name] == pytest.approx(right[judged & (truth == label)].mean())
    few = annotators(answers, gold.head(30)).set_index("worker")
    many = table.set_index("worker")
    width = few["agreement_gold_high"] - few["agreement_gold_low"]
    assert (width > many["agreement_gold_high"] - many["agreement_gold_low"]).all()
    assert not table["errs_most"].any()  # errors are anywhere
    assert "errs_most" not in few


def test_shares_of_nothing_are_missing():
    table = annotators(LONG).set_index("worker")
    assert table["agreement_gold"].isna().all()
    assert table["agreement_majority"].notna().all()
    classes = annotators(*simulated(60)[1:])
    assert classes.attrs["classes"] == ["a", "b", "c"]
    assert {"accuracy_a", "accuracy_b_low", "accuracy_c_high"} <= {*classes.columns}


def test_where_an_annotator_errs_is_named():
    rng = np.random.RandomState(0)
    items = pd.DataFrame({"id": range(200), "x": rng.uniform(size=200), "y": rng.uniform(size=200)})
    items["colour"] = "red"
    truth = rng.choice(["a", "b"], 200)
    other = np.where(truth == "a", "b", "a")
    high = (items["x"] > items["x"].median()).to_numpy()
    said = {
        "ann": np.where(high & (rng.uniform(size=200) < 0.6), other, truth),
        "bob": np.where(~high & (rng.uniform(size=200) < 0.6), other, truth),
        "cat": np.where(rng.uniform(size=200) < 0.3, other, truth),
    }
    wide = pd.DataFrame({"task": range(200), **said})
    gold = pd.DataFrame({"task": range(200), "label": truth})
    errs = annotators(wide, gold, items).set_index("worker")["errs_most"]
    assert errs["ann"].startswith("where x is above 0.")
    assert errs["bob"].startswith("where x is not above 0.")
    assert "elsewhere 0 of 100 (0 %)" in errs["ann"]
    assert errs["cat"] == ""


def test_annotators_of_labelled_rows():
    items, answers, gold = simulated(classes=("no", "yes"))
    expected = annotators(answers, gold, items)
    rows = to_rows(items, answers, gold)
    table = read_labelled([rows])
    assert_frame_equal(annotators(*answers_of(table)), expected)
    without_ids = read_labelled([rows.drop(columns="id")])
    made = annotators(*answers_of(without_ids))
    assert_frame_equal(made.drop(columns="errs_most"), expected.drop(columns="errs_most"))
    with pytest.raises(ValueError, match=r"says who gave its label.*--worker"):
        answers_of(read_labelled([rows.drop(columns="worker")]))
