"""The desk for detections: panels around a frame, its circles and crosses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from psygnal import SignalInstance
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QFileDialog, QMessageBox, QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.detections.pairing import DetectionSettings
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.io.formats.points.point_files import write_points
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.values.detections import DetectionCohort, Points
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk import shell
from napari_panoptic.viewer.desk.shell import DeskShell
from napari_panoptic.viewer.desk.workspaces import LAYERS, Arrangement, DockArea, Stack, Workspace
from napari_panoptic.viewer.jobs.detection_work import FrameReader, ReadFrame, StandingsFinder
from napari_panoptic.viewer.jobs.timers import single_shot, stop_timers
from napari_panoptic.viewer.kit.commands import bind_commands
from napari_panoptic.viewer.kit.events import is_plain_click
from napari_panoptic.viewer.kit.keys import (
    DETECTION_KEYS,
    DETECTION_LIST_KEYS,
    DETECTION_NAPARI_KEYS,
    sections_of,
)
from napari_panoptic.viewer.kit.napari_private import focus_canvas
from napari_panoptic.viewer.kit.questions import may_replace
from napari_panoptic.viewer.kit.shown import show_error, show_info, shown
from napari_panoptic.viewer.kit.title_strip import KeysDialog
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.layers.point_scene import PointScene
from napari_panoptic.viewer.layers.steady import SteadyView
from napari_panoptic.viewer.panels.detections.atypia import AtypiaPanel
from napari_panoptic.viewer.panels.detections.navigator import DetectionNavigator
from napari_panoptic.viewer.panels.detections.panels import (
    DetectionFigures,
    DetectionLegend,
    DetectionSettingsPanel,
    DetectionTitle,
    PointTable,
)
from napari_panoptic.viewer.panels.notes import NotesDialog
from napari_panoptic.viewer.state.modes import Tool, ToolInHand

INSPECTOR = "Detections (Panoptic)"
FRAMES_DOCK, FIGURES_DOCK, POINTS_DOCK, ATYPIA_DOCK = "Frames", "Figures", "Points", "Atypia"
SETTINGS_DOCK = "Settings"
WORKSPACES = (
    Workspace(
        "Inspect",
        "Browse and edit points",
        Arrangement(
            left=DockArea(0.2, (Stack((FRAMES_DOCK,), 0.6), Stack((LAYERS,), 0.4))),
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
    Workspace(
        "Atypia",
        "Compare scores of nuclear atypia",
        Arrangement(
            left=DockArea(0.2, (Stack((FRAMES_DOCK,)),)),
            right=DockArea(0.42, (Stack((ATYPIA_DOCK,)),)),
        ),
        ATYPIA_DOCK,
    ),
)
FOLLOW_MS = 40
"""How long after a change lists and the curve follow; colours and the title follow at once."""
NO_FAILURE = "No failure in this frame: no FN and no FP."
ONLY_FAILURE = "No other failure in this frame."


class DetectionDesk(DeskShell):
    """The panels around a frame, and what joins them to session and layers.

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
        self._unbind: Callable[[], None] = lambda: None
        self._connected: list[tuple[SignalInstance, Callable[..., None]]] = []
        self._image: SlideImage | None = None
        self._steady: SteadyView | None = None
        self._wanted: str | None = None
        self._is_paused = False
        self._waiting_tool: ToolInHand | None = None
        """The tool to take up as soon as there are points."""
        self.session: DetectionSession | None = None
        self.reader: FrameReader | None = None
        self.finder = StandingsFinder()
        self.scene = PointScene(self._viewer, self._on_points, self._show_tool, self._on_marked)
        self.settings = DetectionSettingsPanel()
        self.navigator, self.figures = DetectionNavigator(), DetectionFigures()
        self.points, self.title, self.legend = PointTable(), DetectionTitle(), DetectionLegend()
        self.atypia = AtypiaPanel()
        self.make_strip(self.title)
        self.keys, self.notes = KeysDialog(self.points), NotesDialog(self.points)
        self._later = single_shot(FOLLOW_MS, self._show_lists, self.strip)
        self._connect_panels()

    # --- what every desk can do ---

    @property
    def is_settled(self) -> bool:
        """Whether everything asked for is shown."""
        reader, session = self.reader, self.session
        is_reading = reader is not None and reader.is_busy
        is_lacking = session is not None and not self._is_paused and bool(session.outdated)
        is_moving = self._steady is not None and self._steady.is_busy
        is_waiting = self._later.isActive() or is_moving
        return not (is_waiting or is_reading or self.finder.is_busy or is_lacking)

    def show_failure(self) -> None:
        """Select the first failure, as for a picture."""
        self.step_failure(1)

    def may_leave(self) -> bool:
        """Ask before edits that are not saved are lost; True if they may be."""
        places = [] if self.session is None else self.session.unsaved
        if not places:
            return True
        lines = [f"{name}: {team or 'annotation'}" for name, team in places]
        more = f"\n… and {len(lines) - 8} more" if len(lines) > 8 else ""
        box = QMessageBox(self.strip.window())
        box.setIcon(QMessageBox.Icon.Warning)
        box.setWindowTitle("Edits are not saved")
        box.setTextFormat(Qt.TextFormat.PlainText)
        head = "These edits are not saved and will be lost:\n"
        box.setText(shown(head + "\n".join(lines[:8]) + more))
        leave = box.addButton("Leave without saving", QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton("Stay", QMessageBox.ButtonRole.RejectRole))
        box.exec()
        return box.clickedButton() is leave

    def docked(self) -> Mapping[str, QWidget]:
        """Return title -> panel of all docks."""
        return {
            SETTINGS_DOCK: self.settings,
            FRAMES_DOCK: self.navigator,
            FIGURES_DOCK: self.figures,
            POINTS_DOCK: self.points,
            ATYPIA_DOCK: self.atypia,
        }

    def legend_strip(self) -> QWidget:
        """Return the legend."""
        return self.legend

    # --- a cohort ---

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
        self.session = DetectionSession(cohort)
        placed = cohort.placement
        self.scene.origin_yx = (0.0, 0.0) if placed is None else placed.translate_yx
        self.reader = FrameReader(cohort)
        session = self.session
        self._connected = [
            (session.frame_changed, self._show_frame),
            (session.judged_changed, self._show_judged),
            (session.points_changed, self._show_side),
            (session.figures_changed, self._follow),
            (session.selection_changed, self._show_selection),
            (session.judging_failed, show_error),
            (self.reader.shown_read, self._on_shown_read),
            (self.reader.other_read, self._on_other_read),
            (self.reader.scores_read, session.set_scores),
            (self.finder.found, session.take_counts),
            (self.finder.ended, self._find_out),
        ]
        for signal, slot in self._connected:
            signal.connect(slot)
        self._bind_cohort_keys()
        self._steady = SteadyView(self._viewer, self.scene)
        self._viewer.mouse_drag_callbacks.append(self._on_press)
        self.navigator.show_cohort(cohort)
        self.settings.show_cohort(cohort)
        self.title.show_session(session)
        self._show_lists()
        self._waiting_tool = self.state.tool
        self.show_frame(region or cohort.frames[0].name)
        self.reader.read_others(cohort.frames)
        self.reader.read_scores()
        self.set_available(ATYPIA_DOCK, bool(cohort.atypia))

    def show_frame(self, name: str) -> None:
        """Show a frame as soon as it is read."""
        if self.session is not None and self.reader is not None:
            self._wanted = name
            self.reader.want(self.session.cohort.region(name))

    def leave_cohort(self) -> None:
        """Stop all work and undo all connections; touch no widget."""
        stop_timers(self._later)
        self._is_paused = False
        self.finder.stop()
        if self.reader is not None:
            self.reader.close()
        for signal, slot in self._connected:
            signal.disconnect(slot)
        self._connected = []
        if self._on_press in self._viewer.mouse_drag_callbacks:
            self._viewer.mouse_drag_callbacks.remove(self._on_press)
        self._unbind()
        if self._steady is not None:
            self._steady.release()
        self.scene.release()
        self.session = self.reader = self._steady = None
        image = self._image
        if self._is_closed and image is not None:  # else the next frame's arrival closes it
            self._image = None
            QTimer.singleShot(0, lambda: image.close())  # when its layer is gone

    def _connect_panels(self) -> None:
        for signal, slot in (
            (self.navigator.place_chosen, self.show_frame),
            (self.navigator.teams.chosen, self._on_team),
            (self.navigator.following.pushed, lambda: self.step_frame(1)),
            (self.navigator.previous.pushed, lambda: self.step_frame(-1)),
            (self.navigator.places.filter_left, lambda: focus_canvas(self._viewer)),
            (self.navigator.stop.pushed, self._on_pause),
            (self.atypia.frame_chosen, self.show_frame),
            (self.atypia.team_chosen, self._on_team),
            (self.points.point_chosen, self._on_row),
            (self.figures.curve.threshold_chosen, self._on_threshold),
            (self.settings.open.pushed, self.ask_for_cohort),
            (self.settings.team.chosen, self._on_team),
            (self.settings.settings_chosen, self._on_settings),
            (self.settings.tool_wanted, self._on_tool),
            (self.settings.undo_wanted, self._on_undo),
            (self.settings.save.pushed, self.save_as),
            (self.title.keys_clicked, self._on_keys),
            (self.title.notes_clicked, self._on_notes),
        ):
            signal.connect(slot)

    def _bind_cohort_keys(self) -> None:
        actions: dict[str, Callable[[], None]] = {
            "n": lambda: self.step_failure(1),
            "Shift-n": lambda: self.step_failure(-1),
            "j": lambda: self.step_frame(1),
            "k": lambda: self.step_frame(-1),
            "f": self.navigator.focus_filter,
            "h": lambda: self.scene.set_hidden(not self.scene.is_hidden),
            "w": self._centre_selected,
            "Ctrl-z": lambda: self._on_undo(True),
            "Ctrl-Shift-z": lambda: self._on_undo(False),
        }
        keys = {shortcut: actions[shortcut.key] for shortcut in DETECTION_KEYS}
        self._unbind = bind_commands(self._viewer, keys)

    # --- what is so, and who shows it ---

    def _on_shown_read(self, read: ReadFrame) -> None:
        session = self.session
        if session is None or read.name != self._wanted:
            return
        if read.loaded is None:
            session.add_failure(read.name, read.error)
            self.title.show_session(session)
            show_error(read.error)
            return
        before, self._image = self._image, read.image
        session.add_frame(read.loaded)
        session.show(read.name)
        if before is not None and before is not self._image:
            before.close()

    def _on_other_read(self, read: ReadFrame) -> None:
        if self.session is None:
            return
        if read.loaded is not None:
            self.session.add_frame(read.loaded)
            self._find_out()
        else:
            self.session.add_failure(read.name, read.error)
        self._follow()

    def _find_out(self) -> None:
        """Count the loaded frames, unless that is running or was stopped."""
        session = self.session
        if session is None or self._is_paused or self.finder.is_busy:
            return
        if outdated := session.outdated:
            self.finder.start(outdated, session.settings.distance_um)

    def _on_pause(self) -> None:
        """Stop finding out the figures of other frames, or go on."""
        if self._is_paused:
            self._go_on()
        elif self.reader is not None:
            self._is_paused = True
            self.reader.stop()
            self.finder.stop()
        self._follow()

    def _go_on(self) -> None:
        session, reader = self.session, self.reader
        if session is None or reader is None:
            return
        self._is_paused = False
        unread = [
            frame for frame in session.cohort.frames if not session.is_loaded_or_failed(frame.name)
        ]
        if unread and not reader.is_reading_others:
            reader.read_others(unread)
        self._find_out()

    def _show_frame(self) -> None:
        session = self.session
        if session is None or session.shown is None:
            return
        self.scene.show_frame(self._image, session.shown.mpp_xy)
        for side in Side:
            self._show_side(side)
        self.scene.activate_points()
        waiting, self._waiting_tool = self._waiting_tool, None
        if waiting is not None and waiting.tool is not Tool.LOOK:
            self.scene.take_tool(waiting.side, waiting.tool)
        self._show_judged()
        self._show_selection()

    def _show_side(self, side: Side) -> None:
        session = self.session
        if session is not None:
            self.scene.show_points(side, session.points(side), session.settings.distance_um)
            self.scene.show_judged(session.judged, session.settings.distance_um)

    def _show_judged(self) -> None:
        session = self.session
        if session is None:
            return
        if session.shown is not None and not self.scene.holds(
            Side.PREDICTION, session.points(Side.PREDICTION)
        ):
            self._show_side(Side.PREDICTION)  # another team
        self.scene.show_judged(session.judged, session.settings.distance_um)
        self.title.show_session(session)
        self._show_tool()
        self.settings.show_session(session)
        self.legend.show_session(session)
        self.scene.mark(*(session.selection or (None,)))  # where it is now
        self._follow()

    def _follow(self) -> None:
        """Let the rest follow soon; also while changes keep coming."""
        if not self._later.isActive():
            self._later.start()

    def _show_lists(self) -> None:
        """Show what may follow a little later: lists, the table, the curve."""
        session = self.session
        if session is None:
            return
        self.navigator.show_figures(session, is_paused=self._is_paused)
        self.atypia.show_session(session)
        self.points.show_session(session)
        self.settings.show_session(session)
        self.settings.show_edits(session, self.scene.side_edited())
        found = session.confidence_range
        self.scene.set_sure(1.0 if found is None else found[1])
        here = None if session.judged is None else session.judged.counts
        n_counted, n_frames = session.n_counted, len(session.cohort.frames)
        frames = "all frames" if n_counted == n_frames else f"{n_counted} of {n_frames} frames"
        self.figures.show_figures(here, session.pooled(session.team), session.curve(), frames)

    def _show_selection(self) -> None:
        session = self.session
        if session is None:
            return
        side, row = session.selection or (None, -1)
        self.scene.mark(side, row)
        if side is not None:
            self.scene.follow_selection(side, row)
        self.points.show_selection(session.selection)
        self._show_tool()

    def _show_tool(self) -> None:
        """Show the tool in hand, and what to do with it; without one, the selected point."""
        if self.session is not None:
            held = self.scene.tool
            if self._waiting_tool is None:
                self.state.tool = held
            self.settings.show_tool(held.side, held.tool)
            self.title.show_selected(self.session, held.side, held.tool)
            self.settings.show_edits(self.session, held.side)

    # --- user actions, and the methods that handle them ---

    def _on_points(self, side: Side, points: Points, goes_on: bool) -> None:
        if self.session is not None:
            self.session.edit(side, points, goes_on=goes_on)

    def _on_marked(self, side: Side, row: int) -> None:
        if self.session is not None:
            self.session.select((side, row))

    def _on_undo(self, back: bool) -> None:
        if self.session is not None:
            (self.session.undo if back else self.session.redo)()

    def _on_tool(self, side: Side | None, tool: Tool) -> None:
        """Take a tool for a side; for that of the selected point where None."""
        session = self.session
        if session is None:
            return
        selection = session.selection
        if side is None:
            side = self.scene.side_edited() if selection is None else selection[0]
        if session.points(side) is None:
            whose = "annotation" if side is Side.REFERENCE else "team"
            show_info(f"Cannot edit: the {whose} has no usable file for this frame.")
        row = selection[1] if selection is not None and selection[0] is side else None
        self.scene.take_tool(side, tool, row)
        self._show_tool()

    def _on_team(self, name: str) -> None:
        if self.session is not None and name:
            self.session.set_team(name)

    def _on_settings(self, settings: DetectionSettings) -> None:
        session = self.session
        if session is None:
            return
        is_further = settings.distance_um != session.settings.distance_um
        session.set_settings(settings)
        if is_further:
            self.finder.stop()
            self._go_on()

    def _on_threshold(self, threshold: float) -> None:
        if self.session is not None:
            self._on_settings(DetectionSettings(self.session.settings.distance_um, threshold))

    def _on_row(self, side: Side, row: int) -> None:
        if self.session is not None:
            self.session.select((side, row))
            self.scene.centre(side, row)

    def _on_keys(self) -> None:
        own, lists, napari = DETECTION_KEYS, DETECTION_LIST_KEYS, DETECTION_NAPARI_KEYS
        self.keys.show_keys(sections_of(own, lists, "frames", napari))
        show_in_front(self.keys)

    def _on_notes(self) -> None:
        if self.session is not None and self.session.shown is not None:
            self.notes.show_findings(self.session.shown.frame.name, self.session.findings)
            show_in_front(self.notes)

    def _centre_selected(self) -> None:
        if self.session is not None and self.session.selection is not None:
            self.scene.centre(*self.session.selection)

    def step_failure(self, step: int) -> None:
        """Go to the next (1) or previous (-1) failure in the order of the table.

        If there is none, show why.
        """
        if self.session is None:
            return
        if self._later.isActive():  # the table is to follow first
            self._later.stop()
            self._show_lists()
        before = self.session.selection
        found = self.points.next_failure(before, step)
        if found is None:
            show_info(self._why_no_failure(self.session))
            return
        self._on_row(*found)
        if found == before:
            show_info(ONLY_FAILURE)

    def _why_no_failure(self, session: DetectionSession) -> str:
        if session.judged is not None:
            return NO_FAILURE
        return session.why_nothing_is_judged() or self.title.title()

    def step_frame(self, step: int) -> None:
        """Go to the next (1) or previous (-1) frame in the order of the table, round and round."""
        name = self.navigator.neighbour(self._wanted, step)
        if self.session is not None and name is not None:
            self.show_frame(name)

    def _on_press(self, _viewer: Any, event: Any) -> Iterator[None]:
        """Select what is clicked, unless one of napari's tools is in hand."""
        position, active = event.position, self._viewer.layers.selection.active
        is_click = yield from is_plain_click(event)
        if self.session is None or not is_click:
            return
        mode = str(getattr(active, "mode", Tool.LOOK))
        found = self.scene.point_at(position)
        if mode == Tool.LOOK:
            self.session.select(found)
        elif mode == Tool.MOVE and found is not None and not active.selected_data:
            self.session.select(found)  # of the other side: the tool goes on with it

    # --- saving ---

    def save_as(self) -> None:
        """Ask for a place, and write the points there that the tools work on."""
        session = self.session
        if session is None or session.shown is None:
            return
        side = self.scene.side_edited()
        owner = "annotation" if side is Side.REFERENCE else session.team
        path, _ = QFileDialog.getSaveFileName(
            self.strip,
            f"Save the points of {owner} as",
            f"{session.shown.frame.name}_{owner}_edited.csv",
            "Points, x,y,confidence (*.csv)",
        )
        if path:
            target = Path(path)
            target = target if target.suffix else target.with_suffix(".csv")
            # The dialog has asked about the name that was chosen, as it was written.
            was_asked = target == Path(path) and target.exists()
            if was_asked or may_replace(self.strip, (target,)):
                self.save_to(target, side)

    def save_to(self, path: Path, side: Side) -> None:
        """Write the points of a side; never over a file of the cohort."""
        session = self.session
        points = None if session is None else session.points(side)
        if session is None or points is None:
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
