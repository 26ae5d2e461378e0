"""Exports of Label Studio, and predictions for it."""

import contextlib
import copy
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyfid.crowd import to_rows
from polyfid.labelstudio import Export, LabelStudioError, read_export, write_predictions


def choice(label, name="genre"):
    return {
        "id": "r1",
        "type": "choices",
        "from_name": name,
        "to_name": "song",
        "origin": "manual",
        "value": {"choices": [label]},
    }


def annotation(who, *results, **more):
    return {"id": 1, "completed_by": who, "was_cancelled": False, "result": list(results)} | more


def task(i, data, *annotations):
    return {
        "id": i,
        "data": data,
        "annotations": list(annotations),
        "predictions": [],
        "project": 1,
    }


ANN = {"id": 1, "email": "ann@example.org", "first_name": "Ann", "last_name": ""}
BOB = {"id": 2, "email": "bob@example.org", "first_name": "", "last_name": ""}
PROJECT = [
    task(
        7,
        {"tempo": 120, "title": "One", "parts": [1, 2]},
        annotation(ANN, choice("rock")),
        annotation(BOB, choice("pop")),
    ),
    task(
        8,
        {"tempo": 90.5, "title": "Two", "parts": []},
        annotation(ANN, choice("pop"), ground_truth=True),
        annotation(BOB, choice("pop")),
        annotation(BOB, was_cancelled=True),
    ),
    task(9, {"tempo": None, "title": "Three"}),
]


def rows_of(frame):
    return frame.to_numpy().tolist()


# Exports


def test_an_export_becomes_three_tables():
    export = read_export(PROJECT)
    assert isinstance(export, Export)
    assert rows_of(export.answers) == [
        [7, "ann@example.org", "rock"],
        [7, "bob@example.org", "pop"],
        [8, "bob@example.org", "pop"],
    ]
    assert rows_of(export.gold) == [[8, "pop"]]
    assert list(export.items.columns) == ["id", "tempo", "title"]
    assert export.items["id"].tolist() == [7, 8, 9]
    assert export.items["tempo"].tolist()[:2] == [120.0, 90.5]
    assert np.isnan(export.items["tempo"][2])


def test_the_tables_go_on_to_rows():
    rows = to_rows(*read_export(PROJECT, features=["tempo"]))
    assert rows["fidelity"].tolist() == ["crowd"] * 3 + ["gold"]
    assert rows["tempo"].tolist() == [120.0, 120.0, 90.5, 90.5]


def test_without_trusted_labels_gold_is_none():
    export = read_export(PROJECT[:1])
    assert export.gold is None
    assert len(to_rows(*export)) == 2


def test_a_file_is_read_with_or_without_a_mark_of_its_encoding(tmp_path):
    for encoding in ("utf-8", "utf-8-sig"):
        file = tmp_path / "export.json"
        file.write_text(json.dumps(PROJECT, ensure_ascii=False), encoding=encoding)
        for source in (file, str(file)):
            assert read_export(source).answers.equals(read_export(PROJECT).answers)


def test_a_single_task_may_stand_alone():
    assert len(read_export(PROJECT[0]).answers) == 2


@pytest.mark.parametrize("who", [2, "2", "bob@example.org"])
def test_trusted_annotators_give_gold(who):
    export = read_export(PROJECT, trusted=[who])
    assert rows_of(export.answers) == [[7, "ann@example.org", "rock"]]
    assert dict(rows_of(export.gold)) == {7: "pop", 8: "pop"}


def test_the_first_of_trusted_annotators_who_differ_counts():
    for order, label in (([1, 2], "rock"), ([2, 1], "pop")):
        assert dict(rows_of(read_export(PROJECT, trusted=order).gold))[7] == label


def test_ground_truth_comes_before_trusted_annotators():
    project = [
        task(
            1,
            {"x": 1},
            annotation(2, choice("pop")),
            annotation(1, choice("rock"), ground_truth=True),
        )
    ]
    assert rows_of(read_export(project, trusted=[2]).gold) == [[1, "rock"]]


def test_annotators_may_be_numbers():
    project = [task(1, {"x": 1}, annotation(10, choice("rock")), annotation(11, choice("pop")))]
    assert read_export(project).answers["worker"].tolist() == ["10", "11"]


def test_the_last_of_several_annotations_counts():
    early = annotation(1, choice("rock"), updated_at="2024-01-01T00:00:00Z")
    late = annotation(1, choice("pop"), updated_at="2024-02-01T00:00:00Z")
    for both in ((early, late), (late, early)):
        assert rows_of(read_export([task(1, {"x": 1}, *both)]).answers) == [[1, "1", "pop"]]


def test_other_controls_are_ignored():
    remark = {"type": "textarea", "from_name": "why", "value": {"text": ["loud"]}}
    project = [task(1, {"x": 1}, annotation(1, remark, choice("rock")))]
    assert read_export(project).answers["label"].tolist() == ["rock"]


def test_one_of_several_controls_is_chosen_by_name():
    project = [task(1, {"x": 1}, annotation(1, choice("rock"), choice("sad", "mood")))]
    with pytest.raises(
        LabelStudioError, match="choices of 'genre', 'mood'; say which by from_name"
    ):
        read_export(project)
    assert read_export(project, from_name="mood").answers["label"].tolist() == ["sad"]


def test_annotations_without_a_choice_are_counted():
    project = [task(1, {"x": 1}, annotation(1, choice("rock")), annotation(2))]
    with pytest.warns(UserWarning, match="1 of 2 annotations make no choice for 'genre'"):
        assert len(read_export(project).answers) == 1


def test_fields_that_would_clash_get_another_name():
    project = [task(1, {"id": 5, "label": "x"}, annotation(1, choice("rock")))]
    items = read_export(project).items
    assert rows_of(items) == [[1, 5.0, "x"]]
    assert list(items.columns) == ["id", "data.id", "data.label"]
    to_rows(*read_export(project))


def test_fields_of_several_types():
    project = [
        task(1, {"mixed": 1, "flag": True, "none": None}, annotation(1, choice("rock"))),
        task("b", {"mixed": "two", "flag": False}),
    ]
    items = read_export(project).items
    assert items["id"].tolist() == ["1", "b"]
    assert items["mixed"].tolist() == ["1", "two"]
    assert items["flag"].tolist() == [True, False]


def changed(change):
    project = copy.deepcopy(PROJECT)
    change(project)
    return project


def put(*path_and_value):
    *path, last, value = path_and_value

    def change(project):
        place = project
        for key in path:
            place = place[key]
        place[last] = value

    return change


@pytest.mark.parametrize(
    ("project", "options", "message"),
    [
        ([], {}, "no tasks"),
        ({}, {}, "is a list of tasks, got an object"),
        (None, {}, "is a list of tasks, got nothing"),
        ([1], {}, "task 1 of the list must be an object, got a number"),
        ([{"id": 1, "tempo": 2, "genre": "pop"}], {}, "not JSON-MIN"),
        ([{"id": 1, "data": {}, "completions": []}], {}, "before 1.0"),
        ([{"id": 1, "data": []}], {}, '"data" must be an object, got a list'),
        ([task(None, {})], {}, '"id" must be an integer or text, got nothing'),
        ([task(True, {})], {}, '"id" must be an integer or text, got a truth value'),
        ([task(1, {}), task("1", {})], {}, "several tasks have the id '1'"),
        ([task(1, {"x": 1})], {}, "no annotations"),
        (changed(put(0, "annotations", {})), {}, '"annotations" must be a list, got an object'),
        (changed(put(0, "annotations", 0, "result", "")), {}, '"result" must be a list'),
        (changed(put(0, "annotations", [5])), {}, "an annotation must be an object"),
        (changed(put(0, "annotations", 0, "was_cancelled", "no")), {}, "must be true or false"),
        (changed(put(0, "annotations", 0, "result", "x")), {}, '"result" must be a list'),
        (changed(put(0, "annotations", 0, "result", [1])), {}, '"result" must be a list'),
        (changed(put(0, "annotations", 0, "completed_by", None)), {}, 'no "completed_by"'),
        (changed(put(0, "annotations", 0, "completed_by", [1])), {}, "must be text, got a list"),
        (changed(put(0, "annotations", 0, "result", 0, "value", [])), {}, 'list of "choices"'),
        (
            changed(put(0, "annotations", 0, "result", 0, "value", "choices", ["a", "b"])),
            {},
            "task 7, annotation of 'ann@example.org': 2 choices of 'genre'; only single",
        ),
        (
            changed(put(0, "annotations", 0, "result", 0, "value", "start", 3)),
            {},
            "about parts of the task",
        ),
        (
            changed(put(0, "annotations", 0, "result", 0, "value", "choices", [["a"]])),
            {},
            "a choice must be text, got a list",
        ),
        (
            changed(put(0, "annotations", 0, "result", 0, "value", "choices", ["\ud800"])),
            {},
            "half a character",
        ),
        (changed(put(0, "data", "tempo", 10**400)), {}, "'tempo' holds a number that is too large"),
        (changed(put(0, "data", "tempo", float("inf"))), {}, "too large"),
        (
            changed(lambda p: [a.update(ground_truth=True) for a in p[0]["annotations"]]),
            {},
            "both marked as ground truth",
        ),
        (
            [task(1, {}, annotation(1, {"type": "rectanglelabels", "from_name": "box"}))],
            {},
            "no choices but 'rectanglelabels'",
        ),
        (PROJECT, {"from_name": "mood"}, "got 'mood'; there is 'genre'"),
        (PROJECT, {"features": ["pitch"]}, "no task has 'pitch' in its data"),
        (PROJECT, {"features": ["parts"]}, "'parts' holds a list"),
        (PROJECT, {"features": "tempo"}, "must be lists, got text"),
        (PROJECT, {"trusted": ["eve"]}, "nobody called 'eve'.*'ann@example.org'"),
        (
            [task(1, {}, annotation(1, choice("a")), annotation(1, choice("b")))],
            {},
            "does not say which came last",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(project, options, message):
    with pytest.raises(LabelStudioError, match=message):
        read_export(project, **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"id,genre\n1,pop\n", "is not JSON"),
        (b"\xff\xfe[", "byte 0 is not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'[{"data":' * 50_000, "nested too deeply"),
        (b"[1" + b"0" * 5000 + b"]", "is not JSON"),
    ],
)
def test_hostile_files_are_refused(tmp_path, content, message):
    file = tmp_path / "export.json"
    file.write_bytes(content)
    with pytest.raises(LabelStudioError, match=message):
        read_export(file)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_export(tmp_path / "none.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "data", "result", "value", "choices", "type", "email"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


def places(value, path=()):
    """Where values are within nested lists and dictionaries."""
    yield path
    if not isinstance(value, dict | list):
        return
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(one, (*path, key))


@pytest.mark.filterwarnings("ignore:.*annotations make no choice")
@settings(max_examples=120, deadline=None)
@given(where=st.sampled_from(list(places(PROJECT))[1:]), value=JSON)
def test_any_change_gives_tables_or_the_one_error(where, value):
    project = changed(put(*where, value))
    try:
        export = read_export(project)
    except LabelStudioError:
        return
    assert set(export.answers["task"]) <= set(export.items["id"])


@pytest.mark.filterwarnings("ignore:.*annotations make no choice")
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_bytes_give_tables_or_the_one_error(tmp_path_factory, data):
    content = bytearray(json.dumps(PROJECT).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=4))
    file = tmp_path_factory.getbasetemp() / "changed.json"
    file.write_bytes(content)
    with contextlib.suppress(LabelStudioError):
        read_export(file)


# Predictions

NAMES = {"from_name": "genre", "to_name": "song", "model_version": "polyfid"}
PROBA = pd.DataFrame(
    {
        "id": [9, 8, 7],
        "label": ["rock", "pop", "pop"],
        "p_pop": [0.4, 0.9, 0.5],
        "p_rock": [0.6, 0.1, 0.5],
        "latent_mean": [0.1, -3.0, 0.0],
    }
)


def written(tmp_path, tasks, proba, **names):
    file = tmp_path / "predictions.json"
    assert write_predictions(tasks, proba, file, **(NAMES | names)) is None
    return json.loads(file.read_text(encoding="utf-8"))


def chosen(prediction):
    return prediction["result"][0]["value"]["choices"]


def test_tasks_get_predictions(tmp_path):
    tasks = written(tmp_path, PROJECT, PROBA)
    assert [t["id"] for t in tasks] == [7, 8, 9]
    assert tasks[1] == {
        "id": 8,
        "data": PROJECT[1]["data"],
        "predictions": [
            {
                "model_version": "polyfid",
                "score": 0.9,
                "result": [
                    {
                        "from_name": "genre",
                        "to_name": "song",
                        "type": "choices",
                        "value": {"choices": ["pop"]},
                    }
                ],
            }
        ],
    }
    assert [t["predictions"][0]["score"] for t in tasks] == [0.5, 0.9, 0.6]
    assert chosen(tasks[2]["predictions"][0]) == ["rock"]


def test_an_exported_file_can_be_given(tmp_path):
    file = tmp_path / "export.json"
    file.write_text(json.dumps(PROJECT))
    assert written(tmp_path, file, PROBA) == written(tmp_path, PROJECT, PROBA)


@pytest.mark.parametrize("ids", [[8, 7], ["8", "7"], np.array([8, 7]), pd.Series([8, 7])])
def test_ids_alone_give_predictions_for_tasks_that_exist(tmp_path, ids):
    predictions = written(tmp_path, ids, PROBA)
    assert [int(p["task"]) for p in predictions] == [8, 7]
    assert [p["score"] for p in predictions] == [0.9, 0.5]
    assert "data" not in predictions[0]


def test_columns_may_be_the_labels_and_rows_in_order(tmp_path):
    proba = pd.DataFrame([[0.2, 0.8], [0.7, 0.3]], columns=[0, 1])
    assert [chosen(p) for p in written(tmp_path, [1, 2], proba)] == [["1"], ["0"]]


def test_the_version_of_the_model_has_a_default(tmp_path):
    file = tmp_path / "out.json"
    write_predictions([7], PROBA, file, from_name="genre", to_name="song")
    assert json.loads(file.read_text())[0]["model_version"].startswith("polyfid ")


def test_polars_and_ids_as_floats(tmp_path):
    proba = pl.DataFrame({"id": [7.0, 8.0], "p_a": [0.2, 0.7], "p_b": [0.8, 0.3]})
    assert [chosen(p) for p in written(tmp_path, [8, 7], proba)] == [["a"], ["b"]]


def test_predictions_can_be_read_back_as_tasks(tmp_path):
    tasks = written(tmp_path, PROJECT, PROBA)
    for one in tasks:
        one["annotations"] = [annotation(1, choice("rock"))]
    assert len(read_export(tasks).answers) == 3


@pytest.mark.parametrize(
    ("tasks", "proba", "names", "message"),
    [
        (5, PROBA, {}, "tasks must be a file, a list of tasks or ids, got int"),
        ([1.5], PROBA, {}, '"id" must be an integer or text'),
        ([7, "7"], PROBA, {}, "several tasks have the id '7'"),
        ([7, 1], PROBA, {}, "no row for 1 of 2 tasks, such as 1"),
        ([7], pd.concat([PROBA, PROBA]), {}, "several rows for task '9'"),
        ([7, 8], PROBA.drop(columns="id"), {}, "2 tasks and 3 rows of proba"),
        ([7], PROBA[["id"]], {}, "no columns of probabilities"),
        ([7], PROBA[["id", "label"]], {}, "must hold numbers"),
        ([7], PROBA.assign(p_pop=np.nan), {}, "probabilities of task 7"),
        ([7], PROBA.assign(p_pop=-0.5), {}, "probabilities of task 7"),
        ([7], PROBA.drop(columns="p_pop"), {}, "probabilities of task 7"),
        ([7], [[0.5, 0.5]], {}, "proba must be a data frame"),
        ([7], PROBA, {"from_name": ""}, "from_name must not be empty"),
        ([7], PROBA, {"to_name": None}, "to_name must be text"),
        ([7], PROBA, {"model_version": 2}, "model_version must be text"),
        ([task(7, {"x": float("nan")})], PROBA, {}, "something that JSON cannot"),
        ([task(7, {"x": {1, 2}})], PROBA, {}, "something that JSON cannot"),
    ],
)
def test_mistakes_are_named_and_no_file_is_left(tmp_path, tasks, proba, names, message):
    with pytest.raises(LabelStudioError, match=message):
        write_predictions(tasks, proba, tmp_path / "out.json", **(NAMES | names))
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "out.json"
    file.write_text("old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_predictions([7], PROBA, file, **NAMES)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_rights_are_those_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    written(tmp_path, [7], PROBA)
    assert (tmp_path / "predictions.json").stat().st_mode == (tmp_path / "plain").stat().st_mode
