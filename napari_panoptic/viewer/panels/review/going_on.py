"""Where the review goes: open failures and disagreements, whose verdicts are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from napari_panoptic.display.glossary import VERDICT_WORDS
from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.identity import Subject
from napari_panoptic.review.judged import Object
from napari_panoptic.review.verdicts import Adjudication, ReviewerAgreement, ReviewRecord
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.panels.review.chosen import UnderReview
from napari_panoptic.viewer.panels.review.history import object_name
from napari_panoptic.viewer.state.preferences import Queue


class Adjudicating:
    """Compares reviewers, and goes through their disagreements.

    Parameters
    ----------
    review
        The review.
    changed
        Called when deciding has begun or ended.
    """

    def __init__(self, review: UnderReview, changed: Callable[[], None]) -> None:
        self._reviewing, self._panel = review.reviewing, review.panel
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


COHORT_DONE = "All failures reviewed"
QUEUE_ENDED = "End of the queue"
ALL_DECIDED = "All disagreements decided"
SELECT_TO_CHANGE = "Select an object to change its verdict."
HIDDEN = "{n} more failures are hidden by the table's filters."
STILL_COMING = "The other regions are still being evaluated: press “Next open” when they are done."
NO_FAILURES = "Nothing is FN, FP or misclassified in the regions that are evaluated."
LAST_OPEN = "This is the only failure left without a verdict."


class GoingOn:
    """Goes from object to object, and takes no verdict on an object that was judged just now.

    Parameters
    ----------
    review
        The review; the end of the queue is shown in its panel and above the image.
    adjudicating
        The disagreements, if the user decides between two reviewers.
    """

    def __init__(self, review: UnderReview, adjudicating: Adjudicating) -> None:
        self._session, self._link = review.around.session, review.around.link
        self._panel, self._reviewing = review.panel, review.reviewing
        self._verdicts, self._chosen = review.verdicts, review.chosen
        self._adjudicating = adjudicating
        self._wanted: ReviewRecord | None = None
        # The objects of the last verdict, until the user selects others.
        self._judged_last: tuple[FailureName | None, ...] = ()
        self._panel.show_end("")

    @property
    def is_refused(self) -> bool:
        """Whether no object was selected since the last verdict."""
        return bool(self._judged_last) and self._objects() == self._judged_last

    def refuse(self) -> None:
        """Take no further verdict on the objects that are chosen now."""
        self._judged_last = self._objects()

    def allow(self) -> None:
        """Take verdicts on the chosen objects again."""
        self._judged_last = ()
        if self._panel.verdicts.end_text():
            self._panel.show_end("")
            self._link.show_selected()  # in place of the end of the queue

    def follow_selection(self) -> None:
        """Take verdicts on another object than the last one."""
        # Other settings or an edit select the same object once more: the user did not.
        if not self.is_refused:
            self.allow()

    def stand_here(self) -> None:
        """Go on from the selected object, though its verdict removes it from the list."""
        self._link.failures.stand_here()

    def go_on(self) -> None:
        """Go to the next failure without a verdict, or to the next open disagreement."""
        if self._adjudicating.is_on:
            chosen = self._session.selection
            at = None if chosen is None else self._reviewing.subject(chosen.side, chosen.row)
            self.go_to_disagreement(self._adjudicating.following(at))
        else:
            self._link.failures.go_on(self._is_open)

    def go_on_after(self, record: ReviewRecord) -> None:
        """Go on after a verdict."""
        if self._adjudicating.is_on:
            self.go_to_disagreement(self._adjudicating.following(record))
        else:
            self._link.failures.go_on(self._is_open)

    def go_to_disagreement(self, record: ReviewRecord | None) -> None:
        """Go to a disagreement; without one, all are decided."""
        if record is None:
            self._end(ALL_DECIDED, SELECT_TO_CHANGE)
        else:
            self.go_to(record)

    def go_to(self, record: ReviewRecord) -> None:
        """Show the object that a verdict is about, in whatever region and team it is."""
        regions = {region.name for region in self._session.cohort.regions}
        if record.region not in regions:
            show_info(f"{record.region} is no region of this cohort.")
            return
        is_here = record.region == self._region
        self._wanted = None if is_here else record
        teams = {team.name for team in self._session.cohort.teams}
        team = record.team if record.team in teams else None
        self._link.go_to(record.region, team=team)
        if is_here:
            self._select_found(record)

    def arrive(self) -> None:
        """Select the object that was gone to, once its region is shown."""
        wanted, self._wanted = self._wanted, None
        if wanted is not None and wanted.region == self._region:
            self._select_found(wanted)

    def report_end(self) -> None:
        """Report that no listed failure is open."""
        own = sum(map(self._verdicts.is_open, self._chosen.names()))
        done, total = self._verdicts.counts()
        if self._link.summary.is_busy and self._link.state.queue is Queue.COHORT:
            self._end(QUEUE_ENDED, STILL_COMING)
        elif total - done > own:
            self._end(QUEUE_ENDED, HIDDEN.format(n=total - done - own))
        elif own:
            self._link.panels.title.show_message(LAST_OPEN)
        elif total:
            self._end(COHORT_DONE, SELECT_TO_CHANGE)
        else:
            self._end(QUEUE_ENDED, NO_FAILURES)

    def _is_open(self, name: FailureName) -> bool:
        return self._verdicts.is_open(name)

    def _end(self, text: str, detail: str) -> None:
        """Show the end of the queue, and take no verdict until the user selects an object."""
        self.refuse()
        self._panel.show_end(text, detail)
        self._link.panels.title.show_message(f"{text}. {detail}")

    def _objects(self) -> tuple[FailureName | None, ...]:
        """Return what a verdict would apply to, comparable with an earlier answer."""
        return self._link.failures.chosen or (self._chosen.selected(),)

    def _select_found(self, record: ReviewRecord) -> None:
        found = self._reviewing.find(record)
        if found is None:
            show_info(f"{object_name(record)} does not exist under these settings.")
        else:
            self._select(found)

    def _select(self, place: Object) -> None:
        """Select an object and bring it into view."""
        self._session.select_row(*place)
        self._link.follow_selected()

    @property
    def _region(self) -> str:
        snapshot = self._session.snapshot
        return "" if snapshot is None else snapshot.region.name
