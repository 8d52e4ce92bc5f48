"""Measure this package beside its peers, and write docs/explanation/benchmarks.md.

Run by ``make bench``. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from string import Template

import numpy as np
from numpy.typing import NDArray

from benchmarks import table
from benchmarks.cases import LARGE, MEDIUM, SMALL
from benchmarks.stages import (
    AGREEMENT,
    MATCHERS,
    Measured,
    Results,
    Row,
    Stage,
    make_inputs,
    make_stages,
    same_pairs,
)
from benchmarks.workers import PACKAGES, ROOT, UnansweredError, Workers

DOCUMENT = ROOT / "docs" / "explanation" / "benchmarks.md"
TEMPLATE = Path(__file__).with_name("document.md")
SCRIPTS = Path(__file__).with_name("scripts.md")
"""What the benchmarks with tables of their own printed in the last run that had them."""
ROUNDS = 11
FEWEST_ROUNDS = 2
BUDGET_S = 4.0  # no more rounds for a contender that has taken longer
# Before each call: threads of packages look for more work for a while after their last, and would
# take a processor from the next contender.
SETTLE_S = 0.2

# --- Measuring -----------------------------------------------------------------


def measure(stage: Stage, workers: Workers) -> dict[str, Measured]:
    """Measure a stage: results first, then times in rounds through all rows, then memory."""
    found = {row.label: Measured() for row in stage.rows}
    _compare(stage, workers, found)
    spent = dict.fromkeys(found, 0.0)
    for k in range(ROUNDS):
        for row in stage.rows:
            measured = found[row.label]
            if measured.error or (k >= FEWEST_ROUNDS and spent[row.label] > BUDGET_S):
                continue
            time.sleep(SETTLE_S)
            start = time.perf_counter()
            measured.rounds_ms.append(workers.measure("time", row, stage.inputs))
            spent[row.label] += time.perf_counter() - start
    for row in stage.rows:
        if not found[row.label].error:
            found[row.label].extra_bytes = workers.measure("memory", row, stage.inputs)
    return found


def _compare(stage: Stage, workers: Workers, found: dict[str, Measured]) -> None:
    """Hold each result against ours from the same inputs."""
    ours: dict[str, NDArray[np.generic]] = {}
    for row in stage.rows:
        try:
            result = workers.result(row, stage.inputs)
        except UnansweredError as error:
            found[row.label].error = str(error)
            print(f"{row.label} is left out: {error}", flush=True)
            continue
        if stage.compare is None or row is stage.limit:
            continue
        if row.inputs in ours:
            found[row.label].verdict = stage.compare(ours[row.inputs], result)
        else:
            ours[row.inputs] = result
            if stage.compare is same_pairs:
                s = "" if len(result) == 1 else "s"
                found[row.label].verdict = f"{len(result):,} pair{s}"


def agreement(workers: Workers) -> dict[tuple[str, str], str]:
    """Give the number of pairs that each matcher finds, where matchers are known to differ."""
    found = {}
    for key in AGREEMENT:
        for row in MATCHERS:
            try:
                pairs = workers.result(row, key)
            except UnansweredError:
                continue
            found[key, row.label] = str(int(pairs) if pairs.ndim == 0 else len(pairs))
    return found


# --- The document --------------------------------------------------------------


def machine() -> str:
    """Describe the machine in a line, without its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    processor = named[1].strip() if named else platform.processor() or "processor unknown"
    return f"{os.cpu_count()} cores ({processor}), {memory:.0f} GiB, {system}"


def environments(workers: Workers) -> dict[str, dict[str, str | None] | str]:
    """Return the versions in each environment, or why there is none."""
    found: dict[str, dict[str, str | None] | str] = {}
    for name in PACKAGES:
        try:
            found[name] = workers.versions(name)
        except UnansweredError as error:
            found[name] = f"left out: {error}"
    return found


def other_scripts() -> str:
    """Return what the benchmarks print that have tables of their own."""
    # Windows need Qt, which is in the environment of `make demo`.
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "benchmarks", "--all"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    title = "# Windows, whole slides and whole cohorts"
    return f"{title}\n\nRun on {date.today().isoformat()}.\n\n{done.stdout.strip()}\n"


def document(
    stages: Sequence[Stage],
    results: Results,
    agreements: dict[tuple[str, str], str],
    scripts: str,
    **others: str,
) -> str:
    """Fill in the template."""
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        matching=table.matching_table(stages, results, agreements),
        steps=table.steps_table(stages, results),
        slower=table.slower_list(stages, results, scripts),
        **others,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no large images; only print")
    parser.add_argument("--stages", nargs="*", metavar="WORD", help="those named so; only print")
    parser.add_argument("--all", action="store_true", help="windows and whole slides too: an hour")
    options = parser.parse_args()
    sizes = (SMALL, MEDIUM) if options.quick else (SMALL, MEDIUM, LARGE)
    stages = [
        stage
        for stage in make_stages(sizes)
        if not options.stages or any(word in stage.key for word in options.stages)
    ]
    results: Results = {}
    with tempfile.TemporaryDirectory() as folder, Workers(Path(folder)) as workers:
        workers.hand_over(inputs := make_inputs(sizes))
        pairs = workers.result(Row("match"), "pair M")
        workers.hand_over({"distances": [*inputs["pair M"], pairs]})
        for stage in stages:
            print(f"{stage.title} ...", flush=True)
            for label, measured in measure(stage, workers).items():
                results[stage.key, label] = measured
        agreements = agreement(workers)
        versions = table.versions_table(environments(workers))
    tables = table.matching_table(stages, results, agreements), table.steps_table(stages, results)
    print(*tables, table.target_table(results), versions, sep="\n\n")
    if options.quick or options.stages:
        return
    if options.all:
        SCRIPTS.write_text(other_scripts(), encoding="utf-8")
    text = document(
        stages,
        results,
        agreements,
        SCRIPTS.read_text(encoding="utf-8"),
        machine=machine(),
        date=date.today().isoformat(),
        versions=versions,
    )
    DOCUMENT.write_text(text, encoding="utf-8")
    print(f"\nWritten to {DOCUMENT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
