"""Verdicts and the agreement of reviewers as CSV, with the outcomes of the objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.judged import NO_VERDICT, VERDICTS, Judged, Object, Subjects
from napari_panoptic.review.verdicts import AgreementItem, ReviewerAgreement, ReviewRecord
from napari_panoptic.tables.columns import TableSpec, unshown
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Side

if TYPE_CHECKING:
    import pandas as pd

VERDICT_TABLE = TableSpec(
    "verdicts.csv",
    "verdict",
    [
        unshown("reviewer", "team", "region", "side", "object_id", "class"),
        unshown("verdict", "tag", "note", "given_at"),
        unshown("centroid_y_px", "centroid_x_px", "area_px", "role"),
        unshown(
            *("status", "cause", "partner_id", "partner_class", "iou"),
            about="empty without the object",
        ),
    ],
)
AGREEMENT_TABLE = TableSpec(
    "agreement.csv",
    "object that both judged",
    [
        unshown("team", "region", "side", "object_id", "class", "centroid_y_px", "centroid_x_px"),
        unshown("first_reviewer", "first_verdict", "second_reviewer", "second_verdict"),
        unshown("adjudicator", "adjudicated", "final"),
        unshown("first_note", "second_note", "adjudicator_note"),
        unshown("objects", "agreed", "kappa", "kappa_low", "kappa_high", about="same in all rows"),
    ],
)

Row = Mapping[str, object]


def outcome_row(evaluation: Evaluation, side: Side, row: int) -> dict[str, object]:
    """Return status, cause, partner and IoU of an object; its best IoU without a partner."""
    outcomes = evaluation.outcomes
    own, other = outcomes.side(side), outcomes.other(side)
    partner = int(own.partner[row])
    found: dict[str, object] = {
        "status": str(STATUSES[own.status[row]]),
        "cause": str(CAUSES[own.cause[row]]),
        "iou": float(own.iou[row]),
    }
    if partner != NO_PARTNER:
        found["partner_id"] = int(other.ids[partner])
        found["partner_class"] = outcomes.class_names[int(other.class_index[partner]) - 1]
    return found


def verdict_rows(
    records: Iterable[ReviewRecord], evaluation_of: Callable[[str, str], Evaluation | None]
) -> list[Row]:
    """Return a row per verdict, in the order of the verdicts.

    Parameters
    ----------
    records
        The verdicts.
    evaluation_of
        Return the evaluation of a region and team, None if there is none; each is asked
        for once.
    """
    records = list(records)
    by_pair: dict[tuple[str, str], list[ReviewRecord]] = defaultdict(list)
    for record in records:
        by_pair[record.region, record.team].append(record)
    outcomes: dict[int, dict[str, object]] = {}
    for (region, team), own in by_pair.items():
        evaluation = evaluation_of(region, team)
        if evaluation is not None:
            subjects = Subjects(evaluation, region=region, team=team)
            for record, (side, row) in _found(subjects, own):
                outcomes[id(record)] = outcome_row(evaluation, side, row)
    return [record.values() | outcomes.get(id(record), {}) for record in records]


def agreement_rows(found: ReviewerAgreement) -> list[Row]:
    """Return a row per object that two reviewers judged, with their kappa."""
    kappa = found.agreement
    overall: dict[str, object] = {
        "objects": kappa.n,
        "agreed": kappa.n - len(found.disagreements),
        "kappa": kappa.kappa,
        "kappa_low": kappa.low,
        "kappa_high": kappa.high,
    }
    return [_agreement_row(item) | overall for item in found.items]


def verdict_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows of `verdict_rows` as a frame."""
    return VERDICT_TABLE.frame(rows).astype({"partner_id": "Int64"})


def write_table(path: Path, spec: TableSpec, frame: pd.DataFrame) -> int:
    """Write a table as CSV, completely or not at all, safe to open in a spreadsheet.

    Returns
    -------
    int
        The number of its rows.

    Raises
    ------
    ReviewError
        If the file cannot be written.
    """
    try:
        with replaced_when_complete(path) as file:
            file.write(spec.csv(frame))
    except OSError as error:
        raise ReviewError(
            f"the verdicts cannot be written here ({error.strerror or error}); choose "
            f"another place, or free some space",
            path=path,
        ) from error
    return len(frame)


def object_details(judged: Judged, side: Side) -> dict[int, dict[str, object]]:
    """Return what is known of each object of a side, by id, for the file that QuPath opens."""
    own = judged.evaluation.outcomes.side(side)
    mpp = judged.evaluation.outcomes.mpp
    result: dict[int, dict[str, object]] = {}
    for row, id_ in enumerate(own.ids.tolist()):
        result[id_] = {
            "status": str(STATUSES[own.status[row]]),
            "cause": str(CAUSES[own.cause[row]]),
            "iou": float(own.iou[row]),
            "hausdorff_px": float(own.hausdorff_px[row]),
        }
        if mpp is not None:
            result[id_]["hausdorff_um"] = float(own.hausdorff_px[row]) * mpp
        if judged.codes[side][row] != NO_VERDICT:
            result[id_]["verdict"] = str(VERDICTS[judged.codes[side][row] - 1])
        if (record := judged.record(side, row)) is not None:
            result[id_] |= {"tag": record.tag, "note": record.note, "reviewer": record.reviewer}
    return result


def _found(
    subjects: Subjects, records: Sequence[ReviewRecord]
) -> Iterable[tuple[ReviewRecord, Object]]:
    """Find the objects of verdicts, of each reviewer for themselves: an object has one of each."""
    by_giver: dict[tuple[str, str], list[ReviewRecord]] = defaultdict(list)
    for record in records:
        by_giver[record.reviewer, record.role].append(record)
    for own in by_giver.values():
        for place, record in subjects.find(own).items():
            yield record, place


def _agreement_row(item: AgreementItem) -> dict[str, object]:
    first, second, decision = item.first, item.second, item.decision
    place: dict[str, object] = {name: first.values()[name] for name in AGREEMENT_TABLE.keys[:7]}
    return place | {
        "first_reviewer": first.reviewer,
        "first_verdict": str(first.verdict),
        "second_reviewer": second.reviewer,
        "second_verdict": str(second.verdict),
        "adjudicator": "" if decision is None else decision.reviewer,
        "adjudicated": "" if decision is None else str(decision.verdict),
        "final": "" if item.final is None else str(item.final),
        "first_note": first.note,
        "second_note": second.note,
        "adjudicator_note": "" if decision is None else decision.note,
    }
