"""What is done with a cohort depends on what it is about."""

from argparse import Namespace

import pytest

from napari_panoptic.cli import main as cli
from napari_panoptic.cli.main import main
from napari_panoptic.nuclei.values.cohort import Task


def _about(tmp_path, task):
    (tmp_path / "cohort.toml").write_text(f'task = "{task}"\n')
    return tmp_path


@pytest.mark.parametrize("command", ["evaluate", "report"])
@pytest.mark.parametrize("task", list(Task))
def test_each_task_has_its_own_command_or_says_that_there_is_none(
    command, task, tmp_path, monkeypatch, capsys
):
    asked = []
    table = {"evaluate": "_EVALUATE", "report": "_REPORT"}[command]
    known = getattr(cli, table)
    stand_ins = {key: lambda _options, key=key: asked.append(key) or 0 for key in known}
    monkeypatch.setattr(cli, table, stand_ins)

    status = main([command, str(_about(tmp_path, task)), "--output", str(tmp_path / "out")])

    assert (status, asked) == ((0, [task]) if task in known else (1, []))
    assert task in known or f"no '{command}' for {task}" in capsys.readouterr().err


def test_an_option_of_another_task_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "_EVALUATE", dict.fromkeys(Task, lambda _options: 0))
    about = [str(_about(tmp_path, Task.RATERS)), "--output", str(tmp_path / "out")]

    assert main(["evaluate", *about]) == 0
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", *about, "--iou-threshold", "0.5"])

    assert stopped.value.code == 2
    assert "--iou-threshold is for cohorts about nuclei" in capsys.readouterr().err


@pytest.mark.parametrize("name", list(cli._ONLY_FOR))
def test_options_of_tasks_exist(name):
    parser = cli._parser()
    options = [
        parser.parse_args([command, "COHORT", "--output", "OUT"])
        for command in ("evaluate", "report")
    ]
    assert any(hasattr(given, name) for given in options if isinstance(given, Namespace))
