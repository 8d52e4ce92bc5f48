"""Identity of objects independent of their ids and outcomes.

An object is identified by its place, size and class, so that its verdict is found under other
settings and after objects got new ids.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.values.vocabulary import Side

# Centroids of one object under two settings lie closer together than this share of its radius;
# those of two objects, which share no pixel, do not (but for rings and crescents).
_NEAR = 0.5
# How much an object's area may change: growing by 5 px makes a speck many times larger.
_AREA_FACTOR = 100.0


class ObjectKey(NamedTuple):
    """Everything that distinguishes an object from others."""

    team: str
    region: str
    side: str
    class_name: str
    centroid_y_px: float
    centroid_x_px: float
    area_px: float


@dataclass(frozen=True)
class Fingerprint:
    """Identity of an object independent of its id and outcome."""

    class_name: str
    #: Centroid of all its pixels, before any ambiguous area is cut away.
    centroid_y_px: float
    centroid_x_px: float
    #: Number of these pixels.
    area_px: int

    def likeness(self, other: Fingerprint) -> float | None:
        """Return how far two fingerprints are from being equal.

        Returns
        -------
        float or None
            0 for equal ones, more for less similar ones; None for those of
            different objects.
        """
        if self.class_name != other.class_name:
            return None
        found = float(_unlikeness(self._measures, other._measures))
        return found if found < math.inf else None

    @property
    def _measures(self) -> tuple[float, float, int]:
        return self.centroid_y_px, self.centroid_x_px, self.area_px


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An object that can be judged, with its context."""

    #: The team whose prediction it is, or is compared with.
    team: str
    #: The region that contains it.
    region: str
    #: Annotation or prediction.
    side: Side
    #: Its id under the current settings.
    object_id: int
    fingerprint: Fingerprint

    @property
    def class_name(self) -> str:
        """Its class."""
        return self.fingerprint.class_name


def matched(subjects: Iterable[ObjectKey], others: Iterable[ObjectKey]) -> list[int | None]:
    """Find the same objects in another list, each at most once.

    Parameters
    ----------
    subjects
        The objects to find.
    others
        The list to search.

    Returns
    -------
    list of int or None
        For each object its position in `others`; None if it is not there.
    """
    subjects, others = list(subjects), list(others)
    result: list[int | None] = [None] * len(subjects)
    own_groups, other_groups = _grouped(subjects), _grouped(others)
    for group in own_groups.keys() & other_groups.keys():
        own, other = own_groups[group], other_groups[group]
        candidates = _alike(_measures(subjects, own), _measures(others, other))
        used: set[int] = set()
        # The most similar first; the order of the lists decides between equals.
        for i, j in zip(*candidates, strict=True):
            if result[own[i]] is None and j not in used:
                result[own[i]] = other[j]
                used.add(j)
    return result


def object_key(subject: Subject) -> ObjectKey:
    """Return everything that distinguishes an object from others."""
    fingerprint = subject.fingerprint
    return ObjectKey(
        subject.team, subject.region, subject.side, fingerprint.class_name, *fingerprint._measures
    )


def _grouped(places: Sequence[ObjectKey]) -> dict[tuple[str, ...], list[int]]:
    as_spelled: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, place in enumerate(places):
        as_spelled[place[:4]].append(number)
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for names, numbers in as_spelled.items():
        groups[tuple(one_spelling(str(name)) for name in names)] += numbers
    return {names: sorted(numbers) for names, numbers in groups.items()}


def _measures(places: Sequence[ObjectKey], numbers: Sequence[int]) -> NDArray[np.float64]:
    """Return centroid and area of some places, (n, 3)."""
    return np.array([places[number][4:] for number in numbers], np.float64)


def _alike(own: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[list[int], list[int]]:
    """Return the pairs of rows that can be the same object, the most similar first."""
    from scipy.spatial import cKDTree

    found = cKDTree(others[:, :2]).query_ball_point(own[:, :2], reach_px(own[:, 2]))
    lengths = np.fromiter(map(len, found), np.intp, len(found))
    i = np.repeat(np.arange(len(own)), lengths)
    j = np.fromiter(chain.from_iterable(found), np.intp, len(i))
    unlike = _unlikeness(own[i].T, others[j].T)
    order = np.lexsort((j, i, unlike))[: np.count_nonzero(unlike < math.inf)]
    return i[order].tolist(), j[order].tolist()


def _unlikeness(own: Any, other: Any) -> Any:
    """Return how far objects are from being the same, infinity for different ones.

    Parameters
    ----------
    own, other
        Centroid y, centroid x and area, as numbers or as arrays.
    """
    smaller = np.maximum(1, np.minimum(own[2], other[2]))
    larger = np.maximum(1, np.maximum(own[2], other[2]))
    distance = np.hypot(own[0] - other[0], own[1] - other[1])
    reach = reach_px(smaller)
    is_near = (distance < reach) & (larger <= _AREA_FACTOR * smaller)
    return np.where(is_near, distance / reach + 0.1 * np.log(larger / smaller), math.inf)


def reach_px(area_px: Any) -> Any:
    """Return the distance within which a centroid can be the same object's, in px."""
    # Centroids of neighbouring single pixels are one pixel apart, which is too far.
    return np.maximum(1.0, _NEAR * np.sqrt(np.maximum(area_px, 1) / math.pi))


@lru_cache(maxsize=4096)
def reviewer_name(name: str) -> str:
    """Return a reviewer's name as the review file keeps it: in one spelling, with single spaces."""
    return " ".join(one_spelling(name).split())


def one_spelling(value: str) -> str:
    """Return a text in one spelling (NFC) without lone surrogates, to store and compare."""
    whole = value.encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", whole)
