"""Links, which could lead out of a folder from somebody else to private files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.nuclei.values.cohort import MaskFiles


def leads_out(path: Path, folder: Path) -> bool:
    """Return whether something that has its place in a folder really lies elsewhere."""
    if not path.is_relative_to(folder):
        return False
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return True
    except (OSError, RuntimeError):  # links that lead round in circles
        return True
    return _goes_round(path)


def _goes_round(path: Path) -> bool:
    """Return whether links to here lead round in circles, which Python does not say since 3.13."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def is_link(entry: os.DirEntry[str]) -> bool:
    """Tell links of every kind; Windows has a second one, of which Python knows since 3.12."""
    is_junction = getattr(entry, "is_junction", lambda: False)
    return entry.is_symlink() or is_junction()


def check_links(files: MaskFiles) -> None:
    """Make sure that files lie in the folder of their cohort, where links may not lead out of it.

    Of a folder (an image in Zarr) that means all that is in it.

    Raises
    ------
    UnreadableFileError
        For a link that leads elsewhere, or a folder that cannot be looked into.
    """
    if (folder := files.within) is None:
        return
    try:
        _check_links(files, folder)
    except OSError as error:
        raise UnreadableFileError(
            f"it cannot be looked into ({error.strerror or error}), and so not be known whether "
            f"links in it lead out of the cohort's folder; see to it that you may read it",
            path=Path(error.filename) if isinstance(error.filename, str) else folder,
        ) from error


def _check_links(files: MaskFiles, folder: Path) -> None:
    for path in files.all_paths:
        # One by one: what lies behind a link is not looked at before the link itself.
        for place in chain([path], _links_in(path)):
            if leads_out(place, folder):
                raise UnreadableFileError(
                    "this is, or lies behind, a link that leads out of the cohort's folder, and "
                    "was not followed; where you know and want what it leads to, open the cohort "
                    "so that links are followed (in the window when it asks, on the command line "
                    "by --allow-outside)",
                    path=place,
                )


def _links_in(folder: Path) -> Iterator[Path]:
    """Yield every link in a folder, in those in it, and in those that links in it lead to."""
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
