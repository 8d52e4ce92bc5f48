"""``make fuzz``: every reader under libFuzzer, half of the inputs by bytes, half by documents."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fuzz.judge import Failure, Logbook, keep
from fuzz.targets import TARGETS

OUTPUT = Path(".fuzz")
INPUTS = 200_000
WAYS = ("bytes", "documents")
MOST_DEATHS = 25  # a reader that ends the process more often is given up, and reported


@dataclass
class Run:
    """One reader in one way."""

    name: str
    way: str
    inputs: int = 0
    deaths: int = 0
    seconds: float = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="READER", help=", ".join(TARGETS))
    parser.add_argument("--inputs", type=int, default=INPUTS, help="per reader (%(default)s)")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    if unknown := set(options.readers) - set(TARGETS):
        parser.error(f"no such reader: {', '.join(sorted(unknown))}")
    options.output.mkdir(parents=True, exist_ok=True)
    runs = [Run(name, way) for name in options.readers or TARGETS for way in WAYS]
    with ThreadPoolExecutor(options.jobs) as pool:
        for run in pool.map(lambda run: _finish(run, options), runs):
            print(
                f"{run.name:20} {run.way:10} {run.inputs:>8} inputs  {run.seconds:>7.0f} s  "
                f"{run.deaths} deaths",
                flush=True,
            )
    found = sorted((options.output / "findings").glob("*/*.txt"))
    for path in found:
        print(f"{path}: {path.read_text(encoding='utf-8').partition(chr(10))[0]}")
    short = [run for run in runs if run.inputs < options.inputs // 2]
    return 1 if found or short else 0


def _finish(run: Run, options: argparse.Namespace) -> Run:
    """Run processes until all inputs were judged; after a death the next one goes on."""
    began = time.monotonic()
    wanted = options.inputs // len(WAYS)
    while run.inputs < wanted and run.deaths < MOST_DEATHS:
        seed = str(options.seed + run.deaths)
        arguments = [run.name, run.way, str(wanted - run.inputs), seed, str(options.output)]
        done = subprocess.run(
            [sys.executable, "-m", "fuzz.guided", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        count, last = Logbook.read(options.output / f"{run.name}-{run.way}.log")
        run.inputs += count
        if done.returncode != 0:
            run.deaths += 1
            run.inputs += 1
            where = "\n".join(_telling(done.stderr))
            failure = Failure(
                f"process ended with {done.returncode}", where[:300], done.stderr[-6000:]
            )
            keep(options.output / "findings" / run.name, failure, last)
    run.seconds = time.monotonic() - began
    return run


def _telling(text: str) -> Iterator[str]:
    """Return the lines that distinguish deaths."""
    for line in text.splitlines():
        if line.startswith("==") or "Error" in line or "ERROR" in line:
            yield line.split("==")[-1]
    # Where it was, as faulthandler says: in a library, and where the reader called it.
    places = [line.strip() for line in text.splitlines() if line.startswith("  File ")]
    yield from next(([place] for place in places if "napari_panoptic/" in place), [])


if __name__ == "__main__":
    sys.exit(main())
