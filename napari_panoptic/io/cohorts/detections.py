"""A folder becomes a cohort of detections: frames, teams, and which files hold what."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from napari_panoptic.common.errors import CohortError, PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.cohorts import schema
from napari_panoptic.io.cohorts.description import (
    DESCRIPTION,
    NO_IMAGES,
    OF_ALL_TASKS,
    TASK_KEY,
    described,
    description_in,
    patient_pattern,
)
from napari_panoptic.io.cohorts.discovery import (
    IMAGE,
    PREDICTIONS,
    REFERENCE,
    FileTable,
    FoundRegion,
    Key,
    RegionFiles,
    Search,
    cohort_name,
    missing_by_team,
    missing_sides,
    opened_folder,
)
from napari_panoptic.io.cohorts.layouts import (
    TEAMS,
    PatientPattern,
    Patterns,
    patient_in,
    patterns_of,
)
from napari_panoptic.io.cohorts.patterns import (
    Listing,
    Match,
    Pattern,
    natural_key,
)
from napari_panoptic.io.formats.format import FileItem
from napari_panoptic.io.formats.points import boxes
from napari_panoptic.io.formats.points.grand_challenge import is_point_list
from napari_panoptic.values.cohort import Team
from napari_panoptic.values.detections import DetectionCohort, Frame, InFile, ScoredFrame

ATYPIA, SCORES = "atypia", "scores"
"""Content of files, beside the roles of all tasks: scores of nuclear atypia, and those of teams."""
LARGEST_MPP = 1e6
"""Micrometres per pixel: a metre. Whole numbers may be larger than any float."""
MITOS_FRAMES = "*/frames/x40"
"""Folders that identify the layout of MITOS-ATYPIA-14."""
MIDOG_FILES = "MIDOG*.json"
"""Files that identify the layout of MIDOG and MIDOG++."""
_ENDINGS = ("tiff", "tif", "svs", "png", "jpg", "jpeg")
_EXPECTED = (
    f"expected the folders of MITOS-ATYPIA-14, 'PATIENT/frames/x40/FRAME.tiff' and "
    f"'PATIENT/mitosis/FRAME_mitosis.csv' with '{TEAMS}/TEAM/FRAME.csv', or those of MIDOG, "
    f"'MIDOG.json' and 'FRAME.tiff' with '{TEAMS}/TEAM.json', or a file {DESCRIPTION} "
    f'with task = "detections" that describes the folder (see docs/reference/detections.md)'
)

MppXy = tuple[float, float]


@dataclass(frozen=True)
class DetectionLayout:
    """Where the files of a cohort of detections lie."""

    #: Patterns of the images of frames, the preferred first.
    image: Patterns = ()
    reference: Patterns = ()
    predictions: Patterns = ()
    #: Files that fit these are not used, whatever else they fit.
    ignore: Patterns = ()
    #: Scores of nuclear atypia.
    atypia_reference: Patterns = ()
    atypia_predictions: Patterns = ()
    #: How to read the patient from the frame's name if no folder names it; None for: up to the last
    #: ``_``.
    patient: PatientPattern | None = None
    #: Name patterns of frames, such as ``A*``, and micrometres per pixel along x and y; the first
    #: that fits counts.
    mpp: tuple[tuple[str, MppXy], ...] = ()
    #: Name of the cohort, or None for the folder's.
    name: str | None = None
    #: Which category of boxes in JSON files is read; None for the usual one.
    category: str | None = None

    def patient_of(self, frame: str) -> str:
        """Return the patient in a frame's name."""
        return patient_in(frame, self.patient)

    def mpp_of(self, frame: str) -> MppXy | None:
        """Return micrometres per pixel of a frame, where the description says."""
        fitting = (mpp for glob, mpp in self.mpp if fnmatch.fnmatchcase(frame, glob))
        return next(fitting, None)


MITOS_LAYOUT = DetectionLayout(
    image=patterns_of(*(f"{{patient}}/frames/x40/{{region}}.{ending}" for ending in _ENDINGS)),
    reference=patterns_of("{patient}/mitosis/{region}_mitosis.csv"),
    predictions=patterns_of(
        f"{TEAMS}/{{team}}/mitosis/{{region}}.csv",
        f"{TEAMS}/{{team}}/{{patient}}/{{region}}.csv",
        f"{TEAMS}/{{team}}/{{region}}.csv",
    ),
    # What pathologists discussed and took for no mitosis.
    ignore=patterns_of("{patient}/mitosis/{region}_not_mitosis.csv"),
    atypia_reference=patterns_of("{patient}/atypia/x20/{region}_cna_score_decision.csv"),
    atypia_predictions=patterns_of(
        f"{TEAMS}/{{team}}/atypia/{{region}}.csv",
        f"{TEAMS}/{{team}}/{{patient}}/{{region}}.csv",
        f"{TEAMS}/{{team}}/{{region}}.csv",
    ),
)
"""The folders of MITOS-ATYPIA-14; teams' results beside them, in files named after the frames."""


MIDOG_LAYOUT = DetectionLayout(
    image=patterns_of(*(f"{f}{{region}}.{e}" for e in _ENDINGS for f in ("", "images/"))),
    reference=patterns_of(MIDOG_FILES),
    predictions=patterns_of(f"{TEAMS}/{{team}}.json", f"{TEAMS}/{{team}}/{{region}}.csv"),
)
"""The JSON of MIDOG or MIDOG++ and its images; teams' results in JSON or CSV."""


def known_layout(root: Path) -> DetectionLayout | None:
    """Return the layout of a folder that is that of a challenge; None for others."""
    layouts = {MITOS_FRAMES: MITOS_LAYOUT, MIDOG_FILES: MIDOG_LAYOUT}
    try:
        return next((layout for mark, layout in layouts.items() if any(root.glob(mark))), None)
    except OSError:
        return None


def open_detection_cohort(folder: str | Path, *, allow_outside: bool = False) -> DetectionCohort:
    """Find out which frames and teams a folder holds. No points are read.

    Parameters
    ----------
    folder
        The cohort's folder, or its ``cohort.toml``.
    allow_outside
        Whether links that lead out of the folder are followed.

    Raises
    ------
    CohortError
        If the folder is missing, is a file, cannot be read, or holds no
        frame; where its ``cohort.toml`` cannot be understood.
    OutsideLinksError
        If that may be so because links out of it were not followed.
    """
    with opened_folder(folder, _EXPECTED, allow_outside=allow_outside) as listing:
        return _Discovery(_layout_of(listing), listing).cohort()


def _layout_of(listing: Listing) -> DetectionLayout:
    if (description := description_in(listing)) is not None:
        return read_detection_description(description)
    if (layout := known_layout(listing.root)) is not None:
        return layout
    raise CohortError(f"this folder is no cohort of detections; {_EXPECTED}", path=listing.root)


# --- the description ------------------------------------------------------------------------------


def read_detection_description(path: Path) -> DetectionLayout:
    """Read a ``cohort.toml`` about detections; as `described`."""
    return described(path, _layout)


def _layout(values: dict[str, Any]) -> DetectionLayout:
    found = _DESCRIPTION(values, "")
    files = found.pop("files")
    atypia = files.pop("atypia", {})
    found.pop(TASK_KEY, None)
    layout = DetectionLayout(
        **found,
        **files,
        atypia_reference=atypia.get("reference", ()),
        atypia_predictions=atypia.get("predictions", ()),
    )
    if not layout.image and not layout.reference:
        raise CohortError(NO_IMAGES)
    return layout


def _required(pattern: Pattern) -> set[str]:
    """Return the placeholders of points: a JSON of boxes names its images itself."""
    return set() if pattern.text.casefold().endswith(boxes.ENDING) else {"region"}


def _mpp_table(value: Any, place: str) -> tuple[tuple[str, MppXy], ...]:
    if not isinstance(value, dict):
        return (("*", _mpp(value, place)),)
    return tuple(schema.table_of(_mpp)(value, place).items())


def _mpp(value: Any, key: str) -> MppXy:
    pair = value if isinstance(value, list) else [value, value]
    if len(pair) == 2 and all(schema.is_number(v) and 0 < v <= LARGEST_MPP for v in pair):
        return float(pair[0]), float(pair[1])
    raise CohortError(
        f"{key} must be micrometres per pixel, one number above 0, or two for x and y such as "
        f"[0.2273, 0.2275]; found {value!r}"
    )


_OWN, _TEAMS = {"region", "patient"}, {"region", "patient", "team"}
_ATYPIA = {
    "reference": schema.patterns(Pattern, _OWN, lambda _: {"region"}),
    "predictions": schema.patterns(Pattern, _TEAMS, lambda _: {"region"}),
}
_FILES = {
    "image": schema.patterns(Pattern, _OWN, lambda _: {"region"}),
    "reference": schema.patterns(Pattern, _OWN, _required),
    "predictions": schema.patterns(Pattern, _TEAMS, _required),
    "ignore": schema.patterns(Pattern, _TEAMS),
    "patient": patient_pattern,
    "atypia": schema.table(_ATYPIA),
}
_DESCRIPTION = schema.table(
    {**OF_ALL_TASKS, "mpp": _mpp_table, "category": schema.text, "files": schema.table(_FILES)},
    needed=("files",),
)


# --- contents of a folder -------------------------------------------------------------------------


class _Discovery(Search):
    """One walk through a cohort's folder."""

    def __init__(self, layout: DetectionLayout, listing: Listing) -> None:
        super().__init__(listing)
        self._layout = layout
        self._ignored = {m.path for p in layout.ignore for m in p.files(listing)}
        self._in_files: dict[Path, tuple[Finding, ...]] = {}  # findings of files of many frames

    def cohort(self) -> DetectionCohort:
        layout = self._layout
        table = self._files(IMAGE, layout.image) | self._files(REFERENCE, layout.reference)
        places = table.places((IMAGE, REFERENCE), layout.patient_of)
        if not places:
            raise self._nothing_found((*layout.image, *layout.reference))
        table |= self._files(PREDICTIONS, layout.predictions)
        table |= self._files(SCORES, layout.atypia_predictions)
        table |= self._files(ATYPIA, layout.atypia_reference)
        frames = {place.key: self._frame(place, table) for place in places}
        predictions = {
            (self._teams[team], frame.name): path
            for team in table.teams(PREDICTIONS)
            for key, frame in frames.items()
            if (path := table.first(key, PREDICTIONS, team)) is not None
        }
        scored = {
            place.key: self._scored(place, table)
            for place in table.places((ATYPIA,), layout.patient_of)
        }
        atypia = tuple(scored.values())
        scores = {(team, at.name): path for at in atypia for team, path in at.predictions.items()}
        names = {team for team, _ in (*predictions, *scores)}
        annotations = list(dict.fromkeys(chain.from_iterable(map(_not_first, table.of(REFERENCE)))))
        return DetectionCohort(
            name=cohort_name(layout.name, self._listing),
            root=self._listing.root,
            frames=tuple(frames.values()),
            teams=tuple(Team(name) for name in sorted(names, key=natural_key)),
            predictions=predictions,
            atypia=atypia,
            findings=(
                *self._common_findings(),
                *(finding for found in self._in_files.values() for finding in found),
                *self._unannotated(tuple(frames.values())),
                *missing_sides(
                    "frame",
                    tuple(frames.values()),
                    has_images=bool(layout.image),
                    has_references=bool(layout.reference),
                ),
                *missing_by_team(
                    "frame", [frame.name for frame in frames.values()], predictions, _no_points
                ),
                *missing_by_team("frame", [at.name for at in atypia], scores, _no_score),
                *_spare_findings(annotations, "annotation"),
                *self._unused(
                    table,
                    {PREDICTIONS: frames, SCORES: scored},
                    {*predictions.values(), *scores.values()},
                ),
            ),
            prediction_places=tuple(pattern.in_words for pattern in layout.predictions),
        )

    def _files(self, role: str, patterns: Patterns) -> FileTable:
        def class_of(match: Match) -> str | None:
            return None if match.path in self._ignored else ""

        return self._find(role, patterns, self._frames_in, class_of, shared=True)

    def _frames_in(self, match: Match) -> Iterator[FileItem]:
        """List the frames of a file; a JSON names many, unless its pattern names one."""
        region, patient, team = (match.fields.get(key) for key in ("region", "patient", "team"))
        names: tuple[str, ...] = ()
        findings: tuple[Finding, ...]
        if match.path.suffix.casefold() == boxes.ENDING and not is_point_list(match.path):
            try:
                found = boxes.read_boxes(match.path, self._layout.category)
            except PanopticError as error:
                findings = (Finding(FindingKind.UNREADABLE, str(error), error.path, team=team),)
            else:
                findings, names = found.findings, found.names
            self._in_files[match.path] = findings
        elif region is None:
            message = (
                "expected a JSON of many images, found points of grand-challenge.org, which "
                "are those of one image; write {region} into its pattern in cohort.toml"
            )
            finding = Finding(FindingKind.UNREADABLE, message, match.path, team=team)
            self._in_files[match.path] = (finding,)
        for name in names if region is None else (region,):
            yield FileItem(name, "", patient)

    def _frame(self, place: FoundRegion, table: FileTable) -> Frame:
        return Frame(
            place.name,
            place.patient,
            table.first(place.key, IMAGE),
            table.first(place.key, REFERENCE),
            self._layout.mpp_of(place.name),
            InFile(place.key[0], self._layout.category),
        )

    def _scored(self, place: FoundRegion, table: FileTable) -> ScoredFrame:
        """Return a frame with a score of nuclear atypia."""
        teams = {team: table.first(place.key, SCORES, team) for team in table.teams(SCORES)}
        there = {self._teams[team]: path for team, path in teams.items() if path is not None}
        return ScoredFrame(place.name, place.patient, table.first(place.key, ATYPIA), there)

    def _unannotated(self, frames: Sequence[Frame]) -> Iterator[Finding]:
        """Report images without annotations in files of many frames."""
        files = dict.fromkeys(frame.reference for frame in frames)
        for path in files:
            if path in self._in_files:
                yield from boxes.unannotated(path, self._layout.category)

    def _unused(
        self, table: FileTable, frames: Mapping[str, Collection[Key]], used: Collection[Path]
    ) -> Iterator[Finding]:
        """Report files of teams that are not used, and images in files that are no frames.

        Parameters
        ----------
        table
            All files.
        frames
            For each role of teams, the frames that its files can belong to.
        used
            The files in use.
        """
        spare: dict[str, dict[Path, str]] = defaultdict(dict)
        strange: dict[str, dict[Path, str]] = defaultdict(dict)
        in_file: dict[Path, list[str]] = defaultdict(list)
        for role, keys in frames.items():
            others = {id(found) for found in table.others(role, keys)}
            for found in table.of(role):
                is_strange = id(found) in others
                files = strange if is_strange else spare
                for path in (*found.paths[""], *found.spare):
                    if path not in used:
                        files[found.row.team][path] = found.row.region
                    elif is_strange and path in self._in_files:
                        in_file[path].append(found.row.region)
        for key, paths in spare.items():
            team = self._teams[key]
            yield from _spare_findings(list(paths), f"file(s) of team '{team}'", team)
        for path, regions in in_file.items():
            message = (
                f"{counted(len(regions), 'image')} in {path.name} without a frame in this cohort, "
                f"not used: {english_list(regions)}"
            )
            yield Finding(FindingKind.EXTRA, message, path=path, count=len(regions))
        for key, regions_of in strange.items():
            team, unknown = self._teams[key], [p for p in regions_of if p not in spare[key]]
            names = sorted({regions_of[path] for path in unknown}, key=natural_key)
            if unknown:
                yield Finding(
                    FindingKind.EXTRA,
                    f"{counted(len(unknown), 'file')} of team '{team}' for frames that this cohort "
                    f"does not have, not used: {english_list(names)}",
                    path=unknown[0],
                    team=team,
                    count=len(unknown),
                )


def _not_first(found: RegionFiles) -> Iterator[Path]:
    """Yield the files of a frame that another one precedes."""
    yield from found.paths[""][1:]
    yield from found.spare


def _spare_findings(files: Sequence[Path], what: str, team: str | None = None) -> Iterator[Finding]:
    """Report files of frames that have another one already, which is used."""
    if files:
        names = english_list([f"{path.parent.name}/{path.name}" for path in files])
        yield Finding(
            FindingKind.EXTRA,
            f"{counted(len(files), what)} not used, since another file of the same frame comes "
            f"first: {names}",
            path=files[0],
            team=team,
            count=len(files),
        )


def _no_points(team: str) -> str:
    return f"no file of team '{team}': left out of its figures"


def _no_score(team: str) -> str:
    return f"have no atypia score of team '{team}': no points for them"
