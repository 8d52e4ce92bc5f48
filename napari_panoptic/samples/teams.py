"""The four teams of the sample cohort: each fails in a manner of its own.

A team's answer is made from the drawn nuclei, not by an algorithm, so that
every cause of failure is there to be seen, in every version of the libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage.draw import disk as fill_disk
from skimage.morphology import convex_hull_image

from napari_panoptic.nuclei.values.cohort import MONUSAC_CLASSES
from napari_panoptic.samples.scenes import Scene
from napari_panoptic.samples.tissue import ANGLES, Nucleus, Pixels, pixels_inside

_CLASSES = MONUSAC_CLASSES.names


@dataclass(frozen=True, eq=False)
class PredictedObject:
    """An object of a team's answer: its class, and its pixels (rows, columns)."""

    class_name: str
    pixels: Pixels


@dataclass(eq=False)
class _Desk:
    """What a team has at hand while it answers for one region."""

    scene: Scene
    rng: np.random.Generator
    answer: list[PredictedObject] = field(default_factory=list)

    def draw(
        self,
        nucleus: Nucleus,
        *,
        class_name: str | None = None,
        scale: float = 1.0,
        grow: float = 0.0,
    ) -> None:
        """Answer with the outline of a nucleus, slightly off as any answer is."""
        loose = replace(nucleus, radii=nucleus.radii * _uneven(self.rng))
        outline = loose.outline_yx(scale=scale, grow=grow) + self.rng.normal(0, 0.4, 2)
        self.add(class_name or nucleus.class_name, pixels_inside(outline, self.scene.shape))

    def add(self, class_name: str, pixels: Pixels) -> None:
        """Answer with an object, unless it is empty."""
        if len(pixels[0]):
            name = class_name if class_name in _CLASSES else "Epithelial"
            self.answer.append(PredictedObject(name, pixels))


def _uneven(rng: np.random.Generator) -> NDArray[np.float64]:
    wave = 1.0 + rng.normal(0, 0.02) * np.cos(3 * ANGLES + rng.uniform(0, 6))
    result: NDArray[np.float64] = wave + rng.normal(0, 0.03) * np.cos(2 * ANGLES)
    return result


# --- Manners -----------------------------------------------------------------


def _careful(desk: _Desk) -> None:
    """Answer nearly right: a few missed, a few misnamed, one beside its nucleus."""
    _missed, misnamed, beside, rest = _shares(desk, 0.04, 0.04, 0.02)
    for nucleus in rest:
        desk.draw(nucleus, grow=0.7)
    for nucleus in misnamed:
        desk.draw(nucleus, class_name=_confused(nucleus.class_name), grow=0.7)
    for nucleus in beside:
        _displace(desk, nucleus)


def _over_splitter(desk: _Desk) -> None:
    """Cut large nuclei into pieces, outline specks, and see debris as nuclei."""
    large = [n for n in desk.scene.nuclei if n.mean_radius > 10.5]
    small = [n for n in desk.scene.nuclei if n.mean_radius <= 10.5]
    split, specked, doubled, rest = _shares(desk, 0.38, 0.12, 0.15, nuclei=large)
    for nucleus in split:
        _split(desk, nucleus)
    for nucleus in specked:
        desk.draw(nucleus, scale=0.66)
    for nucleus in doubled:
        _double(desk, nucleus)
    for nucleus in rest:
        desk.draw(nucleus, grow=0.4)
    specked, _missed, rest = _shares(desk, 0.10, 0.05, nuclei=small)
    for nucleus in specked:
        desk.draw(nucleus, scale=0.68)
    for nucleus in rest:
        desk.draw(nucleus, grow=0.3)
    _debris(desk, count=5)


def _merger(desk: _Desk) -> None:
    """Join neighbours, draw far too wide, and overlook what is faint."""
    groups, alone = _neighbours(desk.scene)
    for group in groups:
        _join(desk, group)
    wide, _missed, rest = _shares(desk, 0.14, 0.04, nuclei=alone)
    for nucleus in wide:
        desk.draw(nucleus, scale=1.62)
    for nucleus in rest:
        if not nucleus.faint:
            desk.draw(nucleus, grow=1.8)


def _confuser(desk: _Desk) -> None:
    """Mistake one class for another, and answer where nothing was asked."""
    misnamed, beside, _missed, rest = _shares(desk, 0.24, 0.06, 0.05)
    for nucleus in misnamed:
        desk.draw(nucleus, class_name=_confused(nucleus.class_name), grow=0.5)
    for nucleus in beside:
        _displace(desk, nucleus)
    for nucleus in rest:
        if not nucleus.faint:
            desk.draw(nucleus, grow=0.5)
    for nucleus in desk.scene.unannotated:
        desk.draw(nucleus, grow=1.0)
    _spill(desk)


_MANNERS: dict[str, Callable[[_Desk], None]] = {
    "careful": _careful,
    "over-splitter": _over_splitter,
    "merger": _merger,
    "confuser": _confuser,
}
TEAM_NAMES: tuple[str, ...] = tuple(_MANNERS)
"""The teams of the sample cohort, from good to bad in no particular way."""


def answer_of(team: str, scene: Scene, rng: np.random.Generator) -> dict[str, NDArray[np.int32]]:
    """Let a team answer for a region.

    Returns
    -------
    dict
        Class name -> int32 image (y, x) of ids from 1; every class is there.
        No two objects of all classes share a pixel.
    """
    desk = _Desk(scene, rng)
    _MANNERS[team](desk)
    _inside_ambiguous(desk)
    return _painted(desk)


def _painted(desk: _Desk) -> dict[str, NDArray[np.int32]]:
    """Put the objects into images, earlier ones before later ones."""
    masks = {name: np.zeros(desk.scene.shape, np.int32) for name in _CLASSES}
    taken = np.zeros(desk.scene.shape, bool)
    for predicted in desk.answer:
        rows, cols = _free_part(predicted.pixels, taken)
        if len(rows) < 6:
            continue
        mask = masks[predicted.class_name]
        mask[rows, cols] = mask.max() + 1
        taken[rows, cols] = True
    return masks


def _free_part(pixels: Pixels, taken: NDArray[np.bool_]) -> Pixels:
    """Keep the largest connected part that is not taken yet."""
    rows, cols = pixels
    free = ~taken[rows, cols]
    rows, cols = rows[free], cols[free]
    if len(rows) == 0:
        return rows, cols
    part = np.zeros((np.ptp(rows) + 1, np.ptp(cols) + 1), bool)
    part[rows - rows.min(), cols - cols.min()] = True
    labels, count = ndimage.label(part)
    if count > 1:
        sizes = np.bincount(labels.ravel())
        sizes[0] = 0
        kept = labels[rows - rows.min(), cols - cols.min()] == sizes.argmax()
        rows, cols = rows[kept], cols[kept]
    return rows, cols


# --- Failures ----------------------------------------------------------------


def _shares(
    desk: _Desk, *shares: float, nuclei: Sequence[Nucleus] | None = None
) -> Iterator[list[Nucleus]]:
    """Deal nuclei at random: a list for each share, of one at least, and the rest."""
    dealt = list(desk.scene.nuclei if nuclei is None else nuclei)
    total = len(dealt)
    order = [dealt[k] for k in desk.rng.permutation(total)]
    for share in shares:
        count = max(1, round(share * total))
        yield order[:count]
        order = order[count:]
    yield order


def _confused(class_name: str) -> str:
    """Name the class that this one is taken for."""
    return {
        "Epithelial": "Macrophage",
        "Macrophage": "Epithelial",
        "Lymphocyte": "Neutrophil",
        "Neutrophil": "Lymphocyte",
    }[class_name]


def _others(desk: _Desk, nucleus: Nucleus) -> NDArray[np.bool_]:
    """Mark all annotated nuclei but one."""
    image = np.zeros(desk.scene.shape, bool)
    for other in desk.scene.nuclei:
        if other is not nucleus:
            image[pixels_inside(other.outline_yx(), desk.scene.shape)] = True
    return image


def _displace(desk: _Desk, nucleus: Nucleus) -> None:
    """Answer beside the nucleus, on the side where there is most room."""
    others = _others(desk, nucleus)
    way = 0.90 * nucleus.mean_radius
    candidates = []
    for angle in np.linspace(0, 2 * np.pi, 12, endpoint=False):
        shift = way * np.array([np.sin(angle), np.cos(angle)])
        pixels = pixels_inside(nucleus.outline_yx(grow=0.8) + shift, desk.scene.shape)
        candidates.append((int(others[pixels].sum()) - len(pixels[0]), pixels))
    desk.add(nucleus.class_name, min(candidates, key=lambda candidate: candidate[0])[1])


def _split(desk: _Desk, nucleus: Nucleus) -> None:
    """Cut a nucleus in two or three across its long axis."""
    rows, cols = pixels_inside(nucleus.outline_yx(grow=0.8), desk.scene.shape)
    steps = np.stack([rows, cols]) - np.array(nucleus.centre_yx)[:, None]
    axis = np.linalg.eigh(np.cov(steps))[1][:, -1]
    axis *= np.copysign(1.0, axis.sum())  # its sign is left to the library
    along = axis @ steps + desk.rng.normal(0, 0.6)
    width = np.abs(along).max()
    cuts = [-0.34 * width, 0.34 * width] if desk.rng.random() < 0.3 else [0.0]
    piece = np.digitize(along, cuts)
    for number in range(len(cuts) + 1):
        desk.add(nucleus.class_name, (rows[piece == number], cols[piece == number]))


def _double(desk: _Desk, nucleus: Nucleus) -> None:
    """Outline a nucleus, and one end of it once more."""
    rows, cols = pixels_inside(nucleus.outline_yx(grow=0.8), desk.scene.shape)
    angle = desk.rng.uniform(0, 2 * np.pi)
    along = np.sin(angle) * (rows - nucleus.centre_yx[0]) + np.cos(angle) * (
        cols - nucleus.centre_yx[1]
    )
    end = along > 0.42 * along.max()
    desk.add(nucleus.class_name, (rows[~end], cols[~end]))
    desk.add(nucleus.class_name, (rows[end], cols[end]))


def _debris(desk: _Desk, *, count: int) -> None:
    """See nuclei where there is only tissue."""
    free = np.ones(desk.scene.shape, bool)
    for nucleus in (*desk.scene.nuclei, *desk.scene.unannotated):
        free[pixels_inside(nucleus.outline_yx(grow=12.0), desk.scene.shape)] = False
    places = desk.rng.permutation(np.argwhere(free & ~desk.scene.ambiguous))[:count]
    for place in places:
        radius = desk.rng.uniform(4.0, 7.0)
        desk.add("Lymphocyte", fill_disk(tuple(place), radius, shape=desk.scene.shape))


def _neighbours(scene: Scene) -> tuple[list[list[Nucleus]], list[Nucleus]]:
    """Find pairs and threes that nearly touch, and the nuclei that belong to none."""
    left = list(scene.nuclei)
    groups: list[list[Nucleus]] = []
    for nucleus in scene.nuclei:
        if nucleus not in left or len(groups) >= len(scene.nuclei) // 9:
            continue
        near = [other for other in left if other is not nucleus and _gap(nucleus, other) < 3.0]
        if near:
            group = [nucleus, *near[:2]]
            groups.append(group)
            left = [other for other in left if other not in group]
    return groups, left


def _gap(one: Nucleus, other: Nucleus) -> float:
    apart = np.subtract(one.centre_yx, other.centre_yx)
    return float(np.hypot(*apart)) - one.mean_radius - other.mean_radius


def _join(desk: _Desk, group: Sequence[Nucleus]) -> None:
    """Answer with one object for several nuclei."""
    image = np.zeros(desk.scene.shape, bool)
    for nucleus in group:
        image[pixels_inside(nucleus.outline_yx(grow=1.5), desk.scene.shape)] = True
    rows, cols = np.nonzero(image)
    box = np.s_[rows.min() : rows.max() + 1, cols.min() : cols.max() + 1]
    rows_in, cols_in = np.nonzero(convex_hull_image(image[box]))
    desk.add(group[0].class_name, (rows_in + rows.min(), cols_in + cols.min()))


def _spill(desk: _Desk) -> None:
    """Answer astride the border of ambiguous areas, mostly inside: their rims stick out."""
    depth = ndimage.distance_transform_edt(desk.scene.ambiguous)
    border = np.argwhere((depth > 3.0) & (depth < 5.0))
    kept: list[NDArray[np.intp]] = []
    for place in desk.rng.permutation(border):
        if all(np.hypot(*(place - other)) > 26 for other in kept):
            kept.append(place)
    for place in kept[:7]:
        desk.add("Epithelial", fill_disk(tuple(place), 9.0, shape=desk.scene.shape))


def _inside_ambiguous(desk: _Desk) -> None:
    """Answer for some of the nuclei inside ambiguous areas, as all teams do."""
    inside = [
        n
        for n in desk.scene.unannotated
        if desk.scene.ambiguous[int(n.centre_yx[0]), int(n.centre_yx[1])]
    ]
    for nucleus in inside[:: 2 if desk.rng.random() < 0.5 else 3]:
        desk.draw(nucleus)
