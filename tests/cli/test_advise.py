"""``polyfid advise`` as a user calls it."""

import pytest


@pytest.fixture
def called(polyfid, store):
    return f"advise {store / 'model.polyfid'} {store / 'new.csv'} --budget 40 --costs "


def test_text_and_json(polyfid, called):
    said = polyfid(called + "crowd=1,expert=8").stdout
    assert "as it is" in said
    found = polyfid.json(called + "crowd=1,expert=8")
    assert found["plans"][-1]["labels"] == {"crowd": 0, "expert": 5}
    assert found["action"] in ("go", "stop", "too few trusted rows to tell")


def test_promises_rescale(polyfid, called):
    found = polyfid.json(called + "expert=8 --promise 100,0.1,0.02,0.001")
    assert found["scale"] == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("crowd=x", "must be LEVEL=COST"),
        ("crowd=1 --promise 3,a", "must be COST,EXPECTED,DELIVERED"),
    ],
)
def test_refusals(polyfid, called, words, problem):
    assert problem in polyfid.refusal(called + words)


def test_levels_that_are_not_there(polyfid, called):
    said = polyfid.refusal(called + "boss=1", code=1)
    assert "costs name the level 'boss', and the model's levels are ['crowd', 'expert']" in said
