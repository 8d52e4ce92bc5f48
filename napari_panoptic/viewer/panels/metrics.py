"""The figures of one region and team."""

from __future__ import annotations

import math
from collections.abc import Sequence

from psygnal import Signal
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QWidget

from napari_panoptic.common.text import counted
from napari_panoptic.display.behind import (
    absent_classes,
    behind_cell,
    behind_class,
    behind_column,
    behind_figure,
    behind_row,
    by_class_sentence,
    mean_sentence,
)
from napari_panoptic.display.glossary import (
    COUNT_MEANINGS,
    FIGURE_MEANINGS,
    UNDEFINED_BECAUSE,
    choices_text,
)
from napari_panoptic.display.object_rows import NONE_WORD, ObjectFilter
from napari_panoptic.display.palette import class_colours
from napari_panoptic.display.styles import count_text, decimal_text, length_text, ratio_text
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import METRIC_NAMES, METRIC_TEXTS, detection_counts
from napari_panoptic.values.cohort import ClassScheme, Rgb
from napari_panoptic.values.windowed_labels import TiledPair
from napari_panoptic.viewer.kit.figures import Cell, Figure, FigureTable
from napari_panoptic.viewer.kit.layouts import (
    FlowBar,
    FoldButton,
    ScrollPanel,
    fill,
    lay_out,
    row_of,
)
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.kit.widgets import give_height, heading, is_in_sight
from napari_panoptic.viewer.panels.objects.presenter import ObjectsPresenter
from napari_panoptic.viewer.panels.part import Connections, Presenter
from napari_panoptic.viewer.state.preferences import PREFERENCES

_HEADLINES = ("pq", "sq", "dq", "detection_f1")
_DETECTION = tuple(
    name for name in METRIC_NAMES if name.startswith("detection_") and name not in _HEADLINES
)
_MATCHED = tuple(name for name in METRIC_NAMES if name not in (*_HEADLINES, *_DETECTION))
_COUNT_TITLES = {"matched": "Matched", "fn": "FN", "fp": "FP", "ignored": "Ignored"}
_COUNTS = tuple(_COUNT_TITLES)
_UNFOLDED_PX, _MARGINS_PX = 645, 16

EMPTY = "No metrics to show. Open a cohort."


_SCROLL_BAR_PX = 24
"""Width of a scroll bar and the margins, generously."""
ABSENT = (
    "This class is not annotated here, so its predictions make its PQ 0, which counts in the mean."
)

Shown = Evaluation | Evaluation[TiledPair]
"""What figures are shown of: a region in memory, or a slide that was evaluated in windows."""


class MetricsPanel(ScrollPanel):
    """PQ, SQ, DQ, F1 and counts in a line; unfolded, all figures and the confusion matrix.

    Every figure is a link to the objects behind it; the signal has the filter
    that lists them. Whether the panel is unfolded is remembered for the next window.
    """

    behind_wanted = Signal(ObjectFilter)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, margins_px=(3, 4, 3, 4), spacing_px=None)
        self.figures: dict[str, Figure] = {}
        self._shown: tuple[Shown, ClassScheme] | None = None
        self.by_class = FigureTable()
        self.confusion = FigureTable()
        for table in (self.by_class, self.confusion):
            table.chosen.connect(self.behind_wanted.emit)
        self.definitions = WrappedLabel()
        self.message = WrappedLabel(EMPTY)
        self.content, self._details = QWidget(), QWidget()
        self.fold = FoldButton("", "Show or hide all metrics.", self._details)
        self._line = FlowBar(self.fold, self._group(_HEADLINES), self._group(_COUNTS))
        self._lay_out()
        self.show_evaluation(None)
        self.fold.setChecked(PREFERENCES.is_unfolded("metrics"))
        self.fold.toggled.connect(self._on_fold)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Wrap sentences at the width that is seen, also where tables are wider."""
        super().resizeEvent(event)
        self.definitions.setMaximumWidth(self.width() - _SCROLL_BAR_PX)

    def figure(self, name: str) -> str:
        """Return a figure as it is shown."""
        return self.figures[name].text()

    def show_filter(self, listed: ObjectFilter) -> None:
        """Frame the figures behind which the listed objects stand."""
        wanted = None if listed.is_open else listed
        for name, figure in self.figures.items():
            figure.show_chosen(wanted is not None and behind_figure(name) == wanted)
        for table in (self.by_class, self.confusion):
            table.show_chosen(wanted)

    def wanted_height(self) -> int:
        """Return the height that the panel needs as it is: folded, that of its line."""
        line = self._line.heightForWidth(self.width()) + _MARGINS_PX
        return _UNFOLDED_PX if self.fold.isChecked() else line

    def say_when_empty(self, words: str = EMPTY) -> None:
        """Set the text shown without figures."""
        self.message.setText(words)

    def show_evaluation(self, evaluation: Shown | None, scheme: ClassScheme | None = None) -> None:
        """Show the figures of an evaluation; a hint if there is none."""
        self.message.setVisible(evaluation is None)
        self.content.setVisible(evaluation is not None)
        if evaluation is None or scheme is None or (evaluation, scheme) == self._shown:
            return
        self._shown = (evaluation, scheme)
        counts = _counts(evaluation)
        for name, figure in self.figures.items():
            if name in counts:
                figure.set_text(count_text(counts[name]))
                continue
            value = evaluation.metrics[name]
            reason = UNDEFINED_BECAUSE[name] if math.isnan(value) else ""
            figure.set_text(
                _figure_text(name, value, evaluation.pair.mpp),
                reason=f"{reason}\n{choices_text(name, evaluation.settings)}".strip(),
            )
        self._fill_by_class(evaluation, scheme)
        said = [say(evaluation.counts) for say in (mean_sentence, by_class_sentence)]
        self.definitions.setText("\n".join(filter(None, said)))
        self.definitions.setVisible(any(said))
        self._fill_confusion(evaluation, scheme)

    def _lay_out(self) -> None:
        fill(self._rows, self.message, self.content, None)
        lay_out(self.content, self._line, self._details)
        detection = heading("Detection", "Whether nuclei were found, whatever their class.")
        matched = heading("Matched", "Class and outline of the nuclei that were found.")
        lay_out(
            self._details,
            self.by_class,
            self.definitions,
            FlowBar(detection, *map(self._figure, _DETECTION)),
            FlowBar(matched, *map(self._figure, _MATCHED)),
            heading("Confusion matrix", "Rows: class in the annotation. Columns: predicted class."),
            self.confusion,
        )

    def _on_fold(self, unfolded: bool) -> None:
        PREFERENCES.set_unfolded("metrics", unfolded)
        give_height(self, self.wanted_height())

    def _group(self, names: Sequence[str]) -> QWidget:
        """Make figures that stay in one line."""
        group = QWidget()
        group.setLayout(row_of(*map(self._figure, names)))
        return group

    def _figure(self, name: str) -> Figure:
        if name in METRIC_TEXTS:
            title, meaning = METRIC_TEXTS[name].caption, METRIC_TEXTS[name].meaning
        else:
            title, meaning = _COUNT_TITLES[name], COUNT_MEANINGS[name]
        figure = Figure(title, meaning, is_link=True)
        figure.clicked.connect(lambda: self.behind_wanted.emit(behind_figure(name)))
        self.figures[name] = figure
        return figure

    def _fill_by_class(self, evaluation: Shown, scheme: ClassScheme) -> None:
        header = [
            Cell("Class", "Class of the nuclei."),
            Cell("TP", "Found, with the right class."),
            Cell("FP", "Predicted as this class: unmatched, or misclassified."),
            Cell("FN", "Nuclei of this class: unmatched, or misclassified."),
            Cell("PQ", FIGURE_MEANINGS["pq"].split(",")[0] + "."),
            Cell("SQ", "Mean IoU of the TPs of this class."),
            Cell("DQ", "TP / (TP + FP/2 + FN/2) of this class."),
            Cell("HD px", FIGURE_MEANINGS["mean_hausdorff_px"]),
        ]
        rows = []
        colours = _colours(scheme)
        absent = absent_classes(evaluation.counts)
        figures = {name: column.tolist() for name, column in evaluation.class_figures.items()}
        for number, name in enumerate(evaluation.counts.class_names):
            record = {key: column[number] for key, column in figures.items()}
            is_absent = name in absent
            colour = colours.get(name)
            behind = {
                key: behind_class(key, name, scheme.names)
                for key in ("class", "tp", "fp", "fn", "pq", "sq", "dq", "mean_hausdorff_px")
            }
            counts = [
                Cell(count_text(record[key]), target=behind[key]) for key in ("tp", "fp", "fn")
            ]
            ratios = [
                Cell(
                    ratio_text(record[key]),
                    why if math.isnan(record[key]) else ABSENT if is_absent and key != "sq" else "",
                    bold=key == "pq",
                    target=behind[key],
                )
                for key, why in (
                    ("pq", "Undefined: this class does not occur here."),
                    ("sq", "Undefined: no TP of this class."),
                    ("dq", "Undefined: this class does not occur here."),
                )
            ]
            distance = Cell(
                decimal_text(record["mean_hausdorff_px"]),
                target=behind["mean_hausdorff_px"],
            )
            named = Cell(name, name, colour, target=behind["class"])
            rows.append([named, *counts, *ratios, distance])
        self.by_class.fill(header, rows)

    def _fill_confusion(self, evaluation: Shown, scheme: ClassScheme) -> None:
        classes = evaluation.counts.class_names
        counts = evaluation.counts.confusion.tolist()
        shown, numbers = [*classes, NONE_WORD], [*range(1, len(classes) + 1), 0]
        header = [Cell("Reference ↓", "Rows: reference. Columns: prediction.")]
        header += [
            Cell(
                _short(name, "FN"),
                _long(name, "FN: no prediction matches."),
                target=behind_column(name, classes),
            )
            for name in shown
        ]
        rows = []
        colours = _colours(scheme)
        for name, number in zip(shown, numbers, strict=True):
            values = [counts[number][other] for other in numbers]
            total = max(sum(values), 1)
            colour = colours.get(name)
            cells = [
                Cell(
                    "FP" if name == NONE_WORD else name,
                    _long(name, "FP: no reference object matches."),
                    colour,
                    target=behind_row(name, classes),
                )
            ]
            for other, value in zip(shown, values, strict=True):
                both_none = name == other == NONE_WORD
                cells.append(
                    Cell(
                        "" if both_none else count_text(value),
                        "" if both_none else _sentence(name, other, value),
                        shade=value / total,
                        bold=name == other,
                        target=None if both_none else behind_cell(name, other),
                    )
                )
            rows.append(cells)
        self.confusion.fill(header, rows)


class MetricsPresenter(Presenter[MetricsPanel]):
    """Shows the figures of the region and team, and lists the objects behind one."""

    title = "Metrics"

    def connections(self) -> Connections:
        """Listen to session, table and panel."""
        session, link = self.session, self.link
        return [
            (session.region_changed, self.refresh),
            (session.team_changed, self.refresh),
            (link.edits_rested, self.refresh),
            (link.panels.objects.listed_changed, self._show_listed),
            (self.panel.behind_wanted, self._list),
        ]

    def refresh(self, _changed: object = None) -> None:
        """Show the figures of the region and team."""
        self.panel.show_evaluation(self.session.shown, self.session.cohort.scheme)

    def _show_listed(self) -> None:
        self.panel.show_filter(self.link.panels.objects.model.filter)

    def _list(self, wanted: ObjectFilter) -> None:
        """List only the objects behind a figure, where they can be seen."""
        self.link.presenter(ObjectsPresenter).list_only(wanted)
        lists = [part.widget for part in self.link.parts if part.follows_table]
        if not any(map(is_in_sight, lists)):
            self.link.reveal(ObjectsPresenter.title)


def _colours(scheme: ClassScheme) -> dict[str, Rgb]:
    return dict(zip(scheme.names, class_colours(len(scheme.names)), strict=True))


def _counts(evaluation: Shown) -> dict[str, int]:
    matched, fp, fn = detection_counts(evaluation.counts)
    ignored = evaluation.counts.ignored_reference + evaluation.counts.ignored_prediction
    return {"matched": matched, "fp": fp, "fn": fn, "ignored": ignored}


def _figure_text(name: str, value: float, mpp: float | None) -> str:
    if name != "mean_hausdorff_px":
        return ratio_text(value)
    text = length_text(value)
    if mpp is not None and not math.isnan(value):
        text += f" · {length_text(value * mpp, 'µm')}"
    return text


def _short(name: str, none: str) -> str:
    return none if name == NONE_WORD else f"{name[:5]}." if len(name) > 6 else name


def _long(name: str, none: str) -> str:
    return none if name == NONE_WORD else name


def _sentence(reference: str, prediction: str, count: int) -> str:
    objects = counted(count, "object", write=count_text)
    if reference == NONE_WORD:
        return f"{objects} {prediction} predicted, but not annotated (FP)."
    if prediction == NONE_WORD:
        return f"{objects}: {reference} annotated, but not predicted (FN)."
    if reference == prediction:
        return f"{objects}: {reference} predicted with the right class (TP)."
    return f"{objects}: {reference} predicted as {prediction} (misclassified)."
