"""Measure many conditions at once, and a cohort of many regions.

``python -m benchmarks.experiment`` runs the lessons paper's experiment on the shared
cases (two restorations by two rules, distances included), beside the same conditions
one by one, and every ready-made family together. With ``--jobs`` threads are compared
with processes; with ``--memory`` the command ``evaluate`` is run on 200 and on 2,000
generated regions, and the most memory that it had at any time is told.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.conventions import Ambiguity, TeamSums, figure_rows, region_sums
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable
from napari_panoptic.nuclei.regions.conditions import (
    LESSONS_NEIGHBOURS,
    Condition,
    lessons_conditions,
    radius_conditions,
    shift_conditions,
    threshold_conditions,
)
from napari_panoptic.nuclei.regions.experiment import Experiment, cohort_robustness
from napari_panoptic.nuclei.regions.run import PROCESSES, THREADS, run_regions
from napari_panoptic.questions.conventions import CohortSums, Conventions
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.conventions import CHALLENGE_PROTOCOL, CONVENTIONS, DEFAULT_PROTOCOL
from napari_panoptic.values.settings import PROTOCOLS

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases" / "monusac"
LIMIT_S = 15.0
SIDE, OBJECTS = 96, 16
DESCRIPTION = """
[classes]
Epithelial = [255, 0, 0]
Lymphocyte = [255, 255, 0]
Neutrophil = [0, 0, 255]
Macrophage = [0, 255, 0]

[files]
patient = "^(?P<patient>P[0-9]+)-"
reference.labels = "reference/{region}.npy"
predictions.labels = "teams/{team}/{region}.npy"
"""


def measured(title: str, call: Callable[[], object]) -> float:
    """Tell how long a call takes by the clock, and how much of the processors it uses."""
    start, cpu = time.perf_counter(), cpu_s()
    call()
    wall_s, used_s = time.perf_counter() - start, cpu_s() - cpu
    print(f"  {title:58} {wall_s:7.2f} s by the clock, {used_s:7.2f} s of processor")
    return wall_s


def cpu_s() -> float:
    """Give the processor time of this process and of those that it has waited for."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, who))


def experiment(cohort: Cohort, jobs: int) -> None:
    """Time the lessons paper's experiment, and all families together."""
    teams = tuple(team.name for team in cohort.teams)
    lessons = Experiment(teams, lessons_conditions())
    print(f"\n{len(cohort.regions)} regions, {len(teams)} teams, distances included")

    def together() -> None:
        regions = run_regions(cohort, lessons, jobs=jobs)
        found = cohort_robustness(
            regions, lessons, cohort.scheme.names, neighbours=LESSONS_NEIGHBOURS
        )
        assert not np.isnan(found.pq).any()

    wall_s = measured(f"2 restorations x 2 rules together, {jobs} threads", together)
    print(f"  {'within' if wall_s <= LIMIT_S else 'NOT WITHIN'} the limit of {LIMIT_S:.0f} s")

    def one_by_one() -> None:
        for condition in lessons.conditions:
            for _ in run_regions(cohort, Experiment(teams, (condition,)), jobs=jobs):
                pass

    measured("the same conditions one by one", one_by_one)
    protocols = (DEFAULT_PROTOCOL, CHALLENGE_PROTOCOL)
    families: dict[str, tuple[Condition, ...]] = {
        "9 radii": radius_conditions(),
        "19 thresholds": threshold_conditions(),
        "9 shifts": shift_conditions(),
        "2 protocols": tuple(Condition(name, PROTOCOLS[name]) for name in protocols),
    }
    families["all of these and the four, 43"] = sum(families.values(), lessons.conditions)
    for name, conditions in families.items():
        work = Experiment(teams, conditions, with_objects=False)
        measured(
            f"{name} conditions, sums alone",
            lambda work=work: [None for _ in run_regions(cohort, work, jobs=jobs)],  # type: ignore[misc]
        )


def conventions(cohort: Cohort) -> None:
    """Time all named conventions: reading, the sums of many pairs, and the figures from sums."""
    asked = Conventions(teams=tuple(team.name for team in cohort.competing_teams))
    print(f"\nconventions: {len(cohort.regions)} regions, {len(asked.teams)} teams")
    gathered: list[CohortSums] = []
    measured("reading and sums", lambda: gathered.append(asked.gather(cohort)))
    fresh = {
        team: TeamSums(own[Ambiguity.CLIP].places, own[Ambiguity.CLIP].regions)
        for team, own in gathered[0].teams.items()
    }
    names = cohort.scheme.names
    measured(
        "every figure from sums",
        lambda: [
            list(figure_rows(own, CONVENTIONS, Ambiguity.CLIP, names)) for own in fresh.values()
        ],
    )
    table, classes = many_pairs(250_000)
    title = f"sums of {len(table.intersection):,} pairs, without centroids"
    measured(title, lambda: region_sums(table, classes, 4, Ambiguity.CLIP))


def many_pairs(n: int) -> tuple[OverlapTable, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Make n objects a side, each with a partner and a neighbour that it touches."""
    rng = np.random.default_rng(0)
    sides = []
    for _ in range(2):
        area, nothing = rng.integers(50, 400, n), np.zeros((n, 2), np.int64)
        box = np.zeros((n, 4), np.int32)
        sides.append(SideTable(area, nothing[:, 0], nothing, nothing, box, np.arange(n)))
    rows = np.repeat(np.arange(n), 2)[:-1]
    columns = rows + np.tile([0, 1], n)[:-1]
    most = np.minimum(sides[0].area[rows], sides[1].area[columns])
    share = np.where(
        rows == columns, rng.uniform(0.3, 0.95, len(rows)), rng.uniform(0, 0.15, len(rows))
    )
    shared = (most * share).astype(np.int64) + 1
    at = rows.astype(np.int32), columns.astype(np.int32)
    table = OverlapTable(*sides, *at, shared, np.zeros(len(rows), np.int64))
    return table, (rng.integers(1, 5, n), rng.integers(1, 5, n))


def threads_and_processes(cohort: Cohort, repeats: int) -> None:
    """Time one evaluation of a cohort by threads and by processes, starting them included."""
    region = cohort.regions[0]
    teams = tuple(team.name for team in cohort.competing_teams)
    work = Experiment(teams, lessons_conditions()[:1])
    print(f"\n{len(cohort.regions) * repeats} regions, {len(teams)} teams, one condition")
    many = Cohort(
        cohort.name,
        cohort.root,
        cohort.scheme,
        cohort.regions * repeats,
        cohort.teams,
        cohort.predictions,
    )
    work.evaluate(cohort, region)
    for scheduler in (THREADS, PROCESSES):
        for jobs in (1, 2):
            measured(
                f"{jobs} {scheduler}",
                lambda scheduler=scheduler, jobs=jobs: [  # type: ignore[misc]
                    None for _ in run_regions(many, work, jobs=jobs, scheduler=scheduler)
                ],
            )


def write_cohort(root: Path, n_regions: int, n_teams: int = 2) -> Path:
    """Write small regions as arrays of ids and classes; ten regions a patient."""
    (root / "cohort.toml").write_text(DESCRIPTION, encoding="utf-8")
    folders = [root / "reference", *(root / "teams" / f"team {k + 1}" for k in range(n_teams))]
    for folder in folders:
        folder.mkdir(parents=True)
    rng = np.random.default_rng(5)
    rows, columns = np.indices((SIDE, SIDE))
    for number in range(n_regions):
        centres = rng.uniform(6, SIDE - 6, (OBJECTS, 2))
        classes = rng.integers(1, 5, OBJECTS)
        for folder in folders:
            array = np.zeros((SIDE, SIDE, 2), np.int32)
            jitter = rng.normal(0, 0 if folder.name == "reference" else 1.5, (OBJECTS, 2))
            for k, (y, x) in enumerate(centres + jitter):
                array[(rows - y) ** 2 + (columns - x) ** 2 <= 25] = k + 1, classes[k]
            np.save(folder / f"P{number // 10:04}-{number:05}.npy", array)
    return root


def memory(sizes: tuple[int, ...]) -> None:
    """Tell the most memory that the command ever has, by the number of regions."""
    print(f"\nevaluate, regions of {SIDE} px, {OBJECTS} objects, 2 teams, one job")
    for n_regions in sizes:
        with TemporaryDirectory() as place:
            cohort = write_cohort(Path(place), n_regions)
            output = Path(place) / "out"
            command = [sys.executable, "-m", "napari_panoptic.cli.main", "evaluate", str(cohort)]
            start = time.perf_counter()
            options = ["--output", str(output), "--jobs", "1", "--scheduler", THREADS]
            process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)  # noqa: S603
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
            size_mib = (output / "objects.csv").stat().st_size / 2**20
            print(
                f"  {n_regions:6} regions: {usage.ru_maxrss / 1024:6.0f} MiB at most, "
                f"{time.perf_counter() - start:6.1f} s, "
                f"{usage.ru_utime + usage.ru_stime:6.1f} s of processor, "
                f"objects.csv {size_mib:.1f} MiB"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", action="store_true", help="compare threads with processes")
    parser.add_argument("--memory", action="store_true", help="run 200 and 2,000 regions")
    options = parser.parse_args()
    if options.memory:
        memory((200, 2000))
    if not CASES.is_dir():
        print("The shared cases are not beside this repository: the rest is left out")
        return
    cohort = open_cohort(CASES)
    if options.jobs:
        threads_and_processes(cohort, repeats=6)
    if not options.memory and not options.jobs:
        experiment(cohort, jobs=2)
        conventions(cohort)


if __name__ == "__main__":
    main()
