from dataclasses import replace
from pathlib import Path

import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QSlider

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.nuclei.display.describe import object_facts
from napari_panoptic.nuclei.display.glossary import FINDING_WORDS
from napari_panoptic.nuclei.display.styles import ColourBy, Display, Look
from napari_panoptic.nuclei.explain.consensus import consensus
from napari_panoptic.nuclei.summary import RegionSummary
from napari_panoptic.nuclei.values.cohort import Cohort, MaskFiles, Region, Source, Team
from napari_panoptic.nuclei.values.settings import (
    EvaluationSettings,
    Matching,
    Overlaps,
    Restoration,
)
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.panels.edits.panel import EditsPanel
from napari_panoptic.viewer.panels.metrics import MetricsPanel
from napari_panoptic.viewer.panels.navigator import NO_COHORT, NO_TEAMS, Navigator
from napari_panoptic.viewer.panels.notes import NOTHING, NotesDialog
from napari_panoptic.viewer.panels.review.panel import ReviewPanel
from napari_panoptic.viewer.panels.settings import SettingsPanel
from napari_panoptic.viewer.panels.strips import NOTHING_SELECTED, Chip, LegendStrip, TitleStrip
from napari_panoptic.viewer.panels.teams.comparison import Comparison
from napari_panoptic.viewer.panels.teams.panel import (
    NONE_ANNOTATED,
    NONE_LISTED,
    Listed,
    TeamsPanel,
)
from tests.support.small_pairs import SCHEME, empty_pair, four_fates


def make(qtbot, widget):
    qtbot.addWidget(widget)
    return widget


@pytest.fixture
def cohort():
    files = MaskFiles(Source.SUBMISSION, {})
    regions = tuple(Region(f"P{p}_{r}", f"P{p}", None, files) for p in (1, 2) for r in (1, 2))
    return Cohort(
        name="made up",
        root=Path("made-up"),
        scheme=SCHEME,
        regions=regions,
        teams=(Team("first"), Team("second")),
        predictions={("first", "P1_1"): {Source.SUBMISSION: files}},
    )


def summary(region, team, *, missing=False):
    if missing:
        finding = Finding(FindingKind.MISSING, "there is no file for it")
        return RegionSummary(region, team, None, None, (finding,))
    evaluation = four_fates()
    return RegionSummary(region, team, evaluation.counts, evaluation.metrics)


class TestMetricsPanel:
    def test_figures_have_three_decimals(self, qtbot):
        panel = make(qtbot, MetricsPanel())
        evaluation = four_fates()
        panel.show_evaluation(evaluation, SCHEME)
        assert panel.figure("pq") == f"{evaluation.metrics.pq:.3f}"
        assert panel.figure("detection_recall") == "0.667"
        assert panel.figure("mean_hausdorff_px") == "1.0\u2009px · 0.5\u2009µm"

    def test_undefined_is_a_dash_with_its_reason(self, qtbot):
        panel = make(qtbot, MetricsPanel())
        panel.show_evaluation(empty_pair(), SCHEME)
        assert panel.figure("pq") == "–"
        assert "Undefined here" in panel.figure_tooltip("pq")

    def test_the_confusion_matrix_has_all_objects(self, qtbot):
        panel = make(qtbot, MetricsPanel())
        panel.show_evaluation(four_fates(), SCHEME)
        assert panel.confusion_texts() == [
            ["Round", "1", "1", "0"],
            ["Long", "0", "0", "1"],
            ["invented", "0", "1", ""],
        ]

    def test_without_evaluation_it_says_what_to_do(self, qtbot):
        panel = make(qtbot, MetricsPanel())
        panel.show_evaluation(None)
        assert not panel.is_showing_figures()


class TestSettingsPanel:
    def test_showing_tells_nothing(self, qtbot, cohort):
        panel = make(qtbot, SettingsPanel())
        told = []
        for signal in (panel.settings_chosen, panel.team_chosen, panel.source_chosen):
            signal.connect(told.append)
        panel.show_cohort(cohort)
        panel.show_team("second")
        panel.show_settings(EvaluationSettings(radius=3), EvaluationSettings())
        assert told == []

    def test_a_choice_is_told_at_once(self, qtbot, cohort):
        panel = make(qtbot, SettingsPanel())
        panel.show_cohort(cohort)
        panel.show_settings(EvaluationSettings(), EvaluationSettings())
        told = []
        panel.settings_chosen.connect(told.append)
        panel.combo("matching").setCurrentIndex(panel.combo("matching").findText("centroid"))
        assert told == [EvaluationSettings(matching=Matching.CENTROID)]

    def test_overlaps_are_kept_on_request(self, qtbot, cohort):
        panel = make(qtbot, SettingsPanel())
        panel.show_cohort(cohort)
        panel.show_settings(EvaluationSettings(), EvaluationSettings())
        told, combo = [], panel.combo("overlaps")
        panel.settings_chosen.connect(told.append)
        combo.setCurrentIndex(combo.findText("keep"))
        assert told == [EvaluationSettings(overlaps=Overlaps.KEEP)]
        # "keep" is a word of another setting, too.
        tip = combo.itemData(combo.currentIndex(), Qt.ItemDataRole.ToolTipRole)
        assert "keeps all of its pixels" in tip

    def test_differences_are_marked_and_reset(self, qtbot):
        panel = make(qtbot, SettingsPanel())
        protocol = EvaluationSettings()
        panel.show_settings(replace(protocol, iou_threshold=0.3), protocol)
        assert panel.label_text("iou_threshold").startswith("●")
        assert not panel.label_text("matching").startswith("●")
        told = []
        panel.settings_chosen.connect(told.append)
        panel.reset.click()
        assert told == [protocol]

    def test_settings_without_effect_are_disabled(self, qtbot):
        panel = make(qtbot, SettingsPanel())
        settings = EvaluationSettings(matching="centroid", restoration=Restoration.BORDER_REMOVED)
        panel.show_settings(settings, settings)
        assert not panel.threshold.isEnabled()
        assert not panel.radius.isEnabled()

    def test_only_sources_that_are_there_are_offered(self, qtbot, cohort):
        panel = make(qtbot, SettingsPanel())
        panel.show_cohort(cohort)
        assert [panel.source.itemData(k) for k in range(panel.source.count())] == [
            None,
            Source.SUBMISSION,
        ]


@pytest.mark.parametrize("kind", [MetricsPanel, ReviewPanel, EditsPanel])
def test_what_a_narrow_panel_cuts_off_can_be_scrolled_to(qtbot, kind):
    panel = make(qtbot, kind())
    if kind is MetricsPanel:
        panel.show_evaluation(four_fates(), SCHEME)
    panel.resize(120, 400)
    panel.show()
    bar = panel.horizontalScrollBar()
    qtbot.waitUntil(bar.isVisible)
    panel.resize(2000, 2000)
    qtbot.waitUntil(lambda: not bar.isVisible())


class TestTeams:
    def test_where_nothing_is_annotated_it_does_not_point_to_the_list_that_is_shown(self, qtbot):
        panel = make(qtbot, TeamsPanel())
        teams = {name: empty_pair() for name in ("first", "second")}
        panel.show_comparison(Comparison(None, teams, consensus(teams), None, None))
        assert panel.hint_text() == NONE_ANNOTATED
        panel.choose_list(Listed.MISSED)
        assert panel.hint_text() == NONE_LISTED


class TestNavigator:
    def test_it_says_how_to_begin(self, qtbot):
        navigator = make(qtbot, Navigator())
        assert navigator.hint_text() == NO_COHORT

    def test_a_cohort_without_teams_says_where_they_go(self, qtbot, cohort):
        navigator = make(qtbot, Navigator())
        places = ("Teams/TEAM.json",)
        without = replace(cohort, teams=(), predictions={}, prediction_places=places)
        navigator.show_cohort(without, {})
        assert navigator.hint_text() == NO_TEAMS.format(expected=without.predictions_expected)
        assert "such as Teams/TEAM.json, or a cohort.toml" in navigator.hint_text()

    def test_missing_predictions_are_marked(self, qtbot, cohort):
        navigator = make(qtbot, Navigator())
        summaries = {("P1_1", "first"): summary("P1_1", "first", missing=True)}
        navigator.show_cohort(cohort, summaries)
        navigator.show_team("first")
        assert navigator.region_text("P1_1", 1) == "missing"

    def test_a_region_without_annotation_is_called_that(self, qtbot, cohort):
        navigator = make(qtbot, Navigator())
        bare = replace(cohort.regions[0], reference=None)
        summaries = {("P1_1", "first"): summary("P1_1", "first", missing=True)}
        navigator.show_cohort(replace(cohort, regions=(bare, *cohort.regions[1:])), summaries)
        navigator.show_team("first")
        assert navigator.region_text("P1_1", 1) == "no annotation"

    def test_a_line_appears_as_soon_as_it_is_known(self, qtbot, cohort):
        navigator = make(qtbot, Navigator())
        summaries = {}
        navigator.show_cohort(cohort, summaries)
        navigator.show_team("first")
        assert navigator.region_text("P1_1", 1) == ""
        line = summaries["P1_1", "first"] = summary("P1_1", "first")
        navigator.show_summary(line)
        assert navigator.region_text("P1_1", 1) == f"{line.metrics.pq:.3f}"
        assert [navigator.region_text("P1_1", column) for column in (2, 3, 4)] == ["1", "1", "1"]

    def test_a_team_has_its_mean_over_patients_once_all_is_known(self, qtbot, cohort):
        navigator = make(qtbot, Navigator())
        summaries = {}
        navigator.show_cohort(cohort, summaries)
        navigator.show_team("first")
        for region in cohort.regions:
            assert navigator.team_text("first", 1) == ""
            summaries[region.name, "first"] = summary(region.name, "first")
            navigator.show_summary(summaries[region.name, "first"])
        assert navigator.team_text("first", 1) == f"{four_fates().metrics.pq:.3f}"

    def test_clicks_are_told_and_showing_is_not(self, qtbot, cohort):
        navigator = make(qtbot, Navigator())
        told = []
        navigator.region_chosen.connect(told.append)
        navigator.team_chosen.connect(told.append)
        navigator.show_cohort(cohort, {})
        navigator.show_region("P1_2")
        navigator.show_team("second")
        assert told == []
        navigator.choose_region("P2_1")
        assert told == ["P2_1"]


class TestStrips:
    def test_counts_are_shown_per_side(self, qtbot):
        legend = make(qtbot, LegendStrip())
        evaluation = four_fates()
        pair = evaluation.pair
        legend.show_counts(evaluation.outcomes, pair.reference, pair.prediction, SCHEME)
        assert legend.chip_text(Side.REFERENCE, "FN") == "FN 1"
        assert legend.chip_text(Side.PREDICTION, "FP") == "FP 1"
        assert legend.chip_text(Side.REFERENCE, "ignored") == "ignored 1"

    def test_counts_of_a_slide_are_shortened_where_they_do_not_fit(self, qtbot):
        legend = make(qtbot, LegendStrip())
        words = ("TP", "FN", "misclassified", "ignored")
        chips = [Chip(word, (0, 0, 0), 123_456, "Meaning.") for word in words]
        legend.resize(800, 60)
        legend.show()
        legend._fill(Side.REFERENCE, chips)
        assert legend.chip_text(Side.REFERENCE, "TP") == "TP 123\u2009456"
        long = sum(legend._chips[Side.REFERENCE, chip.word].width() for chip in chips)
        narrow = legend.minimumSizeHint().width()
        legend.resize(narrow, 60)
        qtbot.waitUntil(lambda: legend.chip_text(Side.REFERENCE, "TP") == "TP 123k")
        short = sum(legend._chips[Side.REFERENCE, chip.word].width() for chip in chips)
        assert short < long
        assert legend._places[Side.REFERENCE].width() >= short  # nothing is cut off
        assert "Here: 123\u2009456." in legend._chips[Side.REFERENCE, "TP"].toolTip()
        legend.resize(800, 60)
        qtbot.waitUntil(lambda: legend.chip_text(Side.REFERENCE, "TP") == "TP 123\u2009456")

    def test_by_class_the_classes_are_counted(self, qtbot):
        legend = make(qtbot, LegendStrip())
        legend.show_look(Look(ColourBy.CLASS, Display.FILL))
        pair = four_fates().pair
        legend.show_counts(None, pair.reference, pair.prediction, SCHEME)
        assert legend.chip_text(Side.REFERENCE, "Long") == "Long 2"
        assert legend.chip_text(Side.PREDICTION, "Round") == "Round 1"

    def test_filled_objects_have_a_slider_for_their_opacity(self, qtbot):
        legend = make(qtbot, LegendStrip())
        chosen = []
        legend.look_chosen.connect(chosen.append)
        slider = legend.findChild(QSlider)
        legend.show()
        assert not slider.isVisible()
        look = Look(ColourBy.CLASS, Display.FILL, 0.4)
        legend.show_look(look)
        assert slider.isVisible()
        assert slider.value() == 40
        assert not chosen
        slider.setValue(85)
        assert chosen == [replace(look, fill_opacity=0.85)]

    def test_the_selected_object_is_told_in_a_line(self, qtbot):
        title = make(qtbot, TitleStrip())
        assert title.selected_text() == NOTHING_SELECTED
        evaluation = four_fates()
        facts = object_facts(
            evaluation.pair.reference,
            evaluation.outcomes,
            Side.REFERENCE,
            2,
            side_name="reference",
        )
        title.show_selected(facts)
        assert "reference 13 · Long · FN: missed" in title.selected_text()

    def test_notes_are_counted(self, qtbot):
        title = make(qtbot, TitleStrip())
        title.show_notes(2)
        assert title.notes_text() == "⚠ 2 notes"
        title.show_notes(0)
        assert title.notes_text() == ""


class TestNotes:
    def test_findings_are_listed(self, qtbot):
        dialog = make(qtbot, NotesDialog())
        finding = Finding(FindingKind.VANISHED, "3 objects have no pixel", count=3)
        dialog.show_findings("P1_1", [finding])
        assert dialog.lines() == ["3 objects have no pixel"]

    def test_what_is_odd_is_said_in_words_and_whose_it_is(self, qtbot):
        dialog = make(qtbot, NotesDialog())
        dialog.show_findings("P1_1", [Finding(FindingKind.NO_MPP, "the image tells no MPP")])
        assert dialog.words() == [("no pixel size", "")]
        assert dialog.intro().startswith("P1_1: 1 note.")
        of_a_team = Finding(FindingKind.UNKNOWN_CLASS, "2 of the class X", team="first")
        dialog.show_findings("P1_1", [of_a_team, Finding(FindingKind.VANISHED, "3 objects")])
        assert dialog.words() == [("unknown class", "first"), ("vanished", "annotation")]

    def test_long_details_are_not_cut_off(self, qtbot):
        dialog = make(qtbot, NotesDialog())
        text = "1357 px claimed by more than one object; the last one has them. " * 4
        findings = [Finding(FindingKind.OVERLAPPING, each) for each in ("short", text)]
        dialog.show_findings("P1_1", findings)
        dialog.show()
        tree = dialog._list
        heights = {}
        for width in (760, 1200):
            dialog.resize(width, 320)
            qtbot.wait(50)
            rects = [tree.visualItemRect(tree.topLevelItem(row)) for row in range(2)]
            heights[width] = [rect.height() for rect in rects]
            one_line = tree.fontMetrics().height()
            needed = tree.fontMetrics().horizontalAdvance(text) / tree.columnWidth(3)
            assert heights[width][0] < 2 * one_line
            assert heights[width][1] >= needed * one_line
        assert heights[1200][1] < heights[760][1]

    @pytest.mark.parametrize("kind", FindingKind)
    def test_there_are_words_for_every_kind(self, kind):
        assert "-" not in FINDING_WORDS[kind]

    def test_nothing_odd_is_said_in_words(self, qtbot):
        dialog = make(qtbot, NotesDialog())
        dialog.show_findings("P1_1", [])
        assert dialog.lines() == []
        assert dialog.intro() == NOTHING
