"""What a panel needs to be part of the desk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from psygnal import SignalInstance
from qtpy.QtWidgets import QWidget

from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.panels.around import Surroundings

Connections = list[tuple[SignalInstance, Callable[..., None]]]
PanelT = TypeVar("PanelT", bound=QWidget)


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
    shows_outcomes = True
    """Whether the panel tells team or status of objects, which a blind reviewer must not see."""
    companions: Sequence[DeskPart] = ()
    """Parts with a panel of their own that belong to this one; attached after it."""

    def __init__(self) -> None:
        self._connected: Connections = []

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
        self._connected = self.connections(around)
        for signal, slot in self._connected:
            signal.connect(slot)
        self.refresh()

    def detach(self) -> None:
        """Leave a cohort: stop all work, undo every connection, touch no widget."""
        for signal, slot in self._connected:
            signal.disconnect(slot)
        self._connected = []


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
    follows_table: ClassVar[bool] = False
    """Whether the panel shows what the object table lists."""
    panel_type: ClassVar[type[QWidget]]
    """Makes the panel."""

    def __init__(self, around: Surroundings, panel: PanelT) -> None:
        self.around, self.panel = around, panel
        self.session, self.link = around.session, around.link

    @classmethod
    def shortcuts(cls) -> tuple[tuple[Shortcut, Callable[[Any], None]], ...]:
        """Return keys of the panel's own, and the methods that they call."""
        return ()

    @abstractmethod
    def connections(self) -> Connections:
        """Return the signals of session and panels, and what follows them."""

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
        """Do what needs all connections."""

    def close(self) -> None:
        """Stop all work; touch no widget."""


PresenterT = TypeVar("PresenterT", bound=Presenter[Any])


class PanelPart(DeskPart, Generic[PresenterT]):
    """A panel, and its presenter while a cohort is shown.

    Parameters
    ----------
    kind
        The class of the presenter; it names the panel.
    """

    def __init__(self, kind: type[PresenterT]) -> None:
        super().__init__()
        self.title, self.key, self.follows_table = kind.title, kind.key, kind.follows_table
        self._kind = kind
        self._panel = kind.panel_type()
        self.presenter: PresenterT | None = None
        self._ending: PresenterT | None = None

    @property
    def widget(self) -> QWidget:
        """The panel."""
        return self._panel

    def make(self, around: Surroundings) -> PresenterT:
        """Return the presenter of a cohort."""
        return self._kind(around, self._panel)

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

    def connections(self, around: Surroundings) -> Connections:  # noqa: ARG002 - the presenter knows
        """Return the connections of the presenter."""
        return [] if self.presenter is None else self.presenter.connections()

    def refresh(self) -> None:
        """Show the present state."""
        self._call(self._kind.refresh)

    def attach(self, around: Surroundings) -> None:
        """Present a cohort."""
        self.presenter = self.make(around)
        super().attach(around)
        self.presenter.begin()

    def detach(self) -> None:
        """Let go of the cohort."""
        super().detach()
        self._call(self._kind.close)
        # Kept until it has reported what it writes.
        is_writing = self.presenter is not None and self.presenter.is_writing
        self._ending = self.presenter if is_writing else None
        self.presenter = None

    def _call(self, action: Callable[[Any], None]) -> None:
        if self.presenter is not None:
            action(self.presenter)


def made(kind: type[Presenter[Any]] | type[DeskPart]) -> DeskPart:
    """Return a new part of the desk, given its class or that of its presenter."""
    return kind() if issubclass(kind, DeskPart) else PanelPart(kind)
