"""A headless Chromium to open pages in, driven through a pair of pipes."""

import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path

CHROMIUM = Path("/usr/bin/chromium")
_OPTIONS = (
    "headless no-sandbox disable-gpu no-first-run disable-background-networking "
    "disable-component-update disable-sync hide-scrollbars remote-debugging-pipe"
)


class Browser:
    """One page in one browser. `problems` collects errors and what was fetched over a network."""

    def __init__(self, timeout=60.0):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = self._folder.name
        for name in ("in", "out"):
            os.mkfifo(f"{folder}/{name}")
        options = [f"--{name}" for name in _OPTIONS.split()]
        command = [str(CHROMIUM), *options, f"--user-data-dir={folder}/user", "about:blank"]
        # The browser speaks on descriptors 3 and 4.
        wire = f'exec "$@" 3<{folder}/in 4>{folder}/out'
        self._process = subprocess.Popen(
            ["bash", "-c", wire, "bash", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._in = open(f"{folder}/in", "wb", buffering=0)  # noqa: SIM115
        self._out = open(f"{folder}/out", "rb")  # noqa: SIM115
        self._watchdog = threading.Timer(timeout, self._process.kill)
        self._watchdog.start()
        self._buffer, self._number, self._events, self._session = b"", 0, [], None
        self.problems = []
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._watchdog.cancel()
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()
        self._folder.cleanup()

    def _next(self):
        """The next answer or event."""
        while b"\0" not in self._buffer:
            chunk = self._out.read1(1 << 20)
            if not chunk:
                raise ConnectionError("the browser has ended, or did not answer in time")
            self._buffer += chunk
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            what = message.get("params", {})
            self._events.append(message["method"])
            level = what.get("type") or what.get("entry", {}).get("level")
            url = what.get("request", {}).get("url", "file:")
            fetched = not url.startswith(("file:", "data:", "about:"))
            if fetched or level in ("error", "warning") or "exceptionDetails" in what:
                self.problems.append(str(what))
        return message

    def send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._in.write(json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, path, width=1200, height=900, dark=False):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self._events.clear()
        self.send("Page.navigate", url=Path(path).resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._next()

    def run(self, expression):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key, code):
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        event = {"key": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)
