"""The failure groups of a region and team, and the columns of their lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display import styles
from napari_panoptic.display.glossary import GROUP_MEANINGS
from napari_panoptic.display.styles import count_text, signed_text
from napari_panoptic.explain.failure_groups import (
    FailureGroup,
    counts_if_merged,
    failure_groups,
)
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import Metrics, unit_metrics
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import STATUSES
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.kit.widgets import share_text
from napari_panoptic.viewer.panels.seen_part import Material


@dataclass(frozen=True, eq=False)
class Grouped:
    """What is shown: the groups of a region and team."""

    snapshot: RegionSnapshot
    team: str
    evaluation: Evaluation
    groups: tuple[FailureGroup, ...]
    if_all_merged: Metrics


def grouped(known: Material, team: str) -> Grouped:
    """Find the groups; for workers."""
    evaluation = known.complete()[team]
    groups = failure_groups(evaluation)
    merged = counts_if_merged(evaluation, groups) if groups else evaluation.counts
    return Grouped(known.snapshot, team, evaluation, groups, unit_metrics(merged))


REFERENCE_COLUMNS = (0, 2)


def group_columns(grouped: Grouped) -> list[Column]:
    """Return what is shown of the groups."""
    groups = grouped.groups
    sizes = [(len(g.reference_rows), len(g.prediction_rows)) for g in groups]
    return [
        Column(
            "Kind",
            "What went wrong.",
            np.array([str(group.kind) for group in groups]),
            tooltip=lambda row: GROUP_MEANINGS[groups[row].kind],
            width=74,
            is_text=True,
            stretch=True,
        ),
        Column(
            "annotated",
            "How many annotated objects take part.",
            np.array([size[0] for size in sizes]),
            width=78,
        ),
        Column(
            "predicted",
            "How many predictions take part.",
            np.array([size[1] for size in sizes]),
            width=78,
        ),
        Column(
            "largest share",
            "The largest share of an annotated object that one prediction of the group covers.",
            np.array([group.share_of_reference.max(initial=0.0) for group in groups]),
            text=share_text,
            width=100,
        ),
        Column(
            "ΔPQ if one",
            "Change of the region's PQ if the group were one: its parts joined, a merger cut "
            "along the annotation. With a minus sign the joined object would be the worse one.",
            np.array([group.pq_lost for group in groups]),
            text=lambda value: signed_text(float(value)),
            width=78,
        ),
    ]


def member_columns(evaluation: Evaluation, group: FailureGroup) -> list[Column]:
    """Return what is shown of the pairs of objects in a group."""
    outcomes = evaluation.outcomes
    columns = []
    for title, side, rows in (
        ("annotated", outcomes.reference, group.pair_reference),
        ("predicted", outcomes.prediction, group.pair_prediction),
    ):
        codes = side.status[rows]
        classes = [outcomes.class_names[k - 1] for k in side.class_index[rows]]
        columns.append(
            Column(
                title,
                f"Id of the {title} object; click to select it.",
                side.ids[rows],
                tooltip=partial(_member_tooltip, codes, classes),
                colour=partial(_colour, codes),
                width=92,
                stretch=True,
            )
        )
    shares: Sequence[tuple[str, str, NDArray[np.float64]]] = (
        ("of annotated", "Share of the annotated object's area.", group.share_of_reference),
        ("of predicted", "Share of the prediction's area.", group.share_of_prediction),
    )
    columns += [
        Column(title, meaning, values, text=share_text, width=84)
        for title, meaning, values in shares
    ]
    columns.append(
        Column(
            "px",
            "Pixels that the two share, after the ambiguous policy.",
            group.intersection_px,
            text=lambda value: count_text(int(value)),
        )
    )
    return columns


def _member_tooltip(codes: NDArray[np.int8], classes: list[str], row: int) -> str:
    return f"{classes[row]}: {styles.STATUS_MEANINGS[STATUSES[codes[row]]]}"


def _colour(codes: NDArray[np.int8], row: int) -> Rgb:
    return styles.STATUS_COLOURS[STATUSES[codes[row]]]
