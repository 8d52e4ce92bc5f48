"""Features that files give: the class, and the score of a prediction."""

from __future__ import annotations

from napari_panoptic.features.feature import Feature, Need
from napari_panoptic.values.vocabulary import Side

FEATURES = (
    Feature(
        key="class",
        header="class",
        source="annotated, or predicted for predictions",
        measure=lambda side: side.labels.class_names_of_objects(),
        needs=Need.FILES,
    ),
    Feature(
        key="score",
        header="score",
        source="of a prediction, as its file has it",
        measure=lambda side: side.labels.scores,
        needs=Need.FILES,
        sides=(Side.PREDICTION,),
        is_usual=False,
    ),
)
