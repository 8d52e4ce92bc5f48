"""The panel of edits by itself."""

import math
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

from napari_panoptic import evaluate_pair
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.saving import read_objects
from napari_panoptic.live.autosaves import EditedPart
from napari_panoptic.tables.figures import signed as signed_ratio
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit.inputs import Choice
from napari_panoptic.viewer.kit.questions import FolderDialog
from napari_panoptic.viewer.panels.edits.files import EditsFiles
from napari_panoptic.viewer.panels.edits.panel import EditsPanel, difference_rows, signed
from tests.support.small_pairs import SCHEME, all_found, four_fates

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


def test_ignored_objects_of_both_sides_are_counted_as_in_the_metrics():
    rows = {
        row[0].text: [cell.text for cell in row[1:]] for row in difference_rows(*[ignored()] * 2)
    }
    assert rows["ignored"] == ["3", "3", "0"]
    assert rows["FP"] == ["1", "1", "0"]
    rows = difference_rows(four_fates(), all_found())
    assert next(row for row in rows if row[0].text == "ignored")[3].text == "−1"


def ignored():
    """Make a pair with one ignored object of the annotation, two of the team, and one FP."""
    reference, prediction = np.zeros((2, 40, 40), np.int64)
    reference[2:8, 2:8] = 1
    prediction[12:18, 2:8], prediction[22:28, 2:8], prediction[2:8, 30:36] = 1, 2, 3
    ambiguous = np.zeros((40, 40), bool)
    ambiguous[:, :20] = True
    return evaluate_pair(reference, prediction, ambiguous=ambiguous)


class FakeEdits:
    """What is drawn in region `a/b`: the annotation, and teams whose names meet in file names."""

    revision = 1

    def __init__(self):
        self.sizes = {"": 3, "annotation": 4, "Annotation": 5, "a:b": 6, "a?b": 7}
        self.unsaved = {EditedPart("a/b", side_of(team), team or None) for team in self.sizes}

    def unsaved_objects(self):
        return [
            Objects(square_of(size), side_of(team), "a/b", team, None, SCHEME, None)
            for team, size in self.sizes.items()
        ]

    def last_change(self, _part):
        return 1

    def note_saved(self, parts):
        self.unsaved -= set(parts)


def side_of(team):
    return Side.PREDICTION if team else Side.REFERENCE


def square_of(size):
    image = np.zeros((20, 20), np.int32)
    image[:size, :size] = 1
    return LabelImage.from_array(image, {1: "Round"}, SCHEME.names)


def test_all_edits_are_saved_in_files_of_their_own(tmp_path, sample_cohort):
    edits, session = FakeEdits(), SimpleNamespace(cohort=sample_cohort)
    files = EditsFiles(session, edits, None, None, lambda: None)
    with patch.object(FolderDialog, "ask", return_value=str(tmp_path)):
        assert files.save_all()
    saved = [read_objects(path, SCHEME, (20, 20)).labels for path in tmp_path.glob("*.tif")]
    areas = sorted(np.count_nonzero(labels.index) for labels in saved)
    assert areas == [size**2 for size in edits.sizes.values()]
    # Also where file names ignore case.
    assert len({path.name.casefold() for path in tmp_path.iterdir()}) == 2 * len(areas)


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (0.5, 0.4998, "0.000"),
        (0.5, 0.5002, "0.000"),
        (0.5, 0.4, "−0.100"),
        (0.4, 0.5, "+0.100"),
        (0.5, math.nan, "–"),
    ],
)
def test_what_is_rounded_to_zero_has_no_sign(before, now, text):
    assert signed("pq", before, now) == text
    assert signed_ratio(now - before) == text


def test_the_annotation_is_edited_unless_the_team_is_chosen(qtbot):
    panel = EditsPanel()
    qtbot.addWidget(panel)
    sides = [Choice(Side.REFERENCE, "annotation"), Choice(Side.PREDICTION, "merger")]
    assert panel.chosen_side() is Side.REFERENCE
    panel.side.show_among(sides, panel.chosen_side())
    assert panel.chosen_side() is Side.REFERENCE
    panel.side.show_choice(Side.PREDICTION)
    assert panel.chosen_side() is Side.PREDICTION
