"""The whole loop against a real Label Studio, which this script starts: make test-labelstudio.

It makes a project of 200 texts. Two people label, one of them trusted. Over three rounds the task
that Label Studio gives out next must be the first one of the order, and then it must go on as
a machine learning backend.
"""

import argparse
import base64
import http.cookiejar
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np

PEOPLE = {"boss@example.org": 0.0, "ann@example.org": 0.15}  # how often they are wrong
TOKEN = "0123456789abcdef0123456789abcdef01234567"
PASSWORD = "only-for-this-test-7"
INTERFACE = """<View><Text name="text" value="$text"/><Choices name="tone" toName="text"
choice="single"><Choice value="good"/><Choice value="bad"/></Choices></View>"""
N_TASKS, N_ROUNDS, N_LABELS = 200, 3, 12
GOOD = ["lovely", "bright", "warm", "kind", "happy", "fresh"]
BAD = ["dreadful", "gloomy", "cold", "rude", "sad", "stale"]
OTHER = ["the", "room", "a", "view", "of", "town", "breakfast", "near", "station", "floor", "bed"]


def make_texts(rng):
    truth = rng.uniform(size=N_TASKS) < 0.5
    texts = []
    for good in truth:
        own, other = (GOOD, BAD) if good else (BAD, GOOD)
        words = [*rng.choice(own, 3), *rng.choice(other, 1), *rng.choice(OTHER, 8)]
        texts.append(" ".join(rng.permutation(words)))
    return texts, np.where(truth, "good", "bad")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Site:
    """A Label Studio that runs for this test only."""

    def __init__(self, program, folder):
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = Path(folder, "server.log")
        settings = {
            "COLLECT_ANALYTICS": "False",
            "LATEST_VERSION_CHECK": "False",
            "ML_BLOCK_LOCAL_IP": "False",  # or a backend on this machine is refused
            "USE_DEFAULT_BANNED_SUBNETS": "False",
        }
        port = self.url.rpartition(":")[2]
        call = f"start --no-browser --internal-host 127.0.0.1 --port {port}"
        call += f" --data-dir {folder}/data --username boss@example.org --password {PASSWORD}"
        call += f" --user-token {TOKEN} --enable-legacy-api-token"
        self.process = subprocess.Popen(
            [program, *call.split()],
            env=os.environ | settings,
            stdout=self.log.open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait(self):
        for _ in range(240):
            try:
                return self("GET", "/api/version/")
            except OSError:
                assert self.process.poll() is None, self.log.read_text()[-3000:]
                time.sleep(0.5)
        raise AssertionError(self.log.read_text()[-3000:])

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(30)

    def __call__(self, method, path, content=None, token=TOKEN):
        headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def sign_up(self, address):
        """The token of a new user."""
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        page = f"{self.url}/user/signup"
        browser.open(page).read()
        csrf = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
        form = {"csrfmiddlewaretoken": csrf, "email": address, "password": PASSWORD}
        sent = urllib.parse.urlencode(form).encode()
        browser.open(urllib.request.Request(page, sent, {"Referer": page})).read()
        return json.loads(browser.open(f"{self.url}/api/current-user/token").read())["token"]


class Loop:
    def __init__(self, site, folder):
        self.site, self.rng = site, np.random.RandomState(3)
        self.folder = folder
        self.tokens = {
            "boss@example.org": TOKEN,
            "ann@example.org": site.sign_up("ann@example.org"),
        }
        texts, self.truth = make_texts(self.rng)
        made = site("POST", "/api/projects/", {"title": "Hotels", "label_config": INTERFACE})
        self.project = made["id"]
        path = f"/api/projects/{self.project}"
        site("POST", f"{path}/import", [{"data": {"text": text}} for text in texts])
        first = site("GET", f"/api/tasks/?project={self.project}&page_size=1000&fields=task_only")
        self.ids = sorted(task["id"] for task in first["tasks"])
        assert len(self.ids) == N_TASKS

    def polyfid(self, verb, *more, **options):
        call = f"-m polyfid.cli labelstudio {verb} --project {self.project} --kernel rbf --jobs 1"
        call += " --trusted boss@example.org --json --url"
        env = os.environ | {"LABEL_STUDIO_API_KEY": options.pop("key", TOKEN)}
        return [sys.executable, *call.split(), self.site.url, *more], env

    def once(self, code=0, **options):
        call, env = self.polyfid("connect", "--once", **options)
        run = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
        assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
        assert TOKEN not in run.stdout + run.stderr
        return json.loads(run.stdout) if code == 0 else run.stderr

    def next(self, who):
        return self.site("GET", f"/api/projects/{self.project}/next", token=self.tokens[who])["id"]

    def label(self, who, task):
        right = self.truth[self.ids.index(task)]
        wrong = "bad" if right == "good" else "good"
        label = wrong if self.rng.uniform() < PEOPLE[who] else right
        entry = {"from_name": "tone", "to_name": "text", "type": "choices"}
        result = [{**entry, "value": {"choices": [str(label)]}}]
        path = f"/api/tasks/{task}/annotations/"
        return self.site("POST", path, {"result": result}, token=self.tokens[who])

    def predictions(self):
        path = f"/api/tasks/?project={self.project}&page_size=1000&fields=all"
        return {task["id"]: task["predictions"] for task in self.site("GET", path)["tasks"]}

    def connect(self):
        """Rounds of labelling, each of which follows the order of the last fit."""
        assert self.once()["state"] == "waiting"
        for k, task in enumerate(self.rng.choice(self.ids, 30, replace=False)):
            self.label("ann@example.org" if k % 3 else "boss@example.org", int(task))
        seen = set()
        for number in range(N_ROUNDS):
            started = time.monotonic()
            made = self.once()
            assert made["state"] == "fitted", made
            assert made["version"] not in seen
            seen.add(made["version"])
            about = self.site("GET", f"/api/projects/{self.project}/")
            assert about["model_version"] == made["version"]
            assert about["sampling"] == "Uncertainty sampling"
            every = self.predictions()
            assert {len(found) for found in every.values()} == {1}, "one prediction per task"
            scores = {i: found[0]["score"] for i, found in every.items()}
            assert min(scores.values()) == 0.0
            assert max(scores.values()) == 1.0
            assert scores[made["next"][0]] == 0.0
            hit = np.mean(
                [
                    found[0]["result"][0]["value"]["choices"] == [self.truth[self.ids.index(i)]]
                    for i, found in every.items()
                ]
            )
            print(
                f"round {number + 1}: {made['rows']}, {hit:.0%} of predictions right, "
                f"{time.monotonic() - started:.1f} s, next {made['next']}"
            )
            assert self.once()["state"] == "current", "a second start finds its work done"
            expected = list(made["next"])
            for k in range(N_LABELS):
                who = ["boss@example.org", "ann@example.org"][k % 2]
                task = self.next(who)
                if expected:
                    assert task == expected.pop(0), "the next task is the first of the order"
                self.label(who, task)
        assert hit > 0.6, hit

    def without_hints(self):
        """Annotators need not see predictions; switching them off changes the version."""
        path = f"/api/projects/{self.project}"
        self.site("PATCH", f"{path}/", {"show_collab_predictions": False})
        assert self.site("GET", f"{path}/")["model_version"] == ""
        made = self.once()
        assert made["state"] == "fitted", made
        shown = self.site("GET", f"{path}/next", token=self.tokens["ann@example.org"])
        assert (shown["id"], shown["predictions"]) == (made["next"][0], [])
        self.label("ann@example.org", shown["id"])

    def keys(self):
        """Personal tokens work, and wrong ones are refused without being shown."""
        personal = self.site("POST", "/api/token/", {})["token"]
        self.once(key=personal)
        refused = self.once(code=1, key="0" * 40)
        assert "does not accept the key" in refused
        assert "0" * 40 not in refused

    def serve(self):
        """The same as a machine learning backend."""
        port, login = free_port(), "studio:a password"
        url = f"http://127.0.0.1:{port}"
        call, env = self.polyfid("serve", "--port", str(port), "--every", "1000")
        log = Path(self.folder, "serve.log")
        process = subprocess.Popen(
            call,
            env=env | {"POLYFID_BASIC_AUTH": login},
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
        )
        try:
            version = self.wait_for(lambda: re.findall('"version": "(.*)"', log.read_text()), log)
            user, _, word = login.partition(":")
            given = {"url": url, "project": self.project, "title": "polyfid"}
            given |= {"auth_method": "BASIC_AUTH", "basic_auth_user": user}
            backend = self.site("POST", "/api/ml/", {**given, "basic_auth_pass": word})
            assert backend["state"] == "CO", backend
            assert backend["model_version"] == version[-1]
            # Label Studio now uses the title of the backend as the version, until the next look.
            # Webhooks have headers of their own.
            (hook,) = self.site("GET", f"/api/webhooks/?project={self.project}")
            assert hook["url"] == f"{url}/webhook"
            header = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()}
            self.site("PATCH", f"/api/webhooks/{hook['id']}/", {"headers": header})
            test = self.site("POST", f"/api/ml/{backend['id']}/predict/test?random=true")
            (answer,) = test["response"]
            assert answer["model_version"] == version[-1], answer
            self.label("boss@example.org", self.next("boss@example.org"))
            newer = self.wait_for(
                lambda: [
                    v for v in re.findall('"version": "(.*)"', log.read_text()) if v != version[-1]
                ],
                log,
            )
            print(f"serve: {version[-1]}, after a webhook {newer[-1]}")
            about = self.site("GET", f"/api/projects/{self.project}/")
            assert about["model_version"] == newer[-1]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143, log.read_text()
        assert TOKEN not in log.read_text()
        assert "a password" not in log.read_text()

    def wait_for(self, question, log):
        for _ in range(240):
            if answer := question():
                return answer
            time.sleep(0.25)
        raise AssertionError(log.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", help="the command label-studio of some environment")
    program = parser.parse_args().program
    with tempfile.TemporaryDirectory() as folder:
        site = Site(program, folder)
        try:
            print("Label Studio", site.wait()["release"])
            loop = Loop(site, folder)
            loop.connect()
            loop.without_hints()
            loop.keys()
            loop.serve()
        finally:
            site.stop()
    print("All is well")


if __name__ == "__main__":
    main()
