"""Links from figures, orders and columns, used by real clicks and keys.

One window serves all of these tests; each finds it as it was opened.
"""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt
from qtpy.QtGui import QGuiApplication, QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractButton, QToolButton

from napari_panoptic.display.behind import behind_cell
from napari_panoptic.display.listed import DIMMED_ALPHA, Others
from napari_panoptic.display.object_rows import COLUMNS, ObjectFilter, WorstFirst
from napari_panoptic.display.styles import ALPHA
from napari_panoptic.values.vocabulary import CAUSES, STATUS_CODE, Side, Status
from napari_panoptic.viewer.kit.widgets import is_in_sight
from tests.viewer.finding import (
    bring_to_front,
    canvas_of,
    click,
    handle_events,
    on_canvas,
    row_of_status,
    shown_text,
    tick_column,
)

FIRST_TEAM = "merger"
"""It fails more."""

FAILURES = {STATUS_CODE[s] for s in (Status.FN, Status.FP, Status.MISCLASSIFIED)}


@pytest.fixture(scope="module")
def shown_parts():
    """Show no panel beside the table and the metrics."""
    return ()


@pytest.fixture
def at_first(fresh_desk):
    fresh_desk.panels.objects.put_worst_first(WorstFirst.IOU)


@pytest.fixture
def table(desk):
    return desk.panels.objects


@pytest.fixture
def metrics(desk, wait_until):
    bring_to_front(desk.panels.metrics)
    wait_until(lambda: is_in_sight(desk.panels.metrics))
    return desk.panels.metrics


def object_of(table, row):
    return table.model.rows.object_of(int(row))


def selected(desk):
    chosen = desk.session.selection
    return None if chosen is None else (chosen.side, chosen.row)


class TestLinks:
    def test_a_cell_of_the_confusion_matrix_lists_its_objects_and_again_all(self, metrics, table):
        cells = metrics.confusion
        row, column, count = next(
            (r, c, int(text))
            for r, texts in enumerate(metrics.confusion.texts())
            for c, text in enumerate(texts)
            if c and text not in ("", "0")
        )
        place = cells.visualRect(cells.model().index(row, column)).center()
        everything = table.model.rowCount()
        QTest.mouseClick(cells.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert table.model.rowCount() == count
        assert shown_text(table.behind).startswith("✕ ")
        assert cells.is_chosen(cells.model().index(row, column))
        QTest.mouseClick(cells.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert table.model.rowCount() == everything
        assert shown_text(table.behind) == ""

    def test_a_count_of_a_class_is_reached_by_keys(self, metrics, table, desk):
        cells = metrics.by_class
        cells.setFocus()
        cells.setCurrentIndex(cells.model().index(0, 2))
        QTest.keyClick(cells, Qt.Key.Key_Right)
        QTest.keyClick(cells, Qt.Key.Key_Return)
        assert table.model.rowCount() == int(cells.texts()[0][3])  # FN
        QTest.keyClick(cells, Qt.Key.Key_N)
        assert desk.session.selection is not None

    def test_a_figure_lists_what_it_is_computed_from(self, metrics, table):
        figure = metrics.figures["fn"]
        QTest.mouseClick(figure, Qt.MouseButton.LeftButton)
        assert table.model.rowCount() == int(metrics.figure("fn"))
        QTest.keyClick(figure, Qt.Key.Key_Space)
        assert table.model.filter.is_open

    def test_the_list_comes_to_the_front(self, metrics, table, desk, wait_until):
        desk.dock("Objects").hide()
        wait_until(lambda: not is_in_sight(table))
        QTest.mouseClick(metrics.figures["pq"], Qt.MouseButton.LeftButton)
        wait_until(lambda: is_in_sight(table))

    def test_what_can_be_clicked_looks_like_it(self, metrics):
        cells = metrics.by_class
        index = cells.model().index(0, 1)
        # QTest itself moves the pointer of the screen in older versions of Qt.
        place = QPointF(cells.visualRect(index).center())
        none, left_alone = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
        move = QMouseEvent(QEvent.Type.MouseMove, place, place, none, none, left_alone)
        QCoreApplication.sendEvent(cells.viewport(), move)
        assert cells.is_link_under_mouse(index)
        assert cells.viewport().cursor().shape() == Qt.CursorShape.PointingHandCursor
        assert "show only these objects" in cells.model().index(0, 1).data(
            Qt.ItemDataRole.ToolTipRole
        )

    def test_a_filter_menu_narrows_what_stands_behind_a_figure(self, desk, table):
        desk.panels.metrics.behind_wanted.emit(behind_cell("Epithelial", "none"))
        count = table.model.rowCount()
        cause = str(CAUSES[int(table.model.rows.values["cause"][table.model.order[0]])])
        table.menu("cause").uncheck(cause)
        assert table.model.rowCount() < count
        assert shown_text(table.behind) == "✕ Epithelial → FN"


class TestNarrowWindow:
    @pytest.fixture
    def narrow(self, viewer, table, wait_until):
        window = viewer.window._qt_window
        before = window.size()
        window.resize(1280, 800)
        bring_to_front(table)
        wait_until(lambda: is_in_sight(table))
        yield window
        window.resize(before)

    @pytest.mark.parametrize("title", ["", "✕ a class with a long name → " * 9])
    def test_no_button_is_cut_off_whatever_it_says(self, narrow, table, title):
        for name in ("side", "status", "class", "cause", "verdict"):
            menu = table.menu(name)
            menu.uncheck(menu._words[-1])
        table.set_filter(replace(table.model.filter, title=title))
        handle_events()
        buttons = [b for b in table.findChildren(QAbstractButton) if b.isVisible() and b.text()]
        assert {b.text() for b in buttons} > {"More"}
        assert table.filters.text().startswith("Filter: ")
        for button in buttons:
            assert button.width() >= button.sizeHint().width(), button.text()
            right = button.mapTo(table, button.rect().bottomRight())
            assert table.rect().contains(right), button.text()
        assert narrow.minimumSizeHint().width() <= 1280
        assert narrow.width() == 1280
        assert title[:60] in table.behind.toolTip()

    @pytest.mark.usefixtures("narrow")
    def test_buttons_of_a_line_stand_on_one_line(self, table):
        handle_events()
        bar = table.filters.parent()
        buttons = [b for b in bar.findChildren(QAbstractButton) if b.isVisible()]
        tops, heights = {b.y() for b in buttons}, {b.height() for b in buttons}
        assert len(buttons) >= 2
        assert len(tops) <= 2
        assert len(heights) == 1


class TestOrder:
    def test_n_follows_the_chosen_order(self, desk, viewer):
        canvas = canvas_of(viewer)
        desk.panels.queue.order.choose(WorstFirst.AREA)
        areas = []
        for _ in range(6):
            QTest.keyClick(canvas, Qt.Key.Key_N)
            chosen = desk.session.selection
            side = desk.session.evaluation.outcomes.side(chosen.side)
            assert side.status[chosen.row] in FAILURES
            areas.append(int(side.area_px[chosen.row]))
        assert areas == sorted(areas, reverse=True)

    def test_choosing_an_order_takes_the_sorting_by_a_column_back(self, desk, table):
        table.view.sortByColumn(1, Qt.SortOrder.DescendingOrder)
        desk.panels.queue.order.choose(WorstFirst.CAUSE)
        assert table.view.horizontalHeader().sortIndicatorSection() == -1
        order = table.model.rows.worst_first(WorstFirst.CAUSE)
        np.testing.assert_array_equal(table.model.order, order)
        assert "worst first" in table.count_text()


class TestOthers:
    def alpha(self, viewer, row):
        return float(viewer.layers["reference"].get_color(row + 1)[3])

    def test_others_are_dimmed_hidden_and_shown_again(self, desk, viewer, table):
        tp = row_of_status(desk, Side.REFERENCE, Status.TP)
        fn = row_of_status(desk, Side.REFERENCE, Status.FN)
        table.set_filter(ObjectFilter(statuses=frozenset({"FN"})))
        for others, share in (
            (Others.DIMMED, DIMMED_ALPHA),
            (Others.HIDDEN, 0.0),
            (Others.SHOWN, 1.0),
        ):
            table.others.choose(others)
            assert self.alpha(viewer, tp) == pytest.approx(share * ALPHA[Status.TP])
            assert self.alpha(viewer, fn) == pytest.approx(ALPHA[Status.FN])

    def test_without_a_filter_nothing_is_dimmed(self, desk, viewer, table):
        tp = row_of_status(desk, Side.REFERENCE, Status.TP)
        table.set_filter(ObjectFilter(statuses=frozenset({"FN"})))
        table.others.choose(Others.HIDDEN)
        table.set_filter(ObjectFilter())
        assert self.alpha(viewer, tp) == pytest.approx(ALPHA[Status.TP])

    def test_what_is_not_drawn_cannot_be_clicked(self, desk, viewer, table):
        canvas = canvas_of(viewer)
        tp = row_of_status(desk, Side.REFERENCE, Status.TP)
        y, x = desk.session.evaluation.outcomes.reference.centroid_yx_px[tp]
        table.set_filter(ObjectFilter(statuses=frozenset({"FN"})))
        table.others.choose(Others.HIDDEN)
        assert "other objects: hide" in desk.panels.title.title()
        click(canvas, on_canvas(viewer, y, x))
        assert desk.session.selection is None
        table.others.choose(Others.DIMMED)
        click(canvas, on_canvas(viewer, y, x))
        assert desk.session.selection is not None


class TestTable:
    @pytest.fixture(autouse=True)
    def in_front(self, table, wait_until):
        bring_to_front(table)
        wait_until(lambda: is_in_sight(table))

    def test_selected_rows_are_copied(self, table, desk):
        view = table.view
        for row, modifier in (
            (1, Qt.KeyboardModifier.NoModifier),
            (4, Qt.KeyboardModifier.ShiftModifier),
        ):
            place = view.visualRect(table.model.index(row, 1)).center()
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, modifier, place)
        assert table.selected_rows() == [1, 2, 3, 4]
        assert selected(desk) == table.model.object_at(4)

        QTest.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)

        lines = QGuiApplication.clipboard().text().splitlines()
        shown = [c.name for k, c in enumerate(COLUMNS) if not view.isColumnHidden(k)]
        assert lines[0].split("\t") == shown
        ids = table.model.rows.values["id"][table.model.order[1:5]]
        place = shown.index("id")
        assert [line.split("\t")[place] for line in lines[1:]] == [str(id_) for id_ in ids]

    def test_columns_are_chosen_in_a_menu(self, table):
        button = next(b for b in table.findChildren(QToolButton) if b.text() == "Columns")
        menu = button.menu()
        menu.popup(button.mapToGlobal(QPoint(20, 5)))
        assert menu.isVisible()
        action = next(action for action in menu.actions() if action.data() == "cause")
        place = menu.actionGeometry(action).center()
        QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=place)
        column = [c.name for c in COLUMNS].index("cause")
        assert table.view.isColumnHidden(column)
        action.trigger()
        assert not table.view.isColumnHidden(column)
        assert not next(a for a in menu.actions() if a.data() == "id").isEnabled()
        menu.close()

    @pytest.mark.long
    def test_other_outcomes_leave_columns_as_they_were_chosen(self, table, desk):
        desk.state.hidden_columns = frozenset()
        tick_column(table, "hausdorff_um")
        column = [c.name for c in COLUMNS].index("hausdorff_um")
        desk.session.set_team("careful")
        assert table.view.isColumnHidden(column)
        tick_column(table, "hausdorff_um")
        assert not table.view.isColumnHidden(column)
