"""Keeps the gallery in step with the cohort: its failures, sorted and grouped as chosen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtWidgets import QFileDialog

from napari_panoptic.common.text import THIN_SPACE
from napari_panoptic.display import styles
from napari_panoptic.display.crop_reader import CropReader, CropSize
from napari_panoptic.display.crops import (
    FIELD_STEP_PX,
    LARGE_SHARE,
    ROOM,
    SMALLEST_FIELD_PX,
    CropSource,
    bounded_field_px,
)
from napari_panoptic.display.failure_sections import (
    GroupBy,
    passing,
    sections,
)
from napari_panoptic.display.object_rows import ObjectFilter, WorstFirst, worst_first
from napari_panoptic.live.session import Selection
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.questions.engines.cohort_failures import (
    Block,
    CohortFailures,
    FailureName,
    FailureSet,
    chosen_failures,
    objects_with_ids,
)
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Stream
from napari_panoptic.viewer.jobs.timers import single_shot, stop_timers
from napari_panoptic.viewer.kit.questions import may_replace
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.failures import panel as texts
from napari_panoptic.viewer.panels.failures.export import Export, existing_files, save_failures
from napari_panoptic.viewer.panels.failures.panel import FailuresPanel, Scope
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.part import Connections, Presenter
from napari_panoptic.viewer.panels.seen_part import Sight
from napari_panoptic.viewer.panels.slide_texts import on_slide
from napari_panoptic.viewer.state.preferences import Queue

REST_MS = 150
"""How long edits and new regions rest before the gallery follows them."""
REST_PER_WORK = 10
"""The same in times of what showing the failures took."""
MOST_REASONS = 8
"""The most regions of which the tooltip explains why they are left out."""


class FailuresPresenter(Presenter[FailuresPanel]):
    """The failures of all regions, of the region that is shown, or those listed in the table."""

    title = "Failures"
    key = "g"
    follows_table = True
    panel_type = FailuresPanel

    selection_changed = Signal(tuple)  # of FailureName: what is selected in the gallery

    def __init__(self, around: Surroundings, panel: FailuresPanel) -> None:
        super().__init__(around, panel)
        self._crops = panel.crops
        self._field_px = SMALLEST_FIELD_PX
        self._is_field_known = False
        self._shown: tuple[object, ...] = ()
        self._live: dict[tuple[str, str], CropSource] = {}
        self._used: dict[tuple[str, str], CropSource] = {}
        self._is_stale = True
        self._line = "", ""  # what is shown and how many, and its tooltip
        self._sight = Sight.of(panel)
        self._rest = single_shot(REST_MS, self.refresh)
        self._export: Stream[Export] = Stream(self._on_exported, ended=self._on_export_end)
        panel.sort.show_choice(self.link.state.order)
        panel.queue.show_choice(self.link.state.queue)
        panel.show_chosen("")

    @property
    def failures(self) -> CohortFailures:
        """The failures in scope; the rows of the gallery are theirs."""
        return self.panel.view.items.failures

    @property
    def field_px(self) -> int:
        """Width of every crop in the image."""
        return self._field_px

    @property
    def is_busy(self) -> bool:
        """Whether crops in sight are still to be cut, or failures to be shown or saved."""
        is_cutting = self._sight.is_seen and self.panel.view.is_busy
        return is_cutting or self._rest.isActive() or self._export.is_busy

    def selected_failures(self) -> tuple[FailureName, ...]:
        """Return the failures that are selected in the gallery, in its order."""
        return tuple(self.panel.view.selected_names())

    def connections(self) -> Connections:
        """Follow cohort, table and selection; emit where the user wants to go."""
        session, link, panel = self.session, self.link, self.panel
        return [
            (session.region_changed, self._on_region),
            (session.teams_came, self._on_region),
            (session.team_changed, self._on_team),
            (session.edited, self._on_edited),
            (session.summary_changed, self._on_summary),
            (session.selection_changed, self._show_selection),
            (link.failures.chosen_changed, self._on_several),
            (link.failures.only_changed, self._on_only),
            (link.summary.progressed, self._on_cohort),
            (link.panels.objects.listed_changed, self._on_listed),
            (link.state.events.order, self._on_order),
            (link.state.events.queue, panel.queue.show_choice),
            (self._sight.changed, self._on_sight),
            (panel.scope.chosen, self._on_scope),
            (panel.show_all.pushed, self._on_all),
            (panel.changed, self.refresh),
            (panel.sort.chosen, self._on_sort),
            (panel.queue.chosen, self._on_queue),
            (panel.view.chosen, self._on_chosen),
            (panel.view.wanted, self._on_wanted),
            (panel.view.selection_moved, self._on_selection_moved),
            (panel.everything.pushed, self._on_everything),
            (panel.field_changed, self._on_field),
            (panel.size_changed, self._resize_crops),
            (panel.halt.pushed, self._on_halt),
            (panel.export.pushed, self._on_export),
        ]

    def close(self) -> None:
        """Stop: there is nothing to cut crops from any more."""
        self._crops.close()
        self._export.close()
        stop_timers(self._rest)

    def refresh(self) -> None:
        """Show the failures in scope; later if the panel is hidden."""
        self._rest.stop()
        self._is_stale = not self._sight.is_seen
        if not self._is_stale:
            self._fill()

    def _fill(self) -> None:
        begin = time.perf_counter()
        self._use_files()
        failures, order = self._in_scope()
        by = GroupBy(self.panel.group_by.choice)
        found = sections(failures, order[passing(failures, self._filter)[order]], by)
        view = self.panel.view
        view.refill(lambda: view.items.show(failures, found, by))
        if len(failures) and not self._is_field_known:
            self._field_px = _usual_field_px(failures)
            self._is_field_known = self._only is None  # a few objects may all be small
        self._resize_crops()
        self._say()
        self._show_selection(self.session.selection)
        self.link.failures.choose(self.selected_failures())  # some may be gone
        # While results come in, most of the time belongs to the user.
        took_ms = 1000 * (time.perf_counter() - begin)
        self._rest.setInterval(max(REST_MS, round(REST_PER_WORK * took_ms)))

    # What there is.

    @property
    def _table(self) -> ObjectTable:
        return self.link.panels.objects

    @property
    def _scope(self) -> Scope:
        return Scope(self.panel.scope.choice)

    @property
    def _filter(self) -> ObjectFilter:
        panel = self.panel
        return ObjectFilter(statuses=panel.status.checked(), causes=panel.cause.checked())

    @property
    def _only(self) -> FailureSet | None:
        """The failures that were chosen, where they are in scope."""
        return self.link.failures.only if self._scope is Scope.CHOSEN else None

    def _outlined(self, name: FailureName) -> tuple[str, ...]:
        """Return the other teams whose outlines a crop shows."""
        return () if self._only is None else self._only.outlined(name)

    @property
    def _is_over_cohort(self) -> bool:
        return self._scope in (Scope.ALL, Scope.CHOSEN)

    @property
    def _teams(self) -> tuple[str, ...]:
        session, only = self.session, self._only
        if only is not None:
            return tuple(team for team in session.cohort.team_names if team in only.teams)
        if GroupBy(self.panel.group_by.choice) is GroupBy.TEAM:
            return session.cohort.team_names
        return () if session.team is None else (session.team,)

    def _in_scope(self) -> tuple[CohortFailures, NDArray[np.intp]]:
        """Return the failures in scope, and the order in which to show them."""
        if self._scope is Scope.LISTED:
            return self._listed()
        failures = CohortFailures(list(self._blocks()))
        return failures, worst_first(failures.columns, self.link.state.order)

    def _blocks(self) -> Iterator[Block]:
        only = self._only
        if only is not None and only.given:
            yield from map(self._as_now, only.given)
            return
        for line in self._lines():
            if line.failures is not None:
                patient = self.session.cohort.region(line.region).patient
                block = Block(line.team, patient, line.region, line.failures)
                yield block if only is None else only.part(block)

    def _as_now(self, block: Block) -> Block:
        """Return given objects with what was edited meanwhile."""
        snapshot, only = self.session.snapshot, self._only
        if only is None or snapshot is None or snapshot.region.name != block.region:
            return block
        found = snapshot.evaluations.get(block.team)
        if found is None:
            return block
        ids = only.ids[block.team, block.region]
        return replace(block, failures=objects_with_ids(found, ids))

    def _lines(self) -> Iterator[RegionSummary]:
        """Yield the results in scope that are there, team by team."""
        session, snapshot = self.session, self.session.snapshot
        places = self._wanted_lines()
        if not self._is_over_cohort:
            here = None if snapshot is None else snapshot.region.name
            places = [at for at in places if at[0] == here]
        for at in places:
            if at in session.summaries:
                yield session.summaries[at]

    def _listed(self) -> tuple[CohortFailures, NDArray[np.intp]]:
        """Return the failures that the table lists, and its order."""
        table, team, snapshot = self._table, self.session.team, self.session.snapshot
        outcomes = table.outcomes
        if snapshot is None or outcomes is None or snapshot.is_slide or team is None:
            return CohortFailures(), np.zeros(0, np.intp)
        region, rows = snapshot.region, table.model.failures()
        n = table.model.rows.n_reference
        is_reference = rows < n
        chosen = {Side.REFERENCE: rows[is_reference], Side.PREDICTION: rows[~is_reference] - n}
        block = Block(team, region.patient, region.name, chosen_failures(outcomes, chosen))
        order = np.empty(len(rows), np.intp)
        order[is_reference] = np.arange(is_reference.sum())
        order[~is_reference] = np.arange(is_reference.sum(), len(rows))
        return CohortFailures([block]), order

    # What crops are cut from.

    def _use_files(self) -> None:
        """Cut crops as the settings are now; those of the shown region as it is now."""
        session = self.session
        shown = (id(session), session.settings, session.source, id(self._only))
        if shown != self._shown:
            reader = self._reader()
            self._crops.use(reader, self._live_source)
            self._shown = shown
            self._live = {}
        self._note_live()
        before, self._used = self._used, self._live
        outdated = {at for at, now in self._live.items() if not _is_same(before.get(at), now)}
        self._crops.outdate(
            lambda name: (
                not outdated.isdisjoint(
                    (name.region, team) for team in (name.team, *self._outlined(name))
                )
            )
        )

    def _reader(self) -> CropReader:
        session = self.session
        only = self._only
        outlined = _no_teams if only is None else only.outlined
        return CropReader(session.cohort, session.settings, session.source, outlined)

    def _note_live(self) -> None:
        """Note what crops of the shown region are cut from, also for when it is left.

        Regions with edits differ from their files, which may lack the object of a failure.
        """
        has_edits, snapshot = self.session.has_edits, self.session.snapshot
        edited = {at: source for at, source in self._live.items() if has_edits(at[0])}
        self._live = edited | ({} if snapshot is None else _sources(snapshot))

    def _live_source(self, name: FailureName) -> CropSource | None:
        source = self._live.get((name.region, name.team))
        others = [self._live.get((name.region, team)) for team in self._outlined(name)]
        beside = tuple(other.prediction for other in others if other is not None)
        return replace(source, beside=beside) if source is not None and beside else source

    def _resize_crops(self) -> None:
        per_point = self.panel.devicePixelRatioF()
        points = self.panel.view.crop_points
        size = CropSize(self._field_px, round(points * per_point), per_point)
        if size != self._crops.size:
            self._crops.resize(size)
            self.panel.view.look_again()

    # What is said.

    def _say(self) -> None:
        panel, items = self.panel, self.panel.view.items
        count = items.n_failures
        panel.show_hint("" if count else self._why_none())
        panel.show_chosen(self._chosen_text())
        is_open = self._table.model.filter.is_open or self._scope is not Scope.LISTED
        panel.everything.setVisible(not (is_open and self._filter.is_open))
        panel.export.setEnabled(count > 0)
        for button in (panel.closer, panel.wider):
            button.setEnabled(count > 0)
        noun = "object" if self._only is not None and self._only.given else "failure"
        words = f"{styles.count_text(count)} {noun}{'' if count == 1 else 's'}"
        text = f"{words} · each crop {self._width_text()} wide" if count else ""
        tooltip = self._scope.meaning
        if (chosen := len(self.selected_failures())) > 1:
            text = f"{styles.count_text(chosen)} of {words} selected"
            tooltip = "A verdict of the review applies to all of them."
        self._line = text, tooltip
        panel.line.set_text(text, tooltip=tooltip)
        self._show_progress()

    def _chosen_text(self) -> str:
        """Return what the chosen failures have in common, and their number."""
        only, now = self._only, len(self.failures)
        if only is None:
            return ""
        total = len(only.names)
        count = styles.count_text(total)
        if now < total:
            count = f"{styles.count_text(now)} of {count}"
        return f"{only.title} · {count} object{'' if total == 1 else 's'}"

    def _width_text(self) -> str:
        sizes = {block.failures.mpp for block in self.failures.blocks}
        mpp = sizes.pop() if len(sizes) == 1 else None
        if mpp is None:
            return f"{self._field_px}{THIN_SPACE}px"
        return styles.length_text(self._field_px * mpp, "µm")

    def _why_none(self) -> str:
        session, snapshot = self.session, self.session.snapshot
        if len(self.failures) and not self._filter.is_open:
            return texts.FILTERED
        if self._only is not None:
            return texts.NONE_YET if self.link.summary.is_busy else texts.NONE_CHOSEN
        if self._scope is Scope.ALL:
            if not self._teams:
                return texts.NO_COHORT
            if snapshot is not None and snapshot.is_slide and not self._has_other_regions():
                return on_slide(snapshot, slide_texts.GALLERY, texts.NO_COHORT)
            return texts.NONE_YET if self.link.summary.is_busy else texts.NONE_AT_ALL
        if snapshot is None or session.shown is None or snapshot.is_slide:
            return on_slide(snapshot, slide_texts.GALLERY, texts.NO_COHORT)
        if self._scope is Scope.LISTED and not self._table.model.filter.is_open:
            return texts.ALL_HIDDEN
        return texts.NO_FAILURES

    def _show_progress(self) -> None:
        """Show how many regions are evaluated, and which are left out."""
        if self._is_stale:
            return
        session, summary = self.session, self.link.summary
        lines = [session.summaries.get(at) for at in self._wanted_lines()]
        missing = sum(line is None for line in lines)
        if missing and self._is_over_cohort:
            done = len(lines) - missing
            word = "evaluated" if summary.is_busy else "stopped after"
            n = max(len(self._teams), 1)
            text = f"{word} {done // n} of {len(lines) // n} regions"
            self.panel.show_progress(text, is_running=summary.is_busy)
            return
        self.panel.show_progress("", is_running=False)
        left = [line for line in lines if line is not None and line.failures is None]
        self._say_left_out(left if self._is_over_cohort else [])

    def _has_other_regions(self) -> bool:
        """Return whether another region than the one shown may have failures to show."""
        session, snapshot = self.session, self.session.snapshot
        here = "" if snapshot is None else snapshot.region.name
        lines = [session.summaries.get(at) for at in self._wanted_lines() if at[0] != here]
        return any(line is None or line.failures is not None for line in lines)

    def _wanted_lines(self) -> list[tuple[str, str]]:
        """Return the regions and teams in scope, team by team."""
        regions, only = self.session.cohort.regions, self._only
        places = [(region.name, team) for team in self._teams for region in regions]
        if only is not None:
            places = [at for at in places if (at[1], at[0]) in only.ids]
        return places

    def _say_left_out(self, lines: list[RegionSummary]) -> None:
        text, tooltip = self._line
        if not lines:
            self.panel.line.set_text(text, tooltip=tooltip)
            return
        reasons = [
            f"{line.region}: {line.findings[0].message if line.findings else 'a whole slide'}"
            for line in lines[:MOST_REASONS]
        ]
        regions = len({line.region for line in lines})
        plural = "" if regions == 1 else "s"
        self.panel.line.set_text(
            f"{text} · {regions} region{plural} left out" if text else "",
            tooltip="\n".join(("Left out:", *reasons)),
        )

    # What happens elsewhere.

    def _on_region(self, _snapshot: object) -> None:
        self._note_live()
        if self._is_over_cohort:
            self._rest.start()
        else:
            self.refresh()

    def _on_team(self, _team: str) -> None:
        self.refresh()

    def _on_edited(self, _edit: object) -> None:
        self._note_live()  # the region may be left at once

    def _on_summary(self, line: RegionSummary) -> None:
        if self.session.has_edits(line.region):
            self._note_live()
        if line.team in self._teams and not self._rest.isActive():
            self._rest.start()

    def _on_cohort(self, _done: int, _total: int) -> None:
        """Follow the evaluation of the cohort, also where it begins with other settings."""
        self._show_progress()
        if not self._rest.isActive():
            self._rest.start()

    def _on_listed(self) -> None:
        if self._scope is Scope.LISTED:
            self.refresh()

    def _on_order(self, order: WorstFirst) -> None:
        self.panel.sort.show_choice(order)
        self.refresh()

    def _on_sight(self, seen: bool) -> None:
        if seen and self._is_stale:
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
            self._fill()  # so that no others are seen under its title
        self.refresh()

    # What the user does.

    def _on_scope(self, scope: Scope) -> None:
        """Limit N no longer where the gallery does not show the limit."""
        if scope is not Scope.CHOSEN:
            self.link.failures.show_only(None)

    def _on_all(self) -> None:
        self.link.failures.show_only(None)

    def _on_sort(self, order: WorstFirst) -> None:
        self.link.state.order = order

    def _on_queue(self, queue: Queue) -> None:
        self.link.state.queue = queue

    def _on_selection_moved(self) -> None:
        """Choose what is selected here for a verdict."""
        names = self.selected_failures()
        self.selection_changed.emit(names)
        self.link.failures.choose(names)
        self._say()

    def _on_chosen(self, row: int) -> None:
        name, only = self.failures.name(row), self._only
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
            self.link.scene.show_object(selection)

    def _on_everything(self) -> None:
        self.panel.clear_filters()
        if self._scope is Scope.LISTED:
            self._table.set_filter(ObjectFilter())
        self.refresh()

    def _on_field(self, step: int) -> None:
        wanted = bounded_field_px(self._field_px + step * FIELD_STEP_PX)
        if wanted != self._field_px:
            self._field_px, self._is_field_known = wanted, True
            self._resize_crops()
            self._say()

    def _on_halt(self) -> None:
        summary = self.link.summary
        (summary.stop if summary.is_busy else summary.go_on)()
        self._show_progress()

    # The export.

    def _on_export(self) -> None:
        """Ask for a folder, and save the failures shown."""
        if self._export.is_busy:
            self._export.stop()
            self._on_export_end()
            return
        chosen = QFileDialog.getExistingDirectory(self.panel, "Save failures in a folder")
        if not chosen:
            return
        folder = Path(chosen)
        items = self.panel.view.items
        failures, rows = items.failures, items.all_rows
        if not may_replace(self.panel, existing_files(folder, failures, rows)):
            return
        reader = self._reader()
        size = CropSize(self._field_px, self._crops.size.size_px)
        self.panel.export.setText("Stop export")
        self._export.start(lambda *_job: save_failures(folder, failures, rows, reader, size))

    def _on_exported(self, so_far: Export) -> None:
        count, total = styles.count_text(so_far.done), styles.count_text(so_far.total)
        self._line = f"saved {count} of {total} crops", ""
        self.panel.line.set_text(self._line[0])
        if so_far.problem:
            show_error(so_far.problem)
        elif so_far.done == so_far.total:
            left_out = so_far.total - so_far.crops
            note = f"; {left_out} crops could not be cut" if left_out else ""
            show_info(f"Saved {count} failures in {so_far.folder}{note}")

    def _on_export_end(self) -> None:
        self.panel.export.setText("Export…")
        self._say()


def _no_teams(_name: FailureName) -> tuple[str, ...]:
    return ()


def _usual_field_px(failures: CohortFailures) -> int:
    """Return the width of crops in which nearly all failures can be seen whole."""
    boxes = failures.columns["bbox"].astype(np.int64)
    extents = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
    return bounded_field_px(ROOM * float(np.percentile(extents, LARGE_SHARE)))


def _sources(snapshot: RegionSnapshot) -> dict[tuple[str, str], CropSource]:
    """Return what crops of a region are cut from, by region and team."""
    return {
        (snapshot.region.name, team): CropSource.of(snapshot.image, found)
        for team, found in snapshot.evaluations.items()
    }


def _is_same(one: CropSource | None, other: CropSource) -> bool:
    return one is not None and (
        one.image is other.image
        and one.reference is other.reference
        and one.prediction is other.prediction
        and one.outcomes is other.outcomes
    )
