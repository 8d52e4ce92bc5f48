"""The items of a review plan, read from its table."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import english_list, shortened
from napari_panoptic.io.files.guard import check_file
from napari_panoptic.nuclei.values.cohort import Cohort
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.review.plan.tables import plan_cells

_NEEDED = ("item", "team", "region", "side", "id", "y_px", "x_px")


@dataclass(frozen=True)
class Question:
    """What is asked, before the objects are looked up.

    Parameters
    ----------
    item
        Number of the item.
    team, region
        Where it is.
    side, object_id
        The object; None for a background tile.
    y_px, x_px
        A point in a background tile; not used for objects.
    """

    item: str
    team: str
    region: str
    side: Side | None
    object_id: int | None
    y_px: float = 0.0
    x_px: float = 0.0


def read_plan(path: Path, cohort: Cohort) -> tuple[list[Question], str]:
    """Read the items of a plan.

    Parameters
    ----------
    path
        The table.
    cohort
        The cohort that was planned for.

    Returns
    -------
    list of Question
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
    questions = [_question(row, line, cohort, path) for line, row in rows]
    if doubled := _doubled([question.item for question in questions]):
        raise UnreadableFileError(
            f"item {english_list(doubled)} is in the plan more than once; write the plan again",
            path=path,
        )
    return questions, hashlib.sha256(path.read_bytes()).hexdigest()


def _question(cells: Mapping[str, str], line: int, cohort: Cohort, path: Path) -> Question:
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
    return Question(cells["item"], team, region, side, object_id, y_px, x_px)


def _known(name: str, names: Sequence[str]) -> str | None:
    """Return a name of the cohort; tables put a quote before names that look like formulas."""
    return next((each for each in (name, name.removeprefix("'")) if each in names), None)


def _doubled(items: Sequence[str]) -> list[str]:
    return [item for item, count in Counter(items).items() if count > 1]
