"""What benchmarks share: clocks, processes of their own, the loop over seeds, and their tables."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from benchmarks.table import digits, markdown, ratio

ROOT = Path(__file__).resolve().parent.parent
MAXRSS_PER_MIB = 1024 if sys.platform == "linux" else 2**20
Call = Callable[[], object]
Clock = Callable[[], float]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """What was measured: values in one unit, a limit of their median, and what they are beside."""

    name: str
    values: Sequence[float]
    unit: str = "ms"
    limit: float = math.inf
    beside: Sequence[float] = ()


def report(title: str, found: Iterable[Measured]) -> None:
    """Print a table of what was measured."""
    header, rows = ["", "median", "p95", "unit", "limit", "ratio", ""], []
    for own in found:
        if not own.values:
            rows.append([own.name, "–", "–", own.unit, "", "", "not done"])
            continue
        middle, several = median(own.values), len(own.values) > 1
        p95 = quantiles(own.values, n=20)[-1] if several else math.nan
        beside = ratio(middle / median(own.beside)) if own.beside else ""
        limit = f"{own.limit:g}" if own.limit < math.inf else ""
        above = "above" if middle > own.limit else ""
        rows.append([own.name, digits(middle), digits(p95), own.unit, limit, beside, above])
    print_table(title, header, rows)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with its title."""
    print(f"\n{title}\n\n{markdown(header, [[str(cell) for cell in row] for row in rows])}")
    sys.stdout.flush()


# --- clocks -------------------------------------------------------------------------------------


def ms(call: Call, clock: Clock = time.thread_time) -> float:
    """Return the time of a call in ms: of the main thread's processor, if no clock is given."""
    start = clock()
    call()
    return 1000 * (clock() - start)


def wall_and_cpu(name: str, call: Call) -> list[Measured]:
    """Call once; return seconds by the clock and of all processors, of children as well."""
    start, cpu = time.perf_counter(), cpu_s()
    call()
    wall = Measured(name, [time.perf_counter() - start], "s")
    return [wall, Measured(f"{name}: processors", [cpu_s() - cpu], "s")]


def cpu_s() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, who))


def in_process(*arguments: object) -> tuple[str, list[Measured]]:
    """Run Python with arguments; return its output, and seconds and most memory with its start."""
    command = [sys.executable, *map(str, arguments)]
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return said, _taken(time.perf_counter() - start, cpu, usage.ru_maxrss / MAXRSS_PER_MIB)


def _taken(wall: float, cpu: float, mib: float) -> list[Measured]:
    times = Measured("by the clock", [wall], "s"), Measured("processors", [cpu], "s")
    return [*times, Measured("memory at most", [mib], "MiB")]


def in_child(function: Callable[..., Any], *arguments: object) -> tuple[Any, list[Measured]]:
    """Call a function of a benchmark in a fresh process, and measure the call there."""
    code = (
        f"from {function.__module__} import {function.__name__} as call\n"
        f"from benchmarks.measure import child\nchild(call, *{arguments!r})"
    )
    found, wall, cpu, mib = json.loads(in_process("-c", code)[0].splitlines()[-1])
    return found, _taken(wall, cpu, mib)


def child(call: Callable[..., Any], *arguments: object) -> None:
    """Call a function, and print its result and what it took for `in_child`."""
    start, cpu = time.perf_counter(), time.process_time()
    found = call(*arguments)
    took = time.perf_counter() - start, time.process_time() - cpu
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([found, *took, most / MAXRSS_PER_MIB]))


@contextmanager
def temporary() -> Iterator[Path]:
    """Make a folder that is removed afterwards."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


def prefixed(name: str, found: Iterable[Measured]) -> list[Measured]:
    """Return what was measured under a longer name."""
    return [Measured(f"{name}: {own.name}", own.values, own.unit, own.limit) for own in found]


# --- simulations --------------------------------------------------------------------------------


def repeated(trial: Callable[[int], Any], seeds: Iterable[int]) -> Floats:
    """Repeat a trial with several seeds; its figures along the first axis."""
    return np.array([trial(seed) for seed in seeds], float)


def share(hits: Any, n: int | None = None) -> str:
    """Write how often something occurred, with its interval of 95 % (Wilson)."""
    n = np.size(hits) if n is None else n
    if not n:
        return "–"
    test = binomtest(int(np.sum(hits)), n)
    low, high = test.proportion_ci(method="wilson")
    return f"{test.statistic:.1%} ({100 * low:.1f}–{100 * high:.1f})"


@dataclass(frozen=True, eq=False)
class Coverage:
    """How well intervals hold a truth; arrays of its figures."""

    truth: Floats
    is_held: NDArray[np.bool_]  # (repetitions, ...)
    mean: Floats
    half_width: Floats
    error: Floats  # root mean square
    bias: Floats

    @property
    def covered(self) -> Floats:
        """The share of intervals that hold the truth."""
        return np.asarray(self.is_held.mean(axis=0))

    def of(self, *place: Any) -> Coverage:
        """Return some of the figures."""
        return Coverage(*(own[(..., *place)] for own in vars(self).values()))

    def cells(self) -> list[str]:
        """Write coverage, and in points half-width, error and bias."""
        rows = zip(
            self.is_held.T, 100 * self.half_width, 100 * self.error, 100 * self.bias, strict=True
        )
        return [
            f"{share(held)} ±{w:.1f}; {error:.2f}; {bias:+.2f}" for held, w, error, bias in rows
        ]


def coverage_of(truth: Floats, trial: Callable[[int], Floats], seeds: Iterable[int]) -> Coverage:
    """Repeat a trial that returns estimates, low and high ends of the intervals of a truth.

    An undefined interval holds only an undefined truth.
    """
    estimates, low, high = repeated(trial, seeds).swapaxes(0, 1)
    is_held = (low <= truth + 1e-9) & (truth - 1e-9 <= high) | np.isnan(truth)
    mean, half_width = np.nanmean(estimates, axis=0), np.nanmean(high - low, axis=0) / 2
    error = np.sqrt(np.nanmean((estimates - truth) ** 2, axis=0))
    return Coverage(truth, is_held, mean, half_width, error, mean - truth)
