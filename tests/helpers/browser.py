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
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processes import PATIENCE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

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
_KEYS = {" ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}
# Chromium reads commands from file descriptor 3 and writes to 4.
_START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """One browser with one page.

    complaints    what the page wrote to the console, threw, or failed to load
    requested     the schemes of what it asked for: file, data, https
    addresses     all addresses it asked for, from the first page on
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
        self.pid = self._process.pid
        os.close(command)
        os.close(answer)
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requested: set[str] = set()
        self.addresses: list[str] = []
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
                self.addresses.append(params["request"]["url"])

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

    def call_browser(self, method: str, **params: Any) -> dict[str, Any]:
        """A command to the browser itself, rather than to its page."""
        session, self._session = self._session, None
        try:
            return self.call(method, **params)
        finally:
            self._session = session

    @contextmanager
    def tab(self, target: str) -> Iterator[None]:
        """Speak to another tab for a while."""
        session = self._session
        self._session = self.call_browser("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        try:
            yield
        finally:
            self._session = session

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

    def open(self, page: Path | str) -> None:
        """Load a file or an address, until all of it is there."""
        self.requested.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, script: str) -> Any:
        """What a JavaScript expression gives, as plain data."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait(self, script: str) -> Any:
        """Wait until a JavaScript expression gives something that is not false, 0, null or empty; return this value."""
        end = time.monotonic() + PATIENCE
        while not (found := self.evaluate(script)):
            if time.monotonic() > end:
                raise TimeoutError(f"for {PATIENCE} s not so: {script}; complaints: {self.complaints}")
            time.sleep(0.02)
        return found

    def mouse(self, kind: str, x: float, y: float, buttons: int = 1) -> None:
        """mousePressed, mouseMoved or mouseReleased at a place of the screen."""
        button = "none" if kind == "mouseMoved" and not buttons else "left"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=1)

    def drag(self, begin: tuple[float, float], end: tuple[float, float], steps: int = 8) -> None:
        """Press at one place, move to another, let go."""
        self.mouse("mousePressed", *begin)
        for k in range(1, steps + 1):
            part = k / steps
            self.mouse("mouseMoved", *(a + part * (b - a) for a, b in zip(begin, end, strict=True)))
        self.mouse("mouseReleased", *end, buttons=0)

    def click(self, selector: str) -> None:
        """Press an element, by the mouse, in its middle."""
        x, y = self.middle(selector)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y, buttons=0)

    def middle(self, selector: str) -> tuple[float, float]:
        """The middle of an element on the screen, scrolled to where it can be seen."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'nearest'});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        return x, y

    def press(self, key: str, shift: bool = False) -> None:
        """A key of the keyboard: "ArrowRight", "Home", " ", "l"."""
        text = {"text": key} if len(key) == 1 else {}
        code = {" ": "Space"}.get(key, key)
        keys = {"key": key, "code": code, "modifiers": 8 if shift else 0, "windowsVirtualKeyCode": _KEYS.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", **keys, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **keys)

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
