"""What is done with a cohort depends on what it is about."""

from argparse import Namespace

import pytest

from napari_panoptic.cli.main import command_parser, main
from napari_panoptic.cli.tasks import FOR_EVERY_TASK, TASKS
from napari_panoptic.values.cohort import Task


def _about(tmp_path, task):
    (tmp_path / "cohort.toml").write_text(f'task = "{task}"\n')
    return tmp_path


@pytest.mark.parametrize("command", FOR_EVERY_TASK)
@pytest.mark.parametrize("task", list(Task))
def test_each_task_has_its_own_command(command, task, tmp_path, monkeypatch):
    asked = []
    for own in Task:
        called = f"napari_panoptic.cli.{own}.{command}"
        monkeypatch.setattr(called, lambda _options, own=own: asked.append(own) or 0)
    arguments = [command, str(_about(tmp_path, task)), "--output", str(tmp_path / "out")]
    assert (main(arguments), asked) == (0, [task])


@pytest.mark.parametrize("command", ["convert", "slices", "sweep"])
@pytest.mark.parametrize("task", [Task.DETECTIONS, Task.RATERS])
def test_a_command_for_nuclei_says_that_there_is_none(command, task, tmp_path, capsys):
    needed = {"convert": ["--to", "labels"], "slices": ["--team", "alpha"], "sweep": []}
    arguments = [command, str(_about(tmp_path, task)), "--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, *needed[command]])
    assert stopped.value.code == 2
    assert f"there is no '{command}' for {task}" in capsys.readouterr().err


def test_an_option_of_another_task_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("napari_panoptic.cli.raters.evaluate", lambda _options: 0)
    about = [str(_about(tmp_path, Task.RATERS)), "--output", str(tmp_path / "out")]

    assert main(["evaluate", *about]) == 0
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", *about, "--iou-threshold", "0.5"])

    assert stopped.value.code == 2
    assert "--iou-threshold is for cohorts about nuclei" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", sorted({name for own in TASKS.values() for name in (*own.options, *own.without_effect)})
)
def test_options_of_tasks_exist(name):
    parser = command_parser()
    options = [
        parser.parse_args([command, "COHORT", "--output", "OUT"])
        for command in ("evaluate", "report")
    ]
    assert any(hasattr(given, name) for given in options if isinstance(given, Namespace))
