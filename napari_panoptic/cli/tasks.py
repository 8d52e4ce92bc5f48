"""What the command line can do with the cohorts of each task."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module

from napari_panoptic.cli.options import check_cohort_or_pair
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list
from napari_panoptic.nuclei.values.cohort import Task

_ONE_MACHINE = "they are evaluated on this machine, in threads of this process"
_NOTHING_KEPT = "an interrupted run keeps nothing, and each run starts from the beginning"
_ONE_BY_ONE = "frames take milliseconds each, one after the other"


@dataclass(frozen=True)
class TaskCommands:
    """The commands and options for cohorts of one task.

    Parameters
    ----------
    module
        The module with a function per command. It is imported when a command
        runs, since it takes long to import.
    commands
        Their names.
    options
        Options for this task (and others that list them), which change the result.
    without_effect
        Options that only say how the work is done and do nothing here -> why.
    """

    module: str
    commands: tuple[str, ...]
    options: tuple[str, ...] = ()
    without_effect: Mapping[str, str] = field(default_factory=dict)


TASKS: Mapping[Task, TaskCommands] = {
    Task.NUCLEI: TaskCommands(
        "napari_panoptic.cli.nuclei",
        (
            *("evaluate", "report", "slices", "scores", "suspects", "convert", "package"),
            *("plan", "estimate"),
        ),
        options=(
            *("protocol", "correct", "source", "restoration", "radius", "matching"),
            *("iou_threshold", "ambiguous", "outlines", "no_distances", "held_up_to"),
            *("metadata", "group", "overlaps", "compare", "margin"),
            *("plan", "verdicts"),
        ),
    ),
    Task.DETECTIONS: TaskCommands(
        "napari_panoptic.cli.detections",
        ("evaluate", "report"),
        options=("distance_um", "confidence"),
        without_effect={
            "jobs": _ONE_BY_ONE,
            "scheduler": _ONE_BY_ONE,
            "resume": _NOTHING_KEPT,
        },
    ),
    Task.RATERS: TaskCommands(
        "napari_panoptic.cli.raters",
        ("evaluate", "report"),
        without_effect={"scheduler": _ONE_MACHINE, "resume": _NOTHING_KEPT},
    ),
}


def run_for_task(options: argparse.Namespace) -> int:
    """Run a command in the way that suits the cohort's task.

    Raises
    ------
    SettingsError
        For a command or an option that does not suit it.
    """
    from napari_panoptic.io.cohorts.tasks import task_of

    if hasattr(options, "reference"):
        check_cohort_or_pair(options)
    is_pair = getattr(options, "reference", None) is not None
    task = Task.NUCLEI if is_pair else task_of(options.cohort)
    if options.command not in TASKS[task].commands:
        raise SettingsError(f"there is no '{options.command}' for {task}", path=options.cohort)
    given = _given(options)
    for name in given:
        tasks = [other for other, known in TASKS.items() if name in known.options]
        if tasks and task not in tasks:
            raise SettingsError(
                f"--{name.replace('_', '-')} is for cohorts about {english_list(tasks)}; "
                f"this one is about {task}"
            )
    for name, why in TASKS[task].without_effect.items():
        if name in given:
            flag = "--no-resume" if given[name] is False else f"--{name}"
            print(
                f"napari-panoptic: {flag} does nothing for cohorts about {task}: {why}",
                file=sys.stderr,
            )
    module = import_module(TASKS[task].module)
    return int(getattr(module, options.command)(options))


def _given(options: argparse.Namespace) -> dict[str, object]:
    """Return the options whose values are not the defaults."""
    return {
        name: value
        for name, value in vars(options).items()
        if value != options.parser.get_default(name)
    }
