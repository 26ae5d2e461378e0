import gzip
from itertools import product

import numpy as np
import pytest
from result_rows import DATA, needs_data
from sklearn.utils import Bunch

from experiments import problems
from experiments.paper import Column
from experiments.problems import Labelled, Problem, load, usable_seeds, vote


def write(folder, name, header, rows):
    folder.mkdir(exist_ok=True)
    with gzip.open(folder / name, "wt") as file:
        file.write("\n".join([",".join(header), *(",".join(map(str, row)) for row in rows)]))


@pytest.fixture
def diabetes(tmp_path):
    """A set of that name at two noises: 400 rows, every third positive."""
    rows = [(i, -i, 2 if i % 3 == 0 else 1) for i in range(400)]
    write(tmp_path / "pmlb", "diabetes.csv.gz", ["a", "b", "target"], rows)
    return [Problem(Column("pmlb", "diabetes", c), "diabetes", str(tmp_path)) for c in (0.2, 0.4)]


@pytest.fixture
def songs():
    """Four songs: clear majority, a single answer, a tie of two, a tie of three."""
    votes = ["rock rock pop", "pop", "rock jazz rock jazz", "pop jazz rock"]
    given = [(i, 10 * i + j, g) for i, song in enumerate(votes) for j, g in enumerate(song.split())]
    task, worker, label = map(np.array, zip(*given, strict=True))
    return Bunch(
        data=np.arange(8.0).reshape(4, 2),
        target=np.array(["rock", "rock", "jazz", "pop"]),
        id=np.array(["b", "a", "d", "c"]),
        answers=Bunch(task=task, worker=worker, label=label),
    )


def test_rows_are_drawn_as_in_the_published_code():
    n = 400
    X = np.arange(n, dtype=float)[:, None]
    true = np.arange(n) % 2
    split = Labelled(X, 1 - true, true, true).draw(7, 100, 50, 20)
    rng = np.random.RandomState(7)
    test = rng.choice(n, 100, replace=False)
    rest = np.array([i for i in range(n) if i not in set(test)])
    cheap = rng.choice(rest, 50, replace=False)
    trusted = rng.choice(rest, 20, replace=False)
    for rows, wanted in (
        (split.X_test[:, 0], test),
        (split.y_test, true[test]),
        (split.X[:, 0], [*cheap, *trusted]),
        (split.y, [*(1 - true[cheap]), *true[trusted]]),
        (split.fidelity, [0] * 50 + [1] * 20),
    ):
        np.testing.assert_array_equal(rows, wanted)


def test_flips_are_the_same_for_every_draw(diabetes):
    rows = load("diabetes", 0.4, diabetes[0].data_home)
    flipped = np.random.RandomState(0).rand(400) < 0.4
    np.testing.assert_array_equal(rows.cheap != rows.true, flipped)
    np.testing.assert_array_equal(rows.trusted, rows.true)
    # Trusted and test rows do not depend on the noise.
    low, high = (problem.split(2) for problem in diabetes)
    assert (len(low.y_test), low.sizes) == (174, {"n_cheap": 225, "n_trusted": 75})
    np.testing.assert_array_equal(low.X, high.X)
    np.testing.assert_array_equal(low.y_test, high.y_test)
    np.testing.assert_array_equal(low.level(1)[1], high.level(1)[1])
    assert (low.level(0)[1] != high.level(0)[1]).any()


def test_a_draw_without_a_class_is_passed_over(diabetes):
    problem = diabetes[0]

    def good(seed):
        split = problem.split(seed, 4, 2)
        return all(len(set(split.level(level)[1])) == 2 for level in (0, 1))

    # Run and draws so far, as in the published code.
    wanted, drawn = [], 0
    for run in range(5):
        while not good(run + drawn):
            drawn += 1
        wanted.append(run + drawn)
        drawn += 1
    assert usable_seeds([problem], 5, 4, 2) == wanted
    assert wanted != [0, 2, 4, 6, 8]
    with pytest.raises(ValueError, match="diabetes must have both classes"):
        usable_seeds([problem], 3, n_trusted=1)


def test_most_votes_win_before_genres_are_told_apart(songs):
    rock = vote(songs, "rock")
    assert rock.trusted[:2].tolist() == [1, 0]
    assert rock.true.tolist() == [1, 1, 0, 0]
    # Exactly one genre wins each song, ties included.
    winners = sum(vote(songs, genre).trusted for genre in ("rock", "pop", "jazz"))
    assert winners.tolist() == [1, 1, 1, 1]
    assert vote(songs, "pop").trusted[2] == 0  # no answer says so
    singles = sum(vote(songs, genre).cheap for genre in ("rock", "pop", "jazz"))
    assert singles.tolist() == [1, 1, 1, 1]  # drawn alike every time


def test_no_answer_counts_twice(songs):
    answers = vote(songs, "rock").answers_to(np.array([0, 1, 3]), np.array([0, 2]))
    # All of songs 0 and 2, one of songs 1 and 3.
    assert np.bincount(answers.annotator // 10).tolist() == [3, 1, 4, 1]
    np.testing.assert_array_equal(answers.X[:, 0] / 2, answers.annotator // 10)
    assert answers.y[:3].tolist() == [1, 1, 0]


def test_only_the_sets_that_are_there_or_made_ones(tmp_path):
    quick = problems.artificial(str(tmp_path), quick=True)
    assert [p.name for p in quick[::2]] == ["made_0", "made_10", "made_20", "made_30"]
    rows = load("made_10", 0.4, None)
    assert rows.X.shape == (5000, 5)
    assert abs((rows.cheap != rows.trusted).mean() - 0.4) < 0.05
    for number in (3, 12, 14):
        write(tmp_path / "artificial", f"df_{number}.csv.gz", ["feature_0"], [])
    sets = problems.artificial(str(tmp_path))
    assert [p.name for p in sets] == [f"df_{n}" for n in (3, 3, 12, 12, 14, 14)]
    assert [p.column.name for p in sets][::2] == ["2D", "5D", "5D"]
    quick = problems.artificial(str(tmp_path), quick=True)
    assert [(p.name, p.column.noise) for p in quick] == list(product(("df_3", "df_12"), (0.2, 0.4)))


@needs_data
def test_crowd_labels_are_as_good_as_is_known():
    rows = load("sentiment_polarity", None, DATA)
    assert (rows.cheap == rows.true).mean() == pytest.approx(0.79, abs=0.01)
    assert (rows.trusted == rows.true).mean() == pytest.approx(0.88, abs=0.01)
    assert len(rows.draw(0, 4773, 225, 75).answers.y) > 75 * 3
