"""Results beside the user's own columns in the features of layers."""

import numpy as np
import pandas as pd
from napari.layers import Labels

from napari_panoptic import evaluate_pair
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.layer_pair.sources import write_features


def test_columns_of_an_earlier_result_stay_the_users():
    data = np.zeros((8, 8), np.int32)
    data[1:4, 1:4] = 1
    users = pd.DataFrame({"index": [0, 1], "status": ["", "a"], "status (result)": ["", "b"]})
    layer = Labels(data, features=users.copy())
    objects = evaluate_pair(data, data).objects
    for _ in range(2):
        write_features(layer, objects, Side.REFERENCE)
        assert layer.features.columns.is_unique
        pd.testing.assert_frame_equal(layer.features[list(users)], users)
        assert layer.features["status (result) (result)"].tolist()[1] == "TP"
