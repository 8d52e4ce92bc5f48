"""The keys of verdicts in the workspace of the review."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from qtpy.QtWidgets import QWidget

from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.kit.commands import SingleKeys
from napari_panoptic.viewer.panels.review.inputs import (
    GO_ON_KEY,
    JUDGING_KEYS,
    NOTE_KEY,
    UNDO_KEY,
    VERDICT_KEYS,
)


class TakesVerdicts(Protocol):
    """The receiver of the keys of verdicts."""

    def give(self, verdict: Verdict) -> None:
        """Save a verdict."""

    def undo(self) -> None:
        """Withdraw the last verdict of this window."""

    def go_on(self) -> None:
        """Go to the next one without a verdict."""

    def write(self) -> None:
        """Put the cursor where something is to be typed."""

    def types(self, digit: int) -> bool:
        """Return whether a digit is a number that is asked for, and type it there."""


class JudgingKeys(SingleKeys):
    """The keys, and their receiver.

    Parameters
    ----------
    owner
        A widget of the window that is always in sight.
    reviewer
        The receiver of the keys, unless an item of a plan is reviewed.
    """

    def __init__(self, owner: QWidget, reviewer: TakesVerdicts) -> None:
        super().__init__(owner, JUDGING_KEYS)
        #: Returns the receiver of the keys now.
        self.taker: Callable[[], TakesVerdicts] = lambda: reviewer
        self.pressed.connect(self._on_key)

    def _on_key(self, key: str) -> None:
        taker = self.taker()
        if key.isdigit() and taker.types(int(key)):
            return
        verdict = next((each for each, own in VERDICT_KEYS.items() if own == key), None)
        if verdict is not None:
            taker.give(verdict)
        else:
            {UNDO_KEY: taker.undo, GO_ON_KEY: taker.go_on, NOTE_KEY: taker.write}[key]()
