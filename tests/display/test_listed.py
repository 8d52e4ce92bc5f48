import numpy as np
import pytest

from napari_panoptic.display.listed import DIMMED_ALPHA, ListedObjects, Others
from napari_panoptic.display.object_rows import ObjectFilter, ObjectRows
from napari_panoptic.display.styles import status_lut
from napari_panoptic.values.vocabulary import Side
from tests.support.small_pairs import four_fates


def listed(wanted, others):
    outcomes = four_fates().outcomes
    rows = ObjectRows.from_outcomes(outcomes)
    order = np.flatnonzero(rows.let_through(wanted))
    return ListedObjects.from_order(rows, order, outcomes, others)


def test_partners_stand_out_with_the_listed_objects():
    found = listed(ObjectFilter(sides=frozenset({"ref"})), Others.DIMMED)
    assert found.ids[Side.REFERENCE].tolist() == [11, 12, 13, 14]
    assert found.ids[Side.PREDICTION].tolist() == [21, 22]


@pytest.mark.parametrize(("others", "share"), [(Others.DIMMED, DIMMED_ALPHA), (Others.HIDDEN, 0)])
def test_others_are_fainter_and_the_table_given_stays(others, share):
    evaluation = four_fates()
    found = listed(ObjectFilter(statuses=frozenset({"FN"})), others)
    lut = status_lut(evaluation.outcomes.reference.status)
    before = lut.copy()
    faded = found.faded(lut, Side.REFERENCE, evaluation.pair.reference)
    np.testing.assert_allclose(faded[[1, 2, 4], 3], before[[1, 2, 4], 3] * share)
    np.testing.assert_array_equal(faded[3], before[3])
    np.testing.assert_array_equal(lut, before)


def test_nothing_listed_leaves_nothing_standing_out():
    found = listed(ObjectFilter(statuses=frozenset()), Others.HIDDEN)
    assert not found.stands_out(Side.PREDICTION, four_fates().pair.prediction).any()
