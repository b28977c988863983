"""A headless Chromium, driven over its DevTools pipe: no server, no package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 60  # seconds

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"),
    "--remote-debugging-pipe",
]
# Chromium reads commands from file descriptor 3 and writes to 4.
_START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """One browser with one page.

    complaints    what the page wrote to the console, threw, or failed to load
    requested     the schemes of what it asked for: file, data, https
    """

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        # Above 4, so that neither end is closed by being copied onto.
        command, self._write = (self._high(fd) for fd in os.pipe())
        self._read, answer = (self._high(fd) for fd in os.pipe())
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(command), str(answer), CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(command, answer),
            stderr=subprocess.DEVNULL,
        )
        os.close(command)
        os.close(answer)
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requested: set[str] = set()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    @staticmethod
    def _high(fd: int) -> int:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
        os.close(fd)
        return high

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise TimeoutError(f"the browser has said nothing for {PATIENCE} s")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError("the browser has closed its pipe")
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Network.loadingFailed":
                self.complaints.append(json.dumps(params))
            case "Log.entryAdded":
                self.complaints.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requested.add(params["request"]["url"].split(":", 1)[0])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command, and its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while (answer := self._message()).get("id") != self._count:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return dict(answer["result"])

    def look(self, *, width: int = 1280, height: int = 900, phone: bool = False, dark: bool = False) -> None:
        """The screen, and what the reader prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])

    def open(self, file: Path) -> None:
        """Load a file, until all of it is there."""
        self.requested.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=file.as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, script: str) -> Any:
        """What a JavaScript expression gives, as plain data."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """What the screen shows."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def pdf(self) -> bytes:
        """The page as it is printed, on A4."""
        return base64.b64decode(self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
