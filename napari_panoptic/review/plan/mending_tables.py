"""What mending would change, as a table and in words."""

from __future__ import annotations

import math
from typing import Any

from napari_panoptic.common.text import counted
from napari_panoptic.review.plan.after_mending import AfterMending, MendedFigure
from napari_panoptic.review.plan.corrected import ALL, Quantity
from napari_panoptic.tables.columns import TableSpec, bounds, name_column, number, whole, words

ESTIMATES = TableSpec(
    "estimates.csv",
    "team, figure and class (`all`: over all classes)",
    [
        words("quantity", about="precision, recall, f1 or pq"),
        name_column("team"),
        name_column("class"),
        number("as_annotated", about="pooled over the cohort"),
        number("after", about="after mending, estimated"),
        number("change"),
        bounds("low", "high", "change (95 %)", about="of the change"),
        whole("items", about="reviewed objects whose mending changes the figure"),
    ],
    "What mending the whole annotation as reviewed would change, for every team.",
)


def sentences(found: AfterMending) -> list[str]:
    """Describe what mending changes in the PQ of every team, and what that is based on."""
    overall = [r for r in found.rows if (r.quantity, r.class_name) == (Quantity.PQ, ALL)]
    described = [
        *(_sentence(row) for row in overall),
        f"This is estimated from {found.decided} of {found.objects} objects of {found.team} in the "
        f"plan; mending changes figures for {found.changing} of them.",
    ]
    if found.in_tiles:
        described.append(
            f"Nuclei without an outline that were counted in tiles ({found.in_tiles}) are not in "
            f"these figures: they are to be drawn."
        )
    return described


def _sentence(row: MendedFigure) -> str:
    if math.isnan(row.change):
        return f"What mending changes in the PQ of {row.team} cannot be estimated yet."
    return (
        f"Mending the whole annotation as reviewed would change the PQ of {row.team}, pooled over "
        f"the cohort, from {row.as_annotated:.3f} to {row.after:.3f}: by {row.change:+z.3f} (95 % "
        f"interval: {row.low:+z.3f} to {row.high:+z.3f}; {counted(row.items, 'item')})."
    )


def figure_records(found: AfterMending) -> list[dict[str, Any]]:
    """Return the rows of `ESTIMATES`."""
    return [
        {
            "quantity": str(row.quantity),
            "team": row.team,
            "class": row.class_name,
            "as_annotated": row.as_annotated,
            "after": row.after,
            "change": row.change,
            "low": row.low,
            "high": row.high,
            "items": row.items,
        }
        for row in found.rows
    ]


def mending_record(found: AfterMending) -> dict[str, Any]:
    """Return the estimates and what they are based on, for JSON."""
    return {
        "team": found.team,
        "objects": found.objects,
        "decided": found.decided,
        "cannot_tell": found.unclear,
        "changing": found.changing,
        "nuclei_in_tiles": found.in_tiles,
        "estimates": figure_records(found),
    }
