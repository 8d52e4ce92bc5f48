"""The command ``compare``: an old and a new version, object by object, and a verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.console import report_findings, share_bar, tables_in, words
from napari_panoptic.cli.inputs import cohort_from, settings_from, source_from
from napari_panoptic.cli.options import (
    add_cohort,
    add_evaluation,
    add_metric,
    add_output,
    check_cohort_or_pair,
    metric_from,
)
from napari_panoptic.cli.parser import CommandParser
from napari_panoptic.cli.printing import say
from napari_panoptic.cli.question import print_answer
from napari_panoptic.cli.tasks import check_task
from napari_panoptic.common.errors import SettingsError, checked_name
from napari_panoptic.common.text import english_list, similar
from napari_panoptic.io.files.fingerprints import file_fingerprints, input_fingerprints
from napari_panoptic.io.tables.evaluation import OBJECTS, EvaluationTables, read_evaluation
from napari_panoptic.questions.answer import Answer
from napari_panoptic.questions.compare import (
    Compare,
    check_limits,
    comparison_answer,
    verdict_line,
)
from napari_panoptic.questions.engines.version_diff import IOU_STEP
from napari_panoptic.questions.engines.versions import (
    MARGIN,
    VersionComparison,
    compare_evaluations,
)

ABOUT = Compare.about
EXIT_STATUS = {"not-worse": 0, "worse": 3, "undecided": 4}
Compared = tuple[VersionComparison, Answer, dict[str, str]]
"""The versions compared, the outputs, and fingerprints of the input files."""
_EVALUATION_OPTIONS = (
    *("protocol", "correct", "source", "restoration", "radius", "matching", "iou_threshold"),
    *("ambiguous", "ambiguous_share", "zone_px", "overlaps", "outlines", "no_distances"),
    *("jobs", "scheduler", "held_up_to"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser, or_pair=True)
    parser.add_argument(
        "versions",
        nargs="*",
        metavar="OLD NEW",
        help="two teams of the cohort; or 'compare OLDDIR NEWDIR' for two output folders of "
        "'evaluate'",
    )
    if isinstance(parser, CommandParser):
        parser.words = "versions"
    add_metric(parser)
    parser.add_argument(
        "--margin",
        type=float,
        default=MARGIN,
        metavar="X",
        help="by how much the new version may be worse, in the unit of the metric (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--iou-step",
        type=float,
        default=IOU_STEP,
        metavar="X",
        help="an object is marked if its IoU changes by more (default: %(default)s)",
    )
    add_output(parser, meaning="folder for diff.csv and compare.json", required=False)
    parser.add_argument(
        "--gate",
        action="store_true",
        help="print only the verdict, in one line, for continuous integration",
    )
    add_evaluation(parser, resumes=False)


def run(options: argparse.Namespace) -> int:
    """Compare two versions, print the result, and return the exit status of the verdict."""
    check_cohort_or_pair(options)
    check_limits(metric_from(options), options.margin, options.iou_step)
    of_tables = options.reference is None and len(options.versions) == 1
    compare = _compare_tables if of_tables else _compare_files
    if options.output is None:
        comparison, answer, _ = compare(options)
        report_findings(comparison.findings, None, are_files=options.reference is not None)
    else:
        with tables_in(options.output, Compare.file_names()) as place:
            comparison, answer, inputs = compare(options)
            place.write(answer.files, answer.record.content, comparison.findings, inputs)
    if options.gate:
        say(verdict_line(comparison))
    else:
        print_answer(answer)
        if options.output is not None:
            say(f"diff.csv and compare.json written to {options.output}")
    return EXIT_STATUS[str(comparison.decision.verdict)]


# --- the versions ------------------------------------------------------------------------------


def _compare_files(options: argparse.Namespace) -> Compared:
    """Evaluate two teams of a cohort, or two predictions of an image."""
    _check_words(options)
    settings = settings_from(options)
    cohort = cohort_from(options)
    if options.reference is None:
        old, new = (
            checked_name(what, name, cohort.checked_team)
            for what, name in zip(("OLD", "NEW"), options.versions, strict=True)
        )
    else:
        old, new = (team.name for team in cohort.teams)
    question = Compare(
        old=old,
        new=new,
        settings=settings,
        protocol=options.protocol,
        source=source_from(options, cohort, (old, new)),
        metric=metric_from(options),
        margin=options.margin,
        iou_step=options.iou_step,
        scheduler=options.scheduler,
        held_up_to_px=options.held_up_to,
    )
    with share_bar() as progress:
        comparison = question.gather(cohort, progress, jobs=options.jobs)
    inputs = input_fingerprints(cohort, (old, new))
    return comparison, question.answered(cohort, comparison), inputs


def _check_words(options: argparse.Namespace) -> None:
    """Check that the versions are named correctly for a cohort, two images or two folders."""
    if options.teams is not None:
        raise SettingsError("--teams is for two output folders of 'evaluate'; name OLD and NEW")
    if options.reference is not None:
        if len(options.prediction) != 2 or options.versions:
            raise SettingsError(
                "give the old and the new prediction of the image: --prediction OLD NEW; found "
                f"{len(options.prediction)}"
            )
        return
    if len(options.versions) != 2:
        raise SettingsError(
            "give a COHORT and two of its teams, or two output folders of 'evaluate'; found "
            f"{1 + len(options.versions)} words"
        )
    check_task(options)


def _compare_tables(options: argparse.Namespace) -> Compared:
    """Compare two output folders of ``evaluate``."""
    _check_settings_unused(options)
    folders = options.cohort, Path(options.versions[0])
    old, new = (read_evaluation(folder) for folder in folders)
    teams = _teams_of_tables(options.teams, old, new)
    names = teams
    if names[0] == names[1]:
        names = (folders[0].resolve().name, folders[1].resolve().name)
    if names[0] == names[1]:
        names = (str(folders[0]), str(folders[1]))
    comparison = compare_evaluations(
        old,
        new,
        teams,
        names=names,
        metric=metric_from(options),
        margin=options.margin,
        iou_step=options.iou_step,
    )
    inputs = {
        f"{which}/{name}": found
        for which, folder in zip(("old", "new"), folders, strict=True)
        for name, found in file_fingerprints([folder / OBJECTS], folder).items()
    }
    answer = comparison_answer(
        comparison,
        settings={**old.settings, "iou_step": options.iou_step},
        teams=list(teams),
        made_with={"old": old.versions, "new": new.versions},
    )
    return comparison, answer, inputs


def _check_settings_unused(options: argparse.Namespace) -> None:
    """Check that no setting is given that needs another evaluation."""
    for name in _EVALUATION_OPTIONS:
        if getattr(options, name) != options.parser.get_default(name):
            raise SettingsError(
                f"--{name.replace('_', '-')} has no effect on evaluations that are finished; give "
                "it to 'evaluate'"
            )


def _teams_of_tables(
    wanted: str | None, old: EvaluationTables, new: EvaluationTables
) -> tuple[str, str]:
    """Return the team of either folder: the only one, or the one that is named."""
    names: list[str | None] = [None] if wanted is None else [*words(wanted)]
    if not 1 <= len(names) <= 2:
        raise SettingsError(f"--teams: expected one name, or one for each folder, found '{wanted}'")
    found = []
    for tables, name in ((old, names[0]), (new, names[-1])):
        if name is None and len(tables.teams) == 1:
            found.append(tables.teams[0])
        elif name in tables.teams:
            found.append(str(name))
        else:
            known = english_list(tables.teams) or "no team"
            close = [] if name is None else similar(name, tables.teams)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            asked = "give --teams TEAM, or OLD,NEW" if name is None else f"found no '{name}'{hint}"
            raise SettingsError(f"--teams: {tables.folder} has {known}; {asked}")
    return found[0], found[1]
