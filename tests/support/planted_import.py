"""A clean cohort, cut from the sample, and ways to make a wrong one of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation
from scipy.ndimage import label as components
from skimage.measure import euler_number, find_contours

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.saving import write_objects
from napari_panoptic.io.images.slides import read_image
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from tests.support.builders import write_svs
from tests.support.outlined_cohort import simplified, traced

REGIONS = ("Sample-A_1", "Sample-B_1")
TEAMS = {"alpha": "careful", "beta": "merger"}
SHAPE = (170, 210)
DESCRIPTION = """# Our comparison; do not change.
name = "Clean"

[classes]  # in the order of the paper
Epithelial = [255, 0, 0]
Lymphocyte = [255, 255, 0]
Neutrophil = [0, 0, 255]
Macrophage = [0, 255, 0]

[files]
image = "images/{region}.svs"
reference.geojson = "annotation/{region}.geojson"
predictions.geojson = "teams/{team}/{region}.geojson"  # from QuPath
"""
MASKS = DESCRIPTION.replace("predictions.geojson", "predictions.labels").replace(
    '{region}.geojson"  # from QuPath', '{region}.tif"'
)
Points = NDArray[np.float64]


def whole_objects(labels: LabelImage) -> LabelImage:
    """Cut a label image; keep objects of one piece without holes, numbered class by class."""
    window = labels.index[: SHAPE[0], : SHAPE[1]]
    names = labels.class_names_of_objects()
    index, classes = np.zeros(SHAPE, np.int32), {}
    for row in np.argsort(labels.class_index, kind="stable"):
        mask = window == row + 1
        if mask.any() and components(mask)[1] == 1 and euler_number(mask, 1) == 1:
            classes[len(classes) + 1] = str(names[row])
            index[mask] = len(classes)
    return LabelImage.from_array(index, classes, MONUSAC_CLASSES.names)


def write_clean(folder: Path, sample: Path) -> Path:
    """Write two cut regions of the sample: outlines and masks, two teams."""
    cohort = open_cohort(sample)
    settings = EvaluationSettings(distances=False)
    (folder / "images").mkdir(parents=True)
    for name in REGIONS:
        snapshot = load_region(cohort, name, settings)
        path = snapshot.region.image
        assert path is not None
        with read_image(path) as image:
            pixels = np.asarray(image.levels[0])[: SHAPE[0], : SHAPE[1]]
        write_svs(folder / "images" / f"{name}.svs", pixels)
        pairs = {team: snapshot.evaluations[own].pair for team, own in TEAMS.items()}
        sides = {"annotation": pairs["alpha"].reference}
        sides |= {f"teams/{team}": pair.prediction for team, pair in pairs.items()}
        for place, labels in sides.items():
            objects = Objects(
                whole_objects(labels), Side.REFERENCE, name, "", None, MONUSAC_CLASSES, 0.25
            )
            (folder / place).mkdir(parents=True, exist_ok=True)
            write_objects(folder / place / f"{name}.geojson", objects)
            write_objects(folder / place / f"{name}.tif", objects)
    (folder / "cohort.toml").write_text(DESCRIPTION)
    return folder


def objects_of(folder: Path, **options: Any) -> list[list[Any]]:
    """Evaluate a cohort; list every object of every team with status, partner and place."""
    cohort = open_cohort(folder)
    settings = EvaluationSettings(**{"distances": False, **options})
    rows: list[list[Any]] = []
    for region in REGIONS:
        snapshot = load_region(cohort, region, settings)
        for team in TEAMS:
            objects = snapshot.evaluations[team].objects.fillna(-1)
            rows += [[region, team, *row] for row in objects.to_numpy().tolist()]
    return rows


def masks_in(folder: Path, place: str) -> dict[str, NDArray[np.int32]]:
    """Read the label images of one side: region -> ids."""
    return {name: tifffile.imread(folder / place / f"{name}.tif") for name in REGIONS}


def change_points(folder: Path, place: str, change: Callable[[Points], Points]) -> None:
    """Change the coordinates of all outlines of one side."""

    def each(ring: Any) -> list[list[float]]:
        points: list[list[float]] = change(np.array(ring, np.float64)).tolist()
        return points

    def geometry(feature: dict[str, Any]) -> None:
        own = feature["geometry"]
        many = own["type"] == "MultiPolygon"
        parts = own["coordinates"] if many else [own["coordinates"]]
        changed = [[each(ring) for ring in part] for part in parts]
        own["coordinates"] = changed if many else changed[0]

    change_features(folder, place, geometry)


def change_features(folder: Path, place: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change every feature of one side."""
    for name in REGIONS:
        path = folder / place / f"{name}.geojson"
        content = json.loads(path.read_text())
        for feature in content["features"]:
            change(feature)
        path.write_text(json.dumps(content))


def change_rings(folder: Path, place: str, outline: Callable[[NDArray[np.bool_]], Any]) -> None:
    """Outline all objects of one side in another way, from their pixels."""
    for name, ids in masks_in(folder, place).items():
        path = folder / place / f"{name}.geojson"
        content = json.loads(path.read_text())
        for number, feature in enumerate(content["features"], start=1):
            ring = [list(point) for point in outline(ids == number)]
            coordinates = [[*ring, ring[0]]]
            feature["geometry"] = {"type": "Polygon", "coordinates": coordinates}
        path.write_text(json.dumps(content))


def as_coco(
    folder: Path, changed: str | None = None, *, times: float = 1.0, crowds: bool = False
) -> None:
    """Read the teams from COCO instances; one as found at another size, or half of it as crowds."""
    (folder / "cohort.toml").write_text(
        DESCRIPTION.replace("predictions.geojson", "predictions.coco-instances").replace(
            '{region}.geojson"  # from QuPath', '{region}.coco.json"'
        )
    )
    numbers = {name: number for number, name in enumerate(MONUSAC_CLASSES.names, start=1)}
    categories = [{"id": number, "name": name} for name, number in numbers.items()]
    for place in (f"teams/{team}" for team in TEAMS):
        is_changed = place == changed
        scale = times if is_changed else 1.0
        height, width = (int(length * scale) for length in SHAPE)
        for name in REGIONS:
            features = json.loads((folder / place / f"{name}.geojson").read_text())["features"]
            entries = [
                {
                    "id": id_,
                    "image_id": 1,
                    "category_id": numbers[feature["properties"]["classification"]["name"]],
                    "iscrowd": int(crowds and is_changed and id_ % 2),
                    "segmentation": [
                        (scale * np.array(ring[:-1])).ravel().tolist()
                        for ring in feature["geometry"]["coordinates"]
                    ],
                }
                for id_, feature in enumerate(features, start=1)
            ]
            image = {"id": 1, "file_name": f"{name}.png", "height": height, "width": width}
            table = {"images": [image], "annotations": entries, "categories": categories}
            (folder / place / f"{name}.coco.json").write_text(json.dumps(table))


def by_opencv(mask: NDArray[np.bool_]) -> Any:
    """Outline an object through the centres of its border pixels."""
    return simplified(traced(mask))


def by_scikit_image(mask: NDArray[np.bool_]) -> Any:
    """Outline an object between the centres of pixels, x and y."""
    (contour,) = find_contours(np.pad(mask, 1).astype(float), 0.5)
    return (contour[:-1, ::-1] - 1).tolist()


def joined_by_class(folder: Path, place: str) -> None:
    """Write one MultiPolygon for all nuclei of a class, as CellViT does."""
    for name in REGIONS:
        path = folder / place / f"{name}.geojson"
        content = json.loads(path.read_text())
        joined: dict[str, dict[str, Any]] = {}
        for feature in content["features"]:
            called = json.dumps(feature["properties"]["classification"])
            known = joined.setdefault(called, {**feature, "geometry": {"coordinates": []}})
            known["geometry"]["coordinates"].append(feature["geometry"]["coordinates"])
            known["geometry"]["type"] = "MultiPolygon"
        path.write_text(json.dumps({**content, "features": list(joined.values())}))


def change_masks(
    folder: Path, place: str, change: Callable[[NDArray[np.int32]], NDArray[np.int32]]
) -> None:
    """Change the pixels of all masks of one side, of a cohort that is read from masks."""
    (folder / "cohort.toml").write_text(MASKS)
    for name, ids in masks_in(folder, place).items():
        tifffile.imwrite(folder / place / f"{name}.tif", change(ids))


def apart_objects(ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Remove the objects that touch others; number the rest in raster order."""
    kept = np.zeros_like(ids)
    for number in range(1, int(ids.max()) + 1):
        mask = ids == number
        if not (binary_dilation(mask, np.ones((3, 3))) & (ids != number) & (ids > 0)).any():
            kept[mask] = number
    order = [number for number in dict.fromkeys(kept.ravel().tolist()) if number]
    lookup = np.zeros(int(ids.max()) + 1, np.int32)
    lookup[order] = np.arange(1, len(order) + 1)
    return lookup[kept]


def of_one_class(folder: Path) -> None:
    """Make a clean cohort of masks of one class, in which no two objects of a side touch."""
    for place in ("annotation", "teams/alpha", "teams/beta"):
        change_masks(folder, place, apart_objects)
        for table in (folder / place).glob("*.csv"):
            table.unlink()
    start, end = MASKS.index("Lymphocyte"), MASKS.index("[files]")
    text = MASKS[:start] + "\n" + MASKS[end:]
    text = text.replace("reference.geojson", "reference.labels").replace(".geojson", ".tif")
    (folder / "cohort.toml").write_text(text)


def without_mpp(folder: Path, name: str) -> None:
    """Remove the micrometres per pixel of one image."""
    path = folder / "images" / f"{name}.svs"
    with read_image(path) as image:
        pixels = np.asarray(image.levels[0])
    write_svs(path, pixels, mpp=None)
