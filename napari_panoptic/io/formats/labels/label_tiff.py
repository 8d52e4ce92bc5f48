"""Write label TIFFs, alone or with a table of classes and an excluded area."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile
from numpy.typing import ArrayLike, NDArray

from napari_panoptic.io.files.guard import has_file
from napari_panoptic.io.files.replacing import replaced_together, replaced_when_complete
from napari_panoptic.io.formats.format import Format, Objects, PerClass
from napari_panoptic.io.formats.labels.label_images import (
    AMBIGUOUS_SUFFIX,
    files_shape,
    open_labels,
)
from napari_panoptic.io.formats.scores import SCORE_NAMES
from napari_panoptic.values.cohort import Source
from napari_panoptic.values.labels import checked_array


def write_label_tiff(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write a label TIFF, a table of classes and scores, and the mask of an excluded area."""
    labels = objects.labels
    rows = zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True)
    classes = class_table_text(rows, labels.scores.tolist())
    table_path, mask = beside_label_tiff(path)
    paths = [path, table_path]
    if objects.ambiguous is not None:
        paths.append(mask)
    # Together: ids mean something else under another table of classes.
    with replaced_together(paths) as (image, table, *areas):
        table.write(classes.encode("utf-8"))
        for file in areas:
            _write_pixels(file, np.asarray(objects.ambiguous, np.uint8))
        _write_pixels(image, objects.labels.id_image())
    if objects.ambiguous is None and has_file(mask):
        mask.unlink()  # of the label image that was replaced
    return tuple(paths)


def class_table_text(rows: Iterable[tuple[int, str]], scores: Sequence[float]) -> str:
    """Return a table of classes as CSV, with a column of scores if any object has one.

    Parameters
    ----------
    rows
        The id and the class of each object.
    scores
        Of each object; NaN for none.
    """
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    if all(map(math.isnan, scores)):
        writer.writerow(("id", "class"))
        writer.writerows(rows)
    else:
        written = ["" if math.isnan(score) else score for score in scores]
        writer.writerow(("id", "class", SCORE_NAMES[0]))
        writer.writerows((*row, score) for row, score in zip(rows, written, strict=True))
    return lines.getvalue()


def beside_label_tiff(path: Path) -> tuple[Path, Path]:
    """Return the table of classes and the mask of the excluded area that belong to a label TIFF."""
    return path.with_suffix(".csv"), path.with_name(path.stem + AMBIGUOUS_SUFFIX)


def write_labels(path: Path, labels: ArrayLike) -> None:
    """Write a label image as TIFF, in the smallest of uint16, uint32 and uint64 that holds it.

    The file appears only when it is complete.

    Parameters
    ----------
    path
        Where to write; an existing file is replaced.
    labels
        Whole numbers (y, x), 0 for background.

    Raises
    ------
    LabelError
        If they are not 2-D or not whole non-negative numbers.
    """
    with replaced_when_complete(path) as file:
        _write_pixels(file, labels)


def smallest_type(ids: NDArray[Any]) -> type[np.integer[Any]]:
    """Return the smallest of uint16, uint32 and uint64 that holds all ids."""
    highest = int(ids.max(initial=0))
    return next(kind for kind in (np.uint16, np.uint32, np.uint64) if highest <= np.iinfo(kind).max)


def _write_pixels(file: BinaryIO, labels: ArrayLike) -> None:
    """Write a label image into an open file; see `write_labels`."""
    array = checked_array(labels, "label image")
    tifffile.imwrite(
        file,
        array.astype(smallest_type(array)),  # as they are: tables of classes name the ids
        photometric="minisblack",
        compression="adobe_deflate",
        metadata=None,
    )


FORMAT = Format(
    name=Source.LABELS,
    title="Label image with a table of classes",
    open=open_labels,
    shape=files_shape,
    in_windows=True,
    per_class=PerClass.EITHER,
    endings=(".tif", ".tiff"),
    write=write_label_tiff,
    beside=beside_label_tiff,
)
