"""What napari calls: the sample cohort, opening a cohort, and reading a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import napari
from platformdirs import user_cache_path

from napari_panoptic.errors import PanopticError
from napari_panoptic.io.cohort import open_cohort
from napari_panoptic.io.slides import read_image
from napari_panoptic.regions import Cohort
from napari_panoptic.viewer.scene import image_layer_data

LayerData = tuple[Any, ...]
SAMPLE_FOLDER = "sample"
"""In the user's cache: in a folder that all users share, others could put theirs in its place."""
"""Name of the folder, among the temporary files, that the sample cohort is written to."""


def sample_data() -> list[LayerData]:
    """Open the built-in sample cohort on the desk of the current viewer.

    Returns
    -------
    list
        The image of its first region; the desk makes the other layers and
        takes this one over.
    """
    from napari_panoptic.io.sample import write_sample_cohort

    cohort = open_cohort(write_sample_cohort(user_cache_path("napari-panoptic") / SAMPLE_FOLDER))
    image = cohort.regions[0].image
    if image is None:
        raise PanopticError("the sample cohort has no image; delete its folder", path=cohort.root)
    _show(cohort)
    return [image_layer_data(read_image(image))]


def open_cohort_dialog(viewer: napari.Viewer) -> None:
    """Let somebody choose a cohort's folder, and open it on the desk.

    Parameters
    ----------
    viewer
        The viewer that napari hands over.
    """
    from napari_panoptic.viewer.widgets.desk import desk_of

    desk_of(viewer).ask_for_cohort()


def cohort_reader(
    path: str | Sequence[str],
) -> Callable[[str | Sequence[str]], list[LayerData]] | None:
    """Give a reader for a folder that is a cohort, else None.

    Parameters
    ----------
    path
        What is to be opened.
    """
    if not isinstance(path, str) or not Path(path).is_dir():
        return None
    try:
        open_cohort(Path(path))
    except PanopticError:
        return None
    return _read_cohort


def _read_cohort(path: str | Sequence[str]) -> list[LayerData]:
    """Open the desk on a cohort; the desk makes the layers, so none are given back."""
    _show(open_cohort(Path(path if isinstance(path, str) else path[0])))
    return [(None,)]


def _show(cohort: Cohort) -> None:
    from napari_panoptic.viewer.widgets.desk import desk_of

    viewer = napari.current_viewer()
    if viewer is None:
        raise PanopticError("a cohort is shown in a napari window: open one first")
    desk_of(viewer).show_cohort(cohort)
