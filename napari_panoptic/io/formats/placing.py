"""Transform objects from px of their files to px of the image: swap, scale and move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.polygons.model import PolygonFile, Polygons
from napari_panoptic.io.pixels.decode import check_size
from napari_panoptic.kernels.relabel import present_labels
from napari_panoptic.values.cohort import MaskFiles, OutlineRules
from napari_panoptic.values.labels import IdImage, LabelImage, LazyMasks, Vanished, size_text

_Shape = tuple[int, int]
_Take = Callable[[NDArray[Any]], NDArray[Any]]


def placed_outlines(file: PolygonFile, rules: OutlineRules) -> PolygonFile:
    """Return outlines in px of the image; the same object if the rules change nothing."""
    if not rules.is_placed:
        return file
    scale = rules.scale or 1.0
    magnification = None if file.magnification is None else file.magnification * scale
    polygons = placed_polygons(file.polygons, rules)
    shape = placed_shape(file.shape, rules)
    return replace(file, polygons=polygons, magnification=magnification, shape=shape)


def stated_shape(file: PolygonFile, files: MaskFiles) -> _Shape | None:
    """Return the size that the image must have by outlines that were placed; None for any.

    A stated scale of 1 means px of the image, whatever size the file states; outlines that are
    moved, or of a slide, are those of another image.
    """
    rules = files.rules
    is_other = rules.scale == 1 or rules.offset_xy is not None or files.patch is not None
    return None if is_other else file.shape


def check_stated_shape(file: PolygonFile, files: MaskFiles, shape: _Shape, *, side: str) -> None:
    """Check that outlines are in px of an image of the size of the region.

    Raises
    ------
    UnreadableFileError
        If the file states another size.
    """
    found, slack = stated_shape(file, files), max(files.rules.scale or 1.0, 1.0)
    if found is None or all(abs(a - b) <= slack for a, b in zip(found, shape, strict=True)):
        return
    own, remedy = files.rules.scale or 1.0, ""
    times = shape[0] / found[0]
    if abs(found[1] * times - shape[1]) <= max(times, 1.0):
        remedy = f"{side}.scale = {own * times:.6g} if they were found at another resolution, and "
    raise UnreadableFileError(
        f"expected outlines in px of the region of {size_text(shape)}, found ones in px of an "
        f"image of {size_text(found)}, as the file states. Export them in px of the region; or "
        f"set, under [files] in cohort.toml, {remedy}{side}.scale = 1 if only the stated size is "
        f"wrong",
        path=files.all_paths[0],
    )


def placed_polygons(polygons: Polygons, rules: OutlineRules) -> Polygons:
    """Return polygons with x and y swapped, then scaled, then moved, as rules state."""
    xy = polygons.vertices_xy[:, ::-1] if rules.is_swapped else polygons.vertices_xy
    xy = xy * (rules.scale or 1.0) + np.array(rules.offset_xy or (0.0, 0.0))
    return replace(polygons, vertices_xy=np.ascontiguousarray(xy))


def in_px_of_image(file: PolygonFile, files: MaskFiles, shape: _Shape) -> PolygonFile:
    """Return outlines whose vertices are shares of an image's width and height in px.

    Raises
    ------
    UnreadableFileError
        If they are those of a whole slide, or are moved by px.
    """
    if files.patch is not None or files.rules.offset_xy not in (None, (0.0, 0.0)):
        raise UnreadableFileError(
            "its outlines are shares of their image, which must be that of the region: they can "
            "neither be those of a slide nor have an offset",
            path=files.all_paths[0],
        )
    xy = file.polygons.vertices_xy * np.array(shape[::-1], np.float64)
    return replace(file, polygons=replace(file.polygons, vertices_xy=xy))


def placed_shape(shape: _Shape | None, rules: OutlineRules) -> _Shape | None:
    """Return the size in px of the image that masks of a size correspond to."""
    if shape is None or not rules.is_placed:
        return shape
    height, width = shape[::-1] if rules.is_swapped else shape
    scale = rules.scale or 1.0
    return max(1, round(height * scale)), max(1, round(width * scale))


def placed_masks(masks: LoadedMasks, files: MaskFiles, shape: _Shape | None) -> LoadedMasks:
    """Return label images in px of the image, by the nearest pixel where they are scaled.

    Parameters
    ----------
    masks
        The objects in px of their files.
    files
        The files and the rules for them.
    shape
        Height and width of the image; None for the size that the rules give.

    Raises
    ------
    UnreadableFileError
        If the rules give another size than that of the image, or move masks.
    """
    rules, path = files.rules, files.all_paths[0]
    if rules.offset_xy not in (None, (0.0, 0.0)):
        raise UnreadableFileError(
            "expected outlines, found masks of pixels, which an offset cannot move: remove "
            "'offset' from cohort.toml for these files",
            path=path,
        )
    own = masks.labels.shape
    found = placed_shape(own, rules) or own
    # Where an odd size was halved, the last row or column may lack, or be one too many.
    slack = max(rules.scale or 1.0, 1.0)
    if shape is None or any(abs(a - b) > slack for a, b in zip(found, shape, strict=True)):
        check_size(found, shape, path=path, what="the mask, as cohort.toml has it,")
        shape = found
    return _placed(masks, _taker(rules, own, shape))


def in_pieces(masks: LoadedMasks) -> LoadedMasks:
    """Return masks in which each 8-connected piece of a number is an object, in raster order."""
    labels, restored = masks.labels, masks.restored
    pieces = _pieces(labels.index)
    _, first = np.unique(pieces, return_index=True)
    owners = labels.index.ravel()[first]
    rows = owners[owners > 0] - 1
    ids = np.arange(1, len(rows) + 1)
    own_masks = labels.class_masks
    return replace(
        masks,
        labels=replace(
            labels,
            index=pieces,
            ids=ids,
            class_index=labels.class_index[rows],
            original_ids=labels.original_ids[rows],
            class_masks=LazyMasks(own_masks, lambda name: _pieces(own_masks[name])),
            planes=(),
            other_form=None,
            known_scores=None,
        ),
        restored=restored and (lambda *way: in_pieces(restored(*way))),
    )


def _pieces(image: IdImage) -> NDArray[np.int32]:
    from skimage.measure import label  # loads half of SciPy

    pieces: NDArray[np.int32] = label(image, background=0, connectivity=2).astype(np.int32)
    return pieces


def _taker(rules: OutlineRules, own: _Shape, shape: _Shape) -> _Take:
    """Return the function that resamples an array in px of the files to px of the image."""
    sizes = own[::-1] if rules.is_swapped else own
    rows, columns = (
        np.minimum(((np.arange(n) + 0.5) / (rules.scale or 1.0)).astype(np.int64), size - 1)
        for n, size in zip(shape, sizes, strict=True)
    )

    def take(image: NDArray[Any]) -> NDArray[Any]:
        turned = image.T if rules.is_swapped else image
        return np.ascontiguousarray(turned[rows[:, None], columns])

    return take


def _placed(masks: LoadedMasks, take: _Take) -> LoadedMasks:
    restored = masks.restored
    return replace(
        masks,
        labels=_placed_labels(masks.labels, take),
        ambiguous=None if masks.ambiguous is None else take(masks.ambiguous),
        restored=restored and (lambda *way: _placed(restored(*way), take)),
    )


def _placed_labels(labels: LabelImage, take: _Take) -> LabelImage:
    sheets = [take(sheet) for sheet in labels.sheets]
    present = np.zeros(len(labels), np.bool_)
    for sheet in sheets:
        present |= present_labels(sheet, len(labels))[1:]
    rows = np.flatnonzero(present)
    lookup = np.zeros(len(labels) + 1, np.int32)
    lookup[rows + 1] = np.arange(1, len(rows) + 1, dtype=np.int32)
    names = labels.class_names_of_objects()[~present].tolist()
    gone = zip(labels.ids[~present].tolist(), names, strict=True)
    masks, other_form = labels.class_masks, labels.other_form
    return replace(
        labels,
        index=lookup[take(labels.index)],
        ids=labels.ids[rows],
        class_index=labels.class_index[rows],
        original_ids=labels.original_ids[rows],
        class_masks=LazyMasks(masks, lambda name: take(masks[name])),
        vanished=(*labels.vanished, *(Vanished(i, n, "no pixel at this scale") for i, n in gone)),
        planes=tuple(lookup[sheet] for sheet in sheets) if labels.planes else (),
        other_form=other_form and (lambda: _placed_labels(other_form(), take)),
    )
