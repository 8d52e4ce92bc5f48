"""One way to load the objects of a region, whatever form they are in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.io.formats.format import LoadedMasks, LoadRequest
from napari_panoptic.io.formats.registry import form_of
from napari_panoptic.io.guard import check_links
from napari_panoptic.io.images import probe_image
from napari_panoptic.nuclei.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.nuclei.values.settings import Restoration

__all__ = ["LoadedMasks", "load_masks", "reference_shape"]


def load_masks(
    files: MaskFiles,
    scheme: ClassScheme,
    *,
    shape: tuple[int, int] | None,
    restoration: Restoration = Restoration.BORDER_REMOVED,
    radius: int = 1,
    region: str | None = None,
    team: str | None = None,
) -> LoadedMasks:
    """Load the objects of one side of one region.

    Parameters
    ----------
    files
        Which files, in which form.
    scheme
        The classes.
    shape
        Height and width of the region in px, which masks must have. Polygons,
        and submissions without a single mask, cannot do without; for others
        None means: whatever the file has.
    restoration, radius
        How objects are recovered from colour-coded masks; without effect on
        other forms.
    region, team
        Names, for findings and errors.

    Raises
    ------
    UnreadableFileError
        Where nothing usable can be read.
    """
    form = form_of(files.source)
    if form is None or form.load is None:
        raise UnreadableFileError(
            f"there is no reader for masks in the form '{files.source}'", region=region
        )
    request = LoadRequest(
        shape=shape, restoration=restoration, radius=radius, region=region, team=team
    )
    check_links(files)
    return form.load(files, scheme, request)


def reference_shape(
    image: Path | None, masks: Iterable[MaskFiles], *, image_item: str | None = None
) -> tuple[int, int] | None:
    """Find out how large a region is: from its image, else from any mask of it.

    Parameters
    ----------
    image
        The region's image, if any; it may be unreadable.
    masks
        Masks of the region, the most trustworthy first; they may be unreadable.
    image_item
        Which image of a file that holds many.

    Returns
    -------
    Height and width in px, or None where no file tells them.
    """
    if image is not None:
        try:
            return probe_image(image, image_item).shape
        except PanopticError:
            # Whoever wants the image hears of it then; masks know the size as well.
            pass
    return next((shape for files in masks if (shape := _mask_shape(files))), None)


def _mask_shape(files: MaskFiles) -> tuple[int, int] | None:
    if (form := form_of(files.source)) is None:
        return None
    try:
        check_links(files)
        return form.shape(files)
    except PanopticError:
        return None
