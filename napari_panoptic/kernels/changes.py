"""List where labels change in the lines of an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled

# Changes of a line are found a word at a time, one byte per pixel.
_WORD = 8
# A word in which every byte is a change.
_EVERY_BYTE = np.uint64(0x0101010101010101)
# Multiplied by a word with a single 1, this has the place of its byte in the highest byte.
_PLACE_OF_BYTE = np.uint64(0x0001020304050607)

Notes = tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]
"""Buffers for a line: whether each pixel differs from the previous one, the words with changes,
and the positions of the changes."""


@compiled
def blank_notes(width: int) -> Notes:
    """Return buffers for lines of this width."""
    words = width // _WORD + 1
    return (
        np.zeros(words * _WORD, np.uint8),
        np.empty(words + 1, np.int32),
        np.empty(width + 1, np.int32),
    )


@compiled
def list_changes(notes: Notes) -> int:
    """List the positions of the marked changes, ascending; return their number.

    There is no branch per pixel or word: changes cannot be predicted, and a wrong prediction
    costs more than all other work.
    """
    changed, places, changes = notes
    words = changed.view(np.uint64)
    n_words = 0
    for place in range(len(words)):
        places[n_words] = place
        n_words += words[place] != 0
    count = 0
    for k in range(n_words):
        word = words[places[k]]
        if word == _EVERY_BYTE:  # as in noise
            for byte in range(_WORD):
                changes[count + byte] = places[k] * _WORD + byte
            count += _WORD
            continue
        while word != 0:
            lowest = word & (~word + np.uint64(1))
            place_of_byte = np.int64((lowest * _PLACE_OF_BYTE) >> np.uint64(56))
            changes[count] = places[k] * _WORD + place_of_byte
            count += 1
            word ^= lowest
    return count
