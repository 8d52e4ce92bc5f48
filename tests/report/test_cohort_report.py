"""A report's figures from sums alone, and a run that was interrupted and goes on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.regions.conditions import LESSONS_NEIGHBOURS, Robustness, star
from napari_panoptic.nuclei.regions.experiment import Experiment, PatientSums
from napari_panoptic.nuclei.regions.run import AUTO, PROCESSES, RegionDone
from napari_panoptic.questions.answer import UnansweredError
from napari_panoptic.report.nuclei import cohort_report as reporting
from napari_panoptic.report.nuclei.cohort_report import (
    CohortReport,
    ReportRequest,
    Varied,
    cohort_report,
    n_kept,
    remove_kept,
)
from napari_panoptic.report.nuclei.page import report_page
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.conventions import Mistake, corrections_of
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.interrupted import stopped_at, write_large_cohort
from tests.support.one_by_one import robustness_of_results
from tests.support.reports import report_on, without_plots, without_team_in
from tests.support.slides import HELD_UP_TO_PX as SLIDES_FROM_PX
from tests.support.slides import TEAMS as SLIDE_TEAMS
from tests.support.slides import write_slide_cohort
from tests.support.small_cohort import REGIONS, TEAMS


@pytest.fixture(scope="module")
def page(small_cohort: Cohort) -> str:
    """Return the page on one team that one thread computes without interruption."""
    found = cohort_report(one_team(small_cohort), jobs=1)
    assert found is not None
    with without_plots():
        return report_page(found, [])


def request_for(cohort: Cohort, **changes: EvaluationSettings) -> ReportRequest:
    settings = changes.get("settings", EvaluationSettings())
    return ReportRequest(cohort, settings, "disentangled", TEAMS)


def one_team(cohort: Cohort) -> ReportRequest:
    """Request a report whose page is drawn in half the time."""
    return replace(request_for(cohort), team_names=TEAMS[:1])


def assert_same(found: Robustness, wanted: Robustness) -> None:
    """Compare bit by bit."""
    assert (found.teams, found.conditions) == (wanted.teams, wanted.conditions)
    for name in ("pq", "sq", "dq", "n_patients", "ranks"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), strict=True)
    assert found.changes == wanted.changes


def test_regions_above_a_limit_are_read_in_windows(tmp_path: Path) -> None:
    write_slide_cohort(tmp_path / "slides")
    cohort = open_cohort(tmp_path / "slides")
    whole = ReportRequest(cohort, EvaluationSettings(), "disentangled", SLIDE_TEAMS)
    request = replace(whole, held_up_to_px=SLIDES_FROM_PX)
    held, tiled = cohort_report(whole), cohort_report(request, store=tmp_path / "kept")
    assert held is not None
    assert tiled is not None
    for one, other in zip(held.detailed.results, tiled.detailed.results, strict=True):
        assert one.counts is not None
        assert other.counts is not None
        np.testing.assert_array_equal(one.counts.confusion, other.counts.confusion)
        np.testing.assert_allclose(one.counts.iou_sum, other.counts.iou_sum)
    more = set(tiled.evaluation.findings) - set(held.evaluation.findings)
    assert any("windows" in finding.message for finding in more)


# --- sums alone --------------------------------------------------------------------------------


def test_sums_of_patients_give_the_figures_of_all_results(small_cohort: Cohort) -> None:
    cohort = without_team_in(small_cohort, "beta", small_cohort.patients[:1])
    report = report_on(cohort)
    neighbours = {
        "two_by_two": LESSONS_NEIGHBOURS,
        "radii": None,
        "thresholds": None,
        "shifts": star(len(report.shifts.conditions)),
    }
    for name, pairs in neighbours.items():
        varied: Varied = getattr(report, name)
        work = Experiment(TEAMS, varied.conditions, with_objects=False)
        results = [work.evaluate(cohort, region) for region in cohort.regions]
        wanted = robustness_of_results(results, work, cohort.scheme.names, neighbours=pairs)
        assert np.isfinite(wanted.pq).any()
        assert_same(varied.found, wanted)


def test_patients_whose_regions_are_not_together_are_summed_all_the_same(
    small_cohort: Cohort,
) -> None:
    mixed = replace(small_cohort, regions=small_cohort.regions[::2] + small_cohort.regions[1::2])
    patients = [region.patient for region in mixed.regions]
    assert patients != sorted(patients)
    conditions = report_on(small_cohort).radii.conditions
    work = Experiment(TEAMS, conditions, with_objects=False)
    results = [work.evaluate(mixed, region) for region in mixed.regions]
    sums = PatientSums(TEAMS, conditions, mixed.scheme.names)
    for region in results:
        sums.add(region)
    assert_same(sums.robustness(), robustness_of_results(results, work, mixed.scheme.names))


# --- taken up again ----------------------------------------------------------------------------


@pytest.mark.usefixtures("no_plots")
def test_a_stopped_run_goes_on_where_it_was(
    small_cohort: Cohort, page: str, tmp_path: Path
) -> None:
    request, store = one_team(small_cohort), tmp_path / "store"
    done: list[RegionDone] = []
    stopped = cohort_report(
        request,
        jobs=1,
        store=store,
        on_result=done.append,
        is_wanted=lambda: len(done) < 2,
    )
    assert stopped is None
    kept = n_kept(store)
    assert kept == len(done) >= 2
    again: list[RegionDone] = []
    found = cohort_report(request, jobs=1, store=store, on_result=again.append)
    assert found is not None
    assert Counter(d.is_taken_over for d in again) == {
        True: kept,
        False: len(REGIONS) - kept,
    }
    assert report_page(found, []) == page
    assert n_kept(store) == len(REGIONS)
    (store / "own notes.txt").write_text("stay", encoding="utf-8")
    remove_kept(store)
    assert [path.name for path in store.iterdir()] == ["own notes.txt"]


def test_other_settings_take_nothing_over(small_cohort: Cohort, tmp_path: Path) -> None:
    assert cohort_report(request_for(small_cohort), jobs=1, store=tmp_path) is not None
    done: list[RegionDone] = []
    other = request_for(small_cohort, settings=EvaluationSettings(iou_threshold=0.6))
    assert cohort_report(other, jobs=1, store=tmp_path, on_result=done.append) is not None
    assert not any(d.is_taken_over for d in done)


def test_nothing_is_kept_where_nothing_could_be_evaluated(
    small_cohort: Cohort, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    empty = replace(small_cohort, predictions={})
    with pytest.raises(UnansweredError, match="no region has both") as caught:
        cohort_report(request_for(empty), jobs=1, store=store)
    assert {finding.team for finding in caught.value.findings} >= {*TEAMS}
    assert not store.exists()


@pytest.mark.long
@pytest.mark.usefixtures("no_plots")
def test_processes_give_the_same(small_cohort: Cohort, page: str) -> None:
    found = cohort_report(one_team(small_cohort), jobs=2, scheduler=PROCESSES)
    assert found is not None
    assert report_page(found, []) == page


# --- the command -------------------------------------------------------------------------------


N_MANY = 3
ONE_TEAM = ("--teams", TEAMS[0])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large_cohort(tmp_path_factory.mktemp("large"), N_MANY)


@pytest.fixture(scope="module")
def whole(many: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Write the report on many regions where nothing interrupts."""
    output = tmp_path_factory.mktemp("whole") / "report.html"
    with without_plots():
        assert main(["report", str(many), "-o", str(output), *ONE_TEAM]) == 0
    return output.read_bytes()


@pytest.mark.usefixtures("no_plots")
def test_a_killed_report_goes_on_and_ends_with_the_same_bytes(
    many: Path, whole: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.html"
    arguments = ["report", str(many), "-o", str(output), *ONE_TEAM]
    running = stopped_at(2, "kill -9", *arguments, "--jobs", "2", "--scheduler", "threads")
    with running as process:
        process.communicate(timeout=500)
    assert not output.exists()
    n_done = n_kept(tmp_path / ".report.html.parts")
    assert n_done in (1, 2)
    capsys.readouterr()
    assert main(arguments) == 0
    said = capsys.readouterr().err
    assert f"{n_done} of {N_MANY} regions were done by an interrupted run" in said
    assert output.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.long
@pytest.mark.usefixtures("no_plots")
def test_no_resume_begins_anew(
    small_folder: Path, small_cohort: Cohort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, store = tmp_path / "report.html", tmp_path / ".report.html.parts"
    for options, is_said in (["--no-resume"], False), ([], True):
        assert cohort_report(one_team(small_cohort), jobs=1, store=store) is not None
        assert main(["report", str(small_folder), "-o", str(output), *ONE_TEAM, *options]) == 0
        assert ("5 of 5 regions" in capsys.readouterr().err) == is_said
        assert not store.exists()


@pytest.mark.parametrize(
    ("options", "source", "corrections", "scheduler"),
    [
        ([], None, None, AUTO),
        (
            ["--source", "submission", "--scheduler", "processes"],
            Source.SUBMISSION,
            None,
            PROCESSES,
        ),
        (
            ["--protocol", "monusac-2020-as-run", "--correct", "matching,absent-class-fp"],
            None,
            {Mistake.MATCHING, Mistake.ABSENT_CLASS_FP},
            AUTO,
        ),
    ],
)
def test_options_reach_the_work(
    small_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    source: Source | None,
    corrections: set[Mistake] | None,
    scheduler: str,
) -> None:
    asked: list[tuple[ReportRequest, str]] = []

    def noted(request: ReportRequest, *, scheduler: str, **options: Any) -> CohortReport | None:
        asked.append((request, scheduler))
        return cohort_report(request, scheduler=scheduler, **options | {"is_wanted": lambda: False})

    monkeypatch.setattr(reporting, "cohort_report", noted)
    arguments = ["report", str(small_folder), "-o", str(tmp_path / "report.html"), "--jobs", "1"]
    assert main([*arguments, *options]) == 1
    ((request, where),) = asked
    assert (request.source, where) == (source, scheduler)
    assert corrections_of(request.settings.convention) == corrections


def test_ctrl_c_keeps_what_is_done(
    small_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stopped(request: ReportRequest, *, on_result: Any, **options: Any) -> CohortReport | None:
        def interrupt(done: RegionDone) -> None:
            on_result(done)
            raise KeyboardInterrupt

        return cohort_report(request, on_result=interrupt, **options)

    monkeypatch.setattr(reporting, "cohort_report", stopped)
    output = tmp_path / "report.html"
    assert main(["report", str(small_folder), "-o", str(output), "--jobs", "1"]) == 130
    assert "run the same command again to resume" in capsys.readouterr().err
    assert not output.exists()
    assert n_kept(tmp_path / ".report.html.parts") == 1


def test_predictions_are_read_in_the_form_that_is_asked_for(small_cohort: Cohort) -> None:
    pq = {}
    for form in Source.COLOUR_CODED, Source.SUBMISSION:
        found = cohort_report(replace(request_for(small_cohort), source=form), jobs=1)
        assert found is not None
        pq[form] = found.evaluation.score("alpha"), found.radii.found.pq[0, 4]
    assert all(a != b for a, b in zip(*pq.values(), strict=True))
