"""From the files of a region to its objects, with findings for whatever is odd."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.io.formats.format import LoadedMasks, TiledMasks
from napari_panoptic.io.formats.registry import (
    known_forms,
    load_masks,
    open_masks,
    reference_shape,
)
from napari_panoptic.io.images.slides import ImageInfo, SlideImage, probe_image, read_image
from napari_panoptic.nuclei.regions.doubts import (
    check_magnification,
    no_prediction,
    unstated_bounds,
    unusual_form,
    vast_findings,
    vast_objects,
)
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.values.labels import size_text
from napari_panoptic.values.settings import EvaluationSettings, Restoration

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


def usual_form(cohort: Cohort, team: str) -> Source | None:
    """Return the usual format of a team's predictions over a cohort; None without predictions."""
    return preferred_form(cohort.forms_of_teams.get(team, ()))


def preferred_form(there: Container[Source]) -> Source | None:
    """Return the format of a prediction that is read by default if there are several."""
    return next((f.source for f in known_forms().values() if f.source in there), None)


class TooLargeError(PanopticError):
    """A region has more pixels than may be held in memory."""


def too_large(region: Region, shape: tuple[int, int]) -> TooLargeError:
    """Return the error that a region of this size cannot be held."""
    message = f"region {region.name} of {size_text(shape)} is too large to be held"
    return TooLargeError(message, region=region.name)


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
    return ImageSize(info.shape, info.mpp, (*findings, *unstated_bounds(cohort, region, info)))


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
        raise too_large(region, shape)
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
            findings += _checked_magnification(loaded.magnification, region, None)
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
    return masks, (*findings, *unusual_form(usual_form(cohort, team), region, team, files, source))


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
        found = _checked_magnification(masks.magnification, region, team)
    except (PanopticError, OSError) as error:
        return None, (Finding.unreadable(error, region=region.name, team=team),)
    found += vast_findings(*vast_objects(masks.labels), region, team)
    return masks, (*masks.findings, *found)


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


def _checked_magnification(
    stated: float | None, region: Region, team: str | None
) -> tuple[Finding, ...]:
    """Check the magnification that a file states, if it does; see `check_magnification`."""
    if stated is None:
        return ()
    info, _ = _probe(region)
    return check_magnification(stated, None if info is None else info.mpp, region, team)


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
        found = _checked_magnification(masks.magnification, region, team)
    except StoppedError:
        raise
    except (PanopticError, OSError) as error:
        return OpenedMasks(None, (Finding.unreadable(error, region=region.name, team=team),))
    return OpenedMasks(masks, (*masks.findings, *found))


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
