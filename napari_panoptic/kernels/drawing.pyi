from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_OBJECTS: int
HATCH_SPACING_PX: int
MARK: int
MARK_EDGE: int

def outline_pixels(labels: NDArray[Any], thickness: int) -> NDArray[Any]: ...
def outlines(index: NDArray[np.int32], widths: NDArray[np.int64]) -> NDArray[np.uint16]: ...
def dash(
    picture: NDArray[np.uint8],
    index: NDArray[np.int32],
    values: NDArray[np.int64],
    boxes: NDArray[np.int64],
    reach: int,
) -> None: ...
def draw_cell(
    reference: NDArray[np.uint16],
    prediction: NDArray[np.int32],
    area: NDArray[np.bool_],
    has_area: bool,
    width_px: int,
    n_reference: int,
    n_prediction: int,
) -> NDArray[np.uint16]: ...
def paint_ellipses(
    boxes: NDArray[np.int32],
    codes: NDArray[np.uint8],
    factor: float,
    top: int,
    left: int,
    width_px: int,
    picture: NDArray[np.uint8],
) -> None: ...
