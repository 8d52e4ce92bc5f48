"""Results in the features of the user's layers, beside the columns that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from napari.layers import Layer, Shapes

from napari_panoptic.values.vocabulary import Side

if TYPE_CHECKING:
    import pandas as pd

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
    found = objects[objects["side"] == str(side)].set_index("id")
    results = pd.DataFrame({names[name]: found[column] for name, column in RESULTS.items()})
    if isinstance(layer, Shapes):
        ids: Any = pd.RangeIndex(1, len(layer.data) + 1)
        features = features.reset_index(drop=True)
    else:
        features = _with_a_row_each(features, results.index)
        ids = features["index"]
    placed = results.reindex(ids).reset_index(drop=True)
    merged = pd.concat([features, placed], axis=1)
    # Others see each of these as an event: nothing is set that is so already.
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
