"""Fingerprints of input files: which content a figure was computed from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

_WHOLE_FILE_BYTES = 64 * 2**20
_END_BYTES = 2**20


def file_fingerprints(paths: Iterable[Path], root: Path) -> dict[str, str]:
    """Give a SHA-256 of each file, by its path relative to a folder.

    Of a file above 64 MiB only its size, first and last MiB enter, and the
    fingerprint says so; so it does of a file that cannot be read.

    Parameters
    ----------
    paths
        The files, in any order; repeated ones count once.
    root
        The folder that paths are relative to, where they lie in it.
    """
    return {_relative(path, root): _fingerprint(path) for path in sorted(set(paths))}


def _fingerprint(path: Path) -> str:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if size <= _WHOLE_FILE_BYTES:
                return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            digest = hashlib.sha256(str(size).encode())
            digest.update(file.read(_END_BYTES))
            file.seek(-_END_BYTES, os.SEEK_END)
            digest.update(file.read())
            return f"sha256-of-size-and-ends:{digest.hexdigest()}"
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
