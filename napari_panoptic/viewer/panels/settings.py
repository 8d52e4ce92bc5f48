"""Everything that decides a figure, and what of it differs from the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from psygnal import Signal
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import QFormLayout, QWidget

from napari_panoptic.display.glossary import (
    OVERLAPS_MEANINGS,
    OVERLAPS_WORDS,
    SETTING_MEANINGS,
    SETTING_WORDS,
)
from napari_panoptic.io.formats.registry import known_forms
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import (
    KNOW_ZONES,
    AmbiguousPolicy,
    EvaluationSettings,
    Matching,
    Outlines,
    Overlaps,
    Restoration,
)
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, NumberSlider, name_choices
from napari_panoptic.viewer.kit.layouts import FoldButton, Grow, lay_out
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.kit.widgets import FormPanel, PushButton
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings
from napari_panoptic.viewer.state.preferences import PREFERENCES

SLIDER_REST_MS = 250
"""How long a setting rests before the whole cohort is evaluated with it."""

_TITLES: Mapping[str, tuple[str, str]] = {
    "restoration": (
        "Drawn borders",
        "How objects are restored whose colour-coded masks have borders drawn around them.",
    ),
    "radius": ("Radius", "Pixels by which objects grow; negative shrinks them."),
    "matching": ("Match by", "Which prediction belongs to which nucleus."),
    "iou_threshold": ("IoU above", "Overlap that a pair must exceed to match."),
    "ambiguous": ("Ambiguous areas", "How areas that the annotation marks as unclear are treated."),
    "ambiguous_share": (
        "Ignored above",
        "Share of an object's area in ambiguous areas above which it is ignored.",
    ),
    "zone_px": (
        "Uncertain border",
        "Pixels on either side of annotated borders that do not count, since annotators place the "
        "edge of a nucleus differently.",
    ),
    "outlines": (
        "Outline distance",
        "Which outlines the Hausdorff distance compares where an ambiguous area cuts a nucleus.",
    ),
    "overlaps": ("Shared pixels", "Which object gets the pixels that objects of one side share."),
}
_VOCABULARIES: Mapping[str, type[StrEnum]] = {
    "restoration": Restoration,
    "matching": Matching,
    "ambiguous": AmbiguousPolicy,
    "outlines": Outlines,
    "overlaps": Overlaps,
}
_AUTOMATIC = Choice(
    None, "Automatic", "Colour-coded masks if there are any, or else another available format."
)
_DIFFERS = "● "
USUAL_ZONE_PX = 5
"""The end of the slider of the uncertain border, unless a wider one is set."""


class SettingsPanel(FormPanel):
    """Team, source and evaluation settings; every change emits a signal."""

    settings_chosen = Signal(EvaluationSettings)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = EvaluationSettings()
        self._protocol = EvaluationSettings()
        self.labels: dict[str, PlainLabel] = {}
        self.team = ChoiceBox(meaning="The team whose predictions are shown and judged.")
        self.source = ChoiceBox(meaning="The format of the predictions that is read.")
        self.combos = {name: _menu(name) for name in _VOCABULARIES}
        self.radius = NumberSlider(-20, 20, step=1, decimals=0)
        self.threshold = NumberSlider(0.05, 0.95, step=0.05, decimals=2)
        self.share = NumberSlider(0.0, 1.0, step=0.05, decimals=2)
        self.zone = NumberSlider(0, USUAL_ZONE_PX, step=1, decimals=0)
        self._fields: Mapping[str, QWidget] = {
            "team": self.team,
            "source": self.source,
            "restoration": self.combos["restoration"],
            "radius": self.radius,
            "matching": self.combos["matching"],
            "iou_threshold": self.threshold,
            "ambiguous": self.combos["ambiguous"],
            "ambiguous_share": self.share,
            "zone_px": self.zone,
            **{name: self.combos[name] for name in ("outlines", "overlaps")},
        }
        self.reset = PushButton("Reset")
        self._state = PlainLabel()
        self._form = QWidget()
        self.fold = FoldButton("Settings", "Fold or unfold the settings.", self._form)
        self.open = PushButton("Open cohort…")
        self._set_up()
        self._lay_out()
        self.show_cohort(None)
        self.show_settings(self._settings, self._protocol)

    def show_cohort(self, cohort: Cohort | None) -> None:
        """Offer the teams and sources of a cohort."""
        self._form.setEnabled(cohort is not None)
        teams = () if cohort is None else cohort.teams
        forms = {} if cohort is None else cohort.predictions
        found = {form for of_region in forms.values() for form in of_region}
        self.team.offer(name_choices([team.name for team in teams]))
        sources = [Choice(form, str(form)) for form in map(Source, known_forms()) if form in found]
        self.source.offer([_AUTOMATIC, *sources])

    def show_settings(
        self,
        settings: EvaluationSettings,
        protocol: EvaluationSettings,
        source: Source | None = None,
    ) -> None:
        """Show settings, and mark what differs from the protocol."""
        self._settings, self._protocol = settings, protocol
        for name, combo in self.combos.items():
            combo.show_choice(getattr(settings, name))
        self.radius.show_value(settings.radius)
        self.threshold.show_value(settings.iou_threshold)
        self.share.show_value(settings.share_limit)
        with QSignalBlocker(self.zone):
            self.zone.setMaximum(max(USUAL_ZONE_PX, settings.zone_px))
        self.zone.show_value(settings.zone_px)
        self.source.show_choice(source if source in self.source.values else None)
        self._mark(settings.differences(protocol))
        self.radius.setEnabled(settings.restoration is Restoration.BORDER_DILATED)
        self.threshold.setEnabled(settings.matching is Matching.STRICT_IOU)
        knows_zones = settings.convention in KNOW_ZONES
        self.zone.setEnabled(knows_zones)
        self.share.setEnabled(knows_zones and settings.ambiguous is not AmbiguousPolicy.KEEP)

    def _set_up(self) -> None:
        self.radius.chosen.connect(lambda value: self._on_change("radius", int(value)))
        self.threshold.chosen.connect(lambda value: self._on_change("iou_threshold", value))
        self.share.chosen.connect(lambda value: self._on_change("ambiguous_share", value))
        self.zone.chosen.connect(lambda value: self._on_change("zone_px", int(value)))
        for name, combo in self.combos.items():
            combo.chosen.connect(lambda value, n=name: self._on_change(n, value))
        self.reset.setToolTip("Go back to the protocol's settings.")
        self.reset.pushed.connect(lambda: self.settings_chosen.emit(self._protocol))
        self.open.setToolTip("Choose a folder with images, annotations and predictions.")
        self._state.setToolTip("Settings that differ from the protocol are marked with a dot.")
        self.fold.setChecked(PREFERENCES.is_unfolded("settings"))
        self.fold.toggled.connect(lambda on: PREFERENCES.set_unfolded("settings", on))

    def _lay_out(self) -> None:
        form = QFormLayout(self._form)
        form.setContentsMargins(0, 0, 0, 0)
        form.setHorizontalSpacing(6)
        form.setVerticalSpacing(3)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        for name, field in self._fields.items():
            self.labels[name] = PlainLabel(name.capitalize())
            form.addRow(self.labels[name], field)
        head = (self.fold, Grow(self._state), self.reset, self.open)
        lay_out(self, head, Grow(self._form), margins=(4, 2, 4, 4))

    def _mark(self, differences: Mapping[str, tuple[Any, Any]]) -> None:
        for name, (title, meaning) in _TITLES.items():
            differs = name in differences
            self.labels[name].setText(f"{_DIFFERS}{title}" if differs else title)
            there = f" The protocol has {differences[name][1]}." if differs else ""
            tooltip = f"{meaning}{there} Code name: {name}."
            self.labels[name].setToolTip(tooltip)
            self._fields[name].setToolTip(tooltip)
        count = len(differences)
        self._state.setText(f"{_DIFFERS}{count} changed" if count else "")
        self.reset.setVisible(count > 0)

    def _on_change(self, name: str, value: Any) -> None:
        if value != getattr(self._settings, name):
            self.settings_chosen.emit(self._settings.replaced(**{name: value}))


class SettingsPresenter(Presenter[SettingsPanel]):
    """Evaluates with the chosen settings: the region at once, the cohort when they rest."""

    title = "Settings"

    def __init__(self, around: Surroundings, panel: SettingsPanel) -> None:
        super().__init__(around, panel)
        self._at_rest = single_shot(SLIDER_REST_MS, self.link.summary.start)

    @property
    def is_busy(self) -> bool:
        """Whether the cohort is still to be evaluated."""
        return self._at_rest.isActive()

    def connections(self) -> Connections:
        """Listen to session and panel."""
        session, panel = self.session, self.panel
        return [
            (session.team_changed, panel.team.show_choice),
            (session.settings_changed, self._show_settings),
            (session.source_changed, self._show_settings),
            (panel.team.chosen, session.set_team),
            (panel.source.chosen, self.choose_source),
            (panel.settings_chosen, self.choose),
        ]

    def refresh(self) -> None:
        """Offer the choices of the cohort, and show the chosen ones."""
        self.panel.show_cohort(self.session.cohort)
        self.panel.team.show_choice(self.session.team)
        self._show_settings()

    def close(self) -> None:
        """Evaluate nothing any more."""
        stop_timers(self._at_rest)

    def choose_source(self, source: Source | None) -> None:
        """Read predictions in another format."""
        self.link.request(source=source)
        self.link.summary.start()

    def choose(self, settings: EvaluationSettings) -> None:
        """Evaluate with other settings."""
        if settings != self.session.settings:
            self.link.request(settings=settings)
            # A slider moves on: the cohort is evaluated when it has come to rest.
            self.link.summary.stop()
            self.session.clear_summaries()
            self._at_rest.start()

    def _show_settings(self, _changed: object = None) -> None:
        session = self.session
        self.panel.show_settings(session.settings, session.protocol, session.source)


def _menu(name: str) -> ChoiceBox:
    is_overlaps = name == "overlaps"
    words: Mapping[Any, str] = OVERLAPS_WORDS if is_overlaps else SETTING_WORDS
    meanings: Mapping[Any, str] = OVERLAPS_MEANINGS if is_overlaps else SETTING_MEANINGS
    return ChoiceBox(
        [
            Choice(member, words[member], f"{meanings[member]} Code name: {member}.")
            for member in _VOCABULARIES[name]
        ]
    )
