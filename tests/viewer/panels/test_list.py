"""Gallery, links from figures, orders and columns, used by real clicks and keys.

One window serves all of these tests; each finds it as it was opened.
"""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from napari_panoptic.viewer.panels.gallery.panel import ALL_HIDDEN, NO_FAILURES, GalleryPart
from qtpy.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt
from qtpy.QtGui import QGuiApplication, QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractButton

from napari_panoptic.nuclei.display.behind import behind_cell
from napari_panoptic.nuclei.display.listed import DIMMED_ALPHA, Others
from napari_panoptic.nuclei.display.object_rows import COLUMNS, ObjectFilter, WorstFirst
from napari_panoptic.nuclei.display.styles import ALPHA, Look
from napari_panoptic.nuclei.values.vocabulary import CAUSES, STATUS_CODE, Side, Status
from napari_panoptic.viewer.kit.widgets import bring_to_front, is_in_sight
from tests.viewer.finding import FIRST, SECOND, click, on_canvas, row_of_status

FAILURES = {STATUS_CODE[s] for s in (Status.FN, Status.FP, Status.MISCLASSIFIED)}


@pytest.fixture
def desk(open_desk, wait_until):
    """Give the desk as it was just after opening, with another team that fails more."""
    desk, session = open_desk, open_desk.session
    desk.state.look = Look()
    desk.panels.objects.others.choose(Others.SHOWN)
    desk.panels.objects.put_worst_first(WorstFirst.IOU)
    desk.panels.objects.set_filter(ObjectFilter())
    session.set_team("merger")
    session.select(None)
    if session.snapshot.region.name != FIRST:
        desk.link._request(region=FIRST)
    wait_until(lambda: desk.is_settled)
    desk.link.scene.fit()
    return desk


@pytest.fixture
def viewer(desk):
    return desk._viewer


@pytest.fixture
def table(desk):
    return desk.panels.objects


@pytest.fixture
def metrics(desk, wait_until):
    bring_to_front(desk.panels.metrics)
    wait_until(lambda: is_in_sight(desk.panels.metrics))
    return desk.panels.metrics


@pytest.fixture
def gallery(desk, viewer, wait_until):
    """Bring the gallery to the front by its key, and wait for its crops."""
    canvas = viewer.window._qt_viewer.canvas.native
    QTest.keyClick(canvas, Qt.Key.Key_G)
    part = next(part for part in desk.parts if isinstance(part, GalleryPart))
    wait_until(lambda: is_in_sight(part.panel) and len(part.panel.view.rows) and desk.is_settled)
    return part


def object_of(table, row):
    return table.model.rows.object_of(int(row))


def selected(desk):
    chosen = desk.session.selection
    return None if chosen is None else (chosen.side, chosen.row)


class TestGallery:
    def test_it_shows_every_failure_grouped_by_cause(self, gallery, table):
        failures = table.model.failures()
        shown = gallery.panel.view.rows
        assert sorted(shown.tolist()) == sorted(failures.tolist())
        causes = table.model.rows.values["cause"][shown]
        runs = np.flatnonzero(np.diff(causes)) + 1
        assert len(runs) + 1 == len(set(causes.tolist()))
        assert len({CAUSES[int(code)] for code in causes}) > 1

    def test_within_a_cause_the_order_is_the_tables(self, gallery, table):
        for worst in (WorstFirst.AREA, WorstFirst.IOU):
            table.worst.choose(worst)
            failures, shown = table.model.failures(), gallery.panel.view.rows
            causes = table.model.rows.values["cause"]
            for code in set(causes[shown].tolist()):
                of_cause = failures[causes[failures] == code]
                np.testing.assert_array_equal(shown[causes[shown] == code], of_cause)

    def test_only_crops_in_sight_are_drawn(self, gallery):
        view = gallery.panel.view
        assert 0 < view.drawn < len(view.rows)

    def test_a_click_goes_there(self, gallery, desk, viewer, table):
        view = gallery.panel.view
        row = int(view.rows[1])
        QTest.mouseClick(
            view.viewport(), Qt.MouseButton.LeftButton, pos=view.cell_rect(row).center()
        )
        assert selected(desk) == object_of(table, row)
        assert view.selected() == row
        side, at = object_of(table, row)
        y0, x0, y1, x1 = desk.session.evaluation.outcomes.side(side).bbox[at]
        middle = np.array([(y0 + y1 - 1) / 2, (x0 + x1 - 1) / 2]) * 0.2525
        np.testing.assert_allclose(viewer.scene.camera.center[-2:], middle)

    def test_arrows_move_and_letters_go_to_the_desk(self, gallery, desk, table):
        view = gallery.panel.view
        assert view.window().focusWidget() is view
        QTest.keyClick(view, Qt.Key.Key_Home)
        assert selected(desk) == object_of(table, view.rows[0])
        QTest.keyClick(view, Qt.Key.Key_Right)
        assert selected(desk) == object_of(table, view.rows[1])
        above = view.cell_rect(int(view.rows[1]))
        QTest.keyClick(view, Qt.Key.Key_Down)
        below = view.cell_rect(view.selected())
        assert below.y() > above.y()
        QTest.keyClick(view, Qt.Key.Key_Up)
        assert view.selected() == view.rows[1]
        QTest.keyClick(view, Qt.Key.Key_End)
        assert view.selected() == view.rows[-1]
        before = desk.session.selection
        QTest.keyClick(view, Qt.Key.Key_N)
        assert desk.session.selection != before

    def test_what_is_selected_elsewhere_is_marked_and_scrolled_to(self, gallery, desk, table):
        view = gallery.panel.view
        row = int(view.rows[-1])
        desk.session.select_row(*object_of(table, row))
        assert view.selected() == row
        assert view.viewport().rect().contains(view.cell_rect(row))

    def test_it_follows_the_filter(self, gallery, table):
        table.set_filter(ObjectFilter(statuses=frozenset({"FP"})))
        status = table.model.rows.values["status"][gallery.panel.view.rows]
        assert set(status.tolist()) == {STATUS_CODE[Status.FP]}
        table.set_filter(ObjectFilter(statuses=frozenset({"TP"})))
        assert gallery.panel.hint_text() == ALL_HIDDEN
        QTest.mouseClick(gallery.panel.everything, Qt.MouseButton.LeftButton)
        assert gallery.panel.hint_text() == ""
        assert table.model.filter.is_open

    def test_without_failures_it_says_what_to_do(self, gallery, table):
        with patch.object(
            table.model, "failures", return_value=np.zeros(0, np.intp), autospec=True
        ):
            gallery.refresh()
        assert gallery.panel.hint_text() == NO_FAILURES
        gallery.refresh()
        assert gallery.panel.hint_text() == ""

    def test_every_crop_is_as_wide_and_buttons_widen_them(self, gallery):
        before = gallery.field_px
        QTest.mouseClick(gallery.panel.wider, Qt.MouseButton.LeftButton)
        assert gallery.field_px > before
        assert "µm" in gallery.panel.line.text()
        QTest.mouseClick(gallery.panel.closer, Qt.MouseButton.LeftButton)
        assert gallery.field_px == before

    def test_hover_explains_crops_and_causes(self, gallery, table):
        view = gallery.panel.view
        view.verticalScrollBar().setValue(0)
        row = int(view.rows[0])
        text = view.tooltip_at(view.cell_rect(row).center())
        assert str(int(table.model.rows.values["id"][row])) in text
        heading = view.tooltip_at(QPoint(view.cell_rect(row).x(), 5))
        assert heading.endswith(".")

    def test_another_region_shows_its_own(self, gallery, desk, table, wait_until):
        desk.link._request(region=SECOND)
        wait_until(lambda: desk.is_settled)
        assert desk.session.snapshot.region.name == SECOND
        shown = gallery.panel.view.rows
        assert sorted(shown.tolist()) == sorted(table.model.failures().tolist())
        assert gallery.panel.view.drawn > 0

    def test_nobody_looks_nothing_is_drawn(self, gallery, table, wait_until):
        bring_to_front(table)
        wait_until(lambda: not is_in_sight(gallery.panel))
        table.set_filter(ObjectFilter(statuses=frozenset({"FP"})))
        assert not len(gallery.panel.view.rows)
        bring_to_front(gallery.panel)
        wait_until(lambda: len(gallery.panel.view.rows))
        assert len(gallery.panel.view.rows) == len(table.model.failures())

    def test_it_comes_to_the_front_in_another_region(self, gallery, desk, table, wait_until):
        bring_to_front(table)
        wait_until(lambda: not is_in_sight(gallery.panel))
        desk.link._request(region=SECOND)
        desk.session.set_team("careful")
        wait_until(lambda: desk.is_settled)
        bring_to_front(gallery.panel)
        wait_until(lambda: len(gallery.panel.view.rows) and desk.is_settled)
        shown = gallery.panel.view.rows
        assert sorted(shown.tolist()) == sorted(table.model.failures().tolist())


class TestLinks:
    def test_a_cell_of_the_confusion_matrix_lists_its_objects_and_again_all(self, metrics, table):
        cells = metrics.confusion_table()
        row, column, count = next(
            (r, c, int(text))
            for r, texts in enumerate(metrics.confusion_texts())
            for c, text in enumerate(texts)
            if c and text not in ("", "0")
        )
        place = cells.visualItemRect(cells.item(row, column)).center()
        everything = table.model.rowCount()
        QTest.mouseClick(cells.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert table.model.rowCount() == count
        assert table.behind_text().startswith("✕ ")
        assert cells.is_chosen(cells.model().index(row, column))
        QTest.mouseClick(cells.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert table.model.rowCount() == everything
        assert table.behind_text() == ""

    def test_a_count_of_a_class_is_reached_by_keys(self, metrics, table, desk):
        cells = metrics.by_class_table()
        cells.setFocus()
        cells.setCurrentCell(0, 2)
        QTest.keyClick(cells, Qt.Key.Key_Right)
        QTest.keyClick(cells, Qt.Key.Key_Return)
        assert table.model.rowCount() == int(cells.item(0, 3).text())  # FN
        QTest.keyClick(cells, Qt.Key.Key_N)
        assert desk.session.selection is not None

    def test_a_figure_lists_what_it_is_computed_from(self, metrics, table):
        figure = metrics.figure_widget("missed")
        QTest.mouseClick(figure, Qt.MouseButton.LeftButton)
        assert table.model.rowCount() == int(metrics.figure("missed"))
        QTest.keyClick(figure, Qt.Key.Key_Space)
        assert table.model.filter.is_open

    def test_the_list_comes_to_the_front(self, metrics, table, wait_until):
        assert not is_in_sight(table)
        QTest.mouseClick(metrics.figure_widget("pq"), Qt.MouseButton.LeftButton)
        wait_until(lambda: is_in_sight(table))

    def test_what_can_be_clicked_looks_like_it(self, metrics):
        cells = metrics.by_class_table()
        index = cells.model().index(0, 1)
        # QTest itself moves the pointer of the screen in older versions of Qt.
        place = QPointF(cells.visualRect(index).center())
        none, left_alone = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
        move = QMouseEvent(QEvent.Type.MouseMove, place, place, none, none, left_alone)
        QCoreApplication.sendEvent(cells.viewport(), move)
        assert cells.is_link_under_mouse(index)
        assert cells.viewport().cursor().shape() == Qt.CursorShape.PointingHandCursor
        assert "list the objects" in cells.item(0, 1).toolTip()

    def test_a_filter_menu_narrows_what_stands_behind_a_figure(self, desk, table):
        desk.panels.metrics.behind_wanted.emit(behind_cell("Epithelial", "none"))
        count = table.model.rowCount()
        cause = str(CAUSES[int(table.model.rows.values["cause"][table.model.order[0]])])
        table.menu("cause").uncheck(cause)
        assert table.model.rowCount() < count
        assert table.behind_text() == "✕ Epithelial → missed"


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
        table.worst.choose(max(WorstFirst, key=lambda worst: len(worst.short)))
        QTest.qWait(50)
        buttons = [b for b in table.findChildren(QAbstractButton) if b.isVisible() and b.text()]
        assert len(buttons) >= 11
        for button in buttons:
            assert button.width() >= button.sizeHint().width(), button.text()
            right = button.mapTo(table, button.rect().bottomRight())
            assert table.rect().contains(right), button.text()
        assert narrow.minimumSizeHint().width() <= 1280
        assert narrow.width() == 1280
        assert title[:60] in table._behind.toolTip()

    @pytest.mark.usefixtures("narrow")
    def test_buttons_of_a_line_stand_on_one_line(self, table):
        QTest.qWait(50)
        menu = table.menu("side")
        tops = {b.y() for b in menu.parent().findChildren(QAbstractButton)}
        heights = {b.height() for b in menu.parent().findChildren(QAbstractButton)}
        assert len(tops) <= 3
        assert len(heights) == 1


class TestOrder:
    def test_n_follows_the_chosen_order(self, desk, viewer, table):
        canvas = viewer.window._qt_viewer.canvas.native
        table.worst.choose(WorstFirst.AREA)
        areas = []
        for _ in range(6):
            QTest.keyClick(canvas, Qt.Key.Key_N)
            chosen = desk.session.selection
            side = desk.session.evaluation.outcomes.side(chosen.side)
            assert side.status[chosen.row] in FAILURES
            areas.append(int(side.area_px[chosen.row]))
        assert areas == sorted(areas, reverse=True)

    def test_choosing_an_order_takes_the_sorting_by_a_column_back(self, table):
        table.view.sortByColumn(1, Qt.SortOrder.DescendingOrder)
        table.worst.choose(WorstFirst.CLASS)
        assert table.view.horizontalHeader().sortIndicatorSection() == -1
        order = table.model.rows.worst_first(WorstFirst.CLASS)
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
        canvas = viewer.window._qt_viewer.canvas.native
        tp = row_of_status(desk, Side.REFERENCE, Status.TP)
        y, x = desk.session.evaluation.outcomes.reference.centroid_yx_px[tp]
        table.set_filter(ObjectFilter(statuses=frozenset({"FN"})))
        table.others.choose(Others.HIDDEN)
        assert "only these" in desk.panels.title.title()
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

    def test_columns_are_chosen_in_the_headers_menu(self, table):
        header, menu = table.view.horizontalHeader(), table._columns
        header.customContextMenuRequested.emit(QPoint(20, 5))
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

    def test_other_outcomes_leave_columns_as_they_were_chosen(self, table, desk):
        action = next(a for a in table._columns.actions() if a.data() == "hausdorff_um")
        action.trigger()
        column = [c.name for c in COLUMNS].index("hausdorff_um")
        desk.session.set_team("careful")
        assert table.view.isColumnHidden(column)
        action.trigger()
        assert not table.view.isColumnHidden(column)


class TestEdits:
    def test_an_object_that_is_erased_leaves_gallery_and_table(
        self, gallery, desk, table, wait_until
    ):
        row = row_of_status(desk, Side.PREDICTION, Status.FP)
        session = desk.session
        id_ = int(session.evaluation.outcomes.prediction.ids[row])
        name = (str(Side.PREDICTION), id_)
        y, x = np.nonzero(session.edited_labels(Side.PREDICTION).id_image() == id_)
        try:
            session.edit(Side.PREDICTION, y, x, 0)
            wait_until(lambda: desk.is_settled)
            assert name not in [gallery._name(int(at)) for at in gallery.panel.view.rows]
            assert len(gallery.panel.view.rows) == len(table.model.failures())
            assert metrics_missed(desk) == int(session.evaluation.counts.confusion[:, 0].sum())
        finally:
            session.discard_edits()
        wait_until(lambda: desk.is_settled)
        assert name in [gallery._name(int(at)) for at in gallery.panel.view.rows]


def metrics_missed(desk):
    return int(desk.panels.metrics.figure("missed"))
