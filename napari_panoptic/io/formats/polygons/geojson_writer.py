"""Objects as a GeoJSON file that QuPath opens."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Real
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError, UnwritableFileError
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.trace import Part, connected_areas, label_entries, parts_of
from napari_panoptic.io.formats.scores import SCORE_NAMES
from napari_panoptic.values.cohort import ClassScheme, Rgb
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side

OTHER_COLOUR: Rgb = (153, 153, 153)
"""Colour of classes without one in the scheme, such as the ambiguous class."""


class ObjectType(StrEnum):
    """The kind of an object in QuPath."""

    ANNOTATION = "annotation"  # can be edited one by one
    DETECTION = "detection"  # cheaper, for many objects; cannot be edited


@dataclass(frozen=True, eq=False)
class GeoObject:
    """One object of a GeoJSON file.

    Raises
    ------
    LabelError
        For an object without a part: GeoJSON has no place for it.
    """

    #: Its outlines, in px of the image at full resolution; at least one.
    parts: tuple[Part, ...]
    #: Becomes QuPath's classification.
    class_name: str
    #: Shown in QuPath's list.
    name: str
    #: Unique in the file; the same key becomes the same QuPath id in every file.
    key: str
    #: Its kind in QuPath.
    object_type: ObjectType = ObjectType.ANNOTATION
    #: Numbers shown in QuPath's measurement table; NaN and infinity are left out.
    measurements: Mapping[str, float] = field(default_factory=dict)
    #: Texts kept with the object; empty ones are left out.
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that there is a part."""
        if not self.parts:
            raise LabelError(
                f"an object needs at least one pixel to be written as GeoJSON, found none in "
                f"'{self.name}'; leave it out"
            )

    @property
    def uuid(self) -> str:
        """The id of the object in other programs, by its key."""
        return str(uuid5(NAMESPACE_URL, f"napari-panoptic:{self.key}"))

    @property
    def numbers(self) -> dict[str, float]:
        """The measurements that are written."""
        return {name: value for name, value in self.measurements.items() if math.isfinite(value)}

    @property
    def texts(self) -> dict[str, str]:
        """The metadata that are written."""
        return {name: text for name, text in self.metadata.items() if text}


def geo_objects(
    labels: LabelImage,
    *,
    side: Side,
    region: str = "",
    team: str = "",
    details: Mapping[int, Mapping[str, object]] | None = None,
    object_type: ObjectType = ObjectType.ANNOTATION,
) -> Iterator[GeoObject]:
    """Describe the objects of a label image.

    Parameters
    ----------
    labels
        The objects.
    side
        Which side they are on; part of their names.
    region, team
        Region and team; kept as metadata.
    details
        Object id -> what else is known of it: status, cause, iou, verdict, tag,
        note and the like. Numbers become measurements, texts metadata; what is
        None, NaN or empty is left out. ``id``, ``area_px``, ``score``, ``region``,
        ``team`` and ``side`` are always those of the object itself.
    object_type
        Their kind in QuPath.
    """
    places = {"region": region, "team": team, "side": str(side)}
    areas = np.bincount(labels.index.ravel(), minlength=len(labels) + 1).tolist()
    for entry in label_entries(labels, parts_of):
        numbers, texts = _sorted_out((details or {}).get(entry.id, {}))
        own = {"id": float(entry.id), "area_px": float(areas[entry.number])}
        yield GeoObject(
            parts=entry.outline,
            class_name=entry.class_name,
            name=f"{side} {entry.id}",
            key=f"{region}/{team}/{side}/{entry.id}",
            object_type=object_type,
            measurements=numbers | own | {SCORE_NAMES[0]: entry.score},
            metadata=texts | places,
        )


def objects_and_areas(objects: Objects) -> Iterator[GeoObject]:
    """Describe the objects of one side of a region, and then its ambiguous area.

    Every connected piece of the area is an object of the ambiguous class.
    """
    yield from geo_objects(
        objects.labels,
        side=objects.side,
        region=objects.region,
        team=objects.team,
        details=objects.details,
    )
    if objects.ambiguous is not None:
        areas = connected_areas(objects.ambiguous, objects.ambiguous_class)
        yield from geo_objects(areas, side=objects.side, region=objects.region, team="ambiguous")


def write_geojson(path: Path, objects: Iterable[GeoObject], *, scheme: ClassScheme) -> int:
    """Write objects so that QuPath opens them, over the image they belong to.

    One feature per object, with object type, classification and its colour,
    measurements and metadata as QuPath 0.4 and later write them (metadata are
    read from 0.5 on). The file appears only when it is complete.

    Parameters
    ----------
    path
        The file to write; an existing one is replaced.
    objects
        The objects to write.
    scheme
        States the colours of the classes.

    Returns
    -------
    int
        The number of objects written.

    Raises
    ------
    UnwritableFileError
        If the file cannot be written; an existing one stays as it was.
    """
    colours = dict(zip(scheme.names, scheme.colours, strict=True))
    count = 0
    try:
        with replaced_when_complete(path) as file:
            file.write(b'{"type":"FeatureCollection","features":[')
            for count, item in enumerate(objects, start=1):
                text = json.dumps(
                    _feature(item, colours),
                    ensure_ascii=False,
                    allow_nan=False,
                    separators=(",", ":"),
                )
                file.write((",\n" if count > 1 else "\n").encode() + text.encode("utf-8"))
            file.write(b"\n]}\n")
    except OSError as error:
        raise UnwritableFileError(
            f"the GeoJSON file cannot be written ({error.strerror or error}); choose another "
            f"place, or free some space",
            path=path,
        ) from error
    return count


def write_files(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write the objects of a region; see `napari_panoptic.io.formats.format.Format`."""
    write_geojson(path, objects_and_areas(objects), scheme=objects.scheme)
    return (path,)


def _sorted_out(values: Mapping[str, object]) -> tuple[dict[str, float], dict[str, str]]:
    """Separate numbers from texts; drop unknown values."""
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Real) and not isinstance(value, bool):
            numbers[name] = float(value)
        elif isinstance(value, str | bool):
            texts[name] = str(value)
    return numbers, texts


def _feature(item: GeoObject, colours: Mapping[str, Rgb]) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "objectType": str(item.object_type),
        "name": item.name,
        "classification": {
            "name": item.class_name,
            "color": list(colours.get(item.class_name, OTHER_COLOUR)),
        },
    }
    if numbers := item.numbers:
        properties["measurements"] = numbers
    if texts := item.texts:
        properties["metadata"] = texts
    return {
        "type": "Feature",
        "id": item.uuid,
        "geometry": _geometry(item.parts),
        "properties": properties,
    }


def _geometry(parts: tuple[Part, ...]) -> dict[str, Any]:
    polygons = [[_closed(ring) for ring in (part.exterior, *part.holes)] for part in parts]
    if len(polygons) == 1:
        return {"type": "Polygon", "coordinates": polygons[0]}
    return {"type": "MultiPolygon", "coordinates": polygons}


def _closed(ring: NDArray[np.int32]) -> list[list[int]]:
    corners: list[list[int]] = ring.tolist()
    return [*corners, corners[0]]
