"""Object masks in general: whole numbers, one positive id per object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.formats.reading import note
from napari_panoptic.values.labels import Vanished, compact


def whole_numbers(array: NDArray[Any], *, path: Path, what: str) -> NDArray[np.integer]:
    """Return an array of non-negative whole numbers, whatever type it was saved in.

    Raises
    ------
    UnreadableFileError
        For text, complex numbers, fractions, NaN, infinities and negative numbers.
    """

    def error(found: str) -> UnreadableFileError:
        return UnreadableFileError(
            f"{what} must hold whole numbers, 0 for background and one positive number per "
            f"object; found {found}",
            path=path,
        )

    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            numbers: NDArray[np.integer] = array.astype(np.int64)
        if not (numbers == array).all():
            odd = array[numbers != array].ravel()
            raise error(f"{len(odd)} values that are not whole numbers, such as {odd[0]:g}")
    elif array.dtype.kind in "iu":
        numbers = array
    else:
        raise error(f"values of type {array.dtype}")
    if numbers.size and int(numbers.min()) < 0:
        raise error(f"negative numbers down to {int(numbers.min())}")
    return numbers


def vanished_findings(
    vanished: Sequence[Vanished],
    *,
    path: Path | None = None,
    region: str | None = None,
    team: str | None = None,
) -> Iterator[Finding]:
    """Report the objects without a pixel, one finding per reason."""
    for reason in sorted({lost.reason for lost in vanished}):
        objects = sorted((v for v in vanished if v.reason == reason), key=lambda v: v.id)
        ids = tuple(lost.id for lost in objects)
        kinds = {lost.class_name for lost in objects}
        yield Finding(
            FindingKind.VANISHED,
            f"{counted(len(ids), f'{english_list(sorted(kinds))} object')} without a pixel "
            f"left, {reason}: {english_list(ids)}",
            path=path,
            region=region,
            team=team,
            class_name=kinds.pop() if len(kinds) == 1 else None,
            count=len(ids),
            object_ids=ids,
        )


def extra_files(name: str, paths: tuple[Path, ...]) -> list[Finding]:
    """Report the files of one class, or of all classes, beyond the first: they are not read."""
    if len(paths) < 2:
        return []
    message = (
        f"{len(paths)} files for {name}: {paths[0].name} was read, "
        f"{english_list([path.name for path in paths[1:]])} not"
    )
    return [
        Finding(FindingKind.EXTRA, message, path=paths[1], class_name=name, count=len(paths) - 1)
    ]


def most_frequent_classes(
    index: NDArray[np.int32], ids: NDArray[np.int64], class_numbers: NDArray[Any]
) -> list[int]:
    """Return the most frequent class number under each object, of equals the lowest.

    Objects with pixels of several classes are noted.

    Parameters
    ----------
    index, ids
        Of the objects, as :func:`compact` returns them.
    class_numbers
        Image (y, x) of class numbers, none of them negative.
    """
    kinds, numbers = compact(class_numbers)
    values = np.concatenate([[0], numbers])
    votes = np.bincount(
        index.ravel().astype(np.int64) * len(values) + kinds.ravel(),
        minlength=(len(ids) + 1) * len(values),
    ).reshape(-1, len(values))[1:]
    mixed = ids[np.count_nonzero(votes, axis=1) > 1].tolist()
    winners: list[int] = values[votes.argmax(axis=1)].tolist() if len(ids) else []
    if mixed:
        message = (
            f"{counted(len(mixed), 'object')} with pixels of several classes, of which the most "
            f"frequent was taken: {english_list(mixed)}"
        )
        kind = FindingKind.FALLBACK
        note(Finding(kind, message, count=len(mixed), object_ids=tuple(mixed)))
    return winners
