"""Slides outlined by polygons: reading the files, and drawing windows of them.

``python -m benchmarks.polygon_files [OBJECTS]`` writes a seeded file of each form into a temporary
folder (1.4 GB for 600,000 objects), and reads each in a process of its own.
"""

import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from napari_panoptic.io.formats.registry import open_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source

OBJECTS = 600_000
CELL_PX = 52
VERTICES = 30
WINDOW_PX = 2048
FORMS = {".xml": Source.IMAGESCOPE, ".geojson": Source.GEOJSON}


def write(folder: Path, objects: int, *, seed: int = 1) -> int:
    """Write the same round objects in both forms; give the slide's edge in px."""
    rng = np.random.default_rng(seed)
    columns = int(np.ceil(np.sqrt(objects)))
    turn = np.linspace(0, 2 * np.pi, VERTICES, endpoint=False)
    names = MONUSAC_CLASSES.names
    with (folder / "a.xml").open("w") as xml, (folder / "a.geojson").open("w") as geojson:
        xml.write("<Annotations>")
        geojson.write('{"type": "FeatureCollection", "features": [')
        for number in range(objects):
            name = names[number * len(names) // objects]
            y, x = divmod(number, columns)
            radius = 12 * (1 + rng.normal(0, 0.04, VERTICES))
            xs = np.round((x + 0.5) * CELL_PX + radius * np.cos(turn), 2).tolist()
            ys = np.round((y + 0.5) * CELL_PX + radius * np.sin(turn), 2).tolist()
            if number == 0 or name != names[(number - 1) * len(names) // objects]:
                xml.write("</Regions></Annotation>" if number else "")
                xml.write(f'<Annotation><Attributes><Attribute Name="{name}"/></Attributes>')
                xml.write("<Regions>")
            points = zip(xs, ys, strict=True)
            vertices = "\n".join(f'<Vertex X="{a}" Y="{b}" Z="0"/>' for a, b in points)
            xml.write(
                f'<Region Id="{number + 1}" Type="0" Zoom="1" Length="0" Area="0" Text="" '
                f'NegativeROA="0" Analyze="1"><Attributes/><Vertices>{vertices}</Vertices></Region>'
            )
            ring = ", ".join(f"[{a}, {b}]" for a, b in zip([*xs, xs[0]], [*ys, ys[0]], strict=True))
            geojson.write(
                f'{", " if number else ""}{{"type": "Feature", "id": "{number}", "geometry": '
                f'{{"type": "Polygon", "coordinates": [[{ring}]]}}, "properties": {{"objectType": '
                f'"detection", "classification": {{"name": "{name}", "color": [255, 0, 0]}}}}}}'
            )
        xml.write("</Regions></Annotation></Annotations>")
        geojson.write("]}")
    return columns * CELL_PX


def measure(path: Path, side: int) -> None:
    """Print what reading a file and drawing windows take."""
    began, used = time.perf_counter(), time.process_time()
    files = MaskFiles(FORMS[path.suffix], {"": (path,)})
    labels = open_masks(files, MONUSAC_CLASSES, (side, side)).labels
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rng = np.random.default_rng(0)
    edge = min(WINDOW_PX, side)
    windows = []
    for y, x in rng.integers(0, side - edge + 1, (30, 2)).tolist():
        start = time.perf_counter()
        labels.read((y, x, y + edge, x + edge))
        windows.append(time.perf_counter() - start)
    print(
        f"{path.suffix}: {path.stat().st_size / 2**20:.0f} MiB, {len(labels)} objects in "
        f"{seconds:.1f} s ({processor:.1f} s of a processor), at most {most:.0f} MiB; "
        f"a window of {edge} px in {1000 * np.median(windows):.1f} ms"
    )


def main(objects: int = OBJECTS) -> None:
    with TemporaryDirectory() as folder:
        side = write(Path(folder), objects)
        for suffix in FORMS:
            command = [sys.executable, "-m", "benchmarks.polygon_files", f"{folder}/a{suffix}"]
            subprocess.run([*command, str(side)], check=True)  # noqa: S603 - itself


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        main(*(int(text) for text in sys.argv[1:]))
