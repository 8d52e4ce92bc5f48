""" "Edited" stayed set although everything was as on disk again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.live.session import Session
from napari_panoptic.values.vocabulary import Side
from tests.support.edited_sessions import (
    check,
    classes_of,
    restore,
    session_in,
    shown_labels,
)


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
def test_defect_26_an_object_erased_and_brought_back_is_no_edit(
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
