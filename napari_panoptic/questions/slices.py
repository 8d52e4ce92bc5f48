"""Find what the failures of a team have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.records import fields_of
from napari_panoptic.common.text import english_list
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.features.known import FEATURES, USUAL, chosen_features
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.io.tables.covariates import read_covariates
from napari_panoptic.io.tables.metadata import Metadata, metadata_beside, read_metadata
from napari_panoptic.nuclei.regions.looks import Teams
from napari_panoptic.questions.answer import (
    Answer,
    AnswerPlot,
    AnswerTable,
    Reason,
    UnansweredError,
)
from napari_panoptic.questions.engines import slices as engine
from napari_panoptic.questions.engines.cohort_objects import (
    CAUSES_OF,
    CohortObjects,
    MeasuredRegion,
    common_slices,
    joined_objects,
    measured_region,
)
from napari_panoptic.questions.engines.slice_conditions import (
    BROAD,
    EXTREMES,
    property_words,
    slice_words,
)
from napari_panoptic.questions.engines.slices import Limits, Slice, SliceSearch
from napari_panoptic.questions.question import (
    Gathered,
    Question,
    option,
    whole_number,
    why_nothing,
)
from napari_panoptic.statistics.max_t import PERMUTATIONS, SEED
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
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.vocabulary import (
    CAUSE_MEANINGS,
    STATUS_MEANINGS,
    Cause,
    Side,
    Status,
    of_side,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

NOTHING = "nothing stands out"
"""The message if no slice stands out."""
_CONFIRMED: Mapping[bool | None, str] = {True: "yes", False: "no", None: ""}
_ALL_CAUSES = tuple(dict.fromkeys(cause for causes in CAUSES_OF.values() for cause in causes))
_LEAST = engine.LEAST_PERMUTATIONS
_PLAINLY: Mapping[str, str] = {
    Cause.AMBIGUOUS_SPILL: "mostly ambiguous",
    Cause.TOO_SMALL: "drawn too small",
    Cause.TOO_LARGE: "drawn too large",
    Cause.FRAGMENT: "fragments",
    Cause.MERGER: "mergers",
    Cause.DUPLICATE: "duplicates",
}
"""Cause -> its plain words after "are", if they are not its own word."""


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


# --- the question -----------------------------------------------------------------------------


def _sides(_values: Mapping[str, Any]) -> list[tuple[Side, str, str]]:
    return [
        (
            Side.REFERENCE,
            "FN & misclassified",
            "Annotated objects that are FN or misclassified.",
        ),
        (Side.PREDICTION, "FP", "Predictions that are FP."),
    ]


def _causes(values: Mapping[str, Any]) -> list[tuple[str | None, str, str]]:
    side = values["side"] or Side.REFERENCE
    found: list[tuple[str | None, str, str]] = [
        (None, "any cause", "All failures of these objects.")
    ]
    for word in CAUSES_OF[side]:
        is_cause = word in set(Cause)
        meaning = CAUSE_MEANINGS[Cause(word)] if is_cause else STATUS_MEANINGS[Status(word)]
        found.append((word, word, meaning))
    return found


@dataclass(frozen=True, kw_only=True)
class Slices(Question):
    """What the failures of a team have in common."""

    title = "Slices"
    heading = "What failures have in common"
    key = "Alt-k"  # S saves a screenshot in napari
    about = (
        "Search all slices of objects of at most two conditions, such as a class and a size, that "
        "fail more often than the other objects of the same patients, and write those that stand "
        "out to slices.csv, the best first. Exit status: 0 done, also where nothing stands out, 1 "
        "nothing could be evaluated, 2 wrong arguments."
    )
    verb = "Search"
    has_score = False
    reads_image = True
    too_large = (
        "the region is too large to be held, which covariates need; its objects are left out of "
        "the slices"
    )
    hint = (
        "Press “Search” to find what the failures of this team have in common over the cohort: "
        "slices of objects, such as a class and a size, that fail more often than the others."
    )
    tables = (SLICES,)

    team: str = option("team whose failures are searched", metavar="T")
    side: Side | None = option(
        "search among annotated objects, of which FN and misclassified ones fail, or among "
        f"predictions, of which FP fail (default: {Side.REFERENCE}, or the side that the cause "
        "belongs to)",
        None,
        choices=tuple(map(str, Side)),
        menu=_sides,
        is_late=True,
    )
    cause: str | None = option(
        "only failures of this cause count, such as missed, merged or misclassified",
        None,
        choices=_ALL_CAUSES,
        metavar="CAUSE",
        menu=_causes,
        is_late=True,
    )
    features: tuple[str, ...] = option(
        f"measure only these, separated by commas, of {english_list(list(FEATURES), limit=99)} "
        f"(default: {','.join(USUAL)}); your own covariates are searched in any case",
        USUAL,
        read=lambda word: chosen_features(word.split(",")),
        metavar="NAMES",
    )
    covariates: Path | None = option(
        "a table with the columns patient, region, side, id, and one for each covariate",
        None,
        read=Path,
        metavar="FILE",
    )
    metadata: Path | Metadata | None = option("a table with a column patient and others", None)
    permutations: int = option(
        f"random assignments of failures within patients, at least {_LEAST} (default: %(default)s)",
        PERMUTATIONS,
        read=whole_number(_LEAST, " for a slice to be significant"),
        metavar="N",
        is_late=True,
    )
    seed: int = option(
        "seed of the random numbers (default: %(default)s)",
        SEED,
        read=whole_number(0),
        metavar="N",
        is_late=True,
    )

    def __post_init__(self) -> None:
        """Refuse a cause that objects of the side do not have, and unknown features."""
        object.__setattr__(self, "features", chosen_features(self.features))
        if self.cause not in (None, *CAUSES_OF[self.searched_side]):
            raise SettingsError(
                f"--cause: objects of the {self.searched_side} have no cause '{self.cause}'; "
                f"expected one of {english_list(CAUSES_OF[self.searched_side], limit=99)}"
            )

    @property
    def searched_side(self) -> Side:
        """The side that was chosen, or the first that has the cause."""
        if self.side is not None:
            return of_side(self.side, Side.REFERENCE, Side.PREDICTION)
        return next((own for own in Side if self.cause in (None, *CAUSES_OF[own])), Side.REFERENCE)

    def prepared(self, cohort: Cohort) -> tuple[Metadata | None, pd.DataFrame | None]:
        """Read the tables of patients and of covariates."""
        metadata, patients = self.metadata, cohort.patients
        if metadata is None:
            metadata = metadata_beside(cohort.root, patients)
        elif isinstance(metadata, Path):
            metadata = read_metadata(metadata, patients)
        return metadata, None if self.covariates is None else read_covariates(self.covariates)

    def look(self, region: Region, teams: Teams, image: SlideImage | None) -> MeasuredRegion | None:
        """Measure the objects of both sides."""
        evaluation = teams[self.team].evaluation
        if evaluation is None:
            return None
        return measured_region(evaluation, region, self.team, image, self.features)

    def joined(self, cohort: Cohort, gathered: Gathered) -> CohortObjects:
        """Return the objects of all regions, with the covariates of tables."""
        metadata, table = gathered.prepared
        objects = joined_objects(
            self.team, gathered.parts, gathered.findings, metadata=metadata, table=table
        )
        if objects.frame.empty:
            findings = (*cohort.findings, *objects.findings)
            raise UnansweredError(why_nothing(cohort, (self.team,)), findings)
        return objects

    def answered(
        self, cohort: Cohort, gathered: CohortObjects, progress: Progress = UNWATCHED
    ) -> Answer:
        """Search for slices in which objects of the side fail often."""
        side, cause = self.searched_side, self.cause
        found = common_slices(
            gathered,
            side,
            cause,
            permutations=self.permutations,
            seed=self.seed,
            progress=progress,
        )
        names, caption = cohort.team_names, curves_caption(found, side, cause)
        rate = found.failures / found.objects if found.objects else math.nan
        failures = np.flatnonzero(found.is_failure)
        row_of = dict(zip(self._names(gathered, failures), failures.tolist(), strict=True))
        return Answer(
            headline=f"{search_sentence(found, self.team, side, cause)}"
            f"{'' if found.slices else f'; {NOTHING}'}.",
            notes=(),
            tables=(
                AnswerTable(
                    SLICES,
                    slices_table(found, side),
                    lambda row: self._failures(gathered, found, found.slices[row]),
                    sentence=lambda row: slice_sentence(found.slices[row], side, cause),
                    tooltip=lambda row: slice_figures(found.slices[row]),
                    plot=lambda row: _plot_title(found.slices[row].conditions[0].covariate),
                ),
            ),
            plots=(
                *(
                    AnswerPlot(
                        "covariate_curve",
                        _plot_title(name),
                        caption,
                        (curve, self.team, names, rate),
                        is_on_pages=False,
                    )
                    for name, curve in found.curves.items()
                ),
                AnswerPlot(
                    "covariate_curves",
                    "all covariates",
                    caption,
                    (found.curves, self.team, names, rate),
                ),
            ),
            record=self.record(
                cohort,
                gathered.findings,
                team=self.team,
                side=side,
                cause=cause,
                protocol=self.protocol,
                settings=self.matching.as_record(),
                **fields_of(found, "objects", "failures"),
                slices_searched=found.searched,
                covariates=[name for name in found.covariates if name not in found.undefined],
                covariates_without_use=found.undefined,
                permutations=self.permutations,
                seed=self.seed,
                limits={
                    **asdict(Limits()),
                    "quantiles_alone": sorted((*EXTREMES, *BROAD)),
                    "quantiles_in_pairs": EXTREMES,
                    "significance": engine.SIGNIFICANCE,
                    "least_patients_to_confirm": engine.LEAST_PATIENTS,
                },
                curves=_curves(found),
            ),
            reason=lambda name: self._reason(found, row_of.get(name)),
        )

    def _failures(self, objects: CohortObjects, found: SliceSearch, own: Slice) -> FailureSet:
        """Return the objects of a slice that fail."""
        names = self._names(objects, own.rows[found.is_failure[own.rows]])
        what = f"{failures_word(self.searched_side, self.cause)} of {self.team}"
        words = slice_words(own.conditions, self.searched_side)
        return FailureSet(f"{what} · {words}", frozenset(names))

    def _names(self, objects: CohortObjects, rows: NDArray[np.int64]) -> list[FailureName]:
        """Name the objects of rows of the table that was searched."""
        frame = objects.of_side(self.searched_side).iloc[rows]
        return [
            FailureName(self.team, str(region), self.searched_side, int(id_))
            for region, id_ in zip(frame["region"], frame["id"], strict=True)
        ]

    def _reason(self, found: SliceSearch, row: int | None) -> Reason | None:
        """Return why an object of the table that was searched failed."""
        slices = [] if row is None else found.certain_with(row)
        if not slices:
            return None
        side, cause = self.searched_side, self.cause
        lines = [
            f"{_rates(own, side, cause)}\n{_certainty(own)}; {slice_figures(own)}" for own in slices
        ]
        return Reason(
            reason_sentence(slices[0], side, cause),
            "\n\n".join([lines[0], *(f"Also: {line}" for line in lines[1:])])
            + f"\n\nFound by Slices ({search_sentence(found, self.team, side, cause)}).\n"
            "Such failures have this in common; it need not have caused this one.",
        )


# --- its words and rows -----------------------------------------------------------------------


def slices_table(found: SliceSearch, side: Side) -> pd.DataFrame:
    """Return one row per significant slice."""
    rows = []
    for own in found.slices:
        formulas = [condition.as_formula() for condition in own.conditions]
        rows.append(
            {
                "slice": slice_words(own.conditions, side),
                **fields_of(own, "objects", "failures", "rate", "rate_elsewhere", "p"),
                "confirmed": _CONFIRMED[own.confirmed],
                **fields_of(own, "rate_expected", "z", "patients", "patients_higher"),
                "condition": formulas[0],
                "second_condition": "".join(formulas[1:]),
            }
        )
    return SLICES.frame(rows)


def slice_sentence(own: Slice, side: Side, cause: str | None = None) -> str:
    """Return a slice as a sentence, such as "Lymphocytes under 80 px: 31 % fail, elsewhere 9 %"."""
    return f"{_rates(own, side, cause)} ({_certainty(own)})"


def reason_sentence(own: Slice, side: Side, cause: str | None = None) -> str:
    """Return a slice as the reason why one of its objects failed.

    Such as "Small (under 80 px): 62 % of such Lymphocytes are missed by this team, 18 % of all
    others."
    """
    of_class = [condition for condition in own.conditions if condition.covariate == "class"]
    properties = [property_words(part) for part in own.conditions if part not in of_class]
    words = slice_words(of_class, side)
    objects = f"such {words if of_class else words.lower()}" if properties else words
    failing = _PLAINLY.get(cause or "", cause or failures_word(side, None, "or"))
    if side is Side.REFERENCE:
        failing += f" {'for' if cause in (None, Cause.AMBIGUOUS_SPILL) else 'by'} this team"
    rates = f"{_percent(own.rate)} of {objects} are {failing}, {_percent(own.rate_elsewhere)}"
    start = " and ".join(properties)
    return f"{start[:1].upper()}{start[1:]}{': ' if start else ''}{rates} of all others."


def slice_figures(own: Slice) -> str:
    """Return the counts behind the sentence on a slice."""
    return (
        f"{own.failures} of {own.objects} objects; {_percent(own.rate_expected)} expected from "
        f"their patients; higher in {own.patients_higher} of {counted(own.patients, 'patient')}"
    )


def search_sentence(found: SliceSearch, team: str, side: Side, cause: str | None) -> str:
    """Describe how many objects were searched and how many of them fail."""
    what = "annotated objects" if side is Side.REFERENCE else "predictions"
    rate = f", {_percent(found.failures / found.objects)}" if found.objects else ""
    return (
        f"{team}: {found.failures} of {found.objects} {what} {_failing(side, cause)}{rate}; "
        f"{counted(found.searched, 'slice')} searched"
    )


def failures_word(side: Side, cause: str | None, conjunction: str = "and") -> str:
    """Return the noun for failures, such as "FN and misclassified" or "missed FN"."""
    if cause == Status.MISCLASSIFIED:
        return str(cause)
    if side is Side.PREDICTION:
        return "FP" if cause is None else f"{cause} FP"
    return f"FN {conjunction} misclassified" if cause is None else f"{cause} FN"


def curves_caption(found: SliceSearch, side: Side, cause: str | None = None) -> str:
    """Return the caption of plots of the failure rate by covariate."""
    what = "annotated objects" if side is Side.REFERENCE else "predictions"
    of_what = "Wilson's interval over objects"
    if any(curve.over_patients for curve in found.curves.values()):
        of_what += " or, if wider, bootstrap over patients"
    return (
        f"Share of {what} that are {failures_word(side, cause, 'or')}, by deciles of each "
        f"covariate or by value, with 95 % bands ({of_what}); dashed: of all objects."
    )


def _rates(own: Slice, side: Side, cause: str | None) -> str:
    words, failing = slice_words(own.conditions, side), _failing(side, cause)
    return f"{words}: {_percent(own.rate)} {failing}, elsewhere {_percent(own.rate_elsewhere)}"


def _certainty(own: Slice) -> str:
    confirmed = {
        True: "confirmed in held-out patients",
        False: "not confirmed in held-out patients",
        None: "too few patients to confirm",
    }[own.confirmed]
    return f"p = {own.p:.2g}; {confirmed}"


def _failing(side: Side, cause: str | None) -> str:
    """Return the verb for failures, such as "fail" or "are missed"."""
    if cause in (Cause.FRAGMENT, Cause.MERGER, Cause.DUPLICATE):
        return f"are {_PLAINLY[cause]}"
    if cause is not None:
        return f"are {cause}"
    return "fail" if side is Side.REFERENCE else "are FP"


def _percent(rate: float) -> str:
    """Return a share in percent, with a decimal below 10 %."""
    return f"{100 * rate:.{0 if rate >= 0.1 else 1}f} %"


def _plot_title(covariate: str) -> str:
    return f"failure rate over {covariate.replace('_', ' ')}"


def _curves(found: SliceSearch) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Return the failure rates by the values of each covariate, for the record."""
    columns = ("objects", "failures", "rate", "low", "high")
    return {
        name: [
            {"bin": condition.as_formula()}
            | {column: getattr(curve, column)[k] for column in columns}
            for k, condition in enumerate(curve.bins)
        ]
        for name, curve in found.curves.items()
    }
