"""Submissions: n-ary masks in MATLAB files, one per class, in all their habits."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import Finding, FindingKind, UnreadableFileError, english_list
from napari_panoptic.io.files import (
    DECODING_ERRORS,
    check_file,
    check_size,
    foreign_decoder,
    undecodable,
    without_warnings,
)
from napari_panoptic.io.formats.format import LoadedMasks, LoadRequest, located
from napari_panoptic.io.formats.labels import matlab73 as _matlab73
from napari_panoptic.io.formats.labels.masks import object_mask, vanished_findings
from napari_panoptic.io.formats.labels.matlab5 import read_variable
from napari_panoptic.io.limits import (
    BYTES_PER_PX,
    DEFLATE_RATIO,
    check_inflated,
    check_length,
    check_pixels,
    largest_px,
)
from napari_panoptic.nuclei.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.nuclei.values.labels import LabelImage

WHAT = "a MATLAB file with an n-ary mask"
KNOWN_NAMES = ("n_ary_mask", "{class}_mask", "{class}", "img", "arr", "name", "item", "uint8")
"""Variable names seen in submissions, best first; compared without regard to case."""
NUMERIC_CLASSES = {
    *("double", "single", "logical", "sparse"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}

# Of MATLAB 5 files: header, its last two bytes, and the type of elements in zlib streams.
_HEADER_BYTES = 128
_BYTE_ORDERS = {b"IM": "<", b"MI": ">"}
_MATRIX, _COMPRESSED = 14, 15
# Of MATLAB 4 files: the header of each variable, and its first number, whose digits say of what
# type the variable's numbers are, and whether it is sparse.
_HEADER_4_BYTES = 20
_LAST_KIND_4 = 5000
_ITEMSIZES_4 = {0: 8, 1: 4, 2: 4, 3: 2, 4: 2, 5: 1}
_SPARSE_4 = 2

MOST_VARIABLES = 10_000
"""In a file; there is one mask in each."""

Shape = tuple[int, ...]


def read_submission(
    files: MaskFiles,
    scheme: ClassScheme,
    *,
    shape: tuple[int, int] | None = None,
    region: str | None = None,
    team: str | None = None,
) -> LoadedMasks:
    """Read one region of a submission.

    A class without a file is a class of which nothing was predicted. Several
    files in one class folder: the first by name is taken, the others are
    reported. If any file cannot be read, the whole region cannot: with the
    rest alone, objects would count as missed that perhaps were found.

    Parameters
    ----------
    files
        Class name -> files.
    scheme
        The classes.
    shape
        Height and width that the masks must have. May be None where there is
        at least one file.
    region, team
        Names, for findings and errors.

    Returns
    -------
    LoadedMasks
        ``labels.class_masks`` holds the masks with their own ids.

    Raises
    ------
    UnreadableFileError
        Where a file has no variable that could be a mask, or two that could
        equally be; where a mask has another size than the region, more than two
        dimensions, or holds anything but non-negative whole numbers.
    """
    masks: dict[str, NDArray[np.int32]] = {}
    findings: list[Finding] = []
    for name, paths in files.paths.items():
        if not paths:
            continue
        if name not in scheme.names:
            findings.append(_unscored(name, paths))
            continue
        findings.extend(_extra(name, paths))
        mask, found = _read_class(paths[0], name, shape, region)
        findings.extend(found)
        masks[name] = mask
        # All masks of a region have one size, even where nobody told it.
        shape = shape or mask.shape
    if shape is None:
        raise UnreadableFileError(
            "the submission has no mask for this region, and neither its image nor another mask "
            "tells its size",
            region=region,
        )
    labels = LabelImage.from_class_masks(masks, scheme.names, shape).with_class_overlaps()
    request = LoadRequest(region=region, team=team)
    findings.extend(vanished_findings(labels))
    return LoadedMasks(labels, None, located(findings, request))


def _read_class(
    path: Path, class_name: str, shape: tuple[int, int] | None, region: str | None
) -> tuple[NDArray[np.int32], list[Finding]]:
    check_file(path, WHAT)
    variables = mat_variables(path)
    name, findings = _chosen(variables, class_name, shape, path, region)
    check_pixels(variables[name], 1, path=path, what=WHAT)
    what = f"the {class_name} mask (variable '{name}')"
    told = _squeezed_shape(variables[name])
    # What is no mask is not read: of other shapes the library can crash.
    if len(told) != 2 or 0 in told:
        raise UnreadableFileError(
            f"{what} must be 2-D (rows, columns), found an array of shape {told}",
            path=path,
            region=region,
        )
    check_size(told, shape, path=path, region=region, what=what)
    array = _squeezed(mat_value(path, name))
    check_size(array.shape, told, path=path, region=region, what=what)
    mask, found = object_mask(array, path=path, what=what, region=region, class_name=class_name)
    return mask, [*findings, *found]


def _chosen(
    variables: Mapping[str, Shape],
    class_name: str,
    shape: tuple[int, int] | None,
    path: Path,
    region: str | None,
) -> tuple[str, list[Finding]]:
    """Choose the variable that holds the mask."""
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
    # Without a plane, let the one that is left be refused with its own shape.
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


def _extra(name: str, paths: tuple[Path, ...]) -> list[Finding]:
    if len(paths) < 2:
        return []
    others = english_list([path.name for path in paths[1:]])
    message = f"{len(paths)} files for {name}: {paths[0].name} was read, {others} not"
    return [
        Finding(FindingKind.EXTRA, message, path=paths[1], class_name=name, count=len(paths) - 1)
    ]


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


def mat_variables(path: Path) -> dict[str, Shape]:
    """List the numeric variables of a file with their shapes.

    Raises
    ------
    UnreadableFileError
        Where it is no MATLAB file, or one of version 7.3 without the package for it.
    """
    import scipy.io
    from scipy.io.matlab import MatReadError

    if _matlab73.is_hdf5(path):
        with _decoded(path):
            return _matlab73.variables(path)
    check_length(path, WHAT, largest_px() * BYTES_PER_PX + _HEADER_BYTES)
    try:
        _check_elements(path)
        _check_version_4(path)
        with without_warnings(), foreign_decoder():
            listed = scipy.io.whosmat(path, appendmat=False)
        if any(size < 0 for _, shape, _ in listed for size in shape):
            raise ValueError("a variable has a negative size")
    except (*DECODING_ERRORS, MatReadError) as error:
        raise undecodable(path, WHAT, error) from error
    names = [name for name, _, _ in listed]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise UnreadableFileError(
            f"expected variables of different names, found {english_list(doubled)} twice: nobody "
            f"can tell which one is meant; keep one of them",
            path=path,
        )
    return {name: tuple(shape) for name, shape, kind in listed if kind in NUMERIC_CLASSES}


def mat_value(path: Path, name: str) -> NDArray[Any]:
    """Read a variable of a file, rows first.

    Raises
    ------
    UnreadableFileError
        Where it cannot be decoded.
    """
    import scipy.io
    from scipy.io.matlab import MatReadError, matfile_version

    if _matlab73.is_hdf5(path):
        with _decoded(path):
            return _matlab73.value(path, name, WHAT)
    try:
        with without_warnings():
            if matfile_version(path, appendmat=False)[0] == 1:
                return read_variable(path, name)
            with foreign_decoder():
                value = scipy.io.loadmat(path, appendmat=False, variable_names=[name])[name]
    except (*DECODING_ERRORS, MatReadError) as error:
        raise undecodable(path, WHAT, error) from error
    check_pixels(value.shape, value.dtype.itemsize, path=path, what=WHAT)
    dense: NDArray[Any] = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    return dense


@contextmanager
def _decoded(path: Path) -> Iterator[None]:
    try:
        yield
    except DECODING_ERRORS as error:
        raise undecodable(path, WHAT, error) from error


def _check_elements(path: Path) -> None:
    """Make sure that no compressed variable of a file inflates to more than the limit.

    The library takes memory for as many bytes as a stream claims, whatever the
    size of the mask. A file of another version has no such elements and passes.

    Raises
    ------
    UnreadableFileError
        Where one does.
    ValueError
        For something else than variables, which the library reads for minutes.
    """
    limit, file_bytes = largest_px() * BYTES_PER_PX, path.stat().st_size
    variables = 0
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or header[126:] not in _BYTE_ORDERS:
            return
        order = _BYTE_ORDERS[header[126:]]
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            variables += 1
            if kind not in (_MATRIX, _COMPRESSED) or not size or variables > MOST_VARIABLES:
                raise ValueError(f"its element {variables} is no variable of a MATLAB file")
            if kind == _COMPRESSED and size * DEFLATE_RATIO > limit:
                # Whatever is claimed, memory is taken for what is there.
                check_inflated(file.read(min(size, file_bytes)), limit, path=path)
            else:
                file.seek(size, os.SEEK_CUR)


def _check_version_4(path: Path) -> None:
    """Make sure that each variable of a file of version 4 leads on to the next one.

    The library goes back where sizes are negative, and round for ever. A file of another
    version has no byte of 0 among the first four, and passes.

    Raises
    ------
    ValueError
        Where one does not.
    """
    file_bytes = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(4)
        if len(start) < 4 or 0 not in start:
            return
        # Which numbers a variable has is told by four digits: in the wrong order it is none.
        variables = 0
        order = "<" if 0 <= struct.unpack("<i", start)[0] <= _LAST_KIND_4 else ">"
        file.seek(0)
        while len(header := file.read(_HEADER_4_BYTES)) == _HEADER_4_BYTES:
            kind, rows, columns, imaginary, name_bytes = struct.unpack(f"{order}5i", header)
            variables += 1
            if min(rows, columns, name_bytes) < 0:
                raise ValueError("a variable has a negative size")
            # Names end with a byte of 0.
            if not name_bytes or variables > MOST_VARIABLES:
                raise ValueError(f"its variable {variables} has no name, or there are too many")
            parts = 2 if imaginary == 1 and kind % 10 != _SPARSE_4 else 1
            size = rows * columns * parts * _ITEMSIZES_4.get(kind // 10 % 10, 1)
            if file.tell() + name_bytes + size > file_bytes:
                raise ValueError("a variable is longer than the file")
            file.seek(name_bytes + size, os.SEEK_CUR)


def load_files(files: MaskFiles, scheme: ClassScheme, request: LoadRequest) -> LoadedMasks:
    """Read the objects of one side of a region; see `napari_panoptic.io.formats.format.Format`."""
    return read_submission(
        files, scheme, shape=request.shape, region=request.region, team=request.team
    )


def files_shape(files: MaskFiles) -> tuple[int, int] | None:
    """Return height and width in px without reading all, or None where nothing tells them."""
    for name, paths in files.paths.items():
        for path in paths[:1]:
            check_file(path, WHAT)
            variables = mat_variables(path)
            chosen, _ = _chosen(variables, name, None, path, None)
            match _squeezed_shape(variables[chosen]):
                case (height, width) if height and width:
                    return height, width
    return None
