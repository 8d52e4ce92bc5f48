"""What a panel needs to be part of the desk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from psygnal import SignalInstance
from qtpy.QtWidgets import QWidget

from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.panels.around import Surroundings

Connections = list[tuple[SignalInstance, Callable[..., None]]]


class DeskPart(ABC):
    """A panel beside the object table that joins in when a cohort is shown.

    The desk makes the part once, docks its widget, and attaches it to every
    cohort that is shown, one after the other.
    """

    title: str
    """Title of the dock: one word."""
    key: str | None = None
    """Key that brings the panel to the front."""
    follows_table = False
    """Whether the panel shows what the object table lists."""

    def __init__(self) -> None:
        self._connected: Connections = []
        self.around: Surroundings | None = None

    @property
    @abstractmethod
    def widget(self) -> QWidget:
        """The panel itself; made once."""

    @abstractmethod
    def connections(self, around: Surroundings) -> Connections:
        """Return the signals of session and panels that the part listens to."""

    @abstractmethod
    def refresh(self) -> None:
        """Show what is so now; called when a cohort is shown, and whenever the part likes."""

    def shortcuts(self) -> tuple[tuple[Shortcut, Callable[[], None]], ...]:
        """Return keys of the part's own and what they do, bound while a cohort is shown."""
        return ()

    @property
    def is_busy(self) -> bool:
        """Whether something is still being computed."""
        return False

    def may_leave(self) -> bool:
        """Return whether another cohort may be shown; asks where something would be lost."""
        return True

    def attach(self, around: Surroundings) -> None:
        """Join in with a cohort."""
        self.around = around
        self._connected = self.connections(around)
        for signal, slot in self._connected:
            signal.connect(slot)
        self.refresh()

    def detach(self) -> None:
        """Leave a cohort: stop all work, undo every connection, touch no widget."""
        for signal, slot in self._connected:
            signal.disconnect(slot)
        self._connected = []
        self.around = None
