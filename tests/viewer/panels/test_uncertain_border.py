"""The uncertain border in a window: its band, its legend entry, and the objects it decides."""

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.display.explanation import explain_border, plain_text
from napari_panoptic.nuclei.zone import Zone
from napari_panoptic.values.vocabulary import SIDES, Side
from napari_panoptic.viewer.layers.owned import IMAGE, REFERENCE, ZONE
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.legend import BORDER, NONE_DECIDED
from napari_panoptic.viewer.panels.object_card import ObjectPresenter
from tests.viewer.finding import handle_events

R = Side.REFERENCE
STRICT_IOU = 0.8
"""Close to the overlap of many objects of the sample, which the border then decides."""


@pytest.fixture(scope="module")
def shown_parts():
    """Show the panels of the object and of the gallery."""
    return (ObjectPresenter, FailuresPresenter)


class OtherView:
    """A view in place of the objects that draws nothing."""

    keeps = frozenset({IMAGE})

    def objects_at(self, position, viewbox):  # noqa: ARG002
        return []

    def apply_look(self, look):
        """Draw nothing."""

    def emphasise(self, selection):
        """Mark nothing."""


@pytest.fixture
def set_zone(desk, wait_until):
    """Give a function that sets the zone, and waits until everything is shown."""

    def set_zone(zone_px):
        wanted = desk.session.protocol.replaced(zone_px=zone_px, iou_threshold=STRICT_IOU)
        desk.link.request(settings=wanted)
        wait_until(lambda: desk.is_settled)

    return set_zone


def expected_band(desk):
    found = desk.session.evaluation
    zone = Zone.of(found.table, found.settings)
    return zone.mask(found.pair, (0, 0, *found.pair.reference.shape))


def test_the_band_follows_settings_regions_and_edits(desk, viewer, set_zone, wait_until):
    assert ZONE not in viewer.layers
    assert BORDER not in desk.panels.legend.chips
    set_zone(1)
    layer = viewer.layers[ZONE]
    assert layer.visible
    assert viewer.layers.index(layer) < viewer.layers.index(viewer.layers[REFERENCE])
    thin = np.array(layer.data)
    np.testing.assert_array_equal(thin, expected_band(desk))
    set_zone(3)
    np.testing.assert_array_equal(layer.data, expected_band(desk))
    assert layer.data.sum() > thin.sum()

    first = desk.session.wanted_region
    other = next(r.name for r in desk.session.cohort.regions if r.name != first)
    desk.link.request(region=other)
    wait_until(lambda: desk.is_settled)
    np.testing.assert_array_equal(layer.data, expected_band(desk))

    before = np.array(layer.data)
    desk.session.edit(R, *np.nonzero(np.ones((9, 9))), 0)
    wait_until(lambda: desk.is_settled)
    desk.session.edit(R, *(np.nonzero(np.ones((9, 9))) + np.array([[3], [3]])), 1)
    wait_until(lambda: desk.is_settled)
    assert not np.array_equal(layer.data, before)
    np.testing.assert_array_equal(layer.data, expected_band(desk))
    desk.session.discard_edits()
    wait_until(lambda: desk.is_settled)
    np.testing.assert_array_equal(layer.data, before)

    set_zone(0)
    assert not layer.visible
    assert BORDER not in desk.panels.legend.chips


def test_the_legend_switches_it_off_and_on(desk, viewer, set_zone):
    switch = desk.panels.legend.view.zone
    assert not switch.isVisible()
    set_zone(2)
    assert switch.isVisible()
    assert switch.isChecked()
    layer = viewer.layers[ZONE]
    switch.trigger()
    assert not layer.visible
    set_zone(3)
    assert not layer.visible
    switch.trigger()
    assert layer.visible
    np.testing.assert_array_equal(layer.data, expected_band(desk))


def test_the_objects_it_decides_are_put_into_gallery_and_queue(desk, set_zone, wait_until):
    set_zone(3)
    evaluation, entry = desk.session.evaluation, desk.panels.legend.chips[BORDER]
    decided = {side: set(np.flatnonzero(evaluation.decided_by_zone(side))) for side in SIDES}
    counts = [str(len(decided[side])) for side in SIDES]
    assert entry.text() == f"{BORDER} {' | '.join(dict.fromkeys(counts))}"
    assert decided[R]
    QTest.mouseClick(entry, Qt.MouseButton.LeftButton)
    wait_until(lambda: desk.is_settled)
    names = desk.link.failures.only.names
    assert {evaluation.outcomes.side(R).row_of(n.id) for n in names if n.side is R} == decided[R]
    assert len(desk.presenter(FailuresPresenter).failures) == len(names)
    assert f"{len(names)} chosen: decided by the border" in desk.panels.queue.limit.text()
    walked = set()
    for _ in names:
        desk.link.failures.step()
        wait_until(lambda: desk.is_settled)
        walked.add((desk.session.selection.side, desk.session.selection.id))
    assert walked == {(name.side, name.id) for name in names}
    set_zone(2)
    assert desk.link.failures.only is None


def test_nothing_is_chosen_where_it_decides_nothing(desk, set_zone, monkeypatch):
    told = []
    monkeypatch.setattr("napari_panoptic.viewer.panels.legend.show_info", told.append)
    set_zone(1)
    evaluation = desk.session.evaluation
    monkeypatch.setattr(
        type(evaluation),
        "decided_by_zone",
        lambda self, side: np.zeros(len(self.outcomes.side(side)), np.bool_),
    )
    QTest.mouseClick(desk.panels.legend.chips[BORDER], Qt.MouseButton.LeftButton)
    handle_events()
    assert told == [NONE_DECIDED]
    assert desk.link.failures.only is None


def test_the_card_names_the_pixels_and_both_overlaps(desk, set_zone):
    set_zone(2)
    session, panel = desk.session, desk.presenter(ObjectPresenter).panel
    evaluation = session.evaluation
    row = int(np.flatnonzero(evaluation.outcomes.reference.partner >= 0)[0])
    session.select_row(R, row)
    total = int(evaluation.judged_whole.reference.area[row])
    inside = total - int(evaluation.outcomes.reference.area_px[row])
    words = plain_text(explain_border(evaluation, R, row))
    assert words.startswith(f"Of its {total} px {inside} lie in the uncertain border; IoU ")
    assert words.endswith(f", {evaluation.outcomes.reference.iou[row]:.3f} with a zone of 2 px.")
    assert words in panel.card.text
    set_zone(0)
    session.select_row(R, row)
    assert "uncertain border" not in panel.card.text
    assert explain_border(session.evaluation, R, row) == ()


def test_an_alternative_view_hides_it_and_it_comes_back_as_it_is_then(desk, viewer, set_zone):
    set_zone(1)
    layer = viewer.layers[ZONE]
    other = OtherView()
    desk.link.scene.activate(other)
    assert not layer.visible
    set_zone(2)
    assert not layer.visible
    desk.link.scene.deactivate(other)
    assert layer.visible
    np.testing.assert_array_equal(layer.data, expected_band(desk))
    desk.link.scene.activate(other)
    set_zone(0)
    desk.link.scene.deactivate(other)
    assert not layer.visible
