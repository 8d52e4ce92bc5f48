"""Outlines through the centres of pixels, as OpenCV traces them, or along their edges."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from roifile import ImagejRoi

from napari_panoptic.cli.main import main
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.saving import write_objects
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.outlined_cohort import (
    Ring,
    contours,
    evaluated,
    feature,
    nuclei,
    write_cohort,
    write_features,
)

CENTRES = 'predictions.vertices = "pixel-centres"'
ROIS = 'predictions.imagej-roi = "{team}/{region}.zip"'


def write_contours(path: Path, *, simple: bool = True) -> None:
    write_features(path, [feature([ring]) for ring in contours(nuclei(), simple=simple)])


def write_rois(path: Path, rings: list[Ring]) -> None:
    """Write outlines as Cellpose does (`io.save_rois`)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for number, ring in enumerate(rings, start=1):
            archive.writestr(f"{number:04d}.roi", ImagejRoi.frompoints(ring).tobytes())


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("simple", [True, False])
def test_geojson_through_pixel_centres_scores_1(
    tmp_path: Path, simple: bool, windows: bool
) -> None:
    cohort = write_cohort(tmp_path, nuclei(), CENTRES)
    write_contours(cohort / "opencv" / "P_1.geojson", simple=simple)
    found = evaluated(cohort, windows=windows)
    assert found.score == {"opencv": 1.0}
    assert found.messages("convention") == []


def test_rois_of_cellpose_score_1(tmp_path: Path) -> None:
    cohort = write_cohort(tmp_path, nuclei(), CENTRES, predictions=ROIS)
    write_rois(cohort / "cellpose" / "P_1.zip", contours(nuclei(), simple=False))
    assert evaluated(cohort).score == {"cellpose": 1.0}


@pytest.mark.parametrize("form", ["geojson", "imagej-roi"])
def test_the_convention_is_reported_where_nothing_is_said(tmp_path: Path, form: str) -> None:
    """Nothing is guessed: the figures are those of pixel edges, with a remedy beside them."""
    if form == "geojson":
        cohort = write_cohort(tmp_path, nuclei())
        write_contours(cohort / "opencv" / "P_1.geojson")
    else:
        cohort = write_cohort(tmp_path, nuclei(), predictions=ROIS)
        write_rois(cohort / "opencv" / "P_1.zip", contours(nuclei()))
    found = evaluated(cohort)
    assert 0 <= (found.score["opencv"] or 0) < 0.8
    (message,) = found.messages("convention")
    assert CENTRES in message


def test_saying_pixel_edges_ends_the_report(tmp_path: Path) -> None:
    cohort = write_cohort(tmp_path, nuclei(), 'predictions.vertices = "pixel-edges"')
    write_contours(cohort / "opencv" / "P_1.geojson")
    assert evaluated(cohort).messages("convention") == []


def test_teams_may_differ(tmp_path: Path) -> None:
    rules = 'predictions.vertices = { OpenCV = "pixel-centres" }'
    cohort = write_cohort(tmp_path, nuclei(), rules)
    write_contours(cohort / "opencv" / "P_1.geojson")
    scheme = ClassScheme(("Nucleus",), ((1, 2, 3),), ambiguous=None)
    labels = LabelImage.from_array(nuclei(), dict.fromkeys(range(1, 11), "Nucleus"), scheme.names)
    (cohort / "qupath").mkdir()
    own = Objects(labels, Side.PREDICTION, "P_1", "qupath", None, scheme, None)
    write_objects(cohort / "qupath" / "P_1.geojson", own)
    found = evaluated(cohort)
    assert found.score == {"opencv": 1.0, "qupath": 1.0}
    assert found.messages("convention") == []


def test_polygons_with_other_vertices_are_not_reported(tmp_path: Path) -> None:
    """Drawn by hand in whole numbers, simplified, between pixels, or a single octagon."""
    turn = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    octagon = np.array([(2, 0), (4, 0), (6, 2), (6, 4), (4, 6), (2, 6), (0, 4)]) + 2
    drawn = [np.rint(9 * circle + 12), 8.3 * circle + 40, octagon]
    cohort = write_cohort(tmp_path, nuclei())
    for number, ring in enumerate(drawn):
        features = [feature([ring.tolist()])]
        write_features(cohort / f"team{number}" / "P_1.geojson", features)
    assert evaluated(cohort).messages("convention") == []


def test_holes_traced_through_pixel_centres(tmp_path: Path) -> None:
    """OpenCV traces a hole along the object's own pixels around it."""
    labels = np.zeros((90, 100), np.int32)
    labels[10:40, 10:50], labels[20:30, 20:30] = 1, 0
    outer = [(10, 10), (49, 10), (49, 39), (10, 39)]
    hole = [(19, 20), (20, 19), (29, 19), (30, 20), (30, 29), (29, 30), (20, 30), (19, 29)]
    cohort = write_cohort(tmp_path, labels, CENTRES)
    write_features(cohort / "opencv" / "P_1.geojson", [feature([outer, hole])])
    assert evaluated(cohort).score == {"opencv": 1.0}


def test_vertices_between_pixels(tmp_path: Path) -> None:
    """One vertex is rounded, and listed; with most of them between pixels, centres decide."""
    rings: list[Ring] = contours(nuclei())
    shifted = [(rings[0][0][0] + 0.25, rings[0][0][1]), *rings[0][1:]]
    cohort = write_cohort(tmp_path, nuclei(), CENTRES)
    features = [feature([ring]) for ring in (shifted, *rings[1:])]
    write_features(cohort / "opencv" / "P_1.geojson", features)
    edges = [[(x - 0.5, y - 0.5), (x + 0.5, y - 0.5), (x + 0.5, y + 0.5), (x - 0.5, y + 0.5)]
             for y, x in np.argwhere(nuclei() == 10).tolist()]  # fmt: skip
    write_features(cohort / "floats" / "P_1.geojson", [feature([ring]) for ring in edges])
    found = evaluated(cohort)
    assert found.score["opencv"] == 1.0
    assert any("rounded" in message for message in found.messages("fallback"))
    assert found.score["floats"] == pytest.approx(1 / (1 + 9 / 2))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('predictions.vertices = "centres"', '"pixel-edges" or "pixel-centres"'),
        ('reference.vertices = "pixel-centres"', "dsa and dicom-ann files are read"),
        ('predictions.vertex = "pixel-centres"', "did you mean vertices"),
    ],
)
def test_words_that_cannot_be_understood(
    tmp_path: Path, line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort = write_cohort(tmp_path, nuclei(), line)
    write_contours(cohort / "opencv" / "P_1.geojson")
    assert main(["evaluate", str(cohort), "--output", str(tmp_path / "tables")]) == 1
    assert words in capsys.readouterr().err


def test_a_misspelt_team_is_reported(tmp_path: Path) -> None:
    cohort = write_cohort(tmp_path, nuclei(), 'predictions.vertices = { opncv = "pixel-centres" }')
    write_contours(cohort / "opencv" / "P_1.geojson")
    assert any("opncv" in message for message in evaluated(cohort).messages("extra"))


def test_rectangles_and_ovals_keep_their_pixels(tmp_path: Path) -> None:
    """A shape of ImageJ covers whole pixels, whatever outlines run through."""
    labels = np.zeros((60, 60), np.int32)
    labels[5:15, 8:20] = 1
    roi = ImagejRoi.frompoints([(8, 5), (20, 15)])
    roi.roitype, roi.n_coordinates, roi.integer_coordinates = type(roi.roitype)(1), 0, None
    roi.left, roi.top, roi.right, roi.bottom = 8, 5, 20, 15
    for team, vertices in (("a", "edges"), ("b", "centres")):
        cohort = write_cohort(
            tmp_path / team, labels, f'predictions.vertices = "pixel-{vertices}"', predictions=ROIS
        )
        (cohort / team).mkdir()
        with zipfile.ZipFile(cohort / team / "P_1.zip", "w") as archive:
            archive.writestr("1.roi", roi.tobytes())
        assert evaluated(cohort).score == {team: 1.0}
