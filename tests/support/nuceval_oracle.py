"""NucEval's figures of one label pair: masks painted one by one, as ``NUCEVAL.md`` describes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, binary_erosion

Masks = list[NDArray[np.bool_]]
E = 1e-6
FIGURES = ("dice", "aji", "dq", "sq", "pq")


def element(width: int) -> NDArray[np.bool_]:
    """Return which pixels (dy, dx) are at most a width away, as OpenCV's ellipse has them."""
    lines = range(-width, width + 1)
    return np.array(
        [[abs(dx) <= round(np.sqrt(width**2 - dy**2)) for dx in lines] for dy in lines], bool
    )


def masks_of(labels: NDArray[np.integer]) -> Masks:
    return [labels == id_ for id_ in np.unique(labels) if id_]


def without_area(masks: Masks, area: NDArray[np.bool_], share: float) -> Masks:
    kept = [mask for mask in masks if (mask & area).sum() / mask.sum() <= share]
    return [mask & ~area for mask in kept if (mask & ~area).any()]


def zone_of(masks: Masks, width: int) -> NDArray[np.bool_]:
    zone = np.zeros_like(masks[0])
    near = element(width)
    for mask in masks:
        zone |= binary_dilation(mask, near) & ~binary_erosion(mask, near, border_value=1)
    return zone


def sides_left(
    sides: Sequence[NDArray[np.integer]],
    area: NDArray[np.bool_] | None,
    share: float | None,
    width: int,
) -> list[Masks]:
    """Return the masks of both sides that are left of label images (y, x)."""
    left = [masks_of(labels) for labels in sides]
    if area is not None and share is not None:
        left = [without_area(masks, area, share) for masks in left]
    if width and left[0]:
        zone = zone_of(left[0], width)
        left = [[mask & ~zone for mask in masks if (mask & ~zone).any()] for masks in left]
    return left


def figures(own: Masks, other: Masks) -> dict[str, float]:
    """Return the figures of the masks that are left."""
    if not own or not other:
        return dict.fromkeys(FIGURES, float(not own and not other))
    covered = [np.any(masks, axis=0) for masks in (own, other)]
    dice = 2 * (covered[0] & covered[1]).sum() / (covered[0].sum() + covered[1].sum() + E)
    shared = union = true = summed = 0.0
    used = set()
    for a in own:
        best, best_ratio = None, 0.0
        for j, b in enumerate(other):
            both, either = (a & b).sum(), (a | b).sum()
            if both / (either + E) > best_ratio:
                best, best_ratio = j, both / (either + E)
            if 2 * both > either:
                true, summed = true + 1, summed + both / either
        if best is None:
            union += a.sum()
        else:
            shared, union = shared + (a & other[best]).sum(), union + (a | other[best]).sum()
            used.add(best)
    union += sum(b.sum() for j, b in enumerate(other) if j not in used)
    dq = true / (true + (len(other) - true) / 2 + (len(own) - true) / 2 + E)
    sq = summed / (true + E)
    return {"dice": dice, "aji": shared / (union + E), "dq": dq, "sq": sq, "pq": dq * sq}
