"""The text that ``napari-panoptic dump`` prints."""

from __future__ import annotations

from collections import Counter
from typing import Any

from napari_panoptic.common.text import counted, english_list
from napari_panoptic.report.dump.tables import (
    LEADERBOARD,
    MEAN,
    PAIRS,
    UNKNOWN,
    DumpEvaluation,
    by_organ_table,
    leaderboard_table,
    pairs_table,
)
from napari_panoptic.statistics.bootstrap import LEVEL
from napari_panoptic.statistics.friedman import MissingRule, PairedFigures
from napari_panoptic.statistics.pairwise import PairComparison
from napari_panoptic.statistics.teams import TeamStatistics
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    across,
    aligned,
    figure_of,
    name_column,
    texts,
)
from napari_panoptic.tables.figures import p_digits
from napari_panoptic.values.conventions import CHALLENGE_PROTOCOL


def dump_text(evaluation: DumpEvaluation) -> str:
    """Return the leaderboard, the figures by organ and class, and the tests, as text."""
    pairs = pairs_table(evaluation)
    parts = [_leaderboard(evaluation), _by_organ(evaluation)]
    for name, found in evaluation.statistics.items():
        rows = pairs[pairs["class"] == name].to_dict("records")
        parts.append(_tests(name, found, rows))
    return "\n\n".join(parts)


def _leaderboard(evaluation: DumpEvaluation) -> str:
    rows = leaderboard_table(evaluation).to_dict("records")
    notes = [
        f"score ({CHALLENGE_PROTOCOL} pq): mean over regions of the mean PQ over their classes; "
        "ranks are over patients, 1 + the number of teams that are significantly better",
        f"intervals: {LEVEL:.0%}, BCa unless marked otherwise, {evaluation.resamples} resamples "
        f"of the patients, seed {evaluation.seed}",
        *_not_submitted(evaluation),
        *_gaps(evaluation),
    ]
    return "\n".join([*aligned(*texts(LEADERBOARD.shown(), rows)), *notes])


def _not_submitted(evaluation: DumpEvaluation) -> list[str]:
    counts = Counter(team for team, *_ in evaluation.not_submitted)
    found = [f"{counts[team]} of {team}" for team in evaluation.dump.teams if counts[team]]
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

    def regions(row: Record) -> CellContent:
        return CellContent(str(max(row["team", team]["regions"] for team in teams)))

    columns = [
        name_column("organ"),
        name_column("class"),
        TableColumn("regions", regions),
        *(figure_of(team, ("team", team)) for team in teams),
    ]
    rows = across(by_organ_table(evaluation), ["organ", "class"], "team")
    unknown = [p for p, organ in evaluation.organ_by_patient.items() if organ == UNKNOWN]
    notes = ["by organ: mean PQ over the regions that have the class, as in the score"]
    if evaluation.gaps and evaluation.missing is MissingRule.WORST:
        notes[0] += "; figures missing in the dump count as 0"
    if unknown:
        notes.append(f"organ unknown, add it with --metadata: {english_list(unknown)}")
    return "\n".join([*aligned(*texts(columns, rows), names=2), *notes])


def _tests(name: str, statistics: TeamStatistics, pairs: list[dict[Any, Any]]) -> str:
    comparison, critical = statistics.comparison, statistics.critical
    what = "mean over classes" if name == MEAN else f"class {name}"
    lines = [f"tests over {counted(comparison.n_patients, 'patient')}, {what}"]
    if comparison.why_undefined:
        lines.append(f"Friedman: undefined: {comparison.why_undefined}")
    else:
        lines += [
            f"Friedman: chi2 {comparison.friedman_chi2:.2f}, p {p_digits(comparison.friedman_p)}, "
            f"Kendall's W {comparison.kendall_w:.3f}",
            f"Nemenyi: critical difference of mean ranks {critical.difference:.3f} at "
            f"{critical.alpha}; not different: "
            f"{'; '.join(english_list(group) for group in critical.groups) or 'none'}",
        ]
    lines += _left_out(comparison.figures)
    if pairs:
        lines += aligned(*texts(PAIRS.shown(), pairs), names=2)
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
        who = f"{english_list(teams)} {'has' if len(teams) == 1 else 'have'} no"
        if len(teams) == len(figures.teams):
            who = "no team has a"
        lines.append(f"left out: {who} figure for {english_list(names, limit=len(names))}")
    return lines


def _name(pair: PairComparison) -> str:
    return f"{pair.first} and {pair.second}"
