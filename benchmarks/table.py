"""The Markdown of docs/explanation/benchmarks.md."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.stages import AGREEMENT, MATCHERS, SAME, TARGETS, Results, Stage

DASH = "–"
SLOWER = 1.05
"""Times another row, from which on ours counts as slower."""


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Draw a table; all columns but the first and the last are numbers."""
    right = ["---", *["---:"] * (len(header) - 2), "---"]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, right, *rows))


def digits(value: float) -> str:
    """Write three significant digits."""
    return _rounded(value, (100, 10, 1))


def ratio(value: float) -> str:
    """Write two significant digits, or whole numbers."""
    return _rounded(value, (10, 1))


def mebibytes(extra: int | None) -> str:
    """Write MiB."""
    return DASH if extra is None else _rounded(extra / 2**20, (10,))


def _rounded(value: float, bounds: Sequence[float]) -> str:
    """Write a number with a digit less after the point from each bound on."""
    return DASH if math.isnan(value) else f"{value:,.{sum(value < own for own in bounds)}f}"


def target_table(results: Results) -> str:
    """Hold the figures of the run against what was aimed at."""
    rows = []
    for target in TARGETS:
        value = target.reached(results)
        sign = "≥" if target.at_least else "≤"
        met = DASH if math.isnan(value) else "met" if target.is_met(value) else "**not met**"
        bound = f"{sign} {target.bound:g} {target.unit}"
        rows.append([target.text, bound, digits(value), met])
    return markdown(["", "target", "reached", ""], rows)


def matching_table(
    stages: Sequence[Stage], results: Results, found: Mapping[tuple[str, str], str]
) -> str:
    """Return all matchers beside each other: sizes, and where matchers are known to differ."""
    sizes = [stage for stage in stages if stage.key.startswith("matching")]
    rows = dict.fromkeys(row.label for stage in sizes for row in (*stage.ours, *stage.others))
    header = ["", *(stage.title.rpartition(", ")[2] for stage in sizes), *AGREEMENT.values()]
    lines = [["LIMIT, ms", *(digits(_limit_ms(stage, results)) for stage in sizes), "", ""]]
    for label in rows:
        cells = [_compared(stage, label, results) for stage in sizes]
        lines.append([label, *cells, *(found.get((key, label), DASH) for key in AGREEMENT)])
    differs: dict[str, list[str]] = {}
    for row in MATCHERS:
        if row.differs:
            differs.setdefault(row.differs, []).append(row.label)
    notes = [f"- {text}: {'; '.join(labels)}." for text, labels in differs.items()]
    return "\n\n".join([markdown(header, lines), "\n".join(notes)])


def steps_table(stages: Sequence[Stage], results: Results) -> str:
    """Return all stages but matching, each with its peers in one cell."""
    lines = []
    for stage in stages:
        if stage.key.startswith("matching"):
            continue
        first = results[stage.key, stage.ours[0].label]
        limit = results[stage.key, stage.limit.label] if stage.limit else None
        cells = [f"{row.label} {_compared(stage, row.label, results)}" for row in stage.ours[1:]]
        for row in stage.others:
            verdict = results[stage.key, row.label].verdict
            odd = f", {verdict}" if verdict not in ("", SAME) else ""
            cells.append(f"{row.label} {_compared(stage, row.label, results)}{odd}")
        over = ratio(first.times(limit)) if limit else DASH
        ours = f"{digits(first.ms)} ({mebibytes(first.extra_bytes)})"
        lines.append([stage.title, ours, over, "; ".join(cells)])
    return markdown(["", "ours, ms (MiB)", "x LIMIT", "others: x ours (MiB)"], lines)


def _limit_ms(stage: Stage, results: Results) -> float:
    return results[stage.key, stage.limit.label].ms if stage.limit else math.nan


def _compared(stage: Stage, label: str, results: Results) -> str:
    """Return ms of our first row, times ours of others; MiB in brackets."""
    measured, first = results.get((stage.key, label)), results[stage.key, stage.ours[0].label]
    if measured is None or measured.error:
        return DASH
    time = f"{digits(first.ms)} ms" if measured is first else ratio(measured.times(first))
    return f"{time} ({mebibytes(measured.extra_bytes)})"


def slower_list(stages: Sequence[Stage], results: Results, scripts: str) -> str:
    """Return what is slower than a peer, misses its target or exceeds its limit."""
    found = []
    for stage in stages:
        ours = {row.inputs: results[stage.key, row.label] for row in reversed(stage.ours)}
        for row in stage.others:
            times = ours[row.inputs].times(results[stage.key, row.label])
            if times >= SLOWER:
                found.append(f"- {stage.title}: {ratio(times)} x {row.label}.")
    reached = [(target, target.reached(results)) for target in TARGETS]
    missed = [(t, v) for t, v in reached if not math.isnan(v) and not t.is_met(v)]
    for target, value in missed:
        sign = "≥" if target.at_least else "≤"
        wanted = f"{sign} {target.bound:g} {target.unit}"
        found.append(f"- Target {target.text}: {wanted}, reached {digits(value)}.")
    met = sum(not math.isnan(value) for _, value in reached) - len(missed)
    found.append(f"- The other {met} targets (`TARGETS` in `benchmarks/stages.py`) are met.")
    return "\n".join([*found, *_above(scripts)])


def _above(scripts: str) -> Iterator[str]:
    """Yield the lines in which other scripts report more than their limit."""
    for section in scripts.split("### `")[1:]:
        name, _, printed = section.removeprefix("python -m benchmarks ").partition("`")
        place = ""
        for line in printed.splitlines():
            if not line.startswith((" ", "|", "`")) and line:
                place = line.partition(":")[0]
            elif re.search(r"\babove\b", line):
                yield f"- `{name.split()[0]}`, {place}: {' '.join(line.replace('|', ' ').split())}."


def versions_table(versions: Mapping[str, Mapping[str, str | None] | str]) -> str:
    """List the packages of each environment."""
    lines = []
    for environment, found in versions.items():
        if isinstance(found, str):
            lines.append(f"- {environment}: {found}")
            continue
        named = (f"{name} {version or '(missing)'}" for name, version in found.items())
        lines.append(f"- {environment}: {', '.join(named)}")
    return "\n".join(lines)
