"""The review: a verdict per object, the progress, and the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from psygnal import Signal, SignalInstance
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QComboBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.nuclei.display.glossary import VERDICT_MEANINGS, VERDICT_WORDS
from napari_panoptic.nuclei.display.styles import UNDEFINED, count_text, ratio_text
from napari_panoptic.nuclei.metrics import METRIC_TEXTS
from napari_panoptic.nuclei.values.vocabulary import Verdict
from napari_panoptic.review.judged import VERDICTS
from napari_panoptic.review.verdicts import ReviewRecord, Share
from napari_panoptic.viewer.kit.keys import key_text
from napari_panoptic.viewer.kit.shown import PlainLabel, shown
from napari_panoptic.viewer.kit.widgets import (
    Cell,
    ElidedLabel,
    FigureTable,
    heading,
    opens_menu,
    separator,
)

VERDICT_KEYS: Mapping[Verdict, str] = {
    verdict: f"Alt-{number}" for number, verdict in enumerate(VERDICTS, start=1)
}
UNDO_KEY = f"Alt-{len(VERDICTS) + 1}"
NOTHING_TO_JUDGE = (
    "Nothing to judge here: this region has no prediction of this team, or no annotation. Choose "
    "another region or team."
)
NO_OBJECT = "Select an object, or press N for the next failure."
WHO = "Who reviews? Verdicts are kept under this name; others do not see them."
NAME_NEEDED = "Enter the reviewer's name above first: verdicts are kept under it."
LONGEST_NAME = 40
"""Letters of a name on a button."""
WHAT_IF = (
    "Figures if every verdict “prediction right” were the truth: such FNs are removed, such FPs "
    "become TPs with an IoU of 1 (so SQ is an upper bound), such misclassified pairs become TPs."
)


@dataclass(frozen=True)
class BeforeAfter:
    """Figures as they are, and as they would be."""

    title: str
    before: Mapping[str, float]
    after: Mapping[str, float]


class _Line(QLineEdit):
    """A text field that leaves the keys of verdicts to the desk."""

    escaped = Signal()

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Hand keys with Alt and a digit on; on some systems they would write something."""
        if event is not None and is_verdict_key(event):
            event.ignore()
        elif event is not None and event.key() == Qt.Key.Key_Escape:
            event.accept()
            self.escaped.emit()
        else:
            super().keyPressEvent(event)


def is_verdict_key(event: QKeyEvent) -> bool:
    """Return whether a key is one of those of the verdicts."""
    digits = range(Qt.Key.Key_1, Qt.Key.Key_1 + len(VERDICTS) + 1)
    return event.modifiers() == Qt.KeyboardModifier.AltModifier and event.key() in digits


class ReviewPanel(QScrollArea):
    """The widget of the review; it shows and tells, and decides nothing."""

    named = Signal(str)
    verdict_given = Signal(Verdict)
    details_changed = Signal()
    details_typed = Signal()
    typing_ended = Signal()  # Enter or Esc in a field
    undo_wanted = Signal()
    withdrawal_wanted = Signal()
    next_wanted = Signal()
    goes_on_changed = Signal(bool)
    place_wanted = Signal()
    suggestion_wanted = Signal()
    retry_wanted = Signal()
    history_wanted = Signal()
    comparison_wanted = Signal()
    csv_wanted = Signal(bool)
    geojson_wanted = Signal()
    stop_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.name = _Line()
        self.same = QPushButton()
        self.note, self._tag_line = _Line(), _Line()
        self.tag = QComboBox()
        self.buttons: dict[Verdict, QPushButton] = {}
        self.undo = QPushButton(f"undo   {key_text(UNDO_KEY)}")
        self.withdrawal = QPushButton("withdraw")
        self.following = QPushButton("next open")
        self.history = QPushButton("history…")
        self.compare = QPushButton("compare reviewers…")
        self.goes_on = QCheckBox("next after a verdict")
        self.place = QPushButton()
        self.suggestion = QPushButton()
        self.retry = QPushButton("try again")
        self.region_progress, self.cohort_progress = QProgressBar(), QProgressBar()
        self.stop = QPushButton("stop")
        self._object = ElidedLabel(NO_OBJECT)
        self._state = PlainLabel()
        self._draft = PlainLabel("draft")
        self._where = ElidedLabel("", mode=Qt.TextElideMode.ElideMiddle)
        self._problem = QWidget()
        self._problem_text = PlainLabel()
        self._figures = FigureTable()
        self._export = QToolButton()
        self._shown: tuple[str, str] = ("", "")
        self._previous = ""
        self._fill_in()
        self._lay_out()
        self._wire()
        self.show_object(None, None, hint=NOTHING_TO_JUDGE)
        self.show_progress(None, None, busy=None)
        self.show_figures([])

    # What is shown.

    def show_reviewer(self, name: str, *, previous: str = "") -> None:
        """Show who reviews; without a name, ask for one and offer the previous one."""
        if not self.name.hasFocus():
            self.name.setText(name)
        self.name.setPlaceholderText("your name")
        self._who.setVisible(not name)
        self._previous = previous
        self.same.setVisible(bool(previous) and not name)
        short = previous if len(previous) <= LONGEST_NAME else f"{previous[:LONGEST_NAME]}…"
        self.same.setText(shown(f"Continue as {short}").replace("&", "&&"))
        self.same.setToolTip(shown(f"Review as {previous}, who reviewed last."))
        for verdict, button in self.buttons.items():
            key = key_text(VERDICT_KEYS[verdict])
            button.setToolTip(f"{VERDICT_MEANINGS[verdict]} ({key})" if name else NAME_NEEDED)

    def show_object(
        self,
        title: str | None,
        record: ReviewRecord | None,
        *,
        hint: str | None = None,
        fresh: bool = True,
        draft: tuple[str, str] | None = None,
    ) -> None:
        """Show the selected object and its verdict.

        Parameters
        ----------
        title
            What the object is called; None without a selection.
        record
            The verdict on it, or None.
        hint
            The text without a selection; how to make one if None.
        fresh
            Whether it is another object than before: tag and note are then its own.
        draft
            Tag and note that were typed but are not kept with a verdict.
        """
        self._object.set_text(title or hint or NO_OBJECT)
        for verdict, button in self.buttons.items():
            with QSignalBlocker(button):
                button.setChecked(record is not None and record.verdict is verdict)
            button.setEnabled(title is not None)
        self.withdrawal.setEnabled(record is not None)
        self.history.setEnabled(title is not None)
        kept = ("", "") if record is None else (record.tag, record.note)
        # What is being typed stays: it is the draft.
        if fresh or kept != self._shown:
            self._shown = kept
            tag, note = draft or kept
            with QSignalBlocker(self.tag):
                self.tag.setCurrentText(tag)
            self.note.setText(note)
        self._show_draft()

    def show_state(self, text: str, *, saved: bool | None) -> None:
        """Show the state of the last verdict; `saved` only if it is on disk."""
        sign = {True: "✓ ", False: "✗ ", None: ""}[saved]
        self._state.setText(f"{sign}{text}")
        self._state.setVisible(bool(text))

    def show_place(self, path: Path | None, *, is_there: bool) -> None:
        """Show where verdicts are kept."""
        if path is None:
            self._where.set_text("")
            return
        verb = "kept in" if is_there else "will be kept in"
        self._where.set_text(f"{verb} {path.parent.name}/{path.name}", tooltip=str(path))

    def show_problem(self, text: str, *, suggestion: Path | None = None) -> None:
        """Show why the review file cannot be used, and what to do; nothing if it can."""
        self._problem.setVisible(bool(text))
        self._problem_text.setText(text[:1].upper() + text[1:])
        self.suggestion.setVisible(suggestion is not None)
        self.suggestion.setToolTip(
            "" if suggestion is None else shown(f"Keep verdicts in {suggestion}")
        )

    def show_progress(
        self,
        region: Share | None,
        cohort: Share | None,
        *,
        busy: tuple[int, int] | None,
        can_stop: bool = False,
    ) -> None:
        """Show how many failures have a verdict; `busy`: regions counted of those to count."""
        for bar, name, share in (
            (self.region_progress, "region", region),
            (self.cohort_progress, "cohort", cohort),
        ):
            # A bar whose value is set paints the window at once; this lets it wait its turn.
            bar.setUpdatesEnabled(False)
            bar.setRange(0, max(share.total if share else 0, 1))
            bar.setValue(share.done if share else 0)
            text = UNDEFINED if share is None else _share_text(share)
            if name == "cohort" and busy is not None:
                text += f" (counting {busy[0]} of {busy[1]} regions)"
            bar.setFormat(f"{name}: {text}")
            bar.setUpdatesEnabled(True)
        self.stop.setVisible(can_stop)

    def show_figures(self, units: Sequence[BeforeAfter]) -> None:
        """Show what the figures would be if the verdicts were right."""
        header = [Cell("", WHAT_IF)]
        for unit in units:
            header += [
                Cell(unit.title, f"The {unit.title} as it is."),
                Cell("→", f"The {unit.title} if the verdicts were right. {WHAT_IF}"),
                Cell("±", "The difference."),
            ]
        names = list(units[0].before) if units else []
        rows = []
        for name in names:
            text = METRIC_TEXTS[name]
            row = [Cell(text.caption, text.meaning)]
            for unit in units:
                before, after = unit.before[name], unit.after[name]
                row += [
                    Cell(ratio_text(before), _undefined(before)),
                    Cell(ratio_text(after), _undefined(after), bold=True),
                    Cell(difference_text(before, after)),
                ]
            rows.append(row)
        self._figures.fill(header, rows)
        self._figures.setVisible(bool(units))
        self._figures_hint.setVisible(not units)

    # Texts, for tests and screen readers.

    def state_text(self) -> str:
        """Return the text about the last verdict."""
        return self._state.text()

    def object_text(self) -> str:
        """Return the text about the selected object."""
        return self._object.text()

    def place_text(self) -> str:
        """Return the text about the place of the verdicts."""
        return self._where.text()

    def problem_text(self) -> str:
        """Return why the file cannot be used; empty if it can."""
        return "" if self._problem.isHidden() else self._problem_text.text()

    def figures(self) -> list[list[str]]:
        """Return the figures before and after as they are shown."""
        return self._figures.texts()

    @property
    def has_draft(self) -> bool:
        """Whether tag and note differ from those that are kept with the verdict."""
        return self.details() != self._shown

    def details(self) -> tuple[str, str]:
        """Return tag and note as they stand in the fields."""
        return self.tag.currentText().strip(), self.note.text().strip()

    def finish_name(self) -> None:
        """Take a name that was typed as if Enter had been pressed after it."""
        if self.name.isModified():
            self._on_name()

    def ask_for_name(self) -> None:
        """Put the cursor where the reviewer's name is to be entered."""
        self.verticalScrollBar().setValue(0)  # type: ignore[union-attr]
        self.name.setFocus()

    # How it is made.

    def _fill_in(self) -> None:
        for verdict in VERDICTS:
            button = QPushButton(f"{VERDICT_WORDS[verdict]}   {key_text(VERDICT_KEYS[verdict])}")
            button.setCheckable(True)
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            button.setStyleSheet("QPushButton:checked { font-weight: bold; }")
            self.buttons[verdict] = button
        self.tag.setEditable(True)
        self.tag.setLineEdit(self._tag_line)
        self.tag.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.tag.setToolTip("Your own keyword for sorting, kept with the verdict.")
        self.tag.setCurrentText("")
        self.note.setToolTip("A remark, kept with the verdict. Enter saves it.")
        self.note.setPlaceholderText("note")
        self._draft.setToolTip(
            "Tag and note are not kept with a verdict yet: give one, or press Enter to change the "
            "one that this object has."
        )
        self.name.setToolTip("Who reviews. Verdicts are kept under this name. Enter to change it.")
        self.undo.setToolTip(
            "Withdraw your last verdict of this window; the previous one counts again."
        )
        self.withdrawal.setToolTip(
            "Withdraw your verdict on the selected object, whenever it was given; the previous "
            "one counts again."
        )
        self.following.setToolTip("The next failure without a verdict, in the order of the table.")
        self.history.setToolTip("Every verdict that you ever gave on this object.")
        self.compare.setToolTip(
            "Two reviewers' agreement and the objects on which they differ. Shows you the "
            "other's verdicts: look when both are done."
        )
        self.goes_on.setToolTip("Whether a verdict leads to the next failure without one.")
        self.place.setText("other place…")
        self.place.setToolTip("Choose another file for the verdicts, new or existing.")
        self.suggestion.setText("use my own folder")
        self.retry.setToolTip("Try the review file again.")
        self.stop.setToolTip("Stop counting the verdicts in the other regions.")
        for bar, what in ((self.region_progress, "region"), (self.cohort_progress, "cohort")):
            bar.setToolTip(
                f"Failures of this {what} and team that have your verdict. A misclassified pair "
                "counts once."
            )
        menu = QMenu(self._export)
        for text, action in self._exports():
            entry = menu.addAction(text)
            if entry is not None:
                entry.triggered.connect(lambda _=False, a=action: a())
        self._export.setText("export")
        self._export.setToolTip("Write verdicts as CSV, or this region for QuPath.")
        self._export.setMenu(menu)
        opens_menu(self._export)

    def _exports(self) -> list[tuple[str, Callable[[], None]]]:
        return [
            ("My verdicts as CSV…", lambda: self.csv_wanted.emit(False)),
            ("All reviewers' verdicts as CSV…", lambda: self.csv_wanted.emit(True)),
            ("This region as GeoJSON for QuPath…", lambda: self.geojson_wanted.emit()),
        ]

    def _lay_out(self) -> None:
        self._who = PlainLabel(WHO)
        self._who.setWordWrap(True)
        self._figures_hint = PlainLabel(
            "Shows how the verdicts “prediction right” would change the figures."
        )
        self._figures_hint.setWordWrap(True)
        self._state.setWordWrap(True)
        self._problem_text.setWordWrap(True)
        problem = QVBoxLayout(self._problem)
        problem.setContentsMargins(0, 0, 0, 0)
        problem.addWidget(self._problem_text)
        problem.addLayout(_row(self.suggestion, self.retry, stretch=True))
        self._problem.setVisible(False)
        verdicts = QGridLayout()
        verdicts.setSpacing(3)
        for number, verdict in enumerate(VERDICTS):
            verdicts.addWidget(self.buttons[verdict], number // 2, number % 2)
        body = QWidget()
        layout = QVBoxLayout(body)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.setSpacing(4)
        layout.addWidget(self._who)
        layout.addLayout(_row(PlainLabel("Reviewer"), (self.name, 1), self.same))
        layout.addWidget(self._problem)
        layout.addWidget(self._object)
        layout.addLayout(verdicts)
        layout.addLayout(_row(PlainLabel("Tag"), (self.tag, 1), (self.note, 2), self._draft))
        layout.addWidget(self._state)
        layout.addLayout(
            _row(self.undo, self.withdrawal, self.following, self.history, stretch=True)
        )
        layout.addWidget(self.goes_on)
        layout.addWidget(self.region_progress)
        layout.addLayout(_row((self.cohort_progress, 1), self.stop))
        layout.addWidget(separator())
        layout.addWidget(heading("If the verdicts were right", WHAT_IF))
        layout.addWidget(self._figures_hint)
        layout.addWidget(self._figures)
        layout.addWidget(separator())
        layout.addLayout(_row(self.compare, self._export, stretch=True))
        layout.addLayout(_row((self._where, 1), self.place))
        layout.addStretch(1)
        self.setWidget(body)

    def _wire(self) -> None:
        self.name.editingFinished.connect(self._on_name)
        for verdict, button in self.buttons.items():
            button.clicked.connect(lambda _=False, v=verdict: self.verdict_given.emit(v))
        for field in (self.note, self._tag_line):
            field.returnPressed.connect(self._on_details)
            field.textEdited.connect(lambda _text: self._on_typed())
        # Enter and Esc leave the field: N and its like would otherwise be written behind the text.
        for line in (self.name, self.note, self._tag_line):
            line.returnPressed.connect(lambda: self.typing_ended.emit())
            line.escaped.connect(self.typing_ended.emit)
        self.same.clicked.connect(lambda _=False: self._on_same())
        pushed: tuple[tuple[QAbstractButton, SignalInstance], ...] = (
            (self.undo, self.undo_wanted),
            (self.withdrawal, self.withdrawal_wanted),
            (self.following, self.next_wanted),
            (self.history, self.history_wanted),
            (self.compare, self.comparison_wanted),
            (self.place, self.place_wanted),
            (self.suggestion, self.suggestion_wanted),
            (self.retry, self.retry_wanted),
            (self.stop, self.stop_wanted),
        )
        for pushed_button, signal in pushed:
            pushed_button.clicked.connect(lambda _=False, s=signal: s.emit())
        self.goes_on.toggled.connect(lambda on: self.goes_on_changed.emit(on))

    def _on_name(self) -> None:
        self.name.setModified(False)
        self.named.emit(self.name.text().strip())

    def _on_same(self) -> None:
        self.name.setText(self._previous)
        self.named.emit(self._previous)
        self.typing_ended.emit()

    def _on_typed(self) -> None:
        self._show_draft()
        self.details_typed.emit()

    def _show_draft(self) -> None:
        self._draft.setVisible(self.has_draft)

    def _on_details(self) -> None:
        if self.details() != self._shown:
            self.details_changed.emit()


def difference_text(before: float, after: float) -> str:
    """Write a difference with its sign; an en dash if undefined."""
    if math.isnan(before) or math.isnan(after):
        return UNDEFINED
    text = f"{after - before:+.3f}".replace("-", "−")
    return text[1:] if text[1:] == "0.000" else text


def _undefined(value: float) -> str:
    return "Undefined: there is nothing to compute it from." if math.isnan(value) else ""


def _share_text(share: Share) -> str:
    return f"{count_text(share.done)} of {count_text(share.total)} failures judged"


def _row(*widgets: QWidget | tuple[QWidget, int], stretch: bool = False) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(4)
    for entry in widgets:
        widget, factor = entry if isinstance(entry, tuple) else (entry, 0)
        row.addWidget(widget, factor)
    if stretch:
        row.addStretch(1)
    return row
