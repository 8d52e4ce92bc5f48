"""Questions before something is lost: Enter and Esc lose nothing."""

import pytest
from qtpy.QtCore import Qt, QTimer
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QWidget

from napari_panoptic.viewer.kit.questions import is_confirmed, may_replace

KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Escape)


@pytest.fixture
def parent(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    return parent


def answer_with(key):
    QTimer.singleShot(0, lambda: QTest.keyClick(QApplication.activeModalWidget(), key))


@pytest.mark.parametrize("key", KEYS)
def test_enter_and_escape_discard_nothing(parent, key):
    answer_with(key)
    assert not is_confirmed(parent, "Discard edits", "Discard them?")


@pytest.mark.parametrize("key", KEYS)
def test_enter_and_escape_replace_no_file(parent, tmp_path, key):
    (tmp_path / "a.csv").write_text("")
    answer_with(key)
    assert not may_replace(parent, [tmp_path / "a.csv"])
