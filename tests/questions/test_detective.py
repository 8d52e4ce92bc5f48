"""Finding the convention behind published figures: planted ones must come back."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.conventions import Ambiguity
from napari_panoptic.questions.conventions import Conventions
from napari_panoptic.questions.engines import detective
from napari_panoptic.values.conventions import CONVENTIONS, ObjectScope, score_of
from tests.support.paths import SHARED_CASES, needs_shared_cases

TEAMS = ("jitter", "log-seeds", "otsu-watershed", "tight")


@pytest.fixture(scope="module")
def gathered():
    asked = Conventions(teams=TEAMS, published=tuple((team, 0.5) for team in TEAMS))
    return asked.gather(open_cohort(SHARED_CASES / "monusac"))


@pytest.fixture(scope="module")
def tried(gathered):
    return detective.try_all("pq", [gathered.teams[team] for team in TEAMS])


@needs_shared_cases
def test_planted_conventions_are_found(tried):
    rng = np.random.default_rng(7)
    few = 0
    for number in rng.choice(len(tried), 50, replace=False):
        convention, ambiguity, values = tried[number]
        printed = [round(value, 3) for value in values]
        fitting = [own for own in detective.candidates("pq", printed, tried, 3) if own.matches]
        assert (convention, ambiguity) in [(own.convention, own.ambiguity) for own in fitting]
        few += len(detective.told_apart(fitting)) <= 3
    assert few >= 40


@needs_shared_cases
@pytest.mark.parametrize("name", [n for n in CONVENTIONS if score_of(n).name != "aji"])
def test_named_conventions_come_back_by_name(gathered, tried, name):
    figure = score_of(name)
    printed = [
        round(gathered.teams[team][Ambiguity.CLIP].figure(*figure[1:3]).value, 3) for team in TEAMS
    ]
    in_effect = gathered.teams[TEAMS[0]][Ambiguity.CLIP].in_effect
    found = detective.candidates("pq", printed, tried, 3, in_effect)
    fitting = [own for own in found if own.matches]
    (own,) = [own for own in fitting if own.convention == in_effect(figure.convention)][:1]
    assert f"{name} {figure.name}" in own.name.split(", ")
    # Named ones come first, and matching ones before all others.
    flags = [own.matches for own in found]
    assert flags == sorted(flags, reverse=True)


@needs_shared_cases
def test_every_combination_is_tried_once(tried):
    assert len({(convention, ambiguity) for convention, ambiguity, _ in tried}) == len(tried)
    objects = {convention.objects for convention, _, _ in tried}
    assert objects == set(ObjectScope)
    assert {ambiguity for _, ambiguity, _ in tried} == set(detective.RULES)


@needs_shared_cases
def test_what_does_not_fit_is_not_claimed(gathered, tried):
    published = [0.111, 0.999, 0.5, 0.25]
    found = detective.candidates("pq", published, tried, 3)
    assert not any(own.matches for own in found)
    differences = [own.difference for own in found]
    assert differences == sorted(differences)
    said = detective.summary(
        "pq", found, gathered.teams, dict(zip(TEAMS, published, strict=True)), gathered.regions
    )
    assert said[0] == f"0 combinations of {len(found)} give the published figures."
    assert "The nearest" in said[1]


@needs_shared_cases
def test_the_region_that_tells_candidates_apart(gathered, tried):
    """Without the region that is named, two conventions differ less than with it."""
    by_key = {(convention, ambiguity): values for convention, ambiguity, values in tried}
    one, other = (
        detective.Candidate(
            convention, Ambiguity.CLIP, "", by_key[convention, Ambiguity.CLIP], 0, True
        )
        for convention in (
            score_of("stardist").convention,
            score_of("stardist-by-image").convention,
        )
    )
    sums = gathered.teams["tight"]
    formula = detective.FORMULAS["pq"]
    number = detective.region_that_tells(one, other, formula, sums)

    def gap(own):
        values = [own.figure(formula, each.convention).value for each in (one, other)]
        return abs(values[0] - values[1])

    clip = sums[Ambiguity.CLIP]
    without = [clip.without_each(formula, each.convention) for each in (one, other)]
    gaps = abs(without[0] - without[1])
    assert gaps[number] == pytest.approx(gaps.min(), abs=detective.ROUNDING)
    assert gaps.min() < gap(clip)
