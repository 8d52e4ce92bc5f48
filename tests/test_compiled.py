"""Where kernels are kept on disk, and when what is kept there is used again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = {
    "constants": "FACTOR = {factor}\n",
    "inner": """\
from napari_panoptic._compiled import compiled

@compiled
def doubled(x):
    return {factor} * x
""",
    "outer": """\
from constants import FACTOR
from inner import doubled
from napari_panoptic._compiled import compiled

@compiled
def figure(x):
    return doubled(x) + FACTOR

if __name__ == "__main__":
    import outer
    print(outer.figure(10), len(outer.figure.stats.cache_hits))
""",
}


def written(folder: Path, factor: int) -> Path:
    """Write three modules, of which only the last never depends on the factor."""
    folder.mkdir(exist_ok=True)
    for name, text in KERNELS.items():
        (folder / f"{name}.py").write_text(text.format(factor=factor), encoding="utf-8")
    return folder


def started(folder: Path, **environment: str) -> subprocess.Popen[str]:
    # Python's own cache goes by seconds and sizes, which an edit in a test may keep.
    known = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environment
    return subprocess.Popen(
        [sys.executable, str(folder / "outer.py")],
        env={name: value for name, value in known.items() if value},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def printed(process: subprocess.Popen[str]) -> tuple[int, int]:
    """Give the figure that a process printed, and how many kernels it found on disk."""
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    figure, hits = out.split()
    return int(figure), int(hits)


def test_kernels_are_kept_until_something_they_use_changes(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    folder = written(tmp_path / "kernels", 2)
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (22, 0)
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (22, 1)
    # A constant, then a callee, both of another file than the kernel's.
    (folder / "constants.py").write_text("FACTOR = 3\n", encoding="utf-8")
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (23, 0)
    written(folder, 3)
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (33, 0)


def test_kernels_run_where_nothing_can_be_kept(tmp_path: Path) -> None:
    folder = written(tmp_path / "kernels", 2)
    # Files where folders are wanted: these stop even an administrator.
    (folder / "__pycache__").write_text("", encoding="utf-8")
    nowhere = tmp_path / "home"
    nowhere.write_text("", encoding="utf-8")
    homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "APPDATA"), str(nowhere))
    assert printed(started(folder, NUMBA_CACHE_DIR="", **homes)) == (22, 0)


@pytest.mark.parametrize("count", [3])
def test_processes_that_start_at_once_on_an_empty_cache(tmp_path: Path, count: int) -> None:
    folder = written(tmp_path / "kernels", 2)
    kept = str(tmp_path / "kept")
    processes = [started(folder, NUMBA_CACHE_DIR=kept) for _ in range(count)]
    assert {printed(process)[0] for process in processes} == {22}
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (22, 1)
