"""What a cohort of detections is made of: frames, points, atypia scores, and who has which file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.errors import Finding
from napari_panoptic.regions import FoundByName, Team


@dataclass(frozen=True, eq=False)
class Points:
    """Places in an image, such as the centroids of mitoses.

    Parameters
    ----------
    xy_px
        float64 (n, 2): x, y in px of the image; 0, 0 is the centre of its
        first pixel.
    confidence
        float64 (n,); NaN where none is given.
    ids
        int64 (n,): numbers by which points are found again: their lines in a
        file.
    """

    xy_px: NDArray[np.float64]
    confidence: NDArray[np.float64]
    ids: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check that the arrays go together."""
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
        """Whether every point says how sure it is."""
        return not bool(np.isnan(self.confidence).any())

    @classmethod
    def none(cls) -> Points:
        """Give no points."""
        return cls(np.zeros((0, 2)), np.zeros(0), np.zeros(0, np.int64))


@dataclass(frozen=True)
class Frame:
    """An image of a patient, and where its points were annotated.

    Parameters
    ----------
    name
        Unique in the cohort.
    patient
        Which patient it belongs to.
    image
        The image file, or None where there is none.
    reference
        The annotation, or None: such a frame can be looked at, not evaluated.
    mpp_xy
        Micrometres per pixel along x and y, as the cohort's description says;
        None where the image has to.
    """

    name: str
    patient: str
    image: Path | None
    reference: Path | None
    mpp_xy: tuple[float, float] | None = None


@dataclass(frozen=True)
class ScoredFrame:
    """A frame whose nuclear atypia is scored 1, 2 or 3.

    Parameters
    ----------
    name, patient
        As of a `Frame`; of another magnification, so of another name.
    reference
        The file with its true score, or None.
    predictions
        Team -> its file.
    """

    name: str
    patient: str
    reference: Path | None
    predictions: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class DetectionCohort(FoundByName[Frame]):
    """Frames, teams, and which files hold which team's points.

    Parameters
    ----------
    name
        A name for people, usually the folder's.
    root
        The folder it was found in.
    frames
        Sorted by patient and name.
    teams
        Sorted by name.
    predictions
        ``(team name, frame name)`` -> file. Missing pairs are absent.
    atypia
        The frames whose atypia is scored; empty where none is.
    findings
        What was missing, extra or odd in the folder.
    """

    name: str
    root: Path
    frames: tuple[Frame, ...]
    teams: tuple[Team, ...]
    predictions: Mapping[tuple[str, str], Path]
    atypia: tuple[ScoredFrame, ...] = ()
    findings: tuple[Finding, ...] = ()

    region_word = "frame"

    @property
    def all_regions(self) -> tuple[Frame, ...]:
        """Its frames."""
        return self.frames

    @property
    def patients(self) -> tuple[str, ...]:
        """Patient ids, in order, each once."""
        return tuple(dict.fromkeys(frame.patient for frame in self.frames))

    @property
    def team_names(self) -> tuple[str, ...]:
        """Names of the teams, in order."""
        return tuple(team.name for team in self.teams)

    @property
    def files(self) -> frozenset[Path]:
        """Every file of the cohort, resolved: none of them is ever to be written over."""
        paths = {path for f in self.frames for path in (f.image, f.reference) if path is not None}
        paths.update(self.predictions.values())
        for scored in self.atypia:
            paths.update(scored.predictions.values())
            paths.update([] if scored.reference is None else [scored.reference])
        return frozenset(path.resolve() for path in paths)
