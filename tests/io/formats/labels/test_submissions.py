from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from tests.support.builders import submission, two_objects, write_mat

SHAPE = (12, 16)
SEEN_NAMES = [
    *("n_ary_mask", "img", "arr", "name", "item", "uint8", "Epithelial_mask", "Lymphocyte_mask"),
    *("Neutrophil_mask", "Macrophage_mask", "Epithelial", "Lymphocyte", "Neutrophil"),
]


def read(files: MaskFiles, shape: tuple[int, int] | None = SHAPE) -> LoadedMasks:
    return load_masks(files, MONUSAC_CLASSES, shape=shape, region="R_1", team="T")


def read_one(tmp_path: Path, **variables: Any) -> LoadedMasks:
    return read(submission(Epithelial=write_mat(tmp_path / "é.mat", **variables)))


def refuse(tmp_path: Path, words: str, **variables: Any) -> None:
    with pytest.raises(UnreadableFileError, match=words) as caught:
        read_one(tmp_path, **variables)
    assert (caught.value.path, caught.value.region) == (tmp_path / "é.mat", "R_1")


@pytest.mark.parametrize("name", [*SEEN_NAMES, "my_own_name"])
def test_variable_names(tmp_path: Path, name: str) -> None:
    loaded = read_one(tmp_path, **{name: two_objects()})
    np.testing.assert_array_equal(loaded.labels.id_image(), two_objects())
    assert loaded.findings == ()
    assert loaded.ambiguous is None


@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_number_types(tmp_path: Path, dtype: str) -> None:
    loaded = read_one(tmp_path, img=two_objects().astype(dtype))
    mask = loaded.labels.class_masks["Epithelial"]
    assert mask.dtype == np.int32
    np.testing.assert_array_equal(mask, two_objects())


def test_ids_restarting_per_class_are_numbered_anew_with_the_originals_kept(
    tmp_path: Path,
) -> None:
    files = submission(
        Epithelial=write_mat(tmp_path / "1.mat", arr=two_objects()),
        Neutrophil=write_mat(tmp_path / "3.mat", arr=np.fliplr(two_objects())),
    )
    labels = read(files).labels
    assert labels.ids.tolist() == [1, 2, 3, 4]
    assert labels.original_ids.tolist() == [1, 2, 1, 2]
    assert labels.class_index.tolist() == [1, 1, 3, 3]


def test_ids_continuing_from_class_to_class_are_kept(tmp_path: Path) -> None:
    second = np.fliplr(two_objects())
    files = submission(
        Epithelial=write_mat(tmp_path / "1.mat", arr=two_objects()),
        Neutrophil=write_mat(tmp_path / "3.mat", arr=np.where(second > 0, second + 10, 0)),
    )
    assert read(files).labels.ids.tolist() == [1, 2, 11, 12]


@pytest.mark.parametrize("value", [1, 255, True])
def test_binary_masks_become_their_components(tmp_path: Path, value: int) -> None:
    binary = np.where(two_objects() > 0, value, 0).astype(bool if value is True else np.uint8)
    loaded = read_one(tmp_path, img=binary)
    np.testing.assert_array_equal(loaded.labels.id_image(), two_objects())
    (finding,) = loaded.findings
    assert (finding.kind, finding.count) == (FindingKind.FALLBACK, 2)
    assert (finding.region, finding.team) == ("R_1", "T")


def test_one_object_in_pieces_is_not_taken_for_binary(tmp_path: Path) -> None:
    loaded = read_one(tmp_path, img=np.where(two_objects() > 0, 7, 0))
    assert (loaded.labels.ids.tolist(), loaded.findings) == ([7], ())


def test_a_class_without_file_is_a_class_without_objects(tmp_path: Path) -> None:
    files = MaskFiles(
        Source.SUBMISSION,
        {"Epithelial": (), "Neutrophil": (write_mat(tmp_path / "a.mat", x=two_objects()),)},
    )
    assert read(files).labels.class_index.tolist() == [3, 3]


def test_nothing_predicted_at_all() -> None:
    files = MaskFiles(Source.SUBMISSION, {})
    assert read(files).labels.shape == SHAPE
    with pytest.raises(UnreadableFileError, match="size"):
        read(files, shape=None)


def test_without_a_known_size_the_masks_must_agree(tmp_path: Path) -> None:
    first = write_mat(tmp_path / "1.mat", arr=two_objects())
    assert read(submission(Epithelial=first), shape=None).labels.shape == SHAPE
    second = write_mat(tmp_path / "2.mat", arr=two_objects(13, 16))
    with pytest.raises(UnreadableFileError, match="found 16 x 13 px"):
        read(submission(Epithelial=first, Lymphocyte=second), shape=None)


def test_a_known_name_wins_over_others(tmp_path: Path) -> None:
    loaded = read_one(tmp_path, other=np.ones(SHAPE), img=two_objects(), zzz=np.eye(3))
    np.testing.assert_array_equal(loaded.labels.id_image(), two_objects())
    (finding,) = loaded.findings
    assert finding.kind is FindingKind.AMBIGUOUS_VARIABLE
    assert "'img' was taken" in finding.message


def test_the_image_size_decides_between_unknown_names(tmp_path: Path) -> None:
    loaded = read_one(tmp_path, a=np.eye(5), b=two_objects())
    np.testing.assert_array_equal(loaded.labels.id_image(), two_objects())
    assert [f.kind for f in loaded.findings] == [FindingKind.AMBIGUOUS_VARIABLE]


def test_two_equal_candidates_are_refused(tmp_path: Path) -> None:
    refuse(tmp_path, "'a' 12 x 16 and 'b' 12 x 16", a=two_objects(), b=two_objects())


def test_numbers_and_text_beside_the_mask_do_not_matter(tmp_path: Path) -> None:
    loaded = read_one(tmp_path, count=2, title="mask", cells={"a": 1}, some_mask=two_objects())
    assert (len(loaded.labels), loaded.findings) == (2, ())


def test_no_mask_among_the_variables(tmp_path: Path) -> None:
    refuse(tmp_path, "expected a 2-D numeric variable .* found none", title="mask")


def test_dimensions_of_one_are_dropped(tmp_path: Path) -> None:
    loaded = read_one(tmp_path, img=two_objects()[np.newaxis, :, :, np.newaxis])
    np.testing.assert_array_equal(loaded.labels.id_image(), two_objects())


def test_sparse_matrices(tmp_path: Path) -> None:
    matrix = scipy.sparse.csc_matrix(two_objects().astype(float))
    np.testing.assert_array_equal(read_one(tmp_path, img=matrix).labels.id_image(), two_objects())


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones((12, 16, 3)), "must be 2-D"),
        (two_objects() - 1, "negative numbers down to -1"),
        (two_objects() * 0.5, "values that are not whole numbers, such as 0.5"),
        (np.full(SHAPE, np.nan), "such as nan"),
        (np.full(SHAPE, np.inf), "such as inf"),
        (two_objects() * 1j, "values of type complex128"),
        (two_objects().T, "width and height are swapped"),
        (two_objects(20, 20), "size of 16 x 12 px, found 20 x 20 px"),
    ],
)
def test_what_is_no_mask(tmp_path: Path, array: NDArray[Any], words: str) -> None:
    refuse(tmp_path, words, n_ary_mask=array)


@pytest.mark.parametrize("huge", [2**31, 2**40])
def test_huge_ids_are_kept(tmp_path: Path, huge: int) -> None:
    mask = two_objects().astype(np.uint64)
    mask[mask == 2] = huge
    loaded = read_one(tmp_path, img=mask)
    assert loaded.labels.ids.tolist() == [1, huge]
    assert not loaded.findings


def test_ids_beyond_int64_are_numbered_anew(tmp_path: Path) -> None:
    mask = two_objects().astype(np.uint64)
    mask[mask == 2] = 2**63 + 5
    loaded = read_one(tmp_path, img=mask)
    np.testing.assert_array_equal(loaded.labels.id_image(), two_objects())
    assert [f.kind for f in loaded.findings] == [FindingKind.FALLBACK]


def test_several_files_of_one_class(tmp_path: Path) -> None:
    paths = [write_mat(tmp_path / f"{n}.mat", img=two_objects() * n) for n in (1, 2)]
    loaded = read(submission(Epithelial=paths))
    assert loaded.labels.ids.tolist() == [1, 2]
    (finding,) = loaded.findings
    assert (finding.kind, finding.path) == (FindingKind.EXTRA, paths[1])


def test_predicted_ambiguous_areas_are_not_scored(tmp_path: Path) -> None:
    loaded = read(submission(Ambiguous=write_mat(tmp_path / "5.mat", img=two_objects())))
    assert len(loaded.labels) == 0
    assert [f.kind for f in loaded.findings] == [FindingKind.EXTRA]


def test_objects_under_another_class_are_reported(tmp_path: Path) -> None:
    files = submission(
        Epithelial=write_mat(tmp_path / "1.mat", img=two_objects()),
        Macrophage=write_mat(tmp_path / "2.mat", img=np.full(SHAPE, 9)),
    )
    loaded = read(files)
    (finding,) = loaded.findings
    assert (finding.kind, finding.object_ids) == (FindingKind.VANISHED, (1, 2))


@pytest.mark.parametrize("content", [b"", b"no MATLAB", b"MATLAB 5.0 MAT-file" + b" " * 200])
def test_what_is_no_matlab_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(content)
    with pytest.raises(UnreadableFileError, match="expected a MATLAB file"):
        read(submission(Epithelial=path))


@pytest.mark.parametrize("compressed", [False, True])
def test_truncated_files(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "a.mat"
    noise = np.random.default_rng(0).integers(0, 2**31, SHAPE)
    scipy.io.savemat(path, {"img": noise}, do_compression=compressed)
    data = path.read_bytes()
    for keep in (10, 128, 150, len(data) // 2, len(data) - 40):
        path.write_bytes(data[:keep])
        with pytest.raises(UnreadableFileError, match=r"Epithelial|MATLAB"):
            read(submission(Epithelial=path))
