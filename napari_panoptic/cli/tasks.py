"""What the command line can do with the cohorts of each task."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module

from napari_panoptic.cli.options import check_cohort_or_pair
from napari_panoptic.cli.printing import warn
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.values.cohort import Task

_ONE_MACHINE = "they are evaluated on this machine, in threads of this process"
_NOTHING_KEPT = "an interrupted run keeps nothing, and each run starts from the beginning"
_ONE_BY_ONE = "frames take milliseconds each, one after the other"


@dataclass(frozen=True)
class TaskOptions:
    """The options for cohorts of one task."""

    #: Options for this task (and others that list them), which change the result.
    options: tuple[str, ...] = ()
    #: Options that change only how the work is done, and have no effect here -> the reason.
    without_effect: Mapping[str, str] = field(default_factory=dict)


FOR_EVERY_TASK = ("evaluate", "report")
"""The commands for cohorts of every task; the others are for nuclei."""

TASKS: Mapping[Task, TaskOptions] = {
    Task.NUCLEI: TaskOptions(
        options=(
            *("protocol", "correct", "source", "restoration", "radius", "matching"),
            *("iou_threshold", "ambiguous", "ambiguous_share", "zone_px", "outlines"),
            *("no_distances", "held_up_to"),
            *("metadata", "group", "overlaps", "compare", "margin"),
            *("plan", "verdicts"),
        ),
    ),
    Task.DETECTIONS: TaskOptions(
        options=("distance_um", "confidence"),
        without_effect={
            "jobs": _ONE_BY_ONE,
            "scheduler": _ONE_BY_ONE,
            "resume": _NOTHING_KEPT,
        },
    ),
    Task.RATERS: TaskOptions(
        without_effect={"scheduler": _ONE_MACHINE, "resume": _NOTHING_KEPT},
    ),
}


def run_for_task(options: argparse.Namespace) -> int:
    """Run a command for every task: the function of its name, in the module of the cohort's task.

    Raises
    ------
    SettingsError
        For an option that does not suit the task.
    """
    module = import_module(f"napari_panoptic.cli.{check_task(options)}")
    return int(getattr(module, options.command)(options))


def check_task(options: argparse.Namespace) -> Task:
    """Return the cohort's task; check that the command and its options suit it.

    Raises
    ------
    SettingsError
        For a command or an option that does not suit it.
    """
    if hasattr(options, "reference"):
        check_cohort_or_pair(options)
    is_pair = getattr(options, "reference", None) is not None
    task = Task.NUCLEI if is_pair else task_of(options.cohort)
    if task is not Task.NUCLEI and options.command not in FOR_EVERY_TASK:
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
            warn(f"{flag} does nothing for cohorts about {task}: {why}")
    return task


def _given(options: argparse.Namespace) -> dict[str, object]:
    """Return the options whose values are not the defaults."""
    return {
        name: value
        for name, value in vars(options).items()
        if value != options.parser.get_default(name)
    }
