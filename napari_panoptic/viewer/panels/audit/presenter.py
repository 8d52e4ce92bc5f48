"""Audits the ambiguous policy on the region and team that are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display import marks
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.live.session import Selection
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.audit.audited import Audited, audited
from napari_panoptic.viewer.panels.audit.panel import EMPTY, AuditPanel
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.seen_part import WAITING, Material, TeamPresenter
from napari_panoptic.viewer.panels.slide_texts import on_slide

MARKS_LAYER = "audited objects"


class AuditPresenter(TeamPresenter[AuditPanel, Audited]):
    """Audits the ambiguous policy on the region and team that are shown."""

    title = "Ambiguous"
    key = "Alt-a"
    marks_name = MARKS_LAYER
    panel_type = AuditPanel

    def __init__(self, around: Surroundings, panel: AuditPanel) -> None:
        super().__init__(around, panel)
        self._drawing: Latest[NDArray[np.uint8]] = Latest(self._on_drawn)
        self._policy_set: AmbiguousPolicy | None = None

    @property
    def is_busy(self) -> bool:
        """Whether policies are being compared, or objects marked."""
        return super().is_busy or self._drawing.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        return [
            *super().connections(),
            (self.session.selection_changed, self._on_selection),
            (self.panel.policies_chosen, self.refresh),
            (self.panel.object_chosen, self.select_row),
            (self.panel.table.centre_wanted, self.centre_selected),
            (self.panel.marks_changed, self.mark),
        ]

    def close(self) -> None:
        """Stop, and take the marks away."""
        self._drawing.close()
        super().close()

    def compute_now(self) -> None:
        """Compare the policy that is set with another one, until the user chooses."""
        self._follow_policy(self.session.settings.ambiguous)
        super().compute_now()

    def choices(self) -> tuple[object, ...]:
        """Return the two policies."""
        return self.panel.policies

    def computation(self, known: Material, team: str) -> Callable[[], Audited]:
        """Compare the two policies."""
        return partial(audited, known, team, *self.panel.policies)

    def show(self, value: Audited | None) -> None:
        """List what the choice of a policy changes."""
        empty = on_slide(self.session.snapshot, slide_texts.AUDIT, EMPTY)
        self.panel.show_audit(value, empty=WAITING if self.is_waiting else empty)
        self._on_selection(self.session.selection)

    def _on_selection(self, selection: Selection | None) -> None:
        if self.here is not None:
            self.panel.show_selection(selection)

    def mark(self) -> None:
        """Draw dashes around what is listed, in a worker."""
        objects = self.panel.listed_objects()
        wanted = self.panel.marked.isChecked() and self.is_in_sight
        if self.here is not None and wanted and objects:
            self._drawing.start(partial(marked, self.here, objects))
            return
        self._drawing.drop()
        self.marks.remove()

    def _on_drawn(self, picture: NDArray[np.uint8]) -> None:
        if self.here is not None:
            self.marks.show(picture, PixelSize.of(self.here.snapshot))

    def _follow_policy(self, policy: AmbiguousPolicy) -> None:
        if policy is self._policy_set:
            return
        self._policy_set = policy
        other = (
            AmbiguousPolicy.MAJORITY
            if policy is not AmbiguousPolicy.MAJORITY
            else AmbiguousPolicy.CLIP
        )
        self.panel.set_policies(str(policy), str(other))


def marked(value: Audited, objects: Sequence[tuple[Side, int]]) -> NDArray[np.uint8]:
    """Draw dashes around objects of an audit, given by side and row; for workers."""
    pair, outcomes = value.evaluation.pair, value.evaluation.outcomes
    parts = []
    for side, labels in ((Side.REFERENCE, pair.reference), (Side.PREDICTION, pair.prediction)):
        rows = np.array([row for own, row in objects if own is side], np.int64)
        parts.append((labels, rows + 1, outcomes.side(side).bbox[rows]))
    return marks.dashed(value.snapshot.shape, parts)
