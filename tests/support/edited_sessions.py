"""Sessions of the small cohort under edit, and what a full recount of what they show yields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic import evaluate_pair
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import RegionSnapshot, load_region
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.small_cohort import write_cohort

Pixels = tuple[NDArray[np.int64], NDArray[np.int64]]


def session_in(folder: Path) -> Session:
    """Open a session on the first region of a small cohort."""
    session = Session(open_cohort(write_cohort(folder)))
    show(session)
    return session


def show(session: Session, **changes: Any) -> None:
    """Request a region or settings, load them, and deliver the answer."""
    request = session.request(**changes)
    snapshot = load_region(
        session.cohort,
        request.region,
        request.settings,
        source=request.source,
        previous=session.loaded,
    )
    assert session.deliver(request, snapshot)


def restore(session: Session, restoration: str) -> None:
    """Request another restoration of the colour-coded masks."""
    show(session, settings=session.settings.replaced(restoration=restoration))


def square(y: int, x: int, size: int = 6) -> Pixels:
    """Return the pixels of a square, row by row."""
    yy, xx = np.mgrid[y : y + size, x : x + size]
    return yy.ravel(), xx.ravel()


def shown_labels(session: Session, side: Side) -> LabelImage:
    """Return what the layer of a side shows."""
    assert session.snapshot is not None
    return labels_of(session.snapshot, side, session.team)


def labels_on_disk(session: Session, side: Side) -> LabelImage:
    """Return what the files say of a side under the current restoration."""
    assert session.loaded is not None
    return labels_of(session.loaded, side, session.team)


def labels_of(snapshot: RegionSnapshot, side: Side, team: str | None) -> LabelImage:
    """Return the objects of a side of a snapshot."""
    labels = snapshot.reference if side is Side.REFERENCE else snapshot.predictions[str(team)]
    assert labels is not None
    return labels


def classes_of(labels: LabelImage) -> dict[int, str]:
    """Return the class of every object that has a pixel, by id."""
    present = set(np.unique(labels.id_image()).tolist()) - {0}
    names = zip(labels.ids.tolist(), labels.class_names_of_objects().tolist(), strict=True)
    return {id_: name for id_, name in names if id_ in present}


def same_objects(one: LabelImage, other: LabelImage) -> bool:
    """Return whether two label images have the same pixels and classes."""
    same_pixels = np.array_equal(one.id_image(), other.id_image())
    return same_pixels and classes_of(one) == classes_of(other)


def recounted(session: Session) -> Evaluation:
    """Evaluate the shown arrays from scratch."""
    snapshot = session.snapshot
    assert snapshot is not None
    reference, prediction = (shown_labels(session, side) for side in Side)
    return evaluate_pair(
        reference.id_image(),
        prediction.id_image(),
        reference_classes=classes_of(reference),
        prediction_classes=classes_of(prediction),
        ambiguous=snapshot.ambiguous,
        settings=session.settings,
        mpp=snapshot.mpp,
        class_names=reference.class_names,
    )


def check(session: Session) -> None:
    """Check that figures, objects to save and edit marks agree with what is shown."""
    now, expected = session.evaluation, recounted(session)
    assert now is not None
    assert now.objects.equals(expected.objects)
    assert now.by_class.equals(expected.by_class)
    assert now.confusion.equals(expected.confusion)
    for side in Side:
        shown, on_disk = shown_labels(session, side), labels_on_disk(session, side)
        assert same_objects(session.edited_labels(side), shown)
        assert session.is_edited(side) == (not same_objects(shown, on_disk))
