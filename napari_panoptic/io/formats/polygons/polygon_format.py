"""Makes a format out of a function that says what a file of outlines holds."""

from __future__ import annotations

import csv
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.progress import CountReport, unreported
from napari_panoptic.io.files.fingerprints import file_stamps
from napari_panoptic.io.files.guard import TABLE_BYTES, check_file, check_length
from napari_panoptic.io.files.json_files import parsing
from napari_panoptic.io.formats.class_numbers import ClassNumbers, tables_beside
from napari_panoptic.io.formats.format import Format, OpenRequest, TiledMasks
from napari_panoptic.io.formats.placing import (
    check_stated_shape,
    in_px_of_image,
    placed_outlines,
)
from napari_panoptic.io.formats.polygons.collect import BATCH, Collector
from napari_panoptic.io.formats.polygons.model import PixelRule, PolygonFile
from napari_panoptic.io.formats.polygons.outline import OutlineFile, Said
from napari_panoptic.io.formats.polygons.outline_rules import in_convention
from napari_panoptic.io.formats.polygons.patches import HELD, of_patch, size_of
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.io.formats.reading import here, note, reading
from napari_panoptic.io.pixels.label_windows import is_zarr
from napari_panoptic.values.cohort import (
    UNSTATED,
    ClassScheme,
    MaskFiles,
    Multipolygons,
    OutlineRules,
    Vertices,
)


@dataclass(frozen=True)
class OutlineReader:
    """Reads the files of a format of outlines.

    Objects of unknown classes, odd shapes, and objects that vanish, overlap or
    lie outside the image are reported; slides are read in windows. Ids that do
    not ascend are replaced by running numbers.
    """

    #: Yields what a file says. A `ValueError`, `LookupError`, `TypeError`, `AttributeError`,
    #: `OverflowError`, `OSError` or `csv.Error` of it refuses the file.
    read: Callable[[OutlineFile], Iterable[Said]]
    #: What such a file is, for errors; the title of the format by default.
    what: str = ""
    #: What whole-number vertices run through; None where programs differ, and a ``cohort.toml`` can
    #: state it; a `PixelRule` where vertices are never read differently.
    vertices: Vertices | PixelRule | None = Vertices.PIXEL_EDGES
    #: Whether vertices at pixel centres are pixels only if all those of the file are whole numbers.
    whole_only: bool = False
    #: Whether coordinates are shares of the image's width and height instead of px.
    in_shares: bool = False
    #: The finding if ids do not ascend; empty for none.
    renumbered: str = "the ids of the objects do not ascend: they were renumbered"
    #: Whether classes can be numbers, and a table beside the file names them.
    has_numbers: bool = True
    #: Larger files are refused, without a call of ``read``; None for any size.
    most_bytes: int | None = TABLE_BYTES

    def outlines(
        self,
        path: Path,
        scheme: ClassScheme,
        *,
        progress: CountReport = unreported,
        rules: OutlineRules = UNSTATED,
        item: str | None = None,
    ) -> PolygonFile:
        """Read a file; see `napari_panoptic.io.formats.format.ReadOutlines`."""
        if not is_zarr(path):
            check_file(path, self.what)
            if self.most_bytes is not None:
                check_length(path, self.what, self.most_bytes)
        source = OutlineFile(path, rules, item, progress)
        rule = self.vertices if isinstance(self.vertices, PixelRule) else PixelRule.CENTRE
        numbers = ClassNumbers(path if self.has_numbers else None, scheme)
        objects = Collector(path, self.what, scheme, numbers, rule, self.renumbered)
        entries = self.read(source)
        try:
            with reading(path), parsing(path, self.what, csv.Error):
                for said in entries:
                    if len(objects) % BATCH == 0:
                        source.pause()
                    objects.add(said)
                file = objects.finished()
        finally:
            if isinstance(entries, Generator):
                entries.close()  # and with it the file: an error keeps a generator
        if not isinstance(self.vertices, Vertices):
            return file
        stated = OutlineRules(self.vertices, Multipolygons.ONE_OBJECT)
        return in_convention(file, stated, path, side="", whole_only=self.whole_only)

    def open(self, files: MaskFiles, scheme: ClassScheme, request: OpenRequest) -> TiledMasks:
        """Read the objects of one side of a region, which are drawn whole or in windows."""
        path, shape = files.all_paths[0], request.shape
        if shape is None:
            raise UnreadableFileError(
                "polygons can only be drawn if the size of the region is known, and neither its "
                "image nor a mask of it could be read",
                path=path,
            )
        with reading(path):
            file = self._of_region(files, scheme, shape, request.progress)
            note(*file.findings)
        is_patch = files.patch is not None
        masks = rasterize_polygons(file.polygons, shape, scheme, path=path, is_patch=is_patch)
        return replace(
            masks,
            labels=replace(masks.labels, known_scores=file.scores),
            mpp=file.mpp,
            magnification=file.magnification,
        )

    def _of_region(
        self,
        files: MaskFiles,
        scheme: ClassScheme,
        shape: tuple[int, int],
        progress: CountReport,
    ) -> PolygonFile:
        path, side = files.all_paths[0], "reference" if here().team is None else "predictions"

        def read() -> PolygonFile:
            file = self.outlines(
                path, scheme, rules=files.rules, item=files.item, progress=progress
            )
            if self.vertices is None:
                file = in_convention(file, files.rules, path, side=side)
            return placed_outlines(file, files.rules)

        if files.patch is not None:
            paths = (path, *tables_beside(path))
            slide = HELD.current(
                (self, paths, repr(scheme), files.rules, side),
                read,
                size_of,
                version=tuple(file_stamps(paths).values()),
            )
            file = of_patch(slide, files.patch, shape, path)
        else:
            file = read()
            check_stated_shape(file, files, shape, side=side)
        return in_px_of_image(file, files, shape) if self.in_shares else file


def polygon_format(reader: OutlineReader, *, title: str, **fields: Any) -> Format:
    """Make a format whose files hold outlines.

    Parameters
    ----------
    reader
        Reads the files.
    title, fields
        Of the `napari_panoptic.io.formats.format.Format`.
    """
    reader = replace(reader, what=reader.what or title)
    return Format(
        title=title,
        open=reader.open,
        in_windows=True,
        outlines=reader.outlines,
        in_shares=reader.in_shares,
        companions=tables_beside if reader.has_numbers else lambda path: (),  # noqa: ARG005
        has_conventions=reader.vertices is None,
        **fields,
    )
