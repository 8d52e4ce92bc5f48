"""One HTML file that reports everything about a cohort of nuclei."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.io.files.fingerprints import input_fingerprints
from napari_panoptic.questions.answer import Answer
from napari_panoptic.report.answers import answer_parts, answers_section, shown_objects
from napari_panoptic.report.columns import table, team_column
from napari_panoptic.report.nuclei.cohort_report import CohortReport
from napari_panoptic.report.nuclei.failures import (
    causes_section,
    failure_figure,
    gallery_section,
    links_of,
    sizes_section,
)
from napari_panoptic.report.nuclei.gallery import (
    Failure,
    Picture,
    named_failures,
    pictures,
    worst_failures,
)
from napari_panoptic.report.nuclei.ranking import (
    groups_section,
    robustness_section,
    statistics_section,
)
from napari_panoptic.report.nuclei.region import region_section
from napari_panoptic.report.nuclei.review import ReviewedPlan, review_section
from napari_panoptic.report.nuclei.teams import (
    all_teams,
    classes_section,
    confusion_section,
    overlaps_section,
    patients_section,
    teams_section,
)
from napari_panoptic.report.page import Section, team_list, write_page
from napari_panoptic.report.sections import (
    DATA_SLUG,
    findings_section,
    fingerprints,
    lead,
    methods_section,
    report_document,
    settings_section,
)
from napari_panoptic.statistics.bootstrap import LEVEL
from napari_panoptic.tables.columns import bounds, number, whole
from napari_panoptic.tables.figures import counted, two_places
from napari_panoptic.tables.markup import Child, bullets, element, fragment, note
from napari_panoptic.tables.ranks import friedman_sentence, rank_of
from napari_panoptic.values.conventions import Mistake, corrections_of
from napari_panoptic.values.settings import (
    PROTOCOLS,
    AmbiguousPolicy,
    EvaluationSettings,
    Matching,
    Outlines,
    Overlaps,
    Restoration,
)

_AMBIGUOUS: Mapping[AmbiguousPolicy, str] = {
    AmbiguousPolicy.CLIP: "Pixels in areas that the annotation marks as ambiguous were removed "
    "from annotation and predictions; objects without remaining pixels were ignored.",
    AmbiguousPolicy.CLIP_PREDICTIONS: "Pixels in areas that the annotation marks as ambiguous "
    "were removed from the predictions; predictions without remaining pixels were ignored.",
    AmbiguousPolicy.MAJORITY: "Pixels in areas that the annotation marks as ambiguous did not "
    "count in any intersection or union; unmatched objects with more than half of their area in "
    "one were ignored.",
    AmbiguousPolicy.KEEP: "Areas that the annotation marks as ambiguous were treated like any "
    "other area.",
}
_OUTLINES: Mapping[Outlines, str] = {
    Outlines.AS_PUBLISHED: "the whole predicted object and the part of the annotated object that "
    "the ambiguous policy leaves",
    Outlines.BOTH_CLIPPED: "the parts of both objects that the ambiguous policy leaves",
    Outlines.BOTH_WHOLE: "the whole objects",
}
_CORRECTIONS: Mapping[Mistake, str] = {
    Mistake.MATCHING: "unmatched predictions were counted as such, whatever their ids",
    Mistake.ABSENT_CLASS_FP: "false positives of classes without an annotated nucleus in the "
    "region were counted",
    Mistake.PER_PATIENT: "counts were summed over the regions of a patient before PQ was computed",
}


def write_report(
    report: CohortReport,
    path: Path,
    *,
    date: str = "",
    review: ReviewedPlan | None = None,
    versions: Answer | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Path | None:
    """Draw the pictures, and write the report as one HTML file, completely or not at all.

    Parameters
    ----------
    report
        The results.
    path
        The file to write; an existing one is replaced.
    date
        The date of the report. Without one, the same files give the same report.
    review
        A reviewed plan, which has a section of its own.
    versions
        The answer to `Compare`, for a section on an old and a new version.
    is_wanted
        Called before each region's pictures and before the plots. If it returns False, nothing
        is written and the result is None.

    Raises
    ------
    PanopticError
        If the file cannot be written.
    """
    request = report.request
    found = list(
        pictures(
            request.cohort,
            pictured_failures(report),
            request.detailed,
            request.source,
            held_up_to_px=request.held_up_to_px,
            is_wanted=is_wanted,
        )
    )
    if not is_wanted():  # the plots take seconds
        return None
    content = report_page(report, found, date=date, review=review, versions=versions)
    return write_page(path, content) if is_wanted() else None


def pictured_failures(report: CohortReport) -> list[Failure]:
    """Return the objects that the report has pictures of: the worst, and those of answers."""
    results = report.detailed.results
    failures = {own.name: own for own in worst_failures(results)}
    answered = {
        name for _, answer in report.answers for _, own in shown_objects(answer) for name in own
    }
    further = named_failures(results, answered - failures.keys())
    return [*failures.values(), *further]


def report_page(
    report: CohortReport,
    pictures: Sequence[Picture],
    *,
    date: str = "",
    review: ReviewedPlan | None = None,
    versions: Answer | None = None,
    only: Collection[str] | None = None,
) -> str:
    """Return the page of a report, with pictures of the worst failures; see `write_report`.

    ``only`` names the sections to include by their slugs; None includes all.
    """
    cohort = report.cohort
    first = lead(
        f"{counted(len(cohort.regions), 'region')} of "
        f"{counted(len(cohort.patients), 'patient')}, "
        f"{counted(len(report.evaluation.team_names), 'team')}, protocol ",
        element("b", report.request.protocol),
        date=date,
        findings=report.findings,
        consequence="They are excluded from the figures.",
    )
    compared = [] if versions is None else answer_parts(versions, "versions", all_teams(report))
    reviewed = [] if review is None else review_section(review, all_teams(report))
    groups = groups_section(report)
    about = report.about_region
    region = [] if about is None else region_section(about, all_teams(report), links_of(report))
    by_name = {picture.failure.name: picture for picture in pictures}
    worst = {failure.name for failure in worst_failures(report.detailed.results)}
    of_gallery = [picture for picture in pictures if picture.failure.name in worst]
    contents: list[tuple[str, str, Callable[[CohortReport], Sequence[Child]]]] = [
        ("summary", "Summary", _summary),
        ("settings", "Settings and provenance", _settings),
        (DATA_SLUG, "Data quality", _data),
        ("teams", "Teams", teams_section),
        ("patients", "Patients", patients_section),
        ("classes", "Classes", classes_section),
        ("confusion", "Confusion of classes", confusion_section),
        ("patient-groups", "Groups of patients", lambda _: groups),
        ("statistics", "Statistics", statistics_section),
        ("versions", "Old and new version", lambda _: compared),
        ("robustness", "Robustness", robustness_section),
        ("overlaps", "Objects that share pixels", overlaps_section),
        ("size", "By size of nucleus", sizes_section),
        ("cause", "By cause of failure", causes_section),
        *_answered(report, by_name),
        ("region", "The region with the lowest PQ", lambda _: region),
        ("gallery", "Worst failures", partial(gallery_section, pictures=of_gallery)),
        ("review", "Planned review", lambda _: reviewed),
        ("methods", "Methods, for a paper", _methods),
    ]
    optional = {
        "versions": compared,
        "review": reviewed,
        "patient-groups": groups,
        "region": region,
    }
    sections = [
        Section(slug, title, content(report))
        for slug, title, content in contents
        if (only is None or slug in only) and (slug not in optional or optional[slug])
    ]
    return report_document(f"Segmentation report: {cohort.name}", first, sections)


def _answered(
    report: CohortReport, pictures: Mapping[FailureName, Picture]
) -> Iterator[tuple[str, str, Callable[[CohortReport], Sequence[Child]]]]:
    """Yield the sections on questions over the cohort: one for all answers of a kind."""
    links = links_of(report)

    def drawn(names: Sequence[FailureName]) -> list[Child]:
        figures = [failure_figure(pictures[name], links) for name in names if name in pictures]
        return [element("div", *figures, class_="gallery")] if figures else []

    for kind, answers in groupby(report.answers, key=lambda asked: type(asked[0])):
        parts = answers_section(list(answers), all_teams(report), drawn, report.cohort)
        yield kind.name(), kind.heading or kind.title, lambda _, parts=parts: parts  # type: ignore[misc]


def _data(report: CohortReport) -> Sequence[Child]:
    always = (FindingKind.VANISHED, FindingKind.OVERLAPPING, FindingKind.MISSING)
    return findings_section(report.findings, always)


def _methods(report: CohortReport) -> Sequence[Child]:
    return methods_section("methods_nuclei.html.j2", **methods_values(report.request.settings))


def methods_values(settings: EvaluationSettings) -> dict[str, Any]:
    """Return the variables of the template ``methods_nuclei.html.j2``."""
    corrected = corrections_of(settings.convention) or frozenset()
    return {
        "settings": settings,
        "is_dilated": settings.restoration is Restoration.BORDER_DILATED,
        "is_centroid": settings.matching is Matching.CENTROID,
        "is_kept": settings.overlaps is Overlaps.KEEP,
        "is_challenge": settings.takes_class_masks,
        "ambiguous": _AMBIGUOUS[settings.ambiguous],
        "share": settings.ambiguous_share,
        "outlines": _OUTLINES[settings.outlines],
        "corrections": [text for c, text in _CORRECTIONS.items() if c in corrected],
    }


def _summary(report: CohortReport) -> list[Child]:
    evaluation, statistics = report.evaluation, report.statistics.get("pq")
    scores = {team: evaluation.score(team) for team in evaluation.team_names}
    regions = Counter(result.team for result in evaluation.evaluated)
    records = []
    for name in sorted(scores, key=lambda t: (math.isnan(scores[t]), -scores[t])):
        spread = evaluation.summaries[name].averaged["pq"]
        record = {
            "team": name,
            "score": scores[name],
            "pq_mean": spread.mean,
            "low": math.nan,
            "high": math.nan,
            "mean_rank": math.nan,
            "rank": math.nan,
            "regions": regions[name],
            "patients": spread.n,
        }
        if statistics is not None and name in statistics.means:
            mean = statistics.means[name]
            record |= {"low": mean.low, "high": mean.high}
            record |= rank_of(statistics.comparison, name)
        records.append(record)
    columns = [
        team_column(all_teams(report)),
        number("score"),
        number("pq_mean", "PQ, mean over patients"),
        bounds("low", "high", f"{LEVEL:.0%} interval"),
        number("mean_rank", "mean rank", two_places),
        whole("rank", "rank by Nemenyi"),
        whole("regions"),
        whole("patients"),
    ]
    caption = (
        "The score is the protocol's one number. The rank is 1 + the number of teams that are "
        "significantly better."
    )
    shown = table("summary", caption, columns, records)
    return [shown, bullets(_conclusions(report))]


def _conclusions(report: CohortReport) -> list[Child]:
    """Return the main results as sentences."""
    statistics = report.statistics.get("pq")
    sentences: list[Child] = [
        "Teams are not compared: at least two competing teams are needed."
        if statistics is None
        else friedman_sentence(statistics.comparison, "PQ", "patient")
    ]
    two_by_two, answer = report.two_by_two.found, report.conventions
    if len(two_by_two.teams) < 2:
        return sentences
    by_convention = [] if answer is None else [answer.headline, *answer.notes]
    changed = {change.team for change in two_by_two.changes}
    unsteady = [name for name in two_by_two.teams if name in changed]
    rules = "both restorations and both matching rules"
    return [
        *sentences,
        *by_convention,
        _dependence(report, unsteady, "restoration or matching rule", rules),
    ]


def _dependence(report: CohortReport, names: Sequence[str], on: str, every: str) -> Child:
    if not names:
        return f"Every team has the same rank under {every}."
    return fragment(f"The rank depends on {on} for ", team_list(names, all_teams(report)), ".")


def _settings(report: CohortReport) -> list[Child]:
    """List settings, versions and input files."""
    request = report.request
    base = PROTOCOLS.get(request.protocol)
    changed = {} if base is None else request.settings.differences(base)
    items: dict[str, Child] = {
        "protocol": request.protocol,
        "changed from it": english_list(list(changed)) if changed else "nothing",
        "format of the predictions": "the default of each team"
        if request.source is None
        else str(request.source),
        "groups of patients": request.group_column or "none",
    }
    items |= {key.replace("_", " "): _value(v) for key, v in request.settings.as_record().items()}
    files = fingerprints(input_fingerprints(report.cohort, request.team_names))
    if not request.settings.takes_class_masks:
        return settings_section(items, files)
    scoring = note(
        "Score, team, patient and class figures follow the challenge's scoring. Robustness, "
        "sizes, causes and pictures use the same settings with disentangled scoring, "
        "which determines the outcome of each object."
    )
    return settings_section(items, scoring, files)


def _value(value: object) -> str:
    if isinstance(value, list):
        return english_list(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
