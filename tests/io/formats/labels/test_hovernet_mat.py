""".mat files of HoVer-Net, CoNSeP and Kumar, as their programs write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from scipy.io import savemat

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, MaskFiles, Source
from tests.support.outlined_cohort import evaluated, write_cohort

ONE_CLASS = ClassScheme(names=("Nucleus",), colours=((255, 0, 0),), ambiguous=None)
MAP = np.array([[1, 1, 0, 4], [0, 0, 0, 4], [7, 7, 7, 0]], np.float64)


def files(path: Path, **variables: Any) -> MaskFiles:
    scipy.io.savemat(path / "a.mat", variables)
    return MaskFiles(Source.HOVERNET_MAT, {"": (path / "a.mat",)})


def load(path: Path, scheme: ClassScheme = MONUSAC_CLASSES, **variables: Any) -> LoadedMasks:
    return load_masks(files(path, **variables), scheme, shape=MAP.shape)


def classes(masks: LoadedMasks) -> dict[int, str]:
    names = masks.labels.class_names_of_objects().tolist()
    return dict(zip(masks.labels.ids.tolist(), names, strict=True))


def column(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values)[:, None]


def test_types_by_uid(tmp_path: Path) -> None:
    masks = load(tmp_path, inst_map=MAP, inst_type=column(3, 1, 2), inst_uid=column(7, 1, 4))
    assert np.array_equal(masks.labels.id_image(), MAP)
    assert classes(masks) == {1: "Epithelial", 4: "Lymphocyte", 7: "Neutrophil"}
    assert [f.kind for f in masks.findings] == [FindingKind.CLASS_ORDER]


def test_types_by_rank_where_there_are_as_many_as_nuclei(tmp_path: Path) -> None:
    masks = load(tmp_path, inst_map=MAP, inst_type=column(3.0, 1.0, 2.0))
    assert classes(masks) == {1: "Neutrophil", 4: "Epithelial", 7: "Lymphocyte"}


def test_types_by_number_where_nuclei_are_missing_from_the_map(tmp_path: Path) -> None:
    masks = load(tmp_path, inst_map=MAP, inst_type=column(1, 9, 9, 2, 9, 9, 3))
    assert classes(masks) == {1: "Epithelial", 4: "Lymphocyte", 7: "Neutrophil"}


def test_types_by_the_map_of_types(tmp_path: Path) -> None:
    kinds = np.array([[2, 2, 1, 3], [0, 0, 0, 4], [0, 4, 4, 0]])
    masks = load(tmp_path, inst_map=MAP, type_map=kinds)
    assert classes(masks) == {1: "Lymphocyte", 4: "Neutrophil", 7: "Macrophage"}
    assert [(f.kind, f.object_ids) for f in masks.findings] == [
        (FindingKind.FALLBACK, (4, 7)),
        (FindingKind.CLASS_ORDER, ()),
    ]


def test_without_types_there_must_be_one_class(tmp_path: Path) -> None:
    assert classes(load(tmp_path, ONE_CLASS, inst_map=MAP)) == dict.fromkeys((1, 4, 7), "Nucleus")
    masks = load(tmp_path, inst_map=MAP)
    assert not len(masks.labels)
    assert [(f.kind, f.count) for f in masks.findings] == [(FindingKind.UNKNOWN_CLASS, 3)]


def test_unknown_types_are_left_out_and_ambiguous_ones_excluded(tmp_path: Path) -> None:
    scheme = ClassScheme(
        MONUSAC_CLASSES.names,
        MONUSAC_CLASSES.colours,
        aliases={"6": "Ambiguous", "5": "Macrophage"},
    )
    masks = load(tmp_path, scheme, inst_map=MAP, inst_type=column(5, 0, 6))
    assert classes(masks) == {1: "Macrophage"}
    assert masks.ambiguous is not None
    assert np.array_equal(masks.ambiguous, MAP == 7)
    assert [(f.class_name, f.object_ids) for f in masks.findings] == [("0", (4,))]


def test_nothing_found(tmp_path: Path) -> None:
    empty = load(tmp_path, inst_map=MAP * 0, inst_type=np.zeros((0, 1)), inst_uid=np.zeros((0, 1)))
    assert not len(empty.labels)
    assert not empty.findings


def test_the_map_tells_the_size(tmp_path: Path) -> None:
    assert reference_shape(None, [files(tmp_path, inst_map=MAP)]) == (3, 4)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"img": MAP}, "found img"),
        ({"inst_map": MAP + 0.5}, "inst_map must hold whole numbers"),
        ({"inst_map": MAP[:2]}, "4 x 2"),
        ({"inst_map": np.zeros((3, 4, 2))}, "must be 2-D"),
        ({"inst_map": MAP, "inst_type": column(1, 2)}, "no class for 4 and 7"),
        ({"inst_map": MAP, "inst_type": column(1, 2), "inst_uid": column(1)}, "2 entries"),
        ({"inst_map": MAP, "type_map": MAP[:, :2]}, "type_map"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, variables: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        load(tmp_path, **variables)


def test_findings_of_mat_files_say_where(tmp_path: Path) -> None:
    labels = np.zeros((20, 20), np.int32)
    labels[3:9, 3:9] = 1
    predictions = 'predictions.hovernet-mat = "{team}/*/{region}.mat"'
    cohort = write_cohort(tmp_path, labels, predictions=predictions)
    for first in "ab":
        (cohort / "hovernet" / first).mkdir(parents=True)
        savemat(cohort / "hovernet" / first / "P_1.mat", {"inst_map": labels})
    warnings = [w for kind in evaluated(cohort).warnings.values() for w in kind]
    (extra,) = [w for w in warnings if "b/P_1.mat" in w["message"] + str(w["path"])]
    assert (extra["region"], extra["team"]) == ("P_1", "hovernet")
