"""A page in headless Firefox, driven through its Marionette port without further packages."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
_PATIENCE_S = 60.0
_KEYS = {
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "ArrowLeft": "\ue012",
    "ArrowRight": "\ue014",
}
_ALT = "\ue00a"
_QUIET = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.download.folderList": 2,
    "browser.download.alwaysOpenPanel": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "marionette.port": 0,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.enabled": False,
}


class FirefoxPage:
    """A page in a browser; as `Page` of Chromium, as far as tests need it.

    Parameters
    ----------
    connection
        To the port: messages as JSON, each after its length and a colon.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")
        self._number = 0
        self._receive()  # the greeting
        self.call("WebDriver:NewSession")

    def call(self, command: str, **parameters: Any) -> Any:
        """Have the browser do something, and give its answer."""
        self._number += 1
        message = json.dumps([0, self._number, command, parameters]).encode()
        self._connection.sendall(b"%d:%s" % (len(message), message))
        _, number, error, result = self._receive()
        assert number == self._number
        assert error is None, error
        return result

    def open(self, path: Path) -> None:
        """Show a file, and wait until all of it is there."""
        self.call("WebDriver:Navigate", url=path.resolve().as_uri())

    def value(self, expression: str) -> Any:
        """Give the value of an expression in the page."""
        script = f"return ({expression})"
        return self.call("WebDriver:ExecuteScript", script=script, args=[])["value"]

    def press(self, key: str, *, alt: bool = False) -> None:
        """Press and release a key, as the user's hand does."""
        own = _KEYS.get(key, key)
        keys = [_ALT, own] if alt else [own]
        steps = [{"type": "keyDown", "value": each} for each in keys]
        steps += [{"type": "keyUp", "value": each} for each in reversed(keys)]
        self.call(
            "WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": steps}]
        )

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        for letter in text:
            self.press(letter)

    def save_downloads_in(self, folder: Path) -> None:
        """Have files saved in a folder, without a question."""
        self.call("Marionette:SetContext", value="chrome")
        script = "Services.prefs.setStringPref('browser.download.dir', arguments[0])"
        self.call("WebDriver:ExecuteScript", script=script, args=[str(folder)])
        self.call("Marionette:SetContext", value="content")

    def _receive(self) -> Any:
        length = b""
        while not length.endswith(b":"):
            read = self._file.read(1)
            assert read, "the browser has ended"
            length += read
        return json.loads(self._file.read(int(length[:-1])))


@contextmanager
def firefox_page(profile: Path) -> Iterator[FirefoxPage]:
    """Start a browser with an empty profile, and end it afterwards."""
    assert FIREFOX is not None
    lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in _QUIET.items()]
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    process = subprocess.Popen(
        [
            *(FIREFOX, "--headless", "--no-remote", "--marionette"),
            *("--remote-allow-system-access", "--profile", str(profile), "about:blank"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with socket.create_connection(("127.0.0.1", _port(profile, process))) as connection:
            connection.settimeout(_PATIENCE_S)
            page = FirefoxPage(connection)
            yield page
            with suppress(AssertionError, OSError):
                page.call("Marionette:Quit", flags=["eForceQuit"])
            page._file.close()
    finally:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port(profile: Path, process: subprocess.Popen[bytes]) -> int:
    """Wait for the port that the browser has chosen."""
    found: list[int] = []

    def is_chosen() -> bool:
        assert process.poll() is None, "the browser has ended"
        with suppress(OSError, ValueError):
            found.append(int((profile / "MarionetteActivePort").read_text(encoding="utf-8")))
        return bool(found)

    wait_until(is_chosen, "the browser does not answer", patience_s=_PATIENCE_S, pause_s=0.1)
    return found[0]
