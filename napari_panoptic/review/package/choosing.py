"""Choose the items of a package: those of a review plan, or the worst failures of a cohort."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import english_list, shortened
from napari_panoptic.display.object_rows import WorstFirst, worst_first
from napari_panoptic.explain.failures import (
    Block,
    CohortFailures,
    FailureName,
    block_of,
)
from napari_panoptic.io.files.guard import check_file
from napari_panoptic.nuclei.regions.looks import RegionLook, look_at
from napari_panoptic.review.plan.tables import plan_cells
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.vocabulary import Side

_NEEDED = ("item", "team", "region", "side", "id", "y_px", "x_px")


@dataclass(frozen=True)
class ItemQuestion:
    """What is asked, before the objects are looked up."""

    #: Number of the item.
    item: str
    #: Its team and its region.
    team: str
    region: str
    #: The object; None for a background tile.
    side: Side | None
    object_id: int | None
    #: A point in a background tile; not used for objects.
    y_px: float = 0.0
    x_px: float = 0.0


def read_questions(path: Path, cohort: Cohort) -> tuple[list[ItemQuestion], str]:
    """Read the items of a plan.

    Parameters
    ----------
    path
        The table.
    cohort
        The cohort that was planned for.

    Returns
    -------
    list of ItemQuestion
        In the order of the plan.
    str
        SHA-256 of the file.

    Raises
    ------
    UnreadableFileError
        If the file is no plan, or not one for this cohort.
    """
    check_file(path, "a plan")
    rows = plan_cells(path, _NEEDED)
    questions = [_question_of_row(row, line, cohort, path) for line, row in rows]
    if doubled := _doubled([question.item for question in questions]):
        raise UnreadableFileError(
            f"item {english_list(doubled)} is in the plan more than once; write the plan again",
            path=path,
        )
    return questions, hashlib.sha256(path.read_bytes()).hexdigest()


def _question_of_row(
    cells: Mapping[str, str], line: int, cohort: Cohort, path: Path
) -> ItemQuestion:
    region = _known(cells["region"], [region.name for region in cohort.regions])
    team = _known(cells["team"], cohort.team_names)
    is_tile = not cells["id"]
    if region is None or team is None:
        name = f"region '{cells['region']}'" if region is None else f"team '{cells['team']}'"
        raise UnreadableFileError(
            f"line {line}: this cohort has no {shortened(name, 200)}; choose the cohort that the "
            f"plan was made for",
            path=path,
        )
    try:
        side, object_id = (None, None) if is_tile else (Side(cells["side"]), int(cells["id"]))
        y_px, x_px = (float(cells["y_px"]), float(cells["x_px"])) if is_tile else (0.0, 0.0)
        if not cells["item"] or not math.isfinite(y_px + x_px):
            raise ValueError("it has no number or no place")
    except ValueError as error:
        raise UnreadableFileError(
            f"line {line} is no item of a plan ({shortened(str(error), 80)}); write the plan again",
            path=path,
        ) from error
    return ItemQuestion(cells["item"], team, region, side, object_id, y_px, x_px)


def _known(name: str, names: Sequence[str]) -> str | None:
    """Return a name of the cohort; tables put a quote before names that look like formulas."""
    return next((each for each in (name, name.removeprefix("'")) if each in names), None)


def _doubled(items: Sequence[str]) -> list[str]:
    return [item for item, count in Counter(items).items() if count > 1]


def failures_of(
    cohort: Cohort,
    reading: Reading,
    *,
    progress: Progress = UNWATCHED,
) -> tuple[CohortFailures, tuple[Finding, ...]]:
    """Find the failures of some teams in all regions that can be held in memory.

    Parameters
    ----------
    cohort, reading
        What to evaluate.
    progress
        Where to report each region.

    Returns
    -------
    CohortFailures
        The failures.
    tuple of Finding
        What stood in the way, or was odd.
    """
    look = RegionLook(reading, block_of)
    blocks: list[Block] = []
    findings: list[Finding] = []
    for (seen,) in look_at(cohort, [look], progress, jobs=None):
        findings += seen.findings
        blocks += seen.parts
    return CohortFailures(blocks), tuple(dict.fromkeys(findings))


def worst(failures: CohortFailures, number: int) -> list[ItemQuestion]:
    """Return the failures that overlap least, the largest first among equals."""
    rows = worst_first(failures.columns, WorstFirst.IOU)[:number].tolist()
    return [_question(failures.name(row)) for row in rows]


def worst_pairs(
    failures: CohortFailures, teams: tuple[str, str], number: int
) -> list[tuple[ItemQuestion, ItemQuestion]]:
    """Return annotated objects with different outcomes for two teams, once for each team.

    Failures of predictions are left out: the other team has no such object.
    """
    evaluated = {team: {b.region for b in failures.blocks if b.team == team} for team in teams}
    both = evaluated[teams[0]] & evaluated[teams[1]]
    status, cause = failures.columns["status"], failures.columns["cause"]
    # The outcomes of the teams that failed an object; the worst failures come first.
    outcomes: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row in worst_first(failures.columns, WorstFirst.IOU).tolist():
        name = failures.name(row)
        if name.side is Side.REFERENCE and name.region in both:
            found = outcomes.setdefault((name.region, name.id), [])
            found.append((int(status[row]), int(cause[row])))
    different = [at for at, found in outcomes.items() if len(found) == 1 or found[0] != found[1]]
    first, second = (
        [_question(FailureName(team, region, Side.REFERENCE, id_)) for region, id_ in different]
        for team in teams
    )
    return list(zip(first, second, strict=True))[:number]


def pairs_in(
    questions: Sequence[ItemQuestion], teams: tuple[str, str]
) -> list[tuple[ItemQuestion, ...]]:
    """Put the items of a plan that ask about one annotated object for two teams together.

    Returns
    -------
    list of tuple of ItemQuestion
        In the order of the first of each; items of one team alone stay single.
    """
    groups: dict[tuple[object, ...], dict[str, ItemQuestion]] = {}
    for question in questions:
        key: tuple[object, ...] = (question.item,)
        if question.side is Side.REFERENCE and question.team in teams:
            key = ("pair", question.region, question.object_id)
            if question.team in groups.get(key, {}):
                key = (question.item,)
        groups.setdefault(key, {})[question.team] = question
    return [tuple(group.values()) for group in groups.values()]


def shuffled(
    groups: Sequence[tuple[ItemQuestion, ...]], seed: int, *, order: bool
) -> list[tuple[ItemQuestion, ...]]:
    """Put each group's sides in a random order and, if wanted, the groups as well."""
    random = np.random.default_rng(seed)
    sides = [tuple(group[k] for k in random.permutation(len(group))) for group in groups]
    places = random.permutation(len(sides)) if order else np.arange(len(sides))
    return [sides[place] for place in places.tolist()]


def numbered(groups: Sequence[tuple[ItemQuestion, ...]]) -> list[tuple[ItemQuestion, ...]]:
    """Return questions with numbers from 1, in their order."""
    numbers = itertools.count(1)
    return [tuple(replace(q, item=str(next(numbers))) for q in group) for group in groups]


def _question(name: FailureName) -> ItemQuestion:
    return ItemQuestion("", name.team, name.region, name.side, name.id)
