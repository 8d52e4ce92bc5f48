"""Edited objects are saved in every form, and read back the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.common.errors import PanopticError, UnreadableFileError, UnwritableFileError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import Format, Objects
from napari_panoptic.io.formats.labels.label_images import AMBIGUOUS_SUFFIX
from napari_panoptic.io.formats.polygons import hovernet
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.io.formats.saving import read_objects, readable_forms, write_objects
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.outlines import read_outlines
from tests.support.small_cohort import write_cohort

SHAPE = (40, 50)


@pytest.fixture
def objects() -> Objects:
    """Give three objects in slots, the second of which was erased."""
    index = np.zeros(SHAPE, np.int32)
    index[5:15, 5:15] = 3
    index[20:30, 8:22] = 1
    labels = LabelImage(
        index=index,
        ids=np.array([7, 9, 4]),
        class_index=np.array([2, 1, 4], np.int16),
        original_ids=np.array([7, 9, 4]),
        class_names=MONUSAC_CLASSES.names,
    )
    ambiguous = np.zeros(SHAPE, bool)
    ambiguous[30:38, 30:45] = True
    ambiguous[33:35, 33:36] = False
    return Objects(labels, Side.REFERENCE, "R_1", "", ambiguous, MONUSAC_CLASSES, 0.25)


def test_a_label_image_keeps_ids_and_classes(tmp_path: Path, objects: Objects) -> None:
    path = tmp_path / "mine.tif"
    written = write_objects(path, objects)
    assert written == (path, tmp_path / "mine.csv", tmp_path / f"mine{AMBIGUOUS_SUFFIX}")
    files = MaskFiles(Source.LABELS, {"": (path, written[1])})
    labels = load_masks(files, MONUSAC_CLASSES, shape=None).labels
    assert labels.ids.tolist() == [4, 7]
    assert labels.class_names_of_objects().tolist() == ["Macrophage", "Lymphocyte"]
    np.testing.assert_array_equal(labels.id_image(), objects.labels.id_image())


def test_imagescope_xml_gives_the_same_pixels(tmp_path: Path, objects: Objects) -> None:
    (path,) = write_objects(tmp_path / "mine.xml", objects)
    annotation = read_outlines(Source.IMAGESCOPE, path)
    drawn = rasterize_polygons(annotation.polygons, SHAPE, MONUSAC_CLASSES).held()
    np.testing.assert_array_equal(drawn.labels.index > 0, objects.labels.index > 0)
    np.testing.assert_array_equal(drawn.ambiguous, objects.ambiguous)
    assert annotation.mpp == 0.25


def test_geojson_has_objects_and_areas(tmp_path: Path, objects: Objects) -> None:
    (path,) = write_objects(tmp_path / "mine.geojson", objects)
    features = json.loads(path.read_text(encoding="utf-8"))["features"]
    names = [feature["properties"]["classification"]["name"] for feature in features]
    assert names == ["Macrophage", "Lymphocyte", "Ambiguous"]


def test_without_an_ambiguous_area_there_is_no_mask(tmp_path: Path, objects: Objects) -> None:
    written = write_objects(tmp_path / "mine.tif", replace(objects, ambiguous=None))
    assert [path.name for path in written] == ["mine.tif", "mine.csv"]


@pytest.mark.parametrize("form", tuple(readable_forms()), ids=lambda form: form.name)
def test_what_was_written_is_read_again(tmp_path: Path, objects: Objects, form: Format) -> None:
    path = tmp_path / f"mine{form.endings[0]}"
    write_objects(path, objects)
    masks = read_objects(path, MONUSAC_CLASSES, SHAPE)
    found = masks.labels.class_index[masks.labels.index - 1] * (masks.labels.index > 0)
    labels = objects.labels
    expected = labels.class_index[labels.index - 1] * (labels.index > 0)
    np.testing.assert_array_equal(found, expected)
    assert len(masks.labels) == len(np.unique(labels.index)) - 1
    if masks.ambiguous is not None and not form.losses(objects):  # such as its hole
        np.testing.assert_array_equal(masks.ambiguous, objects.ambiguous)


def test_holes_that_hovernet_cannot_hold_are_told(objects: Objects) -> None:
    (told,) = hovernet.losses(objects)
    assert "1 ambiguous area has holes" in told.message
    assert (told.count, told.object_ids) == (1, ())
    assert hovernet.losses(replace(objects, ambiguous=None)) == ()


def test_a_file_of_another_size_or_ending_is_not_read(tmp_path: Path, objects: Objects) -> None:
    write_objects(tmp_path / "mine.tif", objects)
    with pytest.raises(UnreadableFileError, match="11 x 10"):
        read_objects(tmp_path / "mine.tif", MONUSAC_CLASSES, (10, 11))
    with pytest.raises(PanopticError, match=r"expected \.tif.*found '\.doc'"):
        read_objects(tmp_path / "mine.doc", MONUSAC_CLASSES, SHAPE)


def test_an_unknown_ending_is_refused(tmp_path: Path, objects: Objects) -> None:
    with pytest.raises(PanopticError, match=r"expected \.tif.*found '\.doc'"):
        write_objects(tmp_path / "mine.doc", objects)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".tif", ".xml", ".geojson"])
def test_where_nothing_can_be_written_it_is_said(
    tmp_path: Path, objects: Objects, ending: str
) -> None:
    with pytest.raises(UnwritableFileError, match="choose another place"):
        write_objects(tmp_path / "missing" / f"mine{ending}", objects)


def test_all_files_of_a_cohort_are_known(tmp_path: Path) -> None:
    cohort = open_cohort(write_cohort(tmp_path))
    known = cohort.files
    for region in cohort.regions:
        assert region.image is None or region.image.resolve() in known
        for team in cohort.teams:
            for files in cohort.predictions.get((team.name, region.name), {}).values():
                assert {path.resolve() for path in files.all_paths} <= known
