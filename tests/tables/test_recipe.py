"""Columns to numbers: the same for new rows as for old."""

import numpy as np
import pandas as pd
import pytest

from polyfid.model.features import Coded
from polyfid.model_files import read, write
from polyfid.tables import Recipe, TableError, read_table

FRAME = pd.DataFrame(
    {
        "x": [1.0, 2.0, 4.0],
        "colour": ["red", "blue", "red"],
        "flag": [True, False, True],
        "n": [1, 2, 3],
    }
)


def test_numbers_stay_and_categories_are_blocks_of_indicators():
    recipe = Recipe.learn(FRAME)
    assert recipe.names == ("x", "colour=blue", "colour=red", "flag=False", "flag=True", "n")
    x = recipe(FRAME)
    assert x.tolist() == [[1, 0, 1, 0, 1, 1], [2, 1, 0, 1, 0, 2], [4, 0, 1, 0, 1, 3]]
    assert Coded.of(x, np.ones(3)).blocks == ((1, 3), (3, 5))  # which the classifier recognises


def test_named_columns_are_categories():
    recipe = Recipe.learn(FRAME, categorical=["n"], features=["n"])
    assert recipe.names == ("n=1", "n=2", "n=3")
    as_float, as_text = (pd.DataFrame({"n": v}) for v in ([3.0, 1.0], ["3", " 1"]))
    assert recipe(as_float).tolist() == recipe(as_text).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_other_columns_and_another_order_do_not_matter():
    recipe = Recipe.learn(FRAME)
    other = FRAME.assign(new="?")[["n", "new", "flag", "colour", "x"]]
    assert np.array_equal(recipe(other), recipe(FRAME))


def test_pandas_categories_may_be_unused():
    frame = pd.DataFrame({"c": pd.Categorical(["a", "b"], ["z", "b", "a"])})
    assert Recipe.learn(frame).names == ("c=a", "c=b")


def test_an_unknown_category_is_none_of_them_and_is_counted_once():
    recipe = Recipe.learn(FRAME, features=["colour"])
    new = pd.DataFrame({"colour": ["mauve", "red", "teal", "mauve"]})
    with pytest.warns(UserWarning, match=r"'colour': 3 row.*'mauve', 'teal'") as caught:
        assert recipe(new).tolist() == [[0, 0], [0, 1], [0, 0], [0, 0]]
    assert len(caught) == 1


def test_missing_cells_are_named(tmp_path):
    (tmp_path / "t.csv").write_text("x,c\n1,a\n,b\n\n2,\n")
    with pytest.raises(TableError) as caught:
        Recipe.learn(read_table(tmp_path / "t.csv"))
    assert caught.value.problems[0].startswith("t.csv, row 3, column 'x': the cell is empty; ")
    assert caught.value.problems[1].startswith("t.csv, row 5, column 'c': the cell is empty; ")


def test_missing_cells_at_predict_are_named():
    recipe = Recipe.learn(FRAME)
    with pytest.raises(TableError, match=r"^data frame, row 2, column 'x': the cell is empty"):
        recipe(FRAME.assign(x=[1.0, None, 2.0]))
    with pytest.raises(TableError, match=r"row 3, column 'colour': the cell is empty"):
        recipe(FRAME.assign(colour=["red", "red", None]))


GAPS = pd.DataFrame({"x": [1.0, np.nan, 5.0, 9.0], "c": ["a", "b", None, "b"], "y": [1, 2, 3, 4]})


def test_missing_cells_by_the_median():
    recipe = Recipe.learn(GAPS, missing="median")
    assert recipe.names == ("x", "c=a", "c=b", "y")
    assert recipe(GAPS).tolist() == [[1, 1, 0, 1], [5, 0, 1, 2], [5, 0, 1, 3], [9, 0, 1, 4]]
    assert recipe(GAPS.assign(y=np.nan))[:, 3].tolist() == [2.5] * 4


def test_missing_cells_with_an_indicator():
    recipe = Recipe.learn(GAPS, missing="indicator")
    assert recipe.names == ("x", "x missing", "c=(empty)", "c=a", "c=b", "y")
    assert recipe(GAPS)[:, :5].tolist() == [
        [1, 0, 0, 1, 0],
        [5, 1, 0, 0, 1],
        [5, 0, 1, 0, 0],
        [9, 0, 0, 0, 1],
    ]


def test_a_renamed_column_is_told_with_the_nearest_name():
    with pytest.raises(TableError, match=r"no column 'colour', which .* did you mean 'Color'"):
        Recipe.learn(FRAME)(FRAME.rename(columns={"colour": "Color"}))


def test_text_in_a_column_of_numbers_is_named(tmp_path):
    (tmp_path / "new.csv").write_text("x\n1\n2\nabc\n4\n")
    recipe = Recipe.learn(FRAME, features=["x"])
    with pytest.raises(TableError) as caught:
        recipe(read_table(tmp_path / "new.csv"))
    assert str(caught.value) == "new.csv, row 4, column 'x': 'abc' is not a number"


def test_numbers_that_come_as_text_are_numbers():
    recipe = Recipe.learn(FRAME, features=["x"])
    assert recipe(pd.DataFrame({"x": ["1.5", " 2 ", "007"]})).ravel().tolist() == [1.5, 2.0, 7.0]


def test_a_slip_in_a_column_of_numbers_is_no_category(tmp_path):
    (tmp_path / "t.csv").write_text("x\n1.5\n2.5\n1.o5\n3.5\n")
    frame = read_table(tmp_path / "t.csv")
    with pytest.raises(
        TableError, match=r"row 4, column 'x': '1.o5' is not a number, as the other 3"
    ):
        Recipe.learn(frame)
    assert len(Recipe.learn(frame, categorical=["x"]).names) == 4


def test_free_text_is_no_category():
    frame = pd.DataFrame({"note": [f"text {k}" for k in range(30)]})
    with pytest.raises(TableError, match="column 'note': there are 30 different texts in 30 rows"):
        Recipe.learn(frame)
    assert len(Recipe.learn(frame, categorical=["note"]).names) == 30


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, np.inf], "row 2.*inf is not finite"),
        ([None, None], "empty"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "dates"),
    ],
)
def test_columns_that_cannot_be_used(values, words):
    with pytest.raises(TableError, match=words):
        Recipe.learn(pd.DataFrame({"x": values}), missing="median")


def test_wrong_arguments():
    with pytest.raises(ValueError, match="missing must be one of"):
        Recipe.learn(FRAME, missing="drop")
    with pytest.raises(TableError, match="no column 'X'"):
        Recipe.learn(FRAME, features=["X"])
    with pytest.raises(TableError, match="no rows"):
        Recipe.learn(FRAME.iloc[:0])
    with pytest.raises(TableError, match="no columns"):
        Recipe.learn(FRAME[[]])


def test_nullable_and_arrow_types_are_numbers():
    frame = pd.DataFrame({"x": pd.array([1, None, 3], "Int64"), "y": [1.0, 2.0, 3.0]})
    frame["y"] = frame["y"].astype("float64[pyarrow]")
    frame["b"] = pd.array([True, None, False], "boolean")
    recipe = Recipe.learn(frame, missing="median")
    assert recipe(frame)[:, :2].tolist() == [[1, 1], [2, 2], [3, 3]]
    assert recipe.names == ("x", "y", "b=False", "b=True")


def test_a_recipe_can_be_saved(tmp_path):
    recipe = Recipe.learn(GAPS, missing="indicator")
    write(tmp_path / "r", "recipe", recipe)
    assert read(tmp_path / "r") == ("recipe", recipe)


def test_a_hundred_thousand_rows_take_no_time():
    import time

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100_000, 5)), columns=list("abcde"))
    frame["c"] = rng.choice(["red", "green", "blue"], len(frame))
    recipe = Recipe.learn(frame)
    start = time.process_time()
    recipe(frame)
    assert time.process_time() - start < 1.0
