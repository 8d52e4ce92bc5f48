"""The text that ``napari-panoptic dump`` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence

from napari_panoptic.common.text import counted, english_list
from napari_panoptic.report.dump.tables import (
    MEAN,
    UNKNOWN,
    DumpEvaluation,
    by_organ_table,
    leaderboard_table,
)
from napari_panoptic.statistics.bootstrap import LEVEL, IntervalMethod
from napari_panoptic.statistics.friedman import MissingRule, PairedFigures
from napari_panoptic.statistics.pairwise import PairComparison
from napari_panoptic.statistics.teams import TeamStatistics

_UNDEFINED = "\N{EN DASH}"


def dump_text(evaluation: DumpEvaluation) -> str:
    """Return the leaderboard, the figures by organ and class, and the tests, as text."""
    parts = [_leaderboard(evaluation), _by_organ(evaluation)]
    parts.extend(_tests(name, found) for name, found in evaluation.statistics.items())
    return "\n\n".join(parts)


def _leaderboard(evaluation: DumpEvaluation) -> str:
    header = ["team", "score", "interval", "regions", "patients", "mean rank", "rank"]
    rows = [
        [
            row["team"],
            _number(row["score"], 4),
            _span(row["score_low"], row["score_high"], row["score_interval"]),
            f"{row['regions']} of {row['regions_listed']}",
            str(row["patients"]),
            _number(row["mean_rank"], 2),
            str(row["rank"]),
        ]
        for row in leaderboard_table(evaluation).to_dict("records")
    ]
    notes = [
        "score: mean over regions of the mean PQ over their classes; ranks are over patients, "
        "1 + the number of teams that are significantly better",
        f"intervals: {LEVEL:.0%}, BCa unless marked otherwise, {evaluation.resamples} resamples "
        f"of the patients, seed {evaluation.seed}",
        *_not_submitted(evaluation),
        *_gaps(evaluation),
    ]
    return "\n".join([*_aligned(header, rows), *notes])


def _not_submitted(evaluation: DumpEvaluation) -> list[str]:
    counts = {
        team: sum(f.team == team and not f.submitted for f in evaluation.dump.figures)
        for team in evaluation.dump.teams
    }
    found = [f"{count} of {team}" for team, count in counts.items() if count]
    return [f"masks not handed in, which scored 0: {english_list(found)}"] if found else []


def _gaps(evaluation: DumpEvaluation) -> list[str]:
    if not evaluation.gaps:
        return []
    worst = evaluation.missing is MissingRule.WORST
    rule = "count as 0" if worst else "leave their region and patient out"
    found = [f"{team} {name} in {region}" for team, _, region, name in evaluation.gaps]
    return [f"figures missing in the dump, which {rule}: {english_list(found)}"]


def _by_organ(evaluation: DumpEvaluation) -> str:
    """Return a table with a row per organ and class and a column per team, the best first."""
    teams = list(evaluation.scores)
    figures: dict[tuple[str, str], dict[str, float]] = {}
    regions: dict[tuple[str, str], int] = {}
    for row in by_organ_table(evaluation).to_dict("records"):
        place = (row["organ"], row["class"])
        figures.setdefault(place, {})[row["team"]] = row["pq"]
        regions[place] = max(regions.get(place, 0), row["regions"])
    rows = [
        [*place, str(regions[place]), *(_number(by_team[team], 3) for team in teams)]
        for place, by_team in figures.items()
    ]
    unknown = [p for p, organ in evaluation.organ_by_patient.items() if organ == UNKNOWN]
    notes = ["by organ: mean PQ over the regions that have the class, as in the score"]
    if evaluation.gaps and evaluation.missing is MissingRule.WORST:
        notes[0] += "; figures missing in the dump count as 0"
    if unknown:
        notes.append(f"organ unknown, add it with --metadata: {english_list(unknown)}")
    table = _aligned(["organ", "class", "regions", *teams], rows, texts=2)
    return "\n".join([*table, *notes])


def _tests(name: str, statistics: TeamStatistics) -> str:
    comparison, critical = statistics.comparison, statistics.critical
    what = "mean over classes" if name == MEAN else f"class {name}"
    lines = [f"tests over {counted(comparison.n_patients, 'patient')}, {what}"]
    if comparison.why_undefined:
        lines.append(f"Friedman: undefined: {comparison.why_undefined}")
    else:
        lines += [
            f"Friedman: chi2 {comparison.friedman_chi2:.2f}, p {_p(comparison.friedman_p)}, "
            f"Kendall's W {comparison.kendall_w:.3f}",
            f"Nemenyi: critical difference of mean ranks {critical.difference:.3f} at "
            f"{critical.alpha}; not different: "
            f"{'; '.join(english_list(group) for group in critical.groups) or 'none'}",
        ]
    lines += _left_out(comparison.figures)
    header = [
        "first",
        "second",
        "patients",
        "difference",
        "interval",
        "r (rank-biserial)",
        "Wilcoxon p",
        "Holm p",
    ]
    if statistics.pairs:
        lines += _aligned(header, [_pair_row(pair) for pair in statistics.pairs], texts=2)
    for pair in statistics.pairs:
        # Only what differs from all teams, above.
        if len(pair.figures.omitted) != len(comparison.figures.omitted):
            lines += [f"{_name(pair)}: {line}" for line in _left_out(pair.figures)]
        if pair.why_undefined:
            lines.append(f"{_name(pair)}: undefined: {pair.why_undefined}")
    return "\n".join(lines)


def _left_out(figures: PairedFigures) -> list[str]:
    """Describe which patients are left out and why, grouped by reason."""
    patients: dict[tuple[str, ...], list[str]] = {}
    for omission in figures.omitted:
        patients.setdefault(omission.teams, []).append(omission.patient)
    lines = []
    for teams, names in patients.items():
        who = (
            "no team has a"
            if len(teams) == len(figures.teams)
            else (f"{english_list(teams)} {'has' if len(teams) == 1 else 'have'} no")
        )
        lines.append(f"left out: {who} figure for {english_list(names, limit=len(names))}")
    return lines


def _name(pair: PairComparison) -> str:
    return f"{pair.first} and {pair.second}"


def _pair_row(pair: PairComparison) -> list[str]:
    return [
        pair.first,
        pair.second,
        str(pair.n_patients),
        _number(pair.difference.mean, 3),
        _span(pair.difference.low, pair.difference.high, pair.difference.method),
        _number(pair.rank_biserial, 3),
        _p(pair.wilcoxon_p),
        _p(pair.holm_p),
    ]


def _number(value: float, places: int) -> str:
    return _UNDEFINED if math.isnan(value) else f"{round(value, places) + 0.0:.{places}f}"


def _p(value: float) -> str:
    return _UNDEFINED if math.isnan(value) else f"{value:.2g}"


def _span(low: float, high: float, method: str) -> str:
    if math.isnan(low):
        return _UNDEFINED
    note = "" if method == IntervalMethod.BCA else f" ({method})"
    return f"{_number(low, 3)} to {_number(high, 3)}{note}"


def _aligned(header: list[str], rows: Sequence[list[str]], *, texts: int = 1) -> list[str]:
    """Return aligned rows: the first ``texts`` columns to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if column < texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    ]
