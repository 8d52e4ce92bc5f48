"""Draw plausible H&E tissue with nuclei of the four classes, for the sample cohort.

The picture is built as stain densities and turned into colour by the
Beer-Lambert law, as on a real slide, so that overlapping things darken each
other the way they do under the microscope. Distances are in px at 0.2525 um/px
(40x); arrays are (y, x).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree
from skimage.draw import polygon as fill_polygon

Field = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pixels = tuple[NDArray[np.intp], NDArray[np.intp]]

HAEMATOXYLIN_OD = (0.56, 0.72, 0.41)
"""Optical density (red, green, blue) of haematoxylin at density 1."""
EOSIN_OD = (0.16, 0.77, 0.42)
"""Optical density (red, green, blue) of eosin at density 1."""

ANGLES = np.linspace(0.0, 2.0 * np.pi, 48, endpoint=False)
"""Directions in which the outline of a nucleus is given, from the x axis towards the y axis."""
_EDGE_PX = 0.9  # softness of a nucleus' edge, as the optics give it


@dataclass(frozen=True, eq=False)
class Nucleus:
    """A nucleus as a star-shaped outline.

    Parameters
    ----------
    class_name
        Its class; ``"Fibroblast"`` for those that are not annotated.
    centre_yx
        Centre in px.
    radii
        float64 (48,): distance of the outline from the centre in px, at each of
        `ANGLES`.
    faint
        Whether it is so pale that it is easily overlooked.
    """

    class_name: str
    centre_yx: tuple[float, float]
    radii: Field
    faint: bool = False

    def outline_yx(self, *, scale: float = 1.0, grow: float = 0.0) -> Field:
        """Return the vertices (48, 2) of the outline, scaled and then grown in px."""
        radii = self.radii * scale + grow
        steps = np.stack([np.sin(ANGLES), np.cos(ANGLES)], axis=1)
        outline: Field = np.asarray(self.centre_yx) + radii[:, None] * steps
        return outline

    @property
    def mean_radius(self) -> float:
        """Mean distance of the outline from the centre in px."""
        return float(self.radii.mean())


def pixels_inside(outline_yx: Field, shape: tuple[int, int]) -> Pixels:
    """Fill an outline the way annotations are filled: vertices cut to whole numbers."""
    clipped = np.clip(outline_yx, 0, np.array(shape) - 1)
    rows, cols = clipped.astype(int).T
    inside: Pixels = fill_polygon(rows, cols, shape)
    return inside


# --- Outlines ---------------------------------------------------------------


def _ellipse(long: float, short: float, angle: float) -> Field:
    turned = ANGLES - angle
    radii: Field = 1.0 / np.hypot(np.cos(turned) / long, np.sin(turned) / short)
    return radii


def _wobble(rng: np.random.Generator, amount: float) -> Field:
    factor = np.ones_like(ANGLES)
    for order in (2, 3, 4, 5):
        phase = rng.uniform(0, 2 * np.pi)
        factor += rng.normal(0, amount / order) * np.cos(order * ANGLES + phase)
    return factor


def _lobes(rng: np.random.Generator, extent: float) -> Field:
    """Outline of a segmented nucleus: the far side of three or four discs around a centre."""
    count = int(rng.integers(3, 5))
    turn = rng.uniform(0, 2 * np.pi)
    radii = np.full_like(ANGLES, 0.38 * extent)
    for lobe in range(count):
        direction = turn + 2 * np.pi * lobe / count + rng.normal(0, 0.15)
        away, size = 0.52 * extent, rng.uniform(0.40, 0.50) * extent
        along = away * np.cos(ANGLES - direction)
        across = away * np.sin(ANGLES - direction)
        hit = np.abs(across) < size
        far = along + np.sqrt(np.where(hit, size**2 - across**2, 0.0))
        radii = np.maximum(radii, np.where(hit, far, 0.0))
    return radii


def _outline(rng: np.random.Generator, class_name: str, angle: float) -> Field:
    """Draw the outline of one nucleus of a class; ``angle`` is that of its long axis."""
    if class_name == "Epithelial":
        long = rng.normal(15.5, 1.4)
        return _ellipse(long, long * rng.uniform(0.66, 0.82), angle) * _wobble(rng, 0.05)
    if class_name == "Lymphocyte":
        long = rng.normal(10.2, 0.7)
        return _ellipse(long, long * rng.uniform(0.86, 0.98), angle) * _wobble(rng, 0.04)
    if class_name == "Neutrophil":
        return _lobes(rng, rng.normal(10.4, 0.6)) * _wobble(rng, 0.03)
    if class_name == "Macrophage":
        long = rng.normal(13.8, 1.0)
        dent = 1 - rng.uniform(0.18, 0.36) * np.exp(
            -((np.mod(ANGLES - angle - np.pi / 2 + np.pi, 2 * np.pi) - np.pi) ** 2) / 0.35
        )
        return _ellipse(long, long * 0.76, angle) * dent * _wobble(rng, 0.05)
    long = rng.normal(17.0, 2.0)
    return _ellipse(long, rng.uniform(3.2, 4.4), angle) * _wobble(rng, 0.06)


# --- Where things are -------------------------------------------------------


@dataclass(eq=False)
class Tissue:
    """A picture in the making: stain densities, and where nuclei already are.

    Parameters
    ----------
    shape
        Height and width in px.
    rng
        The source of all randomness.
    """

    shape: tuple[int, int]
    rng: np.random.Generator

    def __post_init__(self) -> None:
        """Start from empty glass."""
        self.haematoxylin: Field = np.zeros(self.shape)
        self.eosin: Field = np.zeros(self.shape)
        self.occupied: Mask = np.zeros(self.shape, bool)
        self.yy, self.xx = np.mgrid[: self.shape[0], : self.shape[1]].astype(float)
        self.fine = self.noise(0.7)
        self.grain = self.noise(1.5)
        self.clumps = self.noise(2.6)
        self.patches = self.noise(14.0)
        self.slow = self.noise(45.0)

    def noise(self, sigma: float) -> Field:
        """Return smooth noise of mean 0 and standard deviation 1."""
        # Slow fields are made small and stretched: a wide filter would take long.
        step = max(1, int(sigma // 4))
        small = (self.shape[0] // step + 2, self.shape[1] // step + 2)
        field = ndimage.gaussian_filter(self.rng.standard_normal(small), sigma / step)
        if step == 1:
            field = field[: self.shape[0], : self.shape[1]]
        else:
            field = ndimage.zoom(field, step, order=1)[: self.shape[0], : self.shape[1]]
            field = ndimage.gaussian_filter(field, step / 2)
        result: Field = (field - field.mean()) / field.std()
        return result

    def warped_distance(
        self, centre_yx: tuple[float, float], radii_yx: tuple[float, float], *, warp: float = 7.0
    ) -> Field:
        """Return the distance in px from an uneven ellipse, negative inside it."""
        dy = (self.yy - centre_yx[0] + warp * self.patches) / radii_yx[0]
        dx = (self.xx - centre_yx[1] + warp * self.slow) / radii_yx[1]
        distance: Field = (np.hypot(dy, dx) - 1.0) * min(radii_yx)
        return distance

    # --- ground ---

    def lay_stroma(self, density: float = 0.42, *, looseness: float = 0.0) -> None:
        """Fill the picture with wavy collagen; ``looseness`` (0-1) opens gaps in it."""
        angle = self.rng.uniform(0, np.pi)
        along = np.cos(angle) * self.xx + np.sin(angle) * self.yy
        across = -np.sin(angle) * self.xx + np.cos(angle) * self.yy
        bent = across + 16 * self.slow + 4 * self.patches
        fibres = np.zeros(self.shape)
        for period, weight in ((23.0, 0.5), (11.0, 0.3), (6.1, 0.2)):
            phase = 2 * np.pi * (bent + 2.0 * self.clumps) / period + along / (9 * period)
            fibres += weight * np.sin(phase + 1.5 * self.patches)
        streaks = self._streaks(angle)
        self.eosin += density * (1 + 0.26 * fibres + 0.18 * streaks + 0.12 * self.slow)
        self.eosin += 0.03 * self.grain + 0.02 * self.fine
        self.haematoxylin += 0.035 + 0.03 * np.clip(streaks, 0, None) + 0.01 * self.slow
        gaps = _step(fibres + 0.9 * streaks + 0.7 * self.patches, 2.1 - 2.2 * looseness, 0.18)
        self.clear(gaps)

    def _streaks(self, angle: float) -> Field:
        """Return noise drawn out along an angle, as fibre bundles are."""
        side = int(1.5 * max(self.shape))
        flat = ndimage.gaussian_filter(self.rng.standard_normal((side, side)), (1.3, 16.0))
        u = np.cos(angle) * self.xx + np.sin(angle) * self.yy
        v = -np.sin(angle) * self.xx + np.cos(angle) * self.yy + 14 * self.slow
        field = ndimage.map_coordinates(flat, [v, u], order=1, mode="mirror")
        result: Field = (field - field.mean()) / field.std()
        return result

    def clear(self, weight: Field) -> None:
        """Let glass show through where the weight (0-1) is high."""
        self.eosin *= 1 - 0.96 * weight
        self.haematoxylin *= 1 - 0.96 * weight

    def lay_cytoplasm(
        self, weight: Field, eosin: float, haematoxylin: float, *, granular: float = 1.0
    ) -> None:
        """Replace the tissue by cytoplasm where the weight (0-1) is high."""
        grain = granular * (0.07 * self.grain + 0.06 * self.clumps + 0.05 * self.patches)
        self.eosin += weight * (eosin * (1 + grain) - self.eosin)
        self.haematoxylin += weight * (haematoxylin * (1 + 2 * grain) - self.haematoxylin)

    def lay_membranes(self, weight: Field, centres_yx: Sequence[tuple[float, float]]) -> None:
        """Draw cell borders half-way between the nuclei of an epithelium."""
        if len(centres_yx) < 2:
            return
        where = np.nonzero(weight > 0.3)
        bend = 3.0 * self.patches[where]
        points = np.stack([where[0] + bend, where[1] - bend], axis=1)
        nearest, _ = cKDTree(np.array(centres_yx)).query(points, k=2)
        line = np.exp(-(((nearest[:, 1] - nearest[:, 0]) / 1.9) ** 2)) * weight[where]
        self.eosin[where] += 0.17 * line
        self.haematoxylin[where] += 0.05 * line

    # --- cells ---

    def scatter(
        self,
        class_name: str,
        where: Mask,
        count: int,
        *,
        gap: float = 1.0,
        angles: Field | None = None,
        faint_share: float = 0.0,
        crowded: bool = False,
    ) -> list[Nucleus]:
        """Place nuclei at random where a mask allows, ``gap`` px or more apart.

        Crowded nuclei huddle in heaps, many of them touching. Fewer than
        ``count`` come back where there is no more room.
        """
        placed: list[Nucleus] = []
        for row, col in self._candidates(where, 90 * count, crowded=crowded):
            if len(placed) == count:
                break
            if self.occupied[row, col]:
                continue
            angle = self.rng.uniform(0, np.pi) if angles is None else angles[row, col]
            angle += self.rng.normal(0, 0.2)
            radii = _outline(self.rng, class_name, float(angle))
            faint = bool(self.rng.random() < faint_share)
            nucleus = Nucleus(class_name, (float(row), float(col)), radii, faint)
            if self.occupy(nucleus, gap=gap):
                placed.append(nucleus)
        return placed

    def _candidates(self, where: Mask, count: int, *, crowded: bool) -> NDArray[np.intp]:
        flat = np.flatnonzero(where & ~self.occupied)
        flat = self.rng.permutation(flat)[:count]
        if crowded:
            height = self.patches.ravel()[flat] + self.rng.normal(0, 0.1, len(flat))
            flat = flat[np.argsort(-height)]
        return np.stack(np.unravel_index(flat, self.shape), axis=1)

    def occupy(self, nucleus: Nucleus, *, gap: float) -> bool:
        """Take the room of a nucleus; False where it is taken or the image ends."""
        grown = nucleus.outline_yx(grow=gap)
        rows, cols = np.clip(grown, 0, np.array(self.shape) - 1).astype(int).T
        if self.occupied[rows, cols].any():  # most collisions show at the outline
            return False
        rows, cols = pixels_inside(grown, self.shape)
        if len(rows) < 0.6 * np.pi * nucleus.mean_radius**2 or self.occupied[rows, cols].any():
            return False
        self.occupied[pixels_inside(nucleus.outline_yx(), self.shape)] = True
        return True

    def stain(self, nucleus: Nucleus) -> None:
        """Draw a nucleus, and the cytoplasm that goes with its class."""
        if nucleus.class_name == "Macrophage":
            self._foamy_cytoplasm(nucleus)
        elif nucleus.class_name == "Neutrophil":
            self._halo(nucleus, reach=6.5, eosin=0.34)
        elif nucleus.class_name == "Lymphocyte":
            self._halo(nucleus, reach=2.2, eosin=0.10)
        box, depth = self._depth(nucleus, margin=4)
        inside = _step(depth, 0.0, _EDGE_PX / 2)
        rim = np.exp(-(((depth - 1.5) / 1.3) ** 2))
        chromatin = self._chromatin(nucleus, box, inside, rim)
        if nucleus.faint:
            chromatin *= 0.55
        self.haematoxylin[box] += inside * (chromatin - self.haematoxylin[box]) + 0.04 * rim
        self.eosin[box] += inside * (0.24 + 0.03 * self.clumps[box] - self.eosin[box])

    def _chromatin(
        self, nucleus: Nucleus, box: tuple[slice, slice], inside: Field, rim: Field
    ) -> Field:
        clumps, grain, fine = self.clumps[box], self.grain[box], self.fine[box]
        tone = 1 + 0.08 * self.rng.standard_normal()
        if nucleus.class_name == "Epithelial":
            body = 0.66 + 0.11 * clumps + 0.10 * grain + 0.05 * fine + 0.42 * rim
            body += self._nucleoli(nucleus, box, inside)
        elif nucleus.class_name == "Lymphocyte":
            body = 1.34 + 0.20 * clumps + 0.10 * grain + 0.05 * rim
        elif nucleus.class_name == "Neutrophil":
            body = 1.46 + 0.12 * clumps + 0.08 * grain
        elif nucleus.class_name == "Macrophage":
            body = 0.80 + 0.13 * clumps + 0.12 * grain + 0.30 * rim
        else:
            body = 0.98 + 0.14 * clumps + 0.08 * grain
        return np.clip(tone * body, 0.1, None)

    def _nucleoli(self, nucleus: Nucleus, box: tuple[slice, slice], inside: Field) -> Field:
        spots = np.zeros_like(inside)
        for _ in range(int(self.rng.integers(1, 3))):
            away = self.rng.uniform(0, 0.45) * nucleus.mean_radius
            angle = self.rng.uniform(0, 2 * np.pi)
            dy = self.yy[box] - nucleus.centre_yx[0] - away * np.sin(angle)
            dx = self.xx[box] - nucleus.centre_yx[1] - away * np.cos(angle)
            spots += 0.62 * np.exp(-(dy**2 + dx**2) / (2 * self.rng.uniform(1.3, 2.0) ** 2))
        return spots

    def _halo(self, nucleus: Nucleus, *, reach: float, eosin: float) -> None:
        box, depth = self._depth(nucleus, margin=int(reach) + 4)
        body = _step(depth, -reach, 0.8)
        self.eosin[box] += body * (eosin * (1 + 0.1 * self.grain[box]) - self.eosin[box])
        self.haematoxylin[box] += body * (0.05 - self.haematoxylin[box])
        self.eosin[box] += 0.08 * np.exp(-(((depth + reach) / 1.2) ** 2))

    def _foamy_cytoplasm(self, nucleus: Nucleus) -> None:
        """Draw a wide pale body full of vacuoles around the nucleus, which lies off its centre."""
        rng = self.rng
        reach = rng.uniform(26, 34)
        shift = rng.uniform(0, 9) * np.array(_direction(rng))
        centre = np.array(nucleus.centre_yx) + shift
        body_outline = Nucleus("body", (centre[0], centre[1]), reach * _wobble(rng, 0.09))
        box, depth = self._depth(body_outline, margin=4)
        body = _step(depth, 0.0, 1.0)
        foam = np.full(depth.shape, np.inf)
        count = int(1.1 * reach)
        for row, col, size in zip(
            centre[0] + rng.uniform(-reach, reach, count),
            centre[1] + rng.uniform(-reach, reach, count),
            rng.uniform(2.0, 4.6, count),
            strict=True,
        ):
            foam = np.minimum(foam, np.hypot(self.yy[box] - row, self.xx[box] - col) - size)
        vacuoles = _step(-foam, 0.0, 0.6)
        walls = np.exp(-((foam / 1.1) ** 2))
        eosin = 0.23 * (1 + 0.2 * self.grain[box]) - 0.13 * vacuoles + 0.06 * walls
        haematoxylin = 0.10 + 0.03 * self.grain[box] - 0.06 * vacuoles + 0.04 * walls
        outline = np.exp(-(((depth - 0.6) / 1.1) ** 2))
        self.eosin[box] += body * (eosin - self.eosin[box]) + 0.10 * outline
        self.haematoxylin[box] += body * (haematoxylin - self.haematoxylin[box]) + 0.04 * outline

    def stain_red_cell(self, centre_yx: tuple[float, float]) -> None:
        """Draw an erythrocyte: a bright eosin disc, paler in the middle."""
        radius = self.rng.uniform(8.5, 10.0)
        disc = Nucleus("red cell", centre_yx, radius * _wobble(self.rng, 0.05))
        box, depth = self._depth(disc, margin=3)
        body = _step(depth, 0.0, 0.5)
        tint = 0.62 - 0.16 * np.exp(-(((depth - radius) / 4.0) ** 2))
        self.eosin[box] += body * (tint - self.eosin[box])
        self.haematoxylin[box] *= 1 - body

    def blur(self, weight: Field, sigma: float) -> None:
        """Put the part where the weight (0-1) is high out of focus."""
        for field in (self.haematoxylin, self.eosin):
            field += weight * (ndimage.gaussian_filter(field, sigma) - field)

    def _depth(self, nucleus: Nucleus, *, margin: int) -> tuple[tuple[slice, slice], Field]:
        """Return a window around a nucleus, and how deep in px each pixel of it lies inside."""
        reach = int(nucleus.radii.max()) + margin + 1
        cy, cx = nucleus.centre_yx
        box = (
            slice(max(0, int(cy) - reach), min(self.shape[0], int(cy) + reach + 1)),
            slice(max(0, int(cx) - reach), min(self.shape[1], int(cx) + reach + 1)),
        )
        dy, dx = self.yy[box] - cy, self.xx[box] - cx
        limit = np.interp(np.arctan2(dy, dx), ANGLES, nucleus.radii, period=2 * np.pi)
        return box, limit - np.hypot(dy, dx)

    # --- picture ---

    def photograph(self, *, haematoxylin: float = 1.0, eosin: float = 1.0) -> NDArray[np.uint8]:
        """Return the RGB picture (y, x, 3); the factors say how strongly the lab stains."""
        densities = np.stack(
            [
                haematoxylin * np.clip(self.haematoxylin, 0, 2.4),
                eosin * np.clip(self.eosin, 0, 1.6),
            ],
            axis=-1,
        )
        densities = ndimage.gaussian_filter(densities, (0.6, 0.6, 0))
        optical_density = densities @ np.array([HAEMATOXYLIN_OD, EOSIN_OD])
        glass = np.array([243.0, 240.0, 244.0])
        light = glass * np.exp(-optical_density) + self.rng.normal(0, 1.6, (*self.shape, 3))
        picture: NDArray[np.uint8] = np.clip(np.rint(light), 0, 255).astype(np.uint8)
        return picture


def _step(field: Field, at: float, softness: float) -> Field:
    """Rise from 0 to 1 as the field passes a value."""
    result: Field = 0.5 * (1 + np.tanh((field - at) / (2 * softness)))
    return result


def _direction(rng: np.random.Generator) -> tuple[float, float]:
    angle = rng.uniform(0, 2 * np.pi)
    return float(np.sin(angle)), float(np.cos(angle))
