"""Features of objects, against scikit-image and loops over pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, distance
from skimage.color import rgb2hed
from skimage.measure import regionprops
from skimage.segmentation import expand_labels

from napari_panoptic.common.errors import LabelError, SettingsError
from napari_panoptic.features import shape as shape_features
from napari_panoptic.features import stain
from napari_panoptic.features.known import (
    FEATURES,
    USUAL,
    as_covariate,
    chosen_features,
    measured,
    region_features,
)
from napari_panoptic.features.region_side import RegionSide
from napari_panoptic.features.surroundings import NEAR_PX
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.distances import contours
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.values.labels import LabelImage, LabelPair

CLASSES = ("Epithelial", "Lymphocyte")


def blobs(seed: int = 0, shape: tuple[int, int] = (90, 120), n: int = 25) -> NDArray[np.int32]:
    """Draw ellipses over one another, some beyond the edges."""
    rng = np.random.default_rng(seed)
    y, x = np.indices(shape)
    labels = np.zeros(shape, np.int32)
    for number in range(1, n + 1):
        cy, cx, ry, rx = rng.uniform((0, 0, 2, 2), (*shape, 9, 9))
        labels[((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 <= 1] = number
    return labels


def side_of(
    labels: NDArray[np.int32], image: NDArray[np.uint8] | None = None, mpp: float | None = None
) -> RegionSide:
    """Evaluate labels against themselves, and return the reference."""
    classes = {int(k): CLASSES[int(k) % 2] for k in np.unique(labels) if k}
    own = LabelImage.from_array(labels, classes, CLASSES)
    evaluation = evaluate(LabelPair(own, own, None, mpp))
    picture = None
    if image is not None:
        picture = SlideImage((image,), mpp, (), (image.shape[0], image.shape[1]))
    outcomes = evaluation.outcomes.reference
    return RegionSide("patient", "region", "team", own, outcomes, picture, mpp)


def test_shapes_are_those_of_scikit_image_and_of_the_hull_of_pixel_corners() -> None:
    labels = blobs()
    side = side_of(labels)
    found = region_features(side, {})
    for row, props in enumerate(regionprops(side.labels.index)):
        assert found["area_px"][row] == props.area
        assert found["eccentricity"][row] == pytest.approx(props.eccentricity, abs=1e-6)
        corners = np.concatenate([props.coords + shift for shift in np.ndindex(2, 2)])
        hull = ConvexHull(corners).volume  # of two dimensions: the area
        assert found["solidity"][row] == pytest.approx(props.area / hull)


def test_single_pixels_and_lines_have_a_shape_too() -> None:
    labels = np.zeros((5, 9), np.int32)
    labels[0, 0], labels[2, 1:8], labels[4, 8] = 1, 2, 3
    found = region_features(side_of(labels), {})
    assert found["area_px"].tolist() == [1, 7, 1]
    assert found["solidity"].tolist() == [1, 1, 1]
    assert found["eccentricity"].tolist() == [0, 1, 0]


def test_stains_are_means_of_decadic_optical_densities() -> None:
    labels = blobs(1)
    image = np.random.default_rng(2).integers(0, 256, (*labels.shape, 3), np.uint8)
    side = side_of(labels, image)
    found = region_features(side, {})
    hed = 6 * rgb2hed(image)
    for row, props in enumerate(regionprops(side.labels.index)):
        inside = tuple(props.coords.T)
        assert found["haematoxylin_od"][row] == pytest.approx(hed[..., 0][inside].mean())
        assert found["eosin_od"][row] == pytest.approx(hed[..., 1][inside].mean())


def test_a_pixel_of_pure_stain_has_its_optical_density() -> None:
    from skimage.color import hed2rgb

    labels = np.ones((8, 8), np.int32)
    # Half a unit of haematoxylin, in the scale of scikit-image.
    pure = hed2rgb(np.tile([0.5 / 6, 0.0, 0.0], (8, 8, 1)))
    found = region_features(side_of(labels, np.round(255 * pure).astype(np.uint8)), {})
    assert found["haematoxylin_od"][0] == pytest.approx(0.5, abs=0.01)
    assert found["eosin_od"][0] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("shape", [None, (10, 10)])
def test_stains_are_undefined_without_an_image_of_the_region(shape: tuple[int, int] | None) -> None:
    image = None if shape is None else np.zeros((*shape, 3), np.uint8)
    found = region_features(side_of(blobs(), image), {})
    assert np.isnan(found["haematoxylin_od"]).all()
    assert np.isnan(found["eosin_od"]).all()
    assert not np.isnan(found["area_px"]).any()


@pytest.mark.parametrize("mpp", [None, 1.25])
def test_surroundings_are_those_of_loops(mpp: float | None) -> None:
    labels = blobs(3)
    side = side_of(labels, mpp=mpp)
    found = region_features(side, {})
    index = side.labels.index
    height, width = index.shape
    centres = np.array([props.centroid for props in regionprops(index)])
    apart = distance.cdist(centres, centres)
    radius = NEAR_PX if mpp is None else 20.0  # 25 µm
    fine = (np.indices((height * 4, width * 4)).reshape(2, -1).T + 0.5) / 4 - 0.5
    for row, props in enumerate(regionprops(index)):
        y0, x0, y1, x1 = props.bbox
        assert found["frame_distance_px"][row] == min(y0, x0, height - y1, width - x1)
        others = np.delete(apart[row], row)
        assert found["neighbour_distance_px"][row] == pytest.approx(others.min())
        inside = (distance.cdist(centres[row][None], fine) <= radius).sum() / 16
        density = 10_000 * (others <= radius).sum() / inside
        assert found["local_density_px"][row] == pytest.approx(density, rel=0.01)
        around = np.zeros_like(index, dtype=bool)
        for y, x in props.coords:
            around[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2] = True
        touches = bool(((index != row + 1) & (index > 0))[around].any())
        assert found["touching"][row] == ("yes" if touches else "no")


def test_objects_that_share_pixels_are_measured_whole_and_touch() -> None:
    planes = np.zeros((2, 12, 20), np.int32)
    planes[0, 2:8, 2:10], planes[1, 4:10, 6:16], planes[0, 10:12, 18:20] = 1, 2, 3
    top = np.where(planes[1] > 0, planes[1], planes[0])
    ids = np.array([1, 2, 3])
    shown = LabelImage.from_array(top, "Epithelial", CLASSES)
    labels = shown.in_planes(tuple(planes), ids, np.ones(3, np.int16), ids)
    outcomes = evaluate(LabelPair(labels, labels, None, None)).outcomes.reference
    image = SlideImage((np.full((12, 20, 3), 90, np.uint8),), None, (), (12, 20))
    found = region_features(RegionSide("p", "r", "t", labels, outcomes, image, None), {})
    assert found["area_px"].tolist() == [48, 60, 4]
    assert found["solidity"].tolist() == [1, 1, 1]
    assert found["touching"].tolist() == ["yes", "yes", "no"]
    assert np.ptp(found["haematoxylin_od"]) < 1e-12


def test_a_region_without_objects_has_no_values() -> None:
    found = region_features(side_of(np.zeros((6, 7), np.int32)), {})
    assert {len(column) for column in found.values()} == {0}


# --- features that are measured on request -----------------------------------------------------


def test_minor_axes_are_those_of_scikit_image() -> None:
    side = side_of(blobs())
    found = measured(side, ["minor_axis_px"])["minor_axis_px"]
    wanted = [props.axis_minor_length for props in regionprops(side.labels.index)]
    assert found == pytest.approx(wanted, abs=1e-6)


def slow_stains(side: RegionSide, image: NDArray[np.uint8], width: float) -> dict[str, list[float]]:
    """Measure spread, gradient and contrast object by object and, at the rim, pixel by pixel."""
    density, index = 6 * rgb2hed(image)[..., 0], side.labels.index
    height, length = index.shape
    around = expand_labels(index, width)
    found: dict[str, list[float]] = {
        "haematoxylin_sd": [],
        "rim_gradient_px": [],
        "ring_contrast_od": [],
    }
    for row in range(1, len(side) + 1):
        inside, steps = index == row, []
        for y, x in np.argwhere(inside):
            beside = [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
            there = [(min(max(a, 0), height - 1), min(max(b, 0), length - 1)) for a, b in beside]
            if any(index[place] != row for place in there):
                up, down, left, right = (density[place] for place in there)
                steps.append(np.hypot(down - up, right - left) / 2)
        ring = density[(around == row) & (index == 0)]
        found["haematoxylin_sd"].append(density[inside].std())
        found["rim_gradient_px"].append(np.mean(steps))
        found["ring_contrast_od"].append(
            density[inside].mean() - ring.mean() if len(ring) else np.nan
        )
    return found


@pytest.mark.parametrize(("mpp", "width"), [(None, 5), (0.625, 2)])
@pytest.mark.parametrize("strip", [2**22, 7 * 120])
def test_stains_of_rim_and_ring_are_those_of_loops(
    mpp: float | None, width: float, strip: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stain, "_STRIP_PX", strip)
    labels = blobs(4)
    image = np.random.default_rng(5).integers(0, 256, (*labels.shape, 3), np.uint8)
    side = side_of(labels, image, mpp)
    for name, wanted in slow_stains(side, image, width).items():
        found = measured(side, [name])[name]
        # In strips, another of several objects at the same distance may have a pixel of the ring.
        near = 0.03 if name == "ring_contrast_od" and strip < 2**22 else 1e-9
        assert found == pytest.approx(wanted, abs=near, nan_ok=True), name


def test_an_object_that_fills_the_image_has_neither_rim_nor_ring() -> None:
    side = side_of(np.ones((6, 7), np.int32), np.full((6, 7, 3), 90, np.uint8))
    found = measured(side, ["haematoxylin_sd", "rim_gradient_px", "ring_contrast_od"])
    assert found["haematoxylin_sd"] == pytest.approx(0, abs=1e-6)
    assert np.isnan([found["rim_gradient_px"], found["ring_contrast_od"]]).all()


@pytest.mark.parametrize("name", FEATURES)
def test_every_feature_has_a_value_per_object_and_words(name: str) -> None:
    image = np.full((90, 120, 3), 90, np.uint8)
    for labels in (blobs(), np.zeros((90, 120), np.int32)):
        side = side_of(labels, image)
        assert measured(side, [name])[name].shape == (len(side),)
    own = FEATURES[name]
    assert own.header
    assert own.source
    assert name.endswith("_px") == bool(own.px_power)


def test_features_are_chosen_by_name_and_keep_their_order() -> None:
    assert chosen_features(["touching", "score", "area_px"]) == ("score", "area_px", "touching")
    assert chosen_features(USUAL) == USUAL
    for names in ([], ["area"]):
        with pytest.raises(SettingsError, match="area_px"):
            chosen_features(names)


# --- further covariates -------------------------------------------------------------------------


def test_functions_add_covariates_from_pixels_and_outcomes() -> None:
    def brightness(side: RegionSide) -> Mapping[str, NDArray[Any]]:
        assert side.image is not None
        grey = np.asarray(side.image.levels[0]).mean(axis=-1)
        index = side.labels.index
        return {"brightness": np.bincount(index[index > 0], grey[index > 0])[1:]}

    image = np.full((90, 120, 3), 3, np.uint8)
    found = region_features(side_of(blobs(), image), {"brightness": brightness})
    assert found["brightness"] == pytest.approx(3 * found["area_px"])


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ({"area_px": np.zeros(25)}, "there already"),
        ({"area_um": np.zeros(25)}, "there already"),
        ({"status": np.zeros(25)}, "there already"),
        ({"id": np.zeros(25)}, "there already"),
        ({"new": np.zeros(3)}, "one per object"),
    ],
)
def test_functions_that_do_not_fit_are_named(
    returned: Mapping[str, NDArray[Any]], problem: str
) -> None:
    with pytest.raises(LabelError, match=f"'mine'.*{problem}"):
        region_features(side_of(blobs()), {"mine": lambda _: returned})


def test_values_become_numbers_or_words() -> None:
    assert as_covariate(["1", " 2.5", ""]).tolist()[:2] == [1, 2.5]
    assert np.isnan(as_covariate(["1", ""])[1])
    assert as_covariate(["1", " kidney ", ""]).tolist() == ["1", "kidney", ""]
    assert as_covariate(np.array([True, False])).tolist() == ["yes", "no"]
    assert np.isnan(as_covariate(np.array([np.inf, 1.0]))[0])
    assert as_covariate(np.array([1, 2], np.int8)).dtype == np.float64


def test_hulls_of_many_objects_are_those_of_each(monkeypatch) -> None:
    labels = side_of(blobs(n=60)).labels
    assert len(labels) > shape_features._HULLS_AT_ONCE
    found = shape_features._hull_areas(labels)
    monkeypatch.setattr(shape_features, "_HULLS_AT_ONCE", 1000)
    assert found.tolist() == shape_features._hull_areas(labels).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_solidity_is_that_of_the_corners_of_all_contour_pixels(seed: int) -> None:
    """Bit for bit, for round, concave and scattered objects, and at the edge of the image."""
    labels = np.random.default_rng(seed).integers(0, 9, (30, 40)).astype(np.int32)
    for own in (side_of(blobs(seed, n=60)), side_of(labels)):
        found = contours(np.pad(own.labels.index, 1), len(own))
        hulls = []
        for row in range(1, len(own) + 1):
            yx = found.yx[found.start[row] : found.start[row + 1]].astype(np.float64)
            corners = np.concatenate([yx + corner for corner in np.ndindex(2, 2)])
            hulls.append(shapely.MultiPoint(corners).convex_hull.area)
        assert shape_features.solidity(own).tolist() == (own.moments[:, 0] / hulls).tolist()
