"""Tags and note: typed, kept as drafts, and saved with verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from napari_panoptic.nuclei.explain.cohort_failures import FailureName
from napari_panoptic.review.cohort_verdicts import CohortVerdicts
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.tags import remembered
from napari_panoptic.viewer.panels.review.chosen import ChosenObjects
from napari_panoptic.viewer.panels.review.drafts import Drafts, ObjectName
from napari_panoptic.viewer.panels.review.panel import ReviewPanel
from napari_panoptic.viewer.state.preferences import PREFERENCES


class ReviewDetails:
    """The tags and the note of the objects that a verdict applies to.

    Parameters
    ----------
    root
        The folder of the cohort, for which drafts are remembered.
    panel
        The fields.
    reviewing, verdicts
        The review.
    chosen
        The objects.
    """

    def __init__(
        self,
        root: Path,
        panel: ReviewPanel,
        reviewing: Reviewing,
        verdicts: CohortVerdicts,
        chosen: ChosenObjects,
    ) -> None:
        self._panel, self._reviewing = panel, reviewing
        self._verdicts, self._chosen = verdicts, chosen
        self._drafts = Drafts.read(root)
        panel.tags.offer(PREFERENCES.tags)

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

    def offer_again(self, tags: str) -> None:
        """Remember the user's own tags, and offer them."""
        known = PREFERENCES.tags
        if (own := remembered(known, tags)) != known:
            PREFERENCES.tags = own
            self._panel.tags.offer(own)

    def _key(self, name: FailureName) -> ObjectName:
        return self._reviewing.reviewer, name.region, name.team, str(name.side), name.id
