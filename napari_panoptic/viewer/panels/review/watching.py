"""Looks at the review file for what other windows did, in another thread."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtCore import QTimer

from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.watch import Looked
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.jobs.timers import stop_timers


class FileWatch:
    """Asks the review file for changes at each tick, one question at a time.

    Parameters
    ----------
    reviewing
        The review.
    tick
        The timer that asks; stopped by :meth:`close`.
    took
        Called with the regions in which others changed verdicts.
    """

    def __init__(
        self, reviewing: Reviewing, tick: QTimer, took: Callable[[tuple[str, ...]], None]
    ) -> None:
        self._reviewing = reviewing
        self._tick, self._took = tick, took
        self._look: Latest[Looked] = Latest(self._on_looked)
        tick.timeout.connect(self.ask)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is still to come."""
        return self._look.is_busy

    def ask(self) -> None:
        """Look at the file in another thread: a network drive may take its time."""
        question = None if self.is_busy else self._reviewing.question()
        if question is not None:
            self._look.start(question)

    def close(self) -> None:
        """Stop asking, and ignore the answer that is still to come."""
        self._tick.timeout.disconnect(self.ask)
        stop_timers(self._tick)
        self._look.drop()

    def _on_looked(self, looked: Looked) -> None:
        self._took(self._reviewing.take(looked))
