"""The review of a cohort while it is shown: joins panel, review file, table and session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.display.glossary import VERDICT_WORDS
from napari_panoptic.live.session import Selection
from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.review.cohort_verdicts import CohortVerdicts, Details
from napari_panoptic.review.reviewing import Reviewing, usual_place
from napari_panoptic.review.verdicts import ReviewRecord
from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.jobs.timers import single_shot, stop_timers
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.shown import show_error, show_info, show_warning
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections, Presenter
from napari_panoptic.viewer.panels.region_panel import Sight
from napari_panoptic.viewer.panels.review.chosen import ChosenObjects, ReviewDetails, UnderReview
from napari_panoptic.viewer.panels.review.counting import ReviewCounting
from napari_panoptic.viewer.panels.review.files import FileWatch, ReviewPlaces, ReviewWriting
from napari_panoptic.viewer.panels.review.going_on import Adjudicating, GoingOn
from napari_panoptic.viewer.panels.review.history import LAST_COUNT, verdict_text
from napari_panoptic.viewer.panels.review.inputs import VERDICT_KEYS
from napari_panoptic.viewer.panels.review.panel import UNDO_KEY, ReviewPanel
from napari_panoptic.viewer.panels.review.showing import ReviewShowing
from napari_panoptic.viewer.state.preferences import PREFERENCES

SETTLE_MS = 300
"""How long verdicts and background figures rest before the review counts them."""
DRAFT_KEPT = "tags and note are a draft: they are saved with the verdict"
ASK_FOR_NAME = "Enter your name in the Review panel first: verdicts are kept under it."
NO_OBJECT = "Select an object first (N: the next failure); then give the verdict."
NOTHING_TO_UNDO = (
    "nothing to undo: no verdict of this window is in effect; withdraw removes that of the "
    "selected object"
)
CHANGED_ELSEWHERE = "taken back or replaced in another window: {}"
NOT_NEWLY_SELECTED = (
    "Verdict not stored: no newly selected object. Press N, or click the "
    "object again to change its verdict."
)


class TakesVerdicts(Protocol):
    """What the keys of verdicts apply to."""

    def give(self, verdict: Verdict) -> None:
        """Save a verdict."""

    def undo(self) -> None:
        """Withdraw the last verdict of this window."""


class ReviewPresenter(Presenter[ReviewPanel]):
    """A verdict per object, kept the moment it is given."""

    title = "Review"
    key = "Alt-j"
    panel_type = ReviewPanel

    def __init__(self, around: Surroundings, panel: ReviewPanel) -> None:
        super().__init__(around, panel)
        state = self.link.state
        self._sight = Sight.of(panel)
        self._settle = single_shot(SETTLE_MS, self._on_settled)
        self.key_taker: Callable[[], TakesVerdicts] = lambda: self
        """Return what the keys of verdicts apply to now: an item while a plan is reviewed."""
        root = around.session.cohort.root
        path = PREFERENCES.review_file(root) or usual_place(root)
        self.reviewing = Reviewing(
            around.session, reviewer=state.reviewer, path=path, window=state.window
        )
        self.verdicts = CohortVerdicts(around.session, self.reviewing)
        self._chosen = ChosenObjects(around)
        review = UnderReview(around, panel, self.reviewing, self.verdicts, self._chosen)
        self.counting = ReviewCounting(review, self._sight)
        self.writing = ReviewWriting(review, self.say)
        self.watch = FileWatch(self.reviewing, self._on_changed_elsewhere)
        self._places = ReviewPlaces(review, self._on_other_file)
        self._adjudicating = Adjudicating(review, self._on_adjudication)
        self._details = ReviewDetails(review)
        self._going_on = GoingOn(review, self._adjudicating)
        self._showing = ReviewShowing(review, self._adjudicating, self._details)
        self._saved: ReviewRecord | None = None
        panel.goes_on.setChecked(PREFERENCES.goes_on)
        self.say("")

    @classmethod
    def shortcuts(cls) -> tuple[tuple[Shortcut, Callable[[ReviewPresenter], None]], ...]:
        """Return the keys of the verdicts."""
        verdicts = (
            (
                Shortcut(key, f"verdict: {VERDICT_WORDS[verdict]}", f"verdict_{key[-1]}"),
                partial(_give_by_key, verdict=verdict),
            )
            for verdict, key in VERDICT_KEYS.items()
        )
        undo = Shortcut(UNDO_KEY, "undo the last verdict of this window", "undo_verdict")
        return (*verdicts, (undo, lambda presenter: presenter.key_taker().undo()))

    @property
    def is_busy(self) -> bool:
        """Whether verdicts are being counted or files written."""
        return self.counting.is_busy or self.writing.is_busy

    def connections(self) -> Connections:
        """Return the signals of session, table and panel, and what follows them."""
        session, panel, link = self.session, self.panel, self.link
        dialog = panel.compare_dialog
        objects, failures, go_to = link.panels.objects, link.failures, self._going_on.go_to
        return [
            (session.region_changed, self._on_region),
            (session.team_changed, self.reviewing.refresh),
            (link.edits_rested, self._on_settled),
            (session.selection_changed, self._on_selection),
            (session.selected_again, self._on_selected_again),
            (session.summary_changed, self._on_summary),
            (self._sight.changed, self._on_sight),
            (objects.rows_selected, self._showing.show_object),
            (failures.chosen_changed, self._on_failures_chosen),
            (failures.only_changed, self.verdicts.include),
            (failures.ended, self._going_on.report_end),
            (self.reviewing.touched, self.counting.forget),
            (self.reviewing.changed, self.refresh),
            (self.reviewing.failed, self._on_failed),
            (self.reviewing.noticed, self._on_noticed),
            (panel.named, self._on_named),
            (panel.verdicts.given, self.give),
            (panel.details_changed, self._on_details),
            (panel.details_typed, self._details.keep_typed),
            (panel.typing_ended, self.return_keys),
            (panel.undo.pushed, self.undo),
            (panel.withdrawal.pushed, self.withdraw),
            (panel.following.pushed, self.go_on),
            (panel.goes_on_changed, self._on_goes_on),
            (panel.place.pushed, self._places.choose),
            (panel.suggestion.pushed, self._places.use_suggestion),
            (panel.retry.pushed, self.reviewing.try_again),
            (panel.history.record_chosen, go_to),
            (panel.compare.pushed, self._adjudicating.compare),
            (panel.end_adjudication.pushed, self._adjudicating.end),
            (panel.csv_wanted, self._on_csv),
            (panel.geojson_wanted, self.writing.write_region),
            (panel.stop.pushed, self.counting.stop),
            (dialog.record_chosen, go_to),
            (dialog.adjudication_wanted, self._adjudicating.begin),
            (dialog.export_wanted, self.writing.write_agreement),
        ]

    def begin(self) -> None:
        """Open the review file where there is one."""
        self.reviewing.begin()
        self.watch.start()

    def close(self) -> None:
        """Stop all work and let go of the review file."""
        stop_timers(self._settle)
        self.watch.close()
        self.counting.close()
        self.writing.close()
        self._details.write()
        self.reviewing.close()
        self.link.state.reviewer = self.reviewing.reviewer

    def refresh(self) -> None:
        """Show verdicts as they are now; place and figures once the panel is seen."""
        self._showing.show_table()
        self._showing.show_object()
        self.counting.take(self.reviewing.judged)
        if self._sight.is_seen:
            self._showing.show_place()
            self._showing.show_history()
            self.panel.history.show_last(self.reviewing.recent(LAST_COUNT))
        self._settle.start()

    # User actions.

    def give(self, verdict: Verdict) -> None:
        """Save a verdict on the chosen objects, and go to the next failure without one.

        Only objects that were selected since the last verdict get one: if there is nothing
        to go on to, pressing the key again changes nothing.
        """
        if not self._is_ready():
            self._showing.show_object()  # the button that was clicked is checked
            return
        if self._going_on.is_refused:
            self._showing.show_object()
            self.say(NOT_NEWLY_SELECTED)
            show_info(NOT_NEWLY_SELECTED)
            return
        self._going_on.stand_here()
        details = self._details.of(self._chosen.names())
        records = self._save({name: (verdict, *texts) for name, texts in details.items()})
        if not records:
            self.say(f"NOT saved: {VERDICT_WORDS[verdict]}", saved=False)
            self._showing.show_object()
            return
        self._going_on.refuse()
        if PREFERENCES.goes_on:
            self._going_on.go_on_after(records[-1])
        self.return_keys()

    def undo(self) -> None:
        """Withdraw the newest verdicts of this window and show their object."""
        self.panel.finish_name()
        records = self.reviewing.undo()
        if not records:
            if self.reviewing.problem is None:
                self.say(NOTHING_TO_UNDO)
            return
        self._take_back(records)
        self.say(f"undone: {verdict_text(records)}")
        self._going_on.go_to(records[-1])
        self.return_keys()

    def withdraw(self) -> None:
        """Withdraw the verdict on the selected object, whenever it was given."""
        chosen = self.session.selection
        if not self._is_ready() or chosen is None:
            return
        record = self.reviewing.withdraw(chosen.side, chosen.row)
        if record is not None:
            self._take_back([record])
            self.say(f"withdrawn: {verdict_text([record])}")
            self.return_keys()

    def _take_back(self, records: Sequence[ReviewRecord]) -> None:
        """Follow the withdrawal of verdicts; what was typed for them is not lost."""
        self._going_on.allow()
        self._adjudicating.read_again()
        self._details.give_back(records)
        self._showing.show_draft()

    def go_on(self) -> None:
        """Select the next failure without a verdict, or the next open disagreement."""
        self._going_on.go_on()
        self.return_keys()

    def ask_for_name(self) -> None:
        """Put the cursor where the reviewer's name is to be entered."""
        self.link.reveal(self.title)
        self.panel.ask_for_name()

    def say(self, text: str, *, saved: bool | None = None) -> None:
        """Show the state of a verdict in the panel; no verdict is then shown as saved."""
        self._saved = None
        self.panel.state.show_state(text, saved=saved)

    def _on_details(self) -> None:
        """Save tags and note with the verdicts that the objects have."""
        if not self._is_ready():
            return
        details = self._details.of(self._chosen.names())
        records = {name: self.verdicts.record(name) for name in details}
        given = {
            name: (record.verdict, *details[name])
            for name, record in records.items()
            if record is not None
        }
        if not given:
            self.say(DRAFT_KEPT)
        elif not self._save(given):
            self.say("NOT saved: tags and note", saved=False)

    def _save(self, given: dict[FailureName, Details]) -> list[ReviewRecord]:
        """Save verdicts with tags and notes; empty if none was saved."""
        tags, _ = self.panel.details()
        records = self.verdicts.give(given)
        if records:
            self._details.forget(given)
            self._details.offer_again(tags)
            when = f"{records[-1].given_at.astimezone():%H:%M:%S}"
            self.say(f"saved {when}: {verdict_text(records)}", saved=True)
            self._saved = records[0] if len(records) == 1 else None
            self._adjudicating.take(records)
        return records

    def _is_ready(self) -> bool:
        """Return whether verdicts can be given; say what is missing."""
        self.panel.finish_name()
        if not self.reviewing.reviewer:
            show_info(ASK_FOR_NAME)
            self.ask_for_name()
            return False
        if not self._chosen.names():
            self.say(NO_OBJECT)
            show_info(NO_OBJECT)
            return False
        return True

    # Changes of reviewer and file.

    def _on_named(self, name: str) -> None:
        if not name or name == self.reviewing.reviewer:
            return
        PREFERENCES.reviewer = name
        self._details.assign_to(name)
        self._on_other_file()
        self.reviewing.use(reviewer=name)

    def _on_other_file(self) -> None:
        self._adjudicating.forget()
        self._restart()

    def _restart(self) -> None:
        """Forget what belonged to another reviewer or file."""
        self.counting.forget_all()
        self._going_on.allow()
        self.say("")

    def _on_adjudication(self) -> None:
        """Start with the first open disagreement, or return to the own review."""
        self._restart()
        if self._adjudicating.is_on:
            self._going_on.go_to_disagreement(self._adjudicating.following(None))
        else:
            self.refresh()

    def _on_goes_on(self, wanted: bool) -> None:
        PREFERENCES.goes_on = wanted

    def _on_csv(self, everybody: bool) -> None:
        self.writing.write_verdicts(everybody=everybody)

    # What happens elsewhere.

    def _on_sight(self, seen: bool) -> None:
        """Fill in what was left out while the panel was hidden."""
        if seen and self.counting.is_stale:
            self.refresh()

    def _on_region(self, _snapshot: object) -> None:
        self.reviewing.refresh()
        self._going_on.arrive()

    def _on_selection(self, _selection: Selection | None) -> None:
        self._going_on.follow_selection()
        self._showing.show_object()
        if self._sight.is_seen:
            self._showing.show_history()

    def _on_selected_again(self, _selection: Selection) -> None:
        self._going_on.allow()
        self._showing.show_object()

    def _on_failures_chosen(self, _names: tuple[FailureName, ...]) -> None:
        self._going_on.follow_selection()
        self._showing.show_object()

    def _on_summary(self, _summary: object) -> None:
        if not self._settle.isActive():
            self._settle.start()

    def _on_changed_elsewhere(self, regions: tuple[str, ...]) -> None:
        if regions:
            self._adjudicating.read_again()
            self._settle.start()
        # Without changes, only what the window has read already is looked through.
        if self._saved is not None and self._saved.region in (*regions, self._region):
            self._follow_saved(self._saved)

    def _follow_saved(self, record: ReviewRecord) -> None:
        """Report if another window withdrew or replaced the verdict that is shown as saved."""
        if record in self.reviewing.records(record.region):
            return
        is_here = (self._region, self.session.team) == (record.region, record.team)
        if is_here and self.reviewing.find(record) is None:
            return  # it was edited meanwhile
        self.say(CHANGED_ELSEWHERE.format(verdict_text([record])))

    def _on_settled(self) -> None:
        """Follow edits and background figures, and count the regions with verdicts."""
        if self.reviewing.problem is not None:
            self.counting.show()
            return
        judged, evaluation = self.reviewing.judged, self.session.evaluation
        if evaluation is not (None if judged is None else judged.evaluation):
            self.reviewing.refresh()  # comes back here
            return
        self.counting.show_reviewed()
        if self._sight.is_seen:
            self.counting.count_others()
            self.counting.show()
        else:
            self.counting.is_stale = True

    def _on_failed(self, error: PanopticError) -> None:
        show_error(str(error))

    def _on_noticed(self, finding: Finding) -> None:
        show_warning(finding.message)

    @property
    def _region(self) -> str:
        snapshot = self.session.snapshot
        return "" if snapshot is None else snapshot.region.name


def _give_by_key(presenter: ReviewPresenter, *, verdict: Verdict) -> None:
    presenter.key_taker().give(verdict)
