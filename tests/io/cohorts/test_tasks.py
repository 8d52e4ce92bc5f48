"""What a cohort's folder is about."""

import pytest

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.values.cohort import Task


def test_a_folder_without_a_description_is_about_nuclei(tmp_path):
    assert task_of(tmp_path) is Task.NUCLEI


@pytest.mark.parametrize("task", list(Task))
def test_a_description_names_its_task(tmp_path, task):
    (tmp_path / "cohort.toml").write_text(f'task = "{task}"\n')

    assert task_of(tmp_path) is task
    assert task_of(tmp_path / "cohort.toml") is task


@pytest.mark.parametrize("value", ['"mitosis"', "3", "[]"])
def test_an_unknown_task_is_said_with_those_there_are(tmp_path, value):
    (tmp_path / "cohort.toml").write_text(f"task = {value}\n")

    with pytest.raises(CohortError, match="nuclei, detections and raters"):
        task_of(tmp_path)
