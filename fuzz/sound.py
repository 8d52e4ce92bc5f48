"""What holds for every value that a reader gives."""

from __future__ import annotations

import math

import numpy as np

from fuzz.judge import check_findings
from napari_panoptic.io.formats.format import LoadedMasks, TiledMasks
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, LARGEST_COORDINATE, PolygonFile
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import LabelImage


def check_labels(labels: LabelImage) -> None:
    """Check what the description of `LabelImage` promises."""
    assert labels.index.dtype == np.int32
    assert labels.index.ndim == 2
    used = np.unique(labels.index)
    assert np.array_equal(used[used != 0], np.arange(1, len(labels.ids) + 1))
    assert labels.ids.dtype == np.int64
    assert (np.diff(labels.ids) > 0).all()
    assert (labels.ids > 0).all()
    assert len(labels.class_index) == len(labels.original_ids) == len(labels.ids)
    assert ((labels.class_index >= 1) & (labels.class_index <= len(labels.class_names))).all()
    for name, mask in labels.class_masks.items():
        assert name in labels.class_names
        assert mask.shape == labels.shape
        assert mask.dtype == np.int32
        assert mask.min(initial=0) >= 0


def check_masks(loaded: LoadedMasks) -> None:
    """Check objects with all that is said of them."""
    check_labels(loaded.labels)
    if loaded.ambiguous is not None:
        assert loaded.ambiguous.dtype == np.bool_
        assert loaded.ambiguous.shape == loaded.labels.shape
        assert loaded.ambiguous.any()
    check_mpp(loaded.mpp)
    check_findings(loaded.findings)


def check_tiles(tiles: TiledMasks, whole: LoadedMasks) -> None:
    """Check that windows have the objects that the whole image has."""
    height, width = whole.labels.shape
    box = (0, 0, height, width)
    window = tiles.labels.read(box)
    ids = np.concatenate([[0], tiles.labels.ids])
    assert np.array_equal(ids[window], whole.labels.id_image())
    area = None if tiles.ambiguous is None else tiles.ambiguous.read(box)
    if whole.ambiguous is None:
        assert area is None or not area.any()
    else:
        assert np.array_equal(area, whole.ambiguous)


def check_polygons(file: PolygonFile, scheme: ClassScheme) -> None:
    """Check what the description of `Polygons` promises."""
    polygons = file.polygons
    check_mpp(file.mpp)
    check_findings(file.findings)
    assert np.isfinite(polygons.vertices_xy).all()
    assert (np.abs(polygons.vertices_xy) <= LARGEST_COORDINATE).all()
    rings, objects = polygons.ring_starts, polygons.object_starts
    assert rings[0] == objects[0] == 0
    assert rings[-1] == len(polygons.vertices_xy)
    assert objects[-1] == len(rings) - 1 == len(polygons.is_hole)
    assert (np.diff(rings) >= 0).all()
    assert (np.diff(objects) >= 0).all()
    assert (np.diff(polygons.ids) > 0).all()
    assert (polygons.ids > 0).all()
    assert len(polygons.class_index) == len(polygons.ids) == len(objects) - 1
    assert (polygons.class_index >= AMBIGUOUS).all()
    assert (polygons.class_index <= len(scheme.names)).all()


def check_mpp(mpp: float | None) -> None:
    """Check micrometres per pixel."""
    assert mpp is None or (math.isfinite(mpp) and mpp > 0)
