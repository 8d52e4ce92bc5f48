"""Files of points (``x,y[,confidence]``, or JSON) and of atypia scores (``score[,confidence]``)."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted
from napari_panoptic.io.files.guard import TABLE_BYTES
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.formats.points import boxes
from napari_panoptic.io.formats.points.grand_challenge import is_point_list, read_point_list
from napari_panoptic.io.formats.reading import Place
from napari_panoptic.io.tables.csv_tables import read_text
from napari_panoptic.values.detections import InFile, Points
from napari_panoptic.values.labels import size_text

_WHAT = "a CSV file of points or scores"
_LONGEST_SHOWN = 40


@dataclass(frozen=True, eq=False)
class ReadPoints:
    """The points of a file."""

    #: Their ids are the numbers of their lines, from 1.
    points: Points
    #: Lines that could not be used, and points beyond the image.
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class AtypiaScore:
    """What a file says about the atypia of a frame."""

    #: 1, 2 or 3; None if the file is empty: the frame was not evaluated.
    score: int | None
    #: NaN where none is given.
    confidence: float = math.nan


def read_points(
    path: Path,
    *,
    shape: tuple[int, int] | None = None,
    is_reference: bool = False,
    region: str | None = None,
    team: str | None = None,
    in_file: InFile | None = None,
    mpp_xy: tuple[float, float] | None = None,
) -> ReadPoints:
    """Read points, one per line: ``x,y`` or ``x,y,confidence`` in px.

    Files that end in ``.json`` hold boxes instead, see `napari_panoptic.io.formats.points.boxes`,
    or points in mm, see `napari_panoptic.io.formats.points.grand_challenge`.

    An empty file says that there are none. A line that is something else is
    left out and reported with its number; so is a coordinate that is no finite
    number, or beyond 1e12. Points beyond the image are reported and kept: they
    were claimed.

    Parameters
    ----------
    path
        The file.
    shape
        Height and width of the image in px, or None if unknown.
    is_reference
        Whether a line may also hold the pixels of a mitosis,
        ``x1,y1,x2,y2,...`` (two pixels or more, as in MITOS 2012): the point is
        then the mean of its pixels.
    region, team
        For findings.
    in_file
        Which points of a JSON of many images to read; None if it has only one image.
    mpp_xy
        Micrometres per pixel, which points in mm need.

    Raises
    ------
    UnreadableFileError
        If the file cannot be read, or is not empty and no line is a point.
    """
    place = Place(path, region, team)
    if path.suffix.casefold() == boxes.ENDING:
        name, category = (in_file.name, in_file.category) if in_file else (region or "", None)
        if is_point_list(path):
            points, findings = read_point_list(path, mpp_xy, category)
        else:
            points, stated = boxes.read_boxes(path, category).of(name, path)
            findings = _other_size(points, stated, shape)
        findings += _beyond(points, shape, path)
        return ReadPoints(points, place.located(findings))
    rows: list[tuple[int, float, float, float]] = []
    wrong: list[tuple[int, str]] = []
    for number, line in enumerate(read_text(path, _WHAT, TABLE_BYTES).split("\n"), start=1):
        if not line.strip():
            continue
        numbers = _numbers(line)
        point = None if numbers is None else _point(numbers, is_reference)
        if point is None:
            wrong.append((number, line.strip()))
        else:
            rows.append((number, *point))
    wanted = "x,y or x,y,confidence" + (" or x1,y1,x2,y2,…" if is_reference else "")
    if wrong and not rows:
        number, found = wrong[0]
        raise UnreadableFileError(
            f"expected {wanted} in each line, found none; line {number} is '{_cut(found)}'",
            path=path,
        )
    table = np.array(rows, np.float64).reshape(-1, 4)
    points = Points(table[:, 1:3].copy(), table[:, 3].copy(), table[:, 0].astype(np.int64))
    findings = _wrong_lines(wrong, wanted, path) + _beyond(points, shape, path)
    return ReadPoints(points, place.located(findings))


def read_atypia(path: Path) -> AtypiaScore:
    """Read a score of nuclear atypia; an empty file says that there is none.

    Raises
    ------
    UnreadableFileError
        If the file cannot be read, or holds anything but one score of 1, 2
        or 3 and perhaps a confidence.
    """
    lines = [line for line in read_text(path, _WHAT, TABLE_BYTES).split("\n") if line.strip()]
    if not lines:
        return AtypiaScore(None)
    numbers = _numbers(lines[0]) if len(lines) == 1 else None
    if numbers is None or len(numbers) > 2 or numbers[0] not in (1, 2, 3):
        raise UnreadableFileError(
            f"expected one score, 1, 2 or 3, perhaps with a confidence after a comma, found "
            f"'{_cut(' / '.join(lines))}'",
            path=path,
        )
    return AtypiaScore(int(numbers[0]), numbers[1] if len(numbers) == 2 else math.nan)


def write_points(path: Path, points: Points) -> Path:
    """Write points as ``x,y`` or ``x,y,confidence`` lines, whole or not at all.

    Numbers come back as they were: the shortest decimals that do so are written.
    """
    lines = io.StringIO()
    for (x, y), confidence in zip(points.xy_px.tolist(), points.confidence.tolist(), strict=True):
        cells = [x, y] if math.isnan(confidence) else [x, y, confidence]
        lines.write(",".join(_written(cell) for cell in cells) + "\n")
    with replaced_when_complete(path) as file:
        file.write(lines.getvalue().encode())
    return path


def _written(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _numbers(line: str) -> list[float] | None:
    """Read finite numbers between commas; None where something else is there."""
    cells = [cell.strip() for cell in line.split(",")]
    while len(cells) > 2 and not cells[-1]:  # commas at the end of a line
        cells.pop()
    try:
        numbers = [float(cell) for cell in cells if "_" not in cell]
    except ValueError:
        return None
    is_whole = len(numbers) == len(cells) and all(math.isfinite(n) for n in numbers)
    return numbers if is_whole else None


def _point(numbers: Sequence[float], is_reference: bool) -> tuple[float, float, float] | None:
    """Return x, y and confidence; None for a line of another length, or a place far off."""
    confidence = math.nan
    if len(numbers) in (2, 3):
        x, y = numbers[:2]
        confidence = numbers[2] if len(numbers) == 3 else math.nan
    elif is_reference and len(numbers) >= 4 and len(numbers) % 2 == 0:
        n = len(numbers) // 2
        x, y = sum(numbers[::2]) / n, sum(numbers[1::2]) / n
    else:
        return None
    is_near = abs(x) <= boxes.LARGEST_PX and abs(y) <= boxes.LARGEST_PX
    return (x, y, confidence) if is_near else None


def _wrong_lines(wrong: Sequence[tuple[int, str]], wanted: str, path: Path) -> list[Finding]:
    return [
        Finding(
            FindingKind.MALFORMED,
            f"line {number} of {path.name} is left out: expected {wanted} with finite numbers "
            f"and coordinates up to {boxes.LARGEST_PX:g} px, found '{_cut(line)}'",
            object_ids=(number,),
        )
        for number, line in wrong
    ]


def _beyond(points: Points, shape: tuple[int, int] | None, path: Path) -> list[Finding]:
    height, width = shape or (math.inf, math.inf)
    # The first pixel reaches from -0.5 to 0.5.
    x, y = points.xy_px.T
    is_inside = (x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5)
    beyond = tuple(points.ids[~is_inside].tolist())
    if not beyond:
        return []
    first = "number" if path.suffix.casefold() == boxes.ENDING else "in line"
    size = "with negative coordinates" if shape is None else f"outside {size_text(shape)}"
    message = (
        f"{counted(len(beyond), 'point')} of {path.name}, the first {first} {beyond[0]}, {size}; "
        f"counted like any other"
    )
    kind = FindingKind.OUTSIDE_IMAGE
    return [Finding(kind, message, count=len(beyond), object_ids=beyond)]


def _other_size(
    points: Points, stated: tuple[int, int] | None, shape: tuple[int, int] | None
) -> list[Finding]:
    if stated is None or shape is None or stated == shape or not len(points.ids):
        return []
    message = (
        f"the file states an image of {size_text(stated)}, and the image has {size_text(shape)}: "
        f"its boxes may be in px of another resolution. They were read as px of the image; export "
        f"them so"
    )
    ids = tuple(points.ids.tolist())
    return [Finding(FindingKind.CONVENTION, message, count=len(ids), object_ids=ids)]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
