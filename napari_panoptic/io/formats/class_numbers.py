"""Classes as numbers, as HoVer-Net and similar programs write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from napari_panoptic.io.files.guard import SMALL_TABLE_BYTES
from napari_panoptic.io.files.json_files import parsing
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, UNKNOWN, class_number
from napari_panoptic.io.tables.csv_tables import read_text
from napari_panoptic.values.cohort import ClassScheme

TYPE_INFO = "type_info.json"
"""Names of the numbers, as HoVer-Net takes them: ``{"1": ["neopla", [255, 0, 0]]}``."""
_MOST_DIGITS = 20
"""Texts with more digits are no numbers of classes; Python refuses to convert thousands."""


class FromZero(int):
    """The number of a class in formats that count from 0."""


def type_info_of(path: Path) -> Path | None:
    """Find the table of names beside a file, or in the folder above it."""
    places = (path.parent / TYPE_INFO, path.parent.parent / TYPE_INFO)
    return next((place for place in places if place.is_file()), None)


def tables_beside(path: Path) -> tuple[Path, ...]:
    """Return the files beside a file with objects that decide what its classes mean."""
    table = type_info_of(path)
    return () if table is None else (table,)


def read_type_info(path: Path) -> dict[str, str]:
    """Read a table of names: number as text -> name.

    Raises
    ------
    UnreadableFileError
        If it is not valid.
    """
    what = "a table of class names"
    text = read_text(path, what, SMALL_TABLE_BYTES)
    with parsing(path, f'{what} such as {{"1": ["Epithelial", [255, 0, 0]]}}'):
        table = json.loads(text)
        return {
            str(int(key)): str(value[0] if isinstance(value, list) else value)
            for key, value in table.items()
        }


class ClassNumbers:
    """Finds the class of an object by its entry in a file.

    A number ``k`` is looked up in this order: as the text ``k`` among the
    scheme's aliases (``[aliases]`` in cohort.toml); by its name in a
    ``type_info.json``, if there is one; else it is the k-th class, from 1, or
    from 0 where it is a `FromZero`.
    A text is a class name. Nothing at all means the class that has the alias
    ``""``, or the only class of the scheme.

    Parameters
    ----------
    path
        The file with the objects; None if there is no table of names.
    scheme
        The classes.

    Raises
    ------
    UnreadableFileError
        If there is a table of names that cannot be read.
    """

    def __init__(self, path: Path | None, scheme: ClassScheme) -> None:
        self._scheme = scheme
        table = None if path is None else type_info_of(path)
        self._names = None if table is None else read_type_info(table)
        self._known: dict[Any, tuple[int, str | None]] = {}

    def of(self, value: Any) -> tuple[int, str | None]:
        """Return the class index, as in `Polygons`, and the name to report an unknown one by.

        Parameters
        ----------
        value
            A number, a text, or None; anything else is no class.
        """
        key = (type(value), value)
        if key not in self._known:
            self._known[key] = self._looked_up(value)
        return self._known[key]

    def name_of(self, value: Any) -> str:
        """Return the class of the scheme, else the name of an unknown one, empty if it has none."""
        number, name = self.of(value)
        if number > AMBIGUOUS:
            return self._scheme.names[number - 1]
        return (self._scheme.ambiguous if number == AMBIGUOUS else name) or ""

    def written(self) -> tuple[int | str, ...]:
        """Return the entry of each class of the scheme that `of` reads as that class.

        It is the smallest number that stands for the class, else the name of the class.
        """
        entries = [*(self._names or ()), *self._scheme.aliases]
        stated = {int(e) for e in entries if e.isdecimal() and len(e) <= _MOST_DIGITS}
        numbers: dict[int, int] = {}
        for number in sorted(stated | set(range(1, len(self._scheme.names) + 1))):
            numbers.setdefault(self.of(number)[0], number)
        return tuple(numbers.get(k, name) for k, name in enumerate(self._scheme.names, start=1))

    def _looked_up(self, value: Any) -> tuple[int, str | None]:
        if value is None:
            only = 1 if len(self._scheme.names) == 1 else UNKNOWN
            named = class_number([""], self._scheme)
            return (only if named == UNKNOWN else named), None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        names = [str(value)]
        first = 0 if isinstance(value, FromZero) else 1
        if str(value).isdecimal() and len(str(value)) <= _MOST_DIGITS:
            number = int(value)
            if self._names is not None:
                names += [self._names[str(number)]] if str(number) in self._names else []
            elif first <= number < first + len(self._scheme.names):
                names.append(self._scheme.names[number - first])
        return class_number(names, self._scheme), names[-1]
