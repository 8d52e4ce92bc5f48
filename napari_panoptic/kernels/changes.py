"""Where labels change in the lines of an image, for compiled kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled

# Changes of a line are looked for a word at a time, one byte per pixel.
_WORD = 8
# A word of nothing but changes.
_EVERY_BYTE = np.uint64(0x0101010101010101)
# Times the lowest byte of a word that is 1, this has the byte's place in its highest byte.
_PLACE_OF_BYTE = np.uint64(0x0001020304050607)

Notes = tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]
"""Of a line: per pixel whether it differs from the one before; words with changes; changes."""


@compiled
def blank_notes(width: int) -> Notes:
    """Make room for what is noted of a line."""
    words = width // _WORD + 1
    return (
        np.zeros(words * _WORD, np.uint8),
        np.empty(words + 1, np.int32),
        np.empty(width + 1, np.int32),
    )


@compiled
def list_changes(notes: Notes) -> int:
    """List the places of the changes that are marked, ascending; return how many there are.

    No branch per pixel or word: changes cannot be predicted, and a wrong guess
    costs more than all other work on them.
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
