"""The words for causes are complete: a cause has a side and a meaning."""

from napari_panoptic.values.vocabulary import CAUSE_MEANINGS, CAUSES_OF, Cause, Side
from tests.support import oracle


def test_causes_of_a_side_are_those_of_the_oracle() -> None:
    for side, status in ((Side.REFERENCE, oracle.FN), (Side.PREDICTION, oracle.FP)):
        assert sorted(CAUSES_OF[side]) == sorted(oracle.CAUSES[status])


def test_causes_have_a_side_and_a_meaning() -> None:
    assert {cause for causes in CAUSES_OF.values() for cause in causes} == {*Cause} - {Cause.NONE}
    assert all(CAUSE_MEANINGS[cause].endswith(".") for cause in Cause if cause is not Cause.NONE)
