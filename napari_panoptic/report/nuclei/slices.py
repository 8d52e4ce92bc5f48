"""Common conditions of failures: the table ``slices.csv``, and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.findings import Finding
from napari_panoptic.questions import slices as engine
from napari_panoptic.questions.slice_conditions import BROAD, EXTREMES, slice_words
from napari_panoptic.questions.slices import Limits, Slice, SliceSearch
from napari_panoptic.report.columns import (
    Cell,
    Column,
    Record,
    TableSpec,
    name_column,
    number,
    unshown,
    whole,
)
from napari_panoptic.report.text import counted, ratio
from napari_panoptic.report.writing import provenance, write_set
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Status

if TYPE_CHECKING:
    import pandas as pd

SLICES_RECORD = "slices.json"
NOTHING = "nothing stands out"
"""The message if no slice stands out."""
CONFIRMED: Mapping[bool | None, str] = {True: "yes", False: "no", None: ""}


def _confirmed(row: Record) -> Cell:
    return Cell(row["confirmed"] or "not tested")


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
        Column("confirmed", _confirmed, ("confirmed",), "in held-out patients: yes, no or empty"),
        unshown("rate_expected", about="if the slice failed as its patients do"),
        unshown("z", about="Mantel-Haenszel statistic within patients"),
        unshown("patients", about="number with objects in the slice and elsewhere"),
        whole("patients_higher", "patients higher", about="number that fail more in the slice"),
        unshown("condition", "second_condition", about="as formulas"),
    ],
)
SLICES_NAMES = (SLICES.file, SLICES_RECORD)
"""The files of the command ``slices``, the record last."""


@dataclass(frozen=True)
class SearchRecord:
    """The settings of a search, for its record.

    Parameters
    ----------
    team, side, cause
        The failures that were searched.
    settings, protocol
        How objects were matched.
    permutations, seed
        Settings of the permutation test.
    """

    team: str
    side: Side
    cause: str | None
    settings: EvaluationSettings
    protocol: str
    permutations: int
    seed: int


def slices_table(found: SliceSearch, side: Side) -> pd.DataFrame:
    """Return one row per significant slice."""
    rows = []
    for own in found.slices:
        formulas = [condition.as_formula() for condition in own.conditions]
        rows.append(
            {
                "slice": slice_words(own.conditions, side),
                "objects": own.objects,
                "failures": own.failures,
                "rate": own.rate,
                "rate_elsewhere": own.rate_elsewhere,
                "p": own.p,
                "confirmed": CONFIRMED[own.confirmed],
                "rate_expected": own.rate_expected,
                "z": own.z,
                "patients": own.patients,
                "patients_higher": own.patients_higher,
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


def write_slices(
    found: SliceSearch,
    of: SearchRecord,
    folder: Path,
    *,
    findings: tuple[Finding, ...],
    inputs: Mapping[str, str],
) -> list[Path]:
    """Write ``slices.csv`` and its record into a folder; existing ones are replaced together.

    Parameters
    ----------
    found, of
        The slices, and the settings of the search.
    folder
        The folder; created if missing.
    findings, inputs
        Problems found, and fingerprints of the input files.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    record: dict[str, Any] = {
        "team": of.team,
        "side": str(of.side),
        "cause": of.cause,
        "protocol": of.protocol,
        "settings": of.settings.as_record(),
        "objects": found.objects,
        "failures": found.failures,
        "slices_searched": found.searched,
        "covariates": [name for name in found.covariates if name not in found.undefined],
        "covariates_without_use": list(found.undefined),
        "permutations": of.permutations,
        "seed": of.seed,
        "limits": {
            **asdict(Limits()),
            "quantiles_alone": sorted((*EXTREMES, *BROAD)),
            "quantiles_in_pairs": list(EXTREMES),
            "significance": engine.SIGNIFICANCE,
            "least_patients_to_confirm": engine.LEAST_PATIENTS,
        },
        "curves": {
            name: [
                {
                    "bin": condition.as_formula(),
                    "objects": int(curve.objects[k]),
                    "failures": int(curve.failures[k]),
                    "rate": float(curve.rate[k]),
                    "low": float(curve.low[k]),
                    "high": float(curve.high[k]),
                }
                for k, condition in enumerate(curve.bins)
            ]
            for name, curve in found.curves.items()
        },
        **provenance(findings, inputs),
    }
    return write_set(folder, {SLICES.file: slices_table(found, of.side)}, (SLICES_RECORD, record))
