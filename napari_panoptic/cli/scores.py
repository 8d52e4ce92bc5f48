"""The command ``scores``."""

from __future__ import annotations

import argparse

from napari_panoptic.cli.console import report_findings, share_bar, tables_in, why_nothing
from napari_panoptic.cli.inputs import one_team_from
from napari_panoptic.cli.options import add_cohort, add_held, add_output, add_rules_of_objects
from napari_panoptic.cli.printing import say, warn
from napari_panoptic.questions.engines.cohort_scores import cohort_scores
from napari_panoptic.report.nuclei.scores import (
    NO_SCORES_ADVICE,
    SCORES_NAMES,
    counts_sentence,
    failure_sentence,
    score_sentences,
    scores_record,
    scores_tables,
)
from napari_panoptic.report.nuclei.tables import input_fingerprints

ABOUT = (
    "Evaluate the scores (confidences) of a team's predictions: average precision per "
    "class and IoU, calibration, PQ and F1 over thresholds, the best threshold with its figure for "
    "patients that it was not chosen on, and the wrong predictions, highest score first. Exit "
    "status: 0 done, 1 nothing could be evaluated, or no prediction has a score, 2 wrong arguments."
)

_SUREST = 5
"""Number of wrong predictions that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    parser.add_argument(
        "--team", required=True, metavar="T", help="team whose predictions are evaluated"
    )
    add_output(parser)
    add_rules_of_objects(parser)
    add_held(parser)


def run(options: argparse.Namespace) -> int:
    """Write what the scores of a team are worth."""
    cohort, team, settings, source = one_team_from(options)
    with tables_in(options.output, SCORES_NAMES) as place, share_bar() as progress:
        found = cohort_scores(
            cohort,
            (team,),
            settings,
            source=source,
            held_up_to_px=options.held_up_to,
            jobs=None,
            progress=progress,
        )[team]
        findings = tuple(dict.fromkeys((*cohort.findings, *found.findings)))
        if found.has_scores:
            place.write(
                scores_tables(found, settings.iou_threshold),
                scores_record(found, settings, options.protocol),
                findings,
                input_fingerprints(cohort, (team,)),
            )
    if not found.has_scores:
        report_findings(findings, None)
        reason = NO_SCORES_ADVICE if found.predictions else why_nothing(cohort, (team,))
        warn(f"{counts_sentence(found)}: {reason}")
        return 1
    for sentence in score_sentences(found):
        say(sentence)
    say("Wrong predictions, highest score first:")
    for row in found.failures.head(_SUREST).to_dict("records"):
        say(failure_sentence({str(key): value for key, value in row.items()}))
    say(f"tables written to {options.output}")
    return 0
