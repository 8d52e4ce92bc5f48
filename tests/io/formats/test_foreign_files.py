"""Files as other programs wrote them, frozen in tests/data/formats.

- ``ome_zarr_0_4.zip``, ``ome_zarr_0_5.zip``: ome-zarr 0.18.0, ``write_image`` and ``write_labels``,
  with three levels and properties; zipped.
- ``stardist_labels.tif``: csbdeep 0.8.2, ``save_tiff_imagej_compatible``, which StarDist uses.
- ``cellpose_cp_masks.png`` and ``.tif``: cellpose 3.1.1.1, ``io.save_masks``.
- ``cellpose_cp_outlines.txt`` and ``cellpose_seg.npy``: cellpose 3.1.1.1, ``outlines_list``,
  ``io.outlines_to_text`` and ``io.masks_flows_to_seg``.
- ``qubalab_objects.geojson``: qubalab 0.2.1, QuPath's library for Python: detections of
  ``ImageFeature.create_from_label_image``, a cell with a nucleus, and a tile.
- ``ours_through_qubalab.geojson``: what ``write_geojson`` wrote, read and written by qubalab.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.one_file import format_of
from napari_panoptic.io.formats.polygons.geojson_writer import (
    ObjectType,
    geo_objects,
    write_geojson,
)
from napari_panoptic.io.formats.registry import load_masks, open_masks, reference_shape
from napari_panoptic.io.pixels.label_windows import open_pixels
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.builders import label_files
from tests.support.zarr_stores import unzipped

DATA = Path(__file__).resolve().parents[2] / "data" / "formats"
SHAPE = (48, 60)
ONE_CLASS = ClassScheme(("cell",), ((255, 0, 0),), ambiguous=None)
BOXES = {1: (3, 4, 12, 15), 2: (20, 10, 31, 22), 5: (8, 30, 20, 44), 9: (33, 40, 44, 57)}
LAST = (40, 3, 46, 9)
CLASSES = {1: "Epithelial", 2: "Lymphocyte", 5: "Epithelial", 9: "Ambiguous", 70000: "Macrophage"}


def drawn(last: int) -> NDArray[np.int64]:
    """Draw the objects that the programs were given; the last one has another id in each."""
    image = np.zeros(SHAPE, np.int64)
    for id_, (y0, x0, y1, x1) in {**BOXES, last: LAST}.items():
        image[y0:y1, x0:x1] = id_
    return image


@pytest.mark.parametrize("name", ["ome_zarr_0_4", "ome_zarr_0_5"])
def test_labels_of_ome_zarr_tell_their_classes(name: str, tmp_path: Path) -> None:
    path, image = unzipped(name, tmp_path), drawn(70000)
    loaded = load_masks(label_files(path), MONUSAC_CLASSES, shape=SHAPE)
    assert loaded.findings == ()
    assert loaded.ambiguous is not None
    assert np.array_equal(loaded.ambiguous, image == 9)
    ids = np.where(image == 9, 0, image)
    assert np.array_equal(loaded.labels.id_image(), ids)
    names = loaded.labels.class_names_of_objects().tolist()
    assert dict(zip(loaded.labels.ids.tolist(), names, strict=True)) == {
        id_: cls for id_, cls in CLASSES.items() if cls != "Ambiguous"
    }
    tiles = open_masks(label_files(path), MONUSAC_CLASSES, SHAPE)
    assert tiles.labels.class_index.tolist() == loaded.labels.class_index.tolist()
    assert np.array_equal(tiles.labels.read((0, 0, *SHAPE)), loaded.labels.index)
    assert tiles.ambiguous is not None
    assert np.array_equal(tiles.ambiguous.read((0, 0, *SHAPE)), loaded.ambiguous)


def test_a_table_beside_goes_before_the_properties(tmp_path: Path) -> None:
    path = unzipped("ome_zarr_0_4", tmp_path)
    table = "id,class\n" + "".join(f"{id_},Neutrophil\n" for id_ in CLASSES)
    (tmp_path / "ome_zarr_0_4.csv").write_text(table)
    loaded = load_masks(label_files(path), MONUSAC_CLASSES, shape=SHAPE)
    assert set(loaded.labels.class_names_of_objects()) == {"Neutrophil"}


def test_a_label_without_properties_is_reported(tmp_path: Path) -> None:
    path = unzipped("ome_zarr_0_4", tmp_path)
    attributes = path / "labels" / "nuclei" / ".zattrs"
    text = attributes.read_text()
    attributes.write_text(text.replace("70000", "70001"))
    (finding,) = load_masks(label_files(path), MONUSAC_CLASSES, shape=SHAPE).findings
    assert finding.kind is FindingKind.UNKNOWN_CLASS
    assert finding.object_ids == (70000,)
    attributes.write_text(text.replace('"label-value"', '"value"'))
    with pytest.raises(UnreadableFileError, match="expected properties of labels"):
        load_masks(label_files(path), MONUSAC_CLASSES, shape=SHAPE)


@pytest.mark.parametrize(
    "name", ["stardist_labels.tif", "cellpose_cp_masks.tif", "cellpose_cp_masks.png"]
)
def test_label_images_of_segmentation_programs(name: str, tmp_path: Path) -> None:
    path = DATA / name
    loaded = load_masks(label_files(path), ONE_CLASS, shape=SHAPE)
    assert loaded.findings == ()
    assert np.array_equal(loaded.labels.id_image(), drawn(12))
    assert np.array_equal(open_pixels(path, "labels").read((0, 0, *SHAPE)), drawn(12))
    table = tmp_path / "classes.csv"
    table.write_text("id,class\n1,1\n2,2\n5,1\n9,Ambiguous\n12,Macrophage\n")
    classed = load_masks(label_files(path, table), MONUSAC_CLASSES, shape=SHAPE)
    assert classed.labels.class_index.tolist() == [1, 2, 1, 4]


def with_hole_and_piece() -> NDArray[np.int64]:
    """Draw the objects that qubalab was given."""
    image = drawn(12)
    image[23:27, 13:18] = 0
    image[20:22, 2:6] = 2
    return image


def test_objects_of_qubalab() -> None:
    files = MaskFiles(Source.GEOJSON, {"": (DATA / "qubalab_objects.geojson",)})
    loaded = load_masks(files, MONUSAC_CLASSES, shape=SHAPE)
    image = with_hole_and_piece()
    image[2:8, 50:56] = 6  # of the cell its nucleus; the tile is left out
    expected = np.zeros(SHAPE, np.int64)
    for id_, of in {1: 1, 2: 5, 3: 2, 5: 12, 6: 6}.items():  # in qubalab's order
        expected[image == of] = id_
    assert np.array_equal(loaded.labels.id_image(), expected)
    assert loaded.labels.class_names_of_objects().tolist() == [
        "Epithelial",
        "Epithelial",
        "Lymphocyte",
        "Macrophage",
        "Lymphocyte",
    ]
    assert loaded.ambiguous is not None
    assert np.array_equal(loaded.ambiguous, image == 9)
    assert sorted((f.kind, f.object_ids) for f in loaded.findings) == [
        (FindingKind.FALLBACK, (6,)),
        (FindingKind.FALLBACK, (7,)),
    ]


def test_qubalab_understands_what_this_program_writes(tmp_path: Path) -> None:
    image = np.where(with_hole_and_piece() == 9, 0, with_hole_and_piece())
    classes = {id_: name for id_, name in CLASSES.items() if id_ != 70000} | {12: "Macrophage"}
    labels = LabelImage.from_array(image, classes, MONUSAC_CLASSES.names)
    details = {
        1: {"status": "TP", "iou": 0.75, "verdict": "real failure"},
        2: {"status": "FN", "cause": "missed"},
    }
    objects = geo_objects(
        labels,
        side=Side.REFERENCE,
        region="R_1",
        details=details,
        object_type=ObjectType.DETECTION,
    )
    path = tmp_path / "ours.geojson"
    write_geojson(path, objects, scheme=MONUSAC_CLASSES)
    ours = json.loads(path.read_text())["features"]
    theirs = json.loads((DATA / "ours_through_qubalab.geojson").read_text())["features"]
    assert len(ours) == len(theirs) == 4
    for own, other in zip(ours, theirs, strict=True):
        assert other["id"] == own["id"]
        assert other["geometry"] == {**own["geometry"], "plane": {"z": 0, "t": 0}}
        expected, got = own["properties"], other["properties"]
        classification = expected["classification"]
        assert got["classification"] == {
            "names": [classification["name"]],
            "color": classification["color"],
        }
        assert got["object_type"] == expected["objectType"].upper()
        for key in ("name", "measurements", "metadata"):
            assert got[key] == expected[key]


def of_cellpose() -> NDArray[np.int64]:
    """Draw the objects that Cellpose was given: boxes, a disc, a pixel and a line."""
    image = np.zeros(SHAPE, np.int64)
    for id_, (y0, x0, y1, x1) in enumerate([*BOXES.values(), LAST], start=1):
        image[y0:y1, x0:x1] = id_
    y, x = np.indices(SHAPE)
    image[(y - 14) ** 2 + (x - 24) ** 2 <= 20] = 6
    image[45, 30] = 7
    image[30:36, 30] = 8
    return image


def test_masks_in_a_seg_file_of_cellpose() -> None:
    path = DATA / "cellpose_seg.npy"
    loaded = load_masks(label_files(path), ONE_CLASS, shape=SHAPE)
    assert loaded.findings == ()
    assert np.array_equal(loaded.labels.id_image(), of_cellpose())
    assert reference_shape(None, [label_files(path)]) == SHAPE
    tiles = open_masks(label_files(path), ONE_CLASS, SHAPE)
    assert np.array_equal(tiles.labels.read((0, 0, *SHAPE)), loaded.labels.index)


def test_outlines_of_cellpose() -> None:
    path = DATA / "cellpose_cp_outlines.txt"
    assert format_of(path) == Source.CELLPOSE_OUTLINES
    loaded = load_masks(MaskFiles(Source.CELLPOSE_OUTLINES, {"": (path,)}), ONE_CLASS, shape=SHAPE)
    image = of_cellpose()
    assert np.array_equal(loaded.labels.id_image(), np.where(image == 7, 0, image))
    # Cellpose writes no outline of a single pixel, only an empty line.
    assert {finding.object_ids for finding in loaded.findings} == {(7,)}
    assert {finding.kind for finding in loaded.findings} <= {
        FindingKind.VANISHED,
        FindingKind.DEGENERATE,
    }


def test_other_objects_in_a_seg_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a_1_seg.npy"
    np.save(path, {"masks": [[1, 2], [3, 4]]})  # type: ignore[arg-type]
    for read in (
        lambda: load_masks(label_files(path), ONE_CLASS, shape=SHAPE),
        lambda: open_masks(label_files(path), ONE_CLASS, SHAPE),
    ):
        with pytest.raises(UnreadableFileError, match=r"pickled.*export the masks as PNG or TIFF"):
            read()


def test_label_images_in_archives(tmp_path: Path) -> None:
    image = of_cellpose()
    path = tmp_path / "a.npz"
    for save in (np.savez, np.savez_compressed):
        save(path, image)
        assert format_of(path) == Source.LABELS
        loaded = load_masks(label_files(path), ONE_CLASS, shape=SHAPE)
        assert np.array_equal(loaded.labels.id_image(), image)
    np.savez(path, image=image[::-1], labels=np.asfortranarray(image.astype(">u2")))
    loaded = load_masks(label_files(path), ONE_CLASS, shape=SHAPE)
    assert np.array_equal(loaded.labels.id_image(), image)
    assert reference_shape(None, [label_files(path)]) == SHAPE
    for arrays in ({"a": image, "b": image}, {"labels": image, "masks": image}):
        np.savez(path, **arrays)
        with pytest.raises(UnreadableFileError, match=r"only array of an NPZ file.*found"):
            load_masks(label_files(path), ONE_CLASS, shape=SHAPE)
