"""Work that must not wait for a named pipe."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
PATIENCE_S = 60.0
"""Longer than anything here takes, also where cores are busy."""


def pipe_instead_of(path: Path) -> Path:
    """Replace a file by a named pipe that nothing ever writes to."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


@contextmanager
def not_waited_for(pipe: Path) -> Iterator[None]:
    """Fail the test, instead of hanging, where something waits for a writer of a pipe."""
    is_over = threading.Event()
    waited = []

    def release() -> None:
        while not is_over.wait(1.0 if waited else PATIENCE_S):
            waited.append(True)
            try:
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                waited.pop()  # nothing reads it

    thread = threading.Thread(target=release, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    assert not waited, "the program waited for a named pipe"
