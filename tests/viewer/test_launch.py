"""The window that the command line opens."""

import subprocess
import sys

import numpy as np
import pytest
from skimage.io import imread

from napari_panoptic.errors import CohortError
from napari_panoptic.viewer import launch
from napari_panoptic.viewer.styles import STATUS_COLOURS

pytestmark = pytest.mark.usefixtures("qtbot")


def test_a_picture_shows_coloured_objects_and_filled_docks(sample_folder, tmp_path):
    path = tmp_path / "ünïcode.png"

    # In a process of its own, as a person would: napari's tests keep one for themselves.
    code = "import sys; from napari_panoptic.cli import main; sys.exit(main(sys.argv[1:]))"
    options = ["view", sample_folder, "--region", "Sample-A_1", "--screenshot", path]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, options)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    pixels = imread(path)[..., :3].astype(int)
    assert min(pixels.shape[:2]) >= 480
    for colour in STATUS_COLOURS.values():
        near = np.abs(pixels - colour).max(axis=-1) <= 12
        assert near.sum() > 10, f"nothing is drawn in {colour}"


def test_an_unknown_region_is_refused_before_a_window_opens(sample_folder, tmp_path):
    with pytest.raises(CohortError, match="did you mean"):
        launch.run_view(sample_folder, region="Sample-A_9", screenshot=tmp_path / "a.png")


def test_a_folder_that_is_no_cohort_is_refused(tmp_path):
    with pytest.raises(CohortError):
        launch.run_view(tmp_path, screenshot=tmp_path / "a.png")
