"""What tests of several rooms share."""

import gc

import pandas as pd
import pytest
from hypothesis import HealthCheck, settings

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.detections import open_detection_cohort
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.samples.write import write_detection_sample, write_sample_cohort
from tests.support.examples import QUICK, WHOLE
from tests.support.small_cohort import write_cohort
from tests.support.sweep_cohort import write_sweep_cohort

# What an example may do does not depend on how busy the machine is.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("whole", max_examples=WHOLE, **UNTIMED)
settings.register_profile("quick", max_examples=QUICK, **UNTIMED)
settings.load_profile("whole")


def pytest_configure(config):
    """Try fewer examples of properties where the long tests are left out."""
    if config.option.markexpr == "not long":
        settings.load_profile("quick")


def pytest_collection_modifyitems(items):
    """Begin with windows: their files take longest, and workers then end at the same time."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/viewer/"))


def pytest_collection():
    """Look for no garbage while tests are imported, which leaves little and takes a fifth of it."""
    gc.disable()


def pytest_collection_finish():
    """Keep what is imported out of collections of garbage: it stays, and there is much of it."""
    gc.collect()
    gc.freeze()
    gc.enable()


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
def sample_cohort(nuclei_sample):
    """Open the sample cohort of nuclei."""
    return open_cohort(nuclei_sample)


@pytest.fixture(scope="session")
def detection_cohort(detection_sample):
    """Open the sample cohort of detections."""
    return open_detection_cohort(detection_sample)


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    """Write the small cohort once, for tests that change no file of it."""
    return write_cohort(tmp_path_factory.mktemp("small") / "cohort")


@pytest.fixture(scope="session")
def small_cohort(small_folder):
    """Open the small cohort."""
    return open_cohort(small_folder)


@pytest.fixture
def own_folder(tmp_path):
    """Write the small cohort for one test, which may change its files."""
    return write_cohort(tmp_path / "cohort")


@pytest.fixture(scope="session")
def sweep_folder(tmp_path_factory):
    """Write the cohort whose teams are settings of one post-processing, once."""
    return write_sweep_cohort(tmp_path_factory.mktemp("sweep") / "cohort")


@pytest.fixture(scope="session")
def sample_objects(nuclei_sample, tmp_path_factory):
    """Evaluate the sample of nuclei by the command line, without distances: a row per object."""
    folder = tmp_path_factory.mktemp("evaluated")
    assert main(["evaluate", str(nuclei_sample), "-o", str(folder), "--no-distances"]) == 0
    return pd.read_csv(folder / "objects.csv", keep_default_na=False)


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
