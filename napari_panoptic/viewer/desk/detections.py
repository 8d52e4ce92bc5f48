"""The desk for detections: its panels, and their link to a cohort while one is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from psygnal import SignalInstance
from qtpy.QtWidgets import QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.detections.pairing import DetectionSettings
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.io.formats.points.point_files import write_points
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.values.detections import DetectionCohort, Points
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk import shell
from napari_panoptic.viewer.desk.shell import DeskShell
from napari_panoptic.viewer.desk.workspaces import Arrangement, DockArea, Stack, Workspace
from napari_panoptic.viewer.jobs.detection_work import (
    ReadFrame,
    count_frames,
    read_points,
    read_with_image,
)
from napari_panoptic.viewer.jobs.jobs import Stream, show_failure, single_shot, stop_timers
from napari_panoptic.viewer.kit.commands import bind_commands
from napari_panoptic.viewer.kit.events import is_plain_click
from napari_panoptic.viewer.kit.keys import (
    DETECTION_KEYS,
    DETECTION_LIST_KEYS,
    DETECTION_NAPARI_KEYS,
    sections_of,
)
from napari_panoptic.viewer.kit.napari_private import focus_canvas
from napari_panoptic.viewer.kit.questions import BoxQuestion, ask, file_to_save, may_write
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.kit.title_strip import KeysDialog
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.layers.labels import SteadyView
from napari_panoptic.viewer.layers.point_scene import PointScene
from napari_panoptic.viewer.panels.detections.controls import (
    DetectionLegend,
    DetectionSettingsPanel,
    DetectionTitle,
)
from napari_panoptic.viewer.panels.detections.lists import (
    DetectionFigures,
    DetectionNavigator,
    PointTable,
)
from napari_panoptic.viewer.panels.notes import NotesDialog
from napari_panoptic.viewer.state.desk_state import DeskState
from napari_panoptic.viewer.state.preferences import Tool, ToolInHand

INSPECTOR = "Detections (Panoptic)"
FRAMES_DOCK, FIGURES_DOCK, POINTS_DOCK = "Frames", "Figures", "Points"
SETTINGS_DOCK = "Settings"
WORKSPACES = (
    Workspace(
        "Inspect",
        "Browse and edit points",
        Arrangement(
            left=DockArea(0.2, (Stack((FRAMES_DOCK,)),)),
            right=DockArea(0.32, (Stack((SETTINGS_DOCK,), 0.25), Stack((POINTS_DOCK,), 0.75))),
        ),
        POINTS_DOCK,
    ),
    Workspace(
        "Figures",
        "Compare precision and recall at every confidence",
        Arrangement(
            left=DockArea(0.2, (Stack((FRAMES_DOCK,)),)),
            right=DockArea(0.36, (Stack((FIGURES_DOCK,), 0.65), Stack((POINTS_DOCK,), 0.35))),
        ),
        FIGURES_DOCK,
    ),
)
FOLLOW_MS = 40
"""How long after a change lists and the curve follow; colours and the title follow at once."""
NO_FAILURE = "No failure in this frame: no FN and no FP."
ONLY_FAILURE = "No other failure in this frame."


@dataclass(frozen=True, eq=False)
class DetectionPanels:
    """The widgets of the desk, which outlive its cohorts."""

    navigator: DetectionNavigator
    settings: DetectionSettingsPanel
    figures: DetectionFigures
    points: PointTable
    title: DetectionTitle
    legend: DetectionLegend
    notes: NotesDialog


class DetectionDesk(DeskShell):
    """The panels around a frame, and the link to the cohort that is shown.

    Parameters
    ----------
    viewer
        The viewer.
    """

    name = INSPECTOR
    workspaces = WORKSPACES
    extras: ClassVar[Mapping[str, str]] = {SETTINGS_DOCK: "Show the settings of the evaluation"}

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer)
        self.link: DetectionLink | None = None
        self.scene = PointScene(self._viewer)
        points = PointTable()
        self.panels = DetectionPanels(
            navigator=DetectionNavigator(),
            settings=DetectionSettingsPanel(),
            figures=DetectionFigures(),
            points=points,
            title=DetectionTitle(),
            legend=DetectionLegend(),
            notes=NotesDialog(points),
        )
        self.keys = KeysDialog(points)
        self.make_strip(self.panels.title)
        self.panels.settings.open.pushed.connect(self.ask_for_cohort)
        self.panels.title.keys_clicked.connect(self._show_keys)
        self.closed.connect(self.scene.close_image)

    @property
    def session(self) -> DetectionSession | None:
        """The live state of the cohort shown; None where none is."""
        return None if self.link is None else self.link.session

    @property
    def is_settled(self) -> bool:
        """Whether everything asked for is shown."""
        return self.link is None or self.link.is_settled

    def show_failure(self) -> None:
        """Select the first failure, as for a picture."""
        if self.link is not None:
            self.link.step_failure(1)

    def may_leave(self) -> bool:
        """Ask before edits that are not saved are lost; True if they may be."""
        return self.link is None or self.link.may_leave()

    def docked(self) -> Mapping[str, QWidget]:
        """Return title -> panel of all docks."""
        return {
            SETTINGS_DOCK: self.panels.settings,
            FRAMES_DOCK: self.panels.navigator,
            FIGURES_DOCK: self.panels.figures,
            POINTS_DOCK: self.panels.points,
        }

    def legend_strip(self) -> QWidget:
        """Return the legend."""
        return self.panels.legend

    def show_cohort(self, cohort: DetectionCohort, *, region: str | None = None) -> None:
        """Show a cohort instead of the one shown before.

        Parameters
        ----------
        cohort
            What to show.
        region
            The frame to start with; the first where None.
        """
        self.leave_cohort()
        self.link = DetectionLink(self._viewer, cohort, self.panels, self.scene, self.state)
        self.link.start(region or cohort.frames[0].name)

    def leave_cohort(self) -> None:
        """Stop all work and undo all connections; touch no widget."""
        link, self.link = self.link, None
        if link is not None:
            link.close()

    def _show_keys(self) -> None:
        own, lists, napari = DETECTION_KEYS, DETECTION_LIST_KEYS, DETECTION_NAPARI_KEYS
        self.keys.show_keys(sections_of(own, lists, "frames", napari))
        show_in_front(self.keys)


class DetectionLink:
    """Joins panels and layers with a cohort: made when it is shown, closed when it goes.

    Parameters
    ----------
    viewer
        The viewer.
    cohort
        What to show.
    panels, scene
        What shows it; they outlive the link.
    state
        Where the tool in hand is kept.
    """

    def __init__(
        self,
        viewer: Any,
        cohort: DetectionCohort,
        panels: DetectionPanels,
        scene: PointScene,
        state: DeskState,
    ) -> None:
        self._viewer, self._panels, self._scene, self._state = viewer, panels, scene, state
        self.session = DetectionSession(cohort)
        self._wanted_frame = Stream(self._on_wanted_read, dropped=ReadFrame.close)
        self._other_frames = Stream(self._on_other_read)
        self._counts = Stream(
            self.session.take_counts, ended=self._count_outdated, failed=self._on_counting_failed
        )
        self._steady = SteadyView(viewer, scene)
        self._later = single_shot(FOLLOW_MS, self.show_lists)
        self._wanted = ""
        self._is_paused = False
        #: The tool to take as soon as there are points.
        self._waiting_tool: ToolInHand | None = state.tool
        placed = cohort.placement
        scene.origin_yx = (0.0, 0.0) if placed is None else placed.translate_yx
        self._connected = self._connections()
        for signal, slot in self._connected:
            signal.connect(slot)
        self._unbind = self._bind_keys()
        viewer.mouse_drag_callbacks.append(self._on_press)

    @property
    def is_settled(self) -> bool:
        """Whether everything asked for is shown."""
        is_waiting = self._later.isActive() or self._steady.is_busy
        is_lacking = not self._is_paused and bool(self.session.outdated)
        return not (is_waiting or is_lacking or any(work.is_busy for work in self._work))

    @property
    def _work(self) -> tuple[Stream[Any], ...]:
        return self._wanted_frame, self._other_frames, self._counts

    def start(self, name: str) -> None:
        """Show a frame of the cohort, and read the others behind it."""
        cohort, panels = self.session.cohort, self._panels
        panels.navigator.show_cohort(cohort)
        panels.settings.show_cohort(cohort)
        panels.title.show_session(self.session)
        self.show_lists()
        self.show_frame(name)
        self._other_frames.start(partial(read_points, cohort, cohort.frames))

    def show_frame(self, name: str) -> None:
        """Show a frame as soon as it is read."""
        self._wanted = name
        cohort = self.session.cohort
        self._wanted_frame.start(partial(read_with_image, cohort, cohort.region(name)))

    def close(self) -> None:
        """Stop all work and undo all connections; touch no widget."""
        stop_timers(self._later)
        for work in self._work:
            work.close()
        for signal, slot in self._connected:
            signal.disconnect(slot)
        if self._on_press in self._viewer.mouse_drag_callbacks:
            self._viewer.mouse_drag_callbacks.remove(self._on_press)
        self._unbind()
        self._steady.release()
        self._scene.release()

    def may_leave(self) -> bool:
        """Ask before edits that are not saved are lost; True if they may be."""
        places = self.session.unsaved
        if not places:
            return True
        question = BoxQuestion(
            "Edits are not saved",
            "These edits are not saved and will be lost:",
            {"Leave without saving": True, "Stay": False},
            lost=[f"{name}: {team or 'annotation'}" for name, team in places],
        )
        return ask(self._panels.title.window(), question)

    def _connections(self) -> list[tuple[SignalInstance, Callable[..., object]]]:
        session, panels, scene = self.session, self._panels, self._scene
        navigator, settings = panels.navigator, panels.settings
        return [
            (session.judged_changed, self._show_judged),
            (session.figures_changed, self._follow),
            (session.selection_changed, self._show_selection),
            (session.judging_failed, show_error),
            (scene.points_changed, self._on_points),
            (scene.tool_changed, self._show_tool),
            (scene.marked, session.select),
            (navigator.place_chosen, self.show_frame),
            (navigator.teams.chosen, session.set_team),
            (navigator.following.pushed, lambda: self.step_frame(1)),
            (navigator.previous.pushed, lambda: self.step_frame(-1)),
            (navigator.places.filter.left, lambda: focus_canvas(self._viewer)),
            (navigator.stop.pushed, self._on_stop),
            (panels.points.point_chosen, self._on_point),
            (panels.figures.curve.threshold_chosen, self._on_threshold),
            (settings.team.chosen, session.set_team),
            (settings.settings_chosen, self.set_settings),
            (settings.tool_wanted, self._on_tool),
            (settings.undo.pushed, session.undo),
            (settings.redo.pushed, session.redo),
            (settings.save.pushed, self.save_as),
            (panels.title.notes_clicked, self._show_notes),
        ]

    def _bind_keys(self) -> Callable[[], None]:
        scene = self._scene
        actions: dict[str, Callable[[], object]] = {
            "n": lambda: self.step_failure(1),
            "Shift-n": lambda: self.step_failure(-1),
            "j": lambda: self.step_frame(1),
            "k": lambda: self.step_frame(-1),
            "f": self._panels.navigator.focus_filter,
            "h": lambda: scene.set_hidden(not scene.is_hidden),
            "w": lambda: scene.centre(self.session.selection),
            "Ctrl-z": self.session.undo,
            "Ctrl-Shift-z": self.session.redo,
        }
        return bind_commands(
            self._viewer, {shortcut: actions[shortcut.key] for shortcut in DETECTION_KEYS}
        )

    # --- work in other threads ---

    def _on_wanted_read(self, read: ReadFrame) -> None:
        if read.loaded is None:
            self.session.add_failure(read.name, read.error)
            self._panels.title.show_session(self.session)
            show_error(read.error)
        else:
            self.session.add_frame(read.loaded)
            self.session.show(read.name)
            self._show_frame(read.image, read.loaded.mpp_xy)

    def _on_other_read(self, read: ReadFrame) -> None:
        if read.loaded is None:
            self.session.add_failure(read.name, read.error)
        else:
            self.session.add_frame(read.loaded)
            self._count_outdated()
        self._follow()

    def _count_outdated(self) -> None:
        """Count the loaded frames, unless that is running or was stopped."""
        outdated = self.session.outdated
        if outdated and not self._is_paused and not self._counts.is_busy:
            distance_um = self.session.settings.distance_um
            self._counts.start(partial(count_frames, outdated, distance_um))

    def _on_counting_failed(self, error: PanopticError) -> None:
        """Count no more until the user goes on: it would fail again."""
        show_failure(error)
        self._is_paused = True
        self._follow()

    def _on_stop(self) -> None:
        """Stop counting other frames, or go on."""
        if self._is_paused:
            self._go_on()
        else:
            self._is_paused = True
            self._other_frames.stop()
            self._counts.stop()
        self._follow()

    def _go_on(self) -> None:
        session = self.session
        self._is_paused = False
        unread = [at for at in session.cohort.frames if not session.is_loaded_or_failed(at.name)]
        if unread and not self._other_frames.is_busy:
            self._other_frames.start(partial(read_points, session.cohort, unread))
        self._count_outdated()

    # --- what is shown ---

    def _show_frame(self, image: SlideImage | None, mpp_xy: tuple[float, float]) -> None:
        scene = self._scene
        scene.show_frame(image, mpp_xy)
        self._show_points()
        scene.activate_points()
        waiting, self._waiting_tool = self._waiting_tool, None
        if waiting is not None and waiting.tool is not Tool.LOOK:
            scene.take_tool(waiting.side, waiting.tool)
        self._show_judged()
        self._show_selection()

    def _show_points(self) -> None:
        session = self.session
        points = {side: session.points(side) for side in Side}
        self._scene.show_points(points, session.judged, session.settings.distance_um)

    def _show_judged(self) -> None:
        session, panels = self.session, self._panels
        if session.shown is not None:
            self._show_points()
        panels.title.show_session(session)
        self._show_tool()
        panels.legend.show_session(session)
        self._scene.mark(session.selection)  # where it is now
        self._follow()

    def _follow(self) -> None:
        """Let the rest follow soon; also while changes keep coming."""
        if not self._later.isActive():
            self._later.start()

    def show_lists(self) -> None:
        """Show what may follow a little later: lists, the table, the curve."""
        session, panels = self.session, self._panels
        self._later.stop()
        panels.navigator.show_figures(session, is_paused=self._is_paused)
        panels.points.show_session(session)
        self._show_tool()
        panels.figures.show_session(session)
        found = session.confidence_range
        self._scene.set_new_confidence(1.0 if found is None else found[1])

    def _show_selection(self) -> None:
        selection = self.session.selection
        self._scene.mark(selection)
        if selection is not None:
            self._scene.follow_selection(*selection)
        self._panels.points.show_selection(selection)
        self._show_tool()

    def _show_tool(self) -> None:
        """Show settings and the tool in hand; above the image its hint, or the selected point."""
        session, panels, held = self.session, self._panels, self._scene.tool
        if self._waiting_tool is None:
            self._state.tool = held
        panels.settings.show_session(session, held)
        panels.title.show_selected(session, held)

    def _show_notes(self) -> None:
        session = self.session
        if session.shown is not None:
            self._panels.notes.show_findings(session.shown.frame.name, session.findings)
            show_in_front(self._panels.notes)

    # --- what the user does ---

    def _on_points(self, side: Side, points: Points, goes_on: bool) -> None:
        self.session.edit(side, points, goes_on=goes_on)

    def _on_tool(self, side: Side | None, tool: Tool) -> None:
        """Take a tool for a side; for that of the selected point where None."""
        selection = self.session.selection
        if side is None:
            side = self._scene.tool.side if selection is None else selection[0]
        if self.session.points(side) is None:
            whose = "annotation" if side is Side.REFERENCE else "team"
            show_info(f"Cannot edit: the {whose} has no usable file for this frame.")
        row = selection[1] if selection is not None and selection[0] is side else None
        self._scene.take_tool(side, tool, row)
        self._show_tool()

    def set_settings(self, settings: DetectionSettings) -> None:
        """Evaluate under other settings; another distance in the other frames behind this one."""
        is_further = settings.distance_um != self.session.settings.distance_um
        self.session.set_settings(settings)
        if is_further:
            self._counts.stop()
            self._go_on()

    def _on_threshold(self, threshold: float) -> None:
        self.set_settings(DetectionSettings(self.session.settings.distance_um, threshold))

    def _on_point(self, point: tuple[Side, int]) -> None:
        self.session.select(point)
        self._scene.centre(point)

    def step_failure(self, step: int) -> None:
        """Go to the next (1) or previous (-1) failure in the order of the table.

        If there is none, show why.
        """
        if self._later.isActive():  # the table is to follow first
            self.show_lists()
        session, before = self.session, self.session.selection
        found = self._panels.points.next_failure(before, step)
        if found is None:
            why = session.why_nothing_is_judged() or self._panels.title.title()
            show_info(NO_FAILURE if session.judged is not None else why)
            return
        self._on_point(found)
        if found == before:
            show_info(ONLY_FAILURE)

    def step_frame(self, step: int) -> None:
        """Go to the next (1) or previous (-1) frame in the order of the table, round and round."""
        name = self._panels.navigator.neighbour(self._wanted, step)
        if name is not None:
            self.show_frame(name)

    def _on_press(self, _viewer: Any, event: Any) -> Iterator[None]:
        """Select what is clicked, unless one of napari's tools is in hand."""
        position, active = event.position, self._viewer.layers.selection.active
        is_click = yield from is_plain_click(event)
        if not is_click:
            return
        mode = str(getattr(active, "mode", Tool.LOOK))
        found = self._scene.point_at(position)
        if mode == Tool.LOOK:
            self.session.select(found)
        elif mode == Tool.MOVE and found is not None and not active.selected_data:
            self.session.select(found)  # of the other side: the tool goes on with it

    # --- saving ---

    def save_as(self) -> None:
        """Ask for a place, and write the points there that the tools work on."""
        session, side = self.session, self._scene.tool.side
        if session.shown is None:
            return
        parent = self._panels.title
        owner = "annotation" if side is Side.REFERENCE else session.team
        chosen = file_to_save(
            parent,
            f"Save the points of {owner} as",
            f"{session.shown.frame.name}_{owner}_edited.csv",
            "Points, x,y,confidence (*.csv)",
        )
        if chosen is not None:
            target = chosen if chosen.suffix else chosen.with_suffix(".csv")
            if may_write(parent, target, asked=chosen):
                self.save_to(target, side)

    def save_to(self, path: Path, side: Side) -> None:
        """Write the points of a side; never over a file of the cohort."""
        session = self.session
        points = session.points(side)
        if points is None:
            return
        if path.resolve() in session.cohort.files:
            show_error(f"{path.name} is a file of the cohort, which stays as it is: choose another")
            return
        try:
            write_points(path, points)
        except (OSError, PanopticError) as error:
            reason = getattr(error, "strerror", None) or error
            show_error(f"{path} cannot be written ({reason}); your changes are kept")
            return
        session.mark_saved(side)
        show_info(f"saved: {path}")


def detection_desk_of(viewer: Any) -> DetectionDesk:
    """Return the desk of a viewer, opened where it is not yet."""
    return shell.desk_of(viewer, DetectionDesk)


def detection_desk_in(viewer: Any) -> DetectionDesk | None:
    """Return the desk of a viewer, or None if none is open."""
    return shell.desk_in(viewer, DetectionDesk)
