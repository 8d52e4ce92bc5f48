"""Makes a format out of a function that reads outlines: drawn whole or in windows, with reports."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import CountReport, unreported
from napari_panoptic.common.text import counted
from napari_panoptic.io.files.fingerprints import file_stamps
from napari_panoptic.io.files.guard import TABLE_BYTES, check_file, check_length
from napari_panoptic.io.files.json_files import parsing
from napari_panoptic.io.formats.class_numbers import tables_beside
from napari_panoptic.io.formats.format import (
    Format,
    ListItems,
    LoadedMasks,
    LoadRequest,
    Objects,
    ReadOutlines,
    TiledMasks,
    Write,
    WriteAll,
    located,
)
from napari_panoptic.io.formats.placing import (
    check_stated_shape,
    in_px_of_image,
    placed_outlines,
)
from napari_panoptic.io.formats.polygons.collect import BATCH, Collector
from napari_panoptic.io.formats.polygons.model import (
    AMBIGUOUS,
    LARGEST_COORDINATE,
    PolygonFile,
    opened,
)
from napari_panoptic.io.formats.polygons.outline_rules import in_convention
from napari_panoptic.io.formats.polygons.patches import HELD, of_patch, size_of
from napari_panoptic.io.formats.polygons.rasterize import (
    outside_findings,
    polygon_tiles,
    rasterize_polygons,
)
from napari_panoptic.io.pixels.label_windows import is_zarr
from napari_panoptic.values.cohort import (
    UNSTATED,
    ClassScheme,
    MaskFiles,
    Multipolygons,
    OutlineRules,
    Vertices,
)

LARGEST_ID = 2**31 - 1
"""Larger ids are replaced by running numbers."""

EXCLUDED = object()
"""In place of a class: an area that is excluded from scoring."""


@dataclass(frozen=True)
class LeftOut:
    """In place of a class: something that outlines no object, and is listed."""

    #: What it is, after a number: ``row(s) without an area``.
    what: str


Outline = (
    tuple[Sequence[ArrayLike], Any, int | None] | tuple[Sequence[ArrayLike], Any, int | None, Any]
)
"""The rings of an object, x and y in px, filled together by the even-odd rule; its class, a name or
a number as in `napari_panoptic.io.formats.class_numbers`, a tuple of names of which the first known
one counts, `EXCLUDED` or `LeftOut`; its id, or None for its running number; and perhaps the score
of a model, None for none."""


def polygon_format(
    *,
    name: str,
    title: str,
    endings: tuple[str, ...],
    read: Callable[..., Iterable[Outline]],
    vertices: Vertices | None = Vertices.PIXEL_EDGES,
    in_shares: bool = False,
    most_bytes: int = TABLE_BYTES,
    items: ListItems | None = None,
    write: Write | None = None,
    write_all: WriteAll | None = None,
    losses: Callable[[Objects], tuple[Finding, ...]] = lambda objects: (),  # noqa: ARG005
) -> Format:
    """Make a format whose files hold outlines.

    Objects of unknown classes, odd shapes, and objects that vanish, overlap or
    lie outside the image are reported; slides are read in windows. Ids that do
    not ascend are replaced by running numbers.

    Parameters
    ----------
    name, title, endings, items, write, write_all, losses
        As for `napari_panoptic.io.formats.format.Format`.
    read
        Yields the objects of a file, see `Outline`; with ``items``, it is called with the file
        and the key of a region, None for the only one. A `ValueError`, `LookupError`,
        `TypeError`, `AttributeError`, `OverflowError`, `OSError` or `csv.Error` of it refuses the
        file.
    vertices
        What whole-number vertices run through; None where programs differ, and a
        ``cohort.toml`` can state it.
    in_shares
        Whether coordinates are shares of the image's width and height instead of px.
    most_bytes
        Larger files are refused, without a call of ``read``.
    """

    def read_outlines(
        path: Path,
        scheme: ClassScheme,
        *,
        progress: CountReport = unreported,
        rules: OutlineRules = UNSTATED,  # noqa: ARG001 - the format decides
        item: str | None = None,
    ) -> PolygonFile:
        def entries() -> Iterator[Outline]:
            yield from read(path) if items is None else read(path, item)

        file = collected(path, scheme, title, entries(), progress, most_bytes)
        if vertices is None:
            return file
        stated = OutlineRules(vertices, Multipolygons.ONE_OBJECT)
        return in_convention(file, stated, path, side="")

    return outline_format(
        name=name,
        title=title,
        endings=endings,
        read=read_outlines,
        in_shares=in_shares,
        has_conventions=vertices is None,
        items=items,
        write=write,
        write_all=write_all,
        losses=losses,
    )


def collected(
    path: Path,
    scheme: ClassScheme,
    title: str,
    entries: Iterable[Outline],
    progress: CountReport,
    most_bytes: int = TABLE_BYTES,
) -> PolygonFile:
    """Return the objects of a file as they stand there; parameters as in `polygon_format`."""
    if not is_zarr(path):
        check_file(path, title)
        check_length(path, title, most_bytes)
    objects = Collector(
        path, scheme, renumbered="the ids of the objects do not ascend: they were renumbered"
    )
    left_out = Counter[str]()
    with parsing(path, title, csv.Error):
        for rings, value, id_, *more in entries:
            if isinstance(value, LeftOut):
                left_out[value.what] += 1  # without a number: ids stay those of the objects
                continue
            if len(objects) % BATCH == 0:
                progress(0, 1)  # the total is unknown, but the caller can cancel here
            points = [opened(np.array(ring, np.float64).reshape(-1, 2)) for ring in rings]
            if not all((np.abs(ring) <= LARGEST_COORDINATE).all() for ring in points):
                raise ValueError(f"a coordinate of object {len(objects) + 1} is out of range")
            number = len(objects) + 1 if id_ is None else id_ if id_ <= LARGEST_ID else 0
            # Excluded also where the cohort has no class for such areas.
            known = (
                (AMBIGUOUS, None)
                if value is EXCLUDED
                else objects.named(value)
                if isinstance(value, tuple)
                else objects.numbers.of(value)
            )
            objects.add(points, known, id_=number, score=more[0] if more else None)
    return objects.finished(
        findings=[
            Finding(FindingKind.FALLBACK, f"{counted(n, what)} left out", path=path, count=n)
            for what, n in left_out.items()
        ]
    )


def outline_format(
    *,
    name: str,
    title: str,
    endings: tuple[str, ...],
    read: ReadOutlines,
    has_conventions: bool = False,
    has_numbers: bool = True,
    in_shares: bool = False,
    items: ListItems | None = None,
    write: Write | None,
    write_all: WriteAll | None = None,
    losses: Callable[[Objects], tuple[Finding, ...]] = lambda objects: (),  # noqa: ARG005
) -> Format:
    """Make a format of a function that reads a whole file of outlines.

    Parameters
    ----------
    name, title, endings, items, write, write_all, losses
        As for `napari_panoptic.io.formats.format.Format`.
    read
        Reads a file; with ``items``, the objects of the region whose key is ``item``.
    has_conventions
        Whether programs write such files in several conventions, which a
        ``cohort.toml`` can state.
    has_numbers
        Whether classes can be numbers, and a table beside the file names them.
    in_shares
        Whether coordinates are shares of the image's width and height instead of px.
    """

    def read_region(
        files: MaskFiles,
        scheme: ClassScheme,
        team: str | None,
        shape: tuple[int, int],
        **watch: Any,
    ) -> PolygonFile:
        if files.patch is None:
            file = read_side(files, scheme, team, **watch)
            check_stated_shape(file, files, shape, side=_side(team))
            return file
        paths = (files.all_paths[0], *tables_beside(files.all_paths[0]))
        slide = HELD.current(
            (name, paths, repr(scheme), files.rules, team is None),
            lambda: read_side(files, scheme, team, **watch),
            size_of,
            version=tuple(file_stamps(paths).values()),
        )
        return of_patch(slide, files.patch, shape, paths[0])

    def read_side(
        files: MaskFiles, scheme: ClassScheme, team: str | None, **watch: Any
    ) -> PolygonFile:
        path = files.all_paths[0]
        if items is not None:
            watch["item"] = files.item
        file = read(path, scheme, rules=files.rules, **watch)
        if has_conventions:
            file = in_convention(file, files.rules, path, side=_side(team))
        return placed_outlines(file, files.rules)

    def load(files: MaskFiles, scheme: ClassScheme, request: LoadRequest) -> LoadedMasks:
        path = files.all_paths[0]
        if request.shape is None:
            raise UnreadableFileError(
                "polygons can only be drawn if the size of the region is known, and neither its "
                "image nor a mask of it could be read",
                path=path,
                region=request.region,
            )
        file = read_region(files, scheme, request.team, request.shape)
        if in_shares:
            file = in_px_of_image(file, files, request.shape)
        drawn = rasterize_polygons(
            file.polygons,
            request.shape,
            scheme,
            region=request.region,
            team=request.team,
            is_patch=files.patch is not None,
        )
        return LoadedMasks(
            replace(drawn.labels, known_scores=file.scores),
            drawn.ambiguous,
            located((*file.findings, *drawn.findings), request, path=path),
            mpp=file.mpp,
            magnification=file.magnification,
        )

    def open_tiles(
        files: MaskFiles,
        scheme: ClassScheme,
        shape: tuple[int, int],
        *,
        region: str | None = None,
        team: str | None = None,
        progress: CountReport = unreported,
    ) -> TiledMasks:
        file = read_region(files, scheme, team, shape, progress=progress)
        if in_shares:
            file = in_px_of_image(file, files, shape)
        tiles = polygon_tiles(file.polygons, scheme, shape)
        findings = file.findings
        if files.patch is None:
            findings += tuple(outside_findings(file.polygons, shape, region=region))
        request = LoadRequest(shape=shape, region=region, team=team)
        return TiledMasks(
            replace(tiles.labels, known_scores=file.scores),
            tiles.ambiguous,
            located(findings, request, path=files.all_paths[0]),
            magnification=file.magnification,
        )

    return Format(
        name=name,
        title=title,
        load=load,
        open_tiles=open_tiles,
        outlines=read,
        in_shares=in_shares,
        endings=endings,
        items=items,
        write=write,
        write_all=write_all,
        losses=losses,
        companions=tables_beside if has_numbers else lambda path: (),  # noqa: ARG005
        has_conventions=has_conventions,
    )


def _side(team: str | None) -> str:
    """Return where rules stand in a cohort.toml."""
    return "reference" if team is None else "predictions"
