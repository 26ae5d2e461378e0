"""A Label Studio made of recorded answers: the requests that polyfid makes, and nothing else."""

import copy
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np

RECORDED = json.loads((Path(__file__).parent / "recorded_labelstudio.json").read_text())
KEY = "5ecret5ecret5ecret5ecret5ecret5ecret5ecr"
BOSS, ANN = 1, 2  # users of the record
PROJECT = RECORDED["project"]["id"]
WORDS = {"good": ["lovely", "warm", "bright"], "bad": ["cold", "rude", "stale"]}


def choice(label):
    """What an annotation holds."""
    entry = {"from_name": "tone", "to_name": "text", "type": "choices"}
    return {**entry, "value": {"choices": [label]}}


class FakeLabelStudio:
    """A project whose tasks, annotations and predictions are lists in memory."""

    def __init__(self):
        self.project = copy.deepcopy(RECORDED["project"])
        self.project |= {"model_version": "", "sampling": "Sequential sampling"}
        self.users = RECORDED["users"]
        self.tasks, self.predictions = [], []
        self.asked = []  # method, address, content and authorization of each request
        self.failures = []  # what the next requests are answered with: a status, or a function
        self.clock = 0
        self.keys = {f"Token {KEY}"}
        self.access = []  # tokens that a personal one is changed for

    def add_task(self, **data):
        task = copy.deepcopy(RECORDED["page"]["tasks"][3])
        task |= {"id": len(self.tasks) + 11, "data": data, "annotations": [], "predictions": []}
        self.tasks.append(task | {"is_labeled": False, "updated_at": self.now()})
        return self.tasks[-1]["id"]

    def now(self):
        self.clock += 1
        return f"2026-11-19T17:00:00.{self.clock:06d}Z"

    def label(self, number, who, label, **more):
        """Somebody annotates a task."""
        task = next(task for task in self.tasks if task["id"] == number)
        made = copy.deepcopy(RECORDED["page"]["tasks"][0]["annotations"][0])
        made |= {"id": self.clock, "completed_by": who, "result": [choice(label)]}
        task["updated_at"] = made["updated_at"] = self.now()
        task["annotations"].append(made | more)
        task["is_labeled"] = len(task["annotations"]) >= self.project["maximum_annotations"]

    def versions(self):
        names = [p["model_version"] for p in self.predictions]
        return {name: names.count(name) for name in names}

    def writes(self):
        return [ask[:2] for ask in self.asked if ask[0] != "GET"]

    # What the server answers

    def answer(self, method, path, query, content):
        whole = f"/api/projects/{PROJECT}/"
        match method, path:
            case "POST", "/api/token/refresh/":
                return 200, {"access": self.access.pop(0)}
            case "GET", "/api/users/":
                return 200, self.users
            case "GET", "/api/tasks/":
                return self.page(int(query["page"][0]), int(query["page_size"][0]), query)
            case ("GET" | "PATCH", p) if p == whole:
                return self.about(method, content)
            case ("GET", p) if p == f"{whole}model-versions/":
                return 200, self.versions()
            case ("DELETE", p) if p == f"{whole}model-versions/":
                return 200, self.delete(content["model_version"])
            case ("POST", p) if p == f"{whole}import/predictions":
                self.predictions += content
                return 201, {"created": len(content)}
        error = RECORDED["errors"]["project"]
        return error["status"], error["body"]

    def about(self, method, content):
        if method == "PATCH":
            version = content.get("model_version", self.project["model_version"])
            if version not in {self.project["model_version"], *self.versions()}:
                error = RECORDED["errors"]["version"]
                return error["status"], error["body"]
            self.project |= content
        every = [a for task in self.tasks for a in task["annotations"]]
        counts = {
            "task_number": len(self.tasks),
            "total_annotations_number": len(every),
            "total_predictions_number": len(self.predictions),
        }
        return 200, self.project | counts

    def page(self, number, size, query):
        if query["ordering"] == ["-updated_at"]:
            tasks = sorted(self.tasks, key=lambda task: task["updated_at"], reverse=True)
        else:
            tasks = self.tasks
        start = (number - 1) * size
        if start and start >= len(tasks):
            error = RECORDED["errors"]["page"]
            return error["status"], error["body"]
        return 200, RECORDED["page"] | {"tasks": tasks[start : start + size]}

    def delete(self, version):
        left = [p for p in self.predictions if p["model_version"] != version]
        deleted, self.predictions = len(self.predictions) - len(left), left
        if self.project["model_version"] == version:
            self.project["model_version"] = None
        return {"deleted_predictions": deleted}


@contextmanager
def running(fake):
    """The address where it answers."""

    class Handler(BaseHTTPRequestHandler):
        def respond(self):
            length = int(self.headers.get("Content-Length") or 0)
            content = json.loads(self.rfile.read(length)) if length else None
            parts, key = urlsplit(self.path), self.headers.get("Authorization")
            fake.asked.append((self.command, parts.path, content, key))
            failure = fake.failures.pop(0) if fake.failures else None
            if callable(failure):
                return failure(self)
            if failure is not None:
                status, body = failure, {"detail": f"not now, {KEY}"}
            elif key not in fake.keys and parts.path != "/api/token/refresh/":
                status, body = RECORDED["errors"]["key"].values()
            else:
                asked = (self.command, parts.path, parse_qs(parts.query), content)
                status, body = fake.answer(*asked)
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return None

        do_GET = do_POST = do_PATCH = do_DELETE = respond  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def hotel_texts(n=30, n_labelled=16, seed=0):
    """A project of short texts, the first of which are labelled; ann is wrong at times."""
    rng, fake = np.random.RandomState(seed), FakeLabelStudio()
    for k in range(n):
        label = ["good", "bad"][k % 2]
        words = [*rng.choice(WORDS[label], 2), *rng.choice(["room", "view", "bed", "town"], 2)]
        number = fake.add_task(text=" ".join(words))
        if k < n_labelled:
            who = BOSS if k % 4 < 2 else ANN
            wrong = who == ANN and k % 8 == 7
            fake.label(number, who, {"good": "bad", "bad": "good"}[label] if wrong else label)
    return fake
