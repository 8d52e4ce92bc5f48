"""The desk for several raters, in one window for all tests of this module."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import napari
import numpy as np
import pytest
from napari.layers import Image, Vectors
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_panoptic.common.errors import CohortError, UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.raters.evaluate import CaseImages, evaluate_raters
from napari_panoptic.raters.levels import Standing
from napari_panoptic.raters.slice_outlines import Shown, outline_segments
from napari_panoptic.samples.write import write_raters_sample
from napari_panoptic.tables.figures import UNDEFINED, ratio
from napari_panoptic.viewer import opening
from napari_panoptic.viewer.desk.raters import rated_desk_in
from napari_panoptic.viewer.jobs import rater_work as rated_work
from napari_panoptic.viewer.jobs.jobs import UnforeseenError
from napari_panoptic.viewer.jobs.rater_work import middle_slice
from napari_panoptic.viewer.layers import owned, rater_scene
from napari_panoptic.viewer.layers.rater_scene import disagreement_colormap
from napari_panoptic.viewer.opening import open_in
from napari_panoptic.viewer.panels.raters.panels import STANDING_WORDS
from napari_panoptic.viewer.panels.raters.strips import SliceStrip
from tests.viewer.finding import close_viewer, shown_text

DEEP, FLAT = "kidney/task01", "prostate/task02"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_raters_sample(tmp_path_factory.mktemp("rated-desk") / "sample")


@pytest.fixture(scope="module")
def raters_desk(qapp, folder, wait_until, napari_application):  # noqa: ARG001
    viewer = napari.Viewer()
    viewer.window.resize(1280, 800)
    desk = open_in(viewer, folder)
    wait_until(lambda: desk.is_settled and desk.view is not None)
    yield desk
    desk.close()
    assert rated_desk_in(viewer) is None
    assert list(viewer.layers) == []
    again = open_in(viewer, folder)
    wait_until(lambda: again.is_settled and again.view is not None)
    # A window may be closed with the desk open: layers that go must not come again.
    close_viewer(viewer)
    assert len(viewer.layers) == 0
    qapp.processEvents()


@pytest.fixture(scope="module")
def expected(raters_desk):
    return evaluate_raters(raters_desk.cohort).cases.set_index(["team", "structure", "case"])


@pytest.fixture
def show(raters_desk, wait_until):
    def show(structure, team="calibrated"):
        raters_desk.show_structure(structure)
        raters_desk.show_team(team)
        wait_until(lambda: raters_desk.is_settled and raters_desk.view.wanted == raters_desk.wanted)

    return show


def _layer(desk, name):
    return next(layer for layer in desk.viewer.layers if layer.name == name)


@pytest.mark.long
def test_the_cases_are_listed_worst_first_with_the_figures_of_the_tables(
    raters_desk, show, expected
):
    show(FLAT, "shifted")
    rows = raters_desk.cases.places.table.texts()
    own = expected.loc["shifted", FLAT].sort_values("dice")
    assert [row[0] for row in rows] == own.index.tolist()
    assert [row[1] for row in rows] == [ratio(value) for value in own["dice"]]
    assert [row[2] for row in rows] == [STANDING_WORDS[Standing(s)] for s in own["standing"]]


def test_next_and_previous_case_go_round(raters_desk, show, wait_until):
    show(FLAT, "shifted")
    order = [row[0] for row in raters_desk.cases.places.table.texts()]
    seen = []
    for step in (1,) * len(order) + (-1,):
        raters_desk.step_case(step)
        wait_until(lambda: raters_desk.is_settled)
        seen.append(raters_desk.view.wanted.case)
    assert sorted(seen[:-1]) == sorted(order)
    assert seen[-1] == seen[-3]


def test_a_missing_prediction_is_said(raters_desk, show, wait_until):
    show(FLAT, "shifted")
    raters_desk.show_case("prostate/case02")
    wait_until(lambda: raters_desk.is_settled)
    assert "prediction missing: counted as background" in raters_desk.title.text()
    assert raters_desk.levels.average.text() == ratio(0.0)


@pytest.mark.long
def test_a_missing_rater_is_said(raters_desk, show, wait_until):
    show(FLAT)
    raters_desk.show_case("prostate/case04")
    wait_until(lambda: raters_desk.is_settled)
    assert raters_desk.title.text().startswith(
        "prostate/case04 · prostate/task02 · without rater 06"
    )
    assert "no mask of 'prostate/task02' by rater 06" in raters_desk.title.selected.toolTip()
    assert shown_text(raters_desk.title.notes) == "⚠ 1 note"
    raters_desk.title.notes.click()
    assert "no mask of 'prostate/task02' by rater 06" in raters_desk.notes.lines()[0]
    raters_desk.notes.close()
    raters_desk.show_case("prostate/case01")
    wait_until(lambda: raters_desk.is_settled)
    assert "without" not in raters_desk.title.text()
    assert shown_text(raters_desk.title.notes) == ""
    view = raters_desk.view
    read = SimpleNamespace(reference=SimpleNamespace(raters=("01", "03", "04", "06")))
    raters_desk.view = replace(view, loaded=read)  # two files could not be read
    raters_desk.show_title()
    assert "without raters 02 and 05" in raters_desk.title.text()
    raters_desk.view = view
    raters_desk.show_title()


def test_the_legend_takes_no_more_lines_than_it_needs(raters_desk, show, wait_until):
    show(FLAT)
    window, legend = raters_desk.viewer.window._qt_window, raters_desk.legend

    def at(width, height):
        window.resize(width, height)
        wait_until(lambda: window.width() == width)
        wait_until(lambda: legend.height() == legend.heightForWidth(legend.width()))
        return legend.height()

    before = at(1280, 800)
    assert at(800, 700) > before
    assert at(1280, 800) == before


def test_levels_show_the_figures_and_what_is_drawn(raters_desk, show):
    show(FLAT)
    settings, found = raters_desk.cohort.settings, raters_desk.view.comparison
    texts = raters_desk.levels.table.texts()
    assert [row[1] for row in texts] == [ratio(v) for v in found.dice(settings)]
    raters_desk.levels.table.chosen.emit(0)
    lowest = _layer(raters_desk, "levels of the prediction").data
    raters_desk.levels.table.chosen.emit(4)
    highest = _layer(raters_desk, "levels of the prediction").data
    assert f"at 0.9: {ratio(float(found.dice(settings)[4]))}" in raters_desk.title.text()
    # The lowest level goes around the highest.
    assert lowest[:, 0, 0].min() < highest[:, 0, 0].min()
    assert lowest[:, 0, 0].max() > highest[:, 0, 0].max()
    raters_desk.levels.only.setChecked(False)
    assert len(_layer(raters_desk, "levels of the prediction").data) > len(highest)
    raters_desk.levels.only.setChecked(True)


def test_outlines_drawn_enclose_the_pixels_counted(raters_desk, show):
    show(FLAT)
    raters_desk.levels.table.chosen.emit(2)
    vectors = _layer(raters_desk, "levels of the raters' mean").data
    upright = vectors[vectors[:, 1, 1] == 0]
    # Going along a row, every crossing goes in or out: the area between is what was counted.
    area = 0.0
    for row in range(raters_desk.view.picture.votes.shape[1]):
        start, end = upright[:, 0, 0], upright[:, 0, 0] + upright[:, 1, 0]
        inside = (np.minimum(start, end) < row) & (np.maximum(start, end) > row)
        places = np.sort(upright[inside, 0, 1])
        area += (places[1::2] - places[::2]).sum()
    assert area == raters_desk.view.comparison.counts.reference[2]


def test_what_is_shown_can_be_chosen(raters_desk, show):
    show(FLAT)
    for what, layer in (
        (Shown.RATERS, "outline of each rater"),
        (Shown.PREDICTION, "levels of the prediction"),
        (Shown.DISAGREEMENT, rater_scene.DISAGREEMENT),
    ):
        raters_desk.levels.boxes[what].setChecked(False)
        assert not _layer(raters_desk, layer).visible
        raters_desk.levels.boxes[what].setChecked(True)
        assert _layer(raters_desk, layer).visible


@pytest.mark.long
def test_slices_lead_to_the_worst_and_where_is_clicked(raters_desk, show):
    show(DEEP)
    assert not raters_desk.dock("Slices").isHidden()
    scores = raters_desk.view.comparison.slice_scores(raters_desk.cohort.settings)
    marked = raters_desk.view.picture.votes.any(axis=(1, 2))
    raters_desk.show_failure()
    worst = int(np.argmin(np.where(marked, scores, 2)))
    assert raters_desk.scene.slice_number == worst
    before = _layer(raters_desk, "outline of each rater").data
    strip = raters_desk.slices.strip
    place = strip.place_of(10)
    QTest.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(round(place.x()), 5))
    assert raters_desk.scene.slice_number == 10
    assert not np.array_equal(before, _layer(raters_desk, "outline of each rater").data)
    show(FLAT)
    assert raters_desk.dock("Slices").isHidden()


def test_a_volume_is_first_shown_in_the_middle_of_what_was_marked(raters_desk, show):
    show(FLAT)
    show(DEEP)
    marked = np.flatnonzero(raters_desk.view.picture.votes.any(axis=(1, 2)))
    assert raters_desk.scene.slice_number == marked[len(marked) // 2]
    drawn = _layer(raters_desk, "outline of each rater").data
    expected = [
        outline_segments(m[raters_desk.scene.slice_number]) for m in raters_desk.view.picture.masks
    ]
    np.testing.assert_array_equal(drawn[:, 0], np.concatenate(expected)[:, 0])
    assert middle_slice(np.zeros((5, 2, 2), np.uint8)) == 2


@pytest.mark.long
def test_worst_slices_come_one_after_the_other_and_back(raters_desk, show):
    show(DEEP)
    scores = raters_desk.view.comparison.slice_scores(raters_desk.cohort.settings)
    marked = np.flatnonzero(raters_desk.view.picture.votes.any(axis=(1, 2)))
    worst = marked[np.argsort(scores[marked], kind="stable")]
    seen = []
    for step in (1, 1, 1, -1):
        raters_desk.slices.step_worst(step)
        seen.append(raters_desk.scene.slice_number)
    assert seen == [*worst[:3], worst[1]]
    assert (
        f"Slice {worst[1]}: Dice {ratio(float(scores[worst[1]]))}."
        in raters_desk.slices.note.text()
    )
    raters_desk.scene.go_to_slice(10)
    raters_desk.slices.step_worst(1)
    assert raters_desk.scene.slice_number == worst[0]
    show(FLAT)


@pytest.mark.long
def test_each_step_draws_the_outlines_of_its_own_slice(raters_desk, show):
    show(DEEP)
    drawn = _layer(raters_desk, "outline of each rater")
    for number in (8, 9, 3, 9):
        raters_desk.scene.go_to_slice(number)
        expected = [outline_segments(mask[number]) for mask in raters_desk.view.picture.masks]
        np.testing.assert_array_equal(drawn.data[:, 0], np.concatenate(expected)[:, 0])
        assert len(drawn.edge_color) == len(drawn.data)
    show(FLAT)


@pytest.mark.long
def test_layers_of_the_user_with_more_axes_leave_the_slices_as_they_are(raters_desk, show):
    show(DEEP)
    viewer = raters_desk.viewer
    units = ("second", "millimeter", "millimeter", "millimeter")
    movie = viewer.add_image(np.zeros((6, 20, 8, 8)), name="movie", units=units, visible=False)
    raters_desk.scene.go_to_slice(9)
    assert raters_desk.scene.slice_number == 9
    viewer.dims.set_point(0, 4)
    assert raters_desk.scene.slice_number == 9
    drawn = _layer(raters_desk, "outline of each rater").data
    expected = [outline_segments(mask[9]) for mask in raters_desk.view.picture.masks]
    np.testing.assert_array_equal(drawn[:, 0], np.concatenate(expected)[:, 0])
    assert viewer.dims.point[0] == 4
    viewer.layers.remove(movie)
    show(FLAT)


def test_a_rater_can_be_drawn_alone(raters_desk, show):
    show(FLAT)
    layer = _layer(raters_desk, "outline of each rater")
    every = len(layer.data)
    raters_desk.raters.pairs.chosen.emit(1)
    alone = outline_segments(raters_desk.view.picture.masks[1][0])
    np.testing.assert_array_equal(layer.data[:, 0], alone[:, 0])
    raters_desk.raters.pairs.chosen.emit(1)
    assert len(layer.data) == every


def test_of_a_large_case_the_picture_comes_before_its_figures(raters_desk, show, wait_until):
    show(FLAT)
    seen = []
    show_title = raters_desk.title.show_title

    def look(*title):
        show_title(*title)
        if raters_desk.view.wanted.case == "prostate/case03":  # else it is being loaded
            seen.append(
                (
                    raters_desk.levels.average.text(),
                    raters_desk.title.text(),
                    raters_desk.view.picture,
                )
            )

    with (
        patch.object(rated_work, "PICTURE_FIRST_VOXELS", 0),
        patch.object(raters_desk.title, "show_title", side_effect=look),
    ):
        raters_desk.show_case("prostate/case03")
        wait_until(lambda: raters_desk.is_settled)
    (first, told, picture), (last, _, same) = seen
    assert first == "\N{EN DASH}"
    assert "computing metrics" in told
    assert last == ratio(raters_desk.view.comparison.score(raters_desk.cohort.settings))
    assert same is picture  # not drawn again


def test_an_image_that_does_not_fit_is_told_of_in_the_window(raters_desk, show):
    show(FLAT)
    view = raters_desk.view
    finding = Finding(FindingKind.UNREADABLE, "the image must have the masks' size; not shown")
    raters_desk.view = replace(view, images=CaseImages({}, None, (finding,)))
    raters_desk.show_title()
    assert "image not shown: the image must have the masks' size" in raters_desk.title.text()
    raters_desk.view = view
    raters_desk.show_title()
    assert "image not shown" not in raters_desk.title.text()


def test_the_cross_of_a_panel_only_hides_it(raters_desk):
    dock = raters_desk.dock("Levels")
    dock.destroyOnClose()  # what the cross in napari's title calls
    assert dock.isHidden()
    assert dock.widget() is not None
    dock.show()


def test_the_raters_panel_shows_pairs_and_where_the_team_stands(raters_desk, show):
    show(FLAT)
    found = raters_desk.view.raters
    texts = raters_desk.raters.pairs.texts()
    assert texts[0][2] == ratio(float(found.pairwise[0, 1]))
    assert [row[-1] for row in texts] == [ratio(float(v)) for v in found.left_out_mean]
    assert "above every rater" in raters_desk.raters.note.text()
    assert raters_desk.levels.stands.text() == "above all"


def test_layers_stay_in_place(raters_desk, show, monkeypatch):
    show(FLAT)
    told = []
    monkeypatch.setattr(owned, "show_info", told.append)
    seen = [layer for layer in raters_desk.viewer.layers if layer.visible]
    for layer in seen:
        layer.mode = "transform"
        assert str(layer.mode) == "pan_zoom"
    assert len(told) == len(seen) >= 5


def test_layers_are_filled_again_and_never_removed(raters_desk, show):
    show(FLAT)
    layers = list(raters_desk.viewer.layers)
    show(DEEP)
    assert list(raters_desk.viewer.layers) == layers
    assert sum(isinstance(layer, Vectors) for layer in layers) == 3
    image = _layer(raters_desk, "image")
    assert isinstance(image, Image)
    assert tuple(image.scale) == pytest.approx((3.0, 0.8, 0.8))


@pytest.mark.long
def test_only_the_newest_request_is_shown(raters_desk, show, wait_until):
    show(FLAT)
    shown = []
    scene_show = raters_desk.scene.show

    def note(*picture, **how):
        scene_show(*picture, **how)
        shown.append(raters_desk.view)

    with patch.object(raters_desk.scene, "show", side_effect=note):
        for name in ("prostate/case02", "prostate/case03", "prostate/case04"):
            raters_desk.show_case(name)
        wait_until(lambda: raters_desk.is_settled)
    assert [view.wanted.case for view in shown] == ["prostate/case04"]


def _is_empty(layer):
    """Tell whether a layer holds nothing: neither as data, nor in its small picture."""
    return not np.asarray(layer.data).any() and not layer.thumbnail[..., :3].any()


@pytest.mark.long
@pytest.mark.parametrize(("structure", "failing"), [(FLAT, DEEP), (DEEP, FLAT)])
def test_layers_hold_nothing_of_the_case_before_where_one_cannot_be_read(
    raters_desk, show, wait_until, structure, failing
):
    show(structure)
    for shown in Shown:
        raters_desk.levels.boxes[shown].setChecked(True)
    probability = _layer(raters_desk, rater_scene.PROBABILITY)
    probability.visible = True
    assert not any(_is_empty(layer) for layer in raters_desk.viewer.layers if layer.visible)
    probability.visible = False
    raters_desk.levels.boxes[Shown.RATERS].setChecked(False)
    with patch.object(rated_work, "load_reference", side_effect=OSError("no disk x.nii.gz")):
        raters_desk.show_structure(failing)
        wait_until(lambda: raters_desk.is_settled)
    case = raters_desk.wanted.case
    assert raters_desk.title.text() == f"{case} cannot be shown: no disk x.nii.gz"
    assert all(_is_empty(layer) for layer in raters_desk.viewer.layers)
    for layer in raters_desk.viewer.layers:
        layer.visible = True  # as by somebody who looks for the picture
    picture = raters_desk.viewer.screenshot(canvas_only=True, flash=False)
    assert len(np.unique(picture[20:-60, 20:-20].reshape(-1, 4), axis=0)) == 1
    raters_desk.levels.boxes[Shown.RATERS].setChecked(True)
    raters_desk.show_case(case)  # the disk is there again
    wait_until(lambda: raters_desk.is_settled)
    probability.visible = False
    assert raters_desk.view.wanted.case == case
    assert not _is_empty(_layer(raters_desk, "outline of each rater"))


def test_layers_that_are_not_shown_hold_nothing_of_another_case(raters_desk, show, wait_until):
    show(FLAT)
    raters_desk.levels.boxes[Shown.RATERS].setChecked(False)
    assert _is_empty(_layer(raters_desk, "outline of each rater"))
    raters_desk.show_case("prostate/case04")
    wait_until(lambda: raters_desk.is_settled)
    raters_desk.levels.boxes[Shown.RATERS].setChecked(True)
    assert not _is_empty(_layer(raters_desk, "outline of each rater"))


@pytest.mark.long
def test_a_case_that_cannot_be_read_shows_nothing_of_the_one_before(raters_desk, show, wait_until):
    show(FLAT)
    cannot = UnreadableFileError("expected masks, found noise", path=Path("x.nii.gz"))
    with patch.object(rated_work, "load_reference", side_effect=cannot):
        raters_desk.show_case("prostate/case03")
        wait_until(lambda: raters_desk.is_settled)
        assert raters_desk.title.text().startswith(
            "prostate/case03 cannot be shown: x.nii.gz: expected"
        )
        assert not [layer.name for layer in raters_desk.viewer.layers if layer.visible]
        raters_desk.levels.table.chosen.emit(0)
        raters_desk.levels.boxes[Shown.DISAGREEMENT].setChecked(False)
        raters_desk.levels.boxes[Shown.DISAGREEMENT].setChecked(True)
        raters_desk.show_failure()
        assert not [layer.name for layer in raters_desk.viewer.layers if layer.visible]
        assert raters_desk.levels.average.text() == UNDEFINED
        assert [row[1] for row in raters_desk.levels.table.texts()] == [UNDEFINED] * 5
        assert raters_desk.raters.note.text() == raters_desk.title.text()
        assert "expected masks, found noise" in raters_desk.raters.note.text()
        assert "see the Raters panel" in raters_desk.levels.average.toolTip()
        assert "rater 01" not in raters_desk.legend.text()
        assert raters_desk.raters.pairs.isHidden()
        assert raters_desk.view is None
    raters_desk._failed.add(("prostate/case03", FLAT))
    raters_desk.show_case("prostate/case03")  # the file is mended
    wait_until(lambda: raters_desk.is_settled)
    assert raters_desk.view.wanted.case == "prostate/case03"
    assert not raters_desk._failed
    raters_desk.show_case("prostate/case01")
    wait_until(lambda: raters_desk.is_settled)
    assert raters_desk.title.text().startswith("prostate/case01")
    assert _layer(raters_desk, "outline of each rater").visible
    assert _layer(raters_desk, rater_scene.DISAGREEMENT).visible
    raters_desk.levels.table.chosen.emit(2)


def test_a_case_without_figures_is_marked_in_the_list(raters_desk, show):
    show(FLAT)
    raters_desk._on_result("prostate/case03", FLAT, None)
    rows = {row[0]: row[1:] for row in raters_desk.cases.places.table.texts()}
    assert rows["prostate/case03"] == [UNDEFINED, "unreadable"]
    raters_desk._failed.clear()
    raters_desk.list_cases()


@pytest.mark.qt_no_exception_capture
def test_a_crash_while_loading_leaves_the_desk_usable(raters_desk, show, wait_until, monkeypatch):
    show(FLAT)
    told = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: told.append(error[0]))
    with patch.object(rated_work, "load_reference", side_effect=ZeroDivisionError):
        raters_desk.show_case("prostate/case03")
        wait_until(lambda: raters_desk.is_settled)
    assert told == [ZeroDivisionError]
    assert raters_desk.title.text() == f"prostate/case03 cannot be shown: {UnforeseenError()}"
    assert all(_is_empty(layer) for layer in raters_desk.viewer.layers)
    raters_desk.show_case("prostate/case02")
    wait_until(lambda: raters_desk.is_settled)
    assert raters_desk.view.wanted.case == "prostate/case02"


def test_cohorts_are_opened_and_keys_listed_as_on_the_other_desks(raters_desk, monkeypatch):
    asked = []
    monkeypatch.setattr(opening, "ask_for_folder", lambda *place: asked.append(place))
    assert raters_desk.cases.open.text() == "Open cohort…"
    raters_desk.cases.open.click()
    assert [place[:2] for place in asked] == [(raters_desk.viewer, raters_desk.strip)]
    assert raters_desk.title.keys.text() == "?"
    raters_desk.title.keys.click()
    assert raters_desk.keys.isVisible()
    listed = dict(raters_desk.keys.lines())
    assert {"J", "K", "N", "W", "Shift+W", "?", "←", "→"} <= set(listed)
    raters_desk.keys.close()


def test_an_unknown_case_is_said(raters_desk):
    with pytest.raises(CohortError, match="no case 'x'"):
        raters_desk.cohort.region("x")


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_disagreement_is_clear_where_all_are_of_one_mind(n):
    colours = disagreement_colormap(n).map(np.linspace(0, 1, n + 1))
    assert colours[0, 3] == colours[n, 3] == 0
    assert (colours[1:n, 3] > 0).all()
    np.testing.assert_allclose(colours, colours[::-1], atol=1e-6)


@pytest.mark.long
def test_an_undefined_slice_is_drawn(qtbot):
    strip = SliceStrip()
    qtbot.addWidget(strip)
    strip.resize(300, 120)
    strip.show_scores(np.array([np.nan, 0.5]), np.array([True, True]))
    assert not strip.grab().isNull()


@pytest.mark.long
def test_between_flat_and_deep_images_no_layer_is_left_behind(
    qapp,
    folder,
    detection_sample,
    wait_until,
    napari_application,  # noqa: ARG001
    caplog,
):
    """Else napari kept the slider for slices, and showed the extent of what was hidden."""
    viewer = napari.Viewer()
    theirs = viewer.add_image(np.zeros((9, 9)), name="theirs", visible=False)
    flat = open_in(viewer, detection_sample)
    wait_until(lambda: flat.is_settled)
    of_points = {layer.name for layer in viewer.layers}
    deep = open_in(viewer, folder)
    wait_until(lambda: deep.is_settled and deep.view is not None)
    assert viewer.dims.ndim == 3
    assert not {layer.name for layer in viewer.layers} & (of_points - {"image", "theirs"})
    back = open_in(viewer, detection_sample)
    wait_until(lambda: back.is_settled)
    assert viewer.dims.ndim == 2
    assert {layer.name for layer in viewer.layers} == of_points
    assert theirs in viewer.layers
    assert "Inconsistent units" not in caplog.text
    back.close()
    close_viewer(viewer)
    qapp.processEvents()
