"""The parts of a cohort of detections: frames, points, atypia scores, teams and their files."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding
from napari_panoptic.values.cohort import PatientCohort, Placement, Team


@dataclass(frozen=True, eq=False)
class Points:
    """Places in an image, such as the centroids of mitoses."""

    #: float64 (n, 2): x, y in px; 0, 0 is the centre of the first pixel.
    xy_px: NDArray[np.float64]
    #: float64 (n,); NaN if not given.
    confidence: NDArray[np.float64]
    #: int64 (n,): ids of the points, their lines in a file.
    ids: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check that the arrays fit together."""
        n = len(self.ids)
        if self.xy_px.shape != (n, 2) or self.confidence.shape != (n,):
            raise ValueError(
                f"expected xy_px (n, 2), confidence (n,) and ids (n,), found shapes "
                f"{self.xy_px.shape}, {self.confidence.shape} and {self.ids.shape}"
            )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def all_have_confidence(self) -> bool:
        """Whether every point has a confidence."""
        return not bool(np.isnan(self.confidence).any())

    @classmethod
    def none(cls) -> Points:
        """Return no points."""
        return cls(np.zeros((0, 2)), np.zeros(0), np.zeros(0, np.int64))


@dataclass(frozen=True)
class InFile:
    """Which points of a file that holds many images are those of a frame."""

    #: The name of the image in such files, without its ending.
    name: str
    #: The category that is read; None for the usual one.
    category: str | None = None


@dataclass(frozen=True)
class Frame:
    """An image of a patient, with the file of its annotated points."""

    #: Unique in the cohort.
    name: str
    #: Which patient it belongs to.
    patient: str
    #: The image file, or None.
    image: Path | None
    #: The annotation, or None; such a frame can be viewed, not evaluated.
    reference: Path | None
    #: Micrometres per pixel along x and y from the cohort's description; None if the image states
    #: them.
    mpp_xy: tuple[float, float] | None = None
    #: How it is found in files that hold the points of many images; None for its name.
    in_file: InFile | None = None


@dataclass(frozen=True)
class ScoredFrame:
    """A frame whose nuclear atypia is scored 1, 2 or 3."""

    #: As in `Frame`; at another magnification, so with another name.
    name: str
    patient: str
    #: The file with its true score, or None.
    reference: Path | None
    #: Team -> its file.
    predictions: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class DetectionCohort(PatientCohort[Frame]):
    """Frames, teams, and which files hold which team's points."""

    #: A name for people, usually the folder's.
    name: str
    #: The folder it was found in.
    root: Path
    #: Sorted by patient and name.
    frames: tuple[Frame, ...]
    #: Sorted by name.
    teams: tuple[Team, ...]
    #: ``(team name, frame name)`` -> file. Missing pairs are absent.
    predictions: Mapping[tuple[str, str], Path]
    #: The frames whose atypia is scored.
    atypia: tuple[ScoredFrame, ...] = ()
    #: What was missing, extra or odd in the folder.
    findings: tuple[Finding, ...] = ()
    #: Where detections are expected in a folder of this layout, for messages:
    #: ``Teams/TEAM/REGION.csv``.
    prediction_places: tuple[str, ...] = ()
    #: Position of its frames in a viewer, if the user's layers define one.
    placement: Placement | None = None

    region_word = "frame"

    @property
    def all_regions(self) -> tuple[Frame, ...]:
        """Its frames."""
        return self.frames

    def input_files(self, teams: Container[str] | None = None) -> set[Path]:
        """Return every input file: images, annotations, and those of these teams, or of all."""
        found = [path for frame in self.frames for path in (frame.image, frame.reference)]
        of_teams = [(team, path) for (team, _), path in self.predictions.items()]
        for scored in self.atypia:
            found.append(scored.reference)
            of_teams += scored.predictions.items()
        found += [path for team, path in of_teams if teams is None or team in teams]
        return {path for path in found if path is not None}


def unique_ids(ids: NDArray[np.float64]) -> NDArray[np.int64]:
    """Replace ids of points that are missing or repeated by new ones.

    Parameters
    ----------
    ids
        float64 (n,): ids from 1; NaN where there is none.

    Returns
    -------
    int64 (n,): the first point with an id keeps it; new ids follow the largest.
    """
    result = np.zeros(len(ids), np.int64)
    following = int(np.nan_to_num(ids).max(initial=0)) + 1
    seen: set[int] = set()
    for row, value in enumerate(ids.tolist()):
        own = int(value) if value == value and value > 0 else 0
        if own == 0 or own in seen:
            own, following = following, following + 1
        seen.add(own)
        result[row] = own
    return result
