from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

AREA: int
SUM_Y: int
SUM_X: int
VOID_AREA: int
VOID_SUM_Y: int
VOID_SUM_X: int
Y0: int
X0: int
Y1: int
X1: int
FIRST: int
FAR: int

class Pairs(NamedTuple):
    keys: NDArray[np.int64]
    shared: NDArray[np.int64]
    void_shared: NDArray[np.int64]

def no_pairs() -> Pairs: ...
def pair_keys(
    reference: NDArray[np.integer], prediction: NDArray[np.integer]
) -> NDArray[np.int64]: ...
def pair_rows(keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def blank_rows(n: int) -> NDArray[np.int64]: ...
def count_window(
    reference: NDArray[np.int32],
    prediction: NDArray[np.int32],
    void: NDArray[np.uint8],
    corner_yx: tuple[int, int],
    image_width: int,
    sign: int,
    reference_rows: NDArray[np.int64],
    prediction_rows: NDArray[np.int64],
    zone_only: bool = False,
) -> NDArray[np.int32]: ...
def sum_runs(runs: NDArray[np.int32], n_reference: int, n_prediction: int) -> Pairs: ...
def add_pairs(pairs: Pairs, others: Pairs) -> Pairs: ...
