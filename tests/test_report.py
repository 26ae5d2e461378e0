"""The HTML report: what it shows, that data stay data, and that a browser is happy with it."""

import base64
import io
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from headless import CHROMIUM, Browser

from polyfid import MultiFidelityClassifier, evaluate
from polyfid.evaluation import Estimate
from polyfid.inspection import likely_wrong
from polyfid.kernels import RBF
from polyfid.plots import TrustDisplay
from polyfid.plots.style import CLASS_COLOURS
from polyfid.report import Page, annotators_of, charts, maps, render, write_report
from polyfid.report.page import clean, typeset
from polyfid.tables import Roles, TableModel, read_labelled

HOSTILE = "<script>alert(1)</script>"
SECTIONS = ["data", "comparison", "trust", "calibration", "features", "rows", "model", "repeat"]
HOW = {"command": "polyfid report 'a <b>.csv'", "seed": 7, "warnings": ["<i>careful</i>"]}


def make_table(n_cheap=70, n_trusted=40, classes=("bad", "good"), levels=("crowd", "gold"), **more):
    rng = np.random.RandomState(0)
    n = n_cheap + n_trusted
    frame = pd.DataFrame({"size": rng.uniform(0, 10, n), "age": rng.normal(size=n)})
    frame["kind"] = rng.choice(["a", "b"], n)
    rank = frame["size"].rank(pct=True) + 0.02 * frame["age"]
    code = np.clip((rank * len(classes)).astype(int), 0, len(classes) - 1).to_numpy()
    wrong = (rng.uniform(size=n) < 0.2) & (np.arange(n) < n_cheap)
    frame["label"] = np.array(classes)[np.where(wrong, (code + 1) % len(classes), code)]
    lower = np.array(levels[:-1])[np.arange(n_cheap) % (len(levels) - 1)] if n_cheap else []
    frame["fidelity"] = [*lower, *[levels[-1]] * n_trusted]
    frame["id"] = [f"item {i}" for i in range(n)]
    return read_labelled([frame.assign(**more)], Roles(levels=levels if n_cheap else levels[-1:]))


def fit(table, optimizer=None, **how):
    """A model of the table, with hyper-parameters as given: that is fast."""
    classifier = MultiFidelityClassifier(3.0 * RBF(), optimizer=optimizer, random_state=0)
    return TableModel.fit(table, classifier, **how)


def parts_of(table, **how):
    model = fit(table, **how)
    X, y, fidelity = model.training()
    few = {"levels": table.levels, "n_splits": 2, "n_bootstrap": 50}
    evaluation = evaluate(X, y, fidelity, model=model.unfitted(), **few)
    return {"model": model, "table": table, "evaluation": evaluation}


@pytest.fixture(scope="module", autouse=True)
def coarse_maps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyfid.report.maps.RESOLUTION", 12)
        yield


@pytest.fixture
def without_maps(monkeypatch):
    """Leave out what takes most of the time, where a test is of something else."""
    monkeypatch.setattr("polyfid.report.maps.trust", lambda _: None)
    monkeypatch.setattr("polyfid.report.maps.feasibility", lambda _: ([], []))


@pytest.fixture(scope="module")
def parts():
    levels = ('crowd" onload="x', "gold & <b>silver</b>")
    return parts_of(make_table(classes=("good", HOSTILE), levels=levels), optimizer="lbfgs")


@pytest.fixture(scope="module")
def page(parts):
    return render(**parts, **HOW)


@pytest.fixture(scope="module")
def tree(page):
    return Tree(page)


class Tree(HTMLParser):
    """The tags of a page with their attributes, and its text.

    Tags must be closed in order, and no attribute may run a script.
    """

    VOID = frozenset({"meta", "br", "link", "input"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        assert not any(name.startswith("on") for _, attrs in self.tags for name in attrs)
        self.text = " ".join(self.words)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def test_the_page_can_be_read_aloud_and_its_references_lead_somewhere(tree, page):
    names = [attrs["id"] for _, attrs in tree.tags if "id" in attrs]
    assert len(set(names)) == len(names)
    wanted = re.findall(r'(?:xlink:href="#|url\(#|href="#|aria-labelledby=")([^")]+)', page)
    assert wanted
    assert {*wanted, *SECTIONS} <= {*names}
    drawings = tree.all("svg")
    assert len(drawings) > 8
    assert all(a["role"] == "img" and a["aria-label"] for a in drawings)
    assert all(a["aria-labelledby"] for a in tree.all("table"))
    heads = [a for a in tree.all("th") if a.get("scope") == "col"]
    assert len(heads) == len(tree.all("button")) > 20


def test_the_file_is_small_and_nothing_is_fetched_or_run(page, tree):
    assert len(page.encode()) < 600_000
    assert not any("src" in attrs or tag in ("link", "img") for tag, attrs in tree.tags)
    for _, attrs in tree.tags:
        inside = ("#", "data:text/csv;") if "download" in attrs else "#"
        assert all(attrs.get(name, "#").startswith(inside) for name in ("href", "xlink:href"))
    assert not re.search(r"url\((?!#)|@import", page)
    (policy,) = (a["content"] for a in tree.all("meta") if a.get("http-equiv"))
    assert re.search(r"default-src 'none'.*script-src 'sha256-[\w+/=]{44}'", policy)


def test_figures_have_the_colours_of_the_page(page):
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    fixed = {*CLASS_COLOURS, "#fefefe", "#111111"}
    assert set(re.findall(r"(?:fill|stroke)(?:: |=\")(#\w+)", drawn)) <= fixed
    style = resources.files("polyfid.report").joinpath("page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    used = set(re.findall(r"var\((--[\w-]+)\)", drawn)) - {"--tone"}
    assert {"--ink", "--muted", "--field", "--accent", "--middle"} <= used
    assert all(f"{name}:" in light and f"{name}:" in dark for name in used)


def test_labels_levels_and_commands_are_text_and_the_page_can_be_repeated(page, tree, parts):
    assert page.count("<script>") == 1
    assert not re.search("<script>alert|<i>careful|<b>silver", page)
    for text in (HOSTILE, "gold & <b>silver</b>", 'crowd" onload="x', HOW["command"]):
        assert text in tree.text
    assert re.search(r"seed\s+7", tree.text)
    assert f"numpy {np.__version__}" in tree.text
    for line in parts["model"].classifier.report_.lines:
        assert all(text in tree.text for text in line)
    assert render(**parts, **HOW) == page


def test_figures_of_trust_are_those_of_the_terminal_and_the_notebook(page, parts):
    report = parts["model"].classifier.report_
    ((link,),) = report.links
    section = page[page.index('<section id="trust">') :]
    shown = re.sub(r"<[^>]*>", " ", section[: section.index("</table>")]).replace("−", "-")
    for value, ends in (
        (link.rho, link.rho_interval),
        (link.correlation, link.correlation_interval),
    ):
        span = " to ".join(f"{end:+.2f}" for end in ends)
        assert f"{value:+.2f} ({span})" in str(report)
        assert f"{value:+.2f} ({span})" in report.to_html()
        assert re.search(rf"{re.escape(f'{value:+.2f}')}\s+{re.escape(span)}", shown)
    display = TrustDisplay.from_estimator(parts["model"].classifier)
    assert display.links == report.links
    plt.close(display.figure_)


def test_nasty_names_and_cells_everywhere(tmp_path):
    n = 60
    nasty = ["--><script>x</script>", "\x00\x1b[31m", "\u202eright to left", "$\\frac{", "日本語"]
    more = {
        "]]><svg onload=alert(1)>": np.resize(nasty, n),
        "cost ($) of ($$": np.linspace(-1e9, 1e9, n),
        "tiny": np.linspace(0, 1e-12, n),
        "id": [f"={i}<td>" for i in range(n)],
    }
    table = make_table(40, 20, classes=("{{ 7 * 7 }}\n'\"\\1", "_%s" + "é" * 300), **more)
    path = write_report(tmp_path / "page.html", model=fit(table), table=table, title="</title><b>")
    text = path.read_text(encoding="utf-8")
    tree = Tree(text)
    assert len(tree.all("script")) == 1
    assert "{{ 7 * 7 }}" in text
    assert not re.search("[\x00\x1b\u202e]|tip:", text)
    assert re.search(r"<title>crowd, {{ 7 \* 7 }}\n[^<]*\\1: \d+ rows", text)
    assert any("é…é" in head for head in re.findall("<button.*?</button>", text))  # cut


def test_text_is_cleaned_and_numbers_get_a_typographic_minus():
    for value in ("a\x00b", "a\ud800b", "a\u2066b", "a\x85b"):
        assert clean(value) == "a\ufffdb"
    assert typeset("crowd-1: (-0.5, 95 % interval -1 to +2)") == (
        "crowd-1: (−0.5, 95\u00a0% interval −1 to +2)"
    )


@pytest.mark.parametrize("n_cheap", [0, 30])
def test_without_an_evaluation_the_page_says_that_nothing_was_measured(n_cheap):
    table = make_table(n_cheap, 40)
    text = render(model=fit(table), table=table)
    assert "was not measured" in text
    assert not re.search('id="(comparison|calibration|surprising)"', text)
    assert ('id="trust"' in text) == (n_cheap > 0)  # one level has no links
    assert 'id="uncertain"' in text


def test_three_classes_and_three_levels():
    table = make_table(80, 45, classes=("low", "mid", "high"), levels=("web", "crowd", "gold"))
    text = render(**parts_of(table))
    assert Tree(text)
    for name in ("low", "mid", "high"):
        assert text.count(f"<b>Probability of “{name}”") == 2  # a reliability curve and a map
    for names in ("“web” and “crowd”", "“crowd” and “gold”"):
        assert f"Where {names} differ" in text


@pytest.mark.parametrize("columns", [["size"], ["kind"], ["size", "kind"]])
def test_few_columns(columns):
    roles = Roles(features=tuple(columns), levels=("crowd", "gold"))
    table = read_labelled([make_table(40, 20).to_frame()], roles)
    text = render(model=fit(table), table=table)
    assert ("Probability of “good”" in Tree(text).text) == ("size" in columns)
    assert ("1 feature." in text) == (len(columns) == 1)


def test_gaps_are_empty_and_rows_without_ids_have_their_place(without_maps):
    ages = np.where(np.arange(60) % 3, np.linspace(0, 1, 60), np.nan)
    frame = make_table(40, 20, age=ages).to_frame().drop(columns="id")
    table = read_labelled([frame], Roles(levels=("crowd", "gold")))
    text = Tree(render(model=fit(table, missing="indicator"), table=table)).text
    assert "nan" not in text
    assert table.places[0].split()[0] in text


def test_parts_of_different_tables_are_refused(parts):
    other = make_table(30, 20)
    with pytest.raises(ValueError, match="levels"):
        render(model=parts["model"], table=other)
    with pytest.raises(ValueError, match="other rows"):
        render(model=fit(other), table=other, evaluation=parts["evaluation"])


def test_a_file_is_written_whole_or_not_at_all(parts, without_maps, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_report(tmp_path / "nowhere" / "a.html", model=parts["model"], table=parts["table"])
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_report(path, model=parts["model"], table=parts["table"])
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "old"


def test_charts_can_draw_missing_and_degenerate_values():
    nothing, one = Estimate(np.nan, np.nan, np.nan), Estimate(1.0, 1.0, 1.0)
    drawings = [
        charts.estimates_chart({"a": nothing, "b": one}, "x", "x"),
        charts.estimates_chart({"a": nothing}, "x", "x"),
        charts.difference_chart(Estimate(0.0, 0.0, 0.0), "x", ("better", "worse")),
        charts.bars_chart({"a": Estimate(0.0, 0.0, 0.0)}, "x"),
        charts.shares_chart(["a", "b"], ["c", "d"], np.array([[0, 3], [0, 0]]), "x"),
    ]
    assert not any(re.search(r"\b(nan|inf)\b", drawing) for drawing in drawings)
    assert "<title>b: 1.0000 (1.0000 to 1.0000)</title>" in drawings[0]


def downloads(page):
    """The tables inside a page, by the names of their files."""
    links = [attrs for attrs in Tree(page).all("a") if "download" in attrs]
    data = {a["download"]: base64.b64decode(a["href"].partition(",")[2]) for a in links}
    return {name: pd.read_csv(io.BytesIO(text), dtype=str) for name, text in data.items()}


def test_whole_lists_of_rows_are_inside_the_page_without_formulas(without_maps):
    more = {"id": [f"=HYPERLINK({i})" for i in range(110)]}
    more["kind"] = ["+cmd|x", "b"] * 55
    table = make_table(**more)
    parts = parts_of(table)
    page = render(**parts)
    files = downloads(page)
    assert [*files] == [
        "likely-wrong-labels.csv",
        "surprising-trusted-rows.csv",
        "uncertain-rows.csv",
    ]
    wrong = files["likely-wrong-labels.csv"]
    found = likely_wrong(parts["model"].classifier, *parts["model"].training())
    assert wrong["Row"].tolist() == [f"'=HYPERLINK({i})" for i in found.rows]
    np.testing.assert_allclose(wrong["Probably wrong"].astype(float), found.probability)
    assert (
        len(wrong)
        == 70
        > page.count(
            "<tr>", page.index('id="wrong"'), page.index("</table>", page.index('id="wrong"'))
        )
    )
    assert {*wrong["kind"]} == {"'+cmd|x", "b"}
    assert {"size", "age"} < {*wrong.columns}
    assert wrong["Expected"].tolist() == found.expected.tolist()
    probability = files["uncertain-rows.csv"]["Probability"].astype(float)
    assert (np.diff(probability) >= 0).all()  # of two classes the least sure first
    n_wrong = len(files["surprising-trusted-rows.csv"])
    assert re.search(rf"Of 40 trusted rows, {n_wrong} (has|have) a label", Tree(page).text)


def test_the_deciding_score_comes_first_and_answers_are_counted(parts, page):
    heads = re.findall(r"<button[^>]*>([^<]*)<", page[page.index('id="scores"') :])
    assert heads[:2] == ["Method", "Log-loss"]
    assert "Accuracy" in heads[:7]
    accuracy = parts["evaluation"].accuracy["polyfid"]
    assert f"{accuracy.value:.3f}" in page[page.index('id="scores"') :][:5000]
    confusion = page[page.index('id="confusion"') :]
    numbers = re.findall(r'data-key="(\d+)\.0"', confusion[: confusion.index("</table>")])
    assert [*map(int, numbers)] == parts["evaluation"].confusion.ravel().tolist()
    assert 'id="agreement"' not in page  # no point has labels of both levels


def test_levels_that_labelled_the_same_points_are_compared(without_maps):
    frame = make_table(60, 0, levels=("crowd", "gold"), classes=("bad", "good")).to_frame()
    both = [frame.assign(fidelity="crowd"), frame.assign(fidelity="gold")]
    table = read_labelled(both, Roles(levels=("crowd", "gold")))
    page = render(**parts_of(table))
    text = page[page.index('id="agreement"') :]
    assert "100 %" in text[: text.index("</table>")]


@pytest.mark.parametrize(
    ("effect", "tone"),
    [
        ("help", "help"),
        ("hurt", "hurt"),
        ("no clear difference", "none"),
        ("too few trusted rows to tell", "few"),
    ],
)
def test_the_verdict_has_the_tone_of_its_effect(effect, tone, parts, without_maps, monkeypatch):
    judged = replace(parts["evaluation"].judgement, effect=effect, caveats=("Mind the <gap>.",))
    monkeypatch.setitem(parts["evaluation"].__dict__, "judgement", judged)
    page = render(**parts)
    assert f'<section class="verdict {tone}"' in page
    assert "<li>Mind the &lt;gap&gt;.</li>" in page
    style = resources.files("polyfid.report").joinpath("page.css").read_text()
    assert (f".verdict.{tone} {{" in style) == (tone != "none")


def test_a_link_of_which_nothing_is_known_is_a_caveat(parts, monkeypatch):
    assert "hardly known" not in render(**parts)
    known = maps.TrustDisplay.from_estimator

    def vague(model, **how):
        display = known(model, **how)
        links = [
            [replace(link, correlation_interval=(-0.97, 0.99)) for link in one]
            for one in display.links
        ]
        return replace(display, links=links)

    monkeypatch.setattr("polyfid.report.maps.TrustDisplay.from_estimator", vague)
    text = Tree(render(**parts)).text
    assert "hardly known: their correlation may be anything from −0.97 to +0.99" in text


def test_where_nothing_is_significant_there_is_a_sentence_and_no_map():
    rng = np.random.RandomState(0)
    table = make_table(40, 30, label=rng.choice(["bad", "good"], 70))
    classifier = MultiFidelityClassifier(
        [0.01 * RBF(), 0.01 * RBF()], rho=1.0, optimizer=None, random_state=0
    )
    page = render(model=TableModel.fit(table, classifier), table=table)
    text = Tree(page).text
    assert "No place was found where “crowd” and “gold” differ" in text
    assert "What “gold” adds to “crowd” may be nothing" in text
    assert "Whether a row is “good” is open everywhere" in text
    assert "Where “crowd” and “gold” differ" not in text
    assert "Probability of “good”" not in text


def test_a_flat_map_is_a_sentence_too():
    table = make_table(30, 40, label=["good"] * 68 + ["bad"] * 2)
    level = MultiFidelityClassifier(20.0 * RBF(50.0), rho=1.0, optimizer=None, random_state=0)
    model = TableModel.fit(table, level)
    text = Tree(render(model=model, table=table)).text
    assert re.search(r"The probability of “good” hardly changes, over .*\. It goes from 0\.9", text)


def test_any_table_of_annotators_is_shown_and_intervals_stand_beside_their_values(without_maps):
    people = pd.DataFrame(
        {
            "annotator": ["ann", "<bob>"],
            "answers": [1200, 7],
            "agreement": [0.8, np.nan],
            "agreement_low": [0.7, np.nan],
            "agreement_high": [0.9, np.nan],
            "errs_on": ["=kind", None],
        }
    )
    table = make_table()
    page = render(model=fit(table), table=table, annotators=people)
    text = page[page.index('id="annotators"') :]
    text = text[: text.index("</table>")]
    heads = re.findall(r"<button[^>]*>([^<]*)<", text)
    assert heads == ["annotator", "answers", "agreement", "errs on"]
    assert re.search(r"0\.80</bdi> <i>0\.70–0\.90</i>", text)
    assert "&lt;bob&gt;" in text
    assert "nan" not in text
    assert "1,200" in text
    assert 'id="annotators"' not in render(model=fit(table), table=table)
    assert downloads(page)["annotators.csv"].shape == (2, 6)


def test_people_who_answered_are_on_the_page(without_maps):
    rows = pd.DataFrame({"id": [k // 3 for k in range(60)], "x": [k // 3 / 10 for k in range(60)]})
    rows["worker"] = ["ann", "bob", "gold"] * 20
    rows["fidelity"] = ["crowd", "crowd", "gold"] * 20
    rows["label"] = ["no" if x < 1 else "yes" for x in rows["x"]]
    rows.loc[rows.index[1::6], "label"] = "no"
    table = read_labelled([rows], Roles(levels=("crowd", "gold")))
    model = fit(table)
    page = model.report(folds=0).html
    people = downloads(page)["annotators.csv"]
    assert people["worker"].tolist() == ["bob", "ann"]
    assert 'id="annotators"' not in model.report(folds=0, annotators=None).html
    cheap = table.fidelity == "crowd"
    for silent in (None, np.where(cheap, "", "gold")):
        assert annotators_of(replace(table, worker=silent)) is None
    assert annotators_of(replace(table, levels=("gold", "crowd", "none"))) is None
    twice = replace(table, worker=np.where(cheap, "ann", "gold"))
    with pytest.warns(UserWarning, match=r"no table of annotators: .*several labels"):
        assert annotators_of(twice) is None


def test_a_notebook_shows_the_page_in_a_frame(without_maps, tmp_path):
    model = fit(make_table())
    page = model.report(folds=2, title="Is it so?")
    assert "<h1>Is it so?</h1>" in page.html
    assert 'id="comparison"' in page.html
    (frame,) = Tree(page._repr_html_()).all("iframe")
    assert frame["srcdoc"] == page.html
    assert page.save(tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    assert len(repr(page)) < 100
    assert "was not measured" in model.report(folds=0).html
    again = model.report(evaluation=parts_of(make_table())["evaluation"])
    assert 'id="comparison"' in again.html
    with pytest.raises(ValueError, match="the model has no rows"):
        replace(model, table=None).report()


@pytest.fixture
def browse(tmp_path):
    """A function that opens a page in a browser, which must not complain until the end."""
    if not CHROMIUM.exists():
        pytest.skip("no Chromium")
    with Browser() as browser:

        def opened(page, width, dark=False):
            path = tmp_path / "page.html"
            path.write_text(page, encoding="utf-8")
            browser.open(path, width, dark=dark)
            assert browser.run("document.documentElement.scrollWidth") == width
            return browser

        yield opened
        assert browser.problems == []


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_a_browser_draws_it_without_complaint(page, browse, width, dark):
    browser = browse(page, width, dark)
    drawn = "[...document.querySelectorAll('main svg')].map(e => e.getBoundingClientRect().height)"
    assert min(browser.run(drawn)) > 20
    text = "getComputedStyle(document.querySelector('main svg text')).fill"
    assert browser.run(text) == ("rgb(233, 233, 238)" if dark else "rgb(27, 27, 31)")
    if width == 390:  # names of rows are not broken
        heights = "[...document.querySelectorAll('#rows tbody th')].map(e => e.offsetHeight)"
        assert max(browser.run(heights)) < 40


def test_words_sort_as_words_numbers_as_numbers_and_gaps_come_last(browse, without_maps):
    ages = np.where(np.arange(60) % 3, np.linspace(-30, 30, 60), np.nan)
    table = make_table(40, 20, age=ages)
    browser = browse(render(model=fit(table, missing="indicator"), table=table), 1200)
    shown = "document.querySelector('table[aria-labelledby=uncertain]')"
    head = f"[...{shown}.tHead.rows[0].cells].find(e => e.innerText.trim() == '%s')"

    def column(name):
        index = browser.run(f"{head % name}.cellIndex")
        return browser.run(f"[...{shown}.tBodies[0].rows].map(r => r.cells[{index}].innerText)")

    before, ages = column("Row"), [age for age in column("age") if age.strip()]
    gaps = [""] * (len(before) - len(ages))
    assert len(gaps) > 0 < len(ages)
    names = sorted(before, key=lambda text: int(text[5:]))
    numbers = sorted(ages, key=lambda text: float(text.replace("−", "-")))
    for name, up, gaps_last in (("Row", names, []), ("age", numbers, gaps)):
        browser.run(f"{head % name}.firstChild.focus()")
        for key, code, way, expected in (
            ("Enter", 13, "ascending", up + gaps_last),
            (" ", 32, "descending", up[::-1] + gaps_last),
        ):
            browser.press(key, code)
            assert browser.run(f"{head % name}.getAttribute('aria-sort')") == way
            assert column(name) == expected
        browser.press("Enter", 13)
        assert column("Row") == before


def test_wide_tables_of_like_names_on_paper(browse):
    rng = np.random.RandomState(1)
    names = [f"mean_temperature_of_reactor_{i}_in_degrees_celsius" for i in range(8)]
    more = {name: rng.normal(size=60) for name in names}
    more["id"] = [f"specimen/2024/{i:06d}/long-identifier" for i in range(60)]
    classes = ("acceptable for production", "to be rejected after second inspection")
    levels = ("simulation of the supplier", "measurement in our own laboratory")
    page = render(**parts_of(make_table(40, 20, classes=classes, levels=levels, **more)))
    heads = re.findall(r'<th scope="col"[^>]*title="([^"]*)"[^>]*><button[^>]*>([^<]*)<', page)
    short = dict(heads)
    assert len({*short.values()}) == len(short) >= 2
    assert all(f"_{re.search(r'[0-9]', whole)[0]}_" in text for whole, text in short.items())
    browser = browse(page, 680)  # what an A4 page leaves between its margins
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.send("Emulation.setEmulatedMedia", media="print", features=dark)
    # A browser makes all of a page smaller that is too wide.
    assert browser.run("document.documentElement.scrollWidth") == 680
    paper = "getComputedStyle(document.body).backgroundColor"
    assert browser.run(paper) == "rgb(255, 255, 255)"
    printed = browser.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
    assert len(printed["data"]) > 14_000


def test_technical_details_are_folded_away_except_on_paper(page, browse):
    browser = browse(page, 1200)
    height = "document.querySelector('#model .lines').offsetHeight"
    assert browser.run("document.querySelector('details').open") is False
    browser.send("Page.printToPDF")
    assert browser.run("document.querySelector('details').open") is True
    assert browser.run(height) > 50


def test_a_list_is_downloaded_although_the_page_may_fetch_nothing(page, browse, tmp_path):
    browser = browse(page, 1200)
    folder = tmp_path / "downloads"
    folder.mkdir()
    browser.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.run("document.querySelector('a[download=\"likely-wrong-labels.csv\"]').click()")
    for _ in range(100):
        if (folder / "likely-wrong-labels.csv").exists():
            break
        time.sleep(0.05)
    saved = pd.read_csv(folder / "likely-wrong-labels.csv", dtype=str)
    pd.testing.assert_frame_equal(saved, downloads(page)["likely-wrong-labels.csv"])


def test_links_to_sections_stay_in_the_frame_of_a_notebook(page, browse):
    browser = browse(f"<!doctype html><meta charset='utf-8'>{Page(page)._repr_html_()}", 1200)
    frame = "document.querySelector('iframe')"
    for _ in range(100):
        if browser.run(f"{frame}.contentDocument?.querySelector('footer') !== null"):
            break
        time.sleep(0.05)
    browser.run(f"{frame}.contentDocument.querySelector('nav a[href=\"#rows\"]').click()")
    assert browser.run(f"{frame}.contentWindow.scrollY") > 500
    assert browser.run(f"{frame}.contentDocument.querySelectorAll('h1').length") == 1


def test_what_to_label_next_and_how_a_study_goes(parts, without_maps):
    from polyfid import Study

    rng = np.random.RandomState(0)
    pool = pd.DataFrame({"id": [f"<{i}>" for i in range(60)], "x": rng.uniform(-1, 1, 60)})
    model = MultiFidelityClassifier(9.0 * RBF(1.0), optimizer=None)
    study = Study(pool, costs={"<crowd>": 1, "gold": 4}, model=model, random_state=0)
    for _ in range(2):
        batch = study.ask(budget=60)
        study.tell(batch.assign(label=batch["x"] > 0))
    batch, history = study.preview(n=30), study.history_
    page = render(**parts | {"evaluation": None, "batch": batch, "history": history})
    assert len(page.split('<section id="next">')) == 2
    section = page.split('<section id="next">')[1].split("</section>")[0]
    text = " ".join(re.sub("<[^>]*>", " ", section).split())
    assert "What to label next" in text
    assert "The next 30 labels to buy (" in text
    assert "The first 20 are shown." in text
    tables = [body.count("<tr>") for body in re.findall("<tbody>(.*?)</tbody>", section, re.DOTALL)]
    assert tables == [20, 3]
    assert "Labels of &lt;crowd&gt;" in section
    assert "<crowd>" not in section
    assert 'aria-label="Log-loss over the money spent' in section
    assert 'download="next.csv"' in section
    assert 'id="next"' not in render(**parts | {"evaluation": None})
