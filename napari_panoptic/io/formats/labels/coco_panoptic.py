"""COCO panoptic: one JSON for many regions, and a PNG of coloured ids for each.

The id of a segment is R + 256 G + 256^2 B of its pixels; 0 is no segment. The
PNG files lie in a folder named as the JSON without its ending, as the programs
of that challenge expect (https://cocodataset.org/#format-data).
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.common.errors import CohortError, UnreadableFileError, UnwritableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list, shortened, visible
from napari_panoptic.io.files.guard import check_file, check_length
from napari_panoptic.io.files.json_files import kept_until_changed, parsed_json, parsing
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.files.stated_names import checked_name
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.format import FileItem, Objects
from napari_panoptic.io.formats.labels.mask_format import Numbered, mask_format
from napari_panoptic.io.formats.polygons.model import UNKNOWN
from napari_panoptic.io.formats.reading import note, refuse
from napari_panoptic.io.pixels.decode import (
    check_exact,
    pixel_shape,
    read_pixels,
)
from napari_panoptic.kernels.restore import components
from napari_panoptic.values.cohort import ClassScheme, Rgb, Source
from napari_panoptic.values.labels import compact

WHAT = "a COCO panoptic JSON (images, annotations with segments_info, categories)"
WHAT_PNG = "a COCO panoptic PNG (RGB: the id of a segment is R + 256 G + 65536 B)"
JSON_NAME = "panoptic.json"
AMBIGUOUS = "Ambiguous"
"""Default name of excluded areas."""
_HIGHEST_ID = 256**3 - 1


@dataclass(frozen=True)
class _Segment:
    id: int
    category: int
    is_crowd: bool


@dataclass(frozen=True)
class _Set:
    """The used part of the parsed JSON."""

    segments: Mapping[str, tuple[_Segment, ...]]  # file name of the PNG -> its segments
    names: Mapping[int, str]  # category -> name
    stuff: frozenset[int]  # categories that are no things
    colours: Mapping[int, Rgb]  # of the categories that have one
    damaged: Mapping[str, str]  # file name of a PNG whose segments cannot be read -> why


def panoptic_scheme(path: Path) -> ClassScheme:
    """Return the classes that a JSON describes: its things, in its order.

    Excluded areas are called like the category ``Ambiguous``, whatever its spelling, or else
    like the first of which every segment is a crowd; None if there is neither.

    Raises
    ------
    UnreadableFileError
        If it is no COCO panoptic JSON, or describes no things of different names.
    """
    known = _read(path)
    things = {number: name for number, name in known.names.items() if number not in known.stuff}
    segments = [segment for found in known.segments.values() for segment in found]
    crowds = {s.category for s in segments if s.is_crowd}
    crowds -= {s.category for s in segments if not s.is_crowd}
    called = [number for number, name in things.items() if name.casefold() == AMBIGUOUS.casefold()]
    area = next(iter([*called, *(number for number in things if number in crowds)]), None)
    scored = [number for number in things if number != area]
    try:
        return ClassScheme(
            names=tuple(things[number] for number in scored),
            colours=tuple(
                known.colours.get(number, _hue(place, len(scored)))
                for place, number in enumerate(scored)
            ),
            ambiguous=None if area is None else things[area],
        )
    except CohortError as error:
        raise UnreadableFileError(
            f"expected {WHAT} with things of different names: {error.message}", path=path
        ) from error


def _hue(place: int, count: int) -> Rgb:
    """Return one of `count` colours that are spread over the circle of hues."""
    red, green, blue = colorsys.hsv_to_rgb(place / max(count, 1), 0.9, 1.0)
    return round(255 * red), round(255 * green), round(255 * blue)


def panoptic_items(path: Path) -> Iterator[FileItem]:
    """List the regions of a JSON: the stems of its PNG files.

    Raises
    ------
    UnreadableFileError
        If it is not valid, or two files have one stem.
    """
    seen: dict[str, str] = {}
    for file_name in _read(path).segments:
        stem = PurePosixPath(file_name).stem
        if other := seen.get(stem.casefold()):
            raise UnreadableFileError(
                f"expected files of different names, found '{other}' and '{file_name}'", path=path
            )
        seen[stem.casefold()] = file_name
        yield FileItem(stem, file_name, paths=(_png(path, file_name),))


def read(path: Path, item: str | None, classes: ClassNumbers) -> Numbered:
    """Read the segments of one region.

    Things whose category is a class become objects; crowds, and those of the
    ambiguous class, are excluded areas. Segments of stuff that is no class are
    background; pixels of no segment are background, too, unless the file has
    such stuff: then they are void, and excluded.
    """
    known, file_name = _read(path), _listed(path, item)
    png, listed = _png(path, file_name), known.segments[file_name]
    segments = tuple(s for s in listed if 0 < s.id <= _HIGHEST_ID)  # no pixel has another id
    ids_of_pixels = _ids(png)
    stuff = {c for c in known.stuff if classes.of((known.names[c],))[0] == UNKNOWN}
    crowd = _pixels_of(ids_of_pixels, [s.id for s in segments if s.is_crowd])
    void = (ids_of_pixels == 0) if stuff else np.zeros_like(crowd)
    nothing = _pixels_of(ids_of_pixels, [s.id for s in segments if s.category in stuff])
    _note_vanished(ids_of_pixels, listed, png)
    return Numbered(
        np.where(crowd | nothing, 0, ids_of_pixels),
        {s.id: (known.names[s.category],) for s in segments if not s.is_crowd},
        excluded=crowd | void,
    )


def size(path: Path, item: str | None) -> tuple[int, ...]:
    """Return the shape of a region, without decoding its PNG."""
    return pixel_shape(_png(path, _listed(path, item)), WHAT_PNG)[:2]


def _listed(path: Path, item: str | None) -> str:
    """Return the file name of the PNG of a region, which the JSON lists."""
    known, file_name = _read(path), item or ""
    if file_name not in known.segments:
        raise refuse(
            f"there is no annotation with the file name '{file_name}' any more: the file was "
            f"changed; open the cohort again"
        )
    if why := known.damaged.get(file_name):
        raise refuse(
            f"expected segments with numbers as id and category_id for '{file_name}', found {why}; "
            f"export it again"
        )
    return file_name


def _png(path: Path, file_name: str | None) -> Path:
    return path.with_suffix("") / (file_name or "")


def _ids(png: Path) -> NDArray[np.int32]:
    check_exact(png, WHAT_PNG)
    pixels = read_pixels(png, WHAT_PNG, colour=True)
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.dtype != np.uint8:
        raise UnreadableFileError(
            f"expected {WHAT_PNG}, found {pixels.dtype} of shape {pixels.shape}", path=png
        )
    red, green, blue = (pixels[..., channel].astype(np.int32) for channel in range(3))
    return red + 256 * green + 65536 * blue


def _pixels_of(ids_of_pixels: NDArray[np.int32], ids: list[int]) -> NDArray[np.bool_]:
    return np.isin(ids_of_pixels, np.array(ids, np.int32))


def _note_vanished(
    ids_of_pixels: NDArray[np.int32], segments: tuple[_Segment, ...], png: Path
) -> None:
    painted = set(np.unique(ids_of_pixels).tolist()) - {0}
    lost = tuple(sorted({s.id for s in segments} - painted))
    if lost:
        message = (
            f"{counted(len(lost), 'segment')} without a pixel in the PNG: {english_list(lost)}"
        )
        note(Finding(FindingKind.VANISHED, message, path=png, count=len(lost), object_ids=lost))


def _read(path: Path) -> _Set:
    check_file(path, WHAT)
    check_length(path, WHAT)
    return _parsed(path)


@kept_until_changed
def _parsed(path: Path) -> _Set:
    with parsing(path, WHAT):
        table = parsed_json(path.read_bytes())
        categories = table["categories"]
        names = {int(c["id"]): str(c["name"]) for c in categories}
        stuff = frozenset(int(c["id"]) for c in categories if not c.get("isthing", 1))
        colours = {int(c["id"]): colour for c in categories if (colour := _colour(c.get("color")))}
        segments, damaged = {}, {}
        for annotation in table["annotations"]:
            file_name = _inside(annotation["file_name"])
            try:
                segments[file_name] = tuple(map(_segment, annotation["segments_info"]))
            except ValueError as error:
                segments[file_name] = ()
                damaged[file_name] = str(error)
        unknown = {s.category for found in segments.values() for s in found} - set(names)
        if unknown:
            raise ValueError(f"categories {sorted(unknown)[:5]} of segments are not described")
        if len(segments) < len(table["annotations"]):
            raise ValueError("several annotations have one file_name")
    return _Set(segments, names, stuff, colours, damaged)


def _colour(value: Any) -> Rgb | None:
    """Read a colour; return None if there is none that can be shown."""
    match value:
        case [int(red), int(green), int(blue)] if all(0 <= v <= 255 for v in value):
            return red, green, blue
    return None


def _segment(info: Mapping[str, Any]) -> _Segment:
    try:
        return _Segment(int(info["id"]), int(info["category_id"]), bool(info.get("iscrowd", 0)))
    except (TypeError, LookupError, ValueError, AttributeError) as error:
        raise ValueError(shortened(visible(repr(info)), 80)) from error


def _inside(file_name: Any) -> str:
    """Refuse names that lead out of the folder of the PNG files, or name no region."""
    if not isinstance(file_name, str):
        raise ValueError(f"expected a text as file_name, found {file_name!r:.60}")
    name = PurePosixPath(file_name.replace("\\", "/"))
    checked_name(str(name), "a file in the folder of the PNG files")
    checked_name(name.stem, "a region as file_name")
    return str(name)


def write_panoptic(folder: Path, count: int, regions: Iterable[Objects]) -> tuple[Finding, ...]:  # noqa: ARG001
    """Write ``panoptic.json`` and the folder ``panoptic`` with a PNG of ids per region.

    Excluded areas become crowds of the ambiguous class, one per connected
    piece. A pixel has one id here: where objects lie in an excluded area, the
    objects have it, and a finding says so.

    Raises
    ------
    UnwritableFileError
        For ids above 2^24 - 1.
    """
    (folder / JSON_NAME).with_suffix("").mkdir()
    images, annotations, findings = [], [], []
    scheme: ClassScheme | None = None
    for number, objects in enumerate(regions, start=1):
        scheme, name = objects.scheme, f"{objects.region}.png"
        ids, segments, hidden_px = _painted(objects)
        if hidden_px:
            findings.append(_hidden(hidden_px, objects))
        _write_png(folder / JSON_NAME, name, ids)
        height, width = ids.shape
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        annotations.append({"image_id": number, "file_name": name, "segments_info": segments})
    categories = [] if scheme is None else _categories(scheme)
    table = {"images": images, "annotations": annotations, "categories": categories}
    with replaced_when_complete(folder / JSON_NAME) as file:
        file.write(orjson.dumps(table))
    return tuple(findings)


def _categories(scheme: ClassScheme) -> list[dict[str, Any]]:
    """Return the classes, numbered from 1, and the ambiguous one as the last."""
    colours = list(zip(scheme.names, scheme.colours, strict=True))
    if scheme.ambiguous is not None:
        colours.append((scheme.ambiguous, (128, 128, 128)))
    return [
        {"id": n, "name": name, "supercategory": "nucleus", "isthing": 1, "color": list(colour)}
        for n, (name, colour) in enumerate(colours, start=1)
    ]


def _painted(objects: Objects) -> tuple[NDArray[np.int64], list[dict[str, Any]], int]:
    """Return the image of ids, its segments, and how many excluded pixels objects hide."""
    labels = objects.labels
    highest = int(labels.ids.max(initial=0))
    ids = labels.id_image()
    category = dict(zip(labels.ids.tolist(), labels.class_index.tolist(), strict=True))
    crowds: set[int] = set()
    hidden_px = 0
    if objects.ambiguous is not None:
        free = objects.ambiguous & (ids == 0)
        hidden_px = int(np.count_nonzero(objects.ambiguous)) - int(np.count_nonzero(free))
        pieces = components(np.ascontiguousarray(free).view(np.uint8))
        crowds = set(range(highest + 1, highest + 1 + int(pieces.max(initial=0))))
        ids = np.where(free, pieces + highest, ids)
        category |= dict.fromkeys(crowds, len(objects.scheme.names) + 1)
    if max(category, default=0) > _HIGHEST_ID:
        raise UnwritableFileError(
            f"COCO panoptic has ids up to {_HIGHEST_ID}, found {max(category)}; choose another "
            f"format",
            region=objects.region,
        )
    return ids, list(_segments(ids, category, crowds)), hidden_px


def _segments(
    ids: NDArray[np.int64], category: Mapping[int, int], crowds: set[int]
) -> Iterator[dict[str, Any]]:
    from scipy.ndimage import find_objects  # takes long to import, and only writing needs it

    index, found = compact(ids)
    areas = np.bincount(index.ravel(), minlength=len(found) + 1)
    for row, (id_, place) in enumerate(zip(found.tolist(), find_objects(index), strict=True)):
        rows, columns = place
        yield {
            "id": id_,
            "category_id": category[id_],
            "iscrowd": int(id_ in crowds),
            "area": int(areas[row + 1]),
            # Column and row of the upper left corner, width and height.
            "bbox": [
                *(columns.start, rows.start),
                *(columns.stop - columns.start, rows.stop - rows.start),
            ],
        }


def _hidden(n_px: int, objects: Objects) -> Finding:
    return Finding(
        FindingKind.FALLBACK,
        f"{n_px} px of the excluded area lie under objects, and were not written as excluded: "
        f"COCO panoptic has one id per pixel",
        region=objects.region,
        team=objects.team or None,
        count=n_px,
    )


def _write_png(path: Path, name: str, ids: NDArray[np.int64]) -> None:
    channels = [(ids >> shift & 255).astype(np.uint8) for shift in (0, 8, 16)]
    Image.fromarray(np.stack(channels, axis=-1)).save(_png(path, name))


FORMAT = mask_format(
    name=Source.COCO_PANOPTIC,
    title="COCO panoptic",
    what=WHAT,
    read=read,
    size=size,
    pixels=_png,
    has_numbers=False,
    items=panoptic_items,
    write_all=write_panoptic,
)
