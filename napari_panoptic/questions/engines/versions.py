"""An old and a new version of predictions: what changed, how certainly, and for which objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.tables.evaluation import EvaluationTables
from napari_panoptic.nuclei.averages import RegionCounts, summarise_team
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import METRIC_NAMES, Counts
from napari_panoptic.nuclei.regions.cohort_evaluation import LOWER_IS_BETTER
from napari_panoptic.nuclei.regions.experiment import region_result
from napari_panoptic.nuclei.regions.region import Evaluated
from napari_panoptic.nuclei.regions.results import (
    RegionResult,
    counts_of_rows,
)
from napari_panoptic.questions.engines.quality_change import QualityChange, quality_change
from napari_panoptic.questions.engines.version_diff import (
    IOU_STEP,
    VersionDiff,
    disc_pairs,
    joined_pairs,
    pair_rows,
    pixel_pairs,
    version_diff,
)
from napari_panoptic.statistics.differences import (
    Conclusion,
    Decision,
    PairedDifference,
    decide,
    paired_differences,
)
from napari_panoptic.values.cohort import Region
from napari_panoptic.values.conventions import DEFAULT_PROTOCOL, corrections_of
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.windowed_labels import TiledPair

if TYPE_CHECKING:
    import pandas as pd

MARGIN = 0.01
"""By how much a new version may be worse, unless the user says otherwise."""

_NO_OBJECTS = (
    "versions are compared object by object, which the challenge's scoring does not do: choose "
    "another protocol"
)

_IN_THE_WAY = (FindingKind.MISSING, FindingKind.UNREADABLE)

Place = tuple[str, str]


class Pairing(StrEnum):
    """How FPs of the two versions were recognised as the same object."""

    PIXELS = "pixels"  # IoU of their pixels above 0.5
    DISCS = "discs"  # IoU above 0.5 of discs of their areas at their centroids
    MIXED = "pixels, and discs in regions that are read in windows"


@dataclass(frozen=True, eq=False)
class Version:
    """The objects and counts of one version."""

    #: Name of the version.
    name: str
    #: One row per object: patient, region and `OBJECT_COLUMNS`.
    objects: pd.DataFrame
    #: The counts of every region that was evaluated, also of those without objects.
    regions: Sequence[RegionCounts]


@dataclass(frozen=True, eq=False)
class VersionComparison:
    """An old and a new version compared."""

    #: Object by object.
    diff: VersionDiff
    #: The change of PQ, split into parts.
    change: QualityChange
    #: The difference of every metric, paired by patient; Holm's correction is over these.
    metrics: tuple[PairedDifference, ...]
    #: The difference of the PQ of every class, likewise.
    classes: tuple[PairedDifference, ...]
    #: The metric that decides.
    metric: str
    #: The verdict.
    decision: Decision
    #: Number of regions that were compared.
    regions: int
    #: Regions that were evaluated for one version only, and are left out.
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    #: How FPs were recognised.
    pairing: Pairing
    #: What was missing, odd or unreadable.
    findings: tuple[Finding, ...] = ()

    @property
    def deciding(self) -> PairedDifference:
        """The difference of the metric that decides."""
        return next(one for one in self.metrics if one.name == self.metric)


def check_metric(name: str, margin: float) -> None:
    """Check the metric and the margin of a comparison.

    Raises
    ------
    SettingsError
        For an unknown metric, or a margin below 0.
    """
    if name not in METRIC_NAMES:
        raise SettingsError(f"metric must be one of {english_list(METRIC_NAMES)}, found '{name}'")
    if not 0 <= margin < float("inf"):
        raise SettingsError(f"margin must be a number from 0, found {margin:g}")


def check_scoring(settings: EvaluationSettings) -> None:
    """Check that settings have an outcome for each object.

    Raises
    ------
    SettingsError
        For the challenge's scoring.
    """
    if settings.takes_class_masks:
        raise SettingsError(_NO_OBJECTS)


def compare_versions(
    old: Version,
    new: Version,
    class_names: Sequence[str],
    *,
    metric: str = "pq",
    margin: float = MARGIN,
    iou_step: float = IOU_STEP,
    same_fps: pd.DataFrame | None = None,
    pairing: Pairing = Pairing.DISCS,
    findings: Sequence[Finding] = (),
) -> VersionComparison:
    """Compare two versions over the regions that both have been evaluated in.

    A verdict of not-worse becomes undecided if regions were evaluated for the old version
    only: a version that fails on difficult images must not pass by that.

    Parameters
    ----------
    old, new
        The versions, evaluated with the same settings.
    class_names
        The scored classes, in order.
    metric, margin
        The metric that decides, and by how much it may be worse.
    iou_step
        See `version_diff`.
    same_fps, pairing
        FPs that are one object in both versions, and how they were recognised; None to
        pair them without pixels.
    findings
        What was odd in the inputs.

    Raises
    ------
    SettingsError
        For an unknown metric, or a negative margin.
    PanopticError
        If no region was evaluated for both, or the annotations differ.
    """
    check_metric(metric, margin)
    places = [{(one.patient, one.region) for one in version.regions} for version in (old, new)]
    common = places[0] & places[1]
    if not common:
        reasons = [one.message for one in findings if one.kind in _IN_THE_WAY]
        why = f" ({reasons[0]})" if reasons else ""
        raise PanopticError(
            f"expected regions that both versions were evaluated in, found none{why}; evaluate "
            "both on the same cohort"
        )
    only_old, only_new = (tuple(sorted(own - common)) for own in places)
    old, new = _within(old, common), _within(new, common)
    diff = version_diff(
        old.objects,
        new.objects,
        names=(old.name, new.name),
        same_fps=same_fps,
        iou_step=iou_step,
    )
    classes = tuple(class_names)
    summaries = [
        summarise_team([(one.patient, one.counts) for one in version.regions], classes)
        for version in (old, new)
    ]
    patients = list(summaries[0].patients)
    by_metric = [
        [[own[name] for name in METRIC_NAMES] for own in team.metrics.values()]
        for team in summaries
    ]
    metrics = paired_differences(
        _defined(METRIC_NAMES, by_metric, keep=metric), patients, lower_is_better=LOWER_IS_BETTER
    )
    pq_by_class = [
        [own.figures_by_class["pq"].tolist() for own in team.patients.values()]
        for team in summaries
    ]
    by_class = paired_differences(_defined(classes, pq_by_class), patients)
    decision = decide(next(one for one in metrics if one.name == metric), margin)
    if only_old and decision.verdict is Conclusion.NOT_WORSE:
        decision = replace(
            decision,
            verdict=Conclusion.UNDECIDED,
            reason=f"{decision.reason}, but {counted(len(only_old), 'region')} could be "
            f"evaluated for {old.name} only",
        )
    return VersionComparison(
        diff=diff,
        change=quality_change(diff, classes),
        metrics=metrics,
        classes=by_class,
        metric=metric,
        decision=decision,
        regions=len(common),
        only_old=tuple(region for _, region in only_old),
        only_new=tuple(region for _, region in only_new),
        pairing=pairing,
        findings=(*findings, *_left_out(only_old, old.name), *_left_out(only_new, new.name)),
    )


def _within(version: Version, places: set[Place]) -> Version:
    import pandas as pd

    kept = [one for one in version.regions if (one.patient, one.region) in places]
    if len(kept) == len(version.regions):
        return version
    own = pd.MultiIndex.from_frame(version.objects[["patient", "region"]])
    objects = version.objects[own.isin(list(places))].reset_index(drop=True)
    return replace(version, objects=objects, regions=kept)


def _defined(
    names: Sequence[str], figures: Sequence[Sequence[Sequence[float]]], keep: str = ""
) -> dict[str, tuple[Sequence[float], Sequence[float]]]:
    """Return the old and the new figure of each patient by name.

    Figures that no patient has are left out, such as distances that were not measured.

    Parameters
    ----------
    names
        Of the figures.
    figures
        Of both versions, each (patients, names).
    keep
        The name of a figure that is not left out.
    """
    old, new = (zip(*of_version, strict=True) for of_version in figures)
    return {
        name: both
        for name, both in zip(names, zip(old, new, strict=True), strict=True)
        if name == keep or not np.isnan(both).all()
    }


def _left_out(places: Sequence[Place], name: str) -> tuple[Finding, ...]:
    if not places:
        return ()
    regions = [region for _, region in places]
    message = (
        f"{counted(len(regions), 'region')} evaluated for '{name}' only, left out of the "
        f"comparison: {english_list(regions[:5])}"
    )
    return (Finding(FindingKind.MISSING, message, team=name, count=len(regions)),)


# --- from the files of a cohort ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ComparedRegion:
    """A region with an old and a new version."""

    #: The results of both.
    old: RegionResult
    new: RegionResult
    #: The ids of FPs that both have, recognised by their pixels; None if the region is read in
    #: windows, or evaluated for one version only.
    same_fps: tuple[NDArray[np.int64], NDArray[np.int64]] | None

    @classmethod
    def of(
        cls,
        region: Region,
        old: tuple[str, Evaluated[Any]],
        new: tuple[str, Evaluated[Any]],
        settings: EvaluationSettings,
    ) -> ComparedRegion:
        """Return a region, given the name and evaluation of both versions, and how they were made.

        Both are against the same reference, not under edit.
        """
        first, second = (region_result(region, *version, settings) for version in (old, new))
        before, after = old[1].evaluation, new[1].evaluation
        if before is None or after is None or isinstance(before.pair, TiledPair):
            return cls(first, second, None)
        return cls(first, second, pixel_pairs(before, after))


def compare_regions(
    regions: Sequence[ComparedRegion],
    names: tuple[str, str],
    class_names: Sequence[str],
    *,
    metric: str = "pq",
    margin: float = MARGIN,
    iou_step: float = IOU_STEP,
    findings: Sequence[Finding] = (),
) -> VersionComparison:
    """Compare two versions over regions.

    FPs in regions that were read in windows are paired as discs.

    Parameters
    ----------
    regions, names, class_names
        The regions, the names of both versions, and the scored classes in order.
    metric, margin, iou_step, findings
        See `compare_versions`.

    Raises
    ------
    PanopticError
        As `compare_versions`.
    """
    both = [own for own in regions if own.old.objects is not None and own.new.objects is not None]
    in_windows = [own.old.region for own in both if own.same_fps is None]
    same_fps = [
        disc_pairs(_placed(own.old), _placed(own.new))
        if own.same_fps is None
        else pair_rows((own.old.patient, own.old.region), *own.same_fps)
        for own in both
    ]
    if in_windows:
        findings = (*findings, _without_pixels(in_windows))
    return compare_versions(
        _version(names[0], [own.old for own in regions]),
        _version(names[1], [own.new for own in regions]),
        class_names,
        metric=metric,
        margin=margin,
        iou_step=iou_step,
        same_fps=joined_pairs(same_fps),
        pairing=Pairing.MIXED if in_windows else Pairing.PIXELS,
        findings=list(dict.fromkeys(findings)),
    )


def compare_in_region(
    region: Region,
    old: tuple[str, Evaluation],
    new: tuple[str, Evaluation],
    class_names: Sequence[str],
) -> VersionComparison:
    """Compare two versions in one region.

    Parameters
    ----------
    region
        The region.
    old, new
        Name and evaluation of either version, against the same reference, not under edit.
    class_names
        The scored classes, in order.
    """
    names = old[0], new[0]
    first, second = ((name, Evaluated(own)) for name, own in (old, new))
    compared = ComparedRegion.of(region, first, second, old[1].settings)
    return compare_regions([compared], names, class_names)


def _version(name: str, results: Sequence[RegionResult]) -> Version:
    import pandas as pd

    frames = [_placed(result) for result in results if result.objects is not None]
    objects = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    regions = [
        RegionCounts(result.region, result.patient, result.counts)
        for result in results
        if result.counts is not None
    ]
    return Version(name, objects, regions)


def _placed(result: RegionResult) -> pd.DataFrame:
    import pandas as pd

    if result.objects is None:
        return pd.DataFrame()
    return result.objects.assign(patient=result.patient, region=result.region)


def _without_pixels(regions: Sequence[str]) -> Finding:
    message = (
        f"{counted(len(regions), 'region')} read in windows: {english_list(regions[:5])}. FPs in "
        f"such regions are paired as discs of their areas at their centroids, not by their pixels"
    )
    return Finding(FindingKind.FALLBACK, message, count=len(regions))


# --- from the tables of evaluations -----------------------------------------------------------


def compare_evaluations(
    old: EvaluationTables,
    new: EvaluationTables,
    teams: tuple[str, str],
    *,
    names: tuple[str, str] | None = None,
    metric: str = "pq",
    margin: float = MARGIN,
    iou_step: float = IOU_STEP,
) -> VersionComparison:
    """Compare a team of an evaluation with one of another, or of the same.

    There are no pixels: FPs are paired as discs, see `disc_pairs`.

    Parameters
    ----------
    old, new
        The evaluations.
    teams
        The team in either.
    names
        Names of the versions; those of the teams if None.
    metric, margin, iou_step
        See `compare_versions`.

    Raises
    ------
    SettingsError
        As `check_metric` and `check_scoring`.
    PanopticError
        If settings or classes differ, or as `compare_versions`.
    """
    check_metric(metric, margin)
    _check_comparable(old, new)
    names = teams if names is None else names
    both = zip((old, new), teams, names, strict=True)
    versions = [_stored_version(tables, team, name) for tables, team, name in both]
    findings = [
        finding
        for tables, team in zip((old, new), teams, strict=True)
        for finding in tables.findings
        if finding.team in (None, team)
    ]
    return compare_versions(
        versions[0],
        versions[1],
        old.class_names,
        metric=metric,
        margin=margin,
        iou_step=iou_step,
        findings=list(dict.fromkeys(findings)),
    )


def _stored_version(tables: EvaluationTables, team: str, name: str) -> Version:
    objects = tables.objects[tables.objects["team"] == team].reset_index(drop=True)
    places = tables.places[tables.places["team"] == team]
    counted = {
        (one.patient, one.region): one for one in counts_of_rows(objects, tables.class_names)
    }
    empty = Counts.zero(tables.class_names)
    regions = [
        counted.get((patient, region), RegionCounts(region, patient, empty))
        for patient, region in zip(places["patient"], places["region"], strict=True)
    ]
    return Version(name, objects, regions)


def _check_comparable(old: EvaluationTables, new: EvaluationTables) -> None:
    """Check that two evaluations differ in their predictions only."""
    if corrections_of(str(old.settings.get("convention", DEFAULT_PROTOCOL))) is not None:
        raise SettingsError(_NO_OBJECTS, path=old.folder)
    names = {*old.settings, *new.settings} - {"distances"}
    differing = sorted(n for n in names if old.settings.get(n) != new.settings.get(n))
    if differing:
        found = english_list(
            [f"{n} {old.settings.get(n)} and {new.settings.get(n)}" for n in differing]
        )
        raise PanopticError(
            f"expected two evaluations with the same settings, found {found}; evaluate both with "
            "the same settings",
            path=new.folder,
        )
    if old.class_names != new.class_names:
        raise PanopticError(
            f"expected the classes {english_list(old.class_names)} in both evaluations, found "
            f"{english_list(new.class_names)}; evaluate both on the same cohort",
            path=new.folder,
        )
