"""Cache of pair distances, reused when settings change and after edits.

A setting changes which objects match, but not the distance between two outlines, unless it
cuts ambiguous pixels from one of them. So a step of a slider measures only the few new pairs,
and a stroke of the brush only those that it touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.counts import pair_keys, pair_rows
from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.distances import PairDistances, cuts, pair_distances
from napari_panoptic.nuclei.matching import Matches
from napari_panoptic.nuclei.overlap import OverlapTable
from napari_panoptic.nuclei.values.labels import LabelPair
from napari_panoptic.nuclei.values.settings import Outlines


@dataclass(frozen=True, eq=False)
class KnownDistances:
    """Distances of pairs of one label pair, whole and cut.

    Parameters
    ----------
    keys
        int64 (n,), ascending: the pairs. The keys of `pair_keys`, with twice the row, plus one
        if ambiguous pixels are cut from the outline.
    figures
        float64 (n, 2): their `PairDistances`, a column each, in px.
    """

    keys: NDArray[np.int64]
    figures: NDArray[np.float64]

    @classmethod
    def none(cls) -> KnownDistances:
        """Return an empty cache."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 2)))

    def without(
        self, reference_rows: NDArray[np.integer], prediction_rows: NDArray[np.integer]
    ) -> KnownDistances:
        """Return the distances without those of objects whose pixels changed."""
        if not len(self.keys):
            return self
        rows, columns = pair_rows(self.keys)
        kept = ~np.isin(rows // 2, reference_rows) & ~np.isin(columns // 2, prediction_rows)
        return self if kept.all() else KnownDistances(self.keys[kept], self.figures[kept])

    def find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Look up pairs.

        Returns
        -------
        place
            int64 (k,): the row of each pair in `figures`, if it is there.
        found
            bool (k,): whether it is there.
        """
        place = np.searchsorted(self.keys, keys)
        found = place < len(self.keys)
        found[found] = self.keys[place[found]] == keys[found]
        return place, found

    def with_new(self, keys: NDArray[np.int64], figures: NDArray[np.float64]) -> KnownDistances:
        """Return the cache with more pairs, which it does not have yet."""
        if not len(keys):
            return self
        all_keys = np.concatenate([self.keys, keys])
        order = np.argsort(all_keys, kind="stable")
        return KnownDistances(all_keys[order], np.concatenate([self.figures, figures])[order])


def matched_distances(
    pair: LabelPair,
    table: OverlapTable,
    judged: JudgedOverlap,
    matches: Matches,
    outlines: Outlines,
    known: KnownDistances,
) -> tuple[PairDistances, KnownDistances]:
    """Return the distances of matched pairs; measure those that are not known.

    Parameters
    ----------
    pair, table, judged, matches
        The label pair and the stages before this one.
    outlines
        Which outlines to compare if ambiguous pixels are cut.
    known
        Distances measured before on the same pixels.

    Returns
    -------
    distances
        Those of ``matches.pair``, in its order.
    known
        With the new ones among them.
    """

    def measure(rows: NDArray[np.int32], columns: NDArray[np.int32]) -> NDArray[np.float64]:
        return pair_distances(pair, table, judged, rows, columns, outlines).figures

    return known_or_measured(table, judged, matches, outlines, known, measure)


def known_or_measured(
    table: OverlapTable,
    judged: JudgedOverlap,
    matches: Matches,
    outlines: Outlines,
    known: KnownDistances,
    measure: Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.float64]],
) -> tuple[PairDistances, KnownDistances]:
    """Look up the distances of matched pairs; call a function for those that are not known.

    Parameters
    ----------
    table, judged, matches, outlines, known
        As in :func:`matched_distances`.
    measure
        Returns the figures (k, 2) of pairs of rows, int32 (k,) each.

    Returns
    -------
    As :func:`matched_distances`.
    """
    rows = judged.pair_reference[matches.pair]
    columns = judged.pair_prediction[matches.pair]
    cut_reference, cut_prediction = cuts(judged, outlines)
    # An outline without an ambiguous pixel is the same, cut or whole.
    reference_cut = cut_reference & (table.reference.void_area[rows] > 0)
    prediction_cut = cut_prediction & (table.prediction.void_area[columns] > 0)
    keys = pair_keys(2 * rows + reference_cut, 2 * columns + prediction_cut)
    place, found = known.find(keys)
    figures = np.full((len(keys), 2), np.nan)
    figures[found] = known.figures[place[found]]
    new = ~found
    if new.any():
        figures[new] = measure(rows[new], columns[new])
    distances = PairDistances(figures[:, 0], figures[:, 1])
    return distances, known.with_new(keys[new], figures[new])
