"""Which objects are the same, whatever their numbers and their outcomes.

An object is known by its place, size and class, so that what was said of it is found
again under other settings and after objects were numbered anew.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.values.vocabulary import Side

# Centroids of one object under two settings lie closer together than this share of its radius;
# those of two objects, which share no pixel, do not (but for rings and crescents).
_NEAR = 0.5
# How much an object's area may change: growing by 5 px makes a speck many times larger.
_AREA_FACTOR = 100.0


Place = tuple[str, str, str, str, float, float, int]
"""All that tells objects apart: team, region, side, class, centroid y and x in px, area in px."""


@dataclass(frozen=True)
class Fingerprint:
    """What an object is known by, whatever its number and its outcome.

    Parameters
    ----------
    class_name
        Its class.
    centroid_y_px, centroid_x_px
        Centroid of all its pixels, before any ambiguous area is cut away.
    area_px
        Number of these pixels.
    """

    class_name: str
    centroid_y_px: float
    centroid_x_px: float
    area_px: int

    def likeness(self, other: Fingerprint) -> float | None:
        """Return how far two fingerprints are from being equal.

        Returns
        -------
        float or None
            0 for equal ones, more for less similar ones; None for those of
            different objects.
        """
        smaller, larger = sorted((max(1, self.area_px), max(1, other.area_px)))
        distance = math.hypot(
            self.centroid_y_px - other.centroid_y_px, self.centroid_x_px - other.centroid_x_px
        )
        reach = reach_px(smaller)
        near = distance < reach and larger <= _AREA_FACTOR * smaller
        if self.class_name != other.class_name or not near:
            return None
        return distance / reach + 0.1 * math.log(larger / smaller)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An object that can be judged, in the context in which it is seen.

    Parameters
    ----------
    team
        Whose prediction it is, or is compared with.
    region
        Where it is.
    side
        Annotation or prediction.
    object_id
        Its id under the settings of the moment.
    fingerprint
        What it is known by.
    """

    team: str
    region: str
    side: Side
    object_id: int
    fingerprint: Fingerprint

    @property
    def class_name(self) -> str:
        """Its class."""
        return self.fingerprint.class_name


def matched(subjects: Iterable[Place], others: Iterable[Place]) -> list[int | None]:
    """Find for each object the other that is the same object, each at most once.

    Parameters
    ----------
    subjects
        The objects to be found.
    others
        Among which to find them.

    Returns
    -------
    list of int or None
        For each object the number of the other one; None where there is none.
    """
    subjects, others = list(subjects), list(others)
    result: list[int | None] = [None] * len(subjects)
    own_groups, other_groups = _grouped(subjects), _grouped(others)
    for group in own_groups.keys() & other_groups.keys():
        own, other = own_groups[group], other_groups[group]
        candidates = _alike(_measures(subjects, own), _measures(others, other))
        taken: set[int] = set()
        # The most similar first; the order of the lists decides between equals.
        for i, j in zip(*candidates, strict=True):
            if result[own[i]] is None and j not in taken:
                result[own[i]] = other[j]
                taken.add(j)
    return result


def place_of(subject: Subject) -> Place:
    """Return all that tells an object from others."""
    own = subject.fingerprint
    return (
        subject.team,
        subject.region,
        subject.side,
        own.class_name,
        own.centroid_y_px,
        own.centroid_x_px,
        own.area_px,
    )


def _grouped(places: Sequence[Place]) -> dict[tuple[str, ...], list[int]]:
    as_spelled: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, place in enumerate(places):
        as_spelled[place[:4]].append(number)
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for names, numbers in as_spelled.items():
        groups[tuple(one_spelling(str(name)) for name in names)] += numbers
    return {names: sorted(numbers) for names, numbers in groups.items()}


def _measures(places: Sequence[Place], numbers: Sequence[int]) -> NDArray[np.float64]:
    """Return centroid and area of some places, (n, 3)."""
    return np.array([places[number][4:] for number in numbers], np.float64)


def _alike(own: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[list[int], list[int]]:
    """Return the pairs of rows that can be the same object, the most similar first.

    The same as :meth:`Fingerprint.likeness`, for many at a time.
    """
    from scipy.spatial import cKDTree

    reaches = np.maximum(1.0, _NEAR * np.sqrt(np.maximum(own[:, 2], 1) / math.pi))
    found = cKDTree(others[:, :2]).query_ball_point(own[:, :2], reaches)
    lengths = np.fromiter(map(len, found), np.intp, len(found))
    i = np.repeat(np.arange(len(own)), lengths)
    j = np.fromiter(chain.from_iterable(found), np.intp, len(i))
    smaller = np.maximum(1, np.minimum(own[i, 2], others[j, 2]))
    larger = np.maximum(1, np.maximum(own[i, 2], others[j, 2]))
    distance = np.hypot(own[i, 0] - others[j, 0], own[i, 1] - others[j, 1])
    reach = np.maximum(1.0, _NEAR * np.sqrt(smaller / math.pi))
    near = np.flatnonzero((distance < reach) & (larger <= _AREA_FACTOR * smaller))
    unlike = distance[near] / reach[near] + 0.1 * np.log(larger[near] / smaller[near])
    order = near[np.lexsort((j[near], i[near], unlike))]
    return i[order].tolist(), j[order].tolist()


def reach_px(area_px: int) -> float:
    """Return the distance within which a centroid can be the same object's, in px."""
    # Centroids of neighbouring single pixels are one pixel apart, which is too far.
    return max(1.0, _NEAR * math.sqrt(area_px / math.pi))


@lru_cache(maxsize=4096)
def one_spelling(value: str) -> str:
    """Make text that can be stored and compared: one spelling, no broken characters."""
    whole = value.encode("utf-8", "replace").decode("utf-8")
    return unicodedata.normalize("NFC", whole)
