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

SECONDS = 2.0
"""Of processor time that one input may take."""
MEMORY_BYTES = 1 << 30
"""That one input may take beyond what the process has when it begins."""
LARGEST_PX = 1 << 22
"""Above this readers are told to refuse images: what time and memory suffice for."""
LONGEST_MESSAGE = 4000
HELD = Path("/proc/self/statm")
"""Where Linux says how much memory a process has."""

Read = Callable[[Path], object]


@dataclass(frozen=True)
class Failure:
    """What an input did that no input may do.

    Parameters
    ----------
    kind
        The exception's name, or what else was wrong.
    place
        Where: the deepest line of this package, and the line that raised.
    details
        For people.
    """

    kind: str
    place: str
    details: str

    @property
    def key(self) -> str:
        """The same for inputs that very likely show the same fault."""
        return hashlib.sha256(f"{self.kind} {self.place}".encode()).hexdigest()[:12]


@contextmanager
def limited_memory(extra_bytes: int = MEMORY_BYTES) -> Iterator[None]:
    """Have allocations beyond a limit fail meanwhile, in the whole process."""
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
    """Gives inputs to one reader, each as a file in a folder of its own.

    Parameters
    ----------
    read
        Reads the file, and raises `AssertionError` where a value is not sound.
    file_name
        What the file is called.
    makes_files
        Whether reading is allowed to leave other files in the folder.
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
        """Say what is wrong with what the reader does; None where nothing is."""
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
                # Nobody may have to wait for the garbage collector: Windows keeps open files.
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
        """Empty the folder; give what was in it beside the input."""
        names = os.listdir(self._folder)  # noqa: PTH208 - no paths are needed
        for name in names:
            path = self._folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        return [name for name in names if name != self._path.name]

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
    """Give the number that the next file to be opened gets."""
    number = os.dup(0)
    os.close(number)
    return number


class Logbook:
    """How many inputs there were, and the last one: survives the death of the process.

    Parameters
    ----------
    path
        Of a file, which is made anew.
    """

    MOST_BYTES = 1 << 20

    def __init__(self, path: Path) -> None:
        size = 16 + self.MOST_BYTES
        path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), size)

    def note(self, count: int, data: bytes) -> None:
        """Note an input that comes now; ``count`` came before it."""
        data = data[: self.MOST_BYTES]
        self._memory[16 : 16 + len(data)] = data
        struct.pack_into("<QQ", self._memory, 0, count, len(data))

    @staticmethod
    def read(path: Path) -> tuple[int, bytes]:
        """Give the count and the last input."""
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
    text = f"{failure.kind} at {failure.place}\n{data[:400]!r}\n\n{failure.details}\n"
    (folder / f"{failure.key}.txt").write_text(text, encoding="utf-8", errors="replace")
