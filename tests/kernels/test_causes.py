"""The causes that the kernel assigns are those of the vocabulary."""

from __future__ import annotations

from napari_panoptic.kernels import causes
from napari_panoptic.values.vocabulary import CAUSE_CODE, Cause


def test_each_cause_has_the_code_of_the_vocabulary() -> None:
    codes = {cause: getattr(causes, cause.name) for cause in Cause if cause is not Cause.NONE}
    assert codes | {Cause.NONE: 0} == CAUSE_CODE
