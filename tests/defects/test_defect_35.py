"""Annotations of HALO were read as ImageScope XML without a single vertex: PQ was 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.formats.polygons.imagescope import read_polygons
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from tests.support.builders import annotation_xml, square

HALO = """<Annotations>
  <Annotation LineColor="65535" Name="Epithelial" Visible="True">
    <Regions>
      <Region Type="Polygon" HasEndcaps="0" NegativeROA="0">
        <Vertices><V X="1" Y="1" /><V X="9" Y="1" /><V X="9" Y="9" /></Vertices>
        <Comments />
      </Region>
    </Regions>
  </Annotation>
</Annotations>
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_defect_35_halo_is_refused_by_its_name(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.annotations"
    path.write_text(HALO, encoding=encoding)
    with pytest.raises(UnreadableFileError, match="found annotations of HALO") as told:
        read_polygons(path, MONUSAC_CLASSES)
    assert "export GeoJSON" in str(told.value)


def test_defect_35_imagescope_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(annotation_xml(("Epithelial", [square(1, 1)])))
    assert len(read_polygons(path, MONUSAC_CLASSES).polygons) == 1
