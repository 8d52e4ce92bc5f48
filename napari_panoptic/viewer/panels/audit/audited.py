"""Two ambiguous policies compared on a region and team, and the columns of their lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display import styles
from napari_panoptic.display.glossary import SETTING_WORDS
from napari_panoptic.display.styles import count_text, signed_text
from napari_panoptic.explain.policy_audit import PolicyAudit, audit_policies, spill_table
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.kit.widgets import share_text
from napari_panoptic.viewer.panels.seen_part import Material

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Audited:
    """What is shown: the policies compared, and the spill under the one that is set."""

    snapshot: RegionSnapshot
    team: str
    evaluation: Evaluation
    audit: PolicyAudit
    objects: pd.DataFrame
    spill: pd.DataFrame
    rows: NDArray[np.int64]  # of its side, for each row of `objects`

    @property
    def has_area(self) -> bool:
        """Whether there is an ambiguous area at all."""
        area = self.evaluation.pair.ambiguous
        return area is not None and bool(area.any())


def audited(known: Material, team: str, first: str, second: str) -> Audited:
    """Compare two policies; for workers."""
    evaluation = known.complete()[team]
    audit = audit_policies(evaluation, first, second)
    outcomes = evaluation.outcomes
    rows = np.concatenate([np.arange(len(outcomes.side(side))) for side in Side])
    return Audited(
        known.snapshot, team, evaluation, audit, audit.objects, spill_table(evaluation), rows
    )


_SIDE_WORDS = {str(Side.REFERENCE): "ref.", str(Side.PREDICTION): "pred."}


def object_columns(
    part: pd.DataFrame, first: AmbiguousPolicy, second: AmbiguousPolicy
) -> list[Column]:
    """Return the columns of objects under two policies; tooltips of a row state the reasons."""
    words = SETTING_WORDS[first], SETTING_WORDS[second]
    reasons = [
        "; ".join(
            f"{policy}: {reason}" for policy, reason in zip(words, pair, strict=True) if reason
        )
        or "its partner changes"
        for pair in zip(part["reason_first"], part["reason_second"], strict=True)
    ]
    columns = [
        Column(
            "Side",
            "Annotation or prediction.",
            _words(_SIDE_WORDS[side] for side in part["side"]),
            tooltip=reasons.__getitem__,
            width=40,
            is_text=True,
        ),
        Column(
            "Id",
            "Id of the object.",
            part["id"].to_numpy(),
            tooltip=reasons.__getitem__,
            width=44,
        ),
    ]
    for policy, which in ((first, "first"), (second, "second")):
        statuses = part[f"status_{which}"].tolist()
        causes = part[f"cause_{which}"].tolist()
        columns.append(
            Column(
                SETTING_WORDS[policy],
                f"Its outcome under the policy “{SETTING_WORDS[policy]}” ({policy}).",
                _words(part[f"status_{which}"]),
                tooltip=partial(_tooltip, statuses, causes),
                colour=partial(_colour, statuses),
                is_text=True,
                stretch=True,
            )
        )
    columns += [
        Column(
            "ΔPQ",
            "Contribution to the difference in PQ, leave-one-out; partners that change together "
            "have one contribution between them.",
            part["pq_contribution"].to_numpy(float),
            text=lambda value: signed_text(float(value)),
            tooltip=reasons.__getitem__,
            width=58,
        ),
        Column(
            "inside",
            "Share of its pixels in the ambiguous area.",
            (part["ambiguous_px"] / part["area_px"]).to_numpy(float),
            text=share_text,
            tooltip=reasons.__getitem__,
            width=54,
        ),
    ]
    return columns


def spill_columns(spill: pd.DataFrame) -> list[Column]:
    """Return what is shown of predictions that leak out of the ambiguous area."""
    statuses, causes = spill["status"].tolist(), spill["cause"].tolist()
    return [
        Column("Id", "Id of the prediction.", spill["id"].to_numpy(), width=44),
        Column("Class", "Predicted class.", _words(spill["class"]), is_text=True, stretch=True),
        Column(
            "Status",
            "Its outcome under the current policy.",
            _words(spill["status"]),
            tooltip=partial(_tooltip, statuses, causes),
            colour=partial(_colour, statuses),
            width=80,
            is_text=True,
        ),
        Column(
            "inside",
            "Share of its pixels in the ambiguous area.",
            spill["ambiguous_share"].to_numpy(float),
            text=share_text,
            width=56,
        ),
        Column(
            "outside",
            "Pixels that leak out of the ambiguous area.",
            spill["remainder_px"].to_numpy(),
            text=lambda value: count_text(int(value)),
            width=74,
        ),
        Column(
            "spill",
            "It is an FP only because it leaks: most of it is in the ambiguous area.",
            np.where(spill["fp_by_spill"].to_numpy(bool), "yes", ""),
            width=74,
            is_text=True,
        ),
    ]


def _words(values: Iterable[str]) -> NDArray[np.str_]:
    words: NDArray[np.str_] = np.array(list(values), dtype=np.str_)
    return words


def _tooltip(statuses: list[str], causes: list[str], row: int) -> str:
    words = {str(key): meaning for key, meaning in styles.CAUSE_MEANINGS.items()}
    return words.get(causes[row]) or styles.STATUS_MEANINGS[Status(statuses[row])]


def _colour(statuses: list[str], row: int) -> Rgb:
    return styles.STATUS_COLOURS[Status(statuses[row])]
