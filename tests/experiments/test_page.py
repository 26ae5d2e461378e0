"""The page: all sections, the paper's figures beside ours, partial and failed runs."""

import gzip
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from made_rows import make_groups, make_sensitivity, row, write_all, write_rows

from experiments.figures import FIGURES
from experiments.page import write

REPRODUCTION = Path(__file__).parents[2] / "docs" / "reproduction"
VOID = {"meta", "br", "use", "path", "image", "rect", "circle", "line", "link"}


class Checked(HTMLParser):
    """Reads HTML, and fails where a tag is not closed or an identifier is repeated."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.cells, self.sources = [], set(), [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attrs:
            assert attrs["id"] not in self.ids
            self.ids.add(attrs["id"])
        if tag == "a":
            self.links.append(attrs["href"])
        if tag == "td":
            self.cells.append("")
        self.sources += [attrs[name] for name in ("src", "xlink:href") if name in attrs]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    folder = tmp_path_factory.mktemp("full")
    write_all(folder)
    before = dict(matplotlib.rcParams)
    started = time.process_time()
    write(folder, ["all"])
    seconds = time.process_time() - started
    assert dict(matplotlib.rcParams) == before
    return folder, seconds


@pytest.fixture(scope="module")
def html(full):
    return (full[0] / "results.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def markdown(full):
    return (full[0] / "results.md").read_text(encoding="utf-8")


def few(folder, change=lambda row: row, **how):
    """A page from a few rows; both texts."""
    given = {"groups": ("artificial",), "runs": 2, "sets": [0, 1, 10]} | how
    rows = [change(row) for row in make_groups(np.random.default_rng(1), **given)]
    write_rows(folder, rows)
    page = write(folder, ["artificial"])
    return page.read_text(encoding="utf-8"), (folder / "results.md").read_text(encoding="utf-8")


def section(text, title):
    """The part of a Markdown text under a heading."""
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


# A full run


def test_html_is_sound_and_complete_in_itself(html):
    page = Checked(html)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert all(source.startswith(("#", "data:image/png;base64,")) for source in page.sources)
    assert not re.search(r'(src|href)="(https?:)?//', html)
    assert "url(http" not in html
    assert "@import" not in html
    assert len(html.encode()) < 3_000_000


def test_identifiers_in_figures_lead_somewhere(html):
    page = Checked(html)
    used = set(re.findall(r"url\(#([^)]+)\)", html)) | {s[1:] for s in page.sources if s[0] == "#"}
    assert used <= page.ids


def test_every_figure_is_there_in_both_formats(full, html, markdown):
    for drawing in FIGURES:
        for kind in ("png", "svg"):
            assert (full[0] / "figures" / f"{drawing.name}.{kind}").stat().st_size > 1000
        assert f'id="figure-{drawing.name}"' in html
        assert f"(figures/{drawing.name}.png)" in markdown


def test_every_section_is_there(html):
    wanted = "summary reading artificial pmlb crowd profiles mcmc budget sensitivity differences"
    assert {*wanted.split(), "missing", "versions"} <= Checked(html).ids


def test_drawing_does_not_take_long(full):
    assert full[1] < 40.0  # of processor time, with room for a machine that is busy with more


def test_our_figure_stands_beside_the_paper_s(markdown):
    table = section(markdown, "Group 1: Artificial data sets")
    line = next(line for line in table.splitlines() if line.startswith("| MF gpc |"))
    cells = line.split(" | ")[1:]
    text = r"\**0\.9\d\d\** ±0\.\d{3}<br><small>\(\*\*0\.975\*\*\)( [▲▼])?</small>"
    assert re.fullmatch(text, cells[0])
    assert [re.search(r"\(\**(0\.\d{3})", cell)[1] for cell in cells] == [
        "0.975", "0.853", "0.716", "0.643", "0.797", "0.968", "0.750", "0.615", "0.573", "0.726"
    ]  # fmt: skip


def test_cells_of_html_hold_both_figures(html):
    cells = Checked(html).cells
    assert any(re.fullmatch(r"0\.9\d\d ±0\.\d{3}\(0\.975\)( [▲▼])?", cell) for cell in cells)


def test_methods_are_in_the_paper_s_order(markdown):
    table = section(markdown, "Group 3: Crowdsourced labels").split("\n### ")[1]
    labels = [line.split(" | ")[0][2:] for line in table.splitlines() if line.startswith("| ")]
    assert labels == [
        "method", "---", "polyfid", "MF gpc", "gpc", "logit", "xgb", "C gpc", "C logit", "C xgb",
        "S gpc", "S logit", "S xgb", "hetmogp", "hetmogp, tuned", "gp-ma", "majority class",
    ]  # fmt: skip


def test_columns_say_what_went_in(markdown):
    assert "noise 0.2: 2D<br><small>5 of 10 sets, 15 splits" in markdown
    assert "diabetes<br><small>10 splits" in markdown
    assert "music genre<br><small>10 of 10 genres, 30 splits" in markdown
    assert "sentiment polarity<br><small>15 splits" in markdown


def test_counts_are_of_26_columns(markdown):
    table = section(markdown, "At a glance")
    line = next(line for line in table.splitlines() if line.startswith("| MF gpc |"))
    assert "**14 of 26**<br><small>5 · 8 · 1" in line.split(" | ")[1]


def test_every_metric_has_tables(markdown):
    for title in ("ROC AUC", "Log-loss", "Brier score", "Accuracy", "Seconds to fit"):
        assert markdown.count(f"### {title}") >= 4  # two for PMLB, one for each other group


def test_cells_outside_the_interval_are_listed(markdown):
    table = section(markdown, "Differences from the paper")
    groups = markdown.split("## Profiles")[0]
    marks = groups.count("▲</small> |") + groups.count("▼</small> |")
    assert marks == len([line for line in table.splitlines() if re.search(r"(yes|no) \|$", line)])


def test_what_is_left_out_is_said(markdown):
    text = section(markdown, "Left out and failed")
    assert "20 of 40 data sets have no rows (df_5–9, df_15–19, df_25–29, df_35–39)" in text
    assert "No cell failed." in text


def test_mcmc_tables(markdown):
    text = section(markdown, "Laplace, EP and variational inference against MCMC")
    lines = {line.split(" | ")[0][2:]: line for line in text.splitlines() if line[:2] == "| "}
    assert "(0.815)" in lines["Laplace"]
    assert "(" not in lines["EP"]
    assert lines["EP, maximum"].count("**") == 16
    assert "1.0030" in lines["largest R̂"]


def test_text_of_the_product_stays_within_it(html, markdown):
    for text in (html, markdown):
        assert not re.search(r"/work|issue|agent|pypi", text, flags=re.IGNORECASE)


# Parts of a run


def test_without_rows_the_page_says_so(tmp_path):
    page = write(tmp_path, ["budget"]).read_text(encoding="utf-8")
    assert page.count("No rows yet") == 2
    assert {"budget"} <= Checked(page).ids
    assert "pmlb" not in Checked(page).ids


def test_only_what_was_run_is_shown(tmp_path):
    page, text = few(tmp_path)
    assert {"artificial", "profiles"} <= Checked(page).ids
    assert not {"pmlb", "crowd", "mcmc"} & Checked(page).ids
    assert "noise 0.2: 5D<br><small>1 of 10 sets, 2 splits" in text
    assert "20D" not in section(text, "Group 1: Artificial data sets")


def test_pages_are_repeatable(tmp_path):
    write_rows(tmp_path, make_sensitivity(np.random.default_rng(0)))
    first = write(tmp_path, ["sensitivity"]).read_bytes()
    assert write(tmp_path, ["sensitivity"]).read_bytes() == first


def test_one_split_has_no_interval(tmp_path):
    _, text = few(tmp_path, groups=("pmlb",), runs=1)
    assert "±" not in section(text, "Group 2: Penn Machine Learning Benchmarks")
    assert "Differences from the paper" not in text.split("## How to read")[0]


def test_failed_cells_are_listed_and_left_out(tmp_path):
    def change(row):
        bad = (row["method"], row["mode"], row["column"], row["noise"])
        if bad == ("xgb", "stacked", "2D", 0.4):
            return {**row, "roc_auc": None, "error": "ValueError: a | b <c> `d` [e](f)"}
        return row

    page, text = few(tmp_path, change)
    Checked(page)
    line = next(x for x in text.splitlines() if x.startswith("| S xgb |") and "failed" in x)
    assert "failed<br><small>(0.914)" in line
    assert "4 of 168 rows hold an error" in text
    assert r"ValueError: a \| b \<c\>" in text
    assert "ValueError: a | b &lt;c&gt; `d` [e](f)" in page


def test_a_cell_with_fewer_splits_says_how_many(tmp_path):
    def change(row):
        bad = [row[name] for name in ("method", "problem", "noise", "seed")]
        failed = {"roc_auc": None, "error": "ValueError: no"}
        return row | failed if bad == ["polyfid", "df_0", 0.2, 2] else row

    _, text = few(tmp_path, change)
    table = section(text, "Group 1: Artificial data sets")
    line = next(x for x in table.splitlines() if x.startswith("| polyfid |"))
    assert "<small>3 splits" in line.split(" | ")[1]


def test_made_sets_are_named(tmp_path):
    _, text = few(tmp_path, lambda r: r | {"problem": r["problem"].replace("df", "made")})
    assert "2D<br><small>2 made sets, 4 splits" in text
    assert "3 sets made by the paper's recipe (made_0–1, made_10) are used instead" in text


def test_fits_that_did_not_converge_are_counted(tmp_path):
    _, text = few(tmp_path, lambda row: row | {"converged": row["method"] != "mfgpc"})
    assert "12 fits did not converge (mfgpc multi 12)" in text


@pytest.mark.parametrize(
    "one",
    [
        row(),
        row(experiment="crowd", column="music_genre", noise=None, method="majority", roc_auc=0.5),
    ],
)
def test_a_single_row_is_shown(tmp_path, one):
    write_rows(tmp_path, [one])
    page = write(tmp_path, ["pmlb"]).read_text(encoding="utf-8")
    assert one["column"].replace("_", " ") in page
    Checked(page)


def test_sensitivity_of_one_noise(tmp_path):
    write_rows(tmp_path, make_sensitivity(np.random.default_rng(0), noises=(0.4,)))
    ids = Checked(write(tmp_path, ["sensitivity"]).read_text(encoding="utf-8")).ids
    assert "figure-sensitivity_high" in ids
    assert "figure-sensitivity_low" not in ids


def test_figures_of_rows_that_are_gone_go_too(tmp_path):
    few(tmp_path)
    assert (tmp_path / "figures" / "profiles.png").exists()
    (tmp_path / "rows.jsonl").unlink()
    write(tmp_path, [])
    assert not list((tmp_path / "figures").iterdir())


def test_nothing_empty_is_bold(markdown, html):
    assert "****" not in markdown
    assert "<strong></strong>" not in html


def test_the_page_in_the_documentation_is_drawn_from_its_rows(tmp_path):
    text = gzip.decompress((REPRODUCTION / "rows.jsonl.gz").read_bytes())
    (tmp_path / "rows.jsonl").write_bytes(text)
    write(tmp_path, [])
    assert (tmp_path / "results.md").read_text() == (REPRODUCTION / "results.md").read_text()
    drawn = {path.name for path in (REPRODUCTION / "figures").iterdir()}
    assert drawn == {path.name for path in (tmp_path / "figures").glob("*.png")}
