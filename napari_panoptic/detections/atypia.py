"""Scores of nuclear atypia: points for how near a team's score is to the true one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

SCORES = (1, 2, 3)
"""The scores that there are."""
POINTS_BY_DIFFERENCE = (1, 0, -1)
"""For a score that is right, off by one, off by two (MITOS-ATYPIA-14)."""
POINTS_RULE = (
    "1 point for a score that is right, 0 for one off by one, \N{MINUS SIGN}1 for one off by two, "
    "0 where the frame was not evaluated"
)
"""For people."""


class AnswerState(StrEnum):
    """What is there of an answer."""

    SCORED = "scored"  # 1, 2 or 3
    NOT_EVALUATED = "not evaluated"  # an empty file
    MISSING = "missing"  # no file
    UNREADABLE = "unreadable"  # a file that holds something else


def atypia_points(reference: int, score: int | None) -> int:
    """Return 1 for a score that is right, 0 for one off by one, -1 for one off by two.

    Parameters
    ----------
    reference
        The true score, 1 to 3.
    score
        The team's, or None where it did not evaluate the frame: 0 points.
    """
    return 0 if score is None else POINTS_BY_DIFFERENCE[abs(score - reference)]


@dataclass(frozen=True, eq=False)
class AtypiaSummary:
    """What a team reached over all frames for which it sent a file.

    Parameters
    ----------
    points
        Their sum, by which the challenge ranks.
    confusion
        int64 (3, 4): rows true scores, columns the team's, the last one "not
        evaluated".
    """

    points: int
    confusion: NDArray[np.int64]

    @property
    def n_frames(self) -> int:
        """Frames with a true score and a file of the team."""
        return int(self.confusion.sum())

    @property
    def n_right(self) -> int:
        """Frames with the right score."""
        return int(np.trace(self.confusion[:, : len(SCORES)]))

    @property
    def n_not_evaluated(self) -> int:
        """Frames that the team left open, with an empty file."""
        return int(self.confusion[:, -1].sum())


def summarise_atypia(pairs: Sequence[tuple[int, int | None]]) -> AtypiaSummary:
    """Sum up frames.

    Parameters
    ----------
    pairs
        True score, and the team's or None.
    """
    confusion = np.zeros((len(SCORES), len(SCORES) + 1), np.int64)
    for reference, score in pairs:
        column = len(SCORES) if score is None else SCORES.index(score)
        confusion[SCORES.index(reference), column] += 1
    return AtypiaSummary(sum(atypia_points(*pair) for pair in pairs), confusion)
