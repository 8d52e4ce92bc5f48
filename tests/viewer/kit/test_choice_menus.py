"""Menus in which several things are chosen."""

import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QMenu, QToolButton

from napari_panoptic.viewer.panels.filters import FilterMenu
from napari_panoptic.viewer.panels.teams import TeamsPanel

pytestmark = pytest.mark.long
LEFT = Qt.MouseButton.LeftButton


class TestMenus:
    @pytest.fixture
    def opened(self, qtbot):
        def open_menu(button):
            menu = button.menu()
            menu.popup(QPoint(100, 100))
            qtbot.waitUntil(menu.isVisible)
            return menu

        return open_menu

    def _tick(self, menu, number):
        action = menu.actions()[number]
        QTest.mouseClick(
            menu, LEFT, Qt.KeyboardModifier.NoModifier, menu.actionGeometry(action).center()
        )
        return action

    def test_several_teams_are_ticked_without_opening_the_menu_again(self, qtbot, opened):
        panel = TeamsPanel()
        qtbot.addWidget(panel)
        panel.offer_teams(["Ada", "Bob", "Cyd"], ["Ada", "Bob", "Cyd"])
        button = next(b for b in panel.findChildren(QToolButton) if b.menu() is not None)
        menu = opened(button)
        self._tick(menu, 0)
        assert menu.isVisible()
        self._tick(menu, 1)
        assert menu.isVisible()
        assert panel.chosen_teams() == ("Cyd",)
        QTest.keyClick(menu, Qt.Key.Key_Escape)
        assert not menu.isVisible()

    def test_filters_stay_open_too(self, qtbot, opened):
        button = FilterMenu("status", ["TP", "FP", "FN"])
        qtbot.addWidget(button)
        menu: QMenu = opened(button)
        self._tick(menu, 0)
        QTest.keyClick(menu, Qt.Key.Key_Down)
        QTest.keyClick(menu, Qt.Key.Key_Space)
        assert menu.isVisible()
        assert len(button.checked()) == 1
        menu.close()
