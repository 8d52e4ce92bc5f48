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
from napari_panoptic.common.progress import CountReport, unreported
from napari_panoptic.io.files.guard import BYTES_PER_PX, check_file, largest_px
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.collect import BATCH, Collector, Known
from napari_panoptic.io.formats.polygons.model import (
    LARGEST_COORDINATE,
    UNKNOWN,
    PolygonFile,
    class_number,
    opened,
)
from napari_panoptic.io.formats.polygons.trace import Part, labels_and_areas, pixel_outlines
from napari_panoptic.values.cohort import UNSTATED, ClassScheme, OutlineRules, Vertices
from napari_panoptic.values.labels import LabelImage

if TYPE_CHECKING:
    from roifile import ImagejRoi

WHAT = "an ImageJ ROI (.roi), or a ZIP archive of them, as the ROI Manager of Fiji saves it"
LARGEST_ROI = 2**24
"""Bytes of one ROI: about a million vertices."""
OVAL_VERTICES = 360
"""Of the polygon that an oval is drawn as."""
_NO_AREA = "ROI(s) without an area, such as lines, points and texts, left out"
_ZIP_MAGIC = b"PK"
_MOVE, _LINE, _CLOSE = 0.0, 1.0, 4.0
"""What steps along a composite outline begin with."""
_DAMAGED_ARCHIVE = (
    *(EOFError, OSError, OverflowError, ValueError, RuntimeError, NotImplementedError),
    *(struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile, zipfile.LargeZipFile),
)
"""What unpacking raises for damaged and encrypted archives."""
_DAMAGED_ROI = (
    *(IndexError, OverflowError, RuntimeError, NotImplementedError, TypeError, ValueError),
    struct.error,
)
_MOST_DIGITS = 9
"""Longer numbers at the ends of names are no ids: masks are drawn with numbers of 32 bits."""
Rings = list[NDArray[np.float64]]


def read_rois(
    path: Path,
    scheme: ClassScheme,
    *,
    progress: CountReport = unreported,
    rules: OutlineRules = UNSTATED,
) -> PolygonFile:
    """Read the objects of a ROI file or of an archive of them.

    An object is a ROI with an area: a polygon, a freehand or traced
    outline, a rectangle, an oval, or a composite of several outlines, filled by the
    even-odd rule. Coordinates lie between pixels, as in ImageJ: the square from 0, 0 to
    10, 10 has the pixels 0 to 9. The class is the first of these that the scheme knows:
    the folder of the ROI in the archive; its name, without a number at the end
    (``Epithelial-0012``); its group, a number as in
    `napari_panoptic.io.formats.class_numbers`; the only class there is. Ids are the
    numbers at the ends of names where these ascend and have at most nine digits, else
    running ones. ROIs without an area are left out, and reported. A file with ROIs of
    several planes of a stack is refused.

    Parameters, returned value and errors are those of
    `napari_panoptic.io.formats.format.ReadOutlines`, and:

    Parameters
    ----------
    rules
        What the vertices of outlines run through. Rectangles and ovals always
        cover whole pixels; where outlines run through pixel centres, so do theirs.
    """
    check_file(path, WHAT)
    objects = _Rois(path, scheme, rules)
    for done, total, name, data in _members(path):
        if done % BATCH == 0:
            progress(done, total)
        objects.add(name, data)
    return objects.finished()


def _members(path: Path) -> Iterator[tuple[int, int, str, bytes]]:
    """Yield for each ROI its place, the number of ROIs, its name, and its bytes."""
    with path.open("rb") as file:
        if file.read(2) != _ZIP_MAGIC:
            file.seek(0)
            yield 0, 1, "", file.read(LARGEST_ROI + 1)
            return
        try:
            with zipfile.ZipFile(file) as archive:
                members = [info for info in archive.infolist() if _is_roi(info.filename)]
                if archive.infolist() and not members:  # an empty one has no objects
                    raise _unreadable(path, f"there is none among {len(archive.infolist())} files")
                rest = largest_px() * BYTES_PER_PX
                for number, info in enumerate(members):
                    with archive.open(info) as member:
                        data = member.read(min(LARGEST_ROI, rest) + 1)
                    rest -= len(data)
                    if rest < 0:
                        raise _unreadable(path, "it unpacks to more than may be held in memory")
                    yield number, len(members), info.filename, data
        except _DAMAGED_ARCHIVE as error:
            raise _unreadable(path, f"the archive cannot be unpacked ({error})") from error


def _is_roi(name: str) -> bool:
    return name.lower().endswith(".roi") and not name.startswith("__MACOSX/")


def _unreadable(path: Path, reason: str, number: int | None = None) -> UnreadableFileError:
    return UnreadableFileError(
        f"expected {WHAT}, but {reason}; save it again", path=path, object_id=number
    )


class _Rois:
    """Turns ROIs into objects."""

    def __init__(self, path: Path, scheme: ClassScheme, rules: OutlineRules) -> None:
        self._path, self._scheme = path, scheme
        # From the centre of the first pixel to that of the last, a shape is 1 px shorter.
        self._shorter = 1.0 if rules.vertices is Vertices.PIXEL_CENTRES else 0.0
        self._objects = Collector(path, scheme)
        self._planes: set[tuple[int, int]] = set()

    def add(self, name: str, data: bytes) -> None:
        """Add a ROI; outside an archive it has only its own name."""
        number = len(self._objects) + 1
        roi = self._parsed(name, data, number)
        rings = self._rings(roi, number)
        inside = PurePosixPath(name or roi.name)
        own = inside.stem if _is_roi(inside.name) else inside.name
        plain, last = _name_and_number(own)
        digits = last.lstrip("0")
        id_ = int(digits) if 0 < len(digits) <= _MOST_DIGITS else 0
        if not rings:
            number = self._objects.skip(id_)
            self._objects.leave_out(FindingKind.UNREADABLE, _NO_AREA, number)
            return
        self._planes.add((max(roi.t_position, 0), max(roi.z_position or roi.position, 0)))
        # All rings together are filled by the even-odd rule.
        self._objects.add(rings, self._class_of(inside.parent.name, plain, own, roi.group), id_=id_)

    def _parsed(self, name: str, data: bytes, number: int) -> ImagejRoi:
        # Only those who have such files wait for the import.
        from roifile import ImagejRoi

        called = f"ROI {number} ('{name[:100]}')" if name else "it"
        if len(data) > LARGEST_ROI:
            raise _unreadable(self._path, f"{called} is larger than {LARGEST_ROI} bytes", number)
        try:
            return ImagejRoi.frombytes(data)
        except _DAMAGED_ROI as error:
            raise _unreadable(self._path, f"{called} is damaged ({error})", number) from error

    def _rings(self, roi: ImagejRoi, number: int) -> Rings:
        try:
            with np.errstate(all="ignore"):  # values that are no numbers are found below
                rings = [
                    np.asarray(ring, np.float64).reshape(-1, 2)
                    for ring in _outlines(roi, self._shorter)
                ]
        except _DAMAGED_ROI as error:
            reason = f"ROI {number} has an outline that cannot be read ({error})"
            raise _unreadable(self._path, reason, number) from error
        for ring in rings:
            if not (np.abs(ring) <= LARGEST_COORDINATE).all():
                raise _unreadable(self._path, f"ROI {number} lies nowhere", number)
        return [opened(ring) for ring in rings if len(ring)]

    def _class_of(self, folder: str, plain: str, name: str, group: int) -> Known:
        """Return the class of a ROI."""
        index = class_number([text for text in (folder, name, plain) if text], self._scheme)
        called: str | None = plain if any(map(str.isalpha, plain)) else None
        if index == UNKNOWN and group > 0:
            index, of_group = self._objects.numbers.of(group)
            called = called or f"group {of_group}"
        if called is None and index == UNKNOWN:
            index, _ = self._objects.numbers.of(None)
        if index == UNKNOWN and len(self._scheme.names) == 1:
            index = 1
        return index, called

    def finished(self) -> PolygonFile:
        """Return everything, with the findings."""
        if len(self._planes - {(0, 0)}) > 1:
            raise _unreadable(
                self._path,
                f"its ROIs lie on {len(self._planes - {(0, 0)})} planes of a stack, and a region "
                f"is one: keep those of one plane",
            )
        return self._objects.finished()


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
    of the classes, which the ROI Manager colours differently. `read_rois` returns the same classes
    and pixels, and ids up to nine digits. Pieces of the excluded area come last.
    """
    with (
        replaced_when_complete(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for labels in labels_and_areas(objects):
            for entry, roi in _written(labels, is_area=labels is not objects.labels):
                # Without a date, the same objects give the same file.
                archive.writestr(zipfile.ZipInfo(entry), roi, zipfile.ZIP_DEFLATED)
    return (path,)


def _written(labels: LabelImage, *, is_area: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the name in the archive, and the bytes, of each object."""
    outlines = pixel_outlines(labels.index, len(labels))
    names = labels.class_names_of_objects().tolist()
    for row, (id_, name) in enumerate(zip(labels.ids.tolist(), names, strict=True)):
        # A slash would be a folder of the archive.
        called = f"{str(name).replace('/', ' ')}-{id_:04d}"
        roi = _roi(outlines.of(row))
        roi.name = called
        roi.group = 0 if is_area else int(labels.class_index[row])
        yield f"{called}.roi", roi.tobytes()


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
