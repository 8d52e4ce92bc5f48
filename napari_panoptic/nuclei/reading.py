"""From the files of a cohort to evaluations, region by region.

The one place where reading and evaluating meet. The session shows one region
at a time, the command line and the navigator want all of them.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_panoptic.common.errors import (
    Finding,
    FindingKind,
    LabelError,
    PanopticError,
    UnreadableFileError,
    english_list,
)
from napari_panoptic.common.spreadsheets import inert_cells
from napari_panoptic.io.formats.format import LoadedMasks, TiledMasks
from napari_panoptic.io.formats.registry import known_forms, load_masks, open_masks, reference_shape
from napari_panoptic.io.images import ImageInfo, probe_image
from napari_panoptic.nuclei.challenge import (
    ChallengeEvaluation,
    ClassScore,
    challenge_counts,
    evaluate_challenge,
)
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.nuclei.metrics import Counts, Metrics, unit_metrics
from napari_panoptic.nuclei.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.nuclei.values.labels import LabelPair, size_text
from napari_panoptic.nuclei.values.settings import EvaluationSettings, Restoration, Scoring
from napari_panoptic.nuclei.window_run import Progress, StoppedError


@dataclass(frozen=True, eq=False)
class RegionSummary:
    """One region and team in a line, for the navigator.

    Parameters
    ----------
    region, team
        Names.
    counts
        Summed outcomes, or None where it could not be evaluated.
    metrics
        The figures, or None likewise.
    findings
        What stood in the way, or was odd.
    """

    region: str
    team: str
    counts: Counts | None
    metrics: Metrics | None
    findings: tuple[Finding, ...] = ()


Way = tuple[Restoration, int]
"""What decides how masks are restored: restoration and applied radius in px."""


def way_of(settings: EvaluationSettings) -> Way:
    """Return the way in which settings restore masks."""
    return settings.restoration, settings.dilation_radius


def choose_files(forms: Mapping[Source, MaskFiles], source: Source | None) -> MaskFiles | None:
    """Pick the form of a prediction to read: the one asked for, or the first there is."""
    if source is not None:
        return forms.get(source)
    usual = preferred_form(forms)
    return None if usual is None else forms[usual]


def preferred_form(there: Container[Source]) -> Source | None:
    """Return which form of a prediction is read where several are there and none is asked for."""
    return next((f.source for f in known_forms().values() if f.source in there), None)


HELD_UP_TO_PX = 2**28
"""Regions of more pixels are evaluated in windows: their label images and what is computed from
them take about 16 bytes a pixel, 4 GiB here."""


class TooLargeError(PanopticError):
    """A region has more pixels than are to be held."""


@dataclass(frozen=True)
class RegionSize:
    """What is known of a region's image without its pixels.

    Parameters
    ----------
    shape, mpp
        Size in px, and micrometres per pixel or None.
    findings
        What was odd.
    """

    shape: tuple[int, int]
    mpp: float | None
    findings: tuple[Finding, ...]


def region_size(cohort: Cohort, region: Region) -> RegionSize:
    """Find out how large a region is, from its image or else its masks.

    Raises
    ------
    PanopticError
        Where no file tells that.
    """
    info, findings = _probe(region)
    if info is None:
        return RegionSize(_shape_from_masks(cohort, region), None, findings)
    return RegionSize(info.shape, info.mpp, findings)


@dataclass(frozen=True, eq=False)
class ReferenceMasks:
    """The annotation of a region, and what is known of its image.

    Parameters
    ----------
    shape, mpp
        Size in px, and micrometres per pixel or None.
    masks
        The annotated objects, or None where there are none to be had.
    findings
        What was odd.
    """

    shape: tuple[int, int]
    mpp: float | None
    masks: LoadedMasks | None
    findings: tuple[Finding, ...]

    @property
    def is_restorable(self) -> bool:
        """Whether the form of the annotation needs restoration."""
        return self.masks is not None and self.masks.restored is not None

    def restored(self, way: Way) -> ReferenceMasks:
        """Recover the objects anew, without reading; the same where there is nothing to restore."""
        masks = self.masks
        if masks is None or masks.restored is None:
            return self
        restored = masks.restored(*way)
        others = tuple(f for f in self.findings if f not in masks.findings)
        return replace(self, masks=restored, findings=(*others, *restored.findings))


def load_reference(
    cohort: Cohort,
    region: Region,
    settings: EvaluationSettings,
    *,
    held_up_to_px: int | None = None,
) -> ReferenceMasks:
    """Read a region's size and annotation, without its pixels.

    Parameters
    ----------
    cohort, region
        What to read.
    settings
        How objects are recovered from colour-coded masks.
    held_up_to_px
        How many pixels the region may have; None for any number.

    Raises
    ------
    TooLargeError
        Where it has more.
    PanopticError
        Where not even the size of the region can be found out.
    """
    size = region_size(cohort, region)
    shape, findings = size.shape, size.findings
    if held_up_to_px is not None and shape[0] * shape[1] > held_up_to_px:
        raise TooLargeError(
            f"region {region.name} of {size_text(shape)} is too large to be held",
            region=region.name,
        )
    masks: LoadedMasks | None = None
    if region.reference is not None:
        try:
            loaded = load_masks(
                region.reference,
                cohort.scheme,
                shape=shape,
                restoration=settings.restoration,
                radius=settings.radius,
                region=region.name,
            )
            findings += check_magnification(loaded.magnification, region, None)
            masks, findings = loaded, (*findings, *loaded.findings)
        except (PanopticError, OSError) as error:
            findings += (unreadable(error, region=region.name),)
    return ReferenceMasks(shape=shape, mpp=size.mpp, masks=masks, findings=findings)


def load_prediction(
    cohort: Cohort,
    region: Region,
    team: str,
    shape: tuple[int, int],
    settings: EvaluationSettings,
    source: Source | None,
) -> tuple[LoadedMasks | None, tuple[Finding, ...]]:
    """Read one team's objects of one region; None with a finding where that fails."""
    files = choose_files(cohort.predictions.get((team, region.name), {}), source)
    if files is None:
        return None, (no_prediction(region, team, source),)
    masks, findings = read_prediction(cohort, region, team, files, shape, settings)
    if masks is None:
        return None, findings
    return masks, (*findings, *unusual_form(cohort, region, team, files, source))


def read_prediction(
    cohort: Cohort,
    region: Region,
    team: str,
    files: MaskFiles,
    shape: tuple[int, int],
    settings: EvaluationSettings,
) -> tuple[LoadedMasks | None, tuple[Finding, ...]]:
    """Read one team's objects from the files of one form; None with a finding where that fails."""
    try:
        masks = load_masks(
            files,
            cohort.scheme,
            shape=shape,
            restoration=settings.restoration,
            radius=settings.radius,
            region=region.name,
            team=team,
        )
        found = check_magnification(masks.magnification, region, team)
    except (PanopticError, OSError) as error:
        return None, (unreadable(error, region=region.name, team=team),)
    return masks, (*masks.findings, *found)


SAME_MAGNIFICATION = math.sqrt(2)
"""Magnifications that differ by less are the same: scanners of 40x have from 0.2 to 0.3 um/px."""
UM_PER_PX_AT_1X = 10.0


def check_magnification(
    stated: float | None, region: Region, team: str | None
) -> tuple[Finding, ...]:
    """Make sure that px of a stated magnification are px of a region's image.

    Parameters
    ----------
    stated
        What the file of the objects says; None where it says nothing.
    region, team
        Where they are, and whose; None for the annotation.

    Returns
    -------
    tuple of Finding
        That it cannot be told, where that of the image is not known.

    Raises
    ------
    UnreadableFileError
        Where the image has another one: all objects would be misplaced.
    """
    if stated is None:
        return ()
    info, _ = _probe(region)
    if info is None or info.mpp is None:
        message = (
            f"the outlines are in px at a magnification of {stated:g}; that of the image is not "
            f"known: they were taken for px of the image"
        )
        return (Finding(FindingKind.FALLBACK, message, region=region.name, team=team),)
    of_image = UM_PER_PX_AT_1X / info.mpp
    if 1 / SAME_MAGNIFICATION < stated / of_image < SAME_MAGNIFICATION:
        return ()
    raise UnreadableFileError(
        f"the outlines are in px at a magnification of {stated:g}, and the image has about "
        f"{of_image:.0f} ({info.mpp:g} um/px): they would all be misplaced. Multiply their "
        f"coordinates by {of_image / stated:.2f} and the magnification likewise, process the image "
        f"at its own magnification, or give the image at that of the outlines",
        region=region.name,
    )


def no_prediction(region: Region, team: str, source: Source | None) -> Finding:
    """Describe that a team has nothing there in the form that is asked for."""
    form = f" in the form '{source}'" if source is not None else ""
    message = f"team '{team}' has no prediction{form} for region {region.name}: not evaluated"
    return Finding(FindingKind.MISSING, message, region=region.name, team=team)


def unusual_form(
    cohort: Cohort, region: Region, team: str, files: MaskFiles, source: Source | None
) -> tuple[Finding, ...]:
    """Say so where a team's figures would mix two forms of its predictions."""
    everywhere = [forms for (name, _), forms in cohort.predictions.items() if name == team]
    usual = preferred_form({form for forms in everywhere for form in forms})
    if source is not None or files.source == usual:
        return ()
    message = (
        f"team '{team}' has no {usual} prediction for region {region.name}: "
        f"its {files.source} prediction is used instead"
    )
    return (Finding(FindingKind.FALLBACK, message, region=region.name, team=team),)


def _shape_from_masks(cohort: Cohort, region: Region) -> tuple[int, int]:
    """Find out how large a region without a readable image is."""
    masks = [region.reference] if region.reference is not None else []
    for (_, name), forms in cohort.predictions.items():
        masks.extend(forms.values() if name == region.name else ())
    shape = reference_shape(None, masks)
    if shape is None:
        problem, remedy = "the image cannot be read", "put a readable image there"
        if region.image is None:
            problem = "there is no image"
        elif not region.image.exists():
            problem, remedy = "the image is not there any more", "put it back"
        raise UnreadableFileError(
            f"{problem}, and no mask of this region tells how large it is: {remedy}, or a mask of "
            "the same size",
            path=region.image,
            region=region.name,
        )
    return shape


def _probe(region: Region) -> tuple[ImageInfo | None, tuple[Finding, ...]]:
    if region.image is None:
        return None, ()
    try:
        info = probe_image(region.image, region.image_item)
    except (UnreadableFileError, OSError) as error:
        return None, (unreadable(error, region=region.name),)
    return info, tuple(replace(finding, region=region.name) for finding in info.findings)


@dataclass(frozen=True, eq=False)
class OpenedMasks:
    """The objects of one side of a slide as they were opened.

    Parameters
    ----------
    masks
        Its objects, or None where they cannot be read.
    findings
        What was odd.
    """

    masks: TiledMasks | None
    findings: tuple[Finding, ...] = ()


def open_side(
    cohort: Cohort,
    region: Region,
    shape: tuple[int, int],
    files: MaskFiles,
    team: str | None,
    *,
    is_wanted: Callable[[], bool],
    progress: Progress | None,
) -> OpenedMasks:
    """Open one side of a slide, of which only windows will be read.

    Parameters
    ----------
    cohort, region, shape
        The slide, and its height and width in px.
    files
        The files of the side.
    team
        Whose prediction it is; None for the annotation.
    is_wanted
        Asked while the files are read.
    progress
        Told how much of them was read; None where nobody listens.

    Raises
    ------
    StoppedError
        Where ``is_wanted`` says no. What cannot be read is a finding.
    """
    saying = "opening the annotation" if team is None else f"opening masks of {team}"

    def tell(done: int, of: int) -> None:
        if not is_wanted():
            raise StoppedError("the evaluation was stopped before it was done")
        if progress is not None:
            progress(done / max(of, 1), saying)

    try:
        masks = open_masks(
            files, cohort.scheme, shape, region=region.name, team=team, progress=tell
        )
        found = check_magnification(masks.magnification, region, team)
    except StoppedError:
        raise
    except (PanopticError, OSError) as error:
        return OpenedMasks(None, (unreadable(error, region=region.name, team=team),))
    return OpenedMasks(masks, (*masks.findings, *found))


def findings_after(
    masks: TiledMasks, has_pixel: NDArray[np.bool_], region: Region, team: str | None
) -> tuple[Finding, ...]:
    """Return what only shows when all windows of a side have been read.

    Parameters
    ----------
    masks
        The objects.
    has_pixel
        bool (n,): which of them turned out to have a pixel.
    region, team
        Where they are, and whose; None for the annotation.

    Returns
    -------
    tuple of Finding
        What the file's form finds, or else the objects without a pixel; empty
        where there are none.
    """
    if masks.findings_after is not None:
        return masks.findings_after(has_pixel)
    ids = tuple(masks.labels.ids[~has_pixel].tolist())
    if not ids:
        return ()
    message = (
        f"{len(ids)} object(s) without a pixel of their own, outside the image, covered by "
        f"others or with no inner pixel: {english_list(ids)}"
    )
    return (
        Finding(
            FindingKind.VANISHED,
            message,
            region=region.name,
            team=team,
            count=len(ids),
            object_ids=ids,
        ),
    )


def not_in_windows(region: Region, team: str, what: str) -> Finding:
    """Describe that a team was left out, since something asked for needs the region as a whole."""
    message = (
        f"region {region.name} is too large to be held, and {what} is not possible for a region "
        f"that is read in windows: not evaluated for team '{team}'"
    )
    return Finding(FindingKind.UNREADABLE, message, region=region.name, team=team)


def unreadable(
    error: PanopticError | OSError, *, region: str | None = None, team: str | None = None
) -> Finding:
    """Make a finding of an error that stood in the way of one region or team.

    An ``OSError`` comes from a file that changes while it is being read.
    """
    if isinstance(error, OSError):
        path = None if error.filename is None else Path(os.fsdecode(error.filename))
        reason = error.strerror or str(error)
        error = UnreadableFileError(
            f"the file was there and cannot be read any more ({reason}); put it back and "
            f"evaluate again",
            path=path,
        )
    return Finding(FindingKind.UNREADABLE, str(error), path=error.path, region=region, team=team)


@dataclass(frozen=True, eq=False)
class RegionResult:
    """One team's outcomes in one region, without the pixels behind them.

    Parameters
    ----------
    team, patient, region
        Names.
    objects
        One row per object, columns ``OBJECT_COLUMNS``; None where the region
        could not be evaluated.
    counts
        Their sums, as the scoring counts them; None likewise.
    scores
        Class -> the challenge's view of it; only under challenge scoring.
    findings
        What was odd or stood in the way.
    rows
        The objects' rows in a file, where they are too many to hold and
        ``objects`` is None therefore.
    """

    team: str
    patient: str
    region: str
    objects: pd.DataFrame | None
    counts: Counts | None
    scores: Mapping[str, ClassScore] | None = None
    findings: tuple[Finding, ...] = ()
    rows: RowsFile | None = None

    def without_objects(self) -> RegionResult:
        """Return a copy that keeps sums and findings, and nothing that grows with the objects."""
        scores = self.scores
        if scores is not None:
            scores = {name: score.without_ids() for name, score in scores.items()}
        return replace(self, objects=None, rows=None, scores=scores)


@dataclass(frozen=True)
class RowsFile:
    """Rows of objects as they stand in ``objects.csv``, without its header.

    Parameters
    ----------
    path
        The file.
    sha256
        Of its content, by which these rows are known.
    """

    path: Path
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        """Note a file that has been written.

        Raises
        ------
        OSError
            Where it cannot be read.
        """
        with path.open("rb") as file:
            return cls(path, hashlib.file_digest(file, "sha256").hexdigest())


PLACE_COLUMNS = ("team", "patient", "region")
"""The columns of ``objects.csv`` that say where an object is; the others follow."""


def placed(objects: pd.DataFrame, result: RegionResult) -> pd.DataFrame:
    """Return rows of objects with the names of where they are before the other columns."""
    frame = objects.copy()
    for position, name in enumerate(PLACE_COLUMNS):
        frame.insert(position, name, getattr(result, name))
    return frame


def write_rows(file: IO[str], objects: pd.DataFrame, result: RegionResult) -> None:
    """Write rows of objects of a region as ``objects.csv`` has them, without its header."""
    if not objects.empty:
        rows = inert_cells(placed(objects, result))
        rows.to_csv(file, index=False, header=False, lineterminator="\n")


def evaluate_region(
    cohort: Cohort,
    region: Region,
    team_names: Sequence[str],
    settings: EvaluationSettings,
    source: Source | None,
) -> list[RegionResult]:
    """Evaluate several teams on one region; what cannot be read becomes a finding."""
    try:
        reference = load_reference(cohort, region, settings)
    except (PanopticError, OSError) as error:
        return unreadable_region(region, team_names, error)
    return [
        _evaluate_team(cohort, region, reference, team, settings, source) for team in team_names
    ]


def unreadable_region(
    region: Region, team_names: Sequence[str], error: PanopticError | OSError
) -> list[RegionResult]:
    """Return the results of teams on a region of which not even the size can be found out."""
    finding = unreadable(error, region=region.name)
    return [
        RegionResult(team, region.patient, region.name, None, None, findings=(finding,))
        for team in team_names
    ]


def _evaluate_team(
    cohort: Cohort,
    region: Region,
    reference: ReferenceMasks,
    team: str,
    settings: EvaluationSettings,
    source: Source | None,
) -> RegionResult:
    masks, found = load_prediction(cohort, region, team, reference.shape, settings, source)
    result = RegionResult(
        team, region.patient, region.name, None, None, findings=(*reference.findings, *found)
    )
    if masks is None or reference.masks is None:
        return result
    pair = LabelPair(reference.masks.labels, masks.labels, reference.masks.ambiguous, reference.mpp)
    if settings.scoring is Scoring.CHALLENGE:
        return with_figures(result, evaluate_challenge(pair, settings), settings)
    try:
        evaluation = evaluate(pair, settings)
    except LabelError as error:
        problem = unreadable(error, region=region.name, team=team)
        return replace(result, findings=(*result.findings, problem))
    shared = shared_pixel_findings(evaluation, region.name, team)
    result = replace(result, findings=(*result.findings, *shared))
    return with_figures(result, evaluation, settings)


def shared_pixel_findings(
    evaluation: Evaluation | ChallengeEvaluation, region: str, team: str
) -> tuple[Finding, ...]:
    """Describe which objects share pixels with others of their side, where overlaps are kept."""
    if not isinstance(evaluation, Evaluation) or not evaluation.pair.has_planes:
        return ()
    findings = []
    for labels, name, owner in (
        (evaluation.pair.reference, "annotated", None),
        (evaluation.pair.prediction, "predicted", team),
    ):
        ids = tuple(labels.ids[labels.overlapping_rows()].tolist())
        if ids:
            message = (
                f"{len(ids)} of {len(labels)} {name} objects share pixels with others of their "
                f"side, and keep them"
            )
            findings.append(
                Finding(
                    FindingKind.OVERLAPPING,
                    message,
                    region=region,
                    team=owner,
                    count=len(ids),
                    object_ids=ids,
                )
            )
    return tuple(findings)


def with_figures(
    result: RegionResult,
    evaluation: Evaluation | ChallengeEvaluation,
    settings: EvaluationSettings,
    *,
    with_objects: bool = True,
) -> RegionResult:
    """Put what came of a label pair into a result that has names and findings only.

    Parameters
    ----------
    result
        Not changed.
    evaluation
        Of that team and region, under ``settings``.
    settings
        The corrections among them decide how a challenge evaluation is summed.
    with_objects
        Whether the rows of the objects are wanted; they take longer than the sums.
    """
    if isinstance(evaluation, Evaluation):
        objects = evaluation.objects if with_objects else None
        return replace(result, objects=objects, counts=evaluation.counts)
    return replace(
        result,
        objects=_challenge_objects(evaluation) if with_objects else None,
        counts=challenge_counts(evaluation.scores, settings.corrections),
        scores=evaluation.scores,
    )


def _challenge_objects(challenge: ChallengeEvaluation) -> pd.DataFrame:
    frames = [evaluation.objects for evaluation in challenge.evaluations.values()]
    objects = pd.concat(frames, ignore_index=True)
    return objects.sort_values(["side", "id"], ascending=[False, True], ignore_index=True)


def evaluate_cohort_summary(
    cohort: Cohort,
    settings: EvaluationSettings,
    *,
    source: Source | None = None,
    team_names: tuple[str, ...] | None = None,
    held_up_to_px: int = HELD_UP_TO_PX,
) -> Iterator[RegionSummary]:
    """Evaluate the whole cohort in lines, region by region, without distances.

    Parameters
    ----------
    cohort, settings
        What to evaluate, and how.
    source
        Which form of the predictions; None for the usual one.
    team_names
        Which teams; all where None.
    held_up_to_px
        Regions of more pixels are not read: their lines have a finding and no counts.
    """
    quick = settings.replaced(distances=False)
    teams = tuple(team.name for team in cohort.teams) if team_names is None else team_names
    for region in cohort.regions:
        try:
            reference = load_reference(cohort, region, quick, held_up_to_px=held_up_to_px)
        except (PanopticError, OSError) as error:
            finding = unreadable(error, region=region.name)
            if isinstance(error, TooLargeError):
                message = f"{error.message}: it is evaluated when it is looked at"
                finding = replace(finding, message=message)
            for team in teams:
                yield RegionSummary(region.name, team, None, None, (finding,))
            continue
        for team in teams:
            masks, found = load_prediction(cohort, region, team, reference.shape, quick, source)
            if masks is None or reference.masks is None:
                yield RegionSummary(region.name, team, None, None, found)
                continue
            pair = LabelPair(
                reference.masks.labels, masks.labels, reference.masks.ambiguous, reference.mpp
            )
            try:
                counts = evaluate(pair, quick).counts
            except LabelError as error:
                problem = unreadable(error, region=region.name, team=team)
                yield RegionSummary(region.name, team, None, None, (*found, problem))
                continue
            yield RegionSummary(region.name, team, counts, unit_metrics(counts), found)
