"""Names of regions and patients that a file states; names of files are made of them."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

from napari_panoptic.common.text import shortened, visible


def checked_name(name: str, what: str) -> str:
    """Return a name that a file states.

    Parameters
    ----------
    name
        The name.
    what
        What has it, for the error, such as "a region".

    Raises
    ------
    ValueError
        If it is empty, has letters that cannot be written to a file, or leads out of a folder.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    leads_out = path.is_absolute() or ".." in path.parts or PureWindowsPath(name).drive
    if leads_out or not path.name.strip() or "\0" in name or not _is_encodable(name):
        found = shortened(visible(repr(name)), 80)
        raise ValueError(f"expected the name of {what}, found {found}")
    return name


def _is_encodable(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
