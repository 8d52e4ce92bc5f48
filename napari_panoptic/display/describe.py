"""One object in words: for the hover, the selection card and screen readers alike."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

from napari_panoptic.common.text import THIN_SPACE, visible
from napari_panoptic.display import styles
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Cause, Side, Status
from napari_panoptic.values.windowed_labels import TiledLabels


@dataclass(frozen=True)
class ObjectFacts:
    """What is known about one object, undefined figures as NaN."""

    #: Its side.
    side: Side
    #: "reference", or the team's name.
    side_name: str
    #: Its id and its class.
    id: int
    class_name: str
    #: Its status and cause; None if it was not evaluated.
    status: Status | None = None
    cause: Cause = Cause.NONE
    #: The matched object on the other side, or None.
    partner_id: int | None = None
    partner_class: str | None = None
    partner_row: int | None = None
    #: IoU with the partner; without one the best IoU with any object.
    iou: float = float("nan")
    #: Distance between the outlines.
    hausdorff_px: float = float("nan")
    hausdorff_um: float = float("nan")
    #: Area that counts.
    area_px: int | None = None
    area_um2: float = float("nan")
    #: The whole area, where an ambiguous area is cut away.
    uncut_px: int | None = None
    uncut_um2: float = float("nan")
    #: Centroid of that area, or None.
    centroid_yx_px: tuple[float, float] | None = None
    #: How sure the model is of it.
    score: float = float("nan")

    @property
    def title(self) -> str:
        """Name the object: side, id and class."""
        return f"{self.side_name} {self.id} · {self.class_name}"

    @property
    def verdict(self) -> str:
        """Describe its status and cause."""
        if self.status is None:
            return "not evaluated"
        words = styles.STATUS_WORDS[self.status]
        if self.status is Status.MISCLASSIFIED and self.partner_class:
            across = "predicted" if self.side is Side.REFERENCE else "annotated"
            return f"{words}: {across} as {self.partner_class}"
        return (
            f"{words}: {styles.CAUSE_WORDS[self.cause]}" if self.cause is not Cause.NONE else words
        )

    @property
    def explanation(self) -> str:
        """Return one sentence that explains status and cause."""
        if self.status is None:
            return "There is nothing to compare it with."
        return styles.CAUSE_MEANINGS[self.cause] or styles.STATUS_MEANINGS[self.status]

    def figures(self) -> list[tuple[str, str]]:
        """List names and values of its figures, for people; those of a pair only of pairs."""
        if self.status is None:
            return []
        if self.partner_id is None:
            rows = [("Best IoU", styles.ratio_text(self.iou))]
        else:
            rows = [
                ("Partner", f"{self.partner_id} · {self.partner_class}"),
                ("IoU", styles.ratio_text(self.iou)),
                ("HD", self.distance),
            ]
        for name, area_px, _ in self._areas:
            rows.append((name, _area_text(area_px)))
        return rows

    @property
    def distance(self) -> str:
        """Return the Hausdorff distance in px, and in µm if the pixel size is known."""
        text = styles.length_text(self.hausdorff_px)
        if math.isnan(self.hausdorff_um):
            return text
        return f"{text} ({styles.length_text(self.hausdorff_um, 'µm')})"

    def details(self) -> list[tuple[str, str]]:
        """List names and values of everything that is known about it, for its card."""
        rows = [("Id", str(self.id)), ("Class", self.class_name)]
        if self.partner_id is not None:
            rows.append(("Partner class", str(self.partner_class)))
        if self.status is None:
            return rows
        rows.append(("Best IoU" if self.partner_id is None else "IoU", styles.ratio_text(self.iou)))
        if self.partner_id is not None:
            rows.append(("Hausdorff", self.distance))
        for name, area_px, area_um2 in self._areas:
            rows.append((name, _area_text(area_px, area_um2)))
        if self.centroid_yx_px is not None:
            y, x = map(styles.decimal_text, self.centroid_yx_px)
            rows.append(("Centroid", f"y {y}, x {x}{THIN_SPACE}px"))
        if not math.isnan(self.score):
            rows.append(("Score", styles.ratio_text(self.score)))
        return rows

    @property
    def _areas(self) -> list[tuple[str, int, float]]:
        """List names and values of the area that counts, and of the whole one if it is cut."""
        areas = [
            ("Area", self.area_px, self.area_um2),
            ("Uncut area", self.uncut_px, self.uncut_um2),
        ]
        return [(name, px, um2) for name, px, um2 in areas if px is not None]


def _area_text(area_px: int, area_um2: float = math.nan) -> str:
    text = f"{styles.count_text(area_px)}{THIN_SPACE}px"
    return text if math.isnan(area_um2) else f"{text} ({styles.length_text(area_um2, 'µm²')})"


def object_facts(
    labels: LabelImage | TiledLabels,
    outcomes: Outcomes | None,
    side: Side,
    row: int,
    *,
    side_name: str,
    whole_px: int | None = None,
) -> ObjectFacts:
    """Collect what is known about one object.

    Parameters
    ----------
    labels
        The label image of its side, or what is known of that of a slide.
    outcomes
        The outcomes of the objects, or None.
    side, row
        Which object: its row in the outcomes, or among the labels without.
    side_name
        What to call its side.
    whole_px
        Its area before an ambiguous area is cut away, if known.
    """
    names = labels.class_names
    if outcomes is None:
        class_name = names[labels.class_index[row] - 1]
        return ObjectFacts(side, side_name, int(labels.ids[row]), class_name)
    own, other = outcomes.side(side), outcomes.other(side)
    class_name = names[own.class_index[row] - 1]
    partner = int(own.partner[row])
    matched = partner != NO_PARTNER
    distance, area = float(own.hausdorff_px[row]), int(own.area_px[row])
    um_per_px = math.nan if outcomes.mpp is None else outcomes.mpp
    y, x = own.centroid_yx_px[row].tolist()
    return ObjectFacts(
        side=side,
        side_name=side_name,
        id=int(own.ids[row]),
        class_name=class_name,
        status=STATUSES[own.status[row]],
        cause=CAUSES[own.cause[row]],
        partner_id=int(other.ids[partner]) if matched else None,
        partner_class=names[other.class_index[partner] - 1] if matched else None,
        partner_row=partner if matched else None,
        iou=float(own.iou[row]),
        hausdorff_px=distance,
        hausdorff_um=distance * um_per_px,
        area_px=area,
        area_um2=area * um_per_px**2,
        uncut_px=(uncut := None if whole_px == area else whole_px),
        uncut_um2=math.nan if uncut is None else uncut * um_per_px**2,
        centroid_yx_px=(y, x),
        score=float(own.score[row]),
    )


def hover_html(facts: ObjectFacts) -> str:
    """Write the facts as rich text for a tooltip."""
    head = f"<b>{html.escape(facts.title)}</b><br>{_chip(facts.status)}{html.escape(facts.verdict)}"
    rows = "".join(
        f"<tr><td>{html.escape(name)}&nbsp;&nbsp;</td><td>{html.escape(value)}</td></tr>"
        for name, value in facts.figures()
    )
    table = f"<table cellspacing='0'>{rows}</table>" if rows else ""
    return visible(f"<div style='white-space:pre'>{head}</div>{table}")


def _chip(status: Status | None) -> str:
    if status is None:
        return ""
    colour = styles.hex_colour(styles.STATUS_COLOURS[status])
    return f"<span style='color:{colour}'>■</span> "


def facts_of(session: Session, team: str | None, side: Side, row: int) -> ObjectFacts | None:
    """Collect what is known about an object of the region that is shown.

    Parameters
    ----------
    session
        The live state.
    team
        Whose object it is; the current team where None.
    side, row
        Which object.

    Returns
    -------
    ObjectFacts or None
        None if there is no such object.
    """
    snapshot = session.snapshot
    if snapshot is None:
        return None
    team = team or session.team or ""
    evaluation = snapshot.result(team)
    labels = snapshot.labels(side, team) if evaluation is None else evaluation.pair.side(side)
    if labels is None or row >= len(labels):
        return None
    return object_facts(
        labels,
        None if evaluation is None else evaluation.outcomes,
        side,
        row,
        side_name="reference" if side is Side.REFERENCE else team,
        whole_px=None if evaluation is None else int(evaluation.table.side(side).area[row]),
    )
