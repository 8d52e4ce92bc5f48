"""Files that are replaced only by complete ones."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import BinaryIO

from napari_panoptic.common.errors import UnwritableFileError

_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
"""Error codes of file systems without fsync."""


@contextmanager
def writing(path: Path, what: str = "the file", *, more: str = "") -> Iterator[None]:
    """Turn the errors of writing into one that names the file or folder.

    Parameters
    ----------
    path, what
        The file or folder, and what it is called in the message.
    more
        Text to add to the message.

    Raises
    ------
    UnwritableFileError
        For an OSError.
    """
    try:
        yield
    except OSError as error:
        raise UnwritableFileError(
            f"{what} cannot be written ({error.strerror or error}); choose another place, or free "
            f"some space{more}",
            path=path,
        ) from error


@contextmanager
def replaced_when_complete(path: Path) -> Iterator[BinaryIO]:
    """Write a file beside its place, and move it there when it is complete.

    Other programs see the old file or the new one, never half of it. After an error the old
    one stays. If this ends without an error, the file has been flushed to the disk.
    """
    with replaced_together([path]) as (file,):
        yield file


@contextmanager
def replaced_together(paths: Sequence[Path]) -> Iterator[tuple[BinaryIO, ...]]:
    """Write files that belong together, and move them to their places when all are complete.

    Each appears whole or not at all, and after an error all are as before. Several files
    cannot be exchanged in one step: meanwhile the old ones lie in a folder named after the
    first file, with ``.before`` added. The folder is removed when all are in place, and stays
    only if the program is killed in between: then it holds the complete previous set.

    Parameters
    ----------
    paths
        Where to write, in one folder; existing files are replaced.
    """
    parts = [_part_of(path) for path in paths]
    try:
        with ExitStack() as stack:
            files = tuple(stack.enter_context(part.open("xb")) for part in parts)
            yield files
            for file in files:
                _bring_to_disk(file)
        if len(paths) > 1:
            exchange(parts, paths)
        else:
            parts[0].replace(paths[0])
        _bring_names_to_disk(paths[0].parent)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def exchange(parts: Sequence[Path], paths: Sequence[Path]) -> None:
    """Move new files or folders to their places; see :func:`replaced_together`."""
    before = paths[0].with_name(f"{paths[0].name}.before")
    try:
        for path in (path for path in paths if path.exists()):
            before.mkdir(exist_ok=True)
            # A leftover from a killed run is older and complete: keep it.
            if not (before / path.name).exists():
                path.replace(before / path.name)
            elif path.is_dir():
                _remove_folder(path)
        for part, path in zip(parts, paths, strict=True):
            part.replace(path)
    except BaseException:
        for path in (path for path in paths if (before / path.name).exists()):
            (before / path.name).replace(path)
        with suppress(OSError):
            before.rmdir()
        raise
    if before.is_dir():
        _remove_folder(before)


def set_usual_mode(folder: Path) -> None:
    """Set the permissions of a temporary folder, which is private, to those of a new folder."""
    mask = os.umask(0o022)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)


def folder_to_disk(folder: Path) -> None:
    """Flush everything in a folder to the disk before it replaces another one."""
    for path in folder.rglob("*"):
        if path.is_dir():
            _bring_names_to_disk(path)
        else:
            with path.open("r+b") as file:
                _bring_to_disk(file)
    _bring_names_to_disk(folder)


def _part_of(path: Path) -> Path:
    """Return a unique name beside a file; hidden, in case a killed program leaves it behind."""
    return path.with_name(f".{path.name[:40]}.{token_hex(4)}.part")


def _bring_to_disk(file: BinaryIO) -> None:
    """Flush a file to the disk before it replaces another one."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _bring_names_to_disk(folder: Path) -> None:
    """Flush the names of files to the disk, where the system can do that."""
    with suppress(OSError):  # Windows opens no folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _remove_folder(folder: Path) -> None:
    """Remove a folder in one step, since half of one could be taken for the whole."""
    rmtree(folder.rename(_part_of(folder)), ignore_errors=True)
