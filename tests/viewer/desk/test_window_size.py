"""The window stays on its screen, whatever its panels need."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QLabel, QMainWindow

from napari_panoptic.viewer.desk.window import WindowSize, fit_into_screen
from napari_panoptic.viewer.kit.layouts import ShrinkingPanel

TITLE_PX, EDGE_PX = 28, 2


class Framed(QMainWindow):
    """A window with a title bar and edges, as a window manager adds them."""

    def frameGeometry(self):  # noqa: N802
        return self.geometry().adjusted(-EDGE_PX, -TITLE_PX, EDGE_PX, EDGE_PX)


@pytest.fixture
def main(qtbot):
    window = Framed()
    qtbot.addWidget(window)
    window.resize(400, 300)
    window.show()
    return window


@pytest.mark.parametrize("place", [(0, TITLE_PX), (300, 200)])
def test_a_window_lies_on_its_screen_with_its_title_bar(main, place):
    free = main.screen().availableGeometry()
    main.move(*place)
    main.resize(free.size())
    fit_into_screen(main)
    assert main.width() == free.width() - 2 * EDGE_PX
    assert main.height() == free.height() - TITLE_PX - EDGE_PX
    assert main.frameGeometry().bottom() <= free.bottom() + TITLE_PX
    main.resize(400, 300)
    fit_into_screen(main)
    assert (main.width(), main.height()) == (400, 300)


def test_docks_scroll_until_the_window_has_room_for_them(main, qtbot):
    keeper = WindowSize(main)
    docks = []
    for number in range(3):
        panel = QLabel(f"panel {number}")
        panel.setMinimumSize(200, 180)
        dock = QDockWidget(main)
        dock.setWidget(ShrinkingPanel(panel))
        main.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
        docks.append((dock, panel))
    qtbot.waitUntil(lambda: all(d.widget().verticalScrollBar().isVisible() for d, _ in docks))
    assert (main.width(), main.height()) == (400, 300)
    for dock, panel in docks:
        assert dock.geometry().bottom() <= main.height()
        assert panel.height() == 180
        assert not dock.widget().horizontalScrollBar().isVisible()
    main.resize(400, 720)
    qtbot.waitUntil(lambda: not any(d.widget().verticalScrollBar().isVisible() for d, _ in docks))
    main.resize(400, 450)
    assert main.height() > 540, "a window can be made as low as its panels, and no lower"
    keeper.release()
    main.removeDockWidget(docks[0][0])
    main.resize(400, 450)
    qtbot.waitUntil(lambda: main.minimumHeight() < 450)
