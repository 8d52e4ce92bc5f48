"""What tests of several rooms share."""

import pytest

from napari_panoptic.samples.detections import write_detection_sample


@pytest.fixture(scope="session")
def detection_sample(tmp_path_factory):
    """Write the sample cohort of detections once."""
    return write_detection_sample(tmp_path_factory.mktemp("detections") / "cohort")
