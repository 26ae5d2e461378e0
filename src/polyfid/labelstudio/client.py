"""One project of a running Label Studio: what is asked of the server, and how."""

from __future__ import annotations

import base64
import binascii
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from ipaddress import ip_address
from itertools import count
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from polyfid._version import __version__

Json = Any
#: Tasks per page and predictions per request: a few megabytes of texts.
PAGE, BATCH = 500, 500
#: Bytes of an answer that are read at most.
LARGEST = 1 << 30
#: Answers of a server, or of what stands before it, that may be better soon.
PASSING = {408, 425, 429, 500, 502, 503, 504}


class ServerError(OSError):
    """A server that did not answer, or refused; ``passing`` if another try may help.

    Examples
    --------
    >>> from polyfid.labelstudio import ServerError
    >>> ServerError("http://localhost:8080 does not answer", passing=True).passing
    True
    """

    def __init__(self, message: str, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class Server(Protocol):
    """What `polyfid.labelstudio.LiveProject` asks of a project on a server.

    Examples
    --------
    >>> from polyfid.labelstudio import HttpServer, Server
    >>> server: Server = HttpServer("http://localhost:8080", 7, "a secret")
    """

    def about(self) -> Mapping[str, Any]:
        """Settings of the project, and its labelling interface."""

    def newest(self) -> object:
        """The time of the last change of a task or of its annotations."""

    def tasks(self) -> list[Mapping[str, Any]]:
        """All tasks with their annotations."""

    def users(self) -> list[Mapping[str, Any]]:
        """Everybody who may annotate."""

    def versions(self) -> Mapping[str, int]:
        """Number of predictions of each model version."""

    def add_predictions(self, predictions: Sequence[Mapping[str, Any]]) -> None:
        """Add predictions to tasks."""

    def delete_predictions(self, version: str) -> None:
        """Delete the predictions of a model version."""

    def change(self, **settings: object) -> None:
        """Change settings of the project."""


class HttpServer:
    """A project of a Label Studio that answers at an address.

    The requests are those of Label Studio's public interface, made by Python's standard library.
    Tasks are read in pages and not exported, since the server keeps a copy of each export.

    Parameters
    ----------
    url : str
        The address of Label Studio, as in a browser: ``http://localhost:8080``.
    project : int
        The number of the project, which is in the address of its page.
    key : str
        A token from the page "Account & Settings", personal or legacy. It appears in no message
        and not in the ``repr``, and goes to this address only: redirections are not followed.
    timeout : float
        Seconds to wait for an answer.
    tries : int
        How often a request is made that fails for a passing reason, after pauses of 1, 2, 4 ...
        seconds.
    sleep : callable
        Pauses; ``time.sleep``.

    Examples
    --------
    >>> from polyfid.labelstudio import HttpServer
    >>> HttpServer("http://localhost:8080/", 7, "a secret")
    HttpServer('http://localhost:8080', 7)
    """

    def __init__(
        self,
        url: str,
        project: int,
        key: str,
        *,
        timeout: float = 60.0,
        tries: int = 4,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.url, self.project = _check_url(url), project
        self.timeout, self.tries, self.sleep = timeout, tries, sleep
        self._key = key.strip()
        if not self._key or not self._key.isascii() or not self._key.isprintable():
            raise ValueError("key must be a token of Label Studio, which is one line of letters")
        # A personal token only serves to get others that last for minutes.
        self._personal = is_personal(self._key)
        self._header = None if self._personal else f"Token {self._key}"
        self._opener = urllib.request.build_opener(_NoRedirection)

    def __repr__(self) -> str:
        return f"HttpServer({self.url!r}, {self.project!r})"

    @property
    def is_open(self) -> bool:
        """Whether others can read what is sent: no encryption, and not on this machine."""
        parts = urlsplit(self.url)
        return parts.scheme == "http" and not is_loopback(parts.hostname or "")

    def about(self) -> Mapping[str, Any]:
        found = self._ask("GET", f"/api/projects/{self.project}/")
        return _of_type(found, dict, "a project")

    def newest(self) -> object:
        last = self._page(1, 1, fields="task_only", ordering="-updated_at")
        return last[0].get("updated_at") if last else None

    def tasks(self) -> list[Mapping[str, Any]]:
        found: dict[object, Mapping[str, Any]] = {}
        for number in count(1):
            page = self._page(number, PAGE, fields="all", ordering="id")
            found |= {task.get("id"): task for task in page}
            if len(page) < PAGE:
                return list(found.values())
        raise AssertionError

    def users(self) -> list[Mapping[str, Any]]:
        found = self._ask("GET", "/api/users/")
        found = found.get("results") if isinstance(found, dict) else found
        return _of_type(found, list, "a list of users")

    def versions(self) -> Mapping[str, int]:
        found = self._ask("GET", f"/api/projects/{self.project}/model-versions/")
        return _of_type(found, dict, "counts of predictions")

    def add_predictions(self, predictions: Sequence[Mapping[str, Any]]) -> None:
        path = f"/api/projects/{self.project}/import/predictions"
        for start in range(0, len(predictions), BATCH):
            # Once only: a server that was too slow to answer may have stored them.
            self._ask("POST", path, [*predictions[start : start + BATCH]], tries=1)

    def delete_predictions(self, version: str) -> None:
        path = f"/api/projects/{self.project}/model-versions/"
        self._ask("DELETE", path, {"model_version": version})

    def change(self, **settings: object) -> None:
        self._ask("PATCH", f"/api/projects/{self.project}/", settings)

    def _page(self, number: int, size: int, **query: str) -> list[Mapping[str, Any]]:
        """A page of tasks; none after the last one."""
        asked = urlencode({"project": self.project, "page": number, "page_size": size, **query})
        found = self._ask("GET", f"/api/tasks/?{asked}", missing={"tasks": []})
        tasks = found.get("tasks") if isinstance(found, dict) else None
        return _of_type(tasks, list, "a page of tasks")

    def _ask(
        self,
        method: str,
        path: str,
        content: Json = None,
        *,
        tries: int | None = None,
        missing: Json = None,
    ) -> Json:
        """The answer to a request; ``missing`` is that if there is nothing at the address."""
        left = tries or self.tries
        renewed = False
        for pause in (2.0**k for k in count()):
            left -= 1
            try:
                if self._header is None:
                    self._header = f"Bearer {self._access()}"
                return self._send(method, path, content, self._header)
            except ServerError:  # it answered
                raise
            except urllib.error.HTTPError as error:
                if error.code == 401 and self._personal and not renewed:
                    renewed, self._header, left = True, None, left + 1
                    continue
                if error.code == 404 and missing is not None:
                    return missing
                problem = self._refusal(method, path, error)
            except (OSError, HTTPException) as error:  # no connection, or one that broke
                reason = getattr(error, "reason", None) or error
                said = str(reason) or type(reason).__name__
                problem = ServerError(
                    f"{self.url} does not answer ({self._without_key(said)})", True
                )
            if not problem.passing or left <= 0:
                raise problem from None  # what it comes from knows the key
            self.sleep(pause)
        raise AssertionError

    def _send(self, method: str, path: str, content: Json, header: str | None) -> Json:
        headers = {"User-Agent": f"polyfid/{__version__}", "Accept": "application/json"}
        if header is not None:
            headers["Authorization"] = header
        data = None
        if content is not None:
            data = json.dumps(content, allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with self._opener.open(request, timeout=self.timeout) as answer:
            text = answer.read(LARGEST + 1)
        place = path.partition("?")[0]
        if len(text) > LARGEST:
            raise ServerError(f"the answer of {self.url}{place} is larger than a gigabyte")
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            raise ServerError(
                f"{self.url}{place} answers something that is not JSON; is Label Studio there?"
            ) from None

    def _access(self) -> str:
        """A token for some minutes, in return for a personal one."""
        found = self._send("POST", "/api/token/refresh/", {"refresh": self._key}, None)
        access = found.get("access") if isinstance(found, dict) else None
        if not isinstance(access, str) or not access.isascii() or not access.isprintable():
            raise ServerError(f"{self.url} gives no access token in return for the key")
        return access

    def _refusal(self, method: str, path: str, error: urllib.error.HTTPError) -> ServerError:
        """What an answer that is an error means."""
        place = f"{self.url}{path.partition('?')[0]}"
        if 300 <= error.code < 400:
            goal = urlsplit(error.headers.get("Location") or "")
            moved = f"{goal.scheme}://{goal.hostname}" if goal.hostname else "another page"
            return ServerError(
                f"{place} sends on to {self._without_key(moved)}; give the address where Label "
                "Studio itself is (--url)"
            )
        said = ""
        try:
            body = json.loads(error.read(1 << 16))
            details = body.get("validation_errors") or body.get("detail") or ""
            said = f": {self._without_key(str(details))[:300]}" if details else ""
        except (OSError, HTTPException, ValueError, AttributeError, RecursionError):
            pass  # no explanation, or one that is a page for people
        if error.code in {401, 403} or (error.code == 400 and "/token/" in error.url):
            return ServerError(
                f"{self.url} does not accept the key for {method} {path.partition('?')[0]} "
                f"({error.code}{said}); take one from the page Account & Settings of a user who "
                "may change the project"
            )
        if error.code == 404:
            return ServerError(
                f"{place} does not exist (404); is {self.project} the number of the project?"
            )
        return ServerError(
            f"{method} {place} was answered by {error.code}{said}", error.code in PASSING
        )

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "…")


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    """Leaves redirections alone, which would take the key elsewhere."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("example.org")
    (True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_personal(key: str) -> bool:
    """Whether a token is a personal one (a JSON web token), and not a legacy one.

    >>> is_personal("0123456789abcdef")
    False
    """
    parts = key.split(".")
    try:
        padded = parts[0] + "=" * (-len(parts[0]) % 4)
        return len(parts) == 3 and "typ" in json.loads(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValueError, TypeError):
        return False


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
        has_more = bool(parts.username or parts.password or parts.query or parts.fragment)
        _ = parts.port
    except ValueError:
        valid = has_more = False
    if not valid or has_more:
        # What it holds is not repeated, as it may be a password.
        raise ValueError(
            "url (--url) must be the address of Label Studio, http://host:port or https://host, "
            "without names, passwords and what follows a question mark"
        )
    return url.rstrip("/")


def _of_type(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise ServerError(f"the server answers something else than {what}; is it Label Studio?")
    return value
