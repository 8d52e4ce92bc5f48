"""Cohorts of several raters from files to tables and report."""

import json
import math
import re
import shutil
import sys

import nibabel
import numpy as np
import pandas as pd
import pytest
import tifffile
from PIL import Image

from napari_panoptic.cli.main import main
from napari_panoptic.common.progress import Progress
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.nuclei.evaluate import evaluate_pair
from napari_panoptic.raters.evaluate import (
    UNREADABLE,
    evaluate_raters,
    load_images,
    load_reference,
)
from napari_panoptic.raters.slice_outlines import outline_segments
from napari_panoptic.report.raters.tables import slices_table
from napari_panoptic.samples.write import write_raters_sample
from napari_panoptic.values.settings import EvaluationSettings
from tests.support import raters_oracle as oracle


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return write_raters_sample(tmp_path_factory.mktemp("rated") / "sample")


@pytest.fixture(scope="module")
def tables(sample, tmp_path_factory):
    """Write the tables of the sample by the command line, and read them back."""
    folder = tmp_path_factory.mktemp("tables")
    assert main(["evaluate", str(sample), "--output", str(folder)]) == 0
    found = {path.stem: pd.read_csv(path, dtype={"rater": str}) for path in folder.glob("*.csv")}
    found["record"] = json.loads((folder / "evaluation.json").read_text())
    return found


def _values(path):
    return tifffile.imread(path)


def test_the_figures_of_a_case_equal_the_oracle_on_its_files(sample, tables):
    folder = sample / "prostate" / "case04"
    masks = [_values(path) > 0 for path in sorted(folder.glob("task02_seg*.tif"))]
    values = _values(sample / "Teams" / "shifted" / "prostate" / "case04" / "task02.tif")
    cohort = open_raters(sample)
    expected = oracle.dice_at_levels(oracle.reference_of(masks), values, cohort.settings)
    levels = tables["levels"]
    place = (levels["team"] == "shifted") & (levels["case"] == "prostate/case04")
    own = levels[place & (levels["structure"] == "prostate/task02")]
    assert len(masks) == 5
    np.testing.assert_allclose(own["dice"], expected, rtol=1e-12)
    cases = tables["cases"]
    row = cases[
        (cases["team"] == "shifted")
        & (cases["case"] == "prostate/case04")
        & (cases["structure"] == "prostate/task02")
    ].iloc[0]
    assert row["dice"] == pytest.approx(oracle.average(expected))
    assert row["brier"] == pytest.approx(oracle.brier(masks, values))


def test_the_sample_needs_no_further_package(sample, monkeypatch):
    monkeypatch.setitem(sys.modules, "nibabel", None)
    cohort = open_raters(sample)
    for case, structure in (
        ("prostate/case01", "prostate/task02"),
        ("kidney/case01", "kidney/task01"),
    ):
        loaded = load_reference(
            cohort, next(at for at in cohort.cases if at.name == case), structure
        )
        assert not loaded.findings
        assert loaded.reference.votes.any()
        assert len(load_images(loaded).images) == 1
    assert loaded.spacing_mm == pytest.approx((3.0, 0.8, 0.8), rel=1e-4)


def test_tables_hang_together(tables):
    levels, cases = tables["levels"], tables["cases"]
    by_case = levels.groupby(["team", "structure", "case"])["dice"].mean()
    found = cases.set_index(["team", "structure", "case"])["dice"]
    pd.testing.assert_series_equal(by_case.sort_index(), found.sort_index())
    structures = cases.groupby(["team", "structure"])["dice"].mean()
    scores = structures.groupby("team").mean()
    ranking = tables["teams"].set_index("team")
    for team, score in scores.items():
        assert ranking.loc[team, "score"] == pytest.approx(score)
        assert tables["record"]["score"][team] == pytest.approx(score)
    assert ranking["rank"].tolist() == [1, 2, 3]
    slices = tables["slices"]
    assert set(slices["case"]) == {"kidney/case01"}
    assert len(slices) == 3 * 20
    raters = tables["raters"]
    assert (raters["kind"] == "left-out").sum() == 3 + 3 * 12 + 2 * 5
    assert tables["reliability"].groupby("team")["voxels"].sum().nunique() == 2  # one is missing


def test_teams_are_tested_over_cases(tables):
    """The Friedman test as Demsar (2006) writes it; no case of the sample has a tie."""
    cases, teams = tables["cases"], tables["teams"].set_index("team")
    means = cases.groupby(["case", "team"])["dice"].mean().unstack()
    n, k = means.shape
    ranks = [[1 + sum(other > own for other in row) for own in row] for row in means.to_numpy()]
    mean_ranks = np.array(ranks).mean(axis=0)
    chi2 = 12 * n / (k * (k + 1)) * ((mean_ranks**2).sum() - k * (k + 1) ** 2 / 4)
    row = tables["tests"].set_index("structure").loc["(all)"]
    assert row["cases"] == n == 5
    assert row["friedman_chi2"] == pytest.approx(chi2)
    # With two degrees of freedom the chi-square distribution is an exponential one.
    assert row["friedman_p"] == pytest.approx(math.exp(-chi2 / 2))
    for team, rank in zip(means.columns, mean_ranks, strict=True):
        assert teams.loc[team, "mean_rank"] == pytest.approx(rank)
        better = mean_ranks < rank - row["critical_difference"]
        assert teams.loc[team, "shared_rank"] == 1 + better.sum()
    assert teams["shared_rank"].tolist() == [1, 1, 2]
    pairs = tables["pairs"]
    own = pairs[(pairs["structure"] == "(all)") & (pairs["second"] == "shifted")].iloc[0]
    expected = (means["calibrated"] - means["shifted"]).mean()
    assert own["first"] == "calibrated"
    assert own["difference"] == pytest.approx(expected)
    assert "at least two cases" in tables["tests"].set_index("structure")["why_undefined"].iloc[1]
    record = tables["record"]["statistics"]
    assert record["(all)"]["friedman_p"] == pytest.approx(row["friedman_p"], rel=1e-12)
    assert set(record) - {"unit", "bootstrap"} == set(tables["tests"]["structure"])


def test_any_number_of_jobs_gives_the_same_figures_in_the_same_order(sample):
    cohort = open_raters(sample)
    told = []
    progress = Progress(report=lambda _share, case: told.append(case))
    alone = evaluate_raters(cohort, jobs=1, progress=progress)
    assert told == [case.name for case in cohort.cases for _ in case.masks]
    several = evaluate_raters(cohort, jobs=5)
    pd.testing.assert_frame_equal(several.cases, alone.cases, check_exact=True)
    pd.testing.assert_frame_equal(slices_table(several), slices_table(alone), check_exact=True)
    assert several.findings == alone.findings


def test_options_that_do_nothing_are_told_of(tmp_path, capsys):
    mask = np.zeros((8, 9), np.uint8)
    mask[2:5, 2:5] = 1
    _flat_cohort(tmp_path, [mask] * 2, mask.astype(np.float32))
    command = ["evaluate", str(tmp_path), "--output", str(tmp_path / "o")]
    assert main([*command, "--jobs", "2"]) == 0
    out = capsys.readouterr()
    assert "does nothing" not in out.err
    assert "No Friedman test of Dice: the Friedman test needs at least three teams" not in out.out
    assert main([*command, "--no-resume", "--scheduler", "processes"]) == 0
    told = capsys.readouterr().err
    assert (
        "--no-resume does nothing for cohorts about raters: an interrupted run keeps nothing"
        in told
    )
    assert "--scheduler does nothing for cohorts about raters" in told


def test_a_slide_is_the_image_where_it_has_the_masks_size(tmp_path):
    rgb = np.random.default_rng(1).integers(0, 255, (40, 50, 3)).astype(np.uint8)
    text = "Aperio Image Library v11.2.1 \r\n50x40 [0,0 50x40] (256x256) |AppMag = 40|MPP = 0.25"
    (tmp_path / "slides").mkdir()
    for name in ("a", "b"):
        with tifffile.TiffWriter(tmp_path / "slides" / f"{name}.svs") as file:
            file.write(
                rgb,
                tile=(256, 256),
                photometric="rgb",
                compression="adobe_deflate",
                metadata=None,
                description=text,
            )
    (tmp_path / "cohort.toml").write_text(
        'task = "raters"\n[files]\nimage = "slides/{case}.svs"\n'
        'raters = "{case}_{structure}_{rater}.tif"\n'
    )
    tifffile.imwrite(tmp_path / "a_s_1.tif", np.ones((40, 50), np.uint8))
    tifffile.imwrite(tmp_path / "b_s_1.tif", np.ones((20, 25), np.uint8))
    cohort = open_raters(tmp_path)
    fits, other = (load_images(load_reference(cohort, case, "s")) for case in cohort.cases)
    np.testing.assert_array_equal(fits.images[""], rgb)
    assert fits.spacing_mm == pytest.approx((0.00025, 0.00025))
    assert (fits.findings, other.images) == ((), {})
    assert "masks' size of 25 x 20, found 50 x 40" in other.findings[0].message


def test_a_missing_prediction_is_background_and_said(tables):
    cases = tables["cases"]
    (missing,) = cases[cases["prediction"] != "there"].to_dict("records")
    assert (missing["team"], missing["case"], missing["dice"]) == ("shifted", "prostate/case02", 0)
    messages = [w["message"] for w in tables["record"]["warnings"]["missing"]]
    assert any("prostate/case02, prostate/task02" in message for message in messages)
    assert tables["record"]["settings"]["levels"] == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert all(v.startswith("sha256:") for v in tables["record"]["inputs"].values())


def test_the_report_is_one_file_and_escapes_names(sample, tmp_path):
    folder = shutil.copytree(sample, tmp_path / "copy")
    (folder / "Teams" / "shifted").rename(folder / "Teams" / "<b>$x&y")
    assert main(["report", str(folder), "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;$x&amp;y" in page
    assert "<b>$x" not in page
    for word in ("Ranking", "Teams among the raters", "Dice over levels", "Worst cases", "Methods"):
        assert word in page
    assert page.count("data:image/png") == 9
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_commands_say_what_is_wrong(sample, tmp_path, capsys):
    out = ["--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", str(sample), *out, "--teams", "nobody"])
    assert stopped.value.code == 2
    assert "no team 'nobody'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["evaluate", str(sample), *out, "--iou-threshold", "0.4"])
    assert main(["sample", "--task", "raters", str(sample)]) == 0  # left as it is


def _flat_cohort(root, masks, map_):
    """Write one case by three raters, and a team's map under a name that fits its type."""
    (root / "cohort.toml").write_text(
        'task = "raters"\n[files]\nimage = "{case}.png"\n'
        'raters = "{case}_{structure}_{rater}.tif"\n'
        'predictions = "{team}/{case}_{structure}.tif"\n'
    )
    Image.fromarray(np.zeros((8, 9), np.uint8)).save(root / "c.png")
    for number, mask in enumerate(masks):
        tifffile.imwrite(root / f"c_s_r{number}.tif", mask)
    (root / "T").mkdir()
    tifffile.imwrite(root / "T" / "c_s.tif", map_)
    return open_raters(root)


@pytest.mark.parametrize(
    ("map_", "message"),
    [
        (np.full((8, 9), np.nan, np.float32), "NaN"),
        (np.full((8, 9), 2, np.float32), "values from 2 to 2|values from 0 to 2"),
        (np.zeros((9, 8), np.float32), "9 x 8, found 8 x 9"),
    ],
)
def test_an_unusable_prediction_is_background_and_said(tmp_path, map_, message):
    mask = np.zeros((8, 9), np.uint8)
    mask[2:5, 2:5] = 1
    evaluation = evaluate_raters(_flat_cohort(tmp_path, [mask] * 3, map_))
    (row,) = evaluation.cases.to_dict("records")
    assert (row["prediction"], row["dice"]) == (UNREADABLE, 0.0)
    (found,) = [f for f in evaluation.findings if f.kind == "unreadable"]
    assert re.search(message, found.message)
    assert "counts as background" in found.message


def test_an_unusable_mask_is_left_out_and_said(tmp_path):
    mask = np.zeros((8, 9), np.uint8)
    mask[2:5, 2:5] = 1
    odd = mask.astype(np.float32) / 2 + mask[::-1]
    evaluation = evaluate_raters(
        _flat_cohort(tmp_path, [mask, odd, mask[:, :-1]], mask.astype(np.float32))
    )
    (result,) = evaluation.results
    assert result.raters.raters == ("r0",)
    messages = " ".join(f.message for f in evaluation.findings)
    assert "must be binary" in messages
    assert "rater r2 is left out" in messages
    assert evaluation.cases["dice"].tolist() == [1.0]
    assert math.isnan(evaluation.cases["left_out_dice"][0])


def test_one_mask_of_another_size_does_not_push_the_others_out(tmp_path):
    mask = np.zeros((8, 9), np.uint8)
    mask[2:5, 2:5] = 1
    evaluation = evaluate_raters(
        _flat_cohort(tmp_path, [mask[:, :-1], mask, mask], mask.astype(np.float32))
    )
    (result,) = evaluation.results
    assert result.raters.raters == ("r1", "r2")
    assert (result.shape, evaluation.cases["prediction"].tolist()) == ((8, 9), ["there"])
    assert evaluation.cases["dice"].tolist() == [1.0]
    messages = " ".join(f.message for f in evaluation.findings)
    assert "the mask of rater r0 must have the size that most raters' masks have" in messages
    assert "rater r0 is left out" in messages


def test_the_first_mask_decides_between_sizes_that_are_as_common(tmp_path):
    mask = np.ones((8, 9), np.uint8)
    evaluation = evaluate_raters(
        _flat_cohort(tmp_path, [mask, mask[:, :-1]], mask.astype(np.float32))
    )
    (result,) = evaluation.results
    assert result.raters.raters == ("r0",)


def test_a_printed_mean_is_said_to_be_of_what_could_be_evaluated(tmp_path, capsys):
    mask = np.ones((8, 9), np.uint8)
    _flat_cohort(tmp_path, [mask, mask], mask.astype(np.float32))
    tifffile.imwrite(tmp_path / "d_s_r0.tif", np.full((8, 9), np.nan))
    assert main(["evaluate", str(tmp_path), "--output", str(tmp_path / "out")]) == 0
    assert "(1 structure, 1 case)" in capsys.readouterr().out


def test_nothing_usable_is_an_error(tmp_path, capsys):
    _flat_cohort(tmp_path, [np.full((8, 9), np.nan)], np.zeros((8, 9), np.float32))
    assert main(["evaluate", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert "nothing could be evaluated" in said
    assert "evaluation.json" not in said  # there is none


def test_objects_of_several_people_are_compared_by_union_and_by_object(tmp_path):
    (tmp_path / "cohort.toml").write_text(
        'task = "raters"\n[classes]\nRound = [255, 0, 0]\nLong = [0, 0, 255]\n'
        '[files]\nraters.labels = "raters/{rater}/{case}.npy"\n'
        'predictions.labels = "T/{case}.npy"\n'
    )
    first = np.zeros((20, 20), np.int32)
    first[2:8, 2:8], first[12:16, 3:17] = 1, 2
    second = first.copy()
    second[2] = 0
    table = "id,class\n1,Round\n2,Long\n"
    for name, array in (("raters/anna", first), ("raters/ben", second), ("T", first)):
        (tmp_path / name).mkdir(parents=True)
        np.save(tmp_path / name / "c.npy", array)
        (tmp_path / name / "c.csv").write_text(table)
    cohort = open_raters(tmp_path)
    round_, long = evaluate_raters(cohort).results
    assert (round_.structure, long.structure) == ("Round", "Long")
    assert round_.raters.pairwise[0, 1] == pytest.approx(2 * 30 / (36 + 30))
    assert long.raters.pairwise[0, 1] == 1.0
    classes = {1: "Round", 2: "Long"}
    expected = evaluate_pair(
        first,
        second,
        reference_classes=classes,
        prediction_classes=classes,
        class_names=("Round", "Long"),
        settings=EvaluationSettings(ambiguous="keep"),
    )
    assert round_.objects.of_class("Round")[0][0, 1] == expected.by_class["pq"][0]
    # Anna's own objects: the half that both marked, and the half that she alone did.
    state, comparison = round_.teams["predictions"]
    assert (state, comparison.counts.reference.tolist()) == ("there", [36, 36, 36, 30, 30])
    assert comparison.counts.prediction.tolist() == [36] * 5


def test_modalities_and_images_that_do_not_fit(tmp_path):
    folder = tmp_path / "case01"
    folder.mkdir()
    mask = np.zeros((5, 6, 1), np.uint8)
    mask[2:4, 2:4] = 1
    for number in (1, 2):
        nibabel.save(nibabel.Nifti1Image(mask, np.eye(4)), folder / f"task01_seg0{number}.nii.gz")
    several = np.arange(60, dtype=np.float32).reshape(5, 6, 1, 2)
    nibabel.save(nibabel.Nifti1Image(several, np.eye(4)), folder / "image.nii.gz")
    nibabel.save(nibabel.Nifti1Image(several[:4], np.eye(4)), folder / "image_t2.nii.gz")
    cohort = open_raters(tmp_path)
    found = load_images(load_reference(cohort, cohort.cases[0], "task01"))
    pictures, findings = found.images, found.findings
    assert list(pictures) == ["modality 1", "modality 2"]
    np.testing.assert_array_equal(pictures["modality 2"], several[:, :, 0, 1].T)
    assert "5 x 6, found 4 x 6 x 2" in findings[0].message


def test_another_affine_is_said(sample, tmp_path):
    folder = tmp_path / "kidney" / "case01"
    folder.mkdir(parents=True)
    shutil.copy(sample / "kidney" / "case01" / "image.tif", folder)
    for number in (1, 2, 3):
        mask = _values(sample / "kidney" / "case01" / f"task01_seg0{number}.tif")
        sizes = np.diag([1.0, 1.0, 1.0 + (number == 2), 1.0])
        nibabel.save(nibabel.Nifti1Image(mask.T, sizes), folder / f"task01_seg0{number}.nii.gz")
    (finding,) = evaluate_raters(open_raters(tmp_path)).findings
    assert "the affine of 'task01_seg02.nii.gz' differs" in finding.message


def test_outlines_go_around_every_pixel_of_a_mask_and_no_other():
    rng = np.random.default_rng(3)
    for _ in range(20):
        mask = rng.random((7, 9)) < 0.5
        drawn = set()
        for (y0, x0), (y1, x1) in outline_segments(mask).tolist():
            steps = int(abs(y1 - y0) + abs(x1 - x0))
            for i in range(steps):
                dy, dx = (y1 - y0) / steps, (x1 - x0) / steps
                drawn.add((y0 + dy * (i + 0.5), x0 + dx * (i + 0.5)))
        padded = np.pad(mask, 1)
        expected = set()
        for y in range(-1, 7):
            for x in range(-1, 9):
                here = padded[y + 1, x + 1]
                if x < 8 + 1 and here != (padded[y + 1, x + 2] if x + 2 < 11 else False):
                    expected.add((float(y), x + 0.5))
                if y < 6 + 1 and here != (padded[y + 2, x + 1] if y + 2 < 9 else False):
                    expected.add((y + 0.5, float(x)))
        assert drawn == expected
    assert outline_segments(np.zeros((3, 3), bool)).shape == (0, 2, 2)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_names_that_act_on_a_terminal_are_printed_as_text(tmp_path, capsys):
    mask = np.zeros((8, 9), np.uint8)
    mask[2:5, 2:5] = 1
    _flat_cohort(tmp_path, [mask] * 2, mask.astype(np.float32))
    (tmp_path / "T").rename(tmp_path / "T\x1b[2J")
    assert main(["evaluate", str(tmp_path), "--output", str(tmp_path / "o\x1b[2J")]) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert r"T\x1b[2J" in told
    assert r"o\x1b[2J" in told
