"""Identity of objects independent of their ids and outcomes.

An object is identified by its place, size and class, so that its verdict is found under other
settings and after objects got new ids. A ring and its core have nearly the same of all three: they
are told apart by the objects that are there, each of which takes its nearest verdict; where these
are not known, by their ids and areas.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
# The same where it is not known which objects are there: a ring and its core differ by more.
_NARROW_FACTOR = 1.2
# Centroids of the same pixels are as close as this, whatever the rounding of their sums.
_SAME_PX = 1e-6
LARGEST_WHOLE = 2**62
"""Ids, areas and counts are never larger."""
LARGEST_PX = 2.0**31
"""Coordinates of centroids are never larger, so that distances between them stay finite."""


class ObjectKey(NamedTuple):
    """Everything that distinguishes an object from others."""

    team: str
    region: str
    side: str
    class_name: str
    centroid_y_px: float
    centroid_x_px: float
    area_px: int
    #: Decides between equals.
    object_id: int

    @property
    def fingerprint(self) -> Fingerprint:
        """The part that does not depend on ids and names."""
        return Fingerprint(self.class_name, *self[4:7])


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
        if one_spelling(self.class_name) != one_spelling(other.class_name):
            return None
        found = float(_unlikeness(self._measures, other._measures))
        return found if found < math.inf else None

    def has_pixels_of(self, other: Fingerprint) -> bool:
        """Return whether another fingerprint is that of the same pixels, whatever their class."""
        distance = math.hypot(
            self.centroid_y_px - other.centroid_y_px, self.centroid_x_px - other.centroid_x_px
        )
        return self.area_px == other.area_px and distance < _SAME_PX

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
    #: The other objects that a verdict on it could belong to, such as the core of a ring; None
    #: where they are not known.
    beside: tuple[ObjectKey, ...] | None = field(default=None, compare=False, repr=False)

    @property
    def class_name(self) -> str:
        """Its class."""
        return self.fingerprint.class_name

    def likeness(self, other: Subject) -> float | None:
        """Return how far another subject of the same team, region and side is from being this one.

        Returns
        -------
        float or None
            As :meth:`Fingerprint.likeness`; also None for one that is more like an object beside
            this one or, where those are not known, has neither its id nor its size.
        """
        found = self.fingerprint.likeness(other.fingerprint)
        if found is None:
            return None
        is_same_id = self.object_id == other.object_id
        if self.beside is None:
            is_size = _is_narrow(self.fingerprint.area_px, other.fingerprint.area_px)
            return found if is_same_id or is_size else None
        for rival in self.beside:
            theirs = rival.fingerprint.likeness(other.fingerprint)
            if theirs is not None and (theirs, rival.object_id != other.object_id) < (
                found,
                not is_same_id,
            ):
                return None
        return found


def matched(
    subjects: Iterable[ObjectKey], others: Iterable[ObjectKey], *, are_all: bool = True
) -> list[int | None]:
    """Find the same objects in another list, each at most once.

    Parameters
    ----------
    subjects
        The objects to find.
    others
        The list to search.
    are_all
        Whether one of the lists has all objects that are there. If not, what is most alike can
        be another object: it must also have the same id or nearly the same area.

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
        candidates = _alike(
            [subjects[number] for number in own],
            [others[number] for number in other],
            are_all=are_all,
        )
        used: set[int] = set()
        # The most similar first; equal ids, then the order of the lists decide between equals.
        for i, j in zip(*candidates, strict=True):
            if result[own[i]] is None and j not in used:
                result[own[i]] = other[j]
                used.add(j)
    return result


def found_in(subject: Subject, records: Sequence[Subject]) -> int | None:
    """Find an object among others that may be the same.

    Returns
    -------
    int or None
        Its position; None if it is not there.
    """
    are_all = subject.beside is not None
    keys = [object_key(subject), *(subject.beside or ())]
    return matched(keys, map(object_key, records), are_all=are_all)[0]


def may_be_mistaken(
    centroid_yx_px: NDArray[np.float64],
    area_px: float,
    centroids_yx_px: NDArray[np.float64],
    areas_px: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return which objects of one class a verdict on an object could also belong to.

    Parameters
    ----------
    centroid_yx_px, area_px
        Centroid (2,) and area of the object.
    centroids_yx_px, areas_px
        Centroids (n, 2) and areas (n,) of all, among them the object itself.

    Returns
    -------
    ndarray
        bool (n,). True also for the object itself.
    """
    # The centroid in the verdict is within reach of both, and not that of a far larger object.
    reach = reach_px(area_px) * (1 + math.sqrt(_AREA_FACTOR))
    reach = np.minimum(reach, reach_px(area_px) + reach_px(areas_px))
    distances = np.hypot(*(centroids_yx_px - centroid_yx_px).T)
    near: NDArray[np.bool_] = (distances < reach) & (areas_px > 0)
    return near


def object_key(subject: Subject) -> ObjectKey:
    """Return everything that distinguishes an object from others."""
    fingerprint = subject.fingerprint
    return ObjectKey(
        subject.team,
        subject.region,
        subject.side,
        fingerprint.class_name,
        *fingerprint._measures,
        int(subject.object_id),
    )


def _grouped(places: Sequence[ObjectKey]) -> dict[tuple[str, ...], list[int]]:
    as_spelled: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, place in enumerate(places):
        as_spelled[place[:4]].append(number)
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for names, numbers in as_spelled.items():
        groups[tuple(one_spelling(str(name)) for name in names)] += numbers
    return {names: sorted(numbers) for names, numbers in groups.items()}


def _alike(
    own: Sequence[ObjectKey], others: Sequence[ObjectKey], *, are_all: bool
) -> tuple[list[int], list[int]]:
    """Return the pairs of objects that can be the same one, the most similar first."""
    from scipy.spatial import cKDTree

    own_measures = np.array([key[4:7] for key in own], np.float64)
    other_measures = np.array([key[4:7] for key in others], np.float64)
    near = cKDTree(other_measures[:, :2]).query_ball_point(
        own_measures[:, :2], reach_px(own_measures[:, 2])
    )
    lengths = np.fromiter(map(len, near), np.intp, len(near))
    i = np.repeat(np.arange(len(own)), lengths)
    j = np.fromiter(chain.from_iterable(near), np.intp, len(i))
    unlike = _unlikeness(own_measures[i].T, other_measures[j].T)
    own_ids = np.array([key.object_id for key in own], np.int64)
    other_ids = np.array([key.object_id for key in others], np.int64)
    is_other_id = own_ids[i] != other_ids[j]
    if not are_all:
        is_size = _is_narrow(own_measures[i, 2], other_measures[j, 2])
        unlike[is_other_id & ~is_size] = math.inf
    order = np.lexsort((j, i, is_other_id, unlike))[: np.count_nonzero(unlike < math.inf)]
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


def _is_narrow(own_px: Any, other_px: Any) -> Any:
    """Return whether areas are so close that objects are the same, whatever their ids."""
    return (own_px <= _NARROW_FACTOR * other_px) & (other_px <= _NARROW_FACTOR * own_px)


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
