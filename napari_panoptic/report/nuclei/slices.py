"""Common conditions of failures: the table ``slices.csv``, and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.records import fields_of
from napari_panoptic.questions.engines import slices as engine
from napari_panoptic.questions.engines.cohort_slices import CohortSlices
from napari_panoptic.questions.engines.slice_conditions import BROAD, EXTREMES, slice_words
from napari_panoptic.questions.engines.slices import Limits, Slice, SliceSearch
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    TableSpec,
    name_column,
    number,
    unshown,
    whole,
)
from napari_panoptic.tables.figures import counted, ratio
from napari_panoptic.values.vocabulary import Side, Status

if TYPE_CHECKING:
    import pandas as pd

SLICES_RECORD = "slices.json"
NOTHING = "nothing stands out"
"""The message if no slice stands out."""
CONFIRMED: Mapping[bool | None, str] = {True: "yes", False: "no", None: ""}


def _confirmed(row: Record) -> CellContent:
    return CellContent(row["confirmed"] or "not tested")


SLICES = TableSpec(
    "slices.csv",
    "significant slice, the one with the largest statistic first",
    [
        name_column("slice"),
        whole("objects"),
        whole("failures"),
        number("rate", "failure rate"),
        number("rate_elsewhere", "elsewhere", about="of all other objects"),
        number("p", "p", lambda value: ratio(value, 3), about="family-wise"),
        TableColumn(
            "confirmed", _confirmed, ("confirmed",), "in held-out patients: yes, no or empty"
        ),
        unshown("rate_expected", about="if the slice failed as its patients do"),
        unshown("z", about="Mantel-Haenszel statistic within patients"),
        unshown("patients", about="number with objects in the slice and elsewhere"),
        whole("patients_higher", "patients higher", about="number that fail more in the slice"),
        unshown("condition", "second_condition", about="as formulas"),
    ],
)
SLICES_NAMES = (SLICES.file, SLICES_RECORD)
"""The files of the command ``slices``, the record last."""


def slices_table(found: SliceSearch, side: Side) -> pd.DataFrame:
    """Return one row per significant slice."""
    rows = []
    for own in found.slices:
        formulas = [condition.as_formula() for condition in own.conditions]
        rows.append(
            {
                "slice": slice_words(own.conditions, side),
                **fields_of(own, "objects", "failures", "rate", "rate_elsewhere", "p"),
                "confirmed": CONFIRMED[own.confirmed],
                **fields_of(own, "rate_expected", "z", "patients", "patients_higher"),
                "condition": formulas[0],
                "second_condition": "".join(formulas[1:]),
            }
        )
    return SLICES.frame(rows)


def failing(side: Side, cause: str | None) -> str:
    """Return the verb for failures, such as "fail" or "are missed"."""
    if cause is not None:
        return f"are {cause}"
    return "fail" if side is Side.REFERENCE else "are FP"


def slice_sentence(own: Slice, side: Side, cause: str | None = None) -> str:
    """Return a slice as a sentence, such as "Lymphocytes under 80 px: 31 % fail, elsewhere 9 %"."""
    certainty = {
        True: "confirmed in held-out patients",
        False: "not confirmed in held-out patients",
        None: "too few patients to confirm",
    }[own.confirmed]
    return (
        f"{slice_words(own.conditions, side)}: {percent(own.rate)} {failing(side, cause)}, "
        f"elsewhere {percent(own.rate_elsewhere)} (p = {own.p:.2g}; {certainty})"
    )


def failures_word(side: Side, cause: str | None) -> str:
    """Return the noun for failures, such as "FN and misclassified" or "missed FN"."""
    if cause == Status.MISCLASSIFIED:
        return str(cause)
    if side is Side.PREDICTION:
        return "FP" if cause is None else f"{cause} FP"
    return "FN and misclassified" if cause is None else f"{cause} FN"


def search_sentence(found: SliceSearch, team: str, side: Side, cause: str | None) -> str:
    """Describe how many objects were searched and how many of them fail."""
    what = "annotated objects" if side is Side.REFERENCE else "predictions"
    rate = f", {percent(found.failures / found.objects)}" if found.objects else ""
    return (
        f"{team}: {found.failures} of {found.objects} {what} {failing(side, cause)}{rate}; "
        f"{counted(found.searched, 'slice')} searched"
    )


def slice_figures(own: Slice) -> str:
    """Return the counts behind the sentence on a slice."""
    return (
        f"{own.failures} of {own.objects} objects; {percent(own.rate_expected)} expected from "
        f"their patients; higher in {own.patients_higher} of {counted(own.patients, 'patient')}"
    )


def percent(rate: float) -> str:
    """Return a share in percent, with a decimal below 10 %."""
    return f"{100 * rate:.{0 if rate >= 0.1 else 1}f} %"


def slices_record(searched: CohortSlices, protocol: str) -> dict[str, Any]:
    """Return the content of ``slices.json``: the request, the limits, and the curves."""
    request, found = searched.request, searched.found
    curve_columns = ("objects", "failures", "rate", "low", "high")
    return {
        **fields_of(request, "team", "side", "cause"),
        "protocol": protocol,
        "settings": request.settings.as_record(),
        **fields_of(found, "objects", "failures"),
        "slices_searched": found.searched,
        "covariates": [name for name in found.covariates if name not in found.undefined],
        "covariates_without_use": found.undefined,
        **fields_of(request, "permutations", "seed"),
        "limits": {
            **asdict(Limits()),
            "quantiles_alone": sorted((*EXTREMES, *BROAD)),
            "quantiles_in_pairs": EXTREMES,
            "significance": engine.SIGNIFICANCE,
            "least_patients_to_confirm": engine.LEAST_PATIENTS,
        },
        "curves": {
            name: [
                {"bin": condition.as_formula()}
                | {column: getattr(curve, column)[k] for column in curve_columns}
                for k, condition in enumerate(curve.bins)
            ]
            for name, curve in found.curves.items()
        },
    }
