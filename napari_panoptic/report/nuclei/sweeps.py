"""A sweep over settings: its tables, ``sweep.json``, and a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_panoptic.common.records import fields_of
from napari_panoptic.nuclei.regions.cohort_evaluation import LOWER_IS_BETTER
from napari_panoptic.questions.engines.sweep import FLIP_COLUMNS, CohortSweep, SweepStep
from napari_panoptic.questions.engines.sweep_design import value_text
from napari_panoptic.questions.engines.version_diff import Change
from napari_panoptic.report.columns import spec_table, table
from napari_panoptic.report.page import Section
from napari_panoptic.report.sections import (
    DATA_SLUG,
    findings_section,
    fingerprints,
    lead,
    report_document,
    settings_section,
)
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED, Interval
from napari_panoptic.statistics.teams import bootstrap_record
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    TableSpec,
    bounds,
    name_column,
    number,
    unshown,
    whole,
    words,
)
from napari_panoptic.tables.figures import (
    FIGURE_NAMES,
    counted,
    counted_as_worst,
    interval,
    signed,
    writer,
)
from napari_panoptic.tables.markup import Child, bullets, definitions, named, note, paragraph
from napari_panoptic.values.vocabulary import Cause, Side

if TYPE_CHECKING:
    import pandas as pd

SWEEP_RECORD = "sweep.json"
SWEEP_PAGE = "sweep.html"
PARAMETER = "param_"
"""Prefix of the columns of parameters."""
_FLIPPED = (Change.FIXED, Change.BROKEN, Change.RECLASSIFIED, Change.NEW, Change.GONE)

SWEEP = TableSpec(
    "sweep.csv",
    "setting, in the order of its parameters; a column `param_…` for each of them follows",
    [
        unshown("team"),
        number("mean", about="of the metric, over the same patients for all settings"),
        bounds("low", "high", f"{LEVEL:.0%} interval"),
        whole("patients", "with a figure", about="with a figure under this setting"),
        words("best", about="yes for the setting with the best mean"),
        whole("chosen", "chosen by", about="number of patients without whom it is the best"),
    ],
)
SWEEP_CAUSES = TableSpec(
    "sweep_causes.csv",
    "setting, side and cause",
    [
        unshown("team", "side"),
        unshown("cause", about="of FN and FP; misclassified nuclei count as one"),
        unshown("count"),
    ],
)
SWEEP_STEPS = TableSpec(
    "sweep_steps.csv",
    "two neighbouring settings",
    [
        name_column("parameter", about="the one that differs"),
        name_column("team_before", "from"),
        name_column("team_after", "to"),
        number("difference", "difference", signed, about="of the metric, after minus before"),
        bounds("low", "high", f"{LEVEL:.0%} interval"),
        *(whole(one.value) for one in _FLIPPED[:-1]),
        whole(_FLIPPED[-1].value, about="numbers of objects, as in `diff.csv`"),
        whole("split_before", "split before", about="FN of this cause"),
        whole("split_after", "split after"),
        whole("merged_before", "merged before", about="FN of this cause"),
        whole("merged_after", "merged after"),
        words("turns", about="yes if the more frequent of the two is not more frequent after"),
    ],
    "Annotated objects that are fixed, broken or reclassified, and FPs that are new or gone, "
    "between neighbouring settings; each object is in sweep_flips.csv.",
)
SWEEP_FLIPS = TableSpec(
    "sweep_flips.csv",
    "annotated object, or FP, whose outcome differs between two neighbouring settings",
    [
        unshown(*FLIP_COLUMNS[:6]),
        unshown("id", about="after; of a gone FP before"),
        unshown("id_before", about="empty if the FP is new"),
        unshown("class"),
        unshown("change", about="as in `diff.csv`"),
        unshown("outcome_before", "outcome_after", about="status and cause"),
        unshown(*FLIP_COLUMNS[12:]),
    ],
)
SWEEP_PATIENTS = TableSpec(
    "sweep_patients.csv",
    "patient",
    [
        name_column("patient"),
        name_column("chosen", "chosen by the others", about="the best setting without the patient"),
        number("left_out", "figure under it", about="the patient's own figure under it"),
        number("at_best", "figure under the best of all"),
        unshown("figure_…", about="the metric under each team, in the order of `sweep.csv`"),
    ],
    "Each patient under the setting that is best for all others.",
)
SPECS = (SWEEP, SWEEP_CAUSES, SWEEP_STEPS, SWEEP_FLIPS, SWEEP_PATIENTS)
SWEEP_NAMES = (*(spec.file for spec in SPECS), SWEEP_PAGE, SWEEP_RECORD)
"""The files of a sweep, the record last."""


# --- tables -----------------------------------------------------------------------------------


def sweep_tables(sweep: CohortSweep) -> dict[str, pd.DataFrame]:
    """Return the tables of a sweep: file name -> rows."""
    return {
        SWEEP.file: settings_table(sweep),
        SWEEP_CAUSES.file: SWEEP_CAUSES.frame(
            {"team": team, "side": str(side), "cause": cause, "count": n}
            for team, causes in zip(sweep.design.teams, sweep.causes, strict=True)
            for (side, cause), n in causes.items()
        ),
        SWEEP_STEPS.file: steps_table(sweep),
        SWEEP_FLIPS.file: sweep.flips,
        SWEEP_PATIENTS.file: _patients_table(sweep),
    }


def settings_table(sweep: CohortSweep) -> pd.DataFrame:
    """Return a row per setting: the metric, and whether the setting is the best."""
    design, choice = sweep.design, sweep.choice
    rows = [
        {
            "team": team,
            **fields_of(sweep.means[place], "mean", "low", "high"),
            "patients": int((~np.isnan(sweep.figures[:, place])).sum()),
            "best": "yes" if place == choice.best else "",
            "chosen": choice.chosen.count(place),
        }
        for place, team in enumerate(design.teams)
    ]
    frame = SWEEP.frame(rows)
    for number_, name in enumerate(design.parameters):
        frame[PARAMETER + name] = [setting.values[number_] for setting in design.settings]
    return frame


def steps_table(sweep: CohortSweep) -> pd.DataFrame:
    """Return a row per two neighbouring settings: the difference, and objects that change."""
    return SWEEP_STEPS.frame(_step_row(sweep, step) for step in sweep.steps)


def _step_row(sweep: CohortSweep, step: SweepStep) -> dict[str, Any]:
    places = {"before": step.neighbours.before, "after": step.neighbours.after}
    return {
        "parameter": step.neighbours.parameter,
        **{f"team_{when}": sweep.design.teams[place] for when, place in places.items()},
        "difference": step.difference.mean,
        **fields_of(step.difference, "low", "high"),
        **{one.value: step.changes[one] for one in _FLIPPED},
        **{
            f"{cause}_{when}": sweep.causes[place][Side.REFERENCE, str(cause)]
            for cause in (Cause.SPLIT, Cause.MERGED)
            for when, place in places.items()
        },
        "turns": "yes" if sweep.turns(step) else "",
    }


def _patients_table(sweep: CohortSweep) -> pd.DataFrame:
    import pandas as pd

    teams, choice = sweep.design.teams, sweep.choice
    frame = pd.DataFrame(
        {
            "patient": sweep.patients,
            "chosen": ["" if place is None else teams[place] for place in choice.chosen],
            "left_out": choice.left_out,
            "at_best": choice.at_best,
        }
    )
    return frame.assign(**{f"figure_{t}": sweep.figures[:, n] for n, t in enumerate(teams)})


def sweep_record(sweep: CohortSweep, **more: Any) -> dict[str, Any]:
    """Return the content of ``sweep.json``, with further entries."""
    design, choice = sweep.design, sweep.choice
    return {
        "metric": sweep.metric,
        "higher_is_better": sweep.metric not in LOWER_IS_BETTER,
        "best": None if choice.best is None else design.teams[choice.best],
        "optimistic": choice.optimistic,
        **fields_of(choice, "honest", "optimism"),
        "parameters": design.parameters,
        "settings_swept": {
            setting.team: dict(zip(design.parameters, setting.values, strict=True))
            for setting in design.settings
        },
        "regions": sweep.regions,
        "patients": len(sweep.patients),
        "counted_as_worst": sweep.counted_as_worst,
        "bootstrap": bootstrap_record(RESAMPLES, SEED),
        **more,
        "settings": sweep.settings.as_record(),
    }


# --- the page ---------------------------------------------------------------------------------


def sweep_page(sweep: CohortSweep, inputs: Mapping[str, str]) -> str:
    """Return the page of a sweep, with the fingerprints of its input files."""
    first = lead(
        f"{counted(len(sweep.design.settings), 'setting')} of ",
        named(", ".join(sweep.design.parameters)),
        f", {counted(sweep.regions, 'region')} of {counted(len(sweep.patients), 'patient')}",
        date="",
        findings=sweep.findings,
        consequence="Regions without all settings are excluded from the figures.",
    )
    shown = {name: str(value) for name, value in sweep.settings.as_record().items()}
    sections = [
        Section("choice", "The best setting", _choice_section(sweep)),
        Section("settings", FIGURE_NAMES[sweep.metric], _figures_section(sweep)),
        Section("causes", "Causes of failures", _causes_section(sweep)),
        Section("steps", "From setting to setting", _steps_section(sweep)),
        Section(DATA_SLUG, "Data quality", findings_section(sweep.findings)),
        Section("provenance", "Settings of the evaluation", settings_section(shown)),
        Section("inputs", "Input files", [fingerprints(inputs)]),
    ]
    return report_document("Sweep", first, sections)


def choice_lines(sweep: CohortSweep) -> Iterator[tuple[str, str]]:
    """Yield the facts on the choice: names and texts."""
    choice, write = sweep.choice, writer(sweep.metric)
    if choice.best is None:
        yield "best setting", "none: no patient has a figure"
        return
    best = sweep.means[choice.best]
    yield "best setting", f"{sweep.design.teams[choice.best]} ({sweep.design.title(choice.best)})"
    yield (
        "figure of the best",
        f"{write(best.mean)} ({interval(best.low, best.high)}) over {counted(best.n, 'patient')}",
    )
    if sweep.counted_as_worst:
        yield "undefined under some settings", counted_as_worst(sweep.counted_as_worst, "setting")
    if choice.honest.n == 0:
        yield "honest figure", "undefined: it needs two or more patients"
        return
    honest, optimism = choice.honest, choice.optimism
    yield "honest figure", f"{write(honest.mean)} ({_certainty(honest)})"
    yield "optimism", f"{signed(optimism.mean, 4)} ({_certainty(optimism)})"
    n_other = sum(place != choice.best for place in choice.chosen)
    yield (
        "stability",
        f"the same setting is best without {len(choice.chosen) - n_other} of "
        f"{counted(len(choice.chosen), 'patient')}",
    )


def _certainty(found: Interval) -> str:
    return found.why if math.isnan(found.low) else interval(found.low, found.high)


def _choice_section(sweep: CohortSweep) -> list[Child]:
    return [
        definitions(dict(choice_lines(sweep))),
        note(
            "The figure of the best setting is optimistic because it was chosen on these patients. "
            "The honest figure is the mean over patients, each under the setting that is best "
            "without it; the optimism is the difference, paired by patient. Intervals: "
            f"{LEVEL:.0%}, with the choice resampled together with the patients."
        ),
        spec_table(SWEEP_PATIENTS, _patients_table(sweep)),
    ]


def _figures_section(sweep: CohortSweep) -> list[Child]:
    from napari_panoptic.report.plots.embed import plot_figure
    from napari_panoptic.report.plots.sweeps import sweep_figure

    frame = settings_table(sweep)
    columns = [
        name_column("team", "setting"),
        *(_parameter_column(name) for name in sweep.design.parameters),
        *SWEEP.shown(),
    ]
    caption = "Mean over patients under each setting."
    plotted = "The mean under each setting with its interval; the dashed line is the best setting."
    return [
        plot_figure(sweep_figure(sweep), "sweep", plotted),
        table("sweep", caption, columns, frame),
    ]


def _parameter_column(name: str) -> TableColumn:
    key = PARAMETER + name

    def cell(row: Record) -> CellContent:
        value = row[key]
        return (
            CellContent(named(value))
            if isinstance(value, str)
            else CellContent(value_text(value), value)
        )

    return TableColumn(named(name), cell, (key,))


def _causes_section(sweep: CohortSweep) -> list[Child]:
    from napari_panoptic.report.plots.embed import plot_figure
    from napari_panoptic.report.plots.sweeps import sweep_causes

    used = [key for key in sweep.causes[0] if any(own[key] for own in sweep.causes)]
    rows = [
        {"setting": team} | {f"{side}: {cause}": causes[side, cause] for side, cause in used}
        for team, causes in zip(sweep.design.teams, sweep.causes, strict=True)
    ]
    columns = [name_column("setting"), *(whole(f"{side}: {cause}") for side, cause in used)]
    turns = [
        f"{_step_title(sweep, step)}: split {row['split_before']} to {row['split_after']}, merged "
        f"{row['merged_before']} to {row['merged_after']}"
        for step, row in ((step, _step_row(sweep, step)) for step in sweep.steps)
        if row["turns"]
    ]
    found = [paragraph("Splits and mergers swap:"), bullets(turns)] if turns else []
    return [
        *found,
        plot_figure(sweep_causes(sweep), "sweep_causes", "Failures of each cause."),
        table("sweep_causes", "Number of failures of each cause.", columns, rows),
    ]


def _step_title(sweep: CohortSweep, step: SweepStep) -> str:
    titles = (sweep.design.title(p) for p in (step.neighbours.before, step.neighbours.after))
    return " to ".join(titles)


def _steps_section(sweep: CohortSweep) -> list[Child]:
    if not sweep.steps:
        return [paragraph("No two settings are equal in all parameters but one.")]
    flips = sweep.flips
    parts: list[Child] = [spec_table(SWEEP_STEPS, steps_table(sweep))]
    if len(flips):
        keys = ["team_before", "team_after", "outcome_before", "outcome_after"]
        counts = flips.groupby(keys, sort=False).size().rename("objects").reset_index()
        counts = counts.sort_values("objects", ascending=False, kind="stable", ignore_index=True)
        columns = [
            name_column("team_before", "from"),
            name_column("team_after", "to"),
            words("outcome_before", "before"),
            words("outcome_after", "after"),
            whole("objects"),
        ]
        parts.append(table("sweep_outcomes", "How outcomes change.", columns, counts))
    return parts
