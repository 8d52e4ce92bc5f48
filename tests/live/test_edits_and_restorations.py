"""Edits use the masks that are shown, whatever restoration was chosen before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.live.session import Session
from napari_panoptic.values.vocabulary import Side
from tests.support.edited_sessions import check, restore, session_in, show, shown_labels, square

NEW = 9999
CLASSES = {NEW: "Lymphocyte"}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return session_in(tmp_path)


def paint_and_undo(session: Session, side: Side) -> None:
    y, x = square(30, 30)
    before = shown_labels(session, side).id_image()[y, x]
    session.edit(side, y, x, NEW, classes=CLASSES)
    session.edit(side, y, x, before)


def change_nothing(session: Session, side: Side) -> None:
    y, x = square(30, 30)
    session.edit(side, y, x, shown_labels(session, side).id_image()[y, x])


@pytest.mark.parametrize("idle_edit", [paint_and_undo, change_nothing])
@pytest.mark.parametrize("undone", list(Side))
@pytest.mark.parametrize("painted", list(Side))
def test_an_edit_uses_the_masks_that_are_shown(
    session: Session, idle_edit: object, undone: Side, painted: Side
) -> None:
    idle_edit(session, undone)  # type: ignore[operator]
    restore(session, "border-dilated")
    shown = shown_labels(session, Side.PREDICTION).id_image()
    session.edit(painted, *square(2, 2), NEW, classes=CLASSES)
    if painted is Side.PREDICTION:
        shown[square(2, 2)] = NEW
    np.testing.assert_array_equal(shown_labels(session, Side.PREDICTION).id_image(), shown)
    np.testing.assert_array_equal(session.edited_labels(Side.PREDICTION).id_image(), shown)
    check(session)


def test_a_redrawn_ambiguous_area_uses_the_masks_that_are_shown(
    session: Session,
) -> None:
    paint_and_undo(session, Side.PREDICTION)
    restore(session, "border-dilated")
    area = np.zeros(shown_labels(session, Side.REFERENCE).shape, bool)
    area[:10] = True
    session.set_ambiguous(area)
    check(session)


def test_edits_undone_under_another_restoration_show_its_masks(
    session: Session,
) -> None:
    y, x = square(30, 30)
    before = shown_labels(session, Side.PREDICTION).id_image()[y, x]
    session.edit(Side.PREDICTION, y, x, NEW, classes=CLASSES)
    restore(session, "border-dilated")
    check(session)
    heard: list[object] = []
    session.region_changed.connect(heard.append)
    session.edit(Side.PREDICTION, y, x, before)  # dilated masks are there again
    assert not session.is_edited(Side.PREDICTION)
    assert heard == [session.snapshot]  # for layers to show them
    check(session)


@pytest.mark.parametrize(
    ("seed", "steps"),
    [*((seed, 40) for seed in range(6)), pytest.param(6, 1000, marks=pytest.mark.long)],
)
def test_any_sequence_of_edits_equals_a_recount(session: Session, seed: int, steps: int) -> None:
    random = np.random.default_rng(seed)
    teams = [team.name for team in session.cohort.competing_teams]
    names = session.cohort.scheme.names
    strokes: list[tuple[Side, str, np.ndarray, np.ndarray, np.ndarray]] = []
    height, width = shown_labels(session, Side.REFERENCE).shape
    if seed % 2 == 0:
        show(session, settings=session.settings.replaced(zone_px=2))
    for _ in range(steps):
        side = list(Side)[random.integers(2)]
        kinds = ["paint", "paint", "undo", "undo", "restore", "team", "class", "zone"]
        action = random.choice(kinds)
        labels = shown_labels(session, side)
        if action == "paint":
            y, x = square(random.integers(height - 8), random.integers(width - 8), 8)
            strokes.append((side, str(session.team), y, x, labels.id_image()[y, x]))
            present = labels.ids.tolist()
            id_ = int(random.choice([0, 9001, 9002, *present]))
            session.edit(side, y, x, id_, classes={id_: str(random.choice(names))})
        elif action == "undo" and strokes:
            side, team, y, x, ids = strokes.pop()
            if side is Side.PREDICTION:
                session.set_team(team)
            known = dict.fromkeys(ids.tolist(), names[0])
            session.edit(side, y, x, ids, classes=known)
        elif action == "restore":
            restore(session, str(random.choice(["border-removed", "border-dilated"])))
        elif action == "zone" and seed % 3 == 0:
            zone_px = int(random.integers(5))
            show(session, settings=session.settings.replaced(zone_px=zone_px))
        elif action == "team":
            session.set_team(str(random.choice(teams)))
        elif action == "class" and (own := np.unique(labels.id_image())[1:]).size:
            session.set_class(side, int(random.choice(own)), str(random.choice(names)))
        check(session)
