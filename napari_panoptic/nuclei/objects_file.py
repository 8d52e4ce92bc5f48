"""The rows of objects on disk, as ``objects.csv`` has them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Self

from napari_panoptic.common.visible import UNENCODABLE
from napari_panoptic.nuclei.outcomes import OBJECT_COLUMNS
from napari_panoptic.nuclei.reading import PLACE_COLUMNS, RegionResult, write_rows

_COPIED_CHARACTERS = 2**20


class ObjectsFile:
    """The table ``objects.csv``, written result by result: it may be larger than the memory.

    Until all of it is there it has another name; as a context manager it is
    removed where that never comes to be.

    Parameters
    ----------
    folder
        Where to write it; must exist.
    """

    def __init__(self, folder: Path) -> None:
        self._temporary = folder / ".objects.csv.part"
        # Closed by finish, or by leaving the context.
        self._file = self._temporary.open("w", encoding="utf-8", errors=UNENCODABLE, newline="")
        self._file.write(",".join([*PLACE_COLUMNS, *OBJECT_COLUMNS]) + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()  # fails on a full disk
        finally:
            self._temporary.unlink(missing_ok=True)

    def add(self, result: RegionResult) -> None:
        """Write the objects of a team in a region, if it has any."""
        if result.rows is not None:
            with result.rows.path.open(encoding="utf-8", newline="") as rows:
                shutil.copyfileobj(rows, self._file, _COPIED_CHARACTERS)
        elif result.objects is not None:
            write_rows(self._file, result.objects, result)

    def finish(self, folder: Path) -> Path:
        """Close the complete table, and move it to a folder on the same disk."""
        self._file.close()
        return self._temporary.replace(folder / "objects.csv")
