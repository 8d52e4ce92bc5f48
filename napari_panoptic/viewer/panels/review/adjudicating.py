"""Two reviewers compared, and the decisions of a third one where they disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from napari_panoptic.nuclei.display.glossary import VERDICT_WORDS
from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.identity import Subject
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.verdicts import Adjudication, ReviewerAgreement, ReviewRecord
from napari_panoptic.viewer.kit.shown import show_error
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.panels.review.panel import ReviewPanel


class Adjudicating:
    """Compares reviewers, and goes through their disagreements.

    Parameters
    ----------
    reviewing
        The review.
    panel
        The panel.
    changed
        Called when deciding has begun or ended.
    """

    def __init__(
        self, reviewing: Reviewing, panel: ReviewPanel, changed: Callable[[], None]
    ) -> None:
        self._reviewing, self._panel = reviewing, panel
        self._changed = changed
        self._adjudication: Adjudication | None = None

    @property
    def is_on(self) -> bool:
        """Whether the user decides between two reviewers."""
        return self._adjudication is not None

    def compare(self) -> None:
        """Offer to compare two reviewers."""
        store = self._reviewing.store
        try:
            reviewers = [] if store is None else store.reviewers()
        except ReviewError as error:
            show_error(str(error))
            return
        dialog = self._panel.compare_dialog
        dialog.offer(reviewers, self._reviewing.reviewer, self._reviewing.agreement)
        show_in_front(dialog)

    def begin(self, found: ReviewerAgreement) -> None:
        """Decide between two reviewers from now on."""
        self._adjudication = Adjudication(found)
        self._reviewing.use(adjudicates=(found.first, found.second))
        self._changed()

    def end(self) -> None:
        """Return to the user's own review."""
        self.forget()
        self._reviewing.use()
        self._changed()

    def forget(self) -> None:
        """Decide no longer: another reviewer or file is used."""
        self._adjudication = None

    def take(self, records: Sequence[ReviewRecord]) -> None:
        """Take decisions that were given."""
        if self._adjudication is not None:
            for record in records:
                self._adjudication.decide(record)
            if records:
                self.show(records[-1])

    def read_again(self) -> None:
        """Follow what was withdrawn, or changed in another window."""
        if self._adjudication is not None:
            found = self._reviewing.agreement(self._adjudication.first, self._adjudication.second)
            if found is not None:
                self._adjudication = Adjudication(found)

    def following(self, subject: Subject | None) -> ReviewRecord | None:
        """Return a verdict on the next object to decide on, None if all are decided."""
        if self._adjudication is None:
            return None
        item = self._adjudication.following(subject)
        return None if item is None else item.first

    def show(self, subject: Subject | None) -> None:
        """Show between whom is decided, and their verdicts on an object."""
        adjudication = self._adjudication
        if adjudication is None:
            self._panel.show_adjudication("")
            return
        done, total = adjudication.progress.done, adjudication.progress.total
        text = (
            f"Deciding between {adjudication.first} and {adjudication.second}: "
            f"{done} of {total} disagreements decided"
        )
        item = None if subject is None else adjudication.item_of(subject)
        opinions = "" if item is None else "\n".join(map(_opinion, (item.first, item.second)))
        self._panel.show_adjudication(text, opinions)


def _opinion(record: ReviewRecord) -> str:
    parts = [VERDICT_WORDS[record.verdict], record.tag, record.note]
    return f"{record.reviewer}: {' · '.join(part for part in parts if part)}"
