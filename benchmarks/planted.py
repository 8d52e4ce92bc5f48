"""Errors planted in an annotation, and how well a list of suspects finds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.stats import rankdata

from napari_panoptic.questions.engines.suspects import Suspect, SuspectKind
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side

KINDS = (SuspectKind.OVERLOOKED, SuspectKind.BADLY_LOCATED, SuspectKind.WRONG_CLASS)


@dataclass(frozen=True)
class Planted:
    """An annotation with planted errors.

    `errors` maps the id of an object to the kind of its error; `removed` has the pixels, as
    coordinates (2, k), of the objects that were removed.
    """

    labels: LabelImage
    errors: Mapping[int, SuspectKind]
    removed: Mapping[int, NDArray[np.int64]]


def plant(labels: LabelImage, ids: Sequence[int], kinds: Sequence[SuspectKind]) -> Planted:
    """Remove, dilate or swap the class of some objects.

    A dilation adds half of the radius of a disk of the same area (at least 2 px), over the
    background only: the area more than doubles where there is room.
    """
    image = labels.id_image()
    classes = dict(zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True))
    removed = {}
    for id_, kind in zip(ids, kinds, strict=True):
        own = image == id_
        if kind is SuspectKind.OVERLOOKED:
            removed[id_] = np.array(np.nonzero(own))
            image[own] = 0
        elif kind is SuspectKind.BADLY_LOCATED:
            image[_grown(image, own)] = id_
        else:
            place = labels.class_names.index(classes[id_])
            classes[id_] = labels.class_names[(place + 1) % len(labels.class_names)]
    planted = LabelImage.from_array(image, classes, labels.class_names)
    return Planted(planted, dict(zip(ids, kinds, strict=True)), removed)


def choose(
    regions: Sequence[LabelImage], share: float, seed: int
) -> list[tuple[list[int], list[SuspectKind]]]:
    """Choose objects of all regions and a kind of error for each, in equal numbers.

    Objects of fewer than 30 px are not chosen, and none is dilated that has no room to grow by
    half.
    """
    rng = np.random.default_rng(seed)
    objects = [(k, int(id_)) for k, labels in enumerate(regions) for id_ in labels.ids]
    rng.shuffle(objects)
    images = [labels.id_image() for labels in regions]
    wanted = round(share * len(objects))
    chosen: list[tuple[list[int], list[SuspectKind]]] = [([], []) for _ in regions]
    n = 0
    for place, id_ in objects:
        kind = KINDS[n % len(KINDS)]
        own = images[place] == id_
        if n == wanted or own.sum() < 30:
            continue
        if kind is SuspectKind.BADLY_LOCATED and _grown(images[place], own).sum() < 1.5 * own.sum():
            continue
        chosen[place][0].append(id_)
        chosen[place][1].append(kind)
        n += 1
    return chosen


def _grown(image: NDArray[np.int64], own: NDArray[np.bool_]) -> NDArray[np.bool_]:
    distance = max(2.0, 0.5 * float(np.sqrt(own.sum() / np.pi)))
    near = ndimage.distance_transform_edt(~own) <= distance
    grown: NDArray[np.bool_] = own | (near & (image == 0))
    return grown


@dataclass(frozen=True)
class Ranked:
    """A suspect in a list; `id` is that of a reference object, None if one is overlooked."""

    region: str
    kind: SuspectKind
    score: float
    id: int | None
    centroid_yx_px: tuple[float, float]


@dataclass(frozen=True)
class Found:
    """How well planted errors are found.

    `precision` is the share of planted errors among the first k suspects, k being the number
    of planted errors; `auroc` the probability that an object with a planted error has a higher
    score than one without, half for equal scores. Objects are all reference objects, those that
    were removed, and places that are suspected though nothing was removed there.
    """

    planted: int
    precision: float
    auroc: float


def ranked(suspects: Iterable[Suspect]) -> list[Ranked]:
    """Return suspects as entries of a list."""
    return [
        Ranked(
            found.region,
            found.kind,
            found.score,
            found.id if found.side is Side.REFERENCE else None,
            found.centroid_yx_px,
        )
        for found in suspects
    ]


def rate(
    planted: Mapping[str, Planted],
    suspects: Sequence[Ranked],
    kinds: Sequence[SuspectKind] = KINDS,
) -> Found:
    """Compare a list of suspects with the errors planted in each region.

    With only some kinds, errors of the other kinds are left out, and suspects of the other kinds
    too.
    """
    scores: dict[tuple[str, object], float] = {}
    truth: dict[tuple[str, object], bool] = {}
    for region, own in planted.items():
        for id_ in own.labels.ids.tolist():
            if own.errors.get(id_, kinds[0]) in kinds:
                truth[region, id_] = id_ in own.errors
        if SuspectKind.OVERLOOKED in kinds:
            truth |= {(region, id_): True for id_ in own.removed}
    for suspect in suspects:
        if len(kinds) == 1 and suspect.kind not in kinds:
            continue
        unit: tuple[str, object] = suspect.region, suspect.id
        if suspect.id is None:
            hit = _removed_at(planted[suspect.region], suspect.centroid_yx_px)
            unit = suspect.region, suspect.centroid_yx_px if hit is None else hit
            truth.setdefault(unit, False)
        if unit in truth:
            scores[unit] = max(scores.get(unit, 0.0), suspect.score)
    is_planted = np.array(list(truth.values()))
    values = np.array([scores.get(unit, 0.0) for unit in truth])
    k = int(is_planted.sum())
    # Of equal scores, those without an error count first.
    first = is_planted[np.lexsort((is_planted, -values))[:k]]
    return Found(k, float(first.mean()), auroc(values, is_planted))


def auroc(values: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve, from ranks (Mann and Whitney)."""
    ranks = rankdata(values)
    n, m = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


def _removed_at(planted: Planted, yx: tuple[float, float]) -> int | None:
    y, x = np.rint(yx).astype(int)
    for id_, (rows, columns) in planted.removed.items():
        if np.any((rows == y) & (columns == x)):
            return id_
    return None
