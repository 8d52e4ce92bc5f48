"""A ring and its core, of one class and with one centroid: each has a verdict of its own."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from PIL import Image

from napari_panoptic.explain.failures import FailureName
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.live.summary import evaluate_cohort_summary
from napari_panoptic.review.cohort_verdicts import CohortVerdicts
from napari_panoptic.review.corrections import PlannedVerdict, decided, newest_of_each
from napari_panoptic.review.corrections import planned_records as records_of_plan
from napari_panoptic.review.identity import Subject, matched, object_key
from napari_panoptic.review.judged import Subjects
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import Adjudication, Judgement
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support.builders import write_tiff
from tests.support.commands import exit_status
from tests.support.review_packages import contents_of, saved, write_file, write_small_package

TEAM = "T"
RING, CORE = (Side.REFERENCE, 1), (Side.REFERENCE, 2)
RIGHT, WRONG, TELL = Verdict.PREDICTION_RIGHT, Verdict.ANNOTATION_RIGHT, Verdict.CANNOT_TELL
LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write two regions alike: annotated are a square, a ring and its core; the team found the
    ring (TP) and something else (FP)."""
    root = tmp_path_factory.mktemp("nested")
    (root / "images").mkdir()
    (root / "cohort.toml").write_text(
        '[classes]\nNucleus = [255, 0, 0]\n[files]\nimage = "images/{region}.png"\n'
        'reference.labels = "ref/{region}.tif"\npredictions.labels = "teams/{team}/{region}.tif"\n'
    )
    distance = np.hypot(*np.mgrid[-30:30, -30:30])
    reference = np.where(distance <= 8, 2, np.where(distance <= 12, 1, 0)).astype(np.uint16)
    reference[2:8, 2:8] = 3
    prediction = (reference == 1).astype(np.uint16)
    prediction[2:8, 50:56] = 2
    for region in ("a", "b"):
        Image.fromarray(np.full((60, 60, 3), 200, np.uint8)).save(root / f"images/{region}.png")
        for name, labels in (("ref", reference), (f"teams/{TEAM}", prediction)):
            write_tiff(root / name / f"{region}.tif", labels)
            ids = np.unique(labels[labels > 0])
            lines = "".join(f"{id_},Nucleus\n" for id_ in ids)
            (root / name / f"{region}.csv").write_text(f"id,class\n{lines}")
    return root


@pytest.fixture(scope="module")
def cohort(folder):
    return open_cohort(folder)


@pytest.fixture(scope="module")
def evaluation(cohort):
    return load_region(cohort, "a", EvaluationSettings()).evaluations[TEAM]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "review.sqlite"


def subject(evaluation, target, region="a"):
    side, id_ = target
    row = evaluation.outcomes.side(side).row_of(id_)
    return Subjects(evaluation, region=region, team=TEAM).of(side, row)


def grown(of: Subject, factor: float) -> Subject:
    """Describe an object with more pixels, as another setting or an edit leaves it."""
    fingerprint = replace(of.fingerprint, area_px=int(of.fingerprint.area_px * factor))
    return replace(of, fingerprint=fingerprint)


def kept(path, reviewer="Ada"):
    with ReviewStore(path, reviewer=reviewer) as store:
        return {(own.side, own.object_id): own.verdict for own in store.verdicts()}


def test_a_verdict_on_either_leaves_that_on_the_other(evaluation, path):
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(evaluation, RING), RIGHT)
        given = store.give(subject(evaluation, CORE), WRONG)
        assert given.replaced is None
        again = store.give(subject(evaluation, RING), TELL)
        assert (again.replaced.verdict, again.replaced_elsewhere) == (RIGHT, None)
        assert [len(store.history(subject(evaluation, at))) for at in (RING, CORE)] == [2, 1]
    assert kept(path) == {RING: TELL, CORE: WRONG}


def test_without_the_objects_around_ids_and_areas_tell_them_apart(evaluation, path):
    ring, core = (replace(subject(evaluation, at), beside=None) for at in (RING, CORE))
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(ring, RIGHT)
        store.give(core, WRONG)
        assert [len(store.history(of)) for of in (ring, core)] == [1, 1]
        # The same object after small edits, with the same or another id.
        for changed in (grown(core, 3), replace(grown(core, 3.1), object_id=9)):
            assert store.give(changed, TELL).replaced_elsewhere is not None
        assert len(store.verdicts()) == 2


def test_equal_ones_are_told_apart_by_their_ids(evaluation, path):
    core = subject(evaluation, CORE)
    other = replace(core, object_id=7)
    keys = [object_key(core), object_key(other)]
    assert matched(keys, keys[::-1]) == [1, 0]
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(replace(core, beside=(keys[1],)), RIGHT)
        store.give(replace(other, beside=(keys[0],)), WRONG)
    assert kept(path) == {CORE: RIGHT, (Side.REFERENCE, 7): WRONG}


def test_the_window_shows_both_and_reports_what_it_replaced_unseen(cohort, path):
    session = Session(cohort)
    session.set_team(TEAM)
    request = session.request(region_name="a")
    session.deliver(request, load_region(cohort, "a", session.settings))
    outcomes = session.evaluation.outcomes.reference
    ring, core = ((Side.REFERENCE, outcomes.row_of(id_)) for _, id_ in (RING, CORE))
    reviewing = Reviewing(session, reviewer="Ada", path=path)
    reported = []
    reviewing.noticed.connect(reported.append)
    reviewing.begin()
    with closing(reviewing):
        reviewing.give(*ring, RIGHT)
        reviewing.give(*core, WRONG)
        reviewing.refresh()
        shown = {at: record.verdict for at, record in reviewing.judged.records.items()}
        assert shown == {ring: RIGHT, core: WRONG}
        assert not reported
        with ReviewStore(path, reviewer="Ada") as other:  # before the window looks again
            other.give(grown(reviewing.subject(*core), 1.5), TELL)
        reviewing.give(*core, RIGHT)
    (finding,) = reported
    assert "on reference 2 replaced one on reference 2" in finding.message
    assert "cannot tell, 295 px; now 197 px" in finding.message
    assert kept(path) == {RING: RIGHT, CORE: RIGHT}


def test_in_regions_that_are_not_shown_a_core_is_open_beside_a_judged_ring(
    cohort, evaluation, path
):
    session = Session(cohort)
    session.set_team(TEAM)
    for line in evaluate_cohort_summary(cohort, session.reading):
        session.add_summary(line)
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(evaluation, RING, "b"), RIGHT)  # a TP, which a summary does not have
    reviewing = Reviewing(session, reviewer="Ada", path=path)
    reviewing.begin()
    with closing(reviewing):
        verdicts = CohortVerdicts(session, reviewing)
        core = FailureName(TEAM, "b", *CORE)
        assert verdicts.is_open(core)
        assert len(verdicts.give({core: (WRONG, "", "")})) == 1
        assert verdicts.record(core).verdict is WRONG
    assert kept(path) == {RING: RIGHT, CORE: WRONG}


def test_reviewers_are_not_compared_over_different_objects(evaluation, path):
    ring, core = subject(evaluation, RING), subject(evaluation, CORE)
    with ReviewStore(path, reviewer="Ada") as ada, ReviewStore(path, reviewer="Bo") as bo:
        ada.give(ring, RIGHT)
        bo.give(core, WRONG)
        assert ada.agreement("Ada", "Bo").items == ()
        bo.give(ring, WRONG)
        found = ada.agreement("Ada", "Bo")
    assert [item.first.object_id for item in found.disagreements] == [1]
    adjudication = Adjudication(found)
    assert adjudication.item_of(ring) is not None
    assert adjudication.item_of(core) is None


def test_both_are_corrected_also_by_a_plan(evaluation, path):
    with ReviewStore(path, reviewer="Ada") as store:
        ring = store.give(subject(evaluation, RING), RIGHT)
        old = store.give_all([Judgement(subject(evaluation, CORE), WRONG, given_at=LONG_AGO)])[0]
    core = evaluation.outcomes.reference
    y, x = core.centroid_yx_px[core.row_of(2)].tolist()
    planned = PlannedVerdict(
        TEAM, "a", *CORE, "Nucleus", y, x, "Ada", RIGHT, note="", given_at=ring.given_at
    )
    of_plan, not_applied = records_of_plan(evaluation, [planned], "a")
    assert not_applied == []
    # The ring's verdict stays, and the older one on the core itself is replaced.
    newest = newest_of_each([ring, old], of_plan)
    found = decided(evaluation, newest, "a")
    assert {own.target: own.verdict for own in found.decisions} == {RING: RIGHT, CORE: RIGHT}
    assert (found.conflicts, found.not_applied) == ((), ())


@pytest.fixture(scope="module")
def contents(cohort, tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "review.html"
    return contents_of(write_small_package(page, cohort, 10))


def test_a_package_brings_both_and_reports_what_it_replaced(
    folder, evaluation, contents, path, tmp_path, capsys
):
    targets = {item.target: item for item in contents.items if item.region == "a"}
    core = next(item for target, item in targets.items() if (target.side, target.object_id) == CORE)
    square = next(item for target, item in targets.items() if target.object_id == 3)

    def imported(given):
        file = write_file(tmp_path / "verdicts.json", saved(contents, given))
        assert exit_status("import-verdicts", file, folder, "--review", path) == 0
        return capsys.readouterr().out

    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(evaluation, RING), RIGHT)  # later than the page's
        larger = grown(subject(evaluation, (Side.REFERENCE, 3)), 2)
        store.give_all([Judgement(larger, RIGHT, given_at=LONG_AGO)])
    assert "replaced" not in imported({core.item: WRONG})
    assert kept(path) == {RING: RIGHT, CORE: WRONG, (Side.REFERENCE, 3): RIGHT}
    assert f"look at them in the window: item {square.item}" in imported({square.item: TELL})
    assert kept(path) == {RING: RIGHT, CORE: WRONG, (Side.REFERENCE, 3): TELL}
