"""The desk for cohorts of several raters: panels around the image, opened and closed as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from qtpy.QtWidgets import QWidget

from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import english_list
from napari_panoptic.raters.evaluate import MISSING, UNREADABLE, RatedResult, case_row
from napari_panoptic.raters.slice_outlines import Shown
from napari_panoptic.tables.figures import ratio
from napari_panoptic.values.raters import RatedCohort
from napari_panoptic.viewer.desk import shell
from napari_panoptic.viewer.desk.shell import DeskShell
from napari_panoptic.viewer.desk.workspaces import LAYERS, Arrangement, DockArea, Stack, Workspace
from napari_panoptic.viewer.jobs.rater_work import CaseEvaluator, CaseLoader, CaseView, WantedCase
from napari_panoptic.viewer.kit.commands import bind_commands
from napari_panoptic.viewer.kit.keys import (
    KEY_LIST,
    RATED_KEYS,
    RATED_LIST_KEYS,
    RATED_NAPARI_KEYS,
    sections_of,
)
from napari_panoptic.viewer.kit.keys_dialog import KeysDialog
from napari_panoptic.viewer.kit.napari_private import focus_canvas
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.layers.rater_scene import RaterScene
from napari_panoptic.viewer.panels.notes import NotesDialog
from napari_panoptic.viewer.panels.raters.panels import (
    COMPUTING,
    CasesPanel,
    LevelsPanel,
    RaterLegend,
    RatersPanel,
    RaterTitle,
    VolumeSlicesPanel,
)

CASES_DOCK = "Cases"
LEVELS_DOCK, SLICES_DOCK, RATERS_DOCK = "Levels", "Slices", "Raters"
WORKSPACES = (
    Workspace(
        "Inspect",
        "Browse cases, levels, slices and raters",
        Arrangement(
            left=DockArea(0.2, (Stack((CASES_DOCK,), 0.6), Stack((LAYERS,), 0.4))),
            right=DockArea(
                0.3,
                (
                    Stack((LEVELS_DOCK,), 0.42),
                    Stack((SLICES_DOCK,), 0.31),
                    Stack((RATERS_DOCK,), 0.27),
                ),
            ),
        ),
        CASES_DOCK,
    ),
)
NOT_READ = "Could not read this case; see the Raters panel."
"""What the panels say of such a case."""
NAPARI_KEYS = "← →"
"""Those among them which go from slice to slice."""


class RatedDesk(DeskShell):
    """The panels, the layers, and what is shown in them.

    Parameters
    ----------
    viewer
        A viewer with a window.
    cohort
        What to show.
    """

    name = "Raters (Panoptic)"
    workspaces = WORKSPACES

    def __init__(self, viewer: Any, cohort: RatedCohort) -> None:
        super().__init__(viewer)
        self.cohort = cohort
        self.scene = RaterScene(self._viewer, cohort.settings)
        self._has_begun_scores = False
        self._rows: dict[tuple[str, str], dict[tuple[str, str], dict[str, Any]]] = {}
        self._failed: set[tuple[str, str]] = set()
        self._wanted: WantedCase | None = None
        self.view: CaseView | None = None
        self.title = RaterTitle()
        keys = [(shortcut.text, shortcut.meaning) for shortcut in RATED_KEYS]
        keys += [(NAPARI_KEYS, "previous, next slice"), (KEY_LIST.text, "all keys")]
        self.legend = RaterLegend(" · ".join(f"{key}: {meaning}" for key, meaning in keys))
        self.cases = CasesPanel(cohort)
        self.levels = LevelsPanel(cohort.settings, self.scene.shown)
        self.slices = VolumeSlicesPanel()
        self.raters = RatersPanel()
        self.make_strip(self.title)
        self.keys, self.notes = KeysDialog(self.cases), NotesDialog(self.cases)
        self._loader = CaseLoader(cohort, self._on_view, self._on_error)
        self._scores = CaseEvaluator(cohort, self._on_result)
        self._connect()

    # --- what others ask for ---------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Whether everything asked for is shown."""
        return self._is_closed or (not self._loader.is_busy and self._scores.is_done)

    def show_failure(self) -> None:
        """Show the worst case, and its worst slice, as for a picture."""
        self.slices.go_to_worst()

    def docked(self) -> Mapping[str, QWidget]:
        """Return title -> panel of all docks."""
        return {
            CASES_DOCK: self.cases,
            LEVELS_DOCK: self.levels,
            SLICES_DOCK: self.slices,
            RATERS_DOCK: self.raters,
        }

    def legend_strip(self) -> QWidget:
        """Return the legend."""
        return self.legend

    def start(self, case: str | None = None) -> None:
        """Show a case; the first where None."""
        structure = self.cohort.structures[0]
        if case is not None and structure not in self.cohort.region(case).masks:
            structure = self.cohort.region(case).structures[0]
        names = [own.name for own in self.cohort.cases_with(structure)]
        team = self.cohort.teams[0] if self.cohort.teams else None
        self.cases.structures.show_choice(structure)
        self._list_cases(structure, team)
        self.want(WantedCase(case or names[0], structure, team))
        self.scene.prepare()

    def want(self, wanted: WantedCase) -> None:
        """Show something as soon as it is loaded."""
        self._wanted = wanted
        self.cases.mark_place(wanted.case)
        self.title.show_title(f"loading {wanted.case} …")
        self._loader.load(wanted)

    # --- connections -----------------------------------------------------------------------------

    def _connect(self) -> None:
        """Make every connection; they end with the widgets, and in `_let_go`."""
        self.cases.open.pushed.connect(self.ask_for_cohort)
        self.title.keys_clicked.connect(self._on_keys)
        self.title.notes_clicked.connect(self._on_notes)
        self.cases.structures.chosen.connect(self._on_structure)
        self.cases.teams.chosen.connect(self._on_team)
        self.cases.following.pushed.connect(lambda: self.step_case(1))
        self.cases.previous.pushed.connect(lambda: self.step_case(-1))
        self.cases.places.filter_left.connect(self._return_keys)
        self.cases.place_chosen.connect(self._on_case)
        self.levels.level_chosen.connect(self._on_level)
        self.levels.only_chosen.connect(self._on_only)
        self.levels.shown_changed.connect(self._on_shown)
        self.slices.slice_chosen.connect(self.scene.go_to_slice)
        self.raters.rater_chosen.connect(self.scene.set_rater)
        self._viewer.dims.events.current_step.connect(self._on_step)
        actions: dict[str, Callable[[], None]] = {
            "j": lambda: self.step_case(1),
            "k": lambda: self.step_case(-1),
            "f": self.cases.focus_filter,
            "n": self.next_level,
            "w": lambda: self.slices.step_worst(1),
            "Shift-w": lambda: self.slices.step_worst(-1),
        }
        keys = {shortcut: actions[shortcut.key] for shortcut in RATED_KEYS}
        self._unbind = bind_commands(self._viewer, keys)

    def leave_cohort(self) -> None:
        """Stop; in a window that is going, layers must not be touched any more."""
        self._loader.close()
        self._scores.close()
        self._viewer.dims.events.current_step.disconnect(self._on_step)
        self.scene.close()
        self._unbind()

    # --- what is chosen --------------------------------------------------------------------------

    def step_case(self, step: int) -> None:
        """Go to the next or the previous case in the order of the list."""
        if self._wanted is None:
            return
        name = self.cases.neighbour(self._wanted.case, step)
        if name is not None:
            self._on_case(name)

    def next_level(self) -> None:
        """Draw the next level, after the last the first."""
        level = (self.scene.level + 1) % len(self.cohort.settings.levels)
        self.levels.table.show_chosen(level)
        self._on_level(level)

    def _on_case(self, name: str) -> None:
        # One that could not be read is tried again.
        if self._wanted is not None and (name != self._wanted.case or self.view is None):
            self.want(WantedCase(name, self._wanted.structure, self._wanted.team))

    def _on_team(self, name: str) -> None:
        if self._wanted is not None:
            self.want(WantedCase(self._wanted.case, self._wanted.structure, name))
            self._list_cases(self._wanted.structure, name)

    def _on_structure(self, name: str) -> None:
        if self._wanted is None:
            return
        team, names = self._wanted.team, [case.name for case in self.cohort.cases_with(name)]
        self._list_cases(name, team)
        case = self._wanted.case if self._wanted.case in names else names[0]
        self.want(WantedCase(case, name, team))
        self._scores.start(name)

    def _on_level(self, level: int) -> None:
        self.scene.set_level(level, only=self.scene.only_level)
        self._show_title()

    def _on_only(self, is_only: bool) -> None:
        self.scene.set_level(self.scene.level, only=is_only)

    def _on_shown(self, shown: set[Shown]) -> None:
        self.scene.set_shown(shown)

    def _return_keys(self) -> None:
        focus_canvas(self._viewer)

    def _on_keys(self) -> None:
        self.keys.show_keys(sections_of(RATED_KEYS, RATED_LIST_KEYS, "cases", RATED_NAPARI_KEYS))
        show_in_front(self.keys)

    def _on_notes(self) -> None:
        if self.view is not None:
            self.notes.show_findings(self.view.wanted.case, self._findings(self.view))
            show_in_front(self.notes)

    def _on_step(self) -> None:
        self.slices.show_current(self.scene.slice_number)

    # --- answers of workers ---

    def _on_view(self, view: CaseView) -> None:
        before, self.view = self.view, view
        self._failed.discard((view.wanted.case, view.wanted.structure))
        settings, found = self.cohort.settings, view.comparison
        is_new = before is None or before.wanted.case != view.wanted.case
        # Figures may come after the picture.
        if before is None or before.picture is not view.picture:
            self.scene.show(view.picture, is_new_case=is_new)
        self.levels.show_figures(found, view.raters, self.scene.level)
        scores = np.zeros(0) if found is None else found.slice_scores(settings)
        is_marked = np.array([plane.any() for plane in view.picture.votes[: len(scores)]], bool)
        why_none = COMPUTING if view.raters is None else "There is no prediction of this case."
        self.slices.show_slices(scores, is_marked, why_none=why_none)
        self.set_available(SLICES_DOCK, view.loaded.reference.is_volume)
        self.slices.show_current(self.scene.slice_number)
        team = None
        if view.wanted.team is not None and found is not None:
            team = (view.wanted.team, found.left_out_score(settings))
        self.raters.show_raters(
            view.raters, view.picture.raters, team, view.objects, view.wanted.structure
        )
        self.legend.show_legend(view.loaded.reference.raters, view.picture.raters)
        self._show_title()
        if view.raters is not None:
            self._begin_scores(view.wanted.structure)

    def _on_error(self, wanted: WantedCase, message: str) -> None:
        """Show nothing of the case before under the name of one that cannot be read."""
        self.view = None
        self.scene.show_nothing()
        self.levels.show_figures(None, None, self.scene.level, why_none=NOT_READ)
        self.slices.show_slices(np.zeros(0), np.zeros(0, bool), why_none=NOT_READ)
        # The line above the image is cut off if it is long.
        why = f"{wanted.case} cannot be shown: {message}"
        self.raters.show_raters(None, (), None, None, wanted.structure, why_none=why)
        self.legend.show_legend((), ())
        self.title.show_title(why)
        self._begin_scores(wanted.structure)

    def _begin_scores(self, structure: str) -> None:
        """Evaluate all cases as soon as one is shown, which must not wait for them."""
        if not self._has_begun_scores:
            self._has_begun_scores = True
            self._scores.start(structure)

    def _on_result(self, case: str, structure: str, result: RatedResult | None) -> None:
        if result is not None:
            self._rows[case, structure] = {
                (case, team): case_row(result, team, self.cohort.settings) for team in result.teams
            }
        else:
            self._failed.add((case, structure))
        if self._wanted is not None and structure == self._wanted.structure:
            self._list_cases(structure, self._wanted.team)

    def _list_cases(self, structure: str, team: str | None) -> None:
        names = [case.name for case in self.cohort.cases_with(structure)]
        unread = {name for name in names if (name, structure) in self._failed}
        rows = {
            key: row
            for name in names
            if name not in unread
            for key, row in self._rows.get((name, structure), {}).items()
        }
        self.cases.show_cases(names, team, rows, unread)

    def _show_title(self) -> None:
        view = self.view
        if view is None:
            return
        wanted, settings = view.wanted, self.cohort.settings
        parts = [wanted.case, wanted.structure]
        if lacking := self._raters_left_out(view):
            plural = "s" if len(lacking) > 1 else ""
            parts.append(f"without rater{plural} {english_list(lacking)}")
        if view.comparison is not None and wanted.team is not None:
            level = self.scene.level
            dice = view.comparison.dice(settings)
            parts.append(wanted.team)
            parts.append(f"Dice {ratio(view.comparison.score(settings))}")
            parts.append(f"at {settings.levels[level]:g}: {ratio(float(dice[level]))}")
        elif view.raters is None:
            parts.append("computing metrics …")
        if view.prediction is not None and view.prediction.state in (MISSING, UNREADABLE):
            parts.append(f"prediction {view.prediction.state}: counted as background")
        if view.images.findings:
            # The case would look like one without an image otherwise.
            parts.append(f"image not shown: {view.images.findings[0].message}")
        self.title.show_title(" · ".join(parts), self._findings(view))

    def _findings(self, view: CaseView) -> list[Finding]:
        """List what was odd in the files of what is shown."""
        own = (view.wanted.case, view.wanted.structure)
        known = [each for each in self.cohort.findings if (each.region, each.class_name) == own]
        return [*known, *view.findings]

    def _raters_left_out(self, view: CaseView) -> list[str]:
        """Name who annotated the structure in other cases, but is not in the reference here."""
        structure = view.wanted.structure
        everybody = {
            name for case in self.cohort.cases_with(structure) for name in case.masks[structure]
        }
        here = view.loaded.reference.raters
        return [name for name in self.cohort.raters if name in everybody and name not in here]


def show_rated(viewer: Any, cohort: RatedCohort, case: str | None = None) -> RatedDesk:
    """Show a cohort of several raters; a desk that is open is closed first."""
    before = rated_desk_in(viewer)
    if before is not None:
        before.close()
    desk = shell.open_desk(viewer, RatedDesk(viewer, cohort))
    desk.start(case)
    return desk


def rated_desk_in(viewer: Any) -> RatedDesk | None:
    """Return the desk that is open in a viewer, or None."""
    return shell.desk_in(viewer, RatedDesk)
