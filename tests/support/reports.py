"""Cohorts to report on: the files of the small cohort under other names and in other numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from napari_panoptic.report.nuclei.cohort_report import (
    CohortReport,
    ReportRequest,
    cohort_report,
)
from napari_panoptic.report.plots import embed
from napari_panoptic.values.cohort import Cohort, Team
from napari_panoptic.values.settings import EvaluationSettings

HOSTILE_TEAMS = (
    "<img src=x onerror=alert(1)>",
    "\"quoted\" & 'co' $x_1$",
    "\N{RIGHT-TO-LEFT OVERRIDE}evil \N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}",
    "</script><!--\u2028*/}</style><svg/onload=hacked=1> bell\x07\x1b[31m\x00\udcff",
)
HOSTILE_PATIENTS = ("</td><script>hacked=1</script>", "=1+1", "\N{HEBREW LETTER ALEF}" * 60)
HOSTILE_REGION = 'r" onload="hacked=1" <b>\n'


@contextmanager
def without_plots() -> Iterator[None]:
    """Leave the plots of reports empty, which take most of the time: for tests of the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embed, "svg_text", lambda _plot, **_options: "<svg></svg>")
        yield


def report_on(
    cohort: Cohort,
    *,
    settings: EvaluationSettings | None = None,
    protocol: str = "disentangled",
) -> CohortReport:
    names = tuple(team.name for team in cohort.competing_teams)
    request = ReportRequest(cohort, settings or EvaluationSettings(), protocol, names)
    found = cohort_report(request, jobs=1)
    assert found is not None
    return found


def with_teams(cohort: Cohort, files_of: Mapping[str, str]) -> Cohort:
    """Give a cohort other teams: name -> whose files they hand in."""
    predictions = {
        (team, region.name): cohort.predictions[origin, region.name]
        for team, origin in files_of.items()
        for region in cohort.regions
    }
    teams = tuple(Team(name) for name in files_of)
    return replace(cohort, teams=teams, predictions=predictions, findings=())


def of_patients(cohort: Cohort, patients: Sequence[str]) -> Cohort:
    regions = tuple(region for region in cohort.regions if region.patient in patients)
    return replace(cohort, regions=regions)


def without_team_in(cohort: Cohort, team: str, patients: Sequence[str]) -> Cohort:
    """Take a team's files of some patients away."""
    gone = {(team, region.name) for region in cohort.regions if region.patient in patients}
    kept = {key: forms for key, forms in cohort.predictions.items() if key not in gone}
    return replace(cohort, predictions=kept)


def hostile(cohort: Cohort) -> Cohort:
    """Give everything that has a name one that tries to break out of the page."""
    named = with_teams(cohort, dict(zip(HOSTILE_TEAMS, ["alpha", "beta"] * 2, strict=True)))
    patients = dict(zip(named.patients, HOSTILE_PATIENTS, strict=True))
    names = {region.name: f"{HOSTILE_REGION}{n}" for n, region in enumerate(named.regions)}
    regions = tuple(
        replace(region, name=names[region.name], patient=patients[region.patient])
        for region in named.regions
    )
    predictions = {(team, names[name]): forms for (team, name), forms in named.predictions.items()}
    return replace(named, name="<h1>cohort", regions=regions, predictions=predictions)
