"""One input goes in, a verdict comes out: a typed error or a sound value, or else a failure."""

from __future__ import annotations

import gc
import hashlib
import logging
import mmap
import os
import resource
import shutil
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.io.files.guard import VARIABLE

SECONDS = 2.0  # of processor time for one input
MEMORY_BYTES = 1 << 30  # for one input, beyond what the process has when it begins
LARGEST_PX = 1 << 22  # the limit of images for readers, for which time and memory suffice
LONGEST_MESSAGE = 4000
HELD = Path("/proc/self/statm")  # the memory of a process, on Linux
Read = Callable[[Path], object]


@dataclass(frozen=True)
class Failure:
    """What an input did that no input may do."""

    kind: str  # the exception's name, or what else was wrong
    place: str  # the deepest line of this package, and the line that raised
    details: str

    @property
    def key(self) -> str:
        """The same for inputs that very likely show the same fault."""
        return hashlib.sha256(f"{self.kind} {self.place}".encode()).hexdigest()[:12]

    def described(self, data: bytes) -> str:
        """Return a text with the beginning of the input."""
        return f"{self.kind} at {self.place}\n{data!r}\n\n{self.details}\n"


@contextmanager
def limited_memory(extra_bytes: int = MEMORY_BYTES) -> Iterator[None]:
    """Let allocations beyond a limit fail meanwhile, in the whole process."""
    if not HELD.exists():  # not Linux
        yield
        return
    held = int(HELD.read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + extra_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


class Judge:
    """One reader, which gets inputs as files of this name; it may leave others if it makes files.

    It raises `AssertionError` for a value that is not sound.
    """

    def __init__(self, read: Read, file_name: str, *, makes_files: bool = False) -> None:
        memory = Path("/dev/shm")  # noqa: S108 - inputs need no disk
        self._folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self._read, self._path = read, self._folder / file_name
        self._makes_files = makes_files
        self._lost: list[Any] = []
        logging.disable(logging.CRITICAL)
        # What was imported stays: the collector need not look at it again and again.
        gc.freeze()
        self._hook_before = sys.unraisablehook
        sys.unraisablehook = self._lost.append
        self._limit_before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(LARGEST_PX)

    def close(self) -> None:
        """Remove the folder, and leave the process as it was."""
        logging.disable(logging.NOTSET)
        gc.unfreeze()
        sys.unraisablehook = self._hook_before
        del os.environ[VARIABLE]
        if self._limit_before is not None:
            os.environ[VARIABLE] = self._limit_before
        shutil.rmtree(self._folder, ignore_errors=True)

    def failure_of(self, data: bytes) -> Failure | None:
        """Return what is wrong with what the reader does, if anything is."""
        # The clock on the wall is quickest to read; what others do on the machine counts not.
        failure = self._tried(data, time.perf_counter)
        if failure is not None and failure.kind in ("slow", "open file"):
            # What a library makes when it is first needed (kernels, event loops) is not the
            # input's fault.
            failure = self._tried(data, time.process_time)
        return failure

    def _tried(self, data: bytes, clock: Callable[[], float]) -> Failure | None:
        self._path.write_bytes(data)
        free_before = _first_free()
        began = clock()
        try:
            failure = self._outcome(self._path)
            took = clock() - began
            if failure is None and took > SECONDS:
                failure = Failure("slow", "", f"took {took:.1f} s of processor time")
            if _first_free() != free_before:
                # Not to be left to the garbage collector: Windows keeps open files.
                failure = failure or Failure("open file", "", "a file was left open")
                gc.collect()
            if self._lost:
                lost = self._lost[0]
                failure = failure or Failure("unraisable", "", repr(lost.exc_value))
                self._lost.clear()
        finally:
            left = self._cleared()
        if failure is None and left and not self._makes_files:
            failure = Failure("file left behind", "", f"{left}")
        return failure

    def _cleared(self) -> list[str]:
        """Empty the folder; return the names of what was in it beside the input."""
        paths = list(self._folder.iterdir())
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return [path.name for path in paths if path != self._path]

    def _outcome(self, path: Path) -> Failure | None:
        with warnings.catch_warnings(), limited_memory():
            warnings.simplefilter("error")
            try:
                self._read(path)
            except PanopticError as error:
                return _bad_message(str(error).replace(str(path.parent), ""))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                return _failure(error)
        return None


def check_findings(findings: tuple[Finding, ...]) -> None:
    """Make sure that findings can be shown and written."""
    for finding in findings:
        bad = _bad_message(finding.message)
        assert bad is None, bad
        assert finding.count > 0, finding
        assert all(type(id_) is int for id_ in finding.object_ids), finding


def _bad_message(message: str) -> Failure | None:
    try:
        message.encode("utf-8")
    except UnicodeEncodeError:
        return Failure("unprintable message", "", repr(message)[:500])
    if len(message) > LONGEST_MESSAGE:
        return Failure("long message", message[:60], message[:500])
    return None


def _failure(error: BaseException) -> Failure:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "napari_panoptic" in frame.filename]
    places = [f"{Path(f.filename).name}:{f.name}:{f.lineno}" for f in (*ours[-1:], frames[-1])]
    details = "".join(traceback.format_exception(error, limit=-12))
    return Failure(type(error).__name__, " < ".join(dict.fromkeys(places)), details[-6000:])


def _first_free() -> int:
    """Return the number that the next file to be opened gets."""
    number = os.dup(0)
    os.close(number)
    return number


class Logbook:
    """The number of inputs and the last one, in a file that survives the death of the process."""

    MOST_BYTES = 1 << 20

    def __init__(self, path: Path) -> None:
        size = 16 + self.MOST_BYTES
        path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), size)

    def note(self, count: int, data: bytes) -> None:
        """Note an input that comes now, after `count` others."""
        data = data[: self.MOST_BYTES]
        self._memory[16 : 16 + len(data)] = data
        struct.pack_into("<QQ", self._memory, 0, count, len(data))

    @staticmethod
    def read(path: Path) -> tuple[int, bytes]:
        """Return the count and the last input."""
        content = path.read_bytes()
        count, size = struct.unpack_from("<QQ", content)
        return count, content[16 : 16 + size]


def keep(folder: Path, failure: Failure, data: bytes) -> None:
    """Keep an input that shows a failure; of several the smallest."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{failure.key}.input"
    if path.exists() and path.stat().st_size <= len(data):
        return
    path.write_bytes(data)
    text = failure.described(data[:400])
    (folder / f"{failure.key}.txt").write_text(text, encoding="utf-8", errors="replace")
