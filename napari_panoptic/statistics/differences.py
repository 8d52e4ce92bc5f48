"""Is a new version better than an old one? Differences paired by patient, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.text import counted, english_list
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, Interval, mean_interval
from napari_panoptic.statistics.friedman import (
    SIGNIFICANCE,
    PairedFigures,
    TeamFigures,
    paired_figures,
)
from napari_panoptic.statistics.pairwise import holm
from napari_panoptic.statistics.sign_flip import (
    LEAST_PATIENTS,
    POWER,
    SignFlips,
    patients_needed,
    sign_flips,
)
from napari_panoptic.statistics.skewed_t import LEAST, skewed_t

SKEWNESS_FACTOR = 1.5
"""Of the skewness in the verdict, which the differences of few patients underestimate.

Chosen by simulation, see ``benchmarks/versions.py``.
"""
_OLD, _NEW = "old", "new"


class Conclusion(StrEnum):
    """Whether a new version is worse than an old one by more than a margin."""

    NOT_WORSE = "not-worse"  # significantly above minus the margin
    WORSE = "worse"  # significantly below minus the margin
    UNDECIDED = "undecided"  # neither


@dataclass(frozen=True, eq=False)
class PairedDifference:
    """The difference of one figure between two versions, paired by patient."""

    #: The figure.
    name: str
    #: The old and the new figures of the patients that have both, and the others.
    figures: PairedFigures
    #: Whether a positive difference is an improvement.
    higher_is_better: bool
    #: Mean over patients of new minus old, with its BCa interval.
    interval: Interval
    #: Sign-flip distribution of the differences, turned so that positive is better.
    flips: SignFlips
    #: Two-sided p-value of the sign-flip test of no difference; NaN without patients.
    p: float
    #: The same after Holm's correction over all figures of the list.
    holm_p: float
    #: How many patients would show this difference with p < 0.05 and a chance of 80 %, if it is as
    #: observed; None if no number does.
    needed: int | None

    @property
    def patients(self) -> int:
        """Number of patients that compare."""
        return len(self.figures.patients)

    @property
    def differences(self) -> NDArray[np.float64]:
        """float64 (n,): new minus old of each patient."""
        apart: NDArray[np.float64] = self.figures.values[1] - self.figures.values[0]
        return apart

    @property
    def old(self) -> float:
        """Mean of the old figures over the patients that compare; NaN without any."""
        return _mean(self.figures.values[0])

    @property
    def new(self) -> float:
        """Mean of the new figures over the patients that compare; NaN without any."""
        return _mean(self.figures.values[1])

    @property
    def note(self) -> str:
        """What stands in the way of a decision, in words; empty if nothing does."""
        unit = self.figures.unit
        if self.patients == 0:
            return f"no {unit} has a figure of both versions"
        if self.patients >= LEAST_PATIENTS:
            return ""
        return _too_few(self.patients, self.needed, unit)


@dataclass(frozen=True)
class Decision:
    """The verdict on a difference, and the figures that it rests on."""

    #: The verdict.
    verdict: Conclusion
    #: How much worse the new version may be, in the unit of the figure.
    margin: float
    #: Level of the limits below.
    level: float
    #: The test finds the new version not worse exactly if ``low`` (of a figure where lower is
    #: better: ``-high``) lies above minus the margin, and worse if the other end lies below it. New
    #: minus old; infinite if there are too few patients, NaN without any.
    low: float
    high: float
    #: One-sided p-values against minus the margin: the larger one of the sign-flip test and of the
    #: t statistic that is corrected for skewness (`skewed_t`).
    p_worse: float
    p_not_worse: float
    #: How many patients would decide it with a chance of 80 %, if the difference is as observed;
    #: None if no number does.
    needed: int | None
    #: The verdict in words.
    reason: str


def paired_differences(
    figures: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    patients: Sequence[str],
    *,
    lower_is_better: Sequence[str] = (),
    resamples: int = RESAMPLES,
) -> tuple[PairedDifference, ...]:
    """Compare two versions by several figures, each paired by patient.

    Parameters
    ----------
    figures
        Name -> the old and the new figure of each patient; NaN if undefined. Patients
        without both are left out, figure by figure.
    patients
        Their names.
    lower_is_better
        Names of figures of which lower ones are better.
    resamples
        As in `mean_interval`.
    """
    found = []
    for name, (old, new) in figures.items():
        paired = paired_figures(TeamFigures({_OLD: old, _NEW: new}, patients=patients))
        differences = paired.values[1] - paired.values[0]
        is_up = name not in lower_is_better
        flips = sign_flips(differences if is_up else -differences)
        interval = mean_interval(differences, resamples=resamples)
        p = flips.p_two_sided()
        needed = patients_needed(interval.mean, _sd(differences), tail=SIGNIFICANCE / 2)
        found.append(PairedDifference(name, paired, is_up, interval, flips, p, p, needed))
    corrected = holm([one.p for one in found])
    return tuple(replace(one, holm_p=p) for one, p in zip(found, corrected, strict=True))


def decide(difference: PairedDifference, margin: float) -> Decision:
    """Decide whether the new version is worse than the old one by more than a margin.

    The sign-flip test is shifted by the margin, and one-sided in either direction:
    worse, if the mean difference lies significantly below minus the margin; not worse,
    if significantly above; else undecided. That test assumes that differences are symmetric
    around their mean, and errs too often where a few patients lose much. So a t statistic that
    is corrected for skewness must decide alike.

    With fewer than `LEAST_PATIENTS` patients the verdict is always undecided. Not worse becomes
    undecided if a patient has a figure of one version only: the new version may fail on exactly
    this patient.

    Parameters
    ----------
    difference
        Of the figure that decides.
    margin
        At least 0, in the unit of the figure.

    Raises
    ------
    ValueError
        For a negative margin.
    """
    if not margin >= 0:
        raise ValueError(f"expected a margin of at least 0, found {margin}")
    flips = difference.flips
    p_worse, p_not_worse = flips.p_below(-margin), flips.p_above(-margin)
    low, high = flips.limits(SIGNIFICANCE)
    if difference.patients >= LEAST:
        sign = 1.0 if difference.higher_is_better else -1.0
        skewed = skewed_t(sign * difference.differences, factor=SKEWNESS_FACTOR)
        p_worse = max(p_worse, skewed.p_below(-margin))
        p_not_worse = max(p_not_worse, skewed.p_above(-margin))
        below, above = skewed.limits(SIGNIFICANCE)
        low, high = min(low, below), max(high, above)
    verdict = Conclusion.UNDECIDED
    if difference.patients >= LEAST_PATIENTS:
        if p_worse < SIGNIFICANCE:
            verdict = Conclusion.WORSE
        elif p_not_worse < SIGNIFICANCE:
            verdict = Conclusion.NOT_WORSE
    gain = difference.interval.mean
    if not difference.higher_is_better:
        low, high, gain = -high, -low, -gain
    needed = patients_needed(gain + margin, _sd(difference.differences), tail=SIGNIFICANCE)
    reason = _reason(difference, verdict, margin, needed)
    if difference.patients and (one_sided := _one_sided(difference.figures)):
        reason += f"{', but' if verdict is Conclusion.NOT_WORSE else ';'} {one_sided}"
        verdict = Conclusion.WORSE if verdict is Conclusion.WORSE else Conclusion.UNDECIDED
    return Decision(
        verdict=verdict,
        margin=margin,
        level=1 - 2 * SIGNIFICANCE,
        low=low,
        high=high,
        p_worse=p_worse,
        p_not_worse=p_not_worse,
        needed=needed,
        reason=reason,
    )


def difference_record(difference: PairedDifference) -> dict[str, Any]:
    """Return plain values, for JSON."""
    return {
        "metric": difference.name,
        "old_mean": difference.old,
        "new_mean": difference.new,
        "difference": difference.interval.mean,
        "low": difference.interval.low,
        "high": difference.interval.high,
        "level": LEVEL,
        "interval": str(difference.interval.method),
        "why_interval": difference.interval.why,
        "p": difference.p,
        "holm_p": difference.holm_p,
        "exact": difference.flips.is_exact,
        "patients": difference.patients,
        "omitted": {one.patient: one.reason for one in difference.figures.omitted},
        "needed_patients": difference.needed,
        "note": difference.note,
    }


def decision_record(decision: Decision) -> dict[str, Any]:
    """Return plain values, for JSON."""
    return {**asdict(decision), "verdict": str(decision.verdict), "power": POWER}


def _reason(
    difference: PairedDifference, verdict: Conclusion, margin: float, needed: int | None
) -> str:
    unit = difference.figures.unit
    if difference.patients == 0:
        return difference.note
    if difference.patients < LEAST_PATIENTS:
        return _too_few(difference.patients, needed, unit)
    allowed = f"by more than {margin:g}" if margin else "at all"
    over = f"{difference.patients} {unit}s"
    if verdict is Conclusion.WORSE:
        return f"worse {allowed}, over {over}"
    if verdict is Conclusion.NOT_WORSE:
        return f"not worse {allowed}, over {over}"
    more = (
        f"; about {needed} would be needed for the observed difference"
        if needed is not None and needed > difference.patients
        else ""
    )
    return f"{over} do not decide whether it is worse {allowed}{more}"


def _one_sided(figures: PairedFigures) -> str:
    """Name the patients with a figure of one version only; empty without any."""
    parts = []
    for version, other in ((_OLD, _NEW), (_NEW, _OLD)):
        names = [one.patient for one in figures.omitted if one.teams == (other,)]
        if names:
            have = "has" if len(names) == 1 else "have"
            who = f"{figures.unit}{'s' * (len(names) > 1)} {english_list(names)}"
            parts.append(f"{who} {have} a figure of the {version} version only")
    return english_list(parts)


def _too_few(n: int, needed: int | None, unit: str) -> str:
    """Describe that there are too few patients, and how many it would take."""
    least = f"cannot be decided with {counted(n, unit)}"
    would = [f"at least {LEAST_PATIENTS} are needed"]
    if needed is not None and needed > LEAST_PATIENTS:
        would.append(f"about {needed} for the observed difference")
    return f"{least}: {english_list(would)}"


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else math.nan


def _sd(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan
