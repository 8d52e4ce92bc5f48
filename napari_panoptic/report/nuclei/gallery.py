"""Pictures of the worst failures of each team, by cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_panoptic.common.findings import Finding
from napari_panoptic.display.crops import ROOM, CropSource, bounded_field_px, cut
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.nuclei.regions.region import held_region
from napari_panoptic.nuclei.regions.results import RegionResult
from napari_panoptic.report.pictures import jpeg, outlined, readable_image
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.reading import HELD_UP_TO_PX
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import CAUSES, Cause, Side, Status

if TYPE_CHECKING:
    import pandas as pd

PER_CAUSE = 3
SIZE_PX = 220
_FAILED = {Side.REFERENCE: str(Status.FN), Side.PREDICTION: str(Status.FP)}


@dataclass(frozen=True)
class Failure:
    """One failed object."""

    #: Its place.
    team: str
    patient: str
    region: str
    #: Its side and its id in the region.
    side: Side
    id: int
    #: Its class, and that of its partner; the latter is empty without one.
    class_name: str
    partner_class: str
    #: Its outcome and the cause; a misclassified object has no cause.
    status: Status
    cause: Cause
    #: IoU with the partner, or the largest one with any object.
    iou: float
    #: Its area.
    area_px: int

    @property
    def name(self) -> FailureName:
        """Its identity."""
        return FailureName(self.team, self.region, self.side, self.id)


@dataclass(frozen=True, eq=False)
class Picture:
    """A failure and its surroundings."""

    #: The failure.
    failure: Failure
    #: The picture, `SIZE_PX` wide and high.
    jpeg: bytes
    #: Width of the field of view, in pixels of the region.
    field_px: int
    #: Micrometres per pixel, or None.
    mpp: float | None


def worst_failures(results: Sequence[RegionResult]) -> tuple[Failure, ...]:
    """Choose up to `PER_CAUSE` failures of each team and cause, misclassified nuclei among them.

    Large failures come first because they are easier to judge; in PQ, small and large ones count
    the same. Ties keep the order of regions and ids.

    Parameters
    ----------
    results
        The results of every team in every region, with objects.

    Returns
    -------
    tuple of Failure
        By team, side and cause; the largest first.
    """
    import pandas as pd

    chosen: list[Failure] = []
    for team in dict.fromkeys(result.team for result in results):
        own = [result for result in results if result.team == team]
        frames = [result.objects for result in own if result.objects is not None]
        if not frames:
            continue
        sizes = [0 if result.objects is None else len(result.objects) for result in own]
        patients, regions = ([getattr(r, name) for r in own] for name in ("patient", "region"))
        table = failed(
            pd.concat(frames, ignore_index=True).assign(
                patient=np.repeat(np.array(patients, object), sizes),
                region=np.repeat(np.array(regions, object), sizes),
            )
        )
        for side, cause in failure_kinds():
            of_kind = table[(table["side"] == str(side)) & (table["cause"] == str(cause))]
            worst = of_kind.sort_values("area_px", ascending=False, kind="stable")
            chosen += [_failure(team, row) for row in worst.head(PER_CAUSE).to_dict("records")]
    return tuple(chosen)


def named_failures(
    results: Sequence[RegionResult], names: Iterable[FailureName]
) -> tuple[Failure, ...]:
    """Return objects by their names, failures or not; those that do not exist are left out."""
    wanted: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for name in names:
        wanted.setdefault((name.team, name.region), set()).add((str(name.side), name.id))
    found: list[Failure] = []
    for result in results:
        ids = wanted.get((result.team, result.region))
        if ids is None or result.objects is None:
            continue
        at = zip(result.objects["side"], result.objects["id"], strict=True)
        own = result.objects[[place in ids for place in at]]
        own = own.assign(patient=result.patient, region=result.region)
        found += [_failure(result.team, row) for row in own.to_dict("records")]
    return tuple(found)


def failure_kinds() -> Iterator[tuple[Side, Cause]]:
    """Yield the kinds of failures, FN first, then FP, misclassified objects last."""
    for side in Side:
        for cause in CAUSES:
            if cause is not Cause.NONE:
                yield side, cause
    yield Side.REFERENCE, Cause.NONE  # misclassified pairs, once each


def failed(objects: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of objects that failed; misclassified pairs once, by the reference object."""
    status, side = objects["status"], objects["side"]
    is_failed = (status == str(Status.MISCLASSIFIED)) & (side == str(Side.REFERENCE))
    for which, word in _FAILED.items():
        is_failed |= (status == word) & (side == str(which))
    return objects[is_failed]


def _failure(team: str, row: Mapping[Any, Any]) -> Failure:
    partner = row["partner_class"]
    return Failure(
        team=team,
        patient=str(row["patient"]),
        region=str(row["region"]),
        side=Side(row["side"]),
        id=int(row["id"]),
        class_name=str(row["class"]),
        partner_class=partner if isinstance(partner, str) else "",
        status=Status(row["status"]),
        cause=Cause(row["cause"]),
        iou=float(row["iou"]),
        area_px=int(row["area_px"]),
    )


def pictures(
    cohort: Cohort,
    failures: Sequence[Failure],
    settings: EvaluationSettings,
    source: Source | None,
    *,
    held_up_to_px: int = HELD_UP_TO_PX,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Iterator[Picture]:
    """Draw failures, except those whose files can no longer be read.

    Parameters
    ----------
    cohort, settings, source
        The cohort and settings in which they were found.
    failures
        The failures to draw.
    held_up_to_px
        Failures in regions with more pixels are left out.
    is_wanted
        Called before each region; the iteration ends if it returns False.

    Yields
    ------
    Picture
        Region by region, in the order of the cohort.
    """
    quick = settings.replaced(distances=False)
    for region in cohort.regions:
        own = [failure for failure in failures if failure.region == region.name]
        if not own:
            continue
        if not is_wanted():
            return
        held = held_region(cohort, region, quick, held_up_to_px=held_up_to_px)
        if isinstance(held, Finding):
            continue
        image = readable_image(region.image, region.image_item)
        try:
            teams = list(dict.fromkeys(failure.team for failure in own))
            for team, evaluated in held.each_team(teams, quick, source):
                if (found := evaluated.evaluation) is not None:
                    of_team = [failure for failure in own if failure.team == team]
                    yield from pictures_of(CropSource.of(image, found), of_team, held.mpp)
        finally:
            if image is not None:
                image.close()


def failures_in(objects: pd.DataFrame) -> list[Failure]:
    """Return rows of an evaluation's objects as failures without team and region."""
    rows = objects.assign(patient="", region="").to_dict("records")
    return [_failure("", row) for row in rows]


def pictures_of(
    source: CropSource, failures: Sequence[Failure], mpp: float | None
) -> Iterator[Picture]:
    """Draw failures of one region, except those that are not among its objects."""
    usual = source.usual_field_px()
    for failure in failures:
        side = source.outcomes.side(failure.side)
        row = side.row_of(failure.id)
        if row is None:
            continue
        y0, x0, y1, x1 = (int(value) for value in side.bbox[row])
        # The usual width, which makes sizes comparable; wider for objects that would not fit.
        field = max(usual, bounded_field_px(ROOM * max(y1 - y0, x1 - x0)))
        crop = cut(source, failure.side, row, field_px=field, size_px=SIZE_PX)
        yield Picture(failure, jpeg(outlined(crop.tissue, crop.outlines)), field, mpp)
