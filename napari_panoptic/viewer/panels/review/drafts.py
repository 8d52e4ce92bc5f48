"""The tags and notes that were typed for objects and are not saved with a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.review.cohort_verdicts import CohortVerdicts
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.tags import remembered
from napari_panoptic.review.verdicts import ReviewRecord
from napari_panoptic.viewer.panels.review.panel import ReviewPanel
from napari_panoptic.viewer.state.preferences import PREFERENCES

ObjectName = tuple[str, str, str, str, int]
"""Reviewer, region, team, side and id of an object."""
_KINDS = (str, str, str, str, int, str, str)
"""Of what is remembered of an object: its name, its tags and its note."""
Texts = tuple[str, str]
"""Tags and note of an object."""


class Drafts:
    """The drafts of a cohort, which the next window offers again.

    Parameters
    ----------
    cohort_root
        The cohort's folder, for which they are remembered.
    panel
        Where they are typed.
    reviewing
        The review.
    verdicts
        What is saved with the verdicts of the cohort.
    """

    def __init__(
        self, cohort_root: Path, panel: ReviewPanel, reviewing: Reviewing, verdicts: CohortVerdicts
    ) -> None:
        self._root, self._panel = cohort_root, panel
        self._reviewing, self._verdicts = reviewing, verdicts
        self._texts: dict[ObjectName, Texts] = {}
        for line in filter(_is_draft, PREFERENCES.drafts(cohort_root)):
            *names, id_, tags, note = line
            self._texts[(*names, id_)] = tags, note
        self._written = dict(self._texts)
        panel.tags.offer(PREFERENCES.tags)

    def write(self) -> None:
        """Remember the drafts for the next window, where they changed."""
        if self._texts != self._written:
            lines = [[*name, *texts] for name, texts in self._texts.items()]
            PREFERENCES.keep_drafts(self._root, lines)
            self._written = dict(self._texts)

    def of(self, name: FailureName) -> Texts | None:
        """Return tags and note that were typed for an object and are not saved."""
        return self._texts.get(self._key(name))

    def assign_to(self, reviewer: str) -> None:
        """Assign the drafts that were typed before the reviewer was named."""
        if self._reviewing.reviewer:
            return
        for name in [name for name in self._texts if not name[0]]:
            self._texts[(reviewer, *name[1:])] = self._texts.pop(name)

    def keep_typed(self, names: Iterable[FailureName]) -> None:
        """Keep what is typed with its objects, also where no verdict follows."""
        if not self._panel.has_draft:
            self.forget(names)
            return
        for name in names:
            self._texts[self._key(name)] = self._panel.details()

    def to_save(self, names: Iterable[FailureName]) -> dict[FailureName, Texts]:
        """Return tags and note for each object; of several, each keeps its own if none is typed."""
        tags, note = self._panel.details()
        records = {name: self._verdicts.record(name) for name in names}
        return {
            name: (tags, note)
            if len(records) == 1 or record is None
            else (tags or record.tag, note or record.note)
            for name, record in records.items()
        }

    def forget(self, names: Iterable[FailureName]) -> None:
        """Forget the drafts of objects, such as those whose tags and note were saved."""
        for name in names:
            self._texts.pop(self._key(name), None)

    def restore(self, records: Iterable[ReviewRecord]) -> None:
        """Make a draft of tags and note of verdicts that were withdrawn.

        Where an earlier verdict is in effect again and has some, they are those of that verdict.
        """
        for record in records:
            name = FailureName(record.team, record.region, record.side, record.object_id)
            standing = self._verdicts.record(name)
            if standing is None or not (standing.tag or standing.note):
                self._texts[self._key(name)] = record.tag, record.note

    def offer_again(self, tags: str) -> None:
        """Remember the user's own tags, and offer them."""
        known = PREFERENCES.tags
        if (own := remembered(known, tags)) != known:
            PREFERENCES.tags = own
            self._panel.tags.offer(own)

    def _key(self, name: FailureName) -> ObjectName:
        return self._reviewing.reviewer, name.region, name.team, str(name.side), name.id


def _is_draft(line: Any) -> bool:
    return (
        isinstance(line, list)
        and len(line) == len(_KINDS)
        and all(isinstance(value, kind) for value, kind in zip(line, _KINDS, strict=True))
    )
