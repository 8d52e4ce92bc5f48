"""Objects that tests judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.review.identity import Fingerprint, Subject, matched, object_key
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import ReviewRecord
from napari_panoptic.values.vocabulary import Side

CLASSES = ("Epithelial", "Lymphocyte")


def subject(
    number: int = 1,
    *,
    region: str = "R_1",
    team: str = "T",
    side: Side = Side.REFERENCE,
    class_name: str = "Lymphocyte",
    y: float | None = None,
    x: float = 10.0,
    area: int = 80,
) -> Subject:
    """Describe an object; each number stands for another place."""
    place = Fingerprint(class_name, 20.0 * number if y is None else y, x, area)
    return Subject(team=team, region=region, side=side, object_id=number, fingerprint=place)


def subjects_of(evaluation: Evaluation, side: Side, *, region: str, team: str) -> list[Subject]:
    """Describe all objects of one side of an evaluated pair, in row order."""
    of_reference = side is Side.REFERENCE
    labels = evaluation.pair.reference if of_reference else evaluation.pair.prediction
    table = evaluation.table.reference if of_reference else evaluation.table.prediction
    centroids = table.sum_yx / np.maximum(table.area, 1)[:, None]
    rows = zip(
        labels.ids.tolist(),
        labels.class_names_of_objects().tolist(),
        centroids.tolist(),
        table.area.tolist(),
        strict=True,
    )
    return [
        Subject(
            team=team,
            region=region,
            side=side,
            object_id=id_,
            fingerprint=Fingerprint(class_name, y, x, area),
        )
        for id_, class_name, (y, x), area in rows
    ]


def verdicts_on(store: ReviewStore, subjects: Sequence[Subject]) -> list[ReviewRecord | None]:
    """Give the reviewer's own verdict on each object, None where there is none."""
    own = store.verdicts()
    found = matched(map(object_key, subjects), map(object_key, own))
    return [None if number is None else own[number] for number in found]
