"""Cohorts straight from the arrays of PanNuke and CoNIC."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import CohortError, UnreadableFileError, UnwritableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.files import fingerprints
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.labels.arrays import array_items, write_conic, write_pannuke
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.io.images.slides import probe_image, read_image
from napari_panoptic.nuclei.regions.conditions import Condition
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.run import region_fingerprint
from napari_panoptic.values.cohort import ClassScheme, Cohort, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

SHAPE = (16, 20)
TISSUES = ("Breast", "Breast", "Colon")
Ids = NDArray[np.int64]


def scene(index: int) -> tuple[Ids, Ids]:
    """Draw ids (y, x) and class numbers; one object is in two pieces, with the single id 1."""
    ids, classes = np.zeros(SHAPE, np.int64), np.zeros(SHAPE, np.int64)
    ids[2:5, 2:6], classes[2:5, 2:6] = 1, 1
    ids[2:5, 10:13], classes[2:5, 10:13] = 1, 1
    ids[8 + index : 12, 3:9], classes[8 + index : 12, 3:9] = 300, 5
    return ids, classes


def pannuke_masks(ids: Ids, classes: Ids) -> NDArray[Any]:
    """Give (y, x, 6) as the distribution has it: ids per class, then the background."""
    masks = np.zeros((*SHAPE, 6))
    for y in range(SHAPE[0]):
        for x in range(SHAPE[1]):
            if ids[y, x]:
                masks[y, x, classes[y, x] - 1] = ids[y, x]
            else:
                masks[y, x, 5] = 1
    return masks


def images() -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (3, *SHAPE, 3)).astype(np.uint8)


def write(path: Path, array: NDArray[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)
    return path


def pannuke(root: Path) -> Path:
    """Write a fold in the distribution's folders, and one team, in which region 1 is empty."""
    write(root / "images" / "fold1" / "images.npy", images().astype(np.float64))
    write(root / "images" / "fold1" / "types.npy", np.array(TISSUES))
    masks = np.stack([pannuke_masks(*scene(k)) for k in range(3)])
    write(root / "masks" / "fold1" / "masks.npy", masks)
    masks[1, ..., :5] = 0
    write(root / "Teams" / "hover.npy", masks)
    return root


def conic(root: Path) -> Path:
    write(root / "images.npy", images())
    labels = np.stack([np.stack(scene(k), axis=-1) for k in range(3)]).astype(np.uint16)
    write(root / "labels.npy", labels)
    write(root / "Teams" / "a" / "labels.npy", labels[..., :])
    pd.DataFrame({"patch_info": ["crag_1-0000", "crag_1-0001", "glas_2-0000"]}).to_csv(
        root / "patch_info.csv", index=False
    )
    return root


def loaded(cohort: Cohort, name: str, team: str | None = None) -> LabelImage:
    region = cohort.region(name)
    files = region.reference
    if team is not None:
        (files,) = cohort.predictions[team, name].values()
    assert files is not None
    result = load_masks(files, cohort.scheme, shape=SHAPE, region=name)
    # Those of CoNIC hold numbers of classes, which nothing names.
    assert {f.kind for f in result.findings} <= {FindingKind.CLASS_ORDER}
    return result.labels


@pytest.mark.parametrize("write_fold", [pannuke, conic])
def test_a_folder_of_arrays_is_a_cohort(write_fold: Any, tmp_path: Path) -> None:
    cohort = open_cohort(write_fold(tmp_path))
    assert cohort.findings == ()
    assert [region.name for region in cohort.regions] == ["0000", "0001", "0002"]
    patients = TISSUES if write_fold is pannuke else ("crag_1", "crag_1", "glas_2")
    assert tuple(region.patient for region in cohort.regions) == patients
    for index, region in enumerate(cohort.regions):
        ids, classes = scene(index)
        labels = loaded(cohort, region.name)
        assert np.array_equal(labels.id_image(), ids)
        names = dict(zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True))
        assert names == {i: cohort.scheme.names[classes[ids == i][0] - 1] for i in names}
        assert region.image is not None
        assert np.array_equal(
            read_image(region.image, region.image_item).levels[0], images()[index]
        )
        assert probe_image(region.image, region.image_item).shape == SHAPE
        assert reference_shape(None, [region.reference] if region.reference else []) == SHAPE
    (team,) = cohort.teams
    assert len(loaded(cohort, "0001", team.name)) == (0 if write_fold is pannuke else 2)


def test_it_is_evaluated_region_by_region(tmp_path: Path) -> None:
    assert main(["evaluate", str(pannuke(tmp_path)), "--output", str(tmp_path / "out")]) == 0
    objects = pd.read_csv(tmp_path / "out" / "objects.csv", dtype={"region": str})
    assert objects.groupby("region")["status"].apply(list).to_dict() == {
        "0000": ["TP"] * 4,
        "0001": ["FN"] * 2,
        "0002": ["TP"] * 4,
    }
    assert set(objects["patient"]) == {"Breast", "Colon"}


def test_a_description_names_arrays_too(tmp_path: Path) -> None:
    root = conic(tmp_path / "fold1").parent
    (root / "cohort.toml").write_text(
        "[classes]\n" + "".join(f"C{k} = [{k}, 0, 0]\n" for k in range(6)) + "[files]\n"
        'image = "{region}/images.npy"\nreference.conic = "{region}/labels.npy"\n'
        'predictions.conic = "{region}/Teams/{team}/labels.npy"\n'
    )
    pd.DataFrame({"region": ["x", "y", "z"], "patient": ["P", "P", ""]}).to_csv(
        root / "fold1" / "regions.csv", index=False
    )
    (root / "fold1" / "Teams" / "a" / "regions.csv").write_text("region\nz\ny\nx\n")
    cohort = open_cohort(root)
    assert [(r.name, r.patient) for r in cohort.regions] == [
        ("fold1_z", "fold1"),
        ("fold1_x", "P"),
        ("fold1_y", "P"),
    ]
    (files,) = cohort.predictions["a", "fold1_x"].values()
    assert files.item == "2"


def test_tissues_of_the_arrays_are_those_of_pannuke_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The average of a published bPQ is found by one command."""
    root, out = pannuke(tmp_path / "fold"), tmp_path / "out"
    assert main(["conventions", str(root), "-o", str(out)]) == 0
    frame = pd.read_csv(out / "conventions.csv", keep_default_na=False)
    found = {
        name: frame[(frame["convention"] == name) & (frame["figure"] == "bpq")].iloc[0]
        for name in ("pannuke", "cellvit")
    }
    assert found["pannuke"]["mean_over"] == "tissues"
    assert found["cellvit"]["mean_over"] == "regions"
    # All regions are perfect but one, in which nothing was predicted.
    by_tissue: dict[str, list[float]] = {}
    for number, tissue in enumerate(TISSUES):
        by_tissue.setdefault(tissue, []).append(float(number != 1))
    expected = np.mean([np.mean(own) for own in by_tissue.values()])
    assert float(found["pannuke"]["value"]) == pytest.approx(expected, abs=1e-5)
    assert float(found["cellvit"]["value"]) == pytest.approx(2 / 3, abs=1e-5)
    published = f"hover={float(found['pannuke']['value']):.4f}"
    arguments = ["--published", published, "--decimals", "4", "-o", str(tmp_path / "found")]
    assert main(["conventions", str(root), *arguments]) == 0
    assert "pannuke bpq" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "array", "match"),
    [
        ("labels.npy", np.zeros((3, *SHAPE), np.int32), "four dimensions, the last one 2 long"),
        ("labels.npy", np.zeros((3, *SHAPE, 3), np.int32), "four dimensions, the last one 2 long"),
        ("labels.npy", np.full((3, *SHAPE, 2), -1), "negative numbers down to -1"),
        ("labels.npy", np.full((3, 4, 5, 2), 1), "size of 20 x 16 px, found 5 x 4 px"),
    ],
)
def test_wrong_arrays_say_what_was_expected(
    name: str, array: NDArray[Any], match: str, tmp_path: Path
) -> None:
    root = conic(tmp_path)
    write(root / name, array)
    cohort = open_cohort(root)
    with pytest.raises(UnreadableFileError, match=match):
        loaded(cohort, "0000")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("region\na\n../b\nc", "expected the name of a region, found '../b'; correct it"),
        ("region\na\n/b\nc", "expected the name of a region, found '/b'"),
        ("region\na\n.\nc", "expected the name of a region"),
        ("region,patient\na,..\nb,\nc,p", "expected the name of a patient, found '..'"),
        ("region,patient\n,p\nb,\nc,p", "found some empty"),
    ],
)
def test_tables_with_names_that_lead_elsewhere(table: str, message: str, tmp_path: Path) -> None:
    """Files of such a region would have been written outside of the folder."""
    root = conic(tmp_path)
    (root / "regions.csv").write_text(table)
    with pytest.raises(UnreadableFileError, match=re.escape(message)):
        list(array_items(root / "labels.npy"))


def test_types_of_tissue(tmp_path: Path) -> None:
    """Those in bytes were called like b'Lung'."""
    np.save(tmp_path / "masks.npy", np.zeros((2, 4, 4, 6)))
    for types in (np.array(["Lung", " "]), np.array([b"Lung", b""])):
        np.save(tmp_path / "types.npy", types)
        found = [item.patient for item in array_items(tmp_path / "masks.npy")]
        assert found == ["Lung", None]
    np.save(tmp_path / "types.npy", np.array([1, 2]))
    assert [item.patient for item in array_items(tmp_path / "masks.npy")] == ["1", "2"]
    for wrong in (np.array([0.5, np.nan]), np.array([True, False]), np.array(["/", "a"])):
        np.save(tmp_path / "types.npy", wrong)
        with pytest.raises(UnreadableFileError, match="expected"):
            list(array_items(tmp_path / "masks.npy"))


def test_what_cannot_be_listed(tmp_path: Path) -> None:
    root = conic(tmp_path)
    write(root / "Teams" / "a" / "labels.npy", np.array([{"masks": 1}], dtype=object))
    (root / "Teams" / "b.npy").write_bytes(b"no array")
    cohort = open_cohort(root)
    assert cohort.teams == ()
    assert sorted(f.team or "" for f in cohort.findings if f.kind is FindingKind.UNREADABLE) == [
        "a",
        "b",
    ]
    (root / "patch_info.csv").write_text("patch_info\nonly-0\n")
    (root / "images.npy").unlink()
    with pytest.raises(CohortError, match=re.escape("a row for each of the 3 regions")):
        open_cohort(root)


def test_a_change_in_the_middle_of_a_large_array_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "_WHOLE_FILE_BYTES", 100)
    monkeypatch.setattr(fingerprints, "_END_BYTES", 100)
    fingerprints._file_fingerprint.cache_clear()
    cohort = open_cohort(conic(tmp_path))
    work = Experiment(("a",), (Condition("", EvaluationSettings(), None),))
    region = cohort.region("0001")
    before = region_fingerprint(cohort, region, work)
    assert region_fingerprint(cohort, region, work) == before
    assert region_fingerprint(cohort, cohort.region("0000"), work) != before
    array = np.load(tmp_path / "labels.npy")
    array[1, 8, 8] = 0
    write(tmp_path / "labels.npy", array)
    assert region_fingerprint(cohort, region, work) != before
    fingerprints._file_fingerprint.cache_clear()


@pytest.mark.parametrize("form", ["array of regions", "label image"])
def test_a_background_that_comes_first_is_named(tmp_path: Path, form: str) -> None:
    masks = np.stack([pannuke_masks(*scene(index)) for index in range(3)])
    one = np.zeros(SHAPE, np.int64)
    one[2:6, 2:6] = 1
    for number in (1, 5):  # the only object is of the first or the last class
        masks = np.concatenate([masks, pannuke_masks(one, one * number)[None]])
    wrong = np.roll(masks, 1, axis=-1)
    scheme = ClassScheme(tuple("abcde"), ((1, 2, 3),) * 5)
    for index in range(len(masks)):

        def files(array: NDArray[Any], index: int = index) -> MaskFiles:
            if form == "label image":
                return MaskFiles(Source.LABELS, {"": (write(tmp_path / "m.npy", array[index]),)})
            path = write(tmp_path / "masks.npy", array)
            return MaskFiles(Source.PANNUKE, {"": (path,)}, item=str(index))

        assert len(load_masks(files(masks), scheme, shape=SHAPE).labels) > 0
        with pytest.raises(UnreadableFileError, match="looks like the background"):
            load_masks(files(wrong), scheme, shape=SHAPE)


@pytest.mark.parametrize("write", [write_pannuke, write_conic])
def test_ids_that_an_array_cannot_hold_are_refused(
    tmp_path: Path, write: Callable[..., object]
) -> None:
    image = np.zeros((6, 8), np.int64)
    image[1:3, 1:3], image[4, 5] = 2**31 + 5, 7
    labels = LabelImage.from_array(image, "A", ("A",))
    scheme = ClassScheme(("A",), ((255, 0, 0),))
    objects = Objects(labels, Side.REFERENCE, "r", "", None, scheme, None)
    with pytest.raises(UnwritableFileError, match="found 2147483653 in region r; choose another"):
        write(tmp_path, 1, [objects])
