"""N-ary MATLAB masks, one file per class, in every variant seen in submissions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import check_pixels
from napari_panoptic.io.formats.labels.mask_format import class_masks_format
from napari_panoptic.io.formats.labels.matlab import WHAT, Shape, mat_value, mat_variables
from napari_panoptic.io.formats.labels.planes import ClassObjects, Plane, class_objects
from napari_panoptic.io.formats.reading import note, refuse
from napari_panoptic.io.pixels.decode import check_size
from napari_panoptic.values.cohort import Source

KNOWN_NAMES = ("n_ary_mask", "{class}_mask", "{class}", "img", "arr", "name", "item", "uint8")
"""Variable names seen in submissions, best first; compared without regard to case."""


def read(path: Path, class_name: str, shape: tuple[int, int] | None) -> ClassObjects:
    """Read the mask of a class: the variable that has a known name, or the size of the region."""
    variables = mat_variables(path)
    name = _chosen(variables, class_name, shape)
    check_pixels(variables[name], 1, path=path, what=WHAT)
    what = f"the {class_name} mask (variable '{name}')"
    stated = _squeezed_shape(variables[name])
    # Other shapes are not read: they can crash the library.
    if len(stated) != 2 or 0 in stated:
        raise refuse(f"{what} must be 2-D (rows, columns), found an array of shape {stated}")
    check_size(stated, shape, path=path, what=what)
    array = _squeezed(mat_value(path, name))
    check_size(array.shape, stated, path=path, what=what)
    return class_objects(Plane.held(array, path, what), class_name)


def size(path: Path, class_name: str) -> tuple[int, ...]:
    """Return the shape of the mask of a class."""
    variables = mat_variables(path)
    return _squeezed_shape(variables[_chosen(variables, class_name, None)])


def _chosen(variables: Mapping[str, Shape], class_name: str, shape: tuple[int, int] | None) -> str:
    """Return the name of the variable that holds the mask."""
    masks = _candidates(variables)
    if not masks:
        found = english_list([f"'{n}' {_text(s)}" for n, s in variables.items()]) or "none"
        raise refuse(
            f"expected a 2-D numeric variable with the {class_name} mask, found {found}; save "
            f"the mask as n_ary_mask"
        )
    if len(masks) == 1:
        return masks[0]
    for known in KNOWN_NAMES:
        wanted = known.replace("{class}", class_name).casefold()
        for name in masks:
            if name.casefold() == wanted:
                return _of_several(name, masks, "it has a known name", class_name)
    fitting = [name for name in masks if shape and _squeezed_shape(variables[name]) == shape]
    if len(fitting) == 1:
        return _of_several(fitting[0], masks, "it has the image's size", class_name)
    raise refuse(
        f"expected one variable with the {class_name} mask, found several that could be it: "
        f"{english_list([f'{n!r} {_text(variables[n])}' for n in masks])}; keep one of them, or "
        f"call the mask n_ary_mask"
    )


def _candidates(variables: Mapping[str, Shape]) -> list[str]:
    plane = [
        name
        for name, shape in variables.items()
        if len(_squeezed_shape(shape)) == 2 and 0 not in shape
    ]
    # MATLAB stores a count or a threshold as 1 x 1: no mask, unless all are.
    masks = [name for name in plane if variables[name] != (1, 1)] or plane
    # A single variable that is no plane is refused later, with its shape.
    return masks or (list(variables) if len(variables) == 1 else [])


def _of_several(name: str, masks: list[str], why: str, class_name: str) -> str:
    message = (
        f"the file has {len(masks)} variables that could be the mask "
        f"({english_list([repr(m) for m in masks])}); '{name}' was taken, since {why}"
    )
    kind = FindingKind.AMBIGUOUS_VARIABLE
    note(Finding(kind, message, class_name=class_name, count=len(masks)))
    return name


def _squeezed_shape(shape: Shape) -> Shape:
    drop = max(0, len(shape) - 2)
    kept = []
    for size in shape:
        if size == 1 and drop:
            drop -= 1
        else:
            kept.append(size)
    return tuple(kept)


def _squeezed(array: NDArray[Any]) -> NDArray[Any]:
    return array.reshape(_squeezed_shape(array.shape))


def _text(shape: Shape) -> str:
    return " x ".join(str(size) for size in shape)


FORMAT = class_masks_format(
    name=Source.SUBMISSION,
    title="N-ary masks of MATLAB",
    what=WHAT,
    read=read,
    size=size,
)
