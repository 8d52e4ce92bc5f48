"""Readers of the values in a ``cohort.toml``, which the three tasks share."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.patterns import Pattern

Reader = Callable[[Any, str], Any]
"""Function of a value and its place, such as ``files.mpp``, that returns the value as read.

It raises a `CohortError` that states the place, what was expected, and what was found."""


def table(keys: Mapping[str, Reader], needed: Sequence[str] = ()) -> Reader:
    """Return the reader of a table with known keys, of which the needed ones must have a content.

    Its result lacks the keys that the table lacks.
    """

    def read(value: Any, place: str) -> dict[str, Any]:
        found = any_table(value, place)
        for key in found:
            if key not in keys:
                raise _unknown(key, place, list(keys))
        for key in needed:
            if found.get(key, {}) == {}:
                raise CohortError(f"the table [{_below(place, key)}] is missing or empty")
        return {key: keys[key](each, _below(place, key)) for key, each in found.items()}

    return read


def table_of(reader: Reader) -> Reader:
    """Return the reader of a table with keys of any name, such as those of teams."""

    def read(value: Any, place: str) -> dict[str, Any]:
        found = any_table(value, place)
        return {key: reader(each, _below(place, key)) for key, each in found.items()}

    return read


def by_team(reader: Reader, *, has_teams: bool = True) -> Reader:
    """Return the reader of a value for all teams, or of a table with a value for some.

    Its result has the names of teams (casefolded), and "" for all others. A table is refused where
    there are no teams.
    """

    def read(value: Any, place: str) -> dict[str, Any]:
        if isinstance(value, dict) and not has_teams:
            raise CohortError(f"{place} must be one value, found a table of teams")
        named = value if isinstance(value, dict) else {"": value}
        return {name.casefold(): reader(each, _below(place, name)) for name, each in named.items()}

    return read


def word(words: type[StrEnum]) -> Reader:
    """Return the reader of one word of an enum."""

    def read(value: Any, place: str) -> StrEnum:
        if value not in [str(known) for known in words]:
            known = " or ".join(f'"{known}"' for known in words)
            raise CohortError(f"{place} must be {known}, found {value!r}")
        return words(value)

    return read


def number(low: float, high: float) -> Reader:
    """Return the reader of a number within limits."""

    def read(value: Any, place: str) -> float:
        if not is_number(value) or not low <= value <= high:
            raise CohortError(f"{place} must be a number from {low:g} to {high:g}, found {value!r}")
        return float(value)

    return read


def patterns(
    kind: type[Pattern],
    optional: set[str],
    required: Callable[[Pattern], set[str]] = lambda _: set(),
) -> Reader:
    """Return the reader of a path pattern or a list of them.

    Parameters
    ----------
    kind
        Their class, which knows the placeholders.
    optional
        The placeholders that they may have.
    required
        Returns the placeholders that a pattern must have.
    """

    def read(value: Any, place: str) -> tuple[Pattern, ...]:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise CohortError(f"{place} must be a path pattern or a list of them, found {value!r}")
        found = tuple(map(kind, texts))
        for pattern in found:
            needed = required(pattern)
            _check_placeholders(pattern, place, "cannot have", pattern.fields - optional - needed)
            _check_placeholders(pattern, place, "needs", needed - pattern.fields)
        return found

    return read


def anything(value: Any, place: str) -> Any:  # noqa: ARG001  the place is for errors, and there are none
    """Return a value that is read later."""
    return value


def any_table(value: Any, place: str) -> dict[str, Any]:
    """Read a table."""
    if not isinstance(value, dict):
        raise CohortError(f"{place} must be a table, found {value!r}")
    return value


def text(value: Any, place: str) -> str:
    """Read a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise CohortError(f"{place} must be text, found {value!r}")
    return value


def colour(value: Any, place: str) -> tuple[int, int, int]:
    """Read red, green and blue."""
    match value:
        case [int(red), int(green), int(blue)] if all(0 <= v <= 255 for v in value):
            return (red, green, blue)
    raise CohortError(
        f"{place} must be a colour of three numbers from 0 to 255, such as [255, 0, 0], "
        f"found {value!r}"
    )


def colours(value: Any, place: str) -> tuple[tuple[int, int, int], ...]:
    """Read a list of colours."""
    if not isinstance(value, list):
        raise CohortError(f"{place} must be a list of colours, found {value!r}")
    return tuple(colour(each, place) for each in value)


def is_number(value: Any) -> bool:
    """Return whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _below(place: str, key: str) -> str:
    return ".".join(filter(None, (place, key)))


def _unknown(key: str, place: str, known: Sequence[str]) -> CohortError:
    """Return the error for an unknown key, with similar keys that are known."""
    close = difflib.get_close_matches(key, known, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known are {english_list(known)}"
    return CohortError(f"unknown key '{key}' {f'in [{place}]' if place else 'at the top'}; {hint}")


def _check_placeholders(
    pattern: Pattern, place: str, problem: str, wrong: set[str] | frozenset[str]
) -> None:
    if wrong:
        names = english_list([f"{{{name}}}" for name in sorted(wrong)])
        raise CohortError(f"{place} {problem} the placeholder {names}, found '{pattern.text}'")
