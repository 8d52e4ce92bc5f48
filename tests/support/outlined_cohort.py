"""Cohorts of one region: a label image as annotation, outlines of its objects as predictions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.cli.main import main
from tests.support.builders import write_tiff

Ring = list[tuple[int, int]]
# Clockwise, as (dy, dx), from above.
_AROUND = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))


def nuclei() -> NDArray[np.int32]:
    """Draw nine ellipses with notches, lines of one pixel and a single pixel, ids from 1."""
    labels = np.zeros((90, 100), np.int32)
    rows, columns = np.indices(labels.shape)
    for number in range(9):
        y, x = 14 + 28 * (number // 3), 15 + 30 * (number % 3)
        inside = ((rows - y) / (5 + number % 4)) ** 2 + ((columns - x) / (11 - number)) ** 2 <= 1
        labels[inside] = number + 1
        labels[y - 2 : y + 1, x + 1 :][labels[y - 2 : y + 1, x + 1 :] == number + 1] = 0
        labels[y, x - 13 : x] = number + 1  # a line of one pixel sticks out
    labels[88, 98] = 10
    return labels


def traced(mask: NDArray[np.bool_]) -> Ring:
    """Follow the border pixels of an object, as OpenCV does: x, y of their centres.

    Moore's neighbour tracing, written for these tests only.
    """
    padded = np.pad(mask, 1)
    start = tuple(int(v) for v in np.argwhere(padded)[0])
    here, back, path, first = start, (start[0], start[1] - 1), [start], None
    while True:
        turn = _AROUND.index((back[0] - here[0], back[1] - here[1]))
        previous = back
        for step in range(1, 9):
            dy, dx = _AROUND[(turn + step) % 8]
            following = (here[0] + dy, here[1] + dx)
            if padded[following]:
                break
            previous = following
        else:
            break  # a single pixel
        if here == start and first == (following, previous):
            path.pop()
            break
        first = first or (following, previous)
        path.append(following)
        here, back = following, previous
    return [(x - 1, y - 1) for y, x in path]


def simplified(ring: Ring) -> Ring:
    """Leave out vertices on straight runs, as CHAIN_APPROX_SIMPLE does."""
    if len(ring) < 3:
        return ring
    around = zip([ring[-1], *ring[:-1]], ring, [*ring[1:], ring[0]], strict=True)
    return [b for a, b, c in around if (b[0] - a[0], b[1] - a[1]) != (c[0] - b[0], c[1] - b[1])]


def contours(labels: NDArray[np.int32], *, simple: bool = True) -> list[Ring]:
    """Trace every object."""
    rings = [traced(labels == number) for number in range(1, int(labels.max()) + 1)]
    return [simplified(ring) for ring in rings] if simple else rings


def feature(rings: Sequence[Sequence[Any]], **properties: Any) -> dict[str, Any]:
    """Outline an object by the line around it, and holes."""
    closed = [[list(point) for point in (*ring, ring[0])] for ring in rings]
    geometry = {"type": "Polygon", "coordinates": closed}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def multipolygon(rings: Sequence[Sequence[Any]], **properties: Any) -> dict[str, Any]:
    """Put several outlines into one feature."""
    parts = [feature([ring])["geometry"]["coordinates"] for ring in rings]
    geometry = {"type": "MultiPolygon", "coordinates": parts}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def write_features(path: Path, features: Sequence[dict[str, Any]]) -> Path:
    """Write a GeoJSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
    return path


def write_cohort(
    folder: Path,
    labels: NDArray[np.int32],
    *lines: str,
    classes: dict[int, str] | None = None,
    aliases: str = "",
    predictions: str = 'predictions.geojson = "{team}/{region}.geojson"',
) -> Path:
    """Describe a cohort of the region P_1 whose annotation is a label image.

    Parameters
    ----------
    lines
        More under ``[files]``.
    classes
        Class of each object; of one class, Nucleus, where left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = dict.fromkeys((classes or {1: "Nucleus"}).values())
    colours = [f"{name} = [{250 - 9 * k}, {9 * k}, 0]" for k, name in enumerate(names)]
    files = ['image = "{region}.png"', 'reference.labels = "labels/{region}.tif"', predictions]
    text = ["[classes]", *colours, "[aliases]", aliases, "[files]", *files, *lines]
    (folder / "cohort.toml").write_text("\n".join(text) + "\n")
    Image.fromarray(np.full((*labels.shape, 3), 200, np.uint8)).save(folder / "P_1.png")
    (folder / "labels").mkdir(exist_ok=True)
    write_tiff(folder / "labels" / "P_1.tif", labels.astype(np.uint16))
    if classes is not None:
        table = "id,class\n" + "".join(f"{number},{name}\n" for number, name in classes.items())
        (folder / "labels" / "P_1.csv").write_text(table)
    return folder


@dataclass(frozen=True)
class Outcome:
    """What ``evaluation.json`` says."""

    score: dict[str, float | None]
    warnings: dict[str, list[dict[str, Any]]]

    def messages(self, kind: str) -> list[str]:
        """Return the messages of one kind of warning."""
        return [warning["message"] for warning in self.warnings.get(kind, [])]


def evaluated(cohort: Path, *, windows: bool = False) -> Outcome:
    """Run ``napari-panoptic evaluate``; with everything read window by window, if wanted."""
    output = cohort / "tables"
    options = ["--held-up-to", "1000"] if windows else []
    assert main(["evaluate", str(cohort), "--output", str(output), *options]) == 0
    record = json.loads((output / "evaluation.json").read_text("utf-8"))
    return Outcome(record["score"], record["warnings"])
