"""Editing through the session: originals stay, every figure follows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_panoptic.common.errors import LabelError, PanopticError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Selection, Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.live.working_copies import RegionCopies
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.values.cohort import Region
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from tests.support.edited_sessions import session_in, show, square
from tests.support.small_cohort import write_cohort


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return session_in(tmp_path)


def evaluation_of(session: Session) -> Evaluation:
    assert session.evaluation is not None
    return session.evaluation


def from_scratch(session: Session) -> Evaluation:
    snapshot = session.snapshot
    assert snapshot is not None
    sides = []
    for side in Side:
        labels = session.edited_labels(side)
        names = dict(zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True))
        sides.append(LabelImage.from_array(labels.id_image(), names, labels.class_names))
    pair = LabelPair(sides[0], sides[1], snapshot.ambiguous, snapshot.mpp)
    return evaluate(pair, session.settings)


@pytest.mark.parametrize("side", list(Side))
def test_a_copy_whose_edits_were_undone_is_none_any_more(session: Session, side: Side) -> None:
    before, snapshot = evaluation_of(session), session.snapshot
    assert snapshot is not None
    heard: list[None] = []
    session.copies_changed.connect(lambda: heard.append(None))
    ids = session.edited_labels(side).id_image()
    first, second = square(5, 5), square(20, 8)
    kept = [ids[y, x] for y, x in (first, second)]
    session.edit(side, *first, 9999, classes={9999: "Lymphocyte"})
    session.edit(side, *second, 0)
    assert len(evaluation_of(session).objects) != len(before.objects) or side is Side.PREDICTION
    session.edit(side, *second, kept[1])
    assert session.is_edited(side)
    assert len(heard) == 1
    session.edit(side, *first, kept[0])
    assert not session.is_edited(side)
    assert not session.has_edits(snapshot.region.name)
    assert len(heard) == 2
    assert evaluation_of(session) is before
    assert session.snapshot is not None
    assert session.snapshot.evaluations == snapshot.evaluations  # those of the other teams, too
    assert session.snapshot.reference is snapshot.reference
    # Redone, it is a copy again; done by hand in other pieces, it is none again.
    session.edit(side, *first, 9999)
    assert session.is_edited(side)
    for part in (slice(0, 10), slice(10, None)):
        assert session.is_edited(side)
        session.edit(side, first[0][part], first[1][part], kept[0][part])
    assert not session.is_edited(side)


def test_what_was_not_undone_keeps_a_copy(session: Session) -> None:
    ids = session.edited_labels(Side.REFERENCE).id_image()
    id_ = int(ids.max())
    name = session.edited_labels(Side.REFERENCE).class_names_of_objects()[-1]
    other = next(n for n in session.cohort.scheme.names if n != name)
    y, x = square(5, 5)
    session.edit(Side.PREDICTION, y, x, 9999, classes={9999: "Lymphocyte"})
    session.set_class(Side.REFERENCE, id_, other)
    session.edit(Side.REFERENCE, y, x, 9999, classes={9999: "Lymphocyte"})
    session.edit(Side.REFERENCE, y, x, ids[y, x])
    assert session.is_edited(Side.REFERENCE)  # by its class
    session.set_class(Side.REFERENCE, id_, name)
    assert not session.is_edited(Side.REFERENCE)
    assert session.is_edited(Side.PREDICTION)
    assert evaluation_of(session).objects.equals(from_scratch(session).objects)


def test_an_ambiguous_area_drawn_back_is_none_of_its_own(session: Session) -> None:
    assert session.snapshot is not None
    name, before = session.snapshot.region.name, session.snapshot.ambiguous
    area = np.zeros(session.snapshot.shape, bool)
    area[:3] = True
    session.set_ambiguous(area)
    assert session.has_edits(name)
    assert session.is_area_drawn
    session.set_ambiguous(before)
    assert not session.has_edits(name)


def test_figures_follow_an_edit_and_its_undo(session: Session) -> None:
    before = evaluation_of(session)
    assert session.loaded is not None
    original = session.loaded.predictions[session.team or ""].index.copy()
    y, x = square(5, 5)
    old = session.edited_labels(Side.PREDICTION).id_image()[y, x]
    heard: list[Any] = []
    session.edited.connect(heard.append)

    result = session.edit(Side.PREDICTION, y, x, 9999, classes={9999: "Lymphocyte"})
    assert heard == [result]
    assert session.is_edited(Side.PREDICTION)
    assert not session.is_edited(Side.REFERENCE)
    assert evaluation_of(session).objects.equals(from_scratch(session).objects)
    assert 9999 in evaluation_of(session).outcomes.prediction.ids
    np.testing.assert_array_equal(session.loaded.predictions[session.team or ""].index, original)

    session.edit(Side.PREDICTION, y, x, old)
    assert evaluation_of(session).objects.equals(before.objects)
    assert session.original_evaluation() is None  # there is nothing to compare any more


def test_an_edited_reference_counts_for_every_team(session: Session) -> None:
    y, x = square(2, 3, 9)
    session.edit(Side.REFERENCE, y, x, 0)
    for team in session.cohort.competing_teams:
        session.set_team(team.name)
        assert session.is_edited(Side.REFERENCE)
        assert evaluation_of(session).objects.equals(from_scratch(session).objects)
        reference = session.edited_labels(Side.REFERENCE).id_image()
        assert not reference[y, x].any()


def test_an_erased_object_keeps_its_class_for_every_team(session: Session) -> None:
    before = session.edited_labels(Side.REFERENCE)
    id_ = int(before.ids[0])
    y, x = np.nonzero(before.index == 1)
    session.edit(Side.REFERENCE, y, x, 0)
    assert id_ in session.known_ids(Side.REFERENCE)
    assert id_ not in session.edited_labels(Side.REFERENCE).ids
    session.set_team(next(n for n in session.cohort.team_names if n != session.team))
    session.edit(Side.PREDICTION, *square(5, 5), 9999, classes={9999: "Lymphocyte"})
    session.edit(Side.REFERENCE, y, x, id_)
    assert not session.is_edited(Side.REFERENCE)
    assert evaluation_of(session).objects.equals(from_scratch(session).objects)
    after = session.edited_labels(Side.REFERENCE)
    np.testing.assert_array_equal(after.class_index, before.class_index)


def test_edits_outlive_changed_settings_regions_and_restoration(session: Session) -> None:
    region = session.snapshot.region.name if session.snapshot else ""
    y, x = square(4, 4, 10)
    session.edit(Side.REFERENCE, y, x, 0)
    session.edit(Side.PREDICTION, y[:40], x[:40], 777, classes={777: "Epithelial"})
    for change in ({"ambiguous": "keep"}, {"matching": "centroid"}, {"iou_threshold": 0.3}):
        show(session, settings=session.settings.replaced(**change))
        assert evaluation_of(session).settings == session.settings
        assert evaluation_of(session).objects.equals(from_scratch(session).objects)
    show(session, region_name=session.cohort.regions[1].name)
    assert not session.is_edited(Side.REFERENCE)
    show(session, region_name=region)
    assert session.is_edited(Side.PREDICTION)
    assert evaluation_of(session).objects.equals(from_scratch(session).objects)
    show(session, settings=session.settings.replaced(restoration="border-dilated"))
    for team in session.cohort.competing_teams:
        session.set_team(team.name)
        assert evaluation_of(session).objects.equals(from_scratch(session).objects)


def test_a_copy_follows_an_annotation_that_is_restored_in_another_way() -> None:
    settings = EvaluationSettings(distances=False)
    small, large = one_square(5), one_square(7)
    masks = {"edited": small, "seen": small}
    before = RegionSnapshot(Region("r", "p", None, None), small.shape, None, settings)
    before = replace(before, reference=small, predictions=masks)
    copies = RegionCopies(before)
    place = np.array([11])
    side, classes = Side.PREDICTION, {5: "Epithelial"}
    copies.edit(
        "edited",
        side,
        lambda live: live.set_pixels(side, place, place, 5, classes=classes),
        (place, place),
    )
    copies.evaluate("seen", settings)
    copies.follow(replace(before, reference=large))
    for team, drawn in (("edited", 1), ("seen", 0)):
        found = copies.evaluate(team, settings)
        assert found.pair.reference.index.sum() == large.index.sum()
        np.testing.assert_array_equal(found.outcomes.reference.iou, [25 / 49])
        assert len(found.outcomes.prediction.ids) == 1 + drawn


def one_square(size: int) -> LabelImage:
    image = np.zeros((12, 12), np.int32)
    image[2 : 2 + size, 2 : 2 + size] = 1
    return LabelImage.from_array(image, {1: "Epithelial"}, ("Epithelial",))


def test_discarding_restores_the_files(session: Session) -> None:
    before = evaluation_of(session).objects
    y, x = square(3, 3, 12)
    session.edit(Side.REFERENCE, y, x, 0)
    assert not evaluation_of(session).objects.equals(before)
    session.discard_edits()
    assert not session.is_edited(Side.REFERENCE)
    assert evaluation_of(session).objects.equals(before)
    assert session.original_evaluation() is None


def test_redrawing_the_ambiguous_area(session: Session) -> None:
    assert session.snapshot is not None
    mask = np.zeros(session.snapshot.shape, bool)
    mask[:, : mask.shape[1] // 2] = True
    session.set_ambiguous(mask)
    assert evaluation_of(session).objects.equals(from_scratch(session).objects)
    session.set_ambiguous(None)
    assert evaluation_of(session).objects.equals(from_scratch(session).objects)


def test_another_class_for_one_object(session: Session) -> None:
    id_ = int(evaluation_of(session).outcomes.prediction.ids[0])
    session.set_class(Side.PREDICTION, id_, "Macrophage")
    assert evaluation_of(session).objects.equals(from_scratch(session).objects)
    changed = evaluation_of(session).objects.query("side == 'prediction' and id == @id_")
    assert changed["class"].tolist() == ["Macrophage"]


def test_the_selected_object_stays_selected_until_it_is_erased(session: Session) -> None:
    outcomes = evaluation_of(session).outcomes.prediction
    session.select_row(Side.PREDICTION, len(outcomes) - 1)
    chosen = session.selection
    assert chosen is not None
    session.edit(Side.PREDICTION, *square(0, 0, 3), 5000, classes={5000: "Epithelial"})
    assert isinstance(session.selection, Selection)
    assert session.selection.id == chosen.id
    y, x = np.nonzero(session.edited_labels(Side.PREDICTION).id_image() == chosen.id)
    heard: list[Any] = []
    session.selection_changed.connect(heard.append)
    session.edit(Side.PREDICTION, y, x, 0)
    assert session.selection is None
    assert heard == [None]


def test_a_refused_edit_leaves_no_copy(session: Session) -> None:
    with pytest.raises(LabelError, match="a new object needs a class"):
        session.edit(Side.PREDICTION, *square(0, 0), 4242)
    assert not session.is_edited(Side.PREDICTION)
    assert session.original_evaluation() is None


def test_nothing_to_edit_is_said(tmp_path: Path) -> None:
    session = Session(open_cohort(write_cohort(tmp_path)))
    with pytest.raises(PanopticError, match="nothing to edit"):
        session.edit(Side.PREDICTION, *square(0, 0), 1)


def test_rows_are_found_by_pixel_while_editing(session: Session) -> None:
    session.edit(Side.PREDICTION, *square(1, 1, 4), 8888, classes={8888: "Neutrophil"})
    snapshot = session.snapshot
    assert snapshot is not None
    row = snapshot.row_at(Side.PREDICTION, session.team, 2, 2)
    assert row is not None
    assert evaluation_of(session).outcomes.prediction.ids[row] == 8888
    session.edit(Side.PREDICTION, *square(1, 1, 4), 0)
    snapshot = session.snapshot
    assert snapshot is not None
    assert snapshot.row_at(Side.PREDICTION, session.team, 2, 2) is None


def test_a_team_without_a_prediction_has_nothing_to_edit() -> None:
    settings = EvaluationSettings(distances=False)
    objects = one_square(5)
    region = RegionSnapshot(Region("r", "p", None, None), objects.shape, None, settings)
    copies = RegionCopies(replace(region, reference=objects))
    for ask in (copies.known_ids, copies.labels):
        with pytest.raises(PanopticError, match="has no prediction here"):
            ask(Side.PREDICTION, "nobody")
