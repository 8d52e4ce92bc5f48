"""Progress and cancellation of work that takes long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from napari_panoptic.common.errors import PanopticError

Report = Callable[[float, str], None]
"""Called with the share that is done, from 0 to 1, and the current step in words."""


CountReport = Callable[[int, int], None]
"""Called with the amount that is done and the total; an exception in it cancels the work."""


def unreported(done: int, total: int) -> None:
    """Ignore the progress of work."""


class StoppedError(PanopticError):
    """The work was cancelled."""


def always() -> bool:
    """Return True; for work that is never cancelled, in other processes too."""
    return True


@dataclass(frozen=True)
class Progress:
    """Where work reports its progress, and learns that it is cancelled."""

    #: Called between steps; the work is cancelled once it returns False.
    is_wanted: Callable[[], bool] = always
    #: Called with the progress; None to report nothing.
    report: Report | None = None
    #: Called with what went wrong and was mended; None to report nothing.
    remark: Callable[[str], None] | None = None
    #: Which share of the whole work this is.
    start: float = 0.0
    end: float = 1.0

    def part(self, start: float, end: float) -> Self:
        """Return the progress of a part of this work, from one share of it to another."""
        length = self.end - self.start
        return replace(self, start=self.start + start * length, end=self.start + end * length)

    def check(self) -> None:
        """Raise StoppedError if the work is cancelled."""
        if not self.is_wanted():
            raise StoppedError("the evaluation was stopped before it was done")

    def tell(self, share: float, doing: str) -> None:
        """Report the share of this part that is done, and the current step in words."""
        if self.report is not None:
            self.report(self.start + share * (self.end - self.start), doing)


UNWATCHED = Progress()
"""Reports nothing and is never cancelled."""
