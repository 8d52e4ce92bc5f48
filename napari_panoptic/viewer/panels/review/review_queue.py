"""Where the review goes: the chosen objects, open failures, and disagreements of two reviewers."""

from __future__ import annotations

from collections.abc import Sequence

from psygnal import Signal

from napari_panoptic.common.text import counted
from napari_panoptic.display.glossary import VERDICT_WORDS
from napari_panoptic.display.styles import CAUSE_WORDS
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.review.cohort_verdicts import CohortVerdicts
from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.identity import Subject
from napari_panoptic.review.judged import Object, judged_as_one
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.verdicts import Adjudication, ReviewerAgreement, ReviewRecord
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Cause, Side
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.panels.part import Surroundings
from napari_panoptic.viewer.panels.review.history import object_name
from napari_panoptic.viewer.panels.review.panel import ReviewPanel
from napari_panoptic.viewer.state.preferences import Queue

COHORT_DONE = "All failures reviewed"
QUEUE_ENDED = "End of the queue"
ALL_DECIDED = "All disagreements decided"
SELECT_TO_CHANGE = "Select an object to change its verdict."
HIDDEN = "{n} by the table's filters."
STILL_COMING = "The other regions are still being evaluated: press “Next open” when they are done."
NO_FAILURES = "Nothing is FN, FP or misclassified in the regions that are evaluated."
LAST_OPEN = "This is the only failure left without a verdict."


class Adjudicating:
    """Compares reviewers, and goes through their disagreements.

    Parameters
    ----------
    panel
        Where it is shown.
    reviewing
        The review.
    """

    changed = Signal()  # deciding has begun or ended

    def __init__(self, panel: ReviewPanel, reviewing: Reviewing) -> None:
        self._panel, self._reviewing = panel, reviewing
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
        self.changed.emit()

    def end(self) -> None:
        """Return to the user's own review."""
        self.forget()
        self._reviewing.use()
        self.changed.emit()

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
        item = None if self._adjudication is None else self._adjudication.following(subject)
        return None if item is None else item.first

    def show(self, subject: Subject | None) -> None:
        """Show between whom is decided, and their verdicts on an object."""
        found = self._adjudication
        if found is None:
            self._panel.show_adjudication("")
            return
        text = (
            f"Deciding between {found.first} and {found.second}: "
            f"{found.progress.done} of {found.progress.total} disagreements decided"
        )
        item = None if subject is None else found.item_of(subject)
        opinions = "" if item is None else "\n".join(map(_opinion, (item.first, item.second)))
        self._panel.show_adjudication(text, opinions)


def _opinion(record: ReviewRecord) -> str:
    parts = [VERDICT_WORDS[record.verdict], record.tag, record.note]
    return f"{record.reviewer}: {' · '.join(part for part in parts if part)}"


class ReviewQueue:
    """Goes from object to object, and takes no verdict on an object that was judged just now.

    Parameters
    ----------
    around
        The session and the desk.
    panel
        Where the end of the queue is shown, as above the image.
    reviewing
        The review.
    verdicts
        The verdicts on the failures of the cohort.
    adjudicating
        The disagreements, if the user decides between two reviewers.
    """

    def __init__(
        self,
        around: Surroundings,
        panel: ReviewPanel,
        reviewing: Reviewing,
        verdicts: CohortVerdicts,
        adjudicating: Adjudicating,
    ) -> None:
        self._session, self._link, self._panel = around.session, around.link, panel
        self._reviewing, self._verdicts = reviewing, verdicts
        self._adjudicating = adjudicating
        self._wanted: ReviewRecord | None = None
        # The objects of the last verdict, until the user selects others.
        self._judged_last: tuple[FailureName | None, ...] = ()
        self._panel.verdicts.show_end("")

    @property
    def region(self) -> str:
        """Name of the region that is shown; empty if none is."""
        snapshot = self._session.snapshot
        return "" if snapshot is None else snapshot.region.name

    # The objects that a verdict applies to.

    def chosen(self) -> tuple[FailureName, ...]:
        """Name the objects that a verdict applies to.

        They are several failures of the gallery, several rows of the object table, or the selected
        object; of a misclassified pair, it is the one that has the verdict.
        """
        if failures := self._link.failures.chosen:
            return failures
        evaluation, selection = self._session.evaluation, self._session.selection
        if evaluation is None:
            return ()
        places = self._link.panels.objects.selected_objects()
        if len(places) > 1:
            counts = {side: len(evaluation.outcomes.side(side)) for side in Side}
            places = [(side, row) for side, row in places if row < counts[side]]
        else:
            places = [] if selection is None else [(selection.side, selection.row)]
        return tuple(dict.fromkeys(self._name_of(evaluation, place) for place in places))

    def title(self, names: Sequence[FailureName]) -> str:
        """Describe the objects in a few words."""
        evaluation, selection = self._session.evaluation, self._session.selection
        regions = {name.region for name in names}
        if len(regions) > 1:
            return f"{counted(len(names), 'failure')} in {counted(len(regions), 'region')}"
        if len(names) > 1 or evaluation is None or selection is None:
            return counted(len(names), "object")
        side, row = selection.side, selection.row
        name = "reference" if side is Side.REFERENCE else self._session.team
        own = evaluation.outcomes.side(side)
        if row >= len(own):
            return f"{name}"
        words = str(STATUSES[own.status[row]])
        if (cause := CAUSES[own.cause[row]]) is not Cause.NONE:
            words += f": {CAUSE_WORDS[cause]}"
        class_name = evaluation.outcomes.class_names[int(own.class_index[row]) - 1]
        return f"{name} {int(own.ids[row])} · {class_name} · {words}"

    def _name_of(self, evaluation: Evaluation, place: Object) -> FailureName:
        """Name the object that a verdict on an object is kept with."""
        side, row = place
        id_ = 0
        if row < len(evaluation.outcomes.side(side)):
            side, row = judged_as_one(evaluation, side, row)
            id_ = int(evaluation.outcomes.side(side).ids[row])
        return FailureName(self._session.team or "", self.region, side, id_)

    # Whether verdicts are taken.

    @property
    def is_refused(self) -> bool:
        """Whether no object was selected since the last verdict."""
        return bool(self._judged_last) and self._selected() == self._judged_last

    def refuse(self) -> None:
        """Take no further verdict on the objects that are chosen now."""
        self._judged_last = self._selected()

    def allow(self) -> None:
        """Take verdicts on the chosen objects again."""
        self._judged_last = ()
        if self._panel.verdicts.end_text():
            self._panel.verdicts.show_end("")
            self._link.show_selected()  # in place of the end of the queue

    def follow_selection(self) -> None:
        """Take verdicts on another object than the last one."""
        # Other settings or an edit select the same object once more: the user did not.
        if not self.is_refused:
            self.allow()

    def _selected(self) -> tuple[FailureName | None, ...]:
        """Name what is selected as it is, so that it is known again, whatever its row."""
        if failures := self._link.failures.chosen:
            return failures
        chosen = self._session.selection
        if chosen is None or self._session.snapshot is None:
            return (None,)
        return (FailureName(chosen.team, self.region, chosen.side, chosen.id),)

    # From object to object.

    def go_on(self) -> None:
        """Go to the next failure without a verdict, or to the next open disagreement."""
        chosen = self._session.selection
        at = None
        if self._adjudicating.is_on and chosen is not None:
            at = self._reviewing.subject(chosen.side, chosen.row)
        self.go_on_after(at)

    def go_on_after(self, subject: Subject | None) -> None:
        """Go on after an object, such as that of a verdict."""
        if self._adjudicating.is_on:
            self.go_to_disagreement(subject)
        else:
            self._link.failures.go_on(self._verdicts.is_open)

    def go_to_disagreement(self, after: Subject | None = None) -> None:
        """Go to the next open disagreement; without one, all are decided."""
        record = self._adjudicating.following(after)
        if record is None:
            self._end(ALL_DECIDED, SELECT_TO_CHANGE)
        else:
            self.go_to(record)

    def go_to(self, record: ReviewRecord) -> None:
        """Show the object that a verdict is about, in whatever region and team it is."""
        cohort = self._session.cohort
        if record.region not in {region.name for region in cohort.regions}:
            show_info(f"{record.region} is no region of this cohort.")
            return
        is_team = record.team in {team.name for team in cohort.teams}
        if record.side is Side.PREDICTION and not is_team:
            show_info(f"{record.team} is no team of this cohort.")
            return
        is_here = record.region == self.region
        self._wanted = None if is_here else record
        self._link.go_to(record.region, team=record.team if is_team else None)
        if is_here:
            self._select(record)

    def arrive(self) -> None:
        """Select the object that was gone to, once its region is shown."""
        wanted, self._wanted = self._wanted, None
        if wanted is not None and wanted.region == self.region:
            self._select(wanted)

    def report_end(self) -> None:
        """Report that no listed failure is open."""
        own = sum(map(self._verdicts.is_open, self.chosen()))
        done, total = self._verdicts.counts()
        if self._link.summary.is_busy and self._link.state.queue is Queue.COHORT:
            self._end(QUEUE_ENDED, STILL_COMING)
        elif total - done > own:
            hidden = counted(
                total - done - own, "more failure is hidden", "more failures are hidden"
            )
            self._end(QUEUE_ENDED, HIDDEN.format(n=hidden))
        elif own:
            self._link.panels.title.show_message(LAST_OPEN)
        elif total:
            self._end(COHORT_DONE, SELECT_TO_CHANGE)
        else:
            self._end(QUEUE_ENDED, NO_FAILURES)

    def _end(self, text: str, detail: str) -> None:
        """Show the end of the queue, and take no verdict until the user selects an object."""
        self.refuse()
        self._panel.verdicts.show_end(text, detail)
        self._link.panels.title.show_message(f"{text}. {detail}")

    def _select(self, record: ReviewRecord) -> None:
        """Select the object of a verdict and bring it into view."""
        found = self._reviewing.find(record)
        if found is None:
            show_info(f"{object_name(record)} does not exist under these settings.")
        else:
            self._session.select_row(*found)
            self._link.follow_selected()
