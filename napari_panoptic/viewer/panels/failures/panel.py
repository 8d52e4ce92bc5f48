"""The gallery of failures, in step with the cohort: sorted, grouped and filtered as chosen."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QSlider, QWidget

from napari_panoptic.common.text import THIN_SPACE, counted
from napari_panoptic.display import slide_texts, styles
from napari_panoptic.display.crop_reader import CropReader, CropSize
from napari_panoptic.display.crops import (
    FIELD_STEP_PX,
    LARGE_SHARE,
    ROOM,
    SMALLEST_FIELD_PX,
    CropSource,
    bounded_field_px,
)
from napari_panoptic.display.failure_queue import FailureQueue
from napari_panoptic.display.failure_sections import GroupBy, sections
from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.display.slide_texts import on_slide
from napari_panoptic.explain.failures import (
    CohortFailures,
    FailureName,
    FailureSet,
)
from napari_panoptic.live.session import Selection
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.values.vocabulary import CAUSES
from napari_panoptic.viewer.jobs.jobs import Stream, single_shot, stop_timers
from napari_panoptic.viewer.kit.layouts import PANEL_MARGINS, FlowBar, Grow, lay_out
from napari_panoptic.viewer.kit.menus import ChoiceMenu, MenuButton
from napari_panoptic.viewer.kit.questions import folder_from, may_replace
from napari_panoptic.viewer.kit.shown import WrappedLabel, show_info
from napari_panoptic.viewer.kit.widgets import ElidedLabel, ToolButton
from napari_panoptic.viewer.panels.failures.crops import Crops, LiveSources
from napari_panoptic.viewer.panels.failures.export import Export, existing_files, save_failures
from napari_panoptic.viewer.panels.failures.scope import InScope, Scope
from napari_panoptic.viewer.panels.failures.view import (
    LARGEST_CROP,
    SMALLEST_CROP,
    USUAL_CROP,
    FailureView,
)
from napari_panoptic.viewer.panels.filters import FILTER, FilterMenu, filter_text
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.region_panel import SeenPresenter

NO_COHORT = "No failures to show. Open a cohort, or choose a region and team with a prediction."
NO_FAILURES = "No failures here: nothing is FN, FP or misclassified. J goes to the next region."
NONE_YET = "No failures yet: the regions are being evaluated."
NONE_AT_ALL = "No failures: nothing is FN, FP or misclassified in any region."
ALL_HIDDEN = "None of the listed objects is a failure. Press “List all” to see every failure."
NONE_CHOSEN = "None of the chosen objects is a failure now. Press “Show all” for all failures."
FILTERED = "No failure passes the filters. Press “List all” to see every failure again."
SLIDER_PX = 90
REST_MS = 150
"""How long edits and new regions rest before the gallery follows them."""
REST_PER_WORK = 10
"""The same in times of what showing the failures took."""
MOST_REASONS = 8
"""The most regions of which the tooltip explains why they are left out."""


class FailuresPanel(QWidget):
    """The gallery with its menus; emits the user's requests to other panels."""

    size_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.crops = Crops()
        self.view = FailureView(self.crops)
        self.scope = ChoiceMenu("Show", "Which failures to show.", list(Scope))
        self.group_by = ChoiceMenu("Group by", "What the sections are.", list(GroupBy))
        self.status = FilterMenu("status", [str(status) for status in styles.FAILURES])
        self.cause = FilterMenu("cause", [str(cause) for cause in CAUSES])
        self.filters = MenuButton(FILTER, "Which failures to show.", self.status, self.cause)
        self.chosen = WrappedLabel()
        self.show_all = ToolButton("Show all", "Show the failures of all regions again.")
        self.export = ToolButton("Export…", "Save the failures shown as a table and as pictures.")
        self.everything = ToolButton("✕ List all", "List all objects again, and all failures.")
        self.halt = ToolButton("Stop", "")
        self.closer = ToolButton("+", "Show less around each object. Also Ctrl+wheel.")
        self.wider = ToolButton("−", "Show more around each object. Also Ctrl+wheel.")
        self.crop_size = QSlider(Qt.Orientation.Horizontal)
        self.crop_size.setRange(SMALLEST_CROP, LARGEST_CROP)
        self.crop_size.setValue(USUAL_CROP)
        self.crop_size.setFixedWidth(SLIDER_PX)
        self.crop_size.setToolTip("Size of the crops.")
        self.crop_size.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.line, self.progress = ElidedLabel(), ElidedLabel()
        self.hint = WrappedLabel(NO_COHORT)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.closer.pushed.connect(partial(self.view.zoomed.emit, -1))
        self.wider.pushed.connect(partial(self.view.zoomed.emit, 1))
        self.crop_size.valueChanged.connect(self._on_size)
        of_crops = (self.everything, self.wider, self.closer, self.crop_size, self.export)
        lay_out(
            self,
            FlowBar(self.scope, self.group_by, self.filters),
            (Grow(self.chosen), self.show_all),
            (Grow(self.progress), self.halt),
            (Grow(self.line), *of_crops),
            Grow(self.hint),  # in the gallery's place
            Grow(self.view),
            margins=PANEL_MARGINS,
        )
        self.setFocusProxy(self.view)
        self.show_progress("", is_running=False)
        self.show_chosen("")

    def show_hint(self, text: str) -> None:
        """Show why there are no failures; empty if there are some."""
        self.hint.show_text(text)
        self.view.setVisible(not text)

    def show_chosen(self, text: str) -> None:
        """Show the common traits of the chosen failures; empty if none are chosen."""
        self.chosen.setText(text)
        for widget in (self.chosen, self.show_all):
            widget.setVisible(bool(text))
        self.scope.offer(Scope.CHOSEN, offered=bool(text))
        if text:
            self.scope.show_choice(Scope.CHOSEN)
        elif self.scope.choice is Scope.CHOSEN:
            self.scope.show_choice(Scope.ALL)

    def show_progress(self, text: str, *, is_running: bool) -> None:
        """Show how much of the cohort is evaluated; empty once all of it is."""
        self.progress.set_text(text)
        self.progress.setVisible(bool(text))
        self.halt.setVisible(bool(text))
        self.halt.setText("Stop" if is_running else "Continue")
        self.halt.setToolTip(
            "Stop evaluating the cohort." if is_running else "Evaluate the other regions."
        )

    def show_filters(self) -> None:
        """Show the filters on their button."""
        chosen = {"status": self.status.checked(), "cause": self.cause.checked()}
        self.filters.setText(filter_text(chosen))

    def clear_filters(self) -> None:
        """Let every status and cause through."""
        for menu in (self.status, self.cause):
            menu.check_only(None)

    def _on_size(self, points: int) -> None:
        self.view.resize_crops(points)
        self.size_changed.emit()


class FailuresPresenter(SeenPresenter[FailuresPanel]):
    """The failures of all regions, of the shown region, or those listed in the table."""

    title = "Failures"
    key = "g"
    follows_table = True
    panel_type = FailuresPanel

    def __init__(self, around: Surroundings, panel: FailuresPanel) -> None:
        super().__init__(around, panel)
        self.field_px = SMALLEST_FIELD_PX
        """Width of every crop in the image."""
        self._is_field_known = False
        self._crops, self._live = panel.crops, LiveSources()
        self._cut_from: tuple[object, ...] = ()
        self._rest = single_shot(REST_MS, self.refresh)
        self._export: Stream[Export] = Stream(self._on_exported, ended=self._on_export_end)
        self._saved: Export | None = None
        panel.show_chosen("")

    @property
    def failures(self) -> CohortFailures:
        """The failures in scope; the rows of the gallery are theirs."""
        return self.panel.view.items.failures

    @property
    def is_busy(self) -> bool:
        """Whether crops in sight are still to be cut, or failures to be shown or saved."""
        is_cutting = self.is_in_sight and self.panel.view.is_busy
        return is_cutting or self._rest.isActive() or self._export.is_busy

    def selected_failures(self) -> tuple[FailureName, ...]:
        """Return the failures that are selected in the gallery, in its order."""
        return tuple(self.panel.view.selected_names())

    def connections(self) -> Connections:
        """Follow cohort, table and selection; go where the user wants to."""
        session, link, panel = self.session, self.link, self.panel
        return [
            (session.region_changed, self._on_region),
            (session.teams_came, self._on_region),
            (session.team_changed, self.refresh),
            (session.edited, self._on_edited),
            (session.summary_changed, self._on_summary),
            (session.selection_changed, self._show_selection),
            (link.failures.chosen_changed, self._on_several),
            (link.failures.only_changed, self._on_only),
            (link.summary.progressed, self._on_cohort),
            (link.panels.objects.listed_changed, self._on_listed),
            (link.state.events.order, self.refresh),
            (self._sight.changed, self._on_sight),
            (panel.scope.chosen, self._on_scope),
            (panel.group_by.chosen, self.refresh),
            (panel.status.changed, self.refresh),
            (panel.cause.changed, self.refresh),
            (panel.show_all.pushed, self._on_all),
            (panel.view.chosen, self._on_chosen),
            (panel.view.wanted, self._on_wanted),
            (panel.view.zoomed, self._on_zoomed),
            (panel.view.selection_moved, self._on_selection_moved),
            (panel.view.link_wanted, self._copy_link),
            (panel.everything.pushed, self._on_everything),
            (panel.size_changed, self._resize_crops),
            (panel.halt.pushed, self._on_halt),
            (panel.export.pushed, self._on_export),
        ]

    def close(self) -> None:
        """Stop: there is nothing to cut crops from any more."""
        self._crops.close()
        self._export.close()
        stop_timers(self._rest)

    def refresh(self, *_changed: object) -> None:
        """Show the failures in scope; later if the panel is hidden."""
        self._rest.stop()
        super().refresh()

    def compute_now(self) -> None:
        """Show the failures in scope."""
        begin = time.perf_counter()
        scope = self._in_scope
        self._use_files()
        queue = self._queue(scope)
        failures, by = queue.failures, GroupBy(self.panel.group_by.choice)
        groups = sections(failures, queue.rows, by, self.link.failures.walk.order.small_px)
        view = self.panel.view
        stays_at_top = view.is_at_top and self.link.failures.is_as_opened
        view.refill(lambda: view.items.show(failures, groups, by))
        if len(failures) and not self._is_field_known:
            self.field_px = _usual_field_px(failures)
            self._is_field_known = scope.only is None  # a few objects may all be small
        self._resize_crops()
        self._say()
        self._show_selection(self.session.selection)
        if stays_at_top:
            view.scrollToTop()
        self.link.failures.choose(self.selected_failures())  # some may be gone
        # While results come in, most of the time belongs to the user.
        took_ms = 1000 * (time.perf_counter() - begin)
        self._rest.setInterval(max(REST_MS, round(REST_PER_WORK * took_ms)))

    # Contents.

    def _queue(self, scope: InScope) -> FailureQueue:
        walk, snapshot = self.link.failures.walk, self.session.snapshot
        if scope.scope is Scope.LISTED:
            shown = walk.shown_region()
            if snapshot is not None and snapshot.is_slide:
                shown = replace(shown, listed=None)
            return replace(walk.order, wanted=self._filter).listed(shown)
        return scope.queue(walk.order, self._filter)

    @property
    def _table(self) -> ObjectTable:
        return self.link.panels.objects

    @property
    def _filter(self) -> ObjectFilter:
        panel = self.panel
        return ObjectFilter(statuses=panel.status.checked(), causes=panel.cause.checked())

    @property
    def _in_scope(self) -> InScope:
        panel = self.panel
        scope = Scope(panel.scope.choice)
        only = self.link.failures.only if scope is Scope.CHOSEN else None
        return InScope(self.session, scope, panel.group_by.choice is GroupBy.TEAM, only)

    # What crops are cut from.

    def _use_files(self) -> None:
        """Cut crops as the settings are now; those of the shown region as it is now."""
        session, scope = self.session, self._in_scope
        cut_from = session.settings, session.source, id(scope.only)
        if cut_from != self._cut_from:
            self._crops.use(self._reader(), self._live_source)
            self._cut_from = cut_from
            self._live.clear()
        self._live.note(session)
        changed = self._live.changed()
        self._crops.outdate(
            lambda name: any(
                (name.region, team) in changed for team in (name.team, *scope.outlined(name))
            )
        )

    def _reader(self) -> CropReader:
        session, only = self.session, self._in_scope.only
        outlined = () if only is None else (only.outlined,)
        return CropReader(session.cohort, session.settings, session.source, *outlined)

    def _live_source(self, name: FailureName) -> CropSource | None:
        return self._live.of(name, self._in_scope.outlined(name))

    def _resize_crops(self) -> None:
        per_point = self.panel.devicePixelRatioF()
        points = self.panel.view.crop_points
        size = CropSize(self.field_px, round(points * per_point), per_point)
        if size != self._crops.size:
            self._crops.resize(size)
            self.panel.view.look_again()

    # Texts.

    def _say(self) -> None:
        """Show how many failures there are, or why none, and which regions are missing."""
        panel, scope, summary = self.panel, self._in_scope, self.link.summary
        count = panel.view.items.n_failures
        panel.show_filters()
        panel.show_hint("" if count else self._why_none(scope))
        panel.show_chosen(self._chosen_text(scope.only))
        is_open = self._table.model.filter.is_open or scope.scope is not Scope.LISTED
        panel.everything.setVisible(not (is_open and self._filter.is_open))
        panel.export.setEnabled(count > 0)
        for button in (panel.closer, panel.wider):
            button.setEnabled(count > 0)
        progress, total = "", len(scope.lines)
        if scope.n_missing and scope.is_over_cohort:
            word = "evaluated" if summary.is_busy else "stopped after"
            n = max(len(scope.teams), 1)
            progress = f"{word} {(total - scope.n_missing) // n} of {total // n} regions"
        panel.show_progress(progress, is_running=bool(progress) and summary.is_busy)
        self._show_line()

    def _show_line(self) -> None:
        """Show the number of failures, or of saved crops."""
        scope, line = self._in_scope, self.panel.line
        if self._saved is not None:
            done, total = styles.count_text(self._saved.done), styles.count_text(self._saved.total)
            line.set_text(f"saved {done} of {total} crops")
            return
        count = self.panel.view.items.n_failures
        noun = "object" if scope.only is not None and scope.only.given else "failure"
        words = counted(count, noun, write=styles.count_text)
        text = f"{words} · each crop {self._width_text()} wide" if count else ""
        tooltip = scope.scope.meaning
        if (selected := len(self.selected_failures())) > 1:
            text = f"{styles.count_text(selected)} of {words} selected"
            tooltip = "A verdict of the review applies to all of them."
        left_out = () if scope.n_missing else scope.left_out
        if left_out:
            n = len({of.region for of in left_out})
            text = f"{text} · {counted(n, 'region')} left out" if text else ""
            reasons = [
                f"{of.region}: {of.findings[0].message if of.findings else 'a whole slide'}"
                for of in left_out[:MOST_REASONS]
            ]
            tooltip = "\n".join(("Left out:", *reasons))
        line.set_text(text, tooltip=tooltip)

    def _chosen_text(self, only: FailureSet | None) -> str:
        """Return the common traits of the chosen failures, and their number."""
        if only is None:
            return ""
        now, total = len(self.failures), len(only.names)
        count = styles.count_text(total)
        if now < total:
            count = f"{styles.count_text(now)} of {count}"
        return f"{only.title} · {count} object{'' if total == 1 else 's'}"

    def _width_text(self) -> str:
        sizes = {block.failures.mpp for block in self.failures.blocks}
        mpp = sizes.pop() if len(sizes) == 1 else None
        if mpp is None:
            return f"{self.field_px}{THIN_SPACE}px"
        return styles.length_text(self.field_px * mpp, "µm")

    def _why_none(self, scope: InScope) -> str:
        session, snapshot = self.session, self.session.snapshot
        coming = NONE_YET if self.link.summary.is_busy else ""
        if len(self.failures) and not self._filter.is_open:
            return FILTERED
        if scope.only is not None:
            return coming or NONE_CHOSEN
        if scope.scope is Scope.ALL:
            if not scope.teams:
                return NO_COHORT
            if snapshot is not None and snapshot.is_slide and not scope.has_other_regions:
                return slide_texts.GALLERY
            return coming or NONE_AT_ALL
        if session.shown is None or (snapshot is not None and snapshot.is_slide):
            return on_slide(snapshot, slide_texts.GALLERY, NO_COHORT)
        if scope.scope is Scope.LISTED and not self._table.model.filter.is_open:
            return ALL_HIDDEN
        return NO_FAILURES

    # What happens elsewhere.

    def _on_region(self, _snapshot: object) -> None:
        self._live.note(self.session)
        if self._in_scope.is_over_cohort:
            self._rest.start()
        else:
            self.refresh()

    def _on_edited(self, _edit: object) -> None:
        self._live.note(self.session)  # the region may be left at once

    def _on_summary(self, line: RegionSummary) -> None:
        if self.session.has_edits(line.region):
            self._live.note(self.session)
        if line.team in self._in_scope.teams and not self._rest.isActive():
            self._rest.start()

    def _on_cohort(self, _done: int, _total: int) -> None:
        """Follow the evaluation of the cohort, also where it begins with other settings."""
        if not self._is_stale:
            self._say()
        if not self._rest.isActive():
            self._rest.start()

    def _on_listed(self) -> None:
        if self._in_scope.scope is Scope.LISTED:
            self.refresh()

    def _show_selection(self, selection: Selection | None) -> None:
        """Mark the crop of the selected object, or of its partner: a pair has one crop only."""
        snapshot = self.session.snapshot
        if snapshot is None or self._is_stale:
            return
        row = None
        if selection is not None:
            name = FailureName(selection.team, snapshot.region.name, selection.side, selection.id)
            row = self.failures.find(name)
        self.panel.view.select(row)

    def _on_several(self, names: tuple[FailureName, ...]) -> None:
        """Select no longer several failures here once the user has gone elsewhere."""
        if not names and len(self.selected_failures()) > 1:
            self.panel.view.deselect()
            self._show_selection(self.session.selection)

    def _on_only(self, only: FailureSet | None) -> None:
        """Show exactly the failures that were chosen, or all again."""
        self.panel.show_chosen("" if only is None else only.title)
        if only is not None:
            self.panel.clear_filters()
            self.compute_now()  # so that no others are seen under its title
        self.refresh()
        if only is not None:
            self.panel.view.scrollToTop()

    # User actions.

    def _on_scope(self, scope: Scope) -> None:
        """Limit N no longer where the gallery does not show the limit."""
        if scope is not Scope.CHOSEN:
            self._on_all()
        self.refresh()

    def _on_all(self) -> None:
        self.link.failures.show_only(None)

    def _on_selection_moved(self) -> None:
        """Choose the selection for a verdict."""
        self.link.failures.choose(self.selected_failures())
        self._show_line()

    def _on_chosen(self, row: int) -> None:
        name, only = self.failures.name(row), self._in_scope.only
        agreeing = () if only is None else only.agreeing.get(name, ())
        self.link.go_to(name.region, name.side, name.id, team=name.team, beside=agreeing)

    def _on_wanted(self, row: int) -> None:
        """Go there, and bring the object near to the middle."""
        name = self.failures.name(row)
        self._on_chosen(row)
        snapshot, selection = self.session.snapshot, self.session.selection
        if snapshot is None or selection is None or snapshot.region.name != name.region:
            return
        if (selection.side, selection.id) == (name.side, name.id):
            self.link.scene.camera.show_object(selection)

    def _copy_link(self) -> None:
        self.link.links.copy(self.selected_failures())

    def _on_everything(self) -> None:
        self.panel.clear_filters()
        if self._in_scope.scope is Scope.LISTED:
            self._table.set_filter(ObjectFilter())
        self.refresh()

    def _on_zoomed(self, step: int) -> None:
        wanted = bounded_field_px(self.field_px + step * FIELD_STEP_PX)
        if wanted != self.field_px:
            self.field_px, self._is_field_known = wanted, True
            self._resize_crops()
            self._show_line()

    def _on_halt(self) -> None:
        summary = self.link.summary
        (summary.stop if summary.is_busy else summary.go_on)()
        self._say()

    # The export.

    def _on_export(self) -> None:
        """Ask for a folder, and save the failures shown; stop if they are being saved."""
        if self._export.is_busy:
            self._export.stop()
            self._on_export_end()
            return
        folder = folder_from(self.panel, "Save failures in a folder")
        if folder is None:
            return
        items = self.panel.view.items
        failures, rows = items.failures, items.all_rows
        if not may_replace(self.panel, existing_files(folder, failures, rows)):
            return
        reader = self._reader()
        size = CropSize(self.field_px, self._crops.size.size_px)
        self.panel.export.setText("Stop export")
        self._export.start(lambda *_job: save_failures(folder, failures, rows, reader, size))

    def _on_exported(self, so_far: Export) -> None:
        self._saved = so_far
        self._show_line()
        if so_far.done == so_far.total:
            left_out = so_far.total - so_far.crops
            note = f"; {counted(left_out, 'crop')} could not be cut" if left_out else ""
            count = counted(so_far.total, "failure", write=styles.count_text)
            show_info(f"Saved {count} in {so_far.folder}{note}")

    def _on_export_end(self) -> None:
        self._saved = None
        self.panel.export.setText("Export…")
        self._show_line()


def _usual_field_px(failures: CohortFailures) -> int:
    """Return the width of crops in which nearly all failures can be seen whole."""
    boxes = failures.columns["bbox"].astype(np.int64)
    extents = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
    return bounded_field_px(ROOM * float(np.percentile(extents, LARGE_SHARE)))
