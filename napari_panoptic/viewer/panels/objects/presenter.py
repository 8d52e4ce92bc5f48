"""The object table while a cohort is shown: joins it with session, state and image."""

from __future__ import annotations

from functools import partial

from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.live.session import Selection
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.objects.export import export_listed
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.part import Connections, Presenter


class ObjectsPresenter(Presenter[ObjectTable]):
    """Lists the objects of the region and team, as the user chose to see them."""

    title = "Objects"
    follows_table = True

    def __init__(self, around: Surroundings, panel: ObjectTable) -> None:
        super().__init__(around, panel)
        state = self.link.state
        panel.hide_columns(state.hidden_columns)
        panel.others.show_choice(state.others)
        panel.put_worst_first(state.order)
        panel.set_filter(state.object_filter)
        panel.follow.setChecked(state.follow)
        panel.queue.show_choice(state.queue)

    def connections(self) -> Connections:
        """Listen to session, state and table."""
        session, panel, state = self.session, self.panel, self.link.state
        return [
            (session.region_changed, self.refresh),
            (session.team_changed, self.refresh),
            (self.link.edits_rested, self.refresh),
            (session.selection_changed, self._show_selection),
            (session.selected_again, self._show_selection),
            (state.events.object_filter, panel.set_filter),
            (state.events.order, panel.put_worst_first),
            (state.events.others, self._show_others),
            (state.events.follow, self._show_follow),
            (state.events.queue, panel.queue.show_choice),
            (state.events.hidden_columns, panel.hide_columns),
            (panel.object_selected, session.select_row),
            (panel.centre_wanted, self._centre),
            (panel.listed_changed, self._show_listed),
            (panel.export.pushed, self.export),
            (panel.filter_changed, partial(setattr, state, "object_filter")),
            (panel.others.chosen, partial(setattr, state, "others")),
            (panel.follow_chosen, partial(setattr, state, "follow")),
            (panel.columns_chosen, partial(setattr, state, "hidden_columns")),
            (panel.worst.chosen, partial(setattr, state, "order")),
            (panel.queue.chosen, partial(setattr, state, "queue")),
        ]

    def refresh(self, _changed: object = None) -> None:
        """List the objects of the region and team."""
        shown = self.session.shown
        self.panel.show_outcomes(None if shown is None else shown.outcomes)
        self._show_selection(self.session.selection)

    def list_only(self, wanted: ObjectFilter) -> None:
        """List only some objects; the same ones again lists all."""
        is_on = self.panel.model.filter == wanted
        self.panel.set_filter(ObjectFilter() if is_on else wanted)

    def export(self) -> None:
        """Save the listed objects as CSV."""
        export_listed(self.panel, self.session)

    def _show_selection(self, selection: Selection | None) -> None:
        self.panel.select(None if selection is None else (selection.side, selection.row))

    def _centre(self, side: Side, row: int) -> None:
        self.session.select_row(side, row)
        self.link.centre_selected()

    def _show_follow(self, follow: bool) -> None:
        self.panel.follow.setChecked(follow)

    def _show_others(self, others: Others) -> None:
        self.panel.others.show_choice(others)
        self._show_listed()

    def _show_listed(self) -> None:
        """Let what the table lists stand out on the image, where that was asked for."""
        self.link.scene.set_listed(self.panel.standing_out())
