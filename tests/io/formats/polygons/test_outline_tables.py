"""Outlines in tables and text: the CSV of a Shapes layer of napari, NuCLS, and YOLO."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from napari_builtins.io import napari_write_shapes
from PIL import Image

from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.class_numbers import read_data_yaml
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.one_file import format_of
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, OutlineRules, Source
from napari_panoptic.values.labels import LabelImage

SHAPE = (30, 32)
ONE_CLASS = ClassScheme(("cell",), ((255, 0, 0),), ambiguous=None)
NUCLS_CLASSES = ClassScheme(
    ("tumor_nonMitotic", "lymphocyte"),
    ((255, 0, 0), (0, 255, 0)),
    aliases={},
    ambiguous="AMBIGUOUS",
)


def loaded(path: Path, scheme: ClassScheme) -> LoadedMasks:
    return load_masks(MaskFiles(format_of(path), {"": (path,)}), scheme, shape=SHAPE)


def pixels(labels: LabelImage, id_: int) -> list[tuple[int, int]]:
    """Return the rows and columns of the first and last pixel of an object."""
    y, x = np.nonzero(labels.id_image() == id_)
    return [(int(y.min()), int(x.min())), (int(y.max()), int(x.max()))]


# --- napari ---------------------------------------------------------------------------------------


def shapes(path: Path, *drawn: tuple[str, list[tuple[float, ...]]]) -> Path:
    data = [np.array(vertices, float) for _, vertices in drawn]
    assert napari_write_shapes(str(path), data, {"shape_type": [kind for kind, _ in drawn]})
    return path


def square(top: float, left: float, bottom: float, right: float) -> list[tuple[float, ...]]:
    return [(top, left), (top, right), (bottom, right), (bottom, left)]


def test_shapes_of_napari_have_the_pixels_that_they_cover(tmp_path: Path) -> None:
    """The first pixel of napari reaches from -0.5 to 0.5, in rows and columns."""
    path = shapes(
        tmp_path / "a.csv",
        ("polygon", square(1.5, 2.5, 4.5, 9.5)),
        ("line", [(0, 0), (20, 20)]),
        ("rectangle", square(9.5, 19.5, 12.5, 24.5)),
        ("ellipse", square(14.5, 1.5, 24.5, 11.5)),
        ("path", square(14.5, 14.5, 20.5, 20.5)),
    )
    assert format_of(path) == Source.NAPARI_SHAPES
    masks = loaded(path, ONE_CLASS)
    assert masks.labels.ids.tolist() == [1, 3, 4]
    assert pixels(masks.labels, 1) == [(2, 3), (4, 9)]
    assert pixels(masks.labels, 3) == [(10, 20), (12, 24)]
    y, x = np.indices(SHAPE)
    disc = (y - 19.5) ** 2 + (x - 6.5) ** 2 <= 25
    assert ((masks.labels.id_image() == 4) != disc).sum() <= 4
    left_out = {f.class_name: f.object_ids for f in masks.findings}
    assert left_out == {"line": (2,), "path": (5,)}


def test_turned_ellipses_of_napari(tmp_path: Path) -> None:
    """An ellipse of 20 x 4 px along the diagonal."""
    along, across = np.array([1, 1]) / np.sqrt(2) * 10, np.array([1, -1]) / np.sqrt(2) * 2
    centre = np.array([15, 15])
    corners = [centre - along - across, centre + along - across]
    corners += [centre + along + across, centre - along + across]
    path = shapes(tmp_path / "a.csv", ("ellipse", [tuple(corner) for corner in corners]))
    image = loaded(path, ONE_CLASS).labels.id_image() == 1
    assert image[[9, 21], [9, 21]].all()
    assert not image[[9, 21], [21, 9]].any()
    assert image.sum() == pytest.approx(20 * np.pi, abs=4)


def test_shapes_on_a_stack(tmp_path: Path) -> None:
    plane = [(3.0, *vertex) for vertex in square(1.5, 2.5, 4.5, 9.5)]
    masks = loaded(shapes(tmp_path / "a.csv", ("polygon", plane)), ONE_CLASS)
    assert pixels(masks.labels, 1) == [(2, 3), (4, 9)]
    other = [(4.0, *vertex[1:]) for vertex in plane]
    path = shapes(tmp_path / "b.csv", ("polygon", plane), ("polygon", other))
    with pytest.raises(UnreadableFileError, match="several planes"):
        loaded(path, ONE_CLASS)


# --- NuCLS ----------------------------------------------------------------------------------------

NUCLS = """,raw_classification,main_classification,super_classification,type,xmin,ymin,xmax,ymax,\
coords_x,coords_y
0,fov,fov,fov,rectangle,0,0,31,29,,
1,tumor,tumor_nonMitotic,tumor_any,polyline,2,2,8,6,"2,8,8,2","2,2,6,6"
2,lymphocyte,lymphocyte,sTIL,rectangle,12,12,16,16,,
3,lymphocyte,lymphocyte,sTIL,polyline,20,10,24,14,"20,24,24,20","10,10,14,14"
4,unlabeled,AMBIGUOUS,AMBIGUOUS,polyline,2,20,6,24,"2,6,6,2","20,20,24,24"
"""


def test_nuclei_of_nucls(tmp_path: Path) -> None:
    path = tmp_path / "TCGA_fov.csv"
    path.write_text(NUCLS)
    assert format_of(path) == Source.NUCLS
    masks = loaded(path, NUCLS_CLASSES)
    assert masks.labels.class_names_of_objects().tolist() == ["tumor_nonMitotic", "lymphocyte"]
    assert pixels(masks.labels, 1) == [(2, 2), (6, 8)]  # the border belongs to the nucleus
    assert pixels(masks.labels, 3) == [(10, 20), (14, 24)]
    assert masks.ambiguous is not None
    assert masks.ambiguous[20:25, 2:7].all()
    assert masks.ambiguous.sum() == 25
    (boxes,) = masks.findings
    assert (boxes.kind, boxes.class_name) == (FindingKind.UNKNOWN_CLASS, "rectangle")
    assert boxes.object_ids == (2,)


def test_levels_and_boxes_of_nucls_are_up_to_the_cohort(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(NUCLS)
    scheme = ClassScheme(
        ("tumor_any", "sTIL"),
        ((255, 0, 0), (0, 255, 0)),
        aliases={"rectangle": "AMBIGUOUS"},
        ambiguous="AMBIGUOUS",
    )
    masks = loaded(path, scheme)
    assert masks.labels.class_names_of_objects().tolist() == ["tumor_any", "sTIL"]
    assert masks.ambiguous is not None
    assert masks.ambiguous[12:17, 12:17].all()
    assert not masks.findings
    older = NUCLS.replace(
        "raw_classification,main_classification,super_classification", "group,a,b"
    )
    path.write_text(older)
    scheme = ClassScheme(("tumor", "lymphocyte"), ((255, 0, 0), (0, 255, 0)), ambiguous=None)
    assert loaded(path, scheme).labels.ids.tolist() == [1, 3]
    path.write_text('group,coords_x,coords_y\ntumor,"2,8,8,2","2,2,6,6"\n')  # of HistomicsTK
    assert pixels(loaded(path, scheme).labels, 1) == [(2, 2), (6, 8)]


@pytest.mark.parametrize(
    "damaged",
    [
        NUCLS.replace('"2,8,8,2"', '"2,8,8"'),
        NUCLS.replace('"2,8,8,2"', '"2,8,x,2"'),
        NUCLS.replace("12,12,16,16", "12,,16,16"),
        NUCLS[:-20],
    ],
)
def test_damaged_tables_of_nucls_are_refused(damaged: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(damaged)
    with pytest.raises(UnreadableFileError, match="expected NuCLS table"):
        loaded(path, NUCLS_CLASSES)


def test_other_tables_are_of_no_format(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,class\n1,Epithelial\n")
    with pytest.raises(UnreadableFileError, match=r"ending '\.csv'"):
        format_of(path)


# --- YOLO -----------------------------------------------------------------------------------------

YOLO = """0 0.0625 0.1 0.25 0.1 0.25 0.2 0.0625 0.2
1 0.5 0.5 0.75 0.5 0.75 1 0.5 1 0.875
7 0 0 0.1 0 0.1 0.1 0 0.1
"""
TWO_CLASSES = ClassScheme(("A", "B"), ((255, 0, 0), (0, 255, 0)), ambiguous=None)


def test_shares_of_yolo_become_px_of_the_region(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(YOLO)
    masks = loaded(path, TWO_CLASSES)
    assert masks.labels.class_names_of_objects().tolist() == ["A", "B"]
    assert pixels(masks.labels, 1) == [(3, 2), (5, 7)]
    assert pixels(masks.labels, 2) == [(15, 16), (29, 23)]
    np.testing.assert_array_equal(masks.labels.scores, [np.nan, 0.875])
    left_out, order = masks.findings
    assert (left_out.kind, left_out.class_name) == (FindingKind.UNKNOWN_CLASS, "7")
    assert order.kind is FindingKind.CLASS_ORDER
    assert "0 = A and 1 = B" in order.message
    files = MaskFiles(Source.YOLO, {"": (path,)})
    tiles = open_masks(files, TWO_CLASSES, SHAPE)
    assert np.array_equal(tiles.labels.read((0, 0, *SHAPE)), masks.labels.index)
    named = replace(TWO_CLASSES, aliases={"0": "B", "7": "A"})
    assert loaded(path, named).labels.class_names_of_objects().tolist() == ["B", "B", "A"]
    # Names that the data set states: as a list, or by number, some folders above.
    texts = ("nc: 2\nnames: [B, 'A']\n", "names:\n  0: B  # first\n\n  1: A\n  7: A\nnc: 2\n")
    for text in (*texts, "names:\n- B\n- A\n", "names: {0: B,\n 1: A,}\ntrain: x\n"):
        folder = tmp_path / "labels" / "train"
        folder.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data.yaml").write_text(text)
        shutil.copy(path, folder / "a.txt")
        masks = loaded(folder / "a.txt", TWO_CLASSES)
        assert masks.labels.class_names_of_objects().tolist()[:2] == ["B", "A"]
        assert FindingKind.CLASS_ORDER not in [finding.kind for finding in masks.findings]
    for text in (
        "names: [[B], A]\n",
        "names: {a: B}\n",
        "names: &a [*a]\n",
        "names: [B\n",
        "names: BA\n",
    ):
        (tmp_path / "data.yaml").write_text(text)
        with pytest.raises(UnreadableFileError, match="a data set of YOLO"):
            loaded(folder / "a.txt", TWO_CLASSES)


def test_names_of_yolo_stay_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "data.yaml"
    path.write_text("train: a\nnames: [yes, 2, ~, 12:30, 1e3]\n")
    assert list(read_data_yaml(path).values()) == ["yes", "2", "~", "12:30", "1e3"]
    for text in ("", "names:\n", "nc: 2\n", "- x\n"):
        path.write_text(text)
        assert read_data_yaml(path) == {}


def test_yaml_of_a_data_set_makes_no_objects(tmp_path: Path) -> None:
    path, mark = tmp_path / "data.yaml", tmp_path / "mark"
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    hostile = (
        f"names: !!python/object/apply:os.mkdir ['{mark}']\n",
        f"a: !!python/object/apply:os.mkdir ['{mark}']\nnames: [A]\n",
    )
    for text in hostile:
        path.write_text(text)
        assert set(read_data_yaml(path)) == {"0"}
        assert not mark.exists()
    began = time.thread_time()
    for text in (f"a0: &a0 [x]\n{levels}names: *a29\n", "names: " + "[" * 2**19, "x" * 2**21):
        path.write_text(text)
        with pytest.raises(UnreadableFileError, match="YOLO"):
            read_data_yaml(path)
    assert time.thread_time() < began + 3


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (YOLO + "0 0.5 0.5 0.25 0.25\n", "line 4 is a box"),
        (YOLO.replace("0.0625", "20"), "line 1 has coordinates that are not shares"),
        (YOLO.replace("0.0625", "nan"), "line 1"),
        (YOLO.replace("0.75", "x"), "YOLO"),
    ],
)
def test_damaged_text_of_yolo_is_refused(damaged: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(damaged)
    with pytest.raises(UnreadableFileError, match=message):
        load_masks(MaskFiles(Source.YOLO, {"": (path,)}), TWO_CLASSES, shape=SHAPE)


def test_shares_cannot_be_moved(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(YOLO)
    moved = MaskFiles(Source.YOLO, {"": (path,)}, rules=OutlineRules(offset_xy=(5.0, 0.0)))
    with pytest.raises(UnreadableFileError, match="shares of their image"):
        load_masks(moved, TWO_CLASSES, shape=SHAPE)


def test_init_on_a_data_set_of_yolo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for region in ("p1_a", "p2_a"):
        for folder in ("images", "labels", "model"):
            (tmp_path / folder).mkdir(exist_ok=True)
        pixels_ = np.random.default_rng(0).integers(0, 255, (*SHAPE, 3), np.uint8)
        Image.fromarray(pixels_).save(tmp_path / "images" / f"{region}.jpg")
        for folder in ("labels", "model"):
            (tmp_path / folder / f"{region}.txt").write_text(YOLO)
    assert main(["init", str(tmp_path)]) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    assert "2 annotations: labels/{region}.txt, format yolo" in out
    assert "outside" not in out
    assert main(["evaluate", str(tmp_path), "-o", str(tmp_path.with_name("tables"))]) == 0
    assert ",1.0" in (tmp_path.with_name("tables") / "teams.csv").read_text()
