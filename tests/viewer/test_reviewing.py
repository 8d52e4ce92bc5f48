"""Session and review file joined, without a window."""

from types import SimpleNamespace

import numpy as np
import pytest

from napari_panoptic.evaluation.evaluate import evaluate_pair
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.review import ReviewStore
from napari_panoptic.verdicts import Verdict
from napari_panoptic.viewer.judged import Subjects
from napari_panoptic.viewer.reviewing import Reviewing
from tests.viewer.cases import SCHEME, four_fates

RING, INSIDE = (Side.REFERENCE, 0), (Side.REFERENCE, 1)


def ring_and_nucleus():
    """Make an annotation of a ring and a small nucleus in its middle, both missed."""
    y, x = np.mgrid[:40, :40]
    distance = np.hypot(y - 20, x - 20)
    reference = np.where(distance < 12, 1, 0)
    reference[distance < 6] = 0
    reference[distance < 3] = 2
    return evaluate_pair(
        reference,
        np.zeros_like(reference),
        reference_classes={1: "Round", 2: "Round"},
        prediction_classes={},
        class_names=SCHEME.names,
    )


def session_of(evaluation):
    snapshot = SimpleNamespace(region=SimpleNamespace(name="R"))
    return SimpleNamespace(evaluation=evaluation, team="T", snapshot=snapshot)


@pytest.fixture
def reviewing(tmp_path):
    reviewing = Reviewing(
        session_of(ring_and_nucleus()), reviewer="Ada", path=tmp_path / "r.sqlite"
    )
    reviewing.begin()
    yield reviewing
    reviewing.close()


def shown(reviewing):
    return {place: record.verdict for place, record in reviewing.judged.records.items()}


def test_a_verdict_that_was_replaced_by_one_on_an_object_around_is_not_shown(reviewing):
    reviewing.give(*INSIDE, Verdict.BOTH_WRONG)
    assert shown(reviewing) == {INSIDE: Verdict.BOTH_WRONG}
    # The file takes the two for one object: their centres are the same.
    reviewing.give(*RING, Verdict.CANNOT_TELL)
    assert shown(reviewing) == {RING: Verdict.CANNOT_TELL}
    reviewing.refresh()
    assert shown(reviewing) == {RING: Verdict.CANNOT_TELL}


def test_what_others_did_is_there_after_the_next_look(reviewing):
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    reviewing.undo()
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    subjects = Subjects(reviewing.judged.evaluation, region="R", team="T")
    with (
        ReviewStore(reviewing.path, reviewer="Ada") as same,
        ReviewStore(reviewing.path, reviewer="Bo") as other,
    ):
        other.give(subjects.of(*RING), Verdict.PREDICTION_RIGHT)
        assert reviewing.poll() == ()
        same.give(subjects.of(*RING), Verdict.CANNOT_TELL)
    assert reviewing.poll() == ("R",)
    assert shown(reviewing) == {RING: Verdict.CANNOT_TELL}


def test_regions_reviewed_are_counted_on(reviewing):
    assert reviewing.reviewed_regions() == []
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    assert reviewing.reviewed_regions() == ["R"]
    reviewing.undo()
    assert reviewing.reviewed_regions() == []
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    subjects = Subjects(reviewing.judged.evaluation, region="R2", team="T")
    with ReviewStore(reviewing.path, reviewer="Ada") as other:
        other.give(subjects.of(*RING), Verdict.CANNOT_TELL)
    reviewing.poll()
    assert reviewing.reviewed_regions() == ["R", "R2"]


def test_another_region_has_verdicts_of_its_own(reviewing):
    session = reviewing._session
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    session.snapshot.region.name = "R2"
    reviewing.refresh()
    assert shown(reviewing) == {}
    reviewing.give(Side.REFERENCE, 1, Verdict.CANNOT_TELL)
    session.snapshot.region.name = "R"
    reviewing.refresh()
    assert shown(reviewing) == {RING: Verdict.BOTH_WRONG}
    session.evaluation = four_fates()
    reviewing.refresh()
    assert shown(reviewing) == {}
    session.evaluation = None
    reviewing.refresh()
    assert reviewing.judged is None
