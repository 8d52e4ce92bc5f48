"""The command ``correct``: the annotation with the verdicts of a review applied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.actions import Claim
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support.corrected import (
    assert_same_figures,
    correct,
    evaluation_of,
    failures,
    give,
    in_the_window,
    record,
    table,
)


@pytest.mark.parametrize("claim", list(Claim))
def test_laid_over_a_copy_it_gives_the_figures_of_the_window(
    nuclei_sample: Path, tmp_path: Path, claim: Claim
) -> None:
    cohort, review, output = open_cohort(nuclei_sample), tmp_path / "r.sqlite", tmp_path / "out"
    team = cohort.team_names[0]
    verdicts = {}
    for seed, region in enumerate(cohort.regions):
        verdicts[region.name] = failures(evaluation_of(cohort, region.name, team), seed)
        give(review, cohort, region.name, team, verdicts[region.name])
    assert correct(nuclei_sample, review, output, "--overlaps", str(claim)) == 0
    assert record(output)["counts"]["differing_px"] == 0
    copy = tmp_path / "copy"
    shutil.copytree(nuclei_sample, copy)
    shutil.copytree(output, copy, dirs_exist_ok=True)
    corrected = open_cohort(copy)
    for region in cohort.regions:
        shown = in_the_window(cohort, region.name, team, verdicts[region.name], claim)
        assert_same_figures(evaluation_of(corrected, region.name, team), shown)
    assert {"accept", "delete", "replace", "reclassify", "draw"} <= set(table(output)["action"])
