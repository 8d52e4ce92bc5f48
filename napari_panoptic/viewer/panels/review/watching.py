"""Looks at the review file for what other windows did, in another thread."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtCore import QTimer

from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.watch import Looked
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.jobs.timers import stop_timers

POLL_MS = 1000
"""How often the file is looked at for what other windows did."""


class FileWatch:
    """Asks the review file for changes at each tick, one question at a time.

    Parameters
    ----------
    reviewing
        The review.
    took
        Called with the regions in which others changed verdicts.
    """

    def __init__(self, reviewing: Reviewing, took: Callable[[tuple[str, ...]], None]) -> None:
        self._reviewing, self._took = reviewing, took
        self._look: Latest[Looked] = Latest(self._on_looked)
        self._tick = QTimer()
        self._tick.setInterval(POLL_MS)
        self._tick.timeout.connect(self.ask)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is still to come."""
        return self._look.is_busy

    def start(self) -> None:
        """Ask from now on."""
        self._tick.start()

    def ask(self) -> None:
        """Look at the file in another thread: a network drive may take its time."""
        question = None if self.is_busy else self._reviewing.question()
        if question is not None:
            self._look.start(question)

    def close(self) -> None:
        """Stop asking, and ignore the answer that is still to come."""
        stop_timers(self._tick)
        self._look.drop()

    def _on_looked(self, looked: Looked) -> None:
        self._took(self._reviewing.take(looked))
