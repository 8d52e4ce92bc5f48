"""Compares ambiguous policies: which objects each excludes and why, and the change of PQ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.explain.what_if import tally, tally_all
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate_again
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes, words_of
from napari_panoptic.statistics.graphs import chosen_components
from napari_panoptic.tables.columns import TableSpec, unshown
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import (
    CAUSE_CODE,
    CAUSES,
    STATUS_CODE,
    STATUSES,
    Cause,
    Side,
    Status,
)

if TYPE_CHECKING:
    import pandas as pd

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

AUDIT = TableSpec(
    "",
    "object, those of the reference first",
    [
        unshown("side", "id", "class", "area_px", "ambiguous_px"),
        unshown("status_first", "cause_first"),
        unshown("reason_first", about="a sentence on its treatment, if it touches the area"),
        unshown("status_second", "cause_second", "reason_second"),
        unshown("flips", about="whether its status changes"),
        unshown("unit", about="of change, -1 if it does not change"),
        unshown("pq_contribution", about="of the unit, the same for all its objects, or 0"),
    ],
)
SPILLS = TableSpec(
    "",
    "prediction with pixels inside and outside of the area, the largest share inside first",
    [
        unshown("row", "id", "class", "status", "cause"),
        unshown("area_px", "ambiguous_px", "ambiguous_share", "remainder_px", about="uncut"),
        unshown("fp_by_spill", about="whether it is an FP of cause ambiguous-spill"),
    ],
)
_EFFECT_FIGURES = ("tp", "fp", "fn", "iou_sum", "pq", "sq", "dq")


@dataclass(frozen=True, eq=False)
class PolicyAudit:
    """Two ambiguous policies on one label pair, side by side."""

    #: The evaluations, from one overlap table, without distances.
    first: Evaluation
    second: Evaluation
    #: Side -> int64 (n,): number of the unit of change of each object, -1 if it does not change.
    #: Partners under either policy, one of which changes its status, partner or IoU, belong to one
    #: unit.
    unit: Mapping[Side, IntArray]
    #: float64 (k,): leave-one-out contribution of each unit to the difference in PQ: PQ under the
    #: second policy, minus the PQ in which only the objects of this unit count as under the first
    #: policy. NaN if one of the two is undefined.
    unit_contribution: FloatArray

    @property
    def pq_difference(self) -> float:
        """PQ of the region under the second policy, minus that under the first."""
        return self.second.metrics.pq - self.first.metrics.pq

    @property
    def pq_unexplained(self) -> float:
        """The difference in PQ minus the sum of all contributions.

        It is not 0 in general, because PQ is a mean of quotients: the effect of several changes
        differs from the sum of the effects of each.
        """
        return self.pq_difference - float(self.unit_contribution.sum())

    @cached_property
    def objects(self) -> pd.DataFrame:
        """The table `AUDIT`."""
        import pandas as pd

        return pd.concat([self._frame(side) for side in Side], ignore_index=True)

    @cached_property
    def effect(self) -> pd.DataFrame:
        """Metrics under both policies: a row per class, then ``mean``.

        Columns: class, then tp, fp, fn, iou_sum, pq, sq and dq, each with ``_first``, ``_second``
        and ``_difference`` (second minus first; NaN if undefined under one of them). Row ``mean``
        holds sums, and the region's PQ, SQ and DQ.
        """
        import pandas as pd

        first, second = _effect_rows(self.first), _effect_rows(self.second)
        columns: dict[str, object] = {"class": [*self.first.pair.class_names, "mean"]}
        for name in _EFFECT_FIGURES:
            columns[f"{name}_first"] = first[name]
            columns[f"{name}_second"] = second[name]
            columns[f"{name}_difference"] = second[name] - first[name]
        return pd.DataFrame(columns)

    def _frame(self, side: Side) -> pd.DataFrame:
        counted, unit = self.first.table.side(side), self.unit[side]
        one, other = self.first.outcomes.side(side), self.second.outcomes.side(side)
        return AUDIT.frame_of(
            np.full(len(one), str(side), dtype=object),
            one.ids,
            words_of(self.first.pair.class_names, one.class_index - 1),
            counted.area,
            counted.void_area,
            words_of(STATUSES, one.status),
            words_of(CAUSES, one.cause),
            reasons(self.first, side),
            words_of(STATUSES, other.status),
            words_of(CAUSES, other.cause),
            reasons(self.second, side),
            one.status != other.status,
            unit,
            np.append(self.unit_contribution, 0.0)[unit],
        )


def audit_policies(
    evaluation: Evaluation, first: AmbiguousPolicy | str, second: AmbiguousPolicy | str
) -> PolicyAudit:
    """Evaluate one label pair under two ambiguous policies.

    Both are computed from the overlap table of the evaluation with its other settings. Only the
    centroid rule reads pixels, one per object.

    Parameters
    ----------
    evaluation
        The evaluation, under any policy; not changed.
    first, second
        The policies to compare.

    Raises
    ------
    SettingsError
        For an unknown policy.
    """
    one, other = (
        evaluate_again(evaluation, evaluation.settings.replaced(ambiguous=policy, distances=False))
        for policy in (first, second)
    )
    unit_of_reference, unit_of_prediction, n_units = _units(one.outcomes, other.outcomes)
    before = tally(one.outcomes, unit_of_reference, unit_of_prediction, n_units)
    after = tally(other.outcomes, unit_of_reference, unit_of_prediction, n_units)
    total = tally_all(other.outcomes)
    return PolicyAudit(
        first=one,
        second=other,
        unit={Side.REFERENCE: unit_of_reference, Side.PREDICTION: unit_of_prediction},
        unit_contribution=total.pq() - (total + (before - after)).pq(),
    )


def reasons(evaluation: Evaluation, side: Side) -> NDArray[np.object_]:
    """Describe what the ambiguous policy does with each object of a side.

    Returns
    -------
    ndarray of str (n,)
        One sentence per object that touches the ambiguous area; empty for the
        others.
    """
    counted = evaluation.table.side(side)
    matched = evaluation.outcomes.side(side).partner != NO_PARTNER
    sentences = np.full(len(counted), "", dtype=object)
    judged = evaluation.judged
    cuts = judged.cuts_reference if side is Side.REFERENCE else judged.cuts_prediction
    for row in np.flatnonzero(counted.void_area).tolist():
        area, void = int(counted.area[row]), int(counted.void_area[row])
        if cuts:
            sentences[row] = _cut_reason(area, void)
        elif judged.policy is AmbiguousPolicy.MAJORITY:
            sentences[row] = _majority_reason(area, void, matched=bool(matched[row]))
        else:
            sentences[row] = f"judged whole, {_inside(area, void)}"
    return sentences


def spill_table(evaluation: Evaluation) -> pd.DataFrame:
    """List the predictions that leak out of the ambiguous area.

    Parameters
    ----------
    evaluation
        What was evaluated; not changed.

    Returns
    -------
    DataFrame
        The table `SPILLS`. An FP by spill is judged only because of its pixels outside.
    """
    side, table = evaluation.outcomes.prediction, evaluation.table.prediction
    rows = np.flatnonzero((table.void_area > 0) & (table.void_area < table.area))
    share = table.void_area[rows] / table.area[rows]
    order = np.lexsort((rows, -share))
    rows, share = rows[order], share[order]
    spills = (side.status[rows] == STATUS_CODE[Status.FP]) & (
        side.cause[rows] == CAUSE_CODE[Cause.AMBIGUOUS_SPILL]
    )
    return SPILLS.frame_of(
        rows,
        side.ids[rows],
        words_of(evaluation.pair.class_names, side.class_index[rows] - 1),
        words_of(STATUSES, side.status[rows]),
        words_of(CAUSES, side.cause[rows]),
        table.area[rows],
        table.void_area[rows],
        share,
        table.area[rows] - table.void_area[rows],
        spills,
    )


def _inside(area: int, void: int) -> str:
    return f"{_percent(void, area)} of its {area} px in the ambiguous area"


def _percent(part: int, whole: int) -> str:
    """Format a share with one decimal, without rounding it to 0, 50 or 100 %."""
    tenths = round(1000 * part / whole)
    for border, exact in ((0, part == 0), (500, 2 * part == whole), (1000, part == whole)):
        if tenths == border and not exact:
            return f"{'over' if 1000 * part > border * whole else 'under'} {border // 10} %"
    return f"{tenths / 10:.1f} %".replace(".0 %", " %")


def _cut_reason(area: int, void: int) -> str:
    if void == area:
        return f"cut away entirely: all {area} px in the ambiguous area"
    return f"sticks out by {area - void} px of {area} ({_percent(area - void, area)})"


def _majority_reason(area: int, void: int, *, matched: bool) -> str:
    inside = _inside(area, void)
    if matched:
        return f"{inside}, matched: its IoU excludes these pixels"
    if 2 * void > area:
        return f"{inside} and unmatched: ignored"
    return f"{inside}, not more than half, and unmatched: counts"


def _effect_rows(evaluation: Evaluation) -> dict[str, FloatArray]:
    by_class, metrics = evaluation.by_class, evaluation.metrics
    means = {name: metrics[name] for name in ("pq", "sq", "dq")}
    return {
        name: np.append(
            by_class[name].to_numpy(np.float64),
            means[name] if name in means else by_class[name].to_numpy(np.float64).sum(),
        )
        for name in _EFFECT_FIGURES
    }


def _units(first: Outcomes, second: Outcomes) -> tuple[IntArray, IntArray, int]:
    """Assign changing objects to units: partners under either policy share a unit.

    Returns
    -------
    unit_of_reference, unit_of_prediction
        int64: number of the unit of each object, -1 for objects that do not change.
    n_units
        Number of units.
    """
    n_reference = len(first.reference)
    rows, columns = (
        np.concatenate(ends) for ends in zip(*map(_partners, (first, second)), strict=True)
    )
    changes = np.concatenate([_changes(first, second, side) for side in Side])
    unit, n_units = chosen_components(rows, n_reference + columns, changes)
    return unit[:n_reference], unit[n_reference:], n_units


def _partners(outcomes: Outcomes) -> tuple[IntArray, IntArray]:
    rows = np.flatnonzero(outcomes.reference.partner != NO_PARTNER)
    return rows, outcomes.reference.partner[rows].astype(np.int64)


def _changes(first: Outcomes, second: Outcomes, side: Side) -> BoolArray:
    one, other = first.side(side), second.side(side)
    matched = one.partner != NO_PARTNER
    changed: BoolArray = (
        (one.status != other.status)
        | (one.partner != other.partner)
        | (matched & (one.iou != other.iou))
    )
    return changed
