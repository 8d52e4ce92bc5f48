"""Break down a team's figures by object size, and its failures by cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.nuclei.values.vocabulary import CAUSES, Cause, Side, Status

SIZE_COLUMNS = (
    "team",
    "size",
    "area_from",
    "area_below",
    "area_unit",
    "reference_objects",
    "found",
    "recall",
    "prediction_objects",
    "matched",
    "precision",
    "right_class",
    "class_accuracy",
    "mean_iou",
    "pairs_with_hausdorff",
    "mean_hausdorff_px",
)
CAUSE_COLUMNS = ("team", "side", "cause", "count", "failures", "share")

_MATCHED = (str(Status.TP), str(Status.MISCLASSIFIED))
_FAILED = {Side.REFERENCE: str(Status.FN), Side.PREDICTION: str(Status.FP)}
_QUARTERS = (0.25, 0.5, 0.75)


class AreaUnit(StrEnum):
    """What areas are measured in."""

    PX = "px"  # pixels of the region
    UM2 = "um2"  # square micrometres


@dataclass(frozen=True, eq=False)
class RegionObjects:
    """The outcomes of one team in one region.

    Parameters
    ----------
    team, region
        Names.
    objects
        One row per object, columns ``OBJECT_COLUMNS``.
    mpp
        Micrometres per pixel of the region, or None.
    """

    team: str
    region: str
    objects: pd.DataFrame
    mpp: float | None = None


@dataclass(frozen=True)
class SizeClasses:
    """Areas that divide objects into classes of size.

    Parameters
    ----------
    edges
        Rising areas above 0. The first class is below the first edge, each
        next one starts at its edge, and the last one has no end.
    unit
        Of the edges.

    Raises
    ------
    SettingsError
        For edges that do not rise from above 0.
    """

    edges: tuple[float, ...]
    unit: AreaUnit = AreaUnit.PX

    def __post_init__(self) -> None:
        """Check that the edges rise."""
        rising = all(a < b for a, b in pairwise((0.0, *self.edges)))
        if not rising or not all(np.isfinite(self.edges)):
            raise SettingsError(
                f"edges of size classes must rise from above 0 {self.unit}, "
                f"found {', '.join(f'{edge:g}' for edge in self.edges)}"
            )

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """From (inclusive) and to (exclusive) of each class."""
        return tuple(pairwise((0.0, *self.edges, float("inf"))))

    def number(self, areas: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the position of each area's class, from 0."""
        return np.searchsorted(np.asarray(self.edges, np.float64), areas, side="right")


def quartile_classes(
    regions: Sequence[RegionObjects], *, unit: AreaUnit = AreaUnit.PX
) -> SizeClasses:
    """Divide at the quartiles of the reference objects' areas over the cohort.

    Each reference object counts once, however many teams were evaluated in its
    region; objects that the ambiguous policy ignores for a team do not count by
    that team's table. Where quartiles coincide there are fewer than four
    classes.

    Parameters
    ----------
    regions
        Every team in every region.
    unit
        What to measure in.

    Raises
    ------
    SettingsError
        For ``um2`` if a region's micrometres per pixel are unknown, or
        if there is no reference object.
    """
    table = _joined(regions, unit)
    once = table[table["side"] == str(Side.REFERENCE)].drop_duplicates(["region", "id"])
    if once.empty:
        raise SettingsError(
            "quartiles of area need reference objects, found none: give edges instead"
        )
    return SizeClasses(tuple(np.unique(np.quantile(once["area"], _QUARTERS)).tolist()), unit)


def by_size(regions: Sequence[RegionObjects], classes: SizeClasses) -> pd.DataFrame:
    """Return each team's figures by size of object, counts summed over its regions.

    Reference objects and matched pairs stand in the class of the reference
    object's area, predictions in that of their own: an unmatched one has no
    other. Ignored objects do not count. Matching is class-blind here:
    ``found`` and ``matched`` include misclassified objects, and ``right_class``
    says how many of those found have the right class.

    Parameters
    ----------
    regions
        Every team in every region.
    classes
        Of size.

    Returns
    -------
    DataFrame
        One row per team and class of size, columns ``SIZE_COLUMNS``. A ratio
        without anything to count, and a mean over no pair, is NaN;
        ``mean_hausdorff_px`` is over the pairs that have a distance.

    Raises
    ------
    SettingsError
        For ``um2`` if a region's micrometres per pixel are unknown.
    """
    table = _joined(regions, classes.unit)
    table["size"] = classes.number(table["area"].to_numpy(np.float64))
    rows = []
    for team in dict.fromkeys(region.team for region in regions):
        own = table[table["team"] == team]
        for size, (low, high) in enumerate(classes.bounds):
            place = {
                "team": team,
                "size": size + 1,
                "area_from": low,
                "area_below": high,
                "area_unit": str(classes.unit),
            }
            rows.append(place | _figures(own[own["size"] == size]))
    return pd.DataFrame(rows, columns=list(SIZE_COLUMNS))


def by_cause(regions: Sequence[RegionObjects]) -> pd.DataFrame:
    """Return the number and share of each team's failures by cause.

    A failure is an unmatched object: FN on the side of the reference, FP on
    that of the prediction. Misclassified objects are matched, and have no
    cause.

    Parameters
    ----------
    regions
        Every team in every region.

    Returns
    -------
    DataFrame
        One row per team, side and cause that some team's failure on that side
        has, columns ``CAUSE_COLUMNS``. ``failures`` is the number of the team's
        failures on that side, and ``share`` the count divided by it; NaN where
        it is 0.
    """
    rows: list[dict[str, Any]] = []
    table = _joined(regions, AreaUnit.PX)
    teams = dict.fromkeys(region.team for region in regions)
    for side, status in _FAILED.items():
        failed = table[(table["side"] == str(side)) & (table["status"] == status)]
        met = [c for c in CAUSES if c is not Cause.NONE and (failed["cause"] == str(c)).any()]
        for team in teams:
            causes = failed.loc[failed["team"] == team, "cause"]
            for cause in met:
                count = int((causes == str(cause)).sum())
                place = {"team": team, "side": str(side), "cause": str(cause)}
                ratio = _ratio(count, len(causes))
                rows.append(place | {"count": count, "failures": len(causes), "share": ratio})
    return pd.DataFrame(rows, columns=list(CAUSE_COLUMNS))


def _joined(regions: Sequence[RegionObjects], unit: AreaUnit) -> pd.DataFrame:
    """Return what counts of all objects in one table, with their areas in the unit."""
    columns = ["side", "id", "class", "status", "cause", "partner_class", "iou", "hausdorff_px"]
    frames = []
    for region in regions:
        if unit is AreaUnit.UM2 and region.mpp is None:
            raise SettingsError(
                "the micrometres per pixel are unknown: give size classes in px",
                region=region.region,
            )
        scale = region.mpp**2 if unit is AreaUnit.UM2 and region.mpp is not None else 1.0
        counted = region.objects[region.objects["status"] != str(Status.IGNORED)]
        frame = counted[columns].assign(
            team=region.team, region=region.region, area=counted["area_px"] * scale
        )
        frames.append(frame)
    if not frames:
        return pd.DataFrame(columns=[*columns, "team", "region", "area"])
    return pd.concat(frames, ignore_index=True)


def _figures(objects: pd.DataFrame) -> dict[str, Any]:
    reference = objects[objects["side"] == str(Side.REFERENCE)]
    prediction = objects[objects["side"] == str(Side.PREDICTION)]
    pairs = reference[reference["status"].isin(_MATCHED)]
    matched = int(prediction["status"].isin(_MATCHED).sum())
    right = int((pairs["status"] == str(Status.TP)).sum())
    distances = pairs["hausdorff_px"].dropna()
    return {
        "reference_objects": len(reference),
        "found": len(pairs),
        "recall": _ratio(len(pairs), len(reference)),
        "prediction_objects": len(prediction),
        "matched": matched,
        "precision": _ratio(matched, len(prediction)),
        "right_class": right,
        "class_accuracy": _ratio(right, len(pairs)),
        "mean_iou": float(pairs["iou"].mean()),
        "pairs_with_hausdorff": len(distances),
        "mean_hausdorff_px": float(distances.mean()),
    }


def _ratio(count: int, of: int) -> float:
    return count / of if of else float("nan")
