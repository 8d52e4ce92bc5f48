"""One order of all that can be undone: strokes, classes, actions, ambiguous areas and verdicts.

Layers keep their own strokes. Here is only in which order they were drawn, and what was done
between them; undoing the last step of all undoes that of its layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from psygnal import Signal

from napari_panoptic.common.errors import PanopticError


class StepLostError(PanopticError):
    """A step can neither be undone nor done again any more."""


class StepSource(Protocol):
    """Keeps steps of its own, such as the strokes of a layer."""

    def depth(self, *, redo: bool = False) -> int:
        """Return how many steps it can undo, or redo."""

    def n_forgotten(self) -> int:
        """Return how many of its oldest steps it has forgotten so far, having room for some."""

    def replay(self, *, redo: bool) -> None:
        """Undo its last step, or redo the one that was undone last."""

    def forget_undone(self) -> None:
        """Let nothing be redone any more."""


@dataclass(frozen=True, eq=False)
class Step:
    """Something that was done."""

    #: Undoes it, or does it again; returns why that is not possible now, empty if it was done.
    #: Raises StepLostError if it never will be.
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
        self._n_forgotten: dict[int, int] = {}
        self._done: list[Step] = []
        self._undone: list[Step] = []
        self._is_stepping = False

    def add_source(self, source: StepSource) -> None:
        """Take the steps of a source from now on."""
        self._sources.append(source)
        self._n_forgotten[id(source)] = source.n_forgotten()

    def remove_source(self, source: StepSource) -> None:
        """Forget a source and its steps."""
        self._sources = [own for own in self._sources if own is not source]
        self._n_forgotten.pop(id(source), None)
        self._keep(lambda step: step.source is not source)

    def push(self, step: Step) -> None:
        """Note something that was done just now."""
        self.sync()
        self._append(step)
        self.changed.emit()

    def drop(self, step: Step) -> None:
        """Forget a step that was undone in another way."""
        self._keep(lambda own: own is not step)

    def forget_region(self, region: str) -> None:
        """Forget what changed the working copies of a region, which were discarded."""
        self._keep(lambda step: step.region != region)

    def sync(self) -> None:
        """Note what sources did since the last time, or lost."""
        if self._is_stepping:
            return
        for source in self._sources:
            self._drop_forgotten(source)
            for steps, redo in ((self._done, False), (self._undone, True)):
                known = [step for step in steps if step.source is source]
                for step in known[source.depth(redo=redo) :]:
                    steps.remove(step)
            known_done = sum(step.source is source for step in self._done)
            for _ in range(source.depth() - known_done):
                self._append(_step_of(source))

    def _drop_forgotten(self, source: StepSource) -> None:
        """Drop the oldest steps of a source, which it had no room for."""
        before, now = self._n_forgotten[id(source)], source.n_forgotten()
        self._n_forgotten[id(source)] = now
        for step in [step for step in self._done if step.source is source][: now - before]:
            self._done.remove(step)

    def may_undo(self, *, redo: bool = False) -> bool:
        """Return whether there is a step to undo, or to redo."""
        self.sync()
        return bool(self._undone if redo else self._done)

    def undo(self, *, redo: bool = False) -> str:
        """Undo the last step, or redo the one that was undone last.

        Returns
        -------
        str
            Why that is not possible; empty if it was done, or there is none.
        """
        self.sync()
        taken, given = (self._undone, self._done) if redo else (self._done, self._undone)
        if not taken:
            return ""
        step = taken[-1]
        self._is_stepping = True
        try:
            problem = (step.redo if redo else step.undo)()
        except StepLostError as error:
            problem = str(error)
            self.drop(step)
        finally:
            self._is_stepping = False
        if not problem and step in taken:
            taken.remove(step)
            given.append(step)
        self.sync()
        self.changed.emit()
        return problem

    def _keep(self, is_kept: Callable[[Step], bool]) -> None:
        for steps in (self._done, self._undone):
            steps[:] = filter(is_kept, steps)  # in place: a step may be being undone
        self.changed.emit()

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
