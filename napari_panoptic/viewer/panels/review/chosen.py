"""The objects that a verdict applies to."""

from __future__ import annotations

from collections.abc import Sequence

from napari_panoptic.nuclei.explain.cohort_failures import FailureName
from napari_panoptic.nuclei.values.vocabulary import CAUSES, STATUSES, Cause, Side
from napari_panoptic.review.judged import Object, judged_as_one
from napari_panoptic.viewer.panels.around import Surroundings


class ChosenObjects:
    """Several failures of the gallery, several rows of the object table, or the selected object.

    Parameters
    ----------
    around
        The session and the desk.
    """

    def __init__(self, around: Surroundings) -> None:
        self._session, self._link = around.session, around.link

    def names(self) -> tuple[FailureName, ...]:
        """Name the objects; of a misclassified pair, the one that has the verdict."""
        if failures := self._link.failures.chosen:
            return failures
        return tuple(dict.fromkeys(map(self.name_of, self._places())))

    def selected(self) -> FailureName | None:
        """Name the selected object as it is, so that it is known again, whatever its row."""
        chosen, snapshot = self._session.selection, self._session.snapshot
        if chosen is None or snapshot is None:
            return None
        return FailureName(chosen.team, snapshot.region.name, chosen.side, chosen.id)

    def name_of(self, place: Object) -> FailureName:
        """Name the object that a verdict on an object is kept with."""
        evaluation, snapshot = self._session.evaluation, self._session.snapshot
        side, row = place
        id_ = 0
        if evaluation is not None and row < len(evaluation.outcomes.side(side)):
            side, row = judged_as_one(evaluation, side, row)
            id_ = int(evaluation.outcomes.side(side).ids[row])
        region = "" if snapshot is None else snapshot.region.name
        return FailureName(self._session.team or "", region, side, id_)

    def title(self, names: Sequence[FailureName]) -> str:
        """Describe the objects in a few words."""
        evaluation, selection = self._session.evaluation, self._session.selection
        regions = {name.region for name in names}
        if len(regions) > 1:
            return f"{len(names)} failures in {len(regions)} regions"
        if len(names) > 1 or evaluation is None or selection is None:
            return f"{len(names)} objects"
        side, row = selection.side, selection.row
        name = "reference" if side is Side.REFERENCE else self._session.team
        own = evaluation.outcomes.side(side)
        if row >= len(own):
            return f"{name}"
        words = str(STATUSES[own.status[row]])
        if (cause := CAUSES[own.cause[row]]) is not Cause.NONE:
            words += f": {cause}"
        class_name = evaluation.outcomes.class_names[int(own.class_index[row]) - 1]
        return f"{name} {int(own.ids[row])} · {class_name} · {words}"

    def _places(self) -> list[Object]:
        evaluation, selection = self._session.evaluation, self._session.selection
        if evaluation is None:
            return []
        rows = self._link.panels.objects.selected_objects()
        if len(rows) > 1:
            counts = {side: len(evaluation.outcomes.side(side)) for side in Side}
            return [(side, row) for side, row in rows if row < counts[side]]
        return [] if selection is None else [(selection.side, selection.row)]
