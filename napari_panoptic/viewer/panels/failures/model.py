"""The items of the gallery: headings of sections, and the crops under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QAbstractListModel, QModelIndex, Qt

from napari_panoptic.display import styles
from napari_panoptic.display.describe import ObjectFacts, hover_html
from napari_panoptic.display.failure_sections import FailureSection, GroupBy
from napari_panoptic.display.object_queue import ListedQueue, QueueGap
from napari_panoptic.explain.failures import CohortFailures, FailureName
from napari_panoptic.nuclei.outcomes import NO_ID
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Side
from napari_panoptic.viewer.kit.shown import shown


@dataclass(frozen=True)
class Caption:
    """The text below a crop."""

    #: Status and class; the first line.
    outcome: str
    #: The IoU, which is never cut; begins the second line.
    figure: str
    #: Where it is; ends the second line, empty where that is known.
    region: str
    #: Colour of the swatch before the first line.
    colour: Rgb

    @property
    def text(self) -> str:
        """All of it in one line."""
        return " · ".join(filter(None, (self.outcome, self.figure, self.region)))


class FailureModel(QAbstractListModel):
    """Headings and failures, one item each; failures of closed sections are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = CohortFailures()
        self._sections: tuple[FailureSection, ...] = ()
        self._by = GroupBy.CAUSE
        self._is_one_region = True
        self._closed: set[str] = set()
        # Row of the failure of each item; headings: -1 - position of the section.
        self._items: NDArray[np.intp] = np.zeros(0, np.intp)

    def show(
        self, failures: CohortFailures, sections: Sequence[FailureSection], by: GroupBy
    ) -> None:
        """Show other failures; sections stay closed as long as they are grouped alike."""
        self.beginResetModel()
        if by is not self._by:
            self._closed = set()
        self.failures, self._sections, self._by = failures, tuple(sections), by
        self._is_one_region = len({block.region for block in failures.blocks}) < 2
        self._arrange()
        self.endResetModel()

    def toggle(self, item: int) -> None:
        """Close or open the section of a heading."""
        title = self.section(item).title
        self.set_closed(self._closed ^ {title})

    def set_closed(self, titles: set[str]) -> None:
        """Close these sections, and open all others."""
        self.beginResetModel()
        self._closed = titles
        self._arrange()
        self.endResetModel()

    @property
    def titles(self) -> set[str]:
        """The headings."""
        return {section.title for section in self._sections}

    @property
    def rows(self) -> NDArray[np.intp]:
        """Rows of the failures that have an item, in the order of the gallery."""
        found: NDArray[np.intp] = self._items[self._items >= 0]
        return found

    @property
    def n_failures(self) -> int:
        """The number of failures, also of closed sections."""
        return sum(len(section.rows) for section in self._sections)

    @property
    def all_rows(self) -> NDArray[np.intp]:
        """Rows of all failures, also of closed sections."""
        parts = [section.rows for section in self._sections]
        return np.concatenate([np.zeros(0, np.intp), *parts])

    @property
    def headings(self) -> frozenset[int]:
        """The items that are headings."""
        return frozenset(np.flatnonzero(self._items < 0).tolist())

    def is_heading(self, item: int) -> bool:
        """Return whether an item is a heading."""
        return bool(self._items[item] < 0)

    def is_closed(self, item: int) -> bool:
        """Return whether the section of a heading is closed."""
        return self.section(item).title in self._closed

    def section(self, item: int) -> FailureSection:
        """Return the section of a heading."""
        number = -1 - int(self._items[item])
        return self._sections[number]

    def row(self, item: int) -> int:
        """Return the row of the failure of an item."""
        return int(self._items[item])

    def name(self, item: int) -> FailureName:
        """Return what identifies the failure of an item."""
        return self.failures.name(self.row(item))

    def item_of(self, row: int | None) -> int | None:
        """Return the item of a failure; None if it has none."""
        if row is None:
            return None
        found = np.flatnonzero(self._items == row)
        return int(found[0]) if len(found) else None

    def next_crop(self, step: int, item: int | None = None) -> int | None:
        """Return the item of the next (1) or previous (-1) crop, past headings.

        Without an item, it is the first or the last crop of all.
        """
        standing = None if item is None else QueueGap.at(item)
        queue = ListedQueue(range(self.rowCount()))
        return queue.step(step, standing, lambda at: not self.is_heading(at))

    def heading_text(self, item: int) -> str:
        """Return the title of a section and the number of its failures."""
        section = self.section(item)
        return f"{section.title}  {styles.count_text(len(section.rows))}"

    def caption(self, row: int) -> Caption:
        """Return the text below the crop of a failure."""
        columns = self.failures.columns
        status = STATUSES[int(columns["status"][row])]
        names: Sequence[str] = ("", *self.failures.class_names)
        class_name = names[int(columns["class"][row])]
        partner = names[int(columns["partner_class"][row])]
        word = styles.SHORT_STATUS_WORDS[status]
        iou = styles.ratio_text(float(columns["iou"][row]))
        is_elsewhere = self._by is not GroupBy.REGION and not self._is_one_region
        is_pair = partner not in ("", class_name)
        return Caption(
            outcome=f"{class_name} → {partner}" if is_pair else f"{word} {class_name}",
            figure=iou if is_elsewhere else f"IoU {iou}",
            region=self.failures.place(row).region if is_elsewhere else "",
            colour=styles.STATUS_COLOURS[status],
        )

    def rowCount(self, parent: QModelIndex | None = None) -> int:  # noqa: N802
        """Count the items."""
        return 0 if parent is not None and parent.isValid() else len(self._items)

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        """Let crops be selected, and headings only be clicked."""
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        if self.is_heading(index.row()):
            return Qt.ItemFlag.ItemIsEnabled
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the text and the tooltip of an item."""
        item = index.row()
        if role == Qt.ItemDataRole.DisplayRole:
            if self.is_heading(item):
                return shown(self.heading_text(item))
            return shown(self.caption(self.row(item)).text)
        if role == Qt.ItemDataRole.ToolTipRole:
            if self.is_heading(item):
                return shown(self.section(item).meaning) or None
            return _tooltip(self.failures, self.row(item))
        return None

    def _arrange(self) -> None:
        parts: list[NDArray[np.intp]] = [np.zeros(0, np.intp)]
        for number, section in enumerate(self._sections):
            parts.append(np.array([-1 - number], np.intp))
            if section.title not in self._closed:
                parts.append(section.rows)
        self._items = np.concatenate(parts)


def _tooltip(failures: CohortFailures, row: int) -> str:
    """Return the tooltip of a failure."""
    columns, block, side = failures.columns, failures.place(row), failures.side(row)
    names = ("", *failures.class_names)
    partner_id = int(columns["partner_id"][row])
    hausdorff = float(columns["hausdorff_px"][row])
    facts = ObjectFacts(
        side=side,
        side_name="reference" if side is Side.REFERENCE else block.team,
        id=int(columns["id"][row]),
        class_name=names[int(columns["class"][row])],
        status=STATUSES[int(columns["status"][row])],
        cause=CAUSES[int(columns["cause"][row])],
        partner_id=None if partner_id == NO_ID else partner_id,
        partner_class=names[int(columns["partner_class"][row])] or None,
        iou=float(columns["iou"][row]),
        hausdorff_px=hausdorff,
        hausdorff_um=hausdorff * (block.failures.mpp or float("nan")),
        area_px=int(columns["area_px"][row]),
    )
    return hover_html(facts)
