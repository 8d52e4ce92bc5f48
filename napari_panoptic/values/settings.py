"""What is being computed: the settings of an evaluation, and the named protocols."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list
from napari_panoptic.values.conventions import (
    CONVENTIONS,
    DEFAULT_PROTOCOL,
    SHOWN,
    NamedFigure,
    ObjectScope,
    checked_name,
    choices_of,
    comparable_with,
    score_of,
)


class Matching(StrEnum):
    """Which predicted object belongs to which reference object."""

    STRICT_IOU = "strict-iou"  # IoU strictly above a threshold
    CENTROID = "centroid"  # best overlap, and its centroid inside the reference object


class AmbiguousPolicy(StrEnum):
    """How areas that the annotation marks as ambiguous count."""

    CLIP = "clip"  # cut from reference and prediction
    CLIP_PREDICTIONS = "clip-predictions"  # cut from predictions only
    MAJORITY = "majority"  # out of every union; objects mostly inside are ignored
    KEEP = "keep"  # treated like any other area


class Overlaps(StrEnum):
    """Which object counts pixels that several objects of one side claim."""

    FLATTEN = "flatten"  # the object drawn last has them
    KEEP = "keep"  # all of these objects have them


class Restoration(StrEnum):
    """How objects are recovered from a colour-coded mask with drawn borders."""

    BORDER_REMOVED = "border-removed"  # without the border pixels
    BORDER_DILATED = "border-dilated"  # each object grown by the radius


class Outlines(StrEnum):
    """Which outlines a Hausdorff distance compares where ambiguous areas are cut away."""

    AS_PUBLISHED = "as-published"  # whole prediction with the cut reference object
    BOTH_CLIPPED = "both-clipped"  # both after the ambiguous policy
    BOTH_WHOLE = "both-whole"  # both before it


DISTANCE_PERCENTILE = 95.0
WIDEST_ZONE_PX = 20
KNOW_ZONES = (DEFAULT_PROTOCOL, "nuceval", "nuceval-weighted")
"""The conventions that know uncertain borders, and shares of ambiguous areas."""
_E = TypeVar("_E", bound=StrEnum)


def _word(vocabulary: type[_E], value: object, setting: str) -> _E:
    try:
        return vocabulary(str(value))
    except ValueError:
        known = english_list([member.value for member in vocabulary])
        raise SettingsError(f"{setting} must be one of {known}, found '{value}'") from None


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """Everything that decides a figure. Frozen, comparable, printable.

    Words are accepted as plain strings, as on the command line.

    Parameters
    ----------
    matching
        ``strict-iou`` or ``centroid``.
    iou_threshold
        A pair matches above this IoU (strictly); 0 < threshold < 1. Below 0.5
        one-to-one pairs are enforced by maximum-weight assignment. Without
        effect under the centroid rule.
    ambiguous
        ``clip``, ``clip-predictions``, ``majority`` or ``keep``.
    ambiguous_share
        Share of an object's area in ambiguous areas, from 0 to 1, above which it is
        ignored: under ``clip`` and ``clip-predictions`` of the objects that are cut
        (None: 1, so that what is left of an object always counts), under
        ``majority`` of unmatched ones (None: 0.5). Not under ``keep``.
    zone_px
        Width N in px of the uncertain border, 0 to 20: no pixel counts, on either side,
        from which one at most N px away (Euclidean) lies across the edge of an
        annotated object, as the ambiguous policy has left it. Distances are those of
        whole outlines.
    overlaps
        ``flatten`` or ``keep``: whether objects of one side may share pixels.
        Under ``keep``, one-to-one pairs are enforced wherever some do.
    restoration
        ``border-removed`` or ``border-dilated``; for colour-coded masks only.
    radius
        Radius in px by which ``border-dilated`` grows objects (-20 to 20;
        negative erodes). Without effect under ``border-removed``.
    distances
        Whether to compute Hausdorff distances.
    outlines
        ``as-published``, ``both-clipped`` or ``both-whole``.
    near_iou
        Least IoU at which an unmatched pair explains a failure as too-small,
        too-large or displaced.
    convention
        Name of the convention that gives a team's score, see
        `napari_panoptic.values.conventions.figures_of`. By those of MoNuSAC
        2020, each class is matched alone, on its own masks.

    Raises
    ------
    SettingsError
        For a word or number that is not allowed.
    """

    matching: Matching = Matching.STRICT_IOU
    iou_threshold: float = 0.5
    ambiguous: AmbiguousPolicy = AmbiguousPolicy.CLIP
    ambiguous_share: float | None = None
    zone_px: int = 0
    overlaps: Overlaps = Overlaps.FLATTEN
    restoration: Restoration = Restoration.BORDER_REMOVED
    radius: int = 1
    distances: bool = True
    outlines: Outlines = Outlines.AS_PUBLISHED
    near_iou: float = 0.1
    convention: str = DEFAULT_PROTOCOL

    def __post_init__(self) -> None:
        """Turn words into their enums and check every value."""
        self._set("matching", _word(Matching, self.matching, "matching"))
        self._set("ambiguous", _word(AmbiguousPolicy, self.ambiguous, "ambiguous"))
        self._set("overlaps", _word(Overlaps, self.overlaps, "overlaps"))
        self._set("restoration", _word(Restoration, self.restoration, "restoration"))
        self._set("outlines", _word(Outlines, self.outlines, "outlines"))
        self._set("convention", checked_name(self.convention))
        if self.overlaps is Overlaps.KEEP and self.convention != DEFAULT_PROTOCOL:
            raise SettingsError(
                f"the convention {self.convention} knows no objects that share pixels: leave "
                "overlaps at flatten, or choose another protocol"
            )
        if not 0.0 < self.iou_threshold < 1.0:
            raise SettingsError(
                f"iou_threshold must lie between 0 and 1 (both excluded), "
                f"found {self.iou_threshold}"
            )
        if not 0.0 < self.near_iou < 1.0:
            raise SettingsError(
                f"near_iou must lie between 0 and 1 (both excluded), found {self.near_iou}"
            )
        self._check_uncertain()
        if int(self.radius) != self.radius or not -20 <= self.radius <= 20:
            raise SettingsError(
                f"radius must be a whole number from -20 to 20 px, found {self.radius}"
            )

    def _check_uncertain(self) -> None:
        """Check the share of ambiguous areas and the uncertain border."""
        share = self.ambiguous_share
        if share is not None and not 0.0 <= share <= 1.0:
            raise SettingsError(f"ambiguous_share must lie between 0 and 1, found {share}")
        if share is not None and self.ambiguous is AmbiguousPolicy.KEEP:
            raise SettingsError(
                "ambiguous_share has no effect under the ambiguous policy keep, which ignores no "
                "object: leave it out, or choose another policy"
            )
        if int(self.zone_px) != self.zone_px or not 0 <= self.zone_px <= WIDEST_ZONE_PX:
            raise SettingsError(
                f"zone_px must be a whole number from 0 to {WIDEST_ZONE_PX} px, "
                f"found {self.zone_px}"
            )
        known = KNOW_ZONES
        if self.is_uncertain and self.convention not in known:
            raise SettingsError(
                f"the convention {self.convention} defines neither an uncertain border nor a share "
                f"of ambiguous areas (zone_px, ambiguous_share): leave them out, or choose one "
                f"of {english_list(known)}"
            )

    @property
    def is_uncertain(self) -> bool:
        """Whether there is an uncertain border, or a share of ambiguous areas."""
        return self.zone_px > 0 or self.ambiguous_share is not None

    @property
    def known_by(self) -> tuple[str, ...]:
        """The named conventions that can be computed under these settings."""
        return KNOW_ZONES if self.is_uncertain else tuple(CONVENTIONS)

    @property
    def share_limit(self) -> float:
        """The share of an object's area in ambiguous areas above which it is ignored."""
        if self.ambiguous_share is not None:
            return self.ambiguous_share
        return 0.5 if self.ambiguous is AmbiguousPolicy.MAJORITY else 1.0

    @property
    def score(self) -> NamedFigure:
        """The figure that is a team's score."""
        return score_of(self.convention)

    @property
    def takes_class_masks(self) -> bool:
        """Whether each class is matched alone, on its own masks."""
        return self.score.convention.objects is ObjectScope.CLASS_MASKS

    @property
    def disentangled(self) -> EvaluationSettings:
        """The same settings with the classes together: what decides outcomes of objects."""
        return self.replaced(convention=DEFAULT_PROTOCOL)

    @property
    def one_to_one_enforced(self) -> bool:
        """Whether the threshold is so low that pairs must be assigned one to one."""
        return self.matching is Matching.STRICT_IOU and self.iou_threshold < 0.5

    @property
    def dilation_radius(self) -> int:
        """Radius that restoration applies: 0 under ``border-removed``."""
        return self.radius if self.restoration is Restoration.BORDER_DILATED else 0

    def replaced(self, **changes: Any) -> EvaluationSettings:
        """Return a copy with some values changed; another ambiguous policy has its usual share."""
        if changes.get("ambiguous", self.ambiguous) != self.ambiguous:
            changes = {"ambiguous_share": None, **changes}
        return replace(self, **changes)

    def differences(self, other: EvaluationSettings) -> dict[str, tuple[Any, Any]]:
        """Return what differs from other settings: name -> (here, there)."""
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def as_record(self) -> dict[str, Any]:
        """Return a plain dictionary, for JSON."""
        return {k: str(v) if isinstance(v, StrEnum) else v for k, v in asdict(self).items()}

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def choices_of_figures(settings: EvaluationSettings) -> dict[str, dict[str, Any]]:
    """Return the choices behind the metrics and the score.

    Returns
    -------
    dict
        Name of a metric, or ``score`` -> the eight choices, and ``comparable_with``: the figures of
        named conventions that are the same by definition.
    """
    is_usual = settings.matching is Matching.STRICT_IOU and settings.iou_threshold == 0.5
    _, formula, convention, *_ = settings.score
    known = {**SHOWN, "score": (formula, convention)}
    if settings.takes_class_masks:
        own = convention.by_patient()
        known |= {name: (SHOWN[name][0], own) for name in ("pq", "sq", "dq")}
    found = {}
    for name, (formula, convention) in known.items():
        choices = choices_of(convention, str(settings.ambiguous))
        has_own_pairs = is_usual or (name == "score" and settings.convention != DEFAULT_PROTOCOL)
        if not has_own_pairs:
            is_centroid = settings.matching is Matching.CENTROID
            choices["pairs"] = (
                str(settings.matching) if is_centroid else f"iou>{settings.iou_threshold:g}"
            )
        alike = comparable_with(formula, convention) if has_own_pairs else []
        found[name] = {**choices, "comparable_with": alike}
    return found


PROTOCOLS: dict[str, EvaluationSettings] = {
    name: EvaluationSettings(convention=name) for name in CONVENTIONS
}
"""Named settings: the default ones, and the convention that gives the score."""


def protocol(name: str) -> EvaluationSettings:
    """Look up a named protocol.

    Parameters
    ----------
    name
        As of `napari_panoptic.values.conventions.figures_of`.

    Raises
    ------
    SettingsError
        For an unknown name.
    """
    return EvaluationSettings(convention=name)


def protocol_name(settings: EvaluationSettings) -> str:
    """Return the name of settings in `PROTOCOLS`, or "own settings"."""
    return next((name for name, known in PROTOCOLS.items() if known == settings), "own settings")
