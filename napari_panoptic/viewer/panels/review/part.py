"""The review as part of the desk: joins panel, review file, table and session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QFileDialog, QWidget
from superqt.utils import create_worker

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.io.formats.polygons.geojson_writer import geo_objects, write_geojson
from napari_panoptic.nuclei.display.glossary import VERDICT_WORDS
from napari_panoptic.nuclei.display.object_rows import SIDES, GivenVerdicts
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.session import EditedEvaluation, Selection
from napari_panoptic.nuclei.values.cohort import ClassScheme
from napari_panoptic.nuclei.values.labels import LabelImage
from napari_panoptic.nuclei.values.vocabulary import CAUSES, STATUSES, Cause, Side, Verdict
from napari_panoptic.review.file import ReviewError, may_be_there
from napari_panoptic.review.judged import NO_VERDICT, VERDICTS, Judged, Object, judged_as_one
from napari_panoptic.review.reviewing import Reviewing, usual_place
from napari_panoptic.review.verdicts import ReviewerAgreement, ReviewRecord, Share
from napari_panoptic.review.watch import Looked
from napari_panoptic.viewer.jobs.review_work import (
    ReviewLines,
    Task,
    figures_of,
    line_of,
    line_without_verdicts,
)
from napari_panoptic.viewer.jobs.timers import stop_timers
from napari_panoptic.viewer.jobs.workers import connect_worker
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.shown import show_error, show_info, show_warning
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.layers.camera import focus_canvas
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections, DeskPart
from napari_panoptic.viewer.panels.review.dialogs import CompareDialog, HistoryDialog
from napari_panoptic.viewer.panels.review.drafts import Drafts, ObjectName
from napari_panoptic.viewer.panels.review.panel import (
    NOTHING_TO_JUDGE,
    UNDO_KEY,
    VERDICT_KEYS,
    BeforeAfter,
    ReviewPanel,
)
from napari_panoptic.viewer.panels.seen_part import Sight
from napari_panoptic.viewer.panels.slide_texts import on_slide
from napari_panoptic.viewer.state.preferences import PREFERENCES

POLL_MS = 1000
"""How often the file is looked at for what other windows did."""
SETTLE_MS = 300
"""How long edits, settings and background figures rest before the review follows them."""
DRAFT_KEPT = "tag and note are a draft: they are saved with the verdict"
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
ALL_DONE = "every failure of this region has your verdict; the next region is on J"
HIDDEN = "no failure without a verdict is listed; {n} more are hidden by the table's filters"


@dataclass(frozen=True)
class _Written:
    """How many objects a worker wrote, or why none; workers would raise a bare error."""

    count: int
    error: PanopticError | None = None


class ReviewPart(DeskPart):
    """A verdict per object, kept the moment it is given."""

    title = "Review"
    key = "Alt-j"

    def __init__(self) -> None:
        super().__init__()
        self.panel = ReviewPanel()
        self.history_dialog = HistoryDialog(self.panel)
        self.compare_dialog = CompareDialog(self.panel)
        self.reviewing: Reviewing | None = None
        self._window = uuid4().hex
        self._lines: ReviewLines | None = None
        self._writers: set[Any] = set()
        self._look: Any | None = None
        self._wanted: ReviewRecord | None = None
        self._saved: ReviewRecord | None = None
        self._shown_object: ObjectName | None = None
        # The object of the last verdict, until an object is selected by the user.
        self._judged_last: ObjectName | None = None
        self._drafts = Drafts()
        self._reviewer = ""  # asked for at each start
        self._is_stale = True
        self._sight = Sight(self.panel, self._on_sight)
        # Children of the panel: they go when it goes.
        self._poll, self._settle = QTimer(self.panel), QTimer(self.panel)
        self._poll.setInterval(POLL_MS)
        self._settle.setInterval(SETTLE_MS)
        self._settle.setSingleShot(True)
        self._poll.timeout.connect(self._on_poll)
        self._settle.timeout.connect(self._on_settled)

    @property
    def widget(self) -> QWidget:
        """The panel."""
        return self.panel

    @property
    def is_busy(self) -> bool:
        """Whether verdicts are being counted or files written."""
        return bool(self._writers) or (self._lines is not None and self._lines.is_busy)

    def shortcuts(self) -> tuple[tuple[Shortcut, Callable[[], None]], ...]:
        """Return the keys of the verdicts."""
        verdicts = tuple(
            (
                Shortcut(key, f"verdict: {VERDICT_WORDS[verdict]}", f"verdict_{key[-1]}"),
                partial(self.give, verdict),
            )
            for verdict, key in VERDICT_KEYS.items()
        )
        return (
            *verdicts,
            (Shortcut(UNDO_KEY, "undo the last verdict of this window", "undo_verdict"), self.undo),
        )

    def connections(self, around: Surroundings) -> Connections:
        """Listen to session and panel."""
        session, panel = around.session, self.panel
        return [
            (session.region_changed, self._on_region),
            (session.team_changed, self._on_team),
            (session.edited, self._on_edited),
            (session.selection_changed, self._on_selection),
            (session.selected_again, self._on_selected_again),
            (session.summary_changed, self._on_summary),
            (panel.named, self._on_named),
            (panel.verdict_given, self.give),
            (panel.details_changed, self._on_details),
            (panel.details_typed, self._on_typed),
            (panel.typing_ended, self._return_keys),
            (panel.undo_wanted, self.undo),
            (panel.withdrawal_wanted, self.withdraw),
            (panel.next_wanted, self.go_on),
            (panel.goes_on_changed, self._on_goes_on),
            (panel.place_wanted, self._on_place),
            (panel.suggestion_wanted, self._on_suggestion),
            (panel.retry_wanted, self._on_retry),
            (panel.history_wanted, self._on_history),
            (panel.comparison_wanted, self._on_comparison),
            (panel.csv_wanted, self._on_csv),
            (panel.geojson_wanted, self._on_geojson),
            (panel.stop_wanted, self._on_stop),
            (self.compare_dialog.record_chosen, self.go_to),
        ]

    def attach(self, around: Surroundings) -> None:
        """Join in with a cohort: find its review file and who reviews."""
        root = around.session.cohort.root
        reviewing = Reviewing(
            around.session,
            reviewer=self._reviewer,
            path=PREFERENCES.review_file(root) or usual_place(root),
            window=self._window,
        )
        reviewing.changed.connect(self.refresh)
        reviewing.failed.connect(self._on_failed)
        reviewing.noticed.connect(self._on_noticed)
        self.reviewing = reviewing
        self._drafts = Drafts.read(root)
        self._lines = ReviewLines(around.session.cohort)
        self._lines.changed.connect(self._show_cohort)
        self.panel.goes_on.setChecked(PREFERENCES.goes_on)
        self._say("")
        super().attach(around)
        reviewing.begin()
        self._poll.start()

    def detach(self) -> None:
        """Leave a cohort: stop all work and let go of the review file."""
        super().detach()
        stop_timers(self._poll, self._settle)
        lines, self._lines = self._lines, None
        if lines is not None:
            lines.changed.disconnect(self._show_cohort)
            lines.stop()
        reviewing, self.reviewing, self._look = self.reviewing, None, None
        self._drafts.write()
        if reviewing is not None:
            self._reviewer = reviewing.reviewer
            reviewing.changed.disconnect(self.refresh)
            reviewing.failed.disconnect(self._on_failed)
            reviewing.noticed.disconnect(self._on_noticed)
            reviewing.close()
        self._wanted, self._saved, self._shown_object = None, None, None
        self._judged_last = None

    def refresh(self) -> None:
        """Show verdicts as they are now; place, progress and figures once the panel is seen."""
        if self.around is None or self.reviewing is None:
            return
        self._show_table()
        self._show_object()
        self._is_stale = not self._sight.is_seen
        if not self._is_stale:
            self._show_place()
            self._show_line()
        elif self._lines is not None:
            self._lines.forget([self._region()])  # outdated
        self._settle.start()

    # User actions.

    def give(self, verdict: Verdict) -> None:
        """Save a verdict on the selected object, and select the next failure without one.

        Only an object that was selected since the last verdict gets one: if there is nothing
        to go on to, pressing the key again changes nothing.
        """
        reviewing, chosen = self._ready()
        if reviewing is None or chosen is None:
            self._show_object()  # the button that was clicked is checked
            return
        if self._object_name(chosen) == self._judged_last:
            self._show_object()
            self._say(NOT_NEWLY_SELECTED)
            show_info(NOT_NEWLY_SELECTED)
            return
        following = self._next_open(chosen)
        tag, note = self.panel.details()
        record = reviewing.give(chosen.side, chosen.row, verdict, tag=tag, note=note)
        if record is None:
            self._say(f"NOT saved: {VERDICT_WORDS[verdict]}", saved=False)
            self._show_object()
            return
        self._judged_last = self._object_name(chosen)
        self._drafts.forget(self._draft_key(chosen))
        if not PREFERENCES.goes_on:
            self._say_saved(record)
        elif following is None:
            self._say_saved(record, self._none_open())
        else:
            self._say_saved(record)
            self._select(following)
        self._return_keys()

    def undo(self) -> None:
        """Withdraw the newest verdict of this window and show its object."""
        if self.reviewing is None:
            return
        self.panel.finish_name()
        record = self.reviewing.undo()
        if record is None:
            if self.reviewing.problem is None:
                self._say(NOTHING_TO_UNDO)
            return
        self._judged_last = None
        self._say(f"undone: {VERDICT_WORDS[record.verdict]} on {_title(record)}")
        self.go_to(record)
        self._return_keys()

    def withdraw(self) -> None:
        """Withdraw the verdict on the selected object, whenever it was given."""
        reviewing, chosen = self._ready()
        if reviewing is None or chosen is None:
            return
        record = reviewing.withdraw(chosen.side, chosen.row)
        if record is not None:
            self._judged_last = None
            self._say(f"withdrawn: {VERDICT_WORDS[record.verdict]} on {_title(record)}")
            self._return_keys()

    def go_on(self) -> None:
        """Select the next failure without a verdict, in the order of the table."""
        if self.around is None:
            return
        following = self._next_open(self.around.session.selection)
        if following is not None:
            self._select(following)
        elif text := self._none_open():
            self._say(text)
        self._return_keys()

    def go_to(self, record: ReviewRecord) -> None:
        """Show the object that a verdict is about, in whatever region and team it is."""
        if self.around is None:
            return
        session = self.around.session
        if record.team != session.team and record.team in {t.name for t in session.cohort.teams}:
            session.set_team(record.team)
        snapshot = session.snapshot
        if snapshot is None or snapshot.region.name != record.region:
            if record.region in {region.name for region in session.cohort.regions}:
                self._wanted = record
                self.around.link.panels.navigator.region_chosen.emit(record.region)
            return
        self._select_found(record)

    def _ready(self) -> tuple[Reviewing | None, Selection | None]:
        """Return what is needed for a verdict; says what is missing."""
        if self.around is None or self.reviewing is None:
            return None, None
        self.panel.finish_name()
        if not self.reviewing.reviewer:
            show_info(ASK_FOR_NAME)
            self.around.link.reveal(self.title)
            self.panel.ask_for_name()
            return None, None
        if self.around.session.selection is None:
            self._say(NO_OBJECT)
            show_info(NO_OBJECT)
        return self.reviewing, self.around.session.selection

    def _next_open(self, start: Selection | None) -> Object | None:
        """Find the next listed failure without a verdict, other than the one at the start."""
        if self.around is None or self.reviewing is None:
            return None
        self.reviewing.follow()
        judged = self.reviewing.judged
        if judged is None:
            return None
        model = self.around.link.panels.objects.model
        rows = model.rows
        codes = np.concatenate([judged.codes[side] for side in SIDES])
        if len(codes) != len(rows):
            return None  # the table is about to follow an edit
        places = np.full(len(rows), -1)
        places[model.order] = np.arange(len(model.order))
        listed = model.failures()
        still_open = listed[codes[listed] == NO_VERDICT]
        here = -1
        if start is not None:
            here = int(places[rows.row_of(start.side, start.row)])
            same = [rows.row_of(*place) for place in self._same(judged, start)]
            still_open = still_open[~np.isin(still_open, same)]
        if not len(still_open):
            return None
        after = still_open[places[still_open] > here]
        return rows.object_of(int((after if len(after) else still_open)[0]))

    def _same(self, judged: Judged, chosen: Selection) -> set[Object]:
        """Return an object and, of a misclassified pair, its partner."""
        partner = int(judged.evaluation.outcomes.side(chosen.side).partner[chosen.row])
        other = Side.PREDICTION if chosen.side is Side.REFERENCE else Side.REFERENCE
        own = {(chosen.side, chosen.row)}
        return own if partner == NO_PARTNER else own | {(other, partner)}

    def _select(self, place: Object) -> None:
        """Select an object and bring it into view."""
        if self.around is not None:
            self.around.session.select_row(*place)
            self.around.link.follow_selected()

    def _none_open(self) -> str:
        """Return why there is no failure to go on to; show it where the panel is not in sight."""
        judged = None if self.reviewing is None else self.reviewing.judged
        if judged is None:
            return ""
        done, total = judged.counts()
        text = ALL_DONE if done == total else HIDDEN.format(n=total - done)
        if not self._sight.is_seen:
            show_info(text)
        return text

    def _return_keys(self) -> None:
        """Return the keyboard focus from the panel to the image; other widgets keep it."""
        window = self.panel.window()
        focused = None if window is None else window.focusWidget()
        if self.around is not None and focused is not None and self.panel.isAncestorOf(focused):
            focused.clearFocus()  # also if there is no canvas to take it
            focus_canvas(self.around.viewer)

    def _on_typed(self) -> None:
        """Keep what is typed with its object, also where no verdict follows."""
        chosen = None if self.around is None else self.around.session.selection
        if chosen is not None:
            key = self._draft_key(chosen)
            if self.panel.has_draft:
                self._drafts.put(key, self.panel.details())
            else:
                self._drafts.forget(key)

    def _on_details(self) -> None:
        """Save tag and note with the verdict that the object has."""
        reviewing, chosen = self._ready()
        if reviewing is None or chosen is None:
            return
        record = reviewing.record(chosen.side, chosen.row)
        if record is None:
            self._say(DRAFT_KEPT)
            return
        tag, note = self.panel.details()
        again = reviewing.give(chosen.side, chosen.row, record.verdict, tag=tag, note=note)
        if again is None:
            self._say("NOT saved: tag and note", saved=False)
        else:
            self._drafts.forget(self._draft_key(chosen))
            self._say_saved(again)

    def _say_saved(self, record: ReviewRecord, following: str = "") -> None:
        when = f"{record.given_at.astimezone():%H:%M:%S}"
        words = VERDICT_WORDS[record.verdict]
        parts = [f"saved {when}: {words} on {_title(record)}", following]
        self._say("; ".join(part for part in parts if part), saved=True)
        self._saved = record

    def _say(self, text: str, *, saved: bool | None = None) -> None:
        """Show the state of a verdict in the panel; no verdict is then shown as saved."""
        self._saved = None
        self.panel.show_state(text, saved=saved)

    def _on_named(self, name: str) -> None:
        if self.reviewing is None or not name or name == self.reviewing.reviewer:
            return
        PREFERENCES.reviewer = name
        if not self.reviewing.reviewer:
            self._drafts.give_to(name)  # typed before the name
        self._forget_lines()
        self._say("")
        self._judged_last = None
        self.reviewing.use(reviewer=name)

    def _on_goes_on(self, wanted: bool) -> None:
        PREFERENCES.goes_on = wanted

    def _on_place(self) -> None:
        if self.reviewing is None:
            return
        chosen, _ = QFileDialog.getSaveFileName(
            self.panel,
            "Keep verdicts in this file; one that exists is continued",
            str(self.reviewing.path),
            "Reviews (*.sqlite)",
            options=QFileDialog.Option.DontConfirmOverwrite,
        )
        if chosen:
            self._use_place(Path(chosen))

    def _on_suggestion(self) -> None:
        problem = None if self.reviewing is None else self.reviewing.problem
        if problem is not None and problem.suggestion is not None:
            self._use_place(problem.suggestion)

    def _use_place(self, path: Path) -> None:
        if self.reviewing is None or self.around is None:
            return
        PREFERENCES.choose_review_file(self.around.session.cohort.root, path)
        self._forget_lines()
        self._say("")
        self.reviewing.use(path=path)

    def _on_retry(self) -> None:
        if self.reviewing is not None:
            self.reviewing.try_again()

    def _on_history(self) -> None:
        if self.around is None or self.reviewing is None or self.around.session.selection is None:
            return
        chosen = self.around.session.selection
        entries = self.reviewing.history(chosen.side, chosen.row)
        self.history_dialog.show_history(self.panel.object_text(), entries)
        show_in_front(self.history_dialog)

    def _on_comparison(self) -> None:
        if self.reviewing is None:
            return
        store, reviewers = self.reviewing.store, []
        try:
            reviewers = [] if store is None else store.reviewers()
        except ReviewError as error:
            self._on_failed(error)
        self.compare_dialog.offer(reviewers, self.reviewing.reviewer, self._compared)
        show_in_front(self.compare_dialog)

    def _compared(self, first: str, second: str) -> ReviewerAgreement | None:
        store = None if self.reviewing is None else self.reviewing.store
        if store is None:
            return None
        try:
            return store.agreement(first, second)
        except ReviewError as error:
            self._on_failed(error)
            return None

    def _on_csv(self, everybody: bool) -> None:
        store = None if self.reviewing is None else self.reviewing.store
        if store is None:
            show_info("There are no verdicts to write yet: give the first one.")
            return
        path = self._ask_where("verdicts.csv", "CSV (*.csv)")
        if path is None:
            return
        try:
            count = store.export_csv(path, include_others=everybody)
        except ReviewError as error:
            show_error(str(error))
            return
        self._say(f"{count} verdicts written to {path.name}")

    def _on_geojson(self) -> None:
        session = None if self.around is None else self.around.session
        judged = None if self.reviewing is None else self.reviewing.judged
        if session is None or judged is None or session.snapshot is None or session.team is None:
            show_info("There are no evaluated objects here to write.")
            return
        region, team = session.snapshot.region.name, session.team
        path = self._ask_where(f"{region}-{team}.geojson", "GeoJSON (*.geojson)")
        if path is None:
            return
        sides = {}
        for side in Side:
            # A copy: what is shown may be painted on while the file is written.
            sides[side] = (session.edited_labels(side), details_of(judged, side))
        self._write(partial(_written, path, sides, region, team, session.cohort.scheme), path)

    def _write(self, write: Callable[[], _Written], path: Path) -> None:
        worker = create_worker(write, _start_thread=False)

        def on_returned(worker: Any, result: _Written) -> None:
            self._writers.discard(worker)
            text = f"{result.count} objects written to {path.name}"
            if result.error is not None:
                show_error(str(result.error))
                text = f"NOT written: {path.name}"
            if self.around is not None:
                self._say(text, saved=None if result.error is None else False)

        connect_worker(worker, returned=on_returned)
        self._writers.add(worker)
        self._say(f"writing {path.name} …")
        worker.start()

    def _ask_where(self, name: str, kind: str) -> Path | None:
        chosen, _ = QFileDialog.getSaveFileName(self.panel, "Write to", name, kind)
        return Path(chosen) if chosen else None

    def _on_stop(self) -> None:
        if self._lines is not None:
            self._lines.stop()

    # What happens elsewhere.

    def _on_sight(self, seen: bool) -> None:
        if seen and self._is_stale:
            self.refresh()

    def _on_region(self, _snapshot: object) -> None:
        if self.reviewing is None:
            return
        self.reviewing.refresh()
        if self._wanted is not None:
            record, self._wanted = self._wanted, None
            if self._region() == record.region:
                self._select_found(record)

    def _on_team(self, _name: str) -> None:
        if self.reviewing is not None:
            self.reviewing.refresh()

    def _on_edited(self, _edited: EditedEvaluation) -> None:
        self._settle.start()

    def _on_selection(self, selection: Selection | None) -> None:
        # Other settings or an edit select the same object once more: the user did not.
        if selection is None or self._object_name(selection) != self._judged_last:
            self._judged_last = None
        self._show_object()

    def _on_selected_again(self, _selection: Selection) -> None:
        self._judged_last = None

    def _on_summary(self, _summary: object) -> None:
        if not self._settle.isActive():
            self._settle.start()

    def _on_poll(self) -> None:
        """Look at the review file in another thread: a network drive may take its time."""
        if self.reviewing is None or self._look is not None:
            return
        question = self.reviewing.question()
        if question is None:
            return
        worker = create_worker(question, _start_thread=False)
        connect_worker(worker, returned=self._on_looked, finished=self._on_look_ended)
        self._look = worker
        worker.start()

    def _on_look_ended(self, worker: Any) -> None:
        if worker is self._look:
            self._look = None

    def _on_looked(self, worker: Any, looked: Looked) -> None:
        if worker is not self._look or self.reviewing is None or self._lines is None:
            return
        if regions := self.reviewing.take(looked):
            self._lines.forget([region for region in regions if region != self._region()])
            self._settle.start()
        self._follow_saved()

    def _follow_saved(self) -> None:
        """Report if another window withdrew or replaced the verdict that is shown as saved."""
        record, reviewing, around = self._saved, self.reviewing, self.around
        if record is None or reviewing is None or around is None or reviewing.judged is None:
            return
        here = (self._region(), around.session.team) == (record.region, record.team)
        if not here or record in reviewing.judged.records.values():
            return
        if reviewing.find(record) is not None:  # else it was edited meanwhile
            words = VERDICT_WORDS[record.verdict]
            self._say(CHANGED_ELSEWHERE.format(f"{words} on {_title(record)}"))

    def _on_settled(self) -> None:
        """Follow edits and background figures, and count the regions with verdicts."""
        if self.reviewing is None or self.around is None or self._lines is None:
            return
        if self.reviewing.problem is not None:
            self._show_cohort()
            return
        judged, evaluation = self.reviewing.judged, self.around.session.evaluation
        if evaluation is not (None if judged is None else judged.evaluation):
            self.reviewing.refresh()  # comes back here
            return
        if not self._sight.is_seen:
            self._is_stale = True
            return
        task, store = self._task(), self.reviewing.store
        if task is not None and store is not None and self.around.session.snapshot is not None:
            others = [r for r in self.reviewing.reviewed_regions() if r != self._region()]
            known = {region.name for region in self.around.session.cohort.regions}
            self._lines.start(task, store, [region for region in others if region in known])
        self._show_cohort()

    def _on_failed(self, error: PanopticError) -> None:
        show_error(str(error))

    def _on_noticed(self, finding: Finding) -> None:
        show_warning(finding.message)

    # What is shown.

    def _show_place(self) -> None:
        reviewing, panel = self.reviewing, self.panel
        if reviewing is None:
            return
        panel.show_reviewer(reviewing.reviewer, previous=PREFERENCES.reviewer)
        panel.show_place(reviewing.path, is_there=may_be_there(reviewing.path))
        problem = reviewing.problem
        if problem is None:
            panel.show_problem("")
        else:
            panel.show_problem(problem.message, suggestion=problem.suggestion)
        store = reviewing.store
        panel.undo.setEnabled(reviewing.may_undo())
        panel.compare.setEnabled(store is not None)

    def _show_table(self) -> None:
        judged = None if self.reviewing is None else self.reviewing.judged
        if self.around is not None:
            given = {} if judged is None else verdicts_by_id(judged)
            self.around.link.panels.objects.show_verdicts(given)

    def _show_object(self) -> None:
        if self.around is None or self.reviewing is None:
            return
        session, chosen = self.around.session, self.around.session.selection
        if chosen is None or session.evaluation is None:
            hint = None
            if session.evaluation is None:
                hint = on_slide(session.snapshot, slide_texts.REVIEW, NOTHING_TO_JUDGE)
            self.panel.show_object(None, None, hint=hint)
            self._shown_object = None
            return
        name = self._object_name(chosen)
        record = self.reviewing.record(chosen.side, chosen.row)
        is_fresh = name != self._shown_object
        if is_fresh:
            self._drafts.write()  # of the object before
        self.panel.show_object(
            self._object_title(chosen),
            record,
            fresh=is_fresh,
            draft=self._drafts.of(self._draft_key(chosen)),
        )
        self._shown_object = name

    def _object_name(self, chosen: Selection) -> ObjectName:
        """Name an object so that the same one is known again, whatever its row."""
        reviewer = "" if self.reviewing is None else self.reviewing.reviewer
        return reviewer, self._region(), chosen.team, str(chosen.side), chosen.id

    def _draft_key(self, chosen: Selection) -> ObjectName:
        """Name the object that a verdict on the selected one is kept with."""
        evaluation = None if self.around is None else self.around.session.evaluation
        name = self._object_name(chosen)
        if evaluation is None or chosen.row >= len(evaluation.outcomes.side(chosen.side)):
            return name
        side, row = judged_as_one(evaluation, chosen.side, chosen.row)
        return *name[:3], str(side), int(evaluation.outcomes.side(side).ids[row])

    def _object_title(self, chosen: Selection) -> str:
        evaluation = None if self.around is None else self.around.session.evaluation
        name = "reference" if chosen.side is Side.REFERENCE else chosen.team
        if evaluation is None or chosen.row >= len(evaluation.outcomes.side(chosen.side)):
            return f"{name} {chosen.id}"
        own = evaluation.outcomes.side(chosen.side)
        cause = CAUSES[own.cause[chosen.row]]
        words = str(STATUSES[own.status[chosen.row]])
        if cause is not Cause.NONE:
            words += f": {cause}"
        class_name = evaluation.outcomes.class_names[int(own.class_index[chosen.row]) - 1]
        return f"{name} {chosen.id} · {class_name} · {words}"

    def _show_line(self) -> None:
        """Show region and cohort with the verdicts on what is shown."""
        task = self._task()
        judged = None if self.reviewing is None else self.reviewing.judged
        if task is not None and judged is not None and self._lines is not None:
            self._lines.put(task, line_of(judged, self._region()))
        self._show_cohort()

    def _show_cohort(self) -> None:
        around, lines = self.around, self._lines
        self._is_stale = not self._sight.is_seen
        if around is None or lines is None or self._is_stale:
            return
        session = around.session
        all_lines = [
            line
            for (region, team), summary in session.summaries.items()
            if team == session.team
            and (line := lines.lines.get(region) or line_without_verdicts(summary)) is not None
        ]
        here = lines.lines.get(self._region()) if session.evaluation is not None else None
        cohort = Share(sum(line.done for line in all_lines), sum(line.total for line in all_lines))
        evaluated = sum(team == session.team for _, team in session.summaries)
        busy = None
        if lines.is_busy:
            busy = lines.done, lines.total
        elif around.link.summary.is_busy and evaluated < len(session.cohort.regions):
            busy = evaluated, len(session.cohort.regions)
        self.panel.show_progress(
            None if here is None else Share(here.done, here.total),
            cohort if all_lines else None,
            busy=busy,
            can_stop=lines.is_busy,
        )
        units = []
        if here is not None:
            units.append(BeforeAfter("region", *figures_of([here], session.cohort)))
        if all_lines:
            units.append(BeforeAfter("cohort", *figures_of(all_lines, session.cohort)))
        self.panel.show_figures(units)

    def _select_found(self, record: ReviewRecord) -> None:
        found = None if self.reviewing is None else self.reviewing.find(record)
        if found is None or self.around is None:
            show_info(f"{_title(record)} does not exist under these settings.")
            return
        self._select(found)

    def _region(self) -> str:
        snapshot = None if self.around is None else self.around.session.snapshot
        return "" if snapshot is None else snapshot.region.name

    def _task(self) -> Task | None:
        if self.around is None or self.around.session.team is None:
            return None
        session = self.around.session
        return Task(session.team or "", session.settings, session.source)

    def _forget_lines(self) -> None:
        if self._lines is not None and self.around is not None:
            self._lines.stop()
            self._lines.forget([region.name for region in self.around.session.cohort.regions])


def verdicts_by_id(judged: Judged) -> dict[Side, GivenVerdicts]:
    """Return the verdicts as the object table wants them."""
    outcomes = judged.evaluation.outcomes
    return {side: GivenVerdicts(outcomes.side(side).ids, judged.codes[side]) for side in Side}


def details_of(judged: Judged, side: Side) -> dict[int, dict[str, object]]:
    """Return what is known of each object of a side, for the file that QuPath opens."""
    own = judged.evaluation.outcomes.side(side)
    result: dict[int, dict[str, object]] = {}
    for row, id_ in enumerate(own.ids.tolist()):
        result[id_] = {
            "status": str(STATUSES[own.status[row]]),
            "cause": str(CAUSES[own.cause[row]]),
            "iou": float(own.iou[row]),
            "hausdorff_px": float(own.hausdorff_px[row]),
        }
        if (mpp := judged.evaluation.outcomes.mpp) is not None:
            result[id_]["hausdorff_um"] = float(own.hausdorff_px[row]) * mpp
        if judged.codes[side][row] != NO_VERDICT:
            result[id_]["verdict"] = str(VERDICTS[judged.codes[side][row] - 1])
        if (record := judged.record(side, row)) is not None:
            result[id_] |= {"tag": record.tag, "note": record.note, "reviewer": record.reviewer}
    return result


def _written(
    path: Path,
    sides: Mapping[Side, tuple[LabelImage, Mapping[int, Mapping[str, object]]]],
    region: str,
    team: str,
    scheme: ClassScheme,
) -> _Written:
    objects = (
        item
        for side, (labels, details) in sides.items()
        for item in geo_objects(labels, side=side, region=region, team=team, details=details)
    )
    try:
        return _Written(write_geojson(path, objects, scheme=scheme))
    except PanopticError as error:
        return _Written(0, error)


def _title(record: ReviewRecord) -> str:
    name = "reference" if record.side is Side.REFERENCE else record.team
    return f"{name} {record.object_id} · {record.class_name}"
