"""The panel of edits by itself."""

from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.kit.inputs import Choice
from napari_panoptic.viewer.panels.edits.panel import EditsPanel

ARROW_PX = 24


def test_the_sides_to_edit_show_the_name_of_a_team(qtbot):
    panel = EditsPanel()
    qtbot.addWidget(panel)
    panel.side.offer([Choice(Side.PREDICTION, "over-splitter")])
    panel.resize(500, 400)
    with qtbot.waitExposed(panel):
        panel.show()
    side = panel.side
    assert side.width() >= side.fontMetrics().horizontalAdvance(side.currentText()) + ARROW_PX
