"""The command ``correct``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from napari_panoptic.cli.console import report_findings, share_bar
from napari_panoptic.cli.inputs import UNCERTAIN, nuclei_from, reading_from
from napari_panoptic.cli.options import add_cohort, add_matching, add_output, add_reading
from napari_panoptic.cli.parser import add_choice
from napari_panoptic.cli.printing import say, warn
from napari_panoptic.common.errors import SettingsError, checked_name
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.formats.format import Format
from napari_panoptic.io.formats.own_format import why_not_writable
from napari_panoptic.io.formats.registry import form_of
from napari_panoptic.live.mends import Claim
from napari_panoptic.report.writing import provenance, write_set
from napari_panoptic.review.corrected_files import (
    CORRECTIONS,
    CORRECTIONS_RECORD,
    CorrectionsWriter,
    check_folder,
    complete_folder,
    places_to_draw,
    written_files,
)
from napari_panoptic.review.corrections import (
    CorrectedRegion,
    CorrectionRequest,
    NotApplied,
    conflict_record,
    corrected_regions,
    not_applied_record,
    pixels_of_others,
    unknown_regions,
)
from napari_panoptic.review.plan.object_verdicts import object_verdicts
from napari_panoptic.review.plan.store import PlanAnswers
from napari_panoptic.review.store import read_review
from napari_panoptic.review.verdicts import ReviewRecord
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.settings import EvaluationSettings

OWN = "own"
FORMS = ("imagescope", "geojson", "labels")
_SHOWN = 20

ABOUT = (
    "Apply the verdicts of a review to the annotation, and write the regions that change, in the "
    "cohort's own format at its relative paths or in another one, with corrections.csv (what was "
    "changed) and corrections.json (what was not, and why). The cohort's own files stay as they "
    "are. See docs/tasks/corrections.md. Exit status: 0 done, 1 nothing to correct or nothing "
    "could be read, 2 wrong arguments."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser)
    parser.add_argument(
        "--review", type=Path, required=True, metavar="FILE", help="the review file (SQLite)"
    )
    parser.add_argument(
        "--team",
        metavar="T",
        help="the team whose predictions the verdicts are about; needed if they are about several",
    )
    parser.add_argument(
        "--to",
        choices=(OWN, *FORMS),
        default=OWN,
        help="format to write: that of the cohort, at its relative paths, or another one with a "
        "cohort.toml (default: %(default)s)",
    )
    add_choice(
        parser,
        "--claim",
        Claim,
        "whether pixels of an accepted outline that other annotated objects have stay theirs, or "
        "are taken",
    )
    # The former name, which is that of another option elsewhere.
    parser.add_argument(
        "--overlaps", dest="claim", choices=[*Claim], default=None, help=argparse.SUPPRESS
    )
    add_output(parser, meaning="a new or empty folder, or one that this command wrote")
    add_reading(parser)
    add_matching(parser)


def run(options: argparse.Namespace) -> int:
    """Write the annotation with verdicts applied."""
    cohort = nuclei_from(options)
    check_folder(options.output)
    review = read_review(options.review)
    records, planned = review.verdicts, review.plan
    report_findings(review.findings, CORRECTIONS_RECORD)
    team = _team(options, cohort, records, planned)
    if team is None:
        warn(f"nothing to correct: {options.review} has no verdicts")
        return 1
    work = _request(options, cohort, records, team, planned)
    if work.form is None:
        _check_own_format(work)
    found: list[CorrectedRegion] = []
    unknown = unknown_regions(work)
    with complete_folder(options.output) as folder:
        written = CorrectionsWriter(cohort, work.settings, work.source, work.form, folder)
        with share_bar() as progress:
            for number, each in enumerate(corrected_regions(work), 1):
                written.add(each.annotation)
                found.append(_without_pixels(each))
                progress.tell(number / len(work.region_names), each.region.name)
        not_applied = [*unknown, *(item for each in found for item in each.not_applied)]
        _report(found, not_applied)
        if not written.rows:
            _report_nothing(found, not_applied)
            return 1
        written.describe()
        record = _record(options, work, found, written, not_applied)
        tables = {CORRECTIONS.file: CORRECTIONS.frame(written.rows)}
        content = {**record, "written": written_files(folder)}
        write_set(folder, tables, (CORRECTIONS_RECORD, content))
    _say(options.output, written)
    return 0


def _team(
    options: argparse.Namespace,
    cohort: Cohort,
    records: Sequence[ReviewRecord],
    planned: PlanAnswers | None,
) -> str | None:
    """Return the team that the verdicts are about; None without verdicts."""
    if options.team is not None:
        return checked_name("--team", options.team, cohort.checked_team)
    teams = sorted({record.team for record in records} | (planned.teams if planned else set()))
    if len(teams) > 1:
        raise SettingsError(
            f"--team: the verdicts are about predictions of {english_list(teams, limit=99)}; name "
            f"one of them"
        )
    return cohort.checked_team(teams[0]) if teams else None


def _request(
    options: argparse.Namespace,
    cohort: Cohort,
    records: Sequence[ReviewRecord],
    team: str,
    planned: PlanAnswers | None,
) -> CorrectionRequest:
    reading = reading_from(options, cohort, (team,))
    given = {
        name: value
        for name in ("matching", "iou_threshold", *UNCERTAIN)
        if (value := getattr(options, name)) is not None
    }
    settings = reading.settings.replaced(**given, distances=False)
    claim = Claim(options.claim or Claim.KEEP)
    of_plan = () if planned is None else object_verdicts(planned)
    return CorrectionRequest(
        cohort, records, team, settings, reading.source, claim, _form(options.to), of_plan
    )


def _form(name: str) -> Format | None:
    return None if name == OWN else form_of(name)


def _check_own_format(work: CorrectionRequest) -> None:
    """Check that the annotation can be written in its own format."""
    names = work.region_names
    for region in work.cohort.regions:
        if region.name in names and region.reference is not None:
            reason = why_not_writable(region.reference, work.cohort.root)
            if reason:
                raise SettingsError(
                    f"--to: the annotation of region {region.name} cannot be written in its own "
                    f"format, since {reason}; give --to {', '.join(FORMS)}"
                )


def _without_pixels(found: CorrectedRegion) -> CorrectedRegion:
    """Return what the record needs of a region that was written."""
    return replace(found, before=None, after=None)


def _report(found: Sequence[CorrectedRegion], not_applied: Sequence[NotApplied]) -> None:
    report_findings(_findings(found), CORRECTIONS_RECORD)
    for each, conflict in _conflicts(found)[:_SHOWN]:
        record = conflict_record(each, conflict)
        given = english_list([f"{name}: {verdict}" for name, verdict in record["verdicts"].items()])
        warn(f"reviewers differ on {record['side']} {record['id']} of {record['region']}: {given}")
    for item in not_applied[:_SHOWN]:
        of = item.record
        place = f"{of.side} {of.object_id} of {of.region}"
        warn(f"not applied: {of.verdict} on {place}: {item.reason}")
    more = max(0, len(_conflicts(found)) - _SHOWN) + max(0, len(not_applied) - _SHOWN)
    if more:
        warn(f"{more} more are not shown")


def _findings(found: Sequence[CorrectedRegion]) -> list[Finding]:
    return [finding for each in found for finding in each.findings]


def _conflicts(found: Sequence[CorrectedRegion]) -> list[tuple[CorrectedRegion, Any]]:
    return [(each, conflict) for each in found for conflict in each.decided.conflicts]


def _report_nothing(found: Sequence[CorrectedRegion], not_applied: Sequence[NotApplied]) -> None:
    n_decided = sum(len(each.decided.decisions) for each in found)
    warn(
        f"nothing to correct: of {n_decided} decided objects none changes the annotation, "
        f"{len(_conflicts(found))} are conflicts, and {len(not_applied)} verdicts cannot be "
        f"applied; nothing was written"
    )


def _record(
    options: argparse.Namespace,
    work: CorrectionRequest,
    found: Sequence[CorrectedRegion],
    written: CorrectionsWriter,
    not_applied: Sequence[NotApplied],
) -> dict[str, Any]:
    others = {record.team for record in work.records} | {own.team for own in work.planned}
    return {
        "settings": {
            "team": work.team,
            "to": options.to,
            "overlaps": str(work.claim),
            "source": work.source,
            "evaluation": _settings(work.settings),
        },
        "counts": {
            "verdicts": len(work.given),
            "corrections": len(written.rows),
            "files": len(written.files),
            "differing_px": sum(each["differing_px"] for each in written.differences),
        },
        "conflicts": [conflict_record(each, conflict) for each, conflict in _conflicts(found)],
        "not_applied": [not_applied_record(item) for item in not_applied],
        "to_draw": [
            place for each in found for place in places_to_draw(each.region, each.corrections)
        ],
        "shared_pixels": [item for each in found for item in pixels_of_others(each)],
        "files": written.differences,
        "other_teams": sorted(others - {work.team}),
        **provenance(_findings(found), _fingerprints(options, work, found)),
    }


def _fingerprints(
    options: argparse.Namespace,
    work: CorrectionRequest,
    found: Sequence[CorrectedRegion],
) -> dict[str, str]:
    """Return the fingerprints of all files that were read."""
    cohort, paths = work.cohort, [options.review]
    for region in [each.region for each in found]:
        paths += [] if region.reference is None else region.reference.all_paths
        for files in cohort.predictions.get((work.team, region.name), {}).values():
            paths += files.all_paths
    return file_fingerprints(paths, cohort.root)


def _settings(settings: EvaluationSettings) -> dict[str, Any]:
    names = ("matching", "iou_threshold", *UNCERTAIN, "restoration", "radius")
    return {name: getattr(settings, name) for name in names}


def _say(output: Path, written: CorrectionsWriter) -> None:
    differing = [each for each in written.differences if each["differing_px"]]
    for each in differing[:_SHOWN]:
        warn(
            f"{each['file']} cannot hold the corrected objects exactly: {each['differing_px']} px "
            f"differ when it is read again"
        )
    rows, regions = len(written.rows), len(written.differences)
    say(f"{counted(rows, 'correction')} in {counted(regions, 'region')} written to {output}")
