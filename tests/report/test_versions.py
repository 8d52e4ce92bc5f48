"""The section of a report on an old and a new version."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import pandas as pd
import pytest
from lxml import html

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.questions.compare import DIFF, Compare, diff_table, transitions
from tests.support.reports import without_plots
from tests.support.version_cohort import PATIENTS, write_version_cohort


@pytest.fixture(scope="module")
def version_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_version_cohort(tmp_path_factory.mktemp("versions") / "cohort", PATIENTS[:8])


@pytest.fixture(scope="module")
def section(version_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> html.HtmlElement:
    path = tmp_path_factory.mktemp("report") / "report.html"
    arguments = ["--teams", "old,worse", "--compare", "old", "worse", "--margin", "0.02"]
    with without_plots():
        assert main(["report", str(version_folder), "-o", str(path), *arguments]) == 0
    (found,) = html.fromstring(path.read_text("utf-8")).xpath("//section[@id='versions']")
    return found


def tables(section: html.HtmlElement) -> dict[str, pd.DataFrame]:
    """Return the CSV files behind the tables of the section."""
    found = {}
    for link in section.xpath(".//a[@download]"):
        content = re.sub("^data:[^,]*,", "", link.get("href"))
        text = base64.b64decode(content).decode("utf-8")
        found[link.get("download")] = pd.read_csv(io.StringIO(text), keep_default_na=False)
    return found


def test_the_section_has_the_figures_of_the_comparison(
    version_folder: Path, section: html.HtmlElement
) -> None:
    comparison = Compare(old="old", new="worse", margin=0.02).gather(open_cohort(version_folder))
    found = tables(section)
    text = section.text_content()
    assert f"{comparison.decision.verdict} (" in text
    assert comparison.decision.reason in text
    changes = found["versions_changes.csv"]
    assert dict(zip(changes["change"], changes["objects"], strict=True)) == {
        str(change): n for change, n in comparison.diff.counts.items()
    }
    metrics = found["versions_metrics.csv"]
    assert metrics["difference"].tolist() == pytest.approx(
        [one.interval.mean for one in comparison.metrics]
    )
    by_class = found["versions_by-class.csv"]
    assert len(by_class) == len(comparison.classes) == 2
    for version in ("old", "new"):  # "new" is a change of objects as well
        figures = [getattr(one, version) for one in comparison.classes]
        assert by_class[version].tolist() == pytest.approx(figures)
    of_change = comparison.diff.by("class").set_index("class").reindex(by_class["class"])
    assert by_class["objects_new"].tolist() == of_change["new"].tolist()
    parts = found["versions_parts-of-the-change.csv"]
    for _, own in parts.groupby("by"):
        assert own["delta_pq"].sum() == pytest.approx(comparison.change.total, abs=1e-12)
    matrix = found["versions_reference.csv"].set_index("before")
    assert matrix.to_numpy().sum() == (comparison.diff.rows["side"] == "reference").sum()
    assert found["versions_by-patient.csv"]["patient"].tolist() == list(PATIENTS[:8])
    assert diff_table(comparison).columns.tolist() == DIFF.keys
    assert set(diff_table(comparison)["link"]) == {""}
    moved = transitions(comparison)
    assert moved["objects"].sum() == sum(
        n
        for side in ("reference", "prediction")
        for (before, after), n in found[f"versions_{side}.csv"].set_index("before").stack().items()
        if before != after
    )


def test_mistakes_in_the_command(version_folder: Path, tmp_path: Path) -> None:
    start = ["report", str(version_folder), "-o", str(tmp_path / "r.html")]
    for arguments in (["--margin", "0.1"], ["--compare", "old", "odd"]):
        with pytest.raises(SystemExit) as stop:
            main([*start, *arguments])
        assert stop.value.code == 2
