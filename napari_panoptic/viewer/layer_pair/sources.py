"""Layers of the user's as the source of a comparison: their data are read, never changed.

Results are written to their features, beside the columns that are there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from napari.layers import Image, Labels, Layer, Points, Shapes
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts import comparison as arrays
from napari_panoptic.io.formats.class_tables import read_class_table
from napari_panoptic.io.formats.polygons.model import PixelRule, Polygons
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.io.formats.scores import score_column
from napari_panoptic.values.cohort import ONLY_CLASS, ClassScheme, Placement
from napari_panoptic.values.reading import HELD_UP_TO_PX
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.editing.ambiguous_shapes import WITH_AN_AREA, corners_of

if TYPE_CHECKING:
    import pandas as pd


TWO_D = "The program compares 2-D images; of stacks it compares the shown slice."
_ONE_CLASS = ClassScheme((ONLY_CLASS,), ((255, 0, 0),))
_MICROMETRES = {"micrometer", "um", "µm"}
_CONFIDENCE = ("confidence", "score")


@dataclass(frozen=True, eq=False)
class ChosenLayers:
    """The layers to compare."""

    #: The annotation: Labels, Shapes or Points.
    reference: Layer
    #: The predictions; Points where the annotation has points, else Labels or Shapes.
    predictions: tuple[Layer, ...]
    #: The image, or None.
    image: Layer | None = None
    #: Labels or Shapes of the area where nothing is scored, or None.
    ambiguous: Layer | None = None
    #: Column of the layers' features with the class of each object; None for one class.
    class_column: str | None = None
    #: A CSV or JSON table of id and class in place of the column.
    class_table: Path | None = None

    @property
    def sides(self) -> tuple[Layer, ...]:
        """The layers with objects, the reference first."""
        return (self.reference, *self.predictions)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer, the reference first."""
        others = (self.image, self.ambiguous)
        return (*self.sides, *(each for each in others if each is not None))

    @property
    def is_of_points(self) -> bool:
        """Whether points are compared with points."""
        return isinstance(self.reference, Points)

    @cached_property
    def table(self) -> Mapping[int, str] | None:
        """The classes of the table, read once."""
        if self.class_table is None:
            return None
        return read_class_table(self.class_table, _ONE_CLASS).as_mapping()

    @cached_property
    def teams(self) -> dict[Layer, str]:
        """The team that each prediction is shown as; layers may have any name."""
        names = arrays.unique_safe_names(layer.name for layer in self.predictions)
        return dict(zip(self.predictions, names, strict=True))

    @property
    def name(self) -> str:
        """A name for people."""
        return f"{self.reference.name} / {english_list([p.name for p in self.predictions])}"


def arrays_of(
    choice: ChosenLayers, viewer: Any
) -> arrays.LabelsComparison | arrays.PointsComparison:
    """Read the shown slice of each layer.

    Raises
    ------
    PanopticError
        In one sentence, for layers that do not lie over one another.
    """
    _check_choice(choice)
    for layer in choice.layers:
        _check_upright(layer)
        _check_placement(choice.reference, layer)
    if choice.is_of_points:
        return _points_comparison(choice, viewer)
    shape = shape_of(choice, viewer)
    sides = {layer: _side(layer, labels_of(layer, viewer, shape), choice) for layer in choice.sides}
    placement = placement_of(choice.reference)
    is_square = placement.scale_yx[0] == placement.scale_yx[1]
    is_um = set(placement.units) <= _MICROMETRES
    image, limits = (None, None) if choice.image is None else _image_of(choice.image, viewer)
    return arrays.LabelsComparison(
        sides[choice.reference],
        {team: sides[layer] for layer, team in choice.teams.items()},
        image=image,
        image_limits=limits,
        ambiguous=ambiguous_of(choice, viewer, shape),
        mpp=placement.scale_yx[0] if is_um and is_square else None,
        name=choice.name,
    )


def ambiguous_of(
    choice: ChosenLayers, viewer: Any, shape: tuple[int, int]
) -> NDArray[np.bool_] | None:
    """Return where nothing is scored, bool (y, x), or None without such a layer."""
    if choice.ambiguous is None:
        return None
    return np.asarray(labels_of(choice.ambiguous, viewer, shape)) > 0


def placement_of(layer: Layer) -> Placement:
    """Return scale, position and units of the last two axes of a layer."""
    y, x = (float(value) for value in layer.scale[-2:])
    top, left = (float(value) for value in layer.translate[-2:])
    units = tuple(str(unit) for unit in layer.units[-2:])
    return Placement((y, x), (top, left), (units[0], units[-1]))


def slice_of(layer: Layer, viewer: Any) -> tuple[int, ...]:
    """Return the indices of the shown slice of a layer, along its leading axes."""
    if layer.ndim <= 2:
        return ()
    if tuple(viewer.dims.order[-2:]) != tuple(sorted(viewer.dims.order))[-2:]:
        raise PanopticError(
            f"'{layer.name}' has {layer.ndim} axes and is shown from another side; show the last "
            f"two axes. {TWO_D}"
        )
    # In world units: layers may have steps of their own along the leading axes.
    place = np.array(viewer.dims.point[-layer.ndim :], float)
    at = np.round(np.asarray(layer.world_to_data(place), float)[:-2]).astype(int)
    if isinstance(layer, (Points, Shapes)):
        return tuple(at.tolist())
    sizes = data_of(layer).shape
    return tuple(min(max(i, 0), size - 1) for i, size in zip(at.tolist(), sizes, strict=False))


def is_lazy(layer: Layer) -> bool:
    """Return whether a layer's pixels are not in memory."""
    return isinstance(layer, (Labels, Image)) and not isinstance(data_of(layer), np.ndarray)


def is_large(layer: Layer, viewer: Any) -> bool:
    """Return whether a layer's slice is too large to be held in memory."""
    if not isinstance(layer, (Labels, Image)):
        return False
    n_px: int = math.prod(_plane(layer, viewer).shape[:2])
    return n_px > HELD_UP_TO_PX


def shape_of(choice: ChosenLayers, viewer: Any) -> tuple[int, int]:
    """Return height and width of the compared pixels; shapes and points have none of their own."""
    for layer in choice.layers:
        if isinstance(layer, (Labels, Image)):
            height, width = _plane(layer, viewer).shape[:2]
            return int(height), int(width)
    raise PanopticError("Shapes do not state the size of the image; choose the image, too.")


def labels_of(layer: Layer, viewer: Any, shape: tuple[int, int]) -> Any:
    """Return the objects of a layer as a label array (y, x); of a lazy layer, a lazy one."""
    if isinstance(layer, Labels):
        found = _plane(layer, viewer)
        if tuple(found.shape) != shape:
            raise PanopticError(
                f"'{layer.name}' has {found.shape[0]} x {found.shape[1]} px and the others "
                f"{shape[0]} x {shape[1]}; crop or resample one of them."
            )
        return found if is_large(layer, viewer) else np.asarray(found)
    return _drawn(layer, slice_of(layer, viewer), shape)


def _drawn(layer: Any, at: tuple[int, ...], shape: tuple[int, int]) -> NDArray[np.int32]:
    """Return the shapes of a slice as labels: the pixels whose centres lie inside."""
    rings, ids = [], []
    for number, (data, kind) in enumerate(zip(layer.data, layer.shape_type, strict=True), start=1):
        if kind in WITH_AN_AREA and (np.round(data[:, :-2]) == np.array(at)).all():
            # In layers a pixel's centre has whole numbers, in outlines its corner.
            rings.append(corners_of(data, kind)[:, ::-1] + 0.5)
            ids.append(number)
    classes = np.ones(len(rings), np.int16)
    numbers = np.array(ids, np.int64)
    polygons = Polygons.of_rings(rings, classes, PixelRule.CENTRE, ids=numbers)
    labels = rasterize_polygons(polygons, shape, _ONE_CLASS).held().labels
    known = np.concatenate([[0], labels.ids]).astype(np.int32)
    return known[labels.index]


def classes_of(layer: Layer, choice: ChosenLayers) -> Mapping[int, str] | str:
    """Return the classes that are stated for a layer's objects, or the one class of all."""
    import pandas as pd

    if choice.table is not None:
        return choice.table
    column, features = choice.class_column, layer.features
    if column is None or column not in features:
        return ONLY_CLASS
    named = zip(_ids_of(layer), features[column], strict=True)
    return {int(id_): str(name) for id_, name in named if not pd.isna(name) and str(name).strip()}


def scores_of(layer: Layer) -> Mapping[int, float]:
    """Return the scores of a layer's objects, from the first column with a well-known name."""
    import pandas as pd

    columns = list(layer.features)
    if (at := score_column([str(name) for name in columns], None)) is None:
        return {}
    scores = pd.to_numeric(layer.features[columns[at]], errors="coerce").to_numpy(float)
    known = zip(_ids_of(layer), scores.tolist(), strict=True)
    return {int(id_): score for id_, score in known if math.isfinite(score)}


def _ids_of(layer: Layer) -> Any:
    """Return the object that each row of a layer's features is about."""
    import pandas as pd

    features = layer.features
    if "index" in features:
        return features["index"]
    first = 1 if isinstance(layer, Shapes) else 0
    return pd.RangeIndex(first, len(features) + first)


def class_of(classes: Mapping[int, str] | str, id_: int) -> str:
    """Return the class of an object; one without has that of cohorts without classes."""
    return classes if isinstance(classes, str) else classes.get(id_, ONLY_CLASS)


class _Defaulting(dict[int, str]):
    """Classes of objects whose ids are not known yet."""

    def get(self, key: int, default: Any = None) -> Any:
        return super().get(key, ONLY_CLASS if default is None else default)

    def values(self) -> Any:
        return [*super().values(), ONLY_CLASS]


def _side(layer: Layer, pixels: Any, choice: ChosenLayers) -> arrays.Labels:
    classes, scores = classes_of(layer, choice), scores_of(layer)
    if isinstance(classes, str):
        return arrays.Labels(pixels, classes, scores)
    if not isinstance(pixels, np.ndarray):
        return arrays.Labels(pixels, _Defaulting(classes), scores)
    ids = np.unique(pixels).tolist()
    return arrays.Labels(pixels, {id_: class_of(classes, id_) for id_ in ids if id_}, scores)


def data_of(layer: Any) -> Any:
    """Return a layer's data, of several levels the finest."""
    return layer.data[0] if getattr(layer, "multiscale", False) else layer.data


def _plane(layer: Layer, viewer: Any) -> Any:
    """Return the 2-D slice of a layer's data that is shown."""
    data = data_of(layer)
    at = slice_of(layer, viewer)
    return data[at] if at else data


def _image_of(layer: Layer, viewer: Any) -> tuple[Any, tuple[float, float] | None]:
    """Return the pixels of an image, and the values that napari shows black and white."""
    plane = _plane(layer, viewer)
    if getattr(layer, "rgb", False):
        return plane, None
    low, high = (float(value) for value in layer.contrast_limits)
    return plane, (low, high)


def _points_comparison(choice: ChosenLayers, viewer: Any) -> arrays.PointsComparison:
    placement = placement_of(choice.reference)
    if not set(placement.units) <= _MICROMETRES:
        raise PanopticError(
            "Points are paired within a distance in µm; set the layers' units to micrometer and "
            "their scale to the pixel size, in µm."
        )
    points_of = {layer: _points_of(layer, viewer) for layer in choice.sides}
    image, limits, shape = None, None, (1, 1)
    if choice.image is None:
        highest = [points[:, :2].max(axis=0, initial=0) for points in points_of.values()]
        width, height = np.ceil(np.max(highest, axis=0)).astype(int) + 1
        shape = int(height), int(width)
    else:
        image, limits = _image_of(choice.image, viewer)
    return arrays.PointsComparison(
        points_of[choice.reference][:, :2],
        {team: points_of[layer] for layer, team in choice.teams.items()},
        mpp_xy=placement.scale_yx[::-1],
        shape=shape,
        image=image,
        image_limits=limits,
        name=choice.name,
    )


def _points_of(layer: Any, viewer: Any) -> NDArray[np.float64]:
    """Return x, y and, where a column states it, the confidence of the points that are shown."""
    import pandas as pd

    data = np.asarray(layer.data, float)
    is_here = (np.round(data[:, :-2]) == np.array(slice_of(layer, viewer))).all(axis=1)
    points: NDArray[np.float64] = data[is_here][:, :-3:-1]
    column = next((name for name in _CONFIDENCE if name in layer.features), None)
    if column is None:
        return points
    confidence = pd.to_numeric(layer.features[column], errors="coerce").to_numpy(float)[is_here]
    return points if np.isnan(confidence).any() else np.column_stack([points, confidence])


def _check_choice(choice: ChosenLayers) -> None:
    """Check which layers are chosen for what.

    Raises
    ------
    PanopticError
        Naming the layer that does not fit.
    """
    reference = choice.reference
    if not choice.predictions:
        raise PanopticError("Choose at least one layer with predictions.")
    if reference in choice.predictions:
        raise PanopticError(
            f"'{reference.name}' is chosen as reference and as prediction; choose it once."
        )
    others = [p for p in choice.predictions if isinstance(p, Points) != choice.is_of_points]
    if others:
        points, outlines = (others[0], reference)[:: -1 if choice.is_of_points else 1]
        raise PanopticError(
            f"'{points.name}' has points and '{outlines.name}' has outlines; compare points with "
            "points, or outlines with outlines."
        )
    if choice.ambiguous is not None and choice.ambiguous in choice.sides:
        raise PanopticError(
            f"'{choice.ambiguous.name}' is chosen as ambiguous area and as "
            "reference or prediction; choose it once."
        )


def _check_upright(layer: Layer) -> None:
    """Check that a layer is neither turned nor sheared.

    Raises
    ------
    PanopticError
        Naming the transformation.
    """
    turned = {
        "rotate": not np.allclose(np.asarray(layer.rotate)[-2:, -2:], np.eye(2)),
        "shear": not np.allclose(layer.shear, 0),
        "affine": not np.allclose(layer.affine.affine_matrix, np.eye(layer.ndim + 1)),
    }
    if not any(turned.values()):
        return
    name = next(name for name, is_so in turned.items() if is_so)
    raise PanopticError(
        f"'{layer.name}' has a {name} transformation, which cannot be compared; resample its "
        "pixels upright, or reset it."
    )


def _check_placement(reference: Layer, layer: Layer) -> None:
    """Check that two layers lie over one another, pixel by pixel.

    Raises
    ------
    PanopticError
        Naming the first difference and the remedy.
    """
    expected, given = placement_of(reference), placement_of(layer)
    for name, mine, yours in (
        ("scale", expected.scale_yx, given.scale_yx),
        ("translate", expected.translate_yx, given.translate_yx),
    ):
        if not np.allclose(mine, yours, rtol=1e-9, atol=1e-12):
            raise PanopticError(
                f"'{layer.name}' and '{reference.name}' differ in {name} ({_text(yours)} and "
                f"{_text(mine)}); give both the same {name}, and resample one of them if its "
                "pixels are larger."
            )
    if expected.units != given.units:
        raise PanopticError(
            f"'{layer.name}' and '{reference.name}' differ in units ({given.units[0]} and "
            f"{expected.units[0]}); give both the same units."
        )


def _text(values: tuple[float, float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


RESULTS = {
    "status": "status",
    "cause": "cause",
    "class": "class",
    "partner": "partner_id",
    "iou": "iou",
    "hausdorff": "hausdorff_px",
}
"""Column of results in the features of layers -> that of an evaluation's objects."""
OTHER_NAME = "{} (result)"
"""Name of such a column where the user has one of the same name."""

_WRITTEN: WeakKeyDictionary[Layer, frozenset[str]] = WeakKeyDictionary()


def own_columns(layer: Any) -> list[str]:
    """Return the columns of a layer's features that are the user's."""
    written = _WRITTEN.get(layer, frozenset())
    return [str(name) for name in layer.features.columns if name not in written]


def write_features(layer: Any, objects: pd.DataFrame, side: Side) -> None:
    """Write the results of objects to a layer's features; the user's rows keep their order.

    Parameters
    ----------
    layer
        Labels, by whose values objects are found, or Shapes.
    objects
        The objects of an evaluation.
    side
        On which side the layer's objects are.
    """
    import pandas as pd

    users = own_columns(layer)
    features = layer.features[users]
    names = {name: _free_name(name, users) for name in RESULTS}
    of_side = objects[objects["side"] == str(side)].set_index("id")
    results = pd.DataFrame({names[name]: of_side[column] for name, column in RESULTS.items()})
    if isinstance(layer, Shapes):
        ids: Any = pd.RangeIndex(1, len(layer.data) + 1)
        features = features.reset_index(drop=True)
    else:
        features = _with_a_row_each(features, results.index)
        ids = features["index"]
    placed = results.reindex(ids).reset_index(drop=True)
    merged = pd.concat([features, placed], axis=1)
    # Others see each of these as an event: nothing is set that has the value already.
    if not merged.equals(layer.features):
        _WRITTEN[layer] = frozenset(names.values())
        layer.features = merged


def _free_name(name: str, users: Sequence[str]) -> str:
    """Return a name that no column of the user has, also if one is an earlier result."""
    while name in users:
        name = OTHER_NAME.format(name)
    return name


def _with_a_row_each(features: pd.DataFrame, ids: pd.Index) -> pd.DataFrame:
    """Append a row for each id of a labels layer that has none, and for the background."""
    import pandas as pd

    if "index" not in features:
        features = features.reset_index(drop=True).assign(index=np.arange(len(features)))
    wanted = np.union1d([0], ids.to_numpy(np.int64))
    missing = wanted[~np.isin(wanted, features["index"])]
    if not len(missing):
        return features.reset_index(drop=True)
    if not len(features):
        return pd.DataFrame({"index": missing})
    return pd.concat([features, pd.DataFrame({"index": missing})], ignore_index=True)
