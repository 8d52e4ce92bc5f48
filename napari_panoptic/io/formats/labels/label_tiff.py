"""Label TIFFs as they are written: with a table of classes and a mask of the excluded area."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np

from napari_panoptic.io.files.guard import has_file
from napari_panoptic.io.files.replacing import replaced_together
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.labels.label_images import AMBIGUOUS_SUFFIX, write_label_pixels
from napari_panoptic.io.formats.scores import SCORE_NAMES


def write_label_tiff(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write a label TIFF, a table of classes and scores, and the mask of an excluded area."""
    labels = objects.labels
    names, scores = labels.class_names_of_objects(), labels.scores
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    if np.isnan(scores).all():
        writer.writerow(("id", "class"))
        writer.writerows(zip(labels.ids.tolist(), names, strict=True))
    else:
        written = ["" if math.isnan(score) else score for score in scores.tolist()]
        writer.writerow(("id", "class", SCORE_NAMES[0]))
        writer.writerows(zip(labels.ids.tolist(), names, written, strict=True))
    table_path, mask = beside_label_tiff(path)
    paths = [path, table_path]
    if objects.ambiguous is not None:
        paths.append(mask)
    # Together: ids mean something else under another table of classes.
    with replaced_together(paths) as (image, table, *areas):
        table.write(lines.getvalue().encode("utf-8"))
        for file in areas:
            write_label_pixels(file, np.asarray(objects.ambiguous, np.uint8))
        write_label_pixels(image, objects.labels.id_image())
    if objects.ambiguous is None and has_file(mask):
        mask.unlink()  # of the label image that was replaced
    return tuple(paths)


def beside_label_tiff(path: Path) -> tuple[Path, Path]:
    """Return the table of classes and the mask of the excluded area that belong to a label TIFF."""
    return path.with_suffix(".csv"), path.with_name(path.stem + AMBIGUOUS_SUFFIX)
