"""N-ary MATLAB masks, one file per class, in every variant seen in submissions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import check_file, check_pixels
from napari_panoptic.io.formats.format import NOTHING_STATED, LoadedMasks, LoadRequest, located
from napari_panoptic.io.formats.labels.masks import extra_files, vanished_findings
from napari_panoptic.io.formats.labels.matlab import WHAT, Shape, mat_value, mat_variables
from napari_panoptic.io.formats.labels.planes import object_mask
from napari_panoptic.io.pixels.decode import check_size
from napari_panoptic.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.values.labels import IdImage, LabelImage

KNOWN_NAMES = ("n_ary_mask", "{class}_mask", "{class}", "img", "arr", "name", "item", "uint8")
"""Variable names seen in submissions, best first; compared without regard to case."""


def read_submission(
    files: MaskFiles, scheme: ClassScheme, request: LoadRequest = NOTHING_STATED
) -> LoadedMasks:
    """Read one region of a submission.

    A class without a file has no predictions. Of several files in one class folder the
    first by name is read, and the others are reported. If any file cannot be read, the whole
    region cannot: its objects would count as FN although they may have been found.

    Parameters
    ----------
    files
        Class name -> files.
    scheme
        The classes.
    request
        Its shape may be None if there is at least one file.

    Returns
    -------
    LoadedMasks
        ``labels.class_masks`` holds the masks with their own ids.

    Raises
    ------
    UnreadableFileError
        If a file has no variable that could be a mask, or two that could; if a
        mask has another size than the region, is not 2-D, or holds anything but
        non-negative whole numbers.
    """
    shape = request.shape
    masks: dict[str, IdImage] = {}
    findings: list[Finding] = []
    for name, paths in files.paths.items():
        if not paths:
            continue
        if name not in scheme.names:
            findings.append(_unscored(name, paths))
            continue
        findings.extend(extra_files(name, paths))
        mask, found = _read_class(paths[0], name, shape, request.region)
        findings.extend(found)
        masks[name] = mask
        # All masks of a region have one size, even if it is not known beforehand.
        shape = shape or mask.shape
    if shape is None:
        raise UnreadableFileError(
            "the submission has no mask for this region, and neither its image nor another mask "
            "states its size; add the image",
            region=request.region,
        )
    labels = LabelImage.from_class_masks(masks, scheme.names, shape).with_class_overlaps()
    findings.extend(vanished_findings(labels.vanished))
    return LoadedMasks(labels, None, located(findings, request))


def _read_class(
    path: Path, class_name: str, shape: tuple[int, int] | None, region: str | None
) -> tuple[IdImage, list[Finding]]:
    check_file(path, WHAT)
    variables = mat_variables(path)
    name, findings = _chosen(variables, class_name, shape, path, region)
    check_pixels(variables[name], 1, path=path, what=WHAT)
    what = f"the {class_name} mask (variable '{name}')"
    stated = _squeezed_shape(variables[name])
    # Other shapes are not read: they can crash the library.
    if len(stated) != 2 or 0 in stated:
        raise UnreadableFileError(
            f"{what} must be 2-D (rows, columns), found an array of shape {stated}",
            path=path,
            region=region,
        )
    check_size(stated, shape, path=path, region=region, what=what)
    array = _squeezed(mat_value(path, name))
    check_size(array.shape, stated, path=path, region=region, what=what)
    mask, found = object_mask(array, path=path, what=what, region=region, class_name=class_name)
    return mask, [*findings, *found]


def _chosen(
    variables: Mapping[str, Shape],
    class_name: str,
    shape: tuple[int, int] | None,
    path: Path,
    region: str | None,
) -> tuple[str, list[Finding]]:
    """Return the name of the variable that holds the mask."""
    masks = _candidates(variables)
    if not masks:
        found = english_list([f"'{n}' {_text(s)}" for n, s in variables.items()]) or "none"
        raise UnreadableFileError(
            f"expected a 2-D numeric variable with the {class_name} mask, found {found}; save "
            f"the mask as n_ary_mask",
            path=path,
            region=region,
        )
    if len(masks) == 1:
        return masks[0], []
    for known in KNOWN_NAMES:
        wanted = known.replace("{class}", class_name).casefold()
        for name in masks:
            if name.casefold() == wanted:
                return name, [_several(name, masks, "it has a known name", path, class_name)]
    fitting = [name for name in masks if shape and _squeezed_shape(variables[name]) == shape]
    if len(fitting) == 1:
        return fitting[0], [
            _several(fitting[0], masks, "it has the image's size", path, class_name)
        ]
    raise UnreadableFileError(
        f"expected one variable with the {class_name} mask, found several that could be it: "
        f"{english_list([f'{n!r} {_text(variables[n])}' for n in masks])}; keep one of them, or "
        f"call the mask n_ary_mask",
        path=path,
        region=region,
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


def _several(name: str, masks: list[str], why: str, path: Path, class_name: str) -> Finding:
    return Finding(
        FindingKind.AMBIGUOUS_VARIABLE,
        f"the file has {len(masks)} variables that could be the mask "
        f"({english_list([repr(m) for m in masks])}); '{name}' was taken, since {why}",
        path=path,
        class_name=class_name,
        count=len(masks),
    )


def _unscored(name: str, paths: tuple[Path, ...]) -> Finding:
    message = f"'{name}' is no class that is scored: its file was not read"
    return Finding(FindingKind.EXTRA, message, path=paths[0], class_name=name, count=len(paths))


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


def files_shape(files: MaskFiles) -> tuple[int, int] | None:
    """Return height and width in px from the headers, or None if they are not there."""
    for name, paths in files.paths.items():
        for path in paths[:1]:
            check_file(path, WHAT)
            variables = mat_variables(path)
            chosen, _ = _chosen(variables, name, None, path, None)
            match _squeezed_shape(variables[chosen]):
                case (height, width) if height and width:
                    return height, width
    return None
