"""The colours of classes are none of those of failures."""

import itertools

import numpy as np
import pytest
from qtpy.QtCore import QSize, Qt

from napari_panoptic.display.object_layers import object_lut
from napari_panoptic.display.palette import STATUS_COLOURS, class_colours
from napari_panoptic.display.slide_layers import code_colours
from napari_panoptic.display.styles import FAILURES, ColourBy
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.panels.legend import class_chips
from napari_panoptic.viewer.panels.metrics import MetricsPanel
from tests.support.small_pairs import SCHEME, four_fates
from tests.support.vision import VISIONS, difference

pytestmark = pytest.mark.long

LEAST, LEAST_OF_CLASSES = 20.0, 10.0
MOST = 8
"""Classes with a colour of their own."""


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("status", FAILURES)
def test_no_class_looks_like_a_failure(status, vision):
    for colour in class_colours(MOST):
        assert difference(colour, STATUS_COLOURS[status], vision) >= LEAST


@pytest.mark.parametrize("status", [Status.TP, Status.IGNORED])
def test_no_class_looks_like_another_status(status):
    for colour in class_colours(MOST):
        assert difference(colour, STATUS_COLOURS[status], "normal") >= LEAST


@pytest.mark.parametrize("vision", VISIONS)
def test_classes_can_be_told_apart(vision):
    for one, other in itertools.combinations(class_colours(MOST), 2):
        assert difference(one, other, vision) >= LEAST_OF_CLASSES


def test_image_legend_and_tables_show_these_colours(qtbot):
    found = four_fates()
    expected = class_colours(len(SCHEME.names))
    labels = found.pair.reference
    lut = object_lut(labels, found.outcomes.reference, SCHEME, ColourBy.CLASS)
    drawn = np.rint(lut[1 : len(labels) + 1, :3] * 255).astype(int).tolist()
    assert drawn == [list(expected[number - 1]) for number in labels.class_index]
    chips = class_chips({side: found.outcomes.side(side) for side in Side}, SCHEME)
    assert [chip.colour for chip in chips] == list(expected)
    on_slides = np.rint(code_colours(SCHEME)[:, :3] * 255).astype(int).tolist()
    assert all(list(colour) in on_slides for colour in expected)
    panel = MetricsPanel()
    qtbot.addWidget(panel)
    panel.show_evaluation(found, SCHEME)
    for table in (panel.by_class, panel.confusion):
        icon = (
            table.model()
            .index(0, 0)
            .data(Qt.ItemDataRole.DecorationRole)
            .pixmap(QSize(12, 12))
            .toImage()
        )
        assert icon.pixelColor(6, 6).getRgb()[:3] == expected[0]


def test_files_keep_their_colours():
    assert MONUSAC_CLASSES.colours == ((255, 0, 0), (255, 255, 0), (0, 0, 255), (0, 255, 0))
