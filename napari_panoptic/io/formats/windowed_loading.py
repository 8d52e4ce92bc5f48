"""One way to open the objects of a slide, whatever form they are in."""

from __future__ import annotations

from collections.abc import Callable

from napari_panoptic.common.errors import UnreadableFileError, english_list
from napari_panoptic.io.formats.registry import form_of, known_forms
from napari_panoptic.io.formats.windowed_masks import TiledMasks
from napari_panoptic.io.guard import check_links
from napari_panoptic.nuclei.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.nuclei.values.labels import size_text


def open_masks(
    files: MaskFiles,
    scheme: ClassScheme,
    shape: tuple[int, int],
    *,
    region: str | None = None,
    team: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TiledMasks:
    """Open the objects of one side of a slide, without reading all pixels where possible.

    Parameters
    ----------
    files
        Which files, in which form.
    scheme
        The classes.
    shape
        Height and width of the slide in px.
    region, team
        Names, for findings and errors.
    progress
        Told how much of how much is done; what it raises ends the work.

    Raises
    ------
    UnreadableFileError
        For forms that can only be read whole, and where nothing usable can be
        read.
    """
    form = form_of(files.source)
    if form is None or form.open_tiles is None:
        forms = english_list([f.name for f in known_forms().values() if f.open_tiles])
        raise UnreadableFileError(
            f"the region of {size_text(shape)} is too large to be held, and masks in the form "
            f"'{files.source}' can only be read as a whole; forms that can be read in windows: "
            f"{forms}",
            path=files.all_paths[0] if files.all_paths else None,
            region=region,
        )
    check_links(files)
    return form.open_tiles(files, scheme, shape, region=region, team=team, progress=progress)
