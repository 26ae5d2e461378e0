"""The protocol of machine learning backends, by which Label Studio asks for predictions."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6
from threading import BoundedSemaphore, Event, Thread
from typing import Any, Self

from polyfid._version import __version__
from polyfid.labelstudio.client import is_loopback
from polyfid.labelstudio.live import LiveModel
from polyfid.labelstudio.watch import LiveProject

#: Bytes of a request that are read at most, by default.
LARGEST = 16 << 20
#: Requests that are answered at the same time, and seconds that one may take to arrive.
AT_ONCE, ARRIVAL = 16, 20.0
#: Digits of a length that is taken for one.
LONGEST_NUMBER = 18
#: What Label Studio tells of that is a reason to look at the project. Several annotations at once
#: have names of their own.
NEWS = {
    "ANNOTATION_CREATED",
    "ANNOTATIONS_CREATED",
    "ANNOTATION_UPDATED",
    "ANNOTATIONS_UPDATED",
    "ANNOTATION_DELETED",
    "ANNOTATIONS_DELETED",
    "TASKS_CREATED",
    "TASKS_DELETED",
    "START_TRAINING",
}
GET, POST = "GET", "POST"
ROUTES = {
    "/": (GET,),
    "/health": (GET,),
    "/setup": (POST,),
    "/predict": (POST,),
    "/webhook": (POST,),
    "/train": (POST,),
    "/versions": (GET, POST),
}


class RefusedError(Exception):
    """A request that is not answered, with its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Backend:
    """Answers Label Studio from the latest model of a live project.

    It only listens: `LiveProject.rounds` fits meanwhile in another thread, woken by ``wake``.
    What is sent is not kept and not shown, tokens among it.

    Parameters
    ----------
    project : LiveProject
    project_id : int
        Requests about another project are refused.
    host, port : str and int
        Where to listen; port 0 takes a free one. Without a password only this machine may ask.
    login : str, optional
        ``user:password`` of basic authentication. ``/health`` answers without.
    largest : int
        Bytes of a request that are read at most.
    say : callable, optional
        Receives a line per request: method, address and status.

    Attributes
    ----------
    wake : Event
        Set when Label Studio connects, tells of new annotations or asks for training.
    port : int
        Where it listens.

    Examples
    --------
    >>> from polyfid.labelstudio import Backend, HttpServer, LiveOptions, LiveProject
    >>> live = LiveProject(HttpServer("http://localhost:8080", 7, "a secret"), LiveOptions())
    >>> with Backend(live, 7, port=0) as backend:
    ...     backend.wake.is_set()  # live.rounds(30.0, backend.wake) makes rounds
    False
    """

    def __init__(
        self,
        project: LiveProject,
        project_id: int,
        host: str = "127.0.0.1",
        port: int = 9090,
        *,
        login: str | None = None,
        largest: int = LARGEST,
        say: Callable[[str], object] | None = None,
    ) -> None:
        if login is None and not is_loopback(host):
            raise ValueError(
                f"host (--host) {host!r} lets other machines ask: set a password for them "
                "(user:password in the variable of --auth-env), or listen on 127.0.0.1"
            )
        if login is not None and not all(login.partition(":")):
            raise ValueError("login (the variable of --auth-env) must be user:password")
        self.project, self.project_id, self.largest, self.say = project, project_id, largest, say
        self.wake = Event()
        self._login = None if login is None else base64.b64encode(login.encode())
        self._server = _Listener((host, port), _Handler, self)
        self.port: int = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def admits(self, authorization: str) -> bool:
        """Whether a request carries the password, if there is one."""
        if self._login is None:
            return True
        scheme, _, given = authorization.partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._login)
        return scheme.lower() == "basic" and same

    def answer(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request that is allowed."""
        match path:
            case "/" | "/health":
                return {"status": "UP", "model_class": "polyfid", "version": __version__}
            case "/setup":
                self._check_project(content.get("project"))
                self.wake.set()
                return {"model_version": self._version}
            case "/webhook":
                about = content.get("project")
                self._check_project(about.get("id") if isinstance(about, Mapping) else about)
                is_news = content.get("action") in NEWS
                if is_news:
                    self.wake.set()
                return {"status": "a look at the project follows" if is_news else "nothing to do"}
            case "/train":
                self._check_project(content.get("project"))
                self.wake.set()
                return {"status": "a look at the project follows"}
            case "/versions":
                version = self._version
                return {"versions": [] if version is None else [version]}
        return self._predict(content)

    @property
    def _version(self) -> str | None:
        latest = self.project.latest
        return None if latest is None else latest.version

    def _check_project(self, given: Any) -> None:
        """Refuse what is about another project; ``7.1699999999`` is project 7."""
        if given is not None and str(given).partition(".")[0] != str(self.project_id):
            raise RefusedError(400, f"this backend is that of project {self.project_id}")

    def _predict(self, content: Mapping[str, Any]) -> dict[str, Any]:
        self._check_project(content.get("project"))
        model: LiveModel | None = self.project.latest
        if model is None:
            raise RefusedError(
                503, "there is no model yet: it is being fitted, or labels are too few"
            )
        tasks = content.get("tasks")
        if not isinstance(tasks, list):
            raise RefusedError(400, "tasks must be a list of tasks")
        names = ("model_version", "score", "result")
        made = model.predict(tasks) if tasks else []
        return {"results": [{name: one[name] for name in names} for one in made]}


class _Listener(ThreadingHTTPServer):
    """Threads that answer, so many at once and no more."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: Any, backend: Backend) -> None:
        if ":" in address[0]:
            self.address_family = AF_INET6
        self.backend = backend
        self.free = BoundedSemaphore(AT_ONCE)
        super().__init__((address[0].strip("[]"), address[1]), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, *_: object) -> None:
        """A connection that broke concerns nobody; its request is not shown."""


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: _Listener
    server_version, sys_version = "polyfid", ""
    timeout = ARRIVAL
    is_read = False  # the content

    def do_GET(self) -> None:
        self._respond(GET)

    def do_POST(self) -> None:
        self._respond(POST)

    def log_message(self, *_: object) -> None:
        """What is asked may hold tokens; `_respond` tells what is safe."""

    def _respond(self, method: str) -> None:
        path = self.path.partition("?")[0].rstrip("/") or "/"
        try:
            status, content = 200, self._answer(method, path)
        except RefusedError as refusal:
            status, content = refusal.status, {"error": str(refusal)}
        except ValueError as error:  # tasks that the model cannot read
            status, content = 400, {"error": str(error)}
        except Exception as error:
            status, content = 500, {"error": f"polyfid failed ({type(error).__name__})"}
        if self.server.backend.say is not None:
            shown = path if path in ROUTES else "(another address)"
            self.server.backend.say(f"{method} {shown}: {status}")
        self._discard()
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="polyfid"')
        self.end_headers()
        self.wfile.write(body)

    def _discard(self) -> None:
        """Read what was not read, or whoever sends it may not see the answer."""
        with suppress(OSError):
            left = min(self._length(), self.server.backend.largest)
            while left > 0 and not self.is_read:
                part = self.rfile.read(min(left, 1 << 16))
                left = left - len(part) if part else 0

    def _answer(self, method: str, path: str) -> dict[str, Any]:
        backend = self.server.backend
        self.close_connection = True
        if path not in {"/", "/health"} and not backend.admits(
            self.headers.get("Authorization") or ""
        ):
            raise RefusedError(401, "user and password are needed, or are others")
        if path not in ROUTES:
            raise RefusedError(404, f"there is nothing here; addresses are {', '.join(ROUTES)}")
        if method not in ROUTES[path]:
            raise RefusedError(405, f"use {' or '.join(ROUTES[path])}")
        return backend.answer(path, self._content() if method == POST else {})

    def _content(self) -> Mapping[str, Any]:
        """What was sent, a JSON object."""
        # A page in a browser can send other types to this machine without being asked.
        if self.headers.get_content_type() != "application/json":
            raise RefusedError(415, "the content must be application/json")
        length, most = self._length(), self.server.backend.largest
        if length < 0:
            raise RefusedError(411, "the request must say how long it is (Content-Length)")
        if length > most:
            raise RefusedError(413, f"the request is larger than {most:,} bytes")
        self.is_read = True
        try:
            content = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            content = None
        except OSError:
            raise RefusedError(408, "the request did not arrive in time") from None
        if not isinstance(content, dict):
            raise RefusedError(400, "the content must be a JSON object")
        return content

    def _length(self) -> int:
        """Bytes of the content; -1 if the request does not say."""
        given = self.headers.get("Content-Length") or ""
        valid = given.isascii() and given.isdecimal() and len(given) <= LONGEST_NUMBER
        return int(given) if valid else -1
