"""Boxes around points in the JSON of COCO, one file for many images, as of MIDOG and MIDOG++.

MIDOG writes ``bbox`` as two corners, x1, y1, x2, y2, and COCO as x, y, width, height; a file does
not state which. The point is the middle of the box, as in the evaluation of MIDOG.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.files.guard import check_file
from napari_panoptic.io.files.json_files import kept_until_changed
from napari_panoptic.io.formats.coco_files import CocoContent, coco_refused, read_coco
from napari_panoptic.values.detections import Points, unique_ids

ENDING = ".json"
WHAT = "a JSON of boxes (images, annotations with a bbox, categories)"
CATEGORY = "mitotic figure"
"""The category that is read if the description of the cohort names none."""
LARGER = 4
"""Boxes are taken for corners without a doubt if read as sizes they are that much larger."""
LARGEST_PX = 1e12
"""Coordinates may be that large: squares of distances must be numbers."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoxFile:
    """The points of a file."""

    #: The images: their file names without folder and ending.
    names: tuple[str, ...]
    #: Points by the name of their image, casefolded; images without any are absent.
    points: Mapping[str, Points]
    #: Images without an annotation of any category.
    empty: tuple[str, ...] = ()
    #: What was not used, and doubts.
    findings: tuple[Finding, ...] = ()
    #: Height and width of images in px, as far as stated, by name, casefolded.
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def of(self, name: str, path: Path) -> tuple[Points, tuple[int, int] | None]:
        """Return the points and the stated size of an image, or of the only one.

        Raises
        ------
        UnreadableFileError
            If there is no such image.
        """
        known = {own.casefold() for own in self.names}
        key = name.casefold()
        if key not in known and len(known) == 1:
            (key,) = known
        if key not in known:
            raise coco_refused(path, WHAT, f"no image '{name}' among its {len(known)}")
        return self.points.get(key, Points.none()), self.sizes.get(key)


def unannotated(path: Path, category: str | None) -> Iterator[Finding]:
    """Report images of an annotation without a single box, which may not have been annotated."""
    names = read_boxes(path, category).empty
    if names:
        message = (
            f"{counted(len(names), 'image')} without an annotation of any category, treated as "
            f"images in which nothing was found: {english_list(names)}. Leave those that were not "
            f"annotated out of the JSON"
        )
        yield Finding(FindingKind.MISSING, message, path=path, count=len(names))


def read_boxes(path: Path, category: str | None = None) -> BoxFile:
    """Read the boxes of one category as points.

    Parameters
    ----------
    path
        The file; what was read is kept as long as the file does not change.
    category
        Name of the category; None for `CATEGORY`, or the only one there is.

    Raises
    ------
    UnreadableFileError
        If it is not valid, or has no such category.
    """
    check_file(path, WHAT)
    return _understood(path, category)


@kept_until_changed  # a cohort reads the files of all teams for each frame
def _understood(path: Path, category: str | None) -> BoxFile:
    content = read_coco(path, WHAT)
    if not content.categories:
        raise coco_refused(path, WHAT, "no categories")
    stems = content.stems(path, WHAT)
    wanted = _category(content, category, path)
    kept = {
        key: [entry for entry in entries if _number(entry, path) == wanted]
        for key, entries in content.objects.items()
    }
    boxes = {key: _boxes(entries, path) for key, entries in kept.items() if entries}
    are_corners, doubt = _convention(list(boxes.values()), path)
    points = {
        stems[key].casefold(): _points(box, kept[key], are_corners, path)
        for key, box in boxes.items()
    }
    empty = tuple(name for key, name in stems.items() if key not in content.objects)
    findings = (*doubt, *_unused(content, wanted, path))
    sizes = {stems[key].casefold(): size for key, size in content.sizes.items()}
    return BoxFile(tuple(stems.values()), points, empty, findings, sizes)


def _category(content: CocoContent, name: str | None, path: Path) -> int:
    numbers = {own.strip().casefold(): number for number, own in content.categories.items()}
    if name is None and len(numbers) == 1:
        return next(iter(numbers.values()))
    wanted = (name or CATEGORY).strip().casefold()
    if wanted not in numbers:
        names = english_list(sorted(content.categories.values()))
        raise UnreadableFileError(
            f"expected a category '{name or CATEGORY}', found {names}; write category = … with "
            f"one of them at the top of cohort.toml",
            path=path,
        )
    return numbers[wanted]


def _number(entry: Mapping[str, Any], path: Path) -> int:
    try:
        return int(entry["category_id"])
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise coco_refused(path, WHAT, "an annotation without a category_id") from error


def _boxes(entries: list[Mapping[str, Any]], path: Path) -> FloatArray:
    try:
        boxes = np.array([entry["bbox"] for entry in entries], np.float64)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise coco_refused(path, WHAT, "an annotation without a bbox of four numbers") from error
    if boxes.shape != (len(entries), 4) or not (np.abs(boxes) <= LARGEST_PX).all():
        found = f"a bbox that is not four finite numbers up to {LARGEST_PX:g}"
        raise coco_refused(path, WHAT, found)
    return boxes


def _convention(boxes: list[FloatArray], path: Path) -> tuple[bool, tuple[Finding, ...]]:
    """Return whether boxes are corners, and a finding if they may as well be sizes."""
    table = np.concatenate([np.zeros((0, 4)), *boxes])
    corners = bool((table[:, 2:] >= table[:, :2]).all())
    sizes = bool((table[:, 2:] >= 0).all())
    if not corners and not sizes:
        found = "boxes that are neither x1, y1, x2, y2 nor x, y, width, height"
        raise coco_refused(path, WHAT, found)
    # By the wrong rule, the boxes of corners are much larger.
    is_much_larger = len(table) == 0 or (
        np.median(table[:, 2:]) > LARGER * np.median(table[:, 2:] - table[:, :2])
    )
    if not corners or not sizes or is_much_larger:
        return corners, ()
    message = (
        "its boxes can be x1, y1, x2, y2 (as in MIDOG) or x, y, width, height (as in COCO); they "
        "were read as the former. If that is wrong, save them as x1, y1, x2, y2"
    )
    return True, (Finding(FindingKind.CONVENTION, message, path=path, count=len(table)),)


def _points(
    boxes: FloatArray, entries: list[Mapping[str, Any]], are_corners: bool, path: Path
) -> Points:
    first, last = boxes[:, :2], boxes[:, 2:]
    middle = (first + last) / 2 if are_corners else first + last / 2
    try:
        scores = [entry.get("score") for entry in entries]
        confidence = np.array([np.nan if score is None else score for score in scores], np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise coco_refused(path, WHAT, "a score that is no number") from error
    if confidence.shape != (len(entries),):  # all scores are lists of one length
        raise coco_refused(path, WHAT, "scores that are lists instead of numbers")
    if np.isinf(confidence).any():
        raise coco_refused(path, WHAT, "an infinite score")
    ids = [entry.get("id") for entry in entries]
    own = [id_ if type(id_) is int and 0 < id_ < 2**53 else np.nan for id_ in ids]
    return Points(middle, confidence, unique_ids(np.array(own, np.float64)))


def _unused(content: CocoContent, wanted: int, path: Path) -> Iterator[Finding]:
    """Report annotations of other categories, such as hard negatives."""
    counts = Counter(_number(entry, path) for own in content.objects.values() for entry in own)
    for number, count in sorted(counts.items()):
        if number != wanted:
            name = content.categories.get(number, str(number))
            message = (
                f"{counted(count, 'annotation')} of the category '{name}' not used; "
                f"those of '{content.categories[wanted]}' are"
            )
            yield Finding(FindingKind.EXTRA, message, path=path, class_name=str(name), count=count)
