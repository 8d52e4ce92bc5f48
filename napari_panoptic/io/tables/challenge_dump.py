r"""The output of the organisers' scoring: a PQ per team, region and class, as printed in 2020.

Their notebook printed, for each team, its name and then for each mask of the
annotation its path, the list of the team's files for it, and the PQ::

    SJTU_426
    .\PATIENT\REGION\Class\3_mask.mat
    ['D:\\...\\SJTU_426/.\\PATIENT\\REGION/Class\\1.mat']
    0.168600154679041

Where a team had handed in no mask, the list is missing or empty, and the PQ is
0. Empty lines stand wherever the notebook broke its output, and mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import TABLE_BYTES, check_file
from napari_panoptic.io.tables.csv_tables import read_text
from napari_panoptic.io.tables.metadata import read_metadata

MONUSAC_2020_TEST_ORGANS: Mapping[str, str] = {
    f"TCGA-{case}": organ
    for organ, cases in {
        "Breast": "A2-A04X A2-A0ES D8-A3Z6 E2-A108 EW-A6SB",
        "Kidney": "2Z-A9JG 2Z-A9JN DW-7838 DW-7963 F9-A8NY IZ-A6M9 MH-A55W",
        "Lung": "49-6743 50-6591 55-7570 55-7573 73-4662 78-7152 MP-A4T7",
        "Prostate": "G9-6356 G9-6367 VP-A87E VP-A87H X4-A8KS YL-A9WL",
    }.items()
    for case in cases.split()
}
"""TCGA case -> organ, of the 25 patients of the MoNuSAC 2020 test set."""

_CASE = re.compile(r"TCGA-[^-]+-[^-]+")
_DUMP = "the organisers' list of PQ per mask"
_TEAM_OR_PATH = r"a team's name or a mask's path such as .\PATIENT\REGION\Class\1_mask.mat"
_SHOWN = 60


@dataclass(frozen=True)
class DumpFigure:
    """One team's PQ of one class in one region."""

    #: The team, and the region and class that it was scored on.
    team: str
    patient: str
    region: str
    class_name: str
    #: Between 0 and 1, as the organisers computed it.
    pq: float
    #: False where the team had handed in no mask, which scored 0.
    submitted: bool
    #: Number of the line of the file with the PQ, from 1.
    line: int


@dataclass(frozen=True, eq=False)
class Dump:
    """The figures of an organisers' output, in its order; at least one per team."""

    path: Path
    figures: tuple[DumpFigure, ...]

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams, in order of first appearance."""
        return tuple(dict.fromkeys(figure.team for figure in self.figures))


class _Kind(Enum):
    """What a line is, by its looks."""

    TEAM = auto()  # a name: anything else
    PATH = auto()  # of a mask of the annotation
    FILES = auto()  # the team's files for it
    NUMBER = auto()  # the PQ


def read_dump(path: Path) -> Dump:
    """Read an organisers' output.

    Parameters
    ----------
    path
        A text file in the form described at the top of this module.

    Raises
    ------
    UnreadableFileError
        If a line is not what has to follow the one before it, naming both;
        for a team, or a region and class of a team, that occurs twice; and for
        a team without a figure.
    """
    figures: list[DumpFigure] = []
    first_line: dict[tuple[str, str, str], int] = {}
    for figure in _figures(path, _lines(path)):
        key = (figure.team, figure.region, figure.class_name)
        if key in first_line:
            raise _malformed(
                path,
                figure.line,
                "one PQ per region and class of a team",
                f"a second one of class {figure.class_name} in region {figure.region} "
                f"(the first is in line {first_line[key]})",
            )
        first_line[key] = figure.line
        figures.append(figure)
    return Dump(path, tuple(figures))


def organ_of(patient: str, organs: Mapping[str, str]) -> str | None:
    """Return a patient's organ: of its name, or of the TCGA case that its name begins with."""
    return organs.get(patient) or organs.get(_case(patient))


def read_organs(path: Path, dump: Dump) -> Mapping[str, str]:
    """Read which organ each patient's tissue is from.

    Parameters
    ----------
    path
        A table as ``read_metadata`` takes it, with a column ``organ``; a
        patient's name is that in the dump, or its TCGA case.
    dump
        Whose patients are looked for.

    Returns
    -------
    mapping
        Patient or case -> organ; others of the table are not in it.

    Raises
    ------
    UnreadableFileError
        As ``read_metadata``, and where there is no column ``organ``.
    """
    patients = dict.fromkeys(figure.patient for figure in dump.figures)
    columns = read_metadata(path, {*patients, *map(_case, patients)}).columns
    if "organ" not in columns:
        found = english_list(["patient", *columns])
        raise UnreadableFileError(
            f"expected the columns patient and organ, found {found}", path=path
        )
    return columns["organ"]


def _case(patient: str) -> str:
    case = _CASE.match(patient)
    return case.group() if case else patient


def _figures(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[DumpFigure]:
    teams: dict[str, int] = {}
    team, counted, number = "", 0, 0
    for number, line in lines:
        kind = _kind(line)
        if kind is _Kind.TEAM:
            if team and not counted:
                raise _malformed(path, number, f"a mask's path of team {team}", _shown(line))
            if line in teams:
                found = f"'{line}' again (first in line {teams[line]})"
                raise _malformed(path, number, "each team once", found)
            team, counted, teams[line] = line, 0, number
        elif kind is _Kind.PATH and team:
            yield _figure(path, team, number, line, lines)
            counted += 1
        else:
            expected = _TEAM_OR_PATH if team else "a team's name"
            raise _malformed(path, number, expected, _shown(line))
    if not counted:
        expected = f"a mask's path of team {team}" if team else "a team's name"
        raise _malformed(path, number + 1, expected, "the end of the file")


def _figure(
    path: Path, team: str, number: int, line: str, lines: Iterator[tuple[int, str]]
) -> DumpFigure:
    """Read on from a mask's path to its PQ."""
    patient, region, class_name = _place(path, number, line)
    end = (number + 1, "")
    found_number, found = next(lines, end)
    submitted = _kind(found) is _Kind.FILES
    if submitted:
        if not found.endswith("]"):
            raise _malformed(path, found_number, "a list that ends with ]", _shown(found))
        submitted = found.strip("[] ") != ""
        found_number, found = next(lines, (found_number + 1, ""))
    expected = f"the PQ, between 0 and 1, of class {class_name} in region {region}"
    try:
        pq = float(found)
    except ValueError:
        raise _malformed(path, found_number, expected, _shown(found)) from None
    if not 0 <= pq <= 1:
        raise _malformed(path, found_number, expected, _shown(found))
    return DumpFigure(team, patient, region, class_name, pq, submitted, found_number)


def _place(path: Path, number: int, line: str) -> tuple[str, str, str]:
    parts = [part for part in re.split(r"[\\/]", line) if part not in ("", ".")]
    if len(parts) != 4:
        raise _malformed(path, number, r"a path such as .\PATIENT\REGION\Class\1_mask.mat", line)
    return parts[0], parts[1], parts[2]


def _kind(line: str) -> _Kind:
    if line.startswith("["):
        return _Kind.FILES
    if "\\" in line or "/" in line:
        return _Kind.PATH
    try:
        float(line)
    except ValueError:
        return _Kind.TEAM
    return _Kind.NUMBER


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of every line that is not empty."""
    check_file(path, _DUMP)
    text = read_text(path, _DUMP, TABLE_BYTES)
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.strip()


def _shown(line: str) -> str:
    if not line:
        return "the end of the file"
    return f"'{line[:_SHOWN]}…'" if len(line) > _SHOWN else f"'{line}'"


def _malformed(path: Path, number: int, expected: str, found: str) -> PanopticError:
    return UnreadableFileError(f"line {number}: expected {expected}, found {found}", path=path)
