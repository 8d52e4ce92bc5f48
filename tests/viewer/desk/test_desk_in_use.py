"""A desk in a real window, used by real clicks and keys.

One window serves all of these tests; each finds it as it was opened.
"""

import threading

import numpy as np
import pytest
from napari.utils.notifications import notification_manager
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from benchmarks.long_use import census, use
from napari_panoptic.display import styles
from napari_panoptic.display.object_layers import label_data, object_lut
from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.display.styles import ColourBy, Display, Look
from napari_panoptic.live.session import Selection
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.viewer.desk.failure_steps import NONE_LISTED
from napari_panoptic.viewer.layers.outlines import outlines_of
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from tests.viewer.finding import (
    FIRST,
    SECOND,
    THIRD,
    click,
    missed_row,
    names_of_visible,
    nearest_view_middle,
    on_canvas,
    row_of_status,
    shown_text,
)


@pytest.fixture
def at_first(fresh_desk):
    """Show the image and the objects only."""
    for layer in fresh_desk.viewer.layers:
        layer.visible = layer.name in ("image", "reference", "careful")
    # Another display opens the eyes that were closed by hand, as those just above.
    fresh_desk.state.look = Look(display=Display.FILL)
    fresh_desk.state.look = Look()


def select_row(desk, row):
    """Return the selection of a reference object."""
    id_ = int(desk.session.evaluation.outcomes.reference.ids[row])
    return Selection(desk.session.team, Side.REFERENCE, row, id_)


class TestOpening:
    def test_image_reference_and_every_team_are_layers(self, desk, viewer):
        teams = [team.name for team in desk.session.cohort.teams]
        names = [layer.name for layer in viewer.layers]
        assert names == ["image", "reference", *sorted(teams), "selected object"]
        assert names_of_visible(viewer) == ["image", "reference", desk.session.team]

    def test_layers_are_in_micrometres(self, viewer):
        assert {tuple(layer.scale) for layer in viewer.layers} == {(0.2525, 0.2525)}
        assert {str(unit) for layer in viewer.layers for unit in layer.units} == {"micrometer"}

    def test_objects_are_outlined_in_the_colours_of_their_status(self, desk, viewer):
        row = row_of_status(desk, Side.REFERENCE, Status.FN)
        layer = viewer.layers["reference"]
        colour = layer.get_color(row + 1)
        np.testing.assert_allclose(colour[:3] * 255, styles.STATUS_COLOURS[Status.FN], atol=1e-3)
        assert layer.contour > viewer.layers[desk.session.team].contour >= 1

    def test_outlines_are_lines_that_no_zoom_slices_again(self, desk, viewer):
        layers = [viewer.layers["reference"], viewer.layers[desk.session.team]]
        assert all(outlines_of(layer, viewer).are_lines for layer in layers)
        assert layers[0].contour > layers[1].contour >= 1
        sliced = []
        for layer in layers:
            layer.events.set_data.connect(sliced.append)
        for zoom in (1, 8, 60):
            viewer.scene.camera.zoom = zoom
            desk.link.scene.follow_zoom()
        assert sliced == []

    def test_the_line_of_the_selected_object_is_wider(self, desk, viewer):
        row, drawn = row_of_status(desk, Side.REFERENCE, Status.FN), []
        selected = select_row(desk, row)
        desk.link.scene.camera.centre(selected)
        for selection in (selected, None, selected):  # the first may change the size of docks
            desk.session.select(selection)
            viewer.layers["selected object"].visible = False
            shot = viewer.screenshot(flash=False)[..., :3].astype(int)
            colour = np.array(styles.STATUS_COLOURS[Status.FN])
            drawn.append((np.abs(shot - colour) < 3).all(-1).sum())
        assert drawn[2] > drawn[1] > 0

    def test_docks_are_filled(self, desk):
        panels, evaluation = desk.panels, desk.session.evaluation
        assert panels.metrics.figure("pq") == f"{evaluation.metrics.pq:.3f}"
        assert panels.objects.model.rowCount() == len(evaluation.objects)
        assert panels.navigator.places.text(FIRST, "PQ") == f"{evaluation.metrics.pq:.3f}"
        assert panels.navigator.teams.text(desk.session.team, "Mean PQ") != ""
        assert FIRST in panels.title.title()
        assert shown_text(panels.title.notes).startswith("⚠")

    def test_legend_counts_the_objects(self, desk):
        count = desk.session.evaluation.outcomes.reference.count(Status.FN)
        assert desk.panels.legend.chips["FN"].text() == f"FN {count}"

    def test_the_whole_region_is_in_view(self, viewer):
        height, width = viewer.layers["image"].data.shape[:2]
        for y, x in ((0, 0), (height - 1, width - 1)):
            place = on_canvas(viewer, y, x)
            assert 0 <= place.x() <= viewer.canvas.size[1]
            assert 0 <= place.y() <= viewer.canvas.size[0]


class TestSelecting:
    def test_a_click_on_an_object_selects_it_and_its_row(self, desk, viewer, canvas):
        row = missed_row(desk)
        y, x = desk.session.evaluation.outcomes.reference.centroid_yx_px[row]

        click(canvas, on_canvas(viewer, y, x))

        selection = desk.session.selection
        assert (selection.side, selection.row) == (Side.REFERENCE, row)
        assert desk.panels.objects.selected() == (Side.REFERENCE, row)
        assert f"reference {selection.id} " in desk.panels.title.selected.text()
        assert viewer.layers["selected object"].visible

    def test_a_second_click_selects_the_object_beneath(self, desk, viewer, canvas):
        row = row_of_status(desk, Side.REFERENCE, Status.TP)
        y, x = desk.session.evaluation.outcomes.reference.centroid_yx_px[row]
        sides = []
        for _ in range(3):
            click(canvas, on_canvas(viewer, y, x))
            sides.append(desk.session.selection.side)
        assert sides == [Side.PREDICTION, Side.REFERENCE, Side.PREDICTION]

    def test_a_click_beside_all_objects_deselects(self, desk, viewer, canvas):
        desk.session.select_row(Side.REFERENCE, 0)
        labels = desk.session.snapshot.reference.index
        free = (labels == 0) & (desk.session.snapshot.predictions[desk.session.team].index == 0)
        y, x = np.argwhere(free)[len(np.argwhere(free)) // 2]

        click(canvas, on_canvas(viewer, y, x))

        assert desk.session.selection is None
        assert desk.panels.objects.selected() is None
        assert not viewer.layers["selected object"].visible

    def test_a_drag_moves_the_view_and_selects_nothing(self, desk, viewer, canvas):
        row = row_of_status(desk, Side.REFERENCE, Status.TP)
        place = on_canvas(viewer, *desk.session.evaluation.outcomes.reference.centroid_yx_px[row])
        QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=place)
        for step in (4, 10, 20):
            QTest.mouseMove(canvas, place + QPoint(step, step))
        QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=place + QPoint(20, 20))
        assert desk.session.selection is None

    def test_a_row_selects_the_object_without_moving_the_view(self, desk, viewer):
        view = desk.panels.objects.view
        before = (tuple(viewer.scene.camera.center), viewer.scene.camera.zoom)
        place = view.visualRect(desk.panels.objects.model.index(0, 1)).center()
        desk.dock("Objects").raise_()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
        chosen = desk.panels.objects.model.object_at(0)
        assert (desk.session.selection.side, desk.session.selection.row) == chosen
        assert (tuple(viewer.scene.camera.center), viewer.scene.camera.zoom) == before

    def test_a_row_out_of_view_is_brought_into_view_at_the_same_zoom(self, desk, viewer):
        viewer.scene.camera.center = (0, -1000, -1000)
        zoom = viewer.scene.camera.zoom
        desk.session.select_row(Side.REFERENCE, 0)
        place = on_canvas(viewer, *desk.session.evaluation.outcomes.reference.centroid_yx_px[0])
        assert 0 < place.x() < viewer.canvas.size[1]
        assert viewer.scene.camera.zoom == zoom
        box = desk.session.evaluation.outcomes.reference.bbox[0]
        middle = nearest_view_middle(viewer, box)
        np.testing.assert_allclose(viewer.scene.camera.center[-2:], middle)

    def test_a_row_at_the_border_leaves_nothing_of_the_canvas_empty(self, desk, viewer):
        boxes = desk.session.evaluation.outcomes.reference.bbox
        row = int(np.argmin(boxes[:, :2].sum(axis=1)))
        viewer.scene.camera.zoom *= 4
        viewer.scene.camera.center = (0, 1000, 1000)
        desk.session.select_row(Side.REFERENCE, row)
        corner = on_canvas(viewer, -0.5, -0.5)
        assert corner.x() <= 1
        assert corner.y() <= 1

    def test_an_error_of_the_canvas_does_not_keep_a_selection_from_the_panels(self, desk, viewer):
        heard, errors, events = [], [], viewer.scene.camera.events
        desk.session.selection_changed.connect(heard.append)
        notification_manager.notification_ready.connect(errors.append)

        def fail():
            raise RuntimeError("not a child of the scene")

        viewer.scene.camera.zoom = 40
        viewer.scene.camera.center = (0, -500, -500)
        events.center.connect(fail)
        try:
            desk.session.select_row(Side.REFERENCE, 0)
        finally:
            events.center.disconnect(fail)
            notification_manager.notification_ready.disconnect(errors.append)
            desk.session.selection_changed.disconnect(heard.append)
        assert heard == [desk.session.selection]
        assert desk.session.selection is not None
        assert [note.message for note in errors] == ["not a child of the scene"]

    def test_a_team_whose_eye_is_open_can_be_clicked(self, desk, viewer, canvas):
        other = "merger"
        viewer.layers[desk.session.team].visible = False
        viewer.layers["reference"].visible = False
        viewer.layers[other].visible = True
        index = desk.session.snapshot.predictions[other].index
        y, x = np.argwhere(index)[len(np.argwhere(index)) // 2]

        click(canvas, on_canvas(viewer, y, x))

        assert desk.session.team == other
        assert desk.session.selection.row == index[y, x] - 1

    @pytest.mark.long
    def test_a_team_whose_eye_is_open_stays_and_is_drawn_as_any_until_another_is_chosen(
        self, desk, viewer, wait_until
    ):
        own, other = viewer.layers["careful"], viewer.layers["merger"]
        other.visible = True
        assert (other.contour, other.opacity) == (own.contour, own.opacity)
        desk.state.look = Look(display=Display.FILL)
        assert other.contour == own.contour == 0
        desk.state.look = Look(display=Display.HIDDEN)
        assert not other.visible
        desk.state.look = Look(ColourBy.CLASS)
        desk.link.request(region=SECOND)
        wait_until(lambda: desk.is_settled)
        assert names_of_visible(viewer) == ["image", "reference", "careful", "merger"]
        evaluation = desk.session.snapshot.evaluations["merger"]
        lut = object_lut(
            evaluation.pair.prediction,
            evaluation.outcomes.prediction,
            desk.session.cohort.scheme,
            ColourBy.CLASS,
        )
        np.testing.assert_allclose(other.colormap.colors[:20], lut[:20])
        own.visible = False
        desk.session.set_team("merger")
        desk.session.set_team("careful")
        assert names_of_visible(viewer) == ["image", "reference", "careful"]

    def test_hover_tells_everything(self, desk, viewer):
        row = row_of_status(desk, Side.REFERENCE, Status.TP)
        outcomes = desk.session.evaluation.outcomes
        world = outcomes.reference.centroid_yx_px[row] * viewer.layers["reference"].scale
        text = desk.link.pointer.hover_text(desk.link.scene.objects_at(world))
        partner = int(outcomes.prediction.ids[outcomes.reference.partner[row]])
        assert f"{desk.session.team} {partner}" in text
        for word in ("TP", "Partner", "IoU", "HD", "Area"):
            assert word in text
        assert "<hr>" not in text  # the partner beneath is not told twice


class TestKeys:
    def test_n_goes_through_the_failures(self, desk, canvas):
        failures = {STATUS_CODE[status] for status in styles.FAILURES}
        seen = set()
        for _ in range(5):
            QTest.keyClick(canvas, Qt.Key.Key_N)
            selection = desk.session.selection
            side = desk.session.evaluation.outcomes.side(selection.side)
            assert side.status[selection.row] in failures
            seen.add((selection.side, selection.row))
        assert len(seen) == 5
        first = desk.session.selection
        QTest.keyClick(canvas, Qt.Key.Key_N, Qt.KeyboardModifier.ShiftModifier)
        assert desk.session.selection != first

    def test_n_says_where_there_is_no_failure_to_go_to(self, desk, canvas):
        desk.panels.objects.set_filter(ObjectFilter(statuses=frozenset({"TP"})))
        for modifier in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier):
            QTest.keyClick(canvas, Qt.Key.Key_N, modifier)
            assert desk.panels.title.selected.text() == NONE_LISTED
        assert desk.session.selection is None

    def test_h_cycles_the_display(self, desk, viewer, canvas):
        QTest.keyClick(canvas, Qt.Key.Key_H)
        assert viewer.layers["reference"].contour == 0
        QTest.keyClick(canvas, Qt.Key.Key_H)
        assert names_of_visible(viewer) == ["image"]
        QTest.keyClick(canvas, Qt.Key.Key_H)
        assert names_of_visible(viewer) == ["image", "reference", desk.session.team]

    def test_q_switches_to_class_colours_and_back(self, desk, viewer, canvas):
        row = row_of_status(desk, Side.REFERENCE, Status.FN)
        colours = styles.class_colours(len(desk.session.cohort.scheme.names))
        number = desk.session.snapshot.reference.class_index[row]
        QTest.keyClick(canvas, Qt.Key.Key_Q)
        by_class = viewer.layers["reference"].get_color(row + 1)[:3] * 255
        np.testing.assert_allclose(by_class, colours[number - 1], atol=1e-3)
        QTest.keyClick(canvas, Qt.Key.Key_Q)
        by_status = viewer.layers["reference"].get_color(row + 1)[:3] * 255
        np.testing.assert_allclose(by_status, styles.STATUS_COLOURS[Status.FN], atol=1e-3)

    def test_w_centres_the_selected_object(self, desk, viewer, canvas):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_W)
        y0, x0, y1, x1 = desk.session.evaluation.outcomes.reference.bbox[0]
        middle = np.array([(y0 + y1 - 1) / 2, (x0 + x1 - 1) / 2]) * 0.2525
        np.testing.assert_allclose(viewer.scene.camera.center[-2:], middle)

    def test_j_and_k_go_to_the_next_region_and_back(self, desk, canvas, wait_until):
        QTest.keyClick(canvas, Qt.Key.Key_J)
        wait_until(lambda: not desk.link.loader.is_busy)
        assert desk.session.snapshot.region.name == SECOND
        QTest.keyClick(canvas, Qt.Key.Key_K)
        wait_until(lambda: not desk.link.loader.is_busy)
        assert desk.session.snapshot.region.name == FIRST

    @pytest.mark.long
    @pytest.mark.parametrize("panel", ["table", "navigator"])
    def test_keys_work_from_the_panels_too(self, desk, panel):
        widget = {
            "table": desk.panels.objects.view,
            "navigator": desk.panels.navigator.places.table,
        }[panel]
        QTest.keyClick(widget, Qt.Key.Key_N)
        assert desk.session.selection is not None


class TestChanging:
    def test_another_team_is_shown_at_once(self, desk, viewer):
        desk.panels.settings.team.setCurrentText("merger")
        assert desk.session.team == "merger"
        assert names_of_visible(viewer) == ["image", "reference", "merger"]
        assert desk.panels.metrics.figure("pq") == f"{desk.session.evaluation.metrics.pq:.3f}"
        assert "merger" in desk.panels.title.title()

    def test_a_chip_lists_only_its_objects_and_again_all(self, desk):
        everything = desk.panels.objects.model.rowCount()
        for expected in (
            desk.session.evaluation.outcomes.reference.count(Status.FN),
            everything,
        ):
            desk.panels.legend.chip_clicked.emit("FN")
            assert desk.panels.objects.model.rowCount() == expected

    @pytest.mark.parametrize("leave_for", ["another region", "another team"])
    def test_edits_count_in_the_cohort_even_if_left_at_once(self, desk, wait_until, leave_for):
        """Before lists follow the edit, which takes a moment."""
        session, loaded = desk.session, desk.session.loaded
        other = load_region(session.cohort, SECOND, session.settings)
        labels = session.edited_labels(Side.PREDICTION)
        y, x = np.nonzero(labels.id_image() == labels.ids[0])
        before = session.summaries[FIRST, "careful"].counts
        try:
            edited = session.edit(Side.PREDICTION, y, x, 0).evaluation.counts
            if leave_for == "another region":
                session.deliver(session.request(region_name=SECOND), other)
            else:
                session.set_team("merger")
            after = session.summaries[FIRST, "careful"].counts
            assert after is edited
            assert after is not before
        finally:
            session.deliver(session.request(region_name=FIRST), loaded)
            session.set_team("careful")
            session.discard_edits()
            wait_until(lambda: desk.is_settled)

    @pytest.mark.long
    def test_a_selected_object_stays_selected_under_other_settings(self, desk, wait_until):
        desk.session.select_row(Side.REFERENCE, 3)
        desk.panels.settings.threshold.setValue(0.7)
        wait_until(lambda: desk.is_settled)
        assert desk.session.selection.row == 3
        assert desk.panels.objects.selected() == (Side.REFERENCE, 3)

    @pytest.mark.long
    def test_the_view_stays_under_other_settings_and_fits_another_region(
        self, desk, viewer, wait_until
    ):
        viewer.scene.camera.zoom = zoom = viewer.scene.camera.zoom * 3
        desk.panels.settings.threshold.setValue(0.7)
        wait_until(lambda: desk.is_settled)
        assert viewer.scene.camera.zoom == zoom
        desk.panels.navigator.places.choose(THIRD)
        wait_until(lambda: desk.is_settled)
        assert viewer.scene.camera.zoom < zoom

    @pytest.mark.long
    def test_a_setting_recomputes_everything(self, desk, wait_until):
        before = desk.panels.metrics.figure("detection_recall")
        desk.panels.settings.threshold.setValue(0.95)
        wait_until(lambda: desk.is_settled)
        assert desk.session.snapshot.settings.iou_threshold == 0.95
        assert desk.panels.metrics.figure("detection_recall") < before
        assert "IoU > 0.95" in desk.panels.title.title()
        assert desk.panels.settings.labels["iou_threshold"].text().startswith("●")

    @pytest.mark.long
    def test_layers_out_of_sight_are_right_once_they_are_looked_at(self, desk, viewer, wait_until):
        """By their eye, or because their team was chosen."""

        def is_right(name):
            labels = desk.session.snapshot.predictions[name]
            return np.array_equal(viewer.layers[name].data, label_data(labels))

        def ask(**changes):
            settings = desk.session.settings.replaced(restoration="border-dilated", **changes)
            desk.link.request(settings=settings)
            wait_until(lambda: desk.is_settled)
            assert is_right("careful")

        ask(radius=3)
        viewer.layers["merger"].visible = True
        assert is_right("merger")
        evaluation = desk.session.snapshot.evaluations["merger"]
        lut = object_lut(
            evaluation.pair.prediction,
            evaluation.outcomes.prediction,
            desk.session.cohort.scheme,
            ColourBy.STATUS,
        )
        np.testing.assert_allclose(viewer.layers["merger"].colormap.colors[:50], lut[:50])
        viewer.layers["merger"].visible = False

        ask(radius=-1)
        desk.session.set_team("merger")
        assert is_right("merger")
        assert names_of_visible(viewer) == ["image", "reference", "merger"]

        # And in a moment when nothing else is to be done.
        desk.session.set_team("careful")
        ask(radius=2)
        wait_until(lambda: is_right("merger"))

    @pytest.mark.long
    def test_filters_name_what_the_table_knows(self, desk):
        desk.panels.objects.set_filter(ObjectFilter(statuses=frozenset({"FP"})))
        count = desk.session.evaluation.outcomes.prediction.count(Status.FP)
        assert desk.panels.objects.model.rowCount() == count


def autosave_once(desk, wait_until):
    """Draw, and wait for the autosave, which comes seconds later and starts a thread."""
    edits = desk.presenter(EditsPresenter).edits
    edits.set_on(True)
    edits.activate(Side.PREDICTION)
    desk.link.scene.object_layer(Side.PREDICTION, desk.session.team)[0].paint((9, 9), 1)
    wait_until(lambda: any("autosave" in thread.name for thread in threading.enumerate()))
    edits.set_on(False)
    edits.discard()


@pytest.mark.long
def test_switches_and_strokes_leave_nothing_behind(desk, wait_until):
    """The short form of ``python -m benchmarks long_use``."""
    regions = len(desk.session.cohort.regions)
    autosave_once(desk, wait_until)
    use(desk, regions, 30, seed=1)  # every region was seen, everything made that is made once
    wait_until(lambda: desk.is_settled)
    before = census(desk).counts
    for seed in (2, 3):
        use(desk, regions, 60, seed=seed)
    wait_until(lambda: desk.is_settled)

    def grown() -> dict[str, tuple[int, int]]:
        now = census(desk).counts
        return {name: (before[name], n) for name, n in now.items() if n > before[name]}

    # A neighbouring region may still be read ahead, by a thread that has its file open.
    wait_until(lambda: not grown(), grown, pause_s=0.2)
    assert census(desk).counts["EditedPair"] == 0  # edits were discarded
