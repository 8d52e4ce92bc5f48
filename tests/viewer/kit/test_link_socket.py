"""Links from other processes: they arrive at one window of this user, and hostile ones do not."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from qtpy.QtCore import QEvent, QObject, qInstallMessageHandler
from qtpy.QtNetwork import QLocalServer, QLocalSocket

from napari_panoptic.values.links import LONGEST, CohortKey, ObjectLink
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit import link_socket
from napari_panoptic.viewer.kit.link_socket import (
    MOST_WINDOWS,
    LinkServer,
    send_link,
    socket_folder,
)
from tests.support.paths import REPOSITORY

KEY = CohortKey("monusac", "5f3a91c2", "77ab3e")
OTHER = CohortKey("monusac", "5f3a91c2", "000000")
LINK = ObjectLink(KEY, "A_1", "Team B", ((Side.REFERENCE, 12),))
posix = pytest.mark.skipif(sys.platform == "win32", reason="sockets are files elsewhere")
pytestmark = pytest.mark.usefixtures("qapp")
Wait = Callable[..., None]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep sockets apart from those of open windows; their paths must be short."""
    with tempfile.TemporaryDirectory() as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield Path(runtime)


@pytest.fixture
def make_server() -> Iterator[Callable[[], tuple[LinkServer, list[ObjectLink]]]]:
    """Give a function that makes servers, each with the links that it took."""
    servers = []

    def make() -> tuple[LinkServer, list[ObjectLink]]:
        taken: list[ObjectLink] = []
        servers.append(LinkServer(lambda link: taken.append(link) or True))  # type: ignore[func-returns-value]
        return servers[-1], taken

    yield make
    for server in servers:
        server.close()


SENDER = """
import sys
from napari_panoptic.values.links import ObjectLink
from napari_panoptic.viewer.kit.link_socket import send_link
link = ObjectLink.parse(sys.argv[1])
taken = send_link(link, link.cohort)
assert not {"napari", "qtpy.QtWidgets"} & set(sys.modules)
sys.exit(0 if taken else 5)
"""


def sending(text: str) -> subprocess.Popen[str]:
    """Start a process that sends a link; it exits with 0 if a window took it, with 5 if not."""
    return subprocess.Popen(
        [sys.executable, "-c", SENDER, text],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> int:
    _, error = process.communicate(timeout=60)
    assert not error
    return process.returncode


def test_a_link_of_another_process_arrives(make_server: Any, wait_until: Wait) -> None:
    server, taken = make_server()
    assert server.listen(KEY)
    process = sending(LINK.text)
    wait_until(lambda: process.poll() is not None)
    assert end(process) == 0
    assert taken == [LINK]


SECOND_WINDOW = """
import sys
from qtpy.QtCore import QCoreApplication
from napari_panoptic.values.links import CohortKey
from napari_panoptic.viewer.kit.link_socket import LinkServer
application = QCoreApplication([])
server = LinkServer(lambda link: True)
listens = server.listen(CohortKey(*sys.argv[1:]))
server.close()
application.processEvents()
sys.exit(0 if listens else 5)
"""


class PythonFilter(QObject):
    """Sees all events, as napari's filters do."""

    def eventFilter(self, _watched: QObject | None, _event: QEvent | None) -> bool:  # noqa: N802
        return False


def test_a_second_window_of_a_cohort_causes_no_warning(
    make_server: Any, wait_until: Wait, qapp: Any
) -> None:
    server, taken = make_server()
    assert server.listen(KEY)
    sees, said = PythonFilter(), []
    qapp.installEventFilter(sees)
    before = qInstallMessageHandler(lambda *message: said.append(message))
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", SECOND_WINDOW, KEY.name, KEY.regions, KEY.teams],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: process.poll() is not None)
        assert end(process) == 0
        qapp.processEvents()
    finally:
        qInstallMessageHandler(before)
        qapp.removeEventFilter(sees)
    assert not said
    assert not taken


def test_nobody_answers_without_a_window(make_server: Any) -> None:
    assert not send_link(LINK, KEY)
    server, taken = make_server()
    assert server.listen(OTHER)
    assert end(sending(LINK.text)) == 5
    server.close()
    assert not taken


def test_the_first_of_two_windows_answers(make_server: Any, wait_until: Wait) -> None:
    (first, of_first), (second, of_second) = make_server(), make_server()
    assert first.listen(KEY)
    assert second.listen(KEY)
    process = sending(LINK.text)
    wait_until(lambda: process.poll() is not None)
    assert end(process) == 0
    first.close()
    process = sending(LINK.text)
    wait_until(lambda: process.poll() is not None)
    assert end(process) == 0
    assert of_first == of_second == [LINK]
    second.close()
    assert end(sending(LINK.text)) == 5


def test_a_window_that_shows_another_cohort_no_longer_answers(make_server: Any) -> None:
    server, taken = make_server()
    server.listen(KEY)
    server.listen(OTHER)
    assert end(sending(LINK.text)) == 5
    assert not taken


def test_there_are_only_so_many_windows_of_a_cohort(make_server: Any) -> None:
    servers = [make_server()[0] for _ in range(MOST_WINDOWS + 1)]
    assert [server.listen(KEY) for server in servers] == [True] * MOST_WINDOWS + [False]


def test_a_window_can_refuse(wait_until: Wait) -> None:
    server = LinkServer(lambda _link: False)
    server.listen(KEY)
    process = sending(LINK.text)
    wait_until(lambda: process.poll() is not None)
    server.close()
    assert end(process) == 5


@posix
def test_only_this_user_may_connect_and_nothing_is_left(make_server: Any, folder: Path) -> None:
    server, _ = make_server()
    server.listen(KEY)
    assert socket_folder() == folder / "napari-panoptic"
    (path,) = socket_folder().iterdir()
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(socket_folder().stat().st_mode) == 0o700
    assert KEY.fingerprint in path.name
    assert KEY.name not in path.name
    server.close()
    assert not list(folder.iterdir())


@posix
@pytest.mark.parametrize("kind", ["open to others", "link", "file"])
def test_a_folder_that_others_could_write_to_is_not_used(
    make_server: Any, folder: Path, tmp_path: Path, kind: str
) -> None:
    place = folder / "napari-panoptic"
    if kind == "open to others":
        place.mkdir()
        place.chmod(0o777)
    elif kind == "link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "theirs")
    else:
        place.write_text("")
    server, _ = make_server()
    assert not server.listen(KEY)
    assert not send_link(LINK, KEY)
    assert not list((tmp_path / "theirs").iterdir() if kind == "link" else ())


@posix
def test_without_a_runtime_folder_there_is_one_of_its_own(
    make_server: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert socket_folder() == folder / f"napari-panoptic-{os.getuid()}"
    server, _ = make_server()
    assert server.listen(KEY)
    assert stat.S_IMODE(socket_folder().stat().st_mode) == 0o700


LISTENER = """
import os, signal, sys
from qtpy.QtCore import QCoreApplication
from napari_panoptic.values.links import ObjectLink
from napari_panoptic.viewer.kit.link_socket import LinkServer
application = QCoreApplication([])
server = LinkServer(lambda link: True)
assert server.listen(ObjectLink.parse(sys.argv[1]).cohort)
os.kill(os.getpid(), signal.SIGKILL if sys.argv[2] == "killed" else signal.SIGSTOP)
"""


def listening(how: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", LISTENER, LINK.text, how],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )


@posix
def test_the_socket_of_a_killed_process_does_not_block(make_server: Any, wait_until: Wait) -> None:
    assert listening("killed").wait(timeout=60) == -9
    assert len(list(socket_folder().iterdir())) == 1
    assert not send_link(LINK, KEY)
    server, taken = make_server()
    assert server.listen(KEY)
    assert len(list(socket_folder().iterdir())) == 1  # in place of the one before
    process = sending(LINK.text)
    wait_until(lambda: process.poll() is not None)
    assert end(process) == 0
    assert taken == [LINK]


@posix
def test_a_process_that_hangs_is_not_waited_for(
    make_server: Any, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_socket, "ANSWER_MS", 200)
    hanging = listening("stopped")
    try:
        wait_until(lambda: socket_folder().exists() and list(socket_folder().iterdir()))
        wait_until(lambda: "T" in Path(f"/proc/{hanging.pid}/stat").read_text().split()[2])
        begin = time.monotonic()
        assert not send_link(LINK, KEY)
        assert time.monotonic() - begin < 5
        server, taken = make_server()
        assert server.listen(KEY)  # beside it
        process = sending(LINK.text)  # is patient
        wait_until(lambda: process.poll() is not None)
        assert end(process) == 0
        assert taken == [LINK]
    finally:
        hanging.kill()
        hanging.wait(timeout=60)


HOSTILE = {
    "nothing": b"\n",
    "no link": b"http://example.org\n",
    "a path": b"/etc/passwd\n",
    "zeros": b"\0" * 100 + b"\n",
    "control characters": b"panoptic:one@5f3a91c2-77ab3e/A\x1b[2J\n",
    "no text": bytes(range(128, 256)) + b"\n",
    "a long line": b"panoptic:" + b"a" * LONGEST + b"\n",
    "a huge text": b"a" * 10**6,
}


@posix
@pytest.mark.parametrize("message", HOSTILE.values(), ids=HOSTILE)
def test_hostile_messages_are_refused(make_server: Any, wait_until: Wait, message: bytes) -> None:
    server, taken = make_server()
    server.listen(KEY)
    (path,) = socket_folder().iterdir()
    with socket.socket(socket.AF_UNIX) as sender:
        sender.connect(str(path))
        sender.setblocking(False)
        sent, answer = memoryview(message), bytearray()

        def has_ended() -> bool:
            nonlocal sent
            try:
                if sent:
                    sent = sent[sender.send(sent) :]
                part = sender.recv(100)
                answer.extend(part)
            except BlockingIOError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                return True
            return not part

        wait_until(has_ended)
    assert answer in (b"refused\n", b"")
    assert not taken


def test_a_connection_without_a_message_ends(
    make_server: Any, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_socket, "ANSWER_MS", 50)
    server, taken = make_server()
    server.listen(KEY)
    silent = QLocalSocket()
    silent.connectToServer(next(link_socket.socket_names(KEY)))
    assert silent.waitForConnected(1000)
    states = QLocalSocket.LocalSocketState
    wait_until(lambda: silent.state() == states.UnconnectedState)
    assert not taken


def test_a_stranger_who_answers_otherwise_has_not_taken_the_link() -> None:
    folder = socket_folder()
    folder.mkdir(mode=0o700)
    process = sending(LINK.text)
    server = QLocalServer()
    assert server.listen(next(link_socket.socket_names(KEY)))
    if server.waitForNewConnection(20000)[0]:
        connection = server.nextPendingConnection()
        assert connection is not None
        connection.write(b"x" * 100)
        connection.flush()
        connection.waitForDisconnected(5000)
    server.close()
    assert end(process) == 5
