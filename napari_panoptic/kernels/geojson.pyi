import numpy as np
from numpy.typing import NDArray

LARGEST: int
RING: str
CUT_OFF: int
DEPTH: int
INSIDE: int
ARMED: int
LIST_DEPTH: int
ELEMENTS: int

def split_features(
    data: NDArray[np.uint8],
    at: int,
    most_elements: int,
    state: NDArray[np.int64],
    frame: NDArray[np.uint8],
    batch: NDArray[np.uint8],
    xy: NDArray[np.float64],
    ring_sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[int, bool]: ...
def number_at(data: NDArray[np.uint8], at: int) -> tuple[float, int]: ...
