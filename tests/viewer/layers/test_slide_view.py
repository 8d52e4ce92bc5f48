"""Slides on a desk in a real window."""

from unittest.mock import patch

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.display import slide_texts
from napari_panoptic.display.failure_cells import SHARE_COLOURS, scale_text
from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.display.slide_layers import CLASSES, CODES, told_apart
from napari_panoptic.display.styles import ColourBy, Display, Look
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.zone import Zone
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.values.windowed_labels import TiledArea
from napari_panoptic.viewer.desk.failure_steps import NONE_LISTED
from napari_panoptic.viewer.layers import slide_view
from napari_panoptic.viewer.layers.outlines import LayerOutlines, outlines_of
from napari_panoptic.viewer.layers.owned import AMBIGUOUS, ZONE
from napari_panoptic.viewer.layers.slide_view import FAILURES, ON_SLIDE
from napari_panoptic.viewer.panels.failures.scope import Scope
from napari_panoptic.viewer.panels.title import EVALUATE, STOP, SlidePresenter
from tests.support.slides import HELD_UP_TO_PX, SHAPES, SLIDE, SMALL, TEAMS, write_slide_cohort
from tests.viewer.finding import (
    canvas_of,
    click,
    handle_events,
    names_of_visible,
    on_canvas,
    shown_text,
)

FIRST_TEAM = TEAMS[0]

NEAR, FAR = 1.0, 0.1


@pytest.fixture(scope="module")
def slide_cohort(tmp_path_factory):
    """Write a cohort of a slide and a small region."""
    root = tmp_path_factory.mktemp("slides")
    pairs = write_slide_cohort(root)
    return open_cohort(root), pairs


@pytest.fixture(scope="module")
def shown_cohort(slide_cohort):
    """Show that cohort; regions count as slides sooner than usual."""
    original = Session.__init__

    def begin(self, *args, **options):
        original(self, *args, **options)
        self.held_up_to_px = HELD_UP_TO_PX

    with patch.object(Session, "__init__", begin):
        yield slide_cohort[0]


@pytest.fixture
def zoom_to(desk, viewer, wait_until):
    """Give a function that zooms, and waits until everything is drawn."""

    def zoom(zoom, centre=None):
        if centre is not None:
            viewer.scene.camera.center = (0.0, *centre)
        viewer.scene.camera.zoom = zoom
        desk.link.scene.follow_zoom()
        draw(viewer)  # only what is drawn is read
        wait_until(lambda: not desk.link.slides.is_busy)
        draw(viewer)

    return zoom


def draw(viewer):
    """Draw the canvas now: it may wait for its turn on a busy machine."""
    handle_events()
    canvas_of(viewer).repaint()
    handle_events()


def on_slide(name):
    return name + ON_SLIDE


def pair_shown(desk, slide_cohort):
    return slide_cohort[1][SLIDE, desk.session.team]


def test_a_slide_has_figures_table_and_layers(desk, viewer, slide_cohort):
    evaluation = desk.session.shown
    assert desk.session.evaluation is None
    pair = pair_shown(desk, slide_cohort)
    objects = len(pair.reference) + len(pair.prediction)
    assert desk.panels.objects.count_text().startswith(f"{objects} of {objects}")
    assert f"PQ {evaluation.metrics.pq:.3f}"[:8] in desk.panels.title.figure.text()
    fn = str(evaluation.outcomes.reference.count(Status.FN))
    assert desk.panels.legend.chips["FN"].text().endswith(fn)
    assert desk.panels.navigator.places.text(SLIDE, "PQ") == f"{evaluation.metrics.pq:.3f}"
    names = [layer.name for layer in viewer.layers if layer.name != "selected object"]
    assert names == ["image", on_slide("reference"), on_slide(desk.session.team), FAILURES]
    assert viewer.layers.selection.active is viewer.layers["image"]
    assert desk.panels.title.slide.progress_text() == ""


def test_a_blind_reviewer_does_not_see_the_name_of_the_team(desk, viewer, wait_until):
    desk.state.is_blind = True
    try:
        for team in (*TEAMS, TEAMS[0]):
            desk.session.set_team(team)
            wait_until(lambda: desk.is_settled)
            names = [layer.name for layer in viewer.layers]
            assert not [name for name in names if any(team in name for team in TEAMS)]
    finally:
        desk.state.is_blind = False
    assert on_slide(TEAMS[0]) in [layer.name for layer in viewer.layers]


def test_near_objects_are_seen_and_from_afar_where_they_fail(desk, viewer, zoom_to):
    view, team = desk.link.slides, desk.session.team
    zoom_to(NEAR)
    assert not view.is_far
    assert names_of_visible(viewer) == ["image", on_slide("reference"), on_slide(team)]
    assert "Zoom out" in desk.panels.title.slide.text()
    zoom_to(FAR)
    assert view.is_far
    assert names_of_visible(viewer) == ["image", FAILURES]
    assert desk.panels.title.slide.text() == scale_text()
    cells = viewer.layers[FAILURES]
    extent = np.array(cells.data.shape[:2]) * cells.scale
    np.testing.assert_allclose(extent, SHAPES[SLIDE])
    # The extent is that of the middles of squares and pixels.
    edges = cells.extent.world + np.outer([-0.5, 0.5], cells.scale)
    np.testing.assert_allclose(edges, [[-0.5, -0.5], np.array(SHAPES[SLIDE]) - 0.5])


def test_the_layers_show_the_pixels_of_the_files(desk, viewer, slide_cohort, zoom_to, wait_until):
    desk.state.look = Look(ColourBy.STATUS, Display.FILL)
    zoom_to(NEAR)
    pair = pair_shown(desk, slide_cohort)
    outcomes = desk.session.shown.outcomes
    for name, side, labels in (
        (on_slide("reference"), Side.REFERENCE, pair.reference),
        (on_slide(desk.session.team), Side.PREDICTION, pair.prediction),
    ):
        codes = np.concatenate([[0], outcomes.side(side).status + 1])
        layer = viewer.layers[name]
        np.asarray(layer.data[0])  # what is out of sight is read now
        wait_until(lambda: not desk.link.slides.is_busy)
        apart = told_apart(codes[labels.index].astype(np.uint8), labels.index)
        np.testing.assert_array_equal(np.asarray(layer.data[0]), apart)
        np.testing.assert_array_equal(apart // CODES, codes[labels.index])
        (y0, x0), (y1, x1) = layer.corner_pixels
        shown = layer._slice.image.raw
        np.testing.assert_array_equal(shown, apart[y0 : y1 + 1, x0 : x1 + 1])


def test_looks_are_followed(desk, viewer, zoom_to):
    zoom_to(NEAR)
    layer = viewer.layers[on_slide("reference")]
    assert outlines_of(layer, viewer).are_lines
    assert layer.contour == 1
    outlined = viewer.screenshot(flash=False)
    desk.state.look = Look(ColourBy.CLASS, Display.FILL)
    assert layer.contour == 0
    filled = viewer.screenshot(flash=False)
    assert layer._slice.image.raw.max() // CODES <= CLASSES + 4
    desk.state.look = Look(ColourBy.CLASS, Display.HIDDEN)
    assert names_of_visible(viewer) == ["image"]
    tissue = viewer.screenshot(flash=False)
    assert 0 < (outlined != tissue).any(-1).sum() < (filled != tissue).any(-1).sum()
    zoom_to(FAR)
    assert names_of_visible(viewer) == ["image"]


def test_without_lines_outlines_are_those_of_pixels(desk, viewer, zoom_to, monkeypatch):
    zoom_to(NEAR)
    layer = viewer.layers[on_slide("reference")]
    desk.state.look = Look(ColourBy.STATUS, Display.FILL)
    filled = np.count_nonzero(layer._slice.image.raw)
    monkeypatch.setattr(LayerOutlines, "are_lines", property(lambda _self: False))
    desk.state.look = Look()
    assert layer.contour == 0
    assert 0 < np.count_nonzero(layer._slice.image.raw) < filled


def test_an_eye_that_was_closed_stays_closed(desk, viewer, zoom_to):
    zoom_to(NEAR)
    viewer.layers[on_slide("reference")].visible = False
    zoom_to(FAR)
    zoom_to(NEAR)
    assert names_of_visible(viewer) == ["image", on_slide(desk.session.team)]
    desk.state.look = Look(ColourBy.STATUS, Display.FILL)
    assert on_slide("reference") in names_of_visible(viewer)


def test_a_click_selects_an_object_and_rings_it(desk, viewer, zoom_to, slide_cohort):
    outcomes = desk.session.shown.outcomes
    pair = pair_shown(desk, slide_cohort)
    row = int(np.flatnonzero(outcomes.reference.partner < 0)[0])
    y, x = np.argwhere(pair.reference.index == row + 1)[0]
    zoom_to(NEAR, (y, x))
    click(canvas_of(viewer), on_canvas(viewer, y, x, layer="image"))
    chosen = desk.session.selection
    assert (chosen.side, chosen.row) == (Side.REFERENCE, row)
    assert desk.panels.objects.selected() == (Side.REFERENCE, row)
    assert f"reference {outcomes.reference.ids[row]}" in desk.panels.title.selected.text()
    rings = viewer.layers["selected object"]
    assert rings.visible
    assert rings.data.any()
    pointed = desk.link.scene.objects_at((y, x))
    assert f"reference {outcomes.reference.ids[row]}" in desk.link.pointer.hover_text(pointed)
    assert desk.link.scene.objects_at((-5, 3)) == []
    desk.session.select(None)
    assert not rings.visible


def test_a_square_tells_its_figures_and_is_entered(desk, viewer, zoom_to):
    zoom_to(FAR)
    view = desk.link.slides
    assert "objects" in view.place_text((350, 500))
    assert view.place_text((-1, 500)) == ""
    assert desk.link.scene.objects_at((350, 500)) == []
    click(canvas_of(viewer), on_canvas(viewer, 350, 500, layer="image"))
    np.testing.assert_allclose(viewer.scene.camera.center[-2:], (350, 500), atol=10)
    assert not view.is_far
    desk.link.scene.follow_zoom()
    assert view.place_text((350, 500)) == ""
    assert not view.enter((350, 500))


def test_the_next_failure_is_gone_to_from_afar(desk, viewer, zoom_to):
    zoom_to(FAR)
    desk.link.failures.step()
    chosen = desk.session.selection
    own = desk.session.shown.outcomes.side(chosen.side)
    y, x = own.centroid_yx_px[chosen.row]
    np.testing.assert_allclose(viewer.scene.camera.center[-2:], (y, x), atol=12)
    assert not desk.link.slides.is_far
    desk.link.failures.step()
    assert desk.session.selection != chosen


def test_where_a_slide_has_no_failure_to_go_to_it_is_said(desk, viewer):
    canvas = canvas_of(viewer)
    desk.panels.objects.set_filter(ObjectFilter(statuses=frozenset({"TP"})))
    QTest.keyClick(canvas, Qt.Key.Key_N)
    assert desk.panels.title.selected.text() == NONE_LISTED
    desk.panels.objects.show_outcomes(None)
    desk.panels.objects.say_when_empty(slide_texts.STOPPED)
    QTest.keyClick(canvas, Qt.Key.Key_N)
    assert desk.panels.title.selected.text() == slide_texts.STOPPED
    assert desk.session.selection is None
    desk.panels.objects.say_when_empty()
    desk.panels.objects.show_outcomes(desk.session.shown.outcomes)


def test_only_listed_objects_are_drawn_where_that_was_asked_for(desk, viewer, zoom_to):
    zoom_to(NEAR)
    table = desk.panels.objects
    before = np.count_nonzero(viewer.layers[on_slide("reference")]._slice.image.raw)
    table.others.choose(Others.HIDDEN)
    table.set_filter(ObjectFilter(statuses=frozenset({"FN"})))
    after = viewer.layers[on_slide("reference")]._slice.image.raw
    assert 0 < np.count_nonzero(after) < before


@pytest.mark.long
def test_other_settings_and_teams(desk, viewer, wait_until, slide_cohort):
    before = desk.session.shown
    desk.link.request(settings=desk.session.settings.replaced(iou_threshold=0.8))
    wait_until(lambda: desk.is_settled)
    assert desk.session.shown.table is before.table
    assert desk.session.shown.counts is not before.counts
    desk.session.set_team(TEAMS[1])
    wait_until(lambda: desk.is_settled)
    assert TEAMS[1] in desk.session.snapshot.results
    names = [layer.name for layer in viewer.layers if layer.name != "selected object"]
    assert names == ["image", on_slide("reference"), on_slide(TEAMS[1]), FAILURES]
    pair = slide_cohort[1][SLIDE, TEAMS[1]]
    assert len(desk.session.shown.outcomes.prediction) == len(pair.prediction)


@pytest.mark.long
@pytest.mark.parametrize("_time", [1, 2])  # with layers that are new, and with those put away
def test_from_slide_to_region_and_back(desk, viewer, wait_until, _time):
    desk.panels.navigator.places.choose(SMALL)
    wait_until(lambda: desk.is_settled)
    assert desk.link.scene.alternative is None
    assert desk.session.evaluation is not None
    assert "reference" in names_of_visible(viewer)
    assert viewer.layers["reference"].data.shape == SHAPES[SMALL]
    assert names_of_visible(viewer) == ["image", "reference", desk.session.team]
    assert desk.panels.title.slide.text() == ""
    desk.panels.navigator.places.choose(SLIDE)
    wait_until(lambda: desk.is_settled)
    assert desk.link.scene.alternative is desk.link.slides
    team = desk.session.team
    assert names_of_visible(viewer) == ["image", on_slide("reference"), on_slide(team)]
    assert viewer.layers[on_slide("reference")].data[0].shape == SHAPES[SLIDE]


@pytest.mark.long
def test_an_evaluation_is_stopped_and_taken_up_again(desk, viewer, wait_until):
    desk.link.request(region=SMALL)
    wait_until(lambda: desk.is_settled)
    bar = desk.panels.title.slide

    def stop(busy):
        if busy:
            desk.link.loader.stop()

    desk.link.loader.busy_changed.connect(stop)
    desk.link.request(region=SLIDE)
    wait_until(lambda: desk.is_settled)
    assert desk.session.shown is None
    assert names_of_visible(viewer) == ["image"]
    assert shown_text(bar.button) == EVALUATE
    assert "not evaluated" in desk.panels.title.title()
    desk.link.loader.busy_changed.disconnect(stop)
    bar.button.click()
    wait_until(lambda: desk.is_settled)
    assert desk.session.shown is not None
    assert shown_text(bar.button) == ""


def test_the_bar_says_how_far_it_is(desk):
    bar = desk.panels.title.slide
    desk.link.loader.progressed.emit(0.25, "counting overlaps")
    assert bar.progress_text() == "counting overlaps %p%"
    assert shown_text(bar.button) == STOP
    bar.show_done()
    assert bar.progress_text() == ""
    bar.show_nothing()
    assert bar.text() == ""


def test_while_a_slide_is_evaluated_panels_say_how_far_it_is(desk):
    link, panels = desk.link, desk.panels
    panels.metrics.show_evaluation(None)
    link.loader.progressed.emit(0.25, "counting overlaps")
    assert "counting overlaps, 25%" in shown_text(panels.metrics.message)
    link.presenter(SlidePresenter).say_when_empty(None)
    assert "Choose another region" in shown_text(panels.metrics.message)


@pytest.mark.long
def test_panels_that_need_a_region_in_memory_say_what_to_do_instead(desk, wait_until):
    parts = {part.title: part for part in desk.parts}
    parts["Failures"].widget.scope.choose(Scope.REGION)  # else the small region's are shown
    said = {}
    for title in ("Failures", "Teams", "Groups", "Ambiguous"):
        desk.raise_part(parts[title])
        panel = parts[title].widget
        label = panel.hint if title == "Failures" else panel.headline
        wait_until(lambda label=label: "whole slide" in shown_text(label))
        said[title] = shown_text(label)
    assert len(set(said.values())) == len(said)
    desk.raise_part(parts["Review"])
    wait_until(lambda: "whole slides" in parts["Review"].widget.object_title.text())
    desk.raise_part(parts["Edits"])
    wait_until(lambda: "cannot be edited" in parts["Edits"].widget.state.text())


@pytest.mark.long
def test_excluded_areas_are_hatched_near_and_from_afar(desk, zoom_to, wait_until):
    mask = np.zeros(SHAPES[SLIDE], bool)
    mask[100:300, 200:500] = True
    view = desk.link.slides
    view._fill_area(TiledArea(mask.shape, lambda box: mask[box[0] : box[2], box[1] : box[3]]))
    view.apply_look(desk.link.scene.look)
    layer = view.layer(AMBIGUOUS)
    for zoom in (NEAR, FAR):
        zoom_to(zoom, (200, 350))
        assert layer.visible
        wait_until(lambda: not view.is_busy)
        assert np.asarray(layer.data[0]).any()
    desk.link.request(region=SMALL)
    wait_until(lambda: desk.is_settled)
    assert not layer.visible
    desk.link.request(region=SLIDE)
    wait_until(lambda: desk.is_settled)
    assert not layer.visible  # there is none in the file


@pytest.mark.long
def test_the_uncertain_border_is_drawn_near(desk, slide_cohort, zoom_to, wait_until):
    desk.link.request(settings=desk.session.protocol.replaced(zone_px=2))
    wait_until(lambda: desk.is_settled)
    evaluation, view = desk.session.shown, desk.link.slides
    layer = view.layer(ZONE)
    zoom_to(NEAR, (200, 350))
    assert layer.visible
    np.asarray(layer.data[0])
    wait_until(lambda: not view.is_busy)
    zone = Zone.of(evaluation.table, evaluation.settings)
    expected = zone.mask(pair_shown(desk, slide_cohort), (0, 0, *SHAPES[SLIDE]))
    np.testing.assert_array_equal(np.asarray(layer.data[0]), expected)
    zoom_to(FAR, (200, 350))
    assert not layer.visible
    desk.link.request(settings=desk.session.protocol)
    wait_until(lambda: desk.is_settled)
    zoom_to(NEAR, (200, 350))
    assert not layer.visible


def test_what_cannot_be_read_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(slide_view, "show_error", told.append)
    slide_view._tell(OSError("gone"))
    assert told == ["gone; objects there are not drawn"]


@pytest.mark.long
def test_the_scale_names_every_colour():
    text = scale_text()
    assert text.count("■") == len(SHARE_COLOURS)
