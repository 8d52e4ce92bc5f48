"""The report: right figures, nothing from elsewhere, every name harmless, gaps explained."""

from __future__ import annotations

import base64
import html
import io
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from html.parser import HTMLParser
from operator import add
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import shortened, visible
from napari_panoptic.io.tables.metadata import Metadata
from napari_panoptic.nuclei.metrics import unit_metrics
from napari_panoptic.report import plots
from napari_panoptic.report.nuclei.cohort_report import (
    CohortReport,
    ReportRequest,
    cohort_report,
)
from napari_panoptic.report.nuclei.gallery import PER_CAUSE, SIZE_PX, pictures, worst_failures
from napari_panoptic.report.nuclei.page import (
    methods_values,
    pictured_failures,
    report_page,
    write_report,
)
from napari_panoptic.report.nuclei.tables import (
    confusion_table,
    patients_by_class_table,
    patients_table,
    teams_table,
)
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.report.sections import REFERENCES, methods
from napari_panoptic.tables.figures import p_value, ratio, signed
from napari_panoptic.tables.markup import element, escaped, object_link
from napari_panoptic.values.cohort import ClassScheme, Cohort
from napari_panoptic.values.conventions import CORRECTED_PROTOCOL
from napari_panoptic.values.links import CohortKey, LinkMaker, ObjectLink, check_link
from napari_panoptic.values.settings import (
    AmbiguousPolicy,
    EvaluationSettings,
    Matching,
    Outlines,
    Restoration,
    protocol,
)
from tests.support.reports import (
    HOSTILE_PATIENTS,
    HOSTILE_REGION,
    HOSTILE_TEAMS,
    hostile,
    of_patients,
    report_on,
    with_teams,
    without_plots,
    without_team_in,
)

SECTIONS = (
    "summary", "settings", "data", "teams", "patients", "classes", "confusion", "statistics",
    "robustness", "overlaps", "size", "cause", "slices", "borders", "causes", "conventions",
    "groups", "suspects", "region", "gallery", "methods",
)  # fmt: skip
VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """A page taken apart; every element must be closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def section(self, slug: str) -> str:
        """Give the text of a section."""
        start = self.text.index(f'<section id="{slug}">')
        inside = self.text[start : self.text.index("</section>", start)]
        return html.unescape(re.sub(r"<[^>]*>", "", inside))

    def download(self, name: str) -> str:
        """Give the content of a file that the page holds."""
        (link,) = (a for _, a in self.elements if a.get("download") == name)
        address = link["href"] or ""
        return base64.b64decode(address.partition("base64,")[2]).decode()


@pytest.fixture(scope="module")
def report(small_cohort: Cohort) -> CohortReport:
    return report_on(small_cohort)


@pytest.fixture(scope="module")
def short_report(small_cohort: Cohort) -> CohortReport:
    """Return the report on one team, of which a page takes half the time."""
    return report_on(with_teams(small_cohort, {"alpha": "alpha"}))


def page_of(report: CohortReport, *only: str) -> Page:
    """Return the page of a report; that of few sections is drawn in less time."""
    if only:
        return Page(report_page(report, [], only=only))
    request = report.request
    failures = pictured_failures(report)
    found = pictures(request.cohort, failures, request.detailed, request.source)
    return Page(report_page(report, list(found)))


@pytest.fixture(scope="module")
def shown(report: CohortReport) -> Page:
    return page_of(report)


def csv(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


def test_all_sections_are_there_and_listed(shown: Page) -> None:
    ids = [attributes["id"] for tag, attributes in shown.elements if tag == "section"]
    assert tuple(ids) == SECTIONS
    anchors = [a for tag, a in shown.elements if tag == "a" and "download" not in a]
    links = [a["href"] for a in anchors if a.get("class") != "object"]
    assert set(links) == {f"#{slug}" for slug in SECTIONS}
    for slug in SECTIONS:
        assert len(shown.section(slug)) > 100


def test_nothing_comes_from_elsewhere(shown: Page) -> None:
    for tag, attributes in shown.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "xlink:href", "srcset", "action"):
            address = attributes.get(name)
            if name == "href" and attributes.get("class") == "object":
                assert ObjectLink.parse(str(address)).text == address
                continue
            assert address is None or address.startswith(("data:", "#"))
    policies = [a.get("content") for tag, a in shown.elements if tag == "meta"]
    assert any(policy and policy.startswith("default-src 'none'") for policy in policies)
    # Fragments of drawings refer to their own parts, and no name is there twice.
    ids = Counter(a["id"] for _, a in shown.elements if "id" in a)
    assert max(ids.values()) == 1
    used = {a["xlink:href"] for _, a in shown.elements if "xlink:href" in a}
    used |= {f"#{name}" for name in re.findall(r"url\(#([^)]+)\)", shown.text)}
    assert {str(address)[1:] for address in used} <= set(ids)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("teams", teams_table),
        ("patients", patients_table),
        ("patients_by_class", patients_by_class_table),
        ("confusion", confusion_table),
    ],
)
def test_downloads_hold_the_tables_in_full_precision(
    name: str, table: Callable[..., pd.DataFrame], report: CohortReport, shown: Page
) -> None:
    expected = table(report.evaluation)
    found = csv(shown.download(f"{name}.csv"))
    if name == "teams":  # the page has medians besides
        for team, summary in report.evaluation.summaries.items():
            for metric, spread in summary.averaged.items():
                expected.loc[expected["team"] == team, f"{metric}_median"] = spread.median
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-12)


def test_every_table_can_be_downloaded(shown: Page) -> None:
    n_tables = sum(tag == "table" for tag, _ in shown.elements)
    names = [a["download"] for _, a in shown.elements if "download" in a]
    assert len(set(names)) == len(names)
    assert sum(str(name).endswith(".csv") for name in names) == n_tables
    n_plots = sum(tag == "figure" and a.get("class") == "plot" for tag, a in shown.elements)
    assert sum(str(name).endswith(".svg") for name in names) == n_plots == 17


def test_figures_are_those_of_the_evaluation(report: CohortReport, shown: Page) -> None:
    summary = csv(shown.download("summary.csv")).set_index("team")
    conventions = csv(shown.download("conventions_summary.csv")).set_index("convention")
    conditions = csv(shown.download("two-by-two.csv")).set_index(["condition", "team"])
    assert report.conventions is not None
    written = report.conventions.files["conventions.csv"].set_index(["convention", "team"])
    for team in ("alpha", "beta"):
        score = report.evaluation.score(team)
        assert summary.loc[team, "score"] == pytest.approx(score)
        # The same number on every road that leads to it.
        assert conventions.loc["disentangled", f"value {team}"] == pytest.approx(score)
        assert conditions.loc[("border-removed strict-iou", team), "pq"] == pytest.approx(score)
        assert written.loc[("disentangled", team), "value"] == pytest.approx(score)
        n_patients = report.evaluation.summaries[team].averaged["pq"].n
        assert written.loc[("disentangled", team), "units"] == n_patients
        assert ratio(score) in shown.section("summary")


def test_the_curves_pass_through_the_evaluation(report: CohortReport) -> None:
    pq = [report.evaluation.score(team) for team in report.evaluation.team_names]
    unmoved = report.shifts.found.conditions.index("no shift")
    usual = report.thresholds.found.conditions.index("IoU > 0.50")
    assert report.shifts.found.pq[:, unmoved].tolist() == pytest.approx(pq)
    assert report.thresholds.found.pq[:, usual].tolist() == pytest.approx(pq)


def test_a_huge_plot_is_shown_as_png() -> None:
    patients = [str(n) for n in range(4000)]
    values = np.random.default_rng(0).random(len(patients))
    frame = pd.DataFrame({"team": "alpha", "patient": patients, "pq": values})
    few = plot_figure(plots.patient_boxes({"": frame.head(9)}, ["alpha"]), "few", "Few.")
    many = plot_figure(plots.patient_boxes({"": frame}, ["alpha"]), "many", "Many.")
    assert [tag for tag, _ in Page(few).elements if tag in ("svg", "img")] == ["svg"]
    (image,) = (attributes for tag, attributes in Page(many).elements if tag == "img")
    content = base64.b64decode(str(image["src"]).partition("data:image/png;base64,")[2])
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.width > 2 * int(image["width"] or 0)  # fine enough for paper
    assert image["alt"] == "Many."


def test_findings_are_listed_by_kind(report: CohortReport, shown: Page) -> None:
    listed = csv(shown.download("findings.csv"))
    assert Counter(listed["kind"]) == Counter(str(f.kind) for f in report.findings)
    text = shown.section("data")
    assert "Objects that vanished" in text
    assert "Overlaps" in text


@pytest.mark.usefixtures("no_plots")
def test_two_reports_on_the_same_files_are_alike(
    short_report: CohortReport, tmp_path: Path
) -> None:
    target = tmp_path / "report.html"
    assert write_report(short_report, target) == target
    assert target.read_text(encoding="utf-8") == page_of(short_report).text


# --- names -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def attacked(small_cohort: Cohort) -> Page:
    """Return a page without its plots, whose names have a test of their own."""
    with without_plots():
        return page_of(report_on(hostile(small_cohort)))


def test_hostile_names_stay_text(attacked: Page, shown: Page) -> None:
    def tags(page: Page) -> set[str]:
        return {tag for tag, _ in page.elements}

    assert tags(attacked) <= tags(shown)
    assert sum(tag == "script" for tag, _ in attacked.elements) == 1
    assert {n for _, a in attacked.elements for n in a if n.startswith("on")} == set()
    for team in HOSTILE_TEAMS:
        assert visible(team) in attacked.section("teams")
    for patient in HOSTILE_PATIENTS:
        assert patient in attacked.section("patients")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\ud800-\udfff]", attacked.text)


def object_links(page: Page) -> list[ObjectLink]:
    return [
        ObjectLink.parse(str(a["href"])) for _, a in page.elements if a.get("class") == "object"
    ]


def test_rows_and_pictures_have_links(report: CohortReport, shown: Page) -> None:
    cohort = report.cohort
    found = object_links(shown)
    for link in found:
        assert check_link(link, cohort) == link
        assert link.cohort == CohortKey.of(cohort)
        assert link.objects
    pictured = {(f.team, f.region, f.side, f.id) for f in pictured_failures(report)}
    linked = {(own.team, own.region, *one) for own in found for one in own.objects}
    assert pictured <= linked
    suspects = re.findall('href="(panoptic:[^"]*restoration=border-dilated)"', shown.text)
    assert suspects
    assert "panoptic:" not in shown.section("teams")


def test_links_to_hostile_names_are_inert(small_cohort: Cohort, attacked: Page) -> None:
    assert not object_links(attacked)  # the regions have a line break in their names
    region = HOSTILE_REGION.rstrip("\n")
    for team in HOSTILE_TEAMS:
        text = LinkMaker.of(small_cohort).text(region, team, "reference", 1)
        anchor = object_link(text)
        if team == HOSTILE_TEAMS[-1]:  # it has control characters
            assert (text, anchor) == ("", "")
            continue
        (tag, attributes), *rest = Page(anchor).elements
        assert (tag, rest) == ("a", [])
        assert set(attributes) == {"class", "href", "title"}
        link = ObjectLink.parse(str(attributes["href"]))
        assert (link.region, link.team) == (region, team)


def test_what_cannot_be_shown_becomes_a_mark() -> None:
    assert visible("a\x00b\u202ec\udcff\n") == r"a\x00b\u202ec\udcff\n"
    assert visible("ascii, ÄÖ, \N{HEBREW LETTER ALEF}") == "ascii, ÄÖ, \N{HEBREW LETTER ALEF}"
    assert escaped("<a href='x'>&\x07") == "&lt;a href=&#39;x&#39;&gt;&amp;\\x07"
    assert element("td", "<b>", title='"') == '<td title="&#34;">&lt;b&gt;</td>'


def test_numbers_are_written_alike() -> None:
    assert [ratio(v) for v in (0.12345, -0.5, -0.0001, float("nan"))] == [
        "0.123", "−0.500", "0.000", "–",
    ]  # fmt: skip
    assert [signed(v) for v in (0.5, -0.5, 0.0001)] == ["+0.500", "−0.500", "0.000"]
    assert [p_value(v) for v in (0.0004, 0.25)] == ["< 0.001", "0.250"]
    assert shortened("abcdefghij", 5) == "ab…ij"


# --- gaps --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_plots")
def test_one_team(short_report: CohortReport) -> None:
    page = page_of(short_report, "summary", "conventions", "statistics")
    assert "needs at least two competing teams, found 1" in page.section("statistics")
    assert "1 team: nothing to rank" in page.section("conventions")
    assert "Teams are not compared" in page.section("summary")


@pytest.mark.usefixtures("no_plots")
def test_the_annotation_itself_can_be_reported_on_but_does_not_compete(
    small_cohort: Cohort,
) -> None:
    (annotation,) = (team.name for team in small_cohort.teams if team.is_annotation)
    teams = ("alpha", annotation)
    found = cohort_report(ReportRequest(small_cohort, EvaluationSettings(), "own", teams), jobs=1)
    assert found is not None
    page = page_of(found, "teams", "statistics")
    assert annotation in page.section("teams")
    assert "needs at least two competing teams, found 1" in page.section("statistics")


@pytest.mark.usefixtures("no_plots")
def test_one_patient(small_cohort: Cohort) -> None:
    three = with_teams(small_cohort, {"a": "alpha", "b": "beta", "c": "beta"})
    found = report_on(of_patients(three, small_cohort.patients[:1]))
    page = page_of(found, "teams", "statistics")
    assert "the Friedman test needs at least two patients, found 1" in page.section("statistics")
    assert "an interval needs at least two patients, found 1" in page.section("statistics")
    assert "±" not in page.section("teams").partition("only.")[2]


@pytest.mark.usefixtures("no_plots")
def test_one_class(small_cohort: Cohort) -> None:
    single = replace(small_cohort, scheme=ClassScheme(("Epithelial",), ((255, 0, 0),)))
    page = page_of(report_on(single), "data", "classes")
    assert csv(page.download("classes.csv"))["class"].unique().tolist() == ["Epithelial"]
    assert "Unknown class names" in page.section("data")


@pytest.mark.long
@pytest.mark.usefixtures("no_plots")
def test_equal_teams(small_cohort: Cohort) -> None:
    found = report_on(with_teams(small_cohort, dict.fromkeys("abc", "alpha")))
    page = page_of(found, "summary", "conventions", "statistics")
    text = page.section("statistics")
    assert re.search(r"No diagram|all teams have equal figures for each of the \d patients", text)
    assert "both teams have equal figures for each of the" in text
    for slug in ("conventions", "summary"):
        assert "3 teams: all rank the teams in the same way" in page.section(slug)


@pytest.mark.usefixtures("no_plots")
def test_a_team_absent_from_half_of_the_patients(small_cohort: Cohort) -> None:
    gone = small_cohort.patients[: len(small_cohort.patients) // 2 + 1]
    three = with_teams(small_cohort, {"a": "alpha", "b": "beta", "c": "alpha"})
    found = report_on(without_team_in(three, "b", gone))
    page = page_of(found, "data", "patients", "statistics")
    text = page.section("statistics")
    for patient in gone:
        assert f"b has no figure for patient {patient}" in text
        assert patient in page.section("patients")
    assert f"was evaluated in {len(small_cohort.patients) - len(gone)} of" in page.section(
        "patients"
    )
    assert "missing or unreadable" in page.text
    assert csv(page.download("friedman.csv"))["patients"].max() <= len(small_cohort.patients) - len(
        gone
    )


def test_patients_by_any_column(small_cohort: Cohort) -> None:
    columns = {
        "organ": dict.fromkeys(small_cohort.patients, "Lung"),
        "site": {small_cohort.patients[0]: "x"},
    }
    request = ReportRequest(
        small_cohort, EvaluationSettings(), "own", ("alpha",), None, Metadata(columns), "site"
    )
    assert request.group_column == "site"
    assert request.group_of(small_cohort.patients[0]) == "x"
    with pytest.raises(PanopticError, match="no column 'age' to group by; known: organ and site"):
        replace(request, group="age")


@pytest.mark.usefixtures("no_plots")
def test_a_report_under_the_scoring_of_the_challenge(small_cohort: Cohort) -> None:
    name = "monusac-2020-as-run"
    found = report_on(small_cohort, settings=protocol(name), protocol=name)
    page = page_of(found, "summary", "settings", "conventions", "methods")
    summary = csv(page.download("summary.csv")).set_index("team")
    conventions = csv(page.download("conventions_summary.csv")).set_index("convention")
    for team in ("alpha", "beta"):
        assert summary.loc[team, "score"] == pytest.approx(conventions.loc[name, f"value {team}"])
    assert "follow the challenge's scoring" in page.section("settings")
    assert not found.detailed.settings.takes_class_masks
    assert found.detailed.settings == EvaluationSettings()
    assert "errors of the published code left as they were" in page.section("methods")


def test_nothing_to_report_is_an_error(small_cohort: Cohort) -> None:
    with pytest.raises(PanopticError, match="it has no predictions"):
        report_on(replace(small_cohort, teams=(), predictions={}))
    with pytest.raises(PanopticError, match="it has no regions"):
        report_on(replace(small_cohort, regions=()))


def test_the_work_can_be_stopped_and_tells_how_far_it_is(small_cohort: Cohort) -> None:
    request = ReportRequest(small_cohort, EvaluationSettings(), "disentangled", ("alpha",))
    steps: list[int] = []
    assert cohort_report(request, jobs=1, on_result=lambda _: steps.append(1)) is not None
    assert len(steps) == len(small_cohort.regions)
    assert cohort_report(request, jobs=1, is_wanted=lambda: False) is None


# --- gallery -----------------------------------------------------------------------------------


def test_the_largest_failures_of_each_team_and_cause_are_shown(report: CohortReport) -> None:
    chosen = worst_failures(report.detailed.results)
    kinds = Counter((f.team, f.side, f.status, f.cause) for f in chosen)
    assert max(kinds.values()) <= PER_CAUSE
    assert {str(f.status) for f in chosen} == {"FN", "FP", "misclassified"}
    for team in ("alpha", "beta"):
        objects = pd.concat(
            [r.objects for r in report.detailed.results if r.team == team and r.objects is not None]
        )
        for cause in objects.loc[objects["status"] == "FN", "cause"].unique():
            of_cause = objects[(objects["side"] == "reference") & (objects["cause"] == cause)]
            largest = of_cause["area_px"].nlargest(PER_CAUSE).tolist()
            found = [
                f.area_px
                for f in chosen
                if f.team == team and f.side == "reference" and f.cause == cause
            ]
            assert found == largest


def test_pictures_are_readable_and_say_what_they_show(report: CohortReport, shown: Page) -> None:
    request = report.request
    failures = worst_failures(report.detailed.results)
    drawn = list(pictures(request.cohort, failures, request.detailed, None))
    assert {p.failure for p in drawn} == set(failures)
    for picture in drawn:
        with Image.open(io.BytesIO(picture.jpeg)) as image:
            assert image.size == (SIZE_PX, SIZE_PX)
    text = shown.section("gallery")
    for failure in failures:
        assert failure.region in text
        assert f" {failure.id}, {failure.class_name}" in text
        assert f"IoU {ratio(failure.iou, 2)}" in text


# --- methods -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (EvaluationSettings(), "strictly above 0.5; matching ignored classes"),
        (EvaluationSettings(iou_threshold=0.3), "one to one such that the summed IoU is largest"),
        (EvaluationSettings(matching=Matching.CENTROID), "the centroid of the prediction lies on"),
        (EvaluationSettings(ambiguous=AmbiguousPolicy.KEEP), "treated like any other area"),
        (EvaluationSettings(outlines=Outlines.BOTH_WHOLE), "outline, of the whole objects"),
        (
            EvaluationSettings(restoration=Restoration.BORDER_DILATED, radius=-2),
            "each object shrunk by 2 px",
        ),
        (
            EvaluationSettings(convention=CORRECTED_PROTOCOL),
            "counts were summed over the regions of a patient",
        ),
    ],
)
def test_methods_follow_the_settings(settings: EvaluationSettings, words: str) -> None:
    paragraphs, references = methods("methods_nuclei.html.j2", **methods_values(settings))
    text = " ".join(paragraphs.split())
    assert words in text
    cited = {int(n) for group in re.findall(r"\[([\d, ]+)\]", text) for n in group.split(",")}
    assert cited == set(range(1, len(references) + 1))
    assert set(references) <= set(REFERENCES.values())
    assert ("Hausdorff" in text) == settings.distances


def test_methods_without_distances() -> None:
    settings = EvaluationSettings(distances=False)
    paragraphs, _ = methods("methods_nuclei.html.j2", **methods_values(settings))
    assert "Hausdorff" not in paragraphs


# --- files and the command ---------------------------------------------------------------------


@pytest.mark.usefixtures("no_plots")
def test_a_report_is_written_whole_or_not_at_all(
    short_report: CohortReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_text("older")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    # The pages of few sections, which are drawn in less time.
    few = partial(report_page, only=("settings",))
    monkeypatch.setattr("napari_panoptic.report.nuclei.page.report_page", few)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(PanopticError, match="No space left on device; choose another place"):
            write_report(short_report, target)
    assert target.read_text() == "older"
    assert write_report(short_report, target, is_wanted=lambda: False) is None
    assert target.read_text() == "older"
    assert write_report(short_report, target, date="2031-05-06") == target
    written = target.read_text(encoding="utf-8")
    assert written.startswith("<!DOCTYPE html>")
    assert "2031-05-06" in written
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.usefixtures("no_plots")
def test_the_command_writes_a_report_with_patients_by_group(
    small_cohort: Cohort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.html"
    table = tmp_path / "patients.csv"
    *grouped, ungrouped = small_cohort.patients
    table.write_text("patient,organ\n" + "".join(f"{p},Lung\n" for p in grouped))
    arguments = ["report", str(small_cohort.root), "-o", str(target), "--teams", "alpha"]

    assert main([*arguments, "--jobs", "1", "--metadata", str(table)]) == 0

    out, _ = capsys.readouterr()
    assert out == f"report written to {target}\n"
    page = Page(target.read_text(encoding="utf-8"))
    assert csv(page.download("groups.csv"))["group"].unique().tolist() == ["Lung"]
    said = page.section("patient-groups")
    assert f"Patients without a group are left out: {ungrouped}" in said
    # The section on groups of failures is there besides, and no download replaces another.
    ids = [attributes["id"] for tag, attributes in page.elements if tag == "section"]
    assert len(set(ids)) == len(ids)
    assert {"patient-groups", "groups"} < set(ids)
    downloads = [a["download"] for _, a in page.elements if "download" in a]
    assert len(set(downloads)) == len(downloads)


@pytest.mark.usefixtures("no_plots")
def test_figures_of_groups_are_those_of_their_counts(small_cohort: Cohort) -> None:
    """Counts are summed over all regions of a group; who belongs to none is left out."""
    *grouped, alone = (*small_cohort.patients, "Q")
    organs = dict(zip(grouped, ("Lung", "Kidney", "Lung"), strict=True))
    last = small_cohort.regions[-1]
    cohort = replace(
        small_cohort,
        regions=(*small_cohort.regions, replace(last, patient=alone, name="Q_1")),
        predictions={
            **small_cohort.predictions,
            **{
                (team, "Q_1"): forms
                for (team, region), forms in small_cohort.predictions.items()
                if region == last.name
            },
        },
    )
    names = tuple(team.name for team in cohort.competing_teams)
    request = ReportRequest(
        cohort, EvaluationSettings(), "own", names, None, Metadata({"organ": organs})
    )
    found = cohort_report(request, jobs=1)
    assert found is not None
    page = page_of(found, "patient-groups")
    groups = csv(page.download("groups.csv")).set_index(["group", "team"])["pq"]
    wanted = {}
    for team in names:
        for organ in ("Lung", "Kidney"):
            own = [
                result.counts
                for result in found.evaluation.results
                if result.team == team
                and organs.get(result.patient) == organ
                and result.counts is not None
            ]
            wanted[organ, team] = unit_metrics(reduce(add, own)).pq
    assert groups.to_dict() == pytest.approx(wanted, rel=1e-12, nan_ok=True)
    assert alone in page.section("patient-groups")


def test_the_command_says_what_is_wrong_before_the_work(
    small_cohort: Cohort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(small_cohort.root)
    assert main(["report", root, "-o", str(tmp_path)]) == 1
    assert "expected the name of a file to write, found a folder" in capsys.readouterr().err
    assert main(["report", root, "-o", str(tmp_path / "missing" / "r.html")]) == 1
    assert "the file cannot be written: No such file or directory" in capsys.readouterr().err
    target = str(tmp_path / "r.html")
    for wrong in (["--teams", "nobody"], ["--protocol", "nothing"]):
        with pytest.raises(SystemExit) as stopped:
            main(["report", root, "-o", target, *wrong])
        assert stopped.value.code == 2
    assert main(["report", root, "-o", target, "--metadata", str(tmp_path / "no.csv")]) == 1
    assert list(tmp_path.iterdir()) == []
