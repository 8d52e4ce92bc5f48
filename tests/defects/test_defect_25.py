"""An object that was drawn, undone, and drawn again with another class kept the first class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.nuclei.edits import IdWindow
from napari_panoptic.values.vocabulary import Side
from tests.support.edited_sessions import check, classes_of, session_in, shown_labels, square

NEW = 9999


def window(id_: int) -> IdWindow:
    return IdWindow((30, 20), np.ones((6, 6), np.uint16), np.array([0, id_]))


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("as_window", [False, True])
def test_defect_25_an_object_drawn_again_has_the_class_chosen_last(
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


def test_defect_25_a_class_is_for_objects_without_pixels_only(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    session.edit(Side.PREDICTION, *square(30, 20), NEW, classes={NEW: "Epithelial"})
    session.edit(Side.PREDICTION, *square(30, 24), NEW, classes={NEW: "Macrophage"})
    assert classes_of(shown_labels(session, Side.PREDICTION))[NEW] == "Epithelial"
    check(session)
