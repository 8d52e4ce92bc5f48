"""The ranking panel in a real window: figures of the whole cohort, and what they lead to."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QFileDialog

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.cohort_lines import CohortLines
from napari_panoptic.display.styles import ratio_text
from napari_panoptic.questions.answer import AnswerPlot
from napari_panoptic.questions.conventions import Conventions
from napari_panoptic.values.conventions import (
    CONVENTIONS,
    DEFAULT_PROTOCOL,
    figure_words,
    score_of,
)
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.jobs import cohort_work, jobs
from napari_panoptic.viewer.jobs.cohort_work import WholeCohort
from napari_panoptic.viewer.kit.questions import FolderDialog
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels import ranking
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.question import presenter
from napari_panoptic.viewer.panels.question.presenter import NOT_EDITED, RUNNING, STALE, STOPPED
from napari_panoptic.viewer.panels.ranking import (
    CLICK_A_POINT,
    NOT_EVALUATED,
    RankingPresenter,
    RankingView,
)
from tests.viewer.finding import handle_events, other_source

LEFT = Qt.MouseButton.LeftButton
PLOTS = (
    *("PQ per patient", "DQ against SQ", "Precision against recall"),
    *("Confusion, counts", "Confusion, shares", "Mean ranks"),
    *("PQ against radius", "PQ against threshold", "Shifts by a pixel"),
    *("By size of nucleus", "Causes of failures"),
)
ConventionsPresenter = next(part for part in PARTS if part.title == "Conventions")


@pytest.fixture(scope="module")
def shown_parts():
    """Show the panel of the ranking, and those that its figures lead to."""
    return (FailuresPresenter, ConventionsPresenter, RankingPresenter)


@pytest.fixture
def in_sight(open_desk, wait_until):
    """Give the panel in sight."""
    desk = open_desk
    part = desk.presenter(RankingPresenter)
    session = desk.session
    session.set_team("careful")
    first = session.cohort.regions[0].name
    if session.snapshot.region.name != first or session.settings != session.protocol:
        desk.link.request(region=first, settings=session.protocol)
    wait_until(lambda: desk.is_settled)
    for picker, title in zip(part.panel.pickers, PLOTS[:2], strict=True):
        picker.choose(title)
    desk.show_workspace("Cohort")
    wait_until(lambda: is_in_sight(part.panel) and desk.is_settled and desk.is_arranged)
    return part


@pytest.fixture
def part(in_sight):
    """Give the panel with nothing evaluated yet."""
    in_sight.forget()
    return in_sight


@pytest.fixture
def evaluated(in_sight, open_desk, wait_until):
    """Give the panel with the cohort evaluated, by its button where the last test left nothing."""
    part = in_sight
    if part.found is None:
        QTest.mouseClick(part.panel.work.start, LEFT)
        assert part.is_busy
        wait_until(lambda: open_desk.is_settled)
    assert part.found is not None
    return part


def asked(desk):
    """Return the question whose answer the table of conventions shows."""
    session = desk.session
    teams = tuple(team.name for team in session.cohort.competing_teams)
    return Conventions(teams=teams, settings=session.settings)


def answered(desk):
    """Ask the files; return the values and ranks of the teams by the score of each convention."""
    frame = asked(desk).answer(desk.session.cohort).files["conventions.csv"]
    scores = {name: score_of(name).name for name in CONVENTIONS}
    values = {name: {} for name in CONVENTIONS}
    for row in frame.to_dict("records"):
        if not row["class"] and row["figure"] == scores[row["convention"]]:
            values[row["convention"]][row["team"]] = row["value"]
    ranks = {
        name: {
            team: 0 if pd.isna(value) else 1 + sum(v - value > 1e-9 for v in of_teams.values())
            for team, value in of_teams.items()
        }
        for name, of_teams in values.items()
    }
    return values, ranks


def cell_text(value, rank):
    return f"{ratio_text(value)} ({rank})" if rank else ratio_text(value)


def click_cell(table, row, column):
    index = table.model().index(row, column)
    table.scrollTo(index)
    QTest.mouseClick(table.viewport(), LEFT, pos=table.visualRect(index).center())


def choose(part, view, desk, wait_until):
    part.panel.plots.choose(view)
    wait_until(lambda: desk.is_settled)
    return part.panel.plots


class TestFigures:
    def test_it_says_what_to_do_first(self, part):
        assert part.panel.headline.text() == WholeCohort.hint
        assert not part.panel.report.isEnabled()
        assert not is_in_sight(part.panel.save)
        assert {pane.note.text() for pane in part.panel.plots_in_sight()} == {NOT_EVALUATED}

    def test_conventions_show_what_the_question_answers(self, evaluated, open_desk):
        values, ranks = answered(open_desk)
        table = evaluated.panel.conventions
        teams = [team.name for team in open_desk.session.cohort.competing_teams]
        usual = ranks[DEFAULT_PROTOCOL]
        others = {
            name: any(own[team] != usual[team] for team in teams if own[team])
            for name, own in ranks.items()
        }
        marks = ["ranking"] if any(others.values()) else []
        assert table.titles() == ["convention", "figure", *teams, *marks]
        shown = {row[0]: row[1:] for row in table.texts()}
        assert list(shown) == list(CONVENTIONS)
        for name, (figure, *cells) in shown.items():
            assert figure == figure_words(score_of(name).name)
            texts = [cell_text(values[name][team], ranks[name][team]) for team in teams]
            assert cells == [*texts, *(["other order" if others[name] else ""] if marks else [])]

    def test_the_best_of_each_convention_stands_out(self, evaluated, open_desk):
        _, ranks = answered(open_desk)
        table = evaluated.panel.conventions
        for row, name in enumerate(CONVENTIONS):
            for column, title in enumerate(table.titles()):
                font = table.model().index(row, column).data(Qt.ItemDataRole.FontRole)
                is_bold = font is not None and font.bold()
                assert is_bold is (ranks[name].get(title) == 1), (name, title)

    def test_advice_is_what_the_question_says(self, evaluated, open_desk):
        answer = asked(open_desk).answer(open_desk.session.cohort)
        assert is_in_sight(evaluated.panel.headline)
        assert evaluated.panel.headline.text() == answer.headline
        assert all(note in evaluated.panel.note.text().split("\n") for note in answer.notes)

    def test_patients_need_no_evaluated_cohort(self, part, open_desk):
        session, table = open_desk.session, part.panel.patients
        lines = CohortLines(session.cohort, session.summaries)
        assert table.listed() == list(lines.regions_of)
        for patient in lines.regions_of:
            for team in session.cohort.teams:
                expected = lines.patient(patient, team.name).pq
                assert table.text(patient, team.name) == ratio_text(expected)

    @pytest.mark.long
    def test_other_settings_leave_no_figure_of_the_old_ones(self, evaluated, open_desk, wait_until):
        open_desk.panels.settings.threshold.setValue(0.6)
        wait_until(lambda: open_desk.is_settled)
        assert evaluated.found is None
        assert evaluated.panel.headline.text() == STALE.format(verb=WholeCohort.verb)
        assert not evaluated.panel.report.isEnabled()

    def test_it_can_be_stopped(self, part, open_desk, wait_until):
        QTest.mouseClick(part.panel.work.start, LEFT)
        QTest.mouseClick(part.panel.work.stop, LEFT)
        wait_until(lambda: open_desk.is_settled)
        assert part.found is None
        assert part.panel.work.start.isVisible()
        assert part.panel.headline.text() == STOPPED.format(verb=WholeCohort.verb)

    @pytest.mark.long
    def test_while_it_goes_on_it_says_how_far(self, part, open_desk, wait_until):
        total = len(open_desk.session.cohort.regions)
        QTest.mouseClick(part.panel.work.start, LEFT)
        assert part.panel.headline.text() == RUNNING
        said, bar = set(), part.panel.work.bar
        wait_until(lambda: said.add((bar.toolTip(), bar.value())) or part.found is not None)
        known = {f"{done} of {total} regions" for done in range(total + 1)}
        assert len(known.intersection(text for text, _ in said)) > 1
        assert len({share for _, share in said}) > 1
        wait_until(lambda: open_desk.is_settled)

    def test_what_failed_says_again_what_to_do(self, part, open_desk, wait_until, monkeypatch):
        def fails(*_asked, **_options):
            raise PanopticError("nothing to report")

        told = []
        monkeypatch.setattr(jobs, "show_error", told.append)
        monkeypatch.setattr(cohort_work, "cohort_report", fails)
        QTest.mouseClick(part.panel.work.start, LEFT)
        wait_until(lambda: open_desk.is_settled)
        assert told == ["nothing to report"]
        assert part.panel.headline.text() == WholeCohort.hint

    @pytest.mark.long
    def test_stopped_it_goes_on_from_there(self, part, open_desk, wait_until, monkeypatch, cache):
        taken_over = []
        report = cohort_work.cohort_report

        def noted(*asked, on_result, **options):
            def note(done):
                taken_over.append(done.is_taken_over)
                on_result(done)

            return report(*asked, on_result=note, **options)

        monkeypatch.setattr(cohort_work, "cohort_report", noted)
        QTest.mouseClick(part.panel.work.start, LEFT)
        wait_until(lambda: len(taken_over) >= 3)
        QTest.mouseClick(part.panel.work.stop, LEFT)
        wait_until(lambda: open_desk.is_settled)
        assert part.found is None
        n_done = len(list(cache.rglob("*.part.json")))
        assert n_done >= 3
        taken_over.clear()
        QTest.mouseClick(part.panel.work.start, LEFT)
        wait_until(lambda: open_desk.is_settled)
        assert part.found is not None
        assert sum(taken_over) >= n_done
        assert not list(cache.rglob("*.part.json"))

    def test_every_plot_shows_something(self, evaluated, open_desk, wait_until):
        for view in PLOTS:
            pane = choose(evaluated, view, open_desk, wait_until)
            wait_until(lambda pane=pane: is_in_sight(pane.view.canvas))
            assert (pane.note.text() == CLICK_A_POINT) is (view in PLOTS[:3])
            figure = pane.view.plot.figure
            # Two teams have no mean ranks: the figure says so.
            assert figure.axes or figure.texts, view

    def test_every_table_is_filled(self, evaluated, open_desk):
        panel = evaluated.panel
        teams = [team.name for team in open_desk.session.cohort.competing_teams]
        assert is_in_sight(panel.conventions)
        for table in (panel.conventions, panel.statistics):
            assert len(table.texts()) > 1
            assert len(table.texts()[0]) in (2 + len(teams), 3 + len(teams))


class TestWhatIsBehind:
    def test_a_figure_brings_conventions_in_sight(self, evaluated, open_desk, wait_until):
        other, table = open_desk.presenter(ConventionsPresenter), evaluated.panel.conventions
        teams = {team.name for team in open_desk.session.cohort.competing_teams}
        for column, title in enumerate(table.titles()):
            assert not is_in_sight(other.panel)
            click_cell(table, 0, column)
            if title not in teams:
                handle_events()  # nothing comes in sight
                continue
            wait_until(lambda: is_in_sight(other.panel))
            assert open_desk.workspace.name == "Cohort"
            open_desk.reveal(RankingPresenter.title)
            wait_until(lambda: is_in_sight(table) and not is_in_sight(other.panel))

    @pytest.mark.long
    def test_conventions_list_objects_and_a_row_shows_exactly_them(
        self, evaluated, open_desk, wait_until
    ):
        cohort = open_desk.session.cohort
        click_cell(evaluated.panel.conventions, 0, 2)
        part = open_desk.presenter(ConventionsPresenter)
        wait_until(lambda: is_in_sight(part.panel))
        QTest.mouseClick(part.panel.work.start, LEFT)
        wait_until(lambda: open_desk.is_settled)
        title = "Nuclei counted in different ways"
        (wanted,) = [t for t in asked(open_desk).answer(cohort).tables if t.title == title]
        (shown,) = [t for t in part.panel.which.values if t.title == title]
        part.panel.which.choose(shown)
        pd.testing.assert_frame_equal(shown.frame, wanted.frame)
        listed = part.panel.table.texts()
        assert [row[0] for row in listed] == wanted.frame["reason"].tolist()
        row = next(n for n, team in enumerate(wanted.frame["team"]) if team == "merger")
        part.panel.table.select(row)
        QTest.keyClick(part.panel.table, Qt.Key.Key_Return)
        gallery = open_desk.presenter(FailuresPresenter)
        wait_until(lambda: is_in_sight(gallery.panel) and open_desk.is_settled)
        names = {gallery.failures.name(int(own)) for own in gallery.panel.view.items.rows}
        assert names == set(wanted.objects(row).names)
        assert len(names) == wanted.frame["objects"][row] > 0
        # The list stays while the user goes through it.
        open_desk.show_workspace("Cohort")
        open_desk.reveal("Conventions")
        wait_until(lambda: is_in_sight(part.panel.table))
        assert part.panel.table.texts() == listed
        open_desk.reveal(RankingPresenter.title)

    def test_a_point_opens_its_region(self, evaluated, open_desk, wait_until):
        view = choose(evaluated, PLOTS[0], open_desk, wait_until).view
        cohort = open_desk.session.cohort
        artist, points = next(
            (artist, points)
            for artist, points in view.plot.points.items()
            if points and points[0].patient and points[0].team == "merger"
        )
        place = next(k for k, p in enumerate(points) if p.patient != cohort.regions[0].patient)
        point = points[place]
        view.canvas.draw()
        x, y = artist.axes.transData.transform(artist.get_xydata()[place])
        ratio = view.canvas.device_pixel_ratio
        at = QPoint(round(x / ratio), round(view.canvas.height() - y / ratio))
        QTest.mouseClick(view.canvas, LEFT, pos=at)
        wait_until(lambda: open_desk.is_settled)
        session = open_desk.session
        assert session.team == point.team
        assert session.snapshot.region.patient == point.patient
        assert open_desk.workspace.arrangement.has_image

    @pytest.mark.long
    @pytest.mark.parametrize("by_key", [False, True])
    def test_a_cell_of_a_patient_opens_its_worst_region(self, part, open_desk, wait_until, by_key):
        session, names = open_desk.session, part.panel.patients
        patient, table = names.listed()[-1], names.table
        index = table.model().index(len(names.listed()) - 1, table.titles().index("merger"))
        if by_key:
            table.setCurrentIndex(index)
            QTest.keyClick(table, Qt.Key.Key_Return)
        else:
            table.scrollTo(index)
            QTest.mouseClick(table.viewport(), LEFT, pos=table.visualRect(index).center())
        wait_until(lambda: open_desk.is_settled)
        assert session.team == "merger"
        lines = CohortLines(session.cohort, session.summaries)
        assert session.snapshot.region.name == lines.worst_region(patient, "merger")
        assert open_desk.workspace.arrangement.has_image


class TestOtherFiles:
    def test_another_source_leaves_no_figure_of_the_old_one(self, evaluated, open_desk, wait_until):
        panel = evaluated.panel
        with other_source(open_desk, wait_until):
            wait_until(lambda: open_desk.is_settled)
            assert not panel.report.isEnabled()
            assert not is_in_sight(panel.save)
            assert not is_in_sight(panel.conventions)
            assert panel.headline.text() == STALE.format(verb=WholeCohort.verb)
            assert {pane.note.text() for pane in panel.plots_in_sight()} == {NOT_EVALUATED}


class TestRoom:
    @pytest.mark.parametrize("size", [(800, 640), (1050, 880), (1600, 900)])
    def test_everything_is_in_sight_in_place_of_the_image(self, qtbot, size):
        panel = RankingView()
        qtbot.addWidget(panel)
        panel.resize(*size)
        panel.show()
        shown = (panel.work.start, panel.patients, *panel.plots_in_sight())
        qtbot.waitUntil(lambda: all(is_in_sight(widget) for widget in shown))
        assert len(panel.plots_in_sight()) == (1 if size[0] < 1000 else 2)

    def test_plots_that_come_show_no_menu_for_which_there_is_no_room(self, qtbot):
        panel = RankingView()
        qtbot.addWidget(panel)
        panel.resize(800, 640)
        panel.show()
        qtbot.waitUntil(lambda: len(panel.plots_in_sight()) == 1)
        for picker in panel.pickers:
            picker.fill([AnswerPlot("nothing_to_show", "Mean ranks", "", ("none",))])
        assert panel.plots_in_sight() == [panel.plots]
        qtbot.waitUntil(lambda: not panel.plots.work.is_busy)

    def test_patients_get_their_share_also_before_the_first_layout(self, qtbot):
        panel = RankingView()
        qtbot.addWidget(panel)
        panel._arrange()  # as in a dock that was never shown
        panel.resize(890, 620)
        panel._arrange()
        panel.show()
        qtbot.waitUntil(lambda: is_in_sight(panel.patients))
        assert panel.patients.width() > panel.width() / 2

    @pytest.mark.parametrize(("width", "are_low"), [(890, True), (1130, False)])
    def test_plots_stand_beside_the_patients_where_tables_need_the_width(
        self, qtbot, width, are_low
    ):
        panel = RankingView()
        qtbot.addWidget(panel)
        panel.resize(width, 620)
        panel.show()
        plot = panel.plots
        qtbot.waitUntil(lambda: is_in_sight(plot) and is_in_sight(panel.patients))
        top = plot.mapTo(panel, plot.rect().topLeft()).y()
        patients = panel.patients.mapTo(panel, panel.patients.rect().topLeft()).y()
        assert (top == patients) is are_low
        if are_low:
            assert panel.patients.height() > panel.height() / 3
            assert plot.width() > panel.width() / 3

    def test_a_narrow_column_shows_one_after_the_other(self, qtbot):
        panel = RankingView()
        qtbot.addWidget(panel)
        panel.resize(400, 500)
        panel.show()
        pages = (panel.work.start, panel.plots, panel.patients)
        for number, page in enumerate(pages):
            panel.tabs.setCurrentIndex(number)
            qtbot.waitUntil(lambda page=page: is_in_sight(page))
            assert panel.minimumSizeHint().width() <= 400
            others = {1, 2} - {number}
            assert not any(is_in_sight(pages[other]) for other in others)
        assert len(panel.plots_in_sight()) == 1


class TestReport:
    @pytest.mark.long
    def test_it_is_saved_where_somebody_says(
        self, evaluated, open_desk, wait_until, tmp_path, monkeypatch
    ):
        told = []
        monkeypatch.setattr(ranking, "show_info", told.append)
        path = tmp_path / "report.html"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_a, **_k: (str(path), ""))
        QTest.mouseClick(evaluated.panel.report, LEFT)
        wait_until(lambda: open_desk.is_settled)
        assert told == [f"The report is in {path}"]
        text = path.read_text(encoding="utf-8")
        assert text.lower().startswith("<!doctype html>")
        assert "merger" in text

    @pytest.mark.long
    @pytest.mark.parametrize("ending", [".svg", ".png"])
    def test_a_plot_is_saved_by_itself(
        self, evaluated, open_desk, wait_until, tmp_path, monkeypatch, ending
    ):
        pane = choose(evaluated, PLOTS[8], open_desk, wait_until)
        told = []
        monkeypatch.setattr(presenter, "show_info", told.append)
        monkeypatch.setattr(jobs, "show_error", told.append)
        path = tmp_path / f"plot{ending}"
        for place, beginning in (
            (path, "The plot is in"),
            (tmp_path / "nowhere" / path.name, ""),
            (tmp_path / "plot.tulip", ""),
        ):
            monkeypatch.setattr(
                QFileDialog, "getSaveFileName", lambda *_a, place=place, **_k: (str(place), "")
            )
            QTest.mouseClick(pane.save, LEFT)
            assert told[-1].startswith(beginning)
        assert len(told) == 3
        assert path.read_bytes()[:4] in (b"\x89PNG", b"<?xm")
        assert pane.view.canvas.isVisible()

    def test_tables_are_saved_with_full_precision(
        self, evaluated, open_desk, wait_until, tmp_path, monkeypatch
    ):
        told = []
        monkeypatch.setattr(presenter, "show_info", told.append)
        monkeypatch.setattr(FolderDialog, "ask", lambda *_a: str(tmp_path))
        QTest.mouseClick(evaluated.panel.save, LEFT)
        wait_until(lambda: open_desk.is_settled)
        assert told == [f"The files are in {tmp_path}"]
        record = json.loads((tmp_path / "ranking.json").read_text("utf-8"))
        assert set(record["statistics"]) == set(evaluated.report.statistics)
        found = pd.read_csv(tmp_path / "conventions.csv", keep_default_na=False, na_values={})
        wanted = asked(open_desk).answer(open_desk.session.cohort).files["conventions.csv"]
        assert list(found) == list(wanted)
        assert len(found) == len(wanted)
        for column in wanted:
            if column in ("value", "units"):
                texts = found[column].replace("", "nan").astype(float).tolist()
                np.testing.assert_array_equal(texts, wanted[column].astype(float))
            else:
                assert found[column].tolist() == wanted[column].tolist()
        patients = pd.read_csv(tmp_path / "ranking-patients.csv")
        assert set(patients["patient"]) == set(open_desk.session.cohort.patients)
        metrics = pd.read_csv(tmp_path / "ranking-statistics.csv")["metric"]
        assert set(metrics) == set(evaluated.report.statistics)

    @pytest.mark.long
    def test_a_place_that_cannot_be_written_is_told(
        self, evaluated, open_desk, wait_until, tmp_path, monkeypatch
    ):
        told = []
        monkeypatch.setattr(jobs, "show_error", told.append)
        evaluated.save_report(tmp_path / "nowhere" / "report.html")
        wait_until(lambda: open_desk.is_settled)
        assert len(told) == 1
        assert "nowhere" in told[0]

    @pytest.mark.long
    def test_a_table_of_patients_that_is_wrong_is_told(
        self, part, open_desk, wait_until, monkeypatch
    ):
        root = open_desk.session.cohort.root
        path = root / "metadata.csv"
        path.write_text("name,organ\n", encoding="utf-8")
        told = []
        monkeypatch.setattr(ranking, "show_error", told.append)
        try:
            part.ask()
            wait_until(lambda: open_desk.is_settled)
        finally:
            path.unlink()
        assert "with the column patient" in told[0]
        assert part.found is not None  # the rest goes on without it


def test_unsaved_edits_are_noted_while_there_are_any(evaluated, open_desk, wait_until):
    session, note = open_desk.session, evaluated.panel.note
    own = session.known_ids(Side.PREDICTION)[0]
    y, x = np.nonzero(session.edited_labels(Side.PREDICTION).id_image() == own)
    assert NOT_EDITED not in note.text()
    try:
        session.edit(Side.PREDICTION, y, x, 0)
        wait_until(lambda: open_desk.is_settled)
        assert NOT_EDITED in note.text()
        assert is_in_sight(note)
    finally:
        session.discard_edits()
    wait_until(lambda: open_desk.is_settled)
    assert NOT_EDITED not in note.text()


@pytest.mark.long
def test_averages_by_tissue_come_from_the_table(part, open_desk, wait_until):
    cohort = open_desk.session.cohort
    patients = sorted({region.patient for region in cohort.regions})
    path = cohort.root / "metadata.csv"
    lines = [f"{patient},organ {number % 2}" for number, patient in enumerate(patients)]
    path.write_text("\n".join(["patient,organ", *lines]), encoding="utf-8")
    try:
        part.ask()
        wait_until(lambda: open_desk.is_settled)
        values, ranks = answered(open_desk)
    finally:
        path.unlink()
    without, _ = answered(open_desk)
    titles = part.panel.conventions.titles()
    shown = {row[0]: dict(zip(titles, row, strict=True)) for row in part.panel.conventions.texts()}
    for name in CONVENTIONS:
        for team, value in values[name].items():
            assert shown[name][team] == cell_text(value, ranks[name][team])
    frame = part.report.conventions.files["conventions.csv"]
    of_tissues = frame[frame["mean_over"] == "tissues"]
    assert set(of_tissues["units"]) == {2}
    assert values["pannuke"] != without["pannuke"]
    assert values["disentangled"] == without["disentangled"]
