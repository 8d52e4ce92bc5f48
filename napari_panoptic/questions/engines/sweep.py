"""A sweep over settings of the post-processing: metrics, causes, flips, and the best setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.nuclei.averages import summarise_team
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.regions.cohort_evaluation import LOWER_IS_BETTER
from napari_panoptic.nuclei.regions.conditions import Condition
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.results import RegionResult
from napari_panoptic.nuclei.regions.run import THREADS, counting, run_regions
from napari_panoptic.questions.answer import UnansweredError
from napari_panoptic.questions.engines.cohort_objects import CAUSES_OF
from napari_panoptic.questions.engines.sweep_design import Neighbours, SweepDesign
from napari_panoptic.questions.engines.version_diff import Change, outcome_names, version_diff
from napari_panoptic.questions.engines.versions import check_scoring
from napari_panoptic.statistics.bootstrap import Interval, mean_interval
from napari_panoptic.statistics.choice import BestSetting, choose, comparable
from napari_panoptic.tables.columns import TableSpec, name_column, number, unshown, whole, words
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Cause, Side, Status

if TYPE_CHECKING:
    import pandas as pd

FLIPS = TableSpec(
    "sweep_flips.csv",
    "annotated object, or FP, whose outcome differs between two neighbouring settings",
    [
        name_column("parameter"),
        name_column("team_before", "from"),
        name_column("team_after", "to"),
        unshown("patient"),
        name_column("region"),
        words("side"),
        whole("id", about="after; of a gone FP before"),
        unshown("id_before", about="empty if the FP is new"),
        name_column("class"),
        words("change", about="as in `diff.csv`"),
        words("outcome_before", "before", about="status and cause"),
        words("outcome_after", "after", about="status and cause"),
        number("iou_before", "IoU before"),
        number("iou_after", "IoU after"),
        unshown("area_px", "centroid_y_px", "centroid_x_px"),
    ],
)
_HELD_ROWS = 500_000


@dataclass(frozen=True, eq=False)
class SweepStep:
    """The changes from a setting to its neighbour."""

    #: The two settings.
    neighbours: Neighbours
    #: The metric, after minus before, paired by patient.
    difference: Interval
    #: Number of objects of each change, as between two versions.
    changes: dict[Change, int]
    #: Columns of `FLIPS`, one row per object whose outcome changes: annotated objects, and FPs
    #: of either setting, which are paired as discs (see `disc_pairs`).
    flips: pd.DataFrame


@dataclass(frozen=True, eq=False)
class CohortSweep:
    """A sweep over a cohort."""

    #: The settings in order.
    design: SweepDesign
    #: The metric by which settings are chosen.
    metric: str
    #: How they were evaluated.
    settings: EvaluationSettings
    #: Names of the patients.
    patients: tuple[str, ...]
    #: float64 (patients, settings): the metric; NaN if undefined. Means and differences count such
    #: a patient as `napari_panoptic.statistics.choice.comparable` does.
    figures: NDArray[np.float64]
    #: Setting -> ``(side, cause)`` -> number of failures, of `CAUSES_OF`.
    causes: tuple[dict[tuple[Side, str], int], ...]
    #: Neighbouring settings.
    steps: tuple[SweepStep, ...]
    #: Number of regions that were evaluated under every setting; others are left out.
    regions: int
    #: What was missing, odd or unreadable.
    findings: tuple[Finding, ...] = ()

    @cached_property
    def choice(self) -> BestSetting:
        """The best setting, and its expected metric for new patients."""
        return choose(self.figures, higher_is_better=self.metric not in LOWER_IS_BETTER)

    @cached_property
    def means(self) -> tuple[Interval, ...]:
        """The mean of each setting over the same patients, with its interval."""
        return tuple(mean_interval(column) for column in self.choice.figures.T)

    @property
    def counted_as_worst(self) -> tuple[str, ...]:
        """Patients without a figure under some settings, where they count as in `comparable`."""
        return tuple(np.array(self.patients, object)[self.choice.is_filled])

    @property
    def flips(self) -> pd.DataFrame:
        """The flips of all steps."""
        import pandas as pd

        frames = [step.flips for step in self.steps if len(step.flips)]
        if not frames:
            return FLIPS.frame([])
        return pd.concat(frames, ignore_index=True)

    def turns(self, step: SweepStep) -> bool:
        """Return whether a step turns splits into mergers, or the reverse.

        It does if one of the two causes is more frequent before the step, but not after it.
        """
        before, after = (
            own[Side.REFERENCE, str(Cause.MERGED)] - own[Side.REFERENCE, str(Cause.SPLIT)]
            for own in (self.causes[step.neighbours.before], self.causes[step.neighbours.after])
        )
        return before < 0 <= after or before > 0 >= after


def sweep_cohort(
    cohort: Cohort,
    design: SweepDesign,
    settings: EvaluationSettings,
    *,
    metric: str = "pq",
    source: Source | None = None,
    jobs: int | None = None,
    scheduler: str = THREADS,
    held_up_to_px: int | None = None,
    progress: Progress = UNWATCHED,
) -> CohortSweep:
    """Evaluate all settings of a sweep, and compare neighbouring ones object by object.

    Parameters
    ----------
    cohort, design
        The cohort, and the setting of each of its teams.
    settings, source
        How to evaluate, and which format of the predictions. Distances are measured only if the
        metric needs them.
    metric
        The metric by which settings are chosen, one of `METRIC_NAMES`.
    jobs, scheduler
        See `napari_panoptic.nuclei.regions.run.run_regions`.
    held_up_to_px
        Larger regions are read in windows; None for the default.
    progress
        Reported to after each region, and checked for cancellation.

    Raises
    ------
    SettingsError
        For the challenge's scoring, which has no outcome for each object.
    UnansweredError
        If no region was evaluated under every setting.
    StoppedError
        If cancelled.
    """
    import pandas as pd

    check_scoring(settings)
    settings = settings.replaced(distances=metric in LOWER_IS_BETTER)
    work = Experiment(design.teams, (Condition("sweep", settings, source),))
    if held_up_to_px is not None:
        work = replace(work, held_up_to_px=held_up_to_px)
    found = _SoFar(design)
    findings = [one for one in cohort.findings if one.team is None or one.team in design.teams]
    for (results,) in run_regions(
        cohort,
        work,
        jobs=jobs,
        scheduler=scheduler,
        on_result=counting(cohort, progress),
        is_wanted=progress.is_wanted,
    ):
        findings += [finding for result in results for finding in result.findings]
        found.add(results)
    progress.check()
    found.compare_held()
    if not found.counts[0]:
        raise UnansweredError(
            "expected regions that were evaluated under every setting, found none; leave out "
            "settings without predictions with --teams",
            findings,
        )
    classes = tuple(cohort.scheme.names)
    summaries = [summarise_team(counts, classes) for counts in found.counts]
    patients = tuple(summaries[0].metrics)
    figures = np.array(
        [[own.metrics[patient][metric] for own in summaries] for patient in patients], np.float64
    )
    compared = comparable(figures, higher_is_better=metric not in LOWER_IS_BETTER)
    steps = tuple(
        SweepStep(
            both,
            mean_interval(compared[:, both.after] - compared[:, both.before]),
            {change: found.changes[place][change] for change in Change},
            pd.concat(found.flips[place], ignore_index=True),
        )
        for place, both in enumerate(design.neighbours)
    )
    return CohortSweep(
        design=design,
        metric=metric,
        settings=settings,
        patients=patients,
        figures=figures,
        causes=tuple(
            {(side, cause): own[side, cause] for side in Side for cause in CAUSES_OF[side]}
            for own in found.causes
        ),
        steps=steps,
        regions=len(found.counts[0]),
        findings=tuple(dict.fromkeys((*findings, *_left_out(found.left_out)))),
    )


@dataclass(eq=False)
class _SoFar:
    """Sums over the regions so far; objects stay in memory until there are enough to compare."""

    design: SweepDesign
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        n, n_steps = len(self.design.settings), len(self.design.neighbours)
        self.counts: list[list[tuple[str, Counts]]] = [[] for _ in range(n)]
        self.causes: list[Counter[tuple[Side, str]]] = [Counter() for _ in range(n)]
        self.changes: list[Counter[Change]] = [Counter() for _ in range(n_steps)]
        self.flips: list[list[pd.DataFrame]] = [[] for _ in range(n_steps)]
        self._held: list[list[pd.DataFrame]] = [[] for _ in range(n)]

    def add(self, results: Sequence[RegionResult]) -> None:
        """Add a region, if it was evaluated under every setting."""
        frames = [result.objects for result in results if result.objects is not None]
        counts = [result.counts for result in results if result.counts is not None]
        if not len(frames) == len(counts) == len(results):
            self.left_out.append(results[0].region)
            return
        patient, region = results[0].patient, results[0].region
        for place, (frame, own) in enumerate(zip(frames, counts, strict=True)):
            self.counts[place].append((patient, own))
            self.causes[place].update(_causes(frame))
            self._held[place].append(frame.assign(patient=patient, region=region))
        if sum(len(frame) for held in self._held for frame in held) > _HELD_ROWS:
            self.compare_held()

    def compare_held(self) -> None:
        """Compare neighbouring settings in the regions in memory, and release these."""
        import pandas as pd

        if not self._held[0]:
            return
        objects = [pd.concat(held, ignore_index=True) for held in self._held]
        self._held = [[] for _ in objects]
        for place, both in enumerate(self.design.neighbours):
            names = self.design.teams[both.before], self.design.teams[both.after]
            diff = version_diff(objects[both.before], objects[both.after], names=names)
            self.changes[place].update(diff.counts)
            self.flips[place].append(_flips(diff.rows, both.parameter, names))


def _causes(objects: pd.DataFrame) -> Counter[tuple[Side, str]]:
    """Count the failures of a region by side and cause; misclassified ones count as one cause."""
    status, side = objects["status"], objects["side"]
    causes = objects["cause"].where(status != str(Status.MISCLASSIFIED), str(Status.MISCLASSIFIED))
    failed = status.isin([str(Status.FN), str(Status.FP)]) | (
        (status == str(Status.MISCLASSIFIED)) & (side == str(Side.REFERENCE))
    )
    return Counter(
        (Side(own), str(cause)) for own, cause in zip(side[failed], causes[failed], strict=True)
    )


def _flips(rows: pd.DataFrame, parameter: str, names: tuple[str, str]) -> pd.DataFrame:
    before, after = outcome_names(rows, "before"), outcome_names(rows, "after")
    moved = (before != after) | (rows["change"] == str(Change.RECLASSIFIED))
    flips = rows.assign(
        parameter=parameter,
        team_before=names[0],
        team_after=names[1],
        outcome_before=before,
        outcome_after=after,
    )
    return flips.loc[moved, FLIPS.keys].reset_index(drop=True)


def _left_out(regions: Sequence[str]) -> tuple[Finding, ...]:
    if not regions:
        return ()
    message = (
        f"{counted(len(regions), 'region')} not evaluated under every setting, left out of the "
        f"sweep: {english_list(list(regions[:5]))}"
    )
    return (Finding(FindingKind.MISSING, message, count=len(regions)),)
