"""How the patient is read from the name of a region or frame."""

from __future__ import annotations

import re
import warnings

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.patterns import Pattern, name_expression

MOST_REPETITIONS = 2
"""In a regular expression: searching takes time for the power of their number."""
_MOST_CHARACTERS = 500
_CHARACTER = r"(?:\\[^0-9]|\[\^?\]?+(?:\\.|[^\]\\])*+\]|[^\\\[\](){}*+?|])"
_GROUP = r"\((?:\?P<patient>|\?:)?+(?!\?)|\)(?![*+?{])"
_REPETITION = r"(?:[*+?]|\{[0-9]*,[0-9]*\})[?+]?+"
_PIECE = re.compile(rf"{_CHARACTER}(?:(?P<repeated>{_REPETITION})|\{{[0-9]+\}})?+|{_GROUP}")


class PatientExpression:
    """Finds the patient in a name, by a pattern or a simple regular expression.

    Anybody may have written a ``cohort.toml``, and a regular expression of a few
    characters can take years to search. Only forms that end quickly are accepted.

    Parameters
    ----------
    text
        Such as ``{patient}_*``, which has to fit the whole name, or
        ``^(?P<patient>[a-z]+_[0-9]+)-``, which is searched for: characters and classes, of
        which `MOST_REPETITIONS` may be repeated, and groups, none of which may be.

    Raises
    ------
    CohortError
        If it is neither, or has no part named patient.
    """

    def __init__(self, text: str) -> None:
        if "{patient}" in text:
            self._expression, self._group = _of_pattern(text), "f_patient"
        else:
            self._expression, self._group = _of_expression(text), "patient"

    def patient_in(self, name: str) -> str | None:
        """Return the patient in a name, or None if the name does not fit."""
        found = self._expression.search(name)
        return found[self._group] if found else None


def patient_in(name: str, expression: PatientExpression | None) -> str:
    """Return the patient in a name: by an expression, else what precedes the last ``_``."""
    found = expression.patient_in(name) if expression is not None else None
    return found or name.rpartition("_")[0] or name


def _of_pattern(text: str) -> re.Pattern[str]:
    pattern = Pattern(text)
    if pattern.fields != {"patient"} or len(pattern.parts) != 1:
        raise CohortError(
            f"files.patient must be the pattern of a name with the placeholder {{patient}} alone, "
            f"such as {{patient}}_*, found '{text}'"
        )
    # search() has to fit the whole name.
    return re.compile(rf"\A{name_expression(text).pattern}\Z", re.IGNORECASE | re.DOTALL)


def _of_expression(text: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings(action="error", category=FutureWarning):
            expression = re.compile(text[: _MOST_CHARACTERS + 1])
    except (re.error, FutureWarning, OverflowError, RecursionError, ValueError) as error:
        raise CohortError(f"files.patient is no valid regular expression: {error}") from error
    if "patient" not in expression.groupindex:
        raise CohortError(
            f"files.patient must be a pattern such as {{patient}}_*, or a regular expression with "
            f"a group named patient such as (?P<patient>.+)_[0-9]+; found '{text}'"
        )
    if len(text) > _MOST_CHARACTERS or not _ends_quickly(text):
        raise CohortError(
            f"files.patient must be a pattern such as {{patient}}_*, or a regular expression of at "
            f"most {_MOST_CHARACTERS} characters with at most {MOST_REPETITIONS} repetitions (+ * "
            f"? or {{2,3}}), none of them of a group, and without alternatives (|); found '{text}'"
        )
    return expression


def _ends_quickly(text: str) -> bool:
    """Return whether an expression consists of allowed pieces, with few repetitions."""
    end, repetitions = 0, 0
    while end < len(text) and (piece := _PIECE.match(text, end)):
        end = piece.end()
        repetitions += piece["repeated"] is not None
    return end == len(text) and repetitions <= MOST_REPETITIONS
