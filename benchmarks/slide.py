"""A whole slide out of core: seconds and peak memory, without and with distances.

Writes seeded label images with tables of classes into a temporary folder, and
evaluates them in a fresh process each time. ``python -m benchmarks.slide [--quick]``.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import imagecodecs
import numpy as np
import tifffile
from numpy.typing import NDArray

from benchmarks.cases import CLASSES, paint_ellipses
from napari_panoptic.io.formats.labels.label_images import open_label_tiles
from napari_panoptic.nuclei.windowed_evaluation import evaluate_tiles
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.windowed_labels import TiledPair

TILE_PX = 512
SIDES = ("reference", "prediction")


@dataclass(frozen=True)
class Slide:
    """Edge in px, and reference objects."""

    side: int
    objects: int


X = Slide(40_000, 600_000)
QUICK = Slide(10_000, 37_500)


@dataclass(frozen=True)
class Ellipses:
    """One object per cell of a grid, or none (label 0)."""

    label: NDArray[np.int32]
    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    per_side: int
    cell: float


def ellipses(slide: Slide, *, seed: int = 1) -> tuple[Ellipses, Ellipses]:
    """Place objects as `benchmarks.cases.label_pair` does: of ten predictions one lies beside
    its object, and one is missing; as many as are missing lie where no object is."""
    rng = np.random.default_rng(seed)
    per_side = int(np.ceil(np.sqrt(slide.objects * 1.1)))
    cell = slide.side / per_side
    n = per_side**2
    centre = (np.stack(np.divmod(np.arange(n), per_side), axis=1) + 0.5) * cell
    centre += rng.uniform(-0.12, 0.12, centre.shape) * cell
    axes = min(0.28 * cell, 14.0) * rng.uniform(0.75, 1.15, centre.shape)
    order = rng.permutation(n)
    kind = np.arange(n) % 10
    shift = rng.normal(0, 1.0, centre.shape)
    shift[order[kind == 8]] += axes[order[kind == 8]] * 1.1
    is_object, is_found = np.zeros(n, bool), np.zeros(n, bool)
    is_object[order[: slide.objects]] = True
    is_found[order[kind != 9][: slide.objects]] = True
    predicted_axes = axes * rng.uniform(0.92, 1.1, axes.shape)
    sides = []
    for exists, middle, radii in (
        (is_object, centre, axes),
        (is_found, centre + shift, predicted_axes),
    ):
        label = np.zeros(n, np.int32)
        label[exists] = rng.permutation(int(exists.sum())) + 1
        sides.append(Ellipses(label, middle, radii, per_side, cell))
    return sides[0], sides[1]


def paint(tile: NDArray[np.uint32], corner: tuple[int, int], objects: Ellipses) -> None:
    """Draw the objects that reach into a tile; earlier ones stay on top."""
    rows, columns = (
        np.arange(max(int(at / objects.cell) - 2, 0),
                  min(int((at + TILE_PX) / objects.cell) + 3, objects.per_side))
        for at in corner
    )  # fmt: skip
    near = (rows[:, None] * objects.per_side + columns).ravel()
    near = near[objects.label[near] > 0]
    paint_ellipses(tile, objects.centre[near] - corner, objects.axes[near], objects.label[near])


def encoded_tiles(side: int, objects: Ellipses) -> Iterator[bytes]:
    """Draw and compress all tiles, line by line."""
    corners = [(y, x) for y in range(0, side, TILE_PX) for x in range(0, side, TILE_PX)]

    def encoded(corner: tuple[int, int]) -> bytes:
        tile = np.zeros((TILE_PX, TILE_PX), np.uint32)
        paint(tile, corner, objects)
        tile[max(side - corner[0], 0) :] = 0
        tile[:, max(side - corner[1], 0) :] = 0
        return imagecodecs.deflate_encode(tile.tobytes(), level=6, raw=False)

    with ThreadPoolExecutor(max_workers=2) as pool:
        for start in range(0, len(corners), 64):
            yield from pool.map(encoded, corners[start : start + 64])


def write_slide(folder: Path, slide: Slide) -> None:
    """Write both label images, in tiles, with a table of classes each."""
    for name, objects in zip(SIDES, ellipses(slide), strict=True):
        tifffile.imwrite(
            folder / f"{name}.tif",
            encoded_tiles(slide.side, objects),
            shape=(slide.side, slide.side),
            dtype=np.uint32,
            tile=(TILE_PX, TILE_PX),
            compression="adobe_deflate",
            photometric="minisblack",
            bigtiff=True,
            metadata=None,
        )
        # The class of a cell is that of both its objects.
        cells = np.flatnonzero(objects.label)
        classes = zip(objects.label[cells].tolist(), (cells % len(CLASSES)).tolist(), strict=True)
        lines = (f"{id_},{CLASSES[number]}\n" for id_, number in classes)
        (folder / f"{name}.csv").write_text("id,class\n" + "".join(lines))


def timed(folder: Path, slide: Slide, what: str) -> dict[str, object]:
    """Do one thing, and say how long it took and how much memory there ever was."""
    start, cpu = time.perf_counter(), time.process_time()
    figures: dict[str, object] = {}
    if what == "limit":
        decode_all(folder)
    else:
        sides = [
            open_label_tiles(
                MaskFiles(Source.LABELS, {"": (folder / f"{name}.tif",)}),
                MONUSAC_CLASSES,
                (slide.side, slide.side),
            ).labels
            for name in SIDES
        ]
        figures["opened_s"] = time.perf_counter() - start
        settings = EvaluationSettings(distances=what == "distances")
        found = evaluate_tiles(TiledPair(sides[0], sides[1], mpp=0.25), settings)
        figures |= {
            "objects": [len(found.outcomes.reference), len(found.outcomes.prediction)],
            "pq": found.metrics.pq,
            "mean_hausdorff_px": found.metrics.mean_hausdorff_px,
        }
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "linux" else 2**30
    )
    # On a busy machine the processors' time tells more: two threads at work count twice.
    return {"seconds": seconds, "cpu_s": time.process_time() - cpu, "peak_gib": peak, **figures}


def decode_all(folder: Path) -> None:
    """Decode every tile once, in two threads: what no evaluation can do without."""

    def decode(name: str) -> None:
        path = folder / f"{name}.tif"
        with tifffile.TiffFile(path) as tiff, path.open("rb") as file:
            page = tiff.pages[0]
            for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
                file.seek(offset)
                imagecodecs.deflate_decode(file.read(size), out=4 * TILE_PX**2)

    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(decode, SIDES))


def in_fresh_process(folder: Path, slide: Slide, what: str) -> dict[str, object]:
    command = [sys.executable, "-m", "benchmarks.slide", "--child", what, str(folder)]
    command += ["--quick"] if slide is QUICK else []
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 px instead of 40,000")
    parser.add_argument("--child", nargs=2, metavar=("WHAT", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    slide = QUICK if options.quick else X
    if options.child:
        what, folder = options.child
        print(json.dumps(timed(Path(folder), slide, what)))
        return
    needed = slide.side**2  # a byte per pixel, several times what is written
    if shutil.disk_usage(tempfile.gettempdir()).free < needed:
        sys.exit(f"not enough room in {tempfile.gettempdir()}: {needed / 2**30:.0f} GiB needed")
    with tempfile.TemporaryDirectory(prefix="slide-") as name:
        folder = Path(name)
        start = time.perf_counter()
        write_slide(folder, slide)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
        print(f"{slide.side} x {slide.side} px, {slide.objects} objects a side: written in "
              f"{time.perf_counter() - start:.0f} s, {size:.0f} MiB")  # fmt: skip
        in_fresh_process(folder, slide, "limit")  # the first one warms up
        for what, meaning in (
            ("limit", "LIMIT: decoding all tiles once"),
            ("overlap", "evaluated without distances"),
            ("distances", "evaluated with distances"),
        ):
            found = in_fresh_process(folder, slide, what)
            rest = {k: v for k, v in found.items() if k not in ("seconds", "cpu_s", "peak_gib")}
            print(
                f"{meaning}: {found['seconds']:.1f} s, of processors {found['cpu_s']:.1f} s, "
                f"peak {found['peak_gib']:.2f} GiB",
                rest or "",
            )


if __name__ == "__main__":
    main()
