"""Masks and probability maps of two or three dimensions, in every form."""

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.images import volumes
from napari_panoptic.io.images.volumes import read_mask, read_probabilities, read_volume, same_place

WHAT = "a probability map"


def _nifti(path, values, spacing=(2.0, 0.5, 0.25), affine=None):
    """Write (z, y, x) or (y, x), as one slice; spacing along z, y and x."""
    stored = np.atleast_3d(values.T)
    sizes = np.diag([*spacing[::-1], 1.0]) if affine is None else affine
    image = nibabel.Nifti1Image(stored, sizes)
    image.header.set_xyzt_units("mm")
    nibabel.save(image, path)
    return path


def test_nifti_comes_with_x_last_and_its_spacing(tmp_path):
    values = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    volume = read_volume(_nifti(tmp_path / "v.nii.gz", values), WHAT)
    np.testing.assert_array_equal(volume.values, values)
    assert volume.spacing_mm == (2.0, 0.5, 0.25)
    slice_ = read_volume(_nifti(tmp_path / "s.nii", values[0]), WHAT)
    np.testing.assert_array_equal(slice_.values, values[0])
    assert slice_.spacing_mm == (0.5, 0.25)


def test_the_spacing_of_imagej_is_read_and_no_other_of_a_tiff(tmp_path):
    values = np.arange(24, dtype=np.uint16).reshape(2, 3, 4)
    stated = {"axes": "ZYX", "unit": "mm", "spacing": 2.0}
    tifffile.imwrite(
        tmp_path / "v.tif", values, imagej=True, resolution=(4.0, 2.0), metadata=stated
    )
    assert read_volume(tmp_path / "v.tif", WHAT).spacing_mm == pytest.approx((2.0, 0.5, 0.25))
    stated = {"axes": "YX", "unit": "um"}
    tifffile.imwrite(
        tmp_path / "s.tif", values[0], imagej=True, resolution=(4.0, 2.0), metadata=stated
    )
    assert read_volume(tmp_path / "s.tif", WHAT).spacing_mm == pytest.approx((5e-4, 2.5e-4))
    tifffile.imwrite(
        tmp_path / "no.tif", values, imagej=True, resolution=(4.0, 2.0), metadata={"unit": "mm"}
    )
    assert read_volume(tmp_path / "no.tif", WHAT).spacing_mm is None
    tifffile.imwrite(tmp_path / "o.tif", values[0], resolution=(72, 72), resolutionunit="INCH")
    assert read_volume(tmp_path / "o.tif", WHAT).spacing_mm is None


def test_modalities_of_nifti_stay_an_axis(tmp_path):
    stored = np.zeros((5, 4, 1, 3), np.float32)  # x, y, z, modality
    nibabel.save(nibabel.Nifti1Image(stored, np.eye(4)), tmp_path / "m.nii.gz")
    volume = read_volume(tmp_path / "m.nii.gz", WHAT)
    assert volume.values.shape == (3, 4, 5)
    assert volume.spacing_mm == (1.0, 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_keep_the_precision_of_their_file(tmp_path, dtype):
    values = np.array([[0.1, 0.7], [0.0, 1.0]], dtype)
    for path in (
        _nifti(tmp_path / "p.nii.gz", values),
        _saved(tmp_path / "p.npy", values),
        _saved(tmp_path / "p.tif", values),
    ):
        found = read_probabilities(path, WHAT).values
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, values)


def _saved(path, values):
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".png":
        Image.fromarray(values).save(path)
    else:
        tifffile.imwrite(path, values, photometric="minisblack")
    return path


@pytest.mark.parametrize("ending", ["png", "tif", "npy"])
@pytest.mark.parametrize(("dtype", "full"), [(np.uint8, 255), (np.uint16, 65535)])
def test_whole_numbers_are_shares_of_the_largest(tmp_path, ending, dtype, full):
    values = np.array([[0, full // 5], [full // 2, full]], dtype)
    found = read_probabilities(_saved(tmp_path / f"p.{ending}", values), WHAT).values
    np.testing.assert_allclose(found, values / full, rtol=1e-6)
    assert found[0, 1] == found.dtype.type(0.2)  # rounded once: a level is reached exactly


def test_whole_numbers_0_and_1_are_probabilities_and_said(tmp_path):
    values = np.array([[0, 1], [1, 0]], np.uint8)
    found = read_probabilities(_saved(tmp_path / "p.tif", values), WHAT)
    assert found.values.tolist() == [[0, 1], [1, 0]]
    assert [finding.kind for finding in found.findings] == [FindingKind.FALLBACK]


def test_a_stack_of_few_pages_is_a_volume_and_not_colours(tmp_path):
    values = np.random.default_rng(0).random((3, 40, 50)).astype(np.float32)
    tifffile.imwrite(tmp_path / "p.tif", values, photometric="minisblack")
    np.testing.assert_array_equal(read_probabilities(tmp_path / "p.tif", WHAT).values, values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[0.0, 1.5]], np.float32), "values from 0 to 1.5"),
        (np.array([[-0.5, 1.0]], np.float32), "values from -0.5 to 1"),
        (np.array([[np.nan, 1.0]], np.float32), r"NaN in 1 voxel"),
        (np.array([[np.inf, 1.0]], np.float32), "inf"),
        (np.array([[-3, 4]], np.int16), "whole numbers from -3 to 4"),
        (np.array([[1j, 0]], np.complex64), "complex"),
    ],
)
def test_what_is_no_probability_is_refused(tmp_path, values, message):
    with pytest.raises(UnreadableFileError, match=message):
        read_probabilities(_saved(tmp_path / "p.npy", values), WHAT)


def test_nifti_of_labels_is_no_probability(tmp_path):
    path = _nifti(tmp_path / "p.nii.gz", np.array([[0, 255]], np.uint8))
    with pytest.raises(UnreadableFileError, match="whole numbers from 0 to 255"):
        read_probabilities(path, WHAT)


def test_rounding_beyond_0_and_1_is_cut_off(tmp_path):
    values = np.array([[-1e-8, 1 + 1e-7]], np.float64)
    assert read_probabilities(_saved(tmp_path / "p.npy", values), WHAT).values.tolist() == [[0, 1]]


@pytest.mark.parametrize("high", [1, 255, 7])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_mask_has_one_value_beside_0(tmp_path, high, dtype):
    values = np.array([[0, high], [high, 0]], dtype)
    found = read_mask(_saved(tmp_path / "m.tif", values), "a mask").values
    assert found.tolist() == [[False, True], [True, False]]


def test_an_empty_mask_and_one_of_booleans_are_masks(tmp_path):
    assert not read_mask(_saved(tmp_path / "a.npy", np.zeros((2, 2))), "a mask").values.any()
    assert read_mask(_saved(tmp_path / "b.npy", np.ones((2, 2), bool)), "a mask").values.all()


@pytest.mark.parametrize(
    "values",
    [
        np.array([[0.0, 0.5, 1.0]]),
        np.array([[0, 1, 2]], np.uint8),
        np.array([[0.0, np.nan]]),
        np.array([[0, -1]], np.int16),
    ],
)
def test_what_is_not_binary_is_no_mask(tmp_path, values):
    with pytest.raises(UnreadableFileError, match="must be binary"):
        read_mask(_saved(tmp_path / "m.npy", values), "a mask")


def test_grey_in_three_channels_is_a_mask_and_colours_are_not(tmp_path):
    grey = np.zeros((4, 5, 3), np.uint8)
    grey[1, 1] = 255
    assert read_mask(_saved(tmp_path / "g.png", grey), "a mask").values.sum() == 1
    grey[1, 1] = (255, 0, 0)
    with pytest.raises(UnreadableFileError, match="in colours"):
        read_mask(_saved(tmp_path / "c.png", grey), "a mask")


def test_too_many_voxels_are_refused_by_the_header_alone(tmp_path, monkeypatch):
    _nifti(tmp_path / "v.nii.gz", np.zeros((4, 5, 6), np.float32))
    whole = _nifti(tmp_path / "v.nii", np.zeros((4, 5, 6), np.float32)).read_bytes()
    monkeypatch.setattr(volumes, "LARGEST_VOXELS", 100)
    # Cut off behind the header: who read the voxels would say so.
    (tmp_path / "cut.nii").write_bytes(whole[: len(whole) - 12])
    for name in ("v.nii.gz", "cut.nii"):
        with pytest.raises(UnreadableFileError, match="at most 100 voxels, found 6 x 5 x 4"):
            read_volume(tmp_path / name, WHAT)
    for path in (
        _saved(tmp_path / "v.npy", np.zeros((4, 5, 6))),
        _saved(tmp_path / "v.tif", np.zeros((4, 5, 6), np.float32)),
        _saved(tmp_path / "v.png", np.zeros((20, 6), np.uint8)),
    ):
        with pytest.raises(UnreadableFileError, match="at most 100 voxels"):
            read_volume(path, WHAT)


@pytest.mark.parametrize("name", ["x.nii.gz", "x.nii", "x.tif", "x.npy", "x.png"])
def test_damaged_files_are_said(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(UnreadableFileError, match="no such file"):
        read_volume(path, WHAT)
    path.write_bytes(b"")
    with pytest.raises(UnreadableFileError, match="empty file"):
        read_volume(path, WHAT)
    good = np.random.default_rng(0).random((30, 40)).astype(np.float32)
    if name.endswith("png"):
        good = (255 * good).astype(np.uint8)
    whole = (_nifti(path, good) if ".nii" in name else _saved(path, good)).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableFileError, match=r"cannot be decoded.*copy or export it again"):
        read_volume(path, WHAT)


def test_pickled_objects_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableFileError):
        read_volume(tmp_path / "x.npy", WHAT)


def test_affines_tell_whether_two_files_lie_at_one_place(tmp_path):
    values = np.zeros((2, 3, 4), np.float32)
    moved = np.diag([0.25, 0.5, 2.0, 1.0])
    moved[0, 3] = 5.0
    first = read_volume(_nifti(tmp_path / "a.nii.gz", values), WHAT)
    second = read_volume(_nifti(tmp_path / "b.nii.gz", values, affine=moved), WHAT)
    assert same_place(first, first)
    assert not same_place(first, second)
    assert same_place(first, read_volume(_saved(tmp_path / "c.npy", values), WHAT))
