"""One order of all that can be undone: strokes, classes, actions, ambiguous areas and verdicts.

Layers keep their own strokes. Here is only in which order they were drawn, and what was done
between them; undoing the last step of all undoes that of its layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from psygnal import Signal


class StepSource(Protocol):
    """Keeps steps of its own, such as the strokes of a layer."""

    def depth(self, *, redo: bool = False) -> int:
        """Return how many steps it can undo, or redo."""

    def replay(self, *, redo: bool) -> None:
        """Undo its last step, or redo the one that was undone last."""

    def forget_undone(self) -> None:
        """Let nothing be redone any more."""


@dataclass(frozen=True, eq=False)
class Step:
    """Something that was done."""

    #: Undoes it, or does it again; returns why that is not possible now, empty if it was done.
    undo: Callable[[], str]
    redo: Callable[[], str]
    #: What keeps it; None for a step that is kept here alone.
    source: StepSource | None = None
    #: The region whose working copies it changed; empty for none, and for steps of a source.
    region: str = ""


class EditHistory:
    """The steps of a window, in their order."""

    changed = Signal()

    def __init__(self) -> None:
        self._sources: list[StepSource] = []
        self._done: list[Step] = []
        self._undone: list[Step] = []
        self._is_stepping = False

    def add_source(self, source: StepSource) -> None:
        """Take the steps of a source from now on."""
        self._sources.append(source)

    def remove_source(self, source: StepSource) -> None:
        """Forget a source and its steps."""
        self._sources = [own for own in self._sources if own is not source]
        self._done = [step for step in self._done if step.source is not source]
        self._undone = [step for step in self._undone if step.source is not source]
        self.changed.emit()

    def push(self, step: Step) -> None:
        """Note something that was done just now."""
        self.sync()
        self._append(step)
        self.changed.emit()

    def drop(self, step: Step) -> None:
        """Forget a step that was undone in another way."""
        self._done = [own for own in self._done if own is not step]
        self._undone = [own for own in self._undone if own is not step]
        self.changed.emit()

    def forget_region(self, region: str) -> None:
        """Forget what changed the working copies of a region, which were discarded."""
        self._done = [step for step in self._done if step.region != region]
        self._undone = [step for step in self._undone if step.region != region]
        self.changed.emit()

    def sync(self) -> None:
        """Note what sources did since the last time, or lost."""
        if self._is_stepping:
            return
        for source in self._sources:
            for steps, redo in ((self._done, False), (self._undone, True)):
                known = [step for step in steps if step.source is source]
                for step in known[source.depth(redo=redo) :]:
                    steps.remove(step)
            known_done = sum(step.source is source for step in self._done)
            for _ in range(source.depth() - known_done):
                self._append(_step_of(source))

    def may_undo(self, *, redo: bool = False) -> bool:
        """Return whether there is a step to undo, or to redo."""
        self.sync()
        return bool(self._undone if redo else self._done)

    def undo(self, *, redo: bool = False) -> str:
        """Undo the last step, or redo the one that was undone last.

        Returns
        -------
        str
            Why that is not possible now; empty if it was done, or there is none.
        """
        self.sync()
        taken, given = (self._undone, self._done) if redo else (self._done, self._undone)
        if not taken:
            return ""
        step = taken[-1]
        self._is_stepping = True
        try:
            problem = (step.redo if redo else step.undo)()
        finally:
            self._is_stepping = False
        if not problem and step in taken:
            taken.remove(step)
            given.append(step)
        self.sync()
        self.changed.emit()
        return problem

    def _append(self, step: Step) -> None:
        self._done.append(step)
        self._undone.clear()
        for source in self._sources:
            if source is not step.source:
                source.forget_undone()


def _step_of(source: StepSource) -> Step:
    def replayed(redo: bool) -> str:
        source.replay(redo=redo)
        return ""

    return Step(lambda: replayed(False), lambda: replayed(True), source)
