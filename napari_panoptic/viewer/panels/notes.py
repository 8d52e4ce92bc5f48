"""Findings in the files: vanished, overlapping, missing, unknown."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtCore import QModelIndex, QRect, QSize, Qt
from qtpy.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted
from napari_panoptic.display.glossary import FINDING_WORDS
from napari_panoptic.display.styles import count_text
from napari_panoptic.viewer.kit.layouts import DIALOG_MARGINS, Grow, lay_out
from napari_panoptic.viewer.kit.shown import WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import button_box

_HEADER = ("What", "How many", "Team", "Details")
_OF_NEITHER = (
    FindingKind.MISSING,
    FindingKind.NO_MPP,
    FindingKind.EXTRA,
    FindingKind.FALLBACK,
    FindingKind.OUTSIDE_FOLDER,
    FindingKind.BROKEN_PLUGIN,
)
"""Without a team these are about an image or a folder, not about the annotation."""
_MARGIN_PX = 3
"""Around a text in its cell."""
_DETAILS = _HEADER.index("Details")
NOTHING = "No problems were found in the files of this region."
MOST_IN_TOOLTIP = 12
"""The most findings that a tooltip lists."""


def notes_in_tooltip(findings: Sequence[Finding]) -> tuple[str, str]:
    """Return a sentence that counts findings, and the tooltip that lists them."""
    if not findings:
        return "", ""
    lines = [": ".join(filter(None, (at.region, at.message))) for at in findings]
    if len(lines) > MOST_IN_TOOLTIP:
        lines[MOST_IN_TOOLTIP:] = ["…"]
    found = counted(len(findings), "note", write=count_text)
    return f"{found} on files and values. Rest the mouse here to read.", "\n".join(lines)


class _Wrapped(QStyledItemDelegate):
    """Makes rows as high as their texts need in the width of the column: trees make them one line.

    Parameters
    ----------
    tree
        The tree that it is for.
    """

    def __init__(self, tree: QTreeWidget) -> None:
        super().__init__(tree)
        self._tree = tree

    def sizeHint(  # noqa: N802
        self, option: QStyleOptionViewItem, index: QModelIndex
    ) -> QSize:
        """Return the size of a text in as many lines as it needs."""
        hint = super().sizeHint(option, index)
        width = self._tree.columnWidth(index.column()) - 2 * _MARGIN_PX
        text = str(index.data() or "")
        room = QRect(0, 0, max(width, 1), 0)
        needed = option.fontMetrics.boundingRect(room, Qt.TextFlag.TextWordWrap, text)
        return QSize(hint.width(), max(hint.height(), needed.height() + 2 * _MARGIN_PX))


class NotesDialog(QDialog):
    """A list of findings; stays open beside the image.

    Parameters
    ----------
    parent
        The window that it belongs to.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Notes on the files")
        self.intro = WrappedLabel()
        self._list = QTreeWidget()
        self._list.setHeaderLabels(list(_HEADER))
        self._list.setRootIsDecorated(False)
        self._list.setWordWrap(True)
        self._list.setTextElideMode(Qt.TextElideMode.ElideNone)
        self._list.setItemDelegateForColumn(_DETAILS, _Wrapped(self._list))
        header = self._list.header()
        if header is not None:
            header.sectionResized.connect(lambda *_: self._list.scheduleDelayedItemsLayout())
        buttons = button_box(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        lay_out(self, self.intro, Grow(self._list), buttons, margins=DIALOG_MARGINS)
        self.resize(760, 320)

    def lines(self) -> list[str]:
        """Return the details listed."""
        return [item.text(_DETAILS) for item in self._items()]

    def words(self) -> list[tuple[str, str]]:
        """Return the subject of each line, and its owner."""
        return [(item.text(0), item.text(2)) for item in self._items()]

    def _items(self) -> list[QTreeWidgetItem]:
        items = map(self._list.topLevelItem, range(self._list.topLevelItemCount()))
        return [item for item in items if item is not None]

    def show_findings(self, place: str, findings: Sequence[Finding]) -> None:
        """List the findings at a place."""
        self.intro.setText(
            f"{place}: {counted(len(findings), 'note')}. Nothing was dropped silently."
            if findings
            else NOTHING
        )
        self._list.clear()
        for finding in findings:
            whose = finding.team or ("" if finding.kind in _OF_NEITHER else "annotation")
            count = count_text(finding.count)
            texts = [FINDING_WORDS[finding.kind], count, shown(whose), shown(finding.message)]
            item = QTreeWidgetItem(texts)
            item.setToolTip(_DETAILS, shown(str(finding.path or finding.message)))
            self._list.addTopLevelItem(item)
        for column in range(_DETAILS):
            self._list.resizeColumnToContents(column)
