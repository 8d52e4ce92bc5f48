"""Break down a team's figures by object size, and its failures by cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.statistics.means import quotient
from napari_panoptic.tables.columns import TableSpec, unshown
from napari_panoptic.values.vocabulary import CAUSES, Cause, Side, Status

if TYPE_CHECKING:
    import pandas as pd

SIZES = TableSpec(
    "by_size.csv",
    "team and size class",
    [
        unshown("team", "size", "area_from", "area_below", "area_unit"),
        unshown("reference_objects", "found", "recall"),
        unshown("prediction_objects", "matched", "precision"),
        unshown("right_class", "class_accuracy", "mean_iou"),
        unshown("pairs_with_hausdorff", "mean_hausdorff_px"),
    ],
)
CAUSE_COUNTS = TableSpec(
    "by_cause.csv",
    "team, side and cause",
    [unshown("team", "side", "cause", "count", "failures", "share")],
)

_MATCHED = (str(Status.TP), str(Status.MISCLASSIFIED))
_FAILED = {Side.REFERENCE: str(Status.FN), Side.PREDICTION: str(Status.FP)}
_QUARTERS = (0.25, 0.5, 0.75)


class AreaUnit(StrEnum):
    """Unit of areas."""

    PX = "px"  # pixels of the region
    UM2 = "um2"  # square micrometres


@dataclass(frozen=True, eq=False)
class RegionObjects:
    """The outcomes of one team in one region."""

    #: Names of the team and the region.
    team: str
    region: str
    #: One row per object, columns ``OBJECT_COLUMNS``.
    objects: pd.DataFrame
    #: Micrometres per pixel of the region, or None.
    mpp: float | None = None


@dataclass(frozen=True)
class SizeClasses:
    """Areas that divide objects into classes of size.

    Raises
    ------
    SettingsError
        If the edges do not increase from above 0.
    """

    #: Increasing areas above 0. The first class lies below the first edge; each further class
    #: starts at its edge; the last class has no upper limit.
    edges: tuple[float, ...]
    #: Unit of the edges.
    unit: AreaUnit = AreaUnit.PX

    def __post_init__(self) -> None:
        """Check that the edges increase."""
        rising = all(a < b for a, b in pairwise((0.0, *self.edges)))
        if not rising or not all(np.isfinite(self.edges)):
            raise SettingsError(
                f"expected increasing edges of size classes, all above 0 {self.unit}, "
                f"found {', '.join(f'{edge:g}' for edge in self.edges)}"
            )

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Lower limit (inclusive) and upper limit (exclusive) of each class."""
        return tuple(pairwise((0.0, *self.edges, float("inf"))))

    def number(self, areas: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the position of each area's class, from 0."""
        return np.searchsorted(np.asarray(self.edges, np.float64), areas, side="right")


def quartile_classes(
    regions: Sequence[RegionObjects], *, unit: AreaUnit = AreaUnit.PX
) -> SizeClasses:
    """Divide at the quartiles of the reference objects' areas over the cohort.

    Each reference object counts once, even if several teams were evaluated in its region. Objects
    that the ambiguous policy ignores for every team do not count. If quartiles coincide, there are
    fewer than four classes.

    Parameters
    ----------
    regions
        Every team in every region.
    unit
        Unit of the areas.

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
            "quartiles of area need reference objects, found none; set the edges instead"
        )
    return SizeClasses(tuple(np.unique(np.quantile(once["area"], _QUARTERS)).tolist()), unit)


def by_size(regions: Sequence[RegionObjects], classes: SizeClasses) -> pd.DataFrame:
    """Return each team's figures by size of object, counts summed over its regions.

    Reference objects and matched pairs belong to the size class of the reference object's area;
    predictions, which may have no partner, to that of their own area. Ignored objects do not count.
    Matching is class-blind here: ``found`` and ``matched`` include misclassified objects, and
    ``right_class`` is the number of found objects with the right class.

    Parameters
    ----------
    regions
        Every team in every region.
    classes
        The size classes.

    Returns
    -------
    DataFrame
        One row per team and size class, columns of `SIZES`. Ratios with denominator 0 and
        means over no pairs are NaN; ``mean_hausdorff_px`` is the mean over the pairs that have a
        distance.

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
    return SIZES.frame(rows)


def by_cause(regions: Sequence[RegionObjects]) -> pd.DataFrame:
    """Return the number and share of each team's failures by cause.

    A failure is an unmatched object: an FN of the reference or an FP of the prediction.
    Misclassified objects are matched and have no cause.

    Parameters
    ----------
    regions
        Every team in every region.

    Returns
    -------
    DataFrame
        One row per team, side and cause, columns of `CAUSE_COUNTS`; causes that no team has on a
        side are left out. ``failures`` is the number of the team's failures on that side, and
        ``share`` is the count divided by it; NaN if it is 0.
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
                ratio = quotient(count, len(causes))
                rows.append(place | {"count": count, "failures": len(causes), "share": ratio})
    return CAUSE_COUNTS.frame(rows)


def _joined(regions: Sequence[RegionObjects], unit: AreaUnit) -> pd.DataFrame:
    """Return all objects that count in one table, with their areas in the unit."""
    import pandas as pd

    columns = ["side", "id", "class", "status", "cause", "partner_class", "iou", "hausdorff_px"]
    if unit is AreaUnit.UM2:
        unknown = [region.region for region in regions if region.mpp is None]
        if unknown:
            raise SettingsError(
                "the micrometres per pixel are unknown; set the size classes in px",
                region=unknown[0],
            )
    if not regions:
        return pd.DataFrame(columns=[*columns, "team", "region", "area"])
    sizes = [len(region.objects) for region in regions]

    def of_regions(values: Sequence[Any], kind: type) -> NDArray[Any]:
        return np.repeat(np.array(values, kind), sizes)

    table = pd.concat([region.objects for region in regions], ignore_index=True)
    scales = [(region.mpp or 1.0) ** 2 if unit is AreaUnit.UM2 else 1.0 for region in regions]
    table = table[[*columns, "area_px"]].assign(
        team=of_regions([region.team for region in regions], object),
        region=of_regions([region.region for region in regions], object),
        area=table["area_px"] * of_regions(scales, float),
    )
    return table[table["status"] != str(Status.IGNORED)].reset_index(drop=True)


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
        "recall": quotient(len(pairs), len(reference)),
        "prediction_objects": len(prediction),
        "matched": matched,
        "precision": quotient(matched, len(prediction)),
        "right_class": right,
        "class_accuracy": quotient(right, len(pairs)),
        "mean_iou": float(pairs["iou"].mean()),
        "pairs_with_hausdorff": len(distances),
        "mean_hausdorff_px": float(distances.mean()),
    }
