"""Evaluate one label pair: the whole chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Generic, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_panoptic.nuclei.ambiguity import JudgedOverlap, judge
from napari_panoptic.nuclei.causes import Statuses, statuses_of
from napari_panoptic.nuclei.distances import (
    KnownDistances,
    PairDistances,
    matched_distances,
    pair_distances,
)
from napari_panoptic.nuclei.matching import Matches, PointLookup, ZoneLookup, match
from napari_panoptic.nuclei.metrics import (
    Counts,
    Metrics,
    class_figures,
    class_metrics,
    confusion_frame,
    count_matched,
    unit_metrics,
)
from napari_panoptic.nuclei.outcomes import Outcomes, outcomes
from napari_panoptic.nuclei.overlap import OverlapTable, overlap_table
from napari_panoptic.nuclei.zone import Zone, counted_outside
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelPair, Scores, checked_mask
from napari_panoptic.values.settings import EvaluationSettings, Matching, Overlaps
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import TiledPair

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeVar

    PairT = TypeVar("PairT", LabelPair, TiledPair, default=LabelPair)
else:
    from typing import TypeVar

    PairT = TypeVar("PairT")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Generic[PairT]):
    """The outcomes, counts and figures of one label pair, held or read in windows.

    It never changes, except the images of a pair under edit: see
    `napari_panoptic.nuclei.edits.EditedPair.pair`.

    Parameters
    ----------
    pair
        The label pair.
    settings
        The settings.
    table
        Areas and intersections. Its rows are the objects of the pair.
    judged
        The table after the ambiguous policy and without the zone of the settings.
    matches
        The matched pairs of the judged overlap.
    matched_distances
        Their distances, or None if they are not computed.
    distances
        All distances measured on these pixels so far, under any settings.
    """

    pair: PairT
    settings: EvaluationSettings
    table: OverlapTable
    judged: JudgedOverlap
    matches: Matches
    matched_distances: PairDistances | None
    distances: KnownDistances

    def __repr__(self) -> str:
        found = Counter(str(status) for status in self.objects["status"])
        counts = ", ".join(f"{n} {status}" for status, n in sorted(found.items()))
        return f"<{type(self).__name__}: PQ {self.metrics.pq:.3f}, {counts or 'no object'}>"

    @cached_property
    def statuses(self) -> Statuses:
        """The status of every object."""
        return statuses_of(self.pair, self.judged, self.matches)

    @cached_property
    def counts(self) -> Counts:
        """The sums over the objects, which can be added over regions."""
        pair, judged, chosen = self.pair, self.judged, self.matches.pair
        return count_matched(
            pair.class_names,
            (pair.reference.class_index, pair.prediction.class_index),
            (self.statuses[Side.REFERENCE], self.statuses[Side.PREDICTION]),
            (judged.pair_reference[chosen], judged.pair_prediction[chosen]),
            judged.iou[chosen],
            self.matched_distances,
        )

    @cached_property
    def outcomes(self) -> Outcomes:
        """Status, cause, partner, IoU and distances of every object, in the rows of the table.

        Computed when they are first used: sums do not need them.
        """
        return outcomes(
            *(self.pair, self.table, self.judged, self.matches, self.statuses),
            self.matched_distances,
            near_iou=self.settings.near_iou,
        )

    @cached_property
    def objects(self) -> pd.DataFrame:
        """One row per object: side, id, class, status, cause, partner, IoU, distances, place."""
        return self.outcomes.to_frame()

    def in_zone(self, side: Side) -> NDArray[np.bool_]:
        """Return bool (n,): the objects of a side that would count if there were no zone.

        No pixel of them that counts lies outside of the zone, so that they are ignored.
        """
        before = self.judged_whole.side(side)
        found: NDArray[np.bool_] = self.judged.side(side).gone & ~before.gone
        return found

    @cached_property
    def judged_whole(self) -> JudgedOverlap:
        """The table after the ambiguous policy if there were no zone."""
        has_zone = self.judged.counted is not self.table
        return judge(self.table, self.settings) if has_zone else self.judged

    def decided_by_zone(self, side: Side) -> NDArray[np.bool_]:
        """Return bool (n,): the objects of a side whose status would differ without the zone.

        None on a slide under the centroid rule, which would have to be read again.
        """
        before = self._without_zone.side(side).status
        found: NDArray[np.bool_] = self.outcomes.side(side).status != before
        return found

    @cached_property
    def _without_zone(self) -> Outcomes:
        """The outcomes, but for their distances, if there were no zone."""
        settings = self.settings.replaced(zone_px=0, distances=False)
        is_centroid = settings.matching is Matching.CENTROID
        if self.judged_whole is self.judged or (
            is_centroid and not isinstance(self.pair, LabelPair)
        ):
            return self.outcomes
        judged, known = self.judged_whole, self.distances
        return evaluated(self.pair, self.table, settings, known, judged=judged).outcomes

    @cached_property
    def metrics(self) -> Metrics:
        """The figures of the pair; NaN where undefined."""
        return unit_metrics(self.counts)

    @cached_property
    def class_figures(self) -> Mapping[str, NDArray[np.int64] | NDArray[np.float64]]:
        """The figures of each class: arrays (C,), in the order of the classes."""
        return class_figures(self.counts)

    @cached_property
    def by_class(self) -> pd.DataFrame:
        """The figures of each class."""
        return class_metrics(self.counts)

    @cached_property
    def confusion(self) -> pd.DataFrame:
        """The confusion matrix: rows reference, columns prediction, ``none`` first."""
        return confusion_frame(self.counts)

    def conventions(self) -> pd.DataFrame:
        """Return the figures of published evaluation codes for this pair alone.

        One row per convention, figure and class (empty for all): value (NaN where the published
        code has none), units, and the eight choices; see `napari_panoptic.values.conventions`.
        With an uncertain border, or a share of ambiguous areas, of the conventions that know them.
        """
        import pandas as pd

        from napari_panoptic.nuclei.class_masks import evaluate_classes
        from napari_panoptic.nuclei.conventions import (
            RegionPlace,
            RegionSums,
            TeamSums,
            figure_rows,
            rules_of,
            sums_of_pair,
        )

        pair, table, rules = self.pair, self.table, rules_of(self.settings)
        by_class: dict[str, NDArray[np.float64]] = {}
        if isinstance(pair, LabelPair):
            flat = pair.with_overlaps(Overlaps.FLATTEN)
            table = table if flat is pair else overlap_table(flat)
            usual = EvaluationSettings(ambiguous=self.settings.ambiguous, distances=False)
            pair, by_class = flat, evaluate_classes(flat, usual).sums
        outside = self.judged.counted if pair is self.pair else None
        found = sums_of_pair(pair, table, rules, outside)
        sums = TeamSums([RegionPlace("")], [RegionSums({**found.sums, **by_class}, found.types)])
        rows = figure_rows(sums, self.settings.known_by, rules, pair.class_names)
        return pd.DataFrame(list(rows)).astype({"units": "Int64"})


def evaluate(pair: LabelPair, settings: EvaluationSettings | None = None) -> Evaluation:
    """Evaluate one label pair.

    Parameters
    ----------
    pair
        Reference, prediction and ambiguous area; not changed.
    settings
        How to evaluate; None for the defaults.

    Raises
    ------
    LabelError
        If overlaps are kept and too many objects overlap.
    """
    settings = settings or EvaluationSettings()
    pair = pair.with_overlaps(settings.overlaps)
    table = overlap_table(pair)
    counted = counted_outside(pair, table, settings)
    return evaluated(pair, table, settings, KnownDistances.none(), counted=counted)


def evaluate_again(evaluation: Evaluation, settings: EvaluationSettings) -> Evaluation:
    """Evaluate the same pixels under other settings.

    Only ``overlaps`` changes the overlap table, and few settings change the distances and the
    zone: all are reused. The result equals that of :func:`evaluate`.
    """
    if evaluation.pair.with_overlaps(settings.overlaps) is not evaluation.pair:
        return evaluate(evaluation.pair, settings)
    pair, table, judged = evaluation.pair, evaluation.table, evaluation.judged
    is_same = has_same_zone(evaluation, settings)
    counted = judged.counted if is_same else counted_outside(pair, table, settings)
    return evaluated(
        pair,
        table,
        settings,
        evaluation.distances,
        counted=counted,
        judged=judged if is_same and judged.has_rules_of(settings) else None,
    )


def has_same_zone(
    evaluation: Evaluation | Evaluation[TiledPair], settings: EvaluationSettings
) -> bool:
    """Whether the same pixels of a region lie in its zone under other settings."""
    before, now = (Zone.of(evaluation.table, own) for own in (evaluation.settings, settings))
    return before is None if now is None else now.is_same(before)


class WindowReads(PointLookup, Protocol):
    """Reads the pixels that the stages after the overlap table need, in windows of a slide."""

    def measure(
        self,
        judged: JudgedOverlap,
        settings: EvaluationSettings,
        rows: NDArray[np.int32],
        columns: NDArray[np.int32],
    ) -> NDArray[np.float64]:
        """Return the distances (k, 2) of pairs of rows (k,)."""

    def in_zone(self, zone: Zone, y: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which points (n,) lie in the zone."""


def evaluated(
    pair: PairT,
    table: OverlapTable,
    settings: EvaluationSettings,
    known: KnownDistances,
    *,
    counted: OverlapTable | None = None,
    judged: JudgedOverlap | None = None,
    windows: WindowReads | None = None,
) -> Evaluation[PairT]:
    """Evaluate a label pair from its overlap table.

    Parameters
    ----------
    pair, table
        The label pair and its counts.
    settings
        How to evaluate.
    known
        Distances measured before on the same pixels.
    counted
        The counts outside of the zone of the settings; None if they have none.
    judged
        The table under the rules of the settings, if it is known.
    windows
        Reads the pixels of a pair that is not held; None for one that is.
    """
    judged, outlines = judged or judge(table, settings, counted), settings.outlines
    zone_at = _zone_lookup(pair, table, settings, windows)
    matches = match(pair, table, judged, settings, points=windows, zone_at=zone_at)

    def measure(rows: NDArray[np.int32], columns: NDArray[np.int32]) -> NDArray[np.float64]:
        if isinstance(pair, LabelPair):
            return pair_distances(pair, table, judged, rows, columns, outlines).figures
        if windows is None:
            raise TypeError("distances of a pair that is read in windows need its windows")
        return windows.measure(judged, settings, rows, columns)

    distances: PairDistances | None = None
    if settings.distances:
        distances, known = matched_distances(table, judged, matches, outlines, known, measure)
    return Evaluation(
        pair=pair,
        settings=settings,
        table=table,
        judged=judged,
        matches=matches,
        matched_distances=distances,
        distances=known,
    )


def _zone_lookup(
    pair: LabelPair | TiledPair,
    table: OverlapTable,
    settings: EvaluationSettings,
    windows: WindowReads | None,
) -> ZoneLookup | None:
    """Return what looks up whether the pixels that the centroid rule asks for lie in the zone."""
    if settings.matching is not Matching.CENTROID or (zone := Zone.of(table, settings)) is None:
        return None
    if windows is not None:
        return partial(windows.in_zone, zone)
    mask = zone.mask(pair, (0, 0, *pair.reference.shape))
    return lambda y, x: mask[y, x]


def evaluate_pair(
    reference: ArrayLike,
    prediction: ArrayLike,
    *,
    reference_classes: Mapping[int, str],
    prediction_classes: Mapping[int, str],
    ambiguous: ArrayLike | None = None,
    settings: EvaluationSettings | None = None,
    mpp: float | None = None,
    class_names: Sequence[str] | None = None,
    scores: Scores | None = None,
) -> Evaluation:
    """Evaluate a predicted label image; see `napari_panoptic.evaluate_pair`.

    Unlike there, both sides need a class for every id, and scores have ids. By default the
    classes are the four of MoNuSAC if the two mappings name no others, else those that
    they name, in order of first mention.
    """
    if class_names is None:
        class_names = _usual_order([*reference_classes.values(), *prediction_classes.values()])
    pair = LabelPair.from_arrays(
        reference,
        prediction,
        reference_classes,
        prediction_classes,
        class_names,
        ambiguous=None if ambiguous is None else checked_mask(ambiguous),
        mpp=mpp,
    )
    if scores is not None:
        pair = replace(pair, prediction=replace(pair.prediction, known_scores=scores))
    return evaluate(pair, settings)


def _usual_order(mentioned: Sequence[str]) -> tuple[str, ...]:
    if set(mentioned) <= set(MONUSAC_CLASSES.names):
        return MONUSAC_CLASSES.names
    return tuple(dict.fromkeys(mentioned))
