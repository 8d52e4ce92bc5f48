"""The words for causes are complete: a cause has a side and a meaning."""

import pytest

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.values.vocabulary import CAUSE_MEANINGS, CAUSES_OF, Cause, Side, of_side
from tests.support import oracle


def test_causes_of_a_side_are_those_of_the_oracle() -> None:
    for side, status in ((Side.REFERENCE, oracle.FN), (Side.PREDICTION, oracle.FP)):
        assert sorted(CAUSES_OF[side]) == sorted(oracle.CAUSES[status])


def test_causes_have_a_side_and_a_meaning() -> None:
    assert {cause for causes in CAUSES_OF.values() for cause in causes} == {*Cause} - {Cause.NONE}
    assert all(CAUSE_MEANINGS[cause].endswith(".") for cause in Cause if cause is not Cause.NONE)


@pytest.mark.parametrize("side", [Side.REFERENCE, "reference"])
def test_a_side_may_be_named_by_a_string(side: str) -> None:
    assert of_side(side, 1, 2) == 1
    assert of_side(side, *Side) is Side.REFERENCE


@pytest.mark.parametrize("side", ["Reference", "annotation", "", None, 0])
def test_what_is_no_side_is_refused(side: object) -> None:
    with pytest.raises(SettingsError, match="expected the side 'reference' or 'prediction'"):
        of_side(side, 1, 2)  # type: ignore[arg-type]
