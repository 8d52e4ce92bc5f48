"""The regions of the sample cohort: which tissue, which nuclei, what the annotator did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_panoptic.nuclei.values.cohort import MONUSAC_CLASSES
from napari_panoptic.samples.tissue import Field, Nucleus, Pixels, Tissue, pixels_inside

AMBIGUOUS = "Ambiguous"


@dataclass(frozen=True, eq=False)
class DrawnPolygon:
    """One polygon of an annotation.

    Parameters
    ----------
    class_name
        A scored class, or the ambiguous one.
    vertices_xy
        float64 (n, 2), in px.
    """

    class_name: str
    vertices_xy: Field

    def pixels(self, shape: tuple[int, int]) -> Pixels:
        """Fill the polygon: its (rows, columns)."""
        return pixels_inside(self.vertices_xy[:, ::-1], shape)


@dataclass(frozen=True, eq=False)
class Scene:
    """A drawn region.

    Parameters
    ----------
    name, patient
        As in the cohort.
    image
        uint8 (y, x, 3).
    nuclei
        Those that the annotator outlined.
    unannotated
        Those that are in the picture but not in the annotation: fibroblasts,
        and nuclei deep inside ambiguous areas.
    polygons
        The annotation, in document order.
    ambiguous
        bool (y, x): the area left open by the annotator.
    """

    name: str
    patient: str
    image: NDArray[np.uint8]
    nuclei: tuple[Nucleus, ...]
    unannotated: tuple[Nucleus, ...]
    polygons: tuple[DrawnPolygon, ...]
    ambiguous: NDArray[np.bool_]

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width in px."""
        return self.ambiguous.shape


@dataclass(frozen=True)
class _Recipe:
    """How to draw one region; ``paint`` fills the tissue and gives the nuclei in it."""

    name: str
    shape: tuple[int, int]
    paint: Callable[[Tissue], list[Nucleus]]
    ambiguous_at: tuple[tuple[float, float, float], ...] = ()  # (y, x, radius) in px
    haematoxylin: float = 1.0
    eosin: float = 1.0
    oddities: bool = False  # an overlapping pair, and a polygon that vanishes

    @property
    def patient(self) -> str:
        """The region's name up to its last underscore."""
        return self.name.rpartition("_")[0]


def draw_scenes(seed: int) -> tuple[Scene, ...]:
    """Draw all regions of the sample cohort."""
    return tuple(
        _draw(recipe, np.random.default_rng([seed, number]))
        for number, recipe in enumerate(_RECIPES)
    )


def _draw(recipe: _Recipe, rng: np.random.Generator) -> Scene:
    tissue = Tissue(recipe.shape, rng)
    nuclei = recipe.paint(tissue)
    for place in recipe.ambiguous_at:
        nuclei += _crushed_cells(tissue, place)
    areas = [_ambiguous_outline(rng, *place) for place in recipe.ambiguous_at]
    ambiguous = np.zeros(recipe.shape, bool)
    for area in areas:
        ambiguous[pixels_inside(area, recipe.shape)] = True
        tissue.blur(_soft(ambiguous), 2.6)
    known = [n for n in nuclei if n.class_name in MONUSAC_CLASSES.names]
    annotated = [n for n in known if not _is_left_out(n, recipe)]
    polygons = [_polygon(nucleus, recipe.shape) for nucleus in annotated]
    if recipe.oddities:
        polygons = _with_oddities(polygons, recipe.shape)
    polygons.sort(key=lambda polygon: MONUSAC_CLASSES.names.index(polygon.class_name))
    polygons += [DrawnPolygon(AMBIGUOUS, _to_xy(area, recipe.shape)) for area in areas]
    return Scene(
        name=recipe.name,
        patient=recipe.patient,
        image=tissue.photograph(haematoxylin=recipe.haematoxylin, eosin=recipe.eosin),
        nuclei=tuple(annotated),
        unannotated=tuple(n for n in nuclei if n not in annotated),
        polygons=tuple(polygons),
        ambiguous=ambiguous,
    )


def _crushed_cells(tissue: Tissue, place: tuple[float, float, float]) -> list[Nucleus]:
    """Fill an area that will be out of focus with nuclei that cannot be distinguished."""
    y, x, radius = place
    where = np.hypot(tissue.yy - y, tissue.xx - x) < radius - 4
    count = int(radius**2 / 260)
    nuclei = tissue.scatter("Lymphocyte", where, count, gap=0.5, faint_share=0.3)
    nuclei += tissue.scatter("Epithelial", where, count // 3, gap=0.5, faint_share=0.5)
    return _finish(tissue, nuclei)


# --- What the annotator did --------------------------------------------------


def _ambiguous_outline(rng: np.random.Generator, y: float, x: float, radius: float) -> Field:
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    radii = radius * (1 + 0.12 * np.cos(2 * angles + rng.uniform(0, 6)))
    radii *= 1 + 0.06 * np.cos(5 * angles + rng.uniform(0, 6))
    outline: Field = np.stack([y + radii * np.sin(angles), x + radii * np.cos(angles)], axis=1)
    return outline


def _is_left_out(nucleus: Nucleus, recipe: _Recipe) -> bool:
    """Deep inside an ambiguous area the annotator outlined only every third nucleus."""
    y, x = nucleus.centre_yx
    deep = any(np.hypot(y - ay, x - ax) < 0.72 * radius for ay, ax, radius in recipe.ambiguous_at)
    return deep and int(y + x) % 3 != 0


def _polygon(nucleus: Nucleus, shape: tuple[int, int]) -> DrawnPolygon:
    return DrawnPolygon(nucleus.class_name, _to_xy(nucleus.outline_yx(), shape))


def _to_xy(outline_yx: Field, shape: tuple[int, int]) -> Field:
    clipped = np.clip(outline_yx, 0, np.array(shape) - 1)
    return np.round(clipped[:, ::-1], 2)


def _with_oddities(polygons: list[DrawnPolygon], shape: tuple[int, int]) -> list[DrawnPolygon]:
    """Add what real annotations have: a stray click under a nucleus, and an overlapping pair."""
    nucleus = polygons[0]
    middle = nucleus.vertices_xy.mean(axis=0)
    stray = middle + np.array([[-2.0, -1.0], [2.0, -1.0], [0.0, 2.0]])
    # Drawn before the nucleus, which then covers all of it: it vanishes.
    odd = [DrawnPolygon(nucleus.class_name, np.round(stray, 2)), *polygons]
    first, second = _closest_pair(polygons)
    towards = second.vertices_xy.mean(axis=0) - first.vertices_xy.mean(axis=0)
    reach = first.vertices_xy + 0.22 * towards
    limit = np.array(shape)[::-1] - 1
    moved = DrawnPolygon(first.class_name, np.round(np.clip(reach, 0, limit), 2))
    return [moved if polygon is first else polygon for polygon in odd]


def _closest_pair(polygons: list[DrawnPolygon]) -> tuple[DrawnPolygon, DrawnPolygon]:
    """Find the two neighbours of one class, the first polygon aside, that are nearest."""
    best = (np.inf, polygons[1], polygons[2])
    for k, one in enumerate(polygons[1:], start=1):
        for other in polygons[k + 1 :]:
            if one.class_name == other.class_name:
                gap = one.vertices_xy.mean(axis=0) - other.vertices_xy.mean(axis=0)
                distance = float(np.hypot(gap[0], gap[1]))
                best = min(best, (distance, one, other), key=lambda entry: entry[0])
    return best[1], best[2]


# --- The tissues -------------------------------------------------------------


def _soft(mask: NDArray[np.bool_]) -> Field:
    result: Field = ndimage.gaussian_filter(mask.astype(float), 5.0)
    return result


def _inside(distance: Field, *, softness: float = 1.2) -> Field:
    result: Field = 0.5 * (1 - np.tanh(distance / (2 * softness)))
    return result


def _gland(
    tissue: Tissue,
    centre_yx: tuple[float, float],
    radii_yx: tuple[float, float],
    count: int,
    *,
    thickness: float = 42.0,
) -> tuple[list[Nucleus], Field]:
    """Lay a gland: a ring of tall cells around a lumen, nuclei at their base, side by side."""
    distance = tissue.warped_distance(centre_yx, radii_yx)
    epithelium = _inside(distance) * (1 - _inside(distance + thickness))
    tissue.lay_cytoplasm(epithelium, 0.40, 0.17)
    tissue.clear(_inside(distance + thickness) * (0.93 + 0.05 * np.tanh(tissue.slow)))
    tissue.eosin += 0.10 * np.exp(-(((distance - 1.0) / 1.6) ** 2))  # basement membrane
    slope_y, slope_x = np.gradient(distance)
    base = np.abs(distance + 0.44 * thickness) < 0.11 * thickness
    nuclei = tissue.scatter(
        "Epithelial",
        base,
        count,
        gap=0.6,
        angles=np.arctan2(slope_y, slope_x),
        faint_share=0.12,
    )
    tissue.lay_membranes(epithelium, [nucleus.centre_yx for nucleus in nuclei])
    return nuclei, distance


def _nest(
    tissue: Tissue,
    centre_yx: tuple[float, float],
    radii_yx: tuple[float, float],
    count: int,
) -> tuple[list[Nucleus], Field]:
    """Lay a solid nest of epithelial cells."""
    distance = tissue.warped_distance(centre_yx, radii_yx)
    body = _inside(distance)
    tissue.lay_cytoplasm(body, 0.42, 0.20)
    nuclei = tissue.scatter("Epithelial", distance < -14, count, gap=3.5, faint_share=0.15)
    tissue.lay_membranes(body, [nucleus.centre_yx for nucleus in nuclei])
    return nuclei, distance


def _finish(tissue: Tissue, nuclei: list[Nucleus]) -> list[Nucleus]:
    """Draw all nuclei: wide cells first, so that they lie under their neighbours."""
    for nucleus in sorted(nuclei, key=lambda n: n.class_name != "Macrophage"):
        tissue.stain(nucleus)
    return nuclei


def _fibroblasts(tissue: Tissue, where: NDArray[np.bool_], count: int) -> list[Nucleus]:
    angle = np.full(tissue.shape, tissue.rng.uniform(0, np.pi))
    return tissue.scatter("Fibroblast", where, count, gap=5.0, angles=angle)


def _paint_glands(tissue: Tissue) -> list[Nucleus]:
    """Paint two glands in fibrous stroma with a few lymphocytes between them."""
    height, width = tissue.shape
    tissue.lay_stroma()
    one, d1 = _gland(tissue, (0.36 * height, 0.30 * width), (0.27 * height, 0.23 * width), 24)
    two, d2 = _gland(tissue, (0.66 * height, 0.76 * width), (0.25 * height, 0.19 * width), 20)
    stroma = (d1 > 14) & (d2 > 14)
    crowd = stroma & (tissue.warped_distance((0.80 * height, 0.28 * width), (60, 75)) < 0)
    lymphocytes = tissue.scatter("Lymphocyte", crowd, 20, gap=0.0, crowded=True)
    lymphocytes += tissue.scatter("Lymphocyte", stroma, 6, gap=6.0)
    neutrophils = tissue.scatter("Neutrophil", (d1 < -46) | (d2 < -46), 4, gap=6.0)
    macrophages = tissue.scatter("Macrophage", stroma, 2, gap=14.0)
    spindles = _fibroblasts(tissue, stroma, 9)
    return _finish(tissue, one + two + lymphocytes + neutrophils + macrophages + spindles)


def _paint_inflamed_gland(tissue: Tissue) -> list[Nucleus]:
    """Paint one gland with neutrophils in its lumen: a crypt abscess."""
    height, width = tissue.shape
    tissue.lay_stroma(0.38, looseness=0.25)
    ring, distance = _gland(
        tissue, (0.50 * height, 0.46 * width), (0.40 * height, 0.34 * width), 32
    )
    debris = _inside(distance + 48, softness=6.0) * (0.55 + 0.35 * np.tanh(tissue.patches))
    tissue.lay_cytoplasm(np.clip(debris, 0, 1), 0.24, 0.07, granular=2.0)
    neutrophils = tissue.scatter("Neutrophil", distance < -50, 15, gap=1.5)
    stroma = distance > 13
    neutrophils += tissue.scatter("Neutrophil", stroma, 4, gap=4.0)
    lymphocytes = tissue.scatter("Lymphocyte", stroma, 8, gap=1.0)
    spindles = _fibroblasts(tissue, stroma, 4)
    return _finish(tissue, ring + neutrophils + lymphocytes + spindles)


def _paint_infiltrated_tumour(tissue: Tissue) -> list[Nucleus]:
    """Paint solid nests of epithelial cells with dense lymphocytes at their border."""
    height, width = tissue.shape
    tissue.lay_stroma(0.40, looseness=0.35)
    one, d1 = _nest(tissue, (0.30 * height, 0.30 * width), (0.25 * height, 0.26 * width), 18)
    two, d2 = _nest(tissue, (0.72 * height, 0.70 * width), (0.24 * height, 0.25 * width), 18)
    stroma = (d1 > 12) & (d2 > 12)
    front = stroma & ((d1 < 75) | (d2 < 40)) & (tissue.yy > 0.25 * height)
    lymphocytes = tissue.scatter("Lymphocyte", front, 30, gap=0.0, crowded=True)
    lymphocytes += tissue.scatter("Lymphocyte", (d1 < -20) | (d2 < -20), 4, gap=1.0)
    macrophages = tissue.scatter("Macrophage", stroma, 3, gap=12.0)
    spindles = _fibroblasts(tissue, stroma, 10)
    return _finish(tissue, one + two + lymphocytes + macrophages + spindles)


def _paint_airspace(tissue: Tissue) -> list[Nucleus]:
    """Paint an air space with foamy macrophages, its wall lined by flat epithelium."""
    height, width = tissue.shape
    tissue.lay_stroma(0.44, looseness=0.1)
    space = tissue.warped_distance((0.50 * height, 0.47 * width), (0.37 * height, 0.37 * width))
    tissue.clear(_inside(space) * 0.99)
    tissue.lay_cytoplasm(_inside(np.abs(space - 7) - 8), 0.42, 0.14)
    slope_y, slope_x = np.gradient(space)
    lining = tissue.scatter(
        "Epithelial",
        np.abs(space - 9) < 2.5,
        14,
        gap=2.0,
        angles=np.arctan2(slope_y, slope_x) + np.pi / 2,
    )
    macrophages = tissue.scatter("Macrophage", space < -26, 10, gap=11.0, faint_share=0.1)
    neutrophils = tissue.scatter("Neutrophil", (space < -16) | (space > 28), 5, gap=5.0)
    lymphocytes = tissue.scatter("Lymphocyte", space > 30, 9, gap=2.0)
    spindles = _fibroblasts(tissue, space > 26, 4)
    nuclei = _finish(tissue, lining + macrophages + neutrophils + lymphocytes + spindles)
    for row, col in tissue.rng.permutation(np.argwhere((space > 34) & ~tissue.occupied))[:5]:
        tissue.stain_red_cell((float(row), float(col)))
    return nuclei


def _paint_abscess(tissue: Tissue) -> list[Nucleus]:
    """Paint neutrophils and macrophages in loose tissue beside a strip of epithelium."""
    height, width = tissue.shape
    tissue.lay_stroma(0.34, looseness=0.5)
    strip, distance = _nest(
        tissue, (0.14 * height, 0.50 * width), (0.20 * height, 0.80 * width), 15
    )
    loose = distance > 16
    neutrophils = tissue.scatter("Neutrophil", loose & (tissue.yy > 0.38 * height), 22, gap=1.0)
    macrophages = tissue.scatter("Macrophage", loose, 6, gap=12.0, faint_share=0.2)
    lymphocytes = tissue.scatter("Lymphocyte", loose, 14, gap=0.0, crowded=True)
    spindles = _fibroblasts(tissue, loose, 6)
    return _finish(tissue, strip + neutrophils + macrophages + lymphocytes + spindles)


def _paint_aggregate(tissue: Tissue) -> list[Nucleus]:
    """Paint a lymphoid aggregate: many small dark nuclei, touching."""
    height, width = tissue.shape
    tissue.lay_stroma(0.36, looseness=0.3)
    distance = tissue.warped_distance((0.5 * height, 0.5 * width), (0.39 * height, 0.39 * width))
    tissue.lay_cytoplasm(_inside(distance, softness=12.0) * 0.7, 0.28, 0.08)
    macrophages = tissue.scatter("Macrophage", np.abs(distance + 30) < 30, 3, gap=6.0)
    lymphocytes = tissue.scatter("Lymphocyte", distance < 0, 66, gap=0.0, crowded=True)
    spindles = _fibroblasts(tissue, distance > 5, 5)
    epithelial = tissue.scatter("Epithelial", distance > 0, 2, gap=5.0)
    return _finish(tissue, lymphocytes + macrophages + spindles + epithelial)


_RECIPES = (
    _Recipe("Sample-A_1", (460, 540), _paint_glands, oddities=True),
    _Recipe("Sample-A_2", (360, 400), _paint_inflamed_gland),
    _Recipe(
        "Sample-B_1",
        (480, 560),
        _paint_infiltrated_tumour,
        ambiguous_at=((115.0, 455.0, 66.0),),
        haematoxylin=0.92,
        eosin=1.18,
    ),
    _Recipe("Sample-B_2", (400, 440), _paint_airspace, haematoxylin=0.92, eosin=1.18),
    _Recipe(
        "Sample-C_1",
        (420, 440),
        _paint_abscess,
        ambiguous_at=((320.0, 330.0, 62.0), (225.0, 62.0, 34.0)),
        haematoxylin=1.12,
        eosin=0.90,
    ),
    _Recipe("Sample-C_2", (320, 340), _paint_aggregate, haematoxylin=1.12, eosin=0.90),
)
