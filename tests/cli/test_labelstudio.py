"""polyfid labelstudio connect and serve."""

import http.client
import json
import re
import signal
import time

import pytest
from fake_labelstudio import BOSS, KEY, PROJECT, hotel_texts, running

CALL = f"--project {PROJECT} --trusted boss@example.org --kernel rbf --mean none --jobs 1 --url"


@pytest.fixture
def fake():
    return hotel_texts()


@pytest.fixture
def url(fake):
    with running(fake) as address:
        yield address


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", KEY)


def until(question, process=None):
    deadline = time.monotonic() + 60
    while not (answer := question()):
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    return answer


def test_once(polyfid, fake, url):
    made = polyfid.json(f"labelstudio connect --once {CALL}", url)
    assert made["state"] == "fitted"
    assert made["rows"] == {"crowd": 8, "gold": 8}
    assert fake.versions() == {made["version"]: 30}
    again = polyfid(f"labelstudio connect --once {CALL}", url)
    assert "has the predictions of these labels" in again.stdout
    costly = polyfid.json(f"labelstudio connect --once --costs crowd=1,gold=8 {CALL}", url)
    assert costly["state"] == "fitted"
    assert fake.versions() == {costly["version"]: 30}


def test_the_key_is_only_in_the_environment(polyfid, fake, url, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LABEL_STUDIO_API_KEY")
    asked = f"labelstudio connect --once {CALL}"
    assert "LABEL_STUDIO_API_KEY must hold the access token" in polyfid.refusal(asked, url)
    assert fake.asked == []
    monkeypatch.setenv("OTHER", KEY)
    shown = polyfid(f"{asked} {url} --key-env OTHER")
    fake.keys = set()
    refused = polyfid.refusal(f"{asked} {url} --key-env OTHER", code=1)
    assert "does not accept the key" in refused
    assert KEY not in shown.stdout + shown.stderr + refused
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--costs gold", "--costs: must be LEVEL=COST,… as in crowd=1,gold=8; got 'gold'"),
        ("--costs gold=0", "'gold' must cost more than nothing"),
        ("--every 0", "--every"),
        ("--url ftp://a", "url (--url) must be the address"),
        ("--project 0", "--project"),
    ],
)
def test_options_that_make_no_sense(polyfid, url, more, message):
    assert message in polyfid.refusal(f"labelstudio connect --once {CALL} {url} {more}")


def test_what_is_needed(polyfid):
    assert "give the address by --url" in polyfid.refusal("labelstudio connect --once")
    assert "connect" in polyfid("labelstudio --help").stdout


def test_a_project_with_too_few_labels(polyfid):
    fake = hotel_texts(n_labelled=1)
    with running(fake) as url:
        made = polyfid.json(f"labelstudio connect --once {CALL}", url)
    assert made["state"] == "waiting"


def test_trusted_people_that_nobody_knows(polyfid, url):
    call = CALL.replace("boss@", "bos@")
    refused = polyfid.refusal(f"labelstudio connect --once {call}", url, code=1)
    assert "knows nobody called 'bos@example.org'" in refused


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_connect_goes_on_until_it_is_stopped(process, fake, url, number, code):
    run = process("labelstudio", "connect", *CALL.split(), url, "--every", "1")
    first = until(lambda: fake.project["model_version"], run)
    fake.label(fake.tasks[20]["id"], BOSS, "good")
    until(lambda: fake.project["model_version"] not in {None, first}, run)
    run.send_signal(number)
    stdout, stderr = run.communicate(timeout=60)
    assert run.returncode == code
    assert stdout.count(b"polyfid live ") == 2
    assert stderr.decode() == "polyfid: stopped; no file is left half written\n"


def test_serve(process, fake, url):
    run = process("labelstudio", "serve", *CALL.split(), url, "--port", "0", "--every", "1000")
    port = int(re.search(rb"Listening on http://127.0.0.1:(\d+)", run.stdout.readline())[1])

    def ask(method, path, content=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        headers = {} if content is None else {"Content-Type": "application/json"}
        connection.request(method, path, content and json.dumps(content), headers)
        answer = connection.getresponse()
        return json.loads(answer.read())

    assert ask("GET", "/health")["status"] == "UP"
    first = until(lambda: ask("GET", "/versions")["versions"], run)
    until(lambda: fake.project["model_version"] == first[0], run)
    fake.label(fake.tasks[20]["id"], BOSS, "good")
    ask("POST", "/webhook", {"action": "ANNOTATION_CREATED", "project": {"id": PROJECT}})
    until(lambda: ask("GET", "/versions")["versions"] != first, run)
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 143
    assert KEY.encode() not in run.stdout.read() + run.stderr.read()


def test_serve_refuses_to_be_open_to_all(polyfid, url):
    refused = polyfid.refusal(f"labelstudio serve {CALL} {url} --host 0.0.0.0 --port 0")
    assert "set a password for them" in refused
