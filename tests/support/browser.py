"""A page in headless Chromium, driven through its DevTools pipe without further packages."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_PATIENCE_S = 60.0
_KEY_CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}
_ALT = 1
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Page:
    """A page in a browser.

    Parameters
    ----------
    to_browser, from_browser
        File descriptors of the pipe: JSON messages, each ended by a zero byte.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Have the browser do something, and give its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, path: Path, *, width: int = 1280, height: int = 900) -> None:
        """Show a file, and wait until all of it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        """Give the value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, *, alt: bool = False) -> None:
        """Press and release a key, such as ``Enter`` or ``a``, as the user's hand does."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        own: dict[str, Any] = {"key": key, "modifiers": _ALT if alt else 0}
        if key.isdigit():
            own["code"] = f"Digit{key}"
        own["windowsVirtualKeyCode"] = _KEY_CODES.get(key, ord(key[0].upper()))
        shown = {"text": text} if text and not alt else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **shown, **own)
        self.call("Input.dispatchKeyEvent", type="keyUp", **own)

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def save_downloads_in(self, folder: Path) -> None:
        """Have files saved in a folder, without a question."""
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What the console has heard since the page was opened."""
        self.value("0")  # what came before this answer has arrived
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self.events if event.get("method") in kinds]

    @property
    def requested(self) -> list[str]:
        """The addresses that were asked for, but for those that hold their content."""
        asked = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        addresses = [event["params"]["request"]["url"] for event in asked]
        return [address for address in addresses if not address.startswith("data:")]

    def screenshot(self, path: Path, *, y: int = 0, height: int = 900) -> None:
        """Save a part of the page."""
        clip = {"x": 0, "y": y, "width": 1280, "height": height, "scale": 1}
        found = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def pdf(self) -> bytes:
        """Print as the page wants to be printed."""
        found = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(found["data"])

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            read = os.read(self._from, 2**20)
            assert read, "the browser has ended"
            self._buffer += read
        message, self._buffer = self._buffer.split(b"\0", 1)
        parsed: dict[str, Any] = json.loads(message)
        return parsed


@contextmanager
def browser_page(profile: Path) -> Iterator[Page]:
    """Start a browser with an empty profile, and end it afterwards."""
    assert CHROMIUM is not None
    its_input, to_browser = os.pipe()
    from_browser, its_output = os.pipe()

    def give_pipes() -> None:  # the browser expects them as 3 and 4
        one, other = os.dup(its_input), os.dup(its_output)
        os.dup2(one, 3)
        os.dup2(other, 4)

    process = subprocess.Popen(
        [CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=give_pipes,
        close_fds=False,
    )
    os.close(its_input)
    os.close(its_output)
    try:
        page = Page(to_browser, from_browser)
        yield page
        page._session = None
        with suppress(AssertionError, OSError):
            page.call("Browser.close")
    finally:
        os.close(to_browser)
        os.close(from_browser)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
