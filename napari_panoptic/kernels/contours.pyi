import numpy as np
from numpy.typing import NDArray

def contours_in_boxes(
    index: NDArray[np.int32],
    void: NDArray[np.uint8],
    labels: NDArray[np.int32],
    boxes: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def contour_distances(
    reference_start: NDArray[np.int64],
    reference_yx: NDArray[np.int32],
    prediction_start: NDArray[np.int64],
    prediction_yx: NDArray[np.int32],
    pairs: NDArray[np.int64],
    most: int,
    percent: float,
) -> NDArray[np.float64]: ...
