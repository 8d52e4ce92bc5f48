"""Measure a whole slide on the desk: opening, panning, jumping, with and without objects.

Needs a display: ``xvfb-run -a python -m benchmarks.slide_view`` where there is none, and
about 1 GB of free disk. The slide is written once, into the temporary folder, and used again
from there until somebody removes it or this file changes. It is seeded: a pyramid as Aperio
writes it (JPEG tiles, levels 1, 4 and 16), and two label images of 600,000 ellipses each, of which
more are missed, invented and misnamed in some places than in others.
"""

import argparse
import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, gettempdir
from typing import Any
from unittest.mock import patch

import napari
import numpy as np
import tifffile
from numpy.typing import NDArray
from qtpy.QtWidgets import QApplication

from benchmarks.cases import CLASSES, paint_ellipses
from benchmarks.windows import PATIENCE_S, settle
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.viewer.desk.nuclei import Desk, desk_of

TILE_PX = 512
STEPS = (1, 4, 16)
"""Levels of the picture."""
BYTES_PER_PX = 0.5
"""What picture and label images together take on disk, generously."""
PANS, JUMPS = 40, 12
PAN_PX = 60
ZOOMS = (1.0, 0.3)
COHORT = """name = "slide"

[classes]
Epithelial = [255, 0, 0]
Lymphocyte = [255, 255, 0]
Neutrophil = [0, 0, 255]
Macrophage = [0, 255, 0]

[files]
image = "images/{region}.svs"
reference.labels = "reference/{region}.tif"
predictions.labels = "teams/{team}/{region}.tif"
"""


@dataclass(frozen=True)
class Scene:
    """The objects of a seeded slide, in a grid of one each.

    Parameters
    ----------
    shape
        Height and width in px.
    cell
        Edge of a cell of the grid in px.
    reference, prediction
        float32 (rows, columns, 4): y, x and half axes of the ellipses.
    reference_ids, prediction_ids
        int32 (rows, columns): their ids, 0 for none.
    """

    shape: tuple[int, int]
    cell: float
    reference: NDArray[np.float32]
    prediction: NDArray[np.float32]
    reference_ids: NDArray[np.int32]
    prediction_ids: NDArray[np.int32]


def scene(shape: tuple[int, int], objects: int, *, seed: int = 1) -> Scene:
    """Place objects on a jittered grid; in three places many of them fail."""
    rng = np.random.default_rng(seed)
    cell = float(np.sqrt(shape[0] * shape[1] / objects))
    rows, columns = int(shape[0] / cell), int(shape[1] / cell)
    grid = np.stack(np.mgrid[:rows, :columns], axis=-1) + 0.5
    centres = grid * cell + rng.uniform(-0.1, 0.1, grid.shape) * cell
    axes = min(0.3 * cell, 14.0) * rng.uniform(0.75, 1.1, grid.shape)
    trouble = _trouble(grid / (rows, columns), rng)
    kind = rng.random((rows, columns))
    missed, shifted = kind < 0.5 * trouble, (kind >= 0.5 * trouble) & (kind < trouble)
    moved = centres + rng.normal(0, 0.8, grid.shape)
    moved[shifted] += 1.1 * axes[shifted]
    ids = (rng.permutation(rows * columns) + 1).reshape(rows, columns).astype(np.int32)
    return Scene(
        shape,
        cell,
        np.concatenate([centres, axes], axis=-1).astype(np.float32),
        np.concatenate([moved, 1.03 * axes], axis=-1).astype(np.float32),
        ids,
        np.where(missed, 0, ids).astype(np.int32),
    )


def _trouble(at: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Give the share of objects that fail, from 5 to 75 %."""
    share = np.full(at.shape[:2], 0.05)
    for middle, width in zip(rng.uniform(0.15, 0.85, (3, 2)), (0.05, 0.1, 0.15), strict=True):
        share += 0.7 * np.exp(-((at - middle) ** 2).sum(axis=-1) / (2 * width**2))
    return np.minimum(share, 0.75)


def _labels(
    ellipses: NDArray[np.float32],
    ids: NDArray[np.int32],
    cell: float,
    top: int,
    left: int,
    tile: NDArray[np.int32],
) -> None:
    """Draw the ellipses into a tile; the first one keeps a pixel."""
    near = tuple(
        slice(max(int(at / cell) - 1, 0), int((at + TILE_PX) / cell) + 2) for at in (top, left)
    )
    found, numbers = ellipses[near].reshape(-1, 4), ids[near].ravel()
    found, numbers = found[numbers > 0], numbers[numbers > 0]
    paint_ellipses(tile, found[:, :2] - (top, left), found[:, 2:], numbers)


def _tissue(labels: NDArray[np.int32], top: int, left: int) -> NDArray[np.uint8]:
    """Paint nuclei violet and the rest pink, with some grain."""
    y, x = np.ogrid[top : top + labels.shape[0], left : left + labels.shape[1]]
    grain = ((y * 7919 + x * 104729) % 997 % 23)[..., None]
    wave = (12 * np.sin(y / 900.0) * np.cos(x / 700.0)).astype(int)[..., None]
    pink = np.array([222, 172, 205]) + wave + np.concatenate([grain // 2, grain, grain // 2], -1)
    rgb = np.where(labels[..., None] > 0, np.array([104, 70, 140]) + grain, pink)
    return rgb.astype(np.uint8)


def _tiles(found: Scene, which: str) -> Iterator[NDArray[Any]]:
    """Give the tiles of a label image, or of the picture, row by row."""
    side = "prediction" if which == "prediction" else "reference"
    ellipses, ids = getattr(found, side), getattr(found, f"{side}_ids")
    for top in range(0, found.shape[0], TILE_PX):
        for left in range(0, found.shape[1], TILE_PX):
            tile = np.zeros((TILE_PX, TILE_PX), np.int32)
            _labels(ellipses, ids, found.cell, top, left, tile)
            if which != "picture":
                yield tile
                continue
            yield _tissue(tile, top, left)


def write_slide(root: Path, found: Scene) -> Path:
    """Write picture, label images and tables of classes as a cohort of one region."""
    (root / "images").mkdir(parents=True)
    (root / "cohort.toml").write_text(COHORT)
    _write_picture(root / "images" / "S_1.svs", found)
    rng = np.random.default_rng(2)
    ids = np.arange(1, found.reference_ids.size + 1)
    classes = rng.integers(0, len(CLASSES), len(ids))
    misnamed = np.where(rng.random(len(ids)) < 0.03, (classes + 1) % len(CLASSES), classes)
    sides = (("reference", "reference", classes), ("teams/Team", "prediction", misnamed))
    for folder, which, numbers in sides:
        (root / folder).mkdir(parents=True)
        path = root / folder / "S_1.tif"
        with tifffile.TiffWriter(path, bigtiff=True) as tiff:
            tiff.write(
                _tiles(found, which),
                shape=found.shape,
                dtype=np.int32,
                tile=(TILE_PX, TILE_PX),
                photometric="minisblack",
                compression="adobe_deflate",
                compressionargs={"level": 1},
                metadata=None,
            )
        lines = [f"{k},{CLASSES[c]}" for k, c in zip(ids.tolist(), numbers.tolist(), strict=True)]
        path.with_suffix(".csv").write_text("id,class\n" + "\n".join(lines) + "\n")
    return root


def _write_picture(path: Path, found: Scene) -> None:
    height, width = found.shape
    smaller = [np.empty((-(-height // s), -(-width // s), 3), np.uint8) for s in STEPS[1:]]

    def full() -> Iterator[NDArray[Any]]:
        tiles = _tiles(found, "picture")
        for top in range(0, height, TILE_PX):
            for left in range(0, width, TILE_PX):
                tile = next(tiles)
                for step, level in zip(STEPS[1:], smaller, strict=True):
                    y, x = top // step, left // step
                    part = level[y : y + TILE_PX // step, x : x + TILE_PX // step]
                    part[:] = tile[::step, ::step][: part.shape[0], : part.shape[1]]
                yield tile

    options: dict[str, Any] = {
        "tile": (TILE_PX, TILE_PX),
        "photometric": "rgb",
        "compression": "jpeg",
        "compressionargs": {"level": 90},
        "metadata": None,
    }
    about = f"Aperio Image Library v11.2.1 \r\n{width}x{height}|AppMag = 40|MPP = 0.25"
    with tifffile.TiffWriter(path, bigtiff=True) as tiff:
        tiff.write(full(), shape=(height, width, 3), dtype=np.uint8, description=about, **options)
        for level in smaller:
            tiff.write(level, subfiletype=1, description=about, **options)


def drawn(viewer: napari.Viewer) -> None:
    """Do everything that a moved camera leads to, and draw."""
    QApplication.processEvents()
    viewer.window._qt_viewer.canvas._scene_canvas.render()


def times_ms(viewer: napari.Viewer, moves: list[Callable[[], None]]) -> list[float]:
    """Time each move until it is drawn."""
    times = []
    for move in moves:
        began = time.perf_counter()
        move()
        drawn(viewer)
        times.append(1000 * (time.perf_counter() - began))
    return times


def look_around(viewer: napari.Viewer, shape: tuple[int, int], mpp: float) -> None:
    """Pan and jump, with the objects and with the picture alone; print medians."""
    camera = viewer.scene.camera
    rng = np.random.default_rng(3)
    objects = [layer for layer in viewer.layers if layer.name != "image"]
    empty = median(times_ms(viewer, [lambda: None] * PANS))
    print(f"redraw of what is there: {empty:.0f} ms")

    def go(y: float, x: float) -> None:
        camera.center = (0.0, y * mpp, x * mpp)

    def pan() -> None:
        z, y, x = camera.center
        camera.center = (z, y, x + PAN_PX / camera.zoom)

    for zoom in ZOOMS:
        camera.zoom = zoom / mpp
        places = rng.uniform(0.2, 0.6, (JUMPS, 2)) * shape
        for title, shown in (("picture and objects", True), ("picture alone", False)):
            for layer in objects:
                if layer.name != "failures":
                    layer.visible = shown
            go(*places[0])
            drawn(viewer)
            pans = times_ms(viewer, [pan] * PANS)
            jumps = times_ms(viewer, [lambda at=at: go(*at) for at in places])  # type: ignore[misc]
            print(
                f"zoom {zoom:g}, {title}: pan of {PAN_PX} px {median(pans):.0f} ms (mean "
                f"{np.mean(pans):.0f}, slowest {max(pans):.0f}), jump {median(jumps):.0f} ms"
            )
        for layer in objects:
            if layer.name != "failures":
                layer.visible = True


@contextmanager
def read_in_windows() -> Iterator[None]:
    """Have cohorts shown meanwhile whose regions are slides, also where they are smaller."""
    begin = Session.__init__

    def begin_with_slides(self: Session, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self.held_up_to_px = 0

    with patch.object(Session, "__init__", begin_with_slides):
        yield


def measure(root: Path, shape: tuple[int, int]) -> None:
    """Open the slide on a desk, and print what was measured."""
    viewer = napari.Viewer()
    viewer.window.resize(1600, 1000)
    desk = desk_of(viewer)
    began = time.perf_counter()
    with read_in_windows():
        desk.show_cohort(open_cohort(root))
    _wait(lambda: any(layer.name == "image" for layer in viewer.layers))
    drawn(viewer)
    print(f"open to the first picture: {time.perf_counter() - began:.2f} s")
    settle(desk)
    print(f"evaluated and shown: {time.perf_counter() - began:.1f} s")
    print(f"table: {desk.panels.objects.count_text()}")
    look_around(viewer, shape, 0.25)
    _close(desk, viewer)


def _wait(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.001)


def _close(desk: Desk, viewer: napari.Viewer) -> None:
    desk.close()
    settle(desk)
    viewer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 x 8,000 px instead")
    parser.add_argument("--keep", type=Path, help="write the slide here instead")
    options = parser.parse_args()
    shape, objects = ((8_000, 10_000), 40_000) if options.quick else ((30_000, 40_000), 600_000)
    measure(written(options.keep or _kept(shape), shape, objects), shape)


def _kept(shape: tuple[int, int]) -> Path:
    """Name the folder of a slide after its size, and after the program that writes it."""
    program = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    return Path(gettempdir()) / f"napari-panoptic-slide-{shape[1]}x{shape[0]}-{program}"


def written(root: Path, shape: tuple[int, int], objects: int) -> Path:
    """Write the slide where it is not there yet; it is there whole or not at all."""
    if root.exists():
        return root
    root.parent.mkdir(parents=True, exist_ok=True)
    needed = BYTES_PER_PX * shape[0] * shape[1]
    if shutil.disk_usage(root.parent).free < 2 * needed:
        raise SystemExit(f"{2 * needed / 1e9:.1f} GB of free disk are needed in {root.parent}")
    began = time.perf_counter()
    with TemporaryDirectory(dir=root.parent) as folder:
        write_slide(Path(folder) / "slide", scene(shape, objects)).rename(root)
    print(f"written in {time.perf_counter() - began:.0f} s")
    return root


if __name__ == "__main__":
    main()
