"""Conditions under which a cohort is evaluated, and families of them.

A condition is a choice of settings, of the format of the predictions, and of a
shift of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from napari_panoptic.nuclei.regions.shifts import NO_SHIFT, SHIFTS, Shift
from napari_panoptic.nuclei.values.cohort import Source
from napari_panoptic.nuclei.values.settings import (
    CHALLENGE_PROTOCOL,
    DEFAULT_PROTOCOL,
    PROTOCOLS,
    EvaluationSettings,
    Matching,
    Restoration,
)

THRESHOLDS: tuple[float, ...] = tuple(percent / 100 for percent in range(5, 100, 5))
"""From 0.05 to 0.95 in steps of 0.05."""


@dataclass(frozen=True)
class Condition:
    """One way to evaluate.

    Parameters
    ----------
    name
        Unique among the conditions of an experiment.
    settings
        How to restore, match and score.
    source
        Which format of the predictions; None for the usual one.
    shift
        By how many whole px the predictions are moved, (dy, dx): down and to
        the right where positive. What leaves the image is lost, and a
        prediction that leaves it wholly is no prediction any more.
    """

    name: str
    settings: EvaluationSettings
    source: Source | None = None
    shift: Shift = NO_SHIFT

    def as_record(self) -> dict[str, Any]:
        """Return a plain dictionary, for JSON."""
        return {
            "name": self.name,
            "settings": self.settings.as_record(),
            "source": None if self.source is None else str(self.source),
            "shift": list(self.shift),
        }


# --- ready-made families ----------------------------------------------------------------------


def lessons_conditions(
    base: EvaluationSettings | None = None, *, source: Source | None = None
) -> tuple[Condition, ...]:
    """Return the four conditions of table 1 of Foucart et al. (Pattern Recognition, 2023).

    Two restorations by two matching rules, the rules of one restoration beside
    each other. Names are those of both, such as ``border-removed centroid``.

    Parameters
    ----------
    base
        All other settings; the defaults where None.
    source
        Which format of the predictions.
    """
    base = base or EvaluationSettings()
    return tuple(
        Condition(
            f"{restoration} {matching}",
            base.replaced(restoration=restoration, matching=matching),
            source,
        )
        for restoration in Restoration
        for matching in Matching
    )


def radius_conditions(
    radii: Iterable[int] = range(-3, 6),
    base: EvaluationSettings | None = None,
    *,
    source: Source | None = None,
) -> tuple[Condition, ...]:
    """Return a condition per radius in px by which objects grow, or shrink where negative."""
    base = (base or EvaluationSettings()).replaced(restoration=Restoration.BORDER_DILATED)
    return tuple(Condition(f"radius {r}", base.replaced(radius=r), source) for r in radii)


def threshold_conditions(
    thresholds: Iterable[float] = THRESHOLDS,
    base: EvaluationSettings | None = None,
    *,
    source: Source | None = None,
) -> tuple[Condition, ...]:
    """Return a condition per IoU that a pair must exceed to match."""
    base = (base or EvaluationSettings()).replaced(matching=Matching.STRICT_IOU)
    return tuple(
        Condition(f"IoU > {threshold:.2f}", base.replaced(iou_threshold=threshold), source)
        for threshold in thresholds
    )


def shift_conditions(
    shifts: Iterable[Shift] = SHIFTS,
    base: EvaluationSettings | None = None,
    *,
    source: Source | None = None,
) -> tuple[Condition, ...]:
    """Return a condition per shift in px: none first, then one pixel in eight directions."""
    settings = base or EvaluationSettings()
    return tuple(
        Condition(
            "no shift" if shift == NO_SHIFT else f"shift {shift[0]:+d} {shift[1]:+d}",
            settings,
            source,
            shift,
        )
        for shift in shifts
    )


def protocol_conditions(*, source: Source | None = None) -> tuple[Condition, ...]:
    """Return the disentangled evaluation, and the challenge's own scoring as it was run.

    The class scores of the latter tell every choice of corrections: see
    :func:`scored_regions` and `napari_panoptic.nuclei.protocols`.
    """
    names = (DEFAULT_PROTOCOL, CHALLENGE_PROTOCOL)
    return tuple(Condition(name, PROTOCOLS[name], source) for name in names)
