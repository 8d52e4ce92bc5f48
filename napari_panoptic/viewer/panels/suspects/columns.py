"""The columns of the list of suspects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from napari_panoptic.nuclei.display.styles import ratio_text
from napari_panoptic.nuclei.explain.suspects import Suspect
from napari_panoptic.viewer.kit.array_table import Column


def suspect_columns(suspects: Sequence[Suspect]) -> list[Column]:
    """Return what is shown of suspects."""
    words = [
        ("kind", "What may be wrong.", [str(s.kind) for s in suspects]),
        ("class", "Class in the annotation → class that teams predict.", _classes(suspects)),
        ("region", "Click to go to the object.", [s.region for s in suspects]),
        ("patient", "The patient.", [s.patient for s in suspects]),
        ("teams", "Which agree.", [", ".join(s.teams) for s in suspects]),
    ]

    def tooltip(row: int) -> str:
        own = suspects[row]
        return f"{own.region}, {own.side} {own.id}: {own.sentence}"

    score = Column(
        "score",
        "From 0 to 1; higher is more suspect. It orders the list and is no probability.",
        np.array([suspect.score for suspect in suspects], np.float64),
        text=ratio_text,
        tooltip=tooltip,
    )
    return [
        score,
        *(
            Column(
                title,
                meaning,
                np.array(values, str),
                tooltip=tooltip,
                is_text=True,
                stretch=title != "kind",
            )
            for title, meaning, values in words
        ),
    ]


def _classes(suspects: Sequence[Suspect]) -> list[str]:
    return [" → ".join(filter(None, (s.class_name, s.suggested_class))) for s in suspects]
