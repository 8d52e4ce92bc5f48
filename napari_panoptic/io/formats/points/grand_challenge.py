"""Points of grand-challenge.org, "Multiple points": a JSON for each image, in millimetres.

``{"type": "Multiple points", "points": [{"name": …, "point": [x, y, z], "probability": …}]}``, as
algorithms of MIDOG and MONKEY write them. A point lies at index times pixel size, and index 0, 0 is
the centre of the first pixel.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted
from napari_panoptic.io.files.guard import check_file, check_length
from napari_panoptic.io.files.json_files import parsed_json, parsing
from napari_panoptic.io.formats.points.boxes import CATEGORY, LARGEST_PX
from napari_panoptic.values.detections import Points

WHAT = 'points of grand-challenge.org ({"type": "Multiple points", "points": …}) in mm'
_SNIFFED_BYTES = 1 << 12
_MARKS = (b'"Multiple points"', b'"point"')


def is_point_list(path: Path) -> bool:
    """Return whether a JSON file has such points rather than boxes; False if it is not there."""
    try:
        with path.open("rb") as file:
            start = file.read(_SNIFFED_BYTES)
    except OSError:
        return False  # its reader reports the error
    return b'"points"' in start and any(mark in start for mark in _MARKS)


def read_point_list(
    path: Path, mpp_xy: tuple[float, float] | None, category: str | None = None
) -> tuple[Points, list[Finding]]:
    """Read points of one name; return them and findings about others.

    Parameters
    ----------
    path
        The file.
    mpp_xy
        Micrometres per pixel of the image; an error if None.
    category
        The name of the points that are read, ``mitotic figure`` if None. Where no point has it, the
        names are those of single points, and all are read.

    Raises
    ------
    UnreadableFileError
        If it is not valid.
    """
    check_file(path, WHAT)
    check_length(path, WHAT)
    if mpp_xy is None:
        raise UnreadableFileError(
            f"expected micrometres per pixel of the image for {WHAT}, found none; write "
            f"mpp = NUMBER at the top of cohort.toml",
            path=path,
        )
    with parsing(path, WHAT):
        entries = parsed_json(path.read_bytes())["points"]
        names = [str(entry.get("name")).strip() for entry in entries]
        mm = np.array([entry["point"][:2] for entry in entries], np.float64).reshape(-1, 2)
        scores = [entry.get("probability") for entry in entries]
        confidence = np.array([np.nan if score is None else score for score in scores], np.float64)
    xy_px = mm * 1000 / np.array(mpp_xy)
    if not (np.abs(xy_px) <= LARGEST_PX).all() or np.isinf(confidence).any():
        raise UnreadableFileError(
            f"expected {WHAT}, found a coordinate or probability that is no finite number",
            path=path,
        )
    wanted = (category or CATEGORY).casefold()
    kept = np.array([name.casefold() == wanted for name in names], np.bool_)
    if not kept.any():
        kept[:] = True
    ids = np.arange(1, len(names) + 1)
    unused = []
    for name in dict.fromkeys(np.array(names, object)[~kept].tolist()):
        own = tuple(id_ for id_ in ids[~kept].tolist() if names[id_ - 1] == name)
        left_out = f"{counted(len(own), 'point')} of the name '{name}'"
        message = f"{left_out} not used; those of '{wanted}' are"
        unused.append(Finding(FindingKind.EXTRA, message, count=len(own), object_ids=own))
    return Points(xy_px[kept], confidence[kept], ids[kept]), unused
