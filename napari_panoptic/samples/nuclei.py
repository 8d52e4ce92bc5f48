"""The sample cohort: drawn by a seeded generator, written in the real formats.

It has the folder layout of the MoNuSAC 2020 test set, so that whatever reads
the one reads the other, and it needs no download and no licence. The tissue is
in `scenes`, the teams' manners are in `teams`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.io
import tifffile
from numpy.typing import NDArray
from skimage.segmentation import find_boundaries

from napari_panoptic.io.formats.polygons.imagescope import write_annotation
from napari_panoptic.nuclei.values.cohort import MONUSAC_CLASSES
from napari_panoptic.samples.scenes import Scene, draw_scenes
from napari_panoptic.samples.teams import TEAM_NAMES, answer_of
from napari_panoptic.samples.write import write_once

SAMPLE_MPP = 0.2525
"""Micrometres per pixel of its images, as in scans at 40x."""
SAMPLE_SEED = 2020
"""The seed of the cohort that everybody gets."""
SAMPLE_TEAMS = TEAM_NAMES
"""Names of its teams."""

ANNOTATION_FOLDER = "MoNuSAC Testing Data and Annotations"
COLOUR_CODED_FOLDER = "MoNuSAC_Testing_Color_Coded_Masks"

_NOTE = """The sample cohort of napari-panoptic, drawn with seed {seed}.

Drawn by a program: no patient, no scanner, no annotator. The layout and the
file formats are those of the MoNuSAC 2020 test set. The teams are named after
what they do: careful is nearly right, over-splitter cuts nuclei into pieces,
merger joins them, confuser mistakes one class for another and answers inside
ambiguous areas.

Open it with:  napari-panoptic view THIS-FOLDER
"""


@dataclass(frozen=True)
class _Habit:
    """How a team writes its .mat files; every real team did it in another way.

    Parameters
    ----------
    variable
        Name of the variable; ``{name}`` stands for the class.
    dtype
        What the numbers are stored as.
    restarts
        Whether ids start from 1 in each class, or go on from class to class.
    empty_files
        Whether a class without objects gets a file.
    """

    variable: str
    dtype: type[np.generic]
    restarts: bool
    empty_files: bool


_HABITS = {
    "careful": _Habit("{name}_mask", np.int32, restarts=True, empty_files=False),
    "over-splitter": _Habit("n_ary_mask", np.float64, restarts=False, empty_files=True),
    "merger": _Habit("img", np.uint16, restarts=True, empty_files=True),
    "confuser": _Habit("arr", np.int64, restarts=False, empty_files=False),
}


def write_sample_cohort(folder: Path, *, seed: int = SAMPLE_SEED) -> Path:
    """Write the sample cohort: three patients, six regions, four teams.

    The same seed gives the same objects, always. The folder appears only when
    it is complete. A folder that already holds this cohort is left as it is,
    with whatever was edited in it since.

    Parameters
    ----------
    folder
        Where to write: a folder that does not exist or is empty.
    seed
        Seed of the generator.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    CohortError
        If the folder holds something else, or cannot be written.
    """

    def write(draft: Path) -> None:
        for number, scene in enumerate(draw_scenes(seed)):
            _write_region(draft, scene, seed, number)

    return write_once(folder, _NOTE.format(seed=seed), write)


# --- One region --------------------------------------------------------------


def _write_region(root: Path, scene: Scene, seed: int, number: int) -> None:
    annotations = root / ANNOTATION_FOLDER / scene.patient
    annotations.mkdir(parents=True, exist_ok=True)
    _write_slide(annotations / f"{scene.name}.svs", scene)
    outlines = [(polygon.class_name, polygon.vertices_xy) for polygon in scene.polygons]
    write_annotation(annotations / f"{scene.name}.xml", outlines, SAMPLE_MPP)
    coded = root / COLOUR_CODED_FOLDER / scene.patient / f"{scene.name}_RGB_mask.tif.tif"
    _write_colour_coded(coded, _annotated_masks(scene))
    for team_number, team in enumerate(TEAM_NAMES):
        masks = answer_of(team, scene, np.random.default_rng([seed, number, team_number]))
        published = root / "Teams" / team / scene.patient / f"{scene.name}_mask.png.tif"
        _write_colour_coded(published, masks)
        submitted = root / "Submissions" / team / scene.patient / scene.name
        _write_submission(submitted, masks, _HABITS[team])


def _annotated_masks(scene: Scene) -> dict[str, NDArray[np.int32]]:
    """Rasterise the annotation, class by class, later polygons over earlier ones."""
    masks = {name: np.zeros(scene.shape, np.int32) for name in MONUSAC_CLASSES.names}
    for number, polygon in enumerate(scene.polygons, start=1):
        if polygon.class_name in masks:
            masks[polygon.class_name][polygon.pixels(scene.shape)] = number
    return masks


def _write_slide(path: Path, scene: Scene) -> None:
    """Write a tiled Aperio TIFF, which OpenSlide takes for a scanned slide."""
    height, width = scene.shape
    description = (
        f"Aperio Image Library v11.2.1 \r\n{width}x{height} [0,0 {width}x{height}] (256x256) "
        f"JPEG/RGB Q=90|AppMag = 40|MPP = {SAMPLE_MPP}"
    )
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(
            scene.image,
            tile=(256, 256),
            photometric="rgb",
            compression="jpeg",
            compressionargs={"level": 90},
            metadata=None,
            subfiletype=0,
            description=description,
        )


def _write_colour_coded(path: Path, masks: Mapping[str, NDArray[np.int32]]) -> None:
    """Paint the classes in their colours, and every object's border brown over it."""
    shape = next(iter(masks.values())).shape
    picture = np.zeros((*shape, 3), np.uint8)
    for name, colour in zip(MONUSAC_CLASSES.names, MONUSAC_CLASSES.colours, strict=True):
        picture[masks[name] > 0] = colour
    for mask in masks.values():
        picture[find_boundaries(mask, mode="thick")] = MONUSAC_CLASSES.border[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    tifffile.imwrite(path, picture, photometric="rgb", compression="adobe_deflate")


def _write_submission(folder: Path, masks: Mapping[str, NDArray[np.int32]], habit: _Habit) -> None:
    """Write one .mat file per class, in the manner of the team."""
    used = 0
    for number, (name, mask) in enumerate(masks.items(), start=1):
        if not mask.any() and not habit.empty_files:
            continue
        ids = np.where(mask > 0, mask + used, 0)
        used = 0 if habit.restarts else int(ids.max(initial=used))
        path = folder / name / f"{number}_mask.mat"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {habit.variable.format(name=name): ids.astype(habit.dtype)}
        scipy.io.savemat(path, content, do_compression=True)
