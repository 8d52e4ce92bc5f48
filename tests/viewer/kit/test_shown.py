"""Names from files are text wherever Qt shows them."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from qtpy.QtCore import Qt
from qtpy.QtGui import QTextDocument
from qtpy.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QLabel,
    QTableView,
    QTreeWidget,
    QWidget,
)

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.samples.write import write_raters_sample
from napari_panoptic.values.cohort import Team
from napari_panoptic.viewer import opening
from napari_panoptic.viewer.desk.nuclei import desk_in, desk_of
from napari_panoptic.viewer.kit import shown as shown_module
from napari_panoptic.viewer.kit.shown import LONGEST, DeskMessages, PlainLabel, show_info, shown
from napari_panoptic.viewer.kit.widgets import ElidedLabel, heading
from napari_panoptic.viewer.panels.raters.panels import CasesPanel, RaterLegend
from napari_panoptic.viewer.panels.raters.strips import SpreadStrip

PICTURE = "<img src='file:///etc/hostname'>"
TEAM = f"{PICTURE}\N{RIGHT-TO-LEFT OVERRIDE}\x1b"
MARKUP = [PICTURE, "<b>a</b>", "a < b and <i>c</i>", "<?xml version='1.0'?>", "<!DOCTYPE html>"]


def looks_rich(text):
    """Tell whether Qt takes a text for HTML where nobody tells it."""
    might = getattr(Qt, "mightBeRichText", None)
    if might is None:
        pytest.skip("this binding of Qt does not tell")
    return might(text)


@pytest.mark.parametrize("text", [*MARKUP, "&lt;b&gt;", "<\nb>"])
def test_markup_is_shown_as_text(text):
    assert not looks_rich(shown(text))
    assert shown(text).replace("\N{WORD JOINER}", "") == text
    assert shown(shown(text)) is not None


@pytest.mark.parametrize("text", ["Team A", "PQ < 0.5", "a & b", "two\nlines", "–", "x > y"])
def test_ordinary_texts_stay(text):
    assert shown(text) == text


def test_what_cannot_be_seen_and_what_is_too_long():
    assert shown("a\N{RIGHT-TO-LEFT OVERRIDE}b\x1b") == r"a\u202eb\x1b"
    assert len(shown("x" * 10**6)) == LONGEST


def test_labels_and_headings(qtbot):
    for label in (PlainLabel(PICTURE), ElidedLabel(PICTURE)):
        qtbot.addWidget(label)
        label.setToolTip(PICTURE)
        assert label.textFormat() == Qt.TextFormat.PlainText
        assert not looks_rich(label.toolTip())
    title = heading(PICTURE)
    qtbot.addWidget(title)
    document = QTextDocument()
    document.setHtml(title.text())
    assert document.toPlainText() == PICTURE


def test_messages(monkeypatch):
    told = []
    monkeypatch.setattr(shown_module.notifications, "show_error", told.append)
    shown_module.show_error(PICTURE)
    assert not looks_rich(told[0])


@pytest.mark.long
def test_links_out_of_a_cohort_are_asked_about(
    make_napari_viewer, close_desk, sample_folder, tmp_path, wait_until, monkeypatch
):
    linked = tmp_path / "linked"
    linked.mkdir()
    for entry in sample_folder.iterdir():
        (linked / entry.name).symlink_to(entry)
    asked, told = [], []
    monkeypatch.setattr(shown_module, "show_error", told.append)
    viewer = make_napari_viewer()
    monkeypatch.setattr(opening, "may_follow", lambda _, message: asked.append(message))
    opening.open_in_background(viewer, linked)
    wait_until(lambda: asked)
    assert "lead out of the cohort's folder" in asked[0]
    assert desk_in(viewer) is None
    monkeypatch.setattr(opening, "may_follow", lambda _, __: True)
    opening.open_in_background(viewer, linked)
    wait_until(lambda: desk_in(viewer) is not None and desk_in(viewer).session is not None)
    desk = desk_in(viewer)
    wait_until(lambda: desk.is_settled)
    assert len(desk.session.cohort.regions) == len(open_cohort(sample_folder).regions)
    assert not told
    close_desk(desk)


def test_labels_of_qt_itself_are_not_used():
    """They take for markup what looks like it."""
    used = re.compile(r"\bQLabel\b")
    folder = Path(shown_module.__file__).parents[1]
    files = [path for path in folder.rglob("*.py") if path.name != "shown.py"]
    assert len(files) > 50
    assert [path.name for path in files if used.search(path.read_text(encoding="utf-8"))] == []


def test_names_of_raters_and_teams(qtbot):
    strip, legend = SpreadStrip(), RaterLegend("keys")
    for widget in (strip, legend):
        qtbot.addWidget(widget)
    strip.show_spread([(TEAM, 0.5, (1, 2, 3)), ("b", 0.6, (4, 5, 6))], (TEAM, 0.7))
    legend.show_legend([TEAM], [0])
    assert not looks_rich(strip.toolTip())
    document = QTextDocument()
    document.setHtml(legend.text())
    assert PICTURE in document.toPlainText().replace("\N{NO-BREAK SPACE}", " ")
    for text in (strip.toolTip(), legend.text()):
        assert "hostname" in text
        assert "\x1b" not in text
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text


def test_a_structure_with_a_hostile_name_is_chosen_by_that_name(qtbot, tmp_path):
    cohort = open_raters(write_raters_sample(tmp_path / "sample"))
    panel = CasesPanel(replace(cohort, structures=("a", TEAM), teams=(TEAM,)))
    qtbot.addWidget(panel)
    assert panel.structures.itemText(1) == shown(TEAM)
    with qtbot.waitSignal(panel.structures.chosen) as chosen:
        panel.structures.setCurrentIndex(1)
    assert chosen.args == [TEAM]


@pytest.fixture
def hostile(cohort):
    """Give the sample cohort names that are markup, and a note that is."""
    (own, *_), regions = cohort.teams, cohort.regions[:2]
    names = {region.name: f"{region.name}<b>{PICTURE}" for region in regions}
    note = Finding(FindingKind.EXTRA, f"left over: {PICTURE}", team=TEAM, region=None)
    return replace(
        cohort,
        name=PICTURE,
        teams=(Team(TEAM),),
        regions=tuple(replace(r, name=names[r.name], patient=PICTURE) for r in regions),
        predictions={
            (TEAM, names[region.name]): cohort.predictions[own.name, region.name]
            for region in regions
        },
        findings=(note,),
    )


def texts_of(widget):
    """Give the texts and tooltips that a widget shows, and whether Qt would guess their form."""
    yield widget.toolTip(), True
    if isinstance(widget, QLabel):
        yield widget.text(), widget.textFormat() == Qt.TextFormat.AutoText
    elif isinstance(widget, QAbstractButton):
        yield widget.text(), False
    elif isinstance(widget, QComboBox):
        yield from ((widget.itemText(i), False) for i in range(widget.count()))
    elif isinstance(widget, QTableView):
        model = widget.model()
        for row, column in product(range(model.rowCount()), range(model.columnCount())):
            index = model.index(row, column)
            yield index.data() or "", False
            yield index.data(Qt.ItemDataRole.ToolTipRole) or "", True
    elif isinstance(widget, QTreeWidget):
        items = [widget.topLevelItem(i) for i in range(widget.topLevelItemCount())]
        items += [item.child(i) for item in items for i in range(item.childCount())]
        for item in items:
            for column in range(widget.columnCount()):
                yield item.text(column), False
                yield item.toolTip(column), True


@pytest.mark.long
def test_nothing_in_the_window_takes_a_name_for_markup(
    make_napari_viewer, close_desk, hostile, wait_until
):
    viewer = make_napari_viewer()
    desk = desk_of(viewer)
    desk.show_cohort(hostile)
    wait_until(lambda: desk.is_settled)
    desk.link.failures.step()
    assert desk.session.team == TEAM
    found = 0
    window = viewer.window._qt_window
    for widget in (window, *window.findChildren(QWidget)):
        for text, is_guessed in texts_of(widget):
            assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text, (type(widget), text)
            assert "\x1b" not in text, (type(widget), text)
            if "hostname" in text:
                found += 1
                assert not (is_guessed and looks_rich(text)), (type(widget), text)
    assert found > 5  # in the title, the lists, the menus and their tooltips
    close_desk(desk)


def test_hints_go_to_the_desk_that_is_current_and_else_to_napari(monkeypatch):
    by_napari, by_desk = [], []
    monkeypatch.setattr(shown_module.notifications, "show_info", by_napari.append)
    is_current = True
    desk = DeskMessages(lambda: is_current, by_desk.append)
    show_info("a")
    is_current = False
    show_info("<b>")
    is_current = True
    desk.release()
    desk.release()
    show_info("c")
    assert (by_desk, len(by_napari)) == (["a"], 2)
