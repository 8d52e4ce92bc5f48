"""The columns of the list of suspects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from napari_panoptic.nuclei.display.styles import ratio_text
from napari_panoptic.nuclei.explain.suspects import Suspect, SuspectKind
from napari_panoptic.viewer.kit.array_table import Column

KIND_MEANINGS: dict[SuspectKind, str] = {
    SuspectKind.OVERLOOKED: "The annotation has no object where two or more teams agree on one.",
    SuspectKind.BADLY_LOCATED: "The annotation has another outline than teams.",
    SuspectKind.WRONG_CLASS: "The annotation has another class than teams.",
    SuspectKind.SPLIT: "The annotation has several objects where teams agree on one.",
    SuspectKind.MERGED: "The annotation has one object where teams agree on several.",
}


def suspect_columns(suspects: Sequence[Suspect]) -> list[Column]:
    """Return what is shown of suspects."""
    words = [
        ("kind", "What may be wrong.", [str(s.kind) for s in suspects], 92),
        ("class", "Of the object → the class that teams predict.", _classes(suspects), 92),
        ("region", "Click to go to the object.", [s.region for s in suspects], 150),
        ("patient", "The patient.", [s.patient for s in suspects], 110),
        ("teams", "Which agree.", [", ".join(s.teams) for s in suspects], 120),
    ]
    score = Column(
        "score",
        "From 0 to 1; higher is more suspect. It orders the list and is no probability.",
        np.array([suspect.score for suspect in suspects], np.float64),
        text=ratio_text,
        tooltip=lambda row: suspects[row].sentence,
        width=52,
    )
    return [
        score,
        *(
            Column(
                title,
                meaning,
                np.array(values, str),
                tooltip=lambda row: suspects[row].sentence,
                width=width,
                is_text=True,
            )
            for title, meaning, values, width in words
        ),
    ]


def _classes(suspects: Sequence[Suspect]) -> list[str]:
    return [" → ".join(filter(None, (s.class_name, s.suggested_class))) for s in suspects]
