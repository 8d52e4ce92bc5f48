"""What napari calls: the sample cohorts, opening a cohort, and reading a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import napari
from qtpy.QtWidgets import QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.object_layers import image_layer_data
from napari_panoptic.io.images.slides import probe_image, read_image
from napari_panoptic.values.cohort import Region, Task
from napari_panoptic.values.detections import Frame
from napari_panoptic.viewer.desk.docks import after_layout
from napari_panoptic.viewer.desk.nuclei import Desk, desk_in
from napari_panoptic.viewer.kit.napari_private import unwrapped
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.layers.owned import IMAGE, Owner, find_own, own_when_added
from napari_panoptic.viewer.opening import (
    Opened,
    ask_for_folder,
    read_folder,
    read_sample,
    show_in,
)

ALREADY_OPEN = "The inspector is already open in this window."
LayerData = tuple[Any, ...]


def make_inspector(viewer: napari.Viewer | None = None) -> QWidget:
    """Make the desk in a viewer; napari docks the widget that this returns.

    Where the desk is open already, it is left alone and the widget says so.

    Parameters
    ----------
    viewer
        The viewer; the current one where None, since napari hands a function
        none.

    Raises
    ------
    PanopticError
        Where there is no viewer.
    """
    viewer = unwrapped(viewer or napari.current_viewer())
    if viewer is None:
        raise PanopticError("the inspector needs a napari window: open one first")
    if desk_in(viewer) is not None:
        return PlainLabel(ALREADY_OPEN)
    desk = Desk(viewer)
    after_layout(desk.strip, desk.build)
    return desk.strip


def sample_data() -> list[LayerData]:
    """Open the built-in sample cohort on the desk of the current viewer.

    Returns
    -------
    list
        The image of its first region: napari wants a layer. The desk takes this
        one over and makes the others.
    """
    return _first_image(_sample(Task.NUCLEI).regions[0])


def detection_sample_data() -> list[LayerData]:
    """Open the sample cohort of detections; as `sample_data`."""
    return _first_image(_sample(Task.DETECTIONS).frames[0])


def raters_sample_data() -> list[LayerData]:
    """Open the sample cohort of several raters; as `sample_data`."""
    from napari_panoptic.viewer.jobs.rater_work import load_picture
    from napari_panoptic.viewer.layers.rater_scene import image_role, picture_layer_data

    cohort = _sample(Task.RATERS)
    structure = cohort.structures[0]
    case = cohort.cases_with(structure)[0]
    picture = load_picture(cohort, case, structure)
    data, options, kind = picture_layer_data(picture)
    role = image_role(options["name"], data)
    return [_for_desk((data, options, kind), Owner.RATERS, role)]


def _sample(task: Task) -> Any:
    """Write the sample of a task where it is not there, and show it."""
    opened = read_sample(task)
    _show(opened)
    return opened.cohort


def _first_image(region: Region | Frame) -> list[LayerData]:
    if region.image is None:
        raise PanopticError("the sample cohort has no image; delete its folder", region=region.name)
    return [_for_desk(image_layer_data(read_image(region.image)), Owner.DESK, IMAGE)]


def _for_desk(layer: LayerData, owner: Owner, role: str) -> LayerData:
    """Let the desk take an image over; hidden if a desk has left one, which it takes instead."""
    data, options, kind = layer
    viewer = _viewer()
    is_there = find_own(viewer, owner, role) is not None
    options = own_when_added(viewer, options, owner, role)
    return data, {**options, "visible": not is_there}, kind


def open_cohort_dialog(viewer: napari.Viewer) -> None:
    """Let the user choose a cohort's folder, and open it on the matching desk.

    Parameters
    ----------
    viewer
        The viewer that napari hands over.
    """
    ask_for_folder(viewer)


def cohort_reader(
    path: str | Sequence[str],
) -> Callable[[str | Sequence[str]], list[LayerData]] | None:
    """Return a reader for a folder that is a cohort, else None.

    Parameters
    ----------
    path
        The path to open.
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
    """Return a reader for a slide that OpenSlide opens, else None.

    Parameters
    ----------
    path
        The path to open.
    """
    if not isinstance(path, str):
        return None
    try:
        probe_image(Path(path))
    except PanopticError:
        return None
    return _read_slide


def _read_slide(path: str | Sequence[str]) -> list[LayerData]:
    """Return a slide as a layer; of a large one, only the visible part is read."""
    return [image_layer_data(read_image(Path(path if isinstance(path, str) else path[0])))]


def _read_cohort(path: str | Sequence[str]) -> list[LayerData]:
    """Open the desk on a cohort; the desk makes the layers, so none are given back."""
    _show(read_folder(path if isinstance(path, str) else path[0]))
    return [(None,)]


def _show(opened: Opened) -> None:
    show_in(_viewer(), opened)


def _viewer() -> napari.Viewer:
    viewer = napari.current_viewer()
    if viewer is None:
        raise PanopticError("a cohort is shown in a napari window: open one first")
    return viewer
