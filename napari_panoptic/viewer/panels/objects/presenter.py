"""The table of all objects while a cohort is shown: joins it with session, state and image."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.live.session import Selection
from napari_panoptic.nuclei.outcomes import OBJECTS, Outcomes
from napari_panoptic.nuclei.regions.results import write_listed
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Several
from napari_panoptic.viewer.kit.questions import file_to_save
from napari_panoptic.viewer.kit.shown import show_info
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings

NOTHING = (
    "No objects are listed. Choose a region and a team with objects, or “All objects” in the menu "
    "“Filter”."
)


class ObjectsPresenter(Presenter[ObjectTable]):
    """Lists the objects of the region and team, as the user chose to see them."""

    title = "Objects"
    follows_table = True

    def __init__(self, around: Surroundings, panel: ObjectTable) -> None:
        super().__init__(around, panel)
        self._writing = Several()
        state = self.link.state
        panel.hide_columns(state.hidden_columns)
        panel.others.show_choice(state.others)
        panel.put_worst_first(state.order)
        panel.set_filter(state.object_filter)

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
            (state.events.hidden_columns, panel.hide_columns),
            (panel.object_selected, session.select_row),
            (panel.centre_wanted, self._centre),
            (panel.listed_changed, self._show_listed),
            (panel.export.pushed, self.export),
            (panel.link_wanted, self._copy_link),
            (panel.filter_changed, partial(setattr, state, "object_filter")),
            (panel.others.chosen, partial(setattr, state, "others")),
            (panel.columns_chosen, partial(setattr, state, "hidden_columns")),
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

    @property
    def is_busy(self) -> bool:
        """Whether a file is being written."""
        return self._writing.is_busy

    @property
    def is_writing(self) -> bool:
        """Whether a file is being written, which is reported even after `close`."""
        return self.is_busy

    def export(self) -> None:
        """Ask for a file, and save the listed objects as CSV in the order of the table."""
        table, session = self.panel, self.session
        snapshot, team, outcomes = session.snapshot, session.team, table.outcomes
        rows = table.model.order.copy()
        if snapshot is None or team is None or outcomes is None or not len(rows):
            show_info(NOTHING)
            return
        region = snapshot.region
        usual = session.cohort.root / f"{region.name} {team} {OBJECTS.file}"
        path = file_to_save(table, "Save the objects", usual, "CSV (*.csv)")
        if path is not None:
            self._writing.start(
                partial(_write, path, outcomes, rows, (team, region.patient, region.name)),
                lambda _: show_info(f"The objects are in {path}"),
            )

    def _copy_link(self) -> None:
        """Copy a link to the selected objects, the current one first."""
        outcomes, snapshot = self.panel.outcomes, self.session.snapshot
        if outcomes is None or snapshot is None:
            return
        current, chosen = self.panel.selected(), self.panel.selected_objects()
        chosen.sort(key=lambda one: one != current)
        self.link.links.copy(
            [
                FailureName(
                    self.session.team or "",
                    snapshot.region.name,
                    side,
                    int(outcomes.side(side).ids[row]),
                )
                for side, row in chosen
            ]
        )

    def _show_selection(self, selection: Selection | None) -> None:
        self.panel.select(None if selection is None else (selection.side, selection.row))

    def _centre(self, side: Side, row: int) -> None:
        self.session.select_row(side, row)
        self.link.centre_selected()

    def _show_others(self, others: Others) -> None:
        self.panel.others.show_choice(others)
        self._show_listed()

    def _show_listed(self) -> None:
        """Let the listed objects stand out on the image, if that was chosen."""
        self.link.scene.set_listed(self.panel.standing_out())


def _write(
    path: Path, outcomes: Outcomes, rows: NDArray[np.intp], place: tuple[str, str, str]
) -> None:
    try:
        write_listed(path, outcomes, rows, place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise PanopticError(
            f"Cannot save the objects in {path}: {reason}. Choose another place."
        ) from error
