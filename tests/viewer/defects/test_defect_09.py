"""Two windows with desks, one of which is closed."""

import pytest

from tests.viewer.defects.in_a_process import run_in_process

ONE_CLOSED = """
import numpy as np

for has_desk in (True, False):
    closed = open_window()
    if has_desk:
        open_desk(closed)
    else:
        for _ in range(4):
            closed.add_labels(np.ones((200, 200), "u2"))
        draw()
    other = open_window()
    desk = open_desk(other)
    closed.close()
    draw()
    for _ in range(3):
        desk.link.panels.navigator.following.click()
        wait_until(lambda: desk.is_settled)
        desk.show_failure()
        draw()
    other.close()
    draw()
print("drawn")
"""


@pytest.mark.long
@pytest.mark.usefixtures("qtbot")
def test_defect_09_closing_a_window_leaves_the_textures_of_another_alone(sample_folder, tmp_path):
    assert "drawn" in run_in_process(ONE_CLOSED, sample_folder, tmp_path / "around")
