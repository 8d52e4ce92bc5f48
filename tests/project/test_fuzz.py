"""The short form of the fuzzing: every reader, the same damaged files every time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.judge import HELD, LARGEST_PX, MEMORY_BYTES, Judge, Logbook
from fuzz.targets import TARGETS
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.files.guard import largest_px
from tests.support.paths import REPOSITORY


@pytest.mark.parametrize("n_inputs", [20, pytest.param(60, marks=pytest.mark.long)])
def test_damaged_files_give_typed_errors_or_sound_values(tmp_path: Path, n_inputs: int) -> None:
    # In a process of its own: libraries can crash.
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.short", str(n_inputs), str(log)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=300,
    )
    last = Logbook.read(log)[1] if log.exists() and done.returncode < 0 else b""
    assert done.returncode == 0, f"{done.stdout[-4000:]}{done.stderr[-2000:]}\n{last[:1000]!r}"


def test_good_files_are_read() -> None:
    """Seeds that nobody can read would test nothing."""
    for name, target in TARGETS.items():
        judge = target.judge()
        assert [judge.failure_of(data) for data in target.all_seeds()[:2]] == [None, None][
            : len(target.all_seeds()[:2])
        ], name
        judge.close()


def _kind(read: object) -> str | None:
    judge = Judge(read, "a")  # type: ignore[arg-type]
    failure = judge.failure_of(b"x")
    judge.close()
    return failure and failure.kind


def test_what_counts_as_failure() -> None:
    held = []

    def refuse(path: Path) -> None:
        raise PanopticError("no", path=path)

    def mumble(path: Path) -> None:
        raise PanopticError("\ud800", path=path)

    def fail(path: Path) -> None:
        raise KeyError(path)

    def keep_open(path: Path) -> None:
        held.append(path.open("rb"))

    def litter(path: Path) -> None:
        path.with_suffix(".part").touch()

    def warn(path: Path) -> None:
        import warnings

        warnings.warn(f"odd: {path.name}", stacklevel=1)

    def hoard(path: Path) -> None:
        bytearray(2 * MEMORY_BYTES + len(path.read_bytes()))  # what is freed meanwhile counts, too

    def know_the_limit(path: Path) -> None:
        assert largest_px() == LARGEST_PX, path

    assert _kind(Path.read_bytes) is None
    assert _kind(refuse) is None
    assert _kind(mumble) is None  # what cannot be shown is written out
    assert _kind(fail) == "KeyError"
    assert _kind(keep_open) == "open file"
    assert _kind(litter) == "file left behind"
    assert _kind(warn) == "UserWarning"
    assert _kind(know_the_limit) is None
    assert largest_px() != LARGEST_PX  # of others
    if HELD.exists():
        assert _kind(hoard) == "MemoryError"
    for file in held:
        file.close()
