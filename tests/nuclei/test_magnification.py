"""Contours that are in px of another magnification than the image's are never drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.regions.reading import load_prediction, load_reference, open_side
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.builders import noise, write_svs
from tests.support.outlines import read_outlines
from tests.support.overlapping_cohort import DESCRIPTION, TEAM

SHAPE = (40, 50)


def cohort_of(folder: Path, mag: Any, mpp: float | None) -> Cohort:
    """Write one region whose annotation and prediction are HoVer-Net JSON of a magnification."""
    text = json.dumps({"mag": mag, "nuc": TEAM})
    description = DESCRIPTION.replace('imagescope = "{region}.xml"', 'hovernet = "{region}.json"')
    (folder / "cohort.toml").write_text(description)
    write_svs(folder / "P_1.svs", noise(*SHAPE), mpp=mpp)
    (folder / "team").mkdir()
    for path in (folder / "P_1.json", folder / "team" / "P_1.json"):
        path.write_text(text)
    return open_cohort(folder)


def opened(cohort: Cohort) -> list[tuple[bool, list[Finding]]]:
    """Read annotation and prediction, and open the latter in windows: is it there, and why not."""
    (region,) = cohort.regions
    settings = EvaluationSettings()
    reference = load_reference(cohort, region, settings)
    masks, found = load_prediction(cohort, region, "team", SHAPE, settings, None)
    (files,) = cohort.predictions["team", region.name].values()
    tiled = open_side(cohort, region, SHAPE, files, "team", UNWATCHED)
    kinds = (FindingKind.FALLBACK, FindingKind.UNREADABLE)
    return [
        (is_there, [f for f in findings if f.kind in kinds])
        for is_there, findings in (
            (reference.masks is not None, reference.findings),
            (masks is not None, found),
            (tiled.masks is not None, tiled.findings),
        )
    ]


@pytest.mark.parametrize(("mag", "mpp"), [(40, 0.25), (40, 0.2325), (20, 0.5), (None, 0.25)])
def test_outlines_at_the_magnification_of_the_image_are_taken(
    mag: Any, mpp: float, tmp_path: Path
) -> None:
    assert opened(cohort_of(tmp_path, mag, mpp)) == [(True, [])] * 3


@pytest.mark.parametrize(("mag", "mpp"), [(20, 0.25), (40, 0.5), (10, 0.25)])
def test_those_at_another_are_refused(mag: Any, mpp: float, tmp_path: Path) -> None:
    for is_there, findings in opened(cohort_of(tmp_path, mag, mpp)):
        assert not is_there
        (finding,) = findings
        assert finding.kind is FindingKind.UNREADABLE
        assert f"magnification of {mag}" in finding.message
        assert f"coordinates by {10 / mpp / mag:.2f}" in finding.message


def test_where_nobody_knows_that_of_the_image_it_is_told(tmp_path: Path) -> None:
    for is_there, findings in opened(cohort_of(tmp_path, 40, None)):
        assert is_there
        assert ["that of the image is not known" in f.message for f in findings] == [True]


@pytest.mark.parametrize("mag", ["40x", 0, -1, [40], True, 10**9])
def test_what_is_no_magnification_is_refused(mag: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"mag": mag, "nuc": TEAM}))
    with pytest.raises(UnreadableFileError, match='its "mag" is not a magnification'):
        read_outlines(Source.HOVERNET, path)
