"""The queue of failures: where it leads, in which order, and where the user is in it."""

from __future__ import annotations

from functools import partial

from psygnal import Signal
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_panoptic.display.failure_queue import QueuePlace
from napari_panoptic.display.object_rows import WorstFirst
from napari_panoptic.display.styles import count_text
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.inputs import ChoiceMenu
from napari_panoptic.viewer.kit.layouts import row_of
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.kit.widgets import ToolButton
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings
from napari_panoptic.viewer.state.preferences import Queue

REST_MS = 100
"""How long selection and results rest before the place in the queue is counted."""
_PLACE = (
    "Place of the selected failure among those that N leads to, as far as the regions are "
    "evaluated and the filters of the object table let them through."
)
_SMALL = "It is small: such failures come last. napari's Preferences have the size."


class QueueBar(QWidget):
    """Where N and Shift+N lead, in which order, and how far the user is; in one short line."""

    follow_chosen = Signal(bool)  # whether N and Shift+N bring an object into view

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scope = ChoiceMenu("", "Where N and Shift+N lead.", list(Queue))
        self.order = ChoiceMenu(
            "", "Which failures come first, also in the object table.", list(WorstFirst)
        )
        self.follow = self.order.add_switch(
            "N zooms to the object",
            "Whether N and Shift+N bring the object into view, large enough to judge.",
        )
        self.back = ToolButton("‹", "The previous failure (Shift+N).")
        self.on = ToolButton("›", "The next failure (N).")
        self._place = PlainLabel()
        self._place.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.setLayout(row_of(self.scope, self.order, self.back, self._place, self.on))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.follow.triggered.connect(lambda on: self.follow_chosen.emit(on))
        self.show_place(None)

    def show_place(self, place: QueuePlace | None) -> None:
        """Show where the user is; None if that is unknown."""
        words, tooltip = "", _PLACE
        if place is not None:
            total = count_text(place.total)
            words = total if place.number is None else f"{count_text(place.number)} of {total}"
            if place.is_small:
                words, tooltip = f"{words} · small", f"{_PLACE} {_SMALL}"
        self._place.setText(words)
        self._place.setToolTip(tooltip)
        for button in (self.back, self.on):
            button.setEnabled(place is not None)

    def place_text(self) -> str:
        """Return the text about where the user is."""
        return self._place.text()


class QueuePresenter(Presenter[QueueBar]):
    """Shows the queue of the cohort's failures, and goes through it."""

    title = "Queue"
    shows_outcomes = False  # it leaves them out itself

    def __init__(self, around: Surroundings, panel: QueueBar) -> None:
        super().__init__(around, panel)
        self._rest = single_shot(REST_MS, self._show_place, panel)

    def connections(self) -> Connections:
        """Follow whatever changes the queue, and the user's place in it."""
        session, panel, link = self.session, self.panel, self.link
        state, failures = link.state, link.failures
        events = state.events
        changes = (
            *(session.region_changed, session.teams_came, session.team_changed),
            *(session.selection_changed, session.summary_changed, session.settings_changed),
            *(failures.only_changed, link.panels.objects.listed_changed, link.edits_rested),
            *(events.order, events.queue, events.object_filter, events.is_blind),
        )
        return [
            *((change, self._on_change) for change in changes),
            (events.order, panel.order.show_choice),
            (events.queue, panel.scope.show_choice),
            (events.follow, self._show_follow),
            (panel.order.chosen, partial(setattr, state, "order")),
            (panel.scope.chosen, partial(setattr, state, "queue")),
            (panel.follow_chosen, partial(setattr, state, "follow")),
            (panel.on.pushed, self._go_on),
            (panel.back.pushed, self._go_back),
        ]

    def refresh(self) -> None:
        """Show the choices and the place."""
        state = self.link.state
        self.panel.order.show_choice(state.order)
        self.panel.scope.show_choice(state.queue)
        self._show_follow(state.follow)
        self._show_place()

    @property
    def is_busy(self) -> bool:
        """Whether the place is still to be counted."""
        return self._rest.isActive()

    def close(self) -> None:
        """Remember where the queue is."""
        stop_timers(self._rest)
        self.link.failures.keep_stop()

    def _on_change(self, _changed: object = None) -> None:
        if not self._rest.isActive():
            self._rest.start()

    def _show_follow(self, follow: bool) -> None:
        self.panel.follow.setChecked(follow)

    def _show_place(self) -> None:
        """Show the place, unless it would tell a blind reviewer what fails."""
        is_known = self.session.snapshot is not None and not self.link.state.is_blind
        self.panel.show_place(self.link.failures.place() if is_known else None)
        self.link.failures.keep_stop()

    def _go_on(self) -> None:
        self.link.failures.step()

    def _go_back(self) -> None:
        self.link.failures.step(-1)
