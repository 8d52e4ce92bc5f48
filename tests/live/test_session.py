"""The live state: numbered requests, selections that survive, and figures as if from scratch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from napari_panoptic.common.errors import CohortError, PanopticError
from napari_panoptic.live.session import Request, Session
from napari_panoptic.live.snapshots import RegionSnapshot, load_in_steps, load_region
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.nuclei.edits import IdWindow
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from tests.support.small_cohort import REGIONS, TEAMS

NAMES = [region.name for region in REGIONS]
DEFAULT = EvaluationSettings()


@pytest.fixture
def session(small_cohort: Cohort) -> Session:
    return Session(small_cohort)


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


def test_a_source_is_announced_once_and_only_when_it_differs(session: Session) -> None:
    heard: list[Source | None] = []
    session.source_changed.connect(heard.append)
    for source in ("submission", Source.SUBMISSION, "unchanged", None):
        session.request(source=source)
    assert heard == [Source.SUBMISSION, None]


def test_settings_are_announced_once_and_only_when_they_differ(session: Session) -> None:
    said = heard(session.settings_changed)
    other = DEFAULT.replaced(ambiguous="keep")
    show(session, settings=DEFAULT)
    show(session, settings=other)
    show(session, settings=DEFAULT.replaced(ambiguous="keep"))
    show(session, region_name=NAMES[1])
    assert said == [other]


def test_a_cohort_without_regions(small_cohort: Cohort) -> None:
    session = Session(replace(small_cohort, regions=()))
    with pytest.raises(PanopticError, match="no regions to show"):
        session.request()


# --- selections and teams ---------------------------------------------------------------------


def test_the_first_competing_team_is_shown_first(session: Session, small_cohort: Cohort) -> None:
    assert session.team == TEAMS[0]
    assert Session(replace(small_cohort, teams=())).team is None
    only_annotation = tuple(team for team in small_cohort.teams if team.is_annotation)
    assert Session(replace(small_cohort, teams=only_annotation)).team == "colour-coded GT"


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
    return replace(snapshot, predictions={team: shorter}, results={team: evaluation})


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


# --- answers in two steps ---------------------------------------------------------------------


def test_an_answer_in_two_steps_shows_a_region_and_then_its_other_teams(session: Session) -> None:
    request = session.request()
    assert request.team == session.team
    first, whole = load_in_steps(
        session.cohort, request.region, request.settings, first=request.team
    )
    shown, selected = heard(session.region_changed), heard(session.selection_changed)
    came = heard(session.teams_came)
    assert session.deliver(request, first)
    session.select_row(Side.REFERENCE, 0)
    assert session.deliver(request, whole)
    assert (shown, came) == ([first], [whole])
    assert selected == [session.selection]
    assert session.loaded is whole


def test_the_first_step_alone_shows_no_other_team(session: Session) -> None:
    request = session.request()
    first = next(
        load_in_steps(session.cohort, request.region, request.settings, first=request.team)
    )
    session.deliver(request, first)
    session.set_team("beta")
    assert session.evaluation is None
    assert "beta" in first.pending
    session.set_team("alpha")
    assert session.evaluation is first.evaluations["alpha"]


def test_all_teams_at_once_where_all_are_in_sight(session: Session) -> None:
    assert session.request(team_first=False).team is None


def mixed_up(labels: LabelImage, seed: int) -> tuple[IdWindow, dict[int, str], dict[int, str]]:
    """Give other pixels for a whole side: some objects go, some are cut, some are new.

    Further the classes of the new ones, and other classes for half of the others.
    """
    rng = np.random.default_rng(seed)
    names, ids = labels.class_names, labels.ids
    gone = rng.random(len(ids) + 1) < 0.2
    gone[0] = False
    numbers = np.where(gone[labels.index], 0, labels.index).astype(np.uint16)
    numbers[::7] = 0
    height, width = numbers.shape
    fresh = {int(ids.max()) + 1 + k: names[k % len(names)] for k in range(3)}
    for k in range(len(fresh)):
        y, x = int(rng.integers(height - 4)), int(rng.integers(width - 4))
        numbers[y : y + 4, x : x + 4] = len(ids) + 1 + k
    window = IdWindow((0, 0), numbers, np.concatenate([[0], ids, list(fresh)]))
    renamed = {
        int(id_): names[(names.index(str(name)) + 1) % len(names)]
        for id_, name in zip(ids, labels.class_names_of_objects(), strict=True)
        if rng.random() < 0.5
    }
    return window, fresh, renamed


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("seed", range(3))
def test_pixels_and_classes_at_once_come_to_the_same_as_object_by_object(
    small_cohort: Cohort, side: Side, seed: int
) -> None:
    at_once, one_by_one = Session(small_cohort), Session(small_cohort)
    for session in (at_once, one_by_one):
        show(session)
    window, fresh, renamed = mixed_up(at_once.edited_labels(side), seed)
    assert renamed
    heard_of = heard(at_once.edited)

    at_once.edit_window(side, window, classes=fresh, renamed=renamed)
    one_by_one.edit_window(side, window, classes=fresh)
    for id_, name in renamed.items():
        one_by_one.set_class(side, id_, name)

    assert len(heard_of) == 1
    found, expected = at_once.evaluation, one_by_one.evaluation
    assert found is not None
    assert expected is not None
    fresh_pair = LabelPair(
        at_once.edited_labels(Side.REFERENCE).tidied(),
        at_once.edited_labels(Side.PREDICTION).tidied(),
        found.pair.ambiguous,
        found.pair.mpp,
    )
    for other in (expected, evaluate(fresh_pair, found.settings)):
        assert found.metrics.pq == pytest.approx(other.metrics.pq, rel=1e-12, nan_ok=True)
        np.testing.assert_array_equal(found.counts.confusion, other.counts.confusion)
    for own in Side:
        one, two = found.outcomes.side(own), expected.outcomes.side(own)
        for name in ("ids", "class_index", "status", "cause", "partner"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        labels, other_labels = at_once.edited_labels(own), one_by_one.edited_labels(own)
        np.testing.assert_array_equal(labels.index, other_labels.index)
        np.testing.assert_array_equal(labels.class_index, other_labels.class_index)


def test_a_class_that_is_not_there_leaves_all_pixels_as_they_were(session: Session) -> None:
    show(session)
    before = session.edited_labels(Side.PREDICTION)
    window, fresh, renamed = mixed_up(before, 0)
    for wrong in ({**renamed, next(iter(renamed)): "Plasma"}, {**renamed, 10**6: "Epithelial"}):
        with pytest.raises(PanopticError, match="no object"):
            session.edit_window(Side.PREDICTION, window, classes=fresh, renamed=wrong)
        assert not session.is_edited(Side.PREDICTION)
        assert session.edited_labels(Side.PREDICTION) is before


def test_nothing_is_shown_before_a_region_arrives(small_cohort: Cohort) -> None:
    session = Session(small_cohort)
    session.set_team("alpha")
    assert session.snapshot is None
    assert session.evaluation is None
    assert session.shown is None
