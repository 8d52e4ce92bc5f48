import numpy as np
from numpy.typing import NDArray

UNKNOWN: int

def classify(
    pixels: NDArray[np.uint8], codes: NDArray[np.int32], values: NDArray[np.uint8]
) -> NDArray[np.uint8]: ...
def components(class_image: NDArray[np.uint8]) -> NDArray[np.int32]: ...
def counted_components(
    class_image: NDArray[np.uint8],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
def half_widths(radius: int) -> NDArray[np.int64]: ...
def grow(
    labels: NDArray[np.int32],
    class_image: NDArray[np.uint8],
    last: NDArray[np.int32],
    widths: NDArray[np.int64],
) -> tuple[NDArray[np.int32], int]: ...
def shrink(labels: NDArray[np.int32], widths: NDArray[np.int64]) -> NDArray[np.int32]: ...
