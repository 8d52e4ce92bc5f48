"""Reads what crops of any region are cut from, and keeps the regions used last."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.images import SlideImage
from napari_panoptic.nuclei.crops import Crop, CropSource, cut
from napari_panoptic.nuclei.explain.cohort_failures import FailureName
from napari_panoptic.nuclei.reading import HELD_UP_TO_PX
from napari_panoptic.nuclei.region import HeldRegion
from napari_panoptic.nuclei.snapshots import read_picture
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings

KEPT_PX = 2**24
"""Pixels of the regions that are kept; the one used last is kept whatever its size."""


@dataclass(frozen=True)
class CropSize:
    """The size of crops.

    Parameters
    ----------
    field_px
        Width in the image.
    size_px
        Width on the screen.
    per_point
        Pixels of the screen per point.
    """

    field_px: int
    size_px: int
    per_point: float = 1.0


@dataclass(eq=False)
class _Opened:
    held: HeldRegion
    image: SlideImage | None
    sources: dict[str, CropSource | None] = field(default_factory=dict)

    @property
    def n_px(self) -> int:
        return self.held.shape[0] * self.held.shape[1]


class CropReader:
    """Cuts crops of failures from files; for one worker at a time.

    Parameters
    ----------
    cohort, settings, source
        What was evaluated, and how.
    versions
        Two teams that are versions of one: crops of either show the outlines of both.
    """

    def __init__(
        self,
        cohort: Cohort,
        settings: EvaluationSettings,
        source: Source | None,
        versions: tuple[str, str] | None = None,
    ) -> None:
        self._cohort, self._source = cohort, source
        self._versions = versions
        self._settings = settings.replaced(distances=False)
        self._opened: OrderedDict[str, _Opened | None] = OrderedDict()

    def crop(self, name: FailureName, size: CropSize) -> Crop | None:
        """Return the crop of a failure; None if its region cannot be read any more."""
        source = self._crop_source(name)
        return None if source is None else crop_of(source, name, size)

    def close(self) -> None:
        """Release all regions."""
        while self._opened:
            self._close_oldest()

    def _crop_source(self, name: FailureName) -> CropSource | None:
        opened = self._region(name.region)
        if opened is None:
            return None
        if name.team not in opened.sources:
            opened.sources[name.team] = self._of_team(opened, name.team)
        return opened.sources[name.team]

    def _of_team(self, opened: _Opened, team: str) -> CropSource | None:
        found = opened.held.evaluate(team, self._settings, self._source).evaluation
        if found is None:
            return None
        other = other_version(self._versions, team)
        beside = None
        if other is not None:
            beside = opened.held.evaluate(other, self._settings, self._source).evaluation
        return CropSource(
            opened.image,
            found.pair.reference,
            found.pair.prediction,
            found.outcomes,
            None if beside is None else beside.pair.prediction,
        )

    def _region(self, name: str) -> _Opened | None:
        if name not in self._opened:
            self._opened[name] = self._open(name)
        self._opened.move_to_end(name)
        while len(self._opened) > 1 and self._n_px() > KEPT_PX:
            self._close_oldest()
        return self._opened[name]

    def _open(self, name: str) -> _Opened | None:
        region = self._cohort.region(name)
        try:
            held = HeldRegion(self._cohort, region, self._settings, held_up_to_px=HELD_UP_TO_PX)
        except (PanopticError, OSError):
            return None  # reported when the region is shown
        return _Opened(held, read_picture(region)[0])

    def _n_px(self) -> int:
        return sum(opened.n_px for opened in self._opened.values() if opened is not None)

    def _close_oldest(self) -> None:
        _, opened = self._opened.popitem(last=False)
        if opened is not None and opened.image is not None:
            opened.image.close()


def other_version(versions: tuple[str, str] | None, team: str) -> str | None:
    """Return the other of two versions; None if the team is none of them."""
    if versions is None or team not in versions:
        return None
    return versions[1] if team == versions[0] else versions[0]


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
