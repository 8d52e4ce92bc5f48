"""One program at a time in a folder: a lock that ends with the process, however it ends."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from napari_panoptic.common.errors import PanopticError

_NOTE_AT = 16  # bytes; Windows lets nobody read what is locked


class InUseError(PanopticError):
    """Another program is writing there just now."""


@contextmanager
def held_alone(path: Path, what: str, remedy: str) -> Iterator[None]:
    """Keep other programs, here or on other machines, from doing the same at the same time.

    Parameters
    ----------
    path
        The lock file: made, and removed at the end. One that a killed program
        has left locks nothing. On file systems without locks nobody is kept out.
    what
        What cannot be done twice, such as "an evaluation".
    remedy
        What to do instead.

    Raises
    ------
    InUseError
        Where another program holds it; with its process id and machine.
    OSError
        Where the lock file cannot be written.
    """
    file = _locked(path)
    if file is None:
        raise InUseError(
            f"{what} is already writing here ({_holder(path)}); wait until it has ended, or "
            f"{remedy}",
            path=path.parent,
        )
    try:
        with suppress(OSError):  # a full disk: then nobody is told who holds it
            file.seek(_NOTE_AT)
            file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
            file.truncate()
            file.flush()
        yield
    finally:
        # Before it is let go, so that nobody takes a lock that is about to vanish.
        # Windows only removes what nobody has open.
        if sys.platform != "win32":
            path.unlink(missing_ok=True)
        with suppress(OSError):
            file.close()
        if sys.platform == "win32":
            with suppress(OSError):
                path.unlink()


def _locked(path: Path) -> FileIO | None:
    """Open and lock a file; None where somebody else has."""
    while True:
        file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        if not _lock(file):
            file.close()
            return None
        if _is_still_there(file, path):
            return file
        file.close()  # who held it has removed it in between


def _is_still_there(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(file: FileIO) -> bool:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        except OSError:  # no locks on this file system
            return True
        return True

else:
    import fcntl

    def _lock(file: FileIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # no locks on this file system
            return True
        return True


def _holder(path: Path) -> str:
    try:
        note = path.read_bytes()[_NOTE_AT:].decode(errors="replace")
    except OSError:
        note = ""
    return note or "another process"
