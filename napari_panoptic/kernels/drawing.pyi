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
def nearest_lines(
    labels: NDArray[np.int32],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    xy: NDArray[np.float32],
    start: NDArray[np.int64],
    ring_label: NDArray[np.int32],
    half_widths: NDArray[np.float32],
    reaches: NDArray[np.float32],
) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
def paint_lines(
    picture: NDArray[np.uint8],
    nearest: NDArray[np.int32],
    far: NDArray[np.float32],
    half_widths: NDArray[np.float32],
    gaps: NDArray[np.float32],
    colours: NDArray[np.uint8],
) -> None: ...
