"""An object that is drawn again has its new class, and an edit that is undone is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.edits import IdWindow
from napari_panoptic.values.vocabulary import Side
from tests.support.edited_sessions import (
    check,
    classes_of,
    restore,
    session_in,
    shown_labels,
    square,
)

NEW = 9999


def window(id_: int) -> IdWindow:
    return IdWindow((30, 20), np.ones((6, 6), np.uint16), np.array([0, id_]))


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("as_window", [False, True])
def test_an_object_drawn_again_has_the_class_chosen_last(
    tmp_path: Path, side: Side, as_window: bool
) -> None:
    session = session_in(tmp_path)
    y, x = square(30, 20)
    before = shown_labels(session, side).id_image()[y, x]
    for name in ("Epithelial", "Macrophage"):
        if as_window:
            session.edit_window(side, window(NEW), classes={NEW: name})
        else:
            session.edit(side, y, x, NEW, classes={NEW: name})
        assert session.evaluation is not None
        objects = session.evaluation.objects.query(f"side == '{side}' and id == {NEW}")
        assert objects["class"].tolist() == [name]
        check(session)
        session.edit(side, y, x, before)
    assert not session.is_edited(side)


def test_a_class_is_for_objects_without_pixels_only(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    session.edit(Side.PREDICTION, *square(30, 20), NEW, classes={NEW: "Epithelial"})
    session.edit(Side.PREDICTION, *square(30, 24), NEW, classes={NEW: "Macrophage"})
    assert classes_of(shown_labels(session, Side.PREDICTION))[NEW] == "Epithelial"
    check(session)


def switch_team(session: Session) -> None:
    other = next(t.name for t in session.cohort.competing_teams if t.name != session.team)
    session.set_team(other)


def switch_team_there_and_back(session: Session) -> None:
    switch_team(session)
    switch_team(session)


def restore_otherwise(session: Session) -> None:
    restore(session, "border-dilated")


def restore_there_and_back(session: Session) -> None:
    restore(session, "border-dilated")
    restore(session, "border-removed")


@pytest.mark.parametrize(
    ("side", "between"),
    [
        (Side.REFERENCE, switch_team),
        *(
            (side, between)
            for side in Side
            for between in (switch_team_there_and_back, restore_otherwise, restore_there_and_back)
        ),
    ],
)
def test_an_object_erased_and_brought_back_is_no_edit(
    tmp_path: Path, side: Side, between: object
) -> None:
    session = session_in(tmp_path)
    labels = shown_labels(session, side)
    first, *_, last = classes_of(labels)
    for id_ in (first, last):
        y, x = np.nonzero(labels.id_image() == id_)
        session.edit(side, y, x, 0)
        assert session.is_edited(side)
    between(session)  # type: ignore[operator]
    check(session)
    assert session.is_edited(side)
    for id_ in (last, first):
        y, x = np.nonzero(labels.id_image() == id_)
        assert session.is_edited(side)
        session.edit(side, y, x, id_)  # its class is known
        check(session)
    assert not session.is_edited(side)
    assert session.original_evaluation() is None
