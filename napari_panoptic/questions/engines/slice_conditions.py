"""Conditions on the covariates of objects: making them, testing objects, wording, failure rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.text import LONGEST_WORD, shortened
from napari_panoptic.features.known import text_of
from napari_panoptic.statistics.bootstrap import rate_bands
from napari_panoptic.statistics.means import quotients
from napari_panoptic.values.vocabulary import Side

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

EXTREMES, BROAD = (0.2, 0.8), (0.4, 0.6)
"""Conditions on numbers are: below the first quantile of a pair; at or above the second."""
FEW_VALUES = 6
"""Up to this number of different values, each value is a condition; above, ranges are."""
MOST_VALUES = 20
"""Number of the most frequent words of a covariate that are conditions."""
# Rounding a threshold may move at most this share of the objects to its other side.
_SHIFT = 0.01
_CELL_NAMES = ("cyte", "phil", "phage", "blast", "cell", "clast")
_BINS = 10


@dataclass(frozen=True)
class SliceCondition:
    """A condition on one covariate: a half-open range of numbers, or a value."""

    #: Name of the covariate.
    covariate: str
    #: The lower limit (inclusive) and the upper limit (exclusive); infinite for no limit.
    low: float = -np.inf
    high: float = np.inf
    #: The word, if the covariate consists of words; or the number, if it has few different values.
    value: str | float | None = None

    def holds(self, values: NDArray[Any]) -> BoolArray:
        """Return bool (n,): whether each value meets the condition; undefined values do not."""
        if self.value is not None:
            equal: BoolArray = np.asarray(values == self.value, np.bool_)
            return equal
        inside: BoolArray = (values >= self.low) & (values < self.high)
        return inside

    def as_formula(self) -> str:
        """Return the condition as an expression, such as ``area_px < 80``."""
        if self.value is not None:
            return f"{self.covariate} = {number_text(self.value)}"
        if np.isinf(self.low):
            return f"{self.covariate} < {number_text(self.high)}"
        if np.isinf(self.high):
            return f"{self.covariate} >= {number_text(self.low)}"
        return f"{number_text(self.low)} <= {self.covariate} < {number_text(self.high)}"


def conditions_on(
    name: str, values: NDArray[Any], *, broad: bool = True
) -> tuple[SliceCondition, ...]:
    """Return the conditions on a covariate that define slices.

    Parameters
    ----------
    name
        The covariate.
    values
        (n,): float64 or words.
    broad
        Whether to include the lowest and the highest two fifths of numbers.

    Returns
    -------
    tuple of SliceCondition
        Numbers below a quantile, and numbers from a quantile on (`EXTREMES` and `BROAD`). Quantiles
        are rounded to the fewest digits that move at most 1 % of the objects across the threshold.
        Covariates with few different values have a condition for each. Empty if all values are
        equal.
    """
    if values.dtype.kind == "f":
        defined = values[~np.isnan(values)]
        distinct = np.unique(defined)
        if len(distinct) > FEW_VALUES:
            return _ranges(name, defined, (EXTREMES, BROAD) if broad else (EXTREMES,))
        counted = [(float(number), int((defined == number).sum())) for number in distinct]
    else:
        words, number_of = np.unique(values[values != ""].astype(str), return_counts=True)
        counted = list(zip(words.tolist(), number_of.tolist(), strict=True))
    if len(counted) < 2 and sum(number for _, number in counted) in (0, len(values)):
        return ()
    most = sorted(counted, key=lambda pair: (-pair[1], str(pair[0])))[:MOST_VALUES]
    return tuple(
        SliceCondition(name, value=value) for value, _ in sorted(most, key=lambda p: str(p[0]))
    )


def _ranges(
    name: str, defined: FloatArray, quantiles: Sequence[tuple[float, float]]
) -> tuple[SliceCondition, ...]:
    found = [
        condition
        for below, from_ in quantiles
        for condition in (
            SliceCondition(name, high=rounded_threshold(defined, below)),
            SliceCondition(name, low=rounded_threshold(defined, from_)),
        )
        if 0 < condition.holds(defined).sum() < len(defined)
    ]
    return tuple(dict.fromkeys(found))


def rounded_threshold(values: FloatArray, quantile: float) -> float:
    """Return a quantile rounded to the fewest digits that move at most 1 % of values across it."""
    exact = float(np.quantile(values, quantile))
    below = np.count_nonzero(values < exact)
    for digits in range(1, 12):
        threshold = float(f"{exact:.{digits - 1}e}")
        if abs(np.count_nonzero(values < threshold) - below) <= _SHIFT * len(values):
            return threshold
    return exact


def slice_words(conditions: Sequence[SliceCondition], side: Side = Side.REFERENCE) -> str:
    """Return conditions in words, such as "Lymphocytes under 80 px touching a neighbour"."""
    noun = "Nuclei" if side is Side.REFERENCE else "Predictions"
    parts: list[str] = []
    for condition in conditions:
        if condition.covariate == "class":
            noun = _plural(str(condition.value), noun)
        else:
            parts.append(condition_words(condition))
    # "under 80 px touching a neighbour", but "with … and with …", "under … and less than …".
    if len(parts) == 2:
        starts = [part.startswith("with ") for part in parts]
        if starts[0] == starts[1] and not parts[1].endswith("touching a neighbour"):
            parts.insert(1, "and")
    return " ".join([noun, *parts])


def condition_words(condition: SliceCondition) -> str:
    """Return a condition as a phrase that follows a noun."""
    name, text = condition.covariate, text_of(condition.covariate)
    unit = "µm" if name.endswith("_um") else "px"
    if condition.value is not None:
        word = shortened(number_text(condition.value), LONGEST_WORD)
        return text.values.get(word, f"with {name.replace('_', ' ')} {word}")
    wording = text.between
    if np.isinf(condition.low):
        wording = text.under
    elif np.isinf(condition.high):
        wording = text.from_
    return wording.format(
        name=text.header,
        low=number_text(condition.low),
        high=number_text(condition.high),
        unit=unit,
        square="²" if unit == "µm" else "",
    )


def property_words(condition: SliceCondition) -> str:
    """Return a condition as a property of an object, such as "small (under 80 px)"."""
    words = condition_words(condition)
    low, high = text_of(condition.covariate).plain
    plain = "" if condition.value is not None else low if np.isinf(condition.low) else high
    return f"{plain} ({words.removeprefix('with ').removeprefix('of ')})" if plain else words


def _plural(class_name: str, noun: str) -> str:
    name = shortened(class_name, LONGEST_WORD)
    return f"{name}s" if name.endswith(_CELL_NAMES) else f"{name} {noun.lower()}"


def number_text(value: str | float | None) -> str:
    """Return a number without needless digits, or a word unchanged."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}".replace(",", "") if value.is_integer() else f"{value:.12g}"


@dataclass(frozen=True, eq=False)
class Curve:
    """Failure rate by the values of a covariate."""

    #: Name of the covariate.
    covariate: str
    #: One condition per bin: deciles of numbers, or values. They do not overlap.
    bins: tuple[SliceCondition, ...]
    #: int64 (b,): number in each bin.
    objects: NDArray[np.int64]
    failures: NDArray[np.int64]
    #: float64 (b,): 95 % band of the rate; see `rate`.
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    #: Whether the band is the wider of a bootstrap over patients and Wilson's interval over
    #: objects. With fewer than six patients it is the latter, which ignores that objects of one
    #: patient are alike.
    over_patients: bool

    @property
    def rate(self) -> NDArray[np.float64]:
        """float64 (b,): share of failures; NaN in an empty bin."""
        return quotients(self.failures, self.objects)


def failure_curve(
    name: str, values: NDArray[Any], is_failure: NDArray[np.bool_], patients: NDArray[Any]
) -> Curve:
    """Return the failure rate by the values of a covariate, for plots.

    Parameters
    ----------
    name
        The covariate.
    values, is_failure, patients
        (n,): as in `search_slices`.
    """
    bins = _curve_bins(name, values)
    _, strata = np.unique(patients, return_inverse=True)
    n_patients = int(strata.max(initial=-1)) + 1
    objects, failures = np.zeros((2, len(bins), n_patients), np.int64)
    for place, condition in enumerate(bins):
        inside = condition.holds(values)
        objects[place] = np.bincount(strata[inside], minlength=n_patients)
        failures[place] = np.bincount(strata[inside & is_failure], minlength=n_patients)
    bands = rate_bands(failures, objects)
    return Curve(
        name,
        bins,
        objects.sum(axis=1),
        failures.sum(axis=1),
        bands.low,
        bands.high,
        bands.over_groups,
    )


def _curve_bins(name: str, values: NDArray[Any]) -> tuple[SliceCondition, ...]:
    conditions = conditions_on(name, values)
    if any(condition.value is not None for condition in conditions):
        return conditions
    defined = values[~np.isnan(values)]
    cuts = sorted({rounded_threshold(defined, k / _BINS) for k in range(1, _BINS)})
    edges = [-np.inf, *cuts, np.inf]
    found = [SliceCondition(name, low=a, high=b) for a, b in pairwise(edges)]
    return tuple(condition for condition in found if condition.holds(defined).any())
