"""HoVer-Net and CoNSeP ``.mat`` files: one map of instances, and the class of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import check_file
from napari_panoptic.io.formats.class_numbers import TYPE_INFO, ClassNumbers
from napari_panoptic.io.formats.format import LoadedMasks, LoadRequest, located
from napari_panoptic.io.formats.labels.masks import (
    extra_files,
    most_frequent_classes,
    whole_numbers,
)
from napari_panoptic.io.formats.labels.matlab import mat_value, mat_variables
from napari_panoptic.io.formats.labels.planes import labels_with_classes
from napari_panoptic.io.pixels.decode import check_size
from napari_panoptic.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.values.labels import checked_array, compact

WHAT = "a MATLAB file with an instance map (inst_map), as HoVer-Net and CoNSeP have them"
INSTANCES, TYPE_MAP = "inst_map", "type_map"
LISTS = (("inst_type", "inst_uid"), ("class", "id"))
"""Classes and ids of the nuclei, in HoVer-Net and CoNSeP, and in Lizard."""


def load_files(files: MaskFiles, scheme: ClassScheme, request: LoadRequest) -> LoadedMasks:
    """Read the objects of a ``.mat`` file of HoVer-Net, CoNSeP, Kumar or Lizard.

    ``inst_map`` (y, x) holds a number per nucleus. Its class is, in this order:
    the entry of ``inst_type`` (in Lizard ``class``) whose place ``inst_uid``
    (``id``) names; without ``inst_uid`` the entry of its rank among the numbers
    in the map, or, where there are more entries than nuclei, that of the number
    itself; the most frequent number in ``type_map`` under its pixels; the only
    class of the scheme. Class numbers are explained in
    `napari_panoptic.io.formats.class_numbers`.

    Raises
    ------
    UnreadableFileError
        If there is no ``inst_map``, it has another size, or the classes do
        not fit it.
    """
    path = files.all_paths[0]
    check_file(path, WHAT)
    shapes = mat_variables(path)
    if INSTANCES not in shapes:
        raise UnreadableFileError(
            f"expected {WHAT}, found {english_list(list(shapes)) or 'no variable'}", path=path
        )
    instances = _map(path, INSTANCES, request.shape)
    index, ids = compact(checked_array(instances, "instance map"))
    if int(ids.max(initial=0)) > np.iinfo(np.int32).max:
        raise UnreadableFileError(
            f"{INSTANCES} has ids above 2^31: renumber its objects", path=path
        )
    numbers, findings = _numbers(path, shapes, index, ids)
    classes = ClassNumbers(path, scheme)
    names = {
        id_: classes.name_of(number) for id_, number in zip(ids.tolist(), numbers, strict=True)
    }
    findings.extend(classes.findings(path))
    labels, ambiguous = labels_with_classes(instances, names, path, scheme, findings)
    maps = tuple(own for own in files.object_paths if own.name != TYPE_INFO)
    findings.extend(extra_files("all classes", maps))
    return LoadedMasks(labels, ambiguous, located(findings, request, path=path))


def _map(path: Path, name: str, shape: tuple[int, int] | None) -> NDArray[np.integer]:
    array = mat_value(path, name)
    if array.ndim != 2:
        raise UnreadableFileError(
            f"{name} must be 2-D (rows, columns), found an array of shape {array.shape}", path=path
        )
    check_size(array.shape, shape, path=path, region=None, what=name)
    return whole_numbers(array, path=path, what=name)


def _numbers(
    path: Path,
    variables: dict[str, tuple[int, ...]],
    index: NDArray[np.int32],
    ids: NDArray[np.int64],
) -> tuple[list[int | None], list[Finding]]:
    """Return the class number of each object, None if the file has none."""
    for types, uids in LISTS:
        if types in variables:
            return _listed(path, types, uids if uids in variables else None, ids), []
    if TYPE_MAP in variables:
        height, width = index.shape
        type_map = _map(path, TYPE_MAP, (height, width))
        numbers, findings = most_frequent_classes(index, ids, type_map, path)
        return list(numbers), findings
    return [None] * len(ids), []


def _listed(
    path: Path, types_name: str, uids_name: str | None, ids: NDArray[np.int64]
) -> list[int | None]:
    """Look each object up in a list of classes."""

    def unfit(found: str, object_id: int | None = None) -> UnreadableFileError:
        return UnreadableFileError(
            f"expected a class in {types_name} for every nucleus in {INSTANCES}, found {found}; "
            f"save the two of them again together",
            path=path,
            object_id=object_id,
        )

    types = _list(path, types_name)
    if uids_name is not None:
        uids = _list(path, uids_name)
        if len(uids) != len(types):
            raise unfit(f"{len(types)} entries in {types_name} and {len(uids)} in {uids_name}")
        places = dict(zip(uids, types, strict=True))
    elif len(types) == len(ids):
        places = dict(zip(ids.tolist(), types, strict=True))
    else:
        places = dict(enumerate(types, start=1))
    if lacking := [id_ for id_ in ids.tolist() if id_ not in places]:
        raise unfit(f"no class for {english_list(lacking)}", lacking[0])
    return [places[id_] for id_ in ids.tolist()]


def _list(path: Path, name: str) -> list[int]:
    values: list[int] = whole_numbers(mat_value(path, name).ravel(), path=path, what=name).tolist()
    return values


def files_shape(files: MaskFiles) -> tuple[int, int] | None:
    """Return height and width in px from the headers, or None if they are not there."""
    path = files.all_paths[0]
    check_file(path, WHAT)
    match mat_variables(path).get(INSTANCES):
        case (height, width) if height and width:
            return height, width
    return None
