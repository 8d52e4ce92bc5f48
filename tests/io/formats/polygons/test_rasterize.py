from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from skimage.draw import polygon as reference_polygon

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.polygons import rasterize
from napari_panoptic.io.formats.polygons.model import PixelRule, Polygons
from napari_panoptic.io.formats.polygons.rasterize import (
    SquareIndex,
    rasterize_polygons,
)
from napari_panoptic.io.formats.reading import reading
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import Vanished
from tests.support.builders import Points, square
from tests.support.examples import seeds
from tests.support.outlines import polygons_of

SHAPE = (20, 30)
PATH = Path("r_1.geojson")


def draw(*outlines: tuple[str, Points | Sequence[tuple[float, float]]]) -> LoadedMasks:
    polygons = polygons_of(outlines, MONUSAC_CLASSES)
    return rasterize_polygons(polygons, SHAPE, MONUSAC_CLASSES, path=PATH).held()


def test_a_square() -> None:
    drawn = draw(("Lymphocyte", square(3, 5, 2)))
    expected = np.zeros(SHAPE, np.int32)
    expected[5:8, 3:6] = 1
    np.testing.assert_array_equal(drawn.labels.id_image(), expected)
    assert drawn.labels.class_names_of_objects().tolist() == ["Lymphocyte"]
    assert drawn.ambiguous is None
    assert drawn.findings == ()


@pytest.mark.parametrize("seed", seeds(40))
def test_whole_annotations_against_the_plain_way(seed: int) -> None:
    """Truncate, fill with scikit-image class by class in file order, flatten."""
    generator = np.random.default_rng(seed)
    outlines = []
    for _ in range(25):
        name = generator.choice([*MONUSAC_CLASSES.names, "Ambiguous"])
        centre = generator.uniform(-4, 34, 2)
        points = centre + generator.normal(0, 3, (generator.integers(1, 9), 2))
        outlines.append((str(name), points.tolist()))
    drawn = draw(*outlines)

    flat = np.zeros(SHAPE, int)
    claims = np.zeros(SHAPE, int)
    for name in MONUSAC_CLASSES.names:
        mask = np.zeros(SHAPE, int)
        for number, (other, points) in enumerate(outlines, start=1):
            if other == name:
                x, y = np.array([[int(float(v)) for v in point] for point in points]).T
                inside = reference_polygon(y, x, SHAPE)
                mask[inside] = number
                claims[inside] += 1
        flat[mask > 0] = mask[mask > 0]
    np.testing.assert_array_equal(drawn.labels.id_image(), flat)
    assert drawn.labels.overlapping_px == np.count_nonzero(claims > 1)
    scored = {n for n, (name, _) in enumerate(outlines, start=1) if name != "Ambiguous"}
    lost = {vanished.id for vanished in drawn.labels.vanished}
    assert lost == scored - set(np.unique(flat))


def test_class_masks_are_those_of_each_class_alone() -> None:
    drawn = draw(
        ("Neutrophil", square(0, 0)),
        ("Epithelial", square(2, 2)),
        ("Neutrophil", square(1, 1)),
        ("Ambiguous", square(0, 0, 9)),
        ("Macrophage", [(-9, -9)]),
    )
    masks = drawn.labels.class_masks
    assert list(masks) == ["Epithelial", "Neutrophil", "Macrophage"]
    for name, numbers in {"Epithelial": [2], "Neutrophil": [1, 3], "Macrophage": []}.items():
        expected = np.zeros(SHAPE, np.int32)
        for number in numbers:
            x, y = np.array({1: square(0, 0), 2: square(2, 2), 3: square(1, 1)}[number], int).T
            expected[reference_polygon(y, x, SHAPE)] = number
        np.testing.assert_array_equal(masks[name], expected)
        assert masks[name].dtype == np.int32


def between_points(*objects: Sequence[Points], holes: int = 0) -> Polygons:
    """Give objects of Epithelial by their rings, the last ``holes`` of each being such."""
    rings = [np.array(ring, float) for object_ in objects for ring in object_]
    is_hole = [k >= len(rings) - holes for rings in objects for k in range(len(rings))]
    return Polygons(
        np.concatenate(rings),
        np.cumsum([0, *map(len, rings)]),
        np.array(is_hole),
        np.cumsum([0, *map(len, objects)]),
        np.arange(1, len(objects) + 1),
        np.ones(len(objects), np.int16),
        PixelRule.CENTRE,
    )


def test_an_object_that_is_all_hole_has_no_pixel() -> None:
    polygons = between_points([square(3, 3), square(3, 3)], holes=1)
    drawn = rasterize_polygons(polygons, SHAPE, MONUSAC_CLASSES).held()
    assert drawn.labels.vanished == (Vanished(1, "Epithelial", "no inner pixel"),)


def test_an_object_without_the_centre_of_a_pixel_vanishes() -> None:
    thin = [(3.6, 1), (4.4, 1), (4.4, 9), (3.6, 9)]
    polygons = between_points([thin], [square(-9, 3)], [square(9, 3)])
    drawn = rasterize_polygons(polygons, SHAPE, MONUSAC_CLASSES).held()
    assert drawn.labels.vanished == (
        Vanished(1, "Epithelial", "no inner pixel"),
        Vanished(2, "Epithelial", "outside the image"),
    )
    assert drawn.labels.ids.tolist() == [3]
    told = [f for f in drawn.findings if f.kind is FindingKind.VANISHED]
    assert sorted(id_ for finding in told for id_ in finding.object_ids) == [1, 2]


def test_an_object_along_the_frame_of_the_image_lies_inside() -> None:
    height, width = SHAPE
    frame = [(0, 0), (width, 0), (width, height), (0, height)]
    drawn = rasterize_polygons(between_points([frame]), SHAPE, MONUSAC_CLASSES).held()
    assert drawn.findings == ()
    assert (drawn.labels.index == 1).all()
    past = between_points([square(width - 4 + 0.01, 1)])
    (finding,) = rasterize_polygons(past, SHAPE, MONUSAC_CLASSES).held().findings
    assert finding.kind is FindingKind.OUTSIDE_IMAGE


@pytest.mark.parametrize(("team", "side"), [(None, "annotation"), ("T", "prediction")])
def test_overlaps_are_told_of_the_side_where_they_are(team: str | None, side: str) -> None:
    polygons = between_points([square(3, 3)], [square(5, 5)])
    with reading(team=team):
        drawn = rasterize_polygons(polygons, SHAPE, MONUSAC_CLASSES)
    (finding,) = drawn.held().findings
    assert finding.kind is FindingKind.OVERLAPPING
    assert finding.message.startswith(f"4 px claimed by more than one object of the {side};")


def test_ids_and_classes_follow_the_file() -> None:
    drawn = draw(
        ("Macrophage", square(0, 0)),
        ("Ambiguous", square(20, 10)),
        ("Epithelial", square(10, 0)),
    )
    assert drawn.labels.ids.tolist() == drawn.labels.original_ids.tolist() == [1, 3]
    assert drawn.labels.class_names_of_objects().tolist() == ["Macrophage", "Epithelial"]


def test_ambiguous_areas_are_not_burnt_into_the_labels() -> None:
    drawn = draw(("Epithelial", square(0, 0)), ("Ambiguous", square(2, 2)))
    assert drawn.ambiguous is not None
    assert (np.count_nonzero(drawn.ambiguous), drawn.ambiguous[2, 2]) == (25, True)
    assert np.count_nonzero(drawn.labels.index) == 25
    assert drawn.labels.overlapping_px == 0


def test_what_vanishes_is_told_with_its_reason() -> None:
    drawn = draw(
        ("Epithelial", square(2, 2, 2)),
        ("Epithelial", square(1, 1, 6)),
        ("Epithelial", [(-8, -8), (-6, -8), (-6, -6)]),
        ("Epithelial", []),
        ("Macrophage", square(0, 0, 9)),
        ("Lymphocyte", square(20, 10)),
        ("Neutrophil", square(12, 2, 3)),
        ("Neutrophil", [(11, 1), (14, 1), (14, 6), (11, 6)]),
        ("Neutrophil", [(14, 1), (17, 1), (17, 6), (14, 6)]),
    )
    assert set(drawn.labels.vanished) == {
        Vanished(
            1,
            "Epithelial",
            "contained in a later object of the class, such as an outline of an area",
        ),
        Vanished(7, "Neutrophil", "covered by later objects of the class"),
        Vanished(2, "Epithelial", "covered by another class"),
        Vanished(3, "Epithelial", "outside the image"),
        Vanished(4, "Epithelial", "no inner pixel"),
    }
    assert drawn.labels.ids.tolist() == [5, 6, 8, 9]
    told = [f for f in drawn.findings if f.kind is FindingKind.VANISHED]
    assert sorted(id_ for finding in told for id_ in finding.object_ids) == [1, 2, 3, 4, 7]
    assert all(finding.path == PATH for finding in drawn.findings)


def test_overlaps_are_counted_once_per_pixel() -> None:
    drawn = draw(
        ("Epithelial", square(0, 0, 3)),
        ("Epithelial", square(2, 2, 3)),
        ("Neutrophil", square(2, 2, 1)),
    )
    (finding,) = [f for f in drawn.findings if f.kind is FindingKind.OVERLAPPING]
    assert drawn.labels.overlapping_px == finding.count == 4


def test_vertices_outside_the_image() -> None:
    drawn = draw(("Epithelial", square(27, 17)), ("Epithelial", square(-0.9, 3)))
    (finding,) = [f for f in drawn.findings if f.kind is FindingKind.OUTSIDE_IMAGE]
    # Truncation goes towards zero: -0.9 is column 0, inside.
    assert finding.object_ids == (1,)
    assert np.count_nonzero(drawn.labels.index == 1) == 9


def test_nothing_annotated() -> None:
    drawn = draw()
    assert (len(drawn.labels), drawn.labels.shape, drawn.findings) == (0, SHAPE, ())


def test_two_equal_vertices_are_one_pixel() -> None:
    drawn = draw(("Neutrophil", [(4, 6), (4, 6)]))
    assert np.argwhere(drawn.labels.index).tolist() == [[6, 4]]


@pytest.mark.parametrize("seed", seeds(20))
def test_objects_are_found_by_square(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rasterize, "SQUARE_PX", 16)
    generator = np.random.default_rng(seed)
    corner = generator.integers(-9, 30, (20, 2))
    boxes = np.hstack([corner, corner + generator.integers(1, 20, (20, 2))])
    rings = [np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], float) for y0, x0, y1, x1 in boxes]
    polygons = Polygons.of_rings(rings, np.ones(20, np.int16), PixelRule.CENTRE)
    order, shape = generator.permutation(20), (40, 44)
    index = SquareIndex.of(polygons.flat, order, np.zeros(20, np.int32), shape)
    found = {box: rows.tolist() for box, rows in index.squares()}
    for y, x in itertools.product((0, 16, 32), repeat=2):
        box = (y, x, min(y + 16, 40), min(x + 16, 44))
        touching = [
            row
            for row in order.tolist()
            if max(boxes[row, 0], y) < min(boxes[row, 2], box[2])
            and max(boxes[row, 1], x) < min(boxes[row, 3], box[3])
        ]
        assert found.get(box, []) == touching
