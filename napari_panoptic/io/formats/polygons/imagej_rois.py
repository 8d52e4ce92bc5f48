"""ImageJ ROIs, alone or many in a ZIP archive, as Fiji and StarDist write them."""

from __future__ import annotations

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.files.guard import BYTES_PER_PX, largest_px
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.formats.class_numbers import NamesOrNumber
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.collect import BATCH
from napari_panoptic.io.formats.polygons.outline import LeftOut, Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.formats.polygons.trace import Part, outlined_entries, parts_of
from napari_panoptic.values.cohort import Source, Vertices

if TYPE_CHECKING:
    from roifile import ImagejRoi

WHAT = "an ImageJ ROI (.roi), or a ZIP archive of them, as the ROI Manager of Fiji saves it"
LARGEST_ROI = 2**24
"""Bytes of one ROI: about a million vertices."""
OVAL_VERTICES = 360
"""Number of vertices of the polygon that an oval is drawn as."""
_NO_AREA = "ROI(s) without an area, such as lines, points and texts, left out"
_ZIP_MAGIC = b"PK"
_MOVE, _LINE, _CLOSE = 0.0, 1.0, 4.0
"""First numbers of the steps along a composite outline."""
_DAMAGED_ARCHIVE = (
    *(EOFError, OSError, OverflowError, ValueError, RuntimeError, NotImplementedError),
    *(struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile, zipfile.LargeZipFile),
)
"""Errors that unpacking raises for damaged and encrypted archives."""
_DAMAGED_ROI = (
    *(IndexError, OverflowError, RuntimeError, NotImplementedError, TypeError, ValueError),
    struct.error,
)
_MOST_DIGITS = 9
"""Longer numbers at the ends of names are not ids: masks are drawn with numbers of 32 bits."""


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the objects of a ROI file or of an archive of them.

    An object is a ROI with an area: a polygon, a freehand or traced
    outline, a rectangle, an oval, or a composite of several outlines, filled by the
    even-odd rule. Coordinates lie between pixels, as in ImageJ: the square from 0, 0 to
    10, 10 has the pixels 0 to 9. Rectangles and ovals always cover whole pixels; where outlines run
    through pixel centres, so do theirs. The class is the first of these that the scheme knows:
    the folder of the ROI in the archive; its name, without a number at the end
    (``Epithelial-0012``); its group, a number as in
    `napari_panoptic.io.formats.class_numbers`; the only class there is. Ids are the
    numbers at the ends of names where these ascend and have at most nine digits, else
    running ones. ROIs without an area are left out, and reported. A file with ROIs of
    several planes of a stack is refused.
    """
    # From the centre of the first pixel to that of the last, a shape is 1 px shorter.
    shorter = 1.0 if file.rules.vertices is Vertices.PIXEL_CENTRES else 0.0
    planes: set[tuple[int, int]] = set()
    for done, (total, name, data) in enumerate(_members(file.path)):
        if done % BATCH == 0:
            file.progress(done, total)
        yield _said(name, data, done + 1, shorter, planes)
    if len(planes - {(0, 0)}) > 1:
        raise _unreadable(
            f"its ROIs lie on {len(planes - {(0, 0)})} planes of a stack, and a region is one: "
            f"keep those of one plane"
        )


def _members(path: Path) -> Iterator[tuple[int, str, bytes]]:
    """Yield for each ROI the number of ROIs, its name, and its bytes."""
    with path.open("rb") as file:
        if file.read(2) != _ZIP_MAGIC:
            file.seek(0)
            yield 1, "", file.read(LARGEST_ROI + 1)
            return
        try:
            with zipfile.ZipFile(file) as archive:
                members = [info for info in archive.infolist() if _is_roi(info.filename)]
                if archive.infolist() and not members:  # an empty one has no objects
                    raise _unreadable(f"none of its {len(archive.infolist())} files is a ROI")
                rest = largest_px() * BYTES_PER_PX
                for info in members:
                    with archive.open(info) as member:
                        data = member.read(min(LARGEST_ROI, rest) + 1)
                    rest -= len(data)
                    if rest < 0:
                        raise _unreadable("it unpacks to more than may be held in memory")
                    yield len(members), info.filename, data
        except _DAMAGED_ARCHIVE as error:
            raise _unreadable(f"the archive cannot be unpacked ({error})") from error


def _is_roi(name: str) -> bool:
    return name.lower().endswith(".roi") and not name.startswith("__MACOSX/")


def _unreadable(reason: str, number: int | None = None) -> UnreadableFileError:
    return UnreadableFileError(f"expected {WHAT}, but {reason}; save it again", object_id=number)


def _said(
    name: str, data: bytes, number: int, shorter: float, planes: set[tuple[int, int]]
) -> Outline | LeftOut:
    """Return what a ROI says, which outside an archive has only its own name; add its plane."""
    # Only those who have such files wait for the import.
    from roifile import ImagejRoi

    called = f"ROI {number} ('{name[:100]}')" if name else "it"
    if len(data) > LARGEST_ROI:
        raise _unreadable(f"{called} is larger than {LARGEST_ROI} bytes", number)
    try:
        roi = ImagejRoi.frombytes(data)
    except _DAMAGED_ROI as error:
        raise _unreadable(f"{called} is damaged ({error})", number) from error
    try:
        with np.errstate(all="ignore"):  # values that are not numbers are found later
            outlines = [np.asarray(r, np.float64).reshape(-1, 2) for r in _outlines(roi, shorter)]
    except _DAMAGED_ROI as error:
        reason = f"ROI {number} has an outline that cannot be read ({error})"
        raise _unreadable(reason, number) from error
    rings = [ring for ring in outlines if len(ring)]
    inside = PurePosixPath(name or roi.name)
    own = inside.stem if _is_roi(inside.name) else inside.name
    plain, last = _name_and_number(own)
    digits = last.lstrip("0")
    id_ = int(digits) if 0 < len(digits) <= _MOST_DIGITS else 0
    if not rings:
        return LeftOut(_NO_AREA, kind=FindingKind.UNREADABLE, is_numbered=True, id=id_)
    planes.add((max(roi.t_position, 0), max(roi.z_position or roi.position, 0)))
    entry = NamesOrNumber(
        tuple(filter(None, (inside.parent.name, own, plain))),
        roi.group if roi.group > 0 else None,
        plain if any(map(str.isalpha, plain)) else None,
    )
    return Outline(rings, entry, id=id_)


def _outlines(roi: ImagejRoi, shorter: float) -> list[NDArray[Any]]:
    """Return the outlines of a ROI; none if it has no area."""
    from roifile import ROI_SUBTYPE, ROI_TYPE

    if roi.subtype in (ROI_SUBTYPE.TEXT, ROI_SUBTYPE.IMAGE):
        return []
    if roi.multi_coordinates is not None:
        return list(roi.path2coords(roi.multi_coordinates))
    if roi.roitype in (ROI_TYPE.POLYGON, ROI_TYPE.FREEHAND, ROI_TYPE.TRACED):
        coordinates: NDArray[Any] = np.asarray(roi.coordinates())
        return [coordinates]
    if roi.roitype not in (ROI_TYPE.RECT, ROI_TYPE.OVAL):
        return []
    x, y, width, height = (
        (roi.xd, roi.yd, roi.widthd, roi.heightd)
        if roi.subpixelrect and roi.widthd > 0 and roi.heightd > 0
        else (roi.left, roi.top, roi.right - roi.left, roi.bottom - roi.top)
    )
    width, height = max(width - shorter, 0), max(height - shorter, 0)
    if roi.roitype == ROI_TYPE.RECT:
        corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], np.float64)
        return [corners * (width, height) + (x, y)]
    turn = np.arange(OVAL_VERTICES) * (2 * math.pi / OVAL_VERTICES)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return [(circle + 1) / 2 * (width, height) + (x, y)]


def _name_and_number(text: str) -> tuple[str, str]:
    """Split a name and the digits at its end, and drop separators between them."""
    name = text.rstrip("0123456789")
    end = len(name)
    while end and (name[end - 1].isspace() or name[end - 1] in "_.:#-"):
        end -= 1
    return name[:end], text[len(name) :]


def write_files(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write the objects of a region; see `napari_panoptic.io.formats.format.Format`.

    ROIs are called after class and id, such as ``Epithelial-0012``; their groups are the numbers
    of the classes, which the ROI Manager colours differently. They are read as the same classes
    and pixels, and ids up to nine digits. Pieces of the excluded area come last.
    """
    with (
        replaced_when_complete(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for entry in outlined_entries(objects, parts_of):
            # A slash would be a folder of the archive.
            called = f"{entry.class_name.replace('/', ' ')}-{entry.id:04d}"
            roi = _roi(entry.outline)
            roi.name, roi.group = called, entry.class_index
            # Without a date, the same objects give the same file.
            place = zipfile.ZipInfo(f"{called}.roi")
            archive.writestr(place, roi.tobytes(), zipfile.ZIP_DEFLATED)
    return (path,)


def _roi(parts: tuple[Part, ...]) -> ImagejRoi:
    """Return the ROI of an object: a polygon, or a composite of several rings."""
    from roifile import ROI_TYPE, ImagejRoi

    rings = [ring for part in parts for ring in (part.exterior, *part.holes)]
    roi = ImagejRoi.frompoints(rings[0].astype(np.int32), name="")
    if len(rings) == 1:
        roi.roitype = ROI_TYPE.POLYGON
        return roi
    points = np.concatenate(rings)
    roi.left, roi.top = points.min(axis=0).tolist()
    roi.right, roi.bottom = points.max(axis=0).tolist()
    roi.roitype, roi.n_coordinates, roi.integer_coordinates = ROI_TYPE.RECT, 0, None
    roi.subpixel_coordinates = None
    steps: list[float] = []
    for ring in rings:
        for place, (x, y) in enumerate(ring.tolist()):
            steps += (_LINE if place else _MOVE, x, y)
        steps.append(_CLOSE)
    roi.multi_coordinates = np.array(steps, np.float32)
    roi.shape_roi_size = len(steps)
    return roi


FORMAT = polygon_format(
    OutlineReader(read_objects, what=WHAT, vertices=None, renumbered="", most_bytes=None),
    name=Source.IMAGEJ_ROI,
    title="ImageJ ROIs, open in Fiji",
    endings=(".roi.zip", ".zip"),
    write=write_files,
)
