"""A project on a running Label Studio: requests, rounds, and the order of tasks."""

import base64
import json
import time

import numpy as np
import pandas as pd
import pytest
from fake_labelstudio import ANN, BOSS, KEY, PROJECT, FakeLabelStudio, hotel_texts, running

from polyfid import MultiFidelityClassifier
from polyfid.labelstudio import (
    HttpServer,
    LabelStudioError,
    LiveOptions,
    LiveProject,
    ServerError,
    TooFewLabelsError,
    client,
    learn,
    version_of,
)
from polyfid.suggest import rank
from polyfid.tables import Roles

RBF = MultiFidelityClassifier("rbf", mean=None, random_state=0)
OPTIONS = LiveOptions(["boss@example.org"], classifier=RBF)


@pytest.fixture
def fake():
    return hotel_texts()


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def server(fake, pauses):
    with running(fake) as url:
        yield HttpServer(url, PROJECT, KEY, sleep=pauses.append, timeout=5.0)


# Requests


def test_tasks_come_in_pages(fake, server, monkeypatch):
    for size in (7, 10, 15, 30, 31):  # the last page is full, or not
        monkeypatch.setattr(client, "PAGE", size)
        assert [task["id"] for task in server.tasks()] == [task["id"] for task in fake.tasks]
    assert {ask[3] for ask in fake.asked} == {f"Token {KEY}"}


def test_a_personal_token_is_changed_for_others_and_renewed(fake):
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    personal = f"{head}.e30.c2lnbmF0dXJl"
    fake.access, fake.keys = ["one", "two"], {"Bearer one"}
    with running(fake) as url:
        server = HttpServer(url, PROJECT, personal)
        assert server.about()["id"] == PROJECT
        fake.keys = {"Bearer two"}  # the first one is too old
        assert server.about()["id"] == PROJECT
        fake.access, fake.keys = ["three"], set()
        with pytest.raises(ServerError, match=r"does not accept the key") as caught:
            server.about()
    assert not caught.value.passing
    shown = [ask for ask in fake.asked if personal in str(ask)]
    assert {ask[:2] for ask in shown} == {("POST", "/api/token/refresh/")}


def test_what_may_pass_is_tried_again_after_growing_pauses(fake, server, pauses):
    fake.failures = [503, 429, lambda handler: handler.connection.close()]
    assert server.about()["id"] == PROJECT
    assert pauses == [1.0, 2.0, 4.0]


def test_a_server_that_stays_down(fake, server, pauses):
    fake.failures = [502] * 9
    with pytest.raises(ServerError, match=r"was answered by 502: not now, …$") as caught:
        server.about()
    assert caught.value.passing
    assert len(pauses) == 3
    with pytest.raises(ServerError, match="does not answer") as caught:
        HttpServer("http://127.0.0.1:9", 1, KEY, sleep=pauses.append).about()
    assert caught.value.passing


def test_predictions_are_not_sent_twice(fake, server, pauses):
    fake.failures = [503]
    with pytest.raises(ServerError):
        server.add_predictions([{"task": 11, "model_version": "v"}])
    assert pauses == fake.predictions == []


def test_a_server_that_is_too_slow(fake, pauses):
    fake.failures = [lambda handler: time.sleep(0.5)] * 2
    with running(fake) as url:
        server = HttpServer(url, PROJECT, KEY, sleep=pauses.append, timeout=0.1, tries=2)
        with pytest.raises(ServerError, match=r"does not answer .*timed out") as caught:
            server.about()
    assert caught.value.passing


def test_the_key_goes_nowhere_else(fake, server):
    other = FakeLabelStudio()
    with running(other) as elsewhere:

        def send_on(handler):
            handler.send_response(302)
            handler.send_header("Location", f"{elsewhere}/{KEY}")
            handler.end_headers()

        fake.failures = [send_on]
        with pytest.raises(ServerError, match=r"sends on to http://127\.0\.0\.1; give the address"):
            server.about()
    assert other.asked == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": set()}, r"does not accept the key for GET /api/projects/1/ \(401: Invalid tok"),
        ({"failures": [404]}, r"does not exist \(404\); is 1 the number of the project"),
        ({"failures": [400]}, "was answered by 400: not now, …"),
        ({"failures": [lambda h: h.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n<p>")]}, "is not JSON"),
        ({"failures": [lambda h: h.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n[1]")]}, "than a project"),
    ],
)
def test_refusals_say_what_to_do_and_not_the_key(fake, server, change, message):
    vars(fake).update(change)
    with pytest.raises(ServerError, match=message) as caught:
        server.about()
    assert not caught.value.passing
    for error in (caught.value, caught.value.__cause__, caught.value.__context__, server):
        assert KEY not in f"{error!r} {error}"


@pytest.mark.parametrize(
    "url", ["localhost:8080", "ftp://a", "http://me:pass@a", "http://a?token=x", "http://a:b", ""]
)
def test_addresses_that_are_none_are_not_repeated(url):
    with pytest.raises(ValueError, match=r"url \(--url\) must be the address") as caught:
        HttpServer(url, 1, KEY)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize("key", ["", " ", "a\nb", "schlüssel"])
def test_keys_that_are_none(key):
    with pytest.raises(ValueError, match="key must be a token"):
        HttpServer("http://a", 1, key)


def test_who_can_listen():
    open_to_all = [HttpServer(url, 1, KEY).is_open for url in ("http://a.org", "http://10.0.0.1")]
    closed = ("https://a.org", "http://localhost:80", "http://127.0.0.1", "http://[::1]:80")
    assert open_to_all == [True, True]
    assert not any(HttpServer(url, 1, KEY).is_open for url in closed)


# One round


def by_length(model, pool, level, *, targets, random_state):
    """A stand-in for gains: those of the trusted level fall with the row, others rise."""
    n = len(pool)
    return np.arange(n, 0, -1.0) if level == "gold" else np.arange(1.0, n + 1)


def test_a_round_predicts_all_tasks_and_ranks_the_open_ones(fake):
    made = learn(fake.tasks, fake.project, fake.users, OPTIONS)
    ids = [task["id"] for task in fake.tasks]
    assert sorted(made.order) == ids[16:]
    assert made.counts == {"crowd": 8, "gold": 8}
    written = made.predict(fake.tasks)
    assert [one["task"] for one in written] == ids
    scores = {one["task"]: one["score"] for one in written}
    np.testing.assert_allclose([scores[i] for i in made.order], np.linspace(0, 1, 14))
    assert {scores[i] for i in ids[:16]} == {1.0}
    results = [one["result"] for one in written]
    assert all(len(result) == 1 and 0.5 <= result[0]["score"] <= 1.0 for result in results)
    labels = [result[0]["value"]["choices"] for result in results]
    assert np.mean([label == [["good"], ["bad"]][k % 2] for k, label in enumerate(labels)]) > 0.9
    json.dumps(written)


def test_the_order_is_that_of_expected_gains(fake):
    made = learn(fake.tasks, fake.project, fake.users, OPTIONS)
    every = made.model.to_numbers(pd.DataFrame([task["data"] for task in fake.tasks]))
    model, pool = made.model.classifier, every.iloc[16:]
    gains = [rank(model, pool, level, targets=every, random_state=0) for level in ("crowd", "gold")]
    best = np.argsort(-np.max(gains, axis=0), kind="stable")
    assert made.order == [fake.tasks[16 + k]["id"] for k in best]


def test_costs_weigh_levels(fake):
    def order(costs):
        options = LiveOptions(OPTIONS.trusted, costs=costs, classifier=RBF)
        return learn(fake.tasks, fake.project, fake.users, options, by_length).order

    open_ids = [task["id"] for task in fake.tasks[16:]]
    assert order({"gold": 8.0}) == order({"crowd": 1e9, "gold": 1.0}) == open_ids
    assert order({"crowd": 1.0, "gold": 1e9}) == open_ids[::-1]
    with pytest.raises(LabelStudioError, match="no level 'expert'; levels are 'crowd', 'gold'"):
        order({"expert": 1.0})
    for cost in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="'gold' must cost more than nothing"):
            LiveOptions(costs={"gold": cost})


def test_what_a_level_has_said_is_not_asked_of_it_again(fake):
    fake.project["maximum_annotations"] = 2
    for task in fake.tasks:
        task["is_labeled"] = False
    made = learn(fake.tasks, fake.project, fake.users, OPTIONS, by_length)
    assert len(made.order) == 30
    gold = [task["id"] for k, task in enumerate(fake.tasks[:16]) if k % 4 < 2]
    crowd = [task["id"] for k, task in enumerate(fake.tasks[:16]) if k % 4 >= 2]
    # Worth: 30 - row for tasks without a trusted label, row + 1 for those without another.
    worth = {i: k + 1 for k, i in enumerate(task["id"] for task in fake.tasks)}
    expected = {i: worth[i] if i in gold else 31 - worth[i] for i in [*gold, *crowd]}
    expected |= {i: max(31 - worth[i], worth[i]) for i in worth if i not in expected}
    assert [expected[i] for i in made.order] == sorted(expected.values(), reverse=True)


def test_new_tasks_get_a_place_in_the_order(fake):
    made = learn(fake.tasks, fake.project, fake.users, OPTIONS)
    first = fake.tasks[[task["id"] for task in fake.tasks].index(made.order[0])]
    twin = {"id": 999, "data": first["data"]}
    (one,) = made.predict([twin])
    assert one["score"] == 0.0
    (done,) = made.predict([{**twin, "is_labeled": True}])
    assert done["score"] == 1.0


@pytest.mark.parametrize("who", [BOSS, ANN])
def test_labels_of_one_level_only(fake, who):
    for task in fake.tasks[:16]:
        task["annotations"][0]["completed_by"] = who
    made = learn(fake.tasks, fake.project, fake.users, OPTIONS)
    assert made.counts == {{BOSS: "gold", ANN: "crowd"}[who]: 16}


def test_too_few_labels(fake):
    for task in fake.tasks[2:]:
        task["annotations"] = []
    learnt = [task["annotations"][0]["result"][0]["value"] for task in fake.tasks[:2]]
    assert learnt == [{"choices": ["good"]}, {"choices": ["bad"]}]
    fake.tasks[1]["annotations"][0]["was_cancelled"] = True
    with pytest.raises(TooFewLabelsError, match="1 annotations so far, not of two"):
        learn(fake.tasks, fake.project, fake.users, OPTIONS)


def test_options_that_do_not_fit_the_project(fake):
    def refuse(message, **options):
        with pytest.raises(LabelStudioError, match=message):
            learn(fake.tasks, fake.project, fake.users, LiveOptions(**options, classifier=RBF))

    refuse("from_name .* 'tone'; got 'mood'", from_name="mood")
    refuse("knows nobody called 'bos@example.org'; there is 'ann@e", trusted=["bos@example.org"])
    with pytest.raises(ValueError, match="trusted must be a list"):
        LiveOptions("boss@example.org")


def test_texts_are_those_that_the_interface_shows(fake):
    for k, task in enumerate(fake.tasks):
        task["data"]["stars"] = k % 5
    made = learn(fake.tasks, fake.project, fake.users, OPTIONS)
    assert made.model.roles.text == ("text",)
    assert {*made.model.encoder.kinds_} == {"text", "stars"}
    options = LiveOptions(["1"], roles=Roles(features=["stars"]), classifier=RBF)
    made = learn(fake.tasks, fake.project, fake.users, options)
    assert [*made.model.encoder.kinds_] == ["stars"]


def test_versions_follow_labels_and_options(fake):
    first = version_of(fake.tasks, OPTIONS)
    assert version_of(fake.tasks[::-1], OPTIONS) == first
    assert version_of(fake.tasks, LiveOptions(OPTIONS.trusted, classifier=RBF)) == first
    assert version_of(fake.tasks, LiveOptions(["ann@example.org"], classifier=RBF)) != first
    fake.predictions.append({"task": 11})
    assert version_of(fake.tasks, OPTIONS) == first
    fake.label(fake.tasks[20]["id"], ANN, "good")
    assert version_of(fake.tasks, OPTIONS) != first


# Round after round


def test_a_project_is_put_in_order(fake, server):
    foreign = {"task": 11, "model_version": "of somebody else", "result": []}
    fake.predictions = [foreign, {"task": 11, "model_version": "polyfid live old"}]
    live = LiveProject(server, OPTIONS)
    made = live.refresh()
    assert made.state == "fitted"
    assert "uncertainty sampling from now on" in made.message
    assert fake.versions() == {"of somebody else": 1, made.version: 30}
    assert fake.project["model_version"] == made.version
    assert fake.project["sampling"] == "Uncertainty sampling"
    ranked = sorted(fake.predictions[1:], key=lambda p: p["score"])
    assert [p["task"] for p in ranked[:5]] == made.next == live.latest.order[:5]
    assert live.refresh().state == "unchanged"

    fake.label(made.next[0], BOSS, "good")
    newer = live.refresh()
    assert newer.state == "fitted"
    assert fake.versions() == {"of somebody else": 1, newer.version: 30}
    assert newer.rows["gold"] == made.rows["gold"] + 1
    assert made.next[0] not in live.latest.order


def test_a_second_start_finds_its_work_done(fake, server):
    version = LiveProject(server, OPTIONS).refresh().version
    before = len(fake.writes())
    assert LiveProject(server, OPTIONS).refresh().to_dict() == {
        "state": "current",
        "message": "The server has the predictions of these labels",
        "version": version,
        "next": [],
        "rows": {},
    }
    with_model = LiveProject(server, OPTIONS, keep_model=True)
    assert with_model.refresh().state == "fitted"
    assert with_model.latest.version == version
    assert len(fake.writes()) == before


def test_a_round_that_was_stopped_halfway_is_made_whole(fake, server, monkeypatch):
    monkeypatch.setattr(client, "BATCH", 20)
    live, real, fits = LiveProject(server, OPTIONS), server.add_predictions, []

    def stop(predictions):
        fits.append(live.latest)
        real(predictions[:20])
        raise ServerError("gone", passing=True)

    monkeypatch.setattr(server, "add_predictions", stop)
    with pytest.raises(ServerError):
        live.refresh()
    assert fake.project["model_version"] == ""  # the old order holds
    monkeypatch.setattr(server, "add_predictions", real)
    made = live.refresh()
    assert fake.versions() == {made.version: 30}
    assert live.latest is fits[0]  # nothing was fitted again


def test_a_version_that_somebody_changed_is_put_right(fake, server):
    """Connecting a backend does that."""
    live = LiveProject(server, OPTIONS)
    version = live.refresh().version
    fake.project["model_version"] = "title of a backend"
    assert live.refresh().state == "fitted"
    assert fake.project["model_version"] == version
    assert fake.versions() == {version: 30}


def test_rounds_go_on_when_something_fails(fake, server, pauses):
    server.tries = 1
    rounds = LiveProject(server, OPTIONS).rounds(0.001)
    fake.failures = [503, 503]
    assert [next(rounds).state for _ in range(4)] == ["failed", "failed", "fitted", "unchanged"]
    fake.label(fake.tasks[20]["id"], ANN, "good")
    fake.tasks[20]["annotations"][0]["result"][0]["value"]["choices"] = ["good", "bad"]
    wrong = next(rounds)
    assert wrong.state == "failed"
    assert "must hold one choice" in wrong.message
    assert "trying again in" in wrong.message
    fake.tasks[20]["annotations"][0]["result"][0]["value"]["choices"] = ["good"]
    assert next(rounds).state == "fitted"
    fake.keys = set()
    with pytest.raises(ServerError, match="does not accept the key"):
        next(rounds)


def test_what_is_wrong_at_the_start_ends_the_rounds(server):
    rounds = LiveProject(server, LiveOptions(["nobody"], classifier=RBF)).rounds(0.001)
    with pytest.raises(LabelStudioError, match="knows nobody called 'nobody'"):
        next(rounds)


def test_a_project_without_labels_waits():
    fake = hotel_texts(n_labelled=0)
    with running(fake) as url:
        live = LiveProject(HttpServer(url, PROJECT, KEY), OPTIONS)
        assert live.refresh().state == "waiting"
        assert live.refresh().state == "unchanged"
        assert fake.writes() == []
        for k, task in enumerate(fake.tasks[:10]):
            fake.label(task["id"], BOSS, ["good", "bad"][k % 2])
        assert live.refresh().state == "fitted"
