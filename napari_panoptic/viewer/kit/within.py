"""A flag for what the program does itself, whose events are no choices of the user."""

from __future__ import annotations


class Within:
    """True inside its with-blocks, also after a nested one; otherwise False."""

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        """Count one more block."""
        self._depth += 1

    def __exit__(self, *_error: object) -> None:
        """Count one less."""
        self._depth -= 1

    def __bool__(self) -> bool:
        """Return whether a block is running."""
        return self._depth > 0
