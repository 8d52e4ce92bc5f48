"""Names of regions, patients and teams, as short as they can be told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SEPARATOR = re.compile(r"[\s_\-/\\:;,|+]|(?<!\d)\.|\.(?!\d)")
"""Separators of the parts of a name; the point of a decimal number is not one."""


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names without the prefix that all of them share, in the same order.

    The prefix ends at a separator. It is as long as possible, but leaves a letter in every name: a
    number alone would say too little. Names are never cut elsewhere, and different names stay
    different. Show the full name as the tooltip.

    Examples
    --------
    >>> distinct_names(["TCGA-2Z-A9JG_1", "TCGA-49-6743_001"])
    ['2Z-A9JG_1', '49-6743_001']
    >>> distinct_names(["otsu", "otsu-watershed"])
    ['otsu', 'otsu-watershed']
    """
    different = set(names)
    longest = max(different, key=len, default="")
    # Sought in a whole name: whether a point is one of a number depends on what follows.
    for end in reversed([found.end() for found in _SEPARATOR.finditer(longest)]):
        if all(name.startswith(longest[:end]) and _has_letter(name[end:]) for name in different):
            return list(names) if len(different) == 1 else [name[end:] for name in names]
    return list(names)


def short_name(name: str, patient: str) -> str:
    """Leave the patient out of the name of a region, since it stands beside it."""
    if patient and name.startswith(patient) and name != patient:
        return "…" + name[len(patient) :]
    return name


def cut_off(name: str, length: int) -> str:
    """Return a name without its end if it is longer than a number of characters."""
    return name if len(name) <= length else f"{name[: length - 1]}…"


def _has_letter(text: str) -> bool:
    return any(letter.isalpha() for letter in text)
