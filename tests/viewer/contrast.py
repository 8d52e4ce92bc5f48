"""How well what a widget shows can be read."""

import numpy as np

READABLE, SEEN = 4.5, 3.0
"""Contrasts that words, and marks, need (WCAG 2.2)."""


def luminance(pixels):
    """Give the relative luminance of sRGB pixels (..., 3), 0-255, as WCAG defines it."""
    scaled = np.asarray(pixels, float) / 255
    linear = np.where(scaled <= 0.04045, scaled / 12.92, ((scaled + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def pixels_of(widget):
    image = widget.grab().toImage().convertToFormat(widget.grab().toImage().Format.Format_RGB888)
    bits = image.constBits()
    if hasattr(bits, "asarray"):
        bits = bits.asarray(image.sizeInBytes())
    rows = np.frombuffer(bytes(bits), np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3)


def contrast(pixels, ground):
    """Give the highest contrast of any pixel with a ground."""
    found, behind = luminance(pixels).ravel(), float(luminance(ground))
    return float(((np.maximum(found, behind) + 0.05) / (np.minimum(found, behind) + 0.05)).max())
