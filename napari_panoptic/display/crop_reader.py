"""Reads what crops of any region are cut from, and keeps the regions used last."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from napari_panoptic.common.cache import ByteCache
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.display.crops import Crop, CropSource, OtherTeam, cut
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.regions.reading import read_picture
from napari_panoptic.nuclei.regions.region import HeldRegion, held_region
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings

KEPT_BYTES = 2**27
"""Memory for regions; the one used last is kept whatever its size."""
_BYTES_PER_PX = 8


@dataclass(frozen=True)
class CropSize:
    """The size of crops."""

    #: Width in the image.
    field_px: int
    #: Width on the screen.
    size_px: int
    #: Pixels of the screen per point.
    per_point: float = 1.0


@dataclass(eq=False)
class _Opened:
    held: HeldRegion
    image: SlideImage | None
    sources: dict[tuple[str, ...], CropSource | None] = field(default_factory=dict)


def _n_bytes(opened: _Opened | None) -> int:
    return 0 if opened is None else math.prod(opened.held.shape) * _BYTES_PER_PX


def _close(opened: _Opened | None) -> None:
    if opened is not None and opened.image is not None:
        opened.image.close()


class CropReader:
    """Cuts crops of failures from files; for one worker at a time.

    Parameters
    ----------
    cohort, settings, source
        What was evaluated, and how.
    outlined
        Returns the other teams whose outlines a crop shows.
    """

    def __init__(
        self,
        cohort: Cohort,
        settings: EvaluationSettings,
        source: Source | None,
        outlined: Callable[[FailureName], tuple[str, ...]] = lambda _name: (),
    ) -> None:
        self._cohort, self._source = cohort, source
        self._outlined = outlined
        self._settings = settings.replaced(distances=False)
        self._opened: ByteCache[str, _Opened | None] = ByteCache(
            KEPT_BYTES, keeps_last=True, on_drop=_close
        )

    def crop(self, name: FailureName, size: CropSize) -> Crop | None:
        """Return the crop of a failure; None if its region cannot be read any more."""
        source = self._crop_source(name)
        return None if source is None else crop_of(source, name, size)

    def close(self) -> None:
        """Release all regions."""
        self._opened.clear()

    def _crop_source(self, name: FailureName) -> CropSource | None:
        opened = self._opened.current(name.region, partial(self._open, name.region), _n_bytes)
        if opened is None:
            return None
        teams = (name.team, *self._outlined(name))
        if teams not in opened.sources:
            opened.sources[teams] = self._of_teams(opened, teams)
        return opened.sources[teams]

    def _of_teams(self, opened: _Opened, teams: tuple[str, ...]) -> CropSource | None:
        found, *others = (
            opened.held.evaluate(team, self._settings, self._source).evaluation for team in teams
        )
        if found is None:
            return None
        beside = tuple(OtherTeam.of(other) for other in others if other is not None)
        return CropSource.of(opened.image, found, beside)

    def _open(self, name: str) -> _Opened | None:
        region = self._cohort.region(name)
        held = held_region(self._cohort, region, self._settings)
        if isinstance(held, Finding):
            return None  # reported when the region is shown
        return _Opened(held, read_picture(region)[0])


def crop_of(source: CropSource, name: FailureName, size: CropSize) -> Crop | None:
    """Return the crop of a failure; None if there is no such object.

    The tissue is grey if that part of the image is damaged.
    """
    row = source.outcomes.side(name.side).row_of(name.id)
    if row is None:
        return None
    try:
        return _cut(source, name, row, size)
    except PanopticError:
        return _cut(replace(source, image=None), name, row, size)


def _cut(source: CropSource, name: FailureName, row: int, size: CropSize) -> Crop:
    return cut(
        source,
        name.side,
        row,
        field_px=size.field_px,
        size_px=size.size_px,
        per_point=size.per_point,
    )
