"""Sets of files in one folder that are replaced together: all of them, or none.

No file system replaces several files at once, so two hidden folders record how far the
replacement is. `_NEW` holds the new files on their way to their places: once that folder exists,
the new set counts, and the next run completes a replacement that was killed. `_BEFORE` holds the
older files meanwhile: without `_NEW`, a failed replacement was being undone, which the next run
completes. One file, the record, leaves first and arrives last: where it is, the set is whole.
"""

from __future__ import annotations

import errno
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

from napari_panoptic.io.files.replacing import folder_to_disk

_DRAFT, _NEW, _BEFORE = ".set.part", ".set.new", ".set.before"
_ENDING_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def replaced_as_set(folder: Path, record: str) -> Iterator[Path]:
    """Write files that replace those of the same names in a folder together.

    Signals that end the program are deferred while the files are moved.

    Parameters
    ----------
    folder
        Where the files belong; must exist.
    record
        The name of the file that is in its place only while the set is whole.

    Yields
    ------
    Path
        A folder to write the files into; an empty folder in it stands for an older file that is
        removed. After an error the older files stay.

    Raises
    ------
    OSError
        If a file cannot be written or replaced.
    """
    draft = folder / _DRAFT
    rmtree(draft, ignore_errors=True)
    draft.mkdir()
    try:
        yield draft
        folder_to_disk(draft)
        names = _names_in(draft, record)
        for name in names:
            if (folder / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{name} is a folder", str(folder / name))
        with _signals_deferred():
            draft.rename(folder / _NEW)
            try:
                _move_in(folder, names)
            except BaseException:
                (folder / _NEW).rename(draft)
                for name in names:
                    if not (draft / name).exists() and (folder / name).exists():
                        (folder / name).replace(draft / name)
                _restore(folder, record)
                raise
            _clean_up(folder)
    finally:
        rmtree(draft, ignore_errors=True)


def finish_replacing(folder: Path, record: str) -> None:
    """Complete the replacement of a set that a killed program has begun.

    Parameters
    ----------
    folder, record
        As in `replaced_as_set`.

    Raises
    ------
    OSError
        If a file cannot be moved.
    """
    rmtree(folder / _DRAFT, ignore_errors=True)
    new = folder / _NEW
    with _signals_deferred():
        if new.is_dir() and not new.is_symlink():
            _move_in(folder, _names_in(new, record))
            _clean_up(folder)
        else:
            _restore(folder, record)


def _names_in(folder: Path, record: str) -> list[str]:
    """List the files of a set, the record last."""
    return sorted((path.name for path in folder.iterdir()), key=lambda name: (name == record, name))


def _move_in(folder: Path, names: Sequence[str]) -> None:
    new, before = folder / _NEW, folder / _BEFORE
    before.mkdir(exist_ok=True)
    for name in reversed(names):
        if (folder / name).exists():
            (folder / name).replace(before / name)
    for name in names:
        if (new / name).is_dir():
            (new / name).rmdir()
        else:
            (new / name).replace(folder / name)


def _clean_up(folder: Path) -> None:
    # In one step, and before the other: the remaining older files are not a complete set.
    (folder / _BEFORE).rename(folder / _DRAFT)
    (folder / _NEW).rmdir()
    rmtree(folder / _DRAFT, ignore_errors=True)


def _restore(folder: Path, record: str) -> None:
    before = folder / _BEFORE
    if before.is_dir() and not before.is_symlink():
        for name in _names_in(before, record):
            (before / name).replace(folder / name)
        before.rmdir()


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Deliver signals that end the program only at the end; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python's own handlers run in the main thread alone
        return
    caught: list[int] = []
    handlers: dict[int, Any] = {}
    try:
        for name in _ENDING_SIGNALS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            # Ignored signals stay ignored; None is a handler that Python cannot set back.
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                handlers[number] = signal.signal(number, lambda n, _frame: caught.append(n))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in caught:
            signal.raise_signal(number)
