"""A small cohort in the challenge's layout and real formats, with the oddities of the real one.

Five regions of three patients, two teams, and the annotation's own colour-coded version. What is
in it: overlapping polygons; a polygon of two vertices; one that later polygons of its class cover,
one that another class covers; fractional vertices, and one outside the image; one class in two
layers of the file; ambiguous areas that cut through objects, and classes of which they leave
nothing; a region in which nothing but an ambiguous area is annotated; predicted classes that the
annotation lacks; touching objects, split, merged, misnamed, missed and invented ones; one-pixel
objects; objects that touch at a corner only.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.builders import (
    BORDER,
    COLOURS,
    noise,
    write_mat,
    write_svs,
    write_tiff,
    write_xml,
)

ANNOTATIONS = "MoNuSAC Testing Data and Annotations"
COLOUR_CODED = "MoNuSAC_Testing_Color_Coded_Masks"
E, L, N, M, AMBIGUOUS = "Epithelial", "Lymphocyte", "Neutrophil", "Macrophage", "Ambiguous"
CLASSES = (E, L, N, M)
MPP = 0.25
TEAMS = ("alpha", "beta")

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Ellipse:
    """One predicted object: class, centre and radii in px."""

    cls: str
    x: float
    y: float
    rx: float
    ry: float

    def covers(self, shape: tuple[int, int]) -> NDArray[np.bool_]:
        rows, columns = np.indices(shape)
        inside: NDArray[np.bool_] = (
            ((columns - self.x) / self.rx) ** 2 + ((rows - self.y) / self.ry) ** 2
        ) <= 1
        return inside


@dataclass(frozen=True, eq=False)
class SmallRegion:
    """One region: its annotation as layers of polygons, and what each team found."""

    patient: str
    name: str
    shape: tuple[int, int]
    layers: Sequence[tuple[str, Sequence[Points]]]
    alpha: Sequence[Ellipse]
    beta: Sequence[Ellipse]

    def found_by(self, team: str) -> Sequence[Ellipse]:
        return self.alpha if team == "alpha" else self.beta


def blob(x: float, y: float, rx: float, ry: float, corners: int = 9) -> Points:
    """Give the corners of a roundish polygon, with digits that truncation cuts off."""
    angles = np.arange(corners) * 2 * np.pi / corners
    return [(round(x + rx * np.cos(a), 3), round(y + ry * np.sin(a), 3)) for a in angles]


def box(x0: float, y0: float, x1: float, y1: float) -> Points:
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


REGIONS = (
    SmallRegion(
        "TCGA-AA-0001-01Z-00-DX1",
        "TCGA-AA-0001-01Z-00-DX1_1",
        (40, 56),
        layers=[
            (
                E,
                [
                    blob(8, 8, 6, 5),
                    blob(15, 9, 5, 5),  # overlaps the one before
                    [(30.2, 30.9), (33.7, 30.1)],  # two vertices
                    box(40, 4, 43, 7),  # vanishes under the next one
                    blob(42, 6, 6, 5),
                    blob(9, 27, 6, 6),
                ],
            ),
            (L, [blob(20, 26, 4, 4), blob(28, 26, 4, 4), blob(10, 24, 3, 3)]),  # the last is on E
            (AMBIGUOUS, [box(44, 20, 60, 39)]),
            (E, [blob(43, 26, 5, 4), blob(51, 34, 3, 3)]),  # one cut in two, one cut away
            (M, [blob(52, 24, 2, 2)]),  # nothing is left of the class
        ],
        alpha=[
            Ellipse(E, 8, 8, 6, 5),
            Ellipse(E, 15, 9, 4, 5),
            Ellipse(E, 42, 6, 6, 5),
            Ellipse(E, 9, 27, 6, 6),
            Ellipse(L, 20, 26, 4, 4),
            Ellipse(L, 28, 26, 5, 3),  # touches its neighbour
            Ellipse(E, 43, 26, 5, 4),
            Ellipse(E, 51, 34, 3, 3),
            Ellipse(N, 47, 35, 2, 2),  # nothing is left of this class either
        ],
        beta=[
            Ellipse(E, 5, 8, 3, 5),
            Ellipse(E, 11, 8, 3, 5),
            Ellipse(M, 42, 6, 6, 5),
            Ellipse(L, 24, 26, 9, 5),  # merges two
            Ellipse(N, 9, 28, 4, 4),
            Ellipse(E, 50, 33, 7, 6),  # inside the ambiguous area, with a rim outside
            Ellipse(E, 31, 31, 0.5, 0.5),
        ],
    ),
    SmallRegion(
        "TCGA-AA-0001-01Z-00-DX1",
        "TCGA-AA-0001-01Z-00-DX1_2",
        (32, 40),
        layers=[
            (N, [blob(8, 8, 5, 5), blob(30, 8, 5, 5)]),
            (L, [box(12, 20, 15, 23), blob(25, 22, 5, 5), blob(34, 17, 2, 2)]),
            (N, [box(10, 18, 17, 25)]),  # of a later class: covers the lymphocyte whole
        ],
        alpha=[
            Ellipse(N, 9, 9, 5, 5),
            Ellipse(N, 30, 8, 3, 3),
            Ellipse(N, 13, 21, 4, 4),
            Ellipse(L, 25, 22, 5, 5),
            Ellipse(L, 34, 17, 4, 4),
        ],
        beta=[
            Ellipse(N, 8, 8, 4, 5),
            Ellipse(L, 30, 8, 5, 5),
            Ellipse(L, 33, 25, 4, 4),
            Ellipse(M, 13, 21, 6, 6),
            Ellipse(E, 36, 3, 0.5, 0.5),
            Ellipse(E, 37, 4, 0.5, 0.5),  # one object with the pixel before, by its corner
        ],
    ),
    SmallRegion(
        "TCGA-BB-0002-01Z-00-DX1",
        "TCGA-BB-0002-01Z-00-DX1_001",
        (36, 36),
        layers=[
            (M, [blob(12, 12, 9, 8, 12)]),
            (L, [blob(28, 28, 4, 4), blob(28, 6, 4, 4), [(31.5, 30.5), (45.0, 24.0), (33, 38)]]),
            (AMBIGUOUS, [blob(18, 24, 8, 5), blob(14, 8, 4, 4)]),
        ],
        alpha=[
            Ellipse(M, 12, 12, 9, 7),
            Ellipse(L, 28, 28, 4, 4),
            Ellipse(L, 29, 8, 4, 4),
            Ellipse(L, 16, 24, 3, 3),
            Ellipse(L, 19, 26, 3, 3),
        ],
        beta=[
            Ellipse(M, 8, 12, 4, 8),
            Ellipse(M, 17, 12, 4, 8),
            Ellipse(M, 28, 26, 7, 6),
            Ellipse(E, 28, 6, 4, 4),
        ],
    ),
    SmallRegion(
        "TCGA-BB-0002-01Z-00-DX1",
        "TCGA-BB-0002-01Z-00-DX1_002",
        (30, 44),
        layers=[
            (L, [blob(6 + 8 * k, 8 + 3 * (k % 2), 4, 4) for k in range(5)]),
            (E, [blob(12, 22, 8, 5, 11), blob(32, 22, 8, 5, 11)]),
        ],
        alpha=[
            *(Ellipse(L, 6 + 8 * k, 8 + 3 * (k % 2), 4, 3 + k % 2) for k in range(5)),
            Ellipse(E, 12, 22, 8, 5),
            Ellipse(E, 33, 22, 6, 5),
        ],
        beta=[],
    ),
    SmallRegion(
        "TCGA-CC-0003-01Z-00-DX1",
        "TCGA-CC-0003-01Z-00-DX1_1",
        (33, 50),
        layers=[(AMBIGUOUS, [box(4, 4, 24, 26)])],
        alpha=[],
        beta=[Ellipse(L, 10, 12, 5, 5), Ellipse(L, 24, 12, 4, 4), Ellipse(N, 40, 20, 6, 5)],
    ),
)


def write_cohort(root: Path) -> Path:
    """Write all of it into a folder, which is made where it is not there."""
    for number, region in enumerate(REGIONS):
        folder = root / ANNOTATIONS / region.patient
        write_svs(folder / f"{region.name}.svs", noise(*region.shape, seed=number), mpp=MPP)
        write_xml(folder / f"{region.name}.xml", *region.layers)
        write_tiff(annotation_mask_path(root, region), painted(_annotated(region), region.shape))
        for team in TEAMS:
            write_tiff(mask_path(root, team, region), painted(region.found_by(team), region.shape))
            _write_submission(root, team, region)
    return root


def mask_path(root: Path, team: str, region: SmallRegion) -> Path:
    return root / "Teams" / team / region.patient / f"{region.name}_mask.png.tif"


def annotation_mask_path(root: Path, region: SmallRegion) -> Path:
    return root / COLOUR_CODED / region.patient / f"{region.name}_RGB_mask.tif.tif"


def submission_folder(root: Path, team: str, region: SmallRegion) -> Path:
    return root / "Submissions" / team / region.patient / region.name


def painted(objects: Sequence[Ellipse], shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Paint objects over each other in the colours of their classes, with brown borders.

    A border lies on the object's own right and lower edge only, so that objects that touch are
    one pixel apart: both want that pixel when they are dilated. What is a pixel wide has none.
    """
    labels = np.zeros(shape, np.int32)
    for label, ellipse in enumerate(objects, start=1):
        labels[ellipse.covers(shape)] = label
    rgb = np.zeros((*shape, 3), np.uint8)
    for label, ellipse in enumerate(objects, start=1):
        rgb[labels == label] = COLOURS[ellipse.cls]
    inner = np.zeros(shape, bool)
    inner[:-1, :-1] = (labels[:-1, :-1] == labels[1:, :-1]) & (labels[:-1, :-1] == labels[:-1, 1:])
    large = np.bincount(labels.ravel(), minlength=len(objects) + 1) > 1
    rgb[(labels > 0) & ~inner & large[labels]] = BORDER
    return rgb


def _annotated(region: SmallRegion) -> list[Ellipse]:
    """Take every scored polygon for the ellipse in its bounding box."""
    found = []
    for cls, polygons in region.layers:
        for points in polygons if cls != AMBIGUOUS else ():
            xs, ys = np.array(points).T
            rx, ry = max(np.ptp(xs) / 2, 0.5), max(np.ptp(ys) / 2, 0.5)
            found.append(Ellipse(cls, xs.min() + rx, ys.min() + ry, rx, ry))
    return found


def _write_submission(root: Path, team: str, region: SmallRegion) -> None:
    """Write n-ary masks: team alpha numbers from 1 in each class, beta on from class to class.

    Objects of different classes overlap here. Beta's Lymphocytes of the second region are a binary
    mask. A class without objects has no folder.
    """
    folder = submission_folder(root, team, region)
    folder.mkdir(parents=True)
    following = 1
    for cls in CLASSES:
        objects = [found for found in region.found_by(team) if found.cls == cls]
        if not objects:
            continue
        first = 1 if team == "alpha" else following
        mask: NDArray[Any] = np.zeros(region.shape, np.float64 if team == "alpha" else np.uint16)
        for label, ellipse in enumerate(objects, start=first):
            mask[ellipse.covers(region.shape)] = label
        following = first + len(objects)
        if team == "beta" and cls == L and region is REGIONS[1]:
            mask = np.where(mask > 0, 255, 0).astype(np.uint8)
        variable = "n_ary_mask" if team == "alpha" else f"{cls}_mask"
        write_mat(folder / cls / f"{region.name}.mat", **{variable: mask})


def write_first_regions(folder: Path, n_regions: int) -> Path:
    """Write some regions of the cohort only."""
    cohort = write_cohort(folder / "cohort")
    for region in REGIONS[n_regions:]:
        for path in [*cohort.rglob(f"{region.name}*")]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    return cohort
