"""How the user learns what is being opened, and why something cannot be."""

from __future__ import annotations

from typing import Protocol

from napari_panoptic.viewer.kit.shown import show_error


class OpeningReport(Protocol):
    """Where the user sees what is being opened, and why something cannot be."""

    def show_reading(self, name: str) -> None:
        """Show that something is being read."""

    def show_failed(self, message: str) -> None:
        """Show why nothing was opened."""

    def show_over(self) -> None:
        """Show that reading has ended."""


class _Notifications:
    """Reports errors as napari notifications, and nothing else."""

    def show_reading(self, name: str) -> None:
        """Show nothing."""

    def show_failed(self, message: str) -> None:
        """Show an error."""
        show_error(message)

    def show_over(self) -> None:
        """Show nothing."""


NOTIFICATIONS = _Notifications()
