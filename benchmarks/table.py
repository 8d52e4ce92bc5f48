"""The Markdown of docs/explanation/benchmarks.md."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.stages import AGREEMENT, MATCHERS, SAME, TARGETS, Measured, Results, Row, Stage

DASH = "–"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Draw a table; all columns but the first and the last are numbers."""
    right = ["---", *["---:"] * (len(header) - 2), "---"]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, right, *rows))


def digits(value: float) -> str:
    """Give three significant digits."""
    return DASH if math.isnan(value) else _digits(value)


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 2 if value >= 1 else 3}f}"


def ratio(value: float) -> str:
    """Give two significant digits, or whole numbers."""
    return (
        DASH if math.isnan(value) else f"{value:,.{0 if value >= 10 else 1 if value >= 1 else 2}f}"
    )


def mebibytes(extra: int | None) -> str:
    """Give MiB."""
    if extra is None:
        return DASH
    value = extra / 2**20
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def stage_table(stage: Stage, results: Results) -> str:
    """Draw the table of a stage, and what is to be said about rows that differ or are missing."""
    first = results[stage.key, stage.ours[0].label]
    limit = results[stage.key, stage.limit.label] if stage.limit else None
    header = ["", "ms", "x ours", *(["x LIMIT"] if limit else []), "extra MiB", "result"]
    rows, notes = [], []
    for row in stage.rows:
        measured = results[stage.key, row.label]
        if measured.error:
            notes.append(f"{row.label} is left out: {measured.error}.")
            continue
        rows.append(_line(row, measured, first, limit))
        if row.differs and measured.verdict not in ("", SAME):
            notes.append(f"{row.label} {row.differs}.")
    parts = [f"### {stage.title}", stage.text, markdown(header, rows)]
    return "\n\n".join([*parts, *(["\n".join(f"- {note}" for note in notes)] if notes else [])])


def _line(row: Row, measured: Measured, first: Measured, limit: Measured | None) -> list[str]:
    return [
        row.label,
        digits(measured.ms),
        ratio(measured.times(first)),
        *([ratio(measured.times(limit))] if limit else []),
        mebibytes(measured.extra_bytes),
        measured.verdict,
    ]


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


def agreement_table(found: Mapping[tuple[str, str], str]) -> str:
    """Tell how many pairs each matcher finds where matchers are known to differ."""
    rows = [
        [row.label, *(found.get((key, row.label), DASH) for key in AGREEMENT)] for row in MATCHERS
    ]
    notes = [f"- {row.label} {row.differs}." for row in MATCHERS if row.differs]
    return "\n\n".join([markdown(["", *AGREEMENT.values()], rows), "\n".join(notes)])


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
