"""Columns of text: what becomes of them, in folds, in files of models and in blocks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from polyfid import MultiFidelityClassifier, evaluate, load
from polyfid.kernels import RBF
from polyfid.model_files import ModelFileError, read, write
from polyfid.report import render
from polyfid.tables import (
    Roles,
    TableEncoder,
    TableError,
    TableModel,
    diagnose,
    read_labelled,
    text_column,
)

GOOD = ["superb", "moving", "warm", "clever", "funny"]
BAD = ["dull", "tedious", "clumsy", "bland", "lifeless"]
COMMON = ["film", "story", "actor", "scene", "end", "camera", "music", "year"]


def reviews(n, seed=0, level=None):
    """Rows with a text whose words give the label away, and a number that does not."""
    rng = np.random.RandomState(seed)
    label = rng.choice(["bad", "good"], n)
    texts = []
    for one in label:
        words = [*rng.choice(COMMON, 8), *rng.choice(GOOD if one == "good" else BAD, 2)]
        texts.append(" ".join(rng.permutation(words)))
    frame = pd.DataFrame({"text": texts, "x": rng.uniform(size=n), "label": label})
    return frame if level is None else frame.assign(fidelity=level)


@pytest.fixture(scope="module")
def model():
    rows = pd.concat([reviews(150, 0, "crowd"), reviews(30, 1, "gold")])
    table = read_labelled([rows], Roles(levels=("crowd", "gold"), text=["text"]))
    return TableModel.fit(table, MultiFidelityClassifier(1.0 * RBF()))


def test_texts_become_rows_of_length_one():
    frame = reviews(100)[["text"]]
    encoder = TableEncoder(text=["text"]).fit(frame)
    assert encoder.kinds_ == {"text": "text"}
    x = encoder.transform(frame)
    assert encoder.names_ == tuple(f"text[{k}]" for k in range(x.shape[1]))
    assert 2 <= x.shape[1] <= 25  # one for every four texts
    np.testing.assert_allclose(np.square(x).sum(axis=1), 1.0)
    new = pd.DataFrame({"text": ["Superb FILM, superb film!", None, "", "nothing known here"]})
    made = encoder.transform(new)
    assert np.square(made[0]).sum() == pytest.approx(1.0)
    assert not made[1:].any()  # nor are they errors
    assert np.array_equal(encoder.transform(new.iloc[::-1])[::-1], made)


def test_what_is_learnt_does_not_depend_on_repeats():
    frame = reviews(60)[["text"]]
    once = TableEncoder(text=["text"]).fit(frame)
    often = TableEncoder(text=["text"]).fit(pd.concat([frame] * 3))
    assert np.array_equal(often.transform(frame), once.transform(frame))


def test_words_are_learnt_in_the_training_rows_of_each_fold():
    frame = reviews(120)
    pipeline = make_pipeline(TableEncoder(features=["text"], text=["text"]), LogisticRegression())
    pipeline.fit(frame[:90], frame["label"][:90])
    assert pipeline.score(frame[90:], frame["label"][90:]) > 0.9
    words = {w for c in pipeline[0].columns_ for w in c.vocabulary}
    secret = frame[90:].assign(text="secretword secretword2")
    assert not words & set(" ".join(secret["text"]).split())
    again = TableEncoder.of(pipeline[0].columns_, "error").unfitted()
    assert again.text == ["text"]


def test_a_model_of_texts_tells_good_from_bad(model):
    new = reviews(60, 2)
    assert (model.predict(new)["label"] == new["label"]).mean() > 0.9
    assert model.summary()["inputs"] == {"text": "text", "x": "number"}


def test_a_saved_model_predicts_the_same_to_the_bit(model, tmp_path):
    file = tmp_path / "model.polyfid"
    model.save(file)
    again, new = load(file), reviews(40, 3)
    pd.testing.assert_frame_equal(again.predict(new), model.predict(new), check_exact=True)
    blocks = again.read_blocks(new, rows=7)
    whole = np.vstack([again.encoder.transform(block) for block in blocks])
    assert np.array_equal(whole, model.encoder.transform(new))


@pytest.mark.parametrize(
    "spoilt",
    [
        {"idf": np.ones(3)},
        {"components": np.full((1, 2), np.nan)},
        {"vocabulary": ("a", "a")},
        {"vocabulary": ("a", 7)},
        {"components": np.ones(2)},
        {"idf": np.array(["a", "b"])},
    ],
)
def test_an_altered_text_column_is_refused(model, tmp_path, spoilt):
    file = tmp_path / "model.polyfid"
    whole = {
        "name": "text",
        "vocabulary": ("a", "b"),
        "idf": np.ones(2),
        "components": np.ones((1, 2)),
    }
    made = text_column.TextEncoding(**whole)
    for name, value in spoilt.items():
        object.__setattr__(made, name, value)
    model.save(file)
    kind, state = read(file)

    def rewrite_and_load():
        write(file, kind, {**state, "columns": (made,)})
        load(file)

    with pytest.raises((ModelFileError, TypeError)):
        rewrite_and_load()


def test_blocks_learn_from_a_sample(monkeypatch, tmp_path):
    frame = pd.concat([reviews(200, 0, "crowd"), reviews(60, 1, "gold")])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    roles = Roles(levels=("crowd", "gold"), text=["text"])
    monkeypatch.setattr("polyfid.tables.encoder.MOST_TEXTS_IN_BLOCKS", 80)
    classifier = MultiFidelityClassifier(1.0 * RBF(), n_inducing=20, random_state=0)
    fitted = TableModel.fit_files([tmp_path / "rows.csv"], roles, classifier=classifier, rows=50)
    assert len(fitted.encoder.columns_[0].components) == 80 // text_column.TEXTS_PER_COMPONENT
    new = reviews(60, 2)
    assert (fitted.predict(new)["label"] == new["label"]).mean() > 0.85


def test_evaluation_and_report(model):
    table = model.table
    result = evaluate(
        table.features,
        table.label,
        table.fidelity,
        levels=table.levels,
        model=MultiFidelityClassifier(1.0 * RBF()),
        encoder=model.encoder.unfitted(),
        n_splits=3,
    )
    assert result.to_dict()
    pytest.importorskip("jinja2")
    page = render(model=model, table=table)
    assert "…" in page  # texts are shortened


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([None, "", " "], "the column is empty"),
        (["one", "two", "three"], "no word is in two of the 3 different texts"),
        (pd.to_datetime(["2024-01-01"] * 3), "dates or times, not text"),
    ],
)
def test_texts_that_cannot_be_used(texts, message):
    with pytest.raises(TableError, match=f"column 'note': .*{message}"):
        TableEncoder(text=["note"]).fit(pd.DataFrame({"note": texts}))


def test_names_of_text_columns_are_checked():
    with pytest.raises(ValueError, match="'a' is categorical and text"):
        Roles(text=["a"], categorical=["a"])
    with pytest.raises(ValueError, match="column 'label' is the target"):
        Roles(text=["label"])
    with pytest.raises(ValueError, match="text names 'a', which is not among features"):
        Roles(text=["a"], features=["b"])
    rows = reviews(30, 0, "1")
    with pytest.raises(TableError, match=r"no column 'txt'.*did you mean 'text'"):
        read_labelled([rows], Roles(text=["txt"]))
    found = diagnose(read_labelled([rows]))
    assert "name it as text (--text)" in found.problems[0]
    assert not diagnose(read_labelled([rows], Roles(text=["text"]))).problems


def test_numbers_may_be_named_as_text(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("code,label,fidelity\n" + "11,a,1\n12,b,1\n11 12,a,1\n12 11,b,1\n" * 2)
    table = read_labelled([file], Roles(text=["code"]))
    assert table.features["code"].tolist()[:3] == ["11", "12", "11 12"]
    assert TableEncoder(text=["code"]).fit(table.features).names_[0] == "code[0]"


def test_addresses_of_files_are_no_features():
    rows = reviews(8, 0, "1").drop(columns="text")
    rows["image"] = [f"https://example.org/{k}.png" for k in range(8)]
    table = read_labelled([rows])
    assert table.features.columns.tolist() == ["x"]
    assert table.left_out == ("image",)
    with pytest.raises(TableError, match=r"no column to learn from.*--text.*--embeddings"):
        read_labelled([rows.drop(columns="x")])
    asked = read_labelled([rows], Roles(categorical=["image"]))
    assert asked.features.columns.tolist() == ["x", "image"]


def test_free_text_that_repeats_is_no_category():
    often = pd.concat([reviews(30)[["text"]]] * 5)  # as in rows of a crowd
    with pytest.raises(TableError, match="30 different texts in 150 rows"):
        TableEncoder().fit(often)
    short = often.assign(text=often["text"].str.split().str[:4].str.join(" "))
    assert len(TableEncoder().fit(short).names_) > 20
