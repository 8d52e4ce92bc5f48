"""The figures of published evaluation codes for one region, by loops over sets of pixels.

Only the words of `napari_panoptic.values.conventions` are shared with the package. What is tied
(equal IoUs, equal distances) is decided in the order in which objects are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import dist, nan
from typing import Any

import numpy as np
from scipy.ndimage import label
from scipy.optimize import linear_sum_assignment

Pixels = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Thing:
    """An object: its number and class, the pixels that it is left, and those that count."""

    id: int
    cls: str
    kept: Pixels
    seen: Pixels
    #: Whether it is ignored unless it is in a pair.
    ignored: bool


@dataclass
class Counts:
    """Sums over the objects of a class, or of all."""

    had_reference: bool
    had_prediction: bool
    tp: float = 0
    fp: float = 0
    fn: float = 0
    iou: float = 0
    shared: float = 0
    union: float = 0


def pixels_of(mask: np.ndarray) -> Pixels:
    return frozenset((int(y), int(x)) for y, x in np.argwhere(mask))


def thing(id_: int, cls: str, whole: Pixels, void: Pixels, policy: str, side: int) -> Thing:
    """Apply an ambiguous policy to an object of a side (0: annotated, 1: predicted)."""
    is_cut = policy == "clip" or (policy == "clip-predictions" and side == 1)
    mostly = policy == "majority" and 2 * len(whole & void) > len(whole)
    kept = whole - void if is_cut else whole
    return Thing(id_, cls, kept, kept - void if policy == "majority" else kept, mostly)


def pieces(things: Sequence[Thing], void: Pixels, policy: str, side: int) -> list[Thing]:
    """Split objects into their 8-connected pieces."""
    found = []
    for one in things:
        image = np.zeros(np.max([*one.kept], axis=0) + 1, bool)
        image[tuple(np.array([*one.kept]).T)] = True
        parts, n = label(image, np.ones((3, 3)))
        found += [thing(k, "", pixels_of(parts == k), void, policy, side) for k in range(1, n + 1)]
    return found


def iou(a: Thing, b: Thing) -> float:
    return len(a.seen & b.seen) / len(a.seen | b.seen) if a.seen & b.seen else 0.0


def centroid(one: Thing) -> tuple[float, float]:
    y, x = zip(*one.kept, strict=True)
    return sum(y) / len(y), sum(x) / len(x)


def pairs_of(rule: str, own: Sequence[Thing], other: Sequence[Thing]) -> list[tuple[int, int]]:
    """Return the positions of the pairs by a rule."""
    met = {
        (i, j): iou(a, b) for i, a in enumerate(own) for j, b in enumerate(other) if a.seen & b.seen
    }
    if rule in ("iou>0.5", "iou>0.5, FP by id", "counts"):
        return [pair for pair, value in met.items() if value > 0.5]
    if rule == "any-overlap":
        return [*met]
    if rule == "pixels":
        return []
    if rule == "centroids":
        ends = [[centroid(one) for one in side] for side in (own, other)]
        if not own or not other:
            return []
        apart = np.array([[dist(a, b) for b in ends[1]] for a in ends[0]])
        assigned = zip(*(at.tolist() for at in linear_sum_assignment(apart)), strict=True)
        return [pair for pair in assigned if apart[pair] <= 12]
    if rule in ("best-iou", "nearly-best-iou", "largest-overlap"):
        if rule == "nearly-best-iou":
            met = {
                (i, j): len(own[i].seen & other[j].seen) / (len(own[i].seen | other[j].seen) + 1e-6)
                for i, j in met
            }
        found = []
        for i, a in enumerate(own):
            partners = [j for k, j in met if k == i]
            if rule != "largest-overlap":
                found += [(i, max(partners, key=lambda j: met[i, j]))] if partners else []
            else:
                shared = {j: len(a.seen & other[j].seen) for j in partners}
                found += [(i, j) for j, n in shared.items() if n == max(shared.values())]
        return found
    weight = np.zeros((len(own), len(other)))
    for pair, value in met.items():  # most pairs of at least 0.5, or the largest summed IoU
        weight[pair] = value if rule == "one-to-one" else (1e6 + value) * (value >= 0.5)
    best = zip(*(at.tolist() for at in linear_sum_assignment(weight, maximize=True)), strict=True)
    return [pair for pair in best if weight[pair] > 0]


def counted(rule: str, own: Sequence[Thing], other: Sequence[Thing]) -> Counts:
    """Sum up the pairs of objects, and what is in none."""
    pairs = pairs_of(rule, own, other)
    used = {i for i, _ in pairs}, {j for _, j in pairs}
    sides = own, other
    alone = [
        [one for k, one in enumerate(side) if k not in taken and not one.ignored]
        for side, taken in zip(sides, used, strict=True)
    ]
    found = Counts(*(bool(taken or left) for taken, left in zip(used, alone, strict=True)))
    found.tp, found.fn, found.fp = len(pairs), len(alone[0]), len(alone[1])
    found.iou = sum(iou(own[i], other[j]) for i, j in pairs)
    found.shared = sum(len(own[i].seen & other[j].seen) for i, j in pairs)
    if rule == "pixels":
        every = [frozenset().union(*(one.seen for one in side)) for side in sides]
        found.had_reference, found.had_prediction = map(bool, every)
        found.shared, found.union = len(every[0] & every[1]), sum(map(len, every))
    elif rule == "any-overlap":
        found.union = sum(len(own[i].seen) + len(other[j].seen) for i, j in pairs)
    else:
        found.union = sum(len(own[i].seen | other[j].seen) for i, j in pairs)
        found.union += sum(len(one.seen) for side in alone for one in side)
    return found


def matched_are_kept(own: list[Thing], other: list[Thing]) -> tuple[list[Thing], list[Thing]]:
    """Return the objects; those with an IoU above 0.5 are not ignored, whatever their classes."""
    pairs = pairs_of("iou>0.5", own, other)
    used = {i for i, _ in pairs}, {j for _, j in pairs}
    first, second = (
        [replace(one, ignored=one.ignored and k not in taken) for k, one in enumerate(side)]
        for side, taken in zip((own, other), used, strict=True)
    )
    return first, second


class Region:
    """A label pair under an ambiguous policy.

    Parameters
    ----------
    sides
        Of annotation and prediction: the label image, and id -> class in the order of objects.
    void
        bool (y, x).
    class_names
        The scored classes.
    policy
        One of the four.
    """

    def __init__(
        self,
        sides: Sequence[tuple[np.ndarray, Mapping[int, str]]],
        void: np.ndarray | None,
        class_names: Sequence[str],
        policy: str,
    ) -> None:
        outside = frozenset() if void is None else pixels_of(void)
        self.class_names, self.all = (
            class_names,
            [
                [
                    thing(id_, cls, pixels_of(image == id_), outside, policy, number)
                    for id_, cls in classes.items()
                ]
                for number, (image, classes) in enumerate(sides)
            ],
        )
        there = [[one for one in side if one.kept] for side in self.all]
        self.together = matched_are_kept(*there)
        parts = [pieces(side, outside, policy, number) for number, side in enumerate(there)]
        self.pieces = matched_are_kept(*([one for one in side if one.kept] for side in parts))

    def counts(self, objects: str, rule: str) -> list[Counts]:
        """Return the sums of all objects, or of each class."""
        if objects == "together, border of nuceval":
            return [counted(rule.replace("best-iou", "nearly-best-iou"), *self.together)]
        if objects == "together":
            return [counted(rule, *self.together)]
        if objects == "pieces":
            return [counted(rule, *self.pieces)]
        if objects == "by-class":
            return [
                counted(rule, *([one for one in side if one.cls == name] for side in self.together))
                for name in self.class_names
            ]
        return [self._alone(rule, name) for name in self.class_names]

    def _alone(self, rule: str, name: str) -> Counts:
        """Return the sums of a class on its own masks, as the challenge counts them."""
        every = [[one for one in side if one.cls == name] for side in self.all]
        own, other = ([one for one in side if one.kept] for side in every)
        found = counted(rule, own, other)
        found.had_reference, found.had_prediction = map(bool, every)
        if rule == "iou>0.5, FP by id":
            pairs = pairs_of(rule, own, other)
            ids, used = {own[i].id for i, _ in pairs}, {j for _, j in pairs}
            judged = [one for j, one in enumerate(other) if j in used or not one.ignored]
            found.fp = sum(one.id not in ids for one in judged)
        return found

    def types(self) -> tuple[list[float], float]:
        """Return HoVer-Net's F1 of each type, and the accuracy."""
        own, other = self.together
        pairs = [(own[i], other[j]) for i, j in pairs_of("centroids", own, other)]
        alone = [
            [one for one in side if not one.ignored and one not in taken]
            for side, taken in zip(
                (own, other), ([a for a, _ in pairs], [b for _, b in pairs]), strict=True
            )
        ]
        found = []
        for name in self.class_names:
            tp = sum(a.cls == b.cls == name for a, b in pairs)
            fp = sum(b.cls == name != a.cls for a, b in pairs)
            fn = sum(a.cls == name != b.cls for a, b in pairs)
            lone = [sum(one.cls == name for one in side) for side in alone]
            is_there = tp + fn + lone[0] > 0
            found.append(2 * tp / (2 * tp + 2 * (fp + fn) + sum(lone)) if is_there else nan)
        right = sum(a.cls == b.cls for a, b in pairs)
        return found, right / len(pairs) if pairs else nan


def value(region: Region, formula: str, convention: Any) -> tuple[float, list[float]]:
    """Return the figure of all objects of a region, and of each class; NaN if undefined."""
    if formula == "r2":  # of a single region
        return nan, [nan] * len(region.class_names)
    if formula in ("type-f1", "type-accuracy"):
        by_type, accuracy = region.types()
        return accuracy, by_type
    if convention.mean_over == "regions by nuclei":
        annotated = region.counts("together", "iou>0.5")[0]
        if not annotated.tp + annotated.fn:
            return nan, [nan]
    found = []
    for counts in region.counts(str(convention.objects), str(convention.pairs)):
        one = _quotient(counts, formula, str(convention.constant), str(convention.nothing))
        if one is None:
            return nan, []
        found.append(one)
    defined = [one for one in found if one == one]
    return sum(defined) / len(defined) if defined else nan, found


def _quotient(n: Counts, formula: str, constant: str, nothing: str) -> float | None:
    """Return a quotient; NaN if left out, None for an error of the published code."""
    below = n.union if formula in ("shared", "dice") else n.tp + n.fp + n.fn
    if nothing == "error if no prediction" and not n.had_prediction:
        return None
    if nothing.startswith("error") and not below:
        return None
    is_out = {
        "out if no reference": not n.had_reference,
        "out if both empty": not (n.had_reference or n.had_prediction),
        "out if either empty": not (n.had_reference and n.had_prediction),
    }
    if is_out.get(nothing, False):
        return nan
    if not below:
        return 1.0 if nothing == "1" else 0.0
    every = float(constant) if constant in ("1e-8", "1e-6") else 0
    for_sq = 1e-6 if constant.startswith("1e-6 for SQ") else every
    for_dq = 1e-6 if constant == "1e-6 for SQ and DQ" else every

    def over(above: float, *parts: float) -> float:
        return above / sum(parts) if sum(parts) else 0.0

    weight = n.tp + n.fp / 2 + n.fn / 2
    figures = {
        "sq": over(n.iou, n.tp, for_sq),
        "dq": over(n.tp, weight, for_dq),
        "precision": over(n.tp, n.tp, n.fp, every),
        "recall": over(n.tp, n.tp, n.fn, every),
        "accuracy": over(n.tp, n.tp, n.fp, n.fn, every),
        "mean-true-score": over(n.iou, n.tp, n.fn, every),
        "shared": over(n.shared, n.union, every),
        "dice": over(2 * n.shared, n.union, every),
    }
    figures["pq"] = figures["sq"] * figures["dq"]
    return figures[formula]


def figures(region: Region, conventions: Mapping[str, Iterable[Any]]) -> dict[Any, float]:
    """Return (convention, figure, class) -> value, as ``conventions.csv`` has them."""
    found = {}
    for name, its in conventions.items():
        for figure in its:
            overall, by_class = value(region, str(figure.formula), figure.convention)
            if figure.of_all:
                found[name, figure.name, ""] = overall
            if figure.of_classes:
                for cls, one in zip(region.class_names, by_class, strict=False):
                    found[name, figure.name, cls] = one
    return found
