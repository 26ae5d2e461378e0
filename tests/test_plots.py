"""Displays: what they compute is right, and they draw whatever a model was fitted to."""

import io
from functools import cache

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from two_levels import fitted, two_levels

from polyfid import MultiFidelityClassifier, Study, TrustedOnly
from polyfid.inspection import level_difference
from polyfid.kernels import RBF
from polyfid.plots import (
    ComparisonDisplay,
    DiscrepancyDisplay,
    FeasibilityDisplay,
    StudyDisplay,
    TrustDisplay,
)
from polyfid.plots.slices import MOST_POINTS
from polyfid.plots.style import CLASS_COLOURS, REST, even_steps, map_of_class

trust = TrustDisplay.from_estimator


def feasibility(*data, **how):
    return FeasibilityDisplay.from_estimator(*data, **({"grid_resolution": 8} | how))


def discrepancy(*data, **how):
    return DiscrepancyDisplay.from_estimator(*data, **({"grid_resolution": 8} | how))


def comparison(*data, **how):
    return ComparisonDisplay.from_estimator(*data, **({"grid_resolution": 8} | how))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@cache
def example(n_features=2, n_classes=2):
    """A model and the rows it was fitted to."""
    data = two_levels(n_features, n_classes)
    return fitted(*data), *data


def draw(display):
    """The picture; warnings of drawing are errors."""
    out = io.BytesIO()
    display.figure_.savefig(out, dpi=60)
    return out.getvalue()


def texts_cut(figure):
    """Axes (with labels, ticks and legends) and legends that are partly outside of the figure."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = {str(ax): ax.get_tightbbox(renderer) for ax in figure.axes}
    boxes |= {str(legend): legend.get_window_extent(renderer) for legend in figure.legends}
    page = figure.bbox.padded(1.0)
    return [
        f"{name}: {box}"
        for name, box in boxes.items()
        if not (page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1))
    ]


def legend_of(display):
    return [t.get_text() for t in display.figure_.legends[0].get_texts()]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_features", [1, 2, 6])
def test_nothing_is_cut_at_the_width_of_a_column(n_features, n_classes):
    model, X, y, fidelity = example(n_features, n_classes)
    displays = [
        trust(model),
        feasibility(model, X, y, fidelity),
        discrepancy(model, X, show=("probability", "mean", "sd")),
    ]
    if n_features > 2:
        displays.append(discrepancy(model, X, features="pca"))
        displays.append(feasibility(model, X, features=(1, 5)))
    for display in displays:
        assert display.figure_.get_figwidth() == 3.4
        assert not texts_cut(display.figure_)
    assert displays[0].contributions.shape == (len(displays[0].links), 3)
    assert len(displays[0].links) == (1 if n_classes == 2 else n_classes)


def test_nothing_is_cut_with_averaged_structures_and_three_levels():
    X, y, fidelity = two_levels(n=(24, 14))
    levels = np.where(np.arange(len(X)) < 12, "bots", fidelity)
    model = MultiFidelityClassifier(levels=["bots", "crowd", "gold"], random_state=0)
    model.fit(X, y, fidelity=levels)
    assert len(model.structures_) > 1
    display = trust(model)
    assert not texts_cut(display.figure_)
    assert legend_of(display) == ["average, 95 %", "structures, by weight"]
    assert discrepancy(model, X, lower="bots").levels == ("bots", "gold")


def test_names_from_data_are_shown_as_they_are():
    X, y, fidelity = two_levels()
    labels = np.where(y, "$x^{$ is a class with a long name", "_hidden")
    levels = np.where(np.asarray(fidelity) == "gold", "z" * 60, "_a\nb")
    frame = pd.DataFrame(X, columns=["a$b", "<script>alert(1)</script> of a long name"])
    model = fitted(frame, labels, levels, levels=["_a\nb", "z" * 60])
    display = feasibility(model, frame, labels, levels)
    for one in (
        display,
        comparison(model, frame, labels, levels),
        discrepancy(model, frame),
        trust(model),
    ):
        assert not texts_cut(one.figure_)
    assert display.ax_.get_xlabel() == r"a\$b"
    assert display.ax_.get_ylabel() == "<script>aler…a long name"
    assert len(legend_of(display)) == 6  # names that begin with _ are not hidden


def test_displays_draw_on_axes_that_are_given():
    model, X, y, fidelity = example()
    figure = Figure(figsize=(7, 8), layout="constrained")
    axes = figure.subplots(3, 2).ravel()
    before = plt.get_fignums()
    displays = {
        0: feasibility(model, X, y, fidelity, ax=axes[0]),
        1: discrepancy(model, X, ax=axes[1:3]),
        3: trust(model, ax=axes[3:6]),
    }
    assert all(one.ax_ is axes[k] and one.figure_ is figure for k, one in displays.items())
    assert plt.get_fignums() == before
    assert draw(displays[0])


def test_plotting_again_gives_another_figure_and_the_same_picture():
    settings = dict(matplotlib.rcParams)
    display = feasibility(*example())
    first, picture = display.figure_, draw(display)
    assert display.plot() is display
    assert display.figure_ is not first
    assert draw(display) == picture
    assert dict(matplotlib.rcParams) == settings


@pytest.mark.parametrize(("k", "n_classes"), [(0, 2), (1, 2), (3, 4), (9, 12)])
def test_maps_are_white_in_the_middle_and_darker_towards_both_ends(k, n_classes):
    colours = map_of_class(k, n_classes)(np.linspace(0, 1, 128))[:, :3]
    grey = colours @ [0.299, 0.587, 0.114]
    assert (np.diff(grey[:64]) > 0).all()
    assert (np.diff(grey[64:]) < 0).all()
    assert colours[63:65].min() > 0.95
    assert grey.min() > 0.3  # dark lines stand out


def test_maps_reach_as_far_as_the_data_do_and_to_both_sides_alike():
    np.testing.assert_allclose(even_steps(0.5, 0.42, most=0.5)[[0, 5, -1]], [0.0, 0.5, 1.0])
    np.testing.assert_allclose(even_steps(0.5, 0.03, most=0.5)[[0, -1]], [0.47, 0.53])
    np.testing.assert_allclose(even_steps(0.0, 7.2)[[0, -1]], [-8.0, 8.0])
    assert even_steps(0.0, 0.0)[-1] == 1.0
    model, X, *_ = example()
    near = feasibility(model, X * 0.02 + [0.2, 1.0])
    area = near.ax_.collections[0]
    assert 0.0 < area.get_clim()[0] < near.probability.min()
    assert sum(area.get_clim()) == pytest.approx(1.0)


@pytest.mark.parametrize(("n_features", "n_classes"), [(1, 2), (1, 3), (2, 2), (2, 3)])
def test_feasibility_is_the_probability_of_the_model_at_the_grid(n_features, n_classes):
    model, X, y, fidelity = example(n_features, n_classes)
    display = feasibility(model, X, y, fidelity, target=1, grid_resolution=None)
    assert display.probability.shape == ((200,) if n_features == 1 else (80, 80))
    assert display.values[0][0] < X[:, 0].min() < X[:, 0].max() < display.values[0][-1]
    point, node = [[values[4 + j] for j, values in enumerate(display.values)]], (5, 4)[-n_features:]
    assert display.probability[node] == pytest.approx(model.predict_proba(point)[0, 1])
    assert (display.low <= display.probability).all()
    assert (display.probability <= display.high).all()
    if n_classes == 2:
        ends = [1 / (1 + np.exp(-end.item())) for end in model.latent_interval(point)]
        assert [display.low[node], display.high[node]] == pytest.approx(ends)
    lower = feasibility(model, X, level="crowd", target=1, grid_resolution=None)
    expected = model.predict_proba(point, fidelity="crowd")[0, 1]
    assert lower.probability[node] == pytest.approx(expected)


def test_maps_of_the_first_of_two_classes_are_complements():
    model, X, *_ = example()
    no, yes = (feasibility(model, X, target=k) for k in (0, 1))
    np.testing.assert_allclose(no.probability, 1 - yes.probability)
    np.testing.assert_allclose(no.low, 1 - yes.high)
    no, yes = (discrepancy(model, X, target=k) for k in (0, 1))
    np.testing.assert_allclose(no.delta_mean, -yes.delta_mean)
    np.testing.assert_allclose(no.delta_sd, yes.delta_sd)
    np.testing.assert_allclose(no.probability, yes.probability)


@pytest.mark.parametrize("others", ["median", "average", np.linspace(-1, 1, 8)])
def test_other_features_are_fixed_or_averaged(others):
    model, X, *_ = example(8)
    display = feasibility(model, X, features=(0, 7), others=others)
    sample = np.random.RandomState(0).permutation(len(X))[:40]
    rows = {"median": np.median(X, axis=0)[None], "average": X[sample]}.get(str(others), [others])
    rows = np.array(rows)
    rows[:, [0, 7]] = display.values[0][2], display.values[1][4]
    expected = model.predict_proba(rows)[:, 1].mean()
    assert display.probability[4, 2] == pytest.approx(expected)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_points_have_the_colour_of_their_class_and_the_mark_of_their_level(n_classes):
    y, fidelity = example(n_classes=n_classes)[2:]
    display = feasibility(*example(n_classes=n_classes))
    marks = {
        (line.get_marker(), line.get_markerfacecolor()): len(line.get_xdata())
        for line in display.ax_.lines
    }
    for k in range(n_classes):
        for level, marker in (("crowd", "o"), ("gold", "D")):
            expected = ((np.asarray(fidelity) == level) & (y == k)).sum()
            assert marks.pop((marker, CLASS_COLOURS[k])) == expected > 0
    assert not marks
    last = n_classes - 1
    words = [f"P({last}) = 0.5", "boundary may be here", "crowd", "gold", *"012"[:n_classes]]
    assert legend_of(display) == words


def test_of_very_many_classes_only_the_one_that_is_shown_has_a_colour():
    X, *_ = two_levels()
    y = np.arange(len(X)) % 10
    fidelity = np.where(np.arange(len(X)) < 60, 0, 1)
    model = fitted(X, y, fidelity)
    for display in (feasibility, comparison):
        shown = display(model, X, y, fidelity, target=3)
        assert {"3", "others"} <= {*legend_of(shown)}
        assert {one.get_markerfacecolor() for one in shown.ax_.lines} == {CLASS_COLOURS[1], REST}
        blue = [one for one in shown.ax_.lines if one.get_markerfacecolor() == CLASS_COLOURS[1]]
        assert sum(len(one.get_xdata()) for one in blue) == (y == 3).sum()


def test_the_band_lies_below_the_points_and_lets_the_map_through():
    display = feasibility(*example())
    (band,) = [c for c in display.ax_.collections if c.get_alpha() is not None]
    assert band.get_alpha() < 0.3
    assert band.get_zorder() < min(line.get_zorder() for line in display.ax_.lines)
    assert not any(c.get_hatch() for c in display.ax_.collections)


def test_figures_are_white_whatever_the_style_of_the_user():
    with plt.style.context("dark_background"):
        display = feasibility(*example())
        discrepancy(*example()[:2])
        picture = plt.imread(io.BytesIO(draw(display)))
    np.testing.assert_allclose(picture[0, 0, :3], 1.0)


def test_something_is_clear_only_where_the_band_leaves_it_out():
    model, X, y, fidelity = example()
    assert feasibility(model, X).is_clear_somewhere
    display = discrepancy(model, X)
    assert display.differs_somewhere
    assert display.corrects_somewhere
    vague = fitted(X, y, fidelity, kernel=[0.001 * RBF(1.0)] * 2, rho=0.0)
    assert not feasibility(vague, X).is_clear_somewhere
    assert not discrepancy(vague, X).corrects_somewhere
    same = fitted(X, y, fidelity, kernel=[9.0 * RBF(1.0), 1e-6 * RBF(1.0)], rho=1.0)
    assert not discrepancy(same, X).differs_somewhere


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_comparison_has_both_models_at_the_grid_and_trusted_rows_on_their_maps(n_classes):
    model, X, y, fidelity = example(n_classes=n_classes)
    display = comparison(model, X, y, fidelity, target=1)
    assert not texts_cut(display.figure_)
    point = [[display.values[0][5], display.values[1][4]]]
    assert display.together[4, 5] == pytest.approx(model.predict_proba(point)[0, 1])
    same = MultiFidelityClassifier(9.0 * RBF(1.0), optimizer=None)
    alone = TrustedOnly(same).fit(X, y, fidelity=fidelity)
    given = comparison(model, X, y, fidelity, target=1, alone=alone)
    assert given.alone[4, 5] == pytest.approx(alone.predict_proba(point)[0, 1])
    n_gold = (np.asarray(fidelity) == "gold").sum()
    drawn = [sum(len(line.get_xdata()) for line in ax.lines) for ax in display.axes_]
    assert drawn == [len(X), n_gold, n_gold]
    assert draw(display.plot())


def test_the_model_of_trusted_rows_has_the_parameters_of_the_model():
    X, y, fidelity = example()[1:]
    model = MultiFidelityClassifier(4.0 * RBF(0.7), optimizer=None).fit(X, y, fidelity=fidelity)
    alone = TrustedOnly(MultiFidelityClassifier(4.0 * RBF(0.7), optimizer=None))
    alone.fit(X, y, fidelity=fidelity)
    first, second = (comparison(model, X, y, fidelity, alone=a) for a in (None, alone))
    np.testing.assert_allclose(first.alone, second.alone)


def test_of_many_points_a_sample_is_drawn_and_the_legend_says_so():
    X, y, fidelity = two_levels(n=(MOST_POINTS + 50, 10))
    legend = legend_of(feasibility(example()[0], X, y, fidelity))
    assert f"crowd ({MOST_POINTS} of {MOST_POINTS + 50})" in legend


def test_other_classifiers_have_no_band_and_get_the_rows_as_they_came():
    _, X, y, _ = example()
    display = feasibility(LogisticRegression().fit(X, y), X, y)
    assert display.low is None
    assert draw(display)
    frame = pd.DataFrame(X, columns=["a", "b"])
    forest = RandomForestClassifier(5, random_state=0).fit(frame, y)  # warns of missing names
    display = feasibility(forest, frame, y, feature_names=["first", "second"])
    assert display.feature_names == ("first", "second")


def test_maps_without_boundary_and_constant_features_are_drawn():
    model, X, *_ = example()
    display = feasibility(model, X * 0.05 + 1.5)
    assert display.probability.min() > 0.5
    assert draw(display)
    constant = np.column_stack([X[:, 0], np.ones(len(X))])
    assert feasibility(model, constant).values[1][[0, -1]].tolist() == [0.5, 1.5]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_data_frames_bring_names_and_any_order(make):
    plain, X, y, fidelity = example()
    frame = make({"width": X[:, 0], "height": X[:, 1]})
    model = fitted(frame, y, fidelity)
    other = make({"height": X[:, 1], "width": X[:, 0]})
    display = feasibility(model, other, features=("height", "width"))
    assert display.ax_.get_xlabel() == "height"
    point = [[display.values[1][1], display.values[0][3]]]
    assert display.probability[1, 3] == pytest.approx(plain.predict_proba(point)[0, 1])
    assert discrepancy(model, frame).axis_names == ("width", "height")


def test_the_fidelity_column_is_no_feature():
    X, y, fidelity = two_levels()
    code = (np.asarray(fidelity) == "gold").astype(float)
    both = np.column_stack([X, code])
    model = MultiFidelityClassifier(9.0 * RBF(), optimizer=None, fidelity_feature=2).fit(both, y)
    display = feasibility(model, both, y)
    assert display.feature_names == ("feature 0", "feature 1")
    assert display.points.level.tolist() == code.astype(int).tolist()
    assert comparison(model, both, y).points.level.tolist() == code.astype(int).tolist()


def test_levels_differ_where_the_crowd_is_wrong():
    model, X, *_ = example()
    display = discrepancy(model, X, grid_resolution=25)
    x0, x1 = np.meshgrid(*display.values)
    clear = np.abs(x0) > 1
    assert 1.0 >= display.probability[clear & (x1 > 1)].mean() > 0.7
    assert 0.0 <= display.probability[clear & (x1 < -1)].mean() < 0.3
    display = discrepancy(model, X, features=1, show=("mean", "sd"), grid_resolution=None)
    assert display.probability.shape == (200,)
    assert [ax.get_ylabel() for ax in display.axes_] == ["mean of delta (1)", "sd of delta (1)"]
    assert len(display.plot(show="sd").axes_) == 1


def test_principal_components_show_the_rows_themselves():
    model, X, *_ = example(8)
    display = discrepancy(model, X, features="pca")
    assert display.scattered
    assert np.corrcoef(*display.values)[0, 1] == pytest.approx(0.0, abs=1e-9)
    assert display.axis_names[0].startswith("component 1 (")
    expected = level_difference(model, X, 0, 1, 1).probability
    np.testing.assert_allclose(display.probability, expected)


BOTH = (feasibility, discrepancy)


def of_rows(model, X, **how):
    return comparison(model, X, **(dict(zip(("y", "fidelity"), example()[2:], strict=True)) | how))


@pytest.mark.parametrize(
    ("displays", "arguments", "message"),
    [
        (BOTH, {"features": (0, 0)}, "two different"),
        (BOTH, {"features": (0, 1, 1)}, "one feature or two"),
        (BOTH, {"features": "width"}, "by name, of .*; got 'width'"),
        (BOTH, {"features": 2}, "index from 0 to 1"),
        (BOTH, {"others": "mean"}, 'others must be "median"'),
        (BOTH, {"others": [1.0]}, "others must be"),
        (BOTH, {"target": 7}, r"one of the classes \[.*0.*1.*\], got 7"),
        (BOTH, {"feature_names": ["a"]}, "one name per column"),
        (BOTH, {"ax": 3}, "ax must be a"),
        ([discrepancy], {"show": "rho"}, "show must be among"),
        ([discrepancy], {"lower": "gold"}, "lower must be a level below upper"),
        ([discrepancy], {"upper": "platinum"}, "upper has unknown level"),
        ([discrepancy], {"X": np.ones((3, 1)), "features": "pca"}, "needs two features"),
        ([feasibility], {"y": [1, 0, 1]}, "y has 3 entries"),
        ([feasibility], {"X": np.empty((0, 2))}, "X has no rows"),
        ([trust], {"ax": 3}, "list of 3"),
        ([of_rows], {"features": 0}, "features must be two features, got 0"),
        ([of_rows], {"y": [1, 0, 1]}, "y has 3 entries"),
    ],
)
def test_arguments_that_make_no_sense(displays, arguments, message):
    model, X, *_ = example()
    for display in displays:
        with pytest.raises(ValueError, match=message):
            display(model, **({"X": X} | arguments))


@pytest.mark.parametrize("display", [feasibility, discrepancy, trust])
def test_models_that_are_not_fitted_or_have_one_level(display):
    X, y, _ = two_levels()
    model = MultiFidelityClassifier(4.0 * RBF(), optimizer=None)
    with pytest.raises(NotFittedError):
        display(model, X)
    model.fit(X, y)
    if display is not feasibility:
        with pytest.raises(ValueError, match="one level only"):
            display(model, X)


def test_progress_of_a_study():
    pool = np.random.RandomState(0).uniform(-2, 2, (80, 1))
    model = MultiFidelityClassifier(9.0 * RBF(1.0), optimizer=None)
    study = Study(pool, costs={"expert": 2}, model=model, audit=1.0, random_state=0)
    for _ in range(3):
        batch = study.ask(n=9)
        study.tell(batch.assign(label=batch["x0"] > 0))
    history = study.history_
    display = study.plot()
    assert isinstance(display, StudyDisplay)
    np.testing.assert_array_equal(display.spent, [0, 18, 36, 54])
    assert display.audited.tolist() == [False, True, True, True]
    np.testing.assert_allclose(display.held_out[1:], [h["held_out"] for h in history[1:]])
    above, below = display.axes_
    drawn = [line.get_ydata().tolist() for line in above.lines]
    assert display.held_out[1:].tolist() in drawn
    assert np.isnan(display.promised[[0, 3]]).all()
    heights = [bar.get_height() for bar in below.patches]
    np.testing.assert_allclose(heights, [*display.promised, *display.delivered])
    names = [text.get_text() for text in below.get_legend().get_texts()]
    assert names == ["promised", "delivered"]
    StudyDisplay.of_history(history[:1]).plot()  # nothing to draw does no harm
