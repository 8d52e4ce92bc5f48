"""Measure how fast the desk follows a slider or a menu of the settings.

Needs a display: ``xvfb-run -a python -m benchmarks.sliders`` where there is none.
Each step asks for other settings as a slider does and waits for the answer: by
the clock, from the request until colours, figures and lists of the team that is
looked at have been drawn, and until all four teams are there.
"""

import argparse
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tifffile

from benchmarks.cases import LARGE, MEDIUM, Size, label_pair
from benchmarks.strokes import write_cohort
from benchmarks.windows import answer_ms, opened, settle
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.viewer.desk.nuclei import Desk

TEAMS = 4
LIMIT_MS = 50.0
STEPS: dict[str, list[Any]] = {
    "iou_threshold": [round(0.05 * k, 2) for k in range(1, 20)],
    "matching": ["centroid", "strict-iou"] * 5,
    "ambiguous": ["keep", "majority", "clip-predictions", "clip"] * 3,
    "restoration": ["border-dilated", "border-removed"] * 5 + ["border-dilated"],
    "radius": [-3, -2, -1, 0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0, -1, -2],
}


def write_colour_coded_cohort(root: Path, size: Size) -> Path:
    """Write a cohort of one region whose teams have colour-coded masks, with borders."""
    write_cohort(root, size)
    description = root / "cohort.toml"
    text = description.read_text(encoding="utf-8")
    text = text.replace("predictions.labels", "predictions.colour-coded")
    description.write_text(text, encoding="utf-8")
    _, prediction = label_pair(size)
    rng = np.random.default_rng(7)
    colours = np.array([(0, 0, 0), *MONUSAC_CLASSES.colours], np.uint8)
    (root / "teams" / "team").rename(root / "unused")
    for number in range(TEAMS):
        # Each team a little further off than the one before.
        labels = np.roll(prediction, (number, 2 * number), (0, 1))
        classes = rng.integers(1, 5, int(labels.max()) + 1)
        classes[0] = 0
        rgb = colours[classes[labels]]
        rim = np.zeros(labels.shape, bool)
        rim[1:] |= labels[1:] != labels[:-1]
        rim[:, 1:] |= labels[:, 1:] != labels[:, :-1]
        rgb[rim & (labels > 0)] = MONUSAC_CLASSES.border[0]
        place = root / "teams" / f"team {number + 1}"
        place.mkdir()
        tifffile.imwrite(place / "R_1.tif", rgb, photometric="rgb", compression="zlib")
    return root


def slide(desk: Desk, name: str, values: list[Any]) -> tuple[list[float], list[float]]:
    """Step through the values of a setting; gives ms to the team's answer and to all."""
    session, link = desk.session, desk.link
    if session is None or link is None:
        raise RuntimeError("the desk shows no cohort")
    times = []
    for value in values:
        changes = {name: value}
        if name == "radius":  # without effect otherwise
            changes["restoration"] = "border-dilated"
        settings = session.settings.replaced(**changes)
        times.append(answer_ms(desk, lambda: link.request(settings=settings)))  # noqa: B023
    link.request(settings=session.protocol)
    settle(desk)
    first, every = zip(*times[1:], strict=True)
    return list(first), list(every)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the largest image out")
    options = parser.parse_args()
    for size in (MEDIUM,) if options.quick else (MEDIUM, LARGE):
        with TemporaryDirectory() as folder:
            cohort = open_cohort(write_colour_coded_cohort(Path(folder), size))
            with opened(cohort) as (desk, _viewer):
                print(f"\n{size.name}: {size.side} x {size.side} px, {TEAMS} teams: ms per step")
                for name, values in STEPS.items():
                    first, every = slide(desk, name, values)
                    above = "" if median(first) <= LIMIT_MS else f"  above {LIMIT_MS:g}"
                    print(
                        f"  {name:14} shown median {median(first):7.1f}  "
                        f"p95 {quantiles(first, n=20)[-1]:7.1f}   "
                        f"all teams {median(every):7.1f}{above}"
                    )


if __name__ == "__main__":
    main()
