"""``napari-panoptic dump``: its tables of a small output and of the real one."""

from __future__ import annotations

import inspect
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from scipy import stats
from statsmodels.stats.multitest import multipletests

from napari_panoptic.cli.main import main
from napari_panoptic.io.tables.challenge_dump import (
    MONUSAC_2020_TEST_ORGANS,
    read_dump,
    read_organs,
)
from napari_panoptic.report.dump.tables import (
    DumpEvaluation,
    by_organ_table,
    leaderboard_table,
    pairs_table,
    patients_table,
    record_of_dump,
    write_dump_tables,
)
from napari_panoptic.report.dump.text import dump_text
from napari_panoptic.statistics.friedman import MissingRule
from tests.support.paths import REPOSITORY, SHARED_CASES, needs_shared_cases

DATA = REPOSITORY / "tests" / "data"
SMALL_DUMP, ORGANS = DATA / "organisers_dump.txt", DATA / "organs.csv"
REAL_DUMP = SHARED_CASES / "challenge-dump" / "per_image_class_pq.txt"
FILES = {"leaderboard.csv", "by_organ.csv", "patients.csv", "pairs.csv", "statistics.json"}


def small(missing: MissingRule = MissingRule.COMPLETE_CASES) -> DumpEvaluation:
    dump = read_dump(SMALL_DUMP)
    return DumpEvaluation(dump, read_organs(ORGANS, dump), missing)


def dumped(folder: Path, figures: dict[str, dict[str, float]]) -> DumpEvaluation:
    """Write and read an output: team -> "patient region class" -> PQ."""
    lines = []
    for team, by_place in figures.items():
        lines.append(team)
        for place, pq in by_place.items():
            patient, region, name = place.split()
            lines += [f".\\{patient}\\{region}\\{name}\\1_mask.mat", "['1.mat']", repr(pq)]
    path = folder / "dump.txt"
    path.write_text("\n".join(lines), "utf-8")
    return DumpEvaluation(read_dump(path), {})


def test_scores_are_means_over_regions_of_means_over_classes() -> None:
    table = leaderboard_table(small()).set_index("team")
    # Team Alpha: (0.8 + 0.6) / 2, 0.5, 0.9, (0.4 + 0.2) / 2 and 0.6.
    assert table["score"].to_dict() == pytest.approx(
        {"Team Alpha": 0.6, "beta_2": 0.4, "Gamma": 0.25}
    )
    assert table["place"].tolist() == [1, 2, 3]
    assert table["regions"].tolist() == [5, 5, 4]
    assert table["regions_listed"].tolist() == [5, 5, 5]
    assert table["not_submitted"].tolist() == [0, 1, 1]
    assert table["gaps"].tolist() == [0, 0, 1]
    assert table["patients"].tolist() == [4, 4, 3]
    # Patients of team Alpha: (0.7 + 0.5) / 2, 0.9, 0.3 and 0.6.
    assert table.loc["Team Alpha", "patient_mean"] == pytest.approx(0.6)
    assert (table["score_low"] < table["score"]).all()
    assert (table["score"] < table["score_high"]).all()
    assert (table["score_interval"] == "bca").all()


def test_figures_by_organ_and_class_are_means_over_regions_with_the_class() -> None:
    table = by_organ_table(small()).set_index(["team", "organ", "class"])
    alpha = table.loc["Team Alpha"]
    expected = {
        ("Kidney", "mean"): (2, 2, 0.45),
        ("Kidney", "Epithelial"): (1, 1, 0.4),
        ("Kidney", "Lymphocyte"): (2, 2, 0.4),
        ("Lung", "mean"): (2, 3, 0.7),
        ("Lung", "Epithelial"): (2, 2, 0.85),
        ("Lung", "Lymphocyte"): (1, 2, 0.55),
        ("all", "mean"): (4, 5, 0.6),
        ("all", "Epithelial"): (3, 3, 0.7),
        ("all", "Lymphocyte"): (3, 4, 0.475),
    }
    assert set(alpha.index) == set(expected)
    for place, (patients, regions, pq) in expected.items():
        row = alpha.loc[place]
        assert (row["patients"], row["regions"]) == (patients, regions)
        assert row["pq"] == pytest.approx(pq)
    # Of one patient there is no interval.
    assert alpha.loc[("Kidney", "Epithelial"), "pq_interval"] == "undefined"
    assert np.isnan(alpha.loc[("Kidney", "Epithelial"), "pq_low"])
    assert table.loc[("Gamma", "Kidney", "mean"), "regions"] == 1


def test_a_patient_with_a_gap_is_left_out_by_name() -> None:
    evaluation = small()
    comparison = evaluation.statistics["mean"].comparison
    assert comparison.figures.patients == ("P1", "P2", "P3")
    (omission,) = comparison.figures.omitted
    assert omission.reason == "Gamma has no figure for patient P4"
    pairs = pairs_table(evaluation)
    mean = pairs[pairs["class"] == "mean"]
    assert mean["patients"].tolist() == [4, 3, 3]
    assert mean["omitted"].tolist() == [0, 1, 1]
    assert mean["difference"].tolist() == pytest.approx([0.2, 1.0 / 3, 0.4 / 3])
    assert "left out: Gamma has no figure for P4" in dump_text(evaluation)


def test_missing_as_worst_counts_gaps_as_0() -> None:
    evaluation = small(MissingRule.WORST)
    table = leaderboard_table(evaluation).set_index("team")
    assert table.loc["Gamma", "score"] == pytest.approx(0.2)
    assert table.loc["Gamma", "gaps"] == 1
    assert evaluation.statistics["mean"].comparison.n_patients == 4
    # P4 has no epithelial cells in the annotation: nothing is missing there.
    epithelial = evaluation.statistics["Epithelial"].comparison.figures
    assert [o.reason for o in epithelial.omitted] == ["no team has a figure for patient P4"]
    text = dump_text(evaluation)
    assert "which count as 0: Gamma Lymphocyte in P4_1" in text


@pytest.mark.parametrize("missing", list(MissingRule))
def test_figures_by_organ_follow_the_score(missing: MissingRule) -> None:
    evaluation = small(missing)
    by_organ = by_organ_table(evaluation).set_index(["team", "organ", "class"])
    for team, score in evaluation.scores.items():
        assert by_organ.loc[(team, "all", "mean"), "pq"] == pytest.approx(score)
    gamma = by_organ.loc[("Gamma", "all", "Lymphocyte")]
    given = [
        figure.pq
        for figure in evaluation.dump.figures
        if (figure.team, figure.class_name) == ("Gamma", "Lymphocyte")
    ]
    n = len(given) + (missing is MissingRule.WORST)
    assert (gamma["regions"], gamma["pq"]) == (n, pytest.approx(sum(given) / n))
    text = dump_text(evaluation)
    assert "by organ: mean PQ over the regions that have the class, as in the score" in text
    assert ("; figures missing in the dump count as 0" in text) == (missing is MissingRule.WORST)


def test_a_region_with_a_gap_has_no_figure(tmp_path: Path) -> None:
    """A mean over the classes that happen to be there would not compare."""
    full = {"P P_1 E": 0.2, "P P_1 L": 0.8, "P P_2 E": 0.4, "Q Q_1 E": 0.6}
    part = {place: pq for place, pq in full.items() if place != "P P_1 L"}
    evaluation = dumped(tmp_path, {"full": full, "part": part})
    assert evaluation.gaps == [("part", "P", "P_1", "L")]
    assert evaluation.scores == pytest.approx({"full": 0.5, "part": 0.5})
    patients = patients_table(evaluation).set_index(["team", "patient"])["mean"]
    assert patients["full"].to_dict() == pytest.approx({"P": 0.45, "Q": 0.6})
    assert np.isnan(patients["part", "P"])


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ({"A": {"P P_1 E": 0.5, "Q Q_1 E": 0.6}}, "three teams, found 1"),
        ({t: {"P P_1 E": 0.1, "P P_1 L": 0.2} for t in "ABC"}, "two patients, found 1"),
        ({t: {"P P_1 E": 0.3, "Q Q_1 E": 0.4} for t in "ABC"}, "equal figures for each of the 2"),
        (
            {"A": {"P P_1 E": 0.3}, "B": {"Q Q_1 E": 0.4}, "C": {"R R_1 E": 0.4}},
            "no patient has a figure of every team",
        ),
    ],
)
def test_what_is_undefined_is_said_in_words(
    tmp_path: Path, figures: dict[str, dict[str, float]], why: str
) -> None:
    evaluation = dumped(tmp_path, figures)
    write_dump_tables(evaluation, tmp_path / "out")
    record = json.loads((tmp_path / "out" / "statistics.json").read_text("utf-8"))
    assert why in record["statistics"]["mean"]["why_undefined"]
    assert record["statistics"]["mean"]["friedman_p"] is None
    assert f"Friedman: undefined: {record['statistics']['mean']['why_undefined']}" in dump_text(
        evaluation
    )


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out"
    arguments = ["dump", str(SMALL_DUMP), "--metadata", str(ORGANS), "--output", str(out)]
    assert main([*arguments, "--seed", "5"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^Team Alpha +0\.6000 .*\nbeta_2 +0\.4000 .*\nGamma +0\.2500 ", printed, re.M)
    assert re.search(r"^Lung +Epithelial +2 +0\.850 +0\.650 +0\.400$", printed, re.M)
    assert "masks not handed in, which scored 0: 1 of beta_2 and 1 of Gamma" in printed
    assert f"tables written to {out}" in printed
    assert {path.name for path in out.iterdir()} == FILES
    assert len(pd.read_csv(out / "by_organ.csv")) == 3 * 3 * 3
    record = json.loads((out / "statistics.json").read_text("utf-8"))
    assert record["bootstrap"]["seed"] == 5
    assert record["missing"] == "complete-cases"
    assert record["organs"] == {"P1": "Lung", "P2": "Lung", "P3": "Kidney", "P4": "Kidney"}
    gap = {"team": "Gamma", "patient": "P4", "region": "P4_1", "class": "Lymphocyte"}
    assert record["gaps"] == [gap]
    assert [absent["team"] for absent in record["not_submitted"]] == ["beta_2", "Gamma"]


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.txt"
    broken.write_text("Team\n0.5\n", "utf-8")
    assert main(["dump", str(broken)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"napari-panoptic: {broken}: line 2: expected a team's name or a mask")
    assert main(["dump", str(SMALL_DUMP), "--output", str(broken)]) == 1
    assert "choose another --output" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["dump", str(SMALL_DUMP), "--seed", "-1"])
    assert stop.value.code == 2


def test_patients_without_an_organ_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(SMALL_DUMP)]) == 0
    printed = capsys.readouterr().out
    assert "organ unknown, add it with --metadata: P1, P2, P3 and P4" in printed
    assert re.search(r"^unknown +mean +5 +0\.600 ", printed, re.MULTILINE)
    assert main(["dump", str(SMALL_DUMP), "--metadata", str(ORGANS)]) == 0
    assert "unknown" not in capsys.readouterr().out


@pytest.fixture(scope="module")
def real() -> DumpEvaluation:
    return DumpEvaluation(read_dump(REAL_DUMP), MONUSAC_2020_TEST_ORGANS)


def test_the_text_has_the_digits_of_small_p_values(tmp_path: Path) -> None:
    patients = [f"P{k}" for k in range(12)]
    figures = {
        team: {f"{own} {own}_1 E": pq + 0.01 * k for k, own in enumerate(patients)}
        for team, pq in (("A", 0.1), ("B", 0.4), ("C", 0.8))
    }
    text = dump_text(dumped(tmp_path, figures))
    assert "Friedman: chi2 24.00, p 6.1e-06, Kendall's W 1.000" in text
    assert re.search(r"^A +B +12 .* 0\.00049 +0\.0015$", text, re.MULTILINE)


TABLE_2 = {
    "Breast": (0.667, 0.608, 0.342, 0.446),
    "Kidney": (0.583, 0.542, 0.465, 0.441),
    "Lung": (0.614, 0.529, 0.621, 0.566),
    "Prostate": (0.705, 0.542, 0.426, 0.612),
}
"""Foucart et al. (2021), table 2, recomputed: Epithelial, Lymphocyte, Macrophage, Neutrophil."""


@needs_shared_cases
def test_the_published_figures_of_the_winner(real: DumpEvaluation) -> None:
    assert next(iter(real.scores.items())) == ("SJTU_426", 0.5792538515659122)
    table = by_organ_table(real)
    winner = table[table["team"] == "SJTU_426"].set_index(["organ", "class"])["pq"]
    names = ("Epithelial", "Lymphocyte", "Macrophage", "Neutrophil")
    for organ, row in TABLE_2.items():
        assert [round(winner[organ, name], 3) for name in names] == list(row)


@needs_shared_cases
@pytest.mark.parametrize("name", ["mean", "Epithelial", "Lymphocyte", "Macrophage", "Neutrophil"])
def test_tests_of_the_real_teams_against_scipy_and_scikit_posthocs(
    real: DumpEvaluation, name: str
) -> None:
    frame = patients_table(real).pivot(index="patient", columns="team", values=name).dropna()
    values = frame[list(real.dump.teams)].to_numpy().T
    statistics = real.statistics[name]
    comparison = statistics.comparison
    assert comparison.n_patients == values.shape[1]
    expected = stats.friedmanchisquare(*values)
    assert comparison.friedman_chi2 == pytest.approx(expected.statistic, rel=1e-12)
    assert comparison.friedman_p == pytest.approx(expected.pvalue, rel=1e-12)
    assert comparison.nemenyi_p is not None
    nemenyi = scikit_posthocs.posthoc_nemenyi_friedman(values.T).to_numpy()
    np.testing.assert_allclose(comparison.nemenyi_p, nemenyi, rtol=1e-6, atol=1e-9)
    apart = [a - b for a, b in itertools.combinations(values, 2)]
    wilcoxon = [stats.wilcoxon(d[d != 0], method="exact").pvalue for d in apart]
    assert [p.wilcoxon_p for p in statistics.pairs] == pytest.approx(wilcoxon, rel=1e-9)
    holm = multipletests(wilcoxon, method="holm")[1]
    assert [p.holm_p for p in statistics.pairs] == pytest.approx(holm.tolist(), rel=1e-9)


@needs_shared_cases
def test_intervals_of_the_real_teams_against_scipy(real: DumpEvaluation) -> None:
    """Two sets of 10,000 draws: the ends agree but for the draws."""
    own = patients_table(real).pivot(index="patient", columns="team", values="mean")
    # scipy before 1.15 calls it otherwise.
    seed = "rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state"
    for team, interval in real.statistics["mean"].means.items():
        expected = stats.bootstrap((own[team].to_numpy(),), np.mean, method="BCa", **{seed: 1})
        assert interval.low == pytest.approx(expected.confidence_interval.low, abs=2e-3)
        assert interval.high == pytest.approx(expected.confidence_interval.high, abs=2e-3)


def test_the_record_names_every_omission() -> None:
    record: dict[str, Any] = record_of_dump(small())["statistics"]["Lymphocyte"]
    assert record["omitted"] == {
        "P2": "no team has a figure for patient P2",
        "P4": "Gamma has no figure for patient P4",
    }
    assert [pair["omitted"].keys() for pair in record["pairs"]] == [
        {"P2"},
        {"P2", "P4"},
        {"P2", "P4"},
    ]
    assert record["patients"] + len(record["omitted"]) == 4


def test_the_order_of_regions_does_not_place_teams(tmp_path: Path) -> None:
    lines = []
    for team, values in {"a": (0.1, 0.2, 0.3), "b": (0.3, 0.2, 0.1), "c": (0.1, 0.1, 0.1)}.items():
        lines.append(team)
        for number, pq in enumerate(values):
            path = f".\\P{number}\\P{number}_1\\Epithelial\\1_mask.mat"
            lines += [path, "['1.mat']", repr(pq)]
    dump = tmp_path / "dump.txt"
    dump.write_text("\n".join(lines))
    assert main(["dump", str(dump), "--output", str(tmp_path / "tables")]) == 0
    board = pd.read_csv(tmp_path / "tables" / "leaderboard.csv").set_index("team")
    assert board["place"].to_dict() == {"a": 1, "b": 1, "c": 3}
