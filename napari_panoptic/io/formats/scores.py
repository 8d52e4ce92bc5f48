"""Scores of objects: the confidence of a model, under the names that programs give it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list

SCORE_NAMES = (
    "score",
    "confidence",
    "probability",
    "prob",
    "type_prob",
    "detection probability",
)
"""Names of scores that are recognised without a ``cohort.toml``, the preferred one first. The last
one is that of QuPath's StarDist extension, those before it are of TIAToolbox, StarDist, HoVer-Net
and CellViT."""
_MOST_NAMES = 8
"""Maximum number of names that a finding lists."""


class ScoreNames:
    """Find the score among the properties of each object of a file.

    Parameters
    ----------
    name
        Its name in the file, compared without regard to case; None for the first of `SCORE_NAMES`
        that an object has.
    """

    def __init__(self, name: str | None) -> None:
        self._name = name
        wanted = SCORE_NAMES if name is None else (name,)
        self._rank = {each.strip().casefold(): rank for rank, each in enumerate(wanted)}
        self._rank_of: dict[Any, int] = {}
        self._numbers: list[str] = []
        self._found = False

    def of(self, *tables: Any) -> float:
        """Return the score of an object; NaN if it has none.

        Parameters
        ----------
        tables
            Its properties: tables of names and values, or lists ``[{"name": …, "value": …}]`` as
            QuPath up to 0.3 writes them. Anything else holds no score.
        """
        best, score = len(self._rank), math.nan
        for table in tables:
            for name, value in _items(table):
                rank = self._rank_of.get(name)
                if rank is None:
                    rank = self._rank.get(str(name).strip().casefold(), len(self._rank))
                    self._rank_of[name] = rank
                    if not math.isnan(score_value(value)):
                        self._numbers.append(str(name))
                if rank < best and not math.isnan(number := score_value(value)):
                    best, score = rank, number
        self._found |= best < len(self._rank)
        return score

    def findings(self, path: Path) -> Iterator[Finding]:
        """Report that no object has the score that ``cohort.toml`` names; its names are listed."""
        if self._name is not None and not self._found and self._rank_of:
            yield no_such_score(self._name, self._numbers, path)


def no_such_score(wanted: str, there: Sequence[str], path: Path) -> Finding:
    """Return the finding that a file has no score of the name that ``cohort.toml`` states."""
    others = english_list(there, limit=_MOST_NAMES) if there else "none"
    return Finding(
        FindingKind.MISSING,
        f"no object has a number called '{wanted}', which cohort.toml names as the score; found "
        f"{others}. Correct the name",
        path=path,
    )


def _items(table: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(table, dict):
        yield from table.items()
    elif isinstance(table, list):
        for entry in table:
            if isinstance(entry, dict):
                yield entry.get("name"), entry.get("value")


def score_column(columns: Sequence[str], wanted: str | None) -> int | None:
    """Return which column of a table is the score; None if there is none.

    Parameters
    ----------
    columns
        Their names.
    wanted
        The name of the score, or None for the first of `SCORE_NAMES` that is there.
    """
    at = {name.strip().casefold(): place for place, name in enumerate(columns)}
    names = SCORE_NAMES if wanted is None else (wanted.strip().casefold(),)
    return next((at[name] for name in names if name in at), None)


def score_or_none(score: float) -> float | None:
    """Return None instead of NaN."""
    return None if math.isnan(score) else score


def score_value(value: Any) -> float:
    """Return a score; NaN for anything but a finite number, or a text that is one."""
    if isinstance(value, bool) or not isinstance(value, (float, int, str)):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan
