"""Any sequence of what users do to a session, against images that are written by hand.

The model knows nothing of copies, tables or windows: it keeps one image of ids and one class per
id for each edited side, and evaluates from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.edits import IdWindow
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import Side
from tests.support.edited_sessions import classes_of, show
from tests.support.small_cohort import CLASSES

Key = tuple[str, str | None]
"""Region, and the team of a prediction or None for the annotation."""
REGIONS = 2
STEPS = 12
SETTINGS = (
    {"ambiguous": "keep"},
    {"ambiguous": "clip"},
    {"restoration": "border-dilated"},
    {"restoration": "border-removed"},
    {"iou_threshold": 0.3},
    {"overlaps": "keep"},
    {"overlaps": "flatten"},
)


@dataclass(eq=False)
class Objects:
    """An image of ids (y, x), and the class of each id, those without pixels included."""

    ids: NDArray[np.int64]
    classes: dict[int, str]

    @classmethod
    def of(cls, labels: LabelImage) -> Objects:
        flat = labels.with_overlaps(Overlaps.FLATTEN)
        return cls(flat.id_image().astype(np.int64), classes_of(flat))

    def copy(self) -> Objects:
        return Objects(self.ids.copy(), dict(self.classes))

    @property
    def present(self) -> dict[int, str]:
        return {id_: self.classes[id_] for id_ in np.unique(self.ids).tolist() if id_}

    def is_same(self, other: Objects) -> bool:
        return np.array_equal(self.ids, other.ids) and self.present == other.present


@dataclass(eq=False)
class Model:
    """What was drawn: the sides that differ from their files, and what they were copied from."""

    drawn: dict[Key, Objects] = field(default_factory=dict)
    copied_from: dict[Key, Objects] = field(default_factory=dict)
    own: set[Key] = field(default_factory=set)
    areas: dict[str, NDArray[np.bool_] | None] = field(default_factory=dict)
    own_areas: set[str] = field(default_factory=set)

    def objects(self, session: Session, key: Key) -> Objects:
        return self.drawn[key] if key in self.drawn else on_disk(session, key[1])

    def change(self, session: Session, key: Key, changed: Objects, *, is_mirrored: bool) -> None:
        base = self.copied_from.setdefault(key, on_disk(session, key[1]))
        if not is_mirrored:
            self.own.add(key)
        if changed.is_same(base):
            self.drawn.pop(key, None)
            del self.copied_from[key]
        else:
            self.drawn[key] = changed

    def discard(self, region: str) -> None:
        for kept in (self.drawn, self.copied_from):
            for key in [key for key in kept if key[0] == region]:
                del kept[key]
        self.own = {key for key in self.own if key[0] != region}
        self.areas.pop(region, None)
        self.own_areas.discard(region)


def on_disk(session: Session, team: str | None) -> Objects:
    assert session.loaded is not None
    labels = session.loaded.reference if team is None else session.loaded.predictions[team]
    assert labels is not None
    return Objects.of(labels)


def key_of(session: Session, side: Side, team: str | None = None) -> Key:
    assert session.loaded is not None
    name = session.loaded.region.name
    return name, None if side is Side.REFERENCE else team or session.team


def area_of(session: Session, model: Model) -> NDArray[np.bool_] | None:
    assert session.loaded is not None
    return model.areas.get(session.loaded.region.name, session.loaded.ambiguous)


def has_edits(model: Model, region: str) -> bool:
    return region in model.areas or any(key[0] == region for key in model.drawn)


def expected_of(session: Session, model: Model) -> Evaluation:
    """Evaluate what the model has of the shown region and team."""
    sides = []
    for side in Side:
        found = model.objects(session, key_of(session, side))
        sides.append(LabelImage.from_array(found.ids.astype(np.int32), found.present, CLASSES))
    assert session.loaded is not None
    pair = LabelPair(sides[0], sides[1], area_of(session, model), session.loaded.mpp)
    return evaluate(pair, session.settings.replaced(overlaps=Overlaps.FLATTEN))


def check(session: Session, model: Model) -> None:
    assert session.loaded is not None
    assert session.snapshot is not None
    region = session.loaded.region.name
    edited = has_edits(model, region)
    assert session.has_edits(region) == edited
    assert session.is_flattened == (edited and session.loaded.keeps_overlaps)
    assert session.is_area_drawn == (region in model.areas and region in model.own_areas)
    for side in Side:
        key = key_of(session, side)
        assert session.is_edited(side) == (key in model.drawn)
        assert session.is_drawn(side) == (key in model.drawn and key in model.own)
        wanted = model.objects(session, key)
        saved = session.edited_labels(side)
        assert Objects.of(saved).is_same(wanted)
        assert set(wanted.present) <= set(session.known_ids(side).tolist())
    if not edited and session.settings.overlaps is Overlaps.KEEP:
        assert session.evaluation is session.loaded.evaluations[str(session.team)]
        return
    now, expected = session.evaluation, expected_of(session, model)
    assert now is not None
    columns = [name for name in now.objects.columns if name != "score"]
    assert now.objects[columns].equals(expected.objects[columns])
    assert now.by_class.equals(expected.by_class)
    assert now.confusion.equals(expected.confusion)
    if edited:
        before = session.original_evaluation()
        on_files = expected_of(session, Model())
        assert before is not None
        assert before.objects[columns].equals(on_files.objects[columns])
    else:
        assert session.original_evaluation() is None


class Walk:
    """Random steps through a session, each repeated on the model."""

    def __init__(self, cohort: Cohort, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.session = Session(cohort)
        self.model = Model()
        self.strokes: list[tuple[Key, Side, Any, NDArray[np.int64]]] = []
        show(self.session)

    def side(self) -> Side:
        return list(Side)[self.rng.integers(2)]

    def box(self, shape: tuple[int, int]) -> tuple[slice, slice]:
        height, width = self.rng.integers(1, 12, 2)
        y, x = self.rng.integers(0, shape[0] - height), self.rng.integers(0, shape[1] - width)
        return slice(int(y), int(y + height)), slice(int(x), int(x + width))

    def an_id(self, objects: Objects) -> int:
        """Choose the background, an object, one that was erased, or a new one."""
        known = [0, *objects.classes, int(self.rng.integers(1, 40)), 900]
        return int(known[self.rng.integers(len(known))])

    def named(self, objects: Objects, ids: list[int]) -> dict[int, str]:
        """Choose classes of new ids, and of some that have no pixel."""
        present = objects.present
        return {
            id_: CLASSES[self.rng.integers(len(CLASSES))]
            for id_ in ids
            if id_ and (id_ not in objects.classes or (id_ not in present and id_ % 2))
        }

    def stroke(self) -> None:
        side = self.side()
        key = key_of(self.session, side)
        before = self.model.objects(self.session, key)
        after, box = before.copy(), self.box(before.ids.shape)
        y, x = (axis.ravel() for axis in np.mgrid[box])
        id_ = self.an_id(before)
        names = self.named(before, [id_])
        self.strokes.append((key, side, (y, x), before.ids[y, x]))
        after.ids[y, x] = id_
        after.classes |= names
        self.session.edit(side, y, x, id_, classes=names)
        self.model.change(self.session, key, after, is_mirrored=False)

    def undo(self) -> None:
        """Write back what was there before strokes of this region, the last first."""
        for _ in range(int(self.rng.integers(1, 4))):
            if not self.strokes or self.strokes[-1][0][0] != self.name:
                return
            key, side, (y, x), ids = self.strokes.pop()
            if key != key_of(self.session, side):
                return
            before = self.model.objects(self.session, key)
            after = before.copy()
            after.ids[y, x] = ids
            names = self.named(before, [int(id_) for id_ in np.unique(ids)])
            # A class that was erased with its object comes back with it.
            names |= {i: before.classes[i] for i in np.unique(ids).tolist() if i in before.classes}
            after.classes |= {i: n for i, n in names.items() if i not in before.present}
            self.session.edit(side, y, x, ids, classes=names)
            self.model.change(self.session, key, after, is_mirrored=False)

    @property
    def name(self) -> str:
        assert self.session.loaded is not None
        return self.session.loaded.region.name

    def window(self) -> None:
        side = self.side()
        team = str(self.rng.choice([team.name for team in self.session.cohort.competing_teams]))
        is_mirrored = bool(self.rng.integers(2))
        key = key_of(self.session, side, team if is_mirrored else None)
        before = self.model.objects(self.session, key)
        after, box = before.copy(), self.box(before.ids.shape)
        ids = np.array([0, *[self.an_id(before) for _ in range(3)]])
        ids = np.unique(ids)
        numbers = self.rng.integers(0, len(ids), before.ids[box].shape).astype(np.uint16)
        names = self.named(before, np.unique(ids[numbers]).tolist())
        after.ids[box] = ids[numbers]
        after.classes |= names
        window = IdWindow((box[0].start, box[1].start), numbers, ids)
        if is_mirrored:
            self.session.mirror_window(side, window, team=team, classes=names)
            self.session.evaluate_edited()
        else:
            self.session.edit_window(side, window, classes=names)
        self.model.change(self.session, key, after, is_mirrored=is_mirrored)

    def recolour(self) -> None:
        side = self.side()
        key = key_of(self.session, side)
        after = self.model.objects(self.session, key).copy()
        if not after.present:
            return
        id_ = int(self.rng.choice(list(after.present)))
        after.classes[id_] = CLASSES[self.rng.integers(len(CLASSES))]
        self.session.set_class(side, id_, after.classes[id_])
        self.model.change(self.session, key, after, is_mirrored=False)

    def area(self) -> None:
        assert self.session.loaded is not None
        before = self.session.loaded.ambiguous
        area = None if before is None else before.copy()
        if self.rng.integers(3):
            area = np.zeros(self.session.loaded.shape, bool) if area is None else area
            area[self.box(area.shape)] = bool(self.rng.integers(2))
        is_mirrored = bool(self.rng.integers(2))
        self.session.set_ambiguous(area, is_mirrored=is_mirrored)
        if not is_mirrored:
            self.model.own_areas.add(self.name)
        if np.array_equal(
            *(np.zeros(1) if a is None or not a.any() else a for a in (area, before))
        ):
            self.model.areas.pop(self.name, None)
        else:
            self.model.areas[self.name] = area

    def team(self) -> None:
        names = [team.name for team in self.session.cohort.competing_teams]
        self.session.set_team(str(self.rng.choice(names)))

    def region(self) -> None:
        names = [region.name for region in self.session.cohort.regions[:REGIONS]]
        show(self.session, region_name=str(self.rng.choice(names)))

    def settings(self) -> None:
        change = SETTINGS[self.rng.integers(len(SETTINGS))]
        show(self.session, settings=self.session.settings.replaced(**change))

    def discard(self) -> None:
        self.session.discard_edits()
        self.model.discard(self.name)

    def others(self) -> None:
        self.session.evaluate_edited()
        assert self.session.snapshot is not None
        assert set(self.session.snapshot.evaluations) == set(self.session.snapshot.predictions)

    def refused(self) -> None:
        with pytest.raises(PanopticError, match="a new object needs a class"):
            self.session.edit(self.side(), np.array([0]), np.array([0]), 4242)

    def step(self) -> None:
        steps = [self.stroke] * 5 + [self.undo] * 4 + [self.window] * 3 + [self.team] * 2
        steps += [self.recolour, self.area, self.region, self.settings, self.discard]
        steps += [self.others, self.refused]
        steps[self.rng.integers(len(steps))]()
        check(self.session, self.model)


@pytest.mark.parametrize("seed", range(12))
def test_a_session_shows_what_was_done_to_it(small_cohort: Cohort, seed: int) -> None:
    walk = Walk(small_cohort, seed)
    for _ in range(STEPS):
        walk.step()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12, 52))
def test_a_session_shows_what_was_done_to_it_in_any_order(small_cohort: Cohort, seed: int) -> None:
    walk = Walk(small_cohort, seed)
    for _ in range(2 * STEPS):
        walk.step()
