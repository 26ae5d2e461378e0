"""Columns by pattern, columns to leave out, and the names in messages."""

import re

import numpy as np
import pandas as pd
import pytest
from made_tables import fit_files, make_rows

from polyfid.tables import Embeddings, Roles, TableError, read_labelled


@pytest.fixture
def frame():
    names = ["id", "lsa1", "lsa2", "lsb1", "x[1]", "x1", "Lsa", "worker", "label"]
    rows = {name: np.arange(6) % 3 for name in names}
    return pd.DataFrame({**rows, "label": list("ab" * 3), "fidelity": [0, 0, 0, 1, 1, 1]})


def features(frame, **roles):
    table = read_labelled([frame], Roles(**roles))
    return table.features.columns.tolist(), table.roles


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ({"features": ["lsa*"]}, ["lsa1", "lsa2"]),
        ({"features": ["x1", "ls?1", "lsa1"]}, ["x1", "lsa1", "lsb1"]),
        ({"features": ["x[1]"]}, ["x[1]"]),  # a name that exists is no pattern
        ({"features": ["x[12]"]}, ["x1"]),
        ({"features": ["*"], "exclude": ["ls*", "L*"]}, ["x[1]", "x1"]),
        ({"exclude": ["ls*", "x[1]"]}, ["x1", "Lsa"]),
        ({"features": ["work*", "worker"]}, None),
    ],
)
def test_patterns_stand_for_features(frame, roles, expected):
    if expected is None:  # who gave a label is a feature by name only
        with pytest.raises(TableError, match=r"matches 'work\*'.*did you mean 'worker'"):
            features(frame, **roles)
    else:
        assert features(frame, **roles)[0] == expected


def test_what_a_model_remembers_are_names(frame):
    _, roles = features(frame, features=["ls*"], exclude=["lsb*"], categorical=["lsa*"])
    assert roles.features == roles.categorical == ("lsa1", "lsa2")
    assert roles.exclude == ("lsb1",)


def test_an_excluded_column_has_no_role(frame):
    table = read_labelled([frame], Roles(exclude=["id"]))
    assert table.ids is None
    assert "id" in table.left_out
    with pytest.raises(ValueError, match="column 'label' is the target; it cannot be excluded"):
        Roles(exclude=["label"])
    with pytest.raises(ValueError, match="column 'x' is both in features and in exclude"):
        Roles(features=["x"], exclude=["x"])
    with pytest.raises(TableError, match="leaves no column to learn from"):
        features(frame, features=["lsa*"], exclude=["ls*"])


def test_a_column_that_only_some_tables_have_can_be_left_out(frame):
    files = {"low": frame.drop(columns="fidelity"), "top": frame.drop(columns=["fidelity", "x1"])}
    with pytest.raises(TableError, match="no column 'x1'"):
        read_labelled([], level_files=files)
    table = read_labelled([], Roles(exclude=["x1"]), level_files=files)
    assert "x1" not in table.features


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        (
            {"features": ["lsc*"]},
            "no column that matches 'lsc*', which is to be a feature; did you",
        ),
        ({"exclude": ["lsx"]}, "no column 'lsx' to leave out; did you mean 'Lsa'"),
        ({"categorical": ["q*"]}, "no column that matches 'q*'"),
    ],
)
def test_patterns_that_match_nothing(frame, roles, words):
    with pytest.raises(TableError, match=re.escape(words)):
        features(frame, **roles)


def test_text_keeps_its_digits_in_columns_of_categories(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("k_a,k_b,label,fidelity\n1.0,7,a,0\n1,7,b,1\n")
    table = read_labelled([path], Roles(categorical=["k_*"]))
    assert table.features["k_a"].tolist() == ["1.0", "1"]


def test_patterns_of_texts_annotators_and_embeddings(frame):
    words = [f"{k} seams of steel" for k in range(6)]
    frame = frame.assign(t_a=words, t_b=words[::-1], who=list("abcabc"))
    made, roles = features(frame, text=["t_*"], exclude=["ls*", "L*", "x*"], worker="who")
    assert made == list(roles.text) == ["t_a", "t_b"]
    with pytest.raises(ValueError, match="column 't_a' is categorical and text"):
        features(frame, text=["t_*"], categorical=["t_a"])
    without = read_labelled([frame], Roles(exclude=["worker"]))
    assert without.worker is None
    assert "worker" in without.left_out
    more = Embeddings("numbers", np.eye(6)[:, :3])
    table = read_labelled([frame], Roles(features=["x1"], exclude=["emb[12]"]), embeddings=more)
    assert table.features.columns.tolist() == ["x1", "emb0"]


def test_addresses_are_features_by_name_only(frame):
    frame = frame.assign(photo=[f"data/{k}.jpg" for k in range(6)])
    table = read_labelled([frame], Roles(exclude=["x*"]))
    assert "photo" not in table.features
    assert {"photo", "x1"} <= {*table.left_out}
    assert "photo" in features(frame, categorical=["photo"])[0]
    with pytest.raises(TableError, match=r"no column to learn from.*polyfid does not open files"):
        read_labelled([frame[["photo", "label", "fidelity"]]])


def test_the_same_in_blocks():
    roles = {"exclude": ["fl*"], "categorical": ["ki*"], "levels": ["crowd", "expert"]}
    frame = make_rows(120)
    model = fit_files([frame], Roles(**roles))
    assert model.encoder.kinds_ == {"heat": "number", "kind": "category"}
    assert model.roles == read_labelled([frame], Roles(**roles)).roles


def test_of_many_columns_the_nearest_or_the_last_are_named():
    names = [f"gene{k}" for k in range(300)]
    frame = pd.DataFrame(np.zeros((2, 300)), columns=names).assign(verdict="a", fidelity=[0, 1])
    with pytest.raises(TableError) as caught:
        read_labelled([frame], Roles(target="outcome"))
    assert "the last of the 302 columns are 'gene296', 'gene297'" in str(caught.value)
    assert "'verdict', 'fidelity'" in str(caught.value)
    with pytest.raises(TableError) as caught:
        read_labelled([frame], Roles(target="verdikt"))
    assert "did you mean 'verdict'?" in str(caught.value)
    assert "gene" not in str(caught.value)
