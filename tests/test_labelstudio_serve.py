"""The protocol of machine learning backends, with requests that a Label Studio has sent."""

import base64
import http.client
import json
import threading
import time

import pytest
from fake_labelstudio import KEY, PROJECT, RECORDED, hotel_texts, running

from polyfid import MultiFidelityClassifier
from polyfid.labelstudio import Backend, HttpServer, LiveOptions, LiveProject

OPTIONS = LiveOptions(
    ["boss@example.org"], classifier=MultiFidelityClassifier("rbf", mean=None, random_state=0)
)
REQUESTS = {(one["path"], (one["body"] or {}).get("action")): one for one in RECORDED["requests"]}
SECRET = "recorded-token"


@pytest.fixture(scope="module")
def live():
    """A project with a model."""
    with running(hotel_texts()) as url:
        made = LiveProject(HttpServer(url, PROJECT, KEY), OPTIONS, keep_model=True)
        made.refresh()
    return made


@pytest.fixture
def lines():
    return []


@pytest.fixture
def backend(live, lines):
    with Backend(live, PROJECT, port=0, say=lines.append, largest=100_000) as made:
        yield made


def ask(backend, method, path, content=None, body=None, **headers):
    """Status and JSON of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", backend.port, timeout=5)
    if content is not None:
        body = json.dumps(content)
        headers = {"Content-Type": "application/json"} | headers
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        assert answer.headers["Content-Type"] == "application/json"
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def replay(backend, request):
    return ask(backend, request["method"], request["path"], request["body"])


@pytest.mark.parametrize("name", [*REQUESTS], ids=str)
def test_recorded_requests_are_answered(backend, live, lines, name, capfd):
    status, content = replay(backend, REQUESTS[name])
    assert status == 200
    version = live.latest.version
    match name[0]:
        case "/health":
            assert content["status"] == "UP"
        case "/setup":
            assert content == {"model_version": version}
        case "/versions":
            assert content == {"versions": [version]}
        case "/predict":
            (one,) = content["results"]
            assert one["model_version"] == version
            assert 0.0 <= one["score"] <= 1.0
            assert one["result"][0]["value"]["choices"][0] in {"good", "bad"}
    assert backend.wake.is_set() == (name[0] in {"/setup", "/webhook"})
    assert lines == [f"{REQUESTS[name]['method']} {name[0]}: 200"]
    assert SECRET not in "".join([*lines, *capfd.readouterr()])


@pytest.mark.parametrize("action", ["ANNOTATIONS_CREATED", "ANNOTATIONS_DELETED", "OTHER"])
def test_only_news_of_this_project_wake(backend, action):
    about = REQUESTS["/webhook", "ANNOTATION_CREATED"]["body"]["project"]
    assert ask(backend, "POST", "/webhook", {"action": action, "project": about})[0] == 200
    assert backend.wake.is_set() == (action != "OTHER")
    backend.wake.clear()
    status, content = ask(backend, "POST", "/webhook", {"action": action, "project": {"id": 99}})
    assert (status, content) == (400, {"error": "this backend is that of project 1"})
    assert not backend.wake.is_set()


def test_one_result_per_task_in_their_order(backend, live):
    tasks = [{"id": i, "data": {"text": "a lovely bed"}} for i in (3, 1, 2)]
    status, content = ask(backend, "POST", "/predict", {"tasks": tasks, "project": "1.17"})
    assert status == 200
    assert [len(one["result"]) for one in content["results"]] == [1, 1, 1]
    assert ask(backend, "POST", "/predict", {"tasks": []}) == (200, {"results": []})
    assert ask(backend, "POST", "/train", {})[0] == 200
    assert backend.wake.is_set()


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/secrets?token=recorded-token", {}, 404),
        ("GET", "/predict", {}, 405),
        ("POST", "/health", {"content": {}}, 405),
        ("POST", "/predict", {"content": {"tasks": 5}}, 400),
        ("POST", "/predict", {"content": {"tasks": [5]}}, 400),
        ("POST", "/predict", {"content": {"tasks": [{"id": 1, "data": {"other": 1}}]}}, 400),
        ("POST", "/predict", {"content": {"tasks": [], "project": "2.17"}}, 400),
        ("POST", "/setup", {"content": {"project": "11.17"}}, 400),
        ("POST", "/predict", {"content": [1]}, 400),
        ("POST", "/predict", {"body": "{", "Content-Type": "application/json"}, 400),
        ("POST", "/predict", {"body": "[" * 90_000, "Content-Type": "application/json"}, 400),
        ("POST", "/predict", {"body": "{}", "Content-Type": "text/plain"}, 415),
        ("POST", "/predict", {"content": {"tasks": ["x" * 100_000]}}, 413),
        ("POST", "/predict", {"content": {}, "Content-Length": "-1"}, 411),
        ("POST", "/predict", {"content": {}, "Content-Length": "9" * 19}, 411),
    ],
)
def test_requests_that_are_refused(backend, lines, method, path, options, status, capfd):
    found, content = ask(backend, method, path, **options)
    assert found == status
    assert [*content] == ["error"]
    assert lines[0].endswith(f": {status}")
    assert SECRET not in "".join([*lines, *capfd.readouterr()])


def test_a_password(live):
    with Backend(live, PROJECT, "127.0.0.1", 0, login="studio:open: sesame") as backend:

        def basic(text):
            return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}

        assert ask(backend, "GET", "/health")[0] == 200
        assert ask(backend, "GET", "/versions", **basic("studio:open: sesame"))[0] == 200
        for headers in ({}, basic("studio:other"), {"Authorization": "Basic é"}):
            assert ask(backend, "GET", "/versions", **headers)[0] == 401
        assert ask(backend, "POST", "/webhook", {"action": "TASKS_CREATED"})[0] == 401
        assert not backend.wake.is_set()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", ""])
def test_others_need_a_password(live, host):
    with pytest.raises(ValueError, match="set a password for them"):
        Backend(live, PROJECT, host, 0)


def test_a_login_that_is_none(live):
    with pytest.raises(ValueError, match="must be user:password"):
        Backend(live, PROJECT, login="password")


def test_answers_come_in_time_while_a_model_is_fitted():
    started, go_on = threading.Event(), threading.Event()

    def slow(model, pool, level, **_):
        started.set()
        assert go_on.wait(20)
        return [1.0] * len(pool)

    with running(hotel_texts()) as url:
        live = LiveProject(HttpServer(url, PROJECT, KEY), OPTIONS, keep_model=True, rank=slow)
        with Backend(live, PROJECT, port=0) as backend:
            fit = threading.Thread(target=live.refresh)
            fit.start()
            try:
                assert started.wait(20)
                for path, action in (("/health", None), ("/webhook", "ANNOTATION_CREATED")):
                    clock = time.monotonic()
                    assert replay(backend, REQUESTS[path, action])[0] == 200
                    assert time.monotonic() - clock < 1.0
                assert replay(backend, REQUESTS["/setup", None])[1] == {"model_version": None}
                status, content = replay(backend, REQUESTS["/predict", None])
                assert (status, content["error"][:21]) == (503, "there is no model yet")
            finally:
                go_on.set()
                fit.join(20)
            assert replay(backend, REQUESTS["/predict", None])[0] == 200


def test_many_open_connections_do_not_stop_it(backend):
    """They are cut off, and the next one that there is room for is answered."""
    silent = [http.client.HTTPConnection("127.0.0.1", backend.port) for _ in range(40)]
    for connection in silent:
        connection.connect()
    time.sleep(0.2)
    for connection in silent:
        connection.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            assert ask(backend, "GET", "/health")[0] == 200
            return
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
    raise AssertionError("it does not answer any more")
