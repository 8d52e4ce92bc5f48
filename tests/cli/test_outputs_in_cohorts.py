"""No output replaces a file inside a cohort that this program did not write."""

from __future__ import annotations

from pathlib import Path

import pytest

from napari_panoptic.cli.main import main
from tests.support.paths import contents


def test_the_cohorts_own_table_of_regions_is_kept(
    pannuke: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(pannuke)
    assert main(["evaluate", str(pannuke), "--output", str(pannuke)]) == 1
    said = capsys.readouterr().err
    assert "regions.csv" in said
    assert "choose another place" in said
    assert contents(pannuke) == before
    assert main(["evaluate", str(pannuke), "--output", str(tmp_path / "out")]) == 0


def test_own_tables_in_a_cohort_are_replaced_until_somebody_changes_them(
    pannuke: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = pannuke / "results"
    command = ["evaluate", str(pannuke), "--output", str(output)]
    assert main(command) == 0
    assert main([*command, "--no-distances"]) == 0
    (output / "teams.csv").write_text("team,remark\none,mine\n")
    before = contents(output)
    capsys.readouterr()
    assert main(command) == 1
    assert "teams.csv" in capsys.readouterr().err
    assert contents(output) == before
    (output / "teams.csv").unlink()
    assert main(command) == 0


def test_a_file_reached_through_a_link_to_the_cohort_is_kept(pannuke: Path, tmp_path: Path) -> None:
    table = (pannuke / "regions.csv").read_text()
    (tmp_path / "link").symlink_to(pannuke)
    assert main(["evaluate", str(pannuke), "--output", str(tmp_path / "link")]) == 1
    assert (pannuke / "regions.csv").read_text() == table


@pytest.mark.long
@pytest.mark.usefixtures("no_plots")
def test_a_report_replaces_only_reports_inside_the_cohort(
    pannuke: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = pannuke / "index.html"
    page.write_text("<html>about the data</html>")
    assert main(["report", str(pannuke), "--output", str(page)]) == 1
    assert "index.html" in capsys.readouterr().err
    assert page.read_text() == "<html>about the data</html>"
    own = pannuke / "report.html"
    assert main(["report", str(pannuke), "--output", str(own)]) == 0
    assert main(["report", str(pannuke), "--output", str(own)]) == 0


def test_convert_replaces_nothing_inside_the_cohort(
    pannuke: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pannuke / "extra").mkdir()
    (pannuke / "extra" / "labels.npy").write_bytes(b"mine")
    command = ["convert", str(pannuke), "--to", "conic", "--force", "--output"]
    assert main([*command, str(pannuke / "extra")]) == 1
    assert "labels.npy" in capsys.readouterr().err
    assert contents(pannuke / "extra") == {"labels.npy": b"mine"}
    assert main([*command, str(pannuke / "other")]) == 0
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "labels.npy").write_bytes(b"mine")
    assert main([*command, str(tmp_path / "out")]) == 0


def test_a_screenshot_replaces_nothing_inside_the_cohort(
    pannuke: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    picture = pannuke / "region.png"
    picture.write_bytes(b"mine")
    assert main(["view", str(pannuke), "--screenshot", str(picture)]) == 1
    assert "region.png" in capsys.readouterr().err
    assert picture.read_bytes() == b"mine"
