"""Displays: what they compute is right, and they draw whatever a model was fitted to."""

import io
import warnings

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.calibration import CalibrationDisplay
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import RocCurveDisplay

from polyfid import MultiFidelityClassifier, stack_levels
from polyfid.kernels import RBF
from polyfid.plots import DiscrepancyDisplay, FeasibilityDisplay, TrustDisplay
from polyfid.inspection import _both_positive, level_difference as difference
from polyfid.plots.slices import MOST_POINTS, FeatureGrid, FeatureTable
from polyfid.plots.style import MAP, label as shown


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def rows(n_features=2, n_classes=2, n=(60, 30), seed=0):
    """Levels that agree where the second feature is negative, and differ elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (sum(n), n_features))
    edges = [0.0, 1.0][: n_classes - 1]
    gold = np.digitize(X[:, 0], edges)
    crowd = np.where(X[:, -1] < 0, gold, np.digitize(-X[:, 0], edges)) if n_features > 1 else gold
    return stack_levels({"crowd": (X[: n[0]], crowd[: n[0]]), "gold": (X[n[0] :], gold[n[0] :])})


def fitted(X, y, fidelity, **settings):
    settings = {
        "kernel": [9.0 * RBF(1.0), 9.0 * RBF(1.0)],
        "rho": 0.5,
        "optimizer": None,
    } | settings
    return MultiFidelityClassifier(**settings).fit(X, y, fidelity=fidelity)


@pytest.fixture(scope="module")
def plane():
    data = rows()
    return fitted(*data), *data


@pytest.fixture(scope="module")
def three():
    data = rows(n_classes=3)
    return fitted(*data), *data


@pytest.fixture(scope="module")
def tuned():
    data = rows()
    return fitted(*data, kernel=1.0 * RBF(), optimizer="lbfgs", random_state=0)


@pytest.fixture(scope="module")
def averaged():
    X, y, fidelity = rows(n=(24, 14))
    return MultiFidelityClassifier(random_state=0).fit(X, y, fidelity=fidelity), X


def draw(display):
    """The picture; warnings of drawing are errors."""
    out = io.BytesIO()
    display.figure_.savefig(out, dpi=60)
    return out.getvalue()


def texts_cut(figure):
    """Axes (with labels, ticks and legends) and legends that lie partly outside of the figure."""
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


# Feasibility


def test_feasibility_is_the_probability_of_the_model_at_the_grid(plane):
    model, X, y, fidelity = plane
    display = FeasibilityDisplay.from_estimator(model, X, y, fidelity, grid_resolution=12)
    x0, x1 = display.values
    assert display.probability.shape == (12, 12)
    expected = model.predict_proba([[x0[3], x1[7]]])[0, 1]
    assert display.probability[7, 3] == pytest.approx(expected)
    mean, variance = model.latent_mean_and_variance([[x0[3], x1[7]]])
    low, high = (1 / (1 + np.exp(-(mean[0] + z * np.sqrt(variance[0])))) for z in (-1.96, 1.96))
    assert display.low[7, 3] == pytest.approx(low)
    assert display.high[7, 3] == pytest.approx(high)
    assert x0[0] < X[:, 0].min() < X[:, 0].max() < x0[-1]


def test_feasibility_of_the_first_class_is_the_complement(plane):
    model, X, *_ = plane
    no = FeasibilityDisplay.from_estimator(model, X, target=0, grid_resolution=8)
    yes = FeasibilityDisplay.from_estimator(model, X, target=1, grid_resolution=8)
    np.testing.assert_allclose(no.probability, 1 - yes.probability)
    np.testing.assert_allclose(no.low, 1 - yes.high)


def test_feasibility_of_a_lower_level(plane):
    model, X, *_ = plane
    display = FeasibilityDisplay.from_estimator(model, X, level="crowd", grid_resolution=5)
    point = [[display.values[0][1], display.values[1][2]]]
    expected = model.predict_proba(point, fidelity="crowd")[0, 1]
    assert display.probability[2, 1] == pytest.approx(expected)


def test_feasibility_of_three_classes_has_the_probability_within_its_band(three):
    model, X, y, fidelity = three
    display = FeasibilityDisplay.from_estimator(model, X, y, fidelity, target=1, grid_resolution=15)
    point = [[display.values[0][4], display.values[1][9]]]
    assert display.probability[9, 4] == pytest.approx(model.predict_proba(point)[0, 1])
    inside = (display.low <= display.probability) & (display.probability <= display.high)
    assert inside.all()
    assert draw(display)


@pytest.mark.parametrize("others", ["median", "average", np.linspace(-1, 1, 8)])
def test_other_features_are_fixed_or_averaged(others):
    X, y, fidelity = rows(n_features=8)
    model = fitted(X, y, fidelity)
    display = FeasibilityDisplay.from_estimator(
        model, X, y, fidelity, features=(0, 7), others=others, grid_resolution=6
    )
    grid = Slice.of(X, (0, 7), 6, others)
    each = np.repeat(grid.background, 1, axis=0)
    each[:, [0, 7]] = display.values[0][2], display.values[1][4]
    assert len(each) == (40 if isinstance(others, str) and others == "average" else 1)
    expected = model.predict_proba(each)[:, 1].mean()
    assert display.probability[4, 2] == pytest.approx(expected)
    assert not texts_cut(display.figure_)


def test_one_feature_is_a_curve():
    X, y, fidelity = rows(n_features=1)
    display = FeasibilityDisplay.from_estimator(fitted(X, y, fidelity), X, y, fidelity)
    assert display.probability.shape == (200,)
    assert (display.low <= display.probability).all()
    assert (display.probability <= display.high).all()
    assert display.ax_.get_ylabel() == "P(1)"
    assert not texts_cut(display.figure_)


def test_feasibility_marks_points_by_level_and_class(plane):
    model, X, y, fidelity = plane
    display = FeasibilityDisplay.from_estimator(model, X, y, fidelity, grid_resolution=8)
    marks = {
        (line.get_marker(), line.get_markerfacecolor()): len(line.get_xdata())
        for line in display.ax_.lines
    }
    gold = np.asarray(fidelity) == "gold"
    assert marks["D", "white"] == (gold & (y == 0)).sum()
    assert sum(marks.values()) == len(y)
    assert len({marker for marker, _ in marks}) == 2
    words = [t.get_text() for t in display.figure_.legends[0].get_texts()]
    assert words == ["P(1) = 0.5", "boundary may be here", "crowd", "gold", "filled: 1", "open: 0"]


def test_many_points_are_sampled_and_that_is_said():
    X, y, fidelity = rows(n=(MOST_POINTS + 50, 10))
    model = fitted(X[-60:], y[-60:], fidelity[-60:])
    display = FeasibilityDisplay.from_estimator(model, X, y, fidelity, grid_resolution=8)
    words = [t.get_text() for t in display.figure_.legends[0].get_texts()]
    assert f"crowd ({MOST_POINTS} of {MOST_POINTS + 50})" in words


def test_feasibility_of_any_classifier_has_no_band(plane):
    _, X, y, _ = plane
    display = FeasibilityDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
    assert display.low is None
    assert draw(display)


def test_a_map_without_boundary_is_drawn():
    X, y, fidelity = rows()
    model = fitted(X, y, fidelity)
    far = X * 0.05 + 1.5
    display = FeasibilityDisplay.from_estimator(model, far, grid_resolution=6)
    assert display.probability.min() > 0.5
    assert draw(display)


def test_a_constant_feature_has_a_range_of_its_own(plane):
    model, X, *_ = plane
    same = np.column_stack([X[:, 0], np.ones(len(X))])
    display = FeasibilityDisplay.from_estimator(model, same, grid_resolution=5)
    assert display.values[1][0] == 0.5
    assert display.values[1][-1] == 1.5


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_data_frames_bring_names_and_any_order(make):
    X, y, fidelity = rows()
    frame = make({"width": X[:, 0], "height": X[:, 1]})
    model = fitted(frame, y, fidelity)
    other = make({"height": X[:, 1], "width": X[:, 0]})
    display = FeasibilityDisplay.from_estimator(
        model, other, features=("height", "width"), grid_resolution=5
    )
    assert display.ax_.get_xlabel() == "height"
    place = fitted(X, y, fidelity).predict_proba([[display.values[1][1], display.values[0][3]]])
    assert display.probability[1, 3] == pytest.approx(place[0, 1])
    assert (
        DiscrepancyDisplay.from_estimator(model, frame, grid_resolution=5).axis_names[0] == "width"
    )


def test_the_column_of_the_fidelity_is_no_feature():
    X, y, fidelity = rows()
    code = (np.asarray(fidelity) == "gold").astype(float)
    kernels = [9.0 * RBF(), 9.0 * RBF()]
    both = np.column_stack([X, code])
    model = MultiFidelityClassifier(kernels, optimizer=None, fidelity_feature=2).fit(both, y)
    display = FeasibilityDisplay.from_estimator(model, both, y, grid_resolution=5)
    assert display.points.level.tolist() == code.astype(int).tolist()
    assert draw(display)


def test_names_from_data_are_shown_as_they_are():
    X, y, fidelity = rows()
    labels = np.where(y, "$x^{$ is a class with a long name", "_hidden")
    levels = np.where(np.asarray(fidelity) == "gold", "z" * 60, "_a\nb")
    frame = pd.DataFrame(X, columns=["cost ($) of $x", "<script>alert(1)</script> of a long name"])
    model = fitted(frame, labels, levels)
    for display in (
        FeasibilityDisplay.from_estimator(model, frame, labels, levels, grid_resolution=8),
        DiscrepancyDisplay.from_estimator(model, frame, grid_resolution=8),
        TrustDisplay.from_estimator(model),
    ):
        assert not texts_cut(display.figure_)
    assert shown("a$b") == r"a\$b"
    assert len(shown("z" * 60)) == 24


# Discrepancy


def test_pairs_have_the_joint_moments_of_the_model(plane):
    model, X, *_ = plane
    x = X[:4] + 0.1
    found = difference(model, x, 0, 1, 1)
    both = np.concatenate([x, x])
    levels = np.repeat(["crowd", "gold"], 4)
    mean, covariance = model.latent_mean_and_covariance(both, levels)
    rho = model.rho_[0]
    np.testing.assert_allclose(found.delta_mean, mean[4:] - rho * mean[:4])
    mix = np.concatenate([-rho * np.eye(4), np.eye(4)], axis=1)
    np.testing.assert_allclose(found.delta_sd**2, np.diagonal(mix @ covariance @ mix.T))
    samples = model.sample_latent(both, 20000, fidelity=levels, random_state=0)
    sampled = ((samples[:4] > 0) != (samples[4:] > 0)).mean(axis=1)
    np.testing.assert_allclose(found.probability, sampled, atol=0.015)


def test_pairs_of_averaged_structures_agree_with_samples(averaged):
    model, X = averaged
    assert len(model.structures_) > 1
    x = X[:3]
    levels = np.repeat(["crowd", "gold"], 3)
    samples = model.sample_latent(np.concatenate([x, x]), 40000, fidelity=levels, random_state=0)
    found = difference(model, x, 0, 1, 1)
    sampled = ((samples[:3] > 0) != (samples[3:] > 0)).mean(axis=1)
    np.testing.assert_allclose(found.probability, sampled, atol=0.015)


def test_three_classes_differ_as_samples_do(three):
    model, X, *_ = three
    x = X[:4] + 0.1
    levels = np.repeat(["crowd", "gold"], 4)
    samples = model.sample_latent(np.concatenate([x, x]), 20000, fidelity=levels, random_state=0)
    top = samples.argmax(axis=-1)
    found = difference(model, x, 0, 1, 2).probability
    np.testing.assert_allclose(found, (top[:4] != top[4:]).mean(axis=1), atol=0.03)


@pytest.mark.parametrize("r", [-1 + 1e-12, -0.6, 0.0, 0.6, 1 - 1e-12])
def test_probability_that_both_are_positive(r):
    a, b = np.array([0.0, 0.5, -1.0, 2.0, 0.0]), np.array([0.0, -0.7, -0.2, 2.0, 1.0])
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal((2, 200000))
    w = r * u + np.sqrt(1 - r * r) * v
    sampled = [((p + u > 0) & (q + w > 0)).mean() for p, q in zip(a, b, strict=True)]
    np.testing.assert_allclose(_both_positive(a, b, np.full(5, r)), sampled, atol=0.005)


def test_levels_differ_where_the_crowd_is_wrong(plane):
    model, X, *_ = plane
    display = DiscrepancyDisplay.from_estimator(model, X, grid_resolution=25)
    x0, x1 = np.meshgrid(*display.values)
    clear = np.abs(x0) > 1
    assert display.probability[clear & (x1 > 1)].mean() > 0.7
    assert display.probability[clear & (x1 < -1)].mean() < 0.3
    assert ((display.probability >= 0) & (display.probability <= 1)).all()


def test_delta_changes_sign_with_the_class(plane):
    model, X, *_ = plane
    yes = DiscrepancyDisplay.from_estimator(model, X, grid_resolution=5)
    no = DiscrepancyDisplay.from_estimator(model, X, target=0, grid_resolution=5)
    np.testing.assert_allclose(no.delta_mean, -yes.delta_mean)
    np.testing.assert_allclose(no.delta_sd, yes.delta_sd)
    np.testing.assert_allclose(no.probability, yes.probability)


def test_principal_components_show_the_rows_themselves():
    X, y, fidelity = rows(n_features=8)
    model = fitted(X, y, fidelity)
    display = DiscrepancyDisplay.from_estimator(model, X, features="pca")
    assert display.scattered
    assert display.probability.shape == (len(X),)
    assert np.corrcoef(*display.values)[0, 1] == pytest.approx(0.0, abs=1e-9)
    assert display.axis_names[0].startswith("component 1 (")
    np.testing.assert_allclose(display.probability, difference(model, X, 0, 1, 1).probability)
    assert not texts_cut(display.figure_)


def test_discrepancy_along_one_feature_and_all_quantities(plane):
    model, X, *_ = plane
    show = ("probability", "mean", "sd")
    display = DiscrepancyDisplay.from_estimator(model, X, features=1, show=show)
    assert display.probability.shape == (200,)
    assert len(display.axes_) == 3
    assert not texts_cut(display.figure_)
    assert len(DiscrepancyDisplay.from_estimator(model, X, show="sd").axes_) == 1


def test_levels_that_are_not_neighbours():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    y = X[:, 0] > 0
    parts = {name: (X[k::3], y[k::3]) for k, name in enumerate(["bots", "crowd", "gold"])}
    model = MultiFidelityClassifier(4.0 * RBF(), rho=[0.5, 0.8], optimizer=None)
    X, y, fidelity = stack_levels(parts)
    model.fit(X, y, fidelity=fidelity)
    found = difference(model, X[:5], 0, 2, 1)
    mean = [model.latent_mean_and_variance(X[:5], name)[0] for name in ("bots", "gold")]
    np.testing.assert_allclose(found.delta_mean, mean[1] - 0.4 * mean[0])
    display = DiscrepancyDisplay.from_estimator(model, X, lower="bots", grid_resolution=5)
    assert display.levels == ("bots", "gold")
    assert not texts_cut(TrustDisplay.from_estimator(model).figure_)


# Trust


def test_trust_without_tuning_is_the_values_given(plane):
    model, *_ = plane
    display = TrustDisplay.from_estimator(model)
    (link,) = display.links[0]
    assert link.rho == pytest.approx(0.5)
    assert link.rho_interval == pytest.approx((0.5, 0.5))
    expected = 0.5 * 9 / np.sqrt(9 * (0.25 * 9 + 9))
    assert link.correlation == pytest.approx(expected)


def test_tuned_links_come_with_intervals(tuned):
    display = TrustDisplay.from_estimator(tuned)
    (link,) = display.links[0]
    assert link.rho == pytest.approx(tuned.rho_[0])
    low, high = link.rho_interval
    assert low < link.rho < high
    low, high = link.correlation_interval
    assert -1 <= low <= link.correlation <= high <= 1
    assert not texts_cut(display.figure_)


def test_structures_are_averaged_by_weight(averaged):
    model, _ = averaged
    display = TrustDisplay.from_estimator(model)
    (link,) = display.links[0]
    assert len(link.rho_each) == len(model.structures_)
    assert link.rho == pytest.approx(sum(s.weight * s.rho[0] for s in model.structures_))
    assert not texts_cut(display.figure_)


def test_contributions_are_drops_of_the_posterior_variance(plane):
    model, X, *_ = plane
    display = TrustDisplay.from_estimator(model, X)
    crowd, gold, unknown = display.contributions[0]
    assert crowd + gold + unknown == pytest.approx(1.0)
    assert min(crowd, gold, unknown) > 0
    variance = model.latent_mean_and_variance(X)[1]
    assert unknown == pytest.approx(variance.mean() / (0.25 * 9 + 9))


def test_labels_of_a_level_that_is_unrelated_contribute_nothing():
    X, y, fidelity = rows()
    display = TrustDisplay.from_estimator(fitted(X, y, fidelity, rho=0.0))
    assert display.contributions[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert display.links[0][0].correlation == 0.0


def test_trust_of_three_classes_has_a_line_a_class(three):
    model, *_ = three
    display = TrustDisplay.from_estimator(model)
    assert len(display.links) == 3
    assert display.contributions.shape == (3, 3)
    assert not texts_cut(display.figure_)


def test_trust_of_unordered_sources():
    X, y, fidelity = rows()
    model = fitted(X, y, fidelity, coupling="coregional")
    display = TrustDisplay.from_estimator(model)
    A, v = model._fits[0].prior.loadings, 9.0
    joint = v * A @ A.T
    assert display.links[0][0].rho == pytest.approx(joint[0, 1] / joint[0, 0])


def test_trust_with_learnt_label_noise():
    X, y, fidelity = rows(n=(30, 14))
    model = MultiFidelityClassifier(1.0 * RBF(), label_noise="fidelity", max_iter=30)
    display = TrustDisplay.from_estimator(model.fit(X, y, fidelity=fidelity))
    assert np.isfinite(display.contributions).all()


# What all displays share


def test_displays_draw_on_axes_that_are_given(plane):
    model, X, y, fidelity = plane
    figure = Figure(figsize=(7, 8), layout="constrained")
    axes = figure.subplots(3, 2).ravel()
    before = plt.get_fignums()
    first = FeasibilityDisplay.from_estimator(model, X, y, fidelity, grid_resolution=8, ax=axes[0])
    second = DiscrepancyDisplay.from_estimator(model, X, grid_resolution=8, ax=axes[1:3])
    third = TrustDisplay.from_estimator(model, ax=axes[3:6])
    assert first.ax_ is axes[0]
    assert second.ax_ is axes[1]
    assert third.ax_ is axes[3]
    assert first.figure_ is second.figure_ is third.figure_ is figure
    assert plt.get_fignums() == before
    assert draw(first)


def test_plotting_again_gives_another_figure_and_the_same_picture(plane):
    model, X, y, fidelity = plane
    display = FeasibilityDisplay.from_estimator(model, X, y, fidelity, grid_resolution=8)
    first, picture = display.figure_, draw(display)
    assert display.plot() is display
    assert display.figure_ is not first
    assert draw(display) == picture


def test_settings_of_matplotlib_stay_as_they_are(plane):
    model, X, *_ = plane
    before = dict(matplotlib.rcParams)
    FeasibilityDisplay.from_estimator(model, X, grid_resolution=5)
    assert dict(matplotlib.rcParams) == before


def test_the_default_width_is_one_column(plane):
    model, X, *_ = plane
    for display in (
        FeasibilityDisplay.from_estimator(model, X, grid_resolution=5),
        DiscrepancyDisplay.from_estimator(model, X, grid_resolution=5),
        TrustDisplay.from_estimator(model),
    ):
        assert display.figure_.get_figwidth() == 3.4
        assert not texts_cut(display.figure_)


def test_the_map_is_readable_in_grey():
    rgb = MAP(np.linspace(0, 1, 50))[:, :3]
    grey = rgb @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) > 0).all()
    assert grey[0] > 0.3  # black lines stand out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": (0, 0)}, "two different"),
        ({"features": (0, 1, 1)}, "one feature or two"),
        ({"features": "width"}, "'width', which is no feature"),
        ({"features": 2}, "place from 0 to 1"),
        ({"others": "mean"}, 'others must be "median"'),
        ({"others": [1.0]}, "others must be"),
        ({"target": 7}, r"one of the classes \[.*0.*1.*\], got 7"),
        ({"feature_names": ["a"]}, "one name a column"),
        ({"ax": 3}, "ax must be a"),
    ],
)
@pytest.mark.parametrize("display", [FeasibilityDisplay, DiscrepancyDisplay])
def test_arguments_that_make_no_sense(plane, display, arguments, message):
    model, X, *_ = plane
    with pytest.raises(ValueError, match=message):
        display.from_estimator(model, X, grid_resolution=4, **arguments)


def test_more_arguments_that_make_no_sense(plane):
    model, X, y, _ = plane
    with pytest.raises(ValueError, match="show must be among"):
        DiscrepancyDisplay.from_estimator(model, X, grid_resolution=4, show="rho")
    with pytest.raises(ValueError, match="lower must be a level below upper"):
        DiscrepancyDisplay.from_estimator(model, X, lower="gold")
    with pytest.raises(ValueError, match="upper has unknown level"):
        DiscrepancyDisplay.from_estimator(model, X, upper="platinum")
    with pytest.raises(ValueError, match="y has 3 entries"):
        FeasibilityDisplay.from_estimator(model, X, y[:3], grid_resolution=4)
    with pytest.raises(ValueError, match="X has no rows"):
        FeasibilityDisplay.from_estimator(model, X[:0])
    with pytest.raises(ValueError, match="list of 3"):
        TrustDisplay.from_estimator(model, ax=plt.figure().subplots())


@pytest.mark.parametrize("display", [DiscrepancyDisplay, TrustDisplay])
def test_one_level_has_no_link(display):
    X, y, _ = rows()
    model = MultiFidelityClassifier(4.0 * RBF(), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="one level only"):
        display.from_estimator(model, X)


@pytest.mark.parametrize("display", [FeasibilityDisplay, DiscrepancyDisplay, TrustDisplay])
def test_a_model_that_is_not_fitted(display):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        display.from_estimator(MultiFidelityClassifier(), np.zeros((3, 2)))


def test_rows_come_back_in_the_container_they_came_in(plane):
    _, X, y, _ = plane
    frame = pd.DataFrame(X, columns=["a", "b"])
    forest = RandomForestClassifier(5, random_state=0).fit(frame, y)
    table = Table.read(forest, frame)
    assert list(table.wrap(X[:2]).columns) == ["a", "b"]
    assert draw(FeasibilityDisplay.from_estimator(forest, frame, y, grid_resolution=5))


def test_displays_of_scikit_learn_work_with_the_model(plane):
    model, X, y, fidelity = plane
    gold = np.asarray(fidelity) == "gold"
    roc = RocCurveDisplay.from_estimator(model, X[gold], y[gold])
    calibration = CalibrationDisplay.from_estimator(model, X[gold], y[gold], n_bins=3)
    assert calibration.prob_true.size > 0
    assert roc.ax_.figure is not None


def test_many_length_scales_are_no_reason_to_leave_intervals_out():
    rng = np.random.RandomState(0)
    x = rng.normal(size=(60, 18))
    level = np.repeat(["low", "high"], 30)
    y = x[:, 0] + np.where(level == "low", 0.5, 0.1) * rng.normal(size=60) > 0
    model = MultiFidelityClassifier(
        1.0 * RBF(ard=True), levels=["low", "high"], n_restarts=0, max_iter=20
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few steps are few
        model.fit(x, y, fidelity=level)
    (link,) = TrustDisplay.from_estimator(model, x).links[0]
    low, high = link.rho_interval
    assert low < link.rho < high
