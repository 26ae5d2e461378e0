"""A headless Chromium to open pages in, driven through a pair of pipes."""

import base64
import fcntl
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

CHROMIUM = Path("/usr/bin/chromium")

_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]


def _high(fd):
    """The same file under a number that the shell does not use itself."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD, 20)
    os.close(fd)
    return high


class Browser:
    """One page in one browser. `problems` collects errors and what was fetched over a network."""

    def __init__(self, timeout=60.0):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        read, write = _high(read), _high(write)
        command = [str(CHROMIUM), *_OPTIONS, f"--user-data-dir={self._folder.name}", "about:blank"]
        # The browser speaks on descriptors 3 and 4.
        wire = f'exec "$@" 3<&{read} 4>&{write}'
        self._process = subprocess.Popen(
            ["bash", "-c", wire, "bash", *command],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        os.set_blocking(self._read, False)
        self._buffer, self._number, self._events = b"", 0, []
        self._deadline = time.monotonic() + timeout
        self.problems = []
        self._session = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        found = self.send("Target.attachToTarget", targetId=page, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._folder.cleanup()

    def _next(self):
        while b"\0" not in self._buffer:
            if time.monotonic() > self._deadline:
                raise TimeoutError("the browser does not answer")
            try:
                chunk = os.read(self._read, 1 << 20)
            except BlockingIOError:
                time.sleep(0.01)
                continue
            if not chunk:
                raise ConnectionError("the browser has ended")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, what = message["method"], message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(what["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning"):
            self.problems.append(str(what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.problems.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = what["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                self.problems.append(f"fetched {url}")

    def send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            if "method" in answer:
                self._events.append(answer["method"])
                self._note(answer)

    def open(self, path, width=1200, height=900, dark=False):
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self._events.clear()
        self.send("Page.navigate", url=Path(path).resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            message = self._next()
            if "method" in message:
                self._events.append(message["method"])
                self._note(message)

    def run(self, expression):
        """The value of a JavaScript expression."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key, code):
        text = {"Enter": "\r", " ": " "}.get(key, "")
        down = {"key": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
        self.send("Input.dispatchKeyEvent", type="keyDown", **down)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, path):
        """The whole page as a PNG."""
        found = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(found["data"]))

    def print(self, path):
        """The page as a PDF."""
        found = self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        Path(path).write_bytes(base64.b64decode(found["data"]))
