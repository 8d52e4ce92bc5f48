"""All seeded cases: label images, polygons, cohorts on disk, and slides."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from skimage.segmentation import find_boundaries

from napari_panoptic.values.cohort import MONUSAC_CLASSES

Labels = NDArray[np.int32]
Floats = NDArray[np.float64]
SHARED = Path(__file__).resolve().parents[2] / "shared" / "cases"
MONUSAC = str(SHARED / "monusac")


@dataclass(frozen=True)
class Size:
    """A name for an image side in px and a number of reference objects."""

    name: str
    side: int
    objects: int

    def __str__(self) -> str:
        return f"{self.name}: {self.side} x {self.side} px, {self.objects} objects"


SMALL = Size("S", 600, 60)
MEDIUM = Size("M", 1500, 800)
LARGE = Size("L", 8192, 25_000)
CLASSES = MONUSAC_CLASSES.names
COLOURS = np.array([(0, 0, 0), *MONUSAC_CLASSES.colours], np.uint8)
NOISE_IDS = 3001  # in an image of M nearly every pixel is another pair


def sizes(names: str) -> list[Size]:
    """Return the sizes of these letters."""
    return [size for size in (SMALL, MEDIUM, LARGE) if size.name in names]


# --- label images -------------------------------------------------------------------------------


def label_pair(size: Size, *, seed: int = 1) -> tuple[Labels, Labels]:
    """Draw reference and prediction: ellipses on a jittered grid.

    Of ten predictions eight fit, one lies far beside, and one is missing; ids are random.
    """
    rng = np.random.default_rng(seed)
    per_side = int(np.ceil(np.sqrt(size.objects)))
    cell = size.side / per_side
    cells = rng.permutation(per_side**2)[: size.objects]
    centres = (np.stack(np.divmod(cells, per_side), axis=1) + 0.5) * cell
    centres += rng.uniform(-0.12, 0.12, centres.shape) * cell
    axes = min(0.28 * cell, 14.0) * rng.uniform(0.75, 1.15, centres.shape)
    shift = rng.normal(0, 1.0, centres.shape)
    kind = np.arange(size.objects) % 10
    shift[kind == 8] += axes[kind == 8] * 1.1
    found = kind != 9
    reference = _painted(size, centres, axes, rng)
    grown = axes * rng.uniform(0.92, 1.1, axes.shape)
    return reference, _painted(size, (centres + shift)[found], grown[found], rng)


def _painted(size: Size, centres: Floats, axes: Floats, rng: np.random.Generator) -> Labels:
    labels = np.zeros((size.side, size.side), np.int32)
    paint_ellipses(labels, centres, axes, rng.permutation(len(centres)) + 1)
    return labels


def paint_ellipses(labels: Labels, centres: Any, axes: Any, ids: Any) -> None:
    """Draw ellipses, which may reach beyond the image; earlier ones stay on top."""
    for (y, x), (a, b), label in zip(centres, axes, ids, strict=True):
        reach = int(max(a, b)) + 2
        y0, x0 = max(0, int(y) - reach), max(0, int(x) - reach)
        window = labels[y0 : max(0, int(y) + reach), x0 : max(0, int(x) + reach)]
        yy, xx = np.ogrid[: window.shape[0], : window.shape[1]]
        inside = ((yy + y0 - y) / a) ** 2 + ((xx + x0 - x) / b) ** 2 <= 1
        window[inside & (window == 0)] = label


def colour_coded(labels: Labels, classes: NDArray[Any] | None = None) -> NDArray[np.uint8]:
    """Draw an RGB image (y, x, 3): objects in the colours of their classes, brown borders."""
    of_ids = np.arange(int(labels.max()) + 1) % len(CLASSES) + 1 if classes is None else classes
    pixels = COLOURS[np.where(labels > 0, of_ids[labels], 0)]
    pixels[(labels > 0) & find_boundaries(labels, mode="thick")] = MONUSAC_CLASSES.border[0]
    return pixels


def worst_pairs(size: Size) -> dict[str, tuple[Labels, Labels]]:
    """Return label pairs that are unlike tissue."""
    rng = np.random.default_rng(3)
    shape = (size.side, size.side)
    reference, prediction = label_pair(size)
    sparse = rng.permutation(np.arange(1, 2**31 - 1, 2**31 // (2 * size.objects), dtype=np.int32))
    sparse[0] = 0
    empty = np.zeros(shape, np.int32)
    single = empty.copy()
    single[size.side // 4 : -size.side // 4, size.side // 4 : -size.side // 4] = 1
    y, x = np.indices(shape, np.int32) // int(np.ceil(size.side / np.sqrt(size.objects)))
    covered = y * (x.max() + 1) + x + 1
    noise = [rng.integers(1, NOISE_IDS, shape, np.int32) for _ in range(2)]
    return {
        "noise": (noise[0], noise[1]),
        "sparse": (sparse[reference], sparse[prediction]),
        "one": (single, np.roll(single, 3, axis=1)),
        "none": (empty, empty.copy()),
        "covered": (covered, np.roll(covered, 2, axis=1)),
    }


def polygons(size: Size) -> tuple[Floats, NDArray[np.int64]]:
    """Draw round polygons of 12 to 40 vertices, some over each other and over the edge.

    Returns the vertices (n, 2) as x, y in px, and where each polygon starts among them.
    """
    rng = np.random.default_rng(4)
    counts = rng.integers(12, 41, size.objects)
    starts = np.concatenate([[0], np.cumsum(counts)])
    owner = np.repeat(np.arange(size.objects), counts)
    turn = (np.arange(len(owner)) - starts[owner]) / counts[owner] * 2 * np.pi
    radius = rng.uniform(8, 16, size.objects)[owner] * rng.uniform(0.85, 1.15, len(owner))
    centre = rng.uniform(0, size.side, (size.objects, 2))[owner]
    vertices = centre + radius[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return vertices.round(2), starts


Stroke = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | int]


def strokes(labels: Labels, n: int = 200, radius_px: int = 11) -> Iterator[Stroke]:
    """Draw dabs of the brush all over an image, which follows; every tenth is undone.

    Each enlarges an object, erases, or draws a new one: rows, columns and ids of its pixels.
    """
    rng = np.random.default_rng(4)
    reach = slice(-radius_px, radius_px + 1)
    dab_y, dab_x = np.nonzero(np.hypot(*np.mgrid[reach, reach]) <= radius_px + 0.3)
    top = int(labels.max())
    for number in range(n + 10):
        y, x = rng.integers(30, labels.shape[0] - 60, 2)
        id_ = label_near(labels, y, x, number, top)
        before = labels[y + dab_y, x + dab_x].astype(np.int64)
        labels[y + dab_y, x + dab_x] = id_
        yield y + dab_y, x + dab_x, id_
        if number % 10 == 9:
            labels[y + dab_y, x + dab_x] = before
            yield y + dab_y, x + dab_x, before


def label_near(labels: Any, y: int, x: int, number: int, top: int) -> int:
    """Return the label of a stroke: of an object near it, of none, or a new one."""
    near = np.asarray(labels)[y - 25 : y + 25, x - 25 : x + 25]
    found = near[near > 0]
    return int(found[0]) if number % 3 and len(found) else (0 if number % 2 else top + number)


# --- cohorts of regions -------------------------------------------------------------------------


def describe(root: Path, form: str, suffix: str, **more: str) -> None:
    """Write the description of a cohort, and make its folder."""
    root.mkdir(parents=True, exist_ok=True)
    classes = zip(CLASSES, MONUSAC_CLASSES.colours, strict=True)
    files = {
        **more,
        "reference.labels": "reference/{region}" + suffix,
        f"predictions.{form}": "teams/{team}/{region}" + suffix,
    }
    lines = ["[classes]", *(f"{name} = {list(colour)}" for name, colour in classes), "[files]"]
    lines += [f"{key} = '{value}'" for key, value in files.items()]
    (root / "cohort.toml").write_text("\n".join(lines), encoding="utf-8")


def write_classes(path: Path, ids: NDArray[Any], places: NDArray[Any]) -> None:
    """Write a table of classes beside a label image."""
    pairs = zip(ids.tolist(), places.tolist(), strict=True)
    text = "\n".join(["id,class", *(f"{id_},{CLASSES[place]}" for id_, place in pairs)])
    path.with_suffix(".csv").write_text(text, encoding="utf-8")


def write_cohort(root: Path, size: Size, *, coloured_teams: int = 0, regions: int = 1) -> Path:
    """Write a cohort of equal regions.

    Its team has label images with tables of classes. If `coloured_teams` is given, there are as
    many with colour-coded masks instead, each a little further off than the one before.
    """
    form = "colour-coded" if coloured_teams else "labels"
    describe(root, form, ".tif", image="images/{region}.tif")
    reference, prediction = label_pair(size)
    rng = np.random.default_rng(3)
    image = np.full((size.side, size.side, 3), 220, np.uint8)
    image[prediction > 0] = (150, 100, 160)
    for name in (f"R_{number + 1}.tif" for number in range(regions)):
        _written(root / "images" / name, image, photometric="rgb", tile=(256, 256))
        for folder, labels in (("reference", reference), ("teams/team", prediction)):
            if folder == "reference" or not coloured_teams:
                path = _written(root / folder / name, labels.astype(np.uint16))
                ids = np.unique(labels[labels > 0])
                write_classes(path, ids, rng.integers(0, len(CLASSES), len(ids)))
        for number in range(coloured_teams):
            labels = np.roll(prediction, (number, 2 * number), (0, 1))
            classes = rng.integers(1, len(CLASSES) + 1, int(labels.max()) + 1)
            path = root / "teams" / f"team {number + 1}" / name
            _written(path, colour_coded(labels, classes), photometric="rgb", compression="zlib")
    return root


def _written(path: Path, array: NDArray[Any], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    tifffile.imwrite(path, array, **options)
    return path


def write_small_regions(root: Path, n_regions: int, *, side: int = 96, objects: int = 16) -> Path:
    """Write regions of two teams as arrays of ids and classes; ten regions per patient."""
    describe(root, "labels", ".npy", patient="^(?P<patient>P[0-9]+)-")
    folders = [root / "reference", root / "teams" / "team 1", root / "teams" / "team 2"]
    for folder in folders:
        folder.mkdir(parents=True)
    rng = np.random.default_rng(5)
    rows, columns = np.indices((side, side))
    for number in range(n_regions):
        centres, classes = rng.uniform(6, side - 6, (objects, 2)), rng.integers(1, 5, objects)
        for folder in folders:
            array = np.zeros((side, side, 2), np.int32)
            jitter = rng.normal(0, 0 if folder.name == "reference" else 1.5, (objects, 2))
            for k, (y, x) in enumerate(centres + jitter):
                array[(rows - y) ** 2 + (columns - x) ** 2 <= 25] = k + 1, classes[k]
            np.save(folder / f"P{number // 10:04}-{number:05}.npy", array)
    return root


def write_fold(root: Path, n_regions: int, *, side: int = 256, objects: int = 24) -> Path:
    """Write a fold as PanNuke distributes it, as float64 with tissues for patients, and two teams.

    Each team leaves out, moves and misclassifies some nuclei.
    """
    rng = np.random.default_rng(7)
    names = ("masks/fold1/masks.npy", "Teams/A.npy", "Teams/B.npy", "images/fold1/images.npy")
    arrays = []
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shape = (n_regions, side, side, 3 if "images" in name else 6)
        arrays.append(np.lib.format.open_memmap(root / name, "w+", np.float64, shape))
    tissues = [f"Tissue {number % 19 + 1}" for number in range(n_regions)]
    np.save(root / "images/fold1/types.npy", np.array(tissues))
    for number in range(n_regions):
        places, axes = rng.uniform(8, side - 8, (objects, 2)), rng.uniform(4, 9, (objects, 2))
        classes = rng.choice(5, objects, p=(0.4, 0.2, 0.25, 0.02, 0.13))
        for k, array in enumerate(arrays[:3]):
            found = np.ones(objects, np.bool_) if not k else rng.random(objects) > 0.1 * k
            moved = places + rng.normal(0, 1.5 * k, places.shape)
            wrong = np.where(rng.random(objects) < 0.1 * k, (classes + 1) % 5, classes)
            ids = np.zeros((side, side), np.int32)
            paint_ellipses(ids, moved[found], axes[found], np.flatnonzero(found) + 1)
            own = np.concatenate([[5], wrong])[ids]
            array[number] = np.where(
                own[..., None] == np.arange(6), np.maximum(ids, 1)[..., None], 0
            )
        tissue = rng.normal((220, 180, 210), 12, (side, side, 3))
        tissue[arrays[0][number, ..., 5] == 0] -= 80
        arrays[3][number] = np.clip(tissue, 0, 255).astype(np.uint8)
    for array in arrays:
        array.flush()
    return root


# --- slides -------------------------------------------------------------------------------------

TILE_PX = 512
LEVELS = (1, 4, 16)


@dataclass(frozen=True)
class Scene:
    """The objects of a slide, one in each cell of a grid.

    `ellipses` are float32 (rows, columns, 4): y, x and half axes; `ids` int32 (rows, columns), 0
    where there is no object; both by side.
    """

    shape: tuple[int, int]
    cell: float
    ellipses: dict[str, NDArray[np.float32]]
    ids: dict[str, Labels]

    def tiles(self, side: str) -> Iterator[Labels]:
        """Draw the tiles of a label image, row by row."""
        for top in range(0, self.shape[0], TILE_PX):
            for left in range(0, self.shape[1], TILE_PX):
                tile = np.zeros((TILE_PX, TILE_PX), np.int32)
                near = tuple(
                    slice(max(int(at / self.cell) - 1, 0), int((at + TILE_PX) / self.cell) + 2)
                    for at in (top, left)
                )
                ids = self.ids[side][near].ravel()
                own = self.ellipses[side][near].reshape(-1, 4)[ids > 0]
                paint_ellipses(tile, own[:, :2] - (top, left), own[:, 2:], ids[ids > 0])
                tile[max(self.shape[0] - top, 0) :] = 0
                tile[:, max(self.shape[1] - left, 0) :] = 0
                yield tile


def scene(shape: tuple[int, int], objects: int, *, seed: int = 1) -> Scene:
    """Place objects on a jittered grid; in three places up to 75 % fail, elsewhere 5 %."""
    rng = np.random.default_rng(seed)
    cell = float(np.sqrt(shape[0] * shape[1] / objects))
    rows, columns = int(shape[0] / cell), int(shape[1] / cell)
    grid = np.stack(np.mgrid[:rows, :columns], axis=-1) + 0.5
    centres = grid * cell + rng.uniform(-0.1, 0.1, grid.shape) * cell
    axes = min(0.3 * cell, 14.0) * rng.uniform(0.75, 1.1, grid.shape)
    trouble = np.full((rows, columns), 0.05)
    for middle, width in zip(rng.uniform(0.15, 0.85, (3, 2)), (0.05, 0.1, 0.15), strict=True):
        away = ((grid / (rows, columns) - middle) ** 2).sum(axis=-1)
        trouble += 0.7 * np.exp(-away / (2 * width**2))
    trouble = np.minimum(trouble, 0.75)
    kind = rng.random((rows, columns))
    missed, shifted = kind < 0.5 * trouble, (kind >= 0.5 * trouble) & (kind < trouble)
    moved = centres + rng.normal(0, 0.8, grid.shape)
    moved[shifted] += 1.1 * axes[shifted]
    ids = (rng.permutation(rows * columns) + 1).reshape(rows, columns).astype(np.int32)
    ellipses = {
        "reference": np.concatenate([centres, axes], axis=-1).astype(np.float32),
        "prediction": np.concatenate([moved, 1.03 * axes], axis=-1).astype(np.float32),
    }
    of_prediction = np.where(missed, 0, ids).astype(np.int32)
    return Scene(shape, cell, ellipses, {"reference": ids, "prediction": of_prediction})


def write_slide(root: Path, found: Scene, *, with_picture: bool = True) -> Path:
    """Write picture, label images and tables of classes as a cohort of one region."""
    describe(root, "labels", ".tif", **({"image": "images/{region}.svs"} if with_picture else {}))
    if with_picture:
        _write_picture(root / "images" / "S_1.svs", found)
    rng = np.random.default_rng(2)
    ids = np.arange(1, found.ids["reference"].size + 1)
    classes = rng.integers(0, len(CLASSES), len(ids))
    misnamed = np.where(rng.random(len(ids)) < 0.03, (classes + 1) % len(CLASSES), classes)
    sides = (("reference", "reference", classes), ("teams/Team", "prediction", misnamed))
    for folder, side, places in sides:
        path = root / folder / "S_1.tif"
        path.parent.mkdir(parents=True)
        options = {"photometric": "minisblack", "compression": "adobe_deflate", "metadata": None}
        with tifffile.TiffWriter(path, bigtiff=True) as tiff:
            tiff.write(
                found.tiles(side),
                shape=found.shape,
                dtype=np.int32,
                tile=(TILE_PX, TILE_PX),
                compressionargs={"level": 1},
                **options,
            )
        present = np.isin(ids, found.ids[side])
        write_classes(path, ids[present], places[present])
    return root


def _write_picture(path: Path, found: Scene) -> None:
    """Write a pyramid as Aperio does: JPEG tiles, levels 1, 4 and 16."""
    path.parent.mkdir(parents=True)
    height, width = found.shape
    smaller = [np.empty((-(-height // s), -(-width // s), 3), np.uint8) for s in LEVELS[1:]]

    def full() -> Iterator[NDArray[np.uint8]]:
        corners = ((y, x) for y in range(0, height, TILE_PX) for x in range(0, width, TILE_PX))
        for (top, left), labels in zip(corners, found.tiles("reference"), strict=True):
            tile = _tissue(labels, top, left)
            for step, level in zip(LEVELS[1:], smaller, strict=True):
                y, x = top // step, left // step
                part = level[y : y + TILE_PX // step, x : x + TILE_PX // step]
                part[:] = tile[::step, ::step][: part.shape[0], : part.shape[1]]
            yield tile

    about = f"Aperio Image Library v11.2.1 \r\n{width}x{height}|AppMag = 40|MPP = 0.25"
    options: dict[str, Any] = {"tile": (TILE_PX, TILE_PX), "photometric": "rgb", "metadata": None}
    options |= {"compression": "jpeg", "compressionargs": {"level": 90}, "description": about}
    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        tiff.write(full(), shape=(height, width, 3), dtype=np.uint8, **options)
        for level in smaller:
            tiff.write(level, subfiletype=1, **options)


def _tissue(labels: Labels, top: int, left: int) -> NDArray[np.uint8]:
    """Paint nuclei violet and the rest pink, with some grain."""
    y, x = np.ogrid[top : top + labels.shape[0], left : left + labels.shape[1]]
    grain = ((y * 7919 + x * 104729) % 997 % 23)[..., None]
    wave = (12 * np.sin(y / 900.0) * np.cos(x / 700.0)).astype(int)[..., None]
    pink = np.array([222, 172, 205]) + wave + np.concatenate([grain // 2, grain, grain // 2], -1)
    rgb = np.where(labels[..., None] > 0, np.array([104, 70, 140]) + grain, pink)
    return rgb.astype(np.uint8)
