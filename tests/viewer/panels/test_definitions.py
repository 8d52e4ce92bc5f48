"""Where two figures differ by definition, the definition stands beside them."""

import numpy as np
import pytest

from napari_panoptic import evaluate_pair
from napari_panoptic.viewer.panels.legend import LegendStrip
from napari_panoptic.viewer.panels.metrics import MetricsPanel
from napari_panoptic.viewer.panels.navigator import Navigator
from napari_panoptic.viewer.panels.title import TitleStrip
from tests.support.small_pairs import SCHEME

pytestmark = pytest.mark.long


def pair(reference_classes, prediction_classes):
    """Evaluate objects of 8 px in a row; None where a side has none."""
    sides = []
    for classes in (reference_classes, prediction_classes):
        image = np.zeros((10, 10 * len(classes)), np.int64)
        for k, name in enumerate(classes):
            if name is not None:
                image[1:9, 10 * k + 1 : 10 * k + 9] = k + 1
        known = {k + 1: name for k, name in enumerate(classes) if name is not None}
        sides.append((image, known))
    (reference, of_reference), (prediction, of_prediction) = sides
    return evaluate_pair(
        reference,
        prediction,
        reference_classes=of_reference,
        prediction_classes=of_prediction,
        class_names=SCHEME.names,
    )


@pytest.fixture
def panel(qtbot):
    panel = MetricsPanel()
    qtbot.addWidget(panel)
    return panel


def test_fp_by_class_is_split_into_unmatched_and_misclassified(panel, qtbot):
    one, other = SCHEME.names[:2]
    found = pair([one, one, other, None], [one, other, other, one])
    panel.show_evaluation(found, SCHEME)
    legend = LegendStrip()
    qtbot.addWidget(legend)
    legend.show_counts(found.outcomes, found.pair.reference, found.pair.prediction, SCHEME)
    assert legend.chips["FP"].text() == "FP 1"
    by_class = sum(int(row[2]) for row in panel.by_class.texts())
    assert by_class == 2
    said = panel.definitions.text()
    assert said == "By class, FP 2 and FN 1 each include 1 misclassified pair."


def test_an_absent_class_that_counts_is_named(panel):
    one, other = SCHEME.names[:2]
    found = pair([one, one, None], [one, one, other])
    assert found.metrics.pq == 0.5
    panel.show_evaluation(found, SCHEME)
    said = panel.definitions.text()
    assert f"mean over 2 classes; {other}, predicted but not annotated here, counts as 0" in said


def test_nothing_is_said_where_nothing_differs(panel):
    one, other = SCHEME.names[:2]
    panel.show_evaluation(pair([one, other, None], [one, other, one]), SCHEME)
    assert panel.definitions.text() == ""


def test_the_title_says_that_absent_classes_count(qtbot, new_desk):
    figures = new_desk.panels.title.title()
    counts = new_desk.session.shown.counts
    absent = int(((counts.tp + counts.fn == 0) & (counts.fp > 0)).sum())
    assert ("without annotation" in figures) == (absent > 0)
    title = TitleStrip()
    qtbot.addWidget(title)
    title.show_title(["region"], 0.178, "includes 3 classes without annotation")
    assert "includes 3 classes without annotation" in title.title()
    assert "PQ 0.178" in title.figure.text()


def test_the_list_of_teams_names_its_average(qtbot):
    navigator = Navigator()
    qtbot.addWidget(navigator)
    assert "Mean PQ" in navigator.teams.table.titles()
