"""The files of a corrected annotation: of the cohort's own format or another, with a table of rows.

Verdicts of a review file are corrected by `napari_panoptic.review.corrections`; a window saves what
was mended in it. The files of the cohort are only read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, UnwritableFileError
from napari_panoptic.common.text import encodable
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.cohorts.description_edits import description_text
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.files.replacing import exchange, set_usual_mode, writing
from napari_panoptic.io.formats.format import Format, LoadedMasks, Objects
from napari_panoptic.io.formats.own_format import write_like
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.live.mends import MendAction, MendedObject
from napari_panoptic.tables.columns import (
    TableSpec,
    link_column,
    name_column,
    unshown,
    whole,
    words,
)
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.links import LinkMaker
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Verdict

CORRECTIONS_RECORD = "corrections.json"
ANNOTATIONS = "annotations"
"""The folder of annotations in another format than the cohort's own."""
IMAGES = "images"
"""The folder of the images beside them."""
NEIGHBOURS = (".mrxs", ".vms", ".vmu")
"""Endings of slides that need other files beside them."""

CORRECTIONS = TableSpec(
    "corrections.csv",
    "object that a verdict changes",
    [
        name_column("patient"),
        name_column("region"),
        name_column("team"),
        words("side", about="of the object with the verdict"),
        whole("id", about="of that object, as in the cohort"),
        words("verdict"),
        words(
            "action",
            about="accept, delete, replace, reclassify, merge, split, draw or ambiguous",
        ),
        name_column("reviewer", about="several that agree, separated by ` | `"),
        unshown("time", about="of the verdict, UTC"),
        words("class_before", about="of the annotated object, empty if there was none"),
        words("class_after", about="empty if there is none any more"),
        whole("area_before_px"),
        whole("area_after_px"),
        unshown("id_after", about="of the annotated object in the file that was written"),
        link_column(),
    ],
    "What the verdicts of a review change of the annotation.",
)


@dataclass(frozen=True)
class Correction:
    """What was done to one object, by whom and why."""

    mended: MendedObject
    #: The team that was looked at; empty if unknown.
    team: str = ""
    #: Those who decided it, by name.
    reviewers: tuple[str, ...] = ()
    #: When; None if unknown.
    at: datetime | None = None
    #: The verdict that it follows from, if any.
    verdict: Verdict | None = None

    @property
    def names(self) -> str:
        """The names of those who decided it, as one text."""
        return " | ".join(self.reviewers)

    @property
    def time(self) -> str:
        """The time of the decision, UTC; empty if unknown."""
        return "" if self.at is None else self.at.isoformat(timespec="seconds")


@dataclass(frozen=True, eq=False)
class CorrectedAnnotation:
    """The annotation of one region as it is to be written."""

    region: Region
    corrections: tuple[Correction, ...]
    #: The objects; None if the annotation stays as it is on disk.
    labels: LabelImage | None = None
    #: The ambiguous area: a bool image (y, x), or None.
    ambiguous: NDArray[np.bool_] | None = None
    #: Micrometres per pixel, or None.
    mpp: float | None = None


class CorrectionsWriter:
    """Writes corrected annotations to a folder, and collects the rows of `CORRECTIONS`.

    Parameters
    ----------
    cohort
        The cohort that is corrected.
    settings, source
        Under which its objects exist.
    form
        The format to write; None for that of the cohort, at its relative paths.
    folder
        The folder.
    """

    def __init__(
        self,
        cohort: Cohort,
        settings: EvaluationSettings,
        source: Source | None,
        form: Format | None,
        folder: Path,
    ) -> None:
        self._cohort, self._settings, self._form, self._folder = cohort, settings, form, folder
        self._links = LinkMaker.of(cohort, settings, source)
        self.rows: list[dict[str, Any]] = []
        #: The annotations, as paths in the folder.
        self.files: list[str] = []
        #: Of each region: the file, and the pixels that differ when it is read again.
        self.differences: list[dict[str, Any]] = []

    def add(self, annotation: CorrectedAnnotation) -> None:
        """Write the annotation of a region if it changes, and note its rows and files.

        Raises
        ------
        UnwritableFileError
            If it cannot be written.
        """
        numbers = self._write(annotation)
        self.rows += [self._row(annotation.region, own, numbers) for own in annotation.corrections]

    def _write(self, annotation: CorrectedAnnotation) -> Mapping[int, int]:
        """Write the objects; return id -> the id in the file."""
        region, labels = annotation.region, annotation.labels
        if labels is None or region.reference is None:
            return {}
        objects = _objects(annotation, labels, self._cohort)
        if self._form is None:
            files = write_like(region.reference, self._cohort.root, self._folder, objects)
        else:
            files = _write_as(self._form, region, self._folder, objects)
        masks = load_masks(
            files,
            self._cohort.scheme,
            shape=labels.shape,
            restoration=self._settings.restoration,
            radius=self._settings.radius,
            region=region.name,
        )
        numbers = _new_ids(labels, masks.labels)
        paths = [path.relative_to(self._folder).as_posix() for path in files.object_paths]
        differing = _differing_px(labels, annotation.ambiguous, masks, numbers)
        self.files += paths
        self.differences.append(
            {"region": region.name, "file": paths[0], "differing_px": differing}
        )
        return numbers

    def _row(
        self, region: Region, correction: Correction, numbers: Mapping[int, int]
    ) -> dict[str, Any]:
        mended, verdict = correction.mended, correction.verdict
        side, id_ = mended.target
        is_in_cohort = side is Side.PREDICTION or mended.id_before is not None
        link = self._links.text(region.name, correction.team, side, id_) if is_in_cohort else ""
        return {
            "patient": region.patient,
            "region": region.name,
            "team": correction.team,
            "side": str(side),
            "id": id_,
            "verdict": "" if verdict is None else str(verdict),
            "action": str(mended.action),
            "reviewer": correction.names,
            "time": correction.time,
            "class_before": mended.class_before,
            "class_after": mended.class_after,
            "area_before_px": mended.area_before_px,
            "area_after_px": mended.area_after_px,
            "id_after": "" if mended.id_after is None else numbers.get(mended.id_after, ""),
            "link": link,
        }

    def describe(self) -> None:
        """Write the ``cohort.toml`` of annotations in another format than the cohort's own."""
        if self._form is None or not self.files:
            return
        images = self._folder / IMAGES
        endings = sorted({path.suffix for path in images.rglob("*") if path.is_file()})
        patterns = [f"{IMAGES}/{{patient}}/{{region}}{ending}" for ending in endings]
        annotations = f"{ANNOTATIONS}/{{patient}}/{{region}}{self._form.endings[0]}"
        files = {"image": patterns, f"reference.{self._form.name}": [annotations]}
        name = f"{self._cohort.name}, corrected"
        text = description_text(name, self._cohort.scheme, files)
        stated = {region.mpp for region in self._cohort.regions}
        if len(stated) == 1 and (mpp := stated.pop()) is not None:
            text += f"mpp = {mpp!r}\n"
        (self._folder / DESCRIPTION).write_bytes(text.encode("utf-8"))


def places_to_draw(region: Region, corrections: Sequence[Correction]) -> list[dict[str, Any]]:
    """Return the places of a region at which an object is to be drawn by hand."""
    places = []
    for mended in (own.mended for own in corrections):
        if mended.action is MendAction.DRAW and mended.id_after is None:
            (side, id_), (y0, x0, y1, x1) = mended.target, mended.bbox
            box = {"y0": y0, "x0": x0, "y1": y1, "x1": x1}
            places.append({"region": region.name, "side": str(side), "id": id_, **box})
    return places


# --- one region -------------------------------------------------------------------------------


def _objects(annotation: CorrectedAnnotation, labels: LabelImage, cohort: Cohort) -> Objects:
    region, area = annotation.region, annotation.ambiguous
    return Objects(
        labels=replace(labels, index=labels.index.copy()),
        side=Side.REFERENCE,
        region=encodable(region.name),
        team="",
        ambiguous=area if area is not None and area.any() else None,
        scheme=cohort.scheme,
        mpp=annotation.mpp,
        patient=encodable(region.patient),
        original=region.reference,
        details=_details(annotation.corrections),
    )


def _details(corrections: Sequence[Correction]) -> dict[int, dict[str, object]]:
    """Return id -> which action made a changed object, by whom and when."""
    return {
        own.mended.id_after: {
            "correction": str(own.mended.action),
            "corrected_by": own.names,
            "corrected_at": own.time,
        }
        for own in corrections
        if own.mended.id_after is not None
    }


def _write_as(form: Format, region: Region, folder: Path, objects: Objects) -> MaskFiles:
    """Write a region in a format, at a place that its patient and name give."""
    name = f"{objects.region}{form.endings[0]}"
    path = folder / ANNOTATIONS / encodable(region.patient) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if form.write is None:
        raise UnwritableFileError(f"the format '{form.name}' cannot be written; choose another")
    with writing(path):
        form.write(path, objects)
        image = region.image
        if image is not None and _is_alone(region):
            place = folder / IMAGES / encodable(region.patient)
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(image, place / f"{objects.region}{image.suffix}")
    return MaskFiles(form.source, {"": (path,)})


def _is_alone(region: Region) -> bool:
    """Return whether the image of a region is one file that holds no other."""
    path = region.image
    is_one = path is not None and path.is_file() and region.image_item is None
    return is_one and path is not None and path.suffix.casefold() not in NEIGHBOURS


def _new_ids(wanted: LabelImage, found: LabelImage) -> dict[int, int]:
    """Return id -> the id of the object that has most of its pixels in another label image."""
    keys = wanted.index.astype(np.int64) * (len(found) + 1) + found.index
    pairs, counts = np.unique(keys[(wanted.index > 0) & (found.index > 0)], return_counts=True)
    rows, others = np.divmod(pairs, len(found) + 1)
    order = np.argsort(counts, kind="stable")
    ids, other_ids = wanted.ids[rows[order] - 1], found.ids[others[order] - 1]
    return dict(zip(ids.tolist(), other_ids.tolist(), strict=True))


def _differing_px(
    wanted: LabelImage,
    ambiguous: NDArray[np.bool_] | None,
    masks: LoadedMasks,
    numbers: Mapping[int, int],
) -> int:
    """Count the pixels of which the object, its class or the ambiguous area differs."""
    found = masks.labels
    expected = np.array([0, *(numbers.get(id_, -1) for id_ in wanted.ids.tolist())])[wanted.index]
    classes = [np.concatenate([[0], each.class_index])[each.index] for each in (wanted, found)]
    areas = [
        np.zeros(wanted.shape, np.bool_) if area is None else area
        for area in (ambiguous, masks.ambiguous)
    ]
    differs = (expected != found.id_image()) | (classes[0] != classes[1]) | (areas[0] != areas[1])
    return int(np.count_nonzero(differs))


# --- folders ----------------------------------------------------------------------------------


def check_folder(folder: Path) -> None:
    """Check that a folder is new, empty, or holds only what an earlier run wrote, unchanged.

    Raises
    ------
    PanopticError
        If there is something else; the first file is named.
    """
    if os.path.lexists(folder) and not folder.is_dir():
        raise PanopticError("this is a file; choose a folder", path=folder)
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    try:
        record = json.loads((folder / CORRECTIONS_RECORD).read_bytes())
        known = {**record["written"], **record["tables"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        known = {}
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    found = file_fingerprints(files, folder)
    for name, fingerprint in found.items():
        if known.get(name) != fingerprint and (name != CORRECTIONS_RECORD or not known):
            raise PanopticError(
                f"the folder is not empty: {name} is not known to be written by this command, or "
                f"was changed since; choose a new or empty folder",
                path=folder,
            )


@contextmanager
def complete_folder(folder: Path) -> Iterator[Path]:
    """Make a folder that appears with all its files or, after an error or without any, not at all.

    Parameters
    ----------
    folder
        Its place; a folder that is there is replaced, so check it by `check_folder` before.

    Yields
    ------
    Path
        Where to write the files.

    Raises
    ------
    UnwritableFileError
        If something cannot be written there.
    """
    folder = folder.resolve()
    with writing(folder, "the files"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(mkdtemp(dir=folder.parent, prefix=f".{folder.name[:40]}.", suffix=".part"))
        try:
            yield part
            if any(part.iterdir()):
                set_usual_mode(part)
                exchange([part], [folder])
        finally:
            shutil.rmtree(part, ignore_errors=True)


def written_files(folder: Path) -> dict[str, str]:
    """Return the relative path of each file in a folder -> its fingerprint."""
    return file_fingerprints([path for path in folder.rglob("*") if not path.is_dir()], folder)
