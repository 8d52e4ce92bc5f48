"""Where kernels are kept on disk, and when what is kept there is used again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.kernels.jit import in_threads

KERNELS = {
    "constants": "FACTOR = {factor}\n",
    "inner": """\
from napari_panoptic.kernels.jit import compiled

@compiled
def doubled(x):
    return {factor} * x
""",
    "outer": """\
from constants import FACTOR
from inner import doubled
from napari_panoptic.kernels.jit import compiled

@compiled
def figure(x):
    return doubled(x) + FACTOR

if __name__ == "__main__":
    import outer
    print(outer.figure(10), len(outer.figure.stats.cache_hits))
""",
}

TAKES_A_TYPE = """\
from typing import NamedTuple
from napari_panoptic.kernels.jit import compiled

class {name}(NamedTuple):
    value: int

@compiled
def figure(x):
    return x.value

if __name__ == "__main__":
    import outer
    print(outer.figure(outer.{name}(7)), len(outer.figure.stats.cache_hits))
"""


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


def test_kernels_are_cached_until_their_files_change(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    folder = written(tmp_path / "kernels", 2)
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (22, 0)
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (22, 1)
    # The kernel's own file stays the same; what it imports does not.
    for name in ("constants", "inner"):
        (folder / f"{name}.py").write_text(KERNELS[name].format(factor=3), encoding="utf-8")
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (33, 0)
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (33, 1)


@pytest.mark.long
def test_a_kernel_whose_argument_type_was_renamed(tmp_path: Path) -> None:
    """Numba alone fails: it reads the old name from the cache before it looks at the file."""
    folder, kept = written(tmp_path / "kernels", 2), str(tmp_path / "kept")
    text = TAKES_A_TYPE.format(name="Before")
    (folder / "outer.py").write_text(text, encoding="utf-8")
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (7, 0)
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (7, 1)
    (folder / "outer.py").write_text(text.replace("Before", "After"), encoding="utf-8")
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (7, 0)


def test_kernels_run_where_nothing_can_be_kept(tmp_path: Path) -> None:
    folder = written(tmp_path / "kernels", 2)
    # Files where folders are wanted: these stop even an administrator.
    (folder / "__pycache__").write_text("", encoding="utf-8")
    nowhere = tmp_path / "home"
    nowhere.write_text("", encoding="utf-8")
    homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "APPDATA"), str(nowhere))
    assert printed(started(folder, NUMBA_CACHE_DIR="", **homes)) == (22, 0)


@pytest.mark.long
@pytest.mark.parametrize("count", [3])
def test_processes_that_start_at_once_on_an_empty_cache(tmp_path: Path, count: int) -> None:
    folder = written(tmp_path / "kernels", 2)
    kept = str(tmp_path / "kept")
    processes = [started(folder, NUMBA_CACHE_DIR=kept) for _ in range(count)]
    assert {printed(process)[0] for process in processes} == {22}
    assert printed(started(folder, NUMBA_CACHE_DIR=kept)) == (22, 1)


class TestInThreads:
    def test_results_come_in_the_order_of_the_parts(self) -> None:
        assert in_threads(lambda n: n * n, [3, 1, 2, 5]) == [9, 1, 4, 25]

    @pytest.mark.parametrize("bad", range(3))
    def test_an_error_of_any_part_is_raised_when_none_is_at_work_any_more(self, bad: int) -> None:
        at_work = set()

        def work(part: int) -> int:
            at_work.add(part)
            try:
                time.sleep(0.01 * part)
                return 1 // (part != bad)
            finally:
                at_work.remove(part)

        with pytest.raises(ZeroDivisionError):
            in_threads(work, [0, 1, 2])
        assert not at_work

    def test_parts_may_be_shared_out_again(self) -> None:
        sums = in_threads(lambda n: sum(in_threads(abs, [n, -n])), [1, 2, 3])
        assert sums == [2, 4, 6]

    def test_nothing_is_kept_alive(self) -> None:
        parts = [np.zeros(3), np.zeros(3)]
        kept = [weakref.ref(part) for part in parts]
        in_threads(np.sum, parts)
        del parts
        assert [ref() for ref in kept] == [None, None]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
    def test_a_fork_has_threads_of_its_own(self) -> None:
        program = (
            "import os\n"
            "from napari_panoptic.kernels.jit import in_threads\n"
            "in_threads(abs, [1, 2])\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    os._exit(sum(in_threads(abs, [3, -4])))\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        )
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
        )
        assert result.stdout.strip() == "7"
