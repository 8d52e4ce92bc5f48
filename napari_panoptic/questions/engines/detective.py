"""Find the conventions that give published figures, among all combinations of their choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.text import counted, english_list
from napari_panoptic.nuclei.conventions import Ambiguity, Rules, TeamSums, Uncertain, rules_of
from napari_panoptic.values.conventions import (
    CHOICES,
    CONVENTIONS,
    AddedOver,
    ClassMean,
    Constant,
    Convention,
    Formula,
    MeanOver,
    Nothing,
    ObjectScope,
    Pairs,
    choices_of,
    figures_of,
)
from napari_panoptic.values.settings import KNOW_ZONES, AmbiguousPolicy, EvaluationSettings

FORMULAS: Mapping[str, Formula] = {
    "pq": Formula.PQ,
    "sq": Formula.SQ,
    "dq": Formula.DQ,
    "f1": Formula.DQ,
    "aji": Formula.SHARED,
    "dice": Formula.DICE,
    "precision": Formula.PRECISION,
    "recall": Formula.RECALL,
}
"""Name of each figure that can be looked for -> its formula."""
SAME = 1e-5
"""Figures that differ by less are not told apart: no more than constants in denominators make."""
ROUNDING = 1e-12
"""Figures without a region that differ by less are taken as equal."""
_OVERLAPS = (Pairs.ABOVE_HALF, Pairs.HALF)
_PAIRS: Mapping[str, tuple[Pairs, ...]] = {
    "aji": (Pairs.BEST_IOU, Pairs.ONE_TO_ONE, Pairs.LARGEST_OVERLAP),
    "dice": (Pairs.PIXELS, Pairs.ANY_OVERLAP),
    "f1": (*_OVERLAPS, Pairs.CENTROIDS),
    "precision": (*_OVERLAPS, Pairs.CENTROIDS),
    "recall": (*_OVERLAPS, Pairs.CENTROIDS),
}
_CONSTANTS: Mapping[str, tuple[Constant, ...]] = {
    "pq": (Constant.NONE, Constant.SQ, Constant.BOTH, Constant.EVERY),
    "sq": (Constant.NONE, Constant.SQ, Constant.EVERY),
    "dq": (Constant.NONE, Constant.BOTH, Constant.EVERY),
}
_AVERAGES = (
    *(
        (AddedOver.REGION, mean)
        for mean in MeanOver
        if mean not in (MeanOver.NOTHING, MeanOver.NUCLEI)
    ),
    (AddedOver.PATIENT, MeanOver.PATIENTS),
    (AddedOver.SET, MeanOver.NOTHING),
)
_NOTHING = tuple(each for each in Nothing if not each.value.startswith("error"))
FloatArray = NDArray[np.float64]
Teams = Mapping[str, Mapping[Rules, TeamSums]]
RULES: Sequence[Rules] = (
    *Ambiguity,
    *(
        rules_of(EvaluationSettings(ambiguous=policy, ambiguous_share=share, zone_px=zone_px))
        for zone_px, (policy, share) in product(
            range(4),
            (
                (AmbiguousPolicy.KEEP, None),
                *((AmbiguousPolicy.CLIP, share) for share in (None, 0.25, 0.5)),
            ),
        )
    ),
)
"""Which pixels and objects may count: the ambiguous policies, and NucEval's parameters."""


@dataclass(frozen=True)
class Candidate:
    """A combination of choices, and what it gives."""

    convention: Convention
    ambiguity: Rules
    #: The names of conventions and their figure; empty without any.
    name: str
    #: The figure of each team with a published one.
    values: tuple[float, ...]
    #: The largest difference from the published figures, and whether all are the same as printed.
    difference: float
    matches: bool

    @property
    def choices(self) -> dict[str, str]:
        """Column -> word of each of the eight choices."""
        return choices_of(self.convention, str(self.ambiguity))


def combinations(figure: str, levels: Mapping[MeanOver, Sequence[object]]) -> Iterator[Convention]:
    """Yield all conventions of a figure whose choices differ in it, named ones first.

    Parameters
    ----------
    figure
        One of `FORMULAS`.
    levels
        What is averaged over -> its levels; an average without one is that over regions.
    """
    yield from dict.fromkeys(
        own.convention
        for figures in CONVENTIONS.values()
        for own in figures
        if own.of_all and _is_of(figure, own.formula, own.convention)
    )
    pairs = _PAIRS.get(figure, _OVERLAPS)
    for objects, pair, (added, mean), nothing, constant in product(
        ObjectScope,
        (*pairs, Pairs.ABOVE_HALF_BY_ID),
        _AVERAGES,
        _NOTHING,
        _CONSTANTS.get(figure, (Constant.NONE, Constant.EVERY)),
    ):
        is_usual = added is not AddedOver.REGION or mean is MeanOver.REGIONS or levels[mean]
        if is_usual and _can_be(objects, pair):
            of_classes = objects in (ObjectScope.BY_CLASS, ObjectScope.CLASS_MASKS)
            is_late = (
                (ClassMean.LAST,) if added is AddedOver.SET else (ClassMean.FIRST, ClassMean.LAST)
            )
            for classes in is_late if of_classes else (ClassMean.NONE,):
                yield Convention(objects, pair, added, mean, classes, nothing, constant)


def _is_of(figure: str, formula: Formula, convention: Convention) -> bool:
    return formula is FORMULAS[figure] and (
        formula is not Formula.DQ or figure == "f1" or convention.pairs is not Pairs.CENTROIDS
    )


def _can_be(objects: ObjectScope, pairs: Pairs) -> bool:
    """Return whether there are such pairs of such objects."""
    match objects:
        case ObjectScope.NUCEVAL:  # by its name only
            return False
        case ObjectScope.CLASS_MASKS:
            return pairs in (Pairs.ABOVE_HALF, Pairs.ABOVE_HALF_BY_ID)
        case ObjectScope.TOGETHER:
            return pairs is not Pairs.ABOVE_HALF_BY_ID
    return pairs not in (Pairs.ABOVE_HALF_BY_ID, Pairs.CENTROIDS)


Tried = tuple[Convention, Rules, tuple[float, ...]]
"""A combination of choices, and what it gives for each team."""


def try_all(figure: str, teams: Sequence[Mapping[Rules, TeamSums]]) -> list[Tried]:
    """Compute a figure of teams by all combinations of choices; undefined ones are left out.

    With an uncertain border, or a share of ambiguous areas, only by conventions that know them.

    Parameters
    ----------
    figure
        One of `FORMULAS`.
    teams
        Of each team: rules -> its sums.
    """
    known = {own.convention for name in KNOW_ZONES for own in figures_of(name)}
    first, formula = next(iter(teams[0].values())), FORMULAS[figure]
    found = []
    for convention in dict.fromkeys(map(first.in_effect, combinations(figure, first.levels))):
        for ambiguity in teams[0]:
            if isinstance(ambiguity, Uncertain) and convention not in known:
                continue
            values = tuple(own[ambiguity].figure(formula, convention).value for own in teams)
            if not np.isnan(values).any():
                found.append((convention, ambiguity, values))
    return found


def candidates(
    figure: str,
    published: Sequence[float],
    tried: Sequence[Tried],
    decimals: int,
    in_effect: Callable[[Convention], Convention] = lambda convention: convention,
) -> list[Candidate]:
    """Return all combinations, those that give the published figures first, then the nearest.

    Parameters
    ----------
    figure
        One of `FORMULAS`.
    published
        The figure of each team as it was printed.
    tried
        What `try_all` returned for these teams.
    decimals
        Those of the published figures.
    in_effect
        Returns a named convention as it was tried.
    """
    names: dict[Convention, list[str]] = {}
    for name, figures in CONVENTIONS.items():
        for own in figures:
            if own.of_all and own.formula is FORMULAS[figure]:
                names.setdefault(in_effect(own.convention), []).append(f"{name} {own.name}")
    half = 0.5 * 10.0**-decimals * (1 + 1e-9)
    found = []
    for convention, ambiguity, values in tried:
        difference = float(np.abs(np.subtract(values, published)).max())
        name, is_same = ", ".join(names.get(convention, ())), difference <= half
        found.append(Candidate(convention, ambiguity, name, values, difference, is_same))
    return sorted(
        found, key=lambda own: (not own.matches, own.matches and not own.name, own.difference)
    )


def told_apart(found: Sequence[Candidate]) -> list[list[Candidate]]:
    """Group candidates whose figures are the same on this cohort but for rounding; see `SAME`."""
    groups: list[list[Candidate]] = []
    for one in found:
        for group in groups:
            if np.abs(np.subtract(group[0].values, one.values)).max() < SAME:
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def what_differs(groups: Sequence[Sequence[Candidate]]) -> str:
    """Return which choices tell groups of candidates apart, as words; empty if none does alone."""
    said = []
    for name in CHOICES:
        words = [{own.choices[name] for own in group} for group in groups]
        if not set.intersection(*words):
            options = sorted(set.union(*words))
            said.append(
                f"{name.replace('_', ' ')} ({' or '.join(w or 'nothing' for w in options)})"
            )
    return english_list(said)


def region_that_tells(
    one: Candidate, other: Candidate, formula: Formula, sums: Mapping[Rules, TeamSums]
) -> int:
    """Return the number of the region without which two candidates differ least."""
    values = [sums[own.ambiguity].without_each(formula, own.convention) for own in (one, other)]
    return _least(np.abs(values[0] - values[1]))


def _least(values: NDArray[np.float64]) -> int:
    """Return the number of the smallest value that is defined, the first but for rounding."""
    return int(np.argmax(values <= np.fmin.reduce(values, initial=np.inf) + ROUNDING))


def summary(
    figure: str,
    found: Sequence[Candidate],
    teams: Teams,
    published: Mapping[str, float],
    regions: Sequence[str],
) -> list[str]:
    """Return what the candidates tell, in sentences."""
    fitting = [own for own in found if own.matches]
    said = [
        f"{counted(len(fitting), 'combination')} of {len(found)} "
        f"{'gives' if len(fitting) == 1 else 'give'} the published figures."
    ]
    if not found:
        return said
    if not fitting:
        nearest = found[0]
        said.append(
            f"The nearest, {described(nearest)}, differs by up to {nearest.difference:.4f}: the "
            "masks, the regions or the classes may be others than those of the publication."
        )
        return said
    named = list(dict.fromkeys(own.name for own in fitting if own.name))
    if named:
        said.append(f"Among them: {english_list(named, limit=8)}.")
    groups = told_apart(fitting)
    if len(groups) == 1:
        said.append("On this cohort they all give the same figures: nothing here tells them apart.")
        return said
    apart = what_differs(groups[:2])
    team = next(iter(published))
    number = region_that_tells(groups[0][0], groups[1][0], FORMULAS[figure], teams[team])
    said.append(
        f"They give {len(groups)} different sets of figures. "
        + (f"The first two differ in {apart}, " if apart else "The first two differ ")
        + f"most by {regions[number]}."
    )
    return said


def described(one: Candidate) -> str:
    """Return the choices of a candidate in a few words."""
    words = {name: word for name, word in one.choices.items() if word and word != "none"}
    own = "; ".join(f"{name.replace('_', ' ')} {word}" for name, word in words.items())
    return f"{one.name} ({own})" if one.name else own


def advice(teams: Teams, rules: Rules, regions: Sequence[str]) -> str:
    """Return whether the order of two teams depends on the convention; empty if it does not.

    Parameters
    ----------
    teams
        Team -> rules -> its sums.
    rules
        Which pixels and objects count in the sums that are looked at.
    regions
        Names of the regions.
    """
    from napari_panoptic.values.conventions import DISENTANGLED, figure_words, score_of

    own = {team: found[rules] for team, found in teams.items()}
    usual = {team: sums.figure(Formula.PQ, DISENTANGLED).value for team, sums in own.items()}
    ordered = sorted((t for t in usual if not np.isnan(usual[t])), key=lambda t: -usual[t])
    # Another order by PQ tells more than that of another figure.
    known = KNOW_ZONES if isinstance(rules, Uncertain) else CONVENTIONS
    names = sorted(known, key=lambda name: score_of(name).formula is not Formula.PQ)
    for name, (ahead, behind) in product(names, pairwise(ordered)):
        label, formula, convention, *_ = score_of(name)
        values = [own[team].figure(formula, convention).value for team in (ahead, behind)]
        if values[1] > values[0] and usual[ahead] > usual[behind]:
            number = _responsible(own[ahead], own[behind], formula, convention)
            return (
                f"{ahead} is ahead of {behind} by the usual PQ ({usual[ahead]:.3f} and "
                f"{usual[behind]:.3f}), but behind by {name} {figure_words(label)} "
                f"({values[0]:.3f} and {values[1]:.3f}); {regions[number]} does most for that."
            )
    for ahead, behind in pairwise(ordered):
        gap = usual[ahead] - usual[behind]
        for word, changed in _one_choice_changed(DISENTANGLED):
            value = own[behind].figure(Formula.PQ, changed).value
            if abs(value - usual[behind]) > gap > 0:
                number = _responsible_for_move(own[behind], DISENTANGLED, changed)
                return (
                    f"One choice moves {behind} by more than its distance from {ahead}: with "
                    f"{word}, its PQ is {value:.3f} instead of {usual[behind]:.3f}; "
                    f"{regions[number]} does most for that."
                )
    return ""


def _one_choice_changed(usual: Convention) -> Iterator[tuple[str, Convention]]:
    yield (
        "classes left out where none of their nuclei is annotated",
        replace(usual, nothing=Nothing.NO_REFERENCE),
    )
    yield "absent classes counted as 0", replace(usual, nothing=Nothing.ZERO)
    yield (
        "all nuclei together",
        replace(usual, objects=ObjectScope.TOGETHER, classes=ClassMean.NONE),
    )
    yield "classes averaged last", replace(usual, classes=ClassMean.LAST)
    yield (
        "the mean over regions",
        replace(usual, added_over=AddedOver.REGION, mean_over=MeanOver.REGIONS),
    )
    yield "the whole set pooled", usual.pooled()


def _responsible(
    ahead: TeamSums, behind: TeamSums, formula: Formula, convention: Convention
) -> int:
    """Return the region without which one team is behind by least."""
    values = [own.without_each(formula, convention) for own in (ahead, behind)]
    return _least(values[1] - values[0])


def _responsible_for_move(own: TeamSums, usual: Convention, changed: Convention) -> int:
    """Return the region without which the change of a choice moves a team least."""
    values = [own.without_each(Formula.PQ, convention) for convention in (changed, usual)]
    return _least(np.abs(values[0] - values[1]))
