"""Why an object has its status, in a sentence that names the objects that explain it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display.styles import CAUSE_WORDS, count_text, length_text, ratio_text
from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import SideOutcomes
from napari_panoptic.tables.figures import percent
from napari_panoptic.values.vocabulary import (
    CAUSE_MEANINGS,
    CAUSES,
    STATUS_CODE,
    STATUSES,
    Cause,
    Side,
    Status,
)
from napari_panoptic.values.windowed_labels import TiledPair

MOST_NAMED = 6
"""Objects that a sentence names at most; more are counted."""

AnyEvaluation = Evaluation | Evaluation[TiledPair]
Rows = NDArray[np.integer]


@dataclass(frozen=True)
class Named:
    """An object that a sentence names."""

    #: Which object: its row in the outcomes.
    side: Side
    row: int
    #: Its id, which the sentence shows.
    id: int


Sentence = tuple[str | Named, ...]
"""Words, and the objects named among them."""


def plain_text(sentence: Sentence) -> str:
    """Return a sentence as text."""
    return "".join(part if isinstance(part, str) else str(part.id) for part in sentence)


def explain(evaluation: AnyEvaluation, side: Side, row: int) -> Sentence:
    """Explain the status of an object by the objects that overlap it.

    Parameters
    ----------
    evaluation
        The evaluation; not changed.
    side, row
        The object: its row in the outcomes.

    Returns
    -------
    Sentence
        Areas and overlaps in it are those after the ambiguous policy.
    """
    own = evaluation.outcomes.side(side)
    status, cause = STATUSES[own.status[row]], CAUSES[own.cause[row]]
    near = _near(evaluation, side, row)
    if status is Status.TP:
        return f"It matches {near.across} ", near.partner(), " and has the same class."
    if status is Status.MISCLASSIFIED:
        other = f"{near.across} class is {near.partner_class()}"
        return f"It matches {near.across} ", near.partner(), f", but the {other}."
    if status is Status.IGNORED and evaluation.in_zone(side)[row]:
        zone = evaluation.settings.zone_px
        return (f"No pixel of it is left outside of the uncertain border of {zone} px.",)
    if status is Status.IGNORED:
        return (f"{percent(near.ambiguous_share)} of it is in an ambiguous area.",)
    if cause not in _SENTENCES:
        return (f"{CAUSE_WORDS[cause].capitalize()}: {CAUSE_MEANINGS[cause]}",)
    return _SENTENCES[cause](near)


def explain_border(evaluation: AnyEvaluation, side: Side, row: int) -> Sentence:
    """Describe what the uncertain border takes from an object, and from its overlap.

    Parameters
    ----------
    evaluation
        The evaluation; not changed.
    side, row
        The object: its row in the outcomes.

    Returns
    -------
    Sentence
        Its pixels there, and the IoU with its partner without and with the zone; for an unmatched
        object, with the one that overlaps it most. Empty if no pixel of it lies there.
    """
    now, whole = evaluation.judged, evaluation.judged_whole
    total = int(whole.side(side).area[row])
    inside = total - int(now.side(side).area[row])
    if not inside:
        return ()
    lies = f"Of its {count_text(total)} px {count_text(inside)} lie in the uncertain border"
    whole_ious, now_ious = (_ious(judged, side, row) for judged in (whole, now))
    partner = int(evaluation.outcomes.side(side).partner[row])
    if partner != NO_PARTNER:
        other: Sentence = ("IoU ",)
    elif found := now_ious or whole_ious:
        partner = max(found, key=lambda row: (found[row], -row))
        named = _named(evaluation.outcomes.other(side), partner)
        other = f"IoU with {side.other} ", named, ": "
    else:
        return (f"{lies}.",)
    before, after = (ratio_text(each.get(partner, 0.0)) for each in (whole_ious, now_ious))
    zone = f"{after} with a zone of {evaluation.settings.zone_px} px."
    return (f"{lies}; ", *other, f"{before} without it, {zone}")


def _ious(judged: JudgedOverlap, side: Side, row: int) -> dict[int, float]:
    """Return the IoU with each object of the other side that overlaps an object, by its row."""
    pairs = np.flatnonzero(judged.rows_of_pairs(side) == row)
    return dict(
        zip(
            judged.rows_of_pairs(side.other)[pairs].tolist(),
            judged.iou[pairs].tolist(),
            strict=True,
        )
    )


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """An object, and those of the other side that overlap it (n), by rows of the outcomes."""

    evaluation: AnyEvaluation
    side: Side
    row: int
    area: int
    ambiguous_share: float
    centroid_yx_px: NDArray[np.float64]
    rows: Rows
    areas: NDArray[np.int64]
    centroids_yx_px: NDArray[np.float64]
    shared: NDArray[np.int64]
    iou: NDArray[np.float64]

    @property
    def across(self) -> Side:
        """The other side."""
        return self.side.other

    @property
    def outcomes(self) -> SideOutcomes:
        """The outcomes of the other side."""
        return self.evaluation.outcomes.side(self.across)

    @property
    def takes_part(self) -> NDArray[np.bool_]:
        """Which of them are not ignored, bool (n,)."""
        mask: NDArray[np.bool_] = self.outcomes.status[self.rows] != STATUS_CODE[Status.IGNORED]
        return mask

    def inside(self) -> Rows:
        """Return which of them are mostly inside this object."""
        return np.flatnonzero(self.takes_part & (2 * self.shared > self.areas))

    def around(self) -> Rows:
        """Return which of them contain most of this object."""
        return np.flatnonzero(self.takes_part & (2 * self.shared > self.area))

    def best(self, among: NDArray[np.bool_]) -> int | None:
        """Return the one with the highest IoU; among equals as in `kernels.causes`."""
        chosen = np.flatnonzero(among)
        keys = self.areas[chosen], -self.shared[chosen], -self.iou[chosen]
        return int(chosen[np.lexsort(keys)[0]]) if len(chosen) else None

    def nearest(self) -> int:
        """Return the unmatched one that explains a wrong size or place."""
        failure = Status.FP if self.across is Side.PREDICTION else Status.FN
        unmatched = self.outcomes.status[self.rows] == STATUS_CODE[failure]
        near_iou = self.evaluation.settings.near_iou
        at = self.best(unmatched & (self.iou >= near_iou))
        if at is None:
            raise RuntimeError("an object with this cause overlaps an unmatched one")
        return at

    def beyond(self, at: int) -> _Neighbours:
        """Return what overlaps one of them."""
        return _near(self.evaluation, self.across, int(self.rows[at]))

    def name(self, at: int) -> Named:
        """Name one of them."""
        return _named(self.outcomes, int(self.rows[at]))

    def names(self, which: Sequence[int] | Rows) -> Sentence:
        """Name some of them: "predictions 3, 5 and 8"."""
        shown = [self.name(int(at)) for at in which[:MOST_NAMED]]
        parts: list[str | Named] = [f"{self.across}s " if len(which) > 1 else f"{self.across} "]
        for place, name in enumerate(shown):
            is_last = place == len(which) - 1
            parts += ["" if not place else " and " if is_last else ", ", name]
        more = len(which) - len(shown)
        return (*parts, f" and {count_text(more)} more") if more else tuple(parts)

    def partner(self) -> Named:
        """Name the matched object."""
        own = self.evaluation.outcomes.side(self.side)
        return _named(self.outcomes, int(own.partner[self.row]))

    def partner_class(self) -> str:
        """Return the class of the matched object."""
        index = self.outcomes.class_index[self.partner().row]
        return str(self.evaluation.outcomes.class_names[index - 1])


def _near(evaluation: AnyEvaluation, side: Side, row: int) -> _Neighbours:
    """Return what overlaps an object."""
    judged = evaluation.judged
    own, other = judged.side(side), judged.side(side.other)
    pairs = np.flatnonzero(judged.rows_of_pairs(side) == row)
    theirs = judged.rows_of_pairs(side.other)[pairs]
    return _Neighbours(
        evaluation=evaluation,
        side=side,
        row=row,
        area=int(own.area[row]),
        ambiguous_share=float(own.ambiguous_share[row]),
        centroid_yx_px=own.centroid_yx_px[row],
        rows=theirs,
        areas=other.area[theirs],
        centroids_yx_px=other.centroid_yx_px[theirs],
        shared=judged.intersection[pairs],
        iou=judged.iou[pairs],
    )


def _named(outcomes: SideOutcomes, row: int) -> Named:
    return Named(outcomes.side, row, int(outcomes.ids[row]))


def _spill(near: _Neighbours) -> Sentence:
    return (f"Ambiguous spill: {percent(near.ambiguous_share)} of it is in an ambiguous area.",)


def _split(near: _Neighbours) -> Sentence:
    pieces = near.inside()
    covered = percent(near.shared[pieces].sum() / near.area)
    return "Split: ", *near.names(pieces), f" share it and cover {covered} of it."


def _merged(near: _Neighbours) -> Sentence:
    for at in near.around():
        cover = near.beyond(at)
        others = [k for k in cover.inside() if cover.rows[k] != near.row]
        if others:
            return (
                "Merged: prediction ",
                near.name(at),
                " covers it and ",
                *cover.names(others),
                ".",
            )
    raise RuntimeError("a merged object shares its prediction with another one")


def _fragment(near: _Neighbours) -> Sentence:
    split = [
        at for at in near.around() if CAUSES[near.outcomes.cause[near.rows[at]]] is Cause.SPLIT
    ]
    whole = near.beyond(split[0])
    pieces = [k for k in whole.inside() if whole.rows[k] != near.row]
    return (
        "Fragment: it shares reference ",
        near.name(split[0]),
        " with ",
        *whole.names(pieces),
        ".",
    )


def _merger(near: _Neighbours) -> Sentence:
    return "Merger: it covers ", *near.names(near.inside()), "."


def _duplicate(near: _Neighbours) -> Sentence:
    matched = [at for at in near.around() if near.outcomes.partner[near.rows[at]] >= 0]
    found = near.beyond(matched[0]).partner()
    name = near.name(matched[0])
    return "Duplicate: it is inside reference ", name, ", which prediction ", found, " matches."


def _too_small(near: _Neighbours) -> Sentence:
    at = near.nearest()
    reference = near.area if near.side is Side.REFERENCE else near.areas[at]
    covered = percent(near.shared[at] / reference)
    if near.side is Side.REFERENCE:
        return "Too small: prediction ", near.name(at), f" covers only {covered} of it."
    return f"Too small: it covers only {covered} of reference ", near.name(at), "."


def _too_large(near: _Neighbours) -> Sentence:
    at = near.nearest()
    if near.side is Side.REFERENCE:
        times = f"{near.areas[at] / near.area:.1f}"
        return "Too large: prediction ", near.name(at), f" has {times} times its area."
    times = f"{near.area / near.areas[at]:.1f}"
    return f"Too large: it has {times} times the area of reference ", near.name(at), "."


def _displaced(near: _Neighbours) -> Sentence:
    at = near.nearest()
    distance = float(np.linalg.norm(near.centroids_yx_px[at] - near.centroid_yx_px))
    figures = f"IoU {ratio_text(float(near.iou[at]))}, centres {length_text(distance)} apart"
    return f"Displaced: {near.across} ", near.name(at), f" overlaps it ({figures})."


def _alone(near: _Neighbours) -> Sentence:
    """Explain an object that nothing explains: missed or spurious."""
    word = "Missed" if near.side is Side.REFERENCE else "Spurious"
    at = near.best(np.ones(len(near.rows), bool))
    if at is None:
        return (f"{word}: no {near.across} overlaps it.",)
    figure = f" overlaps it most, with an IoU of {ratio_text(float(near.iou[at]))}"
    is_matched = near.outcomes.partner[near.rows[at]] >= 0
    why = ", and matches another object." if is_matched else "."
    return f"{word}: {near.across} ", near.name(at), figure + why


_SENTENCES: Mapping[Cause, Callable[[_Neighbours], Sentence]] = {
    Cause.AMBIGUOUS_SPILL: _spill,
    Cause.SPLIT: _split,
    Cause.MERGED: _merged,
    Cause.FRAGMENT: _fragment,
    Cause.MERGER: _merger,
    Cause.DUPLICATE: _duplicate,
    Cause.TOO_SMALL: _too_small,
    Cause.TOO_LARGE: _too_large,
    Cause.DISPLACED: _displaced,
    Cause.MISSED: _alone,
    Cause.SPURIOUS: _alone,
}
"""Causes whose sentence names objects; for others it is the meaning of the cause."""
