"""What is converted opens again as it was, in every format; and stays away from what is there."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import PanopticError, SettingsError, UnwritableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.labels.label_tiff import write_label_tiff
from napari_panoptic.io.formats.labels.ome_zarr import write_ome_zarr
from napari_panoptic.io.formats.registry import known_forms, load_masks, open_masks
from napari_panoptic.nuclei.regions.conversion import Conversion, convert, form_to_write
from napari_panoptic.values.cohort import ClassScheme, Cohort, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from tests.support.builders import noise, write_svs
from tests.support.paths import REPOSITORY

SCHEME = ClassScheme(("A", "B", "C"), ((255, 0, 0), (0, 255, 0), (0, 0, 255)), ambiguous="Void")
CLASSES = "[classes]\nA = [255, 0, 0]\nB = [0, 255, 0]\nC = [0, 0, 255]\n"
DESCRIPTION = CLASSES + '[ambiguous]\nname = "Void"\n[files]\n'
SHAPE = (17, 23)
READ_BACK = {
    "labels": 'reference.labels = "{region}.tif"',
    "ome-zarr": 'reference.labels = "{region}.ome.zarr"',
    "pannuke": 'reference.pannuke = "masks.npy"',
    "conic": 'reference.conic = "labels.npy"',
    "coco-panoptic": 'reference.coco-panoptic = "panoptic.json"',
}
"""Formats that keep every id and tell the size, and how a description names what was written."""


def drawn(seed: int, shape: tuple[int, int] = SHAPE) -> tuple[LabelImage, NDArray[np.bool_] | None]:
    """Draw boxes over each other, of ids far apart, and an area that cuts some of them."""
    rng = np.random.default_rng(seed)
    image = np.zeros(shape, np.int64)
    for id_ in rng.choice([1, 2, 7, 255, 256, 70_000, 2**24 - 40], rng.integers(0, 7), False):
        y, x = rng.integers(0, shape[0] - 2), rng.integers(0, shape[1] - 2)
        image[y : y + rng.integers(1, 9), x : x + rng.integers(1, 9)] = id_
    ids = np.unique(image[image > 0]).tolist()
    classes = dict(zip(ids, rng.choice(SCHEME.names, len(ids)).tolist(), strict=True))
    ambiguous = np.zeros(shape, bool)
    y, x = rng.integers(0, 12, 2)
    ambiguous[y : y + 5, x : x + 6] = True
    labels = LabelImage.from_array(image, classes, SCHEME.names)
    return labels, ambiguous if seed % 3 else None


def cohort_of(root: Path, seeds: list[int], shapes: list[tuple[int, int]] | None = None) -> Cohort:
    """Write an annotation and a team's predictions as label images, with the real writer."""
    (root / "team").mkdir(parents=True)
    for number, seed in enumerate(seeds):
        labels, ambiguous = drawn(seed, shapes[number] if shapes else SHAPE)
        region = f"p{seed % 2}_{number}"
        objects = Objects(labels, Side.REFERENCE, region, "", ambiguous, SCHEME, None)
        write_label_tiff(root / f"{region}.tif", objects)
        objects = Objects(labels, Side.PREDICTION, region, "team", None, SCHEME, None)
        write_label_tiff(root / "team" / f"{region}.tif", objects)
    (root / "cohort.toml").write_text(
        DESCRIPTION + 'reference.labels = "{region}.tif"\n'
        'predictions.labels = "{team}/{region}.tif"\n'
    )
    return open_cohort(root)


def reopened(folder: Path, line: str) -> Cohort:
    (folder / "cohort.toml").write_text(DESCRIPTION + line)
    return open_cohort(folder)


def read(cohort: Cohort, region: str) -> LoadedMasks:
    files = cohort.region(region).reference
    assert files is not None
    return load_masks(files, cohort.scheme, shape=None, region=region)


def assert_same(
    loaded: LoadedMasks, labels: LabelImage, ambiguous: NDArray[np.bool_] | None
) -> None:
    assert np.array_equal(loaded.labels.id_image(), labels.id_image())
    assert loaded.labels.class_names_of_objects().tolist() == (
        labels.class_names_of_objects().tolist()
    )
    if ambiguous is None:
        assert loaded.ambiguous is None
    else:
        assert loaded.ambiguous is not None
        assert np.array_equal(loaded.ambiguous, ambiguous)


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seeds=st.lists(st.integers(0, 10_000), min_size=1, max_size=3))
def test_everything_opens_again_as_it_was(
    seeds: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("cohort")
    cohort = cohort_of(root, seeds)
    assert cohort.findings == ()
    for name, line in READ_BACK.items():
        output = root / "out" / name
        findings = convert(
            Conversion(cohort, None, form_to_write(name), EvaluationSettings()), output
        )
        again = reopened(output, line)
        assert [(r.name, r.patient) for r in again.regions] == [
            (r.name, r.patient) for r in cohort.regions
        ]
        hidden = 0
        for number, seed in enumerate(seeds):
            labels, ambiguous = drawn(seed)
            if name == "coco-panoptic" and ambiguous is not None:
                hidden += int((ambiguous & (labels.index > 0)).any())
                ambiguous = ambiguous & (labels.index == 0)
                ambiguous = ambiguous if ambiguous.any() else None
            assert_same(read(again, f"p{seed % 2}_{number}"), labels, ambiguous)
        assert [f.kind for f in findings] == [FindingKind.FALLBACK] * hidden


def test_slides_open_in_windows_with_their_ambiguous_area(tmp_path: Path) -> None:
    cohort = cohort_of(tmp_path / "c", [4])
    for name in ("labels", "ome-zarr"):
        output = tmp_path / name
        convert(Conversion(cohort, None, form_to_write(name), EvaluationSettings()), output)
        (region,) = reopened(output, READ_BACK[name]).regions
        assert region.reference is not None
        tiles = open_masks(region.reference, SCHEME, SHAPE)
        labels, ambiguous = drawn(4)
        assert np.array_equal(tiles.labels.read((0, 0, *SHAPE)), labels.index)
        assert tiles.ambiguous is not None
        assert np.array_equal(tiles.ambiguous.read((0, 0, *SHAPE)), ambiguous)


def test_the_command_converts_a_team(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cohort = cohort_of(tmp_path / "c", [1, 2])
    output = tmp_path / "out"
    command = ["convert", str(cohort.root), "--team", "team", "--to", "conic"]
    assert main([*command, "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"conic written to {output}\n"
    assert sorted(path.name for path in output.iterdir()) == ["labels.npy", "regions.csv"]
    before = (output / "labels.npy").stat().st_mtime_ns
    assert main([*command, "--output", str(output)]) == 1
    assert "the folder is not empty" in capsys.readouterr().err
    assert (output / "labels.npy").stat().st_mtime_ns == before
    (output / "mine.txt").write_text("kept")
    assert main([*command, "--output", str(output), "--force"]) == 0
    assert (output / "labels.npy").stat().st_mtime_ns > before
    assert (output / "mine.txt").read_text() == "kept"
    again = reopened(output, READ_BACK["conic"])
    assert_same(read(again, "p1_0"), drawn(1)[0], None)


def test_a_team_that_is_not_there_is_a_wrong_argument(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort = cohort_of(tmp_path / "c", [1, 2])
    arguments = ["convert", str(cohort.root), "--team", "tema", "--to", "conic"]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--output", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert "--team: there is no team 'tema'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_region_that_cannot_be_read_leaves_nothing(tmp_path: Path) -> None:
    cohort = cohort_of(tmp_path / "c", [1, 2])
    (cohort.root / "p0_1.tif").write_bytes(b"broken")
    work = Conversion(cohort, None, form_to_write("labels"), EvaluationSettings())
    with pytest.raises(PanopticError, match="nothing was written"):
        convert(work, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c"]


def test_regions_without_a_prediction_are_left_out_and_named(tmp_path: Path) -> None:
    root = cohort_of(tmp_path / "c", [1, 2]).root
    (root / "team" / "p0_1.tif").unlink()
    work = Conversion(open_cohort(root), "team", form_to_write("conic"), EvaluationSettings())
    (finding,) = convert(work, tmp_path / "out")
    assert (finding.kind, finding.region) == (FindingKind.MISSING, "p0_1")
    assert len(np.load(tmp_path / "out" / "labels.npy")) == 1


@pytest.mark.parametrize("name", ["labels", "conic"])
def test_an_area_of_what_is_replaced_does_not_stay(name: str, tmp_path: Path) -> None:
    with_area, without = cohort_of(tmp_path / "a", [4]), cohort_of(tmp_path / "b", [6])
    for cohort in (with_area, without):
        work = Conversion(cohort, None, form_to_write(name), EvaluationSettings(), None, True)
        convert(work, tmp_path / "out")
    assert_same(read(reopened(tmp_path / "out", READ_BACK[name]), "p0_0"), *drawn(6))
    objects = Objects(drawn(6)[0], Side.REFERENCE, "a", "", None, SCHEME, None)
    write_label_tiff(tmp_path / "a.tif", replace(objects, ambiguous=drawn(4)[1]))
    assert (tmp_path / "a_ambiguous.tif").is_file()
    write_label_tiff(tmp_path / "a.tif", objects)
    assert not (tmp_path / "a_ambiguous.tif").exists()


def test_what_a_format_cannot_hold_is_told(tmp_path: Path) -> None:
    image = np.zeros(SHAPE, np.int64)
    image[1:6, 1:6] = 4
    image[3, 3] = 0  # a hole
    image[8, 1] = image[8, 9] = 5  # two pieces
    image[12:14, 2:9] = 6
    labels = LabelImage.from_array(image, "A", SCHEME.names)
    root = cohort_of(tmp_path / "c", [1]).root
    objects = Objects(labels, Side.PREDICTION, "p1_0", "team", None, SCHEME, None)
    write_label_tiff(root / "team" / "p1_0.tif", objects)
    work = Conversion(open_cohort(root), "team", form_to_write("hovernet"), EvaluationSettings())
    apart, told = convert(work, tmp_path / "out")
    assert (apart.kind, apart.object_ids) == (FindingKind.CONVENTION, (5,))
    assert (told.kind, told.team, told.object_ids) == (FindingKind.FALLBACK, "team", (4, 5))


def test_only_cohorts_about_nuclei_are_converted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cohort.toml").write_text('task = "raters"\n')
    arguments = ["convert", str(tmp_path), "--to", "labels", "--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "there is no 'convert' for raters" in capsys.readouterr().err


def test_what_cannot_be_written(tmp_path: Path) -> None:
    cohort = cohort_of(tmp_path / "c", [1, 2], [SHAPE, (20, 20)])
    work = Conversion(cohort, None, form_to_write("pannuke"), EvaluationSettings())
    with pytest.raises(UnwritableFileError, match="regions of one size only"):
        convert(work, tmp_path / "out")
    with pytest.raises(SettingsError, match="there is no format 'submission' that can be written"):
        form_to_write("submission")
    to_labels = Conversion(cohort, None, form_to_write("labels"), EvaluationSettings())
    with pytest.raises(PanopticError, match="is a file of the cohort"):
        convert(replace(to_labels, replace_files=True), cohort.root)
    with pytest.raises(PanopticError, match="this is a file"):
        convert(to_labels, cohort.root / "cohort.toml")
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]


def test_the_page_tells_how_what_was_written_is_named() -> None:
    page = (REPOSITORY / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^\| `([a-z-]+)` \| `predictions\.(.*)` \|$", page, re.M))
    told = {name: f"reference.{line}" for name, line in lines.items()}
    assert told == EVERY_FORM


def test_ome_zarr_has_levels_and_micrometres(tmp_path: Path) -> None:
    labels, _ = drawn(5, (600, 290))
    path = tmp_path / "a.ome.zarr"
    for mpp, unit in ((0.25, "micrometer"), (None, None)):
        write_ome_zarr(path, Objects(labels, Side.REFERENCE, "a", "", None, SCHEME, mpp))
        group = zarr.open_group(str(path / "labels" / "nuclei"), mode="r")
        (scales,) = group.attrs["multiscales"]  # type: ignore[misc]
        assert [axis.get("unit") for axis in scales["axes"]] == [unit, unit]
        for level, data in enumerate(scales["datasets"]):
            (transformation,) = data["coordinateTransformations"]
            assert transformation["scale"] == [(mpp or 1) * 2**level] * 2
            step = slice(None, None, 2**level)
            assert np.array_equal(group[data["path"]], labels.id_image()[step, step])
        assert len(scales["datasets"]) == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.ome.zarr"]


EVERY_FORM = READ_BACK | {
    "hovernet": 'reference.hovernet = "{region}.hovernet.json"',
    "imagescope": 'reference.imagescope = "{region}.xml"',
    "geojson": 'reference.geojson = "{region}.geojson"',
    "annotation-store": 'reference.annotation-store = "{region}.db"',
    "imagej-roi": 'reference.imagej-roi = "{region}.roi.zip"',
    "coco-instances": 'reference.coco-instances = "instances.json"',
}
"""Every format that is written; those added here may number the objects anew."""


def objects_in(loaded: LoadedMasks) -> set[tuple[str, bytes]]:
    """Give class and pixels of every object, and those of the excluded area."""
    labels = loaded.labels
    names = labels.class_names_of_objects().tolist()
    found = {(name, (labels.index == row).tobytes()) for row, name in enumerate(names, start=1)}
    assert len(found) == len(labels)
    return found | ({("", loaded.ambiguous.tobytes())} if loaded.ambiguous is not None else set())


def test_every_format_becomes_another_without_loss(tmp_path: Path) -> None:
    """Objects without holes, of one piece and outside of the excluded area: all can hold these."""
    forms = [form.name for form in known_forms().values() if form.write or form.write_all]
    assert set(forms) == set(EVERY_FORM)
    image = np.zeros(SHAPE, np.int64)
    image[1:5, 2:9] = 3
    image[5:9, 2:4] = 3  # an L
    image[5:9, 4:12] = 70_000  # beside it
    image[12:14, 15:17] = 7
    classes = {3: "B", 7: "C", 70_000: "A"}
    labels = LabelImage.from_array(image, classes, SCHEME.names)
    ambiguous = np.zeros(SHAPE, bool)
    ambiguous[11:16, 2:8] = True
    ambiguous[1:3, 18:] = True
    root = tmp_path / "original"
    root.mkdir()
    picture = root / "p_1.svs"
    write_svs(picture, noise(*SHAPE))
    write_label_tiff(
        root / "p_1.tif", Objects(labels, Side.REFERENCE, "p_1", "", ambiguous, SCHEME, None)
    )

    def opened(folder: Path, form: str) -> Cohort:
        if not (folder / picture.name).exists():
            shutil.copy(picture, folder)
        return reopened(folder, f'image = "{{region}}.svs"\n{EVERY_FORM[form]}')

    def shown(cohort: Cohort) -> set[tuple[str, bytes]]:
        files = cohort.region("p_1").reference
        assert files is not None
        return objects_in(load_masks(files, cohort.scheme, shape=SHAPE))

    def converted(cohort: Cohort, form: str, folder: Path) -> Cohort:
        work = Conversion(cohort, None, form_to_write(form), EvaluationSettings())
        of_numbers = cohort.region("p_1").reference
        assert of_numbers is not None
        # Nothing names the numbers of classes in arrays.
        kinds = [FindingKind.CLASS_ORDER] * (of_numbers.source == Source.CONIC)
        assert [finding.kind for finding in convert(work, folder)] == kinds
        return opened(folder, form)

    original = opened(root, "labels")
    expected = shown(original)
    assert len(expected) == 4
    # What is read is the same whatever it was read from: the next one stands for all others.
    for first, second in zip(forms, [*forms[1:], forms[0]], strict=True):
        halfway = converted(original, first, tmp_path / first)
        assert shown(halfway) == expected, first
        again = converted(halfway, second, tmp_path / f"{first} {second}")
        assert shown(again) == expected, (first, second)
