"""The HTML report: what it shows, that data stay data, and that a browser is happy with it."""

import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from headless import CHROMIUM, Browser

from polyfid import MultiFidelityClassifier, evaluate
from polyfid.evaluation import Estimate
from polyfid.kernels import RBF
from polyfid.report import render, write_report
from polyfid.report.drawing import bar_plot, difference, dot_plot, share_plot
from polyfid.report.page import Cell, Head, Page, Section, Table, Verdict, clean, shorten, to_html
from polyfid.report.relevance import relevance
from polyfid.report.scores import typeset
from polyfid.tables import Roles, read_labelled
from polyfid.tabular import TableModel

HOSTILE = "<script>alert(1)</script>"


def make_table(n_cheap=70, n_trusted=40, classes=("bad", "good"), levels=("crowd", "gold"), **more):
    rng = np.random.RandomState(0)
    n = n_cheap + n_trusted
    frame = pd.DataFrame(
        {
            "size": rng.uniform(0, 10, n),
            "age": rng.normal(size=n),
            "kind": rng.choice(["a", "b"], n),
        }
    )
    rank = frame["size"].rank(pct=True) + 0.02 * frame["age"]
    code = np.clip((rank * len(classes)).astype(int), 0, len(classes) - 1).to_numpy()
    wrong = (rng.uniform(size=n) < 0.2) & (np.arange(n) < n_cheap)
    frame["label"] = np.array(classes)[np.where(wrong, (code + 1) % len(classes), code)]
    lower = np.array(levels[:-1])[np.arange(n_cheap) % (len(levels) - 1)] if n_cheap else []
    frame["fidelity"] = [*lower, *[levels[-1]] * n_trusted]
    frame["id"] = [f"item {i}" for i in range(n)]
    for name, values in more.items():
        frame[name] = values
    return read_labelled([frame], Roles(levels=levels if n_cheap else levels[-1:]))


def fit(table, optimizer=None, **how):
    """A model of the table, with hyper-parameters as given: that is fast."""
    classifier = MultiFidelityClassifier(3.0 * RBF(), optimizer=optimizer, random_state=0)
    return TableModel.fit(table, classifier, **how)


def judge(model):
    X, y, fidelity = model.training()
    return evaluate(
        X,
        y,
        fidelity,
        model=model.unfitted(),
        levels=model.table.levels,
        n_splits=2,
        n_bootstrap=50,
    )


@pytest.fixture(scope="module", autouse=True)
def coarse_maps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyfid.report.maps.RESOLUTION", 12)
        yield


@pytest.fixture(scope="module")
def parts():
    table = make_table(
        classes=("good", HOSTILE), levels=('crowd" onload="x', "gold & <b>silver</b>")
    )
    model = fit(table, optimizer="lbfgs")
    return {"model": model, "table": table, "evaluation": judge(model)}


@pytest.fixture
def without_plots(monkeypatch):
    """Leave out what takes most of the time, where a test is of something else."""
    monkeypatch.setattr("polyfid.report.maps.trust", lambda *_: Section("trust", "T", "T", ()))
    monkeypatch.setattr("polyfid.report.maps.feasibility", lambda *_: ())


@pytest.fixture(scope="module")
def page(parts):
    how = {"command": "polyfid report 'a <b>.csv'", "seed": 7, "warnings": ["<i>careful</i>"]}
    return render(**parts, **how)


class Tree(HTMLParser):
    """Tags with their attributes, the text of each heading, and tags left open."""

    VOID = frozenset({"meta", "img", "br", "link", "input"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.headings, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("h1", "h2"):
            self.headings.append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings[-1] += data

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def tree(page):
    return Tree(page)


# ------------------------------------------------------------------ structure


def test_all_elements_are_closed_in_order(tree):
    assert tree.open == []


def test_sections_follow_a_readers_questions(tree):
    anchors = [attrs["id"] for attrs in tree.all("section") if "id" in attrs]
    assert anchors == [
        "data",
        "comparison",
        "trust",
        "calibration",
        "features",
        "rows",
        "model",
        "repeat",
    ]
    links = [attrs["href"] for attrs in tree.all("a")]
    assert links == [f"#{name}" for name in anchors]


def test_the_verdict_comes_first_with_its_figure(page, parts):
    found = parts["evaluation"].differences["trusted only"]["log_loss"]
    shown = f"{found.value:+.3f}".replace("-", "−")
    start = page.index('class="verdict')
    assert start < page.index('id="data"')
    assert f"<b>{shown}</b>" in page[start : page.index('id="data"')]
    assert f"{len(parts['evaluation'].rows)} held-out trusted rows" in page


def test_identifiers_are_unique_and_references_lead_somewhere(tree, page):
    names = [attrs["id"] for _, attrs in tree.tags if "id" in attrs]
    assert len(set(names)) == len(names)
    wanted = re.findall(r'(?:xlink:href="#|url\(#|href="#|aria-labelledby=")([^")]+)', page)
    assert wanted
    assert set(wanted) <= set(names)


def test_the_file_is_complete_in_itself_and_small(page, tree):
    assert len(page.encode()) < 2_000_000
    assert not tree.all("link")
    assert all("src" not in attrs for attrs in tree.all("script"))
    for _, attrs in tree.tags:
        for name in ("src", "href", "xlink:href"):
            assert attrs.get(name, "#").startswith(("#", "data:"))
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page


def test_a_policy_lets_no_script_run_but_the_pages_own(tree):
    (policy,) = (a["content"] for a in tree.all("meta") if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[\w+/=]{44}'", policy)


def test_every_drawing_and_table_has_a_name_for_those_who_cannot_see_it(tree):
    drawings = [a for a in tree.all("svg") if a.get("role") == "img"]
    assert len(drawings) == len(tree.all("svg")) > 8
    assert all(a["aria-label"] for a in drawings)
    assert all(a["alt"] for a in tree.all("img"))
    assert all(a["aria-labelledby"] for a in tree.all("table"))


def test_heads_of_columns_are_buttons(tree):
    heads = [a for a in tree.all("th") if a.get("scope") == "col"]
    assert len(heads) == len(tree.all("button")) > 20
    assert all(a["type"] == "button" for a in tree.all("button"))


def test_counts_command_seed_and_versions_are_there(tree, parts):
    text = " ".join(tree.text)
    assert "polyfid report 'a <b>.csv'" in text
    assert re.search(r"seed\s+7", text)
    assert f"numpy {np.__version__}" in text
    for count in parts["table"].counts().to_numpy().ravel():
        assert str(count) in text


def test_the_models_own_report_is_told(tree, parts):
    text = " ".join(tree.text)
    for head, words in parts["model"].classifier.report_.lines:
        assert head in text
        assert words in text


def test_the_same_parts_give_the_same_page(parts, page):
    how = {"command": "polyfid report 'a <b>.csv'", "seed": 7, "warnings": ["<i>careful</i>"]}
    assert render(**parts, **how) == page


# ------------------------------------------------------------------- escaping


def test_labels_levels_and_commands_are_text(page, tree):
    assert HOSTILE not in page
    assert page.count("<script>") == 1
    assert "<i>careful" not in page
    assert "<b>silver" not in page
    assert not any(name.startswith("on") for _, attrs in tree.tags for name in attrs)
    text = " ".join(tree.text)
    assert HOSTILE in text
    assert "gold & <b>silver</b>" in text
    assert 'crowd" onload="x' in text


def test_nasty_names_and_cells_everywhere(tmp_path):
    n = 60
    nasty = ["--><script>x</script>", "\x00\x1b[31m", "\u202eright to left", "$\\frac{", "日本語"]
    more = {
        "]]><svg onload=alert(1)>": np.resize(nasty, n),
        "cost ($) of ($$": np.linspace(-1e9, 1e9, n),
        "tiny": np.linspace(0, 1e-12, n),
        "id": [f"={i}<td>" for i in range(n)],
    }
    table = make_table(40, 20, classes=("{{ 7 * 7 }}", "_%s" + "é" * 300), **more)
    path = write_report(tmp_path / "page.html", model=fit(table), table=table, title="</title><b>")
    text = path.read_text(encoding="utf-8")
    tree = Tree(text)
    assert tree.open == []
    assert len(tree.all("script")) == 1
    assert not any(name.startswith("on") for _, attrs in tree.tags for name in attrs)
    assert "{{ 7 * 7 }}" in text
    assert not re.search("[\x00\x1b\u202e]", text)
    heads = re.findall("<button.*?</button>", text)
    assert any("é…é" in head for head in heads)  # long names are cut


@pytest.mark.parametrize("value", ["a\x00b", "a\ud800b", "a\u2066b", "a\x85b"])
def test_characters_that_break_files_or_turn_text_are_replaced(value):
    assert clean(value) == "a\ufffdb"


def test_long_names_lose_their_middle():
    assert shorten("x" * 100, 60) == "x" * 30 + "…" + "x" * 29
    assert shorten("short", 5) == "short"


def test_signs_of_minus_are_set_only_before_numbers():
    assert typeset("crowd-1: (-0.5, 95 % interval -1 to +2)") == (
        "crowd-1: (−0.5, 95\u00a0% interval −1 to +2)"
    )


# ----------------------------------------------------------------------- cases


def test_without_an_evaluation_the_page_says_that_nothing_was_measured(parts, without_plots):
    text = render(model=parts["model"], table=parts["table"])
    assert "was not measured" in text
    for absent in ("comparison", "calibration", "surprising"):
        assert f'id="{absent}"' not in text
    assert 'id="uncertain"' in text


def test_one_level_has_no_trust_to_speak_of():
    table = make_table(0, 40)
    text = render(model=fit(table), table=table)
    assert 'id="trust"' not in text
    assert 'id="uncertain"' in text


def test_three_classes_and_three_levels():
    table = make_table(80, 45, classes=("low", "mid", "high"), levels=("web", "crowd", "gold"))
    model = fit(table)
    text = render(model=model, table=table, evaluation=judge(model))
    tree = Tree(text)
    assert tree.open == []
    for name in ("low", "mid", "high"):
        assert text.count(f"Probability of “{name}”") >= 2  # a reliability curve and a map
    assert "Where “web” and “crowd” differ" in text
    assert "Where “crowd” and “gold” differ" in text


@pytest.mark.parametrize("columns", [["size"], ["kind"], ["size", "kind"]])
def test_few_columns(columns):
    table = make_table(40, 20)
    frame = table.to_frame()
    table = read_labelled([frame], Roles(features=tuple(columns), levels=table.levels))
    text = render(model=fit(table), table=table)
    assert Tree(text).open == []
    assert ("Probability of “good”" in text) == ("size" in columns)


def test_missing_values_are_shown_as_empty_cells(without_plots):
    values = np.linspace(0, 1, 60)
    values[::3] = np.nan
    table = make_table(40, 20, age=values)
    text = render(model=fit(table, missing="indicator"), table=table)
    assert "nan" not in Tree(text).text


def test_rows_without_ids_are_called_by_their_place(without_plots):
    frame = make_table(40, 20).to_frame().drop(columns="id")
    table = read_labelled([frame], Roles(levels=("crowd", "gold")))
    assert table.origin[0] in "".join(Tree(render(model=fit(table), table=table)).text)


def test_surprising_rows_are_those_that_the_model_did_not_expect(parts, page):
    found = parts["evaluation"]
    code = np.array([found.classes.index(v) for v in found.labels.tolist()])
    p = found.out_of_fold["polyfid"][np.arange(len(code)), code]
    start = page.index('id="surprising"')
    first = re.search(r'<th scope="row"[^>]*><bdi>(.*?)</bdi>', page[start:])[1]
    assert first == parts["table"].ids[found.rows[np.argmin(p)]]


def test_uncertain_rows_have_no_trusted_label(parts, page):
    part = page[page.index('id="uncertain"') : page.index('id="surprising"')]
    names = re.findall(r'<th scope="row"[^>]*><bdi>(.*?)</bdi>', part)
    levels = dict(zip(parts["table"].ids, parts["table"].fidelity, strict=True))
    assert len(names) == 12
    assert {levels[name] for name in names} == {parts["table"].levels[0]}


def test_a_column_that_decides_is_the_most_relevant(parts):
    found = relevance(parts["model"], parts["table"])
    assert next(iter(found)) == "size"
    assert set(found) == {"size", "age", "kind"}
    assert 0.0 <= min(found.values()) <= max(found.values()) <= 1.0


def test_parts_of_different_tables_are_refused(parts):
    other = make_table(30, 20)
    with pytest.raises(ValueError, match="levels"):
        render(model=parts["model"], table=other)
    with pytest.raises(ValueError, match="other rows"):
        render(model=fit(other), table=other, evaluation=parts["evaluation"])


# ------------------------------------------------------------------------ files


def test_a_file_is_written_whole_or_not_at_all(parts, without_plots, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_report(path, model=parts["model"], table=parts["table"])
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "old"


def test_a_folder_that_is_not_there_is_named(parts, without_plots, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_report(tmp_path / "nowhere" / "a.html", model=parts["model"], table=parts["table"])


# --------------------------------------------------------------------- drawings


def test_drawings_bear_figures_that_do_not_exist():
    nothing = Estimate(np.nan, np.nan, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawings = [
            dot_plot([("a", nothing), ("b", Estimate(1.0, 1.0, 1.0))], "x"),
            dot_plot([("a", nothing)], "x"),
            difference(Estimate(0.0, 0.0, 0.0), "x", "better", "worse"),
            bar_plot([("a", 0.0)], "x"),
            share_plot(["a", "b"], ["c", "d"], np.array([[0, 3], [0, 0]]), "x"),
        ]
    assert not any("nan" in drawing or "inf" in drawing for drawing in drawings)


def test_dots_lie_where_their_figures_are():
    drawing = dot_plot([("a", Estimate(0.2, 0.1, 0.3)), ("b", Estimate(0.8, 0.7, 0.9))], "x")
    first, second = map(float, re.findall(r'<circle cx="([\d.]+)"', drawing))
    lines = [
        tuple(map(float, found))
        for found in re.findall(r'x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"', drawing)
    ]
    assert first < second
    assert any(np.isclose((a + b) / 2, first, atol=0.02) and a < b for a, b in lines)


# -------------------------------------------------------------------- a browser


@pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium")
def test_a_browser_draws_it_without_complaint_and_sorts_by_keyboard(page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    with Browser() as browser:
        for width, dark in ((1200, False), (390, True)):
            browser.open(path, width, dark=dark)
            # Nothing is wider than the screen, and everything drawn has a size.
            assert browser.run("document.documentElement.scrollWidth") == width
            drawn = "[...document.querySelectorAll('main svg, main img')]"
            assert browser.run(f"{drawn}.every(e => e.getBoundingClientRect().height > 20)")
            assert browser.run(f"{drawn}.every(e => e.tagName != 'IMG' || e.naturalWidth > 0)")
        table = "document.querySelector('table[aria-labelledby=surprising]')"
        ids = f"[...{table}.tBodies[0].rows].map(row => row.cells[0].innerText)"
        p = f"[...{table}.tBodies[0].rows].map(row => +row.cells[2].innerText)"
        head = f"{table}.tHead.rows[0].cells[2]"
        before, values = browser.run(ids), browser.run(p)
        browser.run(f"{head}.firstChild.focus()")
        for key, code, way, expected in (
            ("Enter", 13, "ascending", sorted(values)),
            (" ", 32, "descending", sorted(values, reverse=True)),
        ):
            browser.press(key, code)
            assert browser.run(f"{head}.getAttribute('aria-sort')") == way
            assert browser.run(p) == expected
        browser.press("Enter", 13)
        assert browser.run(f"{head}.hasAttribute('aria-sort')") is False
        assert browser.run(ids) == before
        assert browser.problems == []


@pytest.fixture(scope="module")
def wide_page():
    """Many columns whose long names differ in the middle, long ids, levels and labels."""
    rng = np.random.RandomState(1)
    n = 60
    more = {
        f"mean_temperature_of_reactor_{i}_in_degrees_celsius": rng.normal(size=n) for i in range(8)
    }
    more["id"] = [f"specimen/2024/{i:06d}/long-identifier" for i in range(n)]
    classes = ("acceptable for production", "to be rejected after second inspection")
    levels = ("simulation of the supplier", "measurement in our own laboratory")
    table = make_table(40, 20, classes=classes, levels=levels, **more)
    model = fit(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyfid.report.maps.feasibility", lambda *_: ())
        return render(model=model, table=table, evaluation=judge(model))


def test_columns_of_like_names_are_told_apart(wide_page):
    heads = re.findall(r'<th scope="col"[^>]*title="([^"]*)"[^>]*><button[^>]*>([^<]*)<', wide_page)
    short = dict(heads)
    assert len(short) >= 2
    assert len({*short.values()}) == len(short)
    assert all(f"_{re.search(r'[0-9]', whole)[0]}_" in text for whole, text in short.items())


@pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium")
def test_on_paper_nothing_is_too_wide_and_dark_is_light(wide_page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(wide_page, encoding="utf-8")
    with Browser() as browser:
        browser.open(path, 680)  # what an A4 page leaves between its margins
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        browser.send("Emulation.setEmulatedMedia", media="print", features=dark)
        # A browser makes all of a page smaller that is too wide.
        assert browser.run("document.documentElement.scrollWidth") == 680
        back = "getComputedStyle(document.body).backgroundColor"
        assert browser.run(back) == "rgb(255, 255, 255)"
        browser.print(tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").stat().st_size > 10_000
        assert browser.problems == []


@pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium")
def test_names_of_rows_are_not_broken_on_a_phone(page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    with Browser() as browser:
        browser.open(path, 390)
        heights = "[...document.querySelectorAll('#rows tbody th')].map(e => e.offsetHeight)"
        assert max(browser.run(heights)) < 40


@pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium")
def test_words_sort_as_words_numbers_as_numbers_and_gaps_come_last(tmp_path):
    cells = [("item 10", "9", 9.0), ("item 9", "", None), ("item 2", "−10", -10.0)]
    rows = tuple((Cell(name), Cell(text, key)) for name, text, key in cells)
    table = Table("t", "T", (Head("Name", words=True), Head("Value")), rows)
    page = Page("P", "", Verdict("none", "", ""), (Section("s", "S", "S", (table,)),))
    path = tmp_path / "page.html"
    path.write_text(to_html(page), encoding="utf-8")
    with Browser() as browser:
        browser.open(path)
        names = "[...document.querySelectorAll('tbody th')].map(e => e.innerText)"
        heads = "document.querySelectorAll('thead button')"
        browser.run(f"{heads}[0].click()")
        assert browser.run(names) == ["item 2", "item 9", "item 10"]
        browser.run(f"{heads}[1].click()")
        assert browser.run(names) == ["item 2", "item 10", "item 9"]
        browser.run(f"{heads}[1].click()")
        assert browser.run(names) == ["item 10", "item 2", "item 9"]
        assert browser.problems == []
