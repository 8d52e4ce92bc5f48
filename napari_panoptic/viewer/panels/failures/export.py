"""Saves failures as a table and their crops as pictures; for workers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.crop_reader import CropReader, CropSize
from napari_panoptic.explain.failures import CohortFailures
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.nuclei.outcomes import OBJECTS
from napari_panoptic.report.pictures import outlined
from napari_panoptic.tables.columns import unshown

if TYPE_CHECKING:
    import pandas as pd

PICTURES = "crops"
FAILURES = replace(OBJECTS, file="failures.csv", columns=[*OBJECTS.columns, unshown("crop")])
"""The file and the folder that an export makes."""
_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST = 60


@dataclass(frozen=True)
class Export:
    """Progress of an export."""

    #: The folder to write into.
    folder: Path
    #: Failures that were saved, and all.
    done: int
    total: int
    #: Pictures among them; regions may have become unreadable.
    crops: int


def picture_name(failures: CohortFailures, row: int, place: int) -> str:
    """Return the file name of a crop; no two are alike.

    Parameters
    ----------
    failures, row
        The failure.
    place
        Its position in the export, from 0.
    """
    name = failures.name(row)
    words = (name.region, name.team, str(name.side), str(name.id))
    safe = "-".join(_UNSAFE.sub("_", word)[:_LONGEST] for word in words)
    return f"{place + 1:05d}-{safe}.png"


def existing_files(folder: Path, failures: CohortFailures, rows: NDArray[np.intp]) -> list[Path]:
    """Return the files of an earlier export that this one would replace: table and pictures."""
    found = [folder / FAILURES.file] if (folder / FAILURES.file).exists() else []
    names = (picture_name(failures, int(row), place) for place, row in enumerate(rows))
    if any((folder / PICTURES / name).exists() for name in names):
        found.append(folder / PICTURES)
    return found


def save_failures(
    folder: Path,
    failures: CohortFailures,
    rows: NDArray[np.intp],
    reader: CropReader,
    size: CropSize,
) -> Iterator[Export]:
    """Save failures as ``failures.csv`` and their crops as PNG files.

    Parameters
    ----------
    folder
        The folder; created if missing. Files of the same names are replaced.
    failures, rows
        The failures, in the order wanted.
    reader, size
        Cuts their crops from the files.

    Yields
    ------
    Export
        After each crop. Regions are read one after the other.

    Raises
    ------
    PanopticError
        If something cannot be written.
    """
    n_crops = 0
    names = [picture_name(failures, int(row), position) for position, row in enumerate(rows)]
    try:
        _write_table(folder, failures.frame(rows), names)
        by_region = np.argsort(failures.block[rows], kind="stable")
        for done, position in enumerate(by_region, start=1):
            crop = reader.crop(failures.name(int(rows[position])), size)
            if crop is not None:
                n_crops += 1
                outlined(crop.tissue, crop.outlines).save(folder / PICTURES / names[position])
            yield Export(folder, done, len(rows), n_crops)
    except OSError as error:
        raise PanopticError(f"Cannot save the failures: {error}") from error
    finally:
        reader.close()


def _write_table(folder: Path, table: pd.DataFrame, names: Sequence[str]) -> None:
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    table = table.assign(crop=[f"{PICTURES}/{name}" for name in names])
    with replaced_when_complete(folder / FAILURES.file) as file:
        file.write(FAILURES.csv(table))
