"""Tables with repeated ids, Zarr images without some chunks, layers that only describe themselves.

What COCO panoptic crowds do is described in docs/cohorts.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.format import LoadRequest, Objects
from napari_panoptic.io.formats.labels.label_images import open_label_tiles, read_labels
from napari_panoptic.io.formats.labels.ome_zarr import write_ome_zarr
from napari_panoptic.io.formats.polygons.imagescope import read_polygons
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.builders import annotation_xml, label_files, square, two_objects, write_tiff
from tests.support.zarr_stores import write_zarr

# --- ImageScope ---------------------------------------------------------------------------------


def described(name: str, description: str) -> str:
    """Write a layer as ImageScope itself does."""
    text = annotation_xml(("?", [square(1, 1)]))
    text = text.replace('Name=""', f'Name="{name}"')
    return text.replace(
        '<Attribute Name="?"/>', f'<Attribute Name="Description" Id="0" Value="{description}"/>'
    )


def test_defect_37_a_layer_without_a_name_is_called_as_it_is_described(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(described("", "lymphocyte"))
    read = read_polygons(path, MONUSAC_CLASSES)
    assert read.polygons.class_index.tolist() == [2]
    assert read.findings == ()


@pytest.mark.parametrize(("description", "called"), [("Stroma", "Stroma"), ("", "Description")])
def test_defect_37_an_unknown_description_is_listed(
    description: str, called: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.xml"
    path.write_text(described("", description))
    (finding,) = read_polygons(path, MONUSAC_CLASSES).findings
    assert finding.class_name == called


def test_defect_37_a_name_goes_before_a_description(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(described("Epithelial", "Lymphocyte"))
    assert read_polygons(path, MONUSAC_CLASSES).polygons.class_index.tolist() == [1]
    path.write_text(described("Tumour", "Lymphocyte"))
    (finding,) = read_polygons(path, MONUSAC_CLASSES).findings
    assert finding.class_name == "Tumour"


# --- tables of classes --------------------------------------------------------------------------

SCHEME = ClassScheme(("a", "b"), ((255, 0, 0), (0, 255, 0)), ambiguous=None)
REPEATED = (
    pytest.param("m.csv", "id,class\n1,a\n2,a\n2,b\n1,a\n", id="CSV"),
    pytest.param("m.csv", "class;id\na;1\n\na;2.0\nb;2\na;1\n", id="CSV written otherwise"),
    pytest.param("m.json", '{"1": "a", "2": "a", "2": "b", "1": "a"}', id="JSON"),
    pytest.param("m.json", '{"1": "a", "2": 1, "02": 2, "1.0": 1}', id="JSON written otherwise"),
)


@pytest.mark.parametrize(("name", "text"), REPEATED)
def test_defect_37_ids_that_come_twice_are_listed(name: str, text: str, tmp_path: Path) -> None:
    objects = two_objects()
    files = label_files(write_tiff(tmp_path / "m.tif", objects.astype(np.uint16)))
    (tmp_path / name).write_text(text)
    whole = read_labels(files, SCHEME, LoadRequest(shape=objects.shape))
    tiled = open_label_tiles(files, SCHEME, objects.shape)
    assert whole.labels.class_names_of_objects().tolist() == ["a", "b"]
    assert tiled.labels.class_index.tolist() == [1, 2]
    for findings in (whole.findings, tiled.findings):
        (finding,) = findings
        assert finding.kind is FindingKind.MALFORMED
        assert finding.path == tmp_path / name
        assert finding.object_ids == (1, 2)


@pytest.mark.parametrize(
    ("name", "text"), [("m.csv", "id,class\n1,a\n2,b\n"), ("m.json", '{"1": "a", "2": "b"}')]
)
def test_defect_37_tables_without_such_ids_have_no_finding(
    name: str, text: str, tmp_path: Path
) -> None:
    objects = two_objects()
    files = label_files(write_tiff(tmp_path / "m.tif", objects.astype(np.uint16)))
    (tmp_path / name).write_text(text)
    assert read_labels(files, SCHEME, LoadRequest(shape=objects.shape)).findings == ()
    assert open_label_tiles(files, SCHEME, objects.shape).findings == ()


# --- chunks of Zarr label images ----------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_defect_37_chunks_that_are_not_there_are_counted(zarr_format: int, tmp_path: Path) -> None:
    objects = two_objects(40, 40)
    objects[:, 20] = 3
    objects[20] = 4  # 9 chunks of 16 x 16 px, of which the corner at the end is empty
    one = ClassScheme(("cell",), ((255, 0, 0),), ambiguous=None)
    path = write_zarr(tmp_path / "m.zarr", objects, kind="array", zarr_format=zarr_format)
    chunks = [p for p in path.rglob("*") if p.is_file() and p.name not in (".zarray", ".zattrs")]
    chunks = [p for p in chunks if p.name != "zarr.json"]
    expected = 9 - len(chunks)
    for lost in (0, 1):
        findings = [
            f
            for found in (
                read_labels(label_files(path), one, LoadRequest(shape=objects.shape)).findings,
                open_label_tiles(label_files(path), one, objects.shape).findings,
            )
            for f in found
            if f.kind is FindingKind.MISSING
        ]
        assert [f.count for f in findings] == ([expected + lost] * 2 if expected + lost else [])
        if findings:
            assert f"{expected + lost} of the 9 chunks" in findings[0].message
        chunks[0].unlink(missing_ok=True)


def test_defect_37_what_is_written_here_has_all_its_chunks(tmp_path: Path) -> None:
    index = np.zeros((1100, 1100), np.int32)
    index[3:9, 3:9] = 1
    labels = LabelImage.from_array(index, "a", SCHEME.names)
    path = tmp_path / "m.ome.zarr"
    write_ome_zarr(path, Objects(labels, Side.PREDICTION, "r", "t", None, SCHEME, None))
    assert read_labels(label_files(path), SCHEME, LoadRequest(shape=index.shape)).findings == ()
