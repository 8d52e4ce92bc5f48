"""The command ``suspects``."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from napari_panoptic.cli.console import (
    print_table,
    progress_bar,
    report_findings,
    report_nothing,
    tables_in,
)
from napari_panoptic.cli.inputs import cohort_from, restoration_from, source_from, team_names_from
from napari_panoptic.cli.options import add_cohort, add_output, add_restoration, add_source
from napari_panoptic.cli.parser import add_choice
from napari_panoptic.cli.printing import say
from napari_panoptic.cli.tasks import check_task
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import counted
from napari_panoptic.questions.engines.cohort_suspects import (
    SUSPECT_SETTINGS,
    CohortSuspects,
    cohort_suspects,
)
from napari_panoptic.questions.engines.suspects import LIKELY_SCORE, SuspectKind
from napari_panoptic.report.nuclei.suspects import (
    SUSPECTS_NAMES,
    SUSPECTS_RECORD,
    suspects_about,
    write_suspects,
)
from napari_panoptic.report.nuclei.tables import input_fingerprints
from napari_panoptic.values.settings import AmbiguousPolicy, Restoration

ABOUT = (
    "Compare what several teams agree on with the annotation, and write suspects.csv (the most "
    "suspect first) and suspects.json: objects that the annotation misses, outlines badly, assigns "
    "to another class, splits or merges. No review is needed. Suspects are not errors: teams can "
    "make the same errors. Exit status: 0 done, 1 nothing could be compared, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser, or_pair=True)
    add_output(parser)
    parser.add_argument(
        "--teams",
        metavar="A,B",
        help="names of two or more teams, separated by commas (default: all but the annotation's "
        "own colour-coded version)",
    )
    add_source(parser)
    add_restoration(parser, default=Restoration.BORDER_DILATED)
    add_choice(parser, "--ambiguous", AmbiguousPolicy, "how ambiguous areas are treated")


def run(options: argparse.Namespace) -> int:
    """List the suspect annotations of a cohort."""
    check_task(options)
    chosen = restoration_from(options)
    if options.ambiguous is not None:
        chosen["ambiguous"] = options.ambiguous
    settings = SUSPECT_SETTINGS.replaced(**chosen)
    cohort = cohort_from(options)
    names = team_names_from(cohort, options.teams)
    if len(names) < 2:
        raise SettingsError(
            f"suspects are found where two or more teams agree; found {counted(len(names), 'team')}"
        )
    source = source_from(options, cohort, names)
    with (
        tables_in(options.output, SUSPECTS_NAMES),
        progress_bar(len(cohort.regions), "region") as bar,
    ):
        found = cohort_suspects(cohort, names, settings, source, jobs=None, on_region=bar.update)
        report_findings(found.findings, SUSPECTS_RECORD if found.regions else None)
        if not found.regions:
            return report_nothing(cohort, names, "compared")
        about = suspects_about(cohort, names, settings)
        write_suspects(found, options.output, about, input_fingerprints(cohort, names))
    _print_suspects(found, options.output)
    return 0


def _print_suspects(found: CohortSuspects, folder: Path) -> None:
    counts = Counter(suspect.kind for suspect in found.suspects if suspect.score >= LIKELY_SCORE)
    print_table(("suspect", "number"), [(kind, counts[kind]) for kind in SuspectKind])
    say(
        f"number: suspects with a score of at least {LIKELY_SCORE}, of "
        f"{counted(found.objects, 'annotated object')} in {counted(found.regions, 'region')}; "
        "teams can make the same errors"
    )
    say(f"tables written to {folder}")
