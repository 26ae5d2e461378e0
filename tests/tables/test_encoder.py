"""Columns to numbers: the same for new rows as for old."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline

from polyfid.model.features import Coded
from polyfid.tables import TableEncoder, TableError, read_table

FRAME = pd.DataFrame(
    {
        "x": [1.0, 2.0, 4.0],
        "colour": ["red", "blue", "red"],
        "flag": [True, False, True],
        "n": [1, 2, 3],
    }
)
GAPS = pd.DataFrame({"x": [1.0, np.nan, 5.0, 9.0], "c": ["a", "b", None, "b"], "y": [1, 2, 3, 4]})


def fit(frame, **how):
    return TableEncoder(**how).fit(frame)


def test_numbers_stay_and_categories_are_blocks_of_indicators():
    encoder = fit(FRAME)
    assert encoder.names_ == ("x", "colour=blue", "colour=red", "flag=False", "flag=True", "n")
    x = encoder.transform(FRAME)
    assert x.tolist() == [[1, 0, 1, 0, 1, 1], [2, 1, 0, 1, 0, 2], [4, 0, 1, 0, 1, 3]]
    assert Coded.of(x, np.ones(3)).blocks == ((1, 3), (3, 5))  # which the classifier recognises
    other = FRAME.assign(new="?")[["n", "new", "flag", "colour", "x"]]
    assert np.array_equal(encoder.transform(other), x)
    assert np.array_equal(encoder.transform(pl.from_pandas(other)), x)


def test_named_columns_are_categories():
    encoder = fit(FRAME, categorical=["n"], features=["n"])
    assert encoder.names_ == ("n=1", "n=2", "n=3")
    for cells in ([3.0, 1.0], ["3", " 1"], [3, 1]):
        x = encoder.transform(pd.DataFrame({"n": cells}))
        assert x.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_types_of_columns():
    frame = pd.DataFrame({"x": pd.array([1, None, 3], "Int64"), "y": [1.0, 2.0, 3.0]})
    frame["y"] = frame["y"].astype("float64[pyarrow]")
    frame["b"] = pd.array([True, None, False], "boolean")
    frame["c"] = pd.Categorical(["a", "b", "a"], ["z", "b", "a"])  # one is not used
    encoder = fit(frame, missing="median")
    assert encoder.transform(frame)[:, :2].tolist() == [[1, 1], [2, 2], [3, 3]]
    assert encoder.names_ == ("x", "y", "b=False", "b=True", "c=a", "c=b")
    text = pd.DataFrame({"x": ["1.5", " 2 ", "007"]})
    assert fit(FRAME, features=["x"]).transform(text).ravel().tolist() == [1.5, 2.0, 7.0]


def test_an_unknown_category_is_none_of_them_and_is_counted_once():
    encoder = fit(FRAME, features=["colour"])
    new = pd.DataFrame({"colour": ["mauve", "red", "teal", "mauve"]})
    with pytest.warns(UserWarning, match=r"'colour': 3 row.*'mauve', 'teal'") as caught:
        assert encoder.transform(new).tolist() == [[0, 0], [0, 1], [0, 0], [0, 0]]
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("missing", "names", "rows"),
    [
        ("median", "x|c=a|c=b|y", [[1, 1, 0, 1], [5, 0, 1, 2], [5, 0, 1, 3], [9, 0, 1, 4]]),
        (
            "indicator",
            "x|x missing|c=(empty)|c=a|c=b|y",
            [[1, 0, 0, 1, 0, 1], [5, 1, 0, 0, 1, 2], [5, 0, 1, 0, 0, 3], [9, 0, 0, 0, 1, 4]],
        ),
    ],
)
def test_missing_cells_are_filled(missing, names, rows):
    encoder = fit(GAPS, missing=missing)
    assert encoder.names_ == tuple(names.split("|"))
    assert encoder.transform(GAPS).tolist() == rows
    assert encoder.transform(GAPS.assign(y=np.nan))[:, -1].tolist() == [2.5] * 4


def test_blocks_teach_the_same_as_all_rows():
    encoder = TableEncoder(missing="indicator")
    for start in range(0, 4, 2):
        encoder.partial_fit(GAPS[start : start + 2])
    assert encoder.columns_ == fit(GAPS, missing="indicator").columns_
    assert encoder.partial_fit(GAPS.assign(c="new")).names_[-2] == "c=new"


def test_it_is_a_transformer_of_scikit_learn():
    encoder = fit(GAPS, missing="median", features=["c", "x"])
    again = clone(encoder)
    assert again.get_params() == encoder.get_params()
    with pytest.raises(NotFittedError):
        again.transform(GAPS)
    assert again.fit(GAPS).columns_ == encoder.columns_
    named = again.set_output(transform="pandas").transform(GAPS)
    assert named.columns.tolist() == list(encoder.get_feature_names_out()) == ["c=a", "c=b", "x"]
    with pytest.raises(ValueError, match="call partial_fit for every block"):
        encoder.partial_fit(GAPS)
    with pytest.raises(TypeError, match="X must be a data frame"):
        encoder.transform([[1.0]])


def test_rows_that_are_held_out_teach_nothing():
    """In a pipeline, categories and medians of the test rows of a fold stay unknown."""
    frame = pd.DataFrame({"x": [0.0, 1.0, None, 2.0] * 5, "c": ["a", "b", "a", "b"] * 5})
    frame.loc[:4, ["x", "c"]] = [1e6, "only here"]
    model = make_pipeline(TableEncoder(missing="median"), LogisticRegression())
    with pytest.warns(UserWarning, match="'c': 5 rows are in no category"):
        made = cross_validate(model, frame, [0, 1] * 10, cv=KFold(4), return_estimator=True)
    first = made["estimator"][0][0]
    assert first.columns_ == fit(frame[5:], missing="median").columns_
    assert first.names_ == ("x", "c=a", "c=b")
    assert first.columns_[0].fill < 3.0


def test_an_unfitted_copy_decides_no_kinds_anew():
    numbers = pd.DataFrame({"code": ["1", "2", "x"], "x": [1.0, 2.0, 3.0]})
    encoder = fit(numbers, categorical=["code"]).unfitted()
    assert encoder.fit(numbers[:2]).names_ == ("code=1", "code=2", "x")
    texts = pd.DataFrame({"c": [f"t{k % 25}" for k in range(60)]})
    assert len(fit(texts).unfitted().fit(texts[:30]).names_) == 25  # too many to be inferred


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": [1.0, None, 2.0]}, r"^data frame, row 2, column 'x': the cell is empty"),
        ({"x": ["1", "2", "abc"]}, r"^data frame, row 3, column 'x': 'abc' is not a number$"),
        ({"colour": ["red", "red", None]}, r"row 3, column 'colour': the cell is empty"),
    ],
)
def test_cells_of_new_rows_are_named(change, words):
    with pytest.raises(TableError, match=words):
        fit(FRAME).transform(FRAME.assign(**change))


def test_a_slip_in_a_column_of_numbers_is_no_category(write):
    frame = read_table(write("x\n1.5\n2.5\n1.o5\n3.5\n"))
    with pytest.raises(TableError, match=r"row 4, column 'x': '1.o5' is not a number, as the ot"):
        fit(frame)
    assert len(fit(frame, categorical=["x"]).names_) == 4


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, np.inf], "row 2.*'inf' is not finite"),
        ([None, None], "empty"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "dates"),
        ([f"text {k}" for k in range(30)], "column 'x': there are 30 different texts in 30 rows"),
    ],
)
def test_columns_that_cannot_be_used(values, words):
    with pytest.raises(TableError, match=words):
        fit(pd.DataFrame({"x": values}), missing="median")


def test_wrong_arguments():
    with pytest.raises(ValueError, match="missing must be one of"):
        fit(FRAME, missing="drop")
    with pytest.raises(TableError, match="no column 'X'"):
        fit(FRAME, features=["X"])
    with pytest.raises(TableError, match="no rows"):
        fit(FRAME.iloc[:0])
    with pytest.raises(TableError, match="no columns"):
        fit(FRAME[[]])
    with pytest.raises(TableError, match=r"no column 'colour', which .* did you mean 'Color'"):
        fit(FRAME).transform(FRAME.rename(columns={"colour": "Color"}))
