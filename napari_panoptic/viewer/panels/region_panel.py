"""The kit of panels that show something of the present region: they compute when seen.

Such a panel needs a value that takes a moment. It is computed by a worker, only
while the panel is in sight, and again when its input changed; an answer
that comes too late is discarded.
"""

from __future__ import annotations

from abc import abstractmethod

from psygnal import Signal
from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtWidgets import QDockWidget, QWidget

from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import single_shot
from napari_panoptic.viewer.kit.widgets import dock_of, is_in_sight
from napari_panoptic.viewer.panels.part import Connections, PanelT, Presenter, Surroundings

WAITING = "Evaluating …"
"""Shown in place of a result of another region or team."""


class Sight(QObject):
    """Reports when a panel becomes visible or hidden; made by `Sight.of`.

    Emits `changed` with whether it can be seen.
    """

    changed = Signal(bool)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._dock: QDockWidget | None = None
        # Docks are moved after the event.
        self._later = single_shot(0, self._look, self)
        self.is_seen = False
        widget.installEventFilter(self)
        self._find_dock()
        self._look()

    @classmethod
    def of(cls, widget: QWidget) -> Sight:
        """Return the watch of a panel, made on first use."""
        known = widget.findChild(cls, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return known if isinstance(known, cls) else cls(widget)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Notice events that may show or hide the widget; none is held back."""
        kind = None if event is None else event.type()
        if kind in (QEvent.Type.ParentChange, QEvent.Type.Show):
            self._find_dock()
        if kind == QEvent.Type.Hide:
            self._look()
        if kind in _MAY_CHANGE_SIGHT:
            self._later.start()
        return super().eventFilter(watched, event)

    def _find_dock(self) -> None:
        """Listen to the dock: a panel that it moves behind another tab gets no event."""
        dock = dock_of(self._widget)
        if dock is not None and dock is not self._dock:
            self._dock = dock
            dock.visibilityChanged.connect(lambda _visible: self._later.start())

    def _look(self) -> None:
        seen = is_in_sight(self._widget)
        if seen != self.is_seen:
            self.is_seen = seen
            self.changed.emit(seen)


_MAY_CHANGE_SIGHT = (
    QEvent.Type.ParentChange,
    QEvent.Type.Show,
    QEvent.Type.Hide,
    QEvent.Type.Resize,
    QEvent.Type.Paint,
)


class SeenPresenter(Presenter[PanelT]):
    """Computes the contents of its panel, and only while that is in sight."""

    def __init__(self, around: Surroundings, panel: PanelT) -> None:
        super().__init__(around, panel)
        self._is_stale = True
        self._sight = Sight.of(panel)

    @abstractmethod
    def compute_now(self) -> None:
        """Recompute and show the contents; called only while the panel is visible."""

    @property
    def is_in_sight(self) -> bool:
        """Whether the panel is visible, or its value is needed."""
        return self._sight.is_seen

    @property
    def is_window_gone(self) -> bool:
        """Whether the window was closed, so that nothing in it must be touched any more."""
        try:
            window = self.panel.window()
            return window is None or not window.isVisible()
        except RuntimeError:  # Qt deleted the widget already
            return True

    def connections(self) -> Connections:
        """Listen to whatever changes the figures, and to the panel coming into sight."""
        return [
            (self.session.region_changed, self.refresh),
            (self.session.team_changed, self.refresh),
            (self.link.edits_rested, self.refresh),
            (self._sight.changed, self._on_sight),
        ]

    def refresh(self, *_changed: object) -> None:
        """Compute again, now or when the panel comes into sight."""
        self._is_stale = True
        if self.is_in_sight:
            self._is_stale = False
            self.compute_now()

    def is_shown(self, snapshot: RegionSnapshot) -> bool:
        """Return whether a result is of the shown region."""
        return self.session.snapshot is not None and self.session.snapshot.region == snapshot.region

    def select_id(self, side: Side, id_: int) -> None:
        """Select an object of a list by its id: edits since may have given it another row."""
        shown = self.session.shown
        row = None if shown is None else shown.outcomes.side(side).row_of(id_)
        if row is not None:
            self.session.select_row(side, row)

    def centre_selected(self) -> None:
        """Bring the selected object to the middle of the canvas."""
        if self.session.selection is not None:
            self.link.scene.camera.centre(self.session.selection)

    def _on_sight(self, seen: bool) -> None:
        if seen and self._is_stale:
            self.refresh()
