"""Many actions of every kind on a session, and as many undos, restore everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from napari_panoptic.explain.failure_groups import failure_groups
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live import actions
from napari_panoptic.live.draft import flattened
from napari_panoptic.live.mends import Claim, Covered, Mend, Target
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.nuclei.metrics import METRIC_NAMES
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import SIDES, Side, Verdict
from tests.support.small_cohort import CLASSES, write_cohort

DESCRIPTION = """
[classes]
Epithelial = [255, 0, 0]
Lymphocyte = [255, 255, 0]
Neutrophil = [0, 0, 255]
Macrophage = [0, 255, 0]

[files]
reference.labels = "reference/{region}.tif"
predictions.labels = "teams/{team}/{region}.tif"
"""
PER_SIDE, CELL = 6, 14


def write_scored_cohort(root: Path) -> Path:
    """Write two regions and two teams as label images, with classes and scores."""
    rng = np.random.default_rng(5)
    root.mkdir(parents=True)
    (root / "cohort.toml").write_text(DESCRIPTION, encoding="utf-8")
    for number in range(2):
        for folder in ("reference", "teams/alpha", "teams/beta"):
            image = _nuclei(rng, spoilt=folder != "reference")
            place = root / folder
            place.mkdir(parents=True, exist_ok=True)
            tifffile.imwrite(place / f"R_{number}.tif", image)
            lines = [
                f"{id_},{CLASSES[rng.integers(4) if rng.random() < 0.3 else 0]},{rng.random():.6f}"
                for id_ in np.unique(image[image > 0]).tolist()
            ]
            text = "\n".join(["id,class,score", *lines])
            (place / f"R_{number}.csv").write_text(text, encoding="utf-8")
    return root


def _nuclei(rng: np.random.Generator, *, spoilt: bool) -> NDArray[np.uint16]:
    """Draw ellipses on a grid; spoilt ones are shifted, cut, joined, missing or invented."""
    image = np.zeros((PER_SIDE * CELL, PER_SIDE * CELL + 5), np.uint16)
    ids = 7 * rng.permutation(PER_SIDE**2) + 3
    yy, xx = np.indices(image.shape)
    for number, id_ in enumerate(ids.tolist()):
        y, x = (np.array(divmod(number, PER_SIDE)) + 0.5) * CELL
        fate = rng.random() if spoilt else 1.0
        if fate < 0.1:
            continue
        if spoilt:
            y, x = np.array([y, x]) + rng.normal(0, 1.2, 2)
        a, b = rng.uniform(4, 7, 2) + (5 if fate < 0.2 else 0)
        own = ((yy - y) / a) ** 2 + ((xx - x) / b) ** 2 <= 1
        image[own & (image == 0)] = id_
        if fate > 0.8 and spoilt:
            image[(image == id_) & (xx > x)] = id_ + 1
    return image


@dataclass
class Step:
    """Something that was done in a region, for a team."""

    region: str
    team: str
    undo: Callable[[], object]
    redo: Callable[[], object]


class Walk:
    """Does all that can be undone, in any order, and undoes it."""

    def __init__(self, session: Session, seed: int) -> None:
        self.session, self.rng = session, np.random.default_rng(seed)
        self.done: list[Step] = []
        self.undone: list[Step] = []
        self.counts: Counter[str] = Counter()
        self._snapshots: dict[str, Any] = {}
        self._highest: Counter[tuple[str, Side, str]] = Counter()

    @property
    def place(self) -> tuple[str, str]:
        assert self.session.snapshot is not None
        return self.session.snapshot.region.name, str(self.session.team)

    @property
    def now(self) -> Evaluation:
        assert self.session.evaluation is not None
        return self.session.evaluation

    def show(self, region: str, team: str) -> None:
        session = self.session
        session.set_team(team)
        if session.snapshot is None or session.snapshot.region.name != region:
            request = session.request(region_name=region)
            if region not in self._snapshots:
                self._snapshots[region] = load_region(session.cohort, region, request.settings)
            assert session.deliver(request, self._snapshots[region])

    def show_another(self) -> None:
        cohort = self.session.cohort
        region = cohort.regions[self.rng.integers(2)].name
        self.show(region, str(self.rng.choice([team.name for team in cohort.competing_teams])))

    def new_id(self, side: Side) -> int:
        """Return an id that no object of a side has or had, as `LiveEdits.next_id` does."""
        region, team = self.place
        key = region, side, "" if side is Side.REFERENCE else team
        known = int(self.session.known_ids(side).max(initial=0))
        self._highest[key] = max(self._highest[key], known)
        return self._highest[key] + 1

    def chosen(self, most: int) -> list[Target]:
        """Choose objects of one side, now and then of both."""
        sides = SIDES if not self.rng.integers(4) else (SIDES[self.rng.integers(2)],)
        every = [(side, int(id_)) for side in sides for id_ in self.now.outcomes.side(side).ids]
        return [every[k] for k in self.rng.permutation(len(every))[: self.rng.integers(1, most)]]

    def all_of(self, side: Side) -> list[Target]:
        return [(side, int(id_)) for id_ in self.now.outcomes.side(side).ids]

    def mended(self, kind: str) -> Mend:
        rng, now = self.rng, flattened(self.now)
        targets, side = self.chosen(4), SIDES[rng.integers(2)]
        claim, covered = list(Claim)[rng.integers(2)], list(Covered)[rng.integers(3)]
        first = self.new_id(Side.REFERENCE)
        match kind:
            case "accept":
                return actions.accept(now, targets, claim=claim, covered=covered, first_id=first)
            case "delete":
                return actions.delete(now, targets[:1])
            case "merge":
                groups = failure_groups(now)
                sets = [[own for own in targets if own[0] is side] for side in SIDES]
                if groups and rng.integers(2):
                    group = groups[int(rng.integers(len(groups)))]
                    sets = [actions.objects_to_merge(group, now)]
                return actions.merge(now, sets, claim=claim)
            case "split":
                return actions.split(now, self.all_of(side), first_id=self.new_id(side))
            case "take class":
                return actions.take_class(now, self.all_of(side)[:9])
            case "mark ambiguous":
                return actions.mark_ambiguous(now, targets[:1])
        verdicts = {target: list(Verdict)[rng.integers(4)] for target in targets}
        return actions.mend_of_verdicts(now, verdicts, claim=claim, covered=covered, first_id=first)

    def mend(self, kind: str) -> bool:
        mend = self.mended(kind)
        if mend.changes_nothing:
            return False
        apply = self.session.apply
        apply(mend)
        self.note(lambda: apply(mend.inverse), lambda: apply(mend))
        return True

    def stroke(self) -> bool:
        """Paint a rectangle with an object, a new one or the background."""
        session, side = self.session, SIDES[self.rng.integers(2)]
        labels = flattened(self.now).pair.side(side)
        height, width = self.rng.integers(1, 9, 2)
        y, x = (int(self.rng.integers(0, n - 8)) for n in labels.shape)
        ys, xs = (axis.ravel() for axis in np.mgrid[y : y + height, x : x + width])
        ids = [0, self.new_id(side), *labels.ids.tolist()]
        id_ = int(ids[self.rng.integers(min(len(ids), 3))])
        before = labels.id_image()[ys, xs]
        if (before == id_).all():
            return False
        names = {id_: CLASSES[self.rng.integers(4)]} if id_ == ids[1] else {}
        classes = dict(zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True))
        was = {i: str(classes[i]) for i in np.unique(before).tolist() if i}

        def paint(wanted: Any, named: dict[int, str]) -> None:
            session.edit(side, ys, xs, wanted, classes=named)

        paint(id_, names)
        self.note(lambda: paint(before, was), lambda: paint(id_, names))
        return True

    def class_change(self) -> bool:
        session, side = self.session, SIDES[self.rng.integers(2)]
        labels = flattened(self.now).pair.side(side)
        if not len(labels):
            return False
        row = int(self.rng.integers(len(labels)))
        id_, was = int(labels.ids[row]), str(labels.class_names_of_objects()[row])
        name = next(own for own in self.rng.permutation(CLASSES).tolist() if own != was)
        session.set_class(side, id_, name)
        self.note(
            lambda: session.set_class(side, id_, was), lambda: session.set_class(side, id_, name)
        )
        return True

    def area(self) -> bool:
        """Redraw the ambiguous area, with a rectangle more or less."""
        session = self.session
        before, shape = self.now.pair.ambiguous, self.now.pair.reference.shape
        after = np.zeros(shape, bool) if before is None else before.copy()
        y, x = (int(self.rng.integers(0, n - 6)) for n in shape)
        after[y : y + 6, x : x + 6] = self.rng.integers(3) == 0
        session.set_ambiguous(after)
        self.note(lambda: session.set_ambiguous(before), lambda: session.set_ambiguous(after))
        return True

    def note(self, undo: Callable[[], object], redo: Callable[[], object]) -> None:
        self.done.append(Step(*self.place, undo, redo))
        self.undone.clear()

    def act(self) -> None:
        """Do something; what changes nothing is tried in another way."""
        mends = ("accept", "delete", "merge", "split", "take class", "mark ambiguous", "verdict")
        others = {"stroke": self.stroke, "class": self.class_change, "area": self.area}
        is_done = False
        while not is_done:
            if self.rng.random() < 0.05:
                self.show_another()
            kind = str(self.rng.choice([*mends, *others]))
            is_done = others[kind]() if kind in others else self.mend(kind)
        self.counts[kind] += 1

    def undo(self, *, redo: bool = False) -> None:
        taken, given = (self.undone, self.done) if redo else (self.done, self.undone)
        step = taken.pop()
        self.show(step.region, step.team)
        (step.redo if redo else step.undo)()
        given.append(step)

    def check_figures(self) -> None:
        """Check that figures equal those of a fresh evaluation of the pixels, bit for bit."""
        shown = self.now
        if shown.pair.has_planes:
            return  # nothing is edited
        sides = [
            LabelImage.from_array(
                labels.id_image().astype(np.int32),
                dict(zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True)),
                labels.class_names,
            )
            for labels in (shown.pair.side(side) for side in SIDES)
        ]
        pair = LabelPair(sides[0], sides[1], shown.pair.ambiguous, shown.pair.mpp)
        fresh = evaluate(pair, self.session.settings.replaced(overlaps=Overlaps.FLATTEN))
        columns = [name for name in shown.objects.columns if name != "score"]
        assert shown.objects[columns].equals(fresh.objects[columns])
        assert shown.by_class.equals(fresh.by_class)
        assert shown.confusion.equals(fresh.confusion)
        assert [shown.metrics[name].hex() for name in METRIC_NAMES] == [
            fresh.metrics[name].hex() for name in METRIC_NAMES
        ]


def everything(walk: Walk) -> list[Any]:
    """Return pixels, ids, classes, scores, area and figures of two regions and all teams."""
    found: list[Any] = []
    for region in walk.session.cohort.regions[:2]:
        for team in walk.session.cohort.competing_teams:
            walk.show(region.name, team.name)
            now = walk.now
            for side in SIDES:
                labels = now.pair.side(side)
                found += [labels.id_image().tobytes(), labels.ids.tolist()]
                found += [labels.class_names_of_objects().tolist(), labels.scores.tobytes()]
            area = now.pair.ambiguous
            found.append(None if area is None else area.tobytes())
            found += [now.objects.to_csv(), now.by_class.to_csv(), now.confusion.to_csv()]
            found += [now.metrics[name].hex() for name in METRIC_NAMES]
    return found


def walk_there_and_back(session: Session, n_actions: int, seed: int) -> Walk:
    """Do a number of actions with undos and redos between them, and undo all that is left."""
    walk = Walk(session, seed)
    before = everything(walk)
    while sum(walk.counts.values()) < n_actions:
        chance = walk.rng.random()
        if chance < 0.2 and walk.undone:
            walk.undo(redo=True)
        elif chance < 0.45 and walk.done:
            walk.undo()
        elif chance < 0.46:
            for _ in range(walk.rng.integers(len(walk.done) + 1)):
                walk.undo()
        else:
            walk.act()
        if walk.rng.random() < 0.04:
            walk.check_figures()
    while walk.done:
        walk.undo()
    walk.check_figures()
    assert not session.has_any_edits
    assert everything(walk) == before
    return walk


@pytest.mark.parametrize("n_actions", [200, pytest.param(1500, marks=pytest.mark.long)])
def test_undos_restore_all_pixels_classes_scores_and_figures(
    tmp_path: Path, n_actions: int
) -> None:
    session = Session(open_cohort(write_scored_cohort(tmp_path / "cohort")))
    walk = walk_there_and_back(session, n_actions, seed=1)
    assert len(walk.counts) == 10
    assert min(walk.counts.values()) > n_actions // 100


@pytest.mark.parametrize("overlaps", list(Overlaps))
def test_undos_restore_objects_that_share_pixels(tmp_path: Path, overlaps: Overlaps) -> None:
    cohort = open_cohort(write_cohort(tmp_path / "cohort"))
    session = Session(cohort)
    session.request(settings=session.settings.replaced(overlaps=overlaps))
    walk_there_and_back(session, 200, seed=2)
