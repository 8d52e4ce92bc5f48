"""The live state of a desk of detections: whatever is done, figures are those of a fresh run."""

import numpy as np
import pytest

from napari_panoptic.detections.evaluate import (
    count_frame,
    count_frame_or_why,
    evaluate_detections,
    load_frame,
)
from napari_panoptic.detections.pairing import (
    DetectionCounts,
    DetectionSettings,
    judge_points,
)
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.values.detections import Points
from napari_panoptic.values.vocabulary import Side


@pytest.fixture
def session(detection_cohort):
    session = DetectionSession(detection_cohort)
    for frame in session.cohort.frames:
        session.add_frame(load_frame(session.cohort, frame))
    session.show("A01_00a")
    _find_out(session)
    return session


def _find_out(session):
    """Do what is done in another thread."""
    distance_um = session.settings.distance_um
    session.take_counts([count_frame(loaded, distance_um) for loaded in session.outdated])


def _moved(points, row, by):
    xy = points.xy_px.copy()
    xy[row] += by
    return Points(xy, points.confidence, points.ids)


def _without(points, row):
    keep = np.arange(len(points)) != row
    return Points(points.xy_px[keep], points.confidence[keep], points.ids[keep])


@pytest.mark.parametrize(
    "settings",
    [
        DetectionSettings(),
        DetectionSettings(4.0),
        DetectionSettings(8.0, 0.5),
        DetectionSettings(3.0, 0.7),
    ],
)
def test_figures_are_those_of_a_fresh_evaluation(session, settings):
    session.set_settings(settings)
    _find_out(session)
    fresh = evaluate_detections(session.cohort, settings)
    for team in session.cohort.team_names:
        session.set_team(team)
        assert session.pooled(team) == fresh.counts(team)
        for result in fresh.by_team[team]:
            assert session.counts(result.frame.name, team) == result.counts
        curve, expected = session.curve(), fresh.curve(team)
        assert (curve is None) == (expected is None)
        if curve is not None and expected is not None:
            assert np.array_equal(curve.tp, expected.tp)
            assert curve.average_precision == expected.average_precision


def test_counts_missing_for_a_file_that_was_never_sent(session):
    assert session.counts("A02_00b", "offset") is None
    session.show("A02_00b")
    session.set_team("offset")
    assert session.judged is None


def test_edits_are_judged_at_once_and_taken_back(session):
    before = session.points(Side.PREDICTION)
    counts, pooled = session.counts("A01_00a", "careful"), session.pooled("careful")
    row = int(np.flatnonzero(session.judged.prediction_partner >= 0)[0])
    far = _moved(before, row, (0.0, 300.0))

    session.edit(Side.PREDICTION, far)

    expected = judge_points(
        session.points(Side.REFERENCE), far, session.shown.mpp_xy, session.settings
    )
    assert session.judged.counts == expected.counts == session.counts("A01_00a", "careful")
    assert session.judged.counts.tp == counts.tp - 1
    assert session.pooled("careful").tp == pooled.tp - 1
    assert session.unsaved == [("A01_00a", "careful")]
    assert session.undo()
    assert session.points(Side.PREDICTION) is before
    assert session.counts("A01_00a", "careful") == counts
    assert session.unsaved == []  # nothing can be lost
    assert not session.undo()
    assert session.redo()
    assert session.points(Side.PREDICTION) is far
    assert session.unsaved == [("A01_00a", "careful")]
    session.mark_saved(Side.PREDICTION)
    session.show("A01_00b")
    assert session.unsaved == []
    session.show("A01_00a")
    assert session.undo()
    assert session.unsaved == [("A01_00a", "careful")]  # the file has what was taken back


def test_a_drag_is_one_change(session):
    before = session.points(Side.PREDICTION)
    for step in range(1, 4):
        session.edit(Side.PREDICTION, _moved(before, 0, (step, 0)), goes_on=step > 1)
    assert session.undo()
    assert session.points(Side.PREDICTION) is before
    assert not session.may_undo()


def test_an_edited_annotation_counts_for_all_teams(session):
    fewer = _without(session.points(Side.REFERENCE), 0)
    before = {team: session.counts("A01_00a", team) for team in session.cohort.team_names}
    session.edit(Side.REFERENCE, fewer)
    for team in session.cohort.team_names:
        points = session.shown.predictions[team]
        expected = judge_points(fewer, points, session.shown.mpp_xy, session.settings).counts
        assert session.counts("A01_00a", team) == expected != before[team]


def test_edits_stay_with_their_frame_and_team(session):
    fewer = _without(session.points(Side.PREDICTION), 0)
    session.edit(Side.PREDICTION, fewer)
    session.show("A01_00b")
    session.set_team("eager")
    assert not session.may_undo()
    session.show("A01_00a")
    session.set_team("careful")
    assert session.points(Side.PREDICTION) is fewer
    session.add_frame(load_frame(session.cohort, session.cohort.region("A01_00a")))
    assert session.counts("A01_00a", "careful").fp + session.judged.counts.tp == len(fewer)


def test_a_selected_point_that_is_gone_is_selected_no_more(session):
    last = len(session.points(Side.PREDICTION)) - 1
    session.select((Side.PREDICTION, last))
    session.edit(Side.PREDICTION, _without(session.points(Side.PREDICTION), last))
    assert session.selection is None


def test_at_another_distance_no_old_figure_is_shown(session):
    near = DetectionSettings(3.0)
    old = [count_frame(session._frames[name], 8.0) for name in ("A01_00b", "A02_00a")]
    session.set_settings(near)
    assert session.n_known == 1  # the frame shown
    assert session.pooled("eager") == session.counts("A01_00a", "eager")
    assert session.counts("A01_00b", "eager") is None
    session.take_counts(old)  # for a distance that is no more
    assert session.n_known == 1
    fresh = evaluate_detections(session.cohort, near)
    counts = {result.frame.name: result.counts for result in fresh.by_team["eager"]}
    found = session.outdated
    session.take_counts([count_frame(found[0], 3.0)])
    name = found[0].frame.name
    assert session.counts(name, "eager") == counts[name]
    assert session.n_known == 2
    _find_out(session)
    assert session.outdated == []
    assert session.pooled("eager") == fresh.counts("eager")


def test_what_was_found_out_of_points_that_are_no_more_is_dropped(session):
    session.set_settings(DetectionSettings(3.0))
    old = [loaded for loaded in session.outdated if loaded.frame.name == "A01_00b"]
    session.show("A01_00b")
    session.edit(Side.PREDICTION, Points.none())
    expected = session.judged.counts
    session.take_counts([count_frame(old[0], 3.0)])
    assert session.counts("A01_00b", "careful") == expected
    assert expected.tp == expected.fp == 0


def test_a_frame_is_judged_when_it_is_shown(session):
    session.set_settings(DetectionSettings(3.0))
    session.show("H01_00a")
    assert session.counts("H01_00a", "careful") == session.judged.counts
    session.set_settings(DetectionSettings(3.0, 0.6))
    assert session.counts("H01_00a", "careful") == session.judged.counts


def test_the_range_of_confidences_is_that_of_all_points_read(session):
    own = [
        loaded.predictions["careful"].confidence
        for loaded in (load_frame(session.cohort, frame) for frame in session.cohort.frames)
    ]
    expected = (min(map(np.min, own)), max(map(np.max, own)))
    assert session.confidence_range == expected
    session.set_settings(DetectionSettings(3.0))
    assert session.confidence_range == expected  # the slider does not jump meanwhile
    session.set_team("offset")
    assert session.confidence_range is None


def test_undo_takes_the_newest_change_back_whichever_side_it_was_made_on(session):
    reference, prediction = (session.points(side) for side in Side)
    fewer, moved = _without(reference, 0), _moved(prediction, 0, (2, 0))
    session.edit(Side.PREDICTION, moved)
    session.edit(Side.REFERENCE, fewer)
    further = _moved(moved, 0, (2, 0))
    session.edit(Side.PREDICTION, further)
    states = [(reference, prediction), (reference, moved), (fewer, moved), (fewer, further)]

    for expected in states[-2::-1]:
        assert session.undo()
        assert tuple(session.points(side) for side in Side) == expected
    assert not session.undo()
    for expected in states[1:]:
        assert session.redo()
        assert tuple(session.points(side) for side in Side) == expected
    assert not session.redo()
    assert session.undo()
    assert tuple(session.points(side) for side in Side) == states[-2]


def test_what_goes_on_after_undo_is_a_change_of_its_own(session):
    before = session.points(Side.PREDICTION)
    session.edit(Side.PREDICTION, _moved(before, 0, (2, 0)))
    session.undo()
    session.edit(Side.PREDICTION, _moved(before, 0, (4, 0)), goes_on=True)
    assert not session.redo()
    assert session.undo()
    assert session.points(Side.PREDICTION) is before


def test_undo_leaves_changes_of_other_teams_and_frames(session):
    fewer = _without(session.points(Side.PREDICTION), 0)
    session.edit(Side.PREDICTION, fewer)
    session.set_team("eager")
    assert not session.undo()
    session.edit(Side.REFERENCE, _without(session.points(Side.REFERENCE), 0))
    session.set_team("careful")
    assert session.undo()  # the annotation is everybody's, and was changed last
    assert session.points(Side.PREDICTION) is fewer
    session.show("A01_00b")
    assert not session.may_undo()


def failing_for(name):
    """Make judging raise for one frame, at any distance but 5."""

    def judge(loaded, distance_um):
        if loaded.frame.name == name and distance_um != 5.0:
            raise ValueError("no finite cost")
        return count_frame(loaded, distance_um)

    return judge


def test_a_frame_that_cannot_be_judged_is_said_once_and_tried_again_at_another_distance(
    session, monkeypatch
):
    told = []
    session.judging_failed.connect(told.append)
    monkeypatch.setattr("napari_panoptic.detections.evaluate.count_frame", failing_for("A01_00b"))
    session.set_settings(DetectionSettings(3.0))
    for _ in range(3):
        session.take_counts([count_frame_or_why(own, 3.0) for own in session.outdated])
    assert session.outdated == []
    assert len(told) == 1
    assert "A01_00b cannot be judged (no finite cost)" in told[0]
    fresh = evaluate_detections(session.cohort, DetectionSettings(3.0))
    others = [r.counts for r in fresh.by_team["careful"] if r.frame.name != "A01_00b"]
    assert session.pooled("careful") == sum(others, DetectionCounts())
    assert session.lacking("A01_00b", "careful") == "not judged"

    session.show("A01_00b")
    assert session.judged is None
    assert "cannot be judged" in session.why_nothing_is_judged()
    points = session.points(Side.PREDICTION)
    for step in range(3):  # a drag: nothing is lost, nothing is said again
        points = _moved(points, 0, (1, 0))
        session.edit(Side.PREDICTION, points, goes_on=step > 0)
    assert session.points(Side.PREDICTION) is points
    assert len(told) == 1

    session.set_settings(DetectionSettings(5.0))
    assert session.judged is not None
    assert session.counts("A01_00b", "careful") == session.judged.counts
    assert session.unjudged == {}
    session.set_settings(DetectionSettings(3.0))
    assert len(told) == 2
    monkeypatch.undo()
    session.edit(Side.PREDICTION, _without(points, 0))
    assert session.judged is not None
    for team in session.cohort.team_names:  # not of the edited team only
        expected = judge_points(
            session.points(Side.REFERENCE),
            session.shown.predictions[team],
            session.shown.mpp_xy,
            session.settings,
        )
        assert session.counts("A01_00b", team) == expected.counts


def test_a_frame_whose_points_cannot_be_paired_shows_no_old_figure(session, monkeypatch):
    told = []
    session.judging_failed.connect(told.append)

    def fail(*_args):
        raise MemoryError

    monkeypatch.setattr("napari_panoptic.detections.session.judge_points", fail)
    for step in range(2):
        moved = _moved(session.points(Side.PREDICTION), 0, (3, 0))
        session.edit(Side.PREDICTION, moved, goes_on=step > 0)
    assert (session.judged, session.counts("A01_00a", "careful")) == (None, None)
    assert len(told) == 1
    assert "not enough memory" in told[0]
    monkeypatch.undo()
    session.undo()
    assert session.counts("A01_00a", "careful") == session.judged.counts
