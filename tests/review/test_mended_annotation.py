"""The rows of what was mended in a window: what changed, and what was done to it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live import actions
from napari_panoptic.live.mends import Claim, Covered, Mend, MendAction
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.review.corrected_files import CorrectedAnnotation, Correction
from napari_panoptic.review.mended_annotation import DoneMend, mended_annotation
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Side, Status, Verdict

WHEN = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)


@pytest.fixture
def session(nuclei_sample: Path) -> Session:
    session = Session(open_cohort(nuclei_sample))
    session.set_team("merger")
    region = session.cohort.regions[0].name
    request = session.request(region_name=region, team_first=False)
    session.deliver(request, load_region(session.cohort, region, request.settings))
    return session


def of(session: Session, side: Side, status: Status, cause: Cause | None = None) -> list[int]:
    """Return the ids of objects with an outcome."""
    assert session.evaluation is not None
    own = session.evaluation.outcomes.side(side)
    chosen = own.status == STATUS_CODE[status]
    if cause is not None:
        chosen &= own.cause == CAUSE_CODE[cause]
    return own.ids[chosen].tolist()


class Window:
    """Mends a session, and keeps what is in effect."""

    def __init__(self, session: Session) -> None:
        self.session, self.done = session, []

    def do(self, mend: Mend, verdicts=None) -> DoneMend:
        assert not mend.changes_nothing
        self.session.apply(mend)
        region, team = self.session.snapshot.region.name, self.session.team
        self.done.append(DoneMend(region, team, mend, WHEN, "Ada", verdicts or {}))
        return self.done[-1]

    def undo(self, done: DoneMend) -> None:
        self.session.apply(done.mend.inverse)
        self.done.remove(done)

    def annotation(self) -> CorrectedAnnotation:
        [edited] = self.session.drawn_annotations()
        return mended_annotation(edited, self.done)

    def rows(self) -> dict[tuple[int | None, int | None], Correction]:
        found = self.annotation().corrections
        rows = {(own.mended.id_before, own.mended.id_after): own for own in found}
        assert len(rows) == len(found)
        return rows


def areas(session: Session) -> dict[int, int]:
    labels = session.evaluation.pair.reference
    counts = np.bincount(labels.index.ravel(), minlength=len(labels) + 1)[1:]
    return dict(zip(labels.ids.tolist(), counts.tolist(), strict=True))


def test_each_action_is_a_row_with_who_and_why(session: Session) -> None:
    window = Window(session)
    before = areas(session)
    missed = of(session, Side.REFERENCE, Status.FN)
    spurious = of(session, Side.PREDICTION, Status.FP)
    deleted = Side.REFERENCE, missed[0]
    window.do(actions.delete(session.evaluation, [deleted]), {deleted: Verdict.PREDICTION_RIGHT})
    accepted = Side.PREDICTION, spurious[0]
    window.do(
        actions.accept(
            session.evaluation, [accepted], claim=Claim.KEEP, covered=Covered.BESIDE, first_id=9000
        )
    )
    rows = window.rows()
    gone, new = rows[missed[0], None], rows[None, 9000]
    assert (gone.mended.action, gone.verdict) == (MendAction.DELETE, Verdict.PREDICTION_RIGHT)
    assert (gone.team, gone.reviewers, gone.at) == ("merger", ("Ada",), WHEN)
    assert (gone.mended.area_before_px, gone.mended.area_after_px) == (before[missed[0]], 0)
    assert (new.mended.action, new.mended.target, new.verdict) == (
        MendAction.ACCEPT,
        accepted,
        None,
    )
    assert new.mended.area_after_px == areas(session)[9000]
    assert len(rows) == 2


def test_what_was_undone_or_deleted_again_has_no_row(session: Session) -> None:
    window = Window(session)
    first, second = of(session, Side.REFERENCE, Status.FN)[:2]
    done = window.do(actions.delete(session.evaluation, [(Side.REFERENCE, first)]))
    window.do(actions.delete(session.evaluation, [(Side.REFERENCE, second)]))
    window.undo(done)
    fp = of(session, Side.PREDICTION, Status.FP)[0]
    window.do(
        actions.accept(
            session.evaluation,
            [(Side.PREDICTION, fp)],
            claim=Claim.KEEP,
            covered=Covered.BESIDE,
            first_id=9000,
        )
    )
    window.do(actions.delete(session.evaluation, [(Side.REFERENCE, 9000)]))
    assert list(window.rows()) == [(second, None)]


def test_merged_and_split_objects_name_each_other(session: Session) -> None:
    window = Window(session)
    ids = sorted(areas(session), key=areas(session).__getitem__)[:3]
    members = [(Side.REFERENCE, id_) for id_ in ids]
    window.do(actions.merge(session.evaluation, [members], claim=Claim.KEEP))
    rows = window.rows()
    assert set(rows) == {(id_, ids[-1]) for id_ in ids}
    assert {own.mended.action for own in rows.values()} == {MendAction.MERGE}
    assert rows[ids[0], ids[-1]].mended.target == (Side.REFERENCE, ids[0])
    part = actions.split(
        session.evaluation,
        [(Side.REFERENCE, of(session, Side.REFERENCE, Status.FN, Cause.MERGED)[0])],
    )
    assert part.not_done  # one object of the other side, or none, lies in it


def test_drawn_by_hand_is_known_from_the_pixels(session: Session) -> None:
    window = Window(session)
    reference = session.evaluation.pair.reference
    some, other, third = reference.ids[:3].tolist()
    y, x = np.nonzero(reference.id_image() == some)
    session.edit(Side.REFERENCE, y[:3], x[:3], 0)  # a stroke
    y, x = np.nonzero(reference.id_image() == other)
    session.edit(Side.REFERENCE, y, x, 0)
    names = session.cohort.scheme.names
    row = int(np.flatnonzero(reference.ids == third)[0])
    was = reference.class_names_of_objects()[row]
    now = next(name for name in names if name != was)
    session.set_class(Side.REFERENCE, third, now)
    rows = window.rows()
    assert {key: own.mended.action for key, own in rows.items()} == {
        (some, some): MendAction.DRAW,
        (other, None): MendAction.DELETE,
        (third, third): MendAction.RECLASSIFY,
    }
    assert (rows[third, third].mended.class_before, rows[third, third].mended.class_after) == (
        was,
        now,
    )
    assert all(own.at is None and own.reviewers == () for own in rows.values())


def test_objects_that_lost_pixels_are_no_rows_of_their_own(session: Session) -> None:
    window = Window(session)
    evaluation = session.evaluation
    wide = of(session, Side.PREDICTION, Status.FP, Cause.MERGER)
    mend = actions.accept(
        evaluation,
        [(Side.PREDICTION, id_) for id_ in wide],
        claim=Claim.TAKE,
        covered=Covered.BESIDE,
        first_id=9000,
    )
    assert mend.overwritten
    window.do(mend)
    assert all(before is None for before, _ in window.rows())


def test_an_area_that_was_marked_is_a_row(session: Session) -> None:
    window = Window(session)
    fp = of(session, Side.PREDICTION, Status.FP)[0]
    window.do(actions.mark_ambiguous(session.evaluation, [(Side.PREDICTION, fp)]))
    annotation = window.annotation()
    [row] = annotation.corrections
    assert (row.mended.action, row.mended.target) == (MendAction.AMBIGUOUS, (Side.PREDICTION, fp))
    # The annotated object of the same id is another one.
    assert (row.mended.id_after, row.mended.class_after, row.mended.area_after_px) == (None, "", 0)
    assert annotation.ambiguous is not None
    assert annotation.ambiguous.any()
