"""The objects that a verdict applies to, with the tags and the note typed for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.review.cohort_verdicts import CohortVerdicts
from napari_panoptic.review.judged import Object, judged_as_one
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.tags import remembered
from napari_panoptic.review.verdicts import ReviewRecord
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Cause, Side
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.review.panel import ReviewPanel
from napari_panoptic.viewer.state.preferences import PREFERENCES


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


@dataclass(frozen=True)
class UnderReview:
    """A cohort under review: what the helpers of the review share."""

    #: The session and the desk.
    around: Surroundings
    #: The panel of the review.
    panel: ReviewPanel
    #: The review.
    reviewing: Reviewing
    verdicts: CohortVerdicts
    #: The objects that a verdict applies to.
    chosen: ChosenObjects


ObjectName = tuple[str, str, str, str, int]
"""Reviewer, region, team, side and id of an object."""


class Drafts:
    """The drafts of a cohort, by object.

    Parameters
    ----------
    root
        The cohort's folder; drafts are not remembered where None.
    """

    def __init__(self, root: Path | None = None) -> None:
        self._root = root
        self._texts: dict[ObjectName, tuple[str, str]] = {}
        self._is_written = True

    @classmethod
    def read(cls, root: Path) -> Drafts:
        """Return the drafts that are remembered for a cohort."""
        drafts = cls(root)
        for line in PREFERENCES.drafts(root):
            if _is_draft(line):
                *texts, id_, tag, note = line
                drafts._texts[(*texts, id_)] = tag, note
        return drafts

    def of(self, name: ObjectName) -> tuple[str, str] | None:
        """Return tag and note of an object; None if nothing was typed."""
        return self._texts.get(name)

    def put(self, name: ObjectName, details: tuple[str, str]) -> None:
        """Set tag and note of an object."""
        self._texts[name] = details
        self._is_written = False

    def forget(self, name: ObjectName) -> None:
        """Remove the draft of an object."""
        if self._texts.pop(name, None) is not None:
            self._is_written = False

    def give_to(self, reviewer: str) -> None:
        """Assign the drafts that were typed before the reviewer was named."""
        unnamed = {name: text for name, text in self._texts.items() if not name[0]}
        for name, details in unnamed.items():
            self.forget(name)
            self.put((reviewer, *name[1:]), details)

    def write(self) -> None:
        """Remember the drafts where they changed."""
        if self._root is not None and not self._is_written:
            lines = [[*name, *details] for name, details in self._texts.items()]
            PREFERENCES.keep_drafts(self._root, lines)
            self._is_written = True


def _is_draft(line: Any) -> bool:
    kinds = (str, str, str, str, int, str, str)
    return (
        isinstance(line, list)
        and len(line) == len(kinds)
        and all(isinstance(value, kind) for value, kind in zip(line, kinds, strict=True))
    )


class ReviewDetails:
    """The tags and the note of the objects that a verdict applies to."""

    def __init__(self, review: UnderReview) -> None:
        self._panel, self._reviewing = review.panel, review.reviewing
        self._verdicts, self._chosen = review.verdicts, review.chosen
        self._drafts = Drafts.read(review.around.session.cohort.root)
        self._panel.tags.offer(PREFERENCES.tags)

    def write(self) -> None:
        """Remember the drafts for the next window."""
        self._drafts.write()

    def draft(self, name: FailureName) -> tuple[str, str] | None:
        """Return tags and note that were typed for an object and are not saved."""
        return self._drafts.of(self._key(name))

    def assign_to(self, reviewer: str) -> None:
        """Assign the drafts that were typed before the reviewer was named."""
        if not self._reviewing.reviewer:
            self._drafts.give_to(reviewer)

    def keep_typed(self) -> None:
        """Keep what is typed with its objects, also where no verdict follows."""
        for name in self._chosen.names():
            if self._panel.has_draft:
                self._drafts.put(self._key(name), self._panel.details())
            else:
                self._drafts.forget(self._key(name))

    def of(self, names: Iterable[FailureName]) -> dict[FailureName, tuple[str, str]]:
        """Return tags and note for each object; of several, each keeps its own if none is typed."""
        tags, note = self._panel.details()
        found, records = {}, {name: self._verdicts.record(name) for name in names}
        for name, record in records.items():
            if len(records) == 1 or record is None:
                found[name] = tags, note
            else:
                found[name] = tags or record.tag, note or record.note
        return found

    def forget(self, names: Iterable[FailureName]) -> None:
        """Forget the drafts of objects whose tags and note were saved."""
        for name in names:
            self._drafts.forget(self._key(name))

    def give_back(self, records: Iterable[ReviewRecord]) -> None:
        """Make a draft of tags and note of verdicts that were withdrawn.

        Where an earlier verdict is in effect again and has some, they are those of that verdict.
        """
        for record in records:
            name = FailureName(record.team, record.region, record.side, record.object_id)
            standing = self._verdicts.record(name)
            if standing is None or not (standing.tag or standing.note):
                self._drafts.put(self._key(name), (record.tag, record.note))

    def offer_again(self, tags: str) -> None:
        """Remember the user's own tags, and offer them."""
        known = PREFERENCES.tags
        if (own := remembered(known, tags)) != known:
            PREFERENCES.tags = own
            self._panel.tags.offer(own)

    def _key(self, name: FailureName) -> ObjectName:
        return self._reviewing.reviewer, name.region, name.team, str(name.side), name.id
