"""The desk for cohorts of several raters: panels around the image, opened and closed as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from qtpy.QtWidgets import QWidget

from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import english_list
from napari_panoptic.raters.evaluate import MISSING, UNREADABLE, RatedResult, case_row
from napari_panoptic.tables.figures import ratio
from napari_panoptic.values.raters import RatedCohort
from napari_panoptic.viewer.desk import shell
from napari_panoptic.viewer.desk.shell import DeskShell
from napari_panoptic.viewer.desk.workspaces import Arrangement, DockArea, Stack, Workspace
from napari_panoptic.viewer.jobs.rater_work import CaseEvaluator, CaseLoader, CaseView, WantedCase
from napari_panoptic.viewer.kit.commands import bind_commands
from napari_panoptic.viewer.kit.keys import (
    KEY_LIST,
    RATED_KEYS,
    RATED_LIST_KEYS,
    RATED_NAPARI_KEYS,
    sections_of,
)
from napari_panoptic.viewer.kit.napari_private import focus_canvas
from napari_panoptic.viewer.kit.title_strip import KeysDialog
from napari_panoptic.viewer.kit.widgets import show_in_front
from napari_panoptic.viewer.layers.rater_scene import RaterScene
from napari_panoptic.viewer.panels.notes import NotesDialog
from napari_panoptic.viewer.panels.raters.panels import (
    COMPUTING,
    NO_PREDICTION,
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
            left=DockArea(0.2, (Stack((CASES_DOCK,)),)),
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
"""The text of panels in such a case."""
NAPARI_KEYS = "← →"
"""Those among them which go from slice to slice."""


class RatedDesk(DeskShell):
    """The panels, the layers and their contents, of one cohort.

    Parameters
    ----------
    viewer
        A viewer with a window.
    cohort
        What to show.
    case
        The case to start with; the first where None.
    """

    name = "Raters (Panoptic)"
    workspaces = WORKSPACES

    def __init__(self, viewer: Any, cohort: RatedCohort, case: str | None = None) -> None:
        super().__init__(viewer)
        self.cohort = cohort
        self.scene = RaterScene(self._viewer, cohort.settings)
        #: The user's request; it may be loading.
        self.wanted = _first_wanted(cohort, case)
        #: The shown case; None until one is loaded, and if it cannot be read.
        self.view: CaseView | None = None
        #: Structure -> case and team -> the figures that are known.
        self._rows: dict[str, dict[tuple[str, str], Mapping[str, object]]] = {
            name: {} for name in cohort.structures
        }
        #: Case and structure of what cannot be read.
        self._failed: set[tuple[str, str]] = set()
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

    def start(self) -> None:
        """List the cases, and show the one to start with."""
        self.cases.structures.show_choice(self.wanted.structure)
        self.want(self.wanted)
        self.scene.prepare()

    def want(self, wanted: WantedCase) -> None:
        """Show something as soon as it is loaded."""
        self.wanted = wanted
        self.list_cases()
        self.title.show_title(f"loading {wanted.case} …")
        self._loader.load(wanted)

    def show_case(self, name: str) -> None:
        """Show another case; one that could not be read is tried again."""
        if name != self.wanted.case or self.view is None:
            self.want(replace(self.wanted, case=name))

    def show_team(self, name: str) -> None:
        """Show the predictions of another team."""
        self.want(replace(self.wanted, team=name))

    def show_structure(self, name: str) -> None:
        """Show another structure, of the same case where it has it."""
        names = [case.name for case in self.cohort.cases_with(name)]
        case = self.wanted.case if self.wanted.case in names else names[0]
        self.want(replace(self.wanted, case=case, structure=name))
        self._scores.start(name)

    def step_case(self, step: int) -> None:
        """Go to the next or the previous case in the order of the list."""
        name = self.cases.neighbour(self.wanted.case, step)
        if name is not None:
            self.show_case(name)

    def show_level(self, level: int) -> None:
        """Draw a level."""
        self.levels.table.show_chosen(level)
        self.scene.set_level(level)
        self.show_title()

    def next_level(self) -> None:
        """Draw the next level, after the last the first."""
        self.show_level((self.scene.level + 1) % len(self.cohort.settings.levels))

    def show_rater(self, rater: int) -> None:
        """Draw one rater alone; all, if that one is drawn alone already."""
        self.scene.set_rater(None if rater == self.scene.rater else rater)
        self.raters.pairs.show_chosen(self.scene.rater)

    def leave_cohort(self) -> None:
        """Stop; in a window that is going, layers must not be touched any more."""
        self._loader.close()
        self._scores.close()
        self._viewer.dims.events.current_step.disconnect(self._on_step)
        self.scene.close()
        self._unbind()

    # --- connections -----------------------------------------------------------------------------

    def _connect(self) -> None:
        """Make every connection; they end with the widgets, and in `leave_cohort`."""
        cases, levels = self.cases, self.levels
        cases.open.pushed.connect(self.ask_for_cohort)
        cases.structures.chosen.connect(self.show_structure)
        cases.teams.chosen.connect(self.show_team)
        cases.following.pushed.connect(lambda: self.step_case(1))
        cases.previous.pushed.connect(lambda: self.step_case(-1))
        cases.places.filter.left.connect(lambda: focus_canvas(self._viewer))
        cases.place_chosen.connect(self.show_case)
        levels.table.chosen.connect(self.show_level)
        levels.only.toggled.connect(self.scene.set_only)
        levels.shown_changed.connect(self.scene.set_shown)
        self.slices.strip.slice_chosen.connect(self.scene.go_to_slice)
        self.raters.pairs.chosen.connect(self.show_rater)
        self.title.notes_clicked.connect(self._show_notes)
        self.title.keys_clicked.connect(self._show_keys)
        self._viewer.dims.events.current_step.connect(self._on_step)
        actions: dict[str, Callable[[], None]] = {
            "j": lambda: self.step_case(1),
            "k": lambda: self.step_case(-1),
            "f": cases.focus_filter,
            "n": self.next_level,
            "w": lambda: self.slices.step_worst(1),
            "Shift-w": lambda: self.slices.step_worst(-1),
        }
        keys = {shortcut: actions[shortcut.key] for shortcut in RATED_KEYS}
        self._unbind = bind_commands(self._viewer, keys)

    def _on_step(self) -> None:
        self.slices.show_current(self.scene.slice_number)

    def _show_keys(self) -> None:
        self.keys.show_keys(sections_of(RATED_KEYS, RATED_LIST_KEYS, "cases", RATED_NAPARI_KEYS))
        show_in_front(self.keys)

    def _show_notes(self) -> None:
        if self.view is not None:
            self.notes.show_findings(self.view.wanted.case, self._findings(self.view))
            show_in_front(self.notes)

    # --- answers of workers ---

    def _on_view(self, view: CaseView) -> None:
        before, self.view = self.view, view
        self._failed.discard((view.wanted.case, view.wanted.structure))
        is_new = before is None or before.wanted.case != view.wanted.case
        # Figures may come after the picture.
        if before is None or before.picture is not view.picture:
            self.scene.show(view.picture, is_new_case=is_new)
        self._fill_panels(view, COMPUTING if view.raters is None else NO_PREDICTION)
        self.legend.show_legend(view.loaded.reference.raters, view.picture.raters)
        self.raters.pairs.show_chosen(self.scene.rater)
        self.set_available(SLICES_DOCK, view.loaded.reference.is_volume)
        self._on_step()
        self.show_title()
        if view.raters is not None:
            self._scores.start_once(view.wanted.structure)

    def _on_error(self, wanted: WantedCase, message: str) -> None:
        """Show nothing of the case before under the name of one that cannot be read."""
        self.view = None
        self.scene.show_nothing()
        # The line above the image is cut off if it is long.
        why = f"{wanted.case} cannot be shown: {message}"
        self._fill_panels(None, NOT_READ)
        self.legend.show_legend((), ())
        self.raters.note.setText(why)
        self.title.show_title(why)
        self._scores.start_once(wanted.structure)

    def _fill_panels(self, view: CaseView | None, why_none: str) -> None:
        self.levels.show_view(view, self.scene.level, why_none)
        self.slices.show_view(view, self.cohort.settings, why_none)
        self.raters.show_view(view, self.cohort.settings, why_none)

    def _on_result(self, case: str, structure: str, result: RatedResult | None) -> None:
        if result is None:
            self._failed.add((case, structure))
        else:
            settings = self.cohort.settings
            rows = {(case, team): case_row(result, team, settings) for team in result.teams}
            self._rows[structure].update(rows)
        if structure == self.wanted.structure:
            self.list_cases()

    def list_cases(self) -> None:
        """List the cases of the structure that is wanted, with the figures that are known."""
        structure = self.wanted.structure
        names = [case.name for case in self.cohort.cases_with(structure)]
        unread = {name for name in names if (name, structure) in self._failed}
        rows = {at: row for at, row in self._rows[structure].items() if at[0] not in unread}
        self.cases.show_cases(names, self.wanted, rows, unread)

    def show_title(self) -> None:
        """Show the chosen case, and its figures."""
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
            # The case would look like one without an image.
            parts.append(f"image not shown: {view.images.findings[0].message}")
        self.title.show_title(" · ".join(parts), self._findings(view))

    def _findings(self, view: CaseView) -> list[Finding]:
        """List the findings in the files of the shown case."""
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


def _first_wanted(cohort: RatedCohort, case: str | None) -> WantedCase:
    structure = cohort.structures[0]
    if case is None:
        case = cohort.cases_with(structure)[0].name
    elif structure not in cohort.region(case).masks:
        structure = cohort.region(case).structures[0]
    return WantedCase(case, structure, cohort.teams[0] if cohort.teams else None)


def show_rated(viewer: Any, cohort: RatedCohort, case: str | None = None) -> RatedDesk:
    """Show a cohort of several raters; a desk that is open is closed first."""
    before = rated_desk_in(viewer)
    if before is not None:
        before.close()
    desk = shell.open_desk(viewer, RatedDesk(viewer, cohort, case))
    desk.start()
    return desk


def rated_desk_in(viewer: Any) -> RatedDesk | None:
    """Return the desk that is open in a viewer, or None."""
    return shell.desk_in(viewer, RatedDesk)
