"""Rows of a review file, checked: SQLite stores values of any type in any column."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from napari_panoptic.common.text import shortened
from napari_panoptic.review.file import ReviewError

LARGEST_WHOLE = 2**62
"""Ids, areas and counts are smaller."""
LARGEST_PX = 2.0**31
"""Centroids are not farther out; their distances are numbers, too."""
_YEARS = range(1970, 9999)
"""Times near the ends of the calendar cannot be shown in every time zone."""
_Word = TypeVar("_Word", bound=StrEnum)


class Row:
    """The values of one row; each is checked when it is taken.

    Parameters
    ----------
    columns
        The names of the columns.
    values
        The values, in the same order.
    """

    def __init__(self, columns: Sequence[str], values: Sequence[Any]) -> None:
        self._values = dict(zip(columns, values, strict=True))

    def text(self, column: str) -> str:
        """Return a text.

        Raises
        ------
        ValueError
            If the value is of another type.
        """
        value = self._values[column]
        if type(value) is not str:
            raise self._wrong(column, "a text")
        return value

    def word(self, column: str, words: type[_Word]) -> _Word:
        """Return a word of a vocabulary.

        Raises
        ------
        ValueError
            If the value is another one.
        """
        try:
            return words(self._values[column])
        except ValueError as error:
            expected = " or ".join(repr(str(word)) for word in words)
            raise self._wrong(column, expected) from error

    def whole(self, column: str, lowest: int = 0, highest: int = LARGEST_WHOLE) -> int:
        """Return a whole number within limits.

        Raises
        ------
        ValueError
            If the value is another one.
        """
        value = self._values[column]
        if type(value) is not int or not lowest <= value <= highest:
            raise self._wrong(column, f"a whole number from {lowest} to {highest}")
        return value

    def whole_or_none(self, column: str, highest: int = LARGEST_WHOLE) -> int | None:
        """Return a whole number from 0, or None if there is no value.

        Raises
        ------
        ValueError
            If the value is another one.
        """
        return None if self._values[column] is None else self.whole(column, 0, highest)

    def number(self, column: str, lowest: float, highest: float) -> float:
        """Return a number within limits.

        Raises
        ------
        ValueError
            If the value is another one.
        """
        value = self._values[column]
        is_number = type(value) in (float, int) and math.isfinite(value)
        if not is_number or not lowest <= value <= highest:
            raise self._wrong(column, f"a number from {lowest:g} to {highest:g}")
        return float(value)

    def centroid_px(self, column: str) -> float:
        """Return a coordinate of a centroid.

        Raises
        ------
        ValueError
            If no object can be there.
        """
        return self.number(column, -LARGEST_PX, LARGEST_PX)

    def moment(self, column: str) -> datetime:
        """Return a time in UTC, which one without a time zone is taken to be.

        Raises
        ------
        ValueError
            If the value is no time of ISO 8601.
        """
        value = self._values[column]
        try:
            found = datetime.fromisoformat(value)
            found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._wrong(column, "a time of ISO 8601") from error
        if found.year not in _YEARS:
            raise self._wrong(column, f"a time from the year {_YEARS[0]} to {_YEARS[-1]}")
        return found

    def _wrong(self, column: str, expected: str) -> ValueError:
        value = self._values[column]
        found = "nothing" if value is None else shortened(repr(value), 60)
        return ValueError(f"expected {expected} as {column}, found {found}")


def names_in(rows: Sequence[Sequence[Any]], column: str, path: Path) -> list[str]:
    """Return the names in rows of one column.

    Raises
    ------
    ReviewError
        If one of them is no text.
    """
    with understood("verdict", path):
        return [Row((column,), row).text(column) for row in rows]


@contextmanager
def understood(
    what: str, path: Path, *, region: object = None, object_id: object = None
) -> Iterator[None]:
    """Turn the errors of damaged rows into one that names the file.

    Parameters
    ----------
    what
        What the rows describe.
    path
        The review file.
    region, object_id
        The object concerned, as far as the file has valid values for it.

    Raises
    ------
    ReviewError
        If a value is none that this program writes.
    """
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        # The message of a `RecursionError` describes the decoder, not the file.
        nested = isinstance(error, RecursionError)
        found = "lists nested too deeply" if nested else shortened(str(error), 300)
        raise ReviewError(
            f"the review file holds a {what} that cannot be understood ({found}); it was changed "
            f"by another program: restore a copy, or begin another file",
            path=path,
            region=region if isinstance(region, str) else None,
            object_id=object_id if isinstance(object_id, int) else None,
        ) from error
