"""From the files of a region to its objects, with findings for whatever is odd."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.cohorts.description import SLIDE_BOUNDS
from napari_panoptic.io.formats.format import LoadedMasks, TiledMasks
from napari_panoptic.io.formats.labels.pieces import stretched_findings
from napari_panoptic.io.formats.registry import (
    is_mask,
    known_forms,
    load_masks,
    open_masks,
    reference_shape,
)
from napari_panoptic.io.images.slides import ImageInfo, SlideImage, probe_image, read_image
from napari_panoptic.nuclei.overlap import Areas, OverlapTable
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.values.labels import LabelImage, size_text
from napari_panoptic.values.settings import EvaluationSettings, Restoration
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import TiledPair

Way = tuple[Restoration, int]
"""What decides how masks are restored: restoration and applied radius in px."""


def way_of(settings: EvaluationSettings) -> Way:
    """Return the way in which settings restore masks."""
    return settings.restoration, settings.dilation_radius


def prediction_files(
    cohort: Cohort, region_name: str, team: str, source: Source | None
) -> MaskFiles | None:
    """Return the files of a team's prediction in a region, see `choose_files`; None without."""
    return choose_files(cohort.predictions.get((team, region_name), {}), source)


def choose_files(forms: Mapping[Source, MaskFiles], source: Source | None) -> MaskFiles | None:
    """Return the files of the requested format of a prediction, by default of the preferred one."""
    if source is not None:
        return forms.get(source)
    usual = preferred_form(forms)
    return None if usual is None else forms[usual]


def preferred_form(there: Container[Source]) -> Source | None:
    """Return the format of a prediction that is read by default if there are several."""
    return next((f.source for f in known_forms().values() if f.source in there), None)


HELD_UP_TO_PX = 2**28
"""Regions of more pixels are evaluated in windows: their label images and what is computed from
them take about 16 bytes a pixel, 4 GiB here."""


class TooLargeError(PanopticError):
    """A region has more pixels than may be held in memory."""


@dataclass(frozen=True)
class ImageSize:
    """What is known of a region's image without its pixels."""

    #: Size in px, and micrometres per pixel or None.
    shape: tuple[int, int]
    mpp: float | None
    #: Problems found.
    findings: tuple[Finding, ...]


def region_size(cohort: Cohort, region: Region) -> ImageSize:
    """Return the size of a region, from its image or else its masks.

    Raises
    ------
    PanopticError
        If no file states it.
    """
    info, findings = _probe(region)
    if info is None:
        return ImageSize(_shape_from_masks(cohort, region), None, findings)
    return ImageSize(info.shape, info.mpp, (*findings, *_bounds(cohort, region, info)))


def _bounds(cohort: Cohort, region: Region, info: ImageInfo) -> tuple[Finding, ...]:
    """Report a slide with bounds if the cohort does not say from where its outlines count."""
    if info.bounds_xy == (0, 0):
        return ()
    predicted = cohort.predictions_in(region.name)
    sides = {"reference": [region.reference] if region.reference else [], "predictions": predicted}
    x, y = info.bounds_xy
    words = [
        f'{side}.offset = "{SLIDE_BOUNDS}"'
        for side, found in sides.items()
        if any(_counts_from_corner(files) for files in found)
    ]
    message = (
        f"the scanned area of the slide begins at x {x}, y {y} (its bounds), from where QuPath "
        f"counts; outlines were taken to count from the corner of the slide. Where QuPath wrote "
        f"them, set {' or '.join(words)} under [files] in cohort.toml; elsewhere [0, 0]"
    )
    found = Finding(FindingKind.CONVENTION, message, path=region.image, region=region.name)
    return (found,) if words else ()


def _counts_from_corner(files: MaskFiles) -> bool:
    """Return whether nothing states where outlines of the slide begin."""
    rules = files.rules
    is_stated = rules.offset_xy is not None or rules.from_bounds is not None
    return not is_stated and files.patch is None and not is_mask(files)


def at_bounds(files: MaskFiles, region: Region) -> MaskFiles:
    """Return files with the offset of the slide's bounds, where the cohort states it."""
    if not files.rules.from_bounds:
        return files
    info, _ = _probe(region)
    bounds = (0, 0) if info is None else info.bounds_xy
    return replace(files, rules=files.rules.at_bounds(bounds))


@dataclass(frozen=True, eq=False)
class ReferenceMasks:
    """The annotation of a region, and what is known of its image."""

    #: Size in px, and micrometres per pixel or None.
    shape: tuple[int, int]
    mpp: float | None
    #: The annotated objects, or None if they cannot be read.
    masks: LoadedMasks | None
    #: Problems found.
    findings: tuple[Finding, ...]

    @property
    def is_restorable(self) -> bool:
        """Whether the format of the annotation needs restoration."""
        return self.masks is not None and self.masks.restored is not None

    def restored(self, way: Way) -> ReferenceMasks:
        """Return the objects restored in another way; the same if there is nothing to restore."""
        masks = self.masks
        if masks is None or masks.restored is None:
            return self
        restored = masks.restored(*way)
        others = tuple(f for f in self.findings if f not in masks.findings)
        return replace(self, masks=restored, findings=(*others, *restored.findings))


def load_reference(
    cohort: Cohort,
    region: Region,
    settings: EvaluationSettings,
    *,
    held_up_to_px: int | None = None,
) -> ReferenceMasks:
    """Read a region's size and annotation, without its pixels.

    Parameters
    ----------
    cohort, region
        What to read.
    settings
        How objects are recovered from colour-coded masks.
    held_up_to_px
        The number of pixels that the region may have; None for any number.

    Raises
    ------
    TooLargeError
        Where it has more.
    PanopticError
        If not even the size of the region can be found out.
    """
    size = region_size(cohort, region)
    shape, findings = size.shape, size.findings
    if held_up_to_px is not None and shape[0] * shape[1] > held_up_to_px:
        raise TooLargeError(
            f"region {region.name} of {size_text(shape)} is too large to be held",
            region=region.name,
        )
    masks: LoadedMasks | None = None
    if region.reference is not None:
        try:
            loaded = load_masks(
                at_bounds(region.reference, region),
                cohort.scheme,
                shape=shape,
                restoration=settings.restoration,
                radius=settings.radius,
                region=region.name,
            )
            findings += check_magnification(loaded.magnification, region, None)
            masks, findings = loaded, (*findings, *loaded.findings)
            findings += vast_findings(*vast_objects(loaded.labels), region, None)
        except (PanopticError, OSError) as error:
            findings += (Finding.unreadable(error, region=region.name),)
    return ReferenceMasks(shape=shape, mpp=size.mpp, masks=masks, findings=findings)


def load_prediction(
    cohort: Cohort,
    region: Region,
    team: str,
    shape: tuple[int, int],
    settings: EvaluationSettings,
    source: Source | None,
) -> tuple[LoadedMasks | None, tuple[Finding, ...]]:
    """Return one team's objects of one region, and findings; None if that fails."""
    files = prediction_files(cohort, region.name, team, source)
    if files is None:
        return None, (no_prediction(region, team, source),)
    masks, findings = read_prediction(cohort, region, team, files, shape, settings)
    if masks is None:
        return None, findings
    return masks, (*findings, *unusual_form(cohort, region, team, files, source))


def read_prediction(
    cohort: Cohort,
    region: Region,
    team: str,
    files: MaskFiles,
    shape: tuple[int, int],
    settings: EvaluationSettings,
) -> tuple[LoadedMasks | None, tuple[Finding, ...]]:
    """Return one team's objects from the files of one format, and findings; None if that fails."""
    try:
        masks = load_masks(
            at_bounds(files, region),
            cohort.scheme,
            shape=shape,
            restoration=settings.restoration,
            radius=settings.radius,
            region=region.name,
            team=team,
        )
        found = check_magnification(masks.magnification, region, team)
    except (PanopticError, OSError) as error:
        return None, (Finding.unreadable(error, region=region.name, team=team),)
    found += vast_findings(*vast_objects(masks.labels), region, team)
    return masks, (*masks.findings, *found)


VAST_SHARE = 0.5
"""Of a region, which no nucleus covers."""
LEAST_VAST_PX = 100**2
"""Smaller regions may be crops around a nucleus."""
_GRID = 200
"""Rows of pixels, at least, by which the share of a held region is found."""


def vast_objects(labels: LabelImage) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Return the ids of objects that cover more of a region than a nucleus does, and its shape."""
    step = max(1, min(labels.shape) // _GRID)
    seen = labels.index[::step, ::step]
    share = np.bincount(seen.ravel(), minlength=len(labels) + 1)[1:] / max(seen.size, 1)
    return labels.ids[share > VAST_SHARE], labels.shape


def vast_findings(
    ids: NDArray[np.int64], shape: tuple[int, ...], region: Region, team: str | None
) -> tuple[Finding, ...]:
    """Report objects that cover more of a region of this shape than a nucleus does."""
    if not len(ids) or math.prod(shape) < LEAST_VAST_PX:
        return ()
    numbers = tuple(ids.tolist())
    message = (
        f"object {english_list(numbers)} covers more than {VAST_SHARE:.0%} of the region, as no "
        f"nucleus does: the mask may be inverted (0 for objects; save 0 for the background), or "
        f"this is the outline of an area (remove it)"
    )
    found = Finding(
        FindingKind.CONVENTION, message, region=region.name, team=team, object_ids=numbers
    )
    return (found,)


SAME_MAGNIFICATION = math.sqrt(2)
"""Magnifications that differ by less are the same: scanners of 40x have from 0.2 to 0.3 um/px."""
UM_PER_PX_AT_1X = 10.0


def check_magnification(
    stated: float | None, region: Region, team: str | None
) -> tuple[Finding, ...]:
    """Check that a stated magnification is that of a region's image.

    Parameters
    ----------
    stated
        The magnification in the file of the objects; None if there is none.
    region, team
        The region, and the team; None for the annotation.

    Returns
    -------
    tuple of Finding
        That it could not be checked, if that of the image is not known.

    Raises
    ------
    UnreadableFileError
        If the image has another one: all objects would be misplaced.
    """
    if stated is None:
        return ()
    info, _ = _probe(region)
    if info is None or info.mpp is None:
        message = (
            f"the outlines are in px at a magnification of {stated:g}; that of the image is not "
            f"known: they were taken for px of the image"
        )
        return (Finding(FindingKind.FALLBACK, message, region=region.name, team=team),)
    of_image = UM_PER_PX_AT_1X / info.mpp
    if 1 / SAME_MAGNIFICATION < stated / of_image < SAME_MAGNIFICATION:
        return ()
    raise UnreadableFileError(
        f"the outlines are in px at a magnification of {stated:g}, and the image has about "
        f"{of_image:.0f} ({info.mpp:g} um/px): they would all be misplaced. Multiply their "
        f"coordinates by {of_image / stated:.2f} and the magnification likewise, process the image "
        f"at its own magnification, or give the image at that of the outlines",
        region=region.name,
    )


def no_prediction(region: Region, team: str, source: Source | None) -> Finding:
    """Return the finding that a team has no prediction in the requested format."""
    form = f" in the format '{source}'" if source is not None else ""
    message = f"team '{team}' has no prediction{form} for region {region.name}: not evaluated"
    return Finding(FindingKind.MISSING, message, region=region.name, team=team)


def unusual_form(
    cohort: Cohort, region: Region, team: str, files: MaskFiles, source: Source | None
) -> tuple[Finding, ...]:
    """Return a finding if a team's figures would mix two formats of its predictions."""
    usual = preferred_form(cohort.forms_of_teams.get(team, ()))
    if source is not None or files.source == usual:
        return ()
    message = (
        f"team '{team}' has no {usual} prediction for region {region.name}: "
        f"its {files.source} prediction is used instead"
    )
    return (Finding(FindingKind.FALLBACK, message, region=region.name, team=team),)


def _shape_from_masks(cohort: Cohort, region: Region) -> tuple[int, int]:
    """Return the size of a region without a readable image."""
    masks = [region.reference] if region.reference is not None else []
    shape = reference_shape(None, [*masks, *cohort.predictions_in(region.name)])
    if shape is None:
        problem, remedy = "the image cannot be read", "put a readable image there"
        if region.image is None:
            problem = "there is no image"
        elif not region.image.exists():
            problem, remedy = "the image is not there any more", "put it back"
        raise UnreadableFileError(
            f"{problem}, and no mask of this region shows how large it is: {remedy}, or add a "
            "mask of the same size",
            path=region.image,
            region=region.name,
        )
    return shape


def _probe(region: Region) -> tuple[ImageInfo | None, tuple[Finding, ...]]:
    if region.image is None:
        return None, ()
    try:
        info = probe_image(region.image, region.image_item)
    except (UnreadableFileError, OSError) as error:
        return None, (Finding.unreadable(error, region=region.name),)
    if region.mpp is not None:
        known = tuple(f for f in info.findings if f.kind is not FindingKind.NO_MPP)
        info = replace(info, mpp=region.mpp, findings=known)
    return info, tuple(replace(finding, region=region.name) for finding in info.findings)


@dataclass(frozen=True, eq=False)
class OpenedMasks:
    """The objects of one side of a slide as they were opened."""

    #: Its objects, or None if they cannot be read.
    masks: TiledMasks | None
    #: Problems found.
    findings: tuple[Finding, ...] = ()


def open_side(
    cohort: Cohort,
    region: Region,
    shape: tuple[int, int],
    files: MaskFiles,
    team: str | None,
    progress: Progress,
) -> OpenedMasks:
    """Open one side of a slide, to be read in windows.

    Parameters
    ----------
    cohort, region, shape
        The slide, and its height and width in px.
    files
        The files of the side.
    team
        Whose prediction it is; None for the annotation.
    progress
        Reported and checked for cancellation while the files are read.

    Raises
    ------
    StoppedError
        If cancelled. What cannot be read is a finding.
    """
    doing = "opening the annotation" if team is None else f"opening masks of {team}"

    def tell(done: int, of: int) -> None:
        progress.check()
        progress.tell(done / max(of, 1), doing)

    try:
        own = at_bounds(files, region)
        masks = open_masks(own, cohort.scheme, shape, region=region.name, team=team, progress=tell)
        found = check_magnification(masks.magnification, region, team)
    except StoppedError:
        raise
    except (PanopticError, OSError) as error:
        return OpenedMasks(None, (Finding.unreadable(error, region=region.name, team=team),))
    return OpenedMasks(masks, (*masks.findings, *found))


def findings_after(
    masks: TiledMasks,
    pair: TiledPair,
    table: OverlapTable,
    region: Region,
    team: str | None,
    files: MaskFiles | None = None,
) -> tuple[Finding, ...]:
    """Return what is known only after all windows of a side have been read.

    Parameters
    ----------
    masks
        The objects.
    pair, table
        The objects with pixels, and what was counted of them.
    region, team
        The region, and the team; None for the annotation.
    files
        The files; None for those of the annotation.

    Returns
    -------
    tuple of Finding
        What the format reports, or else the objects without a pixel; objects of masks
        whose pieces lie far apart; and those that cover most of the slide.
    """
    side = Side.REFERENCE if team is None else Side.PREDICTION
    ids, counts, labels = pair.side(side).ids, table.side(side), masks.labels
    has_pixel, files = np.isin(labels.ids, ids), files or region.reference
    vast = ids[counts.area > VAST_SHARE * math.prod(labels.shape)]
    others = vast_findings(vast, labels.shape, region, team)
    is_open = files is not None and files.rules.objects is None and files.object_paths
    if files is not None and is_open and is_mask(files):
        name = "reference" if team is None else "predictions"
        found = stretched_findings(ids, counts.area, counts.bbox, files.all_paths[0], name)
        others += tuple(replace(finding, region=region.name, team=team) for finding in found)
    if masks.findings_after is not None:
        return (*masks.findings_after(has_pixel), *others)
    lost = tuple(labels.ids[~has_pixel].tolist())
    if not lost:
        return others
    message = (
        f"{counted(len(lost), 'object')} without a pixel left, outside the image, covered by "
        f"others or with no inner pixel: {english_list(lost)}"
    )
    return (
        Finding(
            FindingKind.VANISHED,
            message,
            region=region.name,
            team=team,
            count=len(ids),
            object_ids=lost,
        ),
        *others,
    )


LEAST_APART = 5
"""With fewer objects on a side, they may as well lie elsewhere."""
LITTLE = 0.3
"""Dice coefficient of the areas of both sides below which they overlap little."""


def little_overlap(areas: Areas, team: str, region: str | None = None) -> tuple[Finding, ...]:
    """Return a finding if both sides have objects and these overlap little.

    Parameters
    ----------
    areas
        Of all regions of a team.
    team
        Its name.
    region
        The region, if they are of one only; hard ones overlap little by themselves, so that only
        objects that do not touch at all are reported.
    """
    limit = LITTLE if region is None else 0.0
    if min(areas.n_reference, areas.n_prediction) < LEAST_APART or areas.dice > limit:
        return ()
    how = f"overlap little (Dice {areas.dice:.2f})" if areas.shared_px else "do not touch"
    message = (
        f"the {areas.n_prediction} objects of {team} and the {areas.n_reference} annotated ones "
        f"{how}: they may be those of other regions, mirrored, turned, moved, in px of another "
        f"resolution, in micrometres, with x and y swapped, or run lengths that go row by row. If "
        f"so, export them again, or set scale, offset or axes under [files] in cohort.toml (init "
        f"looks for the cause)"
    )
    return (Finding(FindingKind.LITTLE_OVERLAP, message, region=region, team=team),)


def not_in_windows(region: Region, team: str, what: str) -> Finding:
    """Return the finding that the settings need the region as a whole, which is not held."""
    message = (
        f"region {region.name} is too large to be held, and {what} is not possible for a region "
        f"that is read in windows: not evaluated for team '{team}'"
    )
    return Finding(FindingKind.UNREADABLE, message, region=region.name, team=team)


def read_picture(region: Region) -> tuple[SlideImage | None, tuple[Finding, ...]]:
    """Return the image of a region, and what is odd about it; None if there is none to show."""
    if region.image is None:
        return None, ()
    try:
        image = read_image(region.image, region.image_item)
    except (UnreadableFileError, OSError) as error:
        return None, (Finding.unreadable(error, region=region.name),)
    if region.mpp is not None:
        known = tuple(f for f in image.findings if f.kind is not FindingKind.NO_MPP)
        image = replace(image, mpp=region.mpp, findings=known)
    return image, tuple(replace(finding, region=region.name) for finding in image.findings)
