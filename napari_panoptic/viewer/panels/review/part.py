"""The review as part of the desk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import uuid4

from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QWidget

from napari_panoptic.nuclei.display.glossary import VERDICT_WORDS
from napari_panoptic.nuclei.values.vocabulary import Verdict
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections, DeskPart
from napari_panoptic.viewer.panels.review.dialogs import CompareDialog
from napari_panoptic.viewer.panels.review.panel import UNDO_KEY, ReviewPanel
from napari_panoptic.viewer.panels.review.plan.part import PlanPart
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from napari_panoptic.viewer.panels.review.verdict_buttons import VERDICT_KEYS
from napari_panoptic.viewer.panels.seen_part import Sight

POLL_MS = 1000
"""How often the file is looked at for what other windows did."""
SETTLE_MS = 300
"""How long edits, settings and background figures rest before the review follows them."""


class ReviewPart(DeskPart):
    """The review: its widgets, and a presenter while a cohort is shown."""

    title = "Review"
    key = "Alt-j"

    def __init__(self) -> None:
        super().__init__()
        self.panel = ReviewPanel()
        self.compare_dialog = CompareDialog(self.panel)
        self.presenter: ReviewPresenter | None = None
        self.plan = PlanPart(self._presented)
        self.companions = (self.plan,)
        self._window = uuid4().hex
        self._reviewer = ""  # asked for at each start
        self._sight = Sight(self.panel, self._on_sight)
        # Children of the panel: they go when it goes.
        self._poll, self._settle = QTimer(self.panel), QTimer(self.panel)
        self._poll.setInterval(POLL_MS)
        self._settle.setInterval(SETTLE_MS)
        self._settle.setSingleShot(True)

    @property
    def widget(self) -> QWidget:
        """The panel."""
        return self.panel

    @property
    def reviewing(self) -> Reviewing | None:
        """The review of the cohort that is shown."""
        return None if self.presenter is None else self.presenter.reviewing

    @property
    def is_seen(self) -> bool:
        """Whether the panel is visible, and filled in."""
        return self._sight.is_seen

    @property
    def is_busy(self) -> bool:
        """Whether verdicts are being counted or files written."""
        return self.presenter is not None and self.presenter.is_busy

    def shortcuts(self) -> tuple[tuple[Shortcut, Callable[[], None]], ...]:
        """Return the keys of the verdicts."""
        verdicts = tuple(
            (
                Shortcut(key, f"verdict: {VERDICT_WORDS[verdict]}", f"verdict_{key[-1]}"),
                partial(self.give, verdict),
            )
            for verdict, key in VERDICT_KEYS.items()
        )
        return (
            *verdicts,
            (Shortcut(UNDO_KEY, "undo the last verdict of this window", "undo_verdict"), self.undo),
        )

    def give(self, verdict: Verdict) -> None:
        """Save a verdict on the selected objects, or on the item of the plan."""
        if self.plan.takes_verdicts and self.plan.presenter is not None:
            self.plan.presenter.give(verdict)
        elif self.presenter is not None:
            self.presenter.give(verdict)

    def undo(self) -> None:
        """Withdraw the last verdict of this window, on an item if a plan is reviewed."""
        if self.plan.takes_verdicts and self.plan.presenter is not None:
            self.plan.presenter.undo()
        elif self.presenter is not None:
            self.presenter.undo()

    def connections(self, around: Surroundings) -> Connections:  # noqa: ARG002 - the presenter knows
        """Listen to session, table and panel."""
        return [] if self.presenter is None else self.presenter.connections()

    def attach(self, around: Surroundings) -> None:
        """Review a cohort: find its review file."""
        self.presenter = ReviewPresenter(
            around,
            self.panel,
            self.compare_dialog,
            poll=self._poll,
            settle=self._settle,
            reviewer=self._reviewer,
            window=self._window,
            is_seen=lambda: self.is_seen,
            come_forward=lambda: around.link.reveal(self.title),
        )
        super().attach(around)
        self.presenter.begin()

    def detach(self) -> None:
        """Leave a cohort: stop all work and let go of the review file."""
        super().detach()
        presenter, self.presenter = self.presenter, None
        if presenter is not None:
            self._reviewer = presenter.close()

    def refresh(self) -> None:
        """Show verdicts as they are now."""
        if self.presenter is not None:
            self.presenter.refresh()

    def _presented(self) -> ReviewPresenter:
        if self.presenter is None:
            raise LookupError("no cohort is shown")
        return self.presenter

    def _on_sight(self, seen: bool) -> None:
        if seen and self.presenter is not None:
            self.presenter.on_sight()
