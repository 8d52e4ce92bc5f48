"""The chain of the pages of a TIFF file."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO

MOST_PAGES = 10_000
"""Largest number of pages in a TIFF file."""


def check_page_chain(path: Path) -> None:
    """Check that the pages of a TIFF file, each of which names the next one, have an end.

    The decoder follows a circular chain for hours.

    Raises
    ------
    ValueError
        For a circle, for more than `MOST_PAGES`, and if the file ends before the place of
        the next page.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        order = "<" if start[:2] == b"II" else ">"
        is_big = b"+" in start[2:4]
        # The number of a page's tags, the length of each, and the place of the next page.
        n_tags, tag_bytes, link = ("Q", 20, "Q") if is_big else ("H", 12, "I")
        if not is_big:
            file.seek(4)
        seen = set[int]()
        while place := _unpacked(file, order + link):
            if place in seen or len(seen) == MOST_PAGES:
                raise ValueError(f"its pages lead in a circle, or are more than {MOST_PAGES}")
            seen.add(place)
            file.seek(place)
            end = file.seek(tag_bytes * _unpacked(file, order + n_tags), os.SEEK_CUR)
            # After a page that is cut off the decoder would follow arbitrary bytes.
            if place < size < end + struct.calcsize(order + link):
                raise ValueError("it is cut off within the description of a page")


def _unpacked(file: BinaryIO, form: str) -> int:
    """Read a number; 0 if the file ends before it."""
    data = file.read(struct.calcsize(form))
    return int(struct.unpack(form, data)[0]) if len(data) == struct.calcsize(form) else 0
