"""The connections between session and viewer, made and undone here."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from napari.components import ViewerModel
from numpy.typing import NDArray
from psygnal import Signal

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.object_layers import too_many_objects
from napari_panoptic.display.styles import ColourBy, count_text
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.kernels.drawing import MAX_OBJECTS
from napari_panoptic.live.session import EditedEvaluation, Selection, Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.failure_steps import FailureSteps
from napari_panoptic.viewer.desk.object_links import LinkClipboard
from napari_panoptic.viewer.desk.painting import Painting
from napari_panoptic.viewer.desk.pointer import Pointer
from napari_panoptic.viewer.editing.history import EditHistory
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.jobs.region_work import RegionLoader, SummaryWork
from napari_panoptic.viewer.kit.commands import bind_commands
from napari_panoptic.viewer.kit.keys import COPY_LINK, DESK_KEYS, EXPORT_OBJECTS, panel_shortcut
from napari_panoptic.viewer.kit.layouts import Curtain
from napari_panoptic.viewer.kit.napari_private import window_check
from napari_panoptic.viewer.kit.shown import (
    errors_shown,
    show_error,
    show_info,
    show_warning,
    shown,
)
from napari_panoptic.viewer.layers.labels import SteadyView
from napari_panoptic.viewer.layers.scene import Scene
from napari_panoptic.viewer.layers.slide_view import SlideView
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.legend import LegendPresenter
from napari_panoptic.viewer.panels.navigator import NavigatorPresenter
from napari_panoptic.viewer.panels.objects.presenter import ObjectsPresenter
from napari_panoptic.viewer.panels.part import (
    BLIND_SENTENCE,
    Connections,
    PanelPart,
    Panels,
    Surroundings,
    presenter_of,
)
from napari_panoptic.viewer.panels.title import TitlePresenter
from napari_panoptic.viewer.state.desk_state import DeskState
from napari_panoptic.viewer.state.preferences import PREFERENCES

T = TypeVar("T")
LEAVING = "Nothing was changed: another region is being loaded. Wait until it is shown."
NOT_PAINTED = "Not done: this object was not shown yet. Press again."
IDLE_MS = 500
"""How long after loading layers out of sight are filled."""
EDIT_REST_MS = 150
"""How long the hand rests before slower panels follow an edit."""


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
    to them goes to the session and nowhere else. Panels show without emitting signals,
    so that nothing runs in circles. Here are the connections of the layers;
    those of a panel are in its presenter.

    Parameters
    ----------
    viewer
        The napari viewer.
    session
        The live state.
    panels
        The widgets.
    state
        The user's choices of what to see.
    parts
        The panels with presenters; attached while this link lives.
    reveal
        Brings the panel of a title to the front.
    asked_together
        Returns the titles of the panels whose questions are asked with that of a panel.
    """

    edits_rested = Signal()
    """The hand rests after edits, or after another threshold of scores."""

    def __init__(
        self,
        viewer: ViewerModel,
        session: Session,
        panels: Panels,
        state: DeskState,
        *,
        parts: Sequence[PanelPart[Any]],
        reveal: Callable[[str], None],
        asked_together: Callable[[str], Collection[str]] = lambda _title: (),
    ) -> None:
        self._viewer, self._session = viewer, session
        self.panels, self.state, self.parts, self.reveal = panels, state, list(parts), reveal
        self.asked_together = asked_together
        self._title_before: str | None = None
        self._going_to: _Place | None = None
        self._edited_snapshot: RegionSnapshot | None = None
        self._rest = single_shot(EDIT_REST_MS, self._follow_edits)
        self._idle = single_shot(IDLE_MS, self._catch_up)
        self.painting = Painting(viewer, session)
        self.scene = Scene(viewer)
        self.slides = SlideView(viewer, self.scene)
        self._steady = SteadyView(viewer, self.scene.camera, self._keep_in_sight)
        self.pointer = Pointer(viewer, session, self.scene, self.slides, panels.title)
        self.loader = RegionLoader(session, window_check(viewer))
        self.history = EditHistory()
        self.summary = SummaryWork(session)
        self.links = LinkClipboard(session, state, self.say)
        self.failures = FailureSteps(
            session,
            state,
            panels.objects,
            self.summary,
            go_to=self.go_to,
            follow_selected=self.follow_selected,
            say=self.say,
        )
        if state.is_blind:  # for the cohort before
            state.is_blind = False
            self._cover("")
        self.scene.set_look(state.look)
        self._connected: Connections = []
        self._connect(self._connections())
        for part in self.parts:
            part.attach(Surroundings(viewer, session, self))
        # Last: an object is selected when all panels show its region.
        arrived = (session.region_changed, session.teams_came)
        self._connect([(signal, self._arrive) for signal in arrived])
        self._bind_keys()

    def presenter(self, kind: type[T]) -> T:
        """Return the presenter of a panel; a LookupError if it is not there."""
        return presenter_of(self.parts, kind)

    def start(self, region: str | None = None) -> None:
        """Load a region (the first where None) and evaluate the cohort behind it."""
        self.summary.start()
        if region is None:
            self.failures.open_anywhere()
        if region is not None or self._session.cohort.regions:
            self.request(region=region)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is being loaded or evaluated, and the selected object was painted."""
        is_busy = self.loader.is_busy or self.summary.is_busy or self.slides.is_busy
        is_busy = is_busy or self.painting.is_due
        is_busy = is_busy or self._rest.isActive() or self._steady.is_busy
        return not (is_busy or any(part.is_busy for part in self.parts))

    @property
    def is_leaving(self) -> bool:
        """Whether another region is being loaded, and no failures were chosen explicitly.

        The selection is then about to change.
        """
        snapshot, wanted = self._session.snapshot, self._session.wanted_region
        is_other = snapshot is not None and snapshot.region.name != wanted
        return self.loader.is_busy and is_other and not self.failures.chosen

    @property
    def why_unseen(self) -> str:
        """Why the user does not see the selected object, so that nothing is done with it.

        Empty if it is in sight, or if failures were chosen explicitly.
        """
        if self.is_leaving:
            return LEAVING
        return NOT_PAINTED if self.painting.is_due and not self.failures.chosen else ""

    def request(self, *, region: str | None = None, **changes: Any) -> None:
        """Ask for a region, settings or a source; others stay as requested last."""
        try:
            request = self._session.request(
                region_name=region,
                # Else all teams are in sight.
                team_first=self.scene.alternative is None or self.pointer.is_slide_in_sight,
                **changes,
            )
        except PanopticError as error:
            show_error(str(error))
            return
        if self._going_to is not None and self._going_to.region != request.region:
            self._going_to = None  # the user goes elsewhere
        self.loader.load(request)

    def go_to(
        self,
        region: str,
        side: Side | None = None,
        object_id: int | None = None,
        *,
        team: str | None = None,
        beside: Sequence[str] = (),
        **changes: Any,
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
        changes
            Settings or a source to show the object under; as `request`.
        """
        session = self._session
        if team is not None:
            session.set_team(team)
        self._going_to = None
        if side is not None and object_id is not None:
            self._going_to = _Place(region, side, object_id, tuple(beside))
        is_changed = any(getattr(session, name) != value for name, value in changes.items())
        if is_changed or session.wanted_region != region or session.snapshot is None:
            self.request(region=region, **changes)
        else:
            self._select_place()

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
            Their common traits, in words.
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
        self.reveal(FailuresPresenter.title)

    def show_selected(self) -> None:
        """Name the selected object above the image, in place of any message."""
        self.presenter(TitlePresenter).show_selected()

    def follow_selected(self) -> None:
        """Bring the selected object into view, unless the user turned this off."""
        if self.state.follow and self._session.selection is not None:
            self.scene.camera.bring_into_view(self._session.selection)

    def centre_selected(self) -> None:
        """Bring the selected object to the middle of the image."""
        if self._session.selection is not None:
            self.scene.camera.centre(self._session.selection)

    def say(self, text: str) -> None:
        """Show a text above the image and in the status bar."""
        self.panels.title.show_message(text)
        self._viewer.status = text

    def close(self) -> None:
        """Undo every connection and stop all work; touches no widget."""
        for part in self.parts:
            part.detach()
        for signal, slot in self._connected:
            signal.disconnect(slot)
        self._steady.release()
        self.painting.close()
        self.pointer.close()
        self.loader.close()
        self.summary.stop()
        self.summary.hold(False)  # it may wait for the loader, which reports nothing any more
        self._release_keys()
        stop_timers(self._rest, self._idle)
        self._hide_teams(False)
        self.slides.leave(restore=False)
        self.scene.release()

    def _connections(self) -> Connections:
        session, events = self._session, self.state.events
        return [
            (session.region_changed, self._show_region),
            (session.teams_came, self._show_region),
            (session.team_changed, self._show_team),
            (session.selection_changed, self.painting.follow_selection),
            (session.selection_changed, self._show_selection),
            (session.selected_again, self._show_selection),
            (session.edited, self._show_edit),
            (session.threshold_changed, self._show_threshold),
            (session.settings_changed, self._forget_edits),
            (session.source_changed, self._forget_edits),
            (self.loader.busy_changed, self._on_busy),
            (self.loader.failed, self._on_failed),
            (events.look, self._show_look),
            (events.is_blind, self._show_blind),
            *self.failures.connections(),
        ]

    def _connect(self, connections: Connections) -> None:
        for signal, slot in connections:
            signal.connect(slot)
        self._connected += connections

    def _bind_keys(self) -> None:
        regions, legend = self.presenter(NavigatorPresenter), self.presenter(LegendPresenter)
        actions: dict[str, Callable[[], object]] = {
            "n": self.failures.step,
            "Shift-n": partial(self.failures.step, -1),
            "j": regions.go_on,
            "k": regions.go_back,
            "f": regions.filter,
            "h": legend.cycle_display,
            "q": legend.toggle_colours,
            "w": self.centre_selected,
            "Alt-x": partial(self.reveal, "Regions"),
            "Alt-m": partial(self.reveal, "Metrics"),
            "Alt-o": partial(self.reveal, "Objects"),
        }
        keys = {shortcut: actions[shortcut.key] for shortcut in DESK_KEYS}
        for part in self.parts:
            if part.key is not None:
                keys[panel_shortcut(part.key, part.title)] = partial(self.reveal, part.title)
            keys.update(part.shortcuts())
        keys[COPY_LINK] = self.links.copy_shown
        keys[EXPORT_OBJECTS] = self.presenter(ObjectsPresenter).export
        self._release_keys = bind_commands(self._viewer, keys)

    # Regions and teams.

    def _show_region(self, snapshot: RegionSnapshot) -> None:
        session, name = self._session, snapshot.region.name
        self._finish_edits()
        self.pointer.forget()
        # Another snapshot of the same slide continues the shown one.
        if not (snapshot.is_slide and self.slides.region in (None, name)):
            self.slides.leave()
        self.scene.mark_edited(session.drawn)
        self.scene.show(snapshot, session.cohort.scheme, session.team)
        self._add_summaries(snapshot)
        PREFERENCES.keep_place(session.cohort.root, name, session.team)
        is_whole = not snapshot.pending
        if is_whole and any(too_many_objects(at) for at in snapshot.predictions.values()):
            show_warning(
                f"{name} has more than {count_text(MAX_OBJECTS)} objects: colours beyond that are "
                "wrong; metrics and table are correct."
            )

    def _show_team(self, name: str) -> None:
        self._finish_edits()
        self.pointer.forget()
        self.scene.set_team(name, self._session.snapshot)

    def _arrive(self, _snapshot: RegionSnapshot) -> None:
        """Show the selection, and requested views, once all show the region."""
        self._show_selection(self._session.selection)
        self._select_place()
        self.failures.arrive()

    def _select_place(self) -> None:
        """Select the object that the user goes to, once its region and team are there."""
        place, snapshot = self._going_to, self._session.snapshot
        if place is None or snapshot is None or snapshot.region.name != place.region:
            return
        evaluation = self._session.shown
        if evaluation is None:  # the team is still being evaluated
            return
        self._going_to = None
        row = evaluation.outcomes.side(place.side).row_of(place.object_id)
        if row is None:
            show_info(self._why_absent(place))
            return
        self.scene.show_beside(place.beside)
        self._session.select_row(place.side, row)
        self.follow_selected()

    def _why_absent(self, place: _Place) -> str:
        """Explain why there is no object to go to."""
        name = f"{place.side} {place.object_id}"
        whole = self._session.with_all_scores(self._session.team)
        if (
            whole is not None
            and whole.outcomes.side(place.side).row_of(place.object_id) is not None
        ):
            return f"{name} has a score below the threshold. Reset the threshold in Scores."
        return f"{name} does not exist under the current settings."

    def _add_summaries(self, snapshot: RegionSnapshot) -> None:
        """Add the teams' results to the session, except those that it has already."""
        name = snapshot.region.name
        for team in snapshot.results:
            is_shown = snapshot is self._session.snapshot
            found = self._session.with_all_scores(team) if is_shown else snapshot.result(team)
            known = self._session.summaries.get((name, team))
            if found is not None and (known is None or known.counts is not found.counts):
                self._session.add_summary(RegionSummary.of(name, team, found))

    def _on_busy(self, busy: bool) -> None:
        self.summary.hold(busy)
        if not busy:
            self._idle.start(IDLE_MS)

    def _on_failed(self, error: PanopticError) -> None:
        show_error(str(error))

    def _catch_up(self) -> None:
        """Fill layers out of sight, one at a time, while nothing else is to be done."""
        if not self.loader.is_busy and self.scene.catch_up_one():
            self._idle.start(0)

    # Edits.

    def _show_edit(self, edit: EditedEvaluation) -> None:
        """Follow an edit with colours; what takes longer comes when the hand rests."""
        self._edited_snapshot = snapshot = self._session.snapshot
        if snapshot is not None and edit.team != self._session.team:  # its layer is out of sight
            self.scene.take_unseen_edit(snapshot, edit.team)
        elif snapshot is not None:
            self.scene.take_edit(snapshot, edited=self._session.drawn)
        self.pointer.forget()
        self._rest.start()

    def _show_threshold(self, _threshold: float | None) -> None:
        """Show the region without predictions of low score, as after an edit."""
        if self._session.snapshot is not None:
            self.scene.take_edit(self._session.snapshot, edited=self._session.drawn)
        self.pointer.forget()
        self._rest.start()

    def _follow_edits(self) -> None:
        """Bring lists and rings up to date with the edits of the last moment."""
        self._finish_edits()
        self.scene.show_zone()
        if self._session.selection is not None:
            self.scene.emphasise(self._session.selection)
        self.edits_rested.emit()

    def _finish_edits(self) -> None:
        """Add the results of the last edits; at once if their region or team is left."""
        edited, self._edited_snapshot = self._edited_snapshot, None
        if edited is not None:
            self._add_summaries(edited)

    def _forget_edits(self, _changed: object) -> None:
        """Drop results of edits that are of other settings or files."""
        self._edited_snapshot = None

    # The image.

    def _show_selection(self, selection: Selection | None) -> None:
        with errors_shown():  # napari's canvas may fail: all others learn the selection
            self.scene.emphasise(selection)
            if selection is not None:
                self.scene.camera.show_object(selection, only_if_hidden=not self.slides.is_far)

    def _keep_in_sight(self, canvas: NDArray[np.float64]) -> None:
        """Show the selected object again if it was in sight on a canvas of another size."""
        selection = self._session.selection
        if selection is not None and self.scene.camera.is_object_in_sight(selection, canvas):
            self.scene.camera.show_object(selection, only_if_hidden=True)

    def _show_look(self, _changed: object) -> None:
        look = self.state.look
        # Colours of statuses would reveal the outcome.
        self.scene.set_look(
            replace(look, colour_by=ColourBy.CLASS) if self.state.is_blind else look
        )

    def _show_blind(self, is_blind: bool) -> None:
        """Hide the team and the status of objects, or show them again."""
        self._hide_teams(is_blind)
        self._cover(BLIND_SENTENCE if is_blind else "")
        self.pointer.is_silent = is_blind
        self._show_look(is_blind)

    def _cover(self, text: str) -> None:
        for part in self.parts:
            if part.shows_outcomes:
                Curtain.draw(part.widget, text)

    def _hide_teams(self, hidden: bool) -> None:
        """Name no team in napari's list of layers and in the title of its window, or name them."""
        self.scene.hide_teams(hidden)
        self.slides.name_layers()
        viewer, before = self._viewer, self._title_before
        if hidden and before is None:
            self._title_before = viewer.title
            teams = sorted(map(shown, self._session.cohort.team_names), key=len, reverse=True)
            whole_names = rf"(?<!\w)(?:{'|'.join(map(re.escape, teams))})(?!\w)"
            if teams:
                viewer.title = re.sub(whole_names, "…", viewer.title)
        elif not hidden and before is not None:
            viewer.title, self._title_before = before, None
