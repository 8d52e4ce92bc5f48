"""The queue of failures: where it leads, in which order, and where the user is in it."""

from __future__ import annotations

import time
from functools import partial

from psygnal import Signal
from qtpy.QtWidgets import QMenu, QSizePolicy, QToolButton

from napari_panoptic.display.failure_queue import QueuePlace
from napari_panoptic.display.object_rows import WorstFirst
from napari_panoptic.display.styles import count_text
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.inputs import EDGE_PX, Steps
from napari_panoptic.viewer.kit.menus import ChoiceMenu
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import ToolButton, opens_menu
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings
from napari_panoptic.viewer.state.preferences import Queue

REST_MS = 100
"""How long selection and results rest before the place in the queue is counted."""
REST_PER_WORK = 10
"""The same in times of what counting it took."""
_PLACE = (
    "Place of the selected failure among those that N leads to, as far as the regions are "
    "evaluated and the filters of the object table let them through."
)
_IMPACT = "Mended alone, it would add {:.4f} to {}."
_OF_COHORT, _OF_REGION = "the team's mean PQ over patients", "the PQ of this region"
_SMALL = "It is small: such failures come last. napari's Preferences have the size."


class QueueBar(Steps, QToolButton):
    """Where N and Shift+N lead, in which order, and how far the user is: arrows and a menu."""

    stepped = Signal(int)  # 1 or -1
    follow_chosen = Signal(bool)  # whether N and Shift+N bring an object into view
    step_tips = ("The previous failure (Shift+N).", "The next failure (N).")

    def __init__(self) -> None:
        super().__init__()
        self.scope = ChoiceMenu("", "Where N and Shift+N lead.", list(Queue))
        self.order = ChoiceMenu(
            "", "Which failures come first, also in the object table.", list(WorstFirst)
        )
        self.follow = self.order.add_switch(
            "N zooms to the object",
            "Whether N and Shift+N bring the object into view, large enough to judge.",
        )
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        for choices in (self.scope, self.order):
            choices.setParent(self)
            choices.hide()
            self._menu.addSeparator()
            self._menu.addActions(choices.entries)
        self.setMenu(self._menu)
        opens_menu(self)
        self.setStyleSheet(
            f"QToolButton {{ padding: 2px {EDGE_PX + 2}px }} "
            "QToolButton::menu-indicator { image: none }"
        )
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.follow.triggered.connect(lambda on: self.follow_chosen.emit(on))
        self.limit = ToolButton("", "N leads only through these objects. Click to end that.")
        self.limit.setParent(self)
        self._place = ""
        self._is_limited = False
        self.limit.hide()
        self.show_place(None)

    def show_limit(self, text: str) -> None:
        """Show which objects N is limited to, with a way to end that; empty for no limit."""
        self._is_limited = bool(text)
        self.limit.setVisible(bool(text))
        self.limit.setText(f"{shown(text)} ✕")

    def show_place(self, place: QueuePlace | None) -> None:
        """Show where the user is; None if that is unknown."""
        self._place, tooltip = "", _PLACE
        self.can_step = place is not None
        if place is not None:
            total = count_text(place.total)
            number = None if place.number is None else count_text(place.number)
            self._place = total if number is None else f"{number} of {total}"
            if place.is_small:
                self._place, tooltip = f"{self._place} · small", f"{_PLACE} {_SMALL}"
            if place.impact is not None:
                whose = _OF_REGION if place.is_of_region else _OF_COHORT
                gain = _IMPACT.format(place.impact, whose)
                tooltip = f"{gain} {tooltip}"
        self.setToolTip(f"{tooltip} Click to choose which, and in which order.")
        self.show_choices()

    def show_choices(self) -> None:
        """Show place, scope and order on the button."""
        by = self.order.choice
        order = by.short if by is WorstFirst.IOU else by.short.lower()
        order = "at random" if by is WorstFirst.RANDOM else f"by {order}"
        words = order if self._is_limited else f"{self.scope.choice.short.lower()} {order}"
        self.setText(" · ".join(word for word in (self._place, words) if word))

    def place_text(self) -> str:
        """Return the text about where the user is."""
        return self._place


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
            (events.order, self._show_choices),
            (events.queue, self._show_choices),
            (events.follow, self._show_follow),
            (panel.order.chosen, partial(setattr, state, "order")),
            (panel.scope.chosen, partial(setattr, state, "queue")),
            (panel.follow_chosen, partial(setattr, state, "follow")),
            (panel.stepped, self._step),
            (failures.only_changed, self._show_limit),
            (events.is_blind, self._show_limit),
            (panel.limit.pushed, failures.show_all),
        ]

    def refresh(self) -> None:
        """Show the choices and the place."""
        self._show_limit()
        self._show_follow(self.link.state.follow)
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

    def _show_limit(self, _changed: object = None) -> None:
        """Show the limit, unless its title would reveal failures to a blind reviewer."""
        is_blind = self.link.state.is_blind
        self.panel.show_limit("" if is_blind else self.link.failures.walk.order.limit_text)
        self._show_choices()

    def _show_choices(self, _changed: object = None) -> None:
        self.panel.order.show_choice(self.link.state.order)
        self.panel.scope.show_choice(self.link.state.queue)
        self.panel.show_choices()

    def _show_follow(self, follow: bool) -> None:
        self.panel.follow.setChecked(follow)

    def _show_place(self) -> None:
        """Show the place, unless it would reveal failures to a blind reviewer."""
        begin = time.perf_counter()
        is_known = self.session.snapshot is not None and not self.link.state.is_blind
        self.panel.show_place(self.link.failures.walk.place() if is_known else None)
        self.link.failures.keep_stop()
        # While results come in, most of the time belongs to the user.
        took_ms = 1000 * (time.perf_counter() - begin)
        self._rest.setInterval(max(REST_MS, round(REST_PER_WORK * took_ms)))

    def _step(self, step: int) -> None:
        self.link.failures.step(step)
