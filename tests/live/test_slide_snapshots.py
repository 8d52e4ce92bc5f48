from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot, load_in_steps, load_region
from napari_panoptic.live.summary import evaluate_cohort_summary
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings, protocol
from napari_panoptic.values.vocabulary import Side
from tests.support.slides import HELD_UP_TO_PX, SHAPES, SLIDE, SMALL, TEAMS, write_slide_cohort

SETTINGS = EvaluationSettings()
Pairs = dict[tuple[str, str], LabelPair]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Pairs]:
    root = tmp_path_factory.mktemp("slides")
    return root, write_slide_cohort(root)


@pytest.fixture(scope="module")
def slide_cohort(written: tuple[Path, Pairs]) -> Cohort:
    return open_cohort(written[0])


def steps(
    cohort: Cohort, region: str = SLIDE, settings: EvaluationSettings = SETTINGS, **options: object
) -> list[RegionSnapshot]:
    return list(
        load_in_steps(cohort, region, settings, held_up_to_px=HELD_UP_TO_PX, **options)  # type: ignore[arg-type]
    )


def test_the_picture_comes_first_then_the_team_that_is_looked_at(
    slide_cohort: Cohort, written: tuple[Path, Pairs]
) -> None:
    told: list[tuple[float, str]] = []
    start, whole = steps(
        slide_cohort, first=TEAMS[1], progress=lambda share, saying: told.append((share, saying))
    )
    assert start.is_slide
    assert start.image is not None
    assert (start.shape, start.pending) == (SHAPES[SLIDE], frozenset({TEAMS[1]}))
    assert not start.results
    assert list(whole.results) == [TEAMS[1]]
    assert whole.pending == frozenset()
    assert whole.image is start.image
    assert (whole.reference, whole.predictions, whole.evaluations) == (None, {}, {})
    in_memory = evaluate(written[1][SLIDE, TEAMS[1]], SETTINGS)
    result = whole.result(TEAMS[1])
    assert result is not None
    pd.testing.assert_frame_equal(result.objects, in_memory.objects)
    assert result.metrics == in_memory.metrics
    assert whole.result(TEAMS[0]) is None
    assert whole.result(None) is None
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_small_regions_are_held_as_ever(slide_cohort: Cohort) -> None:
    expected = load_region(slide_cohort, SMALL, SETTINGS)
    found = steps(slide_cohort, SMALL, first=TEAMS[0])[-1]
    assert not found.is_slide
    assert found.evaluations.keys() == expected.evaluations.keys()
    for team, evaluation in found.evaluations.items():
        assert evaluation.metrics == expected.evaluations[team].metrics


def test_other_settings_and_teams_read_nothing_again(
    slide_cohort: Cohort, written: tuple[Path, Pairs]
) -> None:
    *_, first = steps(slide_cohort, first=TEAMS[0])
    other = SETTINGS.replaced(iou_threshold=0.7)
    (second,) = steps(slide_cohort, settings=other, first=TEAMS[0], previous=first)
    assert second.image is first.image
    assert second.results[TEAMS[0]].table is first.results[TEAMS[0]].table
    in_memory = evaluate(written[1][SLIDE, TEAMS[0]], other)
    pd.testing.assert_frame_equal(second.results[TEAMS[0]].objects, in_memory.objects)
    (third,) = steps(slide_cohort, settings=other, first=TEAMS[1], previous=second)
    assert set(third.results) == set(TEAMS)
    assert third.results[TEAMS[0]] is second.results[TEAMS[0]]
    reference = second.results[TEAMS[0]].pair.reference
    assert third.results[TEAMS[1]].pair.reference is reference
    (again,) = steps(slide_cohort, settings=other, first=TEAMS[1], previous=third)
    assert again.results == third.results


def test_one_that_was_stopped_can_be_taken_up_again(slide_cohort: Cohort) -> None:
    start, stopped = steps(slide_cohort, first=TEAMS[0], is_wanted=lambda: False)
    assert start.pending == {TEAMS[0]}
    assert not stopped.pending
    assert not stopped.results
    assert "was stopped" in stopped.findings[-1].message
    (whole,) = steps(slide_cohort, first=TEAMS[0], previous=stopped)
    assert list(whole.results) == [TEAMS[0]]
    assert not any("was stopped" in finding.message for finding in whole.findings)


def test_what_is_missing_or_cannot_be_done_is_told(slide_cohort: Cohort) -> None:
    forms = {key: value for key, value in slide_cohort.predictions.items() if key[0] != TEAMS[0]}
    poorer = dataclasses.replace(slide_cohort, predictions=forms)
    whole = steps(poorer, first=TEAMS[0])[-1]
    assert not whole.results
    assert any("has no prediction" in finding.message for finding in whole.findings)
    (better,) = steps(poorer, first=TEAMS[1], previous=whole)
    assert list(better.results) == [TEAMS[1]]
    challenge = protocol("monusac-2020-as-run")
    whole = steps(slide_cohort, settings=challenge, first=TEAMS[0])[-1]
    assert any("the challenge's scoring is not possible" in f.message for f in whole.findings)


def test_a_file_that_changed_is_told_and_opened_again(tmp_path: Path) -> None:
    write_slide_cohort(tmp_path)
    cohort = open_cohort(tmp_path)
    *_, first = steps(cohort, first=TEAMS[0])
    path, other = (
        next(iter(cohort.predictions[team, SLIDE].values())).all_paths[0] for team in TEAMS[:2]
    )
    shutil.copyfile(other, tmp_path / "other")
    (tmp_path / "other").replace(path)
    settings = SETTINGS.replaced(near_iou=0.3)
    (second,) = steps(cohort, settings=settings, first=TEAMS[0], previous=first)
    assert not second.results
    assert [f.path for f in second.findings if f.kind is FindingKind.CHANGED] == [path]
    (third,) = steps(cohort, settings=settings, first=TEAMS[0], previous=second)
    assert third.results[TEAMS[0]].counts.tp.sum() != first.results[TEAMS[0]].counts.tp.sum()
    assert not any(f.kind is FindingKind.CHANGED for f in third.findings)


def test_summaries_leave_slides_out(slide_cohort: Cohort) -> None:
    lines = list(
        evaluate_cohort_summary(
            slide_cohort, Reading(SETTINGS, None, slide_cohort.team_names, HELD_UP_TO_PX)
        )
    )
    known = {line.region: line.counts is not None for line in lines}
    assert known == {SLIDE: False, SMALL: True}
    assert all("too large" in line.findings[0].message for line in lines if line.region == SLIDE)


def test_a_session_shows_slides(slide_cohort: Cohort) -> None:
    session = Session(slide_cohort)
    request = session.request(region_name=SLIDE)
    start, whole = steps(slide_cohort, first=session.team)
    session.deliver(request, start)
    assert session.shown is None
    session.deliver(request, whole)
    assert session.evaluation is None
    shown = session.shown
    assert shown is whole.results[TEAMS[0]]
    session.select_row(Side.REFERENCE, 5)
    assert session.selection is not None
    chosen = session.selection.id
    assert chosen == shown.outcomes.reference.ids[5]
    other = SETTINGS.replaced(iou_threshold=0.6)
    request = session.request(settings=other)
    (again,) = steps(slide_cohort, settings=other, first=session.team, previous=whole)
    session.deliver(request, again)
    assert session.selection is not None
    assert session.selection.id == chosen
    session.set_team(TEAMS[1])
    assert session.shown is None
    assert session.selection is None
    assert np.isfinite(shown.metrics.pq)
