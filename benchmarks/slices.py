"""Measure how fast the desk for several raters shows a volume, and goes from slice to slice.

Needs a display: ``xvfb-run -a python -m benchmarks.slices`` where there is none.
"""

import argparse
import time
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import napari
import nibabel
import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QApplication
from scipy.ndimage import zoom

from benchmarks.windows import PATIENCE_S
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.viewer.desk.raters import RatedDesk, show_rated

SHAPE = (100, 512, 512)
RATERS = 5
STEPS = 60
LIMIT_MS = 50.0


def write_volume(root: Path, shape: tuple[int, int, int] = SHAPE, raters: int = RATERS) -> Path:
    """Write a cohort of one volume, whose structure the raters outline differently."""
    rng = np.random.default_rng(2021)
    axes = np.meshgrid(*(np.linspace(-1, 1, size) for size in shape), indexing="ij", sparse=True)
    depth = 0.6 - np.sqrt(sum(np.square(axis) for axis in axes))
    case = root / "kidney" / "case01"
    case.mkdir(parents=True)
    for number in range(1, raters + 1):
        mask = depth + 0.02 * _waves(rng, shape) > 0
        _write(case / f"task01_seg{number:02d}.nii.gz", mask.astype(np.uint8))
    _write(case / "image.nii.gz", (400 * depth + rng.normal(0, 20, shape)).astype(np.int16))
    soft = 1 / (1 + np.exp(-np.clip((depth + 0.03 * _waves(rng, shape)) / 0.02, -30, 30)))
    team = root / "Teams" / "team" / "kidney" / "case01"
    team.mkdir(parents=True)
    _write(team / "task01.nii.gz", np.where(soft < 0.02, 0, soft).astype(np.float32))
    return root


def _waves(rng: np.random.Generator, shape: tuple[int, int, int]) -> NDArray[np.float64]:
    coarse = rng.normal(size=[max(2, size // 12) for size in shape])
    factors = [size / n for size, n in zip(shape, coarse.shape, strict=True)]
    waves: NDArray[np.float64] = zoom(coarse, factors, order=1)
    return waves


def _write(path: Path, values: NDArray[np.generic]) -> None:
    image = nibabel.Nifti1Image(values.T, np.diag([0.8, 0.8, 3.0, 1.0]))
    image.header.set_xyzt_units("mm")
    nibabel.save(image, path)


def settle(desk: RatedDesk) -> None:
    """Wait until everything asked for is shown."""
    end = time.monotonic() + PATIENCE_S
    while not desk.is_settled and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.001)
    QApplication.processEvents()


def show_s(viewer: napari.Viewer, cohort: Path) -> tuple[RatedDesk, float, float]:
    """Show the volume; gives the desk, s until it is drawn, and s that the window then stood still.

    Only what comes after reading counts as standing still; processor time, so
    that what else the machine does is left out.
    """
    began = time.perf_counter()
    desk = show_rated(viewer, open_raters(cohort))
    busy = 0.0
    while desk.view is None:
        start = time.thread_time()
        QApplication.processEvents()
        busy = time.thread_time() - start
        time.sleep(0.001)
    return desk, time.perf_counter() - began, busy


def step_ms(desk: RatedDesk, number: int) -> tuple[float, float]:
    """Go to a slice; gives ms of processor time until all is handed over, and until it is drawn."""
    began = time.thread_time()
    desk.scene.go_to_slice(number)
    called = time.thread_time()
    QApplication.processEvents()
    return 1000 * (called - began), 1000 * (time.thread_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    with TemporaryDirectory() as folder:
        cohort = write_volume(Path(folder))
        viewer = napari.Viewer()
        viewer.window.resize(1600, 1000)
        QApplication.processEvents()
        desk, shown, busy = show_s(viewer, cohort)
        print(f"{' x '.join(str(n) for n in reversed(SHAPE))}, {RATERS} raters")
        print(f"  first shown after {shown:.2f} s; filling and drawing took {busy:.2f} s of it")
        settle(desk)
        print("  ms of processor time of the main thread per step:")
        middle = SHAPE[0] // 2
        jumps = np.random.default_rng(1).integers(middle - STEPS // 2, middle + STEPS // 2, STEPS)
        for name, places in (
            ("next slice", range(middle - STEPS // 2, middle + STEPS // 2)),
            ("any slice", jumps.tolist()),
        ):
            times = np.array([step_ms(desk, place) for place in places])[1:]
            for what, own in zip(("handed over", "drawn"), times.T, strict=True):
                above = "" if median(own) <= LIMIT_MS else f"  above {LIMIT_MS:g}"
                print(
                    f"  {name:11} {what:12} median {median(own):6.1f}  "
                    f"p95 {quantiles(own, n=20)[-1]:6.1f}{above}"
                )
        desk.close()
        viewer.close()


if __name__ == "__main__":
    main()
