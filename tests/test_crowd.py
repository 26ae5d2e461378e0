"""Answers of a crowd as rows of levels."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from polyfid import MultiFidelityClassifier
from polyfid.crowd import read_long, read_wide, to_long, to_rows, workers
from polyfid.kernels import RBF

ITEMS = pd.DataFrame({"id": [3, 1, 2], "x": [0.3, 0.1, 0.2], "kind": ["c", "a", "b"]})
LONG = pd.DataFrame(
    [
        (1, "ann", "yes"),
        (1, "bob", "yes"),
        (1, "cy", "no"),
        (2, "ann", "no"),
        (2, "bob", "yes"),
        (3, "cy", "no"),
    ],
    columns=["task", "worker", "label"],
)
WIDE = pd.DataFrame(
    {
        "song": [1, 2, 3],
        "ann": ["yes", "no", None],
        "bob": ["yes", "yes", None],
        "cy": ["no", "", "no"],
    }
)
GOLD = pd.DataFrame({"task": [2], "label": ["yes"]})


def simulated(n_tasks=60, seed=0, classes=("a", "b", "c")):
    """Answers of six annotators, the first ones mostly wrong, and the truth."""
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


# Forms of tables


def test_a_wide_table_becomes_long():
    long = to_long(WIDE)
    assert_frame_equal(
        long.sort_values(["task", "worker"], ignore_index=True),
        LONG,
        check_dtype=False,
    )


def test_wide_and_long_answers_give_the_same_rows():
    assert_frame_equal(to_rows(ITEMS, WIDE, GOLD), to_rows(ITEMS, LONG, GOLD))


def test_whole_numbers_stay_whole_in_a_wide_table_with_gaps():
    wide = pd.DataFrame({"id": [1, 2], "ann": [1.0, np.nan], "bob": [0, 1]})
    rows = to_rows(pd.DataFrame({"id": [1, 2], "x": [0.0, 1.0]}), wide)
    assert rows["label"].tolist() == [1, 0, 1]
    assert rows["label"].dtype.kind == "i"


@pytest.mark.parametrize("columns", [["id", "annotator", "label"], ["id", "annotator", "answer"]])
def test_a_long_table_of_other_names_is_not_taken_for_a_wide_one(columns):
    with pytest.raises(ValueError, match=r"answers must be long, with columns 'task'.*worker="):
        to_long(LONG.set_axis(columns, axis=1))


def test_names_of_columns_can_be_given():
    renamed = LONG.set_axis(["id", "annotator", "label"], axis=1)
    rows = to_rows(
        ITEMS, renamed, GOLD.rename(columns={"task": "id"}), task="id", worker="annotator"
    )
    assert_frame_equal(rows, to_rows(ITEMS, LONG, GOLD))


def test_form_overrules_the_guess():
    wide = WIDE.rename(columns={"bob": "label"})
    with pytest.raises(ValueError, match="answers must be long"):
        to_long(wide)
    assert set(to_long(wide, form="wide")["worker"]) == {"ann", "label", "cy"}


def test_files_are_read(tmp_path):
    LONG.to_csv(tmp_path / "long.csv", index=False)
    WIDE.to_csv(tmp_path / "wide.csv", index=False)
    expected = to_rows(ITEMS, LONG)
    assert_frame_equal(to_rows(ITEMS, read_long(tmp_path / "long.csv")), expected)
    assert_frame_equal(to_rows(ITEMS, read_wide(tmp_path / "wide.csv")), expected)


def test_polars_comes_in_and_pandas_comes_out():
    wide = pl.DataFrame({"song": [1, 2], "ann": ["yes", None], "bob": ["no", "yes"]})
    items = pl.DataFrame({"id": [1, 2], "x": [0.1, None]})
    gold = pl.DataFrame({"task": [1], "label": pl.Series(["yes"], dtype=pl.Categorical)})
    rows = to_rows(items, wide, gold)
    assert isinstance(rows, pd.DataFrame)
    assert rows["label"].tolist() == ["yes", "no", "yes", "yes"]


def test_rows_that_repeat_are_counted_and_left_out():
    with pytest.warns(UserWarning, match="answers: 2 rows repeat another one"):
        rows = to_rows(ITEMS, pd.concat([LONG, LONG.head(2)]))
    assert_frame_equal(rows, to_rows(ITEMS, LONG))


def test_rows_without_a_label_are_counted_and_left_out():
    more = pd.DataFrame([(1, "dan", None), (2, "dan", " ")], columns=LONG.columns)
    with pytest.warns(UserWarning, match="2 of 8 rows have no label"):
        rows = to_rows(ITEMS, pd.concat([LONG, more]))
    assert_frame_equal(rows, to_rows(ITEMS, LONG))


# Levels


def test_each_answer_is_a_row():
    rows = to_rows(ITEMS, LONG, GOLD)
    assert list(rows.columns) == ["id", "x", "kind", "label", "fidelity", "weight", "worker"]
    assert rows["id"].tolist() == [1, 1, 1, 2, 2, 3, 2]
    assert rows["kind"].tolist() == ["a", "a", "a", "b", "b", "c", "b"]
    assert rows["label"].tolist() == ["yes", "yes", "no", "no", "yes", "no", "yes"]
    assert rows["worker"].tolist() == ["ann", "bob", "cy", "ann", "bob", "cy", "gold"]
    assert rows["weight"].eq(1.0).all()
    assert rows["fidelity"].dtype.ordered
    assert list(rows["fidelity"].cat.categories) == ["crowd", "gold"]
    assert rows["fidelity"].tolist() == ["crowd"] * 6 + ["gold"]


def test_without_gold_there_is_one_level():
    assert list(to_rows(ITEMS, LONG)["fidelity"].cat.categories) == ["crowd"]


def test_items_without_labels_give_no_rows():
    more = pd.concat([ITEMS, pd.DataFrame({"id": [9], "x": [9.0], "kind": ["z"]})])
    assert_frame_equal(to_rows(more, LONG, GOLD), to_rows(ITEMS, LONG, GOLD))


def test_majority_with_a_tie_split():
    rows = to_rows(ITEMS, LONG, level="majority", ties="split")
    assert rows[["id", "label", "weight"]].to_numpy().tolist() == [
        [1, "yes", 1.0],
        [2, "no", 0.5],
        [2, "yes", 0.5],
        [3, "no", 1.0],
    ]
    assert "worker" not in rows


def test_a_tie_of_three_is_split_in_three():
    answers = pd.DataFrame({"id": [1], "ann": ["a"], "bob": ["b"], "cy": ["c"]})
    rows = to_rows(ITEMS, answers, level="majority", ties="split")
    assert rows["weight"].tolist() == [1 / 3] * 3


def test_ties_are_drawn_evenly_and_by_seed():
    n = 400
    items = pd.DataFrame({"id": range(n), "x": 0.0})
    answers = pd.DataFrame({"id": range(n), "ann": ["a"] * n, "bob": ["b"] * n})
    first, again, other = (
        to_rows(items, answers, level="majority", random_state=s) for s in (0, 0, 1)
    )
    assert_frame_equal(first, again)
    assert 150 < first["label"].eq("a").sum() < 250
    assert not first["label"].equals(other["label"])
    assert first["weight"].eq(1.0).all()


def test_groups_by_skill_part_the_good_from_the_bad():
    items, answers, gold = simulated()
    rows = to_rows(items, answers, gold.head(10), level="skill")
    assert list(rows["fidelity"].cat.categories) == ["crowd-1", "crowd-2", "gold"]
    right = rows["label"] == gold.set_index("task")["label"].loc[rows["id"]].to_numpy()
    share = right.groupby(rows["fidelity"], observed=True).mean()
    assert share["crowd-1"] < 0.55
    assert share["crowd-2"] > 0.8
    assert share["gold"] == 1.0
    counts = rows["fidelity"].value_counts()
    assert counts["crowd-1"] == counts["crowd-2"] == len(answers) / 2


@pytest.mark.parametrize("n_groups", [1, 3, 6])
def test_any_number_of_groups(n_groups):
    items, answers, _ = simulated()
    levels = to_rows(items, answers, level="skill", n_groups=n_groups)["fidelity"]
    assert list(levels.cat.categories) == [f"crowd-{g + 1}" for g in range(n_groups)]
    assert (levels.value_counts() == len(answers) / n_groups).all()


def test_groups_can_be_aggregated():
    items, answers, _ = simulated()
    rows = to_rows(items, answers, level="skill", aggregate="majority")
    assert not rows.duplicated(["id", "fidelity"]).any()
    assert rows["id"].nunique() == answers["task"].nunique()


@pytest.mark.parametrize(
    "method",
    [
        "dawid-skene",
        "one-coin-dawid-skene",
        pytest.param("glad", marks=pytest.mark.slow),
        "mace",
        "m-msr",
    ],
)
def test_aggregation_by_crowd_kit_beats_single_answers(method):
    pytest.importorskip("crowdkit")
    items, answers, gold = simulated(24)
    rows = to_rows(items, answers, aggregate=method)
    truth = gold.set_index("task")["label"]
    assert rows["id"].tolist() == sorted(set(answers["task"]))
    assert rows["weight"].eq(1.0).all()
    single = (answers["label"] == truth.loc[answers["task"]].to_numpy()).mean()
    assert (rows["label"] == truth.loc[rows["id"]].to_numpy()).mean() > single + 0.1


def test_a_small_aggregation_by_glad():
    pytest.importorskip("crowdkit")
    answers = pd.DataFrame({"id": [1, 2], "ann": [0, 1], "bob": [0, 1], "cy": [0, 0]})
    rows = to_rows(ITEMS, answers, aggregate="glad")
    assert rows["label"].tolist() == [0, 1]


def test_aggregation_leaves_the_global_random_state_alone():
    pytest.importorskip("crowdkit")
    items, answers, _ = simulated(20)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    to_rows(items, answers, aggregate="dawid-skene")
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("method", ["dawid-skene", "one-coin-dawid-skene", "glad", "mace"])
def test_aggregation_where_all_say_the_same(method):
    rows = to_rows(ITEMS, LONG.assign(label="yes"), aggregate=method)
    assert rows["label"].tolist() == ["yes"] * 3


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


def test_the_order_of_a_larger_table_does_not_matter():
    items, answers, gold = simulated()
    shuffled = [t.sample(frac=1, random_state=3) for t in (items, answers, gold)]
    for options in ({"level": "skill", "n_groups": 3}, {"aggregate": "dawid-skene"}):
        assert_frame_equal(to_rows(*shuffled, **options), to_rows(items, answers, gold, **options))


def test_tables_are_left_as_they_are():
    copies = [t.copy() for t in (ITEMS, LONG, GOLD)]
    to_rows(ITEMS, LONG, GOLD, level="skill")
    for table, copy in zip((ITEMS, LONG, GOLD), copies, strict=True):
        assert_frame_equal(table, copy)


@pytest.mark.parametrize("kind", ["text", "float", "Int64", "category"])
def test_ids_match_whatever_their_type(kind):
    dtype = {"text": str, "float": float}.get(kind, kind)
    rows = to_rows(ITEMS, LONG.astype({"task": dtype}), GOLD)
    assert_frame_equal(rows, to_rows(ITEMS, LONG, GOLD))


def test_ids_with_leading_zeros_are_text():
    items = pd.DataFrame({"id": ["07", "7"], "x": [0.0, 1.0]})
    answers = pd.DataFrame({"task": ["07", "7"], "worker": "ann", "label": ["a", "b"]})
    assert to_rows(items, answers)[["id", "label"]].to_numpy().tolist() == [["07", "a"], ["7", "b"]]


def test_whole_numbers_sort_by_value():
    items = pd.DataFrame({"id": ["10", "9", "-1"], "x": 0.0})
    answers = pd.DataFrame({"task": [9, 10, -1], "worker": 1, "label": [True, False, True]})
    rows = to_rows(items, answers)
    assert rows["id"].tolist() == ["-1", "9", "10"]
    assert rows["label"].dtype == bool


def test_the_rows_train_a_classifier():
    rng = np.random.default_rng(0)
    items, answers, gold = simulated(40, classes=("no", "yes"))
    items["x"] = np.where(gold["label"] == "yes", 1.0, -1.0) + 0.3 * rng.normal(size=40)
    rows = to_rows(items, answers, gold.head(10), level="skill")
    model = MultiFidelityClassifier(kernel=1.0 * RBF(), random_state=0)
    model.fit(rows[["x"]], rows["label"], fidelity=rows["fidelity"], sample_weight=rows["weight"])
    assert model.levels_ == ("crowd-1", "crowd-2", "gold")
    assert model.score(items[["x"]], gold["label"]) > 0.9


def test_annotators_can_be_passed_on():
    items, answers, gold = simulated(25, classes=("no", "yes"))
    rows = to_rows(items, answers, gold.head(10))
    model = MultiFidelityClassifier(kernel=1.0 * RBF(), label_noise="annotator", random_state=0)
    model.fit(rows[["x"]], rows["label"], fidelity=rows["fidelity"], annotator=rows["worker"])
    assert "w3" in set(model.annotators_)


# Annotators


def test_workers_are_ranked_by_skill():
    _, answers, gold = simulated()
    table = workers(answers)
    assert list(table.columns) == [
        "worker",
        "n",
        "agreement_majority",
        "n_gold",
        "agreement_gold",
        "skill",
        "skill_from",
    ]
    assert set(table["worker"][:3]) == {"w0", "w1", "w2"}
    assert table["skill"].is_monotonic_increasing
    assert table["n"].sum() == len(answers)
    assert table["agreement_gold"].isna().all()
    right = answers["label"] == gold.set_index("task")["label"].loc[answers["task"]].to_numpy()
    true = right.groupby(answers["worker"]).mean().loc[table["worker"]]
    assert np.abs(table["skill"].to_numpy() - true.to_numpy()).max() < 0.12


def test_the_majority_is_that_of_the_others():
    table = workers(LONG).set_index("worker")
    # ann: of bob and cy on task 1, "yes" ties; bob alone on task 2 says otherwise.
    assert table.loc["ann", "agreement_majority"] == pytest.approx(0.25)
    # Nobody else answered task 3, which does not count.
    assert table.loc["cy", "agreement_majority"] == 0.0


def test_trusted_labels_correct_what_others_say():
    _, answers, gold = simulated()
    by_others = workers(answers).set_index("worker")["skill"]
    table = workers(answers, gold.head(20)).set_index("worker")
    n, share = table["n_gold"], table["agreement_gold"]
    expected = (n * share + 10 * by_others.loc[table.index]) / (n + 10)
    assert np.allclose(table["skill"], expected)
    assert set(table["skill_from"]) == {"dawid-skene and gold"}


def test_trusted_labels_reveal_a_crowd_that_errs_together():
    _, answers, gold = simulated(200)
    wrong = answers["worker"] < "w3"  # these now agree on the next class
    truth = gold.set_index("task")["label"].loc[answers["task"]].to_numpy()
    together = pd.Series(truth, index=answers.index).replace({"a": "b", "b": "c", "c": "a"})
    answers["label"] = answers["label"].mask(wrong, together)
    table = workers(answers, gold).set_index("worker")
    assert table["skill"].loc[["w0", "w1", "w2"]].max() < table["skill"].loc["w3"]


@pytest.mark.parametrize(("n_gold", "skill"), [(4, np.nan), (5, 0.4)])
def test_those_who_answer_alone_are_judged_by_enough_gold(n_gold, skill):
    answers = pd.DataFrame({"id": range(6), "ann": list("aaabbb"), "bob": [None] * 6})
    gold = pd.DataFrame({"task": range(6), "label": list("aabaaa")}).head(n_gold)
    (only,) = workers(answers, gold).to_dict("records")
    assert only["n_gold"] == n_gold
    assert only["skill"] == pytest.approx(skill, nan_ok=True)
    assert only["skill_from"] == ("gold" if n_gold == 5 else None)


def test_nothing_is_known_about_those_who_answer_alone():
    answers = pd.DataFrame({"task": [1, 2], "worker": ["ann", "bob"], "label": ["a", "b"]})
    table = workers(answers)
    assert table["skill"].isna().all()
    assert table["skill_from"].isna().all()
    with pytest.raises(ValueError, match="tasks that several annotators answered"):
        to_rows(ITEMS, answers, level="skill")


def test_a_stranger_counts_as_average():
    _, answers, _ = simulated()
    alone = pd.DataFrame({"task": [999], "worker": ["new"], "label": ["a"]})
    items = pd.DataFrame({"id": [*range(60), 999], "x": 0.0})
    rows = to_rows(items, pd.concat([answers, alone]), level="skill", n_groups=3)
    assert rows.set_index("id").loc[999, "fidelity"] == "crowd-2"


# Without crowd-kit


def test_without_crowd_kit_an_aggregate_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "crowdkit", None)
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", None)
    with pytest.raises(ImportError, match=r'pip install "polyfid\[crowd\]"'):
        to_rows(ITEMS, LONG, aggregate="dawid-skene")


def test_without_crowd_kit_skill_is_the_agreement_with_the_majority(monkeypatch):
    monkeypatch.setitem(sys.modules, "crowdkit", None)
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", None)
    items, answers, _ = simulated()
    with pytest.warns(UserWarning, match="crowd-kit is not installed"):
        table = workers(answers)
    assert np.allclose(table["skill"], table["agreement_majority"])
    with pytest.warns(UserWarning, match="crowd-kit is not installed"):
        rows = to_rows(items, answers, level="skill")
    assert rows["fidelity"].nunique() == 2


def test_crowd_kit_is_imported_only_where_it_is_needed():
    code = (
        "import sys, pandas as pd; from polyfid.crowd import to_rows;"
        "to_rows(pd.DataFrame({'id': [1], 'x': [0.0]}),"
        " pd.DataFrame({'task': [1], 'worker': [1], 'label': [1]}), level='majority');"
        "assert 'crowdkit' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Mistakes


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        ({"items": ITEMS.drop(columns="id")}, {}, "items has no column 'id'.*item_id="),
        ({"items": ITEMS.rename(columns={"id": "ids"})}, {}, "did you mean 'ids'"),
        ({"items": ITEMS.head(0)}, {}, "items has no rows"),
        ({"items": pd.DataFrame()}, {}, "items has no columns"),
        ({"items": "items.csv"}, {}, "items must be a pandas or polars data frame, got str"),
        ({"items": ITEMS.assign(id=1)}, {}, "items, column 'id': '1' occur several times"),
        ({"items": ITEMS.assign(weight=1)}, {}, "items has columns 'weight'"),
        ({"items": ITEMS.assign(id=[1, None, 2])}, {}, "'id': no value in row 2"),
        ({"items": ITEMS.set_axis(["id", "x", "x"], axis=1)}, {}, "several columns named 'x'"),
        ({"items": ITEMS.head(1)}, {}, "answers has 2 of 3 tasks that are no items: '1', '2'"),
        ({"answers": LONG.head(0)}, {}, "answers has no rows"),
        ({"answers": LONG.assign(label=None)}, {}, "no label in any row"),
        ({"answers": LONG.assign(worker=None)}, {}, "'worker': no value in row 1.*6 in all"),
        ({"answers": WIDE.assign(ann=None, bob=None, cy=" ")}, {}, "all cells are empty"),
        ({"answers": WIDE[["song"]]}, {"form": "wide"}, "one column an annotator"),
        ({"answers": pd.concat([WIDE, WIDE])}, {"form": "wide"}, "one row a task"),
        (
            {"answers": pd.concat([LONG, LONG.replace({"yes": "no"})])},
            {},
            r"task and worker \('1', 'ann'\).*have several labels that differ",
        ),
        ({"answers": LONG.assign(label=["a", 1, 2, 3, 4, 5])}, {}, "holds numbers and text"),
        ({"answers": LONG.assign(label=np.inf)}, {}, "infinite label"),
        ({"answers": LONG.assign(label=[[1]] * 6)}, {}, "values of type list"),
        ({"gold": GOLD.head(0)}, {}, "gold has no rows.*leave gold out"),
        ({"gold": GOLD.drop(columns="label")}, {}, "gold has no column 'label'"),
        ({"gold": GOLD.assign(task=99)}, {}, "gold has 1 of 1 tasks that are no items: '99'"),
        ({"gold": GOLD.assign(label=None)}, {}, "gold, column 'label': no label in row 1"),
        ({"gold": GOLD.assign(label=1)}, {}, "answers are text and those of gold numbers"),
        ({"gold": GOLD.assign(label="Yes")}, {}, "no label of gold .* occurs in answers"),
        (
            {"gold": pd.concat([GOLD, GOLD.assign(label="no")])},
            {},
            "gold: task '2' has several labels that differ",
        ),
        ({}, {"level": "worker"}, "level must be one of 'answer', 'majority', 'skill'"),
        ({}, {"ties": "first"}, "ties must be one of"),
        ({}, {"aggregate": "kos"}, "aggregate must be one of None, 'majority', 'dawid-skene'"),
        ({}, {"level": "majority", "aggregate": "glad"}, "pass level='answer', aggregate='glad'"),
        ({}, {"n_groups": 0}, "n_groups must be an integer from 1"),
        ({}, {"n_groups": True}, "n_groups must be an integer from 1"),
        ({}, {"level": "skill", "n_groups": 4}, "n_groups must be at most"),
        ({}, {"form": "tidy"}, "form must be"),
        ({}, {"task": "label"}, "three different columns"),
    ],
)
def test_mistakes_are_named(tables, options, message):
    given = {"items": ITEMS, "answers": LONG, "gold": GOLD} | tables
    with pytest.raises(ValueError, match=message):
        to_rows(**given, **options)


def test_a_label_of_gold_that_nobody_gave_is_pointed_out():
    gold = pd.DataFrame({"task": [1, 2], "label": ["yes", "maybe"]})
    with pytest.warns(UserWarning, match="nobody in answers gave: 'maybe'"):
        rows = to_rows(ITEMS, LONG, gold)
    assert rows["label"].tolist()[-2:] == ["yes", "maybe"]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.sampled_from(["ann", "bob", ""]),
            st.sampled_from(["a", "b", None]),
        ),
        max_size=12,
    )
)
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


# Real answers


@pytest.fixture(scope="module")
def music():
    folder = Path(os.environ.get("POLYFID_DATA", "")) / "crowd"
    files = [folder / f"music_genre_{name}.csv.gz" for name in ("items", "answers")]
    if not all(file.is_file() for file in files):
        pytest.skip("the environment variable POLYFID_DATA does not lead to the music genres")
    items, answers = (pd.read_csv(file) for file in files)
    return items, answers.rename(columns={"id": "task", "annotator": "worker"})


def test_music_genres_by_skill(music):
    items, answers = music
    target = items.set_index("id")["target"]
    rows = to_rows(items.drop(columns="target"), answers, level="skill")
    right = rows["label"] == target.loc[rows["id"]].to_numpy()
    share = right.groupby(rows["fidelity"], observed=True).mean()
    assert len(rows) == 2945
    assert share["crowd-1"] < 0.4
    assert share["crowd-2"] > 0.75


def test_music_genres_by_majority(music):
    items, answers = music
    target = items.set_index("id")["target"]
    rows = to_rows(items.drop(columns="target"), answers, level="majority", ties="split")
    right = rows["label"] == target.loc[rows["id"]].to_numpy()
    assert rows["weight"].sum() == pytest.approx(700)
    assert np.average(right, weights=rows["weight"]) == pytest.approx(0.7, abs=0.03)
