import numpy as np
from numpy.typing import NDArray

DEGENERATE: int
CROSSING: int

Flat = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64], bool]
Window = tuple[int, int, int, int]

def draw(
    flat: Flat,
    chosen: NDArray[np.int64],
    labels: NDArray[np.int32],
    window: Window,
    image: NDArray[np.int32],
) -> None: ...
def draw_counted(
    flat: Flat,
    chosen: NDArray[np.int64],
    labels: NDArray[np.int32],
    window: Window,
    image: NDArray[np.int32],
    visible: NDArray[np.int64],
    claimed_twice: NDArray[np.bool_],
) -> int: ...
def draw_where_free(
    flat: Flat, chosen: NDArray[np.int64], labels: NDArray[np.int32], image: NDArray[np.int32]
) -> NDArray[np.bool_]: ...
def have_pixels(
    flat: Flat, chosen: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.bool_]: ...
def bounds(flat: Flat) -> NDArray[np.int64]: ...
def odd_shapes(
    xy: NDArray[np.float64], ring_starts: NDArray[np.int64], object_starts: NDArray[np.int64]
) -> NDArray[np.uint8]: ...
