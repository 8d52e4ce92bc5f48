"""The processes that run contenders, one per environment, and what they are asked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.stages import MAIN, PANOPTICA, TORCH, Row

ROOT = Path(__file__).resolve().parent.parent
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


class UnansweredError(Exception):
    """A contender that could not be run; the message says why."""


class _Worker:
    """One process of `benchmarks.worker`, asked over its standard input."""

    def __init__(self, module: str, stack: ExitStack) -> None:
        if not INTERPRETERS[module].exists():
            raise UnansweredError(
                "its environment could not be made, see what `make bench` printed"
            )
        command = [str(INTERPRETERS[module]), "-m", "benchmarks.worker", module]
        self._process = stack.enter_context(
            subprocess.Popen(  # noqa: S603
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        )
        stack.callback(self._process.kill)

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise UnansweredError("its process ended before it answered")
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise UnansweredError(said["error"])
        return said


class Workers:
    """Workers as they are needed: one to time with, and one that stays untouched to fork from.

    Parameters
    ----------
    folder
        Where arrays are handed over.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._running: dict[tuple[str, bool], _Worker] = {}
        self._paths: dict[str, list[str]] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, at)

    def hand_over(self, inputs: Mapping[str, list[NDArray[Any]]]) -> None:
        """Write inputs where the workers find them."""
        for name, arrays in inputs.items():
            folder = self._folder / name.replace(" ", "-")
            folder.mkdir()
            self._paths[name] = [str(folder / f"{k}.npy") for k in range(len(arrays))]
            for path, array in zip(self._paths[name], arrays, strict=True):
                np.save(path, array)

    def result(self, row: Row, inputs: str) -> NDArray[Any]:
        """Call a contender for the first time, and give what came of it."""
        path = self._folder / "result.npy"
        path.unlink(missing_ok=True)
        self._ask(row, inputs, what="result", path=str(path))
        return np.asarray(np.load(path))

    def milliseconds(self, row: Row, inputs: str) -> float:
        """Time a contender."""
        return float(self._ask(row, inputs, what="time")["ms"])

    def processor_ms(self, row: Row, inputs: str) -> float:
        """Give a contender's processor time."""
        return float(self._ask(row, inputs, what="processor")["ms"])

    def allocated_bytes(self, row: Row, inputs: str) -> int:
        """Give the most memory that NumPy and Python give a contender beyond its inputs."""
        return int(self._ask(row, inputs, what="allocated")["bytes"])

    def extra_bytes(self, row: Row, inputs: str) -> int | None:
        """Measure the most memory that a contender has beyond its inputs, in a fresh process."""
        extra: int | None = self._ask(row, inputs, fresh=True, what="memory")["bytes"]
        return extra

    def versions(self, module: str) -> dict[str, str | None]:
        """Give the versions of the packages in an environment, None where one is missing."""
        said = self._worker(module, fresh=False).ask(what="versions", names=PACKAGES[module])
        versions: dict[str, str | None] = said["versions"]
        return versions

    def _ask(self, row: Row, inputs: str, *, fresh: bool = False, **request: Any) -> dict[str, Any]:
        worker = self._worker(row.module, fresh=fresh)
        arrays = self._paths[row.inputs or inputs]
        return worker.ask(contender=row.contender, arrays=arrays, **request)

    def _worker(self, module: str, *, fresh: bool) -> _Worker:
        if (module, fresh) not in self._running:
            self._running[module, fresh] = _Worker(module, self._stack)
        return self._running[module, fresh]
