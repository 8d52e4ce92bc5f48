"""Errors: what went wrong, where, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from napari_panoptic.common.text import shortened, visible

LONGEST_MESSAGE = 2000
"""Longest error message in characters; longer ones lose their middle."""


class PanopticError(Exception):
    """Base of every error that this package raises on purpose.

    The message is one or two plain sentences for the user: what was expected, what
    was found, and what to do.

    Parameters
    ----------
    message
        What went wrong, in words for the user.
    path
        The file or folder concerned.
    region
        Name of the region concerned.
    object_id
        Id of the object concerned.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | None = None,
        region: str | None = None,
        object_id: int | None = None,
    ) -> None:
        # A name quoted from a file can have any length; the remedy is at the end.
        self.message = shortened(message, LONGEST_MESSAGE)
        self.path = path
        self.region = region
        self.object_id = object_id
        super().__init__(self.message)

    def __str__(self) -> str:
        """Return the message with its place; names are made safe for terminals."""
        place = [f"{self.path}"] if self.path is not None else []
        if self.region is not None and (self.path is None or self.region not in self.path.name):
            place.append(f"region {self.region}")
        if self.object_id is not None:
            place.append(f"object {self.object_id}")
        text = f"{', '.join(place)}: {self.message}" if place else self.message
        # Escaped characters take more room.
        return shortened(visible(text, longest=2 * LONGEST_MESSAGE), 2 * LONGEST_MESSAGE)


class UnreadableFileError(PanopticError):
    """A file cannot be read, or its content is invalid."""


class MissingPackageError(PanopticError):
    """A file needs a Python package that is not installed: nothing is wrong with the file."""


class UnwritableFileError(PanopticError):
    """A file cannot be written to the requested place, or in the requested format."""


class CohortError(PanopticError):
    """A folder is not a cohort, or its description cannot be understood."""


class OutsideLinksError(CohortError):
    """A folder is a cohort only together with files that links reach outside of it."""


class SettingsError(PanopticError, ValueError):
    """A setting has a value that it cannot have."""


class LabelError(PanopticError, ValueError):
    """Label arrays do not fit together, or are not label arrays."""


def checked_name(option: str, name: str, name_of: Callable[[str], str]) -> str:
    """Return a name given to an option after a check that the cohort has it.

    Raises
    ------
    SettingsError
        If the cohort does not have it; the message names the option.
    """
    try:
        return name_of(name)
    except CohortError as error:
        raise SettingsError(f"{option}: {error}") from error
