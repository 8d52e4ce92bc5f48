"""What the verdicts of a plan say about a whole cohort.

What verdicts change in the sums over the cohort is estimated stratum by stratum (difference
estimator), figures are functions of the sums, and their variances are linearised (Taylor).
docs/explanation/review-statistics.md has the formulas.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.review.plan.corrected import ALL, DECIDED, QUANTITIES, Quantity, SumPositions
from napari_panoptic.review.plan.design import (
    Plan,
    Strata,
    assumed_errors,
    draw,
    least_items,
    rows_of,
    stratified,
)
from napari_panoptic.review.plan.survey import effective_df, share_interval, variance_factors
from napari_panoptic.review.plan.units import KINDS, BoolArray, IntArray, ItemKind, Units
from napari_panoptic.values.vocabulary import Verdict

FloatArray = NDArray[np.float64]
LEVEL = 0.95
PRIOR_ITEMS = 2.0
"""Items that the expected variance of a stratum is worth beside the observed one."""
PRIOR_VERDICTS, _PRIOR_LACKED = 1.0, 1.0
"""Verdicts of each kind, and tiles with nuclei, that are added to an outcome for that variance."""
_ASSUMED_ITEMS = 5.0
"""Items that the assumed shares of verdicts are worth beside those given."""
_BACKGROUND = KINDS.index(ItemKind.BACKGROUND)
_GROUPS = tuple((kind, is_suspect) for is_suspect in (False, True) for kind in KINDS)
"""Items that are taken for alike: outcome, and whether the annotation is suspect."""


@dataclass(frozen=True)
class ItemVerdict:
    """The verdict on an item of a plan."""

    #: Number of the item, from 1.
    item: int
    #: Who is right; for a tile, only whether it can be judged.
    verdict: Verdict
    #: For a tile, the nuclei in it that have no outline.
    count: int | None = None


@dataclass(frozen=True)
class Estimate:
    """One figure of a team, estimated."""

    #: The figure; the class is `ALL` in the row over all classes.
    quantity: Quantity
    team: str
    class_name: str
    #: The estimate and its 95 % interval for this cohort; NaN if undefined.
    estimate: float
    low: float
    high: float
    #: Reviewed items of this class, or of all.
    items: int
    #: Of the estimate; NaN if undefined.
    standard_error: float
    #: The interval for patients like these, of which these are a sample; NaN for fewer than two.
    patients_low: float
    patients_high: float
    #: Least and largest estimate if all items that could not be judged were decided one way; both
    #: are the estimate if there are none.
    if_unclear: tuple[float, float]
    #: The figure of the cohort as it is annotated, on the same scale: without any review.
    as_annotated: float

    @property
    def half_width(self) -> float:
        """Half of the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, eq=False)
class Estimates:
    """The figures of all teams of a plan."""

    #: One per team, quantity and class; the row over all classes last.
    rows: tuple[Estimate, ...]
    #: Annotation error rate of the FNs of each team and cause.
    by_cause: tuple[CauseEstimate, ...]
    #: Items with a verdict, and those among them that could not be judged.
    given: int
    unclear: int
    #: What the reader of the figures must know.
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class CauseEstimate:
    """The share of FNs of one cause whose annotation is wrong."""

    #: Rare causes are one.
    team: str
    cause: str
    #: The share and its 95 % interval, and the reviewed items of the cause.
    estimate: float
    low: float
    high: float
    items: int


# --- one team's sample ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Sample:
    """The reviewed items of one team."""

    sums: SumPositions
    #: The items (n,).
    units: Units
    #: int64 (n,): stratum of each.
    stratum: IntArray
    #: int64 (H,): all items of each stratum.
    sizes: IntArray
    #: float64 (P, K): the sums over all items of each patient as annotated; 0 for the numbers of
    #: reference objects, which are estimated like those of the wrong ones among them.
    before: FloatArray
    #: float64 (n, 3, K): what each verdict on it adds to these sums, with what it stands for.
    added: FloatArray
    #: int64 (n,): position in `DECIDED`.
    verdict: IntArray
    #: float64 (n,): nuclei without an outline; 0 for objects.
    count: FloatArray
    #: All items of the team.
    alike: _Alike
    #: int64 (n,): position of each item's patient.
    patient: IntArray
    #: int64 (P,): all items of each patient.
    patient_sizes: IntArray

    @cached_property
    def group(self) -> IntArray:
        """Outcome of each item, apart for suspects: items of a group are taken for alike (n,)."""
        return self.units.kind + len(KINDS) * self.units.is_suspect.astype(np.int64)

    @cached_property
    def drawn(self) -> IntArray:
        """Reviewed items of each stratum (H,)."""
        return np.bincount(self.stratum, minlength=len(self.sizes))

    @cached_property
    def informing(self) -> IntArray:
        """Reviewed items of each stratum that inform its variance: tiles only with nuclei (H,)."""
        is_empty = self.units.is_kind(ItemKind.BACKGROUND) & (self.count == 0)
        result: IntArray = self.drawn - np.bincount(
            self.stratum[is_empty], minlength=len(self.sizes)
        )
        return result

    @cached_property
    def weight(self) -> FloatArray:
        """Items of the cohort that each stands for (n,)."""
        result: FloatArray = (self.sizes / np.maximum(self.drawn, 1))[self.stratum]
        return result

    @cached_property
    def values(self) -> FloatArray:
        """What each item adds under its verdict to the sums as annotated (n, K)."""
        result: FloatArray = self.added[np.arange(len(self.units)), self.verdict].copy()
        is_tile = self.units.is_kind(ItemKind.BACKGROUND)
        result[is_tile, self.sums.lacked] *= self.count[is_tile]
        return result

    @property
    def annotated(self) -> FloatArray:
        """The sums over the cohort as annotated (K,)."""
        result: FloatArray = self.alike.number @ self.sums.of(self.alike.units)[:, 0]
        return result

    @cached_property
    def totals(self) -> FloatArray:
        """The estimated sums over the cohort (K,)."""
        return self.sums.possible(self.before.sum(axis=0) + self.weight @ self.values)


@dataclass(frozen=True, eq=False)
class _Alike:
    """All items of a team; those of one stratum, patient and pair of classes as one.

    What they add is linear in the IoU, so that one item with their mean IoU stands for them.
    """

    #: The items (R,).
    units: Units
    #: int64 (R,): stratum and patient of each, and how many items it stands for.
    stratum: IntArray
    patient: IntArray
    number: IntArray
    #: float64 (R, 3, K): as in `_Sample`.
    added: FloatArray


def _alike(units: Units, strata: Strata, patient: IntArray) -> _Alike:
    keys = _classes(units, strata.of_unit) * (patient.max(initial=0) + 1) + patient
    _, first, group, number = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    one = replace(units[first], iou=np.bincount(group, units.iou) / number)
    return _Alike(one, strata.of_unit[first], patient[first], number, _added(one))


def _sample(
    units: Units, strata: Strata, rows: IntArray, verdict: IntArray, count: FloatArray
) -> _Sample:
    """Return the reviewed items of a team, of which each also stands for those out of reach."""
    sums = SumPositions(len(units.class_names))
    drawn = units[rows]
    added = _added(drawn)
    names, patient = np.unique(units.patient.astype(str), return_inverse=True)
    alike = _alike(units, strata, patient)
    before = np.zeros((len(names), len(sums)))
    np.add.at(before, alike.patient, alike.number[:, None] * sums.of(alike.units)[:, 0])
    before[:, sums.columns[0]] = 0.0
    sample = _Sample(
        *(sums, drawn, strata.of_unit[rows], strata.sizes, before, added, verdict, count, alike),
        *(patient[rows], np.bincount(patient)),
    )
    classes, alike_classes = _classes(drawn, sample.stratum), _classes(alike.units, alike.stratum)
    changed = alike.number[:, None, None] * alike.added
    for number in np.flatnonzero((sample.drawn == 0) & (strata.sizes > 0)).tolist():
        absent = alike.stratum == number
        donors = _donors(alike.units[absent], drawn)
        if donors.any():
            # Weights of donors sum to the items that they stand for, whatever is drawn.
            each = changed[absent].sum(axis=0) / sample.weight[donors].sum()
            added[donors] += each
            alike.added[np.isin(alike_classes, classes[donors])] += each
    return sample


def _classes(units: Units, stratum: IntArray) -> IntArray:
    """Return a number for each stratum and pair of classes (n,)."""
    n_classes = 1 + len(units.class_names)
    return (stratum * n_classes + units.reference_class) * n_classes + units.prediction_class


def _added(units: Units) -> FloatArray:
    """Return what verdicts add to the sums as annotated (n, 3, K); see `_Sample.before`.

    On tiles it is what they add if they lack one nucleus.
    """
    sums = SumPositions(len(units.class_names))
    result = sums.of(units)
    annotated = result[:, :1].copy()
    annotated[..., sums.columns[0]] = 0.0
    result -= annotated
    result[units.is_kind(ItemKind.BACKGROUND), :, sums.lacked] = 1.0
    return result


def _donors(absent: Units, drawn: Units) -> BoolArray:
    """Return the items whose verdicts stand for a stratum without any: of its outcome and class.

    Suspects stand for suspects, and others for others, if there are any of the outcome.
    """
    same: BoolArray = drawn.kind == absent.kind[0]
    as_suspect = same & (drawn.is_suspect == absent.is_suspect[0])
    same = as_suspect if as_suspect.any() else same
    classes = (absent.reference_class[0], absent.prediction_class[0])
    alike = same & (drawn.reference_class == classes[0]) & (drawn.prediction_class == classes[1])
    return alike if alike.any() else same


# --- variances and intervals ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Shares:
    """How often each verdict is given, by outcome; apart for suspects, see `_Sample.group`."""

    #: float64 (groups, 3): shares of the verdicts `DECIDED`.
    verdicts: FloatArray
    #: Nuclei without an outline per tile (groups,).
    lacked: FloatArray


def _observed_shares(sample: _Sample) -> _Shares:
    """Return the weighted shares of verdicts, kept away from 0 and 1."""
    verdicts = np.full((len(_GROUPS), len(DECIDED)), 1 / len(DECIDED))
    lacked = np.zeros(len(_GROUPS))
    for number, (kind, _) in enumerate(_GROUPS):
        rows = np.flatnonzero(sample.group == number)
        if not len(rows):
            continue
        weight = sample.weight[rows] / sample.weight[rows].mean()
        if kind is ItemKind.BACKGROUND:
            count = sample.count[rows]
            # Nuclei that are missed lie together: the variance is that of a compound Poisson sum.
            size = float(weight @ count**2 / (weight @ count)) if count.any() else 1.0
            lacked[number] = size * (weight @ count + _PRIOR_LACKED * size) / len(rows)
            continue
        found = np.bincount(sample.verdict[rows], weight, len(DECIDED)) + PRIOR_VERDICTS
        verdicts[number] = found / found.sum()
    return _Shares(verdicts, lacked)


def _variance_parts(
    sample: _Sample, totals: FloatArray, shares: _Shares, *, is_observed: bool
) -> FloatArray:
    """Return what each stratum adds to the variance of each linearised figure, (H, Q).

    Parameters
    ----------
    sample
        The items.
    totals
        The sums at which the figures are linearised (K,).
    shares
        The shares of verdicts, which imply a variance.
    is_observed
        Whether to use the variance that was observed, moderated by the implied one: few verdicts
        can be equal by chance. Else the implied one is used.
    """
    directions = _directions(sample, totals)
    alike = sample.alike
    per_verdict = alike.added @ directions
    values = sample.values @ directions
    result = np.zeros((len(sample.sizes), directions.shape[1]))
    by_class = np.array(
        [c != ALL or q is Quantity.PQ for q, c in _figure_names(sample.units.class_names)]
    )
    classes = _classes(alike.units, alike.stratum)
    order = np.argsort(sample.stratum, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sample.drawn)])
    for stratum in np.flatnonzero(sample.drawn).tolist():
        rows = order[starts[stratum] : starts[stratum + 1]]
        group = int(sample.group[rows[0]])
        is_background = _GROUPS[group][0] is ItemKind.BACKGROUND
        members = np.flatnonzero(alike.stratum == stratum)
        is_mixed = np.ptp(classes[members]) > 0
        part = alike.number[members] / alike.number[members].sum()
        if is_background:
            expected = part @ per_verdict[members, 0] ** 2 * shares.lacked[group]
        else:
            share = shares.verdicts[group]
            middle = np.einsum("v,i,ivq->q", share, part, per_verdict[members])
            apart = (per_verdict[members] - middle) ** 2
            expected = np.einsum("v,i,ivq->q", share, part, apart)
        if not is_observed:
            result[stratum] = expected
            continue
        squares = ((values[rows] - values[rows].mean(axis=0)) ** 2).sum(axis=0)
        prior = PRIOR_ITEMS
        result[stratum] = (squares + prior * expected) / (len(rows) - 1 + prior)
        # Rare counts, and rare classes, that happen not to be drawn have too small a variance.
        floored = np.full(len(expected), is_background) | is_mixed & by_class
        result[stratum] = np.where(floored, np.maximum(result[stratum], expected), result[stratum])
    parts: FloatArray = variance_factors(sample.sizes, sample.drawn)[:, None] * result
    return parts


def _directions(sample: _Sample, totals: FloatArray) -> FloatArray:
    """Return the derivatives of all figures by the sums, (K, Q); 0 for undefined figures."""
    gradient = np.nan_to_num(sample.sums.gradient(totals))
    result: FloatArray = gradient.reshape(-1, gradient.shape[-1]).T
    return result


def _items(sample: _Sample) -> IntArray:
    """Return the number of items that inform each figure, (Q, C + 1)."""
    units, n_tiles = sample.units, int(sample.units.is_kind(ItemKind.BACKGROUND).sum())
    classes = np.arange(1, sample.sums.n_classes + 1)[:, None]
    # A row per class, then one for all classes.
    reference = np.vstack([units.reference_class == classes, units.reference_class > 0])
    prediction = np.vstack([units.prediction_class == classes, units.prediction_class > 0])
    either = (reference | prediction).sum(axis=1) + n_tiles
    return np.stack([reference.sum(axis=1), prediction.sum(axis=1), either, either, either])


def intervals(
    figures: FloatArray, parts: FloatArray, drawn: IntArray, items: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return both ends of the interval of each figure (Q,).

    Parameters
    ----------
    figures
        The estimates (Q,), within 0 and 1.
    parts
        What each stratum adds to their variances (H, Q).
    drawn
        Reviewed items of each stratum that inform its variance (H,).
    items
        Number of items behind each figure (Q,).
    """
    from scipy.stats import t as student  # takes long to import

    # Strata without items add nothing, whatever their degrees of freedom.
    df = effective_df(parts, np.maximum(drawn - 1, 0) + PRIOR_ITEMS)
    quantile = student.ppf((1 + LEVEL) / 2, df)
    return share_interval(figures, parts.sum(axis=0), items.astype(np.float64), quantile)


def _patient_intervals(
    sample: _Sample, figures: FloatArray, least: FloatArray, ends: FloatArray
) -> FloatArray:
    """Return the intervals if the patients are a sample of many, (2, Q); NaN for fewer than two.

    The jackknife leaves out one patient at a time. Variances are at least those of the same figures
    of this cohort (Q,), and the intervals contain theirs (2, Q). A figure that is undefined without
    one of the patients has no interval.
    """
    from scipy.stats import t as student

    n = len(sample.patient_sizes)
    if n < 2:
        return np.full((2, len(figures)), np.nan)
    parts = sample.before.copy()
    np.add.at(parts, sample.patient, sample.weight[:, None] * sample.values)
    left = sample.sums.figures(sample.sums.possible(parts.sum(axis=0) - parts)).reshape(n, -1)
    variance = np.maximum((n - 1) / n * ((left - left.mean(axis=0)) ** 2).sum(axis=0), least)
    # Patients of unequal size count as fewer: as those of equal size with the same sum of squares.
    share = sample.patient_sizes / sample.patient_sizes.sum()
    df = max(1.0, 1 / float(share @ share) - 1)
    quantile = np.full(len(figures), student.ppf((1 + LEVEL) / 2, df))
    low, high = share_interval(
        figures, variance, np.full(len(figures), len(sample.units)), quantile
    )
    return np.stack([np.minimum(low, ends[0]), np.maximum(high, ends[1])])


# --- all teams --------------------------------------------------------------------------------


def estimate(plan: Plan, units: Units, answers: Sequence[ItemVerdict]) -> Estimates:
    """Estimate the annotation error rate, and each team's figures if the annotation were right.

    Items without a verdict, or whose verdict is "cannot tell", are left out, and the others of
    their stratum stand for them. This is right if it does not depend on the truth which items these
    are: true for a review in the plan's order that was stopped early.

    Parameters
    ----------
    plan
        The plan.
    units
        The population that it was drawn from.
    answers
        One per item at most.

    Raises
    ------
    PanopticError
        If no item has a verdict that decides it.
    """
    teams = _Teams(plan, units)
    plan = teams.plan
    by_item = {answer.item: answer for answer in answers}
    decided = {k: a for k, a in by_item.items() if a.verdict is not Verdict.CANNOT_TELL}
    if not decided:
        raise PanopticError(
            f"expected verdicts on items of the plan, found {len(by_item)}, none of which decides "
            f"an item; review some items first"
        )
    findings = _missing(plan, by_item, decided)
    result: list[Estimate] = []
    causes: list[CauseEstimate] = []
    for team in plan.teams:
        sample, absent = teams.sample(team, decided)
        unclear = [k for k in by_item if k not in decided]
        others = [
            teams.sample(team, decided | _all_as(verdict, unclear, plan))[0]
            for verdict in (DECIDED if unclear else ())
        ]
        rows, found = _rows(team, units.class_names, sample, absent, others)
        result += rows
        findings += found
        causes += _by_cause(team, sample)
    return Estimates(
        tuple(result), tuple(causes), len(by_item), len(by_item) - len(decided), tuple(findings)
    )


class _Teams:
    """The items of each team, and its strata."""

    def __init__(self, plan: Plan, units: Units) -> None:
        self._units, self._rows = units, rows_of(plan, units)
        self._strata = stratified(units, plan.level)
        self.plan = replace(plan, units=units[self._rows])  # names as the cohort spells them

    def sample(
        self, team: str, answers: Mapping[int, ItemVerdict]
    ) -> tuple[_Sample, tuple[ItemKind, ...]]:
        """Return a team's reviewed items, and the outcomes of which none was reviewed."""
        of_team = self._units.team == team
        position = np.cumsum(of_team) - 1
        units, of_unit = self._units[of_team], self._strata.of_unit[of_team]
        strata = replace(self._strata, of_unit=of_unit)
        items = [k for k in sorted(answers) if self.plan.units.team[k - 1] == team]
        rows = position[self._rows[np.array(items, np.int64) - 1]]
        given = [answers[item] for item in items]
        verdict = [DECIDED.index(answer.verdict) for answer in given]
        count = [answer.count or 0 for answer in given]
        sample = _sample(
            units, strata, rows, np.array(verdict, np.int64), np.array(count, np.float64)
        )
        there, reviewed = set(units.kind.tolist()), set(sample.units.kind.tolist())
        return sample, tuple(KINDS[kind] for kind in sorted(there - reviewed))


def _all_as(verdict: Verdict, items: Sequence[int], plan: Plan) -> dict[int, ItemVerdict]:
    """Return answers as if every unclear object had a verdict; tiles stay unclear."""
    return {
        item: ItemVerdict(item, verdict)
        for item in items
        if plan.units.kind[item - 1] != _BACKGROUND
    }


def _missing(
    plan: Plan, given: Mapping[int, ItemVerdict], decided: Mapping[int, ItemVerdict]
) -> list[Finding]:
    """Report the items without a verdict, and those that could not be judged."""
    findings = []
    if n := len(plan) - len(given):
        skipped = sum(item not in given for item in range(1, max(given) + 1))
        order = (
            f"; {skipped} of them come before item {max(given)} and were skipped: the estimate "
            f"assumes that they are like the others"
            if skipped
            else ": the first ones in the plan's order were reviewed"
        )
        findings.append(
            Finding(
                FindingKind.MISSING,
                f"{n} of {len(plan)} items have no verdict{order}; probabilities are those of the "
                f"items reviewed",
                count=n,
            )
        )
    if n := len(given) - len(decided):
        findings.append(
            Finding(
                FindingKind.MISSING,
                f"{counted(n, 'item')} not judged and left out; the record has the estimates "
                f"if all such items were decided one way",
                count=n,
            )
        )
    return findings


def _rows(
    team: str,
    class_names: Sequence[str],
    sample: _Sample,
    absent: Sequence[ItemKind],
    others: Sequence[_Sample],
) -> tuple[list[Estimate], list[Finding]]:
    """Return the estimates of a team, and why some are undefined."""
    shape = len(QUANTITIES), len(class_names) + 1
    figures = sample.sums.figures(sample.totals).reshape(-1)
    shares = _observed_shares(sample)
    parts = _variance_parts(sample, sample.totals, shares, is_observed=True)
    items = _items(sample).reshape(-1)
    low, high = intervals(figures, parts, sample.informing, items)
    error = np.sqrt(parts.sum(axis=0))
    of_patients = _patient_intervals(sample, figures, parts.sum(axis=0), np.stack([low, high]))
    unclear = np.stack([figures, *(o.sums.figures(o.totals).reshape(-1) for o in others)])
    undefined = np.isnan(figures) | ~_is_estimable(absent, shape).reshape(-1)
    columns = np.stack(
        [figures, low, high, error, *of_patients, unclear.min(axis=0), unclear.max(axis=0)]
    )
    columns[:, undefined] = np.nan
    annotated = sample.sums.figures(sample.annotated).reshape(-1)
    rows = [
        Estimate(q, team, name, middle, low, high, n, error, p_low, p_high, (least, most), before)
        for (q, name), (middle, low, high, error, p_low, p_high, least, most), n, before in zip(
            _figure_names(class_names),
            columns.T.tolist(),
            items.tolist(),
            annotated.tolist(),
            strict=True,
        )
    ]
    if not absent:
        return rows, []
    message = (
        f"no {english_list([str(kind) for kind in absent])} of {team} was reviewed: figures that "
        f"depend on them are left empty; review more items"
    )
    return rows, [Finding(FindingKind.MISSING, message, team=team)]


def _figure_names(class_names: Sequence[str]) -> list[tuple[Quantity, str]]:
    """Return the quantity and class of each figure, in the order of the arrays."""
    return [(quantity, name) for quantity in QUANTITIES for name in (*class_names, ALL)]


def _is_estimable(absent: Sequence[ItemKind], shape: tuple[int, int]) -> BoolArray:
    """Return which figures do not depend on outcomes of which no item was reviewed."""
    result = np.full(shape, not absent)
    if all(kind in (ItemKind.FP, ItemKind.BACKGROUND) for kind in absent):
        result[QUANTITIES.index(Quantity.ERROR_RATE)] = True
    if tuple(absent) == (ItemKind.BACKGROUND,):
        result[QUANTITIES.index(Quantity.PRECISION)] = True
    return result


def _by_cause(team: str, sample: _Sample) -> list[CauseEstimate]:
    """Estimate the annotation error rate of the FNs of each cause."""
    is_fn = sample.units.is_kind(ItemKind.FN)
    result = []
    for cause in sorted(set(sample.units.cause[is_fn])):
        of_cause = is_fn & (sample.units.cause == cause)
        weight, n = sample.weight[of_cause], int(of_cause.sum())
        share = float(weight @ (sample.verdict[of_cause] > 0) / weight.sum())
        inner = (n * share + 0.5) / (n + 1)
        parts = (weight * (weight - 1) * inner * (1 - inner) / weight.sum() ** 2)[:, None]
        low, high = intervals(np.array([share]), parts, np.ones(n, np.int64), np.array([n]))
        result.append(CauseEstimate(team, cause, share, float(low[0]), float(high[0]), n))
    return result


# --- before and during a review ---------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """The interval that a figure is expected to have when all items are reviewed."""

    #: The figure; the class is `ALL` in the row over all classes.
    quantity: Quantity
    team: str
    class_name: str
    #: Half of the expected width of the interval; NaN if undefined.
    half_width: float


def expected(plan: Plan, units: Units, answers: Sequence[ItemVerdict] = ()) -> tuple[Expected, ...]:
    """Return how wide the intervals are expected to be when the whole plan is reviewed.

    Parameters
    ----------
    plan
        The plan.
    units
        The population that it was drawn from.
    answers
        The verdicts so far. They replace `ASSUMED_ERRORS` the more, the more there are.
    """
    teams = _Teams(plan, units)
    blank = {item: ItemVerdict(item, DECIDED[0]) for item in range(1, len(plan) + 1)}
    decided = {a.item: a for a in answers if a.verdict is not Verdict.CANNOT_TELL}
    result: list[Expected] = []
    for team in teams.plan.teams:
        sample, _ = teams.sample(team, blank)
        shares = _expected_shares(teams.sample(team, decided)[0])
        totals = sample.sums.possible(
            sample.before.sum(axis=0) + sample.weight @ _expected_values(sample, shares)
        )
        figures = sample.sums.figures(totals).reshape(-1)
        parts = _variance_parts(sample, totals, shares, is_observed=False)
        low, high = intervals(figures, parts, sample.drawn, _items(sample).reshape(-1))
        names = _figure_names(units.class_names)
        result += [
            Expected(q, team, name, width)
            for (q, name), width in zip(names, ((high - low) / 2).tolist(), strict=True)
        ]
    return tuple(result)


def items_needed(units: Units, quantity: Quantity, half_width: float, *, seed: int = 0) -> int:
    """Return the size of the smallest plan whose intervals are expected to be narrow enough.

    Parameters
    ----------
    units
        The population.
    quantity
        The figure of interest, over all classes, of every team.
    half_width
        Half of the width that is wanted, positive.
    seed
        The seed of the plan.

    Returns
    -------
    int
        Number of items; at most all of them, whose figures are known exactly.

    Raises
    ------
    SettingsError
        If there is nothing to review.
    """

    def is_enough(n_items: int) -> bool:
        plan = draw(units, n_items, seed)
        widths = [
            row.half_width
            for row in expected(plan, units)
            if (row.quantity, row.class_name) == (quantity, ALL)
        ]
        # Figures that are undefined become no more precise.
        return all(math.isnan(width) or width <= half_width for width in widths)

    if not len(units):
        raise SettingsError("there is nothing to review: no region has predictions of the teams")
    sizes = range(least_items(units), len(units) + 1)
    return sizes[bisect_left(sizes, True, hi=len(sizes) - 1, key=is_enough)]


def _expected_shares(sample: _Sample) -> _Shares:
    """Return the assumed shares of verdicts, replaced by those given as these become many."""
    verdicts = np.zeros((len(_GROUPS), len(DECIDED)))
    lacked = np.zeros(len(_GROUPS))
    for number, (kind, is_suspect) in enumerate(_GROUPS):
        rows = np.flatnonzero(sample.group == number)
        wrong = assumed_errors(kind, is_suspect)
        weight = sample.weight[rows] / sample.weight[rows].mean() if len(rows) else np.zeros(0)
        if kind is ItemKind.BACKGROUND:
            found = float(weight @ sample.count[rows])
            lacked[number] = (found + _ASSUMED_ITEMS * wrong) / (len(rows) + _ASSUMED_ITEMS)
            continue
        assumed = _ASSUMED_ITEMS * np.array([1 - wrong, wrong / 2, wrong / 2])
        given = np.bincount(sample.verdict[rows], weight, len(DECIDED)) + assumed
        verdicts[number] = given / given.sum()
    return _Shares(verdicts, lacked)


def _expected_values(sample: _Sample, shares: _Shares) -> FloatArray:
    """Return what each item is expected to add (n, K)."""
    by_item = shares.verdicts[sample.group]
    result: FloatArray = np.einsum("iv,ivk->ik", by_item, sample.added)
    is_tile = sample.units.is_kind(ItemKind.BACKGROUND)
    result[is_tile] = sample.added[is_tile, 0] * shares.lacked[sample.group[is_tile], None]
    return result
