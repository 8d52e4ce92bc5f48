"""The line above the image: what is shown, and what was odd in its files."""

from __future__ import annotations

from collections.abc import Sequence

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted
from napari_panoptic.display.glossary import (
    NO_ANNOTATION,
    NO_ANNOTATION_MEANING,
    NO_IMAGE_MEANING,
    SETTING_WORDS,
)
from napari_panoptic.display.listed import ListedObjects
from napari_panoptic.display.styles import count_text
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.values.settings import EvaluationSettings, Matching, Overlaps
from napari_panoptic.values.vocabulary import Side

LOADING = "Loading the region. Its metrics and objects follow in a moment."
"""Shown in place of what is about a region that is being loaded or evaluated."""
STANDARD = "standard rules"
"""Stands for the rules of the usual settings."""
NO_TEAM = "No team is chosen. Choose one above the image."
NO_OBJECTS = "This region has no objects. Choose another region."

Edited = Sequence[tuple[Side, str | None]]
"""Sides, and their teams, that are working copies."""


def title_parts(session: Session, edited: Edited, listed: ListedObjects | None) -> list[str]:
    """Return how the region and team are shown and evaluated, the most important first.

    Parameters
    ----------
    session
        The live state.
    edited
        What was edited in the region.
    listed
        The objects that stand out on the image; None if all look alike.
    """
    snapshot = session.snapshot
    if snapshot is None:
        return [session.cohort.name]
    settings = snapshot.settings
    parts = []
    if session.team is None:
        parts.append("no team")
    if session.shown is None:
        parts.append(_why_not_shown(session, snapshot))
    if (Side.REFERENCE, None) in edited:
        parts.append("annotation edited")
    if (Side.PREDICTION, session.team) in edited:
        parts.append("prediction edited")
    if snapshot.region.image is not None and snapshot.image is None:
        parts.append("image unreadable")
    if session.threshold is not None:
        parts.append(threshold_text(session.n_below_threshold, session.threshold))
    is_usual = settings == session.protocol
    parts += [STANDARD] if is_usual else rules(settings, snapshot.mpp)
    if session.is_flattened:
        parts.append("overlaps flattened while edited")
    elif settings.overlaps is Overlaps.KEEP and session.evaluation is not None:
        parts.append(_overlaps_text(session, snapshot))
    if listed is not None:
        parts.append(f"other objects: {listed.others.short}")
    return parts


def why_no_figures(session: Session) -> str | None:
    """Return why the region and team have no figures; None if they have, or soon will.

    A slide has reasons of its own, such as being stopped.
    """
    snapshot = session.snapshot
    if snapshot is None or snapshot.is_slide or session.shown is not None:
        return None
    if session.team is None or session.team in snapshot.pending:
        return None
    if snapshot.region.reference is None:
        return "This region has no annotation: it can be viewed but not evaluated."
    if snapshot.reference is None:
        return "The annotation of this region cannot be read. The notes (⚠) say why."
    is_unreadable = any(
        finding.kind is FindingKind.UNREADABLE and finding.team == session.team
        for finding in snapshot.findings
    )
    if is_unreadable:
        return "The prediction of this team cannot be read here. The notes (⚠) say why."
    return "This team has no prediction for this region. Choose another team or region."


def why_nothing(session: Session) -> str:
    """Return why a panel has nothing to show of the region and team, as far as is known now."""
    snapshot = session.snapshot
    if snapshot is None or session.team in snapshot.pending:
        return LOADING
    if session.team is None:
        return NO_TEAM
    return why_no_figures(session) or NO_OBJECTS


def threshold_text(count: int, threshold: float) -> str:
    """Describe how many objects are left out for their score.

    The threshold is rounded to four digits: a point on a curve can have many more.
    """
    left_out = f"without {counted(count, 'object', write=count_text)}" if count else "no objects"
    return f"{left_out} below {threshold:.4g}"


def region_notes(session: Session, snapshot: RegionSnapshot) -> list[Finding]:
    """List what was odd in a region, and in the cohort's folder as a whole.

    Findings of other regions are shown with those regions.
    """
    notes = list(snapshot.findings)
    name = snapshot.region.name
    if snapshot.region.reference is None:
        notes.append(Finding(FindingKind.MISSING, NO_ANNOTATION_MEANING, region=name))
    if snapshot.region.image is None:
        notes.append(Finding(FindingKind.MISSING, NO_IMAGE_MEANING, region=name))
    return notes + [
        finding
        for finding in session.cohort.findings
        if finding.region is None
        # One with a path is about a folder, such as that of a team without predictions.
        and (finding.kind is not FindingKind.MISSING or finding.path is not None)
    ]


def rules(settings: EvaluationSettings, mpp: float | None = None) -> list[str]:
    """Return the rules of matching, of ambiguous areas and of uncertain borders in words."""
    policy = SETTING_WORDS[settings.ambiguous].lower()
    share, zone = settings.ambiguous_share, settings.zone_px
    um = "" if mpp is None else f" ({zone * mpp:.2g} µm)"
    return [
        _rule(settings),
        f"ambiguous areas {policy}" + ("" if share is None else f" (above {100 * share:g} %)"),
        *([f"{zone} px{um} along annotated borders left out"] if zone else []),
    ]


def _rule(settings: EvaluationSettings) -> str:
    if settings.matching is not Matching.STRICT_IOU:
        return str(settings.matching)
    rule = f"IoU > {settings.iou_threshold:g}"
    return rule + " (one to one enforced)" if settings.one_to_one_enforced else rule


def _why_not_shown(session: Session, snapshot: RegionSnapshot) -> str:
    """Return in two words why there are no figures of the region and team."""
    if session.team in snapshot.pending:
        return "being evaluated"
    return NO_ANNOTATION if snapshot.region.reference is None else "not evaluated"


def _overlaps_text(session: Session, snapshot: RegionSnapshot) -> str:
    """Describe how many objects share pixels; which they are is among the notes."""
    count = sum(
        finding.count
        for finding in snapshot.findings
        if finding.kind is FindingKind.OVERLAPPING
        and finding.object_ids
        and finding.team in (None, session.team)
    )
    return f"overlaps kept: {counted(count, 'object', write=count_text)}"
