"""A window that is closed while its first region is being loaded."""

import pytest

from tests.viewer.defects.in_a_process import run_in_process

CLOSED_EARLY = """
from napari.qt import get_qapp
from qtpy.QtCore import QTimer
from napari_panoptic.viewer.launch import run_view
from napari_panoptic.viewer.desk.nuclei import desk_in

application, closed = get_qapp(), []


def close_when(is_time):
    viewer = napari.current_viewer()
    if viewer is not None and is_time(viewer):
        viewer.close()
        closed.append(viewer)
        timer.stop()


timer = QTimer()
for is_time in (
    lambda viewer: desk_in(viewer) is not None,
    lambda viewer: desk_in(viewer) is not None and desk_in(viewer).session is not None,
):
    timer.timeout.connect(lambda is_time=is_time: close_when(is_time))
    timer.start(0)
    assert run_view(sys.argv[1]) == 0
    timer.timeout.disconnect()
    draw()
assert len(closed) == 2
print("ended")
"""


@pytest.mark.long
@pytest.mark.usefixtures("qtbot")
def test_defect_10_a_window_closed_at_its_start_ends_the_program_quietly(sample_folder, tmp_path):
    assert "ended" in run_in_process(CLOSED_EARLY, sample_folder, tmp_path / "around")
