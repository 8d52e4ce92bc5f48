"""Parts of the desk: a widget that stays, and a presenter for as long as a cohort is shown."""

import gc
import weakref

import pytest
from psygnal import Signal
from qtpy.QtWidgets import QWidget

from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.panels.part import PanelPart, Presenter


class Panel(QWidget):
    """A panel with a button."""

    pressed = Signal(str)


class Cohort:
    """What a presenter is given of a cohort that is shown."""

    session = link = None


class Notes(Presenter[Panel]):
    """Notes what it is asked for."""

    title = "Notes"
    key = "Alt-n"
    panel_type = Panel

    def __init__(self, around, panel):
        super().__init__(around, panel)
        self.told, self.works, self.writes = [], False, False

    @classmethod
    def shortcuts(cls):
        """Return a key."""
        return ((Shortcut("Shift-n", "note", "note"), cls.note),)

    @property
    def is_busy(self):
        """Whether it works."""
        return self.works

    @property
    def is_writing(self):
        """Whether it writes."""
        return self.writes

    def connections(self):
        """Listen to the panel."""
        return [(self.panel.pressed, self.told.append)]

    def refresh(self):
        """Note it."""
        self.told.append("refreshed")

    def begin(self):
        """Note it."""
        self.panel.pressed.emit("connected")
        self.told.append("begun")

    def may_leave(self):
        """Return whether nothing was pressed."""
        return "x" not in self.told

    def note(self):
        """Note it."""
        self.told.append("key")

    def close(self):
        """Note it."""
        self.panel.pressed.emit("after the end")
        self.told.append("closed")


@pytest.fixture
def part(qtbot):
    part = PanelPart(Notes)
    qtbot.addWidget(part.widget)
    return part


def test_without_a_cohort_there_is_a_panel_with_keys_and_no_presenter(part):
    assert part.presenter is None
    assert (part.title, part.key, part.follows_table) == ("Notes", "Alt-n", False)
    (((key, action)),) = part.shortcuts()
    assert key.key == "Shift-n"
    action()
    assert part.may_leave()
    assert not part.is_busy


def test_a_presenter_begins_connected_and_closes_disconnected(part):
    part.attach(Cohort())
    presenter = part.presenter
    assert presenter.panel is part.widget
    assert presenter.told == ["refreshed", "connected", "begun"]
    part.widget.pressed.emit("x")
    assert not part.may_leave()
    (((_, action)),) = part.shortcuts()
    action()
    assert presenter.told[3:] == ["x", "key"]
    part.detach()
    assert presenter.told[5:] == ["closed"]
    assert part.presenter is None
    assert part.may_leave()


def test_every_cohort_has_a_presenter_of_its_own_on_the_same_panel(part):
    widget = part.widget
    part.attach(Cohort())
    first = part.presenter
    first.works = True
    assert part.is_busy
    part.detach()
    part.attach(Cohort())
    assert part.presenter is not first
    assert not part.is_busy
    assert part.presenter.panel is widget is part.widget
    assert part.presenter.told == ["refreshed", "connected", "begun"]


@pytest.mark.long
def test_a_presenter_that_still_writes_lives_until_the_next_one_has_gone(part):
    part.attach(Cohort())
    known = weakref.ref(part.presenter)
    part.presenter.writes = True
    part.detach()
    gc.collect()
    assert known() is not None  # its report is still to come
    part.attach(Cohort())
    part.detach()
    gc.collect()
    assert known() is None
