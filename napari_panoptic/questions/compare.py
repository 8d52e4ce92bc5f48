"""Compare an old and a new version of predictions: fixed and broken nuclei, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.records import fields_of
from napari_panoptic.common.text import english_list
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.metrics import FIGURE_NAMES, METRIC_TEXTS
from napari_panoptic.nuclei.regions.looks import Teams
from napari_panoptic.questions.answer import Answer, AnswerRecord, AnswerTable
from napari_panoptic.questions.engines.quality_change import QualityChange
from napari_panoptic.questions.engines.version_diff import (
    CHANGE_MEANINGS,
    DIFF,
    IOU_STEP,
    Change,
    VersionDiff,
    outcome_names,
)
from napari_panoptic.questions.engines.versions import (
    MARGIN,
    ComparedRegion,
    Pairing,
    VersionComparison,
    check_metric,
    check_scoring,
    compare_regions,
)
from napari_panoptic.questions.question import Gathered, Question, option
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED
from napari_panoptic.statistics.differences import (
    PairedDifference,
    decision_record,
    difference_record,
)
from napari_panoptic.statistics.sign_flip import DRAWS, EXACT_UP_TO, LEAST_PATIENTS
from napari_panoptic.statistics.teams import bootstrap_record
from napari_panoptic.tables.columns import (
    CellContent,
    TableColumn,
    TableSpec,
    bounds,
    name_column,
    number,
    whole,
    words,
)
from napari_panoptic.tables.figures import count, counted, p_value, signed
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.links import LinkMaker
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Status

if TYPE_CHECKING:
    import pandas as pd


def part_text(value: float) -> str:
    """Write a part of the change of PQ; tiny ones by their magnitude."""
    if value == 0 or abs(value) >= 5e-5:
        return signed(value, 4)
    return f"{value:+.0e}".replace("-", "\N{MINUS SIGN}")


PART = number("delta_pq", "ΔPQ", part_text, "part of the change of PQ")
METRICS, CLASSES, PATIENTS, REGIONS = "Metrics", "By class", "By patient", "By region"
PARTS = "Parts of the change"
_METHOD = (
    f"Differences are new minus old, means over patients. Intervals: {LEVEL:.0%} BCa bootstrap of "
    f"patients. p: sign-flip test over patients, exact up to {EXACT_UP_TO}, corrected by Holm's "
    f"method over the rows of the table. With fewer than {LEAST_PATIENTS} patients nothing is "
    "decided."
)
_BY_DISCS = (
    "FPs of both versions are paired as discs of their areas at their centroids: there are no "
    "pixels."
)
_FAILING = (str(Status.MISCLASSIFIED), str(Status.FN), str(Status.FP))
_OBJECTS = "objects_"
_MOST_OUTCOMES = 12
_BAR = 10
_WHAT = {Side.REFERENCE: "annotated nuclei", Side.PREDICTION: "predictions without a match"}


@dataclass(frozen=True, kw_only=True)
class Compare(Question):
    """What a new version of predictions changes."""

    title = "Versions"
    key = "Alt-n"  # V is the mnemonic of napari's menu View
    verb = "Compare"
    about = (
        "Compare two teams of a cohort as an old and a new version. Instead of a cohort, give two "
        "output folders of 'evaluate' (no images needed) or, with --reference, two predictions of "
        "one image. Print which nuclei the new version fixed and broke, the difference of every "
        "metric paired by patient with its interval and test, and the verdict; with --output write "
        "diff.csv and compare.json. Exit status: 0 not worse than the margin, 3 worse, 4 "
        "undecided, 1 nothing could be compared, 2 wrong arguments."
    )
    hint = "Press “Compare” to evaluate both versions in all regions."
    tables = (DIFF,)
    share_of_gathering = 1.0
    looks_at_once = True
    takes_windows = True

    #: The two teams.
    old: str = option("the old version")
    new: str = option("the new version")
    #: The metric that decides, and by how much the new version may be worse.
    metric: str = option("the metric that decides", "pq")
    margin: float = option(
        "by how much the new version may be worse, in the unit of the metric", MARGIN
    )
    #: An object is marked if its IoU changes by more.
    iou_step: float = option("an object is marked if its IoU changes by more", IOU_STEP)

    def why_not(self, cohort: Cohort) -> str:
        """Return why the versions cannot be compared; empty if they can."""
        try:
            check_scoring(self.settings)
        except SettingsError as error:
            return str(error)
        return ""

    def teams_read(self, cohort: Cohort) -> tuple[str, ...]:
        """Return the two teams."""
        return self.old, self.new

    @property
    def matching(self) -> EvaluationSettings:
        """The settings, with distances if they ask for them."""
        return self.settings

    def prepared(self, cohort: Cohort) -> None:
        """Check the metric, the margin and the scoring."""
        check_metric(self.metric, self.margin)
        check_scoring(self.settings)

    def look(self, region: Region, teams: Teams, image: SlideImage | None) -> ComparedRegion:
        """Return what is compared of a region."""
        old, new = self.old, self.new
        return ComparedRegion.of(region, (old, teams[old]), (new, teams[new]), self.settings)

    def joined(self, cohort: Cohort, gathered: Gathered) -> VersionComparison:
        """Compare both versions object by object."""
        return compare_regions(
            gathered.parts,
            (self.old, self.new),
            cohort.scheme.names,
            metric=self.metric,
            margin=self.margin,
            iou_step=self.iou_step,
            findings=(*cohort.findings, *gathered.findings),
        )

    def answered(
        self, cohort: Cohort, gathered: VersionComparison, progress: Progress = UNWATCHED
    ) -> Answer:
        """Return what changed, how certainly, and for which objects."""
        settings = {**self.settings.as_record(), "iou_step": self.iou_step}
        return comparison_answer(
            gathered,
            LinkMaker.of(cohort, self.settings, self.source),
            settings=settings,
            cohort=cohort.name,
            protocol=self.protocol,
        )


def check_limits(metric: str, margin: float, iou_step: float) -> None:
    """Check the metric and the limits of a comparison.

    Raises
    ------
    SettingsError
        For an unknown metric, and for a margin or a step below 0.
    """
    check_metric(metric, margin)
    if not iou_step >= 0:
        raise SettingsError(f"--iou-step must be a number from 0, found {iou_step:g}")


def comparison_answer(
    comparison: VersionComparison, links: LinkMaker | None = None, **more: Any
) -> Answer:
    """Return a comparison as an answer, whose record has the given entries as well.

    Without ``links``, as for two output folders of ``evaluate``, the objects have none.
    """
    diff = comparison.diff
    sides = [side for side in Side if (diff.rows["side"] == str(side)).any()]
    return Answer(
        headline=headline(comparison),
        notes=tuple(_notes(comparison)),
        tables=(
            AnswerTable(
                DIFF,
                diff_table(comparison, links),
                lambda row: changed_objects(diff, [row]),
                has_others=True,
                heading="Objects",
            ),
            comparison_table(comparison, METRICS),
            AnswerTable(*_changes(comparison), heading="Changes"),
            AnswerTable(*_transitions(comparison), printed=_MOST_OUTCOMES, is_long=True),
            *(AnswerTable(*_matrix(diff, side), printed=0, heading=str(side)) for side in sides),
            *(comparison_table(comparison, own) for own in (PARTS, CLASSES, PATIENTS, REGIONS)),
        ),
        plots=(),
        record=AnswerRecord(
            comparison_record(comparison, **more), comparison.findings, (diff.old, diff.new)
        ),
    )


# --- objects ----------------------------------------------------------------------------------


def object_name(diff: VersionDiff, row: int, *, before: bool) -> FailureName:
    """Return the object of a row in one version, or in the version that has it.

    Parameters
    ----------
    diff
        The two versions.
    row
        Position among its rows.
    before
        Whether to return the object of the old version.
    """
    one = diff.rows.iloc[row]
    is_old = bool(one["status_before"] != "" if before else one["status_after"] == "")
    id_ = int(one["id_before"] if is_old else one["id"])
    return FailureName(diff.old if is_old else diff.new, str(one["region"]), Side(one["side"]), id_)


def failure_names(diff: VersionDiff, rows: Sequence[int]) -> list[FailureName]:
    """Return objects as failures, in the version that fails.

    Objects that fail in the new version are those of the new version, also if the old one
    failed before; objects that fail in neither are left out.
    """
    was, is_ = (
        diff.rows[f"status_{when}"].isin(_FAILING).to_numpy() for when in ("before", "after")
    )
    return [object_name(diff, row, before=not is_[row]) for row in rows if was[row] or is_[row]]


def changed_objects(diff: VersionDiff, rows: Sequence[int]) -> FailureSet:
    """Return the objects of rows, each in a version in which it fails, if it does in any."""
    names = failure_names(diff, rows) or [object_name(diff, row, before=False) for row in rows]
    return FailureSet(f"{diff.old} → {diff.new}", frozenset(names), (diff.old, diff.new))


# --- sentences --------------------------------------------------------------------------------


def headline(comparison: VersionComparison) -> str:
    """Describe the changes by the new version, their certainty, and the verdict."""
    diff, one = comparison.diff, comparison.deciding
    counts = diff.counts
    nuclei = "nucleus" if counts[Change.FIXED] == 1 else "nuclei"
    text = (
        f"{diff.new} fixed {count(counts[Change.FIXED])} {nuclei} of {diff.old} and broke "
        f"{count(counts[Change.BROKEN])}; {count(counts[Change.NEW])} new FP, "
        f"{count(counts[Change.GONE])} gone"
    )
    difference = f"{METRIC_TEXTS[one.name].title} {signed(one.interval.mean, 4)}"
    decision = comparison.decision
    verdict = str(decision.verdict).replace("-", " ")
    why = "" if decision.reason.startswith(verdict) else f" ({decision.reason})"
    if one.patients < LEAST_PATIENTS:
        return f"{text}; {difference}: {decision.reason}"
    figures = (difference + _limits(one), f"p = {p_value(one.p)}", _patients(one))
    return f"{text}; {', '.join(figures)}: {verdict}{why}"


def _limits(one: PairedDifference) -> str:
    low, high = one.interval.low, one.interval.high
    is_undefined = math.isnan(low) or math.isnan(high)
    return "" if is_undefined else f" [{signed(low, 4)}, {signed(high, 4)}]"


def _patients(one: PairedDifference) -> str:
    return counted(one.patients, one.figures.unit)


def verdict_line(comparison: VersionComparison) -> str:
    """Return the verdict with the figures behind it."""
    deciding, decision = comparison.deciding, comparison.decision
    figures = f"{comparison.metric} {_plain(deciding.interval.mean)}"
    if math.isfinite(decision.low) and math.isfinite(decision.high):
        figures += (
            f" ({_plain(decision.low)} to {_plain(decision.high)}, {decision.level:.0%} limits of "
            "the test)"
        )
    return f"{decision.verdict}: {figures}: {decision.reason}"


def _plain(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:+z.4f}"


def left_out(comparison: VersionComparison) -> str:
    """Describe the regions that are not compared; empty if all are."""
    diff = comparison.diff
    parts = [
        f"{counted(len(regions), 'region')} of {name} only"
        for name, regions in ((diff.old, comparison.only_old), (diff.new, comparison.only_new))
        if regions
    ]
    omitted = comparison.deciding.figures.omitted
    if n := sum(len(one.teams) < one.of for one in omitted):
        parts.append(f"{counted(n, 'patient')} with a figure of one version only")
    return f"Left out: {', '.join(parts)}." if parts else ""


def _notes(comparison: VersionComparison) -> Iterator[str]:
    diff, change, decision = comparison.diff, comparison.change, comparison.decision
    patients = len(set(diff.rows["patient"]))
    yield (
        f"{diff.old} → {diff.new}: {counted(comparison.regions, 'region')} of "
        f"{counted(patients, 'patient')}, {FIGURE_NAMES[comparison.metric]}, margin "
        f"{decision.margin:g}."
    )
    flags = ", ".join(f"{name.replace('_', ' ')} {count(n)}" for name, n in diff.flags.items())
    yield f"Of all objects: {flags}."
    yield f"{verdict_line(comparison)}."
    yield (
        f"PQ {_plain(change.total)} = outlines (SQ) {_plain(change.sq)}, detection (DQ) "
        f"{_plain(change.dq)}."
    )
    if comparison.pairing is Pairing.DISCS:
        yield _BY_DISCS
    for which, regions in ((diff.old, comparison.only_old), (diff.new, comparison.only_new)):
        if regions:
            yield f"Left out, since evaluated for {which} only: {english_list(regions)}."
    yield _METHOD


# --- tables -----------------------------------------------------------------------------------


def diff_table(comparison: VersionComparison, links: LinkMaker | None = None) -> pd.DataFrame:
    """Return the rows of ``diff.csv``."""
    diff = comparison.diff
    rows = diff.rows.assign(delta_pq=comparison.change.of_row)
    return rows.assign(link="" if links is None else _links(diff, links))[DIFF.keys]


def _links(diff: VersionDiff, links: LinkMaker) -> list[str]:
    """Return the link of each row: to its object in a version in which it fails, if it does."""
    rows = diff.rows
    was, is_ = (rows[f"status_{when}"].isin(_FAILING) for when in ("before", "after"))
    # As in `failure_names`; a version that lacks an FP has no status of it.
    of_old = ((was & ~is_) | (rows["status_after"] == "")) & (rows["status_before"] != "")
    ids = rows["id"].where(~of_old, rows["id_before"])
    return [
        links.text(region, diff.old if is_old else diff.new, side, int(id_))
        for region, is_old, side, id_ in zip(rows["region"], of_old, rows["side"], ids, strict=True)
    ]


def _differences(
    key: str, caption: str, rows: Iterable[Any], more: Sequence[TableColumn] = ()
) -> tuple[TableSpec, pd.DataFrame]:
    """Return a row per figure: both versions and their difference; ``key`` names the figures."""
    columns = [
        name_column(key),
        number("old", about="mean over patients in the old version"),
        number("new", about="mean over patients in the new version"),
        number(
            "difference", "difference", lambda d: signed(d, 4), "new minus old, mean over patients"
        ),
        bounds("low", "high", f"{LEVEL:.0%} interval", "BCa bootstrap over patients"),
        number("p", "p", p_value, "two-sided sign-flip test over patients"),
        number("holm_p", "Holm p", p_value, f"corrected over every {key}"),
        whole("patients", about="with a figure in both versions"),
        *more,
        words("note", " "),
    ]
    spec = TableSpec("", key, columns, caption)
    return spec, spec.frame(rows)


def _metrics(comparison: VersionComparison) -> tuple[TableSpec, pd.DataFrame]:
    rows = (
        ({"metric": FIGURE_NAMES[one.name], "difference": one.interval.mean}, one, one.interval)
        for one in comparison.metrics
    )
    return _differences("metric", "Every metric in both versions.", rows)


def _by_class(comparison: VersionComparison) -> tuple[TableSpec, pd.DataFrame]:
    """Return the PQ of each class in both versions, with its objects by change."""
    diff, parts = comparison.diff, comparison.change.by_class
    # "new" is a version and a change.
    counts = diff.by("class").set_index("class").add_prefix(_OBJECTS).to_dict("index")
    more = [*_change_columns(diff, _OBJECTS), PART]
    none = dict.fromkeys((column.keys[0] for column in more), 0)
    rows = (
        (
            {"class": one.name, "difference": one.interval.mean},
            {"delta_pq": parts.get(one.name, 0.0)},
            counts.get(one.name, none),
            one,
            one.interval,
        )
        for one in comparison.classes
    )
    return _differences("class", "PQ of each class, both versions.", rows, more)


def _change_columns(diff: VersionDiff, prefix: str = "") -> list[TableColumn]:
    return [
        whole(f"{prefix}{change}", str(change).replace("-", " "), CHANGE_MEANINGS[change])
        for change in diff.changes
    ]


def _changes(comparison: VersionComparison) -> tuple[TableSpec, pd.DataFrame]:
    diff = comparison.diff
    caption = f"Objects by change. FPs are recognised by {comparison.pairing}."
    spec = TableSpec(
        "", "change", [words("change"), words("meaning"), whole("objects"), PART], caption
    )
    parts = comparison.change.grouped(diff.rows["change"])
    return spec, spec.frame(
        {
            "change": str(change),
            "meaning": CHANGE_MEANINGS[change],
            "objects": n,
            "delta_pq": parts.get(str(change), 0.0),
        }
        for change, n in diff.counts.items()
    )


def _transitions(comparison: VersionComparison) -> tuple[TableSpec, pd.DataFrame]:
    columns = [words("outcomes", "before -> after"), whole("objects"), PART]
    return TableSpec("", "outcomes before and after", columns), transitions(comparison)


def transitions(comparison: VersionComparison) -> pd.DataFrame:
    """Return the outcomes before and after that differ, with objects and part of the PQ change.

    The most frequent come first.
    """
    import pandas as pd

    rows = comparison.diff.rows
    before, after = (outcome_names(rows, when) for when in ("before", "after"))
    moved = (before != after).to_numpy()
    named = (before + " -> " + after)[moved]
    found = pd.DataFrame({"outcomes": named, "part": comparison.change.of_row[moved]})
    sums = found.groupby("outcomes")["part"].agg(objects="size", delta_pq="sum").reset_index()
    return sums.sort_values("objects", ascending=False, kind="stable")


def _matrix(diff: VersionDiff, side: Side) -> tuple[TableSpec, pd.DataFrame]:
    cells = diff.matrix(side)
    columns = [words("before"), *(whole(str(after)) for after in cells.columns)]
    caption = (
        f"Number of {_WHAT[side]} by outcome: rows in the old version, columns in the new one."
    )
    return TableSpec("", "outcome", columns, caption), cells.reset_index()


def _parts(comparison: VersionComparison) -> tuple[TableSpec, pd.DataFrame]:
    """Return every split of the change of PQ, with bars."""
    change = comparison.change
    groups = {
        "quality": {"outlines (SQ)": change.sq, "detection (DQ)": change.dq},
        "change": {
            name.replace("-", " "): part
            for name, part in change.grouped(comparison.diff.rows["change"]).items()
        },
        "class": dict(change.by_class),
        "cause": change.grouped(change.cause),
    }
    rows: list[dict[str, Any]] = [
        {"by": by, "part": name, "delta_pq": part}
        for by, parts in groups.items()
        for name, part in parts.items()
    ]
    largest = max((abs(row["delta_pq"]) for row in rows), default=0.0) or 1.0
    columns = [
        words("by", "split by", "each split adds up to the change of PQ"),
        name_column("part"),
        PART,
        TableColumn(
            " ",
            lambda row: CellContent(_bar(row["delta_pq"] / largest)),
            about="length: size of the part; ◀ lowers PQ, ▶ raises it",
        ),
    ]
    caption = (
        f"The change of PQ, {signed(change.total, 4)}, split in four ways; each adds up to it."
    )
    spec = TableSpec("", "part of the change of PQ", columns, caption)
    return spec, spec.frame(rows)


def _bar(share: float) -> str:
    blocks = "■" * round(_BAR * abs(share))
    if not blocks:
        return ""
    return f"◀{blocks}" if share < 0 else f"{blocks}▶"


def _grouped(
    comparison: VersionComparison, *, keys: tuple[str, ...]
) -> tuple[TableSpec, pd.DataFrame]:
    """Return the objects of each patient or region by change."""
    diff, frame = comparison.diff, comparison.diff.by(*keys)
    parts = comparison.change.grouped(diff.rows[keys[-1]])
    frame["delta_pq"] = [parts.get(str(name), 0.0) for name in frame[keys[-1]]]
    columns = [*map(name_column, keys), *_change_columns(diff), PART]
    return TableSpec("", keys[-1], columns, f"Objects of each {keys[-1]} by change."), frame


_TABLES: Mapping[str, Callable[[VersionComparison], tuple[TableSpec, pd.DataFrame]]] = {
    METRICS: _metrics,
    CLASSES: _by_class,
    PATIENTS: partial(_grouped, keys=("patient",)),
    REGIONS: partial(_grouped, keys=("patient", "region")),
    PARTS: _parts,
}


def comparison_table(comparison: VersionComparison, heading: str) -> AnswerTable:
    """Return one of the tables `METRICS`, `CLASSES`, `PATIENTS`, `REGIONS`, `PARTS`."""
    spec, frame = _TABLES[heading](comparison)
    printed = len(frame) if heading == METRICS else 0
    return AnswerTable(spec, frame, printed=printed, heading=heading, is_long=heading == REGIONS)


# --- the record -------------------------------------------------------------------------------


def comparison_record(
    comparison: VersionComparison,
    *,
    settings: Mapping[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """Return the content of ``compare.json``: with the settings of the evaluations, and more."""
    deciding, decision, diff = comparison.deciding, comparison.decision, comparison.diff
    return {
        **fields_of(diff, "old", "new"),
        "metric": comparison.metric,
        "difference": deciding.interval.mean,
        **fields_of(deciding.interval, "low", "high"),
        **fields_of(deciding, "p", "patients"),
        **fields_of(decision, "verdict", "reason"),
        "unit": deciding.figures.unit,
        "level": LEVEL,
        "margin": decision.margin,
        "needed_patients": decision.needed,
        "decision": decision_record(decision),
        **fields_of(comparison, "regions", "only_old", "only_new"),
        **fields_of(diff, "counts", "flags", "ignored", "ignored_once"),
        "fp_pairing": comparison.pairing,
        "before_after": {str(side): _matrix_record(diff, side) for side in Side},
        "by_class": diff.by("class").to_dict("records"),
        "by_patient": diff.by("patient").to_dict("records"),
        "by_region": diff.by("patient", "region").to_dict("records"),
        "delta_pq": change_record(comparison.change, diff),
        "metrics": [difference_record(one) for one in comparison.metrics],
        "classes": [{"class": one.name, **_of_class(one)} for one in comparison.classes],
        "bootstrap": bootstrap_record(RESAMPLES, SEED),
        "sign_flip": {
            "exact_up_to": EXACT_UP_TO,
            "draws": DRAWS,
            "seed": SEED,
            "least_patients": LEAST_PATIENTS,
        },
        **more,
        "settings": settings,
    }


def change_record(change: QualityChange, diff: VersionDiff) -> dict[str, Any]:
    """Return the parts of the change of PQ as plain values."""
    return {
        **fields_of(change, "total", "patients", "sq", "dq", "by_class"),
        "by_cause": change.grouped(change.cause),
        "by_change": change.grouped(diff.rows["change"]),
    }


def _matrix_record(diff: VersionDiff, side: Side) -> dict[str, dict[str, int]]:
    """Return the cells with objects: outcome before -> outcome after -> count."""
    cells = diff.matrix(side)
    return {
        str(before): {str(after): int(n) for after, n in row.items() if n}
        for before, row in cells.iterrows()
    }


def _of_class(difference: PairedDifference) -> dict[str, Any]:
    return {**difference_record(difference), "metric": "pq"}
