"""The list of verdicts in the review panel: those on the selected object, and the last ones."""

from __future__ import annotations

from collections.abc import Sequence

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QAbstractItemView, QTreeWidget, QTreeWidgetItem

from napari_panoptic.display.glossary import VERDICT_WORDS
from napari_panoptic.review.verdicts import HistoryEntry, ReviewRecord
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import is_desk_key, swatch_icon
from napari_panoptic.viewer.panels.review.inputs import VERDICT_COLOURS

LAST_COUNT = 20
"""How many of the last verdicts are listed."""
THIS_OBJECT, LAST_VERDICTS = "This object", "Last verdicts"
NO_HISTORY = "No verdict yet"
_LOWEST_PX = 96


def object_name(record: ReviewRecord) -> str:
    """Name the object of a verdict: side or team, id and class."""
    name = "reference" if record.side is Side.REFERENCE else record.team
    return f"{name} {record.object_id} · {record.class_name}"


def verdict_text(records: Sequence[ReviewRecord]) -> str:
    """Describe verdicts that were given together, and their objects."""
    verdicts = {VERDICT_WORDS[record.verdict] for record in records}
    words = verdicts.pop() if len(verdicts) == 1 else "verdicts"
    if len(records) > 1:
        return f"{words} on {len(records)} objects"
    return f"{words} on {object_name(records[0])}"


class HistoryList(QTreeWidget):
    """Verdicts on the selected object, and the last ones; a click goes to the object."""

    record_chosen = Signal(ReviewRecord)

    def __init__(self) -> None:
        super().__init__()
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setIndentation(12)
        self.setUniformRowHeights(True)
        self.setItemsExpandable(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumHeight(_LOWEST_PX)
        self.setToolTip("Click a verdict to go to its object.")
        self._groups = {title: QTreeWidgetItem([title]) for title in (THIS_OBJECT, LAST_VERDICTS)}
        for group in self._groups.values():
            self.addTopLevelItem(group)
            group.setExpanded(True)
            group.setFlags(Qt.ItemFlag.ItemIsEnabled)
            font = group.font(0)
            font.setBold(True)
            group.setFont(0, font)
        self._records: dict[str, list[ReviewRecord]] = {}
        self.itemClicked.connect(self._on_item)
        self.itemActivated.connect(self._on_item)

    def show_object(self, entries: Sequence[HistoryEntry]) -> None:
        """List every verdict on the selected object, newest first."""
        self._fill(THIS_OBJECT, [(entry.record, _entry_text(entry)) for entry in reversed(entries)])

    def show_last(self, records: Sequence[ReviewRecord]) -> None:
        """List the newest verdicts in the cohort, newest first."""
        self._fill(LAST_VERDICTS, [(record, _last_text(record)) for record in records])

    def lines(self, title: str) -> list[str]:
        """Return the lines of a group."""
        group = self._groups[title]
        items = (group.child(number) for number in range(group.childCount()))
        return [item.text(0) for item in items if item is not None]

    def choose(self, title: str, number: int) -> None:
        """Choose a line of a group, as a click does."""
        item = self._groups[title].child(number)
        if item is not None:
            self._on_item(item)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Leave letters to the desk instead of searching the list."""
        if event is not None and is_desk_key(event):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _fill(self, title: str, lines: Sequence[tuple[ReviewRecord, str]]) -> None:
        group = self._groups[title]
        group.takeChildren()
        self._records[title] = [record for record, _ in lines]
        for record, text in lines:
            item = QTreeWidgetItem([shown(text)])
            item.setIcon(0, swatch_icon(VERDICT_COLOURS[record.verdict]))
            item.setToolTip(0, shown(text))
            group.addChild(item)
        if not lines:
            group.addChild(QTreeWidgetItem([NO_HISTORY]))

    def _on_item(self, item: QTreeWidgetItem, _column: int = 0) -> None:
        if (group := item.parent()) is not None:
            row, records = group.indexOfChild(item), self._records[group.text(0)]
            if row < len(records):
                self.record_chosen.emit(records[row])


def _entry_text(entry: HistoryEntry) -> str:
    record = entry.record
    state = "in effect" if entry.standing else "replaced"
    if entry.withdrawn_at is not None:
        state = f"undone at {entry.withdrawn_at.astimezone():%H:%M:%S}"
    when = f"{record.given_at.astimezone():%Y-%m-%d %H:%M}"
    return _joined(when, VERDICT_WORDS[record.verdict], state, record.tag, record.note)


def _last_text(record: ReviewRecord) -> str:
    when = f"{record.given_at.astimezone():%H:%M}"
    words = VERDICT_WORDS[record.verdict]
    return _joined(when, words, object_name(record), record.region, record.tag, record.note)


def _joined(*parts: str) -> str:
    return " · ".join(" ".join(part.split()) for part in parts if part)
