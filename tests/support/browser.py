"""A headless Chromium by its DevTools protocol: pages, what they load, what they say on the console."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import websocket

from support.chromium_binary import ChromiumBinary, found

SECONDS = 60.0
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"),
    *("--remote-debugging-port=0", "--remote-allow-origins=*", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_PLACE = """
(() => {
  const link = [...document.querySelectorAll('a')].find(one => one.innerText.trim() === %s);
  if (!link) return null;
  link.scrollIntoView({block: 'center'});
  const {x, y, width, height} = link.getBoundingClientRect();
  return {x: x + width / 2, y: y + height / 2};
})()
"""
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


@dataclass
class Visit:
    """What a page did: ``requests`` by URL, ``received`` bytes, ``console`` lines, first paint in ms."""

    requests: list[str] = field(default_factory=list)
    received: int = 0
    console: list[str] = field(default_factory=list)
    first_paint: float | None = None


class Browser:
    """One page of a browser."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=SECONDS, suppress_origin=True)
        self._number = 0
        self._visit = Visit()
        self._loaded = False
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._socket.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of a command; events that come before it are noted."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self._note(message)

    def _note(self, event: dict[str, Any]) -> None:
        visit, told = self._visit, event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent":
                visit.requests.append(told["request"]["url"])
            case "Network.loadingFinished":
                visit.received += int(told["encodedDataLength"])
            case "Runtime.consoleAPICalled":
                visit.console.append(" ".join(str(one.get("value", one)) for one in told["args"]))
            case "Runtime.exceptionThrown":
                visit.console.append(str(told["exceptionDetails"].get("exception", told)))
            case "Log.entryAdded":
                visit.console.append(told["entry"]["text"])

    def visit(self, url: str) -> Visit:
        """Open a page and wait until it has loaded and painted."""
        self._visit, self._loaded = Visit(), False
        answer = self.call("Page.navigate", url=url)
        assert "errorText" not in answer, (url, answer)
        return self._painted(url)

    def click(self, text: str) -> Visit:
        """Press the visible link with this text with the mouse, and wait for the page that it leads to."""
        self._visit, self._loaded = Visit(), False
        place = self.evaluate(_PLACE % json.dumps(text))
        assert place, f"no visible link {text}"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **place, button="left", clickCount=1)
        return self._painted(text)

    def submit(self, expression: str) -> Visit:
        """Evaluate what sends a form, and wait for the page that it leads to."""
        self._visit, self._loaded = Visit(), False
        self.evaluate(expression)
        return self._painted(expression)

    def _painted(self, what: str) -> Visit:
        end = time.monotonic() + SECONDS
        while not self._loaded:
            assert time.monotonic() < end, f"{what} did not load"
            self._note(json.loads(self._socket.recv()))
        while self._visit.first_paint is None and time.monotonic() < end:
            self._visit.first_paint = self.evaluate(_PAINTED)
        return self._visit

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, awaited if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def look(self, *, width: int, theme: str, height: int = 900) -> None:
        """Set the size of the window and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(binary: ChromiumBinary | None = None) -> Iterator[Browser]:
    """Start a Chromium with a profile of its own, and end it."""
    binary = binary or found()
    with tempfile.TemporaryDirectory(prefix="permalake-browser-", ignore_cleanup_errors=True) as profile:
        command = [binary.path, *ARGUMENTS, f"--user-data-dir={profile}", "about:blank"]
        with (Path(profile) / "log").open("w+") as log:
            process = subprocess.Popen(
                command, env={**os.environ, **binary.environment}, stdout=log, stderr=log
            )
            try:
                page = Browser(_address(Path(profile), process))
                yield page
                page.close()
            finally:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the address of the browser's page."""
    port = profile / "DevToolsActivePort"
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"Chromium ended at once: {(profile / 'log').read_text()[-2000:]}")
        if port.exists() and (lines := port.read_text().split()):
            try:
                pages = httpx.get(f"http://127.0.0.1:{lines[0]}/json/list", timeout=30).json()
            except httpx.TransportError:
                continue
            if wanted := [one for one in pages if one["type"] == "page"]:
                return wanted[0]["webSocketDebuggerUrl"]
        time.sleep(0.05)
    raise RuntimeError("Chromium did not start")
