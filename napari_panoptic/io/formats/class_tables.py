"""Tables of classes beside label images, as arrays: slides have very many objects."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray

from napari_panoptic.common.errors import Finding
from napari_panoptic.io.files import check_file
from napari_panoptic.io.formats.labels.label_images import WHAT_TABLE, object_id, read_sidecar
from napari_panoptic.io.guard import check_length
from napari_panoptic.nuclei.values.cohort import ClassScheme


@dataclass(frozen=True, eq=False)
class ClassTable:
    """The class of each id.

    Parameters
    ----------
    ids
        int64 (n,): positive, ascending, unique.
    code
        int64 (n,): position in ``names``.
    names
        The names of classes as the table has them, numbers of classes replaced
        by the names.
    repeated
        Ids that came twice, ascending.
    """

    ids: NDArray[np.int64]
    code: NDArray[np.int64]
    names: tuple[str, ...]
    repeated: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, ids: NDArray[np.int64], code: NDArray[np.int64], names: Sequence[str]
    ) -> ClassTable:
        """Sort the rows of a table; of an id that comes twice the last row counts."""
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        is_last = np.ones(len(ids), bool)
        is_last[:-1] = ids[1:] != ids[:-1]
        repeated = tuple(np.unique(ids[~is_last]).tolist())
        is_last &= ids > 0
        return cls(ids[is_last], code[order][is_last], tuple(names), repeated)

    def only(self, rows: NDArray[np.bool_]) -> ClassTable:
        """Return some of the rows."""
        return replace(self, ids=self.ids[rows], code=self.code[rows])

    def class_index(self, scheme: ClassScheme) -> NDArray[np.int16]:
        """Give the 1-based number of each id's class; 0 for the ambiguous one, -1 for no class."""
        numbers = {name: number for number, name in enumerate(scheme.names, start=1)}
        known = [scheme.canonical(name) for name in self.names]
        of_names = [-1 if name is None else numbers.get(name, 0) for name in known]
        return np.array([*of_names, -1], np.int16)[self.code]

    def names_of(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the names of the classes of those ids that the table has."""
        place = np.minimum(np.searchsorted(self.ids, ids), max(len(self.ids) - 1, 0))
        return {
            id_: self.names[int(self.code[at])]
            for id_, at in zip(ids, place.tolist(), strict=True)
            if len(self.ids) and self.ids[at] == id_
        }


def read_class_table(path: Path, scheme: ClassScheme) -> ClassTable:
    """Read a table of classes, CSV or JSON.

    Equal to what `napari_panoptic.io.formats.labels.label_images.read_labels` understands.

    Raises
    ------
    UnreadableFileError
        Where it is none.
    """
    check_file(path, WHAT_TABLE)
    check_length(path, WHAT_TABLE)
    try:
        table = _from_json(path) if path.suffix.lower() == ".json" else _from_csv(path)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        # Whatever is unusual is left to the careful way, which also says what is wrong.
        findings: list[Finding] = []
        table = _from_mapping(read_sidecar(path, scheme, findings))
        repeated = tuple(id_ for finding in findings for id_ in finding.object_ids)
        table = replace(table, repeated=repeated)
    return _with_numbers_named(table, scheme)


def class_table(classes: Mapping[int, str], scheme: ClassScheme) -> ClassTable:
    """Take id -> name of a class, or its number, for a table."""
    return _with_numbers_named(_from_mapping(classes), scheme)


def _with_numbers_named(table: ClassTable, scheme: ClassScheme) -> ClassTable:
    numbers = {str(n): name for n, name in enumerate(scheme.names, start=1)}
    return replace(table, names=tuple(numbers.get(name, name) for name in table.names))


def _from_mapping(classes: Mapping[int, str]) -> ClassTable:
    codes: dict[str, int] = {}
    # No label image has larger ids.
    classes = {id_: name for id_, name in classes.items() if 0 < id_ <= np.iinfo(np.int64).max}
    code = [codes.setdefault(name, len(codes)) for name in classes.values()]
    ids = np.fromiter(classes.keys(), np.int64, len(classes))
    return ClassTable.of(ids, np.array(code, np.int64), tuple(codes))


def _from_json(path: Path) -> ClassTable:
    data = path.read_bytes()
    classes = orjson.loads(data)
    if data.count(b'"') != 4 * len(classes):
        raise ValueError("quotes in names, or ids that come twice")
    if not all(type(name) is str for name in classes.values()):
        raise TypeError("classes that are no text")
    codes: dict[str, int] = {}
    stripped = (name.strip() for name in classes.values())
    code = np.fromiter((codes.setdefault(name, len(codes)) for name in stripped), np.int64)
    return ClassTable.of(np.fromiter(map(object_id, classes), np.int64), code, tuple(codes))


def _from_csv(path: Path) -> ClassTable:
    # As it is: pandas takes some carriage returns that end no line for one.
    with path.open(encoding="utf-8-sig", newline="") as file:
        text = file.read()
    if text.count("\r") != text.count("\r\n"):
        raise ValueError("carriage returns alone")
    first = text.partition("\n")[0].rstrip("\r")
    delimiter = max(",;\t", key=first.count)
    columns = {name.strip().casefold(): name for name in first.split(delimiter)}
    if len(columns) < first.count(delimiter) + 1:
        raise ValueError("columns of one name, or names with separators in them")
    id_column, class_column = columns["id"], columns["class"]
    frame = pd.read_csv(
        io.StringIO(text),
        sep=delimiter,
        usecols=[id_column, class_column],
        # As categories, classes that are all numbers would be read as such: 01 as 1.
        dtype={id_column: "object", class_column: "object"},
        keep_default_na=False,
        index_col=False,
    )
    code, classes = pd.factorize(frame[class_column])
    if (code < 0).any():
        raise ValueError("rows without a class")
    names = [str(name).strip() for name in classes]
    ids = np.fromiter(map(object_id, frame[id_column]), np.int64, len(frame))
    return ClassTable.of(ids, code.astype(np.int64), names)
