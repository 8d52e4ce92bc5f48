"""Scores and ranks of one cohort under several protocols, and the causes of differences.

Table 4 of Foucart, Debeir and Decaestecker (2021) has such columns: the
challenge's scoring as it was run, with each of its errors corrected alone, and
with all of them corrected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.challenge import (
    ClassScore,
    challenge_counts,
    team_score,
)
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.statistics.means import quotient
from napari_panoptic.statistics.ranks import competition_ranks
from napari_panoptic.values.settings import (
    DEFAULT_PROTOCOL,
    Correction,
    challenge_protocol_name,
)


@dataclass(frozen=True, eq=False)
class ChallengeRegion:
    """One team in one region, scored class by class as the challenge does."""

    #: Names of the patient and the region.
    patient: str
    region: str
    #: Class -> its score, from which any version of the scoring is computed.
    scores: Mapping[str, ClassScore]


@dataclass(frozen=True, eq=False)
class ProtocolTable:
    """Teams in rows, protocols in columns."""

    #: T names and P names.
    teams: tuple[str, ...]
    protocols: tuple[str, ...]
    #: float64 (T, P): the protocol's one number; NaN where undefined.
    scores: NDArray[np.float64]
    #: int64 (T, P): 1 for the best; equal scores share a rank, and the ranks after it are left out.
    #: 0 without a score.
    ranks: NDArray[np.int64]
    #: int64 (T, P): the regions or patients that the score is a mean over.
    n_units: NDArray[np.int64]


class Reason(StrEnum):
    """Why two versions of the challenge's scoring differ in a region."""

    ID_UNLIKE = "matched, but counted as a false positive: no matched nucleus has its id"
    ID_ALIKE = "matches nothing, but not counted: a matched nucleus has its id"
    ABSENT_CLASS = "predicted where the annotation has no nucleus of the class: not counted"
    WEIGHT = "a region that counts as much as any other, instead of by its nuclei"


@dataclass(frozen=True)
class ProtocolDifference:
    """What one correction changes in one region."""

    #: The correction that one version has and the other has not.
    correction: Correction
    #: The reason.
    reason: Reason
    #: The place; the class is empty for a whole region.
    region: str
    class_name: str
    #: Ids of the predicted objects concerned; empty for a whole region.
    ids: tuple[int, ...]
    #: For a whole region: its share in the team's score, counted by region and by its nuclei among
    #: those of its patient. NaN otherwise.
    share: tuple[float, float] = (float("nan"), float("nan"))


def challenge_versions() -> tuple[frozenset[Correction], ...]:
    """List every choice of corrections: none, each alone, each two, all."""
    known = tuple(Correction)
    return tuple(
        frozenset(chosen) for n in range(len(known) + 1) for chosen in combinations(known, n)
    )


def protocol_table(
    regions: Mapping[str, Sequence[ChallengeRegion]],
    disentangled: Mapping[str, tuple[float, int]] | None = None,
    *,
    versions: Sequence[frozenset[Correction]] | None = None,
) -> ProtocolTable:
    """Score teams under several versions of the challenge's scoring.

    Parameters
    ----------
    regions
        Team -> its evaluated regions.
    disentangled
        Team -> mean PQ over patients and their number, for a last column.
    versions
        The corrections of each version; every choice if None.
    """
    versions = challenge_versions() if versions is None else versions
    columns: list[list[tuple[float, int]]] = []
    for corrections in versions:
        column = []
        for own in regions.values():
            counts = [(r.patient, challenge_counts(r.scores, corrections)) for r in own]
            score = team_score(counts, corrections)
            column.append((score, _units(counts, corrections)))
        columns.append(column)
    names = [challenge_protocol_name(corrections) for corrections in versions]
    if disentangled is not None:
        names.append(DEFAULT_PROTOCOL)
        columns.append([disentangled.get(team, (float("nan"), 0)) for team in regions])
    shape = (len(columns), len(regions))
    scores = np.array([[s for s, _ in column] for column in columns], np.float64).reshape(shape).T
    n_units = np.array([[n for _, n in column] for column in columns], np.int64).reshape(shape).T
    return ProtocolTable(tuple(regions), tuple(names), scores, competition_ranks(scores), n_units)


def differences(
    regions: Sequence[ChallengeRegion],
    one: frozenset[Correction],
    other: frozenset[Correction],
) -> list[ProtocolDifference]:
    """List the differences between two versions of the challenge's scoring for a team.

    Parameters
    ----------
    regions
        The team's evaluated regions, with the ids of their objects.
    one, other
        The corrections of the two versions; what both have is no difference.

    Returns
    -------
    list of ProtocolDifference
        In the order of the regions; those of whole regions come last, the
        greatest shift of weight first.
    """
    changed = one ^ other
    both = one & other
    found: list[ProtocolDifference] = []
    for region in regions:
        for name, score in region.scores.items():
            found += _of_class(region.region, name, score, changed)
    if Correction.PER_PATIENT in changed:
        found += _of_weights(regions, both)
    return found


def _of_class(
    region: str,
    name: str,
    score: ClassScore,
    changed: frozenset[Correction],
) -> list[ProtocolDifference]:
    found: list[ProtocolDifference] = []
    # Without a reference object no id is that of one: the two rules then count the same.
    if Correction.MATCHING in changed:
        for reason, ids in (
            (Reason.ID_UNLIKE, score.only_as_run),
            (Reason.ID_ALIKE, score.only_corrected),
        ):
            if ids:
                found.append(ProtocolDifference(Correction.MATCHING, reason, region, name, ids))
    if Correction.ABSENT_CLASS_FP in changed and not score.in_reference and score.in_prediction:
        found.append(
            ProtocolDifference(
                Correction.ABSENT_CLASS_FP,
                Reason.ABSENT_CLASS,
                region,
                name,
                score.unmatched,
            )
        )
    return found


def _of_weights(
    regions: Sequence[ChallengeRegion], corrections: frozenset[Correction]
) -> list[ProtocolDifference]:
    """Compare a region's weight among regions with that of its objects among the patient's."""
    counts = [challenge_counts(region.scores, corrections) for region in regions]
    weights = np.array([_weight(own) for own in counts])
    # A region whose classes have nothing left is a unit all the same, with a PQ of 0.
    defined = np.array([own.present.any() for own in counts], bool)
    patients = [region.patient for region in regions]
    n_regions = int(defined.sum())
    n_patients = len({p for p, known in zip(patients, defined, strict=True) if known})
    found = []
    for place in np.flatnonzero(defined).tolist():
        same = np.array([patient == patients[place] for patient in patients]) & defined
        total = weights[same].sum()
        within = weights[place] / total if total else 1 / same.sum()
        found.append(
            ProtocolDifference(
                Correction.PER_PATIENT,
                Reason.WEIGHT,
                regions[place].region,
                "",
                (),
                (1.0 / n_regions, float(within / n_patients)),
            )
        )
    return sorted(found, key=lambda d: -abs(d.share[0] - d.share[1]))


def _weight(counts: Counts) -> float:
    """Return TP + FP/2 + FN/2 over all classes: the weight of a region in its patient's PQ."""
    return float((counts.tp + counts.fp / 2 + counts.fn / 2).sum())


def _units(counts: Sequence[tuple[str, Counts]], corrections: frozenset[Correction]) -> int:
    if Correction.PER_PATIENT in corrections:
        return len({patient for patient, own in counts if own.present.any()})
    return sum(not np.isnan(unit_metrics(own).pq) for _, own in counts)


@dataclass(frozen=True)
class Alignment:
    """The challenge's score of the same masks with other ids."""

    #: The id of the first predicted object; the others follow it.
    first_id: int
    #: PQ by the challenge's own scoring.
    pq_as_run: float
    #: PQ with the matching corrected.
    pq: float


def alignments(score: ClassScore) -> list[Alignment]:
    """Score a class with other prediction ids, from below the annotation's ids to above.

    The label-alignment experiment, table 1 of Foucart et al. (2021): the masks
    do not change, and neither should any figure.

    Parameters
    ----------
    score
        The class in one region.

    Returns
    -------
    list of Alignment
        By ascending first id; the first and the last share no id with the
        annotation. Empty if nothing was annotated or predicted.
    """
    n = score.tp + score.fp
    if not n or not score.reference_ids:
        return []
    true = _pq(score.iou_sum, score.tp, score.fp, score.fn)
    matched = np.array(score.matched_ids, np.int64)
    found = []
    for first in range(min(score.reference_ids) - n, max(score.reference_ids) + 2):
        alike = int(((matched >= first) & (matched < first + n)).sum())
        as_run = _pq(score.iou_sum, score.tp, n - alike, score.fn)
        found.append(Alignment(first, as_run, true))
    return found


def _pq(iou_sum: float, tp: int, fp: int, fn: int) -> float:
    return quotient(iou_sum, tp + fp / 2 + fn / 2)
