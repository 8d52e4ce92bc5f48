"""Everything that decides a figure, and what of it differs from the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from psygnal import Signal
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QSlider,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.io.formats.registry import known_forms
from napari_panoptic.nuclei.display.glossary import OVERLAPS_MEANINGS, SETTING_MEANINGS
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import (
    AmbiguousPolicy,
    EvaluationSettings,
    Matching,
    Outlines,
    Overlaps,
    Restoration,
)
from napari_panoptic.viewer.kit.shown import PlainLabel, shown
from napari_panoptic.viewer.kit.widgets import COMPACT_COMBO

_TITLES: Mapping[str, tuple[str, str]] = {
    "restoration": ("Restore", "How objects are recovered from colour-coded masks."),
    "radius": ("Radius", "Pixels by which border-dilated grows objects; negative shrinks."),
    "matching": ("Match", "Which prediction belongs to which nucleus."),
    "iou_threshold": ("IoU >", "Overlap that a pair must exceed to match."),
    "ambiguous": ("Ambiguous", "How areas that the annotation excludes are treated."),
    "outlines": ("HD of", "Which outlines a Hausdorff distance compares."),
    "overlaps": (
        "Overlaps",
        "Which object gets the pixels that objects of one side share.",
    ),
}
_SLIDERS: Mapping[str, tuple[int, int, float]] = {
    "radius": (-3, 5, 1),
    "iou_threshold": (1, 19, 0.05),
}
"""Lowest and highest position of each slider, and what one step of it is worth."""
_NUMBER_WIDTH = 38
_AUTOMATIC = "as found"
_DIFFERS = "● "


class SettingsPanel(QWidget):
    """Team, source and evaluation settings; every change emits a signal."""

    team_chosen = Signal(str)
    source_chosen = Signal(object)  # Source | None
    settings_chosen = Signal(EvaluationSettings)
    open_wanted = Signal()
    folded = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = EvaluationSettings()
        self._protocol = EvaluationSettings()
        self._is_showing = False
        self._labels: dict[str, PlainLabel] = {}
        self._combos: dict[str, QComboBox] = {}
        self.team = QComboBox()
        self.source = QComboBox()
        self.radius = QSpinBox()
        self.threshold = QDoubleSpinBox()
        self.sliders = {name: QSlider(Qt.Orientation.Horizontal) for name in _SLIDERS}
        self.reset = QPushButton("reset")
        self._fold = QToolButton()
        self._state = PlainLabel()
        self._form = QWidget()
        self._open = QPushButton("Open cohort…")
        self._make_fields()
        self._lay_out()
        self.show_cohort(None)
        self.show_settings(self._settings, self._protocol)

    def combo(self, name: str) -> QComboBox:
        """Return the menu of a setting, by the setting's name."""
        return self._combos[name]

    def label_text(self, name: str) -> str:
        """Return the label of a setting, with its mark where it differs."""
        return self._labels[name].text()

    def show_cohort(self, cohort: Cohort | None) -> None:
        """Offer the teams and sources of a cohort."""
        self._form.setEnabled(cohort is not None)
        self._is_showing = True
        try:
            self.team.clear()
            self.source.clear()
            self.source.addItem(_AUTOMATIC, None)
            if cohort is not None:
                for team in cohort.teams:
                    self.team.addItem(shown(team.name), team.name)
                found = {form for forms in cohort.predictions.values() for form in forms}
                for form in map(Source, known_forms()):
                    if form in found:
                        self.source.addItem(str(form), form)
        finally:
            self._is_showing = False

    def show_team(self, name: str | None) -> None:
        """Show which team is looked at."""
        self._is_showing = True
        try:
            self.team.setCurrentIndex(self.team.findData(name))
        finally:
            self._is_showing = False

    def show_settings(
        self,
        settings: EvaluationSettings,
        protocol: EvaluationSettings,
        source: Source | None = None,
    ) -> None:
        """Show settings, and mark what differs from the protocol."""
        self._settings, self._protocol = settings, protocol
        self._is_showing = True
        try:
            for name, combo in self._combos.items():
                combo.setCurrentIndex(combo.findData(getattr(settings, name)))
            self.radius.setValue(settings.radius)
            self.threshold.setValue(settings.iou_threshold)
            self.source.setCurrentIndex(max(self.source.findData(source), 0))
        finally:
            self._is_showing = False
        self._mark(settings.differences(protocol))
        is_dilated = settings.restoration is Restoration.BORDER_DILATED
        has_threshold = settings.matching is Matching.STRICT_IOU
        self.radius.setEnabled(is_dilated)
        self.sliders["radius"].setEnabled(is_dilated)
        self.threshold.setEnabled(has_threshold)
        self.sliders["iou_threshold"].setEnabled(has_threshold)

    def _make_fields(self) -> None:
        vocabularies: Mapping[str, type[StrEnum]] = {
            "restoration": Restoration,
            "matching": Matching,
            "ambiguous": AmbiguousPolicy,
            "outlines": Outlines,
        }
        for name, vocabulary in vocabularies.items():
            self._combos[name] = self._menu(name, list(vocabulary), SETTING_MEANINGS)
        self._combos["overlaps"] = self._menu("overlaps", list(Overlaps), OVERLAPS_MEANINGS)
        self.radius.setRange(-20, 20)
        self.threshold.setRange(0.05, 0.95)
        self.threshold.setSingleStep(0.05)
        self.threshold.setDecimals(2)
        for spin, name in ((self.radius, "radius"), (self.threshold, "iou_threshold")):
            self._join(self.sliders[name], spin, *_SLIDERS[name])
            spin.setKeyboardTracking(False)
            spin.valueChanged.connect(lambda value, n=name: self._on_change(n, value))
        self.team.currentIndexChanged.connect(lambda _: self._on_team())
        self.source.currentIndexChanged.connect(self._on_source)
        self.team.setToolTip("The team whose predictions are shown and judged.")
        self.source.setToolTip("Which files the predictions are read from, if there are several.")
        for combo in (self.team, self.source, *self._combos.values()):
            combo.setSizeAdjustPolicy(
                QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
            )
            combo.setMinimumContentsLength(4)
            combo.setStyleSheet(COMPACT_COMBO)
            # A click leaves the keys with the desk.
            combo.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def _join(
        self, slider: QSlider, spin: QSpinBox | QDoubleSpinBox, low: int, high: int, step: float
    ) -> None:
        """Let a slider and a number say the same; the number is what counts."""
        slider.setRange(low, high)
        slider.setMinimumWidth(50)
        slider.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        spin.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        # The theme leaves room for buttons that are not there.
        spin.setStyleSheet(f"min-width: 0px; padding: 1px 2px; max-width: {_NUMBER_WIDTH}px")

        def follow(value: float) -> None:
            with QSignalBlocker(slider):
                slider.setValue(round(value / step))

        spin.valueChanged.connect(follow)
        if isinstance(spin, QSpinBox):
            slider.valueChanged.connect(spin.setValue)
        else:
            slider.valueChanged.connect(lambda value: spin.setValue(value * step))

    def _with_slider(self, name: str, spin: QWidget) -> QWidget:
        both = QWidget()
        layout = QHBoxLayout(both)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        layout.addWidget(self.sliders[name], 1)
        layout.addWidget(spin)
        self.sliders[name].setToolTip(_TITLES[name][1])
        return both

    def _menu(
        self, name: str, members: Sequence[StrEnum], meanings: Mapping[Any, str]
    ) -> QComboBox:
        combo = QComboBox()
        for member in members:
            combo.addItem(str(member), member)
            combo.setItemData(combo.count() - 1, meanings[member], Qt.ItemDataRole.ToolTipRole)
        combo.currentIndexChanged.connect(
            lambda index: self._on_change(name, members[index] if index >= 0 else None)
        )
        combo.setToolTip(_TITLES[name][1])
        return combo

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        self._fold.setText("Settings")
        self._fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._fold.setCheckable(True)
        self._fold.setChecked(True)
        self._fold.setArrowType(Qt.ArrowType.DownArrow)
        self._fold.setAutoRaise(True)
        self._fold.setToolTip("Fold or unfold the settings.")
        self._fold.toggled.connect(self._on_fold)
        self.reset.setToolTip("Go back to the protocol's settings.")
        self.reset.clicked.connect(lambda _=False: self.settings_chosen.emit(self._protocol))
        self._open.setToolTip("Choose a folder with images, annotations and predictions.")
        self._open.clicked.connect(lambda _=False: self.open_wanted.emit())
        head.addWidget(self._fold)
        head.addWidget(self._state, 1)
        head.addWidget(self.reset)
        head.addWidget(self._open)
        grid = QGridLayout(self._form)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(4)
        grid.setVerticalSpacing(3)
        radius = self._with_slider("radius", self.radius)
        threshold = self._with_slider("iou_threshold", self.threshold)
        fields: list[tuple[str, QWidget]] = [
            *(("team", self.team), ("source", self.source)),
            *(("restoration", self._combos["restoration"]), ("radius", radius)),
            *(("matching", self._combos["matching"]), ("iou_threshold", threshold)),
            *((name, self._combos[name]) for name in ("ambiguous", "outlines", "overlaps")),
        ]
        for place, (name, field) in enumerate(fields):
            line, column = divmod(place, 2)
            grid.addWidget(self._label(name), line, 2 * column)
            grid.addWidget(field, line, 2 * column + 1)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(3, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 2, 4, 4)
        layout.setSpacing(3)
        layout.addLayout(head)
        layout.addWidget(self._form)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def _label(self, name: str) -> PlainLabel:
        title, tooltip = _TITLES.get(name, (name.capitalize(), ""))
        label = PlainLabel(title)
        label.setToolTip(tooltip)
        self._labels[name] = label
        return label

    def _mark(self, differences: Mapping[str, tuple[Any, Any]]) -> None:
        for name, (title, tooltip) in _TITLES.items():
            differs = name in differences
            self._labels[name].setText(f"{_DIFFERS}{title}" if differs else title)
            there = f" The protocol has {differences[name][1]}." if differs else ""
            self._labels[name].setToolTip(tooltip + there)
        count = len(differences)
        self._state.setText(f"{_DIFFERS}{count} changed" if count else "")
        self._state.setToolTip("Settings that differ from the protocol are marked with a dot.")
        self.reset.setVisible(count > 0)

    def _on_change(self, name: str, value: Any) -> None:
        if not self._is_showing and value is not None:
            self.settings_chosen.emit(self._settings.replaced(**{name: value}))

    def _on_team(self) -> None:
        name = self.team.currentData()
        if name and not self._is_showing:
            self.team_chosen.emit(name)

    def _on_source(self, index: int) -> None:
        if index >= 0 and not self._is_showing:
            chosen = self.source.itemData(index)  # a plain text with PySide
            self.source_chosen.emit(None if chosen is None else Source(chosen))

    def _on_fold(self, unfolded: bool) -> None:
        self._form.setVisible(unfolded)
        self._fold.setArrowType(Qt.ArrowType.DownArrow if unfolded else Qt.ArrowType.RightArrow)
        self.folded.emit()
