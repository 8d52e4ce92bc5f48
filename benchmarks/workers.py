"""Processes that run contenders, one per environment: how long they take, and how much memory.

``python -m benchmarks.workers MODULE`` reads one request per line (JSON) and answers each with a
line. It imports nothing but NumPy and the module of the contenders: peers that cannot be installed
beside each other have environments of their own. A request names a contender (a key of
``MODULE.CONTENDERS``) and the .npy files that it is called with.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

Contender = Callable[..., Any]
ROOT = Path(__file__).resolve().parent.parent
MAIN, PANOPTICA, TORCH = "the main one", "for panoptica", "for torch"
INTERPRETERS = {
    MAIN: Path(sys.executable),
    PANOPTICA: ROOT / ".venv-bench-panoptica" / "bin" / "python",
    TORCH: ROOT / ".venv-bench-torch" / "bin" / "python",
}
PACKAGES = {
    MAIN: (
        *("napari-panoptic", "numpy", "scipy", "scikit-image", "stardist", "traccuracy"),
        *("fastremap", "connected-components-3d", "medpy", "opencv-python-headless", "pillow"),
    ),
    PANOPTICA: ("panoptica", "numpy"),
    TORCH: ("cellpose", "torchmetrics", "torch", "numpy"),
}


# --- in the process -----------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _array(path: str) -> Any:
    return np.load(path)


def times_s(call: Contender, arrays: list[Any], clock: Callable[[], float], most: int) -> Any:
    """Time as many calls as fit into 20 ms, at least one."""
    times: list[float] = []
    while not times or (len(times) < most and sum(times) < 0.02):
        start = clock()
        call(*arrays)
        times.append(clock() - start)
    return times


def allocated_bytes(call: Contender, arrays: list[Any]) -> int:
    """Return the most memory that NumPy and Python use beyond the inputs in a second call.

    Nearly the same in every run (threads meet or do not); without what compiled code allocates.
    """
    call(*arrays)
    tracemalloc.start()
    try:
        call(*arrays)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def extra_bytes(call: Contender, arrays: list[Any]) -> int | None:
    """Measure in a forked process by how much a second call raises the most memory in use.

    A first call loads what is loaded once (libraries, compiled code). None where the system does
    not report it (Linux does).
    """
    if not Path("/proc/self/clear_refs").exists():
        return None
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            call(*arrays)
            os.write(sender, str(_raised_by(call, arrays)).encode())
        finally:
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return int(text) if text else None


def _raised_by(call: Contender, arrays: list[Any]) -> int:
    gc.collect()
    # Return what the first call left behind, or it would be used again unseen.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is in use
    before = _status("VmRSS")
    result = call(*arrays)
    peak = _status("VmHWM")
    del result
    return max(0, peak - before)


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def _answer(contenders: dict[str, Contender], request: dict[str, Any]) -> Any:
    """Return what a request asks for."""
    if request["what"] == "versions":
        return {name: _version(name) for name in request["names"]}
    call = contenders[request["contender"]]
    arrays = [_array(path) for path in request["arrays"]]
    match request["what"]:
        case "time":
            return 1000 * median(times_s(call, arrays, time.perf_counter, 30))
        case "processor":
            # Over all threads; unlike the time on the wall without waiting while others work.
            return 1000 * min(times_s(call, arrays, time.process_time, 5))
        case "memory":
            return extra_bytes(call, arrays)
        case "allocated":
            return allocated_bytes(call, arrays)
    return np.save(request["path"], call(*arrays))


def _version(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None


def main() -> None:
    # What a package prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    contenders: dict[str, Contender] = {}
    for line in sys.stdin:
        try:
            contenders = contenders or importlib.import_module(sys.argv[1]).CONTENDERS
            said = {"answer": _answer(contenders, json.loads(line))}
        except Exception as error:  # noqa: BLE001 (a peer that fails is left out, and named)
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=answers, flush=True)


# --- from outside -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One line of a table, and the contender that it measures."""

    label: str
    contender: str = ""  # a key of `CONTENDERS`; the label, if none is given
    environment: str = MAIN
    inputs: str = ""  # other ones than those of the stage
    differs: str = ""  # why its result differs, where that is known

    def __post_init__(self) -> None:
        object.__setattr__(self, "contender", self.contender or self.label)


class UnansweredError(Exception):
    """A contender that could not be run; the message says why."""


class Workers(ExitStack):
    """Workers as they are needed: one to time with, and one that stays untouched to fork from.

    Arrays are handed over in a folder.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._running: dict[tuple[str, bool], subprocess.Popen[str]] = {}
        self._paths: dict[str, list[str]] = {}

    def hand_over(self, inputs: Mapping[str, list[NDArray[Any]]]) -> None:
        """Write inputs where the workers find them."""
        for name, arrays in inputs.items():
            folder = self._folder / name.replace(" ", "-")
            folder.mkdir()
            self._paths[name] = [str(folder / f"{k}.npy") for k in range(len(arrays))]
            for path, array in zip(self._paths[name], arrays, strict=True):
                np.save(path, array)

    def result(self, row: Row, inputs: str) -> NDArray[Any]:
        """Call a contender for the first time, and return its result."""
        path = self._folder / "result.npy"
        path.unlink(missing_ok=True)
        self.measure("result", row, inputs, path=str(path))
        return np.asarray(np.load(path))

    def versions(self, environment: str) -> dict[str, str | None]:
        """Return the versions of the packages in an environment, None where one is missing."""
        names = PACKAGES[environment]
        found: dict[str, str | None] = self._ask(environment, what="versions", names=names)
        return found

    def measure(self, what: str, row: Row, inputs: str, **more: str) -> Any:
        """Measure a contender beyond its inputs.

        What: "time" (ms by the clock), "processor" (ms of all threads), "allocated" (bytes at most
        by NumPy and Python), "memory" (bytes at most in a fresh process, None if unknown).
        """
        request = {"what": what, "contender": row.contender, **more}
        arrays = self._paths[row.inputs or inputs]
        return self._ask(row.environment, fresh=what == "memory", arrays=arrays, **request)

    def _ask(self, environment: str, *, fresh: bool = False, **request: Any) -> Any:
        process = self._running.get((environment, fresh)) or self._started(environment, fresh)
        assert process.stdin is not None
        assert process.stdout is not None
        line = ""
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        said = json.loads(line) if line else {"error": "its process ended before it answered"}
        if "error" in said:
            raise UnansweredError(said["error"])
        return said["answer"]

    def _started(self, environment: str, fresh: bool) -> subprocess.Popen[str]:
        if not INTERPRETERS[environment].exists():
            raise UnansweredError(
                "its environment could not be made, see what `make bench` printed"
            )
        module = "benchmarks.contenders" if environment == MAIN else "benchmarks.peers"
        command = [str(INTERPRETERS[environment]), "-m", "benchmarks.workers", module]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, **pipes)  # noqa: S603
        self.enter_context(process)
        self.callback(process.kill)
        self._running[environment, fresh] = process
        return process


if __name__ == "__main__":
    main()
