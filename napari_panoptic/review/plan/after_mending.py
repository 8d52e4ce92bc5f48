"""What mending the whole annotation would change in the figures of every team.

A plan samples objects, so mending these mends a part of the annotation. Their changes, weighted by
what they stand for, estimate the change if all objects of the reviewed team had been reviewed and
mended. docs/explanation/review-statistics.md has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import english_list
from napari_panoptic.nuclei.regions.reading import HELD_UP_TO_PX
from napari_panoptic.review.corrections import CorrectionRequest
from napari_panoptic.review.identity import one_spelling
from napari_panoptic.review.plan.corrected import (
    ALL,
    DECIDED,
    QUANTITIES,
    FloatArray,
    Quantity,
    SumPositions,
)
from napari_panoptic.review.plan.design import Level, Plan, rows_of
from napari_panoptic.review.plan.estimates import (
    PRIOR_ITEMS,
    PRIOR_VERDICTS,
    ItemVerdict,
    intervals,
)
from napari_panoptic.review.plan.mending import AnnotatedCohort, annotated_cohort, mending_changes
from napari_panoptic.review.plan.survey import variance_factors
from napari_panoptic.review.plan.units import KINDS, BoolArray, IntArray, ItemKind, Units
from napari_panoptic.values.vocabulary import Verdict

MENDED = tuple(quantity for quantity in QUANTITIES if quantity is not Quantity.ERROR_RATE)
"""The figures that are estimated."""
_EXAMPLES = 24
"""Objects whose changes stand for all of their outcome and pair of classes."""
_ROUNDING = 1e-9
"""Changes of a figure that are smaller are rounding."""

_OTHER = (
    "the plan was drawn from this cohort when it was evaluated differently: {}; give the options "
    "with which it was drawn"
)


@dataclass(frozen=True)
class MendedFigure:
    """A figure of a team before and after the annotation is mended."""

    #: The figure; the class is `ALL` in the row over all classes.
    quantity: Quantity
    team: str
    class_name: str
    #: Of the cohort as it is annotated, and estimated after mending; NaN if undefined.
    as_annotated: float
    after: float
    #: The 95 % interval of the change.
    low: float
    high: float
    #: Reviewed objects whose mending changes the figure.
    items: int

    @property
    def change(self) -> float:
        """The figure after mending less that as annotated."""
        return self.after - self.as_annotated


@dataclass(frozen=True, eq=False)
class AfterMending:
    """The figures of all teams after the annotation is mended."""

    #: The team whose predictions were reviewed.
    team: str
    #: One per team, quantity and class; the row over all classes last.
    rows: tuple[MendedFigure, ...]
    #: Objects of the plan, those whose verdict decides them, and those that could not be judged.
    objects: int
    decided: int
    unclear: int
    #: Reviewed objects whose mending changes a sum of some team.
    changing: int
    #: Nuclei without an outline that were counted in tiles: the annotation does not change there.
    in_tiles: int
    #: What the reader of the figures must know.
    findings: tuple[Finding, ...]

    @property
    def teams(self) -> tuple[str, ...]:
        """All teams."""
        return tuple(dict.fromkeys(row.team for row in self.rows))


# --- the sample -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReviewedObjects:
    """The objects of a plan with a verdict that decides them, and their strata."""

    #: int64 (n,): their rows among all objects of the team, and positions in `DECIDED`.
    rows: IntArray
    verdicts: IntArray
    #: int64 (n,): stratum of each.
    stratum: IntArray
    #: float64 (H,): the objects that each stratum stands for; with those of strata without a
    #: reviewed object.
    sizes: FloatArray
    #: int8 (H,): outcome of each stratum, a position in `KINDS`; and whether it is of suspects.
    kinds: NDArray[np.int8]
    suspect: BoolArray
    #: int16 (H,): the class of all its objects; 0 if they have several.
    classes: NDArray[np.int16]
    #: Outcomes of the team of which no object was reviewed.
    absent: tuple[ItemKind, ...]

    @property
    def drawn(self) -> IntArray:
        """Reviewed objects of each stratum (H,)."""
        return np.bincount(self.stratum, minlength=len(self.sizes))

    @property
    def weight(self) -> FloatArray:
        """Objects of the cohort that each stands for (n,)."""
        result: FloatArray = (self.sizes / np.maximum(self.drawn, 1))[self.stratum]
        return result


def reviewed_objects(
    plan: Plan, team: str, objects: Units, answers: Sequence[ItemVerdict]
) -> ReviewedObjects:
    """Find the objects of a plan, and what each stands for.

    Objects without a verdict that decides them are left out, and the others of their stratum stand
    for them. A stratum without any is joined with those of its outcome and class, or of its
    outcome.

    Parameters
    ----------
    plan
        The plan.
    team
        Only the items of this team.
    objects
        All objects of the team that can be items.
    answers
        One per item at most.

    Raises
    ------
    SettingsError
        If the plan was drawn from other objects: other files or settings.
    """
    items = _objects_in(plan, team)
    part = plan.part(items)
    rows = rows_of(part, objects)
    units = objects[rows]
    names, first, stratum = np.unique(part.stratum, return_index=True, return_inverse=True)
    sizes = np.rint(np.bincount(stratum, minlength=len(names)) / part.probability[first])
    kinds, suspect = units.kind[first], part.units.is_suspect[first]
    if not np.array_equal(units.kind, part.units.kind):
        raise SettingsError(_OTHER.format("objects have other outcomes now"))
    _check_sizes(kinds, sizes, objects)
    is_mixed = suspect if plan.level is not Level.STATUS else np.ones(len(names), np.bool_)
    classes = np.where(is_mixed, 0, _own_class(units)[first]).astype(np.int16)

    verdict_of = {a.item: a.verdict for a in answers if a.verdict in DECIDED}
    decided = np.array([item + 1 in verdict_of for item in items.tolist()], np.bool_)
    given = [DECIDED.index(verdict_of[item + 1]) for item in items[decided].tolist()]
    found = ReviewedObjects(
        *(rows[decided], np.array(given, np.int64), stratum[decided], sizes),
        *(kinds, suspect, classes, _absent(objects, units[decided])),
    )
    return replace(found, sizes=_joined_sizes(found))


def _objects_in(plan: Plan, team: str) -> IntArray:
    """Return the rows of a team's objects in a plan."""
    return np.flatnonzero(_is_of(plan, team) & ~plan.units.is_kind(ItemKind.BACKGROUND))


def _is_of(plan: Plan, team: str) -> BoolArray:
    """Return which items of a plan are about a team (n,)."""
    return np.array([one_spelling(name) == one_spelling(team) for name in plan.units.team], bool)


def _own_class(units: Units) -> NDArray[np.int16]:
    found: NDArray[np.int16] = np.where(
        units.reference_class > 0, units.reference_class, units.prediction_class
    )
    return found


def _check_sizes(kinds: NDArray[np.int8], sizes: FloatArray, objects: Units) -> None:
    """Check that a plan was drawn from as many objects of each outcome as there are."""
    wanted = np.bincount(kinds, sizes, len(KINDS))
    there = np.bincount(objects.kind, minlength=len(KINDS))
    for kind, before, now in zip(KINDS, wanted.tolist(), there.tolist(), strict=True):
        if before != now and kind is not ItemKind.BACKGROUND:
            raise SettingsError(_OTHER.format(f"it had {before:.0f} {kind}, and has {now} now"))


def _absent(objects: Units, reviewed: Units) -> tuple[ItemKind, ...]:
    kinds = sorted(set(objects.kind.tolist()) - set(reviewed.kind.tolist()))
    return tuple(KINDS[kind] for kind in kinds)


def _joined_sizes(found: ReviewedObjects) -> FloatArray:
    """Return the sizes of strata, with those of strata without a reviewed object shared out."""
    drawn, sizes = found.drawn, np.where(found.drawn > 0, found.sizes, 0.0)
    for number in np.flatnonzero(drawn == 0).tolist():
        donors = (drawn > 0) & (found.kinds == found.kinds[number])
        for own in (found.suspect, found.classes):
            closer = donors & (own == own[number])
            donors = closer if closer.any() else donors
        if donors.any():
            share = np.where(donors, found.sizes, 0.0)
            sizes += found.sizes[number] * share / share.sum()
    return sizes


# --- examples of changes ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Examples:
    """Objects whose changes under each verdict stand for those of all objects of a team.

    They say how far changes are apart, also where all verdicts so far are the same.
    """

    #: int64 (R,): their rows among all objects of the team.
    rows: IntArray
    #: float64 (R,): the objects that each stands for.
    number: FloatArray
    #: float64 (R, 3, U, K): what each of `DECIDED` changes in the sums of each team.
    changes: FloatArray


def example_rows(objects: Units) -> tuple[IntArray, FloatArray]:
    """Return some objects of each outcome and pair of classes, and how many each stands for."""
    cells = _cells(objects)
    rows, number = [], []
    for cell in np.unique(cells).tolist():
        members = np.flatnonzero(cells == cell)
        places = np.linspace(0, len(members) - 1, min(len(members), _EXAMPLES))
        chosen = members[np.rint(places).astype(np.int64)]
        rows.append(chosen)
        number.append(np.full(len(chosen), len(members) / len(chosen)))
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(rows), np.concatenate(number)


def _cells(objects: Units) -> IntArray:
    """Return a number for each outcome and pair of classes (n,)."""
    n = 1 + len(objects.class_names)
    kind = objects.kind.astype(np.int64)
    return (kind * n + objects.reference_class) * n + objects.prediction_class


# --- estimates --------------------------------------------------------------------------------


def after_mending(
    work: CorrectionRequest,
    plan: Plan,
    answers: Sequence[ItemVerdict],
    *,
    held_up_to_px: int = HELD_UP_TO_PX,
    progress: Progress = UNWATCHED,
) -> AfterMending:
    """Estimate the figures of every team after the whole annotation is mended.

    Only verdicts on objects count: nuclei that were counted in tiles have no outline, and the
    annotation does not change there.

    Parameters
    ----------
    work
        The cohort, the team whose predictions were reviewed, and how to evaluate and mend.
    plan
        The plan, drawn with these settings.
    answers
        One per item at most.
    held_up_to_px
        Number of pixels that a region may have.
    progress
        Where progress is reported.

    Raises
    ------
    PanopticError
        If no object of the team has a verdict that decides it.
    SettingsError
        If the plan was drawn from other objects.
    StoppedError
        If the work is cancelled.
    """
    first, rest = progress.part(0.0, 0.4), progress.part(0.4, 1.0)
    known = annotated_cohort(work, held_up_to_px=held_up_to_px, progress=first)
    sample = reviewed_objects(plan, work.team, known.objects, answers)
    if not len(sample.rows):
        raise PanopticError(
            f"expected verdicts on objects of {work.team} in the plan, found none that decides one"
        )
    rows, number = example_rows(known.objects)
    wrong = np.repeat(range(1, len(DECIDED)), len(rows))
    changes = mending_changes(
        work,
        known,
        np.concatenate([sample.rows, *[rows] * (len(DECIDED) - 1)]),
        np.concatenate([sample.verdicts, wrong]),
        held_up_to_px=held_up_to_px,
        progress=rest,
    )
    n = len(sample.rows)
    of_examples = changes[n:].reshape(len(DECIDED) - 1, len(rows), *known.sums.shape)
    examples = Examples(
        rows, number, np.concatenate([np.zeros_like(of_examples[:1]), of_examples]).swapaxes(0, 1)
    )
    of_team = _is_of(plan, work.team)
    items = set((_objects_in(plan, work.team) + 1).tolist())
    unclear = [a for a in answers if a.verdict is Verdict.CANNOT_TELL and a.item in items]
    return AfterMending(
        team=work.team,
        rows=figures_after(known, sample, changes[:n], examples),
        objects=len(items),
        decided=n,
        unclear=len(unclear),
        changing=int((np.abs(changes[:n]) > 0).any(axis=(1, 2)).sum()),
        in_tiles=sum(a.count or 0 for a in answers if of_team[a.item - 1]),
        findings=(*known.findings, *_findings(sample, work.team)),
    )


def _findings(sample: ReviewedObjects, team: str) -> list[Finding]:
    if not sample.absent:
        return []
    kinds = english_list([str(kind) for kind in sample.absent])
    message = (
        f"no {kinds} of {team} was reviewed: what mending changes cannot be estimated; review more "
        f"items"
    )
    return [Finding(FindingKind.MISSING, message, team=team)]


def figures_after(
    known: AnnotatedCohort, sample: ReviewedObjects, changes: FloatArray, examples: Examples
) -> tuple[MendedFigure, ...]:
    """Estimate the figures of all teams after mending, and intervals of what changes.

    Parameters
    ----------
    known
        All teams as annotated.
    sample
        The reviewed objects.
    changes
        What their verdicts change in the sums of each team (n, U, K).
    examples
        What any verdict would change.
    """
    names = [(quantity, name) for quantity in QUANTITIES for name in _names(known.objects)]
    result: list[MendedFigure] = []
    for number, team in enumerate(known.teams):
        before = known.positions.figures(known.sums[number]).reshape(-1)
        after, low, high, items = _of_team(known, number, sample, changes, examples)
        low, high = low - before, high - before
        if sample.absent:
            after = low = high = np.full(len(before), math.nan)
        columns = [column.tolist() for column in (before, after, low, high, items)]
        result += [
            MendedFigure(quantity, team, name, *figures)
            for (quantity, name), *figures in zip(names, *columns, strict=True)
            if quantity in MENDED
        ]
    return tuple(result)


def _names(objects: Units) -> tuple[str, ...]:
    return (*objects.class_names, ALL)


def _of_team(
    known: AnnotatedCohort,
    team: int,
    sample: ReviewedObjects,
    changes: FloatArray,
    examples: Examples,
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Return the figures of a team after mending, both ends of their intervals, and the items."""
    positions, own = known.positions, changes[:, team]
    totals = positions.possible(known.sums[team] + sample.weight @ own)
    figures = positions.figures(totals).reshape(-1)
    directions = _directions(positions, totals)
    values = own @ directions
    parts = _variance_parts(
        known, sample, values, examples, examples.changes[:, :, team], directions
    )
    n = np.full(len(figures), len(sample.rows))
    low, high = intervals(figures, parts, sample.drawn, n)
    return figures, low, high, (np.abs(values) > _ROUNDING).sum(axis=0)


def _directions(positions: SumPositions, totals: FloatArray) -> FloatArray:
    """Return the derivatives of all figures by the sums, (K, Q); 0 for undefined figures."""
    gradient = np.nan_to_num(positions.gradient(totals))
    result: FloatArray = gradient.reshape(-1, gradient.shape[-1]).T
    return result


def _variance_parts(
    known: AnnotatedCohort,
    sample: ReviewedObjects,
    values: FloatArray,
    examples: Examples,
    changes: FloatArray,
    directions: FloatArray,
) -> FloatArray:
    """Return what each stratum adds to the variance of each linearised figure, (H, Q).

    The observed variance is moderated by that which the verdicts of an outcome imply, and is never
    smaller: verdicts can be equal by chance, and the few that change much may not be drawn.
    """
    per_verdict = changes @ directions  # (R, 3, Q)
    units = known.objects[examples.rows]
    classes = _own_class(units)
    result = np.zeros((len(sample.sizes), directions.shape[1]))
    for stratum in np.flatnonzero(sample.drawn).tolist():
        kind, own_class = sample.kinds[stratum], sample.classes[stratum]
        rows = np.flatnonzero(sample.stratum == stratum)
        members = np.flatnonzero((units.kind == kind) & ((own_class == 0) | (classes == own_class)))
        part = examples.number[members] / examples.number[members].sum()
        share = _shares(sample, kind, is_suspect=bool(sample.suspect[stratum]))
        middle = np.einsum("v,i,ivq->q", share, part, per_verdict[members])
        apart = (per_verdict[members] - middle) ** 2
        expected = np.einsum("v,i,ivq->q", share, part, apart)
        squares = ((values[rows] - values[rows].mean(axis=0)) ** 2).sum(axis=0)
        moderated = (squares + PRIOR_ITEMS * expected) / (len(rows) - 1 + PRIOR_ITEMS)
        result[stratum] = np.maximum(moderated, expected)
    factors = variance_factors(sample.sizes, sample.drawn)
    parts: FloatArray = factors[:, None] * result
    return parts


def _shares(sample: ReviewedObjects, kind: np.int8, *, is_suspect: bool) -> FloatArray:
    """Return the weighted shares of the verdicts on an outcome (3,), kept away from 0 and 1."""
    own = (sample.kinds == kind) & (sample.suspect == is_suspect)
    rows = np.flatnonzero(own[sample.stratum])
    weight = sample.weight[rows] / sample.weight[rows].mean()
    found = np.bincount(sample.verdicts[rows], weight, len(DECIDED)) + PRIOR_VERDICTS
    result: FloatArray = found / found.sum()
    return result
