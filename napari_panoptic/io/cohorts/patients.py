"""How a patient is told from the name of a region or frame."""

from __future__ import annotations

import re
import time
import warnings

import regex

from napari_panoptic.common.errors import CohortError

SEARCH_S = 5.0
"""Computing time that all names of a cohort may take together; a million take less."""
_MOST_CHARACTERS = 500
# Where the module that can be stopped means something else than that of Python.
_OTHER_MEANING = re.compile(r"(?<!\\)\{[^0-9,}]")


class PatientExpression:
    """A regular expression with a group ``patient``, from a cohort that somebody else made.

    An expression of a few characters can take longer than anybody lives. All
    searches together therefore have a limit.

    Parameters
    ----------
    text
        As Python's `re` understands it.

    Raises
    ------
    CohortError
        Where it is none, or has no such group.
    """

    def __init__(self, text: str) -> None:
        try:
            with warnings.catch_warnings(action="error", category=FutureWarning):
                groups = re.compile(text).groupindex
            self._expression = regex.compile(text)
        except (
            *(re.error, regex.error, FutureWarning, OverflowError, RecursionError),
            ValueError,
        ) as error:
            raise CohortError(f"files.patient is no valid regular expression: {error}") from error
        if "patient" not in groups:
            raise CohortError(
                f"files.patient must have a group named patient, such as (?P<patient>.+)_[0-9]+, "
                f"found '{text}'"
            )
        if len(text) > _MOST_CHARACTERS or _OTHER_MEANING.search(text):
            raise CohortError(
                f"files.patient must be an expression of at most {_MOST_CHARACTERS} characters, "
                f"with \\{{ for a brace that is no count; found '{text}'"
            )
        self._text, self._left_s = text, SEARCH_S

    def patient_in(self, name: str) -> str | None:
        """Return the patient that a name tells, if it tells one.

        Raises
        ------
        CohortError
            Where that takes too long.
        """
        began = time.thread_time()
        try:
            if self._left_s <= 0:  # names that take a little each have used it up together
                raise TimeoutError
            found = self._expression.search(name, timeout=self._left_s, concurrent=True)
        except TimeoutError:
            raise CohortError(
                f"the regular expression '{self._text}' (files.patient) takes too long to be found "
                f"in names such as '{name}'; write a simpler one, in which nothing that has a "
                f"+ or * is repeated again"
            ) from None
        finally:
            self._left_s -= time.thread_time() - began
        return found["patient"] if found else None


def patient_in(name: str, expression: PatientExpression | None) -> str:
    """Tell the patient from a name: by an expression, else what is before the last _."""
    told = expression.patient_in(name) if expression is not None else None
    return told or name.rpartition("_")[0] or name
