"""The desk: all panels around the image, opened and closed as one."""

from __future__ import annotations

from pathlib import Path

import napari
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtWidgets import QDockWidget, QMainWindow, QTabWidget, QVBoxLayout, QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.display.listed import Others
from napari_panoptic.nuclei.read_ahead import ReadAhead
from napari_panoptic.nuclei.session import Session
from napari_panoptic.nuclei.values.cohort import Cohort
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.viewer.desk.docks import (
    DockedWidget,
    add_docks,
    after_layout,
    dock_of,
    give_corners_to_sides,
    left_stack,
    on_cross,
    put_napari_below,
    remove_docks,
    share_left_column,
    tab_behind,
    unwrapped,
)
from napari_panoptic.viewer.desk.gl_context import free_textures_in_own_context
from napari_panoptic.viewer.desk.kept_sizes import KeptSizes
from napari_panoptic.viewer.desk.link import Link, Panels
from napari_panoptic.viewer.desk.parts import PARTS
from napari_panoptic.viewer.desk.window_before import WindowBefore
from napari_panoptic.viewer.jobs.region_work import warm_up
from napari_panoptic.viewer.kit.keys import Shortcut, key_sections
from napari_panoptic.viewer.kit.keys_dialog import KeysDialog
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.layers.kept_in_place import remove_desk_layers
from napari_panoptic.viewer.opening import ask_for_folder, open_dropped
from napari_panoptic.viewer.panels.metrics import MetricsPanel
from napari_panoptic.viewer.panels.navigator import Navigator
from napari_panoptic.viewer.panels.notes import NotesDialog
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.part import DeskPart
from napari_panoptic.viewer.panels.settings import SettingsPanel
from napari_panoptic.viewer.panels.strips import LegendStrip, TitleStrip
from napari_panoptic.viewer.state.preferences import PREFERENCES

INSPECTOR = "Panoptic Inspector (Panoptic)"
"""Name of the main dock: the one that napari itself gives it from its menu."""
ALREADY_OPEN = "The inspector is already open in this window."
COHORT_DOCK = "Cohort"
METRICS_DOCK = "Metrics"
OBJECTS_DOCK = "Objects"
TITLE_DOCK = "Panoptic title"
LEGEND_DOCK = "Panoptic legend"

LEFT_WIDTH, RIGHT_WIDTH = 280, 430
TABS_WIDTH = 28
"""The tabs of the panels stand at their right side."""
METRICS_HEIGHT = 645
TALL_WINDOW = 900
"""From this height on, metrics and objects stand above each other instead of in tabs."""


class Inspector(DockedWidget):
    """The settings strip, and the handle on the whole desk.

    Closing it closes the desk. A cohort's folder dropped on it is opened; so are an
    annotation and predictions of one image.

    Parameters
    ----------
    viewer
        The viewer in whose window the desk stands.
    """

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__()
        self._viewer = viewer
        self.setAcceptDrops(True)
        self.settings = SettingsPanel(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.settings)
        self.desk = Desk(viewer, self)
        self.settings.folded.connect(self._fit)
        self._fit()
        after_layout(self, self.desk.build)

    def _fit(self) -> None:
        """Be as high as the settings are, so that the rest is the figures'."""
        self.setFixedHeight(self.settings.sizeHint().height())

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:  # noqa: N802
        """Accept files."""
        if event is not None and _dropped_files(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent | None) -> None:  # noqa: N802
        """Open what was dropped."""
        if event is not None and (paths := _dropped_files(event)):
            event.acceptProposedAction()
            open_dropped(self._viewer, paths)

    def taken_out(self) -> None:
        """Close the desk with its main dock."""
        self.desk.close()


class Desk:
    """The panels around the image, and the link to what they show.

    Parameters
    ----------
    viewer
        The viewer.
    inspector
        The main dock's widget.
    """

    closed = Signal()

    def __init__(self, viewer: napari.Viewer, inspector: Inspector) -> None:
        self._viewer = viewer
        self._inspector = inspector
        self._before = WindowBefore(viewer)
        self._docks: dict[str, QDockWidget] = {}
        self._is_closed = False
        self.companions: list[object] = []
        """Objects that live as long as the desk is open."""
        self._sizes: KeptSizes | None = None
        self.link: Link | None = None
        self.session: Session | None = None
        self.panels = Panels(
            navigator=Navigator(),
            settings=inspector.settings,
            metrics=MetricsPanel(),
            objects=ObjectTable(),
            title=TitleStrip(),
            legend=LegendStrip(),
            notes=NotesDialog(inspector),
            keys=KeysDialog(inspector),
        )
        self.parts: list[DeskPart] = [part() for part in PARTS]
        objects = self.panels.objects
        objects.hide_columns(PREFERENCES.hidden_columns)
        objects.others.show_choice(PREFERENCES.others)
        objects.columns_chosen.connect(_remember_columns)
        objects.others_chosen.connect(_remember_others)
        inspector.settings.open_wanted.connect(self.ask_for_cohort)
        self.panels.title.keys_clicked.connect(self._show_keys)
        # The window may go without closing the dock first: then only what is
        # not Qt's is left to be undone. A method, not a lambda: Qt's bindings
        # hold methods weakly, but call lambdas that were collected already.
        inspector.destroyed.connect(self._let_go)
        free_textures_in_own_context(viewer)
        warm_up()

    @property
    def is_settled(self) -> bool:
        """Whether everything asked for is shown."""
        return self.link is None or self.link.is_settled

    def raise_part(self, part: DeskPart) -> None:
        """Bring a part's panel to the front."""
        dock = self._docks.get(part.title)
        if dock is not None:
            dock.show()
            dock.raise_()
            if part.widget.focusProxy() is not None:
                part.widget.setFocus()  # its arrow keys work at once

    def tab_behind(self, dock: QDockWidget) -> None:
        """Put a dock into a tab behind the panels at the right."""
        last = self.parts[-1].title if self.parts else OBJECTS_DOCK
        window = self._inspector.window()
        is_tall = window is not None and window.height() >= TALL_WINDOW
        front = OBJECTS_DOCK if is_tall else METRICS_DOCK
        tab_behind(self._docks.get(last), dock, self._docks.get(front))

    def build(self) -> None:
        """Put the panels around the image; done only once."""
        if self._docks or self._is_closed:
            return
        window = self._inspector.window()
        if not isinstance(window, QMainWindow):
            return
        # Side by side the titles of all panels would be cut off, and in a tall window,
        # where the panels below the metrics have less height, above each other.
        at_the_side = window.height() < TALL_WINDOW
        tabs = QTabWidget.TabPosition.East if at_the_side else QTabWidget.TabPosition.South
        window.setTabPosition(Qt.DockWidgetArea.RightDockWidgetArea, tabs)
        give_corners_to_sides(window)
        panels = self.panels
        around = (
            (TITLE_DOCK, panels.title, "top"),
            (LEGEND_DOCK, panels.legend, "bottom"),
            (COHORT_DOCK, panels.navigator, "left"),
            (METRICS_DOCK, panels.metrics, "right"),
            (OBJECTS_DOCK, panels.objects, "right"),
            *((part.title, part.widget, "right") for part in self.parts),
        )
        self._docks = add_docks(self._viewer, around, (TITLE_DOCK, LEGEND_DOCK))
        own = dock_of(self._inspector)
        if own is not None:
            on_cross(own, self._close_if_wanted)
        self._arrange(window)
        # Sizes can be given once Qt has laid the docks out.
        after_layout(self._inspector, self._give_sizes)

    def show_cohort(
        self,
        cohort: Cohort,
        *,
        region: str | None = None,
        settings: EvaluationSettings | None = None,
        team: str | None = None,
        ahead: ReadAhead | None = None,
    ) -> None:
        """Show a cohort instead of the one shown before.

        Parameters
        ----------
        cohort
            What to show.
        region
            The region to start with; the first where None.
        settings
            How to evaluate; the default protocol where None.
        team
            The team to start with; the first where None.
        ahead
            What has begun to read the region, if anything has.
        """
        if self.link is not None:
            self.link.close()
        self.session = Session(cohort, settings)
        if team is not None:
            self.session.set_team(team)
        self.link = Link(
            self._viewer, self.session, self.panels, self.parts, self.raise_part, ahead
        )
        self.link.start(region)

    def ask_for_cohort(self) -> None:
        """Let the user choose a folder, and open it on the matching desk."""
        ask_for_folder(self._viewer, self._inspector)

    def _show_keys(self) -> None:
        """List all keys, those of the parts among them; also before a cohort is open."""
        own = []
        for part in self.parts:
            raising = () if part.key is None else (Shortcut(part.key, "bring this panel forward"),)
            own.append((part.title, (*raising, *(shortcut for shortcut, _ in part.shortcuts()))))
        self.panels.keys.show_keys(key_sections(own))
        show_in_front(self.panels.keys)

    def show_failure(self) -> None:
        """Select the first failure, as for a picture."""
        if self.link is not None:
            self.link.select_failure()

    def may_leave(self) -> bool:
        """Return whether another cohort may be shown; asks where something would be lost."""
        return all(part.may_leave() for part in self.parts)

    def close(self) -> None:
        """Remove the panels and the desk's layers, and leave the window as it was."""
        if self._is_closed:
            return
        self._let_go()
        remove_desk_layers(self._viewer)
        own = dock_of(self._inspector)
        remove_docks(self._viewer, [*self._docks.values(), *([] if own is None else [own])])
        self._docks = {}
        self._inspector.deleteLater()
        self._before.restore()

    def _close_if_wanted(self) -> None:
        """Close the desk as its cross asks, unless something would be lost that is to stay."""
        if self.may_leave():
            self.close()

    def _let_go(self) -> None:
        self._is_closed = True
        if self._sizes is not None:
            self._sizes.release()
            self._sizes = None
        link, self.link = self.link, None
        if link is not None:
            link.close()
        self.closed.emit()
        self.companions.clear()

    def _arrange(self, window: QMainWindow) -> None:
        """Place each panel; nothing is cut off in a window of 1280 x 800."""
        cohort, metrics = self._docks[COHORT_DOCK], self._docks[METRICS_DOCK]
        objects, inspector = self._docks[OBJECTS_DOCK], dock_of(self._inspector)
        vertical = Qt.Orientation.Vertical
        put_napari_below(window, cohort, controls_first=False)
        if inspector is not None:
            window.splitDockWidget(inspector, metrics, vertical)
        if window.height() >= TALL_WINDOW:
            window.splitDockWidget(metrics, objects, vertical)
        else:
            window.tabifyDockWidget(metrics, objects)
        for part in self.parts:
            window.tabifyDockWidget(objects, self._docks[part.title])
        (objects if window.height() >= TALL_WINDOW else metrics).raise_()

    def _give_sizes(self) -> None:
        """Set each panel's share of the window."""
        window = self._inspector.window()
        if self._is_closed or not isinstance(window, QMainWindow):
            return
        cohort, metrics = self._docks[COHORT_DOCK], self._docks[METRICS_DOCK]
        objects, inspector = self._docks[OBJECTS_DOCK], dock_of(self._inspector)
        stacks = [(metrics, objects), *left_stack(window, cohort)]
        self._sizes = KeptSizes(
            window, [cohort, *([] if inspector is None else [inspector])], stacks
        )
        horizontal, vertical = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        window.resizeDocks([cohort, metrics], [LEFT_WIDTH, _right_width(window)], horizontal)
        height = window.height()
        share_left_column(window, cohort)
        if height >= TALL_WINDOW:
            window.resizeDocks(
                [metrics, objects], [METRICS_HEIGHT, height - METRICS_HEIGHT], vertical
            )


def _dropped_files(event: QDropEvent) -> list[Path]:
    data = event.mimeData()
    return [] if data is None else [Path(u.toLocalFile()) for u in data.urls() if u.isLocalFile()]


def make_inspector(viewer: napari.Viewer | None = None) -> QWidget:
    """Make the desk in a viewer; napari docks the widget that this returns.

    Where the desk is open already, it is left alone and the widget says so.

    Parameters
    ----------
    viewer
        The viewer; the current one where None, since napari hands a function
        none.

    Raises
    ------
    PanopticError
        Where there is no viewer.
    """
    viewer = unwrapped(viewer or napari.current_viewer())
    if viewer is None:
        raise PanopticError("the inspector needs a napari window: open one first")
    return Inspector(viewer) if _inspector_in(viewer) is None else PlainLabel(ALREADY_OPEN)


def desk_of(viewer: napari.Viewer) -> Desk:
    """Return the desk of a viewer, opened where it is not yet.

    Parameters
    ----------
    viewer
        A viewer with a window.
    """
    viewer = unwrapped(viewer)
    inspector = _inspector_in(viewer)
    if inspector is None:
        inspector = Inspector(viewer)
        viewer.window.add_dock_widget(
            inspector, name=INSPECTOR, area="right", add_vertical_stretch=False
        )
    inspector.desk.build()
    return inspector.desk


def desk_in(viewer: napari.Viewer) -> Desk | None:
    """Return the desk of a viewer, or None if none is open."""
    inspector = _inspector_in(unwrapped(viewer))
    return None if inspector is None else inspector.desk


def _inspector_in(viewer: napari.Viewer) -> Inspector | None:
    docked = viewer.window.dock_widgets.values()
    return next((widget for widget in docked if isinstance(widget, Inspector)), None)


def _remember_columns(hidden: frozenset[str]) -> None:
    PREFERENCES.hidden_columns = hidden


def _remember_others(others: Others) -> None:
    PREFERENCES.others = others


def _right_width(window: QMainWindow) -> int:
    """Leave the image at least the half of a small window."""
    return min(RIGHT_WIDTH, round(0.34 * window.width())) + TABS_WIDTH
