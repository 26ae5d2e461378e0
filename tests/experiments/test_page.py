"""The page: all sections, the paper's figures beside ours, partial and failed runs."""

import re
from html.parser import HTMLParser

import matplotlib
import pytest
from result_rows import REPRODUCTION, documented_rows, row, write_rows

from experiments.figures import FIGURES
from experiments.page import write

VOID = {"meta", "br", "use", "path", "image", "rect", "circle", "line", "link"}


class Checked(HTMLParser):
    """Reads HTML, and fails where a tag is not closed or an identifier is repeated."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.sources = [], set(), [], []
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
        self.sources += [attrs[name] for name in ("src", "xlink:href") if name in attrs]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def draw(folder, rows, names=()):
    """The page of some rows, in HTML and in Markdown."""
    write_rows(folder, rows)
    page = write(folder, names).read_text(encoding="utf-8")
    return page, (folder / "results.md").read_text(encoding="utf-8")


def draw_few(folder, change=lambda row: row, problems=("df_0", "df_1", "df_10"), seeds=(0, 2)):
    """The page of a few rows of the documentation, changed."""
    groups = ("artificial", "pmlb", "crowd")
    rows = [r for r in documented_rows() if r["problem"] in problems and r["seed"] in seeds]
    return draw(folder, [change(dict(r)) for r in rows if r["experiment"] in groups])


def section(text, title):
    """What a Markdown text has under a heading."""
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def table_line(text, title, label):
    lines = section(text, title).splitlines()
    return next(line for line in lines if line.startswith(f"| {label} |")).split(" | ")[1:]


# A full run


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    folder = tmp_path_factory.mktemp("full")
    before = dict(matplotlib.rcParams)
    html, markdown = draw(folder, documented_rows(), ["all"])
    assert dict(matplotlib.rcParams) == before
    return folder, html, markdown


def test_the_page_in_the_documentation_is_drawn_from_its_rows(full):
    folder, html, markdown = full
    assert markdown == (REPRODUCTION / "results.md").read_text(encoding="utf-8")
    drawn = {path.name for path in (folder / "figures").glob("*.png")}
    assert drawn == {path.name for path in (REPRODUCTION / "figures").iterdir()}
    assert drawn == {f"{drawing.name}.png" for drawing in FIGURES}
    assert all(f'id="figure-{drawing.name}"' in html for drawing in FIGURES)
    assert all((folder / "figures" / f"{drawing.name}.svg").is_file() for drawing in FIGURES)


def test_html_is_sound_and_complete_in_itself(full):
    html = full[1]
    page = Checked(html)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert all(source.startswith(("#", "data:image/png;base64,")) for source in page.sources)
    used = set(re.findall(r"url\(#([^)]+)\)", html)) | {s[1:] for s in page.sources if s[0] == "#"}
    assert used <= page.ids
    assert not re.search(r'(src|href)="(https?:)?//|url\(http|@import|<strong></strong>', html)
    assert len(html.encode()) < 3_000_000
    sections = "summary reading artificial pmlb crowd profiles mcmc budget sensitivity differences"
    assert {*sections.split(), "missing", "versions"} <= page.ids


# Less than a full run


def test_without_rows_the_page_says_so(tmp_path):
    page, _ = draw(tmp_path, [], ["budget"])
    assert page.count("No rows yet") == 2
    assert "budget" in Checked(page).ids
    assert "pmlb" not in Checked(page).ids


def test_only_what_was_run_is_shown(tmp_path):
    page, text = draw_few(tmp_path)
    assert {"artificial", "profiles"} <= Checked(page).ids
    assert not {"pmlb", "crowd", "mcmc"} & Checked(page).ids
    assert "noise 0.2: 5D<br><small>1 of 10 sets, 2 splits" in text
    assert "20D" not in section(text, "Group 1: Artificial data sets")
    (tmp_path / "rows.jsonl").unlink()
    write(tmp_path, [])
    assert not list((tmp_path / "figures").iterdir())  # of rows that are gone
    _, text = draw_few(tmp_path, problems=("splice", "diabetes"), seeds=(0,))
    assert "±" not in section(text, "Group 2: Penn Machine Learning Benchmarks")  # one split
    assert "Differences from the paper" not in text.split("## How to read")[0]


def test_a_page_is_repeatable(tmp_path):
    rows = [r for r in documented_rows() if r["experiment"] == "sensitivity" and r["noise"] == 0.4]
    page, _ = draw(tmp_path, rows)
    assert "figure-sensitivity_high" in Checked(page).ids
    assert "figure-sensitivity_low" not in Checked(page).ids
    assert draw(tmp_path, rows)[0] == page


def test_failed_cells_are_listed_and_left_out(tmp_path):
    def change(row):
        method, where = (row["method"], row["mode"]), (row["problem"], row["noise"], row["seed"])
        if method == ("xgb", "stacked") and (row["column"], row["noise"]) == ("2D", 0.4):
            row |= {"roc_auc": None, "error": "ValueError: a | b <c> `d` [e](f)"}
        if (method[0], where) == ("polyfid", ("df_0", 0.2, 2)):
            row |= {"roc_auc": None}
        return row

    page, text = draw_few(tmp_path, change)
    Checked(page)
    group = "Group 1: Artificial data sets"
    stacked = table_line(text, group, "S xgb")
    assert any(cell.startswith("failed<br><small>(0.914)") for cell in stacked)
    assert "<small>3 splits" in table_line(text, group, "polyfid")[0]
    assert "5 of 168 rows hold an error" in text
    assert r"ValueError: a \| b \<c\>" in text
    assert "ValueError: a | b &lt;c&gt; `d` [e](f)" in page


def test_made_sets_and_fits_that_did_not_converge_are_named(tmp_path):
    def change(row):
        made = row["problem"].replace("df", "made")
        return row | {"problem": made, "converged": row["method"] != "mfgpc"}

    _, text = draw_few(tmp_path, change)
    assert "2D<br><small>2 made sets, 4 splits" in text
    assert "3 sets made by the paper's recipe (made_0–1, made_10) are used instead" in text
    assert "12 fits did not converge (mfgpc multi 12)" in text


@pytest.mark.parametrize(
    "one", [row(), row(experiment="crowd", column="music_genre", noise=None, method="majority")]
)
def test_a_single_row_is_shown(tmp_path, one):
    page, _ = draw(tmp_path, [one])
    assert one["column"].replace("_", " ") in page
    Checked(page)
