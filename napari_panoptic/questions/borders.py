"""Find how much of the loss of teams lies along the borders of annotated objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.averages import summarise_team
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate_again
from napari_panoptic.nuclei.metrics import FIGURE_NAMES, Counts, detection_sums, unit_metrics
from napari_panoptic.nuclei.regions.conditions import robustness
from napari_panoptic.nuclei.regions.looks import Teams
from napari_panoptic.nuclei.regions.region import slide_workers
from napari_panoptic.nuclei.windowed_evaluation import evaluate_tiles_again
from napari_panoptic.questions.answer import Answer, AnswerPlot, AnswerTable
from napari_panoptic.questions.question import Gathered, Question, option
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED, mean_intervals
from napari_panoptic.statistics.friedman import TeamFigures
from napari_panoptic.statistics.means import means_defined, quotients
from napari_panoptic.statistics.ranks import competition_ranks
from napari_panoptic.statistics.teams import (
    TeamStatistics,
    bootstrap_record,
    statistics_record,
    team_statistics,
)
from napari_panoptic.tables import columns
from napari_panoptic.tables.figures import interval, p_value, ratio, signed
from napari_panoptic.tables.ranks import friedman_sentence, rank_of
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.vocabulary import SIDES, Side
from napari_panoptic.values.windowed_labels import TiledPair

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
WIDTHS_PX = tuple(range(6))
"""The widths of the uncertain border."""
SAID_PX = 2
"""The width that sentences are about."""
FIGURES = ("pq", "sq", "dq", "detection_f1", "mean_iou")
_INTERVAL = f"{LEVEL:.0%} interval"


def _ends(key: str, title: str | None = None) -> columns.TableColumn:
    ends = f"{key}_low", f"{key}_high"
    about = f"of {key}, by bootstrap over patients"
    return columns.bounds(*ends, title, about) if title else columns.unshown(*ends, about=about)


def _figure(key: str) -> columns.TableColumn:
    """Return the column of a figure; the last one is for the file, where there is room."""
    if key == FIGURES[-1]:
        return columns.unshown(key)
    return columns.number(key, FIGURE_NAMES[key])


BORDERS = columns.TableSpec(
    "borders.csv",
    "class, team and width; an empty class stands for all classes",
    [
        columns.name_column("team"),
        columns.class_column(),
        columns.whole("zone_px", "px", "width of the border that is left out"),
        columns.number("pq", "PQ", about="mean over patients, as the other figures"),
        _ends("pq", _INTERVAL),
        columns.number("gain", "ΔPQ", signed, "mean change of PQ from 0 px"),
        _ends("gain", _INTERVAL),
        *(column for key in FIGURES[1:] for column in (_figure(key), _ends(key))),
        columns.unshown("patients", about="number with a PQ"),
        columns.whole("changed", "changed", "objects of both sides with another status at 0 px"),
        columns.whole(
            "vanished_reference",
            "nuclei vanished",
            "annotated objects that count at 0 px, and have no pixel left",
        ),
        columns.whole("vanished_prediction", "predictions vanished", "the same of predictions"),
        columns.unshown("rank", about="by PQ of all classes, as in `ranking.csv`"),
        columns.unshown("mean_rank", "friedman_p", about="as in `ranking.csv`"),
    ],
    "Figures without the pixels up to N px from the edge of an annotated object, and the objects "
    "whose status changes. Rank: 1 + the number of teams that are significantly better (Nemenyi).",
)
_NOTE = (
    "Within the border no pixel counts, in annotation or predictions. Objects without a pixel left "
    "do not count either: where small nuclei vanish, the gain is in part theirs."
)


@dataclass(frozen=True, kw_only=True)
class Borders(Question):
    """How much of the loss of teams lies along the borders of annotated objects."""

    title = "Borders"
    heading = "What uncertain borders cost"
    key = "Alt-Shift-b"  # every letter with Alt alone is taken
    about = (
        "Evaluate teams without the pixels along the edges of annotated objects, where annotators "
        "disagree: at most 0, 1, ... 5 px away. Write PQ, SQ, DQ, F1 and mean IoU with intervals, "
        "the objects that change and those that vanish, and the ranks of the teams at each width "
        "to borders.csv and borders.json. Exit status: 0 done, 1 nothing could be evaluated, 2 "
        "wrong arguments."
    )
    hint = "Press “Compute” to see how much of what teams lose lies along annotated borders."
    tables = (BORDERS,)
    takes_windows = True
    has_score = False

    #: Names of the teams.
    teams: tuple[str, ...] = option("names of teams, separated by commas (default: all)")

    def why_not(self, cohort: Cohort) -> str:
        """Return that the width of the border is set, which this question varies."""
        if not self.settings.zone_px:
            return ""
        return (
            f"it compares uncertain borders of {WIDTHS_PX[0]} to {WIDTHS_PX[-1]} px, found one of "
            f"{self.settings.zone_px} px in the settings; set it to 0 (zone_px, --zone)"
        )

    def look(self, region: Region, teams: Teams, image: SlideImage | None) -> TeamBorders | None:
        """Evaluate a team at all widths."""
        ((team, found),) = teams.items()
        if found.evaluation is None:
            return None
        first = found.evaluation
        counts, changes = [], []
        for px in WIDTHS_PX:
            now = _at_width(first, px) if px else first
            counts.append(now.counts)
            changes.append({side: _changes(first, now, side) for side in SIDES})
        return TeamBorders(team, region, first.outcomes.mpp, counts, changes)

    def answered(
        self, cohort: Cohort, gathered: Gathered, progress: Progress = UNWATCHED
    ) -> Answer:
        """Compare the figures at all widths, and the teams at each."""
        classes = cohort.scheme.names
        of_teams: dict[str, list[TeamBorders]] = {team: [] for team in self.teams}
        for part in gathered.parts:
            of_teams[part.team].append(part)
        counts = {
            team: [[(own.region.patient, own.counts[px]) for own in parts] for px in WIDTHS_PX]
            for team, parts in of_teams.items()
        }
        figures = {team: _figures(own, cohort) for team, own in counts.items()}
        ranked = _statistics(figures, cohort)
        frame = BORDERS.frame(_rows(of_teams, figures, ranked, classes))
        width = _with_um(SAID_PX, gathered.parts)
        said = frame[(frame["class"] == "") & (frame["zone_px"] == SAID_PX)].to_dict("records")
        headline, *others = [*_ranking(ranked), *(_loss(row, width) for row in said)]
        changed = (_changed(row, width) for row in said)

        printed = len(WIDTHS_PX) * len(self.teams)

        def objects(row: int) -> FailureSet:
            team, name, px = (frame[key][row] for key in ("team", "class", "zone_px"))
            index = classes.index(name) + 1 if name else 0
            names = (each for own in of_teams[team] for each in own.names(int(px), index))
            return FailureSet(f"changed without {px} px of {team}", frozenset(names))

        return Answer(
            headline,
            (*others, *changed, _NOTE),
            (AnswerTable(BORDERS, frame, objects, has_others=True, printed=printed),),
            _plots(counts, classes),
            self.record(
                cohort,
                gathered.findings,
                teams=self.teams,
                protocol=self.protocol,
                settings=self.matching.as_record(),
                widths_px=WIDTHS_PX,
                bootstrap=bootstrap_record(RESAMPLES, SEED),
                statistics={f"{px} px": statistics_record(own) for px, own in ranked.items()},
            ),
        )


# --- regions ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TeamBorders:
    """What is kept of a team in a region: counts, and objects that change, at each width."""

    team: str
    region: Region
    mpp: float | None
    counts: Sequence[Counts]
    #: Side -> int64 (k, 3): id, class from 1, and whether no pixel is left.
    changes: Sequence[Mapping[Side, IntArray]]

    def changed(self, px: int, side: Side, class_index: int) -> IntArray:
        """Return the objects of a class (0 for all) that have another status than at 0 px."""
        rows = self.changes[px][side]
        return rows[rows[:, 1] == class_index] if class_index else rows

    def names(self, px: int, class_index: int) -> Iterator[FailureName]:
        """Yield the names of these objects of both sides."""
        for side in SIDES:
            for id_ in self.changed(px, side, class_index)[:, 0].tolist():
                yield FailureName(self.team, self.region.name, side, id_)


def _at_width(first: Evaluation[Any], px: int) -> Evaluation[Any]:
    """Evaluate the region again without the border of some width."""
    settings = first.settings.replaced(zone_px=px)
    if isinstance(first.pair, TiledPair):
        return evaluate_tiles_again(first, settings, workers=slide_workers())
    return evaluate_again(first, settings)


def _changes(first: Evaluation[Any], now: Evaluation[Any], side: Side) -> IntArray:
    before, after = first.outcomes.side(side), now.outcomes.side(side)
    rows = np.flatnonzero(before.status != after.status)
    return np.column_stack(
        [own[rows] for own in (before.ids, before.class_index, now.in_zone(side))]
    )


# --- figures ----------------------------------------------------------------------------------


def _figures(counts: Sequence[Sequence[tuple[str, Counts]]], cohort: Cohort) -> FloatArray:
    """Return the figures (patients, widths, FIGURES, all classes and each) of a team."""
    shape = len(cohort.patients), len(WIDTHS_PX), len(FIGURES), 1 + len(cohort.scheme.names)
    figures = np.full(shape, np.nan)
    for px, regions in enumerate(counts):
        for patient, own in summarise_team(regions, cohort.scheme.names).patients.items():
            by_class = {
                **own.figures_by_class,
                "detection_f1": quotients(*detection_sums(own.confusion)),
            }
            of_all = unit_metrics(own)
            figures[cohort.patients.index(patient), px] = [
                [of_all[name], *by_class[name]] for name in FIGURES
            ]
    return figures


def _statistics(figures: Mapping[str, FloatArray], cohort: Cohort) -> dict[int, TeamStatistics]:
    """Compare the competing teams by PQ at each width; empty for fewer than two."""
    teams = [team.name for team in cohort.competing_teams if team.name in figures]
    if len(teams) < 2:
        return {}
    by_width = {
        px: {team: figures[team][:, px, 0, 0].tolist() for team in teams} for px in WIDTHS_PX
    }
    return {px: team_statistics(TeamFigures(own, cohort.patients)) for px, own in by_width.items()}


def _rows(
    of_teams: Mapping[str, Sequence[TeamBorders]],
    figures: Mapping[str, FloatArray],
    ranked: Mapping[int, TeamStatistics],
    classes: Sequence[str],
) -> Iterator[dict[str, Any]]:
    means = {team: _means(own) for team, own in figures.items()}
    for index, name in enumerate(("", *classes)):
        for team, parts in of_teams.items():
            for px in WIDTHS_PX:
                row: dict[str, Any] = {"team": team, "class": name, "zone_px": px}
                for figure, mean in zip((*FIGURES, "gain"), means[team][px, :, index], strict=True):
                    row |= {figure: mean.mean, f"{figure}_low": mean.low}
                    row[f"{figure}_high"] = mean.high
                row["patients"] = means[team][px, 0, index].n
                changed = {side: [own.changed(px, side, index) for own in parts] for side in SIDES}
                row["changed"] = sum(len(rows) for own in changed.values() for rows in own)
                for side, own in changed.items():
                    row[f"vanished_{side}"] = sum(int(rows[:, 2].sum()) for rows in own)
                if not name and ranked:
                    comparison = ranked[px].comparison
                    row |= {**rank_of(comparison, team), "friedman_p": comparison.friedman_p}
                yield row


def _means(figures: FloatArray) -> NDArray[np.object_]:
    """Return the means over patients (widths, FIGURES and the gain of PQ, classes)."""
    gain = figures[:, :, :1] - figures[:, :1, :1]
    every = np.concatenate([figures, gain], axis=2)
    series = every.reshape(len(every), -1).T
    found = mean_intervals([own[~np.isnan(own)] for own in series])
    return np.array(found, object).reshape(every.shape[1:])


def _plots(
    counts: Mapping[str, Sequence[Sequence[tuple[str, Counts]]]], classes: tuple[str, ...]
) -> tuple[AnswerPlot, ...]:
    found = robustness(counts, [f"{px} px" for px in WIDTHS_PX], classes)
    curves = AnswerPlot(
        "robustness_curves",
        "Figures by width",
        "Means without the pixels up to N px from annotated edges; rings are changes of rank.",
        (found, WIDTHS_PX, found.teams),
        keywords={"x_label": "px left out"},
    )
    if len(found.teams) < 2:
        return (curves,)
    scores = dict(zip(found.teams, found.pq.tolist(), strict=True))
    of_ranks = (found.conditions, scores, found.teams)
    caption = "Rank of each team by mean PQ; equal ranks are drawn side by side."
    return curves, AnswerPlot("rank_lines", "Ranks by width", caption, of_ranks)


# --- sentences --------------------------------------------------------------------------------


def _with_um(px: int, parts: Sequence[TeamBorders]) -> str:
    """Write a width in px, and in µm if every pixel size is known."""
    sizes = [own.mpp for own in parts if own.mpp is not None]
    if len(sizes) < len(parts) or not sizes:
        return f"{px} px"
    ends = dict.fromkeys(f"{px * size:.2g}" for size in (min(sizes), max(sizes)))
    return f"{px} px ({' to '.join(ends)} µm)"


def _loss(row: Mapping[Any, Any], width: str) -> str:
    """Return how much of the loss of a team is border, over the patients with a PQ without it."""
    pq, gain = row["pq"], row["gain"]
    if np.isnan(gain):
        return f"{row['team']}: no patient has a PQ without the {width} along annotated borders."
    ends = interval(row["gain_low"], row["gain_high"])
    certain = f" ({_INTERVAL} {ends})" if row["patients"] > 1 else ""
    return (
        f"{row['team']}: PQ {ratio(pq - gain)}; without the {width} along annotated borders "
        f"{ratio(pq)}: {ratio(gain) if gain > 0 else 'none'} of the loss of {ratio(1 - pq + gain)} "
        f"is border{certain}."
    )


def _changed(row: Mapping[Any, Any], width: str) -> str:
    """Return how many objects of a team change, and how many do not count any more."""
    nuclei = counted(row["vanished_reference"], "annotated object")
    return (
        f"{row['team']}: without {width}, {counted(row['changed'], 'object')} of both sides have "
        f"another status; {nuclei} and {counted(row['vanished_prediction'], 'prediction')} have no "
        "pixel left."
    )


def _ranking(found: Mapping[int, TeamStatistics]) -> Iterator[str]:
    """Yield which team is the first at which width, and how certain that is."""
    if not found:
        return
    teams, ranks = found[0].comparison.teams, {px: _ranks(own) for px, own in found.items()}
    if not all(map(all, ranks.values())):
        yield "The teams cannot be ranked: no patient has a PQ of every team."
        return
    best = {
        px: english_list([team for team, rank in zip(teams, own, strict=True) if rank == 1])
        for px, own in ranks.items()
    }
    starts = [px for px in WIDTHS_PX if px == 0 or best[px] != best[px - 1]]
    if len(starts) == 1:
        yield f"{best[0]}: the highest PQ at every width from 0 to {WIDTHS_PX[-1]} px."
    else:
        own = ", ".join(f"{best[px]} from {px} px" for px in starts)
        yield f"The team with the highest PQ changes: {own} on."
    for px in sorted({SAID_PX, *starts}):
        if len(teams) > 2:
            yield friedman_sentence(found[px].comparison, f"PQ at {px} px", "patient")
        if ranks[px].count(1) == 1:
            first, second = (teams[ranks[px].index(rank)] for rank in (1, 2))
            yield _lead(first, second, found[px], px)
    others = [px for px in WIDTHS_PX if ranks[px] != ranks[0]]
    if others:
        yield f"The teams have another order than at 0 px at {english_list(others)} px."


def _ranks(found: TeamStatistics) -> list[int]:
    """Return the ranks of teams by mean PQ, over the patients with a PQ of each; 0 without any."""
    means = means_defined(found.comparison.figures.values, axis=1)
    return [int(rank) for rank in competition_ranks(means)]


def _lead(first: str, second: str, found: TeamStatistics, px: int) -> str:
    """Return how far the first team is above the second."""
    pair = next(own for own in found.pairs if {own.first, own.second} == {first, second})
    apart = pair.difference
    ends = (apart.low, apart.high) if pair.first == first else (-apart.high, -apart.low)
    return (
        f"At {px} px, {first} is {ratio(abs(apart.mean))} above {second} ({_INTERVAL} "
        f"{interval(*ends)}; Wilcoxon test, Holm-corrected p {p_value(pair.holm_p)})."
    )
