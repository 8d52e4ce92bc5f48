"""Links that other processes of the same user send to a window; nothing listens on the network.

A window listens on a local socket (a named pipe on Windows) that only its user may open. The name
of the socket depends on the fingerprint of the cohort that the window shows, so that a link finds
its window. Several windows of one cohort have numbered sockets, of which the first one that
answers takes the link. A message is one line with a link, and the answer is one word.

This module needs no window: the command line sends links before napari is imported.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qtpy.QtCore import QObject, QTimer, qInstallMessageHandler
from qtpy.QtNetwork import QLocalServer, QLocalSocket

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.values.links import LONGEST, CohortKey, ObjectLink

MOST_WINDOWS = 8
"""The most windows of one cohort that listen."""
MOST_WAITING = 4
"""The most connections at a time; further ones are refused."""
CONNECT_MS = 300
"""How long a connection may take."""
ANSWER_MS = 3000
"""How long a window may take to answer; another window is asked then."""
GOODBYE_MS = 100
"""How long a window that is only looked for may take to end the connection."""
ACCEPTED, REFUSED = b"accepted\n", b"refused\n"
_LONGEST_SOCKET_NAME = 95
"""Longest path of a socket in bytes; systems allow 104 or 108, and Qt binds it in a subfolder."""


def send_link(link: ObjectLink, cohort: CohortKey) -> bool:
    """Send a link to a window that shows a cohort.

    Returns
    -------
    bool
        False if no window has taken it: none is open, or none has answered in time.
    """
    return any(_is_taken(name, link) for name in socket_names(cohort))


class LinkServer(QObject):
    """Takes links to the cohort of a window until closed.

    Parameters
    ----------
    take
        Called with each link; returns whether the window opens it. The link is well formed, but
        can be to another version of the cohort.
    """

    def __init__(self, take: Callable[[ObjectLink], bool]) -> None:
        super().__init__()
        self._take = take
        self._server: QLocalServer | None = None

    @property
    def is_listening(self) -> bool:
        """Whether links arrive."""
        return self._server is not None

    def listen(self, cohort: CohortKey) -> bool:
        """Listen for links to a cohort, instead of those before.

        Returns
        -------
        bool
            False if there is no private place for sockets on this machine, or if too many windows
            show the cohort. Links then open another window.
        """
        self.close()
        folder = socket_folder()
        if sys.platform != "win32" and not _made_private(folder):
            return False
        for name in socket_names(cohort):
            if (server := _listening(name)) is not None:
                self._server = server
                server.newConnection.connect(self._on_connection)
                return True
        return False

    def close(self) -> None:
        """Take no more links, and remove the socket."""
        server, self._server = self._server, None
        if server is not None:
            with suppress(RuntimeError):  # a program that ends has deleted it
                server.close()
                server.deleteLater()
            if sys.platform != "win32":
                with suppress(OSError):  # other windows may have theirs there
                    socket_folder().rmdir()

    def _on_connection(self) -> None:
        while self._server is not None:
            socket = self._server.nextPendingConnection()
            if socket is None:
                return
            _Conversation(self._server, socket, self._on_text)

    def _on_text(self, text: str) -> bool:
        """Take a text; returns whether it is a link that the window opens."""
        try:
            return self.is_listening and self._take(ObjectLink.parse(text))
        except SettingsError:
            return False


class _Conversation(QObject):
    """Reads one line of one connection, answers, and ends; also without a line, after a time."""

    def __init__(
        self, server: QLocalServer, socket: QLocalSocket, take: Callable[[str], bool]
    ) -> None:
        super().__init__(server)
        self._socket, self._take, self._has_ended = socket, take, False
        socket.setParent(self)
        socket.setReadBufferSize(LONGEST + 2)
        socket.readyRead.connect(self._on_ready)
        socket.disconnected.connect(self.deleteLater)
        patience = QTimer(self)
        patience.setSingleShot(True)
        patience.timeout.connect(self._end)
        patience.start(ANSWER_MS)
        self._on_ready()  # it may be there already

    def _on_ready(self) -> None:
        socket = self._socket
        is_line = socket.canReadLine()
        if self._has_ended or not (is_line or socket.bytesAvailable() > LONGEST):
            return
        # A sender that has gone has opened another window meanwhile.
        if socket.state() == QLocalSocket.LocalSocketState.ConnectedState:
            line = bytes(socket.readLine(LONGEST + 2)) if is_line else b""
            is_taken = line.isascii() and self._take(line.decode("ascii").removesuffix("\n"))
            socket.write(ACCEPTED if is_taken else REFUSED)
            socket.flush()
        self._end()

    def _end(self) -> None:
        self._has_ended = True
        with _without_warning():
            self._socket.disconnectFromServer()


# --- sockets --------------------------------------------------------------------------------------


def _listening(name: str) -> QLocalServer | None:
    """Return a server on a name, unless another window has it.

    The leftover of a process that has ended is replaced. Qt would replace a live socket too, and
    on Windows several servers can have one name: so it is tried first.
    """
    if _answers(name):
        return None
    server = QLocalServer()
    server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
    server.setMaxPendingConnections(MOST_WAITING)
    if server.listen(name):
        return server
    server.deleteLater()
    return None


def _answers(name: str) -> bool:
    socket = QLocalSocket()
    socket.connectToServer(name)
    is_there = socket.waitForConnected(CONNECT_MS)
    with _without_warning():
        if is_there:
            socket.write(b"\n")  # no link: the window ends the connection, and has no warning
            socket.waitForDisconnected(GOODBYE_MS)
        socket.abort()
    return is_there


@contextmanager
def _without_warning() -> Iterator[None]:
    """Close a socket without a warning of Qt.

    Qt warns if an event filter in Python has seen events of the socket, such as napari's: of a
    connection that is PyQt's own.
    """
    before = qInstallMessageHandler(lambda *_message: None)
    try:
        yield
    finally:
        qInstallMessageHandler(before)


def _is_taken(name: str, link: ObjectLink) -> bool:
    """Send a link to a socket; returns whether a window has taken it."""
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(CONNECT_MS):
        return False
    socket.write(f"{link.text}\n".encode("ascii"))
    while not socket.canReadLine():
        if not socket.waitForReadyRead(ANSWER_MS) or socket.bytesAvailable() > len(ACCEPTED):
            break
    is_taken = socket.canReadLine() and bytes(socket.readLine(len(ACCEPTED) + 1)) == ACCEPTED
    socket.abort()
    return is_taken


def socket_names(cohort: CohortKey) -> Iterator[str]:
    """Yield the names of the sockets of a cohort's windows; none without a private place."""
    folder = socket_folder()
    if sys.platform == "win32":
        owner = hashlib.sha256(f"{getpass.getuser()}\0{Path.home()}".encode()).hexdigest()[:12]
        head = f"napari-panoptic-{owner}-"
    elif _is_private(folder):
        head = f"{folder}/"
    else:
        return
    for number in range(MOST_WINDOWS):
        name = f"{head}{cohort.fingerprint}-{number}"
        if len(os.fsencode(name)) <= _LONGEST_SOCKET_NAME:
            yield name


def socket_folder() -> Path:
    """Return the folder of this user's sockets; it is there while a window listens.

    Other users must not write to it, or they could put a socket of theirs in the place of a
    window's.
    """
    stated = os.environ.get("XDG_RUNTIME_DIR")
    if stated and _is_private(Path(stated)):
        return Path(stated) / "napari-panoptic"
    user = "" if sys.platform == "win32" else f"-{os.getuid()}"
    return Path(tempfile.gettempdir()) / f"napari-panoptic{user}"


def _made_private(folder: Path) -> bool:
    """Make a folder if it is not there; returns whether it is this user's alone."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    return _is_private(folder)


def _is_private(folder: Path) -> bool:
    if sys.platform == "win32":
        return False
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_closed = stat.S_IMODE(status.st_mode) & 0o077 == 0
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and is_closed
