"""The sample cohort of detections: drawn frames with mitoses, and what four teams found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tifffile
from numpy.typing import NDArray

from napari_panoptic.detections.cohort import Points
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.formats.points.point_files import write_points
from napari_panoptic.samples.tissue import Nucleus, Tissue
from napari_panoptic.samples.write import write_once

DETECTION_SAMPLE_SEED = 2014
"""The seed of the cohort that everybody gets."""
_SHAPE = (440, 540)
_FRAMES = ("A01_00a", "A01_00b", "A02_00a", "A02_00b", "H01_00a", "H01_00b")
"""A and H: frames of two scanners; only the first writes into images how large a pixel is."""
_APERIO_MPP, _HAMAMATSU_MPP = 0.2455, (0.2273, 0.2275)
_PLATE_PX, _LIKENESSES = (11.0, 3.6), 5
Field = NDArray[np.float64]

_NOTE = """The sample cohort of detections of napari-panoptic, drawn with seed {seed}.

Drawn by a program: no patient, no scanner, no annotator. The CSV files are those
of MITOS-ATYPIA-14: x,y,confidence per line. The teams are named after what they
do: careful misses little, eager takes many dark nuclei for mitoses, offset finds
places some micrometres away and gives no confidence, timid names only what it is
sure of.

Open it with:  napari-panoptic view THIS-FOLDER
"""

_TOML = """task = "detections"
name = "Mitoses, four teams (sample cohort)"

[mpp]
"H*" = [0.2273, 0.2275]

[files]
image = "frames/{region}.tif"
reference = "mitosis/{region}_mitosis.csv"
predictions = "teams/{team}/mitosis/{region}.csv"

[files.atypia]
reference = "atypia/{region}_score.csv"
predictions = "teams/{team}/atypia/{region}.csv"
"""


@dataclass(frozen=True, eq=False)
class _Scene:
    """A drawn frame: where the mitoses are, and the dark nuclei that look like them."""

    name: str
    image: NDArray[np.uint8]
    mpp_xy: tuple[float, float]
    mitoses_xy: Field
    likenesses_xy: Field


_Answer = Callable[[_Scene, np.random.Generator], Points]


def write_detection_sample(folder: Path, *, seed: int = DETECTION_SAMPLE_SEED) -> Path:
    """Write the sample cohort of detections: three patients, six frames, four teams.

    The same seed gives the same points, always. A folder that already holds
    this cohort is left as it is.

    Parameters
    ----------
    folder
        Where to write: a folder that does not exist or is empty.
    seed
        Seed of the generator.

    Raises
    ------
    CohortError
        If the folder holds something else, or cannot be written.
    """

    def write(draft: Path) -> None:
        (draft / DESCRIPTION).write_text(_TOML, encoding="utf-8")
        for number, name in enumerate(_FRAMES):
            _write_frame(draft, _draw(name, np.random.default_rng([seed, number])), seed, number)
        _write_scores(draft, np.random.default_rng([seed, len(_FRAMES)]))

    return write_once(folder, _NOTE.format(seed=seed), write)


# --- tissue ---------------------------------------------------------------------------------------


def _draw(name: str, rng: np.random.Generator) -> _Scene:
    """Draw a solid tumour in stroma; some of its nuclei divide, some only look like it."""
    tissue = Tissue(_SHAPE, rng)
    height, width = _SHAPE
    tissue.lay_stroma(0.40, looseness=0.3)
    distance = tissue.warped_distance((0.5 * height, 0.5 * width), (0.46 * height, 0.46 * width))
    body: Field = 0.5 * (1 - np.tanh(distance / 2.4))
    tissue.lay_cytoplasm(body, 0.42, 0.18)
    n_mitoses = int(rng.integers(3, 7))
    special = tissue.scatter("Lymphocyte", distance < -30, n_mitoses + _LIKENESSES, gap=9.0)
    nuclei = tissue.scatter("Epithelial", distance < -14, 42, gap=4.0, faint_share=0.15)
    nuclei += tissue.scatter("Fibroblast", distance > 12, 10, gap=5.0)
    for nucleus in (*nuclei, *special[n_mitoses:]):
        tissue.stain(nucleus)
    for nucleus in special[:n_mitoses]:
        _draw_mitosis(tissue, nucleus, rng)
    is_first = name.startswith("A")
    return _Scene(
        name,
        tissue.photograph(haematoxylin=1.0 if is_first else 1.15, eosin=1.0 if is_first else 0.9),
        (_APERIO_MPP, _APERIO_MPP) if is_first else _HAMAMATSU_MPP,
        _centres(special[:n_mitoses]),
        _centres(special[n_mitoses:]),
    )


def _centres(nuclei: list[Nucleus]) -> Field:
    return np.array([nucleus.centre_yx[::-1] for nucleus in nuclei]).reshape(-1, 2)


def _draw_mitosis(tissue: Tissue, nucleus: Nucleus, rng: np.random.Generator) -> None:
    """Draw a dark ragged plate, or two of them drawn apart, in a clear round cell."""
    y, x = nucleus.centre_yx
    angle = rng.uniform(0, np.pi)
    along = np.cos(angle) * (tissue.xx - x) + np.sin(angle) * (tissue.yy - y)
    across = -np.sin(angle) * (tissue.xx - x) + np.cos(angle) * (tissue.yy - y)
    cell = 0.5 * (1 - np.tanh((np.hypot(along, across) - 17.0) / 2.0))
    tissue.haematoxylin += cell * (0.06 - tissue.haematoxylin)
    tissue.eosin += cell * (0.30 - tissue.eosin)
    long, short = _PLATE_PX
    apart = rng.choice([0.0, 6.0])  # metaphase or anaphase
    for side in {-apart, apart}:
        ragged = 1.3 * tissue.grain + 0.6 * tissue.fine
        depth = 1 - np.hypot(along / long, (across - side) / short) + 0.07 * ragged
        plate = 0.5 * (1 + np.tanh(depth / 0.09))
        tissue.haematoxylin += plate * (2.0 - tissue.haematoxylin)


# --- what teams found -----------------------------------------------------------------------------


def _points(xy: Field, confidence: Field | None = None) -> Points:
    confidence = np.full(len(xy), np.nan) if confidence is None else np.round(confidence, 3)
    return Points(np.round(xy, 1), confidence, np.arange(1, len(xy) + 1))


def _near(xy: Field, spread_px: float, rng: np.random.Generator) -> Field:
    moved: Field = np.clip(xy + rng.normal(0, spread_px, xy.shape), 0, np.array(_SHAPE[::-1]) - 1)
    return moved


def _careful(scene: _Scene, rng: np.random.Generator) -> Points:
    """Find nearly all, surely; take one likeness in three for a mitosis, with little confidence."""
    right = scene.mitoses_xy[rng.random(len(scene.mitoses_xy)) < 0.92]
    wrong = scene.likenesses_xy[rng.random(len(scene.likenesses_xy)) < 0.35]
    confidence = np.concatenate(
        [rng.uniform(0.55, 0.99, len(right)), rng.uniform(0.05, 0.65, len(wrong))]
    )
    return _points(_near(np.concatenate([right, wrong]), 4.0, rng), confidence)


def _eager(scene: _Scene, rng: np.random.Generator) -> Points:
    """Find all, some of them twice, and most likenesses, hardly knowing which is which."""
    twice = scene.mitoses_xy[rng.random(len(scene.mitoses_xy)) < 0.3]
    wrong = scene.likenesses_xy[rng.random(len(scene.likenesses_xy)) < 0.85]
    xy = np.concatenate([scene.mitoses_xy, twice, wrong])
    confidence = np.concatenate(
        [
            rng.uniform(0.35, 0.95, len(scene.mitoses_xy)),
            rng.uniform(0.2, 0.7, len(twice)),
            rng.uniform(0.15, 0.85, len(wrong)),
        ]
    )
    return _points(_near(xy, 7.0, rng), confidence)


def _offset(scene: _Scene, rng: np.random.Generator) -> Points:
    """Find nearly all, but beside them: some further away than 8 um."""
    right = scene.mitoses_xy[rng.random(len(scene.mitoses_xy)) < 0.9]
    return _points(_near(right + np.array([26.0, -18.0]), 5.0, rng))


def _timid(scene: _Scene, rng: np.random.Generator) -> Points:
    """Find less than half; in some frames nothing."""
    right = scene.mitoses_xy[rng.random(len(scene.mitoses_xy)) < 0.45]
    return _points(_near(right, 3.0, rng), rng.uniform(0.8, 0.99, len(right)))


_TEAMS: Mapping[str, _Answer] = {
    "careful": _careful,
    "eager": _eager,
    "offset": _offset,
    "timid": _timid,
}
_MISSING = ("offset", "A02_00b")
"""A result that was never sent."""


def _write_frame(root: Path, scene: _Scene, seed: int, number: int) -> None:
    image = root / "frames" / f"{scene.name}.tif"
    image.parent.mkdir(parents=True, exist_ok=True)
    per_cm = 10_000 / _APERIO_MPP
    resolution = (per_cm, per_cm) if scene.name.startswith("A") else None
    tifffile.imwrite(
        image,
        scene.image,
        photometric="rgb",
        compression="adobe_deflate",
        resolution=resolution,
        resolutionunit="CENTIMETER" if resolution else None,
        metadata=None,
    )
    rng = np.random.default_rng([seed, number, len(_TEAMS)])
    reference = root / "mitosis" / f"{scene.name}_mitosis.csv"
    reference.parent.mkdir(exist_ok=True)
    agreement = rng.choice([0.67, 0.83, 1.0], len(scene.mitoses_xy))
    write_points(reference, _points(np.round(scene.mitoses_xy), agreement))
    for team_number, (team, answer) in enumerate(_TEAMS.items()):
        if (team, scene.name) == _MISSING:
            continue
        path = root / "teams" / team / "mitosis" / f"{scene.name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_points(path, answer(scene, np.random.default_rng([seed, number, team_number])))


def _write_scores(root: Path, rng: np.random.Generator) -> None:
    """Write scores of atypia; the teams err by one or two, and timid leaves some open."""
    for frame in sorted({name[:-1] for name in _FRAMES}):
        reference = int(rng.integers(1, 4))
        _write_text(root / "atypia" / f"{frame}_score.csv", f"{reference}\n")
        for team, error in zip(_TEAMS, (0.15, 0.5, 0.8, 0.4), strict=True):
            score = int(rng.integers(1, 4)) if rng.random() < error else reference
            answer = "" if team == "timid" and rng.random() < 0.4 else f"{score},{1 - error:.2f}\n"
            _write_text(root / "teams" / team / "atypia" / f"{frame}.csv", answer)


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
