"""How different two colours look, to normal and to colour-deficient eyes."""

import numpy as np
from skimage.color import deltaE_ciede2000, rgb2lab

# Simulation of full deficiency on linear RGB: Machado, Oliveira and Fernandes,
# IEEE Transactions on Visualization and Computer Graphics 15(6), 2009, severity 1.0.
VISIONS = {
    "normal": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def seen_as(rgb, vision):
    """Give the CIELAB colour that an eye sees of an RGB colour (0-255)."""
    encoded = np.asarray(rgb, float) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(VISIONS[vision] @ linear, 0, 1)
    back = np.where(seen <= 0.0031308, seen * 12.92, 1.055 * seen ** (1 / 2.4) - 0.055)
    return rgb2lab(back)


def difference(one, other, vision):
    """Give the CIEDE2000 difference of two RGB colours (0-255)."""
    return float(deltaE_ciede2000(seen_as(one, vision), seen_as(other, vision)))
