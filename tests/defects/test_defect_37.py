"""Tables with repeated ids, Zarr images without some chunks, layers that only describe themselves.

What COCO panoptic crowds do is described in docs/cohorts.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from napari_panoptic.io.imagescope import read_polygons
from napari_panoptic.regions import MONUSAC_CLASSES
from tests.io.builders import annotation_xml, square

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
