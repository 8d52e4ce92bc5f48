"""All known formats, built in or of plugins; loads and opens files of any of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.plugins import Plugins
from napari_panoptic.common.progress import CountReport, unreported
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.links import check_links
from napari_panoptic.io.formats.format import Format, LoadedMasks, OpenRequest, TiledMasks
from napari_panoptic.io.formats.labels import arrays as array_sets
from napari_panoptic.io.formats.labels import (
    coco_panoptic,
    colour_coded,
    dicom_seg,
    hovernet_mat,
    label_tiff,
    nucleus_masks,
    ome_zarr,
    submissions,
)
from napari_panoptic.io.formats.labels.pieces import far_apart_findings
from napari_panoptic.io.formats.placing import in_pieces, placed_masks, placed_shape
from napari_panoptic.io.formats.polygons import (
    annotation_store,
    asap,
    cellpose_outlines,
    cellvit,
    coco_instances,
    dicom_ann,
    dsa,
    geojson,
    halo,
    hovernet,
    imagej_rois,
    imagescope_edits,
    napari_shapes,
    nucls,
    tiatoolbox_zarr,
    yolo,
)
from napari_panoptic.io.formats.probability_maps import maps_need_whole_regions, with_map_scores
from napari_panoptic.io.formats.reading import here, note, reading, refuse
from napari_panoptic.io.formats.recognise import foreign_tool, source_of
from napari_panoptic.io.images.slides import probe_image
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, MaskObjects, Source
from napari_panoptic.values.labels import size_text
from napari_panoptic.values.settings import Restoration
from napari_panoptic.values.windowed_labels import Box

ENTRY_POINTS = "napari_panoptic.formats"
"""The group of entry points by which plugins add formats: each names a `Format`."""

BUILT_IN = (
    colour_coded.FORMAT,
    label_tiff.FORMAT,
    submissions.FORMAT,
    imagescope_edits.FORMAT,
    geojson.FORMAT,
    array_sets.PANNUKE,
    array_sets.CONIC,
    coco_panoptic.FORMAT,
    ome_zarr.FORMAT,
    hovernet.FORMAT,
    hovernet_mat.FORMAT,
    annotation_store.FORMAT,
    imagej_rois.FORMAT,
    coco_instances.FORMAT,
    cellvit.FORMAT,
    asap.FORMAT,
    halo.FORMAT,
    dsa.FORMAT,
    cellpose_outlines.FORMAT,
    dicom_ann.FORMAT,
    dicom_seg.FORMAT,
    napari_shapes.FORMAT,
    nucls.FORMAT,
    tiatoolbox_zarr.FORMAT,
    nucleus_masks.FORMAT,
    yolo.FORMAT,
)
"""The formats of this package; if files of several exist, the first is read."""


class _Known:
    """The formats known to this process."""

    def __init__(self) -> None:
        self.forms: dict[str, Format] = {form.name: form for form in BUILT_IN}
        self.plugins = Plugins(ENTRY_POINTS, "format", self._add_plugin)

    def add(self, form: Format) -> None:
        with self.plugins.lock:
            if (other := self.forms.get(form.name)) is not None and other is not form:
                kind = "is built in" if other in BUILT_IN else "is there already"
                raise PanopticError(
                    f"the format '{form.name}' {kind}, and cannot be replaced; choose another name"
                )
            self.forms[form.name] = form

    def _add_plugin(self, _name: str, form: object) -> None:
        if not isinstance(form, Format):
            raise PanopticError(
                "expected a napari_panoptic.io.formats.format.Format, found a "
                f"{type(form).__name__}"
            )
        self.add(form)


_KNOWN = _Known()


def register(form: Format) -> None:
    """Add a format to this process; a plugin names it as an entry point instead.

    Parameters
    ----------
    form
        Its name must be new. Adding the same format again changes nothing.

    Raises
    ------
    PanopticError
        If another format has this name.
    """
    _KNOWN.plugins.load()
    _KNOWN.add(form)


def known_forms() -> Mapping[str, Format]:
    """Return every format by its name, the preferred first; those of plugins come last."""
    _KNOWN.plugins.load()
    return MappingProxyType(_KNOWN.forms)


def form_of(source: str) -> Format | None:
    """Return a format by its name; None if it is unknown."""
    return known_forms().get(source)


def plugin_findings() -> tuple[Finding, ...]:
    """Return findings about plugins whose formats cannot be used."""
    return _KNOWN.plugins.load()


def load_masks(
    files: MaskFiles,
    scheme: ClassScheme,
    *,
    shape: tuple[int, int] | None,
    restoration: Restoration = Restoration.BORDER_REMOVED,
    radius: int = 1,
    region: str | None = None,
    team: str | None = None,
) -> LoadedMasks:
    """Load the objects of one side of one region.

    Parameters
    ----------
    files
        The files and their format.
    scheme
        The classes.
    shape
        Height and width of the region in px, which masks must have. Polygons,
        and submissions without a single mask, need it; for others None means
        the size of the file.
    restoration, radius
        How objects are restored from colour-coded masks; without effect on
        other formats.
    region, team
        Names, for findings and errors.

    Raises
    ------
    UnreadableFileError
        If nothing usable can be read.
    """
    request = OpenRequest(shape=shape, restoration=restoration, radius=radius)
    with reading(region=region, team=team) as noted:
        loaded, place = _loaded(files, scheme, request, team), here()

    def with_place(masks: LoadedMasks) -> LoadedMasks:
        restored = masks.restored
        return replace(
            masks,
            findings=(*noted, *place.located(masks.findings)),
            restored=restored and (lambda *way: with_place(restored(*way))),
        )

    return with_place(loaded)


def _loaded(
    files: MaskFiles, scheme: ClassScheme, request: OpenRequest, team: str | None
) -> LoadedMasks:
    is_placed = files.rules.is_placed and is_mask(files) and files.object_paths
    # Masks to be placed have a size of their own; that of the image is checked afterwards.
    own = replace(request, shape=None) if is_placed else request
    with _named(files):
        loaded = _held(_opened(files, scheme, own))
        if is_placed:
            loaded = placed_masks(loaded, files, request.shape)
    if files.rules.objects is MaskObjects.PIECES and is_mask(files):
        loaded = in_pieces(loaded)
    is_open = files.rules.objects is None and files.object_paths
    if is_open and is_mask(files) and loaded.restored is None:
        side = "reference" if team is None else "predictions"
        apart = far_apart_findings(loaded.labels, files.all_paths[0], side)
        loaded = replace(loaded, findings=(*loaded.findings, *apart))
    if files.probability is None:
        return loaded
    return with_map_scores(loaded, files.probability)


def _held(masks: TiledMasks | LoadedMasks) -> LoadedMasks:
    return masks if isinstance(masks, LoadedMasks) else masks.held()


def _opened(
    files: MaskFiles, scheme: ClassScheme, request: OpenRequest
) -> TiledMasks | LoadedMasks:
    form = form_of(files.source)
    if form is None or form.open is None:
        raise refuse(f"there is no reader for masks in the format '{files.source}'")
    check_links(files)
    return form.open(files, scheme, request)


@contextmanager
def _named(files: MaskFiles) -> Iterator[None]:
    """Add to errors what kind of file it is, where a known program wrote it."""
    try:
        yield
    except UnreadableFileError as error:
        path = error.path
        what = None if path is None or path not in files.all_paths else _kind(path, files.source)
        if what is None or type(error) is not UnreadableFileError:
            raise
        raise UnreadableFileError(
            f"{error.message}. This is {what}",
            path=path,
            region=error.region,
            object_id=error.object_id,
        ) from error


def is_mask(files: MaskFiles) -> bool:
    """Return whether files hold pixels, not outlines."""
    form = form_of(files.source)
    return form is not None and form.outlines is None


def open_masks(
    files: MaskFiles,
    scheme: ClassScheme,
    shape: tuple[int, int],
    *,
    region: str | None = None,
    team: str | None = None,
    progress: CountReport = unreported,
) -> TiledMasks:
    """Open the objects of one side of a slide, without reading all pixels where possible.

    Parameters
    ----------
    files
        The files and their format.
    scheme
        The classes.
    shape
        Height and width of the slide in px.
    region, team
        Names, for findings and errors.
    progress
        Receives the amount done and the total; an exception in it cancels.

    Raises
    ------
    UnreadableFileError
        If files of the format can only be read whole, or nothing usable can be
        read.
    """
    form = form_of(files.source)
    with reading(region=region, team=team) as noted:
        if form is None or not form.in_windows:
            forms = english_list([f.name for f in known_forms().values() if f.in_windows])
            raise _too_large(
                files,
                shape,
                f"masks in the format '{files.source}' can only be read as a whole; formats that "
                f"can be read in windows: {forms}",
            )
        is_changed = files.rules.is_placed or files.rules.objects is MaskObjects.PIECES
        if is_changed and form.outlines is None:
            raise _too_large(
                files,
                shape,
                "label images are swapped, scaled and cut in pieces as a whole only; save them in "
                "px of the image, with a number for each object",
            )
        request = OpenRequest(shape=shape, in_windows=True, progress=progress)
        with _named(files):
            opened = cast(TiledMasks, _opened(files, scheme, request))
        if files.probability is not None:
            note(maps_need_whole_regions(files.probability))
        return _with_place(opened, noted)


def _too_large(files: MaskFiles, shape: tuple[int, int], why: str) -> UnreadableFileError:
    return UnreadableFileError(
        f"the region of {size_text(shape)} is too large to be held, and {why}",
        path=files.all_paths[0] if files.all_paths else None,
    )


def _with_place(opened: TiledMasks, noted: list[Finding]) -> TiledMasks:
    """Add the place to what is found and refused when windows are read, in any thread."""
    place, labels, area, after = here(), opened.labels, opened.ambiguous, opened.findings_after

    def read(box: Box) -> NDArray[np.int32]:
        with place.again():
            return labels.read(box)

    def read_area(box: Box) -> NDArray[np.bool_] | None:
        with place.again():
            return None if area is None else area.read(box)

    return replace(
        opened,
        labels=replace(labels, read=read),
        ambiguous=area and replace(area, read=read_area),
        findings=(*noted, *place.located(opened.findings)),
        findings_after=after and (lambda has_pixel: place.located(after(has_pixel))),
    )


def _kind(path: Path, source: Source) -> str | None:
    try:
        if not path.is_file():  # opening a pipe waits for ever
            return None
        if (what := foreign_tool(path)) is not None:
            return what
        other = source_of(path)
    except OSError:
        return None
    if other is None or other == source:
        return None
    return f"a file of the format '{other}'; name it so in cohort.toml, as in predictions.{other}"


def reference_shape(
    image: Path | None, masks: Iterable[MaskFiles], *, image_item: str | None = None
) -> tuple[int, int] | None:
    """Return the size of a region: from its image, else from any mask of it.

    Parameters
    ----------
    image
        The region's image, if any; it may be unreadable.
    masks
        Masks of the region, the most trustworthy first; they may be unreadable.
    image_item
        The image, if the file holds many.

    Returns
    -------
    Height and width in px, or None if no file states them.
    """
    if image is not None:
        try:
            return probe_image(image, image_item).shape
        except PanopticError:
            # Reported when the image is opened; masks have the size as well.
            pass
    return next((shape for files in masks if (shape := _mask_shape(files))), None)


def _mask_shape(files: MaskFiles) -> tuple[int, int] | None:
    if (form := form_of(files.source)) is None:
        return None
    try:
        check_links(files)
        return placed_shape(form.shape(files), files.rules)
    except PanopticError:
        return None
