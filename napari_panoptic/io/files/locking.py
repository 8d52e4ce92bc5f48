"""One program at a time in a folder: a lock that ends with the process, however it ends."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from napari_panoptic.common.errors import PanopticError

_NOTE_AT = 16
"""Offset in bytes: Windows does not let other programs read the byte that is locked."""


class InUseError(PanopticError):
    """Another program is writing to the same place."""


@contextmanager
def exclusive_lock(path: Path, what: str, remedy: str) -> Iterator[None]:
    """Keep other programs, on this or other machines, from doing the same at the same time.

    Parameters
    ----------
    path
        The lock file: created, and removed at the end. A file left by a killed program
        locks nothing.
    what
        What cannot be done twice, such as "an evaluation".
    remedy
        What to do instead.

    Raises
    ------
    InUseError
        If another program holds the lock; the message names its process id and machine.
    OSError
        If the lock file cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise InUseError(
            f"{what} is already writing here ({_holder(path)}); wait until it has ended, or "
            f"{remedy}",
            path=path.parent,
        ) from None
    try:
        with suppress(OSError), path.open("r+b") as file:  # the disk may be full
            file.seek(_NOTE_AT)
            file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
            file.truncate()
        yield
    finally:
        # Remove the file before releasing it, so that no program locks a file that is about
        # to vanish. Windows only removes files that are closed.
        if sys.platform != "win32":
            path.unlink(missing_ok=True)
        lock.release()
        if sys.platform == "win32":
            with suppress(OSError):
                path.unlink()


def _holder(path: Path) -> str:
    try:
        note = path.read_bytes()[_NOTE_AT:].decode(errors="replace")
    except OSError:
        note = ""
    return note or "another process"
