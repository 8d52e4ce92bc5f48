"""The review of a cohort while it is shown: joins panel, review file, table and session."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qtpy.QtCore import QTimer

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.nuclei.display.glossary import VERDICT_WORDS
from napari_panoptic.nuclei.display.object_rows import GivenVerdicts
from napari_panoptic.nuclei.session import EditedEvaluation, Selection
from napari_panoptic.nuclei.values.vocabulary import CAUSES, STATUSES, Cause, Side, Verdict
from napari_panoptic.review.file import may_be_there
from napari_panoptic.review.judged import Judged, Object, judged_as_one
from napari_panoptic.review.queue import next_open
from napari_panoptic.review.reviewing import Reviewing, usual_place
from napari_panoptic.review.tags import remembered
from napari_panoptic.review.verdicts import ReviewRecord, Role
from napari_panoptic.viewer.jobs.timers import stop_timers
from napari_panoptic.viewer.kit.napari_private import focus_canvas
from napari_panoptic.viewer.kit.shown import show_error, show_info, show_warning
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.review.adjudicating import Adjudicating
from napari_panoptic.viewer.panels.review.counting import ReviewCounting
from napari_panoptic.viewer.panels.review.dialogs import CompareDialog
from napari_panoptic.viewer.panels.review.drafts import Drafts, ObjectName
from napari_panoptic.viewer.panels.review.history import LAST_COUNT, object_name
from napari_panoptic.viewer.panels.review.panel import NOTHING_TO_JUDGE, ReviewPanel
from napari_panoptic.viewer.panels.review.places import ReviewPlaces
from napari_panoptic.viewer.panels.review.watching import FileWatch
from napari_panoptic.viewer.panels.review.writing import ReviewWriting
from napari_panoptic.viewer.panels.slide_texts import on_slide
from napari_panoptic.viewer.state.preferences import PREFERENCES, Queue

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
COHORT_DONE = "All failures reviewed"
REGION_DONE = "All failures of this region reviewed"
QUEUE_ENDED = "End of the queue"
ALL_DECIDED = "All disagreements decided"
HIDDEN = "{n} more failures are hidden by the table's filters."
SELECT_TO_CHANGE = "Select an object to change its verdict."


class ReviewPresenter:
    """A verdict per object, kept the moment it is given.

    Lives as long as the cohort is shown.

    Parameters
    ----------
    around
        The session and the desk.
    panel, dialog
        The widgets.
    poll, settle
        Timers for looks at the file, and for what follows edits.
    reviewer
        Who reviews; empty to ask.
    window
        Id of the window.
    is_seen
        Return whether the panel is visible.
    come_forward
        Brings the panel to the front.
    """

    def __init__(
        self,
        around: Surroundings,
        panel: ReviewPanel,
        dialog: CompareDialog,
        *,
        poll: QTimer,
        settle: QTimer,
        reviewer: str,
        window: str,
        is_seen: Callable[[], bool],
        come_forward: Callable[[], None],
    ) -> None:
        self._around, self._session, self._panel = around, around.session, panel
        self._is_seen, self._come_forward = is_seen, come_forward
        self._poll, self._settle = poll, settle
        root = around.session.cohort.root
        path = PREFERENCES.review_file(root) or usual_place(root)
        self.reviewing = Reviewing(around.session, reviewer=reviewer, path=path, window=window)
        self.counting = ReviewCounting(around, panel, self.reviewing, is_seen)
        self.writing = ReviewWriting(around.session, self.reviewing, panel, self.say)
        self.watch = FileWatch(self.reviewing, poll, self._on_changed_elsewhere)
        self._places = ReviewPlaces(root, self.reviewing, panel, self._on_other_file)
        self._adjudicating = Adjudicating(self.reviewing, panel, dialog, self._on_adjudication)
        self._dialog = dialog
        self._drafts = Drafts.read(root)
        self._wanted: ReviewRecord | str | None = None
        self._saved: ReviewRecord | None = None
        self._shown: tuple[ObjectName, ...] = ()
        # The object of the last verdict, until an object is selected by the user.
        self._judged_last: ObjectName | None = None
        panel.goes_on.setChecked(PREFERENCES.goes_on)
        panel.tags.offer(PREFERENCES.tags)
        panel.show_end("")
        self.say("")

    @property
    def is_busy(self) -> bool:
        """Whether verdicts are being counted or files written."""
        return self.counting.is_busy or self.writing.is_busy

    def connections(self) -> Connections:
        """Return the signals of session, table and panel, and what follows them."""
        session, panel, objects = self._session, self._panel, self._around.link.panels.objects
        return [
            (session.region_changed, self._on_region),
            (session.team_changed, self._on_team),
            (session.edited, self._on_edited),
            (session.selection_changed, self._on_selection),
            (session.selected_again, self._on_selected_again),
            (session.summary_changed, self._on_summary),
            (objects.rows_selected, self._on_rows_selected),
            (self.reviewing.changed, self.refresh),
            (self.reviewing.failed, self._on_failed),
            (self.reviewing.noticed, self._on_noticed),
            (panel.named, self._on_named),
            (panel.verdict_given, self.give),
            (panel.region_wanted, self._on_region_wanted),
            (panel.details_changed, self._on_details),
            (panel.details_typed, self._on_typed),
            (panel.typing_ended, self._return_keys),
            (panel.undo_wanted, self.undo),
            (panel.withdrawal_wanted, self.withdraw),
            (panel.next_wanted, self.go_on),
            (panel.goes_on_changed, self._on_goes_on),
            (panel.place_wanted, self._places.choose),
            (panel.suggestion_wanted, self._places.use_suggestion),
            (panel.retry_wanted, self.reviewing.try_again),
            (panel.record_chosen, self.go_to),
            (panel.comparison_wanted, self._adjudicating.compare),
            (panel.adjudication_ended, self._adjudicating.end),
            (panel.csv_wanted, self._on_csv),
            (panel.geojson_wanted, self.writing.write_region),
            (panel.stop_wanted, self.counting.stop),
            (self._dialog.record_chosen, self.go_to),
            (self._dialog.adjudication_wanted, self._adjudicating.begin),
            (self._dialog.export_wanted, self.writing.write_agreement),
        ]

    def begin(self) -> None:
        """Open the review file where there is one."""
        self._settle.timeout.connect(self._on_settled)
        self.reviewing.begin()
        self._poll.start()

    def close(self) -> str:
        """Stop all work and let go of the review file; returns who reviewed."""
        self._settle.timeout.disconnect(self._on_settled)
        stop_timers(self._settle)
        self.watch.close()
        self.counting.close()
        self.writing.close()
        self._drafts.write()
        self.reviewing.close()
        return self.reviewing.reviewer

    def refresh(self) -> None:
        """Show verdicts as they are now; place and figures once the panel is seen."""
        self._show_table()
        self._show_object()
        self.counting.take(self.reviewing.judged)
        if self._is_seen():
            self._show_place()
            self._show_history()
            self._panel.history.show_last(self.reviewing.recent(LAST_COUNT))
        self._settle.start()

    def on_sight(self) -> None:
        """Fill in what was left out while the panel was hidden."""
        if self.counting.is_stale:
            self.refresh()

    # User actions.

    def give(self, verdict: Verdict) -> None:
        """Save a verdict on the selected objects, and select the next failure without one.

        Only objects that were selected since the last verdict get one: if there is nothing
        to go on to, pressing the key again changes nothing.
        """
        if not self._is_ready():
            self._show_object()  # the button that was clicked is checked
            return
        places = self._chosen()
        if self._selected_name() == self._judged_last:
            self._show_object()
            self.say(NOT_NEWLY_SELECTED)
            show_info(NOT_NEWLY_SELECTED)
            return
        following = self._next_open()
        tags, note = self._panel.details()
        given = {place: (verdict, *self._details(place, tags, note)) for place in places}
        keys = [self._draft_key(place) for place in given]
        records = self.reviewing.give_all(given)
        if not records:
            self.say(f"NOT saved: {VERDICT_WORDS[verdict]}", saved=False)
            self._show_object()
            return
        self._judged_last = self._selected_name()
        self._forget_drafts(keys, tags)
        self._say_saved(records)
        self._adjudicating.take(records)
        if PREFERENCES.goes_on:
            self._go_after(records[-1], following)
        self._return_keys()

    def undo(self) -> None:
        """Withdraw the newest verdicts of this window and show their object."""
        self._panel.finish_name()
        records = self.reviewing.undo()
        if not records:
            if self.reviewing.problem is None:
                self.say(NOTHING_TO_UNDO)
            return
        self._allow_verdicts()
        self._adjudicating.read_again()
        self.say(f"undone: {_verdict_text(records)}")
        self.go_to(records[-1])
        self._return_keys()

    def withdraw(self) -> None:
        """Withdraw the verdict on the selected object, whenever it was given."""
        chosen = self._session.selection
        if not self._is_ready() or chosen is None:
            return
        record = self.reviewing.withdraw(chosen.side, chosen.row)
        if record is not None:
            self._allow_verdicts()
            self._adjudicating.read_again()
            self.say(f"withdrawn: {_verdict_text([record])}")
            self._return_keys()

    def go_on(self) -> None:
        """Select the next failure without a verdict, or the next open disagreement."""
        selection = self._session.selection
        if self._adjudicating.is_on:
            at = None if selection is None else self.reviewing.subject(*_place(selection))
            self._go_to_disagreement(self._adjudicating.following(at))
        else:
            self._go_to_failure(self._next_open())
        self._return_keys()

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
        self._around.link.go_to(record.region, team=team)
        if is_here:
            self._select_found(record)

    def say(self, text: str, *, saved: bool | None = None) -> None:
        """Show the state of a verdict in the panel; no verdict is then shown as saved."""
        self._saved = None
        self._panel.show_state(text, saved=saved)

    # The queue.

    def _next_open(self) -> Object | None:
        """Find the next listed failure without a verdict, other than those selected."""
        self.reviewing.follow()
        judged, chosen = self.reviewing.judged, self._chosen()
        if judged is None:
            return None
        model = self._around.link.panels.objects.model
        start = chosen[-1] if chosen else None
        return next_open(judged, model.rows, model.order, model.failures(), start, chosen)

    def _go_after(self, record: ReviewRecord, following: Object | None) -> None:
        if self._adjudicating.is_on:
            self._go_to_disagreement(self._adjudicating.following(record))
        else:
            self._go_to_failure(following)

    def _go_to_failure(self, following: Object | None) -> None:
        if following is not None:
            self._select(following)
            return
        text, detail, region = self._ended()
        self._end_queue(text, detail, region)
        if region and self._around.link.state.queue is Queue.COHORT:
            self._on_region_wanted(region)

    def _go_to_disagreement(self, record: ReviewRecord | None) -> None:
        if record is None:
            self._end_queue(ALL_DECIDED, SELECT_TO_CHANGE)
        else:
            self.go_to(record)

    def _end_queue(self, text: str, detail: str = "", region: str = "") -> None:
        """Show the end where the user looks, and take no verdict until one selects an object."""
        if not text:
            return
        self._judged_last = self._selected_name()
        self._panel.show_end(text, detail, region=region)
        if not self._is_seen():
            show_info(f"{text}. {detail}".strip())

    def _ended(self) -> tuple[str, str, str]:
        """Return why there is no next failure, what to do, and the region to continue with."""
        judged = self.reviewing.judged
        if judged is None:
            return "", "", ""
        done, total = judged.counts()
        region = self.counting.next_region() or ""
        if done < total:
            return QUEUE_ENDED, HIDDEN.format(n=total - done), region
        return REGION_DONE if region else COHORT_DONE, SELECT_TO_CHANGE, region

    def _on_region_wanted(self, region: str) -> None:
        self._wanted = region
        self._around.link.go_to(region)

    def _allow_verdicts(self) -> None:
        """Take verdicts on the selected object again."""
        self._judged_last = None
        self._panel.show_end("")

    # The selected objects.

    def _chosen(self) -> list[Object]:
        """Return the selected objects: several rows of the table, or the one selected."""
        evaluation, selection = self._session.evaluation, self._session.selection
        if evaluation is None:
            return []
        rows = self._around.link.panels.objects.selected_objects()
        if len(rows) > 1:
            counts = {side: len(evaluation.outcomes.side(side)) for side in Side}
            there = [(side, row) for side, row in rows if row < counts[side]]
            return list(dict.fromkeys(judged_as_one(evaluation, *place) for place in there))
        return [] if selection is None else [_place(selection)]

    def _selected_name(self) -> ObjectName | None:
        """Name the current object so that the same one is known again, whatever its row."""
        selection = self._session.selection
        return None if selection is None else self._name_of(selection)

    def _name_of(self, chosen: Selection) -> ObjectName:
        return self.reviewing.reviewer, self._region, chosen.team, str(chosen.side), chosen.id

    def _draft_key(self, place: Object) -> ObjectName:
        """Name the object that a verdict on an object is kept with."""
        evaluation, team = self._session.evaluation, self._session.team or ""
        side, row = place
        id_ = 0
        if evaluation is not None and row < len(evaluation.outcomes.side(side)):
            side, row = judged_as_one(evaluation, side, row)
            id_ = int(evaluation.outcomes.side(side).ids[row])
        return self.reviewing.reviewer, self._region, team, str(side), id_

    def _details(self, place: Object, tags: str, note: str) -> tuple[str, str]:
        """Return tags and note for an object; of several, each keeps its own if none is typed."""
        record = self.reviewing.record(*place)
        if len(self._chosen()) == 1 or record is None:
            return tags, note
        return tags or record.tag, note or record.note

    def _is_ready(self) -> bool:
        """Return whether verdicts can be given; say what is missing."""
        self._panel.finish_name()
        if not self.reviewing.reviewer:
            show_info(ASK_FOR_NAME)
            self._come_forward()
            self._panel.ask_for_name()
            return False
        if not self._chosen():
            self.say(NO_OBJECT)
            show_info(NO_OBJECT)
            return False
        return True

    def _select(self, place: Object) -> None:
        """Select an object and bring it into view."""
        self._session.select_row(*place)
        self._around.link.follow_selected()

    def _select_found(self, record: ReviewRecord) -> None:
        found = self.reviewing.find(record)
        if found is None:
            show_info(f"{object_name(record)} does not exist under these settings.")
        else:
            self._select(found)

    # Tags and note.

    def _on_typed(self) -> None:
        """Keep what is typed with its objects, also where no verdict follows."""
        for place in self._chosen():
            if self._panel.has_draft:
                self._drafts.put(self._draft_key(place), self._panel.details())
            else:
                self._drafts.forget(self._draft_key(place))

    def _on_details(self) -> None:
        """Save tags and note with the verdicts that the objects have."""
        if not self._is_ready():
            return
        tags, note = self._panel.details()
        given = {
            place: (record.verdict, *self._details(place, tags, note))
            for place in self._chosen()
            if (record := self.reviewing.record(*place)) is not None
        }
        if not given:
            self.say(DRAFT_KEPT)
            return
        keys = [self._draft_key(place) for place in given]
        records = self.reviewing.give_all(given)
        if not records:
            self.say("NOT saved: tags and note", saved=False)
            return
        self._forget_drafts(keys, tags)
        self._adjudicating.take(records)
        self._say_saved(records)

    def _forget_drafts(self, keys: Sequence[ObjectName], tags: str) -> None:
        """Forget drafts that were saved, and remember the user's own tags."""
        for key in keys:
            self._drafts.forget(key)
        known = PREFERENCES.tags
        if (own := remembered(known, tags)) != known:
            PREFERENCES.tags = own
            self._panel.tags.offer(own)

    def _say_saved(self, records: Sequence[ReviewRecord]) -> None:
        when = f"{records[-1].given_at.astimezone():%H:%M:%S}"
        self.say(f"saved {when}: {_verdict_text(records)}", saved=True)
        if len(records) == 1:
            self._saved = records[0]

    def _return_keys(self) -> None:
        """Return the keyboard focus from the panel to the image; other widgets keep it."""
        window = self._panel.window()
        focused = None if window is None else window.focusWidget()
        if focused is not None and self._panel.isAncestorOf(focused):
            focused.clearFocus()  # also if there is no canvas to take it
            focus_canvas(self._around.viewer)

    # Changes of reviewer and file.

    def _on_named(self, name: str) -> None:
        if not name or name == self.reviewing.reviewer:
            return
        PREFERENCES.reviewer = name
        if not self.reviewing.reviewer:
            self._drafts.give_to(name)  # typed before the name
        self._on_other_file()
        self.reviewing.use(reviewer=name)

    def _on_other_file(self) -> None:
        self._adjudicating.forget()
        self._restart()

    def _restart(self) -> None:
        """Forget what belonged to another reviewer or file."""
        self.counting.forget_all()
        self._allow_verdicts()
        self.say("")

    def _on_adjudication(self) -> None:
        """Start with the first open disagreement, or return to the own review."""
        self._restart()
        if self._adjudicating.is_on:
            self._go_to_disagreement(self._adjudicating.following(None))

    def _on_goes_on(self, wanted: bool) -> None:
        PREFERENCES.goes_on = wanted

    def _on_csv(self, everybody: bool) -> None:
        self.writing.write_verdicts(everybody=everybody)

    # What happens elsewhere.

    def _on_region(self, _snapshot: object) -> None:
        self.reviewing.refresh()
        wanted, self._wanted = self._wanted, None
        if isinstance(wanted, ReviewRecord) and wanted.region == self._region:
            self._select_found(wanted)
        elif wanted == self._region:
            self._go_to_failure(self._next_open())

    def _on_team(self, _name: str) -> None:
        self.reviewing.refresh()

    def _on_edited(self, _edited: EditedEvaluation) -> None:
        self._settle.start()

    def _on_selection(self, selection: Selection | None) -> None:
        # Other settings or an edit select the same object once more: the user did not.
        if selection is None or self._name_of(selection) != self._judged_last:
            self._allow_verdicts()
        self._show_object()
        self._show_history()

    def _on_selected_again(self, _selection: Selection) -> None:
        self._allow_verdicts()
        self._show_object()

    def _on_rows_selected(self) -> None:
        self._show_object()

    def _on_summary(self, _summary: object) -> None:
        if not self._settle.isActive():
            self._settle.start()

    def _on_changed_elsewhere(self, regions: tuple[str, ...]) -> None:
        if regions:
            self.counting.forget(regions)
            self._adjudicating.read_again()
            self._settle.start()
        self._follow_saved()

    def _follow_saved(self) -> None:
        """Report if another window withdrew or replaced the verdict that is shown as saved."""
        record, judged = self._saved, self.reviewing.judged
        if record is None or judged is None:
            return
        here = (self._region, self._session.team) == (record.region, record.team)
        if not here or record in judged.records.values():
            return
        if self.reviewing.find(record) is not None:  # else it was edited meanwhile
            self.say(CHANGED_ELSEWHERE.format(_verdict_text([record])))

    def _on_settled(self) -> None:
        """Follow edits and background figures, and count the regions with verdicts."""
        if self.reviewing.problem is not None:
            self.counting.show()
            return
        judged, evaluation = self.reviewing.judged, self._session.evaluation
        if evaluation is not (None if judged is None else judged.evaluation):
            self.reviewing.refresh()  # comes back here
        elif self._is_seen():
            self.counting.count_others()
            self.counting.show()
        else:
            self.counting.is_stale = True

    def _on_failed(self, error: PanopticError) -> None:
        show_error(str(error))

    def _on_noticed(self, finding: Finding) -> None:
        show_warning(finding.message)

    # What is shown.

    def _show_place(self) -> None:
        reviewing, panel = self.reviewing, self._panel
        panel.show_reviewer(reviewing.reviewer, previous=PREFERENCES.reviewer)
        panel.show_place(reviewing.path, is_there=may_be_there(reviewing.path))
        problem = reviewing.problem
        if problem is None:
            panel.show_problem("")
        else:
            panel.show_problem(problem.message, suggestion=problem.suggestion)
        panel.undo.setEnabled(reviewing.may_undo())
        panel.compare.setEnabled(reviewing.store is not None)

    def _show_history(self) -> None:
        """List the verdicts on the selected object, once the panel is seen."""
        if not self._is_seen():
            return
        selection = self._session.selection
        entries = [] if selection is None else self.reviewing.history(*_place(selection))
        self._panel.history.show_object(entries)

    def _show_table(self) -> None:
        judged = self.reviewing.judged
        given = {} if judged is None else verdicts_by_id(judged)
        self._around.link.panels.objects.show_verdicts(given)

    def _show_object(self) -> None:
        session, places = self._session, self._chosen()
        self._adjudicating.show(self.reviewing.subject(*places[0]) if len(places) == 1 else None)
        if not places:
            hint = None
            if session.evaluation is None:
                hint = on_slide(session.snapshot, slide_texts.REVIEW, NOTHING_TO_JUDGE)
            self._panel.show_object(None, None, hint=hint)
            self._shown = ()
            return
        records = [self.reviewing.record(*place) for place in places]
        names = tuple(self._draft_key(place) for place in places)
        is_fresh = names != self._shown
        if is_fresh:
            self._drafts.write()  # of the objects before
        verdicts = {None if record is None else record.verdict for record in records}
        self._panel.show_object(
            self._title(places),
            self._own(records[0]) if len(places) == 1 else None,
            verdict=verdicts.pop() if len(verdicts) == 1 else None,
            fresh=is_fresh,
            draft=self._drafts.of(names[0]) if len(places) == 1 else None,
        )
        self._shown = names

    def _own(self, record: ReviewRecord | None) -> ReviewRecord | None:
        """Return a verdict if it is the user's own; a decision shows others' as well."""
        role = Role.REVIEWER if self.reviewing.adjudicates is None else Role.ADJUDICATOR
        return record if record is not None and record.role is role else None

    def _title(self, places: Sequence[Object]) -> str:
        evaluation = self._session.evaluation
        if len(places) > 1 or evaluation is None:
            return f"{len(places)} objects"
        ((side, row),) = places
        name = "reference" if side is Side.REFERENCE else self._session.team
        own = evaluation.outcomes.side(side)
        if row >= len(own):
            return f"{name}"
        words = str(STATUSES[own.status[row]])
        if (cause := CAUSES[own.cause[row]]) is not Cause.NONE:
            words += f": {cause}"
        class_name = evaluation.outcomes.class_names[int(own.class_index[row]) - 1]
        return f"{name} {int(own.ids[row])} · {class_name} · {words}"

    @property
    def _region(self) -> str:
        snapshot = self._session.snapshot
        return "" if snapshot is None else snapshot.region.name


def verdicts_by_id(judged: Judged) -> dict[Side, GivenVerdicts]:
    """Return the verdicts as the object table wants them."""
    outcomes = judged.evaluation.outcomes
    return {side: GivenVerdicts(outcomes.side(side).ids, judged.codes[side]) for side in Side}


def _place(selection: Selection) -> Object:
    return selection.side, selection.row


def _verdict_text(records: Sequence[ReviewRecord]) -> str:
    verdicts = {VERDICT_WORDS[record.verdict] for record in records}
    words = verdicts.pop() if len(verdicts) == 1 else "verdicts"
    if len(records) > 1:
        return f"{words} on {len(records)} objects"
    return f"{words} on {object_name(records[0])}"
