"""A result over the cohort that the user asks for, may stop, and that goes stale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.viewer.jobs.jobs import Job, Stream, show_failure
from napari_panoptic.viewer.kit.widgets import WorkControls

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class RunTexts:
    """What stands in place of a result."""

    #: How to request it.
    hint: str
    #: Why it cannot be requested.
    impossible: str
    #: While it is computed, and after the user stopped that.
    running: str
    stopped: str
    #: After it was removed because the request would be a different one now.
    stale: str


class CohortRun(Generic[RequestT, ResultT]):
    """Computes a result on demand, and takes it away when it would be another one now.

    Parameters
    ----------
    controls
        Start and stop the work, and show its progress.
    texts
        What stands in place of the result.
    wanted
        Return what the result would be about now; None if there can be none.
    take
        Called with each result.
    clear
        Called with what to show in place of a result.
    """

    def __init__(
        self,
        controls: WorkControls,
        texts: RunTexts,
        *,
        wanted: Callable[[], RequestT | None],
        take: Callable[[ResultT], object],
        clear: Callable[[str], object],
    ) -> None:
        self._controls, self._texts = controls, texts
        self._wanted, self._take, self._clear = wanted, take, clear
        self._work: Stream[ResultT] = Stream(
            self._on_result,
            ended=self._on_ended,
            failed=self._on_failed,
            progressed=controls.show_progress,
        )
        self._was_possible: bool | None = None
        self.request: RequestT | None = None
        """What the user asked about; None once the answer is no longer shown or expected."""
        self.result: ResultT | None = None
        """The answer; None if it is not known."""

    @property
    def is_busy(self) -> bool:
        """Whether the result is being computed."""
        return self._work.is_busy

    @property
    def is_current(self) -> bool:
        """Whether the user asked about what a request would be about now."""
        return self.request is not None and self.request == self._wanted()

    def start(self, compute: Callable[[RequestT, Job[ResultT]], Iterator[ResultT]]) -> None:
        """Compute the result that is wanted now in a worker, unless there can be none."""
        request = self._wanted()
        if request is None:
            return
        self.show_nothing(self._texts.running)
        self.request = request
        self._controls.show_progress(0.0)
        self._work.start(partial(compute, request))

    def stop(self) -> None:
        """Stop computing, and show no result."""
        self._drop(self._texts.stopped)

    def close(self) -> None:
        """Stop computing for good; touch no widget."""
        self._work.close()

    def reset(self) -> None:
        """Show how to ask for a result."""
        self.show_nothing(self._texts.hint)

    def check(self, stale: str = "") -> None:
        """Show no result of another request than would be made now.

        Parameters
        ----------
        stale
            What to show in its place; empty for the usual text.
        """
        wanted = self._wanted()
        if self.request is not None and self.request != wanted:
            self._drop(stale or self._texts.stale)
        elif self._was_possible is not (wanted is not None):
            self.reset()

    def show_nothing(self, hint: str) -> None:
        """Show a sentence and no result."""
        self.result = None
        self._was_possible = self._wanted() is not None
        self._controls.start.setEnabled(self._was_possible)
        self._controls.show_progress(None)
        self._clear(hint if self._was_possible else self._texts.impossible)

    def _drop(self, hint: str) -> None:
        self._work.stop()
        self.request = None
        self.show_nothing(hint)

    def _on_result(self, result: ResultT) -> None:
        self.result = result
        self._take(result)

    def _on_ended(self) -> None:
        self._controls.show_progress(None)

    def _on_failed(self, error: PanopticError) -> None:
        self._drop(self._texts.hint)
        show_failure(error)
