"""Tables of classes beside label images: CSV or JSON, as arrays, since slides have many objects."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.files.guard import TABLE_BYTES, check_file
from napari_panoptic.io.files.json_files import parsing
from napari_panoptic.io.formats.class_numbers import assumed_order
from napari_panoptic.io.formats.scores import no_such_score, score_column, score_value
from napari_panoptic.io.tables.csv_tables import csv_lines, read_text
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import Scores

WHAT_TABLE = "a table of classes (id,class)"


@dataclass(frozen=True, eq=False)
class ClassTable:
    """The class of each id."""

    #: int64 (n,): positive, ascending, unique.
    ids: NDArray[np.int64]
    #: int64 (n,): position in ``names``.
    code: NDArray[np.int64]
    #: The names of classes as spelt in the table; numbers of classes are replaced by names.
    names: tuple[str, ...]
    #: Reports the ids that occur twice.
    findings: tuple[Finding, ...]
    #: float64 (n,): the score of each id, NaN if there is none.
    score: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        rows: Iterable[tuple[int, str]],
        scheme: ClassScheme,
        path: Path,
        scores: Iterable[float] = (),
    ) -> ClassTable:
        """Make a table of ids and names; of an id that occurs twice the last row counts.

        Parameters
        ----------
        rows
            The id, and the name or number of the class.
        scheme
            The classes. A number that is no alias means the class at that place, from 1.
        path
            The file, for findings.
        scores
            The score of each row; none by default.
        """
        rows = list(rows)
        given = list(scores) or [math.nan] * len(rows)
        # No label image has larger ids, and none below 1 counts.
        kept = [
            (id_, name, score)
            for (id_, name), score in zip(rows, given, strict=True)
            if abs(id_) <= np.iinfo(np.int64).max
        ]
        known: dict[str, int] = {}
        code = np.array([known.setdefault(name, len(known)) for _, name, _ in kept], np.int64)
        ids = np.array([id_ for id_, _, _ in kept], np.int64)
        score = np.array([score for _, _, score in kept], np.float64)
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        is_last = np.ones(len(ids), bool)
        is_last[:-1] = ids[1:] != ids[:-1]
        repeated = np.unique(ids[~is_last]).tolist()
        is_last &= ids > 0
        numbers = {str(n): name for n, name in enumerate(scheme.names, start=1)}
        stated = {*scheme.names, *scheme.aliases, *scheme.ignored}
        assumed = {name: numbers[name] for name in known if name in numbers and name not in stated}
        has_order = bool(assumed) and len(numbers) > 1
        return cls(
            ids[is_last],
            code[order][is_last],
            tuple(assumed.get(name, name) for name in known),
            (*_repeated(path, repeated), *([assumed_order(scheme, path)] if has_order else ())),
            score[order][is_last],
        )

    @classmethod
    def of_names(cls, names: Mapping[int, str]) -> ClassTable:
        """Make a table of positive ids and names, which are never numbers of classes."""
        ids = np.array(sorted(names), np.int64)
        code = {name: number for number, name in enumerate(dict.fromkeys(names.values()))}
        codes = np.array([code[names[id_]] for id_ in ids.tolist()], np.int64)
        return cls(ids, codes, tuple(code), (), np.full(len(ids), math.nan))

    @property
    def scores(self) -> Scores | None:
        """The scores, or None if no id has one."""
        return None if np.isnan(self.score).all() else Scores(self.ids, self.score)

    def only(self, rows: NDArray[np.bool_]) -> ClassTable:
        """Return some of the rows."""
        return replace(self, ids=self.ids[rows], code=self.code[rows], score=self.score[rows])

    def with_unnamed(self, ids: NDArray[np.int64]) -> ClassTable:
        """Return the table with the ids that it lacks added, under an empty name."""
        more = np.setdiff1d(ids, self.ids)
        every = np.concatenate([self.ids, more])
        order = np.argsort(every)
        return replace(
            self,
            ids=every[order],
            code=np.concatenate([self.code, np.full(len(more), len(self.names))])[order],
            names=(*self.names, ""),
            score=np.concatenate([self.score, np.full(len(more), math.nan)])[order],
        )

    def as_mapping(self) -> dict[int, str]:
        """Return id -> name of the class, classes in the order in which the table names them."""
        order = np.argsort(self.code, kind="stable")
        rows = zip(self.ids[order].tolist(), self.code[order].tolist(), strict=True)
        return {id_: self.names[code] for id_, code in rows}

    def class_index(self, scheme: ClassScheme) -> NDArray[np.int16]:
        """Return the 1-based class of each id: 0 for the ambiguous class, -1 for unknown ones."""
        numbers = {name: number for number, name in enumerate(scheme.names, start=1)}
        known = [scheme.canonical(name) for name in self.names]
        of_names = [-1 if name is None else numbers.get(name, 0) for name in known]
        return np.array([*of_names, -1], np.int16)[self.code]

    def names_of(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the names of the classes of those ids that the table has."""
        present = self.only(np.isin(self.ids, np.array(ids, np.int64)))
        return present.as_mapping()


def read_class_table(path: Path, scheme: ClassScheme, score: str | None = None) -> ClassTable:
    """Read a table of classes, CSV or JSON by its ending.

    A CSV file may have a column of scores, see `napari_panoptic.io.formats.scores`. With one, and a
    single class in the scheme, it needs no column of classes.

    Parameters
    ----------
    path
        The file.
    scheme
        The classes.
    score
        The name of the column of scores; None for the well-known names.

    Raises
    ------
    UnreadableFileError
        If it is neither, or cannot be read.
    """
    check_file(path, WHAT_TABLE)
    text = read_text(path, WHAT_TABLE, TABLE_BYTES)
    findings: list[Finding] = []
    example = f'{{"1": "{scheme.names[0]}"}}'
    with parsing(path, f"{WHAT_TABLE}: CSV with the header id,class, or JSON such as {example}"):
        if path.suffix.lower() == ".json":
            cells = [(id_, name, None) for id_, name in _json_pairs(text)]
        else:
            cells = _csv_cells(text, path, scheme, score, findings)
        rows = [(_object_id(id_), _name(name)) for id_, name, _ in cells]
    table = ClassTable.of(rows, scheme, path, [score_value(value) for *_, value in cells])
    return replace(table, findings=(*findings, *table.findings))


def _repeated(path: Path, ids: list[int]) -> list[Finding]:
    if not ids:
        return []
    found = tuple(ids)
    message = (
        f"{counted(len(found), 'id')} in several rows of the table of classes, of which the last "
        f"one counts: {english_list(found)}; keep one row for each"
    )
    return [Finding(FindingKind.MALFORMED, message, path=path, count=len(found), object_ids=found)]


def _object_id(text: str) -> int:
    """Read an id; many programs write whole numbers as 1.0, exact up to 2^53."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer() or abs(number) > 2**53:
            raise
        return int(number)


def _name(value: object) -> str:
    name = "" if value is None else str(value).strip()
    name.encode()  # raises for lone surrogates, which JSON may hold and nothing can show
    return name


def _json_pairs(text: str) -> list[tuple[Any, Any]]:
    objects: list[list[tuple[str, Any]]] = []

    def kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        objects.append(
            pairs
        )  # all pairs, since a dictionary has each key once; the outermost comes last
        return dict(pairs)

    table = json.loads(text, object_pairs_hook=kept)
    if not isinstance(table, dict):
        raise TypeError(f"not a table but a {type(table).__name__}")
    return objects[-1]


def _csv_cells(
    text: str, path: Path, scheme: ClassScheme, score: str | None, findings: list[Finding]
) -> list[tuple[Any, Any, Any]]:
    """Return the id, the class and the score of each row; note if the score is not there."""
    rows = [row for _, row in csv_lines(text, path, WHAT_TABLE, ",;\t")]
    header = rows.pop(0) if rows else []
    columns = {name.strip().casefold(): at for at, name in enumerate(header)}
    score_at = score_column(header, score)
    if score is not None and score_at is None:
        findings.append(no_such_score(score, header, path))
    has_one_class = len(scheme.names) == 1 and score_at is not None
    needed = ("id",) if has_one_class else ("id", "class")
    if missing := [name for name in needed if name not in columns]:
        raise ValueError(f"no column {english_list(missing)}")
    id_at, class_at = columns["id"], columns.get("class")

    def cell(row: list[str], at: int | None) -> str:
        return row[at] if at is not None and at < len(row) else ""

    return [
        (
            row[id_at],
            scheme.names[0] if class_at is None else cell(row, class_at),
            cell(row, score_at),
        )
        for row in rows
    ]
