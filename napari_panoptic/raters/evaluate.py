"""Read and evaluate a cohort of several raters, for tables, report and window."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import MissingPackageError, PanopticError, UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.io.images.volumes import (
    Volume,
    check_fits,
    is_slide,
    read_mask,
    read_probabilities,
    read_slide,
    read_volume,
    same_place,
    shape_text,
)
from napari_panoptic.raters.levels import (
    MapComparison,
    MapReliability,
    RaterAgreement,
    Reference,
    agreement,
    compare,
    standing,
)
from napari_panoptic.raters.objects import ObjectAgreement, object_agreement
from napari_panoptic.raters.ranking import CASES, by_structure, by_team
from napari_panoptic.values.cohort import MaskFiles
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.raters import RatedCase, RatedCohort, RaterFile, RatersSettings

if TYPE_CHECKING:
    import pandas as pd

THERE, MISSING, UNREADABLE = "there", "missing", "unreadable"
"""States of a prediction; all but the first count as background."""


MOST_JOBS = 4
"""Default number of structures evaluated at a time: volumes are large."""


@dataclass(frozen=True, eq=False)
class LoadedReference:
    """The raters of one structure of one case."""

    #: The case and its structure.
    case: RatedCase
    structure: str
    #: Their masks.
    reference: Reference
    #: The first of their files with the most common size: its spacing and affine.
    place: Volume
    #: Their objects, in the order of the raters; None if the files contain masks.
    objects: tuple[LabelImage, ...] | None
    #: Problems found.
    findings: tuple[Finding, ...]

    @property
    def spacing_mm(self) -> tuple[float, ...] | None:
        """Distance of voxels along (y, x) or (z, y, x) in mm; None if unknown."""
        spacing = self.place.spacing_mm
        return spacing if spacing and len(spacing) == len(self.reference.shape) else None


@dataclass(frozen=True, eq=False)
class LoadedMap:
    """A team's probabilities."""

    #: Floating-point numbers of the reference's shape; zeros without a readable file.
    values: NDArray[np.floating]
    #: `THERE`, `MISSING` or `UNREADABLE`.
    state: str
    #: Problems found.
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class RatedResult:
    """The evaluation of one structure of one case."""

    #: The case and its structure.
    case: str
    structure: str
    #: Of the image: (y, x) or (z, y, x).
    shape: tuple[int, ...]
    spacing_mm: tuple[float, ...] | None
    #: The agreement of the raters.
    raters: RaterAgreement
    #: Their agreement on objects; None if the files contain masks.
    objects: ObjectAgreement | None
    #: Team -> state of its prediction, and the comparison.
    teams: Mapping[str, tuple[str, MapComparison]]
    #: Problems found.
    findings: tuple[Finding, ...]


@dataclass(frozen=True, eq=False)
class RatedEvaluation:
    """The evaluation of a cohort of several raters."""

    #: The cohort, with its settings.
    cohort: RatedCohort
    #: Names of the evaluated teams.
    teams: tuple[str, ...]
    #: Every structure of every case that could be evaluated.
    results: tuple[RatedResult, ...]
    #: Why the others could not.
    unread: tuple[Finding, ...] = ()

    @property
    def settings(self) -> RatersSettings:
        """The settings of the comparison."""
        return self.cohort.settings

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What was missing, odd or unreadable, each once."""
        own = (finding for result in self.results for finding in result.findings)
        return tuple(dict.fromkeys((*self.cohort.findings, *self.unread, *own)))

    @cached_property
    def cases(self) -> pd.DataFrame:
        """A row per team, structure and case, with the columns of `CASES`."""
        rows = [
            case_row(result, team, self.settings)
            for team in self.teams
            for structure in self.cohort.structures
            for result in self.of_structure(structure)
        ]
        return CASES.frame(rows)

    @cached_property
    def structures(self) -> pd.DataFrame:
        """A row per team and structure."""
        return by_structure(self.cases)

    @cached_property
    def ranking(self) -> pd.DataFrame:
        """A row per team, the best first."""
        return by_team(self.structures, self.cases)

    def of_structure(self, structure: str) -> list[RatedResult]:
        """Return the results of a structure, in the order of cases."""
        return [result for result in self.results if result.structure == structure]

    def reliability(self, team: str) -> MapReliability:
        """Return the calibration pooled over all predictions of a team."""
        found = [r.teams[team][1].reliability for r in self.results if r.teams[team][0] == THERE]
        return reduce(add, found, MapReliability.zero())


def case_row(result: RatedResult, team: str, settings: RatersSettings) -> dict[str, Any]:
    """Return a team's figures in one structure of one case, as `CASES` has them."""
    state, comparison = result.teams[team]
    left_out = comparison.left_out_score(settings)
    low, high = result.raters.spread
    return {
        "team": team,
        "structure": result.structure,
        "case": result.case,
        "prediction": state,
        "dice": comparison.score(settings),
        "left_out_dice": left_out,
        "raters_lowest": low,
        "raters_highest": high,
        "standing": str(standing(left_out, (low, high))),
        "brier": comparison.brier,
        "brier_least": comparison.brier_least,
        "raters": len(result.raters.raters),
    }


def evaluate_raters(
    cohort: RatedCohort,
    teams: tuple[str, ...] | None = None,
    *,
    jobs: int | None = None,
    progress: Progress = UNWATCHED,
) -> RatedEvaluation:
    """Evaluate all structures of all cases, several at a time.

    The result does not depend on the number of jobs.

    Parameters
    ----------
    cohort
        The cohort, with its settings.
    teams
        Names of the teams; all if None.
    jobs
        Structures at a time, each in a thread: decoding and counting release the
        GIL. By default one per processor, at most `MOST_JOBS`.
    progress
        Where to report the case of each structure when it and all before it are done.

    Raises
    ------
    MissingPackageError
        If a file needs a package that is not installed.
    """
    names = cohort.teams if teams is None else tuple(map(cohort.checked_team, teams))
    places = [(case, structure) for case in cohort.cases for structure in case.masks]
    results: list[RatedResult] = []
    unread: list[Finding] = []
    pool = ThreadPoolExecutor(jobs or min(os.cpu_count() or 1, MOST_JOBS))
    try:
        found = [pool.submit(_result, cohort, names, *place) for place in places]
        for number, ((case, _), future) in enumerate(zip(places, found, strict=True), 1):
            result = future.result()
            if isinstance(result, RatedResult):
                results.append(result)
            else:
                unread.append(result)
            progress.tell(number / len(places), case.name)
    finally:
        pool.shutdown(cancel_futures=True)
    return RatedEvaluation(cohort, names, tuple(results), tuple(unread))


def _result(
    cohort: RatedCohort, teams: tuple[str, ...], case: RatedCase, structure: str
) -> RatedResult | Finding:
    """Evaluate a structure of a case, or return why that is impossible."""
    try:
        return evaluate_structure(cohort, load_reference(cohort, case, structure), teams)
    except MissingPackageError:
        raise
    except PanopticError as error:
        return _unreadable(error, case.name, structure)


def evaluate_structure(
    cohort: RatedCohort, loaded: LoadedReference, teams: tuple[str, ...]
) -> RatedResult:
    """Evaluate the teams on one structure of one case."""
    compared, findings = {}, list(loaded.findings)
    for team in teams:
        own = load_map(cohort, team, loaded)
        compared[team] = (own.state, compare(loaded.reference, own.values, cohort.settings))
        findings.extend(own.findings)
    return RatedResult(
        case=loaded.case.name,
        structure=loaded.structure,
        shape=loaded.reference.shape,
        spacing_mm=loaded.spacing_mm,
        raters=agreement(loaded.reference, cohort.settings),
        objects=None if loaded.objects is None else object_agreement(loaded.objects),
        teams=compared,
        findings=tuple(findings),
    )


def load_reference(cohort: RatedCohort, case: RatedCase, structure: str) -> LoadedReference:
    """Read the raters' masks of a structure; unusable ones are left out and reported.

    A mask is unusable if it differs from the most common size; among equally common
    sizes, the first one counts.

    Raises
    ------
    UnreadableFileError
        If no rater's mask can be used.
    MissingPackageError
        If a mask needs a package that is not installed.
    """
    masks: list[NDArray[np.bool_]] = []
    raters, findings, objects = [], [], []
    read: dict[str, tuple[Volume, LabelImage | None]] = {}

    def leave_out(rater: str, error: PanopticError) -> None:
        then = f"rater {rater} is left out of the reference"
        findings.append(_unreadable(error, case.name, structure, then=then))

    for rater, file in case.masks[structure].items():
        try:
            read[rater] = _from_file(cohort, case, structure, file, read_mask, "a rater's mask")
        except MissingPackageError:  # figures must not depend on what is installed
            raise
        except PanopticError as error:
            leave_out(rater, error)
    place = _usual_place([volume for volume, _ in read.values()])
    if place is None:
        raise UnreadableFileError(
            f"no rater's mask of '{structure}' in case '{case.name}' can be used: it is not "
            f"evaluated. {findings[0].message if findings else ''}".strip(),
            path=next(iter(case.masks[structure].values())).path,
        )
    for rater, (volume, labels) in read.items():
        try:
            _check_shape(volume, place, f"the mask of rater {rater}")
        except PanopticError as error:
            leave_out(rater, error)
            continue
        findings.extend(_located(volume, place, case.name, structure))
        masks.append(volume.values)
        raters.append(rater)
        objects += [] if labels is None else [labels]
    return LoadedReference(
        case,
        structure,
        Reference(tuple(raters), np.stack(masks)),
        place,
        tuple(objects) or None,
        tuple(findings),
    )


def load_map(cohort: RatedCohort, team: str, loaded: LoadedReference) -> LoadedMap:
    """Read a team's probabilities; a missing or unusable file counts as background.

    The challenge treats missing results "as submissions with all labels set to
    background" (QUBIQ, structured description, "Ranking method(s)"). The cohort's
    findings report missing files once per team; unusable ones are reported here.

    Raises
    ------
    MissingPackageError
        If the file needs a package that is not installed.
    """
    case, structure, shape = loaded.case, loaded.structure, loaded.reference.shape
    background = np.broadcast_to(np.float32(0), shape)
    file = cohort.predictions.get((team, case.name, structure))
    if file is None:
        return LoadedMap(background, MISSING)
    try:
        volume, _ = _from_file(
            cohort, case, structure, file, read_probabilities, "a probability map"
        )
        _check_shape(volume, loaded.place, "the prediction")
    except MissingPackageError:
        raise
    except PanopticError as error:
        then = "it counts as background everywhere"
        found = _unreadable(error, case.name, structure, then=then, team=team)
        return LoadedMap(background, UNREADABLE, (found,))
    values = volume.values if file.objects is None else volume.values.astype(np.float32)
    findings = tuple(_located(volume, loaded.place, case.name, structure, team))
    return LoadedMap(values, THERE, findings)


@dataclass(frozen=True, eq=False)
class CaseImages:
    """The images of a case."""

    #: Modality -> (y, x) or (z, y, x), colours last.
    images: Mapping[str, NDArray[Any]]
    #: The pixel size of a slide along (y, x); None if unknown.
    spacing_mm: tuple[float, ...] | None
    #: Which images are not shown, and why.
    findings: tuple[Finding, ...]


def load_images(loaded: LoadedReference) -> CaseImages:
    """Read the images of a case.

    A file may contain several modalities along an axis beyond those of the masks;
    a slide must have their size at its full resolution. Images that cannot be read
    or do not fit are left out and reported.
    """
    found: dict[str, NDArray[Any]] = {}
    findings, spacings = [], []
    shape = loaded.reference.shape
    for modality, path in loaded.case.images.items():
        try:
            if is_slide(path):
                volume = read_slide(path, shape)
                spacings += [volume.spacing_mm] if volume.spacing_mm else []
            else:
                volume = read_volume(path, "an image")
            found |= _modalities(volume, modality, shape)
        except PanopticError as error:
            findings.append(_unreadable(error, loaded.case.name, "", then="it is not shown"))
    return CaseImages(found, spacings[0] if spacings else None, tuple(findings))


def _modalities(volume: Volume, modality: str, shape: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    values = volume.values
    spatial = values.shape[:-1] if volume.is_colour else values.shape
    if spatial != shape and not volume.is_colour and values.ndim == len(shape) + 1:
        for axis in (0, values.ndim - 1):
            planes = np.moveaxis(values, axis, 0)
            if planes.shape[1:] == shape:
                name = modality or "modality"
                return {f"{name} {number}": plane for number, plane in enumerate(planes, start=1)}
    check_fits(spatial, shape, volume.path)
    return {modality: values}


def _from_file(
    cohort: RatedCohort,
    case: RatedCase,
    structure: str,
    file: RaterFile,
    read: Callable[[Path, str], Volume],
    what: str,
) -> tuple[Volume, LabelImage | None]:
    """Read the pixels of a structure, and the objects of a file that has them."""
    if file.objects is None:
        return read(file.path, what), None
    labels, findings = _objects(cohort, case, file.objects)
    return Volume(_union(labels, structure), file.path, findings=findings), labels


def _objects(
    cohort: RatedCohort, case: RatedCase, files: MaskFiles
) -> tuple[LabelImage, tuple[Finding, ...]]:
    if cohort.scheme is None:
        raise UnreadableFileError("files of objects need [classes] in the cohort.toml")
    everybody = (own.objects for raters in case.masks.values() for own in raters.values())
    masks = [own for own in everybody if own is not None]
    shape = reference_shape(next(iter(case.images.values()), None), masks)
    loaded = load_masks(files, cohort.scheme, shape=shape, region=case.name)
    return loaded.labels, loaded.findings


def _union(labels: LabelImage, class_name: str) -> NDArray[np.bool_]:
    """Return the pixels of all objects of a class."""
    wanted = labels.class_names.index(class_name) + 1
    is_wanted = np.concatenate([[False], labels.class_index == wanted])
    union: NDArray[np.bool_] = is_wanted[labels.index]
    return union


def _usual_place(volumes: Sequence[Volume]) -> Volume | None:
    """Return the first volume with the most common shape; None without any."""
    shapes = Counter(volume.values.shape for volume in volumes)
    usual = next((shape for shape, _ in shapes.most_common(1)), None)
    return next((volume for volume in volumes if volume.values.shape == usual), None)


def _check_shape(volume: Volume, place: Volume, what: str) -> None:
    if volume.values.shape != place.values.shape:
        raise UnreadableFileError(
            f"{what} must have the size that most raters' masks have, "
            f"{shape_text(place.values.shape)}, found {shape_text(volume.values.shape)}; make sure "
            f"that it belongs to this case and was not resampled",
            path=volume.path,
        )


def _unreadable(
    error: PanopticError, case: str, structure: str, *, then: str = "", team: str | None = None
) -> Finding:
    place = f"'{error.path.name}': " if isinstance(error.path, Path) else ""
    of = f"case '{case}'" + (f", '{structure}'" if structure else "")
    whose = f", team '{team}'" if team else ""
    return Finding(
        FindingKind.UNREADABLE,
        f"{of}{whose}: {place}{error.message}{f'; {then}' if then else ''}",
        path=error.path,
        region=case,
        team=team,
        class_name=structure or None,
    )


def _located(
    volume: Volume, place: Volume, case: str, structure: str, team: str | None = None
) -> Iterator[Finding]:
    """Yield the problems found in a file, with its case, and whether its affine differs."""
    for finding in volume.findings:
        yield replace(finding, region=case, class_name=finding.class_name or structure, team=team)
    if not same_place(volume, place):
        yield Finding(
            FindingKind.FALLBACK,
            f"case '{case}', '{structure}': the affine of '{volume.path.name}' differs from that "
            f"of the first rater's mask that is used; voxels were compared by their place in the "
            f"array",
            path=volume.path,
            region=case,
            team=team,
            class_name=structure,
        )
