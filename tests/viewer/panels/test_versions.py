"""Two teams as versions: in words, as a matrix, as lists, by real clicks and keys."""

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.explain.failures import FailureName
from napari_panoptic.nuclei.regions.results import counts_of_rows
from napari_panoptic.questions.compare import (
    CLASSES as CLASSES_LIST,
)
from napari_panoptic.questions.compare import (
    PARTS,
    PATIENTS,
    REGIONS,
    Compare,
    comparison_table,
    failure_names,
    headline,
)
from napari_panoptic.questions.engines.version_diff import Change
from napari_panoptic.questions.engines.versions import Version, compare_versions
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.question.presenter import NOT_EDITED, STALE, STOPPED
from napari_panoptic.viewer.panels.versions import (
    LISTS,
    OBJECTS,
    MatrixCell,
    VersionsPresenter,
    columns_of,
    comparison_shown,
    listed_rows,
)
from napari_panoptic.viewer.state.desk_state import DeskState
from napari_panoptic.viewer.state.preferences import Preferences, VersionChoice, VersionScope
from tests.support.version_rows import CLASSES, Rates, reference_objects, version_of
from tests.viewer.finding import canvas_of, shown_text

LEFT = Qt.MouseButton.LeftButton
OLD, NEW = "merger", "careful"
HERE = VersionChoice(OLD, NEW, VersionScope.REGION)
EVERYWHERE = VersionChoice(OLD, NEW, VersionScope.COHORT)


def compared(patients, *, seed=3):
    """Compare two versions drawn at random, of which the new one is better."""
    rng = np.random.default_rng(seed)
    reference = reference_objects(rng, patients=patients, regions=2, objects=20)
    versions = []
    for name, fail in (("v1", 0.5), ("v2", 0.2)):
        rates = {patient: Rates(fail) for patient in reference["patient"].unique()}
        objects = version_of(rng, reference, rates)
        versions.append(Version(name, objects, counts_of_rows(objects, CLASSES)))
    return compare_versions(*versions, CLASSES)


class TestWords:
    def test_the_headline_has_counts_difference_interval_p_and_verdict(self):
        found = compared(8, seed=4)
        one, counts, text = found.deciding, found.diff.counts, headline(found)
        mean, low, high = one.interval.mean, one.interval.low, one.interval.high
        fixed, broken = counts[Change.FIXED], counts[Change.BROKEN]
        assert f"v2 fixed {fixed} nuclei of v1 and broke {broken}" in text
        assert f"PQ +{mean:.4f} [+{low:.4f}, +{high:.4f}]" in text
        assert f"p = {one.p:.3f}, 8 patients: not worse" in text

    def test_with_few_patients_it_says_that_nothing_can_be_decided(self):
        text = headline(compared(4))
        assert "cannot be decided with 4 patients: at least 8 are needed" in text
        assert "p =" not in text
        assert "[" not in text

    def test_failures_are_those_of_the_version_that_fails(self):
        diff = compared(6).diff
        expected = []
        for row in diff.rows.to_dict("records"):
            is_new = row["status_after"] in ("FN", "FP", "misclassified")
            is_old = row["status_before"] in ("FN", "FP", "misclassified")
            if is_new or is_old:
                id_ = row["id"] if is_new else row["id_before"]
                team = "v2" if is_new else "v1"
                expected.append(FailureName(team, row["region"], Side(row["side"]), id_))
        assert failure_names(diff, range(len(diff.rows))) == expected
        assert expected[0].team == "v2"
        assert diff.rows["change"].iloc[0] == "broken"

    def test_every_object_is_in_one_cell_of_a_matrix(self):
        diff = compared(6).diff
        found = np.zeros(len(diff.rows), np.int64)
        for side in Side:
            cells = diff.matrix(side)
            for before in cells.index:
                for after in cells.columns:
                    listed = listed_rows(diff, MatrixCell(side, before, after))
                    assert listed.sum() == cells.at[before, after]
                    found += listed
        assert (found == 1).all()

    def test_every_split_adds_up_to_the_difference(self):
        found = compared(6)
        sums = comparison_table(found, PARTS).frame.groupby("by")["delta_pq"].sum()
        assert set(sums.index) == {"quality", "change", "cause", "class"}
        np.testing.assert_allclose(sums, found.change.total)
        lists = {table.title: table for table in comparison_shown(found).tables}
        for title in (OBJECTS, CLASSES_LIST, PATIENTS, REGIONS):
            part = next(c for c in columns_of(lists[title], found) if c.title == "ΔPQ")
            np.testing.assert_allclose(part.values.sum(), found.change.total)


class TestKept:
    def test_the_choice_comes_back_in_the_next_window(self, preferences):
        DeskState.restored(preferences).versions = EVERYWHERE
        assert DeskState.restored(preferences).versions == EVERYWHERE

    @pytest.mark.parametrize("text", ["", "[]", '{"scope": "moon"}', "{"])
    def test_what_makes_no_sense_counts_as_unset(self, text):
        assert Preferences({("desk", "versions"): text}).versions == VersionChoice()


@pytest.fixture(scope="module")
def shown_parts():
    """Show the panel, and the gallery that it leads to."""
    return (VersionsPresenter, FailuresPresenter)


@pytest.fixture
def at_first(fresh_desk, wait_until):
    fresh_desk.state.versions = HERE
    wait_until(lambda: fresh_desk.is_settled)


@pytest.fixture
def versions(desk, wait_until):
    found = desk.presenter(VersionsPresenter)
    desk.raise_part(found)
    wait_until(lambda: found.is_in_sight and desk.is_settled)
    assert found.comparison is not None
    return found


@pytest.fixture
def panel(versions):
    if versions.panel.chosen is not None:
        versions.panel.choose(versions.panel.chosen)
    versions.panel.list_table(OBJECTS)
    return versions.panel


@pytest.fixture
def over_cohort(desk, versions, wait_until):
    """Compare over the cohort, once for all tests."""
    desk.state.versions = EVERYWHERE
    if versions.comparison is None:
        QTest.mouseClick(versions.panel.work.start, LEFT)
        wait_until(lambda: desk.is_settled and not versions.is_busy)
    return versions


def press_cell(table, row, column):
    index = table.model().index(row, column)
    table.scrollTo(index)
    QTest.mouseClick(
        table.viewport(), LEFT, Qt.KeyboardModifier.NoModifier, table.visualRect(index).center()
    )


def found_by(desk, team):
    """Return ids of the annotated nuclei that a team finds, from its outcomes."""
    outcomes = desk.session.snapshot.evaluations[team].outcomes.reference
    return set(outcomes.ids[outcomes.status == STATUS_CODE[Status.TP]].tolist())


class TestRegion:
    def test_fixed_and_broken_are_the_differences_of_the_sets_of_tps(self, desk, panel):
        old, new = found_by(desk, OLD), found_by(desk, NEW)
        assert f"fixed {len(new - old)} nuclei of {OLD} and broke {len(old - new)}" in (
            shown_text(panel.headline)
        )
        assert "cannot be decided with 1 patient" in shown_text(panel.headline)
        panel.choose(Change.FIXED)
        assert {int(line[3]) for line in panel.table.texts()} == new - old

    def test_exchanged_versions_exchange_fixed_and_broken(self, desk, versions, panel, wait_until):
        before = dict(versions.comparison.diff.counts)
        QTest.mouseClick(panel.swap, LEFT)
        wait_until(lambda: desk.is_settled)
        after = versions.comparison.diff.counts
        assert desk.state.versions == VersionChoice(NEW, OLD, VersionScope.REGION)
        assert (after[Change.FIXED], after[Change.BROKEN]) == (
            before[Change.BROKEN],
            before[Change.FIXED],
        )

    def test_the_same_team_twice_exchanges_the_versions(self, desk, panel, wait_until):
        panel.old.choose(NEW)
        wait_until(lambda: desk.is_settled)
        assert desk.state.versions == VersionChoice(NEW, OLD, VersionScope.REGION)

    def test_a_cell_lists_its_objects_and_pressed_again_all(self, versions, panel):
        table = panel.matrices[Side.REFERENCE]
        texts_ = table.texts()
        row, column = next(
            (r, c) for r, line in enumerate(texts_) for c, n in enumerate(line) if c and n
        )
        press_cell(table, row, column)
        assert len(panel.listed()) == int(texts_[row][column])
        assert panel.chosen.side is Side.REFERENCE
        outcomes = {line[5] for line in panel.table.texts()}
        assert outcomes == {texts_[row][0]}
        press_cell(table, row, column)
        assert len(panel.listed()) == len(versions.comparison.diff.rows)

    def test_a_cell_is_pressed_by_keys(self, panel):
        table = panel.changes
        column = next(c for c, n in enumerate(table.texts()[0]) if int(n))
        table.setFocus()
        table.setCurrentIndex(table.model().index(0, column))
        QTest.keyClick(table, Qt.Key.Key_Return)
        assert panel.chosen is list(Change)[column]
        assert len(panel.listed()) == int(table.texts()[0][column])

    @pytest.mark.long
    @pytest.mark.parametrize(("column", "team"), [(3, NEW), (5, OLD), (6, NEW), (7, OLD)])
    def test_a_row_goes_to_the_object_in_the_version_of_its_column(
        self, desk, versions, panel, wait_until, column, team
    ):
        panel.choose(Change.FIXED)
        row = panel.listed()[1]
        press_cell(panel.table, 1, column)
        wait_until(lambda: desk.is_settled)
        chosen = desk.session.selection
        expected = versions.comparison.diff.rows["id"].iloc[row]
        assert (chosen.team, chosen.side, chosen.id) == (team, Side.REFERENCE, expected)

    @pytest.mark.long
    def test_an_edit_is_compared(self, desk, versions, wait_until):
        desk.session.set_team(NEW)
        wait_until(lambda: desk.is_settled)
        before = versions.comparison.diff
        fixed = before.rows[before.rows["change"] == "fixed"].iloc[0]
        prediction = desk.session.snapshot.predictions[NEW]
        number = int(np.flatnonzero(prediction.ids == fixed["partner_after"])[0]) + 1
        y, x = np.nonzero(prediction.index == number)
        try:
            desk.session.edit(Side.PREDICTION, y, x, 0)
            wait_until(
                lambda: (
                    versions.comparison.diff.counts[Change.FIXED] == before.counts[Change.FIXED] - 1
                )
            )
        finally:
            desk.session.discard_edits()
        wait_until(lambda: desk.is_settled)
        wait_until(
            lambda: versions.comparison.diff.counts[Change.FIXED] == before.counts[Change.FIXED]
        )

    @pytest.mark.parametrize("title", LISTS)
    def test_every_list_shows_the_figures_of_the_comparison(self, versions, panel, title):
        panel.which.choose(next(own for own in panel.which.values if own.title == title))
        columns = columns_of(panel.shown_table, versions.comparison)
        assert panel.table.titles() == [column.title for column in columns]
        assert len(panel.table.rows()) == len(columns[0].values) > 0

    def test_a_key_brings_it_to_the_front(self, desk, versions, wait_until):
        desk.show_workspace("Inspect")
        wait_until(lambda: not versions.is_in_sight)
        canvas = canvas_of(desk.viewer)
        QTest.keyClick(canvas, Qt.Key.Key_N, Qt.KeyboardModifier.AltModifier)
        wait_until(lambda: versions.is_in_sight)


class TestCohort:
    def test_before_it_is_compared_a_button_offers_it(self, desk, panel, wait_until):
        desk.state.versions = VersionChoice(NEW, OLD, VersionScope.COHORT)
        wait_until(lambda: desk.is_settled)
        assert shown_text(panel.headline) == Compare.hint
        assert is_in_sight(panel.work.start)
        assert not is_in_sight(panel.table)

    @pytest.mark.long
    def test_it_shows_the_same_as_the_command(self, desk, over_cohort):
        session = desk.session
        expected = Compare(old=OLD, new=NEW, settings=session.settings).gather(session.cohort)
        shown = over_cohort.comparison
        assert shown_text(over_cohort.panel.headline) == headline(expected)
        pd.testing.assert_frame_equal(shown.diff.rows, expected.diff.rows)
        assert shown.decision == expected.decision

    @pytest.mark.long
    def test_a_region_of_the_list_is_opened(self, desk, over_cohort, wait_until):
        panel = over_cohort.panel
        panel.list_table(REGIONS)
        name = over_cohort.comparison.diff.by("patient", "region")["region"].iloc[2]
        assert panel.table.texts()[2][1] == "…" + name[-2:]  # beside its patient
        press_cell(panel.table, 2, 1)
        wait_until(lambda: desk.is_settled)
        assert desk.session.snapshot.region.name == name

    @pytest.mark.long
    def test_the_gallery_shows_exactly_the_broken_objects(self, desk, over_cohort, wait_until):
        panel = over_cohort.panel
        panel.choose(Change.BROKEN)
        rows = over_cohort.comparison.diff.rows
        broken = rows[rows["change"] == "broken"]
        QTest.mouseClick(panel.making.start, LEFT)
        gallery = desk.presenter(FailuresPresenter)
        wait_until(lambda: desk.is_settled and is_in_sight(gallery.panel))
        items = gallery.panel.view.items
        wait_until(lambda: len(items.rows) == len(broken))
        shown = {gallery.failures.name(int(row)) for row in items.rows}
        assert shown == {
            FailureName(NEW, region, Side.REFERENCE, id_)
            for region, id_ in zip(broken["region"], broken["id"], strict=True)
        }
        assert f"{OLD} → {NEW}" in gallery.panel.chosen.text()

    @pytest.mark.long
    def test_other_settings_make_it_outdated_until_they_are_set_back(
        self, desk, over_cohort, wait_until
    ):
        settings, shown = desk.session.settings, shown_text(over_cohort.panel.headline)
        try:
            desk.panels.settings.settings_chosen.emit(settings.replaced(iou_threshold=0.7))
            wait_until(lambda: desk.is_settled)
            assert shown_text(over_cohort.panel.headline) == STALE.format(verb=Compare.verb)
        finally:
            desk.panels.settings.settings_chosen.emit(settings)
            wait_until(lambda: desk.is_settled)
        assert shown_text(over_cohort.panel.headline) == shown
        assert is_in_sight(over_cohort.panel.table)

    def test_it_can_be_stopped(self, desk, versions, wait_until):
        desk.state.versions = VersionChoice(NEW, OLD, VersionScope.COHORT)
        QTest.mouseClick(versions.panel.work.start, LEFT)
        assert versions.panel.work.is_running
        QTest.mouseClick(versions.panel.work.stop, LEFT)
        wait_until(lambda: desk.is_settled)
        assert shown_text(versions.panel.headline) == STOPPED.format(verb=Compare.verb)
        assert not versions.panel.work.is_running
        assert versions.comparison is None

    def test_a_threshold_is_no_edit(self, desk, over_cohort, wait_until):
        shown = shown_text(over_cohort.panel.headline)
        assert shown
        try:
            desk.session.set_threshold(0.5)
            wait_until(lambda: desk.is_settled)
            assert NOT_EDITED not in shown_text(over_cohort.panel.note)
            assert shown_text(over_cohort.panel.headline) == shown
        finally:
            desk.session.set_threshold(None)
            wait_until(lambda: desk.is_settled)

    @pytest.mark.long
    def test_edits_are_said_to_be_left_out_until_they_are_discarded(
        self, desk, over_cohort, wait_until
    ):
        reference = desk.session.snapshot.reference
        y, x = np.nonzero(reference.index == 1)
        try:
            desk.session.edit(Side.REFERENCE, y, x, 0)
            wait_until(lambda: NOT_EDITED in shown_text(over_cohort.panel.note))
        finally:
            desk.session.discard_edits()
            wait_until(lambda: desk.is_settled)
        assert NOT_EDITED not in shown_text(over_cohort.panel.note)
