import numpy as np
from numpy.typing import NDArray

UNCERTAIN: int

def mark_zone(
    labels: NDArray[np.int32],
    void: NDArray[np.uint8],
    kept: NDArray[np.uint8],
    reach: NDArray[np.int32],
    rows: tuple[int, int],
    codes: NDArray[np.uint8],
) -> None: ...
