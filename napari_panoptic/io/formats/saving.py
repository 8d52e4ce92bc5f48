"""Saves edited objects to a file whose ending decides the format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import encodable, english_list
from napari_panoptic.io.files.replacing import writing
from napari_panoptic.io.formats.format import Format, LoadedMasks, Objects
from napari_panoptic.io.formats.registry import known_forms, load_masks
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage


def write_objects(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write the objects of a region as one file, such as a label TIFF or GeoJSON.

    A label TIFF gets a table of classes beside it, and a mask of the ambiguous
    area where there is one.

    Parameters
    ----------
    path
        The file to write; its ending decides the format. Existing files are replaced.
    objects
        The objects to write.

    Returns
    -------
    tuple of Path
        Every file that was written, the requested one first.

    Raises
    ------
    PanopticError
        If no format has this ending.
    UnwritableFileError
        If a file cannot be written; an existing one stays as it was.
    """
    form = form_for(path)
    if form is None or form.write is None:
        raise _unknown_ending(path, writable_forms())
    objects = replace(
        objects,
        labels=without_erased(objects.labels),
        region=encodable(objects.region),
        team=encodable(objects.team),
        patient=encodable(objects.patient),
    )
    with writing(path, more=". Nothing that was drawn is lost"):
        return form.write(path, objects)


def losses_of(path: Path, objects: Objects) -> tuple[Finding, ...]:
    """Return findings about what :func:`write_objects` loses of the objects."""
    form = form_for(path)
    return () if form is None else form.losses(objects)


def replaced_by(path: Path) -> tuple[Path, ...]:
    """List the files that :func:`write_objects` replaces or removes, the requested one first."""
    form = form_for(path)
    return (path,) if form is None else (path, *form.beside(path))


def read_objects(path: Path, scheme: ClassScheme, shape: tuple[int, int]) -> LoadedMasks:
    """Read the objects of a region from one file, such as :func:`write_objects` writes.

    Companions of a label TIFF are found beside it.

    Parameters
    ----------
    path
        The file; its ending decides the format.
    scheme
        The classes.
    shape
        Height and width of the region in px, which the file must have.

    Raises
    ------
    PanopticError
        If no format has this ending.
    UnreadableFileError
        If nothing usable can be read.
    """
    form = _form_among(readable_forms(), path)
    if form is None:
        raise _unknown_ending(path, readable_forms())
    return load_masks(MaskFiles(Source(form.name), {"": (path,)}), scheme, shape=shape)


def readable_forms() -> Iterator[Format]:
    """Return the formats in which one region can be saved and opened, the preferred first."""
    return (form for form in writable_forms() if form.open is not None)


def without_erased(labels: LabelImage) -> LabelImage:
    """Leave out objects that have no pixel left, and sort the others by id."""
    names = dict(zip(labels.ids.tolist(), labels.class_names_of_objects().tolist(), strict=True))
    kept = LabelImage.from_array(labels.id_image(), names, labels.class_names)
    return replace(kept, known_scores=labels.known_scores)


def check_not_in_cohort(paths: Iterable[Path], cohort: Path) -> None:
    """Check that no file inside the folder of a cohort would be replaced.

    Parameters
    ----------
    paths
        The files to write, except those that may be replaced.
    cohort
        The folder, or its description.

    Raises
    ------
    PanopticError
        If there is such a file; the first is named.
    """
    root = cohort.resolve().parent if cohort.is_file() else cohort.resolve()
    for path in paths:
        if os.path.lexists(path) and path.parent.resolve().is_relative_to(root):
            raise PanopticError(
                f"{path.name} is in the folder of the cohort and is not known to be written by "
                f"napari-panoptic, so it is not replaced; choose another place",
                path=path,
            )


def writable_forms() -> Iterator[Format]:
    """Return the formats in which one region can be saved, the preferred first."""
    return (form for form in known_forms().values() if form.write is not None)


def form_for(path: Path) -> Format | None:
    """Return the format in which a file is written, by its ending; None for other endings."""
    return _form_among(writable_forms(), path)


def _unknown_ending(path: Path, forms: Iterable[Format]) -> PanopticError:
    endings = [ending for form in forms for ending in form.endings]
    return PanopticError(
        f"the ending of the file's name decides its format: expected {english_list(endings)}, "
        f"found '{path.suffix}'",
        path=path,
    )


def _form_among(forms: Iterable[Format], path: Path) -> Format | None:
    name = path.name.casefold()
    fitting = [
        (len(ending), form)
        for form in forms
        for ending in form.endings
        if name.endswith(ending.casefold())
    ]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None
