"""Whole cohorts and whole slides without a window: seconds and memory."""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile

from benchmarks.cases import MONUSAC, scene, write_slide, write_small_regions
from benchmarks.measure import (
    Measured,
    in_child,
    in_process,
    ms,
    prefixed,
    report,
    temporary,
    wall_and_cpu,
)
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.registry import open_masks
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.nuclei.averages import summarise_team
from napari_panoptic.nuclei.conventions import (
    Ambiguity,
    RegionPlace,
    RegionSums,
    Sum,
    TeamSums,
    figure_rows,
    key_of,
)
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.regions import conditions as ready
from napari_panoptic.nuclei.regions.doubts import (
    unusual_form,
)
from napari_panoptic.nuclei.regions.experiment import Experiment, cohort_robustness
from napari_panoptic.nuclei.regions.reading import usual_form
from napari_panoptic.nuclei.regions.run import PROCESSES, THREADS, run_regions
from napari_panoptic.nuclei.windowed_evaluation import evaluate_tiles
from napari_panoptic.questions.conventions import Conventions
from napari_panoptic.questions.engines.detective import advice
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    Cohort,
    MaskFiles,
    Region,
    Source,
    Team,
)
from napari_panoptic.values.conventions import (
    CHALLENGE_PROTOCOL,
    CONVENTIONS,
    DEFAULT_PROTOCOL,
    ObjectScope,
    Pairs,
)
from napari_panoptic.values.settings import PROTOCOLS, EvaluationSettings
from napari_panoptic.values.windowed_labels import TiledPair

EVALUATE = ("-m", "napari_panoptic.cli.main", "evaluate")


def evaluate(cohort: str = MONUSAC, n: int = 3) -> None:
    """The command `evaluate` with distances and the start of its process, and reading a region."""
    with temporary() as output:
        runs = [in_process(*EVALUATE, cohort, "--output", output)[1] for _ in range(n)]
    found = [
        Measured(f"evaluate: {each[0].name}", [run.values[0] for run in each], each[0].unit)
        for each in zip(*runs, strict=True)
    ]
    opened = open_cohort(Path(cohort))
    for region in opened.regions[:6]:
        load = partial(load_region, opened, region.name, EvaluationSettings())
        found.append(
            Measured(f"reading {region.name}", [ms(load, time.perf_counter) for _ in range(n)])
        )
    report(f"{len(opened.regions)} regions, {len(opened.teams)} teams", found)


def memory(smaller: int = 200, larger: int = 2000) -> None:
    """Most memory of `evaluate` by the number of regions of 96 px, 16 objects and two teams."""
    found = []
    for n in (smaller, larger):
        with temporary() as folder:
            cohort, output = write_small_regions(folder / "cohort", n), folder / "out"
            options = ("--output", output, "--jobs", 1, "--scheduler", THREADS)
            found += prefixed(f"{n} regions", in_process(*EVALUATE, cohort, *options)[1])
            size = (output / "objects.csv").stat().st_size / 2**20
            found.append(Measured(f"{n} regions: objects.csv", [size], "MiB"))
    report("evaluate, one job", found)


def fold(n: int = 2656) -> None:
    """Commands on a fold of PanNuke with two teams: 25 GB on the disk, which must be free."""
    limits = {
        "causes --team A --output causes": 45.0,
        "slices --team A --output slices": 60.0,
        "report --output report.html": 120.0,
    }
    found = []
    with temporary() as folder:
        # In a process of its own: the peak of this one counts as the least of its children.
        root = folder / "fold"
        code = "import sys; from pathlib import Path; from benchmarks.cases import write_fold; "
        in_process("-c", f"{code}write_fold(Path(sys.argv[1]), {n})", root)
        for line, limit in limits.items():
            name, *options, output = line.split()
            run = "-m", "napari_panoptic.cli.main", name, root, *options, folder / output
            _, cpu, memory = in_process(*run)[1]
            found += [
                replace(cpu, name=f"{name}: {cpu.name}", limit=limit if n >= 2656 else math.inf),
                replace(memory, name=f"{name}: {memory.name}", limit=500.0),
            ]
    report(f"A fold of {n} regions of 256 px, two teams", found)


def experiment(cohort: str = MONUSAC, jobs: int = 2) -> None:
    """Many conditions together and one by one, all conventions, and threads beside processes."""
    opened = open_cohort(Path(cohort))
    teams = tuple(team.name for team in opened.teams)
    names = opened.scheme.names
    lessons = Experiment(teams, ready.lessons_conditions())

    def together() -> None:
        regions = run_regions(opened, lessons, jobs=jobs)
        near = ready.LESSONS_NEIGHBOURS
        assert not np.isnan(cohort_robustness(regions, lessons, names, neighbours=near).pq).any()

    def all_of(work: Experiment, where: Cohort = opened, **options: Any) -> None:
        for _ in run_regions(where, work, **{"jobs": jobs, **options}):
            pass

    def one_by_one() -> None:
        for condition in lessons.conditions:
            all_of(Experiment(teams, (condition,)))

    found = wall_and_cpu("2 restorations x 2 rules, distances", together)
    found[0] = Measured(found[0].name, found[0].values, "s", limit=15.0)
    found += wall_and_cpu("the same conditions one by one", one_by_one)
    protocols = (DEFAULT_PROTOCOL, CHALLENGE_PROTOCOL)
    families: dict[str, tuple[ready.Condition, ...]] = {
        "radii": ready.radius_conditions(),
        "thresholds": ready.threshold_conditions(),
        "shifts": ready.shift_conditions(),
        "protocols": tuple(ready.Condition(name, PROTOCOLS[name]) for name in protocols),
    }
    families["all conditions"] = sum(families.values(), lessons.conditions)
    for name, own in families.items():
        work = Experiment(teams, own, with_objects=False)
        found += wall_and_cpu(f"{len(own)} {name}, sums alone", partial(all_of, work))
    asked = Conventions(teams=tuple(team.name for team in opened.competing_teams))
    gathered: list[Any] = []
    found += wall_and_cpu(
        "all conventions: reading and sums", lambda: gathered.append(asked.gather(opened))
    )
    clip = Ambiguity.CLIP
    sums = [TeamSums(own[clip].places, own[clip].regions) for own in gathered[0].teams.values()]
    found += wall_and_cpu(
        "all conventions: figures from sums",
        lambda: [list(figure_rows(own, CONVENTIONS, clip, names)) for own in sums],
    )
    many = Cohort(
        *(opened.name, opened.root, opened.scheme, opened.regions * 6),
        *(opened.teams, opened.predictions),
    )
    work = Experiment(asked.teams, lessons.conditions[:1])
    for kind in (THREADS, PROCESSES):
        for n in (1, 2):
            call = partial(all_of, work, many, jobs=n, scheduler=kind)
            found += wall_and_cpu(f"{len(many.regions)} regions, one condition: {n} {kind}", call)
    report(f"{len(opened.regions)} regions, {len(teams)} teams", found)


def many_regions(smaller: int = 1000, larger: int = 4000) -> None:
    """What must stay linear in regions and patients: ms of processor time per 1,000 of them."""
    found = []
    for n in (smaller, larger):
        places = [RegionPlace(f"P{k}") for k in range(n)]
        teams = {
            team: {Ambiguity.CLIP: TeamSums(places, _random_sums(n, seed))}
            for seed, team in enumerate("AB")
        }
        counts = [
            (place.patient, replace(Counts.zero(MONUSAC_CLASSES.names), tp=np.ones(4, np.int64)))
            for place in places
        ]
        files = MaskFiles(Source.LABELS, {"": (Path("mask.tif"),)})
        names = [f"R{k}" for k in range(n)]
        cohort = Cohort(
            *("many", Path(), MONUSAC_CLASSES),
            tuple(Region(name, name, None, None) for name in names),
            (Team("A"), Team("B")),
            {(team, name): {Source.LABELS: files} for team in "AB" for name in names},
        )
        steps: dict[str, Callable[[], object]] = {
            "order of teams by convention": partial(advice, teams, Ambiguity.CLIP, names),
            "averages over patients": partial(summarise_team, counts, MONUSAC_CLASSES.names),
            "usual formats": lambda cohort=cohort, files=files: [  # type: ignore[misc]
                unusual_form(usual_form(cohort, "A"), cohort.region(region.name), "A", files, None)
                for region in cohort.regions
            ],
        }
        found += [
            Measured(f"{name}, {n}", [ms(step, time.process_time) * 1000 / n])
            for name, step in steps.items()
        ]
    report("Many regions, a patient each; ms per 1,000", found)


def _random_sums(n: int, seed: int) -> list[RegionSums]:
    """Return sums of regions by all conventions, with fewer predictions for the first seed."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        sums = {}
        for objects, pairs in product(ObjectScope, Pairs):
            is_by_class = objects in (ObjectScope.BY_CLASS, ObjectScope.CLASS_MASKS)
            own = rng.integers(1, 9, (4 if is_by_class else 1, len(Sum))).astype(float)
            own[:, Sum.HAD_REFERENCE] = rng.random(len(own)) < 0.5
            own[:, Sum.HAD_PREDICTION] = rng.random(len(own)) < (0.9 if seed else 0.5)
            own[:, Sum.IOU] = own[:, Sum.TP] * 0.7
            sums[key_of(objects, pairs)] = own
        found.append(RegionSums(sums, None))
    return found


# --- slides -------------------------------------------------------------------------------------


def slide(side: int = 40_000, n: int = 600_000) -> None:
    """A whole slide in a fresh process: decoded once (the limit), without and with distances."""
    with temporary() as folder:
        paths = [folder / "slide" / place / "S_1.tif" for place in ("reference", "teams/Team")]
        write = partial(write_slide, folder / "slide", scene((side, side), n), with_picture=False)
        found = wall_and_cpu("writing it", write)
        in_child(decode_all, *map(str, paths))  # the first one warms up
        said, took = in_child(decode_all, *map(str, paths))
        found += prefixed("LIMIT: decoding all tiles once", took)
        for title, with_distances in (("without distances", False), ("with distances", True)):
            said, took = in_child(evaluate_slide, *map(str, paths), side, with_distances)
            found += prefixed(title, took)
        report(f"{side} x {side} px; {said}", found)


def decode_all(*paths: str) -> int:
    """Decode every tile once, in two threads, as any evaluation must."""

    def decode(path: str) -> int:
        with tifffile.TiffFile(path) as tiff, Path(path).open("rb") as file:
            page = tiff.pages[0]
            for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
                file.seek(offset)
                imagecodecs.deflate_decode(file.read(size), out=4 * page.tilewidth**2)
            return len(page.dataoffsets)

    with ThreadPoolExecutor(max_workers=2) as pool:
        return sum(pool.map(decode, paths))


def evaluate_slide(reference: str, prediction: str, side: int, distances: bool) -> str:
    """Evaluate two label images; return their figures."""
    sides = [
        open_masks(
            MaskFiles(Source.LABELS, {"": (Path(path),)}), MONUSAC_CLASSES, (side, side)
        ).labels
        for path in (reference, prediction)
    ]
    pair = TiledPair(sides[0], sides[1], mpp=0.25)
    found = evaluate_tiles(pair, EvaluationSettings(distances=distances))
    n = " and ".join(str(len(own)) for own in (found.outcomes.reference, found.outcomes.prediction))
    figures = found.metrics
    return f"{n} objects, PQ {figures.pq:.4f}, {figures.mean_hausdorff_px:.3f} px Hausdorff"
