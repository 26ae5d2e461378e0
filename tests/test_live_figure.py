"""The live figure of the documentation: its data, and what a browser makes of it."""

import importlib.util
import re
import shutil
from pathlib import Path

import headless
import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"
LIVE = DOCS / "_static" / "live"
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "End": 35, "Home": 36}
#: Something like the theme around it: dark where the reader prefers that.
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>live</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<script>document.documentElement.dataset.theme =
  matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";</script>
<style>body {{ max-width: 50rem; font-family: sans-serif }}
[data-theme="dark"] body {{ background: #14181e }}</style></head><body>{figure}</body></html>"""


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_live_figure", DOCS / "make_live_figure.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(script):
    return script.read()


# ----------------------------------------------------------------------------- the data


def test_there_is_a_cell_for_each_setting_and_it_is_small(script, data):
    cells = {
        f"{place} {share} {count}"
        for place in script.PLACES
        for share in script.SHARES
        for count in script.COUNTS
    }
    assert data["together"].keys() == cells
    assert data["alone"].keys() == {str(count) for count in script.COUNTS}
    maps = [m for c in data["together"].values() for m in (c["trusted"], c["cheap"], c["differ"])]
    assert {len(m) for m in maps} == {script.SIDE**2}
    assert (LIVE / "data.js").stat().st_size < 300_000
    assert sum(path.stat().st_size for path in LIVE.iterdir()) < 450_000


def test_numbers_are_those_of_the_maps(script, data):
    for cell in [*data["together"].values(), *data["alone"].values()]:
        p = script.numbers(cell["trusted"])
        unsure = np.mean(np.abs(p - 0.5) < 0.01)  # a step is 1/63
        assert abs(script.right(p) - cell["right"]) <= 1 + 100 * unsure


def test_points_are_those_of_the_script(script, data):
    cheap, trusted, ranks = script.points()
    assert np.array_equal(data["points"]["cheap"], cheap)
    assert np.array_equal(data["points"]["trusted"], trusted)
    assert np.array_equal(data["classes"]["cheap"], script.truth(cheap))
    assert np.array_equal(data["classes"]["trusted"], script.truth(trusted))
    assert data["ranks"] == {place: rank.tolist() for place, rank in ranks.items()}


def same(script, cell, committed):
    assert cell.keys() == committed.keys()
    assert abs(cell["right"] - committed["right"]) <= 1
    for name in cell.keys() - {"right"}:
        step = np.abs(script.numbers(cell[name]) - script.numbers(committed[name]))
        assert step.max() < 0.04  # two steps: other machines round otherwise


def test_what_is_committed_is_what_the_script_makes(script, data):
    same(script, script.alone(10), data["alone"]["10"])
    place, share, count = script.START
    same(script, script.together(*script.START), data["together"][f"{place} {share} {count}"])


@pytest.mark.slow
@pytest.mark.parametrize("setting", [("right", 30, 40), ("anywhere", 50, 80)])
def test_so_it_is_at_other_settings(script, data, setting):
    place, share, count = setting
    same(script, script.together(*setting), data["together"][f"{place} {share} {count}"])


def test_what_the_page_says_to_try_is_so(data):
    def gain(place, share, count):
        cell = data["together"][f"{place} {share} {count}"]
        return cell["right"] - data["alone"][str(count)]["right"]

    assert gain("anywhere", 10, 10) > 9
    assert data["alone"]["80"]["right"] > 94
    assert gain("anywhere", 50, 10) < -2
    assert abs(gain("anywhere", 50, 20)) < 3
    assert gain("right", 20, 10) < -2 < 2 < gain("right", 20, 20)
    wrong = [
        x
        for (x, _), k in zip(data["points"]["cheap"], data["ranks"]["right"], strict=True)
        if k < 40
    ]
    assert sum(x > min(wrong) for x, _ in data["points"]["trusted"][:10]) == 3


def test_colours_are_those_of_the_package(script):
    pytest.importorskip("matplotlib")
    from polyfid.plots.style import CLASS_COLOURS, INK, LEVEL, MIDDLE, PAPER

    css = (LIVE / "figure.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--live-(\w+): (#\w+);", css.partition("}")[0]))
    assert (light["first"], light["second"]) == CLASS_COLOURS[:2]
    assert [light[k] for k in ("ink", "paper", "middle", "differ")] == [INK, PAPER, MIDDLE, LEVEL]


# ------------------------------------------------------------------------- in a browser


@pytest.fixture
def page(tmp_path):
    """The figure in a page of its own, with the addresses that it has on the site."""
    shutil.copytree(LIVE, tmp_path / "_static" / "live")
    path = tmp_path / "understanding" / "page.html"
    path.parent.mkdir()
    figure = (DOCS / "understanding" / "live_figure.html").read_text(encoding="utf-8")
    path.write_text(PAGE.format(figure=figure), encoding="utf-8")
    return path


@pytest.fixture
def browser():
    if not headless.CHROMIUM.exists():
        pytest.skip("needs chromium")
    with headless.Browser() as browser:
        yield browser
        assert browser.problems == []


def find(name):
    return f"document.querySelector('[data-live={name}]')"


def said(browser):
    return browser.run(f"{find('said')}.textContent")


def picture(browser, name="both"):
    return browser.run(f"{find(name)}.toDataURL()")


def press(browser, name, *keys):
    browser.run(f"{find(name)}.focus()")
    assert browser.run(f"document.activeElement === {find(name)}")
    for key in keys:
        browser.press(key, KEYS[key])


def sentence(data, place, share, count):
    both, one = data["together"][f"{place} {share} {count}"], data["alone"][str(count)]
    where = ", all of them to the right" if place == "right" and share else ""
    return (
        f"{share} % of the cheap labels are wrong{where}, {count} trusted labels: "
        f"{both['right']} % of the points are classified right; "
        f"with the trusted labels alone {one['right']} %. "
    )


def test_sliders_change_the_pictures_and_the_words_by_keyboard(browser, page, data):
    browser.open(page)
    assert said(browser).startswith(sentence(data, *data["start"]))
    first, alone = picture(browser), picture(browser, "alone")

    press(browser, "share", "ArrowRight")
    assert said(browser).startswith(sentence(data, "anywhere", 30, 10))
    valuetext = browser.run(f"{find('share')}.getAttribute('aria-valuetext')")
    assert valuetext == "30 % of the cheap labels are wrong"
    assert picture(browser) != first
    assert picture(browser, "alone") == alone  # it has no cheap labels
    press(browser, "share", "ArrowLeft")
    assert picture(browser) == first

    press(browser, "share", "Home")
    press(browser, "count", "End")
    assert said(browser).startswith(sentence(data, "anywhere", 0, 80))
    assert browser.run(f"{find('count')}.getAttribute('aria-valuetext')") == "80 trusted labels"
    assert picture(browser, "alone") != alone

    press(browser, "share", "End")
    press(browser, "count", "Home")
    press(browser, "place", "ArrowDown")
    assert said(browser).startswith(sentence(data, "right", 50, 5))
    before, words = picture(browser), said(browser)
    press(browser, "view", "ArrowDown")
    second = picture(browser)
    assert said(browser) == words
    press(browser, "view", "ArrowDown")
    assert len({before, second, picture(browser)}) == 3
    assert re.fullmatch(r" The model expects .* on \d+ % of the map\.", said(browser)[len(words) :])
    assert browser.run(f"getComputedStyle({find('view')}).outlineStyle") == "solid"


def test_what_it_says_of_the_cheap_labels(browser, page, data):
    browser.open(page)
    seen = set()
    for name, cell in data["together"].items():
        place, share, count = name.split()
        gain = cell["right"] - data["alone"][count]["right"]
        browser.run(
            f"{find('place')}.value = '{place}';"
            f"{find('share')}.value = {data['shares'].index(int(share))};"
            f"{find('count')}.value = {data['counts'].index(int(count))};"
            f"{find('share')}.dispatchEvent(new Event('input'))"
        )
        verdict = said(browser).partition("%. ")[2].rpartition("%. ")[2]
        word = "harm" if gain < -2 else "help" if gain > 2 else "little difference"
        assert word in verdict, (name, verdict)
        seen.add(word)
    assert len(seen) == 3


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 390])
def test_it_fits_and_is_drawn_in_the_colours_of_the_page(browser, page, width, dark):
    browser.open(page, width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") == width
    boxes = f"[{find('both')}, {find('alone')}].map(e => [e.clientWidth, e.clientHeight, e.width])"
    for wide, high, pixels in browser.run(boxes):
        assert wide > 150
        assert wide == high == pixels
    colours = f"new Set({find('both')}.getContext('2d').getImageData(0, 0, 150, 150).data).size"
    assert browser.run(colours) > 50
    other = picture(browser)
    browser.run(f"document.documentElement.dataset.theme = '{'light' if dark else 'dark'}'")
    assert picture(browser) != other


def test_it_is_a_picture_without_javascript(browser, page):
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page, 390)
    browser.send("Emulation.setScriptExecutionDisabled", value=False)
    shown = "[...document.images].map(i => [i.complete, i.naturalWidth > 0, i.alt.length > 20])"
    assert browser.run(shown) == [[True, True, True]]
    assert browser.run("document.getElementById('live').offsetHeight") == 0
    assert "JavaScript" in browser.run("document.body.innerText")


def test_the_page_loads_it():
    text = (DOCS / "understanding" / "model_in_pictures.md").read_text(encoding="utf-8")
    assert ":file: live_figure.html" in text
    html = (DOCS / "understanding" / "live_figure.html").read_text(encoding="utf-8")
    addresses = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert len(addresses) == 4
    assert all((DOCS / "understanding" / address).is_file() for address in addresses)
    assert "http" not in html
