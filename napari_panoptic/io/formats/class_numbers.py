"""Classes as numbers, as HoVer-Net, YOLO and similar programs write them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import SMALL_TABLE_BYTES
from napari_panoptic.io.files.json_files import parsing
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, UNKNOWN, class_number
from napari_panoptic.io.tables.csv_tables import read_text
from napari_panoptic.values.cohort import ClassScheme

TYPE_INFO = "type_info.json"
"""Names of the numbers, as HoVer-Net takes them: ``{"1": ["neopla", [255, 0, 0]]}``."""
DATA_YAML = "data.yaml"
"""Names of the numbers, as Ultralytics takes them: ``names: [neopla, inflam]``, or a mapping."""
_LEVELS = 4
"""Number of folders above files of YOLO that are searched: ``data.yaml`` beside
``labels/train/a.txt``."""
_MOST_DIGITS = 20
"""Texts with more digits are no numbers of classes; Python refuses to convert thousands."""

_YAML_BYTES = 2**20
"""The largest ``data.yaml``: of one MiB, parsing takes 3 s."""


class FromZero(int):
    """The number of a class in formats that count from 0."""


def type_info_of(path: Path) -> Path | None:
    """Find the table of names beside a file, or in the folder above it."""
    places = (path.parent / TYPE_INFO, path.parent.parent / TYPE_INFO)
    return next((place for place in places if place.is_file()), None)


def data_yaml_of(path: Path) -> Path | None:
    """Find the description of a data set of YOLO beside a file, or in the folders above it."""
    if path.suffix.casefold() != ".txt":
        return None
    places = (folder / DATA_YAML for folder in [*path.parents][:_LEVELS])
    return next((place for place in places if place.is_file()), None)


def tables_beside(path: Path) -> tuple[Path, ...]:
    """Return the files beside a file with objects that decide what its classes mean."""
    found = (type_info_of(path), data_yaml_of(path))
    return tuple(table for table in found if table is not None)


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


def read_data_yaml(path: Path) -> dict[str, str]:
    """Read the names of classes in the description of a data set of YOLO: number -> name.

    Empty if it has none.

    Raises
    ------
    UnreadableFileError
        If it is not valid.
    """
    import yaml

    what = "a data set of YOLO"
    text = read_text(path, what, _YAML_BYTES)
    expected = f"{what} with names of classes, such as names: [Epithelial, Lymphocyte]"
    with parsing(path, expected, yaml.YAMLError):
        # Texts, lists and mappings only: no objects, and a class can have the name "yes".
        content = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506
        names = content.get("names", "") if isinstance(content, dict) else ""
        if names == "":
            return {}
        if isinstance(names, list):
            names = dict(enumerate(names))
        if not isinstance(names, dict) or not all(isinstance(n, str) for n in names.values()):
            raise ValueError("names that are neither a list of texts nor a mapping to texts")
        return {str(int(number)): name.strip() for number, name in names.items()}


def assumed_order(scheme: ClassScheme, path: Path, first: int = 1) -> Finding:
    """Return the finding that numbers of classes were taken in the order of the scheme.

    Parameters
    ----------
    scheme
        The classes.
    path
        The file with the numbers.
    first
        The number of the first class.
    """
    order = english_list([f"{n} = {name}" for n, name in enumerate(scheme.names, first)], limit=99)
    return Finding(
        FindingKind.CLASS_ORDER,
        f"its classes are numbers, which were taken in the order of the cohort's classes: {order}. "
        f"If that is wrong, name the numbers under [aliases] in cohort.toml",
        path=path,
    )


@dataclass(frozen=True)
class NamesOrNumber:
    """Names of a class of which the first known counts, else a number, else the only class."""

    names: tuple[str, ...]
    number: int | None
    #: The name by which an unknown class is reported; None for the number.
    called: str | None


class ClassNumbers:
    """Finds the class of an object by its entry in a file.

    A number ``k`` is looked up in this order: as the text ``k`` among the
    scheme's aliases (``[aliases]`` in cohort.toml); by its name in a
    ``type_info.json``, if there is one, or a `FromZero` in a ``data.yaml``; else
    it is the k-th class, from 1, or from 0 where it is a `FromZero`.
    A text is a class name. Nothing at all, None or an empty tuple, means the class that has the
    alias ``""``, or the only class of the scheme. Of a tuple the first known name counts; a None
    at its end means nothing at all if none is known. A `NamesOrNumber` has both.

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
        self._path = path
        table = None if path is None else type_info_of(path)
        self._names = None if table is None else read_type_info(table)
        self._from_zero: dict[str, str] | None = None
        #: The number of the first class where the order of the classes was assumed.
        self._assumed: set[int] = set()
        self._known: dict[Any, tuple[int, str | None]] = {}

    def of(self, value: Any) -> tuple[int, str | None]:
        """Return the class index, as in `Polygons`, and the name to report an unknown one by.

        Parameters
        ----------
        value
            See the class. Anything else that is hashable is not a class.
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

    def findings(self, path: Path) -> list[Finding]:
        """Report that the order of classes was assumed for the numbers so far."""
        return [assumed_order(self._scheme, path, first) for first in sorted(self._assumed)]

    def _looked_up(self, value: Any) -> tuple[int, str | None]:
        if isinstance(value, tuple) and value:
            names = [name for name in value if name is not None]
            if value[-1] is not None or any(map(self._scheme.canonical, names)):
                return class_number(names, self._scheme), names[0]
            value = None
        if isinstance(value, NamesOrNumber):
            return self._by_names_or_number(value)
        if value is None or value == ():
            only = 1 if len(self._scheme.names) == 1 else UNKNOWN
            named = class_number([""], self._scheme)
            return (only if named == UNKNOWN else named), None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        names = [str(value)]
        first = 0 if isinstance(value, FromZero) else 1
        if str(value).isdecimal() and len(str(value)) <= _MOST_DIGITS:
            number = int(value)
            known = self._names if first else self._names_from_zero()
            if known is not None:
                names += [known[str(number)]] if str(number) in known else []
            elif first <= number < first + len(self._scheme.names):
                is_stated = class_number(names, self._scheme) != UNKNOWN
                names.append(self._scheme.names[number - first])
                if not is_stated and len(self._scheme.names) > 1:
                    self._assumed.add(first)
        return class_number(names, self._scheme), names[-1]

    def _by_names_or_number(self, value: NamesOrNumber) -> tuple[int, str | None]:
        index, called = class_number(value.names, self._scheme), value.called
        if index == UNKNOWN and value.number is not None:
            index, of_number = self.of(value.number)
            called = called or f"group {of_number}"
        if index == UNKNOWN and called is None:
            index, _ = self.of(None)
        is_only = index == UNKNOWN and len(self._scheme.names) == 1
        return (1 if is_only else index), called

    def _names_from_zero(self) -> dict[str, str] | None:
        """Return the names of numbers from 0, read once; None if no file has them."""
        if self._from_zero is None and self._path is not None:
            table = data_yaml_of(self._path)
            self._from_zero = {} if table is None else read_data_yaml(table)
        return self._from_zero or self._names
