"""``napari-panoptic plan`` and ``estimate``, as users run them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from napari_panoptic.values.vocabulary import Verdict
from tests.support.commands import Run
from tests.support.paths import csv_rows
from tests.support.review_packages import contents_of, saved, write_file


def review(plan: Path, path: Path, verdict: str = "annotation-right") -> Path:
    """Write the same verdict on every object, and no nucleus in any tile."""
    rows = [
        f"{row['item']},annotation-right,0"
        if row["side"] == "background"
        else f"{row['item']},{verdict},"
        for row in csv_rows(plan)
    ]
    path.write_text("\n".join(["item,verdict,count", *rows]) + "\n")
    return path


def test_a_plan_is_drawn_and_its_verdicts_are_estimated(
    small_folder: Path, tmp_path: Path, run: Run
) -> None:
    plan, verdicts, output = tmp_path / "plan.csv", tmp_path / "verdicts.csv", tmp_path / "out"
    code, out, _ = run(
        "plan", small_folder, "--team", "alpha", "--items", 25, "--seed", 3, "-o", plan
    )
    assert code == 0
    assert "alpha/background" in out
    assert "expected half-width" in out
    assert "plan of 25 items written to" in out
    header = plan.read_text().splitlines()[0]
    assert header == "item,team,patient,region,side,id,y_px,x_px,stratum,probability"
    rows = csv_rows(plan)
    assert {row["side"] for row in rows} == {"reference", "prediction", "background"}
    assert {row["id"] for row in rows if row["side"] == "background"} == {""}

    code, out, _ = run(
        "estimate", small_folder, "--plan", plan, "--verdicts", review(plan, verdicts), "-o", output
    )
    assert code == 0
    assert "Reviewed against alpha, the annotation is wrong for 0.0% of its nuclei" in out
    assert "If the annotation were right, the PQ of alpha, pooled over the cohort, would be" in out
    header = (output / "estimates.csv").read_text().splitlines()[0]
    assert header == "quantity,team,class,estimate,low,high,items,as_annotated"
    rows = csv_rows(output / "estimates.csv")
    assert [row["quantity"] for row in rows if row["class"] == "all"] == [
        "annotation-error-rate",
        "precision",
        "recall",
        "f1",
        "pq",
    ]
    assert {row["class"] for row in rows} == {
        "Epithelial",
        "Lymphocyte",
        "Neutrophil",
        "Macrophage",
        "all",
    }
    for row in rows:
        assert row["team"] == "alpha"
        if row["estimate"]:
            assert 0 <= float(row["low"]) <= float(row["estimate"]) <= float(row["high"]) <= 1
            # No error was found, by however few items.
            assert float(row["estimate"]) == pytest.approx(float(row["as_annotated"]))
    record = json.loads((output / "estimates.json").read_text())
    assert record["design"]["items"] == 25
    assert sum(one["drawn"] for one in record["design"]["strata"]) == 25
    assert "estimates.csv" in record["tables"]


def test_the_same_seed_gives_the_same_bytes(small_folder: Path, tmp_path: Path, run: Run) -> None:
    elsewhere = Path(shutil.copytree(small_folder, tmp_path / "copy"))
    for name, place, seed in (("a", small_folder, 1), ("b", elsewhere, 1), ("c", small_folder, 2)):
        words = ("--team", "beta", "--items", 20, "--seed", seed)
        assert run("plan", place, *words, "-o", tmp_path / name)[0] == 0
    first, again, other = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == again
    assert first != other


def test_a_plan_is_extended(small_folder: Path, tmp_path: Path, run: Run) -> None:
    plan, larger = tmp_path / "plan.csv", tmp_path / "larger.csv"
    words = ("plan", small_folder, "--team", "alpha", "--team", "beta", "--seed", 5)
    assert run(*words, "--items", 24, "-o", plan)[0] == 0
    assert run(*words, "--items", 40, "--extend", plan, "-o", larger)[0] == 0
    before, after = csv_rows(plan), csv_rows(larger)
    assert len(after) == 40
    assert {row["team"] for row in after} == {"alpha", "beta"}
    for name in ("item", "team", "region", "side", "id", "stratum"):
        assert [row[name] for row in after[:24]] == [row[name] for row in before]
    code, _, err = run(*words[:-1], 6, "--items", 40, "--extend", plan, "-o", larger)
    assert code == 2
    assert "was not drawn with the seed 6" in err


def test_the_seed_is_checked_and_stated(small_folder: Path, tmp_path: Path, run: Run) -> None:
    plan, verdicts = tmp_path / "plan.csv", tmp_path / "verdicts.csv"
    assert (
        run("plan", small_folder, "--team", "beta", "--items", 20, "--seed", 4, "-o", plan)[0] == 0
    )
    words = ("estimate", small_folder, "--plan", plan, "--verdicts", review(plan, verdicts))
    assert run(*words, "-o", tmp_path / "out", "--seed", 4)[0] == 0
    record = json.loads((tmp_path / "out" / "estimates.json").read_text())
    assert record["design"]["seed"] == 4
    assert run(*words, "-o", tmp_path / "out", "--seed", 5)[0] == 2


def test_suspects_are_strata_that_estimate_finds_again(
    nuclei_sample: Path, tmp_path: Path, run: Run
) -> None:
    plan, larger, verdicts = (tmp_path / name for name in ("p.csv", "larger.csv", "v.csv"))
    words = ("plan", nuclei_sample, "--team", "merger", "--seed", 2)
    code, out, _ = run(*words, "--items", 60, "--suspects", "-o", plan)
    assert code == 0
    assert "merger/TP/suspect" in out
    assert any(row["stratum"].startswith("merger/TP/suspect") for row in csv_rows(plan))
    assert run(*words, "--items", 70, "--extend", plan, "-o", larger)[0] == 0
    assert [row["stratum"] for row in csv_rows(larger)[:60]] == [
        r["stratum"] for r in csv_rows(plan)
    ]

    words = ("estimate", nuclei_sample, "--plan", larger, "--verdicts", review(larger, verdicts))
    assert run(*words, "-o", tmp_path / "out", "--seed", 2)[0] == 0
    record = json.loads((tmp_path / "out" / "estimates.json").read_text())
    assert record["design"]["strata_of_suspects"] is True
    # Every annotation was found right.
    (rate,) = (e for e in record["estimates"] if e["class"] == "all" and "rate" in e["quantity"])
    assert rate["estimate"] == 0


def test_suspects_need_two_teams(nuclei_sample: Path, tmp_path: Path, run: Run) -> None:
    left_out = shutil.ignore_patterns("careful", "confuser", "over-splitter")
    cohort = Path(shutil.copytree(nuclei_sample, tmp_path / "one", ignore=left_out))
    words = ("plan", cohort, "--team", "merger", "--items", 60, "--suspects")
    code, _, err = run(*words, "-o", tmp_path / "plan.csv")
    assert (code, "two or more teams agree; found 1" in err) == (2, True)


def test_teams_are_ranked(small_folder: Path, tmp_path: Path, run: Run) -> None:
    plan, verdicts = tmp_path / "plan.csv", tmp_path / "verdicts.csv"
    teams = ("--team", "alpha", "--team", "beta")
    assert run("plan", small_folder, *teams, "--items", 40, "-o", plan)[0] == 0
    words = ("--plan", plan, "--verdicts", review(plan, verdicts), "-o", tmp_path / "out")
    code, out, _ = run("estimate", small_folder, *words)
    assert code == 0
    assert "alpha has rank 1 of 2 by PQ, with a certainty of" in out
    record = json.loads((tmp_path / "out" / "estimates.json").read_text())
    ranked, differences = record["ranking"], record["differences"]
    assert [row["quantity"] for row in differences] == ["precision", "recall", "f1", "pq"]
    assert all(row["teams"] == ["alpha", "beta"] for row in differences)
    assert all(row["low"] < row["estimate"] < row["high"] for row in differences)
    assert [row["team"] for row in ranked if row["quantity"] == "pq"] == ["alpha", "beta"]


@pytest.mark.usefixtures("no_plots")
def test_a_report_has_a_section_on_the_review(small_folder: Path, tmp_path: Path, run: Run) -> None:
    plan, verdicts, report = tmp_path / "plan.csv", tmp_path / "verdicts.csv", tmp_path / "r.html"
    assert run("plan", small_folder, "--team", "alpha", "--items", 20, "-o", plan)[0] == 0
    words = ("report", small_folder, "--teams", "alpha", "-o", report, "--plan", plan)
    code, _, err = run(*words)
    assert (code, "--plan and --verdicts go together" in err) == (2, True)
    assert run(*words, "--verdicts", review(plan, verdicts))[0] == 0
    text = report.read_text("utf-8")
    for part in ("Planned review", "review-estimates.csv", "review-strata.csv", "cannot be told"):
        assert part in text


@pytest.mark.usefixtures("no_plots")
def test_strata_whose_items_were_removed_have_no_weight(
    small_folder: Path, tmp_path: Path, run: Run
) -> None:
    plan, verdicts, report = tmp_path / "plan.csv", tmp_path / "verdicts.csv", tmp_path / "r.html"
    assert run("plan", small_folder, "--team", "alpha", "--items", 20, "-o", plan)[0] == 0
    head, *rows = plan.read_text().splitlines()
    kept = [row.split(",", 1)[1] for row in rows if ",background," not in row]
    plan.write_text("\n".join([head, *(f"{k},{row}" for k, row in enumerate(kept, 1))]) + "\n")
    words = ("report", small_folder, "--teams", "alpha", "-o", report, "--plan", plan)
    assert run(*words, "--verdicts", review(plan, verdicts))[0] == 0
    text = report.read_text("utf-8")
    assert re.search(r"alpha/background</bdi></th>.*?>0</td><td[^>]*>–</td></tr>", text)


def test_mistakes_are_named(small_folder: Path, tmp_path: Path, run: Run) -> None:
    plan = tmp_path / "plan.csv"
    code, _, err = run("plan", small_folder, "--team", "alfa", "--items", 20, "-o", plan)
    assert (code, "--team: there is no team 'alfa'" in err) == (2, True)
    code, _, err = run("plan", small_folder, "--team", "alpha", "--items", 2, "-o", plan)
    assert (code, "--items: expected at least" in err) == (2, True)
    annotation = next(small_folder.rglob("*.xml"))
    before = annotation.read_bytes()
    assert run("plan", small_folder, "--team", "alpha", "--items", 20, "-o", annotation)[0] == 1
    assert annotation.read_bytes() == before
    assert run("plan", small_folder, "--team", "alpha", "--items", 20, "-o", plan)[0] == 0
    verdicts = tmp_path / "verdicts.csv"
    verdicts.write_text("item,verdict,count\n1,rigth,\n")
    words = (
        "estimate",
        small_folder,
        "--plan",
        plan,
        "--verdicts",
        verdicts,
        "-o",
        tmp_path / "out",
    )
    code, _, err = run(*words)
    assert (code, "line 2, item 1: expected" in err) == (1, True)
    verdicts.write_text("item,verdict,count\n")
    code, _, err = run(*words)
    assert (code, "review some items first" in err) == (1, True)
    assert not (tmp_path / "out").exists()
    plan.unlink()
    code, _, err = run(*words)
    assert (code, "cannot be read" in err) == (1, True)


def test_verdicts_beyond_the_plan_change_nothing(
    small_folder: Path, tmp_path: Path, run: Run
) -> None:
    plan, verdicts = tmp_path / "plan.csv", tmp_path / "verdicts.csv"
    assert run("plan", small_folder, "--team", "alpha", "--items", 20, "-o", plan)[0] == 0
    text = review(plan, verdicts).read_text()
    words = ("estimate", small_folder, "--plan", plan, "--verdicts", verdicts, "-o")
    assert run(*words, tmp_path / "one")[0] == 0
    verdicts.write_text(text + "21,prediction-right,\n22,both-wrong,\n")
    code, _, err = run(*words, tmp_path / "other")
    assert code == 0
    assert "2 rows (21 and 22) are not in the plan and are left out of every estimate" in err
    one, other = ((tmp_path / name / "estimates.csv").read_bytes() for name in ("one", "other"))
    assert one == other


def test_detections_have_no_plan(detection_sample: Path, tmp_path: Path, run: Run) -> None:
    words = ("--team", "x", "--items", 20, "-o", tmp_path / "plan.csv")
    code, _, err = run("plan", detection_sample, *words)
    assert code == 2
    assert "there is no 'plan' for detections" in err


def test_a_colleague_reviews_the_plan_in_a_browser(
    small_folder: Path, tmp_path: Path, run: Run
) -> None:
    plan, page, output = tmp_path / "plan.csv", tmp_path / "review.html", tmp_path / "by-hand"
    run("plan", small_folder, "--team", "alpha", "--items", 20, "-o", plan)
    code, out, _ = run("package", small_folder, "--plan", plan, "-o", page)
    assert code == 0
    assert "20 items" in out

    answers: dict[str, Verdict | int | None] = {
        row["item"]: 0 if row["side"] == "background" else Verdict.PREDICTION_RIGHT
        for row in csv_rows(plan)
    }
    answer_file = write_file(tmp_path / "review.json", saved(contents_of(page), answers))
    imported = tmp_path / "verdicts.csv"
    review_file = tmp_path / "kept.review"
    arguments = ("--review", review_file, "--verdicts", imported)
    code, _, err = run("import-verdicts", answer_file, small_folder, *arguments)
    assert code == 0, err
    assert review_file.is_file()

    by_hand = review(plan, tmp_path / "by-hand.csv", "prediction-right")
    for verdicts, folder in ((imported, tmp_path / "imported"), (by_hand, output)):
        code, _, err = run(
            "estimate", small_folder, "--plan", plan, "--verdicts", verdicts, "-o", folder
        )
        assert code == 0, err
    assert csv_rows(tmp_path / "imported" / "estimates.csv") == csv_rows(output / "estimates.csv")
