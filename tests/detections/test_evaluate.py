"""Detections from files to tables and report, on the sample and on a small cohort."""

import csv
import json
import math
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.detections.evaluate import evaluate_detections, load_frame
from napari_panoptic.detections.pairing import DetectionSettings
from napari_panoptic.detections.session import DetectionSession
from napari_panoptic.io.cohorts.detections import open_detection_cohort

TOML = 'task = "detections"\n{extra}\n[files]\nreference = "truth/{{region}}.csv"\n' + (
    'predictions = "teams/{{team}}/{{region}}.csv"\n[files.atypia]\n'
    'reference = "atypia/{{region}}.csv"\npredictions = "teams/{{team}}/atypia/{{region}}.csv"\n'
)


@pytest.fixture
def small(tmp_path):
    """Write files by name below a cohort's folder; 1 px is 1 um."""

    def small(files, extra="mpp = 1.0"):
        (tmp_path / "cohort.toml").write_text(TOML.format(extra=extra))
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return open_detection_cohort(tmp_path)

    return small


@pytest.fixture(scope="module")
def evaluated(detection_cohort):
    return evaluate_detections(detection_cohort, DetectionSettings())


@pytest.fixture(scope="module")
def tables(detection_sample, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    assert main(["evaluate", str(detection_sample), "--output", str(folder)]) == 0
    return folder


def test_an_empty_file_is_an_answer_and_a_missing_one_is_none(small):
    cohort = small(
        {
            "truth/p_1.csv": "0,0\n50,50\n",
            "truth/p_2.csv": "0,0\n",
            "teams/empty/p_1.csv": "",
            "teams/empty/p_2.csv": "1,1\n",
            "teams/missing/p_2.csv": "1,1\n",
            "teams/broken/p_1.csv": "what?\n",
            "teams/broken/p_2.csv": "1,1\n",
        }
    )
    found = evaluate_detections(cohort, DetectionSettings())
    counts = {team: found.counts(team) for team in found.team_names}
    assert (counts["empty"].tp, counts["empty"].fp, counts["empty"].fn) == (1, 0, 2)
    for team in ("missing", "broken"):
        assert (counts[team].tp, counts[team].fn, len(found.by_team[team])) == (1, 0, 1)
    kinds = Counter((f.kind, f.team) for f in found.findings)
    assert kinds[FindingKind.MISSING, "missing"] == 1
    assert kinds[FindingKind.UNREADABLE, "broken"] == 1
    assert found.ranks == {"missing": 1, "broken": 1, "empty": 3}


def test_without_a_pixel_size_nothing_is_guessed(small, tmp_path, capsys):
    cohort = small({"truth/p_1.csv": "0,0\n", "teams/a/p_1.csv": "0,0\n"}, extra="")
    with pytest.raises(UnreadableFileError, match="write mpp = "):
        load_frame(cohort, cohort.frames[0])
    assert main(["evaluate", str(cohort.root), "--output", str(tmp_path / "out")]) == 1
    assert "mpp = 0.25" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_pixels_need_not_be_square(small):
    cohort = small(
        {"truth/p_1.csv": "0,0\n100,100\n", "teams/a/p_1.csv": "10,0\n100,110\n"},
        extra="mpp = [0.5, 1.0]",
    )
    judged = evaluate_detections(cohort, DetectionSettings()).results[0].judged
    assert judged.prediction_partner.tolist() == [0, -1]  # 5 um along x, 10 um along y
    assert judged.prediction_distance_um.tolist() == [5.0, 10.0]


def test_points_for_atypia(small):
    cohort = small(
        {
            "truth/p_1.csv": "",
            **{f"atypia/f_{n}.csv": f"{score}\n" for n, score in enumerate((1, 2, 3, 3))},
            **{f"teams/a/atypia/f_{n}.csv": t for n, t in enumerate(("3", "3,0.9", "3", ""))},
            "teams/b/atypia/f_0.csv": "1",
            "teams/b/atypia/f_1.csv": "9",
        }
    )
    found = evaluate_detections(cohort, DetectionSettings())
    assert found.atypia.points == {"a": -1 + 0 + 1 + 0, "b": 1}
    assert found.atypia.frames == {"a": 4, "b": 1}
    assert found.atypia.ranks == {"b": 1, "a": 2}
    assert any(f.kind is FindingKind.UNREADABLE and f.team == "b" for f in found.findings)


def test_tables_agree_with_each_other(tables, evaluated):
    detections = pd.read_csv(tables / "detections.csv")
    frames = pd.read_csv(tables / "frames.csv")
    assert len(frames) == len(evaluated.results)
    for row in frames.to_dict("records"):
        own = detections[(detections.team == row["team"]) & (detections.region == row["region"])]
        by = Counter(zip(own.side, own.status, strict=True))
        assert by["prediction", "TP"] == by["reference", "TP"] == row["tp"]
        assert (by["prediction", "FP"], by["reference", "FN"]) == (row["fp"], row["fn"])
    for name, keys in (("patients", ["team", "patient"]), ("teams", ["team"])):
        summed = frames.groupby(keys)[["tp", "fp", "fn"]].sum()
        found = pd.read_csv(tables / f"{name}.csv").set_index(keys)
        pd.testing.assert_frame_equal(
            found[["tp", "fp", "fn"]].sort_index(), summed.sort_index(), check_dtype=False
        )
        expected = 2 * summed.tp / (2 * summed.tp + summed.fp + summed.fn)
        assert np.allclose(found.f_measure.sort_index(), expected.sort_index())


def test_partners_name_each_other(tables):
    with (tables / "detections.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    partner = {
        (r["team"], r["region"], r["side"], r["id"]): (r["partner_id"], r["distance_um"])
        for r in rows
    }
    paired = [r for r in rows if r["status"] == "TP"]
    assert paired
    for row in paired:
        other = "prediction" if row["side"] == "reference" else "reference"
        back = partner[row["team"], row["region"], other, row["partner_id"]]
        assert back == (row["id"], row["distance_um"])
        assert float(row["distance_um"]) <= 8.0
    assert {r["partner_id"] for r in rows if r["status"] in ("FP", "FN")} == {""}


def test_the_curve_passes_through_what_is_evaluated(tables, detection_cohort):
    curve = pd.read_csv(tables / "curve.csv")
    assert set(curve.team) == {"careful", "eager", "timid"}  # offset gives no confidence
    for row in curve[curve.team == "eager"].iloc[::9].to_dict("records"):
        settings = DetectionSettings(confidence=row["threshold"])
        counts = evaluate_detections(detection_cohort, settings, ["eager"]).counts("eager")
        assert (counts.tp, counts.fp, counts.fn) == (row["tp"], row["fp"], row["fn"])


def test_intervals_are_of_the_f_measure_of_all_frames(evaluated):
    for team in evaluated.team_names:
        counts = list(evaluated.patient_counts(team).values())
        interval = evaluated.interval(team)
        assert interval.mean == pytest.approx(evaluated.counts(team).f_measure)
        # By hand: patients with replacement, counts summed, F of the sums.
        drawn = np.random.default_rng(1).integers(0, len(counts), (10_000, len(counts)))
        tp = np.array([2 * c.tp for c in counts])[drawn].sum(axis=1)
        whole = np.array([2 * c.tp + c.fp + c.fn for c in counts])[drawn].sum(axis=1)
        ends = np.quantile(tp / whole, [0.025, 0.975])
        np.testing.assert_allclose([interval.low, interval.high], ends, atol=0.05)


def test_the_record_says_what_was_missing_and_with_what(tables):
    record = json.loads((tables / "evaluation.json").read_text())
    assert record["settings"] == {"distance_um": 8.0, "confidence": None}
    assert record["evaluated_frames"]["offset"] == 5
    assert record["warnings"]["missing"][0]["region"] == "A02_00b"
    assert any(name.endswith("_mitosis.csv") for name in record["inputs"])
    assert math.isfinite(record["statistics"]["f_measure"]["friedman_p"])


def test_a_threshold_and_a_distance_are_taken(detection_sample, tmp_path, capsys):
    options = ["--distance-um", "4", "--confidence", "0.6", "--teams", "eager"]
    assert main(["evaluate", str(detection_sample), "--output", str(tmp_path), *options]) == 0
    rows = pd.read_csv(tmp_path / "detections.csv")
    ignored = rows.status == "ignored"
    assert ignored.any()
    assert (rows[ignored].confidence < 0.6).all()
    assert rows[rows.status == "TP"].distance_um.max() <= 4
    assert set(rows.team) == {"eager"}
    assert "within 4 um" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--distance-um", "0"], "above 0"),
        (["--distance-um", "nan"], "above 0"),
        (["--teams", "nobody"], "no team 'nobody'"),
        (["--matching", "centroid"], "about nuclei"),
    ],
)
def test_wrong_options_are_refused(option, message, detection_sample, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", str(detection_sample), "--output", str(tmp_path / "out"), *option])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_the_report_holds_all_and_escapes_names(detection_sample, tmp_path, capsys):
    root = tmp_path / "cohort"
    shutil.copytree(detection_sample, root)
    (root / "teams" / "careful").rename(root / "teams" / "<b>&$x$")
    path = tmp_path / "report.html"
    assert main(["report", str(root), "-o", str(path)]) == 0
    assert "report written" in capsys.readouterr().out
    page = path.read_text(encoding="utf-8")
    assert "<b>&$x$" not in page
    assert "&lt;b&gt;&amp;$x$" in page
    assert page.count("data:image/jpeg;base64") > 10
    assert "<svg" in page
    for words in ("0.767", "Worst frames", "Methods", "A02_00b"):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_names_that_act_on_a_terminal_are_printed_as_text(small, tmp_path, capsys):
    small(
        {
            "truth/a_1.csv": "1,1\n",
            "atypia/a_1.csv": "2\n",
            "teams/t\x1b[2J/a_1.csv": "1,1,0.5\n",
            "teams/t\x1b[2J/atypia/a_1.csv": "2\n",
        }
    )
    assert main(["evaluate", str(tmp_path), "--output", str(tmp_path / "o\x1b[2J")]) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert told.count(r"t\x1b[2J") == 1
    assert r"o\x1b[2J" in told


def test_without_predictions_it_is_said_where_they_are_expected(detection_sample, tmp_path, capsys):
    folder = tmp_path / "bare"
    shutil.copytree(detection_sample, folder, ignore=shutil.ignore_patterns("teams"))
    assert main(["evaluate", str(folder), "--output", str(tmp_path / "out")]) == 1
    expected = "expected are files such as teams/TEAM/mitosis/REGION.csv, or a cohort.toml"
    assert expected in capsys.readouterr().err
    session = DetectionSession(open_detection_cohort(folder))
    frame = session.cohort.frames[0]
    session.add_frame(load_frame(session.cohort, frame))
    session.show(frame.name)
    assert expected in session.why_nothing_is_judged()


DESCRIPTION = """
task = "detections"
mpp = 0.25

[files]
reference = "{region}.csv"
predictions = "teams/{team}/{region}.csv"
"""


@pytest.mark.parametrize("line", ["1e160,3,0.8", "3,-1e160", "1e308,1e308,0.5"])
def test_a_detection_far_off_is_left_out_and_listed(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort, tables = tmp_path / "cohort", tmp_path / "tables"
    (cohort / "teams" / "a").mkdir(parents=True)
    (cohort / "cohort.toml").write_text(DESCRIPTION)
    for name in ("p_1", "p_2"):
        (cohort / f"{name}.csv").write_text("10,10\n50,50\n")
        (cohort / "teams" / "a" / f"{name}.csv").write_text("10,10,0.9\n")
    (cohort / "teams" / "a" / "p_1.csv").write_text(f"10,10,0.9\n{line}\n")
    assert main(["evaluate", str(cohort), "--output", str(tables)]) == 0
    assert any(tables.glob("*.csv"))
    told = capsys.readouterr().err
    assert "line 2 of p_1.csv is left out" in told
    assert "coordinates up to 1e+12 px" in told
