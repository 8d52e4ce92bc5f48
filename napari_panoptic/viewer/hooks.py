"""What napari calls: the sample cohort, opening a cohort, and reading a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import napari
from platformdirs import user_cache_path

from napari_panoptic.errors import PanopticError
from napari_panoptic.io.slides import probe_image, read_image
from napari_panoptic.regions import Task
from napari_panoptic.viewer.desk_layers import image_layer_data
from napari_panoptic.viewer.opening import Opened, ask_for_folder, read_folder, show_in

LayerData = tuple[Any, ...]
SAMPLE_FOLDER = "sample"
"""Where the sample cohort is written, in the user's cache: in a folder that all users share,
others could put theirs in its place."""


def sample_data() -> list[LayerData]:
    """Open the built-in sample cohort on the desk of the current viewer.

    Returns
    -------
    list
        The image of its first region; the desk makes the other layers and
        takes this one over.
    """
    from napari_panoptic.io.cohort import open_cohort
    from napari_panoptic.io.sample import write_sample_cohort

    cohort = open_cohort(write_sample_cohort(user_cache_path("napari-panoptic") / SAMPLE_FOLDER))
    image = cohort.regions[0].image
    if image is None:
        raise PanopticError("the sample cohort has no image; delete its folder", path=cohort.root)
    _show(Opened(Task.NUCLEI, cohort))
    return [image_layer_data(read_image(image))]


def open_cohort_dialog(viewer: napari.Viewer) -> None:
    """Let somebody choose a cohort's folder, and open it on the desk that suits it.

    Parameters
    ----------
    viewer
        The viewer that napari hands over.
    """
    ask_for_folder(viewer)


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
        read_folder(path)
    except PanopticError:
        return None
    return _read_cohort


def slide_reader(
    path: str | Sequence[str],
) -> Callable[[str | Sequence[str]], list[LayerData]] | None:
    """Give a reader for a slide that OpenSlide opens, else None.

    Parameters
    ----------
    path
        What is to be opened.
    """
    if not isinstance(path, str):
        return None
    try:
        probe_image(Path(path))
    except PanopticError:
        return None
    return _read_slide


def _read_slide(path: str | Sequence[str]) -> list[LayerData]:
    """Give a slide as a layer; of a large one, what is looked at is read."""
    return [image_layer_data(read_image(Path(path if isinstance(path, str) else path[0])))]


def _read_cohort(path: str | Sequence[str]) -> list[LayerData]:
    """Open the desk on a cohort; the desk makes the layers, so none are given back."""
    _show(read_folder(path if isinstance(path, str) else path[0]))
    return [(None,)]


def _show(opened: Opened) -> None:
    viewer = napari.current_viewer()
    if viewer is None:
        raise PanopticError("a cohort is shown in a napari window: open one first")
    show_in(viewer, opened)
