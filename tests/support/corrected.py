"""Verdicts on the objects of a cohort, and what a corrected annotation must give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_panoptic.live.actions import mend_of_verdicts
from napari_panoptic.live.mends import Claim, Covered
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.review.judged import Subjects
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import Judgement
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status, Verdict
from tests.support.commands import exit_status

SETTINGS = EvaluationSettings()
Verdicts = Mapping[tuple[Side, int], Verdict]


def evaluation_of(cohort: Cohort, region: str, team: str) -> Evaluation:
    found = HeldRegion(cohort, cohort.region(region), SETTINGS).evaluate(team, SETTINGS)
    assert found.evaluation is not None
    return found.evaluation


def failures(evaluation: Evaluation, seed: int, share: float = 0.6) -> Verdicts:
    """Give verdicts on a share of the objects, of a misclassified pair on the annotated one."""
    rng = np.random.default_rng(seed)
    chosen = {}
    for side in Side:
        own = evaluation.outcomes.side(side)
        for row, id_ in enumerate(own.ids.tolist()):
            is_failure = side is Side.REFERENCE or own.status[row] == STATUS_CODE[Status.FP]
            if is_failure and rng.random() < share:
                chosen[side, id_] = list(Verdict)[int(rng.integers(4))]
    return chosen


def give(
    path: Path,
    cohort: Cohort,
    region: str,
    team: str,
    verdicts: Verdicts,
    *,
    reviewer: str = "Ann",
    adjudicates: tuple[str, str] | None = None,
) -> None:
    """Save verdicts in a review file, as the window does."""
    evaluation = evaluation_of(cohort, region, team)
    subjects = Subjects(evaluation, region=region, team=team)
    rows = {
        (side, id_): subjects.of(side, int(evaluation.outcomes.side(side).row_of(id_) or 0))
        for side, id_ in verdicts
    }
    with ReviewStore(path, reviewer=reviewer, adjudicates=adjudicates) as store:
        store.give_all([Judgement(rows[at], verdict) for at, verdict in verdicts.items()])


def correct(cohort: Path, review: Path, output: Path, *options: str) -> int:
    """Run the command; return its exit status."""
    arguments = ["correct", str(cohort), "--review", str(review), "-o", str(output), *options]
    return exit_status(*arguments)


def table(output: Path) -> pd.DataFrame:
    return pd.read_csv(output / "corrections.csv", keep_default_na=False)


def record(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "corrections.json").read_text("utf-8"))
    return found


def in_the_window(
    cohort: Cohort, region: str, team: str, verdicts: Verdicts, claim: Claim
) -> Evaluation:
    """Apply verdicts in a session; return what it shows."""
    session = Session(cohort)
    session.set_team(team)
    request = session.request(region_name=region, team_first=False)
    session.deliver(request, load_region(cohort, region, request.settings))
    assert session.evaluation is not None
    covered = Covered.ASK if claim is Claim.KEEP else Covered.BESIDE
    session.apply(mend_of_verdicts(session.evaluation, verdicts, claim=claim, covered=covered))
    return session.evaluation


def assert_same_figures(one: Evaluation, other: Evaluation) -> None:
    """Check that all figures are the same to the last digit, whatever the ids."""
    np.testing.assert_array_equal(one.counts.confusion, other.counts.confusion)
    assert dict(one.metrics) == dict(other.metrics) or _both(one, other)
    pd.testing.assert_frame_equal(one.by_class, other.by_class, check_exact=True)


def _both(one: Evaluation, other: Evaluation) -> bool:
    np.testing.assert_equal(dict(one.metrics), dict(other.metrics))
    return True
