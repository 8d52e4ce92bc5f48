"""Verdicts that were given in a window and their mends, as steps that can be undone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from napari_panoptic.explain.failures import FailureName
from napari_panoptic.review.cohort_verdicts import Details
from napari_panoptic.review.identity import one_spelling
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.verdicts import ReviewRecord
from napari_panoptic.viewer.editing.history import EditHistory, Step, StepLostError
from napari_panoptic.viewer.kit.shown import show_info


@dataclass(frozen=True)
class Replay:
    """What steps call when they are undone or redone."""

    #: Withdraws verdicts.
    reviewing: Reviewing
    #: Saves verdicts; returns their records, none if it failed.
    save: Callable[[dict[FailureName, Details]], list[ReviewRecord]]
    #: Shows verdicts that were withdrawn.
    show_undone: Callable[[Sequence[ReviewRecord]], object]
    #: Shows the region of objects; returns a message if another one was shown, else an empty text.
    go_to: Callable[[Collection[FailureName]], str]


class VerdictSteps:
    """The steps of the verdicts of a window.

    Parameters
    ----------
    history
        The order of all steps of the window.
    replay
        The functions that they call.
    """

    def __init__(self, history: EditHistory, replay: Replay) -> None:
        self._history, self._replay = history, replay
        self._steps: list[VerdictStep] = []

    def push(
        self,
        given: dict[FailureName, Details],
        records: Sequence[ReviewRecord],
        mended: Step | None,
    ) -> None:
        """Note verdicts that were given just now, and their mends."""
        step = VerdictStep(self._replay, given, records, mended)
        self._steps.append(step)
        self._history.push(step.own)

    def undo_last(self) -> str | None:
        """Undo the newest verdicts; return why not, empty if it was done, None if there are none.

        Those that were withdrawn or replaced in another window are passed over.
        """
        while steps := [step for step in self._steps if step.has_verdicts]:
            if problem := steps[-1].undo():
                return problem
            self._history.drop(steps[-1].own)
            if steps[-1].did_undo:
                return ""
        return None

    def forget(self, forget: Callable[[VerdictStep], None]) -> None:
        """Let steps forget something; those that have nothing left to undo are dropped."""
        for step in self._steps:
            forget(step)
        for step in [step for step in self._steps if step.is_empty]:
            self._steps.remove(step)
            self._history.drop(step.own)


class VerdictStep:
    """Verdicts that were given together, and their mends."""

    def __init__(
        self,
        replay: Replay,
        given: dict[FailureName, Details],
        records: Sequence[ReviewRecord],
        mended: Step | None,
    ) -> None:
        self._replay, self._given, self._mended = replay, given, mended
        self._records = list(records)
        self.own = Step(self.undo, self.redo)
        #: Whether the last undo changed something.
        self.did_undo = False

    @property
    def has_verdicts(self) -> bool:
        """Whether there are verdicts that it can withdraw."""
        return bool(self._records)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left that it can undo or do again."""
        return not self._given and self._mended is None

    def undo(self) -> str:
        """Undo the mends and withdraw the verdicts; return why not, empty if it was done."""
        if problem := self._replay_mend(redo=False):
            return problem
        withdrawn = self._replay.reviewing.take_back(self._records) if self._records else []
        if withdrawn is None:
            self._replay_mend(redo=True)
            return str(self._replay.reviewing.problem)
        # Others were withdrawn or replaced in another window: that counts.
        self._forget([record for record in self._records if record not in withdrawn])
        self._records = []
        self.did_undo = bool(withdrawn) or self._mended is not None
        if withdrawn:
            self._replay.show_undone(withdrawn)
        return ""

    def redo(self) -> str:
        """Save them again, and mend; return why not, empty if it was done."""
        if problem := self._replay.go_to(self._given):
            return problem
        if self._given:
            self._records = self._replay.save(self._given)
            if not self._records:
                return "the verdict could not be saved again"
        return self._replay_mend(redo=True)

    def forget_mend(self, region: str) -> None:
        """Forget the mends in a region whose edits were discarded."""
        if self._mended is not None and self._mended.region == region:
            self._mended = None

    def forget_verdicts(self, records: Sequence[ReviewRecord] | None = None) -> None:
        """Forget some of the verdicts, or all: they are not to be withdrawn or saved again."""
        if records is None:
            self._given, self._records = {}, []
        else:
            self._forget([record for record in records if record in self._records])

    def _forget(self, records: Sequence[ReviewRecord]) -> None:
        gone = {(record.region, record.side, record.object_id) for record in records}
        self._given = {
            name: details
            for name, details in self._given.items()
            if (one_spelling(name.region), name.side, name.id) not in gone
        }
        self._records = [record for record in self._records if record not in records]

    def _replay_mend(self, *, redo: bool) -> str:
        """Undo or redo the mends, as long as that is possible; return why not now."""
        if self._mended is None:
            return ""
        try:
            return self._mended.redo() if redo else self._mended.undo()
        except StepLostError as error:
            self._mended = None
            show_info(str(error))
            return ""
