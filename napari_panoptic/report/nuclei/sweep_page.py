"""The page of a sweep over settings, ``sweep.html``."""

from __future__ import annotations

from collections.abc import Mapping

from napari_panoptic.nuclei.metrics import FIGURE_NAMES
from napari_panoptic.questions.engines.sweep import CohortSweep
from napari_panoptic.questions.sweep import (
    SWEEP,
    SWEEP_PATIENTS,
    SWEEP_STEPS,
    choice_lines,
    parameter_column,
    patients_table,
    settings_table,
    step_row,
    step_title,
    steps_table,
)
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
from napari_panoptic.statistics.bootstrap import LEVEL
from napari_panoptic.tables.columns import (
    name_column,
    whole,
    words,
)
from napari_panoptic.tables.figures import counted
from napari_panoptic.tables.markup import Child, bullets, definitions, named, note, paragraph


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


def _choice_section(sweep: CohortSweep) -> list[Child]:
    return [
        definitions(dict(choice_lines(sweep))),
        note(
            "The figure of the best setting is optimistic because it was chosen on these patients. "
            "The honest figure is the mean over patients, each under the setting that is best "
            "without it; the optimism is the difference, paired by patient. Intervals: "
            f"{LEVEL:.0%}, with the choice resampled together with the patients."
        ),
        spec_table(SWEEP_PATIENTS, patients_table(sweep)),
    ]


def _figures_section(sweep: CohortSweep) -> list[Child]:
    from napari_panoptic.report.plots.embed import plot_figure
    from napari_panoptic.report.plots.sweeps import sweep_figure

    frame = settings_table(sweep)
    columns = [
        name_column("team", "setting"),
        *(parameter_column(name) for name in sweep.design.parameters),
        *(column for column in SWEEP.shown() if column.keys != ("team",)),
    ]
    caption = "Mean over patients under each setting."
    plotted = "The mean under each setting with its interval; the dashed line is the best setting."
    return [
        plot_figure(sweep_figure(sweep), "sweep", plotted),
        table("sweep", caption, columns, frame),
    ]


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
        f"{step_title(sweep, step)}: split {row['split_before']} to {row['split_after']}, merged "
        f"{row['merged_before']} to {row['merged_after']}"
        for step, row in ((step, step_row(sweep, step)) for step in sweep.steps)
        if row["turns"]
    ]
    found = [paragraph("Splits and mergers swap:"), bullets(turns)] if turns else []
    return [
        *found,
        plot_figure(sweep_causes(sweep), "sweep_causes", "Failures of each cause."),
        table("sweep_causes", "Number of failures of each cause.", columns, rows),
    ]


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
