"""The connections between session and viewer, made and undone here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from napari.components import ViewerModel
from numpy.typing import NDArray
from psygnal import Signal, SignalInstance

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.behind import absent_text
from napari_panoptic.display.describe import ObjectFacts, facts_of
from napari_panoptic.display.failure_cells import SCALE_MEANING
from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_layers import too_many_objects
from napari_panoptic.display.object_rows import SIDE_WORDS, ObjectFilter
from napari_panoptic.display.styles import ColourBy, Look, count_text
from napari_panoptic.display.title import region_notes, title_parts, why_no_figures
from napari_panoptic.kernels.drawing import MAX_OBJECTS
from napari_panoptic.live.read_ahead import ReadAhead
from napari_panoptic.live.session import EditedEvaluation, Selection, Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.questions.engines.cohort_failures import FailureName, FailureSet
from napari_panoptic.values.cohort import Source
from napari_panoptic.values.settings import EvaluationSettings, Overlaps
from napari_panoptic.values.vocabulary import SIDES, Side, Status
from napari_panoptic.viewer.desk.failure_steps import FailureSteps
from napari_panoptic.viewer.desk.pointer import Pointer
from napari_panoptic.viewer.jobs.region_work import RegionLoader, SummaryWork
from napari_panoptic.viewer.jobs.timers import single_shot, stop_timers
from napari_panoptic.viewer.kit.commands import bind_commands
from napari_panoptic.viewer.kit.keys import DESK_KEYS, EXPORT_OBJECTS, panel_shortcut
from napari_panoptic.viewer.kit.layouts import Curtain
from napari_panoptic.viewer.kit.napari_private import focus_canvas, window_check
from napari_panoptic.viewer.kit.shown import (
    errors_shown,
    show_error,
    show_info,
    show_warning,
    shown,
)
from napari_panoptic.viewer.kit.widgets import is_in_sight, show_in_front
from napari_panoptic.viewer.layers.scene import Scene
from napari_panoptic.viewer.layers.slide_view import SlideView
from napari_panoptic.viewer.layers.steady import SteadyView
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Panels, Surroundings
from napari_panoptic.viewer.panels.failures.presenter import FailuresPresenter
from napari_panoptic.viewer.panels.metrics import EMPTY as NO_FIGURES
from napari_panoptic.viewer.panels.objects.export import export_listed
from napari_panoptic.viewer.panels.objects.panel import EMPTY as NO_OBJECTS
from napari_panoptic.viewer.panels.part import PanelPart, presenter_of
from napari_panoptic.viewer.state.desk_state import DeskState
from napari_panoptic.viewer.state.preferences import PREFERENCES

T = TypeVar("T")
SLIDER_REST_MS = 250
"""How long a setting rests before the whole cohort is evaluated with it."""
IDLE_MS = 500
"""How long after loading layers out of sight are filled."""
READING = "Loading the region. Its metrics and objects follow in a moment."
"""What the empty panels say before the first region."""
AHEAD_MS = 30
"""How long after loading the neighbours of a region are read."""
FOLLOW_EDIT_MS = 33
"""How long after an edit lists follow it; colours and figures follow at once."""
EDIT_REST_MS = 150
"""How long the hand rests before panels that compute something follow an edit."""
BLIND = "team and status are hidden during this plan"
"""Shown in place of figures and outcomes."""
NEAR_A_SLIDE = "Zoom out to see where on the slide objects fail."
"""The line above a slide on which single objects can be distinguished."""


@dataclass(frozen=True)
class _Place:
    """An object that is to be shown."""

    region: str
    side: Side
    object_id: int
    beside: tuple[str, ...]


class Link:
    """Keeps one session, one viewer and one set of panels in step.

    The session holds the state; layers and panels show it; what the user does
    to them goes to the session and nowhere else. Panels show without telling,
    so that nothing runs in circles.

    Parameters
    ----------
    viewer
        The napari viewer.
    session
        The live state.
    panels
        The widgets.
    state
        What the user chose to see.
    parts
        The panels beside the object table; attached while this link lives.
    reveal
        Brings the panel of a title to the front.
    ahead
        What has begun to read the first region, if anything has.
    """

    edits_rested = Signal()
    """The hand rests after edits that lists have followed."""

    def __init__(
        self,
        viewer: ViewerModel,
        session: Session,
        panels: Panels,
        state: DeskState,
        *,
        parts: Sequence[PanelPart[Any]] = (),
        reveal: Callable[[str], None] = lambda _title: None,
        ahead: ReadAhead | None = None,
    ) -> None:
        self._viewer = viewer
        self._session = session
        self._panels = panels
        self.state = state
        self._parts = list(parts)
        self._reveal = reveal
        self._title_before: str | None = None
        self._going_to: _Place | None = None
        self._wanted_region: str | None = None
        self._at_rest = single_shot(SLIDER_REST_MS, self._start_summary)
        self._edited_since = single_shot(EDIT_REST_MS, self._after_edits)
        self._has_unseen_edit = False
        self._edited_snapshot: RegionSnapshot | None = None
        self._idle = single_shot(IDLE_MS, self._catch_up)
        self._ahead = single_shot(AHEAD_MS, self._look_ahead)
        self.scene = Scene(viewer)
        self.slides = SlideView(viewer, self.scene)
        self._steady = SteadyView(viewer, self.scene, self._keep_in_sight)
        self.pointer = Pointer(viewer, session, self.scene, self.slides, panels.title)
        self._show_state()
        self.loader = RegionLoader(session, window_check(viewer), ahead)
        self.summary = SummaryWork(session)
        self.failures = FailureSteps(session, state, panels.objects, self, self._say)
        self._table = self._connections()
        self._connect()
        self._show_session()
        for part in self._parts:
            part.attach(Surroundings(viewer, session, self))

    def presenter(self, kind: type[T]) -> T:
        """Return what presents a panel; a LookupError where it is not there."""
        return presenter_of(self._parts, kind)

    def start(self, region: str | None = None) -> None:
        """Load a region (the first where None) and evaluate the cohort behind it."""
        self.summary.start()
        if region is None and not self._session.cohort.regions:
            return
        self._request(region=region)
        if self.loader.is_busy:
            self._panels.title.show_message(READING)
            self._say_when_empty(READING)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is being loaded or evaluated."""
        is_busy = self.loader.is_busy or self.summary.is_busy or self.slides.is_busy
        is_busy = is_busy or self._edited_since.isActive() or self._at_rest.isActive()
        is_busy = is_busy or self._steady.is_busy
        return not (is_busy or any(part.is_busy for part in self._parts))

    @property
    def panels(self) -> Panels:
        """The panels that every desk has."""
        return self._panels

    def reveal(self, title: str) -> None:
        """Bring the panel of a title to the front."""
        self._reveal(title)

    def show_failures(
        self,
        title: str,
        names: Iterable[FailureName],
        versions: tuple[str, str] | None = None,
    ) -> None:
        """Show exactly these failures in the gallery, and lead through them with N.

        Regions that have not been evaluated yet are, as for the whole cohort.

        Parameters
        ----------
        title
            What they have in common, in words.
        names
            The failures; those that are none under the settings are left out.
        versions
            Two teams, of which each crop shows both outlines.
        """
        only = FailureSet(title, frozenset(names), versions)
        places = ((region, team) for team, region in only.ids)
        if not self.summary.is_busy and any(at not in self._session.summaries for at in places):
            self.summary.go_on()
        self.show_objects(only)

    def show_objects(self, objects: FailureSet) -> None:
        """Show exactly these objects in the gallery, failures or not, and lead through them with N.

        Parameters
        ----------
        objects
            The objects; with their columns if some are no failures.
        """
        self.failures.show_only(objects)
        self._reveal(FailuresPresenter.title)

    def go_to(
        self,
        region: str,
        side: Side | None = None,
        object_id: int | None = None,
        *,
        team: str | None = None,
        beside: Sequence[str] = (),
    ) -> None:
        """Show a region, and an object in it, as soon as it is loaded.

        Parameters
        ----------
        region
            The region.
        side, object_id
            The object; None for none.
        team
            The team to show; the current one where None.
        beside
            Other teams whose outlines are shown too.
        """
        if team is not None:
            self._session.set_team(team)
        self._going_to = None
        if side is not None and object_id is not None:
            self._going_to = _Place(region, side, object_id, tuple(beside))
        if self._wanted_region != region or self._session.snapshot is None:
            self._request(region=region)
        else:
            self._arrive()

    def _arrive(self) -> None:
        """Select the object that the user goes to, once its region and team are there."""
        place, snapshot = self._going_to, self._session.snapshot
        if place is None or snapshot is None or snapshot.region.name != place.region:
            return
        shown = self._session.shown
        if shown is None:  # the team is still being evaluated
            return
        self._going_to = None
        row = shown.outcomes.side(place.side).row_of(place.object_id)
        if row is None:
            show_info(self._why_absent(place))
            return
        self.scene.show_beside(place.beside)
        self._session.select_row(place.side, row)
        self.follow_selected()

    def _why_absent(self, place: _Place) -> str:
        """Explain why there is no object to go to."""
        name, session = f"{place.side} {place.object_id}", self._session
        whole = session.with_all_scores(session.team)
        if (
            whole is not None
            and whole.outcomes.side(place.side).row_of(place.object_id) is not None
        ):
            return f"{name} has a score below the threshold. Reset the threshold in Scores."
        return f"{name} does not exist under the current settings."

    def close(self) -> None:
        """Undo every connection and stop all work; touches no widget."""
        for part in self._parts:
            part.detach()
        for signal, slot in self._table:
            signal.disconnect(slot)
        self._table = []
        self._steady.release()
        self.pointer.close()
        self.loader.close()
        self.summary.stop()
        self.summary.hold(False)  # it may wait for the loader, which tells nothing any more
        self._release_keys()
        stop_timers(self._at_rest, self._edited_since, self._idle, self._ahead)
        self._hide_teams(False)
        self.slides.leave(restore=False)
        self.scene.release()

    @property
    def wanted_region(self) -> str | None:
        """The region last asked for, even if it is not there yet."""
        return self._wanted_region

    def select_failure(self, step: int = 1) -> bool:
        """Select the next (1) or previous (-1) failure, also in other regions.

        Returns
        -------
        bool
            False at the end, which is then shown above the image.
        """
        return self.failures.step(step)

    def follow_selected(self) -> None:
        """Bring the selected object into view, unless the user turned this off."""
        if self.state.follow and self._session.selection is not None:
            self.scene.bring_into_view(self._session.selection)

    def _connections(self) -> list[tuple[SignalInstance, Callable[..., None]]]:
        """Return the one table of who listens to whom."""
        session, panels = self._session, self._panels
        return [
            # What is so, and who shows it.
            (session.region_changed, self._show_region),
            (session.team_changed, self._show_team),
            (session.settings_changed, self._show_settings),
            (session.selection_changed, self._show_selection),
            (session.selected_again, self._show_selection),
            (session.summary_changed, panels.navigator.show_summary),
            (session.edited, self._show_edit),
            (session.threshold_changed, self._show_threshold),
            (self.loader.busy_changed, self._show_busy),
            (self.loader.failed, self._on_failure),
            (self.loader.progressed, self._show_progress),
            (self.slides.scale_changed, self._show_scale),
            (self.summary.progressed, panels.navigator.show_progress),
            (self.state.events.look, self._show_look),
            (self.state.events.is_blind, self._show_blind),
            (self.state.events.object_filter, panels.objects.set_filter),
            (self.state.events.order, panels.objects.put_worst_first),
            (self.state.events.others, self._show_others),
            (self.state.events.follow, self._show_follow),
            (self.state.events.queue, panels.objects.queue.show_choice),
            # Another order begins with its worst failure.
            *((event, self.failures.leave) for event in self._order_events()),
            (session.selection_changed, self.failures.follow_selection),
            (session.team_changed, self.failures.choose_none),
            (session.settings_changed, self.failures.choose_none),
            (session.settings_changed, self.failures.show_all),
            (session.source_changed, self.failures.choose_none),
            (session.source_changed, self.failures.show_all),  # objects may have other ids
            (self.state.events.hidden_columns, panels.objects.hide_columns),
            # User actions, and the methods that handle them.
            (panels.navigator.place_chosen, self._on_region_chosen),
            (panels.navigator.teams.chosen, session.set_team),
            (panels.navigator.following.pushed, self._on_next_region),
            (panels.navigator.previous.pushed, self._on_previous_region),
            (panels.navigator.stop.pushed, self.summary.stop),
            (panels.navigator.places.filter_left, self._return_keys),
            (panels.settings.team.chosen, session.set_team),
            (panels.settings.source.chosen, self._on_source_chosen),
            (panels.settings.settings_chosen, self._on_settings_chosen),
            (panels.objects.object_selected, self._on_row_selected),
            (panels.objects.centre_wanted, self._on_centre_wanted),
            (panels.objects.listed_changed, self._show_listed),
            (panels.objects.export.pushed, self._on_export),
            (panels.objects.filter_changed, self._set("object_filter")),
            (panels.objects.others.chosen, self._set("others")),
            (panels.objects.follow_chosen, self._set("follow")),
            (panels.objects.columns_chosen, self._set("hidden_columns")),
            (panels.objects.worst.chosen, self._set("order")),
            (panels.objects.queue.chosen, self._set("queue")),
            (panels.metrics.behind_wanted, self._on_behind_wanted),
            (panels.legend.chip_clicked, self._on_chip),
            (panels.legend.look_chosen, self._set("look")),
            (panels.title.notes_clicked, self._on_notes),
            (panels.title.slide.stop_wanted, self.loader.stop),
            (panels.title.slide.evaluate_wanted, self._request),
        ]

    def _order_events(self) -> tuple[SignalInstance, ...]:
        events = self.state.events
        return events.order, events.queue, events.object_filter, self._session.team_changed

    def _connect(self) -> None:
        for signal, slot in self._table:
            signal.connect(slot)
        actions: dict[str, Callable[[], object]] = {
            "n": lambda: self.select_failure(),
            "Shift-n": lambda: self.select_failure(-1),
            "j": self._on_next_region,
            "k": self._on_previous_region,
            "f": self._filter_regions,
            "h": self._cycle_display,
            "q": self._toggle_colours,
            "w": self._centre_selected,
            "Alt-x": lambda: self._reveal("Regions"),
            "Alt-m": lambda: self._reveal("Metrics"),
            "Alt-o": lambda: self._reveal("Objects"),
        }
        keys = {shortcut: actions[shortcut.key] for shortcut in DESK_KEYS}
        for part in self._parts:
            if part.key is not None:
                show = partial(self._reveal, part.title)
                keys[panel_shortcut(part.key, part.title)] = show
            keys.update(part.shortcuts())
        keys[EXPORT_OBJECTS] = self._on_export
        self._release_keys = bind_commands(self._viewer, keys)

    # What is so, and who shows it.

    def _show_state(self) -> None:
        """Show what the user chose before."""
        state, objects = self.state, self._panels.objects
        if state.is_blind:  # for the cohort before
            state.is_blind = False
            self._show_blind(False)
        self.scene.set_look(state.look)
        objects.hide_columns(state.hidden_columns)
        objects.others.show_choice(state.others)
        objects.put_worst_first(state.order)
        objects.set_filter(state.object_filter)
        objects.follow.setChecked(state.follow)
        objects.queue.show_choice(state.queue)

    def _say(self, text: str) -> None:
        """Show a text above the image and in the status bar."""
        self._panels.title.show_message(text)
        self._viewer.status = text

    def _show_look(self, look: Look) -> None:
        self._show_colours()
        self._panels.legend.show_look(look)
        self._show_counts()

    def _show_colours(self) -> None:
        look = self.state.look
        # Colours of statuses would tell the outcome.
        self.scene.set_look(
            replace(look, colour_by=ColourBy.CLASS) if self.state.is_blind else look
        )

    def _show_blind(self, is_blind: bool) -> None:
        """Hide what tells the team and the status of objects, or show it again."""
        self._hide_teams(is_blind)
        panels = self._panels
        own = [part.widget for part in self._parts if part.shows_outcomes]
        text = f"{BLIND[:1].upper()}{BLIND[1:]}." if is_blind else ""
        everywhere = (panels.navigator, panels.settings, panels.metrics, panels.objects)
        for widget in (*everywhere, *own):
            Curtain.draw(widget, text)
        if is_blind:
            panels.notes.hide()
        self.pointer.is_silent = is_blind
        panels.legend.show_instead(text)
        self._show_colours()
        self._show_headline()
        panels.title.show_selected(self._facts())

    def _hide_teams(self, hidden: bool) -> None:
        """Name no team in napari's list of layers and in the title of its window, or name them."""
        self.scene.hide_teams(hidden)
        self.slides.name_layers()
        viewer, before = self._viewer, self._title_before
        if hidden and before is None:
            self._title_before = viewer.title
            for team in sorted(map(shown, self._session.cohort.team_names), key=len, reverse=True):
                viewer.title = viewer.title.replace(team, "…")
        elif not hidden and before is not None:
            viewer.title, self._title_before = before, None

    def _facts(self) -> ObjectFacts | None:
        """Return what the line above the image may tell about the selected object."""
        chosen = self._session.selection
        if chosen is None or self.state.is_blind:
            return None
        return facts_of(self._session, chosen.team, chosen.side, chosen.row)

    def _show_follow(self, follow: bool) -> None:
        self._panels.objects.follow.setChecked(follow)

    def _show_others(self, others: Others) -> None:
        self._panels.objects.others.show_choice(others)
        self._show_listed()

    def _show_session(self) -> None:
        session, panels = self._session, self._panels
        panels.navigator.show_cohort(session.cohort, session.summaries)
        panels.navigator.show_team(session.team)
        panels.settings.show_cohort(session.cohort)
        panels.settings.show_team(session.team)
        panels.settings.show_settings(session.settings, session.protocol, session.source)
        panels.legend.show_look(self.scene.look)
        self._show_figures()

    def _show_region(self, snapshot: RegionSnapshot) -> None:
        session, panels = self._session, self._panels
        self._finish_edits()
        self.pointer.forget()
        if not self._is_on_slide(snapshot):
            self.slides.leave()
        self.scene.mark_edited(self._edited())
        self.scene.show(snapshot, session.cohort.scheme, session.team)
        self._show_slide()
        self._add_summaries(snapshot)
        panels.navigator.show_region(snapshot.region.name)
        panels.settings.show_settings(session.settings, session.protocol, session.source)
        notes = region_notes(session, snapshot)
        panels.title.show_notes(len(notes))
        panels.notes.show_findings(snapshot.region.name, notes)
        self._show_figures()
        self._show_selection(session.selection)
        self._arrive()
        self.failures.arrive()
        PREFERENCES.keep_place(session.cohort.root, snapshot.region.name, session.team)
        is_whole = not snapshot.pending
        if is_whole and any(too_many_objects(at) for at in snapshot.predictions.values()):
            show_warning(
                f"{snapshot.region.name} has more than {count_text(MAX_OBJECTS)} objects: colours "
                "beyond that are wrong; metrics and table are correct."
            )

    def _add_summaries(self, snapshot: RegionSnapshot) -> None:
        """Add the teams' results to the navigator, except those that it shows already."""
        name = snapshot.region.name
        for team in snapshot.results:
            is_shown = snapshot is self._session.snapshot
            found = self._session.with_all_scores(team) if is_shown else snapshot.result(team)
            known = self._session.summaries.get((name, team))
            if found is not None and (known is None or known.counts is not found.counts):
                self._session.add_summary(RegionSummary.of(name, team, found))

    def _finish_edits(self) -> None:
        """Add the results of the last edits if their region or team is left at once."""
        edited, self._edited_snapshot = self._edited_snapshot, None
        if edited is not None:
            self._add_summaries(edited)

    def _show_team(self, name: str) -> None:
        self._finish_edits()
        self.pointer.forget()
        self.scene.set_team(name, self._session.snapshot)
        self._show_slide()
        snapshot = self._session.snapshot
        if snapshot is not None and snapshot.is_slide and self._session.shown is None:
            self._request()  # of a slide only the team that is looked at is evaluated
        self._panels.navigator.show_team(name)
        self._panels.settings.show_team(name)
        self._show_figures()

    def _is_on_slide(self, snapshot: RegionSnapshot) -> bool:
        """Return whether what is shown of a slide goes on with another snapshot of it."""
        name = snapshot.region.name
        return snapshot.is_slide and self.slides.region in (None, name)

    def _show_slide(self) -> None:
        """Show the current team's result on a slide; evaluate it first if necessary."""
        session, bar = self._session, self._panels.title.slide
        snapshot, team = session.snapshot, session.team
        if snapshot is None or not snapshot.is_slide:
            bar.show_nothing()
            self._say_when_empty(why_no_figures(session))
            return
        evaluation = snapshot.slide(team)
        if evaluation is not None and team is not None:
            self.slides.show(snapshot, evaluation, session.cohort.scheme, team)
            bar.show_done()
            return
        self.slides.wait()
        bar.show_words("Evaluated tile by tile:")
        if team in snapshot.pending or self.loader.is_busy:
            bar.show_waiting("opening")
            self._say_when_empty(slide_texts.waiting("opening", 0.0))
        elif team is None or team in snapshot.tried:
            bar.show_done()
            is_kept = snapshot.settings.overlaps is Overlaps.KEEP
            self._say_when_empty(slide_texts.OVERLAPS if is_kept else None)
        else:
            bar.show_stopped()
            self._say_when_empty(slide_texts.STOPPED)

    def _show_progress(self, share: float, saying: str) -> None:
        if self._session.snapshot is not None and self._session.snapshot.is_slide:
            self._panels.title.slide.show_waiting(saying, share)
            self._say_when_empty(slide_texts.waiting(saying, share))

    def _say_when_empty(self, words: str | None) -> None:
        """Show why there are no figures and no objects; None for the general reasons."""
        self._panels.metrics.say_when_empty(words or NO_FIGURES)
        self._panels.objects.say_when_empty(words or NO_OBJECTS)

    def _show_scale(self, words: str) -> None:
        """Explain the squares; at a zoom without squares, mention that there are some."""
        self._panels.title.slide.show_words(words or NEAR_A_SLIDE, SCALE_MEANING if words else "")

    def _show_settings(self, settings: EvaluationSettings) -> None:
        self._panels.settings.show_settings(settings, self._session.protocol, self._session.source)

    def _show_edit(self, edit: EditedEvaluation) -> None:
        """Follow an edit with colours and figures; what takes longer comes a moment later."""
        if self._session.snapshot is None:
            return
        self._edited_snapshot = self._session.snapshot
        self.pointer.forget()
        if edit.team != self._session.team:  # its layer is out of sight
            self.scene.take_unseen_edit(self._session.snapshot, edit.team)
            self._follow_soon()
            return
        self._follow_evaluation(self._session.snapshot)

    def _follow_evaluation(self, snapshot: RegionSnapshot) -> None:
        """Show another evaluation of the same region."""
        self.scene.take_edit(snapshot, edited=self._edited())
        self._show_headline()
        self._show_counts()
        self._follow_soon()

    def _show_threshold(self, _threshold: float | None) -> None:
        """Show the region without predictions of low score, as after an edit."""
        self.pointer.forget()
        if self._session.snapshot is not None:
            self._follow_evaluation(self._session.snapshot)

    def _follow_soon(self) -> None:
        """Let lists follow in a moment, and panels that compute once the hand rests."""
        waits = self._edited_since.isActive() and self._has_unseen_edit
        self._has_unseen_edit = True
        if not waits:
            self._edited_since.start(FOLLOW_EDIT_MS)

    def _after_edits(self) -> None:
        if self._has_unseen_edit:
            self._has_unseen_edit = False
            self._edited_since.start(EDIT_REST_MS)
            self._follow_edits()
        elif self._table:  # not closed meanwhile
            self.edits_rested.emit()

    def _follow_edits(self) -> None:
        """Bring lists and rings up to date with the edits of the last moment."""
        session, panels = self._session, self._panels
        snapshot, evaluation = session.snapshot, session.evaluation
        is_closed = not self._table
        if is_closed or snapshot is None or evaluation is None or session.team is None:
            return
        panels.metrics.show_evaluation(evaluation, session.cohort.scheme)
        panels.objects.show_outcomes(evaluation.outcomes)
        self._edited_snapshot = None
        self._add_summaries(snapshot)
        chosen = session.selection
        panels.objects.select(None if chosen is None else (chosen.side, chosen.row))
        if chosen is not None:
            self.scene.emphasise(chosen)
            panels.title.show_selected(self._facts())

    def _edited(self) -> list[tuple[Side, str | None]]:
        """List the sides, and teams, of the region that are working copies."""
        session = self._session
        teams = () if session.snapshot is None else session.snapshot.predictions
        found: list[tuple[Side, str | None]] = [
            (Side.PREDICTION, team) for team in teams if session.is_drawn(Side.PREDICTION, team)
        ]
        return [(Side.REFERENCE, None), *found] if session.is_drawn(Side.REFERENCE) else found

    def _show_figures(self) -> None:
        """Show what belongs to the current region and team."""
        session, panels = self._session, self._panels
        evaluation = session.shown
        outcomes = None if evaluation is None else evaluation.outcomes
        panels.metrics.show_evaluation(evaluation, session.cohort.scheme)
        panels.objects.show_outcomes(outcomes)
        self._show_headline()
        self._show_counts()

    def _show_headline(self) -> None:
        evaluation, snapshot = self._session.shown, self._session.snapshot
        if self.state.is_blind and snapshot is not None:
            self._panels.title.show_title([snapshot.region.name, BLIND], None)
            return
        self._panels.title.show_title(
            title_parts(self._session, self._edited(), self.scene.listed),
            None if evaluation is None else evaluation.metrics.pq,
            "" if evaluation is None else absent_text(evaluation.counts),
            hint=f"Policy for ambiguous areas, code name: {self._session.settings.ambiguous}.",
        )

    def _show_listed(self) -> None:
        """Let what the table lists stand out, where that was asked for."""
        self.scene.set_listed(self._panels.objects.standing_out())
        self._show_headline()  # tells that there is more than the image shows
        self._panels.metrics.show_filter(self._panels.objects.model.filter)

    def _show_counts(self) -> None:
        session = self._session
        snapshot, evaluation = session.snapshot, session.shown
        self._panels.legend.show_counts(
            None if evaluation is None else evaluation.outcomes,
            None if snapshot is None else snapshot.reference,
            None if snapshot is None else snapshot.predictions.get(session.team or ""),
            session.cohort.scheme,
        )

    def _show_selection(self, selection: Selection | None) -> None:
        with errors_shown():  # napari's canvas may fail: all others learn what is selected
            self.scene.emphasise(selection)
            if selection is not None:
                self.scene.show_object(selection, only_if_hidden=not self.slides.is_far)
        self._panels.objects.select(None if selection is None else (selection.side, selection.row))
        self.show_selected()

    def show_selected(self) -> None:
        """Name the selected object above the image, in place of any message."""
        facts = self._facts()
        why = None if facts is not None else why_no_figures(self._session)
        if why is None:
            self._panels.title.show_selected(facts)
        else:
            self._panels.title.show_message(why)

    def _keep_in_sight(self, canvas: NDArray[np.float64]) -> None:
        """Show the selected object again if it was in sight on a canvas of another size."""
        selection = self._session.selection
        if selection is not None and self.scene.is_object_in_sight(selection, canvas):
            self.scene.show_object(selection, only_if_hidden=True)

    def _show_busy(self, busy: bool) -> None:
        self._panels.title.show_busy(busy)
        self.summary.hold(busy)
        if not busy:
            self._show_slide()
            self._ahead.start()
            self._idle.start(IDLE_MS)

    def _look_ahead(self) -> None:
        """Read the regions that J and K lead to."""
        if self._table:  # not closed meanwhile
            steps = (self._neighbour(1), self._neighbour(-1))
            self.loader.look_ahead([name for name in steps if name is not None])

    def _on_failure(self, error: PanopticError) -> None:
        # The region asked for stays asked for: the next one is the one after it.
        show_error(str(error))
        snapshot = self._session.snapshot
        if snapshot is not None:
            self._panels.navigator.show_region(snapshot.region.name)
        else:
            self._say_when_empty(None)

    # User actions, and the methods that handle them.

    def _request(self, *, region: str | None = None, **changes: Any) -> None:
        """Ask the session for something; the region last asked for stays asked for."""
        try:
            request = self._session.request(
                region_name=region or self._wanted_region,
                # Else all teams are in sight.
                team_first=self.scene.stand_in is None or self.pointer.is_slide_in_sight,
                **changes,
            )
        except PanopticError as error:
            show_error(str(error))
            return
        self._wanted_region = request.region
        if self._going_to is not None and self._going_to.region != request.region:
            self._going_to = None  # the user goes elsewhere
        self.loader.load(request)

    def _on_region_chosen(self, name: str) -> None:
        self._request(region=name)

    def _on_next_region(self) -> None:
        self._request(region=self._neighbour(1))

    def _on_previous_region(self) -> None:
        self._request(region=self._neighbour(-1))

    def _neighbour(self, step: int) -> str | None:
        """Return the region before or after the one last asked for, in the table's order."""
        return self._panels.navigator.neighbour(self._wanted_region, step)

    def _filter_regions(self) -> None:
        self._reveal("Regions")
        self._panels.navigator.focus_filter()

    def _return_keys(self) -> None:
        focus_canvas(self._viewer)

    def _on_source_chosen(self, source: Source | None) -> None:
        self._request(source=source)
        self._edited_snapshot = None  # it is of another source
        self.summary.start()

    def _on_settings_chosen(self, settings: EvaluationSettings) -> None:
        if settings != self._session.settings:
            self._request(settings=settings)
            # A slider moves on: the cohort is evaluated when it has come to rest.
            self.summary.stop()
            self._session.clear_summaries()
            self._edited_snapshot = None  # it was evaluated with other settings
            self._at_rest.start()

    def _catch_up(self) -> None:
        """Fill layers out of sight, one at a time, while nothing else is to be done."""
        if self._table and not self.loader.is_busy and self.scene.catch_up_one():
            self._idle.start(0)

    def _start_summary(self) -> None:
        if self._table:  # not closed meanwhile
            self.summary.start()

    def _on_row_selected(self, side: Side, row: int) -> None:
        self._session.select_row(side, row)

    def _on_centre_wanted(self, side: Side, row: int) -> None:
        self._session.select_row(side, row)
        self._centre_selected()

    def _centre_selected(self) -> None:
        if self._session.selection is not None:
            self.scene.centre(self._session.selection)

    def _on_export(self) -> None:
        export_listed(self._panels.objects, self._session)

    def _set(self, name: str) -> Callable[[Any], None]:
        """Return a function that sets a field of the state."""
        return partial(setattr, self.state, name)

    def _on_behind_wanted(self, wanted: ObjectFilter) -> None:
        """List only the objects behind a figure; the same one again lists all."""
        objects = self._panels.objects
        is_on = objects.model.filter == wanted
        objects.set_filter(ObjectFilter() if is_on else wanted)
        followers = [part.widget for part in self._parts if part.follows_table]
        if not any(is_in_sight(widget) for widget in (objects, *followers)):
            self._reveal("Objects")

    def _on_chip(self, side: Side, word: str) -> None:
        """List only the objects of a legend entry; the same one again lists all."""
        words = frozenset({word})
        is_status = word in set(Status)
        wanted = ObjectFilter(
            sides=frozenset({SIDE_WORDS[SIDES.index(side)]}),
            statuses=words if is_status else None,
            classes=None if is_status else words,
        )
        is_on = self._panels.objects.model.filter == wanted
        self._panels.objects.set_filter(ObjectFilter() if is_on else wanted)

    def _cycle_display(self) -> None:
        look = self.state.look
        self.state.look = replace(look, display=look.display.following)

    def _toggle_colours(self) -> None:
        by_status = self.state.look.colour_by is ColourBy.STATUS
        other = ColourBy.CLASS if by_status else ColourBy.STATUS
        self.state.look = replace(self.state.look, colour_by=other)

    def _on_notes(self) -> None:
        if self.state.is_blind:  # they name the teams whose files they are about
            self._say(BLIND)
        else:
            show_in_front(self._panels.notes)
