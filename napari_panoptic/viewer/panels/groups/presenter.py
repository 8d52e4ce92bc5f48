"""Shows the failure groups of the region and team that are shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from napari_panoptic.display import marks
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.explain.failure_groups import (
    FailureGroup,
)
from napari_panoptic.live.session import Selection
from napari_panoptic.questions.engines.cohort_losses import LossesSoFar, cohort_losses
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Stream
from napari_panoptic.viewer.layers import camera
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.groups.grouped import Grouped, grouped
from napari_panoptic.viewer.panels.groups.panel import EMPTY, GroupsPanel
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.seen_part import WAITING, Material, TeamPresenter
from napari_panoptic.viewer.panels.slide_texts import on_slide

GROUP_LAYER = "failure group"
SHARED_PIXELS = (
    "Groups need objects that share no pixels: choose “Object on top” for “Shared pixels” in the "
    "settings."
)
_RING_ON_SCREEN_PX = 3.0


class GroupsPresenter(TeamPresenter[GroupsPanel, Grouped]):
    """Shows the failure groups of the region and team that are shown."""

    title = "Groups"
    key = "Alt-g"
    marks_name = GROUP_LAYER
    panel_type = GroupsPanel

    def __init__(self, around: Surroundings, panel: GroupsPanel) -> None:
        super().__init__(around, panel)
        self._stream: Stream[LossesSoFar] = Stream(self._on_losses, ended=self._on_losses_end)
        self._outlined: FailureGroup | None = None
        self._losses: LossesSoFar | None = None
        self._losses_of = ""
        panel.show_losses(None)

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed."""
        return super().is_busy or self._stream.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        session, panel = self.session, self.panel
        return [
            *super().connections(),
            (session.settings_changed, self._on_change),
            (session.source_changed, self._on_change),
            (session.selection_changed, self._on_selection),
            (panel.group_chosen, self._on_group),
            (panel.object_chosen, self.select_row),
            (panel.centre_wanted, self._on_centre),
            (panel.work.start.pushed, self._on_cohort),
            (panel.work.stop.pushed, self._on_stop),
        ]

    def close(self) -> None:
        """Stop, and take the marks away."""
        self._stream.close()
        super().close()

    def compute_now(self) -> None:
        """Find the groups, and forget what another team loses over the cohort."""
        if self._losses_of not in ("", self.session.team):
            self._forget_losses()
        super().compute_now()

    def wants(self, known: Material) -> bool:
        """Return whether there can be groups: not of objects that share pixels."""
        return not known.snapshot.keeps_overlaps

    def choices(self) -> tuple[object, ...]:
        """Return nothing: there is nothing to choose."""
        return ()

    def computation(self, known: Material, team: str) -> Callable[[], Grouped]:
        """Find the groups."""
        return partial(grouped, known, team)

    def show(self, value: Grouped | None) -> None:
        """List the groups."""
        self._outlined = None
        snapshot = self.session.snapshot
        keeps = snapshot is not None and snapshot.keeps_overlaps
        empty = SHARED_PIXELS if keeps else on_slide(snapshot, slide_texts.GROUPS, EMPTY)
        empty = WAITING if self.is_waiting else empty
        self.panel.show_groups(value, empty=empty)
        self._on_selection(self.session.selection)

    def _on_selection(self, selection: Selection | None) -> None:
        """Select the group that an object belongs to; without an object leave it."""
        value = self.here
        if value is None or selection is None:
            return
        for number, group in enumerate(value.groups):
            is_reference = selection.side is Side.REFERENCE
            rows = group.reference_rows if is_reference else group.prediction_rows
            if selection.row in rows:
                self.panel.select(number)
                self._outline(group)
                return

    def _on_group(self, group: FailureGroup) -> None:
        self._outline(group)
        if self.here is not None:
            self.link.scene.show_box(group.bbox, only_if_hidden=True)

    def _on_centre(self, group: FailureGroup) -> None:
        if self.here is not None:
            self.link.scene.centre_box(group.bbox)

    def _outline(self, group: FailureGroup | None) -> None:
        self._outlined = group
        self.mark()

    def mark(self) -> None:
        """Draw one ring around the objects of the selected group."""
        group, value = self._outlined, self.here
        if group is None or value is None or not self.is_in_sight:
            self.marks.remove()
            return
        pair = value.evaluation.pair
        picture = marks.ring_around(
            [
                (pair.reference, group.reference_rows + 1),
                (pair.prediction, group.prediction_rows + 1),
            ],
            group.bbox,
            ring_px=camera.ring_px(self.link.scene.zoom, _RING_ON_SCREEN_PX),
        )
        self.marks.show(
            picture.image, PixelSize.of(value.snapshot), origin_yx_px=picture.origin_yx_px
        )

    # Over the cohort.

    def _on_cohort(self) -> None:
        session, team = self.session, self.session.team
        if team is None:
            return
        cohort, source = session.cohort, session.source
        settings = session.settings.replaced(overlaps=Overlaps.FLATTEN)
        self._losses_of = team
        self._losses = LossesSoFar(0, len(cohort.regions))
        self.panel.show_losses(self._losses)
        self._stream.start(lambda _job: cohort_losses(cohort, team, settings, source))

    def _on_losses(self, so_far: LossesSoFar) -> None:
        self._losses = so_far
        is_kept = self.session.settings.overlaps is Overlaps.KEEP
        flat = ", overlaps flattened" if is_kept else ""
        self.panel.show_losses(so_far, note=f" of {self._losses_of}{flat}")

    def _on_losses_end(self) -> None:
        if self._losses is not None and self._losses.done < self._losses.total:
            self._forget_losses("cannot be summed up; see the notes of the regions")

    def _on_stop(self) -> None:
        self._stream.stop()
        self._forget_losses("stopped; press the button to start again")

    def _on_change(self, _changed: object) -> None:
        self._forget_losses(
            "the settings or the files have changed: press the button to sum up again"
        )

    def _forget_losses(self, note: str = "") -> None:
        """Drop a sum that belongs to another team, cohort or setting."""
        had_one, self._losses = self._losses is not None, None
        self._stream.stop()
        self._losses_of = ""
        self.panel.show_losses(None, note=note if had_one else "")
