"""The live state: numbered requests, selections that survive, and figures as if from scratch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.errors import CohortError, FindingKind, PanopticError
from napari_panoptic.evaluation.evaluate import evaluate
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.metrics import unit_metrics
from napari_panoptic.evaluation.settings import EvaluationSettings
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.io.cohort import open_cohort
from napari_panoptic.pipeline import RegionSummary
from napari_panoptic.regions import Cohort, Source
from napari_panoptic.session import RegionSnapshot, Request, Session, load_region
from tests.small_cohort import ANNOTATIONS, REGIONS, TEAMS, mask_path, write_cohort

NAMES = [region.name for region in REGIONS]
DEFAULT = EvaluationSettings()


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    return open_cohort(write_cohort(tmp_path_factory.mktemp("session") / "cohort"))


@pytest.fixture
def session(cohort: Cohort) -> Session:
    return Session(cohort)


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """A cohort's folder that a test may damage."""
    return write_cohort(tmp_path / "cohort")


def answer(session: Session, request: Request, **options: Any) -> RegionSnapshot:
    source = request.source
    return load_region(session.cohort, request.region, request.settings, source=source, **options)


def show(session: Session, **wanted: Any) -> RegionSnapshot:
    """Ask, load and deliver, as a viewer does when nobody is in a hurry."""
    request = session.request(**wanted)
    snapshot = answer(session, request, previous=session.snapshot)
    assert session.deliver(request, snapshot)
    return snapshot


def heard(signal: Any) -> list[Any]:
    """Collect what a signal says from now on."""
    said: list[Any] = []
    signal.connect(said.append)
    return said


# --- requests ---------------------------------------------------------------------------------


def test_stale_answers_are_dropped_in_whatever_order_they_come(session: Session) -> None:
    requests = [session.request(region_name=name) for name in NAMES[:3]]
    answers = [answer(session, request) for request in requests]
    regions = heard(session.region_changed)
    assert not session.deliver(requests[0], answers[0])
    assert session.snapshot is None
    assert session.deliver(requests[2], answers[2])
    assert not session.deliver(requests[1], answers[1])
    assert session.snapshot is answers[2]
    assert regions == [answers[2]]
    assert [session.is_current(request) for request in requests] == [False, False, True]


def test_an_answer_with_older_settings_is_dropped(session: Session) -> None:
    first = session.request()
    second = session.request(settings=DEFAULT.replaced(matching="centroid"))
    early, late = answer(session, first), answer(session, second)
    assert session.deliver(second, late)
    assert not session.deliver(first, early)
    assert session.snapshot is not None
    assert session.snapshot.settings.matching == "centroid"


def test_numbers_rise_and_a_refused_request_leaves_all_as_it_was(session: Session) -> None:
    first = session.request()
    with pytest.raises(CohortError, match="no region 'nowhere'"):
        session.request(region_name="nowhere", settings=DEFAULT.replaced(radius=3))
    assert session.is_current(first)
    assert session.settings == DEFAULT
    assert session.request().number > first.number


def test_what_is_left_out_stays_as_asked_for_last(session: Session) -> None:
    assert session.request().region == NAMES[0]
    session.request(region_name=NAMES[2], source="submission")
    # The answer is not there yet: the region asked for counts, not the one shown.
    request = session.request(settings=DEFAULT.replaced(radius=2))
    assert (request.region, request.source) == (NAMES[2], Source.SUBMISSION)
    assert session.request(source=None).source is None
    assert session.request().settings.radius == 2


def test_settings_are_announced_once_and_only_when_they_differ(session: Session) -> None:
    said = heard(session.settings_changed)
    other = DEFAULT.replaced(ambiguous="keep")
    show(session, settings=DEFAULT)
    show(session, settings=other)
    show(session, settings=DEFAULT.replaced(ambiguous="keep"))
    show(session, region_name=NAMES[1])
    assert said == [other]


def test_next_and_previous_go_round(session: Session) -> None:
    for name in [*NAMES[1:], NAMES[0]]:
        assert session.next_region() == name
        session.request(region_name=name)
    for name in [NAMES[-1], *NAMES[-2::-1]]:
        assert session.previous_region() == name
        session.request(region_name=name)


def test_a_cohort_without_regions(cohort: Cohort) -> None:
    session = Session(replace(cohort, regions=()))
    with pytest.raises(PanopticError, match="no regions to show"):
        session.request()


# --- selections and teams ---------------------------------------------------------------------


def test_the_first_competing_team_is_shown_first(session: Session, cohort: Cohort) -> None:
    assert session.team == TEAMS[0]
    assert Session(replace(cohort, teams=())).team is None
    only_annotation = tuple(team for team in cohort.teams if team.is_annotation)
    assert Session(replace(cohort, teams=only_annotation)).team == "colour-coded GT"


def test_a_selection_survives_changed_settings(session: Session) -> None:
    show(session)
    session.select_row(Side.PREDICTION, 2)
    chosen = session.selection
    said = heard(session.selection_changed)
    show(session, settings=DEFAULT.replaced(restoration="border-dilated"))
    assert chosen is not None
    assert session.selection == chosen
    assert said == [chosen]


def without_first_prediction(snapshot: RegionSnapshot, team: str) -> RegionSnapshot:
    """Take the first object of a team away, as if its file had changed."""
    labels = snapshot.predictions[team]
    left = np.where(labels.index == 1, 0, labels.id_image())
    classes = dict(zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True))
    shorter = LabelImage.from_array(left, classes, labels.class_names)
    assert snapshot.reference is not None
    evaluation = evaluate(LabelPair(snapshot.reference, shorter), snapshot.settings)
    return replace(snapshot, predictions={team: shorter}, evaluations={team: evaluation})


@pytest.mark.parametrize(("row", "found"), [(2, 1), (0, None)])
def test_a_selection_is_found_again_by_its_id_in_whatever_row(
    session: Session, row: int, found: int | None
) -> None:
    snapshot = show(session)
    session.select_row(Side.PREDICTION, row)
    before = session.selection
    assert before is not None
    shorter = without_first_prediction(snapshot, TEAMS[0])
    assert session.deliver(session.request(), shorter)
    assert session.selection == (None if found is None else replace(before, row=found))


def test_a_selection_of_an_object_that_is_gone_is_given_up(session: Session) -> None:
    show(session, settings=DEFAULT.replaced(restoration="border-dilated"))
    assert session.evaluation is not None
    ids = session.evaluation.outcomes.prediction.ids
    session.select_row(Side.PREDICTION, len(ids) - 1)
    said = heard(session.selection_changed)
    # Nothing is left of objects eroded by so much.
    show(session, settings=DEFAULT.replaced(restoration="border-dilated", radius=-20))
    assert session.selection is None
    assert said == [None]


def test_another_region_has_another_selection(session: Session) -> None:
    show(session)
    session.select_row(Side.REFERENCE, 0)
    said = heard(session.selection_changed)
    show(session, region_name=NAMES[1])
    assert session.selection is None
    assert said == [None]


def test_a_reference_object_stays_selected_for_another_team(session: Session) -> None:
    show(session)
    session.select_row(Side.REFERENCE, 3)
    before = session.selection
    said = heard(session.selection_changed)
    teams = heard(session.team_changed)
    session.set_team("beta")
    assert before is not None
    assert session.selection == replace(before, team="beta")
    assert said == [session.selection]
    session.set_team("beta")
    assert teams == ["beta"]
    assert session.evaluation is session.snapshot.evaluations["beta"]  # type: ignore[union-attr]


def test_a_predicted_object_belongs_to_one_team(session: Session) -> None:
    show(session)
    session.select_row(Side.PREDICTION, 1)
    said = heard(session.selection_changed)
    session.set_team("beta")
    assert (session.selection, said) == (None, [None])


def test_an_unknown_team_changes_nothing(session: Session) -> None:
    teams = heard(session.team_changed)
    with pytest.raises(CohortError, match="no team 'gamma'"):
        session.set_team("gamma")
    assert (session.team, teams) == ("alpha", [])


@pytest.mark.parametrize("row", [-1, 10_000])
def test_a_row_that_is_not_there_selects_nothing(session: Session, row: int) -> None:
    session.select_row(Side.REFERENCE, 0)  # nothing is shown yet
    assert session.selection is None
    show(session)
    session.select_row(Side.REFERENCE, row)
    assert session.selection is None


def test_a_selection_is_announced_once(session: Session) -> None:
    show(session)
    said = heard(session.selection_changed)
    session.select_row(Side.REFERENCE, 0)
    session.select_row(Side.REFERENCE, 0)
    assert len(said) == 1


def test_summaries_are_kept_until_they_are_cleared(session: Session) -> None:
    said = heard(session.summary_changed)
    summary = RegionSummary(NAMES[0], "alpha", None, None)
    session.add_summary(summary)
    assert (said, dict(session.summaries)) == ([summary], {(NAMES[0], "alpha"): summary})
    session.clear_summaries()
    assert dict(session.summaries) == {}


# --- loading ----------------------------------------------------------------------------------

CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "matching": {"matching": "centroid"},
    "threshold": {"iou_threshold": 0.7},
    "low threshold": {"iou_threshold": 0.2},
    "clip-predictions": {"ambiguous": "clip-predictions"},
    "majority": {"ambiguous": "majority"},
    "keep": {"ambiguous": "keep"},
    "restoration": {"restoration": "border-dilated"},
    "radius": {"restoration": "border-dilated", "radius": 3},
    "erosion": {"restoration": "border-dilated", "radius": -1},
    "idle radius": {"radius": 5},
    "no distances": {"distances": False},
    "outlines": {"outlines": "both-whole"},
    "near": {"near_iou": 0.4},
}


def assert_same_snapshots(found: RegionSnapshot, wanted: RegionSnapshot) -> None:
    assert found.settings == wanted.settings
    assert (found.region, found.shape, found.mpp) == (wanted.region, wanted.shape, wanted.mpp)
    assert found.source == wanted.source
    assert set(found.findings) == set(wanted.findings)
    assert len(found.findings) == len(wanted.findings)
    assert found.evaluations.keys() == wanted.evaluations.keys() == found.predictions.keys()
    for team, evaluation in found.evaluations.items():
        other = wanted.evaluations[team]
        pd.testing.assert_frame_equal(evaluation.objects, other.objects)
        pd.testing.assert_frame_equal(evaluation.by_class, other.by_class)
        pd.testing.assert_frame_equal(evaluation.confusion, other.confusion)
        np.testing.assert_equal(dict(evaluation.metrics), dict(other.metrics))
        assert evaluation.settings == other.settings
        np.testing.assert_array_equal(
            found.predictions[team].id_image(), wanted.predictions[team].id_image()
        )


@pytest.mark.parametrize("source", [None, Source.SUBMISSION])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", NAMES[:3])
def test_what_is_taken_over_gives_the_same_figures(
    cohort: Cohort, name: str, change: str, source: Source | None
) -> None:
    start = EvaluationSettings(restoration="border-dilated", matching="centroid")
    for before in (DEFAULT, start):
        previous = load_region(cohort, name, before)
        settings = before.replaced(**CHANGES[change])
        again = load_region(cohort, name, settings, source=source, previous=previous)
        assert_same_snapshots(again, load_region(cohort, name, settings, source=source))
        assert previous.settings == before


def test_pixels_are_read_once(cohort: Cohort) -> None:
    first = load_region(cohort, NAMES[0], DEFAULT)
    for change in ({"matching": "centroid"}, {"restoration": "border-dilated"}):
        again = load_region(cohort, NAMES[0], DEFAULT.replaced(**change), previous=first)
        assert again.image is first.image
    table = (
        load_region(cohort, NAMES[0], DEFAULT.replaced(ambiguous="keep"), previous=first)
        .evaluations["alpha"]
        .table
    )
    assert table is first.evaluations["alpha"].table


def test_a_snapshot_of_another_region_is_no_help(cohort: Cohort) -> None:
    previous = load_region(cohort, NAMES[0], DEFAULT)
    found = load_region(cohort, NAMES[1], DEFAULT, previous=previous)
    assert_same_snapshots(found, load_region(cohort, NAMES[1], DEFAULT))
    assert found.image is not previous.image


def test_all_teams_and_the_annotations_own_version(cohort: Cohort) -> None:
    snapshot = load_region(cohort, NAMES[0], DEFAULT)
    assert list(snapshot.evaluations) == [*TEAMS, "colour-coded GT"]
    assert (snapshot.shape, snapshot.mpp) == (REGIONS[0].shape, 0.25)
    assert snapshot.image is not None
    assert snapshot.image.levels[0].shape == (*REGIONS[0].shape, 3)
    assert snapshot.ambiguous is not None
    assert {f.kind for f in snapshot.findings} == {
        FindingKind.VANISHED,
        FindingKind.OVERLAPPING,
        FindingKind.DEGENERATE,
        FindingKind.OUTSIDE_IMAGE,
    }


def test_a_region_without_reference_can_be_looked_at(own_folder: Path) -> None:
    region = REGIONS[0]
    (own_folder / ANNOTATIONS / region.patient / f"{region.name}.xml").unlink()
    session = Session(open_cohort(own_folder))
    snapshot = show(session)
    assert (snapshot.reference, dict(snapshot.evaluations)) == (None, {})
    assert snapshot.image is not None
    assert len(snapshot.predictions["alpha"]) > 0
    session.select_row(Side.REFERENCE, 0)
    assert (session.evaluation, session.selection) == (None, None)


def test_an_unreadable_prediction_takes_no_other_with_it(own_folder: Path) -> None:
    mask_path(own_folder, "alpha", REGIONS[0]).write_bytes(b"no mask")
    session = Session(open_cohort(own_folder))
    snapshot = show(session)
    assert list(snapshot.evaluations) == ["beta", "colour-coded GT"]
    unreadable = [f for f in snapshot.findings if f.kind is FindingKind.UNREADABLE]
    assert [(f.team, f.region) for f in unreadable] == [("alpha", NAMES[0])]
    assert session.evaluation is None
    session.set_team("beta")
    assert session.evaluation is snapshot.evaluations["beta"]


def test_an_unreadable_image_is_reported_once(own_folder: Path) -> None:
    region = REGIONS[0]
    path = own_folder / ANNOTATIONS / region.patient / f"{region.name}.svs"
    path.write_bytes(b"no slide")
    cohort = open_cohort(own_folder)
    first = load_region(cohort, region.name, DEFAULT)
    assert (first.image, first.shape, first.mpp) == (None, region.shape, None)
    for snapshot in (
        first,
        load_region(cohort, region.name, DEFAULT.replaced(radius=2), previous=first),
        load_region(
            cohort, region.name, DEFAULT.replaced(restoration="border-dilated"), previous=first
        ),
    ):
        unreadable = [f for f in snapshot.findings if f.kind is FindingKind.UNREADABLE]
        assert [f.path for f in unreadable] == [path]
        assert "alpha" in snapshot.evaluations


def test_figures_of_a_snapshot_are_those_of_its_counts(cohort: Cohort) -> None:
    evaluation = load_region(cohort, NAMES[0], DEFAULT).evaluations["beta"]
    np.testing.assert_equal(dict(evaluation.metrics), dict(unit_metrics(evaluation.counts)))
