"""A plan, its verdicts and its estimates as tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.spreadsheets import inert
from napari_panoptic.common.text import english_list, no_such
from napari_panoptic.io.tables.csv_tables import read_rows
from napari_panoptic.review.plan.conclusions import RANKED, difference, ranking
from napari_panoptic.review.plan.design import LEVELS, Plan, Strata, plan_of, stratified
from napari_panoptic.review.plan.estimates import Estimate, Estimates, ItemVerdict
from napari_panoptic.review.plan.units import (
    KINDS,
    NO_ID,
    SIDES,
    SUSPECT,
    IntArray,
    ItemKind,
    ItemSide,
    Units,
    key_of,
    tile_name,
)
from napari_panoptic.tables.columns import (
    TableSpec,
    bounds,
    name_column,
    number,
    unshown,
    whole,
    words,
)
from napari_panoptic.values.vocabulary import Verdict

if TYPE_CHECKING:
    import pandas as pd

PLAN = TableSpec(
    "plan.csv",
    "item, in the order of the review",
    [
        unshown("item", "team", "patient", "region", "side"),
        unshown("id", about="empty for tiles"),
        unshown("y_px", "x_px"),
        unshown("stratum", about="`team/status/class`, also with a cause or `suspect`"),
        unshown("probability"),
    ],
)
ITEM_VERDICTS = TableSpec(
    "verdicts.csv",
    "reviewed item; `estimate` ignores other columns",
    [unshown("item", "verdict"), unshown("count", about="of tiles only")],
)
ESTIMATES = TableSpec(
    "estimates.csv",
    "quantity, team and class, and for `all`",
    [
        words("quantity"),
        name_column("team"),
        name_column("class"),
        number("estimate"),
        bounds("low", "high", "95 % interval", "95 % interval"),
        whole("items", about="reviewed ones that inform it"),
        number("as_annotated", "as annotated"),
    ],
    "Metrics pooled over the cohort if the annotation were right, and the share of wrong "
    "annotations, estimated from the reviewed items; beside them the metrics as annotated.",
)
_SHOWN = 3

_Row = tuple[int, Mapping[str, str]]
"""The number of a line, and its cells by column."""


def plan_frame(plan: Plan) -> pd.DataFrame:
    """Return the rows of a plan."""
    import pandas as pd

    units = plan.units
    return pd.DataFrame(
        {
            "item": np.arange(1, len(plan) + 1),
            "team": units.team,
            "patient": units.patient,
            "region": units.region,
            "side": np.array([str(side) for side in SIDES], object)[units.side],
            "id": pd.arrays.IntegerArray(units.id, units.id == NO_ID),
            "y_px": units.y_px,
            "x_px": units.x_px,
            "stratum": list(plan.stratum),
            "probability": plan.probability,
        },
        columns=PLAN.keys,
    )


def verdicts_frame(rows: Iterable[Any]) -> pd.DataFrame:
    """Return the rows of verdicts, such as `ItemVerdict`; see `TableSpec.frame`."""
    return ITEM_VERDICTS.frame(rows).astype({"count": "Int64"})


def estimates_record(estimates: Estimates, plan: Plan, units: Units) -> dict[str, Any]:
    """Return the design and everything else that estimates say, for JSON."""
    strata = stratified(units, plan.level)
    drawn = plan.drawn(strata)
    return {
        "design": {
            "method": "stratified simple random sampling without replacement",
            "strata_by": str(plan.level),
            "strata_of_suspects": any(strata.suspect),
            "seed": plan.seed,
            "items": len(plan),
            "given": estimates.given,
            "cannot_tell": estimates.unclear,
            "strata": [
                {"stratum": name, "all": int(size), "drawn": int(n)}
                for name, size, n in zip(strata.names, strata.sizes, drawn, strict=True)
            ],
        },
        "estimates": list(map(_estimate_record, estimates.rows)),
        "ranking": [
            {
                "quantity": str(quantity),
                "team": ranked.team,
                "estimate": ranked.estimate,
                "rank": ranked.rank,
                "certainty": ranked.certainty,
                "best_and_worst": [ranked.best, ranked.worst],
            }
            for quantity in RANKED
            for ranked in ranking(estimates, quantity)
        ],
        "differences": [
            {
                "quantity": str(quantity),
                "teams": [one, other],
                "estimate": found.estimate,
                "low": found.low,
                "high": found.high,
                "as_annotated": found.as_annotated,
            }
            for quantity in RANKED
            for one, other in combinations(plan.teams, 2)
            for found in [difference(estimates, quantity, one, other)]
        ],
        "annotation_error_rate_by_cause": list(map(asdict, estimates.by_cause)),
    }


def _estimate_record(row: Estimate) -> dict[str, Any]:
    """Return an estimate as it is in the record."""
    return {
        "quantity": str(row.quantity),
        "team": row.team,
        "class": row.class_name,
        "estimate": row.estimate,
        "low": row.low,
        "high": row.high,
        "items": row.items,
        "standard_error": row.standard_error,
        "for_patients_like_these": [row.patients_low, row.patients_high],
        "if_unclear_items_were_decided_one_way": list(row.if_unclear),
        "as_annotated": row.as_annotated,
    }


# --- read -------------------------------------------------------------------------------------


def plan_cells(
    path: Path, columns: Sequence[str] = tuple(PLAN.keys)
) -> list[tuple[int, dict[str, str]]]:
    """Return the number of the line and the cells of each item in a plan's table.

    Parameters
    ----------
    path
        The table.
    columns
        Those that it must have.

    Raises
    ------
    UnreadableFileError
        If the file is no table of a plan, or has no items.
    """
    rows = [*read_rows(path, "a table of a plan", columns)]
    if not rows:
        raise UnreadableFileError("expected a plan, found no items; draw it again", path=path)
    return rows


@dataclass(frozen=True)
class PlanTable:
    """The table of a plan, before its items are found in a population."""

    path: Path
    #: The number of the line and the cells of each item.
    rows: Sequence[_Row]

    def teams(self, known: Sequence[str]) -> tuple[str, ...]:
        """Return the teams of the items, sorted.

        Parameters
        ----------
        known
            The teams of the cohort.

        Raises
        ------
        UnreadableFileError
            If it has a team that the cohort does not have.
        """
        as_written = {_cell(name): name for name in known}
        found = {row["team"] for _, row in self.rows}
        if unknown := sorted(found - as_written.keys()):
            raise UnreadableFileError(no_such("team", unknown[0], known), path=self.path)
        return tuple(sorted(as_written[name] for name in found))

    @property
    def has_suspects(self) -> bool:
        """Whether suspects have strata of their own."""
        strata = [row["stratum"].removeprefix(row["team"]).split("/") for _, row in self.rows]
        return any(parts[2:3] == [SUSPECT] for parts in strata)

    def plan(self, units: Units) -> tuple[Plan, tuple[Finding, ...]]:
        """Return the plan, with its items found in the population.

        Parameters
        ----------
        units
            The population: of the same cohort, teams and settings.

        Returns
        -------
        Plan
            Its probabilities are computed from its items and the population.
        tuple of Finding
            Probabilities that differ from those in the table.

        Raises
        ------
        UnreadableFileError
            If the items are no plan, or a plan of another cohort.
        """
        ordered = _ordered(self.rows, self.path)
        found = _places(ordered, units, self.path)
        if len(set(found.tolist())) < len(found):
            raise UnreadableFileError(
                "two items are the same object; draw the plan again", path=self.path
            )
        names = [row["stratum"] for _, row in ordered]
        strata = _strata(names, units, found, self.path)
        plan = plan_of(units, strata, found)
        return plan, _unlike(plan, ordered, self.path)


def read_plan(path: Path) -> PlanTable:
    """Read the table of a plan, with the columns of `PLAN`.

    Raises
    ------
    UnreadableFileError
        If the file is no table of a plan, or has no items.
    """
    return PlanTable(path, plan_cells(path))


def _ordered(rows: Sequence[_Row], path: Path) -> list[_Row]:
    """Return the rows by item; check that none is missing or repeated."""
    by_item: dict[int, _Row] = {}
    for line, row in rows:
        item = _item(row, line, path)
        if item in by_item:
            raise UnreadableFileError(
                f"item {item} is in line {by_item[item][0]} and again in line {line}; keep one",
                path=path,
            )
        by_item[item] = line, row
    if sorted(by_item) != list(range(1, len(rows) + 1)):
        raise UnreadableFileError(
            f"expected the items 1 to {len(rows)}, found {english_list(sorted(by_item), limit=5)}; "
            f"give the plan as it was written",
            path=path,
        )
    return [by_item[item] for item in range(1, len(rows) + 1)]


def _places(rows: Sequence[_Row], units: Units, path: Path) -> IntArray:
    """Return the place of each item in the population."""
    place = {_as_written(*parts): n for n, parts in enumerate(units.key_parts())}
    found = [place.get(_key(row, line, path)) for line, row in rows]
    if missing := [k for k, number in enumerate(found, start=1) if number is None]:
        raise UnreadableFileError(
            f"{len(missing)} of {len(rows)} items, the first being item {missing[0]}, are not in "
            f"this cohort; give the cohort and options with which the plan was drawn",
            path=path,
        )
    return np.array(found, np.int64)


def _strata(names: Sequence[str], units: Units, rows: IntArray, path: Path) -> Strata:
    """Return the strata of the level at which a plan was drawn."""
    for level in LEVELS:
        strata = stratified(units, level)
        written = [_cell(strata.names[number]) for number in strata.of_unit[rows].tolist()]
        if written == list(names):
            return strata
    raise UnreadableFileError(
        "the strata are not those of this cohort: its objects have other outcomes than when the "
        "plan was drawn; give the cohort and options with which it was drawn",
        path=path,
    )


def _unlike(plan: Plan, rows: Sequence[_Row], path: Path) -> tuple[Finding, ...]:
    """Report items whose probability is not that of the table."""
    differ = [
        k
        for k, ((line, row), probability) in enumerate(
            zip(rows, plan.probability.tolist(), strict=True), 1
        )
        if not math.isclose(_number(row, "probability", line, path), probability, rel_tol=1e-9)
    ]
    if not differ:
        return ()
    return (
        Finding(
            FindingKind.CHANGED,
            f"the probabilities of {len(differ)} items, such as item {differ[0]}, are not those of "
            f"this plan and cohort, and were computed again: items may have been removed",
            path=path,
            count=len(differ),
        ),
    )


def read_verdicts(path: Path, plan: Plan) -> tuple[list[ItemVerdict], tuple[Finding, ...]]:
    """Read the verdicts on the items of a plan.

    Parameters
    ----------
    path
        A table with the columns of `ITEM_VERDICTS`; ``count`` may be missing if the plan has no
        background items. A row without verdict and count is an item that was not reviewed.
    plan
        The plan.

    Returns
    -------
    list of ItemVerdict
        One per reviewed item, by item.
    tuple of Finding
        Rows that are left out: items that the plan does not have, and repeated rows.

    Raises
    ------
    UnreadableFileError
        If the file is no such table, for unknown verdicts, for a tile without a count or with one
        that is no whole number, and for two different verdicts on an item.
    """
    answers: dict[int, ItemVerdict] = {}
    lines: dict[int, int] = {}
    outside, repeated, problems = [], [], []
    has_tiles = bool((plan.units.kind == KINDS.index(ItemKind.BACKGROUND)).any())
    columns = ITEM_VERDICTS.keys if has_tiles else ITEM_VERDICTS.keys[:2]
    for line, row in read_rows(path, "a table of verdicts", columns):
        item = _item(row, line, path)
        if not row["verdict"] and not row.get("count"):
            continue
        if item > len(plan):
            outside.append(item)
            continue
        try:
            answer = _answer(item, row, ItemKind(KINDS[int(plan.units.kind[item - 1])]))
        except ValueError as error:
            problems.append(f"line {line}, item {item}: {error}")
            continue
        if item in answers and answers[item] != answer:
            problems.append(
                f"item {item} has one verdict in line {lines[item]} and another in "
                f"line {line}; keep one"
            )
        elif item in answers:
            repeated.append(item)
        answers.setdefault(item, answer)
        lines.setdefault(item, line)
    if problems:
        more = f" ({len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        raise UnreadableFileError("; ".join(problems[:_SHOWN]) + more, path=path)
    findings = [
        *_left_out("are not in the plan and are left out of every estimate", outside, path),
        *_left_out("are there twice with the same verdict and count once", repeated, path),
    ]
    return [answers[item] for item in sorted(answers)], tuple(findings)


def _left_out(what: str, items: Sequence[int], path: Path) -> list[Finding]:
    if not items:
        return []
    several = english_list(sorted(set(items)), limit=5)
    message = f"{len(items)} rows ({several}) {what}"
    return [Finding(FindingKind.EXTRA, message, path=path, count=len(items))]


def _answer(item: int, row: Mapping[str, str], kind: ItemKind) -> ItemVerdict:
    """Return the answer of a row; raise a ValueError with what is wrong in it."""
    count = _count(row.get("count", ""))
    word = row["verdict"].casefold()
    known = [str(verdict) for verdict in Verdict]
    if kind is not ItemKind.BACKGROUND:
        if word not in known:
            raise ValueError(f"expected {english_list(known)}, found '{row['verdict']}'")
        if count:
            raise ValueError("only background items have a count; leave it empty")
        return ItemVerdict(item, Verdict(word))
    if word and word not in known:
        raise ValueError(f"expected {english_list(known)} or nothing, found '{row['verdict']}'")
    if word == Verdict.CANNOT_TELL:
        return ItemVerdict(item, Verdict.CANNOT_TELL)
    if count is None and word == Verdict.ANNOTATION_RIGHT:
        count = 0
    if count is None:
        raise ValueError(
            "a background item needs the number of nuclei without an outline, found none"
        )
    return ItemVerdict(item, Verdict.ANNOTATION_RIGHT, count)


def _count(text: str) -> int | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (number.is_integer() and 0 <= number < 2**31):
        raise ValueError(f"expected a whole number from 0 as count, found '{text}'")
    return int(number)


def _item(row: Mapping[str, str], line: int, path: Path) -> int:
    number = _number(row, "item", line, path)
    if number < 1 or not number.is_integer():
        raise UnreadableFileError(
            f"expected the number of an item in line {line}, found '{row['item']}'", path=path
        )
    return int(number)


def _number(row: Mapping[str, str], column: str, line: int, path: Path) -> float:
    try:
        number = float(row[column])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UnreadableFileError(
            f"expected a number as {column} in line {line}, found '{row[column]}'", path=path
        )
    return number


def _key(row: Mapping[str, str], line: int, path: Path) -> str:
    """Return what identifies the item of a row."""
    if row["side"] == ItemSide.BACKGROUND:
        id_or_tile = tile_name(_number(row, "y_px", line, path), _number(row, "x_px", line, path))
    else:
        id_or_tile = str(int(_number(row, "id", line, path)))
    return key_of(row["team"], row["region"], row["side"], id_or_tile)


def _as_written(team: str, region: str, side: str, id_or_tile: str) -> str:
    """Return what identifies an item by its cells in a table."""
    return key_of(_cell(team), _cell(region), side, id_or_tile)


def _cell(name: str) -> str:
    return inert(name).strip()
