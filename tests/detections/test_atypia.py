"""Scores of atypia from files to points, against the rules of the challenge."""

import itertools
import math

import pytest

from napari_panoptic.detections.atypia import evaluate_atypia
from napari_panoptic.values.detections import ScoredFrame

TRUE = {"p_0": "1", "p_1": "2", "p_2": "3", "p_3": "", "p_4": "what?"}
ANSWERS = {"one": "1", "two": "2,0.5", "three": "3", "open": "", "odd": "7", "gone": None}


@pytest.fixture(scope="module")
def scored_frames(tmp_path_factory):
    """Give every true score with every answer of a team, and what is no score."""
    folder = tmp_path_factory.mktemp("scores")

    def written(name, text):
        (folder / name).write_text(text)
        return folder / name

    return tuple(
        ScoredFrame(
            name,
            "p",
            written(f"{name}.csv", true),
            {
                team: written(f"{name}_{team}.csv", text)
                for team, text in ANSWERS.items()
                if text is not None
            },
        )
        for name, true in TRUE.items()
    )


@pytest.fixture(scope="module")
def evaluated(scored_frames):
    return evaluate_atypia(scored_frames, tuple(ANSWERS))


def _points(true, answer):
    """Say it as the challenge does."""
    if true not in ("1", "2", "3") or answer is None or answer == "7":
        return None
    if answer == "":
        return 0
    difference = abs(int(true) - int(answer[0]))
    return 1 if difference == 0 else 0 if difference == 1 else -1


def test_points_are_those_of_the_challenge(evaluated):
    points = {(result.frame.name, result.team): result.points for result in evaluated.results}
    for (name, true), (team, answer) in itertools.product(TRUE.items(), ANSWERS.items()):
        assert points.get((name, team)) == _points(true, answer), (name, team)


def test_sums_are_over_what_was_answered(evaluated):
    for team, answer in ANSWERS.items():
        points = [_points(true, answer) for true in TRUE.values()]
        given = [value for value in points if value is not None]
        assert evaluated.frames[team] == len(given)
        assert evaluated.points.get(team) == (sum(given) if given else None)
    assert list(evaluated.points) == ["one", "two", "three", "open"]
    assert evaluated.ranks == {"two": 1, "one": 2, "three": 2, "open": 2}
    assert len(evaluated.results) == 12


def test_what_is_no_score_is_listed(evaluated):
    listed = [(finding.region, finding.team) for finding in evaluated.findings]
    assert listed == [*((f"p_{n}", "odd") for n in range(4)), ("p_4", None), ("p_4", "odd")]
    assert all("expected one score" in finding.message for finding in evaluated.findings)
    confidences = {result.team: result.answer.confidence for result in evaluated.results}
    assert confidences["two"] == 0.5
    assert math.isnan(confidences["one"])


def test_no_frames_are_no_points():
    nothing = evaluate_atypia((), ["a"])
    assert (nothing.points, nothing.ranks, nothing.frames["a"]) == ({}, {}, 0)
