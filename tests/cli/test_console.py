"""What the commands tell people of what was odd."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from napari_panoptic.cli.console import print_table, report_findings
from napari_panoptic.cli.main import main
from napari_panoptic.common.findings import FINDING_TITLES, Finding, FindingKind
from napari_panoptic.report.sections import findings_section
from tests.support.paths import REPOSITORY
from tests.support.small_cohort import REGIONS, mask_path, write_first_regions


def said_of(findings: list[Finding], capsys: pytest.CaptureFixture[str]) -> list[str]:
    report_findings(findings, None)
    return capsys.readouterr().err.splitlines()


def test_what_stood_in_the_way_is_told_in_full_with_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path("some") / "a.geojson"
    told = said_of(
        [
            Finding(FindingKind.UNREADABLE, "2 features without a geometry", path, "r1", "alpha"),
            Finding(FindingKind.MISSING, "team 'alpha' has nothing in r2", None, "r2", "alpha"),
            Finding(FindingKind.UNREADABLE, "no data", Path("alpha") / "r3.tif", "r3", "alpha"),
        ],
        capsys,
    )
    assert told == [
        f"napari-panoptic: 2 features without a geometry ({path}, region r1, team alpha)",
        "napari-panoptic: team 'alpha' has nothing in r2",
        f"napari-panoptic: no data ({Path('alpha') / 'r3.tif'})",
    ]


def test_what_was_handled_is_told_by_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = Finding(FindingKind.NO_MPP, "there are no micrometres per pixel", region="r1")
    shared = Finding(FindingKind.OVERLAPPING, "42 px claimed twice")
    assert said_of([unknown, shared, shared], capsys) == [
        "napari-panoptic: unknown pixel size: there are no micrometres per pixel (region r1)",
        "napari-panoptic: overlaps: found 2 times, such as: 42 px claimed twice",
    ]


def test_many_of_one_kind_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    told = said_of([Finding(FindingKind.MISSING, f"file {n}") for n in range(25)], capsys)
    assert len(told) == 21
    assert told[-1] == "napari-panoptic: missing: 5 more, such as: file 24"


@pytest.mark.parametrize("kind", FindingKind)
def test_every_kind_has_words_and_can_be_reported(kind: FindingKind) -> None:
    assert FINDING_TITLES[kind]
    assert findings_section([Finding(kind, "something")])


@pytest.mark.parametrize("words", [("evaluate", "--output", "out"), ("init",), ("report",)])
def test_no_setting_reaches_the_terminal_as_control_characters(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "cohort.toml").write_text(
        'name = "n\\u001b[2J"\n[classes]\n"Nu\\u001b[31mcleus" = [1, 2, 3]\n[files]\n'
        'image = "images/{region}.png"\nreference.labels = "truth\\u0000\\u001b[2J/{region}.tif"\n'
        'predictions.labels = "teams\\u001b[2J/{team}/{region}.tif"\n'
    )
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"none")
    monkeypatch.chdir(tmp_path)
    output = ("--output", "r.html") if words == ("report",) else ()
    assert main([words[0], str(tmp_path), *words[1:], *output]) in (0, 1)
    said = "".join(capsys.readouterr())
    if words != ("init",):  # which names no setting here
        assert "\\x1b[2J" in said
    assert not [letter for letter in said if letter != "\n" and not letter.isprintable()]


def test_a_name_in_the_head_of_a_table_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("metric", "old\x1b[2J"), [("pq", "a\x00")])
    assert capsys.readouterr().out.split() == ["metric", "old\\x1b[2J", "pq", "a\\x00"]


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="closed pipes are reported differently there")
@pytest.mark.parametrize(
    "closed", [pytest.param(["stdout"], marks=pytest.mark.long), ["stdout", "stderr"]]
)
def test_tables_are_written_when_nobody_reads_the_output(
    one_region: Path, tmp_path: Path, closed: list[str]
) -> None:
    """As with `| true` and with `2>&1 | true`."""
    output = tmp_path / "out"
    command = [sys.executable, "-m", "napari_panoptic.cli.main", "evaluate", str(one_region)]
    process = subprocess.Popen(
        [*command, "--output", str(output)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    streams = {"stdout": process.stdout, "stderr": process.stderr}
    for name in closed:
        streams.pop(name).close()  # type: ignore[union-attr]
    said = {name: stream.read().decode() for name, stream in streams.items() if stream}
    for stream in streams.values():
        stream.close()  # type: ignore[union-attr]
    assert process.wait(300) == 0
    assert (output / "evaluation.json").is_file()
    for text in said.values():
        assert "cannot be written" not in text
        assert "Traceback" not in text
        assert "Broken" not in text


@pytest.mark.parametrize("offset", [pytest.param(0, marks=pytest.mark.long), 9_999])
def test_a_tiff_without_pages_is_described_in_one_line(tmp_path: Path, offset: int) -> None:
    """Neither lines of tifffile nor Python's own words are shown."""
    root = write_first_regions(tmp_path, 1)
    path = mask_path(root, "alpha", REGIONS[0])
    path.write_bytes(b"II*\0" + struct.pack("<I", offset))
    command = [sys.executable, "-m", "napari_panoptic.cli.main", "evaluate", str(root)]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "out")],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if path.name in line]
    assert line.startswith("napari-panoptic: ")
    assert "a part that the format requires is missing" in line
    for own in ("tifffile", "TiffFile", "list index out of range"):
        assert own not in done.stderr
