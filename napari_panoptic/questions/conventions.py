"""Compute the figures of published evaluation codes, or find the convention behind a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_panoptic.common.errors import LabelError, PanopticError, SettingsError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.explain.failures import FailureSet
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.io.tables.metadata import Metadata, metadata_beside, read_metadata
from napari_panoptic.nuclei.class_masks import evaluate_classes
from napari_panoptic.nuclei.conventions import RegionSums, Rules, TeamSums, figure_rows, rules_of
from napari_panoptic.nuclei.regions.cohort_evaluation import place_of
from napari_panoptic.nuclei.regions.looks import Teams
from napari_panoptic.questions.answer import Answer, AnswerPlot, AnswerTable, UnansweredError
from napari_panoptic.questions.engines import detective
from napari_panoptic.questions.engines.convention_objects import (
    Difference,
    differences,
    known_classes,
    sums_under,
)
from napari_panoptic.questions.question import (
    Gathered,
    Question,
    option,
    whole_number,
    why_nothing,
)
from napari_panoptic.statistics.ranks import competition_ranks
from napari_panoptic.tables import columns
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.conventions import (
    CHOICES,
    CONVENTIONS,
    DEFAULT_PROTOCOL,
    NamedFigure,
    choices_of,
    comparable_with,
    figure_words,
    figures_of,
    score_of,
)
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.windowed_labels import TiledPair

VALUES = columns.TableSpec(
    "conventions.csv",
    "team, convention, figure and class; an empty class stands for all",
    [
        columns.unshown("team", "convention", "figure", "class"),
        columns.unshown("value", about="empty where the published code has none"),
        columns.unshown("units", about="regions or groups of the last mean; empty if pooled"),
        columns.unshown(*CHOICES),
    ],
)
MATCHES = columns.TableSpec(
    "matches.csv",
    "combination of choices, the best first; only with published figures, and with a column for "
    "each team",
    [
        columns.unshown(*CHOICES),
        columns.unshown("convention", about="those with a name"),
        columns.unshown("difference", about="the largest from a published figure"),
        columns.unshown("matches", about="`yes` or `no`"),
    ],
)
OBJECTS = columns.TableSpec(
    "",
    "reason, team, region and class",
    [
        columns.words("reason", "Counted in different ways"),
        columns.name_column("team"),
        columns.name_column("region"),
        columns.words("class"),
        columns.whole("objects"),
    ],
    "Nuclei that some conventions count otherwise than others.",
)
SCORES = "convention"
"""Title of the table with the score of each convention."""
_FIGURES = tuple(detective.FORMULAS)
_PERCENT = 100


def _names(word: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in word.split(",") if name.strip())
    for name in names:
        figures_of(name)
    return names


def _published(text: str) -> tuple[tuple[str, float], ...]:
    found: list[tuple[str, float]] = []
    for word in filter(None, map(str.strip, text.split(","))):
        team, _, figure = map(str.strip, word.rpartition("="))
        if found and not team and word.isdecimal():
            raise SettingsError(f"expected a decimal point, found a comma before '{word}'; write .")
        try:
            value = float(figure)
        except ValueError:
            value = None
        if value is None or not team:
            raise SettingsError(f"must be TEAM=FIGURE, such as A=0.561, found '{word}'")
        if 1 < value <= _PERCENT:
            hint = f"'{word}', which seems to be percent; write {team}={value / _PERCENT:.6g}"
            raise SettingsError(f"must be a share from 0 to 1, found {hint}")
        if not 0 <= value <= 1:
            raise SettingsError(f"must be a number from 0 to 1, found '{word}'; correct it")
        found.append((team, value))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class CohortSums:
    """What is kept of a cohort."""

    #: Team -> rules -> its sums over the regions in which every team could be evaluated.
    teams: Mapping[str, Mapping[Rules, TeamSums]]
    #: The names of these regions.
    regions: Sequence[str]
    #: What conventions count in different ways, and what was odd.
    differences: Sequence[Difference]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class Conventions(Question):
    """The figures of teams by the conventions of published evaluation codes."""

    title = "Conventions"
    key = "Alt-z"  # C copies a screenshot in napari
    heading = "The same masks by other conventions"
    about = (
        "Compute the figures of published evaluation codes (bPQ, mPQ, mPQ+, AJI, Dice, R2 and "
        "others) with the averages and exceptions of each code, and write them to conventions.csv. "
        "With --published, find which conventions give the figures of a paper, and write "
        "matches.csv. Exit status: 0 done, 1 nothing could be evaluated, 2 wrong arguments."
    )
    hint = "Press “Compute” to see what other evaluation codes give for these predictions."
    tables = (VALUES, MATCHES)
    takes_windows = True
    own_settings = EvaluationSettings()
    takes_uncertain = True

    #: Names of the teams.
    teams: tuple[str, ...] = option("names of teams, separated by commas (default: all)")
    convention: tuple[str, ...] = option(
        f"only these, separated by commas: {english_list(list(CONVENTIONS), limit=99)}, or "
        "monusac-2020-as-run with corrections after it, each behind a '+' (default: all)",
        (),
        read=_names,
        metavar="NAME,…",
        is_late=True,
    )
    metadata: Path | Metadata | None = option("a table with a column patient and others", None)
    published: tuple[tuple[str, float], ...] = option(
        "the published figure of a team, once for each: finds the conventions that give them",
        (),
        read=_published,
        metavar="TEAM=FIGURE",
        is_repeated=True,
        placeholder="Published figures, such as A=0.561, B=0.549",
    )
    figure: str = option(
        "which figure was published (default: %(default)s)",
        "pq",
        choices=_FIGURES,
        menu=lambda _: [
            (name, f"published: {figure_words(name)}", "Which figure the published ones are.")
            for name in _FIGURES
        ],
        is_late=True,
    )
    decimals: int = option(
        "decimals of the published figures (default: %(default)s)",
        3,
        read=whole_number(1),
        metavar="N",
        menu=lambda _: [(n, f"{n} decimals", "Of the published figures.") for n in (3, 2, 4)],
        is_late=True,
    )

    def why_not(self, cohort: Cohort) -> str:
        """Return which published figure has no evaluated team, or is one of several of a team.

        Or which convention knows no uncertain border, if there is one.
        """
        able = self.settings.known_by
        others = [name for name in self.convention if name not in able]
        if self.settings.is_uncertain and others:
            return (
                f"conventions: expected {english_list(able)}, which alone know an uncertain "
                "border (--zone) and a share of ambiguous areas (--ambiguous-share), found "
                f"'{others[0]}'; leave it or these options out"
            )
        named = [team for team, _ in self.published]
        if again := [team for team in dict.fromkeys(named) if named.count(team) > 1]:
            return f"published figures: found several of '{again[0]}'; give one for each team"
        unknown = [team for team in named if team not in self.teams]
        if not unknown:
            return ""
        known = english_list(self.teams, limit=20)
        return f"published figures: expected a team of {known}, found '{unknown[0]}'"

    @classmethod
    def suited(cls, settings: EvaluationSettings) -> EvaluationSettings:
        """Return how objects are read, and which pixels count: conventions say the rest."""
        return EvaluationSettings(
            ambiguous=settings.ambiguous,
            ambiguous_share=settings.ambiguous_share,
            zone_px=settings.zone_px,
            restoration=settings.restoration,
            radius=settings.radius,
            distances=False,
        )

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the conventions."""
        return self.convention or self.settings.known_by

    @property
    def rules(self) -> tuple[Rules, ...]:
        """Which pixels and objects count, as it is tried; that of the settings first."""
        own = rules_of(self.settings)
        return tuple(dict.fromkeys((own, *(detective.RULES if self.published else ()))))

    @property
    def matching(self) -> EvaluationSettings:
        """The settings without distances and scoring."""
        return self.suited(self.settings)

    def prepared(self, cohort: Cohort) -> tuple[Metadata | None, list[Finding]]:
        """Return what is known of patients; a wrong table that was not asked for is a finding."""
        metadata = self.metadata
        if isinstance(metadata, Path):
            metadata = read_metadata(metadata, cohort.patients)
        elif metadata is None:
            try:
                metadata = metadata_beside(cohort.root, cohort.patients)
            except PanopticError as error:
                return None, [Finding.unreadable(error)]
        return metadata, [] if metadata is None else list(metadata.findings)

    def look(
        self, region: Region, teams: Teams, image: SlideImage | None
    ) -> TeamRegion | Finding | None:
        """Sum up the pairs of a team, and list what conventions count in different ways."""
        ((team, found),) = teams.items()
        evaluation, rules = found.evaluation, self.rules
        if evaluation is None:
            return None
        if isinstance(evaluation.pair, TiledPair) or self.settings.is_uncertain:
            return TeamRegion(team, region, sums_under(evaluation, None, rules), ())
        try:
            pair = evaluation.pair
            classes = evaluate_classes(pair, evaluation.settings, alone=known_classes)
        except LabelError as error:
            return Finding.unreadable(error, region=region.name, team=team)
        listed = differences(evaluation, classes, rules[0], (team, region.name))
        return TeamRegion(team, region, sums_under(evaluation, classes, rules), listed)

    def joined(self, cohort: Cohort, gathered: Gathered) -> CohortSums:
        """Put the sums of each team together, of the regions in which every team has some."""
        metadata, findings = gathered.prepared
        findings = [*findings, *gathered.findings]
        by_region: dict[str, dict[str, TeamRegion]] = {}
        for own in gathered.parts:
            by_region.setdefault(own.region.name, {})[own.team] = own
        for name, own in by_region.items():
            if lacking := [team for team in self.teams if team not in own]:
                findings.append(_not_compared(name, lacking))
        compared = [own for own in by_region.values() if len(own) == len(self.teams)]
        if not compared:
            raise UnansweredError(why_nothing(cohort, self.teams), (*cohort.findings, *findings))
        places = [place_of(own[self.teams[0]].region, metadata) for own in compared]
        teams = {
            team: {
                each: TeamSums(places, [own[team].sums[each] for own in compared])
                for each in self.rules
            }
            for team in self.teams
        }
        return CohortSums(
            teams,
            [own[self.teams[0]].region.name for own in compared],
            [one for own in compared for team in self.teams for one in own[team].differences],
            tuple(dict.fromkeys(findings)),
        )

    def answered(
        self, cohort: Cohort, gathered: CohortSums, progress: Progress = UNWATCHED
    ) -> Answer:
        """Compute the figures, their ranks, and what fits published ones."""
        rules = self.rules[0]
        sums = {team: own[rules] for team, own in gathered.teams.items()}
        rows = [
            {"team": team, **row}
            for team, own in sums.items()
            for row in figure_rows(own, self.shown, rules, cohort.scheme.names)
        ]
        scores = [(name, score_of(name)) for name in self.shown]
        values = np.array(
            [
                [own.figure(figure.formula, figure.convention).value for _, figure in scores]
                for own in sums.values()
            ]
        )
        matches = self._candidates(gathered)
        notes = [detective.advice(gathered.teams, rules, gathered.regions)]
        if self.published:
            published = dict(self.published)
            notes += detective.summary(
                self.figure, matches, gathered.teams, published, gathered.regions
            )
        in_effect = next(iter(sums.values())).in_effect
        listed = sorted(gathered.differences, key=lambda one: -len(one.names))
        return Answer(
            _headline(values, self.shown),
            tuple(filter(None, notes)),
            (
                AnswerTable(VALUES, VALUES.frame(rows).astype({"units": "Int64"})),
                *(_matches_tables(matches, self.published) if self.published else ()),
                _scores_table(values, scores, tuple(sums)),
                AnswerTable(
                    OBJECTS,
                    OBJECTS.frame(_of_difference(one) for one in listed),
                    lambda row: FailureSet(
                        f"{listed[row].reason} · {listed[row].region}", frozenset(listed[row].names)
                    ),
                    has_others=True,
                    tooltip=lambda row: f"{listed[row].reason}.",
                    printed=0,
                    heading="Nuclei counted in different ways",
                ),
            ),
            _plots(values, self.shown, tuple(sums)),
            self.record(
                cohort,
                gathered.findings,
                teams=self.teams,
                settings=self.settings.as_record(),
                regions=len(gathered.regions),
                figures=[
                    {
                        "convention": name,
                        "figure": figure.name,
                        **choices_of(in_effect(figure.convention), str(rules)),
                        "comparable_with": comparable_with(figure.formula, figure.convention),
                    }
                    for name in self.shown
                    for figure in figures_of(name)
                ],
                published=dict(self.published),
                matching=[one.choices | {"convention": one.name} for one in matches if one.matches],
            ),
        )

    def _candidates(self, gathered: CohortSums) -> list[detective.Candidate]:
        if not self.published:
            return []
        sums = [gathered.teams[team] for team, _ in self.published]
        tried, figures = detective.try_all(self.figure, sums), [own for _, own in self.published]
        in_effect = sums[0][self.rules[0]].in_effect
        return detective.candidates(self.figure, figures, tried, self.decimals, in_effect)


@dataclass(frozen=True, eq=False)
class TeamRegion:
    """What is kept of a team in a region."""

    team: str
    region: Region
    #: Rules -> its sums.
    sums: Mapping[Rules, RegionSums]
    differences: Sequence[Difference]


def _not_compared(region: str, lacking: Sequence[str]) -> Finding:
    message = (
        f"left out of all conventions: {english_list(lacking)} could not be evaluated here, and "
        "teams are compared over the same regions"
    )
    return Finding(FindingKind.FALLBACK, message, region=region)


def _of_difference(one: Difference) -> dict[str, Any]:
    return {
        "reason": one.reason,
        "team": one.team,
        "region": one.region,
        "class": one.class_name,
        "objects": len(one.names),
    }


def _others(values: Any, names: Sequence[str]) -> tuple[str, list[bool]]:
    """Return the usual convention, and which of them rank the teams that they rank otherwise."""
    usual = DEFAULT_PROTOCOL if DEFAULT_PROTOCOL in names else names[0]
    own = values[:, names.index(usual)]
    found = []
    for column in values.T:
        both = ~np.isnan(column) & ~np.isnan(own)
        ranks = [competition_ranks(each[both]).tolist() for each in (column, own)]
        found.append(ranks[0] != ranks[1])
    return usual, found


def _headline(values: Any, names: Sequence[str]) -> str:
    """Return whether the teams rank in the same way by all conventions, as a sentence."""
    said = f"{counted(len(names), 'convention')}, {counted(len(values), 'team')}"
    if len(values) < 2:
        return f"{said}: nothing to rank."
    usual, others = _others(values, names)
    if not any(others):
        return f"{said}: all rank the teams in the same way."
    verb = "ranks" if sum(others) == 1 else "rank"
    return f"{said}: {sum(others)} of them {verb} the teams in another way than {usual}."


def _scores_table(
    values: Any, scores: Sequence[tuple[str, NamedFigure]], teams: Sequence[str]
) -> AnswerTable:
    """Return the score of each convention, with the teams as columns and their ranks."""
    import pandas as pd

    ranks = competition_ranks(values)
    _, others = _others(values, [name for name, _ in scores])
    rows = []
    for k, (name, figure) in enumerate(scores):
        row: dict[str, Any] = {"convention": name, "figure": figure_words(figure.name)}
        for t, team in enumerate(teams):
            row[f"value {team}"], row[f"rank {team}"] = values[t, k], ranks[t, k]
        rows.append(row | {"order": "other order" if others[k] else ""})
    order = columns.words("order", "ranking", "where it differs from that by the usual PQ")
    spec = columns.TableSpec(
        "",
        SCORES,
        [
            columns.words("convention"),
            columns.words("figure"),
            *(_ranked(team) for team in teams),
            *([order] if any(row["order"] for row in rows) else []),
        ],
        "Figure (rank) by each convention.",
    )
    return AnswerTable(
        spec, pd.DataFrame(rows, columns=spec.keys), tooltip=lambda row: _tooltip(scores[row][1])
    )


def _plots(values: Any, names: Sequence[str], teams: Sequence[str]) -> tuple[AnswerPlot, ...]:
    if len(teams) < 2 or len(names) < 2:
        return ()
    scores = dict(zip(teams, values.tolist(), strict=True))
    caption = "Rank of each team by every convention; equal ranks are drawn side by side."
    return (AnswerPlot("rank_lines", "Ranks by convention", caption, (names, scores, teams)),)


def scores_of(answer: Answer) -> AnswerTable:
    """Return the table with the score of each convention and the teams as columns."""
    return next(table for table in answer.tables if table.spec.row == SCORES)


def _ranked(team: str) -> columns.TableColumn:
    keys = f"value {team}", f"rank {team}"
    return columns.TableColumn(
        team, lambda row: columns.ranked_cell(row[keys[0]], row[keys[1]]), keys
    )


def _tooltip(figure: NamedFigure) -> str:
    """Describe the choices of a figure, and what it can be compared with."""
    words = [
        f"{k.replace('_', ' ')}: {v}" for k, v in choices_of(figure.convention, "").items() if v
    ]
    alike = comparable_with(figure.formula, figure.convention)
    return f"{'; '.join(words)}. Comparable with {english_list(alike, limit=9)}."


def _matches_tables(
    matches: Sequence[detective.Candidate], published: Sequence[tuple[str, float]]
) -> tuple[AnswerTable, AnswerTable]:
    """Return all combinations as they are written, and the same as they are shown."""
    teams = [team for team, _ in published]
    *first, difference, is_match = MATCHES.columns
    of_teams = [columns.unshown(team) for team in teams]
    spec = replace(MATCHES, columns=[*first, *of_teams, difference, is_match])
    frame = spec.frame(
        one.choices
        | dict(zip(teams, one.values, strict=True))
        | {
            "convention": one.name,
            "difference": one.difference,
            "matches": "yes" if one.matches else "no",
        }
        for one in matches
    )
    shown = [
        *(columns.words("matches"), columns.words("convention")),
        *(columns.number(team) for team in teams),
        *(columns.words(name, name.replace("_", " ")) for name in CHOICES),
    ]
    caption = "Conventions that give the published figures, the named ones first."
    as_shown = columns.TableSpec("", "combination of choices", shown, caption)
    return (
        AnswerTable(spec, frame),
        AnswerTable(as_shown, frame, printed=20, is_long=True, heading="What fits"),
    )
