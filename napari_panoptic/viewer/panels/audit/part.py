"""Audits the ambiguous policy on the region and team that are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.display import marks
from napari_panoptic.nuclei.display.object_layers import PixelSize
from napari_panoptic.nuclei.values.settings import AmbiguousPolicy
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.audit.audited import Audited, audited
from napari_panoptic.viewer.panels.audit.panel import EMPTY, AuditPanel
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.seen_part import Material, TeamPart
from napari_panoptic.viewer.panels.slide_texts import on_slide

MARKS_LAYER = "audited objects"


class AuditPart(TeamPart[Audited]):
    """Audits the ambiguous policy on the region and team that are shown."""

    title = "Ambiguous"
    key = "Alt-a"
    marks_name = MARKS_LAYER

    def __init__(self) -> None:
        super().__init__()
        self._panel = AuditPanel()
        self._drawing: Latest[NDArray[np.uint8]] = Latest(self._on_drawn)
        self._policy_set: AmbiguousPolicy | None = None
        self.watch(self._panel)

    @property
    def widget(self) -> AuditPanel:
        """The panel."""
        return self._panel

    @property
    def is_busy(self) -> bool:
        """Whether policies are being compared, or objects marked."""
        return super().is_busy or self._drawing.is_busy

    def connections(self, around: Surroundings) -> Connections:
        """Listen to session and panel."""
        return [
            *super().connections(around),
            (around.session.selection_changed, self._panel.show_selection),
            (self._panel.policies_chosen, self.refresh),
            (self._panel.object_chosen, around.session.select_row),
            (self._panel.centre_wanted, self.centre_selected),
            (self._panel.marks_changed, self.mark),
        ]

    def attach(self, around: Surroundings) -> None:
        """Join in with a cohort."""
        self._policy_set = None
        super().attach(around)

    def detach(self) -> None:
        """Leave a cohort."""
        self._drawing.drop()
        super().detach()

    def compute_now(self) -> None:
        """Compare the policy that is set with another one, until the user chooses."""
        if self.around is not None:
            self._follow_policy(self.around.session.settings.ambiguous)
        super().compute_now()

    def choices(self) -> tuple[object, ...]:
        """Return the two policies."""
        return self._panel.policies

    def computation(self, known: Material, team: str) -> Callable[[], Audited]:
        """Compare the two policies."""
        return partial(audited, known, team, *self._panel.policies)

    def show(self, value: Audited | None) -> None:
        """List what the choice of a policy changes."""
        snapshot = None if self.around is None else self.around.session.snapshot
        self._panel.show_audit(value, empty=on_slide(snapshot, slide_texts.AUDIT, EMPTY))
        if value is not None and self.around is not None:
            self._panel.show_selection(self.around.session.selection)

    def mark(self) -> None:
        """Draw dashes around what is listed, in a worker."""
        objects = self._panel.listed_objects()
        wanted = self._panel.marked.isChecked() and self.is_in_sight
        if self.value is not None and wanted and objects:
            self._drawing.start(partial(marked, self.value, objects))
            return
        self._drawing.drop()
        if self.marks is not None:
            self.marks.remove()

    def _on_drawn(self, picture: NDArray[np.uint8]) -> None:
        if self.marks is not None and self.value is not None:
            self.marks.show(picture, PixelSize.of(self.value.snapshot))

    def _follow_policy(self, policy: AmbiguousPolicy) -> None:
        if policy is self._policy_set:
            return
        self._policy_set = policy
        other = (
            AmbiguousPolicy.MAJORITY
            if policy is not AmbiguousPolicy.MAJORITY
            else AmbiguousPolicy.CLIP
        )
        self._panel.set_policies(str(policy), str(other))


def marked(value: Audited, objects: Sequence[tuple[Side, int]]) -> NDArray[np.uint8]:
    """Draw dashes around objects of an audit, given by side and row; for workers."""
    pair, outcomes = value.evaluation.pair, value.evaluation.outcomes
    parts = []
    for side, labels in ((Side.REFERENCE, pair.reference), (Side.PREDICTION, pair.prediction)):
        rows = np.array([row for own, row in objects if own is side], np.int64)
        parts.append((labels, rows + 1, outcomes.side(side).bbox[rows]))
    return marks.dashed(value.snapshot.shape, parts)
