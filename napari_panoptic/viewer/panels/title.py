"""The strip above the image: the shown region, the progress of a slide, the selected object."""

from __future__ import annotations

from collections.abc import Sequence

from psygnal import Signal, SignalInstance
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QProgressBar, QPushButton, QSizePolicy, QWidget

from napari_panoptic.display import slide_texts, styles
from napari_panoptic.display.behind import absent_text
from napari_panoptic.display.describe import ObjectFacts, facts_of
from napari_panoptic.display.failure_cells import SCALE_MEANING
from napari_panoptic.display.glossary import FIGURE_MEANINGS, choices_text
from napari_panoptic.display.title import (
    LOADING,
    region_notes,
    rules,
    title_parts,
    why_no_figures,
    why_nothing,
)
from napari_panoptic.live.session import EditedEvaluation
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.values.settings import Overlaps
from napari_panoptic.viewer.jobs.jobs import single_shot
from napari_panoptic.viewer.kit.inputs import StepBox
from napari_panoptic.viewer.kit.keys import DESK_KEYS, KEY_LIST
from napari_panoptic.viewer.kit.layouts import Grow, lay_out, row_of
from napari_panoptic.viewer.kit.shown import RichLabel
from napari_panoptic.viewer.kit.title_strip import KeysButton, NotesButton, TitleLines
from napari_panoptic.viewer.kit.widgets import ElidedLabel, LinkLabel, show_in_front
from napari_panoptic.viewer.panels.legend import LegendStrip
from napari_panoptic.viewer.panels.navigator import NavigatorPresenter
from napari_panoptic.viewer.panels.part import BLIND, Connections, Presenter
from napari_panoptic.viewer.panels.queue import QueueBar
from napari_panoptic.viewer.panels.settings import SettingsPresenter

STOP, EVALUATE = "Stop", "Evaluate"
NEAR_A_SLIDE = "Zoom out to see where on the slide objects fail."
"""The line above a slide on which single objects can be distinguished."""
_STEPS = 1000


class SlideBar(QWidget):
    """A line that is seen only while a slide is shown."""

    stop_wanted = Signal()
    evaluate_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._offered = self.evaluate_wanted
        self._words = RichLabel()
        # Rather cut than make a narrow window wider.
        self._words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._progress = QProgressBar()
        self._progress.setRange(0, _STEPS)
        self._progress.setFixedWidth(240)
        self.button = QPushButton()
        self.button.clicked.connect(lambda _=False: self._offered.emit())
        self.setLayout(row_of(Grow(self._words), self._progress, self.button))
        self.show_nothing()

    def text(self) -> str:
        """Return the text, as rich text; empty if the line is hidden."""
        return "" if self.isHidden() else self._words.text()

    def progress_text(self) -> str:
        """Return the text about work under way; empty if there is none."""
        return "" if self._progress.isHidden() else self._progress.format()

    def show_nothing(self) -> None:
        """Hide the line: no slide is shown."""
        self.hide()

    def show_words(self, words: str, tooltip: str = "") -> None:
        """Show a text about the slide, as rich text."""
        self._words.set_rich(words)
        self._words.setToolTip(tooltip)
        self.show()

    def show_waiting(self, saying: str, share: float = 0.0) -> None:
        """Show how far the evaluation is, from 0 to 1, with a way to stop it."""
        self._progress.setValue(round(_STEPS * share))
        self._progress.setFormat(f"{saying} %p%")
        self._offer(self.stop_wanted, STOP, "Stop; the slide can be evaluated later.")
        self._progress.show()

    def show_stopped(self) -> None:
        """Show that the slide is not evaluated, with a way to do that."""
        self._progress.hide()
        self._offer(self.evaluate_wanted, EVALUATE, "Evaluate this team on this slide.")

    def show_done(self) -> None:
        """Show that nothing is under way."""
        self._progress.hide()
        self.button.hide()

    def _offer(self, wanted: SignalInstance, word: str, tooltip: str) -> None:
        self._offered = wanted
        self.button.setText(word)
        self.button.setToolTip(tooltip)
        self.button.show()


SELECTED_PX = 280
"""Width that the legend leaves for the selected object."""
REGION_PX, TEAM_PX = 210, 150
"""Largest widths of the lists of regions and teams."""
PATIENCE_MS = 150
"""How long something is being loaded before the title says so."""
NOTHING_SELECTED = "Click a nucleus to see its outcome; N goes to the next failure."
NOTHING_OPEN = "Open a cohort, two layers or the sample with the buttons at the right."
KEYS = " · ".join(f"{shortcut.text}: {shortcut.meaning}" for shortcut in (*DESK_KEYS, KEY_LIST))


class TitleStrip(TitleLines):
    """The line above the image: region, team and queue as menus, the rules, PQ and notes.

    Below it, the legend and the selected object or a message; on slides one line more.

    Parameters
    ----------
    legend
        What colours and outlines mean.
    queue
        Where N leads; both None for none.
    """

    notes_clicked = Signal()
    keys_clicked = Signal()

    def __init__(self, legend: LegendStrip | None = None, queue: QueueBar | None = None) -> None:
        super().__init__()
        self.region = StepBox(
            "The region.",
            "Previous region, in the order of the Regions panel (K)",
            "Next region, in the order of the Regions panel (J)",
            most_px=REGION_PX,
        )
        self.team = StepBox("The team.", "Previous team", "Next team", most_px=TEAM_PX)
        self.rules = LinkLabel("No cohort is open")
        self._what: tuple[str, ...] = ()
        self.figure, self.selected = RichLabel(), ElidedLabel(NOTHING_SELECTED)
        self.notes = NotesButton(
            "Problems in the files: vanished, overlapping, missing. Click for the list.",
            self.notes_clicked.emit,
        )
        self._busy = QProgressBar()
        self._busy.setRange(0, 0)
        self._busy.setTextVisible(False)
        self._busy.setFixedSize(40, 8)
        self._busy.setVisible(False)
        self._patience = single_shot(PATIENCE_MS, self._busy.show, self)
        self.slide = SlideBar()
        self.keys = KeysButton(self, self.keys_clicked.emit)
        self.keys.setText(f"All keys   {KEY_LIST.text}")
        self.keys.hide()
        self._legend = legend
        places: tuple[QWidget, ...] = (self.region, self.team)
        if queue is not None:
            places += (queue, queue.limit)
        first = row_of(*places, Grow(self.rules), self._busy, self.figure, self.notes)
        first.setSpacing(8)
        second = row_of(Grow(self.selected)) if legend is None else row_of(legend)
        if legend is not None:
            second.addWidget(self.selected, 1)
            second.setSpacing(12)
        lay_out(self, first, second, self.slide, margins=(6, 1, 6, 1)).setSpacing(1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.show_places((), None, (), None)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Write the legend shorter where the selected object would not fit beside it."""
        super().resizeEvent(event)
        if self._legend is not None:
            self._legend.fit(self.width() - SELECTED_PX)

    def show_places(
        self, regions: Sequence[str], region: str | None, teams: Sequence[str], team: str | None
    ) -> None:
        """Offer regions and teams, and show which are looked at."""
        for box, names, name in ((self.region, regions, region), (self.team, teams, team)):
            box.show_names(names, name)
            box.setVisible(bool(names))
        self._what = tuple(name for name in (region, team) if name)

    def show_title(
        self, rules: Sequence[str], pq: float | None, note: str = "", *, hint: str = ""
    ) -> None:
        """Show how it is evaluated, most important first, the PQ, a note on that, and a tooltip."""
        tooltip = "\n".join(line for line in (hint, "Click for the settings.") if line)
        self.rules.set_text(" · ".join(part for part in (*rules, note) if part), tooltip=tooltip)
        figure = "" if pq is None else f"PQ {styles.ratio_text(pq)}"
        self.figure.set_rich(f"<b style='font-size: large'>{figure}</b>")

    def title(self) -> str:
        """Return region, team and rules in words."""
        return " · ".join((*self._what, self.rules.text()))

    def show_selected(self, facts: ObjectFacts | None) -> None:
        """Name one object and its outcome; its card has the figures."""
        self.has_message = False
        if facts is None:
            self.selected.set_text(NOTHING_SELECTED, tooltip=KEYS)
            return
        lines = [facts.explanation, *(f"{name}: {value}" for name, value in facts.figures())]
        self.selected.set_text(f"▶ {facts.title} · {facts.verdict}", tooltip="\n".join(lines))

    def show_message(self, text: str) -> None:
        """Show a message until another object is selected."""
        self.has_message = True
        self.selected.set_text(text, tooltip=KEYS)

    def show_notes(self, count: int) -> None:
        """Show how many oddities the files of this region have."""
        self.notes.show_count(count)

    def show_busy(self, busy: bool) -> None:
        """Show that something is being loaded, once it takes long enough to be noticed."""
        if busy:
            self._patience.start()
        else:
            self._patience.stop()
            self._busy.hide()


class TitlePresenter(Presenter[TitleStrip]):
    """Names the shown region and the selected object, and lists the findings in the files."""

    title = "Title"
    shows_outcomes = False  # it leaves them out itself

    def connections(self) -> Connections:
        """Listen to session, state, table and strip."""
        session, link, state = self.session, self.link, self.link.state
        return [
            (session.region_changed, self._show_region),
            (session.teams_came, self._show_region),
            (session.team_changed, self._show_title),
            (session.threshold_changed, self._show_headline),
            (session.edited, self._on_edited),
            (session.selection_changed, self.show_selected),
            (session.selected_again, self.show_selected),
            (link.edits_rested, self._on_rest),
            (link.panels.objects.listed_changed, self._show_headline),
            (state.events.others, self._show_headline),
            (state.events.is_blind, self._show_blind),
            (link.loader.busy_changed, self._show_busy),
            (link.loader.failed, self._show_title),
            (self.panel.notes_clicked, self._show_notes),
            (self.panel.rules.clicked, self._show_settings),
            (self.panel.region.chosen, self._on_region),
            (self.panel.region.stepped, self._step_region),
            (self.panel.team.chosen, session.set_team),
            (self.panel.team.stepped, self.step_team),
        ]

    def refresh(self) -> None:
        """Show region, team and headline."""
        self._show_title()

    def step_team(self, step: int) -> None:
        """Show the next (1) or previous (-1) team, round and round."""
        teams, team = self.session.cohort.team_names, self.session.team
        if team in teams and not self.link.state.is_blind:
            self.session.set_team(teams[(teams.index(team) + step) % len(teams)])

    def _show_settings(self) -> None:
        self.link.reveal(SettingsPresenter.title)

    def _on_region(self, name: str) -> None:
        self.link.request(region=name)

    def _step_region(self, step: int) -> None:
        regions = self.link.presenter(NavigatorPresenter)
        (regions.go_on if step > 0 else regions.go_back)()

    def show_selected(self, _changed: object = None) -> None:
        """Name the selected object in place of any message, or why there are no objects."""
        facts = self._facts()
        why = None if facts is not None else why_no_figures(self.session)
        if why is None:
            self.panel.show_selected(facts)
        else:
            self.panel.show_message(why)

    def _facts(self) -> ObjectFacts | None:
        """Return what may be shown about the selected object."""
        chosen = self.session.selection
        if chosen is None or self.link.state.is_blind:
            return None
        return facts_of(self.session, chosen.team, chosen.side, chosen.row)

    def _show_region(self, snapshot: RegionSnapshot) -> None:
        notes = region_notes(self.session, snapshot)
        self.panel.show_notes(len(notes))
        self.link.panels.notes.show_findings(snapshot.region.name, notes)
        self._show_title()
        self.show_selected()

    def _show_title(self, _changed: object = None) -> None:
        session, snapshot = self.session, self.session.snapshot
        is_blind = self.link.state.is_blind
        self.panel.show_places(
            [region.name for region in session.cohort.regions],
            None if snapshot is None else snapshot.region.name,
            () if is_blind else session.cohort.team_names,
            None if is_blind else session.team,
        )
        self._show_headline()

    def _show_headline(self, _changed: object = None) -> None:
        """Show the rules and the PQ, which also change while the region is edited."""
        session = self.session
        if self.link.state.is_blind and session.snapshot is not None:
            self.panel.show_title([BLIND], None)
            return
        shown = session.shown
        own = choices_text("pq", session.settings)
        self.panel.figure.setToolTip(f"{FIGURE_MEANINGS['pq']} Of this region and team.\n{own}")
        self.panel.show_title(
            title_parts(session, session.drawn, self.link.scene.listed),
            None if shown is None else shown.metrics.pq,
            "" if shown is None else absent_text(shown.counts),
            hint=f"{' · '.join(rules(session.settings))} ({session.settings.ambiguous}).",
        )

    def _on_edited(self, edit: EditedEvaluation) -> None:
        if edit.team == self.session.team:
            self._show_headline()

    def _on_rest(self) -> None:
        if self.session.selection is not None and not self.panel.has_message:
            self.panel.show_selected(self._facts())

    def _show_blind(self, is_blind: bool) -> None:
        if is_blind:
            self.link.panels.notes.hide()
        self._show_title()
        self.panel.show_selected(self._facts())

    def _show_busy(self, busy: bool) -> None:
        self.panel.show_busy(busy)
        if busy and self.session.snapshot is None:
            self.panel.show_message(LOADING)

    def _show_notes(self) -> None:
        if self.link.state.is_blind:  # they name the teams whose files they are about
            self.link.say(BLIND)
        else:
            show_in_front(self.link.panels.notes)


class SlidePresenter(Presenter[SlideBar]):
    """Shows a slide: its squares and objects, how far it is, and why panels are still empty."""

    title = "Slide"
    shows_outcomes = False

    def connections(self) -> Connections:
        """Listen to session, loader, layers and bar."""
        session, link = self.session, self.link
        return [
            (session.region_changed, self.refresh),
            (session.team_changed, self._on_team),
            (link.loader.busy_changed, self._on_busy),
            (link.loader.progressed, self._show_progress),
            (link.slides.scale_changed, self._show_scale),
            (self.panel.stop_wanted, link.loader.stop),
            (self.panel.evaluate_wanted, link.request),
        ]

    def refresh(self, _changed: object = None) -> None:
        """Show the current team's result on a slide, or how far its evaluation is."""
        session, bar, slides = self.session, self.panel, self.link.slides
        snapshot, team = session.snapshot, session.team
        if snapshot is None or not snapshot.is_slide:
            bar.show_nothing()
            self.say_when_empty(why_no_figures(session))
            return
        evaluation = snapshot.slide(team)
        if evaluation is not None and team is not None:
            slides.show(snapshot, evaluation, session.cohort.scheme, team)
            bar.show_done()
            return
        slides.wait()
        bar.show_words("Evaluated tile by tile:")
        if team in snapshot.pending or self.link.loader.is_busy:
            bar.show_waiting("opening")
            self.say_when_empty(slide_texts.waiting("opening", 0.0))
        elif team is None or team in snapshot.tried:
            bar.show_done()
            is_kept = snapshot.settings.overlaps is Overlaps.KEEP
            self.say_when_empty(slide_texts.OVERLAPS if is_kept else None)
        else:
            bar.show_stopped()
            self.say_when_empty(slide_texts.STOPPED)

    def _on_team(self, _name: str) -> None:
        self.refresh()
        snapshot = self.session.snapshot
        if snapshot is not None and snapshot.is_slide and self.session.shown is None:
            self.link.request()  # of a slide only the team that is looked at is evaluated

    def _on_busy(self, busy: bool) -> None:
        if not busy:
            self.refresh()
        elif self.session.snapshot is None:
            self.say_when_empty(LOADING)

    def _show_progress(self, share: float, saying: str) -> None:
        if self.session.snapshot is not None and self.session.snapshot.is_slide:
            self.panel.show_waiting(saying, share)
            self.say_when_empty(slide_texts.waiting(saying, share))

    def _show_scale(self, words: str) -> None:
        """Explain the squares; at a zoom without squares, mention that there are some."""
        self.panel.show_words(words or NEAR_A_SLIDE, SCALE_MEANING if words else "")

    def say_when_empty(self, words: str | None) -> None:
        """Show why there are no figures and no objects; None if the region lacks them."""
        words = words or why_nothing(self.session)
        self.link.panels.metrics.say_when_empty(words)
        self.link.panels.objects.say_when_empty(words)
