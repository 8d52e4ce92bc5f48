"""HoVer-Net and CoNSeP ``.mat`` files: one map of instances, and the class of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.labels.mask_format import Numbered, mask_format
from napari_panoptic.io.formats.labels.masks import most_frequent_classes, whole_numbers
from napari_panoptic.io.formats.labels.matlab import mat_value, mat_variables
from napari_panoptic.io.formats.reading import refuse
from napari_panoptic.io.pixels.decode import check_size
from napari_panoptic.values.cohort import Source
from napari_panoptic.values.labels import checked_array, compact

WHAT = "a MATLAB file with an instance map (inst_map), as HoVer-Net and CoNSeP have them"
INSTANCES, TYPE_MAP = "inst_map", "type_map"
LISTS = (("inst_type", "inst_uid"), ("class", "id"))
"""Classes and ids of the nuclei, in HoVer-Net and CoNSeP, and in Lizard."""


def size(path: Path, _: str | None) -> tuple[int, ...] | None:
    """Return the shape of the map."""
    return mat_variables(path).get(INSTANCES)


def read(path: Path, _: str | None, __: ClassNumbers) -> Numbered:
    """Read the objects of a ``.mat`` file of HoVer-Net, CoNSeP, Kumar or Lizard.

    ``inst_map`` (y, x) holds a number per nucleus. Its class is, in this order:
    the entry of ``inst_type`` (in Lizard ``class``) whose place ``inst_uid``
    (``id``) names; without ``inst_uid`` the entry of its rank among the numbers
    in the map, or, where there are more entries than nuclei, that of the number
    itself; the most frequent number in ``type_map`` under its pixels; the only
    class of the scheme. Class numbers are explained in
    `napari_panoptic.io.formats.class_numbers`.
    """
    variables = mat_variables(path)
    if INSTANCES not in variables:
        raise refuse(f"expected {WHAT}, found {english_list(list(variables)) or 'no variable'}")
    instances = _map(path, INSTANCES)
    index, ids = compact(checked_array(instances, "instance map"))
    if int(ids.max(initial=0)) > np.iinfo(np.int32).max:
        raise refuse(f"{INSTANCES} has ids above 2^31: renumber its objects")
    entries = _entries(path, variables, index, ids)
    return Numbered(instances, dict(zip(ids.tolist(), entries, strict=True)))


def _map(path: Path, name: str, shape: tuple[int, ...] | None = None) -> NDArray[np.integer]:
    array = mat_value(path, name)
    if array.ndim != 2:
        raise refuse(f"{name} must be 2-D (rows, columns), found an array of shape {array.shape}")
    if shape is not None:
        check_size(array.shape, (shape[0], shape[1]), path=path, what=name)
    return whole_numbers(array, path=path, what=name)


def _entries(
    path: Path, variables: Iterable[str], index: NDArray[np.int32], ids: NDArray[np.int64]
) -> Sequence[int | None]:
    """Return the class number of each object, None if the file has none."""
    for types, uids in LISTS:
        if types in variables:
            return _listed(path, types, uids if uids in variables else None, ids)
    if TYPE_MAP in variables:
        return most_frequent_classes(index, ids, _map(path, TYPE_MAP, index.shape))
    return [None] * len(ids)


def _listed(
    path: Path, types_name: str, uids_name: str | None, ids: NDArray[np.int64]
) -> list[int]:
    """Look each object up in a list of classes."""

    def unfit(found: str, object_id: int | None = None) -> UnreadableFileError:
        return refuse(
            f"expected a class in {types_name} for every nucleus in {INSTANCES}, found {found}; "
            f"save the two of them again together",
            object_id,
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


FORMAT = mask_format(
    name=Source.HOVERNET_MAT,
    title="HoVer-Net and CoNSeP MATLAB file",
    what=WHAT,
    read=read,
    size=size,
)
