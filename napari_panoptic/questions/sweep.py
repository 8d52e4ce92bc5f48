"""Find the best setting of a post-processing, and what it is worth for new patients."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_panoptic.common.errors import SettingsError, checked_name
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.records import fields_of
from napari_panoptic.common.text import english_list
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.io.tables.csv_tables import read_sweep_table
from napari_panoptic.nuclei.metrics import FIGURE_NAMES, METRIC_NAMES, METRIC_TEXTS
from napari_panoptic.nuclei.regions.cohort_evaluation import LOWER_IS_BETTER, InputWatch
from napari_panoptic.questions.answer import Answer, AnswerPlot, AnswerRecord, AnswerTable
from napari_panoptic.questions.engines.sweep import (
    FLIPS,
    CohortSweep,
    SweepStep,
    sweep_cohort,
)
from napari_panoptic.questions.engines.sweep_design import (
    SweepDesign,
    parameters_in,
    sweep_design,
    value_text,
)
from napari_panoptic.questions.engines.version_diff import NO_OBJECT, Change
from napari_panoptic.questions.engines.versions import check_scoring
from napari_panoptic.questions.question import Question, option
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
    counted,
    counted_as_worst,
    interval,
    signed,
    writer,
)
from napari_panoptic.tables.markup import named
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.vocabulary import Cause, Side, Status

if TYPE_CHECKING:
    import pandas as pd

PARAMETER = "param_"
"""Prefix of the columns of parameters."""
_FLIPPED = (Change.FIXED, Change.BROKEN, Change.RECLASSIFIED, Change.NEW, Change.GONE)

SWEEP = TableSpec(
    "sweep.csv",
    "setting, in the order of its parameters; a column `param_…` for each of them follows",
    [
        name_column("team", "setting"),
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
        *(whole(one.value, about="numbers of objects, as in `diff.csv`") for one in _FLIPPED),
        whole("split_before", "split before", about="FN of this cause"),
        whole("split_after", "split after", about="FN of this cause"),
        whole("merged_before", "merged before", about="FN of this cause"),
        whole("merged_after", "merged after", about="FN of this cause"),
        words("turns", about="yes if the more frequent of the two is not more frequent after"),
    ],
    "Annotated objects that are fixed, broken or reclassified, and FPs that are new or gone, "
    "between neighbouring settings; each object is in sweep_flips.csv.",
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
_OUTCOMES = TableSpec(
    "",
    "two neighbouring settings and two outcomes",
    [
        name_column("team_before", "from"),
        name_column("team_after", "to"),
        words("outcome_before", "before", about="status and cause"),
        words("outcome_after", "after"),
        whole("objects"),
    ],
    "How outcomes change.",
)
_CAUSES = "Causes of failures"
_PLOTTED = "The mean under each setting with its interval; the dashed line is the best setting."
_RIGHT = (str(Status.TP), str(Status.IGNORED))
_OPTIMISTIC = (
    "The figure of the best setting is optimistic because it was chosen on these patients. The "
    "honest figure is the mean over patients, each under the setting that is best without it; the "
    "optimism is the difference, paired by patient. Intervals: "
    f"{LEVEL:.0%}, with the choice resampled together with the patients."
)
_WITHOUT_PARAMETER = (
    "the team's name has no parameter, so it is left out of the sweep; write a table for "
    "--settings to include it"
)


def _names(text: str) -> tuple[str, ...]:
    """Split names at semicolons if there are any, since names can contain commas."""
    parts = text.split(";" if ";" in text else ",")
    names = tuple(dict.fromkeys(name.strip() for name in parts if name.strip()))
    if not names:
        raise SettingsError(f"--teams: expected names separated by commas, found '{text}'")
    return names


def _metrics(_inputs: Mapping[str, Any]) -> Sequence[tuple[str, str, str]]:
    return [(name, METRIC_TEXTS[name].caption, METRIC_TEXTS[name].meaning) for name in METRIC_NAMES]


@dataclass(frozen=True, kw_only=True)
class Sweep(Question):
    """Which setting of a post-processing is best, if the teams are its settings."""

    title = "Sweeps"
    heading = "Settings swept"
    key = "Alt-y"  # S saves a screenshot in napari, W is the mnemonic of its menu Window
    about = (
        "Evaluate teams that are settings of one post-processing, such as prob0.5_nms0.3: a metric "
        "over the settings with intervals, causes of failures, objects that change between "
        "neighbouring settings, and the best setting with its honest figure, for which it is "
        "chosen while each patient in turn is left out. Write tables, sweep.json and sweep.html. "
        "Exit status: 0 done, 1 nothing could be evaluated, 2 wrong arguments."
    )
    hint = "Press “Compute” to see which setting is best, and what each step changes."
    tables = (SWEEP, SWEEP_CAUSES, SWEEP_STEPS, FLIPS, SWEEP_PATIENTS)
    has_score = False
    page = "sweep.html"
    share_of_gathering = 1.0
    takes_windows = True
    takes_jobs = True

    #: The table with the parameters of each team; None to read them from names.
    table: Path | None = option(
        "CSV table with a column team and one for each parameter (default: parameters are read "
        "from the names of teams, such as prob0.5_nms0.3 or t=0.4,min=20)",
        None,
        word="settings",
        read=Path,
        metavar="TABLE",
    )
    #: The settings; empty for the teams of the table, or all whose names have parameters.
    wanted: tuple[str, ...] = option(
        "the settings, separated by commas or semicolons (default: the teams of the table, or all "
        "teams whose names have parameters)",
        (),
        word="teams",
        read=_names,
        metavar="A,B",
    )
    #: The metric by which settings are chosen.
    metric: str = option("the metric that decides", "pq", menu=_metrics)

    def why_not(self, cohort: Cohort) -> str:
        """Return why there is no sweep; empty if there is one."""
        try:
            check_scoring(self.settings)
            self.design(cohort)
        except SettingsError as error:
            return str(error)
        return ""

    def design(self, cohort: Cohort) -> SweepDesign:
        """Return the settings in order.

        Raises
        ------
        SettingsError
            For unknown teams, and settings that make no sweep.
        """
        return sweep_design(self._values(cohort)[0])

    def teams_read(self, cohort: Cohort) -> tuple[str, ...]:
        """Return the teams that are settings."""
        return self.design(cohort).teams

    def _values(
        self, cohort: Cohort
    ) -> tuple[Mapping[str, Mapping[str, str]], tuple[Finding, ...]]:
        """Return the parameters of each team of the sweep, and findings about teams left out."""
        wanted = [checked_name("--teams", name, cohort.checked_team) for name in self.wanted]
        if self.table is not None:
            rows = read_sweep_table(self.table).items()
            listed = {checked_name("--settings", t, cohort.checked_team): own for t, own in rows}
            if missing := [team for team in wanted if team not in listed]:
                raise SettingsError(
                    f"expected a row for each team, found none for {english_list(missing)}; add "
                    "it, or leave the team out of --teams",
                    path=self.table,
                )
            return {team: listed[team] for team in wanted or listed}, ()
        teams = wanted or [team.name for team in cohort.competing_teams]
        found = {team: parameters_in(team) for team in teams}
        if wanted:
            return found, ()
        left_out = tuple(
            Finding(FindingKind.EXTRA, _WITHOUT_PARAMETER, team=team)
            for team, values in found.items()
            if not values
        )
        return {team: values for team, values in found.items() if values}, left_out

    def gather(
        self, cohort: Cohort, progress: Progress = UNWATCHED, *, jobs: int | None = 1
    ) -> CohortSweep:
        """Evaluate all settings, and compare neighbouring ones."""
        values, left_out = self._values(cohort)
        design = sweep_design(values)
        watch = InputWatch(cohort, design.teams)
        sweep = sweep_cohort(
            cohort,
            design,
            self.settings,
            metric=self.metric,
            source=self.source,
            jobs=jobs,
            scheduler=self.scheduler,
            held_up_to_px=self.held_up_to_px,
            progress=progress,
        )
        return replace(sweep, findings=(*left_out, *sweep.findings, *watch.findings()))

    def answered(
        self, cohort: Cohort, gathered: CohortSweep, progress: Progress = UNWATCHED
    ) -> Answer:
        """Return the choice, and the tables of settings, causes, steps, objects and patients."""
        sweep, design = gathered, gathered.design
        settings, steps, flips = settings_table(sweep), steps_table(sweep), sweep.flips
        causes, outcomes = _causes_wide(sweep), _outcomes(flips)
        figure, all_printed = FIGURE_NAMES[sweep.metric], len(settings)
        best, *facts = (f"{name}: {text}." for name, text in choice_lines(sweep))
        turns = [
            f"{step_title(sweep, step)}: {_no_longer(row)}, split {row['split_before']} to "
            f"{row['split_after']}, merged {row['merged_before']} to {row['merged_after']}."
            for step, row in zip(sweep.steps, steps.to_dict("records"), strict=True)
            if row["turns"]
        ]
        scope = (
            f"{counted(len(design.settings), 'setting')} of {', '.join(design.parameters)}, "
            f"{counted(sweep.regions, 'region')} of {counted(len(sweep.patients), 'patient')}."
        )
        none = () if steps.size else ("No two settings are equal in all parameters but one.",)
        return Answer(
            headline=best,
            notes=(scope, *facts, _OPTIMISTIC, *turns, *none),
            tables=(
                AnswerTable(
                    _with_parameters(design), settings, printed=all_printed, heading=figure
                ),
                AnswerTable(SWEEP_CAUSES, _causes_long(sweep)),
                AnswerTable(causes[0], causes[1], printed=all_printed, heading=_CAUSES),
                AnswerTable(
                    SWEEP_STEPS,
                    steps,
                    lambda row: _changed(sweep.steps[row].flips),
                    has_others=True,
                    printed=len(steps),
                    heading="From setting to setting",
                ),
                AnswerTable(_OUTCOMES, outcomes, printed=0, heading="How outcomes change"),
                AnswerTable(
                    FLIPS,
                    flips,
                    lambda row: _changed(flips.iloc[[row]]),
                    has_others=True,
                    printed=0,
                    heading="Changed objects",
                    is_long=True,
                ),
                AnswerTable(
                    SWEEP_PATIENTS, patients_table(sweep), printed=0, heading="The honest figure"
                ),
            ),
            plots=(
                AnswerPlot("sweep_figure", figure, _PLOTTED, (sweep,)),
                AnswerPlot("sweep_causes", _CAUSES, "Failures of each cause.", (sweep,)),
            ),
            record=AnswerRecord(
                _record(sweep, cohort=cohort.name, protocol=self.protocol),
                sweep.findings,
                design.teams,
            ),
        )


# --- objects ----------------------------------------------------------------------------------


def _changed(flips: pd.DataFrame) -> FailureSet:
    """Return the objects of flips between two settings, each in a setting in which it fails."""
    before, after = flips["team_before"].iloc[0], flips["team_after"].iloc[0]
    is_after = ~flips["outcome_after"].isin([*_RIGHT, NO_OBJECT]).to_numpy()
    names = frozenset(
        FailureName(
            after if own_after else before,
            str(region),
            Side(side),
            int(id_after if own_after else id_before),
        )
        for own_after, region, side, id_after, id_before in zip(
            is_after, flips["region"], flips["side"], flips["id"], flips["id_before"], strict=True
        )
    )
    return FailureSet(f"{before} → {after}", names, (before, after))


# --- tables -----------------------------------------------------------------------------------


def settings_table(sweep: CohortSweep) -> pd.DataFrame:
    """Return a row per setting: the metric, and whether the setting is the best."""
    design, choice = sweep.design, sweep.choice
    parameters = [PARAMETER + name for name in design.parameters]
    rows = [
        {
            "team": team,
            **fields_of(sweep.means[place], "mean", "low", "high"),
            "patients": int((~np.isnan(sweep.figures[:, place])).sum()),
            "best": "yes" if place == choice.best else "",
            "chosen": choice.chosen.count(place),
            **dict(zip(parameters, design.settings[place].values, strict=True)),
        }
        for place, team in enumerate(design.teams)
    ]
    return SWEEP.extended(*parameters).frame(rows)


def steps_table(sweep: CohortSweep) -> pd.DataFrame:
    """Return a row per two neighbouring settings: the difference, and objects that change."""
    return SWEEP_STEPS.frame(step_row(sweep, step) for step in sweep.steps)


def step_row(sweep: CohortSweep, step: SweepStep) -> dict[str, Any]:
    """Return the row of two neighbouring settings in the table of steps."""
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


def patients_table(sweep: CohortSweep) -> pd.DataFrame:
    """Return each patient under the setting that the others choose, and under all settings."""
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


def _causes_long(sweep: CohortSweep) -> pd.DataFrame:
    return SWEEP_CAUSES.frame(
        {"team": team, "side": str(side), "cause": cause, "count": n}
        for team, causes in zip(sweep.design.teams, sweep.causes, strict=True)
        for (side, cause), n in causes.items()
    )


def _no_longer(step: Mapping[Hashable, Any]) -> str:
    """Return which cause loses its majority at a step; see `CohortSweep.turns`."""
    if step["merged_before"] > step["split_before"]:
        return "mergers no longer outnumber splits"
    return "splits no longer outnumber mergers"


def _causes_wide(sweep: CohortSweep) -> tuple[TableSpec, pd.DataFrame]:
    """Return a row per setting with the number of failures of each cause that occurs."""
    used = [key for key in sweep.causes[0] if any(own[key] for own in sweep.causes)]
    columns = [name_column("setting"), *(whole(f"{side}: {cause}") for side, cause in used)]
    spec = TableSpec("", "setting", columns, "Number of failures of each cause.")
    rows = (
        {"setting": team} | {f"{side}: {cause}": causes[side, cause] for side, cause in used}
        for team, causes in zip(sweep.design.teams, sweep.causes, strict=True)
    )
    return spec, spec.frame(rows)


def _outcomes(flips: pd.DataFrame) -> pd.DataFrame:
    """Return the number of objects of each two outcomes, the most frequent first."""
    counts = flips.groupby(_OUTCOMES.keys[:-1], sort=False).size().rename("objects").reset_index()
    return counts.sort_values("objects", ascending=False, kind="stable", ignore_index=True)


def _with_parameters(design: SweepDesign) -> TableSpec:
    """Return the table of settings with a column for each parameter."""
    first, *others = SWEEP.columns
    return replace(SWEEP, columns=[first, *map(parameter_column, design.parameters), *others])


def parameter_column(name: str) -> TableColumn:
    """Return the column of a parameter."""
    key = PARAMETER + name

    def cell(row: Record) -> CellContent:
        value = row[key]
        return (
            CellContent(named(value))
            if isinstance(value, str)
            else CellContent(value_text(value), value)
        )

    return TableColumn(named(name), cell, (key,))


def _record(sweep: CohortSweep, **more: Any) -> dict[str, Any]:
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


# --- sentences --------------------------------------------------------------------------------


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


def step_title(sweep: CohortSweep, step: SweepStep) -> str:
    """Return the parameters of two neighbouring settings, in words."""
    titles = (sweep.design.title(p) for p in (step.neighbours.before, step.neighbours.after))
    return " to ".join(titles)
