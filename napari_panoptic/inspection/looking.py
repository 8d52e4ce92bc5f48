"""Read some regions of a cohort to check that their files are consistent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.inspection.values import REFERENCE
from napari_panoptic.io.files.links import check_links
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.placing import (
    in_px_of_image,
    placed_outlines,
    placed_shape,
    stated_shape,
)
from napari_panoptic.io.formats.polygons.model import PolygonFile, Polygons
from napari_panoptic.io.formats.polygons.patches import of_patch
from napari_panoptic.io.formats.registry import form_of, load_masks, reference_shape
from napari_panoptic.io.images.slides import ImageInfo, probe_image
from napari_panoptic.nuclei.regions.doubts import (
    UM_PER_PX_AT_1X,
)
from napari_panoptic.nuclei.regions.reading import (
    at_bounds,
    prediction_files,
)
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region

LOOKED_AT = 6
"""The number of regions of a side whose objects are read, spread over the cohort."""
MOST_SLIDES = 2
"""The number of larger regions that are read: each takes seconds."""
LARGEST_PX = 2**26
"""The objects of larger regions are not drawn."""

Shape = tuple[int, int]


@dataclass(frozen=True, eq=False)
class SampledSide:
    """The objects of one side of a region, as far as they can be read."""

    #: The files.
    files: MaskFiles
    #: The team; None for the annotation.
    team: str | None
    #: The metadata of the image of the region; None if there is none.
    image: ImageInfo | None
    #: Height and width in px of its image, or else of its masks; None if unknown.
    shape: Shape | None
    #: Height and width by the masks, or by the file of outlines, in px of the image; None if the
    #: file states none.
    own_shape: Shape | None = None
    #: The outlines of the file, placed by the rules of the cohort; None for masks.
    outlines: PolygonFile | None = None
    #: Those that touch the region, in its px.
    polygons: Polygons | None = None
    #: The objects in pixels; None if they cannot be drawn.
    masks: LoadedMasks | None = None
    #: Problems found.
    findings: tuple[Finding, ...] = ()

    @property
    def filled(self) -> NDArray[np.bool_] | None:
        """Where objects are, bool (y, x); None if they cannot be drawn."""
        return None if self.masks is None else self.masks.labels.index > 0

    @property
    def is_read(self) -> bool:
        """Whether objects could be read."""
        return self.masks is not None or self.outlines is not None

    @property
    def has_objects(self) -> bool:
        """Whether there is an object, in the image or outside it."""
        return self.n_objects > 0

    @property
    def n_objects(self) -> int:
        """The number of objects, in the image or outside it."""
        if self.polygons is not None and len(self.polygons) > 0:
            return len(self.polygons)
        return 0 if self.masks is None else len(self.masks.labels)

    @property
    def numbers(self) -> LoadedMasks | None:
        """The masks of files that hold numbers of objects; None for outlines."""
        return None if self.outlines is not None else self.masks

    @property
    def scale_by_magnification(self) -> float | None:
        """Pixels of the image per pixel of the outlines by their magnifications, a power of two."""
        stated = None if self.outlines is None else self.outlines.magnification
        if not stated or self.image is None or not self.image.mpp:
            return None
        if self.files.patch is not None:
            stated /= self.files.patch.scale
        return float(2.0 ** round(math.log2(UM_PER_PX_AT_1X / self.image.mpp / stated)))

    def counts(self) -> Counter[str]:
        """Count the objects of each class."""
        if self.masks is not None:
            return Counter(self.masks.labels.class_names_of_objects().tolist())
        return Counter()


@dataclass(frozen=True, eq=False)
class SampledRegion:
    """One region of which objects were read."""

    #: The region.
    region: Region
    #: Its annotation; None if there is none.
    reference: SampledSide | None
    #: By team.
    predictions: Mapping[str, SampledSide] = field(default_factory=dict)

    @property
    def sides(self) -> Iterator[SampledSide]:
        """The annotation, if there is one, and the predictions."""
        if self.reference is not None:
            yield self.reference
        yield from self.predictions.values()


def sides_of(seen: Sequence[SampledRegion], name: str) -> list[SampledSide]:
    """Return what was read of the annotation (`REFERENCE`), or of a team."""
    if name == REFERENCE:
        return [region.reference for region in seen if region.reference is not None]
    return [region.predictions[name] for region in seen if name in region.predictions]


def probed(regions: Sequence[Region]) -> dict[str, ImageInfo]:
    """Read the size and resolution of readable images: region -> metadata of its image."""
    found = {}
    for region in regions:
        if (info := _info(region)) is not None:
            found[region.name] = info
    return found


def regions_to_read(cohort: Cohort, infos: Mapping[str, ImageInfo]) -> tuple[Region, ...]:
    """Choose regions: spread over the cohort, with at least one of each team, and few slides."""
    slides = [r for r in cohort.regions if r.name in infos and _is_large(infos[r.name].shape)]
    regions = [r for r in cohort.regions if r not in slides[MOST_SLIDES:]]
    whole = [r for r in regions if r.reference is not None and r.image is not None] or [*regions]
    places = np.linspace(0, len(whole) - 1, min(LOOKED_AT, len(whole))).round().astype(int)
    chosen = [whole[place] for place in dict.fromkeys(places.tolist())]
    for team in cohort.teams:
        if not any((team.name, region.name) in cohort.predictions for region in chosen):
            own = (r for r in regions if (team.name, r.name) in cohort.predictions)
            chosen += [region for region in own if region not in chosen][:1]
    return tuple(region for region in regions if region in chosen)


def sampled_region(
    cohort: Cohort, region: Region, info: ImageInfo | None, teams: Sequence[str]
) -> SampledRegion:
    """Read the objects of a region, of the annotation and of some teams.

    Parameters
    ----------
    cohort, region
        What to read.
    info
        Metadata of its image; None if there is none.
    teams
        Names of teams. Those without a file for the region are left out.
    """
    chosen = {team: prediction_files(cohort, region.name, team, None) for team in teams}
    of_teams = {team: files for team, files in chosen.items() if files is not None}
    present = [region.reference] if region.reference is not None else []
    shape = (
        info.shape if info is not None else reference_shape(None, [*present, *of_teams.values()])
    )

    def seen(files: MaskFiles, team: str | None) -> SampledSide:
        try:
            placed = at_bounds(files, region)
            side = _sampled_side(cohort, region, SampledSide(placed, team, info, shape))
        except (PanopticError, OSError) as error:
            found = (Finding.unreadable(error, region=region.name, team=team),)
            return SampledSide(files, team, info, shape, findings=found)
        return replace(side, files=files)

    return SampledRegion(
        region,
        None if region.reference is None else seen(region.reference, None),
        {team: seen(files, team) for team, files in of_teams.items()},
    )


def _sampled_side(cohort: Cohort, region: Region, side: SampledSide) -> SampledSide:
    files, form = side.files, form_of(side.files.source)
    check_links(files)
    if form is not None and form.outlines is not None:
        of_item: dict[str, Any] = {} if form.items is None else {"item": files.item}
        path = files.all_paths[0]
        outlines = form.outlines(path, cohort.scheme, rules=files.rules, **of_item)
        outlines = placed_outlines(outlines, files.rules)
        if form.in_shares and side.shape is not None:
            outlines = in_px_of_image(outlines, files, side.shape)
        own = outlines
        if files.patch is not None and side.shape is not None:
            own = of_patch(outlines, files.patch, side.shape, path)
        side = replace(
            side,
            outlines=outlines,
            own_shape=stated_shape(outlines, files),
            polygons=own.polygons,
            findings=outlines.findings,
        )
    elif form is not None and files.all_paths:
        side = replace(side, own_shape=placed_shape(form.shape(files), files.rules))
    if side.shape is None or _is_large(side.shape):
        return side
    try:
        masks = load_masks(
            files, cohort.scheme, shape=side.shape, region=region.name, team=side.team
        )
    except (PanopticError, OSError) as error:
        odd = (Finding.unreadable(error, region=region.name, team=side.team),)
        return replace(side, findings=(*side.findings, *odd))
    return replace(side, masks=masks, findings=masks.findings)


def _is_large(shape: Shape) -> bool:
    return shape[0] * shape[1] > LARGEST_PX


def _info(region: Region) -> ImageInfo | None:
    if region.image is None:
        return None
    try:
        info = probe_image(region.image, region.image_item)
    except (PanopticError, OSError):
        return None  # opening the region reports the error
    return info if region.mpp is None else replace(info, mpp=region.mpp)
