"""Exports of Label Studio, and predictions for it."""

import copy
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyfid import __version__
from polyfid.crowd import to_rows
from polyfid.labelstudio import (
    Export,
    LabelStudioError,
    read_export,
    read_items,
    write_predictions,
)


def choice(label, name="genre"):
    made = {"id": "r1", "type": "choices", "from_name": name, "to_name": "song"}
    return {**made, "origin": "manual", "value": {"choices": [label]}}


def annotation(who, *results, **more):
    return {"id": 1, "completed_by": who, "was_cancelled": False, "result": list(results)} | more


def task(i, data, *annotations):
    return {"id": i, "data": data, "annotations": list(annotations), "project": 1}


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
    np.testing.assert_array_equal(export.items["tempo"], [120.0, 90.5, np.nan])


def test_a_task_may_stand_alone_and_a_file_has_a_mark_of_its_encoding(tmp_path):
    file = tmp_path / "export.json"
    file.write_text(json.dumps(PROJECT[:1], ensure_ascii=False), encoding="utf-8-sig")
    for source in (PROJECT[0], file, str(file)):
        export = read_export(source)
        assert export.gold is None
        assert len(to_rows(*export)) == 2


@pytest.mark.parametrize("who", [2, "2", "bob@example.org"])
def test_trusted_annotators_give_gold(who):
    export = read_export(PROJECT, trusted=[who])
    assert rows_of(export.answers) == [[7, "ann@example.org", "rock"]]
    assert dict(rows_of(export.gold)) == {7: "pop", 8: "pop"}
    for order, label in (([1, who], "rock"), ([who, 1], "pop")):  # the first one counts
        assert dict(rows_of(read_export(PROJECT, trusted=order).gold))[7] == label


def test_ground_truth_comes_first_and_late_annotations_replace_early_ones():
    truth = annotation(1, choice("rock"), ground_truth=True)
    early = annotation(10, choice("rock"), created_at="2024-01-01T00:00:00Z")
    late = annotation(10, choice("jazz"), updated_at="2024-02-01T00:00:00Z")
    for both in ((early, late), (late, early)):
        project = [task(1, {}, annotation(2, choice("pop")), truth, *both)]
        export = read_export(project, trusted=[2])
        assert rows_of(export.gold) == [[1, "rock"]]
        assert rows_of(export.answers) == [[1, "10", "jazz"]]


def test_one_of_several_controls_is_chosen_by_name():
    remark = {"type": "textarea", "from_name": "why", "value": {"text": ["loud"]}}
    first = annotation(1, remark, choice("rock"), choice("sad", "mood"))
    project = [task(1, {"x": 1}, first, annotation(2, choice("pop")))]
    with pytest.raises(LabelStudioError, match=r"from_name.* 'genre', 'mood'; got None"):
        read_export(project)
    assert read_export(project, from_name="genre").answers["label"].tolist() == ["rock", "pop"]
    with pytest.warns(UserWarning, match="1 of 2 annotations make no choice for 'mood'"):
        assert read_export(project, from_name="mood").answers["label"].tolist() == ["sad"]


def test_fields_of_any_name_and_several_types():
    fields = {"id": 5, "label": "x", "mixed": 1, "flag": True, "none": None}
    project = [task(1, fields, annotation(1, choice("rock"))), task("b", {"mixed": "two"})]
    items = read_export(project).items
    assert list(items.columns) == ["id", "data.id", "data.label", "mixed", "flag", "none"]
    assert rows_of(items)[0] == ["1", 5.0, "x", "1", True, None]
    assert read_export(project).answers["task"].tolist() == ["1"]
    assert items["mixed"].tolist() == ["1", "two"]


def changed(*path, to):
    """The project with something else in one place."""
    project = copy.deepcopy(PROJECT)
    place = project
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return project


FIRST = (0, "annotations", 0)
CHOICE = (*FIRST, "result", 0, "value")


@pytest.mark.parametrize(
    ("project", "message"),
    [
        ([], r"must be a list of tasks, got \[\]"),
        ([{"id": 1, "tempo": 2, "genre": "pop"}], "task 1 of the list must be .* not JSON-MIN"),
        ([{"id": 1, "data": {}, "completions": []}], "by Label Studio 1.0 or later"),
        ([task(None, {})], '"id" must be an integer or text, got None'),
        ([task(1, {}), task("1", {})], "several tasks have the id '1'"),
        ([task(1, {"x": 1})], "a Choices control with annotations, of which there is none"),
        (changed(0, "annotations", to=[5]), "task 7 has annotations that are not as"),
        (changed(*FIRST, "completed_by", to=None), 'task 7: an annotation has no "completed_by"'),
        (changed(*CHOICE, to={}), "one choice about the whole task"),
        (changed(*CHOICE, "choices", to=["a", "b"]), "task 7, annotation of 'ann@.*'genre' must"),
        (changed(*CHOICE, "start", to=3), "one choice about the whole task"),
        (changed(0, "data", "tempo", to=10**400), "'tempo' holds a number that is too large"),
        (
            changed(1, "annotations", 1, to=annotation(2, choice("rock"), ground_truth=True)),
            "task 8: the ground truth says 'pop', 'rock'",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(project, message):
    with pytest.raises(LabelStudioError, match=message):
        read_export(project)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"from_name": "mood"}, "from_name .* 'genre'; got 'mood'"),
        ({"features": ["pitch"]}, "'pitch' must be a field of data"),
        ({"features": ["parts"]}, "'parts' must be .* that holds numbers, text or truth"),
        ({"features": "tempo"}, "must be lists, got text"),
        ({"trusted": ["eve"]}, "nobody called 'eve'.*'ann@example.org'"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(LabelStudioError, match=message):
        read_export(PROJECT, **options)


def test_hostile_files_are_refused(tmp_path):
    file = tmp_path / "export.json"
    for content in (b"id,genre\n1,pop\n", b"\xff\xfe[", b"[" * 200_000):
        file.write_bytes(content)
        with pytest.raises(LabelStudioError, match=r"export\.json is not JSON"):
            read_export(file)
    with pytest.raises(FileNotFoundError):
        read_export(tmp_path / "none.json")


KEYS = st.sampled_from(["id", "data", "result", "value", "choices", "type", "email"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
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
    try:
        export = read_export(changed(*where, to=value))
    except LabelStudioError:
        return
    assert set(export.answers["task"]) <= set(export.items["id"])


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


def written(tmp_path, tasks, proba):
    file = tmp_path / "predictions.json"
    assert write_predictions(tasks, proba, file, from_name="genre", to_name="song") is None
    return json.loads(file.read_text(encoding="utf-8"))


def chosen(prediction):
    return prediction["result"][0]["value"]["choices"]


def test_tasks_get_predictions(tmp_path):
    tasks = written(tmp_path, PROJECT, PROBA)
    assert [t["id"] for t in tasks] == [7, 8, 9]
    result = {"from_name": "genre", "to_name": "song", "type": "choices"}
    result["value"] = {"choices": ["pop"]}
    prediction = {"model_version": f"polyfid {__version__}", "score": 0.9, "result": [result]}
    assert tasks[1] == {"id": 8, "data": PROJECT[1]["data"], "predictions": [prediction]}
    assert [t["predictions"][0]["score"] for t in tasks] == [0.5, 0.9, 0.6]
    assert chosen(tasks[2]["predictions"][0]) == ["rock"]


@pytest.mark.parametrize("ids", [[8, 7], ["8", "7"], np.array([8, 7]), pd.Series([8, 7])])
def test_ids_alone_give_predictions_for_tasks_that_exist(tmp_path, ids):
    predictions = written(tmp_path, ids, PROBA)
    assert [int(p["task"]) for p in predictions] == [8, 7]
    assert [p["score"] for p in predictions] == [0.9, 0.5]
    assert "data" not in predictions[0]


def test_a_decision_is_the_label_and_who_abstains_gives_none(tmp_path):
    proba = PROBA.assign(label=["pop", None, "pop"])
    found = written(tmp_path, [9, 8, 7], proba)
    assert [p["score"] for p in found] == [0.4, 0.9, 0.5]
    assert found[1]["result"] == []
    assert chosen(found[0]) == ["pop"]
    whole = pd.DataFrame({"id": [1, 2], "label": [1, None], "p_0": [0.8, 0.6], "p_1": [0.2, 0.4]})
    found = written(tmp_path, [2, 1], whole)
    assert [p["score"] for p in found] == [0.6, 0.2]
    assert chosen(found[1]) == ["1"]
    with pytest.raises(LabelStudioError, match=r"'label' has 'jazz'.*those of 'pop', 'rock'"):
        written(tmp_path, [9, 8, 7], PROBA.assign(label="jazz"))


def test_columns_may_be_the_labels_and_rows_in_order(tmp_path):
    for kind in (pd.DataFrame, pl.DataFrame):
        proba = kind({"0": [0.2, 0.7], "1": [0.8, 0.3]})
        assert [chosen(p) for p in written(tmp_path, [1, 2], proba)] == [["1"], ["0"]]


@pytest.mark.parametrize(
    ("tasks", "proba", "names", "message"),
    [
        (5, PROBA, {}, "tasks must be a file, a list of tasks or ids, got int"),
        ([1.5], PROBA, {}, '"id" must be an integer or text'),
        ([7, "7"], PROBA, {}, "several tasks have the id '7'"),
        ([7, 1], PROBA, {}, "one row per task.* none or several in column 'id': '1'"),
        ([7], pd.concat([PROBA, PROBA]), {}, "one row per task.* none or several .*: '7'"),
        ([7, 8], PROBA.drop(columns="id"), {}, "2 tasks and 3 rows of proba"),
        ([7], PROBA[["id", "label"]], {}, "must have columns of probabilities, numbers"),
        ([7], PROBA.assign(p_pop=-0.5), {}, "probabilities of task 7"),
        ([7], [[0.5, 0.5]], {}, "proba must be a data frame"),
        ([7], PROBA, {"from_name": ""}, "from_name must be text that is not empty"),
        ([7], PROBA, {"to_name": None}, "to_name must be text"),
        ([task(7, {"x": float("nan")})], PROBA, {}, "something that JSON cannot"),
    ],
)
def test_mistakes_are_named_and_no_file_is_left(tmp_path, tasks, proba, names, message):
    with pytest.raises(LabelStudioError, match=message):
        write_predictions(tasks, proba, tmp_path / "out.json", **(NAMES | names))
    assert list(tmp_path.iterdir()) == []


def test_messages_name_the_file(tmp_path):
    file = tmp_path / "songs.json"
    file.write_text(json.dumps(PROJECT))
    with pytest.raises(LabelStudioError, match=r"songs.json: trusted: nobody called 'zoe'"):
        read_export(file, trusted=["zoe"])
    with pytest.raises(LabelStudioError, match=r"songs.json: from_name .*got 'mood'"):
        read_export(file, from_name="mood")
    with pytest.raises(LabelStudioError, match=r"songs.json: features: 'parts' must be"):
        read_items(file, features=["parts"])
    file.write_text('[{"id": 1}]')
    proba = pd.DataFrame({"id": [1], "p_a": [1.0]})
    with pytest.raises(LabelStudioError, match=r"songs.json: task 1 of the list must be"):
        write_predictions(file, proba, tmp_path / "out.json", from_name="a", to_name="b")
    assert not (tmp_path / "out.json").exists()
