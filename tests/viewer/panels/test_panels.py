import time
from dataclasses import replace
from pathlib import Path

import pytest
from qtpy.QtCore import QPoint, QRect, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QLineEdit, QSplitter, QTreeWidget

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.display.behind import behind_figure
from napari_panoptic.display.describe import object_facts
from napari_panoptic.display.glossary import FINDING_WORDS
from napari_panoptic.display.regions.teams import FP_IN_SEVERAL, NONE_ANNOTATED, NONE_LISTED
from napari_panoptic.display.styles import ColourBy, Display, Look
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region, Source, Team
from napari_panoptic.values.settings import (
    EvaluationSettings,
    Matching,
    Overlaps,
    Restoration,
)
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.panels.edits.panel import EditsPanel
from napari_panoptic.viewer.panels.legend import Chip, LegendStrip
from napari_panoptic.viewer.panels.metrics import MetricsPanel
from napari_panoptic.viewer.panels.navigator import NO_COHORT, NO_TEAMS, Navigator
from napari_panoptic.viewer.panels.notes import NOTHING, NotesDialog
from napari_panoptic.viewer.panels.review.panel import ReviewPanel
from napari_panoptic.viewer.panels.settings import SettingsPanel
from napari_panoptic.viewer.panels.teams import TeamsPanel
from napari_panoptic.viewer.panels.title import NOTHING_SELECTED, TitleStrip
from tests.support.small_pairs import SCHEME, empty_pair, four_fates
from tests.viewer.compared import compared_teams
from tests.viewer.finding import click, handle_events, shown_text


def make(qtbot, widget):
    qtbot.addWidget(widget)
    return widget


@pytest.fixture
def made_up_cohort():
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
        assert "Undefined here" in panel.figures["pq"].toolTip()

    def test_the_confusion_matrix_has_all_objects(self, qtbot):
        panel = make(qtbot, MetricsPanel())
        panel.show_evaluation(four_fates(), SCHEME)
        assert panel.confusion.texts() == [
            ["Round", "1", "1", "0"],
            ["Long", "0", "0", "1"],
            ["FP", "0", "1", ""],
        ]

    def test_it_is_a_line_until_it_is_unfolded_and_remembers_that(self, qtbot):
        panel = make(qtbot, MetricsPanel())
        panel.show_evaluation(four_fates(), SCHEME)
        panel.resize(500, 600)
        panel.show()
        line = [panel.figures[name] for name in ("pq", "sq", "dq", "detection_f1", "fn")]
        assert all(figure.isVisible() for figure in line)
        assert not panel.confusion.isVisible()
        assert panel.wanted_height() < 120
        panel.fold.click()
        assert all(figure.isVisible() for figure in line)
        assert panel.confusion.isVisible()
        assert make(qtbot, MetricsPanel()).fold.isChecked()
        panel.fold.click()
        assert not make(qtbot, MetricsPanel()).fold.isChecked()

    def test_figures_are_links_folded_or_not(self, qtbot):
        panel = make(qtbot, MetricsPanel())
        panel.show_evaluation(four_fates(), SCHEME)
        told = []
        panel.behind_wanted.connect(told.append)
        for name in ("fn", "balanced_accuracy"):
            QTest.mouseClick(panel.figures[name], Qt.MouseButton.LeftButton)
        assert told == [behind_figure("fn"), behind_figure("balanced_accuracy")]

    def test_without_evaluation_it_says_what_to_do(self, qtbot):
        panel = make(qtbot, MetricsPanel())
        panel.show_evaluation(None)
        assert panel.content.isHidden()


class TestSettingsPanel:
    def test_showing_tells_nothing(self, qtbot, made_up_cohort):
        panel = make(qtbot, SettingsPanel())
        told = []
        for signal in (panel.settings_chosen, panel.team.chosen, panel.source.chosen):
            signal.connect(told.append)
        panel.show_cohort(made_up_cohort)
        panel.team.show_choice("second")
        panel.show_settings(EvaluationSettings(radius=3), EvaluationSettings())
        assert told == []

    def test_a_choice_is_told_at_once(self, qtbot, made_up_cohort):
        panel = make(qtbot, SettingsPanel())
        panel.show_cohort(made_up_cohort)
        panel.show_settings(EvaluationSettings(), EvaluationSettings())
        told = []
        panel.settings_chosen.connect(told.append)
        panel.combos["matching"].choose(Matching.CENTROID)
        assert told == [EvaluationSettings(matching=Matching.CENTROID)]

    def test_overlaps_are_kept_on_request(self, qtbot, made_up_cohort):
        panel = make(qtbot, SettingsPanel())
        panel.show_cohort(made_up_cohort)
        panel.show_settings(EvaluationSettings(), EvaluationSettings())
        told, combo = [], panel.combos["overlaps"]
        panel.settings_chosen.connect(told.append)
        combo.choose(Overlaps.KEEP)
        assert told == [EvaluationSettings(overlaps=Overlaps.KEEP)]
        # "keep" is a word of another setting, too.
        tip = combo.itemData(combo.currentIndex(), Qt.ItemDataRole.ToolTipRole)
        assert "keeps all of its pixels" in tip

    def test_differences_are_marked_and_reset(self, qtbot):
        panel = make(qtbot, SettingsPanel())
        protocol = EvaluationSettings()
        panel.show_settings(replace(protocol, iou_threshold=0.3), protocol)
        assert panel.labels["iou_threshold"].text().startswith("●")
        assert not panel.labels["matching"].text().startswith("●")
        told = []
        panel.settings_chosen.connect(told.append)
        panel.reset.click()
        assert told == [protocol]

    def test_words_are_plain_and_the_code_name_is_in_the_tooltip(self, qtbot):
        panel = make(qtbot, SettingsPanel())
        menu = panel.combos["matching"]
        assert [menu.itemText(k) for k in range(menu.count())] == ["Overlap", "Centre"]
        tips = [menu.itemData(k, Qt.ItemDataRole.ToolTipRole) for k in range(menu.count())]
        assert "strict-iou" in tips[0]
        assert "centroid" in tips[1]
        assert "iou_threshold" in panel.threshold.toolTip()

    def test_a_number_is_typed_or_stepped(self, qtbot, made_up_cohort):
        panel = make(qtbot, SettingsPanel())
        panel.show_cohort(made_up_cohort)
        panel.show_settings(EvaluationSettings(), EvaluationSettings())
        told = []
        panel.settings_chosen.connect(told.append)
        number = panel.threshold.findChild(QLineEdit)
        number.setText("0.72")
        QTest.keyClick(number, Qt.Key.Key_Return)
        assert told[-1].iou_threshold == 0.72
        panel.show_settings(EvaluationSettings(), EvaluationSettings())
        QTest.keyClick(panel.threshold, Qt.Key.Key_Left)
        assert told[-1].iou_threshold == 0.45

    def test_folding_is_remembered(self, qtbot):
        panel = make(qtbot, SettingsPanel())
        panel.show()
        assert panel.team.isVisible()
        panel.fold.click()
        assert not panel.team.isVisible()
        other = make(qtbot, SettingsPanel())
        other.show()
        assert not other.team.isVisible()

    def test_settings_without_effect_are_disabled(self, qtbot):
        panel = make(qtbot, SettingsPanel())
        settings = EvaluationSettings(matching="centroid", restoration=Restoration.BORDER_REMOVED)
        panel.show_settings(settings, settings)
        assert not panel.threshold.isEnabled()
        assert not panel.radius.isEnabled()

    def test_only_sources_that_are_there_are_offered(self, qtbot, made_up_cohort):
        panel = make(qtbot, SettingsPanel())
        panel.show_cohort(made_up_cohort)
        assert panel.source.values == (None, Source.SUBMISSION)


def test_tags_and_note_are_in_sight_before_a_reviewer_is_named(qtbot):
    panel = make(qtbot, ReviewPanel())
    panel.resize(458, 412)  # about as in a window of 1280 x 800
    panel.show_reviewer("")
    panel.show_object("merger 1", None)
    panel.show()
    assert panel.verdicts.columns == 2
    for field in (panel.tags, panel.note):
        place = QRect(field.mapTo(panel, QPoint(0, 0)), field.size())
        assert panel.viewport().rect().contains(place)


@pytest.mark.parametrize(("width", "columns"), [(240, 1), (420, 2), (700, 2)])
def test_verdicts_have_large_buttons_in_as_many_columns_as_fit(qtbot, width, columns):
    panel = make(qtbot, ReviewPanel())
    panel.settings.fold.setChecked(False)
    panel.resize(width, 700)
    panel.show()
    qtbot.waitUntil(lambda: panel.verdicts.columns == columns)
    for button in panel.verdicts.buttons.values():
        assert button.height() >= 44
        assert button.width() >= button.fontMetrics().horizontalAdvance(button.text())


def test_a_note_grows_with_its_text(qtbot):
    panel = make(qtbot, ReviewPanel())
    panel.resize(420, 700)
    panel.show()
    one_line = panel.note.height()
    panel.note.set_text("\n".join("abc"))
    qtbot.waitUntil(lambda: panel.note.height() > one_line)
    three_lines = panel.note.height()
    panel.note.set_text("\n".join("abcdefghijkl"))
    qtbot.waitUntil(lambda: three_lines < panel.note.height() < 4 * three_lines)
    panel.note.set_text("")
    qtbot.waitUntil(lambda: panel.note.height() == one_line)


@pytest.mark.parametrize("kind", [MetricsPanel, ReviewPanel, EditsPanel])
def test_what_a_narrow_panel_cuts_off_can_be_scrolled_to(qtbot, kind):
    panel = make(qtbot, kind())
    if kind is MetricsPanel:
        panel.show_evaluation(four_fates(), SCHEME)
        panel.fold.setChecked(True)
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
        panel.show_comparison(compared_teams(teams))
        assert shown_text(panel.row_line) == NONE_ANNOTATED
        places = panel.which.values[-1]
        panel.which.choose(places)
        assert (places.heading, shown_text(panel.row_line)) == (FP_IN_SEVERAL, NONE_LISTED)

    def test_in_a_low_dock_the_list_shrinks_before_the_panel_scrolls(self, qtbot):
        panel = make(qtbot, TeamsPanel())
        panel.show_comparison(compared_teams({"first": four_fates(), "second": four_fates()}))
        panel.resize(700, 240)
        panel.show()
        handle_events()
        assert panel.table.isVisible()
        assert not panel.verticalScrollBar().isVisible()


class TestNavigator:
    def test_it_says_how_to_begin(self, qtbot):
        navigator = make(qtbot, Navigator())
        assert shown_text(navigator.hint) == NO_COHORT

    def test_a_cohort_without_teams_says_where_they_go(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        places = ("Teams/TEAM.json",)
        without = replace(made_up_cohort, teams=(), predictions={}, prediction_places=places)
        navigator.show_cohort(without, {})
        assert shown_text(navigator.hint) == NO_TEAMS.format(expected=without.predictions_expected)
        assert "such as Teams/TEAM.json, or a cohort.toml" in shown_text(navigator.hint)

    def test_missing_predictions_are_marked(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        summaries = {("P1_1", "first"): summary("P1_1", "first", missing=True)}
        navigator.show_cohort(made_up_cohort, summaries)
        navigator.show_team("first")
        assert navigator.places.text("P1_1", "PQ") == "missing"

    def test_a_region_without_annotation_is_called_that(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        bare = replace(made_up_cohort.regions[0], reference=None)
        summaries = {("P1_1", "first"): summary("P1_1", "first", missing=True)}
        navigator.show_cohort(
            replace(made_up_cohort, regions=(bare, *made_up_cohort.regions[1:])), summaries
        )
        navigator.show_team("first")
        assert navigator.places.text("P1_1", "PQ") == "no annotation"

    def test_a_line_appears_as_soon_as_it_is_known(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        summaries = {}
        navigator.show_cohort(made_up_cohort, summaries)
        navigator.show_team("first")
        assert navigator.places.text("P1_1", "PQ") == ""
        line = summaries["P1_1", "first"] = summary("P1_1", "first")
        navigator.show_summary(line)
        assert navigator.places.text("P1_1", "PQ") == f"{line.metrics.pq:.3f}"
        assert [navigator.places.text("P1_1", title) for title in ("FN", "FP", "Mis.")] == ["1"] * 3

    def test_a_team_has_its_mean_over_patients_once_all_is_known(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        summaries = {}
        navigator.show_cohort(made_up_cohort, summaries)
        navigator.show_team("first")
        for region in made_up_cohort.regions:
            assert navigator.teams.text("first", "Mean PQ") == ""
            summaries[region.name, "first"] = summary(region.name, "first")
            navigator.show_summary(summaries[region.name, "first"])
        assert navigator.teams.text("first", "Mean PQ") == f"{four_fates().metrics.pq:.3f}"

    def test_clicks_are_told_and_showing_is_not(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        told = []
        navigator.place_chosen.connect(told.append)
        navigator.teams.chosen.connect(told.append)
        navigator.show_cohort(made_up_cohort, {})
        navigator.show_region("P1_2")
        navigator.show_team("second")
        assert told == []
        navigator.places.choose("P2_1")
        assert told == ["P2_1"]

    def test_a_region_is_found_by_its_patient(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        navigator.show_cohort(made_up_cohort, {})
        navigator.focus_filter()
        navigator.places.filter.setText("p2")
        assert navigator.places.listed() == ["P2_1", "P2_2"]
        assert navigator.neighbour("P2_2", 1) == "P2_1"
        navigator.show_cohort(made_up_cohort, {})
        assert navigator.places.listed() == [region.name for region in made_up_cohort.regions]

    def test_the_next_region_is_the_next_of_the_table(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        summaries = {
            (name, "first"): summary(name, "first", missing=name == "P1_1")
            for name in ("P1_1", "P1_2")
        }
        navigator.show_cohort(made_up_cohort, summaries)
        navigator.show_team("first")
        navigator.places.table.sortByColumn(2, Qt.SortOrder.AscendingOrder)
        assert navigator.places.listed() == ["P1_2", "P1_1", "P2_1", "P2_2"]
        assert navigator.neighbour("P1_2", 1) == "P1_1"
        assert navigator.neighbour("P1_2", -1) == "P2_2"
        assert navigator.neighbour("nowhere", 1) == "P1_2"
        assert navigator.neighbour("nowhere", -1) == "P2_2"

    def test_four_teams_have_room_in_a_low_panel_unless_the_user_divides_it(
        self, qtbot, made_up_cohort
    ):
        navigator = make(qtbot, Navigator())
        navigator.resize(310, 268)
        navigator.show_cohort(made_up_cohort, {})
        navigator.show()
        row = navigator.teams.table.row_height
        assert navigator.teams.table.viewport().height() >= 4 * row - 2
        assert navigator.places.table.viewport().height() >= 2 * row
        splitter = navigator.findChild(QSplitter)
        splitter.moveSplitter(150, 1)
        before = splitter.sizes()
        navigator.resize(310, 269)
        assert splitter.sizes()[1] in (before[1], before[1] + 1)

    def test_patients_have_the_counts_of_their_regions(self, qtbot, made_up_cohort):
        navigator, told = make(qtbot, Navigator()), []
        summaries = {(name, "first"): summary(name, "first") for name in ("P1_1", "P1_2", "P2_1")}
        summaries["P1_2", "first"] = replace(
            summaries["P1_2", "first"], metrics=empty_pair().metrics
        )
        navigator.show_cohort(made_up_cohort, summaries)
        navigator.place_chosen.connect(told.append)
        navigator.show_team("first")
        navigator.show_region("P1_2")
        navigator.by_patient.setChecked(True)
        places = navigator.places
        assert places.listed() == ["P1", "P2"]
        assert places.selected() == "P1"
        assert [places.text("P1", title) for title in ("Regions", "FN", "FP")] == ["2", "2", "2"]
        assert places.text("P1", "PQ") == f"{four_fates().metrics.pq:.3f}"
        assert places.text("P2", "PQ") == ""  # a region is not known yet
        assert navigator.neighbour("P1_2", 1) == "P2_1"
        places.choose("P2")
        places.choose("P1")
        assert told == ["P2_1", "P1_1"]
        navigator.by_patient.setChecked(False)
        assert places.selected() == "P1_2"

    def test_a_click_on_the_patient_that_is_shown_goes_to_the_lowest_region(
        self, qtbot, made_up_cohort
    ):
        navigator, told = make(qtbot, Navigator()), []
        summaries = {(name, "first"): summary(name, "first") for name in ("P1_1", "P1_2", "P2_1")}
        navigator.show_cohort(made_up_cohort, summaries)
        navigator.place_chosen.connect(told.append)
        navigator.show_team("first")
        navigator.show_region("P1_2")
        navigator.by_patient.setChecked(True)
        table = navigator.places.table
        place = table.visualRect(table.model().index(0, 0)).center()
        for region in ("P1_1", "P1_1"):  # the second click changes nothing
            click(table.viewport(), place)
            assert told == ["P1_1"]
            navigator.show_region(region)

    def test_a_region_whose_pq_is_undefined_has_counts(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        empty = empty_pair()
        line = RegionSummary("P1_1", "first", empty.counts, empty.metrics)
        navigator.show_cohort(made_up_cohort, {("P1_1", "first"): line})
        navigator.show_team("first")
        assert [navigator.places.text("P1_1", title) for title in ("PQ", "FN")] == ["–", "0"]

    def test_the_share_that_is_reviewed_is_shown_once_it_is_known(self, qtbot, made_up_cohort):
        navigator = make(qtbot, Navigator())
        summaries = {("P1_1", "first"): summary("P1_1", "first")}
        navigator.show_cohort(made_up_cohort, summaries)
        navigator.show_team("first")
        assert "Reviewed" not in navigator.places.table.titles()
        navigator.show_reviewed({"P1_1": 2}, {})
        assert navigator.places.text("P1_1", "Reviewed") == "67 %"
        navigator.show_reviewed({"P1_1": 2}, {"P1_1": 3})  # of 3 that are left
        assert navigator.places.text("P1_1", "Reviewed") == "83 %"
        assert navigator.places.text("P1_2", "Reviewed") == ""

    def test_500_regions_are_filled_within_50_ms(self, qtbot, made_up_cohort):
        files = made_up_cohort.regions[0].reference or made_up_cohort.predictions["first", "P1_1"]
        names = [(f"P{n // 10}", f"P{n // 10}_{n}") for n in range(500)]
        regions = tuple(Region(name, patient, None, files) for patient, name in names)
        many = replace(made_up_cohort, regions=regions, teams=tuple(Team(name) for name in "abcd"))
        known = summary("", "")
        summaries = {
            (name, team): replace(known, region=name, team=team)
            for _, name in names
            for team in "abcd"
        }
        navigator = make(qtbot, Navigator())
        navigator.resize(350, 700)
        navigator.show()
        navigator.show_cohort(many, summaries)
        navigator.show_team("a")
        navigator.places.table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
        times = []
        for _, name in names[:20]:
            summaries[name, "a"] = replace(known, region=name, team="a")
            began = time.process_time()
            navigator.show_summary(summaries[name, "a"])
            QApplication.processEvents()
            times.append(time.process_time() - began)
        assert sorted(times)[10] < 0.05


class TestStrips:
    def test_counts_are_shown_once_or_per_side(self, qtbot):
        legend = make(qtbot, LegendStrip())
        evaluation = four_fates()
        pair, outcomes = evaluation.pair, evaluation.outcomes
        legend.show_counts(outcomes, pair.reference, pair.prediction, SCHEME)
        assert list(legend.chips) == ["TP", "FN", "FP", "misclassified", "ignored"]
        assert legend.chips["FN"].text() == "FN 1"
        assert legend.chips["FP"].text() == "FP 1"
        ignored = [outcomes.side(side).count(Status.IGNORED) for side in Side]
        assert ignored[0] != ignored[1]
        assert legend.chips["ignored"].text() == f"ignored {ignored[0]} | {ignored[1]}"
        assert outcomes.reference.count(Status.TP) == outcomes.prediction.count(Status.TP)
        assert legend.chips["TP"].text() == f"TP {outcomes.reference.count(Status.TP)}"
        legend.show_counts(None, None, None, None)
        assert legend.chips["FN"].text() == "FN"  # nothing to count

    def test_counts_of_a_slide_are_shortened_where_they_do_not_fit(self, qtbot):
        legend = make(qtbot, LegendStrip())
        words = ("TP", "FN", "misclassified", "ignored")
        counts = dict.fromkeys(Side, 123_456)
        legend.fill([Chip(word, (0, 0, 0), counts, "Meaning.") for word in words])
        legend.show()
        assert legend.chips["TP"].text() == "TP 123\u2009456"
        long = legend.sizeHint().width()
        legend.fit(long - 1)
        assert legend.chips["TP"].text() == "TP 123\u2009456"  # first without the explanation
        legend.fit(long // 2)
        assert legend.chips["TP"].text() == "TP 123k"
        assert legend.chips["misclassified"].text() == "mis. 123k"
        assert legend.sizeHint().width() < long
        assert "annotation 123\u2009456; " in legend.chips["TP"].toolTip().replace(
            "reference", "annotation"
        )
        legend.fit(long)
        assert legend.chips["TP"].text() == "TP 123\u2009456"

    def test_an_entry_is_clicked(self, qtbot):
        legend = make(qtbot, LegendStrip())
        legend.show()
        clicked = []
        legend.chip_clicked.connect(clicked.append)
        qtbot.mouseClick(legend.chips["FP"], Qt.MouseButton.LeftButton)
        assert clicked == ["FP"]

    def test_without_notes_their_button_has_no_text(self, qtbot):
        title = make(qtbot, TitleStrip())
        title.show_notes(2)
        assert title.notes.text() == "⚠ 2 notes"
        title.show_notes(0)
        assert title.notes.text() == ""

    def test_by_class_the_classes_are_counted(self, qtbot):
        legend = make(qtbot, LegendStrip())
        legend.show_look(Look(ColourBy.CLASS, Display.FILL))
        pair = four_fates().pair
        legend.show_counts(None, pair.reference, pair.prediction, SCHEME)
        assert legend.chips["Long"].text().split()[1] == "2"
        counts = [int((pair.side(s).class_index == 2).sum()) for s in Side]
        assert legend.chips["Round"].text() in ("Round 1", f"Round {counts[0]} | 1")

    def test_filled_objects_have_a_slider_for_their_opacity(self, qtbot):
        legend = make(qtbot, LegendStrip())
        chosen = []
        legend.look_chosen.connect(chosen.append)
        view = legend.view
        look = Look(ColourBy.CLASS, Display.FILL, 0.4)
        legend.show_look(look)
        assert view.opacity.value() == 40
        assert view.text() == "filled by class"
        assert not chosen
        view.opacity.setValue(85)
        assert chosen == [replace(look, fill_opacity=0.85)]
        view.choose(Display.OUTLINE)
        assert chosen[1:] == [replace(look, display=Display.OUTLINE)]

    def test_the_selected_object_is_told_in_a_line(self, qtbot):
        title = make(qtbot, TitleStrip())
        assert title.selected.text() == NOTHING_SELECTED
        evaluation = four_fates()
        facts = object_facts(
            evaluation.pair.reference,
            evaluation.outcomes,
            Side.REFERENCE,
            2,
            side_name="reference",
        )
        title.show_selected(facts)
        assert "reference 13 · Long · FN: missed" in title.selected.text()

    def test_notes_are_counted(self, qtbot):
        title = make(qtbot, TitleStrip())
        title.show_notes(2)
        assert shown_text(title.notes) == "⚠ 2 notes"
        title.show_notes(0)
        assert shown_text(title.notes) == ""


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
        assert dialog.intro.text().startswith("P1_1: 1 note.")
        of_a_team = Finding(FindingKind.UNKNOWN_CLASS, "2 of the class X", team="first")
        dialog.show_findings("P1_1", [of_a_team, Finding(FindingKind.VANISHED, "3 objects")])
        assert dialog.words() == [("unknown class", "first"), ("vanished", "annotation")]

    def test_long_details_are_not_cut_off(self, qtbot):
        dialog = make(qtbot, NotesDialog())
        text = "1357 px claimed by more than one object; the last one has them. " * 4
        findings = [Finding(FindingKind.OVERLAPPING, each) for each in ("short", text)]
        dialog.show_findings("P1_1", findings)
        dialog.show()
        tree = dialog.findChild(QTreeWidget)
        heights = {}
        for width in (760, 1200):
            dialog.resize(width, 320)
            handle_events()
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
        assert dialog.intro.text() == NOTHING
