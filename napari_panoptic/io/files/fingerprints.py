"""Fingerprints of input files: which content a figure was computed from."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Protocol

from napari_panoptic.io.files.guard import is_endless

_WHOLE_FILE_BYTES = 64 * 2**20
_END_BYTES = 2**20
_MOST_FILES = 2**18


def file_fingerprints(paths: Iterable[Path], root: Path) -> dict[str, str]:
    """Return a SHA-256 of each file, by its path relative to a folder.

    Of a file above 64 MiB only its size, first and last MiB enter, and the
    fingerprint says so; so it does of a file that cannot be read. Of a folder
    (an image in Zarr) names, sizes and times of change of the files in it
    enter, of the first 2^18 by name: a copy of it can have another one.

    Parameters
    ----------
    paths
        The files, in any order; repeated ones count once.
    root
        The folder that paths are relative to, where they lie in it.
    """
    return {_relative(path, root): _fingerprint(path) for path in sorted(set(paths))}


class HasInputFiles(Protocol):
    """A cohort of any task."""

    @property
    def root(self) -> Path:
        """The folder it was found in."""

    def input_files(self, teams: Container[str] | None = None) -> set[Path]:
        """Return every input file of some teams, or of all."""


def input_fingerprints(cohort: HasInputFiles, teams: Container[str]) -> dict[str, str]:
    """Return the `file_fingerprints` of the input files of some teams of a cohort."""
    return file_fingerprints(cohort.input_files(teams), cohort.root)


def file_stamps(paths: Iterable[Path]) -> dict[Path, str | None]:
    """Note of each file when it was changed last, in ns, and its size in bytes; None for no file.

    Of a folder that is noted of all files in it, as in `file_fingerprints`. Two
    files of the same stamps are taken for the same.
    """
    return {path: _stamp(path) for path in sorted(set(paths))}


def times_of_large(paths: Iterable[Path]) -> list[tuple[str, int]]:
    """Return when files that `file_fingerprints` does not read whole were changed, in ns."""
    found = ((path, _time_of_large(path)) for path in sorted(set(paths)))
    return [(str(path), time_ns) for path, time_ns in found if time_ns is not None]


def _time_of_large(path: Path) -> int | None:
    try:
        status = path.stat()
    except OSError:
        return None
    is_large = stat.S_ISREG(status.st_mode) and status.st_size > _WHOLE_FILE_BYTES
    return status.st_mtime_ns if is_large else None


def _stamp(path: Path) -> str | None:
    try:
        if path.is_dir():
            return _folder_fingerprint(path)
        status = path.stat()
    except OSError:
        return None
    return f"{status.st_mtime_ns} {status.st_size}"


def _fingerprint(path: Path) -> str:
    try:
        if path.is_dir():
            return _folder_fingerprint(path)
        status = path.stat()
        if is_endless(status.st_mode):
            return "unreadable: a pipe, a socket or a device"
        # Clocks of file systems are coarse: small files, rewritten quickly, are read each time.
        read = _file_fingerprint if status.st_size > _END_BYTES else _file_fingerprint.__wrapped__
        return read(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        return f"unreadable: {error.strerror}"


@lru_cache(maxsize=2**14)  # a cohort asks for the files of all teams for each region
def _file_fingerprint(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - as it was then
    """Read a file, once for all regions that lie in it."""
    with path.open("rb") as file:
        if size <= _WHOLE_FILE_BYTES:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        digest = hashlib.sha256(str(size).encode())
        digest.update(file.read(_END_BYTES))
        file.seek(-_END_BYTES, os.SEEK_END)
        digest.update(file.read())
        return f"sha256-of-size-and-ends:{digest.hexdigest()}"


def _folder_fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for line in islice(_files_in(folder, ""), _MOST_FILES):
        digest.update(line)
    return f"sha256-of-names-sizes-and-times:{digest.hexdigest()}"


def _files_in(folder: Path, inside: str) -> Iterator[bytes]:
    """Describe every file below a folder, in the order of their names."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        name = f"{inside}/{entry.name}"
        # Links to folders are not followed: they may lead round in circles.
        if entry.is_dir(follow_symlinks=False):
            yield from _files_in(folder / entry.name, name)
        else:
            status = entry.stat()
            yield os.fsencode(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n")


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
