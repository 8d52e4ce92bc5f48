"""The annotation of a cohort with the verdicts of a review applied.

`decided` finds out what reviewers say of each object, `corrected_regions` applies it, region by
region, and `write_region` writes the files. The files of the cohort are only read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from napari_panoptic.common.errors import PanopticError, UnwritableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import encodable
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.cohorts.folder_scan import description_text
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.files.replacing import exchange, set_usual_mode
from napari_panoptic.io.formats.format import Format, LoadedMasks, Objects
from napari_panoptic.io.formats.own_format import write_like
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.live.actions import (
    Claim,
    Covered,
    Mend,
    MendAction,
    MendedObject,
    Target,
    apply,
    mend_of_verdicts,
)
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.regions.reading import HELD_UP_TO_PX
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.review.identity import Fingerprint
from napari_panoptic.review.judged import Subjects
from napari_panoptic.review.verdicts import ReviewRecord, Role
from napari_panoptic.tables.columns import TableSpec, name_column, unshown, whole, words
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Verdict

CORRECTIONS_RECORD = "corrections.json"
ANNOTATIONS = "annotations"
"""The folder of annotations in another format than the cohort's own."""
IMAGES = "images"
"""The folder of the images beside them."""
NEIGHBOURS = (".mrxs", ".vms", ".vmu")
"""Endings of slides that need other files beside them."""
_SAME_PX = 1e-6
"""Centroids of the same pixels are as close as this, whatever the rounding of their sums."""

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
    ],
    "What the verdicts of a review change of the annotation.",
)


@dataclass(frozen=True)
class Decision:
    """What holds of one object after all its verdicts."""

    target: Target
    verdict: Verdict
    #: Those who gave it, by name.
    reviewers: tuple[str, ...]
    #: The newest of their verdicts.
    record: ReviewRecord


@dataclass(frozen=True)
class VerdictConflict:
    """An object on which reviewers differ, with no decision."""

    target: Target
    records: tuple[ReviewRecord, ...]


@dataclass(frozen=True)
class NotApplied:
    """A verdict that changes nothing, though it should."""

    record: ReviewRecord
    #: Why, for the user.
    reason: str


@dataclass(frozen=True)
class Decided:
    """What the verdicts on the objects of a region and team come to."""

    decisions: tuple[Decision, ...]
    conflicts: tuple[VerdictConflict, ...]
    not_applied: tuple[NotApplied, ...]


@dataclass(frozen=True, eq=False)
class CorrectedRegion:
    """The annotation of one region with verdicts applied."""

    region: Region
    decided: Decided
    #: What changes; None if the region cannot be evaluated.
    mend: Mend | None = None
    #: The region before and after, with its objects and ambiguous area.
    before: LabelPair | None = None
    after: LabelPair | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def changed(self) -> LabelPair | None:
        """The region after the corrections, if its annotation changes."""
        has_changed = self.mend is not None and not self.mend.changes_nothing
        return self.after if has_changed else None

    @property
    def not_applied(self) -> tuple[NotApplied, ...]:
        """All verdicts that could not be applied."""
        refused = () if self.mend is None else self.mend.not_done
        records = {decision.target: decision.record for decision in self.decided.decisions}
        return (
            *self.decided.not_applied,
            *(NotApplied(records[item.target], item.reason) for item in refused),
        )


@dataclass(frozen=True)
class CorrectionRequest:
    """What is corrected, and how."""

    cohort: Cohort
    #: The verdicts; those on other teams do not count.
    records: Sequence[ReviewRecord]
    team: str
    settings: EvaluationSettings
    #: Which format of the predictions is read; None for the usual one.
    source: Source | None = None
    claim: Claim = Claim.KEEP
    #: The format to write; None for that of the cohort.
    form: Format | None = None


@dataclass(frozen=True, eq=False)
class WrittenCorrections:
    """What was written, for the record."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    #: The annotations, as paths in the folder.
    files: list[str] = field(default_factory=list)
    #: Of each region: the file, and the pixels that differ when it is read again.
    differences: list[dict[str, Any]] = field(default_factory=list)


# --- what reviewers say -----------------------------------------------------------------------


def decided(evaluation: Evaluation, records: Sequence[ReviewRecord], region: str) -> Decided:
    """Find the objects of verdicts, and what holds of each.

    An adjudicator's verdict decides (the newest); equal verdicts count once; different ones are a
    conflict. Verdicts on objects that have other pixels or another class now are not applied.

    Parameters
    ----------
    evaluation
        The objects as they are on disk.
    records
        The verdicts on one team in this region.
    region
        Its name.
    """
    of_object: dict[Target, list[ReviewRecord]] = defaultdict(list)
    found: set[int] = set()
    not_applied: list[NotApplied] = []
    for own in _by_giver(records):
        subjects = Subjects(evaluation, region=region, team=own[0].team)
        for (side, row), record in subjects.find(own).items():
            subject = subjects.of(side, row)
            found.add(id(record))
            if _is_unchanged(subject.fingerprint, record.fingerprint):
                of_object[side, subject.object_id].append(record)
            else:
                not_applied.append(NotApplied(record, "the object has changed on disk since"))
    missing = "the object is not there any more"
    not_applied += [NotApplied(record, missing) for record in records if id(record) not in found]
    decisions, conflicts = [], []
    for target, given in sorted(of_object.items(), key=lambda item: (item[0][0], item[0][1])):
        decision = _decision(target, given)
        if decision is None:
            conflicts.append(VerdictConflict(target, tuple(given)))
        else:
            decisions.append(decision)
    return Decided(tuple(decisions), tuple(conflicts), tuple(not_applied))


def _by_giver(records: Iterable[ReviewRecord]) -> Iterable[list[ReviewRecord]]:
    """Group verdicts by who gave them: an object has one of each."""
    groups: dict[tuple[str, str], list[ReviewRecord]] = defaultdict(list)
    for record in records:
        groups[record.reviewer, record.role].append(record)
    return groups.values()


def _is_unchanged(now: Fingerprint, then: Fingerprint) -> bool:
    is_there = np.hypot(
        now.centroid_y_px - then.centroid_y_px, now.centroid_x_px - then.centroid_x_px
    )
    return now.area_px == then.area_px and bool(is_there < _SAME_PX)


def _decision(target: Target, given: Sequence[ReviewRecord]) -> Decision | None:
    """Return what holds of an object; None if reviewers differ, undecided."""
    adjudicated = [record for record in given if record.role is Role.ADJUDICATOR]
    chosen = [max(adjudicated, key=lambda record: record.given_at)] if adjudicated else given
    if len({record.verdict for record in chosen}) > 1:
        return None
    newest = max(chosen, key=lambda record: record.given_at)
    reviewers = tuple(dict.fromkeys(record.reviewer for record in chosen))
    return Decision(target, newest.verdict, reviewers, newest)


# --- corrections ------------------------------------------------------------------------------


def corrected_regions(work: CorrectionRequest) -> Iterator[CorrectedRegion]:
    """Apply the verdicts on a team, region by region, in the order of the cohort.

    Regions without a verdict on the team are left out, and so are verdicts on regions that the
    cohort does not have: see `unknown_regions`.
    """
    by_region: dict[str, list[ReviewRecord]] = defaultdict(list)
    for record in work.records:
        if record.team == work.team:
            by_region[record.region].append(record)
    for region in work.cohort.regions:
        if records := by_region.get(region.name):
            yield _corrected(work, region, records)


def unknown_regions(work: CorrectionRequest) -> list[NotApplied]:
    """Return the verdicts on regions that the cohort does not have."""
    known = {region.name for region in work.cohort.regions}
    return [
        NotApplied(record, "the cohort has no such region")
        for record in work.records
        if record.team == work.team and record.region not in known
    ]


def _corrected(
    work: CorrectionRequest, region: Region, records: Sequence[ReviewRecord]
) -> CorrectedRegion:
    try:
        held = HeldRegion(work.cohort, region, work.settings, held_up_to_px=HELD_UP_TO_PX)
        found = held.evaluate(work.team, work.settings, work.source)
    except PanopticError as error:
        finding = Finding.unreadable(error, region=region.name, team=work.team)
        return _unread(region, records, (finding,))
    evaluation = found.evaluation
    if evaluation is None:
        return _unread(region, records, found.findings)
    outcome = decided(evaluation, records, region.name)
    verdicts = {decision.target: decision.verdict for decision in outcome.decisions}
    covered = Covered.ASK if work.claim is Claim.KEEP else Covered.BESIDE
    mend = mend_of_verdicts(evaluation, verdicts, claim=work.claim, covered=covered)
    edited = EditedPair(evaluation.pair, known=evaluation)
    apply(mend, edited)
    return CorrectedRegion(
        region, outcome, mend, evaluation.pair, edited.pair(), tuple(found.findings)
    )


def _unread(
    region: Region, records: Sequence[ReviewRecord], findings: Sequence[Finding]
) -> CorrectedRegion:
    reason = next((f.message for f in findings if f.kind is FindingKind.UNREADABLE), None)
    reason = f"the region cannot be evaluated: {reason or 'something is missing'}"
    not_applied = tuple(NotApplied(record, reason) for record in records)
    return CorrectedRegion(region, Decided((), (), not_applied), findings=tuple(findings))


# --- files ------------------------------------------------------------------------------------


def write_region(
    work: CorrectionRequest, found: CorrectedRegion, folder: Path, written: WrittenCorrections
) -> None:
    """Write the annotation of a region if it changes, and note its rows and files.

    Raises
    ------
    UnwritableFileError
        If it cannot be written.
    """
    numbers: Mapping[int, int] = {}
    if (pair := found.changed) is not None and found.region.reference is not None:
        objects = _objects(work, found, pair)
        if work.form is None:
            files = write_like(found.region.reference, work.cohort.root, folder, objects)
        else:
            files = _write_as(work.form, found.region, folder, objects)
        paths = [path.relative_to(folder).as_posix() for path in files.object_paths]
        numbers, differing = _read_again(work, found.region, files, pair)
        written.files.extend(paths)
        written.differences.append(
            {"region": found.region.name, "file": paths[0], "differing_px": differing}
        )
    if found.mend is not None:
        decisions = {decision.target: decision for decision in found.decided.decisions}
        written.rows.extend(
            _row(work, found.region, decisions[mended.target], mended, numbers)
            for mended in found.mend.objects
            if mended.target in decisions
        )


def _objects(work: CorrectionRequest, found: CorrectedRegion, pair: LabelPair) -> Objects:
    region = found.region
    labels = replace(pair.reference, index=pair.reference.index.copy())
    area = pair.ambiguous
    return Objects(
        labels=labels,
        side=Side.REFERENCE,
        region=encodable(region.name),
        team="",
        ambiguous=area if area is not None and area.any() else None,
        scheme=work.cohort.scheme,
        mpp=pair.mpp,
        patient=encodable(region.patient),
        original=region.reference,
        details=_details(found),
    )


def _details(found: CorrectedRegion) -> dict[int, dict[str, object]]:
    """Return id -> which action made a changed object, by whom and when."""
    mended = () if found.mend is None else found.mend.objects
    decisions = {decision.target: decision for decision in found.decided.decisions}
    details: dict[int, dict[str, object]] = {}
    for item in mended:
        decision = decisions.get(item.target)
        if item.id_after is not None and decision is not None:
            details[item.id_after] = {
                "correction": str(item.action),
                "corrected_by": _names(decision),
                "corrected_at": _time(decision),
            }
    return details


def _write_as(form: Format, region: Region, folder: Path, objects: Objects) -> MaskFiles:
    """Write a region in a format, at a place that its patient and name give."""
    name = f"{objects.region}{form.endings[0]}"
    path = folder / ANNOTATIONS / encodable(region.patient) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if form.write is None:
        raise UnwritableFileError(f"the format '{form.name}' cannot be written; choose another")
    try:
        form.write(path, objects)
        image = region.image
        if image is not None and _is_alone(region):
            place = folder / IMAGES / encodable(region.patient)
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(image, place / f"{objects.region}{image.suffix}")
    except OSError as error:
        raise UnwritableFileError(
            f"the file cannot be written ({error.strerror or error}); choose another place, or "
            f"free some space",
            path=path,
        ) from error
    return MaskFiles(form.source, {"": (path,)})


def _is_alone(region: Region) -> bool:
    """Return whether the image of a region is one file that holds no other."""
    path = region.image
    is_one = path is not None and path.is_file() and region.image_item is None
    return is_one and path is not None and path.suffix.casefold() not in NEIGHBOURS


def describe(work: CorrectionRequest, form: Format, folder: Path) -> None:
    """Write the ``cohort.toml`` of annotations in another format than the cohort's own."""
    endings = sorted({path.suffix for path in (folder / IMAGES).rglob("*") if path.is_file()})
    patterns = [f"{IMAGES}/{{patient}}/{{region}}{ending}" for ending in endings]
    annotations = f"{ANNOTATIONS}/{{patient}}/{{region}}{form.endings[0]}"
    files = {"image": patterns, f"reference.{form.name}": [annotations]}
    name = f"{work.cohort.name}, corrected"
    text = description_text(name, work.cohort.scheme, files)
    stated = {region.mpp for region in work.cohort.regions}
    if len(stated) == 1 and (mpp := stated.pop()) is not None:
        text += f"mpp = {mpp!r}\n"
    (folder / DESCRIPTION).write_bytes(text.encode("utf-8"))


def _read_again(
    work: CorrectionRequest, region: Region, files: MaskFiles, pair: LabelPair
) -> tuple[dict[int, int], int]:
    """Read what was written; return the new id of each object, and the pixels that differ."""
    masks = load_masks(
        files,
        work.cohort.scheme,
        shape=pair.reference.shape,
        restoration=work.settings.restoration,
        radius=work.settings.radius,
        region=region.name,
    )
    numbers = _new_ids(pair.reference, masks.labels)
    return numbers, _differing_px(pair, masks, numbers)


def _new_ids(wanted: LabelImage, found: LabelImage) -> dict[int, int]:
    """Return id -> the id of the object that has most of its pixels in another label image."""
    keys = wanted.index.astype(np.int64) * (len(found) + 1) + found.index
    pairs, counts = np.unique(keys[(wanted.index > 0) & (found.index > 0)], return_counts=True)
    rows, others = np.divmod(pairs, len(found) + 1)
    order = np.argsort(counts, kind="stable")
    ids, other_ids = wanted.ids[rows[order] - 1], found.ids[others[order] - 1]
    return dict(zip(ids.tolist(), other_ids.tolist(), strict=True))


def _differing_px(pair: LabelPair, masks: LoadedMasks, numbers: Mapping[int, int]) -> int:
    """Count the pixels of which the object, its class or the ambiguous area differs."""
    wanted, found = pair.reference, masks.labels
    expected = np.array([0, *(numbers.get(id_, -1) for id_ in wanted.ids.tolist())])[wanted.index]
    classes = [np.concatenate([[0], each.class_index])[each.index] for each in (wanted, found)]
    areas = [
        np.zeros(wanted.shape, np.bool_) if area is None else area
        for area in (pair.ambiguous, masks.ambiguous)
    ]
    differs = (expected != found.id_image()) | (classes[0] != classes[1]) | (areas[0] != areas[1])
    return int(np.count_nonzero(differs))


def _row(
    work: CorrectionRequest,
    region: Region,
    decision: Decision,
    mended: MendedObject,
    numbers: Mapping[int, int],
) -> dict[str, Any]:
    side, id_ = mended.target
    return {
        "patient": region.patient,
        "region": region.name,
        "team": work.team,
        "side": str(side),
        "id": id_,
        "verdict": str(decision.verdict),
        "action": str(mended.action),
        "reviewer": _names(decision),
        "time": _time(decision),
        "class_before": mended.class_before,
        "class_after": mended.class_after,
        "area_before_px": mended.area_before_px,
        "area_after_px": mended.area_after_px,
        "id_after": "" if mended.id_after is None else numbers.get(mended.id_after, ""),
    }


def _names(decision: Decision) -> str:
    return " | ".join(decision.reviewers)


def _time(decision: Decision) -> str:
    return decision.record.given_at.isoformat(timespec="seconds")


# --- the record -------------------------------------------------------------------------------


def conflict_record(found: CorrectedRegion, conflict: VerdictConflict) -> dict[str, Any]:
    """Return a conflict as `CORRECTIONS_RECORD` has it."""
    side, id_ = conflict.target
    given = {_giver(record): str(record.verdict) for record in conflict.records}
    return {"region": found.region.name, "side": str(side), "id": id_, "verdicts": given}


def _giver(record: ReviewRecord) -> str:
    return f"{record.reviewer} ({record.role})" if record.role else record.reviewer


def not_applied_record(item: NotApplied) -> dict[str, Any]:
    """Return a verdict that was not applied as `CORRECTIONS_RECORD` has it."""
    record, place = item.record, item.record.fingerprint
    return {
        "region": record.region,
        "side": str(record.side),
        "id": record.object_id,
        "class": record.class_name,
        "y_px": place.centroid_y_px,
        "x_px": place.centroid_x_px,
        "verdict": str(record.verdict),
        "reviewer": record.reviewer,
        "why": item.reason,
    }


def places_to_draw(found: CorrectedRegion) -> list[dict[str, Any]]:
    """Return the places of a region at which an object is to be drawn by hand."""
    objects = () if found.mend is None else found.mend.objects
    places = []
    for mended in objects:
        if mended.action is MendAction.DRAW:
            (side, id_), (y0, x0, y1, x1) = mended.target, mended.bbox
            box = {"y0": y0, "x0": x0, "y1": y1, "x1": x1}
            places.append({"region": found.region.name, "side": str(side), "id": id_, **box})
    return places


def pixels_of_others(found: CorrectedRegion) -> list[dict[str, Any]]:
    """Return which annotated objects lost pixels to accepted outlines, or kept them."""
    if found.mend is None:
        return []
    kinds = {"taken": found.mend.overwritten, "kept": found.mend.spared}
    return [
        {
            "region": found.region.name,
            "id": id_,
            "pixels": kind,
            "px": number,
            "is_gone": (side, id_) in found.mend.vanished,
        }
        for kind, objects in kinds.items()
        for (side, id_), number in objects.items()
    ]


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
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(mkdtemp(dir=folder.parent, prefix=f".{folder.name[:40]}.", suffix=".part"))
        try:
            yield part
            if any(part.iterdir()):
                set_usual_mode(part)
                exchange([part], [folder])
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise UnwritableFileError(
            f"the files cannot be written ({error.strerror or error}); choose another place, or "
            f"free some space",
            path=folder,
        ) from error


def written_files(folder: Path) -> dict[str, str]:
    """Return the relative path of each file in a folder -> its fingerprint."""
    return file_fingerprints([path for path in folder.rglob("*") if not path.is_dir()], folder)
