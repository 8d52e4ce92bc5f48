import numpy as np
from numpy.typing import NDArray

def walk_borders(
    padded: NDArray[np.int32], joining: bool, by_pixel: bool
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]: ...
def chamfer(
    corners: NDArray[np.int32], start: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
def cut_loops(
    vertices: NDArray[np.int32], start: NDArray[np.int64], earlier: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]: ...
def name_line_pixels(
    xy: NDArray[np.int32], ring_starts: NDArray[np.int64], steps: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
