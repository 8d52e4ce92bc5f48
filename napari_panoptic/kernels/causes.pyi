from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

AMBIGUOUS_SPILL: int
SPLIT: int
MERGED: int
FRAGMENT: int
MERGER: int
DUPLICATE: int
TOO_SMALL: int
TOO_LARGE: int
DISPLACED: int
MISSED: int
SPURIOUS: int

class OverlappingPairs(NamedTuple):
    reference: NDArray[np.int32]
    prediction: NDArray[np.int32]
    shared: NDArray[np.int64]
    iou: NDArray[np.float64]

class Objects(NamedTuple):
    area: NDArray[np.int64]
    takes_part: NDArray[np.bool_]
    is_failure: NDArray[np.bool_]
    is_spill: NDArray[np.bool_]

def causes(
    pairs: OverlappingPairs, reference: Objects, prediction: Objects, near_iou: float
) -> tuple[NDArray[np.int8], NDArray[np.int8]]: ...
