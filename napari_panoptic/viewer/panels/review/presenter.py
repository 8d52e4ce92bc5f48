"""The review of a cohort while it is shown: joins panel, review file, table and session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.display import slide_texts
from napari_panoptic.display.glossary import VERDICT_WORDS
from napari_panoptic.display.object_rows import GivenVerdicts
from napari_panoptic.display.slide_texts import on_slide
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.live.mends import Mend, Target
from napari_panoptic.live.session import Selection
from napari_panoptic.review.cohort_verdicts import CohortVerdicts, Details
from napari_panoptic.review.file import may_be_there
from napari_panoptic.review.identity import reviewer_name
from napari_panoptic.review.judged import Judged
from napari_panoptic.review.reviewing import Reviewing, usual_place
from napari_panoptic.review.verdicts import ReviewRecord, Role
from napari_panoptic.values.vocabulary import Side, Verdict
from napari_panoptic.viewer.editing.object_actions import ELSEWHERE, ObjectAction
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.shown import show_error, show_info, show_warning
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings
from napari_panoptic.viewer.panels.region_panel import Sight
from napari_panoptic.viewer.panels.review.counting import ReviewCounting
from napari_panoptic.viewer.panels.review.files import Drafts, ReviewFiles
from napari_panoptic.viewer.panels.review.history import LAST_COUNT, verdict_text
from napari_panoptic.viewer.panels.review.inputs import (
    JUDGING_KEYS,
    UNDO_KEY,
    VERDICT_KEYS,
    with_alt,
)
from napari_panoptic.viewer.panels.review.judging_keys import JudgingKeys
from napari_panoptic.viewer.panels.review.panel import NOTHING_TO_JUDGE, ReviewPanel
from napari_panoptic.viewer.panels.review.review_queue import Adjudicating, ReviewQueue
from napari_panoptic.viewer.panels.review.verdict_steps import Replay, VerdictSteps
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
CANCELLED = "cancelled: nothing saved, nothing mended"
NO_MEND = Mend()
CHANGED_ELSEWHERE = "taken back or replaced in another window: {}"
NOT_NEWLY_SELECTED = (
    "Verdict not stored: no newly selected object. Press N, or click the "
    "object again to change its verdict."
)


class ReviewPresenter(Presenter[ReviewPanel]):
    """A verdict per object, kept the moment it is given."""

    title = "Review"
    key = "Alt-j"
    single_keys = JUDGING_KEYS
    panel_type = ReviewPanel

    def __init__(self, around: Surroundings, panel: ReviewPanel) -> None:
        super().__init__(around, panel)
        session, state = self.session, self.link.state
        root = session.cohort.root
        self._sight = Sight.of(panel)
        self._settle = single_shot(SETTLE_MS, self._on_settled)
        self.keys = JudgingKeys(self.link.panels.title, self)
        self.reviewing = Reviewing(
            session,
            reviewer=state.reviewer,
            path=PREFERENCES.review_file(root) or usual_place(root),
            window=state.window,
        )
        self.verdicts = CohortVerdicts(session, self.reviewing)
        self.counting = ReviewCounting(around, panel, self.reviewing, self.verdicts)
        self.files = ReviewFiles(session, panel, self.reviewing, self.say)
        self._drafts = Drafts(root, panel, self.reviewing, self.verdicts)
        self._adjudicating = Adjudicating(panel, self.reviewing)
        self._queue = ReviewQueue(around, panel, self.reviewing, self.verdicts, self._adjudicating)
        self._saved: ReviewRecord | None = None
        self._shown: tuple[object, ...] = ()
        """Reviewer and objects that the panel shows."""
        replay = Replay(self.reviewing, self._save, self._show_undone, self._is_elsewhere)
        self._steps = VerdictSteps(self.link.history, replay)
        panel.goes_on.setChecked(PREFERENCES.goes_on)
        panel.show_mending(PREFERENCES.mends_at_once)
        self.say("")

    @classmethod
    def shortcuts(cls) -> tuple[tuple[Shortcut, Callable[[ReviewPresenter], None]], ...]:
        """Return the keys of the verdicts."""
        verdicts = (
            (
                Shortcut(with_alt(key), f"verdict: {VERDICT_WORDS[verdict]}", f"verdict_{key}"),
                partial(_give_by_key, verdict=verdict),
            )
            for verdict, key in VERDICT_KEYS.items()
        )
        undo = Shortcut(with_alt(UNDO_KEY), "undo the last verdict of this window", "undo_verdict")
        return (*verdicts, (undo, lambda presenter: presenter.keys.taker().undo()))

    @property
    def is_busy(self) -> bool:
        """Whether verdicts are being counted or files written."""
        return self.counting.is_busy or self.files.is_busy

    def connections(self) -> Connections:
        """Return the signals of session, table and panel, and their slots."""
        session, panel, link = self.session, self.panel, self.link
        dialog, failures = panel.compare_dialog, link.failures
        return [
            (session.region_changed, self._on_region),
            (session.team_changed, self.reviewing.refresh),
            (link.edits_rested, self._on_settled),
            (session.selection_changed, self._on_chosen),
            (session.selected_again, self._on_selected_again),
            (session.edits_discarded, self._on_discarded),
            (session.summary_changed, self._on_summary),
            (self._sight.changed, self._on_sight),
            (link.panels.objects.rows_selected, self._show_object),
            (failures.chosen_changed, self._on_chosen),
            (failures.only_changed, self.verdicts.include),
            (failures.ended, self._queue.report_end),
            (self.reviewing.touched, self.counting.forget),
            (self.reviewing.changed, self.refresh),
            (self.reviewing.failed, self._on_failed),
            (self.reviewing.noticed, self._on_noticed),
            (self.files.changed, self._on_changed_elsewhere),
            (self.files.moving, self._on_other_file),
            (self._adjudicating.changed, self._on_adjudication),
            (link.state.events.workspace, self._on_workspace),
            (panel.named, self._on_named),
            (panel.verdicts.given, self.give),
            (panel.tags.edited, self._on_typed),
            (panel.note.edited, self._on_typed),
            (panel.tags.line.entered, self._on_details),
            (panel.note.entered, self._on_details),
            (panel.typing_ended, self.return_keys),
            (panel.undo.pushed, self.undo),
            (panel.withdrawal.pushed, self.withdraw),
            (panel.following.pushed, self.go_on),
            (panel.place.pushed, self.files.choose),
            (panel.suggestion.pushed, self.files.use_suggestion),
            (panel.retry.pushed, self.reviewing.try_again),
            (panel.history.record_chosen, self._queue.go_to),
            (panel.compare.pushed, self._adjudicating.compare),
            (panel.end_adjudication.pushed, self._adjudicating.end),
            (panel.export_wanted, self.files.export),
            (panel.action_wanted, self._on_action),
            (panel.corrected_wanted, self._on_corrected),
            (panel.stop.pushed, self.counting.stop),
            (dialog.record_chosen, self._queue.go_to),
            (dialog.third_named, self._on_named),
            (dialog.adjudication_wanted, self._adjudicating.begin),
            (dialog.export_wanted, self.files.write_agreement),
        ]

    def begin(self) -> None:
        """Open the review file where there is one."""
        self.reviewing.begin()
        self.files.begin()
        if (edits := self._edits()) is not None:
            edits.mending.reviewer = lambda: self.reviewing.reviewer
            self.counting.mended = edits.mending.mended_failures
        self._on_workspace(self.link.state.workspace)

    def close(self) -> None:
        """Stop all work and let go of the review file."""
        stop_timers(self._settle)
        self.keys.release()
        self.files.close()
        self.counting.close()
        self._drafts.write()
        self.reviewing.close()
        self.link.state.reviewer = self.reviewing.reviewer

    # Display.

    def refresh(self) -> None:
        """Show verdicts as they are now; place and figures once the panel is seen."""
        judged = self.reviewing.judged
        self.link.panels.objects.show_verdicts({} if judged is None else _by_id(judged))
        self._show_object()
        self.counting.take(judged)
        if self._sight.is_seen:
            self._show_place()
            self._show_history()
            self.panel.history.show_last(self.reviewing.recent(LAST_COUNT))
        self._settle.start()

    def say(self, text: str, *, saved: bool | None = None) -> None:
        """Show the state of a verdict in the panel; no verdict is then shown as saved."""
        self._saved = None
        self.panel.state.show_state(text, saved=saved)

    def _show_place(self) -> None:
        """Show who reviews, where verdicts are kept, and what prevents it."""
        reviewing, panel = self.reviewing, self.panel
        panel.show_reviewer(reviewing.reviewer, previous=PREFERENCES.reviewer)
        panel.show_place(reviewing.path, is_there=may_be_there(reviewing.path))
        panel.show_problem(reviewing.problem)
        panel.undo.setEnabled(reviewing.may_undo())
        panel.compare.setEnabled(reviewing.store is not None)

    def _show_history(self) -> None:
        """List the verdicts on the selected object."""
        chosen = self.session.selection
        entries = [] if chosen is None else self.reviewing.history(chosen.side, chosen.row)
        self.panel.history.show_object(entries)

    def _show_object(self) -> None:
        """Show the object of a verdict, and its verdict, tags and note."""
        session, names, selection = self.session, self._queue.chosen(), self.session.selection
        is_one = len(names) == 1
        subject = None
        if is_one and selection is not None:
            subject = self.reviewing.subject(selection.side, selection.row)
        self._adjudicating.show(subject)
        if not names:
            hint = None
            if session.evaluation is None:
                hint = on_slide(session.snapshot, slide_texts.REVIEW, NOTHING_TO_JUDGE)
            self.panel.show_object(None, None, hint=hint)
            self._shown = ()
            return
        records = [self.verdicts.record(name) for name in names]
        shown = (self.reviewing.reviewer, *names)
        if is_fresh := shown != self._shown:
            self._drafts.write()  # those of the objects before
        verdicts = {None if record is None else record.verdict for record in records}
        self.panel.show_object(
            self._queue.title(names),
            self._own(records[0]) if is_one else None,
            verdict=verdicts.pop() if len(verdicts) == 1 else None,
            fresh=is_fresh,
            draft=self._drafts.of(names[0]) if is_one else None,
        )
        self._shown = shown

    def _own(self, record: ReviewRecord | None) -> ReviewRecord | None:
        """Return a verdict if it is the user's own; a decision shows others' as well."""
        role = Role.REVIEWER if self.reviewing.adjudicates is None else Role.ADJUDICATOR
        return record if record is not None and record.role is role else None

    # User actions.

    def give(self, verdict: Verdict) -> None:
        """Save a verdict on the chosen objects, and go to the next failure without one.

        Only objects that were selected since the last verdict, and painted since, get one: if
        there is nothing to go on to, pressing the key again changes nothing.
        """
        if not self._is_ready():
            self._show_object()  # the button that was clicked is checked
            return
        if reason := NOT_NEWLY_SELECTED if self._queue.is_refused else self.link.why_unseen:
            self._show_object()
            self.say(reason)
            show_info(reason)
            return
        # Go on from here, though the verdict removes the object from the list.
        self.link.failures.walk.stand_here()
        details = self._drafts.to_save(self._queue.chosen())
        given = {name: (verdict, *texts) for name, texts in details.items()}
        # Before the verdict is saved: afterwards the object may be another one.
        mend = self._mend_of(given)
        if mend is None:
            self._show_object()
            self.say(CANCELLED)
            return
        records = self._save(given)
        if not records:
            self.say(f"NOT saved: {VERDICT_WORDS[verdict]}", saved=False)
            self._show_object()
            return
        if self._note_step(given, records, mend):
            done = "to draw (Edits)" if verdict is Verdict.BOTH_WRONG else "mended"
            n = len(self._wanted_here(given))
            self._say_saved(records, f", {done}" if n == len(given) else f", {n} of them {done}")
        self._queue.refuse()
        if PREFERENCES.goes_on:
            self._queue.go_on_after(records[-1])
        self.return_keys()

    def undo(self) -> None:
        """Withdraw the newest verdicts of this window, with their mends; show their object."""
        self.panel.finish_name()
        if (problem := self._steps.undo_last()) is not None:
            if problem:
                self.say(problem)
        elif records := self.reviewing.undo():
            self._show_undone(records)
        else:
            failure = self.reviewing.problem
            self.say(NOTHING_TO_UNDO if failure is None else str(failure))

    def _show_undone(self, records: Sequence[ReviewRecord]) -> None:
        """Show verdicts that were withdrawn, and go to the last one."""
        self._take_back(records)
        self.say(f"undone: {verdict_text(records)}")
        self._queue.go_to(records[-1])
        self.return_keys()

    # What verdicts mend.

    def _on_action(self, action: ObjectAction) -> None:
        if (edits := self._edits()) is not None:
            edits.do(action)
            self.return_keys()

    def _on_corrected(self, form: str) -> None:
        if (edits := self._edits()) is not None:
            edits.corrected.save(form)

    def _edits(self) -> EditsPresenter | None:
        """Return the presenter of edits, if its panel is there."""
        try:
            return self.link.presenter(EditsPresenter)
        except LookupError:
            return None

    def _mend_of(self, given: Mapping[FailureName, Details]) -> Mend | None:
        """Return what verdicts on objects of this region mend at once; None if cancelled."""
        edits, wanted = self._edits(), self._wanted_here(given)
        if not PREFERENCES.mends_at_once or edits is None or not wanted:
            return NO_MEND
        return edits.mending.of_verdicts(wanted)

    def _wanted_here(self, given: Mapping[FailureName, Details]) -> dict[Target, Verdict]:
        """Return the verdicts on objects of the region and team that are shown."""
        snapshot = self.session.snapshot
        here = None if snapshot is None else (snapshot.region.name, self.session.team)
        return {
            (name.side, name.id): verdict
            for name, (verdict, *_) in given.items()
            if (name.region, name.team) == here
        }

    def _note_step(
        self,
        given: dict[FailureName, Details],
        records: Sequence[ReviewRecord],
        mend: Mend = NO_MEND,
    ) -> bool:
        """Mend, and let that be undone together with the verdicts; return whether it was done."""
        edits, mended = self._edits(), None
        if edits is not None:
            verdicts = {(name.side, name.id): verdict for name, (verdict, *_) in given.items()}
            mended = edits.mending.apply(mend, verdicts)
        self._steps.push(given, records, mended)
        return mended is not None

    def _is_elsewhere(self, names: Collection[FailureName]) -> str:
        """Show the region of objects; empty if it is shown already, or if there are several."""
        snapshot = self.session.snapshot
        places = {(name.region, name.team) for name in names}
        here = "" if snapshot is None else snapshot.region.name
        if len(places) != 1 or (here, self.session.team) in places:
            return ""
        ((region, team),) = places
        self.link.go_to(region, team=team)
        return ELSEWHERE.format(region)

    def withdraw(self) -> None:
        """Withdraw the verdict on the selected object, whenever it was given."""
        chosen = self.session.selection
        if not self._is_ready() or chosen is None:
            return
        record = self.reviewing.withdraw(chosen.side, chosen.row)
        if record is not None:
            self._steps.forget(lambda step: step.forget_verdicts([record]))
            self._take_back([record])
            self.say(f"withdrawn: {verdict_text([record])}")
            self.return_keys()

    def _take_back(self, records: Sequence[ReviewRecord]) -> None:
        """Follow the withdrawal of verdicts; their typed texts are not lost."""
        self._queue.allow()
        self._adjudicating.read_again()
        self._drafts.restore(records)
        self._shown = ()  # the object has another draft
        self._show_object()

    def go_on(self) -> None:
        """Select the next failure without a verdict, or the next open disagreement."""
        self._queue.go_on()
        self.return_keys()

    def write(self) -> None:
        """Put the cursor into the note."""
        self.link.reveal(self.title)
        self.panel.ensureWidgetVisible(self.panel.note)
        self.panel.note.setFocus()

    def types(self, digit: int) -> bool:  # noqa: ARG002
        """Return that no number is asked for."""
        return False

    def ask_for_name(self) -> None:
        """Put the cursor where the reviewer's name is to be entered."""
        self.link.reveal(self.title)
        self.panel.ask_for_name()

    def _on_typed(self) -> None:
        self._drafts.keep_typed(self._queue.chosen())

    def _on_details(self) -> None:
        """Save tags and note with the verdicts that the objects have."""
        if not self.panel.has_draft or not self._is_ready():
            return
        details = self._drafts.to_save(self._queue.chosen())
        records = {name: self.verdicts.record(name) for name in details}
        given = {
            name: (record.verdict, *details[name])
            for name, record in records.items()
            if record is not None
        }
        if not given:
            self.say(DRAFT_KEPT)
        elif saved := self._save(given):
            self._note_step(given, saved)
        else:
            self.say("NOT saved: tags and note", saved=False)

    def _save(self, given: dict[FailureName, Details]) -> list[ReviewRecord]:
        """Save verdicts with tags and notes; empty if none was saved."""
        tags, _ = self.panel.details()
        records = self.verdicts.give(given)
        if records:
            self._drafts.forget(given)
            self._drafts.offer_again(tags)
            self._say_saved(records)
            self._adjudicating.take(records)
        return records

    def _say_saved(self, records: Sequence[ReviewRecord], more: str = "") -> None:
        """Show that verdicts are on the disk, and what else was done."""
        when = f"{records[-1].given_at.astimezone():%H:%M:%S}"
        self.say(f"saved {when}{more}: {verdict_text(records)}", saved=True)
        self._saved = records[0] if len(records) == 1 else None

    def _is_ready(self) -> bool:
        """Return whether verdicts can be given; report why not."""
        self.panel.finish_name()
        if not self.reviewing.reviewer:
            show_info(ASK_FOR_NAME)
            self.ask_for_name()
            return False
        if not self._queue.chosen():
            self.say(NO_OBJECT)
            show_info(NO_OBJECT)
            return False
        return True

    # Changes of reviewer and file.

    def _on_named(self, typed: str) -> None:
        name = reviewer_name(typed)
        if not name or name == self.reviewing.reviewer:
            return
        PREFERENCES.reviewer = name
        self._drafts.assign_to(name)
        self._on_other_file()
        self.reviewing.use(reviewer=name)

    def _on_other_file(self) -> None:
        self._adjudicating.forget()
        self._restart()

    def _restart(self) -> None:
        """Forget what belonged to another reviewer or file."""
        self._steps.forget(lambda step: step.forget_verdicts())
        self.counting.forget_all()
        self._queue.allow()
        self.say("")

    def _on_adjudication(self) -> None:
        """Start with the first open disagreement, or return to the own review."""
        self._restart()
        if self._adjudicating.is_on:
            self._queue.go_to_disagreement()
        else:
            self.refresh()

    # What happens elsewhere.

    def _on_workspace(self, name: str) -> None:
        """Let the keys of the verdicts work in the workspace of the review, and nowhere else."""
        self.keys.set_on(name == self.title)

    def _on_sight(self, seen: bool) -> None:
        """Fill in the parts that were left out while the panel was hidden."""
        if seen and self.counting.is_stale:
            self.refresh()

    def _on_discarded(self, *_: object) -> None:
        if (snapshot := self.session.snapshot) is not None:
            region = snapshot.region.name
            self._steps.forget(lambda step: step.forget_mend(region))

    def _on_region(self, _snapshot: object) -> None:
        self.reviewing.refresh()
        self._queue.arrive()

    def _on_chosen(self, _chosen: object) -> None:
        self._queue.follow_selection()
        self._show_object()
        if self._sight.is_seen:
            self._show_history()

    def _on_selected_again(self, _selection: Selection) -> None:
        self._queue.allow()
        self._show_object()

    def _on_summary(self, _summary: object) -> None:
        if not self._settle.isActive():
            self._settle.start()

    def _on_changed_elsewhere(self, regions: tuple[str, ...]) -> None:
        if regions:
            self._adjudicating.read_again()
            self._settle.start()
        # Without changes, only regions that the window has read are searched.
        if self._saved is not None and self._saved.region in (*regions, self._queue.region):
            self._follow_saved(self._saved)

    def _follow_saved(self, record: ReviewRecord) -> None:
        """Report if another window withdrew or replaced the shown verdict as saved."""
        if record in self.reviewing.records(record.region):
            return
        is_here = (self._queue.region, self.session.team) == (record.region, record.team)
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


def _give_by_key(presenter: ReviewPresenter, *, verdict: Verdict) -> None:
    presenter.keys.taker().give(verdict)


def _by_id(judged: Judged) -> dict[Side, GivenVerdicts]:
    """Return the verdicts as the object table wants them."""
    outcomes = judged.evaluation.outcomes
    return {side: GivenVerdicts(outcomes.side(side).ids, judged.codes[side]) for side in Side}
