"""A feature of objects: its words, its unit, what it needs, and the function that measures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from numpy.typing import NDArray

from napari_panoptic.features.region_side import RegionSide
from napari_panoptic.values.vocabulary import SIDES, Side


class Need(StrEnum):
    """What a feature is measured from."""

    FILES = "files"  # what the files say of an object
    OUTLINE = "outline"
    IMAGE = "image"  # undefined without one of the region's size
    NEIGHBOURS = "neighbours"  # the other objects of the side, and the frame


@dataclass(frozen=True, kw_only=True)
class FeatureText:
    """The words for a feature; conditions follow "nuclei"."""

    #: Its name in words.
    header: str
    #: With the fields ``name``, ``low`` and ``high``, and ``unit`` for px or µm.
    under: str = "with {name} under {high}"
    from_: str = "with {name} of {low} or more"
    between: str = "with {name} from {low} to under {high}"
    #: Value -> its words.
    values: Mapping[str, str] = field(default_factory=dict)
    #: Its dimension in px: 2 for an area, 1 for a length, 0 for a pure number.
    px_power: int = 0
    #: Plain words for objects with low and with high values; empty if the others are plain.
    plain: tuple[str, str] = ("", "")


@dataclass(frozen=True, kw_only=True)
class Feature(FeatureText):
    """A feature that this package measures."""

    #: Its name in files and options; it ends with ``_px`` if it has a dimension.
    key: str
    #: Its definition or formula, with the publication.
    source: str
    #: Returns (n,), given the objects of a region: float64, NaN if undefined; or words, empty if
    #: undefined. Called without regard to the sides that have it.
    measure: Callable[[RegionSide], NDArray[Any]]
    needs: Need = Need.OUTLINE
    #: The sides that have it.
    sides: tuple[Side, ...] = SIDES
    #: Whether it is measured unless others are chosen.
    is_usual: bool = True
