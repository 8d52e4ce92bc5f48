"""A cohort whose team has a table of class names that may be nested deeply."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image


def cohort_with_type_info(folder: Path, table: str) -> Path:
    """Write a region and two teams, one of which has a table of names."""
    root = folder / "cohort"
    box = [[2, 2], [9, 2], [9, 9], [2, 9]]
    for team in ("damaged", "sound"):
        (root / team).mkdir(parents=True)
        nucleus = {"contour": box, "type": 1}
        text = json.dumps({"mag": 40, "nuc": {"1": nucleus}})
        (root / team / "r.json").write_text(text)
    (root / "damaged" / "type_info.json").write_text(table)
    (root / "cohort.toml").write_text(
        "classes.a = [255, 0, 0]\nclasses.b = [0, 255, 0]\n"
        'files.image = "{region}.png"\nfiles.reference.geojson = "{region}.geojson"\n'
        'files.predictions.hovernet = "{team}/{region}.json"\n'
    )
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [[*box, box[0]]]},
        "properties": {"classification": {"name": "a"}},
    }
    (root / "r.geojson").write_text(json.dumps([feature]))
    Image.new("RGB", (16, 16)).save(root / "r.png")
    return root
