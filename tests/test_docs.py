"""The site: examples run, public names have a place, links lead somewhere, nothing is fetched."""

import importlib
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import headless
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GALLERY, TUTORIALS = (
    sorted((ROOT / "examples" / name).glob("*.py")) for name in ("gallery", "tutorials")
)
#: Examples and tutorials that take some seconds each.
SLOW = {
    "annotators",
    "budget_advice",
    "calibration_of_inference",
    "crowd_and_gold",
    "inducing_points",
    "label_noise",
    "llm_and_people",
    "million_labels",
    "numeric_level",
    "structures",
    "study_progress",
    "three_classes",
    "what_to_buy",
    "wrong_tool",
}
#: The page of each public package.
PAGES = {
    name: f"polyfid.{name}"
    for name in (
        *("crowd", "datasets", "distributed", "evaluation", "inspection", "kernels"),
        *("labelstudio", "model_files", "plots", "report", "suggest", "tables"),
    )
}
BUILDERS = ("sphinx", "pydata_sphinx_theme", "sphinx_gallery", "myst_parser", "numpydoc")


# ------------------------------------------------------------------------- examples


def cases(paths):
    """Scripts as parameters of a test, the slow ones marked."""
    return [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in SLOW))
        for path in paths
    ]


def figures_of(path, monkeypatch):
    """How many figures a script draws; all of their axes must have data."""
    import matplotlib
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    with matplotlib.rc_context():
        matplotlib.use("Agg")
        plt.close("all")
        runpy.run_path(str(path))
        numbers = plt.get_fignums()
        assert all(ax.has_data() for number in numbers for ax in plt.figure(number).axes)
        plt.close("all")
    return len(numbers)


@pytest.mark.parametrize("path", cases(GALLERY))
def test_example_of_the_gallery(path, monkeypatch):
    assert figures_of(path, monkeypatch) == 1  # one idea, one figure


@pytest.mark.parametrize("path", cases(TUTORIALS))
def test_tutorial(path, monkeypatch):
    assert figures_of(path, monkeypatch) >= 2


def has_its_place(path):
    """Whether a script begins with a title, and the order of the site names it."""
    order = (DOCS / "_extensions" / "gallery_order.py").read_text(encoding="utf-8")
    title = re.match(r'"""\n(.+)\n=+\n\n', path.read_text(encoding="utf-8"))
    return title is not None and f'"{path.stem}"' in order


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_example_is_short_and_has_its_place(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 90
    assert has_its_place(path)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_has_its_place(path):
    assert has_its_place(path)


# ----------------------------------------------------------------------- the API pages


def listed_on(page):
    """The names of the tables of a page."""
    names, is_table = set(), False
    for line in (DOCS / "api" / f"{page}.rst").read_text(encoding="utf-8").splitlines():
        is_table = line.startswith(".. autosummary::") or (is_table and line[:1] in ("", " "))
        if is_table and re.fullmatch(r"   \w+", line):
            names.add(line.strip())
    return names


@pytest.mark.parametrize("page", PAGES)
def test_every_public_name_is_on_the_page_of_its_package(page):
    if page == "distributed":
        pytest.importorskip("dask")
        pytest.importorskip("distributed")
    assert listed_on(page) == {*importlib.import_module(PAGES[page]).__all__}


def test_every_name_of_the_package_is_on_some_page():
    import polyfid

    pages = ("classifier", *PAGES)
    anywhere = set().union(*(listed_on(page) for page in pages))
    assert {*polyfid.__all__} - {"__version__"} <= anywhere
    toctree = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    assert all(f"<{page}>" in toctree for page in pages)


def test_the_kernel_that_developers_are_shown_is_one():
    from polyfid.kernels import Kernel

    text = (DOCS / "developers" / "adding.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    scope = {"__name__": "polyfid.shown"}
    exec(code, scope)
    kernel = scope["Cauchy"](2.0)
    assert isinstance(kernel, Kernel)
    assert kernel([[0.0]], [[2.0]]).item() == pytest.approx(0.5)


# ------------------------------------------------------------- links in the repository


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_of_the_repository_lead_to_files(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    targets = [t.partition("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [t for t in targets if t and "://" not in t and not (ROOT / t).exists()]
    assert not missing


# --------------------------------------------------------------------- the built site


class Page(HTMLParser):
    """What a page loads, where it links to, and which places in it can be linked to."""

    LOADED = ("script", "img", "iframe", "source", "video", "audio", "embed", "track", "input")
    LOADING_LINKS = ("stylesheet", "icon", "preload", "modulepreload", "manifest", "prefetch")

    def __init__(self, path):
        super().__init__()
        self.loaded, self.links, self.places, self.styles = [], [], set(), []
        self._is_style = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        self.styles.append(given.get("style", ""))
        self._is_style = tag == "style"
        if tag in self.LOADED:
            self.loaded += [given["src"]] if "src" in given else []
            self.loaded += [part.split()[0] for part in given.get("srcset", "").split(",") if part]
        if tag == "object":
            self.loaded.append(given.get("data", ""))
        if tag == "link" and any(rel in given.get("rel", "") for rel in self.LOADING_LINKS):
            self.loaded.append(given["href"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])

    def handle_data(self, data):
        if self._is_style:
            self.styles.append(data)

    def handle_endtag(self, tag):
        self._is_style = False


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built from a copy; examples that `make docs` has run already are not run again."""
    if any(importlib.util.find_spec(name) is None for name in BUILDERS):
        pytest.skip("needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "examples"):
        ignored = shutil.ignore_patterns("_build", "__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.glob("*.md"):
        shutil.copy2(path, folder)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html"]
    done = subprocess.run(
        [*command, str(folder / "docs"), str(folder / "html")],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site):
    parts = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    return {path: Page(path) for path in parts}


def is_elsewhere(address):
    return address.startswith("//") or urlsplit(address).scheme in ("http", "https", "ftp")


in_one_process = pytest.mark.xdist_group("site")


@pytest.mark.slow
@in_one_process
def test_pages_load_nothing_from_elsewhere(site, pages):
    assert len(pages) > 100
    loaded = [
        (path.name, a) for path, page in pages.items() for a in page.loaded if is_elsewhere(a)
    ]
    assert not loaded
    styles = {path: "".join(page.styles) for path, page in pages.items()}
    styles |= {path: path.read_text(encoding="utf-8") for path in site.rglob("*.css")}
    pattern = re.compile(r"""(?:@import\s+|url\(\s*)["']?(?:https?:)?//[^)"']*""")
    assert not [
        (path.name, found) for path, css in styles.items() for found in pattern.findall(css)
    ]


@pytest.mark.slow
@in_one_process
def test_links_between_pages_lead_somewhere(pages):
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            target, _, place = link.partition("#")
            file = (path.parent / unquote(target.partition("?")[0])).resolve() if target else path
            places = pages[file].places if file in pages else None
            if not file.is_file() or (place and places is not None and place not in places):
                broken.append((path.name, link))
    assert not broken


@pytest.mark.slow
@in_one_process
@pytest.mark.skipif(not headless.CHROMIUM.exists(), reason="needs chromium")
@pytest.mark.parametrize(
    "page",
    [
        "index",
        "gallery/index",
        "tutorials/index",
        "understanding/model_in_pictures",
        "api/kernels",
        "search",
    ],
)
def test_a_browser_shows_pages_without_errors_on_a_phone(site, page):
    with headless.Browser() as browser:
        browser.open(site / f"{page}.html", width=390, height=800)
        assert not browser.problems
        width = browser.run("document.documentElement.scrollWidth")
    assert width <= 390
