"""Regions that are read in windows: the command gives the same files, byte for byte."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tifffile
import zarr

from napari_panoptic.cli.main import main
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.registry import BUILT_IN, load_masks
from napari_panoptic.live.snapshots import load_in_steps
from napari_panoptic.nuclei.conventions import rules_of
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.nuclei.regions import reading as pipeline
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation, InputWatch
from napari_panoptic.nuclei.regions.conditions import Condition, threshold_conditions
from napari_panoptic.nuclei.regions.experiment import Experiment, evaluate_slide
from napari_panoptic.nuclei.regions.reading import load_prediction, load_reference
from napari_panoptic.nuclei.regions.result_store import PartStore
from napari_panoptic.nuclei.regions.results import RegionResult, object_frames
from napari_panoptic.nuclei.regions.run import PROCESSES, THREADS, RegionDone, run_regions
from napari_panoptic.questions.conventions import Conventions
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.conventions import CONVENTIONS, ObjectScope, score_of
from napari_panoptic.values.settings import EvaluationSettings
from tests.support.builders import write_svs
from tests.support.dask_cluster import Cluster
from tests.support.label_cases import random_pair
from tests.support.small_cohort import write_cohort
from tests.support.zarr_stores import KINDS, write_zarr

TABLES = (
    "objects.csv",
    "regions.csv",
    "patients.csv",
    "patients_by_class.csv",
    "teams.csv",
    "confusion.csv",
)
DESCRIPTION = """
[classes]
Epithelial = [255, 0, 0]
Lymphocyte = [255, 255, 0]
Neutrophil = [0, 0, 255]
Macrophage = [0, 255, 0]

[ambiguous]
name = "Ambiguous"

[files]
image = "images/{region}.svs"
reference.labels = "reference/{class}/{region}.npy"
predictions.labels = ["teams/{team}/{region}.tif", "teams/{team}/{class}/{region}.tif"]
"""
REGIONS = {"p1_a": (70, 90), "p1_b": (33, 50), "p2_a": (64, 64)}
IN_WINDOWS = ("--held-up-to", "1")


def write_labels_cohort(root: Path) -> Path:
    """Write three regions with label images: per class, and with tables of classes."""
    root.mkdir()
    (root / "cohort.toml").write_text(DESCRIPTION)
    for number, (region, shape) in enumerate(REGIONS.items()):
        case = random_pair(np.random.default_rng(number), shape)
        write_svs(root / "images" / f"{region}.svs", np.zeros((*shape, 3), np.uint8))
        for place, name in enumerate(("Epithelial", "Lymphocyte", "Neutrophil", "Macrophage")):
            path = root / "reference" / name / f"{region}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            own = [id_ for id_, class_ in case.reference_classes.items() if class_ == name]
            np.save(path, np.where(np.isin(case.reference, own), case.reference, 0))
            over = case.prediction * (case.prediction % 4 == place)
            if name == "Neutrophil":
                # Over all others and with the same ids: objects are covered and vanish.
                over = np.where(case.prediction % 3 == 0, case.prediction, over)
            write_image(root / "teams" / "beta" / name / f"{region}.tif", over.astype(np.uint32))
        void = np.zeros(shape, np.uint8)
        void[5:20, 10:40] = 1
        area = root / "reference" / "Ambiguous" / f"{region}.npy"
        area.parent.mkdir(exist_ok=True)
        np.save(area, void)
        write_image(root / "teams" / "alpha" / f"{region}.tif", case.prediction.astype(np.uint32))
        table = {str(id_): name for id_, name in case.prediction_classes.items()}
        (root / "teams" / "alpha" / f"{region}.json").write_text(
            json.dumps(dict(list(table.items())[1:]))
        )
    return root


def write_image(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tifffile.imwrite(path, pixels, tile=(16, 16), compression="adobe_deflate")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labels_cohort(tmp_path_factory.mktemp("slides") / "cohort")


def evaluated(folder: Path, output: Path, *options: str) -> dict[str, bytes]:
    """Give the content of all tables, with what the record warns of."""
    assert main(["evaluate", str(folder), "--output", str(output), *options]) == 0
    assert not (output / ".parts").exists()
    found = {name: (output / name).read_bytes() for name in TABLES}
    record = json.loads((output / "evaluation.json").read_text("utf-8"))
    warnings = [[kind, sorted(map(str, told))] for kind, told in record["warnings"].items()]
    return {**found, "warnings": json.dumps(sorted(warnings)).encode()}


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--matching", "centroid", "--outlines", "both-clipped"),
        ("--ambiguous", "majority", "--iou-threshold", "0.3"),
        ("--ambiguous", "clip-predictions", "--no-distances", "--jobs", "1"),
        ("--ambiguous", "keep", "--jobs", "2"),
        pytest.param(
            ("--ambiguous", "keep", "--scheduler", "processes", "--jobs", "2"),
            marks=pytest.mark.long,
        ),
    ],
    ids=lambda options: " ".join(options) or "defaults",
)
def test_tables_are_the_same_byte_for_byte(
    folder: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    held = evaluated(folder, tmp_path / "held", *options)
    in_windows = evaluated(folder, tmp_path / "windows", *options, *IN_WINDOWS)
    for name, content in held.items():
        assert in_windows[name] == content, name
    assert held["objects.csv"].count(b"\n") > 50


def test_polygons_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    """The annotation alone can be read in windows: it is scored against itself."""
    root = write_cohort(tmp_path / "cohort")
    annotations = next(path for path in root.iterdir() if "Annotations" in path.name)
    own = tmp_path / "own"
    own.mkdir()
    annotations.rename(own / "annotations")
    (own / "cohort.toml").write_text(
        DESCRIPTION.split("[files]")[0]
        + '[files]\nimage = "annotations/{patient}/{region}.svs"\n'
        + 'reference.imagescope = "annotations/{patient}/{region}.xml"\n'
        + 'predictions.imagescope = "annotations/{patient}/{region}.xml"\n'
    )
    held = evaluated(own, tmp_path / "held")
    in_windows = evaluated(own, tmp_path / "windows", *IN_WINDOWS)
    for name in TABLES:
        assert in_windows[name] == held[name], name
    assert held["objects.csv"].count(b"\n") > 5


def write_zarr_cohort(labels: Path, root: Path) -> Path:
    """Write the regions of a cohort with label images anew, as Zarr stores of both formats."""
    root.mkdir()
    text = DESCRIPTION.replace("{region}.npy", "{region}.zarr")
    (root / "cohort.toml").write_text(text.replace("{region}.tif", "{region}.ome.zarr"))
    shutil.copytree(labels / "images", root / "images")
    for number, path in enumerate(sorted(labels.rglob("*.npy"))):
        target = root / path.relative_to(labels).with_suffix(".zarr")
        write_zarr(target, np.load(path), zarr_format=2 + number % 2, leading=(1,) * (number % 3))
    for number, path in enumerate(sorted(labels.rglob("*.tif"))):
        target = root / path.relative_to(labels).with_suffix(".ome.zarr")
        kind = KINDS[number % len(KINDS)]
        write_zarr(target, tifffile.imread(path), kind=kind, zarr_format=2 + number % 2)
    for path in labels.rglob("*.json"):
        shutil.copy(path, root / path.relative_to(labels))
    return root


def test_zarr_stores_are_the_same_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    """Held and in windows, and like TIFF and NPY files of the same pixels."""
    root = write_zarr_cohort(folder, tmp_path / "zarr")
    expected = evaluated(folder, tmp_path / "files")
    held = evaluated(root, tmp_path / "held")
    in_windows = evaluated(root, tmp_path / "windows", *IN_WINDOWS)
    for name in TABLES:
        assert held[name] == expected[name], name
        assert in_windows[name] == expected[name], name
    assert held["warnings"] == in_windows["warnings"]


@pytest.mark.parametrize("held_up_to_px", [1, 10**9])
def test_a_changed_chunk_or_table_is_noticed(
    folder: Path, tmp_path: Path, held_up_to_px: int
) -> None:
    root = write_zarr_cohort(folder, tmp_path / "zarr")
    cohort, store = open_cohort(root), tmp_path / "parts"
    work = replace(small_work(), held_up_to_px=held_up_to_px)

    def evaluated_anew() -> set[str]:
        news: list[RegionDone] = []
        list(run_regions(cohort, work, store=store, on_result=news.append))
        return {done.region for done in news if not done.is_taken_over}

    assert evaluated_anew() == set(REGIONS)
    assert evaluated_anew() == set()
    first, second, _ = (region.name for region in cohort.regions)
    pixels = zarr.open(str(root / "reference" / "Lymphocyte" / f"{first}.zarr"), mode="r+")["0"]
    pixels[..., 0, 0] = 77
    table = root / "teams" / "alpha" / f"{second}.ome.json"
    (root / "teams" / "alpha" / f"{second}.json").rename(table)
    cohort = open_cohort(root)
    assert evaluated_anew() == {first, second}
    table.write_text(json.dumps(dict.fromkeys(json.loads(table.read_text()), "Macrophage")))
    assert evaluated_anew() == {second}


def test_a_chunk_changed_during_a_run_is_noticed(folder: Path, tmp_path: Path) -> None:
    cohort = open_cohort(write_zarr_cohort(folder, tmp_path / "zarr"))
    watch = InputWatch(cohort, ["alpha", "beta"])
    results = list(run_regions(cohort, small_work(), jobs=1))
    path = tmp_path / "zarr" / "reference" / "Lymphocyte" / "p1_a.zarr"
    zarr.open(str(path), mode="r+")["0"][..., 0, 0] = 77
    evaluation = CohortEvaluation(
        cohort, EvaluationSettings(), "disentangled", [r for found, *_ in results for r in found]
    )
    noted = watch.noted(evaluation).findings
    assert [f.path for f in noted if f.kind is FindingKind.CHANGED] == [path]


def test_other_forms_say_why_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_cohort(tmp_path / "cohort")
    output = tmp_path / "tables"
    assert main(["evaluate", str(root), "--output", str(output), *IN_WINDOWS]) == 1
    said = capsys.readouterr().err
    assert "masks in the format 'colour-coded' can only be read as a whole" in said
    first = "labels, imagescope, geojson, hovernet, annotation-store, imagej-roi, "
    first += "coco-instances, cellvit"
    others = sum(form.in_windows for form in BUILT_IN) - len(first.split(", "))
    assert f"formats that can be read in windows: {first} and {others} more\n" in said


def test_the_challenges_scoring_says_why_not(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--output", str(tmp_path / "t"), "--protocol", "monusac-2020-as-run", *IN_WINDOWS]
    assert main(["evaluate", str(folder), *options]) == 1
    assert "the challenge's scoring" in capsys.readouterr().err


def test_polygons_without_a_pixel_are_told_of(tmp_path: Path) -> None:
    corners = [[1, 1], [6, 1], [6, 6], [1, 6], [1, 1]]
    outlines = {
        "covered": [corners],
        "covers": [corners],
        "outside": [[[x + 500, y] for x, y in corners]],
        "between the centres": [[[20 + x / 20, 20 + y / 20] for x, y in corners]],
    }
    features = [
        {
            "type": "Feature",
            "properties": {"classification": {"name": "Epithelial"}},
            "geometry": {"type": "Polygon", "coordinates": rings},
        }
        for rings in outlines.values()
    ]
    (tmp_path / "r.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": features})
    )
    write_svs(tmp_path / "r.svs", np.zeros((40, 40, 3), np.uint8))
    (tmp_path / "cohort.toml").write_text(
        DESCRIPTION.split("[files]")[0]
        + '[files]\nimage = "{region}.svs"\nreference.geojson = "{region}.geojson"\n'
        + 'predictions.geojson = "{region}.geojson"\n'
    )
    cohort = open_cohort(tmp_path)
    work = Experiment(("predictions",), (Condition("one", EvaluationSettings()),))
    held = work.evaluate(cohort, cohort.regions[0])[0][0]
    found = evaluate_slide(cohort, cohort.regions[0], work)[0][0]
    vanished = [f for f in found.findings if f.kind is FindingKind.VANISHED]
    expected = [f for f in held.findings if f.kind is FindingKind.VANISHED]
    for team in (None, "predictions"):
        (told,) = (f for f in vanished if f.team == team)
        assert told.object_ids == (1, 3, 4)
        words = "outside the image, covered by others or with no inner pixel: 1, 3 and 4"
        assert words in told.message
        ids = {id_ for f in expected if f.team == team for id_ in f.object_ids}
        assert ids == set(told.object_ids)
    *_, seen = load_in_steps(
        cohort, cohort.regions[0].name, EvaluationSettings(), first="predictions", held_up_to_px=1
    )
    # A window tells what the command line tells.
    assert [f for f in seen.findings if f.kind is FindingKind.VANISHED] == vanished


@pytest.mark.parametrize(
    "settings",
    [
        EvaluationSettings(),
        EvaluationSettings(ambiguous="majority"),
        EvaluationSettings(zone_px=2, ambiguous_share=0.25),
    ],
    ids=["clip", "majority", "zone"],
)
def test_conventions_are_the_same(folder: Path, settings: EvaluationSettings) -> None:
    """All but those of pieces and class masks, which need a region as a whole."""
    cohort = open_cohort(folder)
    asked = Conventions(teams=("alpha", "beta"), settings=settings)
    held, read = asked.gather(cohort), replace(asked, held_up_to_px=1).gather(cohort)
    assert read.regions == held.regions
    for team in asked.teams:
        own, expected = (one.teams[team][rules_of(settings)] for one in (read, held))
        assert not np.isnan(own.figure(*score_of("nuceval-weighted")[1:3]).value)
        for figure in (figure for figures in CONVENTIONS.values() for figure in figures):
            value = own.figure(figure.formula, figure.convention)
            if figure.convention.objects in (ObjectScope.PIECES, ObjectScope.CLASS_MASKS):
                assert np.isnan(value.value)
                continue
            assert repr(value) == repr(expected.figure(figure.formula, figure.convention))
            of_classes = own.by_class(figure.formula, figure.convention)
            assert repr(of_classes) == repr(expected.by_class(figure.formula, figure.convention))


@pytest.mark.usefixtures("no_plots")
@pytest.mark.parametrize(
    ("held_up_to_px", "names"),
    [
        pytest.param(10**9, None, marks=pytest.mark.long),
        (64 * 64, "p1_a"),
        pytest.param(1, "p1_a, p1_b and p2_a", marks=pytest.mark.long),
    ],
)
def test_the_report_says_what_it_leaves_out(
    folder: Path,
    tmp_path: Path,
    held_up_to_px: int,
    names: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    loaded: set[str | None] = set()

    def noting(*arguments: Any, **options: Any) -> Any:
        loaded.add(options["region"])
        return load_masks(*arguments, **options)

    monkeypatch.setattr(pipeline, "load_masks", noting)
    path = tmp_path / "report.html"
    options = ["--jobs", "1", "--held-up-to", str(held_up_to_px), "--teams", "alpha"]
    assert main(["report", str(folder), "-o", str(path), *options]) == 0
    said, page = capsys.readouterr().err, path.read_text("utf-8")
    large = {name for name, (height, width) in REGIONS.items() if height * width > held_up_to_px}
    assert loaded == set(REGIONS) - large
    if names is None:
        assert "too large to be held" not in said + page
        return
    for text in (said, page):
        assert f"evaluated in windows: {names}. Such regions count in every figure but" in text


def test_the_size_decides_region_by_region(folder: Path) -> None:
    cohort = open_cohort(folder)
    work = Experiment(("alpha",), (Condition("one", EvaluationSettings()),), held_up_to_px=64 * 64)
    told: dict[str, int] = {}

    def on_progress(region: str, share: float, saying: str) -> None:
        assert 0 <= share <= 1
        assert saying
        told[region] = told.get(region, 0) + 1

    list(run_regions(cohort, work, scheduler=THREADS, on_progress=on_progress))
    assert set(told) == {"p1_a"}


# --- several conditions, stores, and an early end ---------------------------------------------


def small_work(**options: Any) -> Experiment:
    return Experiment(
        ("alpha", "beta"), threshold_conditions((0.3, 0.5, 0.8)), held_up_to_px=1, **options
    )


def as_compared(results: list[list[RegionResult]]) -> list[Any]:
    return [
        (r.team, r.region, None if r.objects is None else r.objects.to_csv(), repr(r.counts))
        for found in results
        for r in found
    ]


def test_conditions_equal_those_of_held_regions(folder: Path) -> None:
    cohort = open_cohort(folder)
    work = small_work()
    for region in cohort.regions:
        expected = replace(work, held_up_to_px=10**9).evaluate(cohort, region)
        found = evaluate_slide(cohort, region, work)
        assert as_compared(found) == as_compared(expected)


def test_sums_alone(folder: Path) -> None:
    cohort = open_cohort(folder)
    ((result, *_), *_) = evaluate_slide(cohort, cohort.regions[0], small_work(with_objects=False))
    assert result.objects is None
    assert result.rows is None
    assert result.counts is not None


@pytest.mark.parametrize("scheduler", [THREADS, pytest.param(PROCESSES, marks=pytest.mark.long)])
def test_resume_takes_rows_over(folder: Path, tmp_path: Path, scheduler: str) -> None:
    cohort, store = open_cohort(folder), tmp_path / "parts"
    first = list(run_regions(cohort, small_work(), store=store, scheduler=scheduler, jobs=2))
    news: list[RegionDone] = []
    again = list(
        run_regions(
            cohort, small_work(), store=store, scheduler=scheduler, jobs=2, on_result=news.append
        )
    )
    assert {done.is_taken_over for done in news} == {True}
    for results, expected in zip(again, first, strict=True):
        for result, wanted in zip(results[0], expected[0], strict=True):
            assert result.rows is not None
            assert wanted.rows is not None
            assert result.rows.path.read_bytes() == wanted.rows.path.read_bytes()
    PartStore(store).remove()
    assert not store.exists()


def test_damaged_rows_are_evaluated_again(folder: Path, tmp_path: Path) -> None:
    cohort, store = open_cohort(folder), tmp_path / "parts"
    list(run_regions(cohort, small_work(), store=store))
    rows = sorted(store.glob("*.csv"))
    whole = [path.read_bytes() for path in rows]
    rows[0].write_bytes(whole[0][:-5])
    rows[-1].unlink()
    news: list[RegionDone] = []
    found = list(run_regions(cohort, small_work(), store=store, on_result=news.append))
    assert len(found) == len(REGIONS)
    assert [path.read_bytes() for path in rows] == whole
    assert sum("rows of the objects are damaged" in done.remark for done in news) == 2


def test_rows_of_another_run_are_not_taken_for_those_that_were_kept(
    folder: Path, tmp_path: Path
) -> None:
    """A killed run may have written rows of other files before the results they belong to."""
    cohort, store = open_cohort(folder), tmp_path / "parts"
    list(run_regions(cohort, small_work(), store=store))
    rows = sorted(store.glob("*.csv"))[0]
    whole = rows.read_bytes()
    other = whole.replace(b",FN,", b",TP,").replace(b",FP,", b",TP,")
    assert other != whole
    assert len(other) == len(whole)
    rows.write_bytes(other)
    news: list[RegionDone] = []
    list(run_regions(cohort, small_work(), store=store, on_result=news.append))
    assert rows.read_bytes() == whole
    assert sum("of another run" in done.remark for done in news) == 1


def replaced_by_another(path: Path) -> bytes:
    """Replace a label image by its mirror image, of the same size in px; gives what was there."""
    before = path.read_bytes()
    write_image(path, tifffile.imread(path)[::-1].copy())
    return before


def test_a_slide_that_changes_while_it_is_read_is_a_finding(tmp_path: Path) -> None:
    cohort = open_cohort(write_labels_cohort(tmp_path / "cohort"))
    region, path = cohort.regions[0], tmp_path / "cohort" / "teams" / "alpha"
    path /= f"{cohort.regions[0].name}.tif"
    changed: list[bytes] = []

    def change(_share: float, saying: str) -> None:
        if not changed and saying == "counting overlaps":
            changed.append(replaced_by_another(path))

    (found, *_) = evaluate_slide(cohort, region, small_work(), progress=Progress(report=change))
    alpha, beta = found
    assert alpha.counts is None
    assert alpha.rows is None
    (finding,) = (f for f in alpha.findings if f.kind is FindingKind.CHANGED)
    assert (finding.path, finding.team, finding.region) == (path, "alpha", region.name)
    assert "run the same again" in finding.message
    assert beta.counts is not None


def test_what_changed_meanwhile_is_not_kept_for_what_was_there_before(tmp_path: Path) -> None:
    cohort = open_cohort(write_labels_cohort(tmp_path / "cohort"))
    store = tmp_path / "parts"
    path = tmp_path / "cohort" / "teams" / "alpha" / f"{cohort.regions[0].name}.tif"
    changed: list[bytes] = []

    def change(region: str, _share: float, saying: str) -> None:
        if not changed and region == cohort.regions[0].name and saying == "counting overlaps":
            changed.append(replaced_by_another(path))

    list(run_regions(cohort, small_work(), store=store, jobs=1, on_progress=change))
    path.write_bytes(changed[0])
    news: list[RegionDone] = []
    found = list(run_regions(cohort, small_work(), store=store, on_result=news.append))
    taken_over = {done.region: done.is_taken_over for done in news}
    assert taken_over == {"p1_a": False, "p1_b": True, "p2_a": True}
    assert found[0][0][0].counts is not None


def test_an_early_end_stops_between_windows(folder: Path) -> None:
    cohort = open_cohort(folder)
    asked: list[None] = []

    def is_wanted() -> bool:
        asked.append(None)
        return len(asked) < 2

    with pytest.raises(StoppedError):
        evaluate_slide(cohort, cohort.regions[0], small_work(), progress=Progress(is_wanted))
    # The next one has its turn.
    assert evaluate_slide(cohort, cohort.regions[0], small_work())


def test_leaving_a_run_early_ends_it(folder: Path) -> None:
    cohort = open_cohort(folder)
    results = run_regions(cohort, small_work(), jobs=1)
    next(results)
    results.close()


def test_what_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    cohort = open_cohort(write_labels_cohort(tmp_path / "cohort"))
    region = cohort.regions[0]
    path = tmp_path / "cohort" / "teams" / "alpha" / f"{region.name}.tif"
    with tifffile.TiffFile(path) as tiff:
        start = tiff.pages[0].dataoffsets[0]
    data = path.read_bytes()
    path.write_bytes(data[:start] + b"\0" * 8 + data[start + 8 :])
    (found, *_) = evaluate_slide(cohort, region, small_work())
    alpha, beta = found
    assert alpha.counts is None
    kinds = [finding.kind for finding in alpha.findings]
    assert kinds[-1] is FindingKind.UNREADABLE
    assert beta.counts is not None


def test_frames_in_parts_are_the_whole_frame(folder: Path) -> None:
    cohort = open_cohort(folder)
    region, settings = cohort.regions[0], EvaluationSettings()
    found = held_outcomes(cohort, region.name, settings)
    for at_most in (1, 7, 10_000):
        frames = list(object_frames(found, at_most))
        assert max(map(len, frames)) <= at_most
        pd.testing.assert_frame_equal(
            pd.concat(frames, ignore_index=True), found.to_frame(), check_dtype=False
        )


def held_outcomes(cohort: Cohort, name: str, settings: EvaluationSettings) -> Any:
    from napari_panoptic.values.labels import LabelPair

    region = cohort.region(name)
    reference = load_reference(cohort, region, settings)
    masks, _ = load_prediction(cohort, region, "alpha", reference.shape, settings, None)
    assert reference.masks is not None
    assert masks is not None
    pair = LabelPair(reference.masks.labels, masks.labels, reference.masks.ambiguous, 0.25)
    return evaluate(pair, settings).outcomes


# --- a cluster --------------------------------------------------------------------------------


@pytest.mark.long
def test_a_cluster_evaluates_slides_like_this_process(folder: Path, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.wait_for_workers(2)
        options = ("--scheduler", cluster.address)
        found = evaluated(folder, tmp_path / "cluster", *options, *IN_WINDOWS)
    finally:
        cluster.stop()
    # The ids without a class, which only the pixels tell, are among the warnings.
    assert found == evaluated(folder, tmp_path / "here", *IN_WINDOWS)
