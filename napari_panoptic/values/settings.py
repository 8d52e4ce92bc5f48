"""What is being computed: the settings of an evaluation, and the named protocols."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list


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


class Scoring(StrEnum):
    """Which objects compete with which, and what is summed over what."""

    DISENTANGLED = "disentangled"  # classes together, class-blind matching, per patient
    CHALLENGE = "challenge"  # each class alone, as the MoNuSAC 2020 notebook did


class Correction(StrEnum):
    """An error of the challenge's scoring that can be corrected by itself."""

    MATCHING = "matching"  # count unmatched predictions, not ids unlike matched references
    ABSENT_CLASS_FP = "absent-class-fp"  # count predictions of classes the region lacks
    PER_PATIENT = "per-patient"  # sum over the regions of a patient before dividing


DISTANCE_PERCENTILE = 95.0
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
    scoring
        ``disentangled``, or ``challenge`` for the MoNuSAC 2020 scoring.
    corrections
        Which errors of the challenge's scoring to correct; without effect
        under ``disentangled``.

    Raises
    ------
    SettingsError
        For a word or number that is not allowed.
    """

    matching: Matching = Matching.STRICT_IOU
    iou_threshold: float = 0.5
    ambiguous: AmbiguousPolicy = AmbiguousPolicy.CLIP
    overlaps: Overlaps = Overlaps.FLATTEN
    restoration: Restoration = Restoration.BORDER_REMOVED
    radius: int = 1
    distances: bool = True
    outlines: Outlines = Outlines.AS_PUBLISHED
    near_iou: float = 0.1
    scoring: Scoring = Scoring.DISENTANGLED
    corrections: frozenset[Correction] = frozenset()

    def __post_init__(self) -> None:
        """Turn words into their enums and check every value."""
        self._set("matching", _word(Matching, self.matching, "matching"))
        self._set("ambiguous", _word(AmbiguousPolicy, self.ambiguous, "ambiguous"))
        self._set("overlaps", _word(Overlaps, self.overlaps, "overlaps"))
        self._set("restoration", _word(Restoration, self.restoration, "restoration"))
        self._set("outlines", _word(Outlines, self.outlines, "outlines"))
        self._set("scoring", _word(Scoring, self.scoring, "scoring"))
        corrections = frozenset(_word(Correction, c, "corrections") for c in self.corrections)
        self._set("corrections", corrections)
        if self.overlaps is Overlaps.KEEP and self.scoring is Scoring.CHALLENGE:
            raise SettingsError(
                "the challenge's scoring knows no objects that share pixels: leave overlaps at "
                "flatten, or choose another protocol"
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
        if int(self.radius) != self.radius or not -20 <= self.radius <= 20:
            raise SettingsError(
                f"radius must be a whole number from -20 to 20 px, found {self.radius}"
            )

    @property
    def one_to_one_enforced(self) -> bool:
        """Whether the threshold is so low that pairs must be assigned one to one."""
        return self.matching is Matching.STRICT_IOU and self.iou_threshold < 0.5

    @property
    def dilation_radius(self) -> int:
        """Radius that restoration applies: 0 under ``border-removed``."""
        return self.radius if self.restoration is Restoration.BORDER_DILATED else 0

    def replaced(self, **changes: Any) -> EvaluationSettings:
        """Return a copy with some values changed."""
        return replace(self, **changes)

    def differences(self, other: EvaluationSettings) -> dict[str, tuple[Any, Any]]:
        """Return what differs from other settings: name -> (here, there)."""
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def as_record(self) -> dict[str, Any]:
        """Return a plain dictionary, for JSON."""
        record = asdict(self)
        record["corrections"] = sorted(str(c) for c in self.corrections)
        return {k: str(v) if isinstance(v, StrEnum) else v for k, v in record.items()}

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


DEFAULT_PROTOCOL = "disentangled"
CHALLENGE_PROTOCOL = "monusac-2020-as-run"
CORRECTED_PROTOCOL = "monusac-2020-corrected"

PROTOCOLS: dict[str, EvaluationSettings] = {
    DEFAULT_PROTOCOL: EvaluationSettings(),
    CHALLENGE_PROTOCOL: EvaluationSettings(scoring=Scoring.CHALLENGE),
    CORRECTED_PROTOCOL: EvaluationSettings(
        scoring=Scoring.CHALLENGE, corrections=frozenset(Correction)
    ),
}
"""Named settings. ``disentangled``: the re-implementation of Foucart et al.,
Pattern Recognition 2023. ``monusac-2020-as-run``: the challenge's own scoring,
errors included, as Foucart et al. 2021 reconstructed it. ``monusac-2020-corrected``:
the same with all three errors corrected."""


def protocol(name: str) -> EvaluationSettings:
    """Look up a named protocol.

    Parameters
    ----------
    name
        One of `PROTOCOLS`, or ``monusac-2020-as-run+`` with corrections joined
        by ``+``, such as ``monusac-2020-as-run+matching+per-patient``.

    Raises
    ------
    SettingsError
        For an unknown name.
    """
    base, *corrections = name.split("+")
    if base not in PROTOCOLS or (corrections and base != CHALLENGE_PROTOCOL):
        raise SettingsError(
            f"unknown protocol '{name}'; known are {english_list(list(PROTOCOLS))}, and "
            f"{CHALLENGE_PROTOCOL} with corrections after it, each behind a '+'"
        )
    if not corrections:
        return PROTOCOLS[base]
    return PROTOCOLS[base].replaced(corrections=frozenset(corrections))


def protocol_name(settings: EvaluationSettings) -> str:
    """Return the name of settings in `PROTOCOLS`, or "own settings"."""
    return next((name for name, known in PROTOCOLS.items() if known == settings), "own settings")


def challenge_protocol_name(corrections: frozenset[Correction]) -> str:
    """Return the name by which `protocol` finds the challenge's scoring with corrections."""
    if corrections == frozenset(Correction):
        return CORRECTED_PROTOCOL
    return "+".join([CHALLENGE_PROTOCOL, *(c.value for c in Correction if c in corrections)])
