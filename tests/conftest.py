"""What tests of several rooms share."""

import gc

import pytest
from hypothesis import HealthCheck, settings

from napari_panoptic.cli.main import main
from napari_panoptic.samples.write import write_detection_sample, write_sample_cohort

# What an example may do does not depend on how busy the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_modifyitems(items):
    """Begin with windows: their files take longest, and workers then end at the same time."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/viewer/"))


def pytest_collection_finish():
    """Keep what is imported out of collections of garbage: it stays, and there is much of it."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_plots():
    """Leave the plots of reports empty, in a test of something else."""
    from tests.support.reports import without_plots  # imports matplotlib

    with without_plots():
        yield


@pytest.fixture(scope="session")
def nuclei_sample(tmp_path_factory):
    """Write the sample cohort of nuclei once; tests that change files copy it."""
    return write_sample_cohort(tmp_path_factory.mktemp("nuclei-sample") / "cohort")


@pytest.fixture(scope="session")
def detection_sample(tmp_path_factory):
    """Write the sample cohort of detections once; tests that change files copy it."""
    return write_detection_sample(tmp_path_factory.mktemp("detections-sample") / "cohort")


@pytest.fixture(scope="session")
def sample_tables(nuclei_sample, tmp_path_factory):
    """Evaluate the sample of each task by the command line: task -> folder of its tables."""
    folder = tmp_path_factory.mktemp("tables")
    samples = {"nuclei": nuclei_sample}
    for task in ("detections", "raters"):
        samples[task] = folder / f"{task}-sample"
        assert main(["sample", str(samples[task]), "--task", task]) == 0
    for task, sample in samples.items():
        assert main(["evaluate", str(sample), "--output", str(folder / task)]) == 0
    return {task: folder / task for task in samples}
