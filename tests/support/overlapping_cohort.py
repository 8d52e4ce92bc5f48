"""A small cohort whose predictions overlap, as the HoVer-Net JSON that says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.builders import annotation_xml, noise, square, write_svs

DESCRIPTION = """
[classes]
Epithelial = [255, 0, 0]
Lymphocyte = [255, 255, 0]
[files]
image = "{region}.svs"
reference.imagescope = "{region}.xml"
predictions.hovernet = "{team}/{region}.json"
"""
REGIONS = ("P_1", "P_2")


def nucleus(x: int, y: int, size: int, kind: int = 1) -> dict[str, Any]:
    points = [[x, y], [x + size, y], [x + size, y + size], [x, y + size]]
    return {"contour": points, "type": kind}


TEAM = {"1": nucleus(2, 2, 9), "2": nucleus(2, 8, 9), "3": nucleus(30, 20, 9)}
"""A nucleus that was found and is covered half by another prediction, and one found alone."""


def write_overlapping(folder: Path, teams: dict[str, dict[str, Any]] | None = None) -> Path:
    """Write the cohort: two regions of 40 x 50 px with two nuclei each, and its teams."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cohort.toml").write_text(DESCRIPTION)
    for region in REGIONS:
        write_svs(folder / f"{region}.svs", noise(40, 50))
        xml = annotation_xml(("Epithelial", [square(2, 2, 9), square(30, 20, 9)]))
        (folder / f"{region}.xml").write_text(xml)
    for team, nuclei in (teams or {"team": TEAM}).items():
        (folder / team).mkdir()
        for region in REGIONS:
            text = json.dumps({"mag": 40, "nuc": nuclei})
            (folder / team / f"{region}.json").write_text(text)
    return folder
