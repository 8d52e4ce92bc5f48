"""A deeply nested table of class names does not keep a region from being shown."""

import pytest

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.viewer.desk.nuclei import desk_of
from tests.support.nested_names import cohort_with_type_info


@pytest.mark.long
def test_defect_40_a_region_beside_a_deeply_nested_table_is_shown(
    close_desk, make_napari_viewer, wait_until, tmp_path
):
    viewer = make_napari_viewer()
    desk = desk_of(viewer)
    desk.show_cohort(open_cohort(cohort_with_type_info(tmp_path, "[" * 100_000)))
    wait_until(lambda: desk.is_settled)
    assert "reference" in [layer.name for layer in viewer.layers]
    close_desk(desk)
