"""Links out of the folder of a cohort, which are followed only if the user trusts them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.values.cohort import MaskFiles


def leads_out(path: Path, folder: Path) -> bool:
    """Return whether a path inside a folder leads out of it through links."""
    if not path.is_relative_to(folder):
        return False
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return True
    except (OSError, RuntimeError):  # a circle of links
        return True
    return _goes_round(path)


def _goes_round(path: Path) -> bool:
    """Return whether links to here form a circle, which Python does not report since 3.13."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def is_link(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a link of any kind; Python 3.12 knows the junctions of Windows."""
    is_junction = getattr(entry, "is_junction", lambda: False)
    return entry.is_symlink() or is_junction()


def check_links(files: MaskFiles) -> None:
    """Check that files lie in the folder of their cohort, if links may not lead out of it.

    For a folder (an image in Zarr), everything in it is checked.

    Raises
    ------
    UnreadableFileError
        For a link that leads elsewhere, or a folder that cannot be read.
    """
    if (folder := files.within) is None:
        return
    try:
        _check_links(files, folder)
    except OSError as error:
        raise UnreadableFileError(
            f"the folder cannot be read ({error.strerror or error}), so its links cannot be "
            f"checked; make sure that you may read it",
            path=Path(error.filename) if isinstance(error.filename, str) else folder,
        ) from error


def _check_links(files: MaskFiles, folder: Path) -> None:
    for path in files.all_paths:
        # One by one: nothing behind a link is read before the link is checked.
        for place in chain([path], _links_in(path)):
            if leads_out(place, folder):
                raise UnreadableFileError(
                    "a link leads out of the cohort's folder here, and was not followed. If you "
                    "trust its target, allow such links (in the window when it asks, on the "
                    "command line with --allow-outside)",
                    path=place,
                )


def _links_in(folder: Path) -> Iterator[Path]:
    """Yield every link below a folder, and below the folders that its links lead to."""
    seen: set[Path] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        if not here.is_dir() or (place := here.resolve()) in seen:
            continue
        seen.add(place)
        with os.scandir(here) as entries:
            for entry in entries:
                if is_link(entry):
                    yield here / entry.name
                    waiting.append(here / entry.name)
                elif entry.is_dir():
                    waiting.append(here / entry.name)
