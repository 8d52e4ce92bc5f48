"""The parts of a cohort of several raters: cases, structures, raters and their files."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import english_list
from napari_panoptic.values.cohort import ClassScheme, FoundByName, MaskFiles

QUBIQ_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""The probabilities at which QUBIQ compares (its challenge design, "Metric(s)")."""


class AtLevel(StrEnum):
    """Whether a probability that equals a level reaches it."""

    AT_LEAST = "at-least"  # p >= level
    ABOVE = "above"  # p > level


class BothEmpty(StrEnum):
    """The Dice at a level that neither raters nor prediction reach."""

    ONE = "one"  # both agree that nothing is there
    UNDEFINED = "undefined"  # the level is left out of the average


@dataclass(frozen=True)
class RatersSettings:
    """How a probability map is compared with several raters.

    Raises
    ------
    SettingsError
        For invalid values.
    """

    #: Ascending, each above 0 and at most 1.
    levels: tuple[float, ...] = QUBIQ_LEVELS
    #: Whether a probability that equals a level reaches it.
    at_level: AtLevel = AtLevel.AT_LEAST
    #: The Dice if both sides are empty.
    both_empty: BothEmpty = BothEmpty.ONE

    def __post_init__(self) -> None:
        """Check the levels."""
        ascending = all(a < b for a, b in zip(self.levels, self.levels[1:], strict=False))
        if not self.levels or not ascending or not 0 < self.levels[0] <= self.levels[-1] <= 1:
            raise SettingsError(
                f"levels must be ascending numbers above 0 and at most 1, such as 0.1, 0.5, 0.9; "
                f"found {english_list(self.levels)}"
            )

    def as_record(self) -> dict[str, object]:
        """Return a plain dictionary, for JSON."""
        return {
            "levels": list(self.levels),
            "at_level": str(self.at_level),
            "both_empty": str(self.both_empty),
        }


@dataclass(frozen=True)
class RaterFile:
    """A file with a rater's mask, or a team's prediction."""

    #: The file.
    path: Path
    #: How it is read if it contains objects (label image, polygons), whose classes are the
    #: structures; None if it contains the mask or probability map of one structure.
    objects: MaskFiles | None = None


@dataclass(frozen=True)
class RatedCase:
    """One image annotated by several people."""

    #: Unique in the cohort.
    name: str
    #: Modality -> its file; the modality is empty if there is one image.
    images: Mapping[str, Path]
    #: Structure -> rater -> the file with the rater's mask of it. A file of objects is listed under
    #: each class that it may contain.
    masks: Mapping[str, Mapping[str, RaterFile]]

    @property
    def structures(self) -> tuple[str, ...]:
        """The annotated structures."""
        return tuple(self.masks)


@dataclass(frozen=True)
class RatedCohort(FoundByName[RatedCase]):
    """Cases with several raters, and the teams' predictions."""

    #: A name for people, usually the folder's.
    name: str
    #: The folder it was found in.
    root: Path
    #: Names, in order.
    structures: tuple[str, ...]
    raters: tuple[str, ...]
    teams: tuple[str, ...]
    #: Sorted by name.
    cases: tuple[RatedCase, ...]
    #: ``(team, case, structure)`` -> the file with the probability map, or with objects, whose
    #: union is a map of 0 and 1. Missing pairs are absent.
    predictions: Mapping[tuple[str, str, str], RaterFile]
    #: The classes of files of objects; None if there are only masks.
    scheme: ClassScheme | None = None
    #: How predictions are compared.
    settings: RatersSettings = field(default_factory=RatersSettings)
    #: What was missing, extra or odd in the folder.
    findings: tuple[Finding, ...] = ()

    region_word = "case"

    @property
    def all_regions(self) -> tuple[RatedCase, ...]:
        """Its cases."""
        return self.cases

    @property
    def team_names(self) -> tuple[str, ...]:
        """Names of the teams, in order."""
        return self.teams

    def input_files(self, teams: Container[str] | None = None) -> set[Path]:
        """Return every input file: images, the raters' masks, and files of these teams, or all."""
        of_structures = [masks for case in self.cases for masks in case.masks.values()]
        files = [file for masks in of_structures for file in masks.values()]
        for (team, _, _), file in self.predictions.items():
            files += [file] if teams is None or team in teams else []
        paths = {path for case in self.cases for path in case.images.values()}
        return paths.union(
            *((f.path,) if f.objects is None else f.objects.all_paths for f in files)
        )

    def cases_with(self, structure: str) -> tuple[RatedCase, ...]:
        """Return the cases in which a structure was annotated."""
        return tuple(case for case in self.cases if structure in case.masks)
