"""The question about conventions through its command, on slides, under edit and as a score."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.conventions import Ambiguity, RegionPlace, TeamSums, rules_of
from napari_panoptic.questions.conventions import Conventions, scores_of
from napari_panoptic.questions.engines.detective import advice
from napari_panoptic.statistics.ranks import competition_ranks
from napari_panoptic.values.conventions import (
    CHOICES,
    CONVENTIONS,
    comparable_with,
    figures_of,
    score_of,
)
from napari_panoptic.values.settings import KNOW_ZONES, EvaluationSettings
from napari_panoptic.values.vocabulary import Side


@pytest.fixture(scope="module")
def three_regions(nuclei_sample):
    whole = open_cohort(nuclei_sample)
    return replace(whole, regions=whole.regions[:3])


@pytest.fixture(scope="module")
def asked():
    return Conventions(teams=("careful", "merger"))


@pytest.fixture(scope="module")
def gathered(asked, three_regions):
    return asked.gather(three_regions)


@pytest.fixture(scope="module")
def answer(asked, three_regions, gathered):
    return asked.answered(three_regions, gathered)


@pytest.fixture
def folder(nuclei_sample):
    return nuclei_sample


def test_the_command_writes_figures_with_their_choices(folder, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["--teams", "careful,merger", "--convention", "conic,monuseg", "-o", str(out)]
    assert main(["conventions", str(folder), *arguments]) == 0
    frame = pd.read_csv(out / "conventions.csv", keep_default_na=False)
    assert list(frame.columns) == [
        *("team", "convention", "figure", "class", "value", "units"),
        *CHOICES,
    ]
    assert set(frame["convention"]) == {"conic", "monuseg"}
    row = frame[(frame["convention"] == "monuseg") & (frame["team"] == "merger")].iloc[0]
    assert row["pairs"] == "best-iou"
    assert row["ambiguous"] == "clip"
    assert int(row["units"]) == len(open_cohort(folder).regions)
    record = json.loads((out / "conventions.json").read_text(encoding="utf-8"))
    assert {one["convention"] for one in record["figures"]} == {"conic", "monuseg"}
    assert not (out / "matches.csv").exists()
    assert "monuseg" in capsys.readouterr().out


def test_published_figures_name_the_convention(folder, tmp_path, capsys):
    out = tmp_path / "first"
    common = [str(folder), "--teams", "careful,merger"]
    assert main(["conventions", *common, "-o", str(out)]) == 0
    frame = pd.read_csv(out / "conventions.csv")
    own = frame[(frame["convention"] == "stardist") & (frame["figure"] == "pq")]
    published = [f"{row.team}={row.value:.3f}" for row in own.itertuples()]
    options = [word for one in published for word in ("--published", one)]
    assert main(["conventions", *common, *options, "-o", str(tmp_path / "second")]) == 0
    found = pd.read_csv(tmp_path / "second" / "matches.csv", keep_default_na=False)
    assert list(found.columns) == [
        *CHOICES,
        *("convention", "careful", "merger", "difference", "matches"),
    ]
    assert set(found["matches"]) == {"yes", "no"}
    best = found[found["matches"] == "yes"]
    assert any("stardist pq" in names for names in best["convention"])
    said = capsys.readouterr().out
    assert f"{len(best)} combinations of {len(found)} give the published figures." in said


def exit_status(arguments):
    try:
        return main(arguments)
    except SystemExit as error:
        return error.code


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--convention", "hovernet"], "unknown protocol 'hovernet'"),
        (["--published", "careful"], "must be TEAM=FIGURE"),
        (["--published", "nobody=0.5"], "found 'nobody'"),
        (["--published", "0.5"], "must be TEAM=FIGURE"),
        (["--published", "careful=86.7"], "percent; write careful=0.867"),
        (["--published", "careful=nan"], "must be a number from 0 to 1"),
        (["--published", "careful=inf"], "must be a number from 0 to 1"),
        (["--published", "careful=-0.1"], "must be a number from 0 to 1"),
        (["--published", "careful=100.5"], "must be a number from 0 to 1"),
        (["--published", "careful=0,867"], "expected a decimal point"),
        (["--published", "careful=0.6,careful=0.7"], "found several of 'careful'"),
        (["--published", "careful=0.6", "--published", "careful=0.6"], "found several of"),
        (["--figure", "miou"], "invalid choice"),
        (["--decimals", "0"], "must be at least 1"),
        (["--zone", "2", "--convention", "nuceval,conic"], "found 'conic'"),
        (["--ambiguous-share", "0.5", "--convention", "pannuke"], "found 'pannuke'"),
        (["--zone", "21"], "zone_px must be"),
        (["--ambiguous-share", "0.5", "--ambiguous", "keep"], "has no effect under"),
    ],
)
def test_wrong_arguments(folder, tmp_path, capsys, options, said):
    arguments = ["conventions", str(folder), *options, "-o", str(tmp_path / "out")]
    assert exit_status(arguments) == 2
    assert said in capsys.readouterr().err


def test_with_a_border_the_conventions_that_know_it(folder, tmp_path):
    """By themselves, and as protocols; the usual PQ is that of an evaluation."""
    options = ["--zone", "2", "--ambiguous-share", "0.25"]
    common = [str(folder), "--teams", "careful,merger", *options]
    assert main(["conventions", *common, "-o", str(tmp_path / "all")]) == 0
    frame = pd.read_csv(tmp_path / "all" / "conventions.csv", keep_default_na=False)
    assert list(dict.fromkeys(frame["convention"])) == [*KNOW_ZONES]
    assert set(frame["ambiguous"]) == {"clip, share 0.25, zone 2 px"}
    assert set(frame["class"]) == {""}
    values = frame[frame["figure"] == "pq"].set_index("team")
    for name in KNOW_ZONES:
        out, own = tmp_path / name, values[values["convention"] == name]
        assert main(["evaluate", *common, "--protocol", name, "-o", str(out)]) == 0
        score = json.loads((out / "evaluation.json").read_text(encoding="utf-8"))["score"]
        assert score == pytest.approx(own["value"].to_dict(), rel=1e-12)


def test_a_published_figure_names_nuceval_with_its_border(three_regions):
    teams, settings = ("careful", "merger"), EvaluationSettings(zone_px=2, ambiguous="keep")
    sums = Conventions(teams=teams, settings=settings).gather(three_regions).teams
    own = rules_of(settings)
    figure = score_of("nuceval-weighted")
    published = tuple((t, round(sums[t][own].figure(*figure[1:3]).value, 6)) for t in teams)
    asked = Conventions(teams=teams, published=published, decimals=6)
    found = next(t for t in asked.answer(three_regions).tables if t.spec.file == "matches.csv")
    best = found.frame[found.frame["matches"] == "yes"].iloc[0]
    assert best["convention"] == "nuceval-weighted pq"
    assert best["mean_over"] == "regions by nuclei"
    assert "zone 2 px" in best["ambiguous"]


def test_nothing_to_evaluate(tmp_path, capsys):
    patient = tmp_path / "cohort" / "MoNuSAC Testing Data and Annotations" / "P"
    patient.mkdir(parents=True)
    (patient / "P_1.xml").write_text("<Annotations/>", encoding="utf-8")
    code = main(["conventions", str(tmp_path / "cohort"), "-o", str(tmp_path / "out")])
    assert code == 1
    assert "nothing could be" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["hover-net", "panopticapi", "monuseg", "monusac-2020-as-run"])
def test_a_convention_is_a_protocol(folder, tmp_path, name):
    """The score of ``evaluate`` is the figure of ``conventions``."""
    out = tmp_path / "out"
    arguments = ["--protocol", name, "--no-distances", "--output", str(out)]
    assert main(["evaluate", str(folder), "--teams", "careful", *arguments]) == 0
    record = json.loads((out / "evaluation.json").read_text(encoding="utf-8"))
    assert main(["conventions", str(folder), "--teams", "careful", "-o", str(tmp_path / "c")]) == 0
    frame = pd.read_csv(tmp_path / "c" / "conventions.csv", keep_default_na=False)
    own = frame[(frame["convention"] == name) & (frame["figure"] == score_of(name).name)]
    expected = float(own[own["class"] == ""]["value"].iloc[0])
    assert record["score"]["careful"] == pytest.approx(expected, rel=1e-12)
    choices = record["figures"]["score"]
    assert f"{name} {score_of(name).name}" in choices.pop("comparable_with")
    assert choices == {word: own.iloc[0][word] for word in CHOICES}


def test_other_matching_compares_with_no_published_figure(folder, tmp_path):
    arguments = ["--matching", "centroid", "--no-distances", "--output", str(tmp_path)]
    assert main(["evaluate", str(folder), "--teams", "careful", *arguments]) == 0
    record = json.loads((tmp_path / "evaluation.json").read_text(encoding="utf-8"))
    assert record["figures"]["pq"]["pairs"] == "centroid"
    assert record["figures"]["pq"]["comparable_with"] == []


def test_teams_rank_as_their_scores_do(answer, gathered):
    table = scores_of(answer)
    frame = table.frame
    for number, name in enumerate(frame["convention"]):
        figure = score_of(name)
        values = [
            own[Ambiguity.CLIP].figure(figure.formula, figure.convention).value
            for own in gathered.teams.values()
        ]
        row = frame.iloc[number]
        assert [row[f"value {team}"] for team in gathered.teams] == values
        ranks = competition_ranks(np.array(values)).tolist()
        assert [row[f"rank {team}"] for team in gathered.teams] == ranks
        assert "Comparable with" in table.tooltip(number)


def test_nuclei_that_conventions_count_otherwise(answer, gathered):
    table = answer.tables[-1]
    assert len(table.frame) == len(gathered.differences) > 0
    ids = {}
    for row in range(len(table.frame)):
        found = table.objects(row)
        assert len(found.names) == table.frame["objects"][row]
        for name in found.names:
            assert name.team in ("careful", "merger")
            ids.setdefault(name.side, set()).add(name.id)
    assert set(ids) <= set(Side)


def test_figures_compare_with_the_same_choices_only():
    seen = {}
    for name, figures in CONVENTIONS.items():
        for figure in figures:
            if figure.of_all:
                seen.setdefault((figure.formula, figure.convention), []).append(
                    f"{name} {figure.name}"
                )
    for (formula, convention), names in seen.items():
        assert comparable_with(formula, convention) == names


def test_teams_are_compared_over_the_same_regions(three_regions, asked):
    """A region that one team lacks counts for no team, and it is said."""
    lacking = {
        key: forms
        for key, forms in three_regions.predictions.items()
        if key != ("merger", three_regions.regions[0].name)
    }
    found = asked.gather(replace(three_regions, predictions=lacking))
    assert found.regions == [region.name for region in three_regions.regions[1:]]
    assert any("merger could not be evaluated here" in f.message for f in found.findings)


def test_the_policy_of_the_settings(three_regions, asked):
    kept = replace(asked, settings=EvaluationSettings(ambiguous="keep")).answer(three_regions)
    assert set(kept.tables[0].frame["ambiguous"]) == {"keep"}


def test_corrections_have_names():
    names = [f"monusac-2020-as-run+{word}" for word in ("matching", "per-patient")]
    conventions = [figures_of(name)[0].convention for name in names]
    assert conventions[0].pairs == "iou>0.5"
    assert conventions[0].mean_over == "regions"
    assert conventions[1].mean_over == "patients"


def test_how_objects_are_matched_does_not_matter(three_regions, asked, answer):
    other = EvaluationSettings(matching="centroid", iou_threshold=0.3, overlaps="keep")
    found = replace(asked, settings=other).answer(three_regions).tables[0].frame
    pd.testing.assert_frame_equal(found, answer.tables[0].frame)


def test_tissues_and_folds_come_from_the_metadata(three_regions, asked, gathered, tmp_path):
    """By hand: regions of a fold of a tissue, then folds, then tissues; no tissue, no part."""
    patients = three_regions.patients
    assert len(patients) >= 2
    path = tmp_path / "metadata.csv"
    rows = [(p, f"T{k % 2}" if k < 2 else "", f"F{k}") for k, p in enumerate(patients)]
    pd.DataFrame(rows, columns=["patient", "tissue", "fold"]).to_csv(path, index=False)
    found = replace(asked, metadata=path).answer(three_regions).tables[0].frame
    known = {p: (tissue, fold) for p, tissue, fold in rows}
    patient_of = {region.name: region.patient for region in three_regions.regions}
    figure = score_of("cellvit-paper")
    for team, own in gathered.teams.items():
        sums = own[Ambiguity.CLIP]
        cells: dict[str, dict[str, list[float]]] = {}
        for number, region in enumerate(gathered.regions):
            tissue, fold = known[patient_of[region]]
            alone = TeamSums([sums.places[number]], [sums.regions[number]])
            value = alone.figure(figure.formula, figure.convention).value
            if tissue and not math.isnan(value):
                cells.setdefault(tissue, {}).setdefault(fold, []).append(value)
        means = [np.mean([np.mean(v) for v in folds.values()]) for folds in cells.values()]
        row = found[
            (found["team"] == team)
            & (found["convention"] == "cellvit-paper")
            & (found["figure"] == "mpq")
        ].iloc[0]
        assert row["value"] == pytest.approx(np.mean(means), rel=1e-12)
        assert row["mean_over"] == "folds, tissues"
        assert row["units"] == len(means)


def test_without_tissues_the_table_says_regions(answer):
    frame = answer.tables[0].frame
    own = frame[frame["convention"].isin(["pannuke", "cellvit-paper"])]
    assert set(own["mean_over"]) == {"regions"}


def test_a_wrong_table_of_patients_is_told_and_the_rest_done(three_regions, asked, tmp_path):
    (tmp_path / "metadata.csv").write_text("organ\nKidney\n", encoding="utf-8")
    found = asked.gather(replace(three_regions, root=tmp_path))
    assert any("metadata.csv" in str(finding.path) for finding in found.findings)


def test_a_convention_with_pairs_of_its_own_takes_no_other_rule(folder, tmp_path, capsys):
    arguments = ["--protocol", "hover-net", "--iou-threshold", "0.7", "--output", str(tmp_path)]
    assert exit_status(["evaluate", str(folder), *arguments]) == 2
    assert "says itself what a pair is" in capsys.readouterr().err


def test_the_advice_names_an_order_that_the_convention_decides(three_regions):
    teams = tuple(team.name for team in three_regions.competing_teams)
    found = Conventions(teams=teams).gather(three_regions)
    said = advice(found.teams, Ambiguity.CLIP, found.regions)
    match = re.fullmatch(
        r"(\S+) is ahead of (\S+) by the usual PQ \((\S+) and (\S+)\), but behind by (\S+) (.+) "
        r"\((\S+) and (\S+)\); (\S+) does most for that\.",
        said,
    )
    assert match, said
    ahead, behind, *usual, name, _, one, other, region = match.groups()
    own = [found.teams[team][Ambiguity.CLIP] for team in (ahead, behind)]

    def figures(convention, sums):
        figure = score_of(convention)
        return [each.figure(figure.formula, figure.convention).value for each in sums]

    assert usual == [f"{value:.3f}" for value in figures("disentangled", own)]
    assert [one, other] == [f"{value:.3f}" for value in figures(name, own)]
    assert float(usual[0]) > float(usual[1])
    assert float(one) < float(other)
    leads = []
    for k in range(len(own[0])):
        places, *sums = (
            [one for number, one in enumerate(each) if number != k]
            for each in (own[0].places, own[0].regions, own[1].regions)
        )
        leads.append(np.subtract(*figures(name, [TeamSums(places, each) for each in sums])))
    assert found.regions[int(np.argmax(leads))] == region


def test_the_advice_computes_no_more_figures_for_more_regions(three_regions, monkeypatch):
    teams = tuple(team.name for team in three_regions.competing_teams)
    found = Conventions(teams=teams).gather(three_regions)
    was, asked_for = TeamSums.figure, []

    def figure(self, *of_what):
        asked_for.append(of_what)
        return was(self, *of_what)

    monkeypatch.setattr(TeamSums, "figure", figure)
    counts = []
    for n in (3, 30):
        many = {
            team: {
                Ambiguity.CLIP: TeamSums(
                    [RegionPlace(f"P{k}") for k in range(n)], own[Ambiguity.CLIP].regions * (n // 3)
                )
            }
            for team, own in found.teams.items()
        }
        asked_for.clear()
        assert " does most for that." in advice(many, Ambiguity.CLIP, [f"R{k}" for k in range(n)])
        counts.append(len(asked_for))
    assert counts[0] == counts[1]


def test_no_advice_where_nothing_depends_on_the_convention(gathered):
    alone = {"careful": gathered.teams["careful"]}
    assert advice(alone, Ambiguity.CLIP, gathered.regions) == ""
    twins = {"a": gathered.teams["careful"], "b": gathered.teams["careful"]}
    assert advice(twins, Ambiguity.CLIP, gathered.regions) == ""
