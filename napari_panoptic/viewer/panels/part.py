"""The interface between a panel and the desk that it is part of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from psygnal import SignalInstance
from qtpy.QtWidgets import QWidget

from napari_panoptic.live.session import Session
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.napari_private import focus_canvas

if TYPE_CHECKING:
    from napari_panoptic.viewer.desk.link import Link
    from napari_panoptic.viewer.kit.title_strip import KeysDialog
    from napari_panoptic.viewer.panels.legend import LegendStrip
    from napari_panoptic.viewer.panels.metrics import MetricsPanel
    from napari_panoptic.viewer.panels.navigator import Navigator
    from napari_panoptic.viewer.panels.notes import NotesDialog
    from napari_panoptic.viewer.panels.objects.panel import ObjectTable
    from napari_panoptic.viewer.panels.queue import QueueBar
    from napari_panoptic.viewer.panels.settings import SettingsPanel
    from napari_panoptic.viewer.panels.title import TitleStrip


@dataclass(frozen=True, eq=False)
class Panels:
    """The widgets that every desk has."""

    navigator: Navigator
    settings: SettingsPanel
    metrics: MetricsPanel
    objects: ObjectTable
    title: TitleStrip
    queue: QueueBar
    legend: LegendStrip
    notes: NotesDialog
    keys: KeysDialog


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The objects that a part may use while a cohort is shown."""

    #: The napari viewer.
    viewer: Any
    #: The live state.
    session: Session
    #: Session and viewer joined: has the scene and the other panels.
    link: Link


BLIND = "team and status are hidden during this plan"
"""Shown in place of figures and outcomes."""
BLIND_SENTENCE = f"{BLIND[:1].upper()}{BLIND[1:]}."
Connections = list[tuple[SignalInstance, Callable[..., None]]]
T = TypeVar("T")
PanelT = TypeVar("PanelT", bound=QWidget)


class Presenter(ABC, Generic[PanelT]):
    """Joins a panel with a cohort: made when the cohort is shown, closed when it goes.

    Subclasses name their panel and its dock.

    Parameters
    ----------
    around
        Session, viewer and the other panels.
    panel
        The panel; it outlives its presenters.
    """

    title: ClassVar[str]
    """Title of the dock: one word."""
    key: ClassVar[str | None] = None
    """Key that brings the panel to the front."""
    single_keys: ClassVar[tuple[Shortcut, ...]] = ()
    """Keys of the workspace of the same name, in place of napari's."""
    follows_table: ClassVar[bool] = False
    """Whether the panel shows what the object table lists."""
    shows_outcomes: ClassVar[bool] = True
    """Whether the panel shows team or status of objects, which a blind reviewer must not see."""
    panel_type: ClassVar[Callable[[], QWidget]]
    """Makes the panel, where its part is not given one."""

    def __init__(self, around: Surroundings, panel: PanelT) -> None:
        self.around, self.panel = around, panel
        self.session, self.link = around.session, around.link

    @classmethod
    def shortcuts(cls) -> tuple[tuple[Shortcut, Callable[[Any], None]], ...]:
        """Return keys of the panel's own, and the methods that they call."""
        return ()

    @abstractmethod
    def connections(self) -> Connections:
        """Return the signals of session and panels, and their slots."""

    @abstractmethod
    def refresh(self) -> None:
        """Show the present state."""

    @property
    def is_busy(self) -> bool:
        """Whether something is still being computed."""
        return False

    def may_leave(self) -> bool:
        """Return whether another cohort may be shown; asks where something would be lost."""
        return True

    @property
    def is_writing(self) -> bool:
        """Whether files are being written that are to be reported even after `close`."""
        return False

    def begin(self) -> None:
        """Start work that needs all connections."""

    def close(self) -> None:
        """Stop all work; touch no widget."""

    def return_keys(self) -> None:
        """Return the keyboard focus from the panel to the image; other widgets keep it."""
        window = self.panel.window()
        focused = None if window is None else window.focusWidget()
        if focused is not None and self.panel.isAncestorOf(focused):
            focused.clearFocus()  # also if there is no canvas to take it
            focus_canvas(self.around.viewer)


PresenterT = TypeVar("PresenterT", bound=Presenter[Any])


class PanelPart(Generic[PresenterT]):
    """A panel, and its presenter while a cohort is shown.

    The desk makes the part once, docks its widget, and attaches it to every
    cohort that is shown, one after the other.

    Parameters
    ----------
    kind
        The class of the presenter; it names the panel.
    widget
        The panel; made where None.
    """

    def __init__(self, kind: type[PresenterT], widget: QWidget | None = None) -> None:
        self.title, self.key, self.single_keys = kind.title, kind.key, kind.single_keys
        self.follows_table, self.shows_outcomes = kind.follows_table, kind.shows_outcomes
        self._kind = kind
        self.widget = kind.panel_type() if widget is None else widget
        self.presenter: PresenterT | None = None
        self._ending: PresenterT | None = None
        self._connected: Connections = []

    def shortcuts(self) -> tuple[tuple[Shortcut, Callable[[], None]], ...]:
        """Return the keys of the presenter."""
        return tuple((key, partial(self._call, action)) for key, action in self._kind.shortcuts())

    @property
    def is_busy(self) -> bool:
        """Whether something is still being computed."""
        return self.presenter is not None and self.presenter.is_busy

    def may_leave(self) -> bool:
        """Return whether another cohort may be shown; asks where something would be lost."""
        return self.presenter is None or self.presenter.may_leave()

    def attach(self, around: Surroundings) -> None:
        """Present a cohort."""
        self.presenter = presenter = self._kind(around, self.widget)
        self._connected = presenter.connections()
        for signal, slot in self._connected:
            signal.connect(slot)
        presenter.refresh()
        presenter.begin()

    def detach(self) -> None:
        """Leave a cohort: undo every connection, stop all work, touch no widget."""
        for signal, slot in self._connected:
            signal.disconnect(slot)
        self._connected = []
        self._call(self._kind.close)
        # Kept until it has reported the written files.
        is_writing = self.presenter is not None and self.presenter.is_writing
        self._ending = self.presenter if is_writing else None
        self.presenter = None

    def _call(self, action: Callable[[Any], None]) -> None:
        if self.presenter is not None:
            action(self.presenter)


def presenter_of(parts: Iterable[PanelPart[Any]], kind: type[T]) -> T:
    """Return the presenter of a kind among parts; a LookupError where no cohort is shown."""
    for part in parts:
        if isinstance(part.presenter, kind):
            return part.presenter
    raise LookupError(f"no cohort is shown, or there is no panel of {kind.__name__}")
