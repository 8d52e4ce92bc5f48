"""Links, which could lead out of a folder from somebody else to private files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from napari_panoptic.errors import UnreadableFileError
from napari_panoptic.regions import MaskFiles


def leads_out(path: Path, folder: Path) -> bool:
    """Tell whether something that has its place in a folder really lies elsewhere."""
    if not path.is_relative_to(folder):
        return False
    try:
        return not path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links that lead round in circles
        return True


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
        For a link that leads elsewhere.
    """
    if (folder := files.within) is None:
        return
    for path in files.all_paths:
        for place in (path, *_links_in(path, set())):
            if leads_out(place, folder):
                raise UnreadableFileError(
                    "this is, or lies behind, a link that leads out of the cohort's folder, and "
                    "was not followed; where you know and want what it leads to, open the cohort "
                    "so that links are followed (in the window when it asks, on the command line "
                    "by --allow-outside)",
                    path=place,
                )


def _links_in(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """Give every link in a folder, in those in it, and in those that links in it lead to."""
    if not folder.is_dir() or (place := folder.resolve()) in seen:
        return
    seen.add(place)
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_link(entry):
                yield folder / entry.name
            if entry.is_dir():
                yield from _links_in(folder / entry.name, seen)
