"""The contents of a review package: its items and where they are from, sealed as one text."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from napari_panoptic.common.records import decoded, encoded
from napari_panoptic.review.identity import LARGEST_PX, LARGEST_WHOLE, Fingerprint, Subject
from napari_panoptic.values.vocabulary import Side

_ID_LENGTH = 32


@dataclass(frozen=True)
class Target:
    """The object that an item is about."""

    #: Annotation or prediction.
    side: Side
    #: Its id when the package was made.
    object_id: int
    fingerprint: Fingerprint


@dataclass(frozen=True)
class PackageItem:
    """One question to the reviewer."""

    #: Its number in the plan or, without a plan, in the package.
    item: str
    #: Its team and its region.
    team: str
    region: str
    #: The object to judge; None for a background tile, in which the reviewer counts the nuclei
    #: without an outline.
    target: Target | None

    @property
    def subject(self) -> Subject | None:
        """The object to judge, as the review file knows it; None for a background tile."""
        if self.target is None:
            return None
        return Subject(
            team=self.team,
            region=self.region,
            side=self.target.side,
            object_id=self.target.object_id,
            fingerprint=self.target.fingerprint,
        )


@dataclass(frozen=True)
class Contents:
    """Everything that an import has to know about a package."""

    #: The name of the cohort.
    cohort: str
    #: The format of the predictions; None for the usual one.
    source: str | None
    #: SHA-256 of the plan's file; None without a plan.
    plan: str | None
    #: Region -> fingerprint of its image; empty if it has none, or one whose copies differ.
    images: Mapping[str, str]
    #: The items, in the order of the package.
    items: tuple[PackageItem, ...]


def seal(contents: Contents) -> str:
    """Return contents as one ASCII text, which reveals no name at a glance."""
    # ASCII, since names of files can hold bytes that are no text.
    text = json.dumps(encoded(contents), ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(text.encode()).decode()


def unseal(sealed: str) -> Contents:
    """Return the contents that `seal` made a text of.

    Raises
    ------
    ValueError
        If the text is not such a text.
    """
    try:
        contents: Contents = decoded(
            Contents, json.loads(base64.b64decode(sealed.encode(), validate=True))
        )
    except (TypeError, LookupError, RecursionError) as error:
        raise ValueError(str(error)) from error
    for item in contents.items:
        if item.target is not None and not _is_possible(item.target):
            raise ValueError(f"no object can be where item {item.item} is")
    return contents


def _is_possible(target: Target) -> bool:
    fingerprint = target.fingerprint
    centroid = fingerprint.centroid_y_px, fingerprint.centroid_x_px
    return (
        abs(target.object_id) <= LARGEST_WHOLE
        and 0 <= fingerprint.area_px <= LARGEST_WHOLE
        and all(abs(place) <= LARGEST_PX for place in centroid)
    )


def package_id(sealed: str) -> str:
    """Return the id of a package: equal contents have equal ids."""
    return hashlib.sha256(sealed.encode()).hexdigest()[:_ID_LENGTH]
