"""Output streams whose reader may end before the command does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast


class _Output:
    """A stream of text whose reader may end: then the rest is dropped, and the work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._dropping():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._dropping():
            self._stream.flush()

    @contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # What is still in the buffer goes to the same place when Python ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextmanager
def readers_may_end() -> Iterator[None]:
    """Let a command finish when the program that reads its output has ended, as in ``| head``."""
    streams = [stream and _Output(stream) for stream in (sys.stdout, sys.stderr)]
    out, err = streams  # None without a console, on Windows
    with redirect_stdout(cast(Any, out)), redirect_stderr(cast(Any, err)):
        try:
            yield
        finally:
            for stream in filter(None, streams):
                stream.flush()
