"""Scores of atypia from files to points, against the rules of the challenge."""

import itertools
import math

import pytest

from napari_panoptic.detections.atypia import AnswerState, evaluate_atypia
from napari_panoptic.values.detections import DetectionCohort, ScoredFrame

TRUE = {"p_0": "1", "p_1": "2", "p_2": "3", "p_3": "", "p_4": "what?"}
ANSWERS = {"one": "1", "two": "2,0.5", "three": "3", "open": "", "odd": "7", "gone": None}


@pytest.fixture(scope="module")
def atypia_cohort(tmp_path_factory):
    """Give every true score with every answer of a team, and what is no score."""
    folder = tmp_path_factory.mktemp("scores")

    def written(name, text):
        (folder / name).write_text(text)
        return folder / name

    atypia = tuple(
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
    return DetectionCohort("scores", folder, (), (), {}, atypia)


@pytest.fixture(scope="module")
def evaluated(atypia_cohort):
    return evaluate_atypia(atypia_cohort, tuple(ANSWERS))


def _points(true, answer):
    """Say it as the challenge does."""
    if true not in ("1", "2", "3") or answer is None or answer == "7":
        return None
    if answer == "":
        return 0
    difference = abs(int(true) - int(answer[0]))
    return 1 if difference == 0 else 0 if difference == 1 else -1


def test_points_are_those_of_the_challenge(evaluated):
    loaded = {each.frame.name: each for each in evaluated.frames}
    for (name, true), (team, answer) in itertools.product(TRUE.items(), ANSWERS.items()):
        assert loaded[name].points(team) == _points(true, answer), (name, team)


def test_sums_are_over_what_was_answered(evaluated):
    for team, answer in ANSWERS.items():
        points = [_points(true, answer) for true in TRUE.values()]
        given = [value for value in points if value is not None]
        found = evaluated.of(team)
        assert (found.points, found.n_frames) == (sum(given), len(given))
        assert evaluated.n_missing(team) == 3 - len(given)  # three frames have a true score
    assert evaluated.teams == ("one", "two", "three", "open")
    assert evaluated.ranks == {"two": 1, "one": 2, "three": 2, "open": 2}
    assert len(evaluated.results) == 12


def test_what_is_no_score_says_why(evaluated):
    states = {team: answer.state for team, answer in evaluated.frames[0].answers.items()}
    assert states == {
        **dict.fromkeys(("one", "two", "three"), AnswerState.SCORED),
        "open": AnswerState.NOT_EVALUATED,
        "odd": AnswerState.UNREADABLE,
        "gone": AnswerState.MISSING,
    }
    assert "expected one score" in evaluated.frames[0].answers["odd"].why
    assert evaluated.frames[4].reference.state is AnswerState.UNREADABLE
    told = [(f.region, f.team) for loaded in evaluated.frames for f in loaded.findings]
    assert told == [*((f"p_{n}", "odd") for n in range(4)), ("p_4", None), ("p_4", "odd")]
    assert evaluated.frames[0].answers["two"].given.confidence == 0.5
    assert math.isnan(evaluated.frames[0].answers["one"].given.confidence)
